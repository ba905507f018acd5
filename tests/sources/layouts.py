"""The layouts of Keju's own exams, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.benchmarks import registry
from keju.sources.folder import DataFolder, Layout, is_data_available, locate

LAYOUTS: dict[str, Layout] = {
    name: layout for name in registry.BUILT_IN if (layout := registry.get(name).layout) is not None
}
BBH_SUBSETS = LAYOUTS["bbh"].tables
CEVAL_SUBJECTS = tuple(
    table.removeprefix("dev/") for table in LAYOUTS["ceval"].tables if table.startswith("dev/")
)


def open_published(data_dir: Path, benchmark: str) -> DataFolder:
    """Return the folder of an exam below `data_dir`; skip the test if it is not there."""
    layout, top = LAYOUTS[benchmark], str(data_dir)
    if not is_data_available(benchmark, layout, data_dir=top):
        pytest.skip(f"no data of {benchmark} at {data_dir}")
    return locate(benchmark, layout, data_dir=top)
