"""The file that the site of an exam's makers takes, where it scores what is published goldless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam


class Submission(NamedTuple):
    """The document, and the samples that have no answer of the model's own."""

    document: Mapping[str, Any]
    missing: list[str]


class Submit(Protocol):
    """Arranges answers for submission; `Benchmark.submission` is one."""

    def __call__(
        self,
        exam: Exam,
        answers: Mapping[str, str | None],
        fill: str | None = None,
        *,
        partial: bool = False,
    ) -> Submission:
        """Arrange `answers`, which are by sample id and as labels of the options shown.

        None stands for an answer that was not understood, and becomes `fill`. Without `partial`
        every question must have been asked.
        """
