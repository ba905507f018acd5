"""The file that the C-Eval site takes: a letter for every question of the test split.

Official shape: ``{subject: {"0": "A", "1": "B", …}}``, the subject by file name, all 52 subjects,
every id as a string. How the site treats an empty value is not documented, so rows without a
letter are listed, and filled only with a letter that the user names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from keju.benchmarks.ceval.facts import OPTIONS, SUBJECTS
from keju.benchmarks.facts import Submission
from keju.errors import ConfigError, DataError

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam


def submission(
    exam: Exam,
    answers: Mapping[str, str | None],
    fill: str | None = None,
    *,
    partial: bool = False,
) -> Submission:
    """Arrange `answers` (by sample id, as labels of the options shown) for submission.

    A sample whose answer is None was asked and not understood: it becomes ``""``, or `fill`. A
    sample that was never asked makes the submission incomplete, which is refused unless `partial`.
    Labels of permuted options are turned back into the published ones.
    """
    if fill is not None and (len(fill) != 1 or fill not in OPTIONS):
        raise ConfigError(f"fill '{fill}' is not one of A, B, C, D")
    split = exam.settings.get("split")
    if exam.benchmark != "ceval" or split != "test":
        raise ConfigError(
            f"a C-Eval submission is made of the test split, this run sat {exam.benchmark} "
            f"{split or ''}".rstrip()
            + "; run with split: test"
        )
    sizes = {subset.name: len(subset) for subset in exam.subsets}
    for name, subject in SUBJECTS.items():
        if sizes.get(name, 0) != subject.test and not partial:
            raise DataError(
                f"a submission needs all {len(SUBJECTS)} subjects: '{name}' has "
                f"{sizes.get(name, 0)} of {subject.test} test rows"
            )
    unasked = [sample.id for sample in exam.samples if sample.id not in answers]
    if unasked and not partial:
        raise DataError(
            f"the run answered {len(exam.samples) - len(unasked)} of {len(exam.samples)} questions "
            f"(first one missing: {unasked[0]}); resume it, or ask for a partial submission"
        )
    document: dict[str, dict[int, str]] = {}
    missing: list[str] = []
    for sample in exam.samples:
        label = answers.get(sample.id)
        rows = document.setdefault(sample.subset, {})
        if not label or label not in sample.labels:
            missing.append(sample.id)
            rows[sample.index] = fill or ""
        else:
            # The option's letter as published, whatever order it was shown in.
            place = sample.labels.index(label)
            rows[sample.index] = OPTIONS[sample.order[place] if sample.order else place]
    ordered = {
        name: {str(number): letter for number, letter in sorted(document[name].items())}
        for name in SUBJECTS
        if name in document
    }
    return Submission(ordered, missing)
