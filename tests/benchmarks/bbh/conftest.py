"""BBH on the real data, loaded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.bbh import BBH, BBHArgs
from keju.sources.folder import DataFolder
from keju.types import Sample


@pytest.fixture(scope="session")
def exam(data_dir: Path) -> Exam:
    """All 27 subsets under the default protocol."""
    return BBH.prepare(BBHArgs(), DataFolder(data_dir / "bbh", BBH.layout), seed=1)


@pytest.fixture(scope="session")
def samples(exam: Exam) -> dict[str, Sample]:
    """The rows by id."""
    return {sample.id: sample for sample in exam.samples}
