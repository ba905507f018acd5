"""A pipeline of lm-eval's filters as a reader of Keju."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keju.answers.reader import Reader
from keju.types import Answer, Sample

NOTHING_FOUND = "[invalid]"
"""The result of lm-eval's filters for a reply without an answer."""


class UnloadedReader(Reader):
    """Stands for the readers of a task, which are known once it is loaded."""

    name = "lm-eval"
    about = "lm_eval.about_reader"

    def read(self, text: str, sample: Sample) -> Answer:
        return Answer(text)


class PipelineReader(Reader):
    """One pipeline of filters. The exam asks it, since filters need the task's document."""

    marked = False

    def __init__(self, ensembles: Mapping[str, Any], document_of: Callable[[Sample], Any]) -> None:
        """Make the reader of the pipelines of one name, by task."""
        self.name = str(next(iter(ensembles.values())).name)
        self.about = "lm_eval.about_reader"
        self._filters = {task: list(ensemble.filters) for task, ensemble in ensembles.items()}
        self._document_of = document_of
        self.reads_all_repeats = any(
            _combines_repeats(step) for filters in self._filters.values() for step in filters
        )
        """Whether a filter votes among the repeats of a question or takes some of them."""

    def filter(self, replies: Sequence[Sequence[Any]], document: Any, task: str) -> list[Any]:
        """Return what the filters make of the replies to each request of a document."""
        return self._apply(self._filters[task], replies, document)

    def filter_one(self, replies: Sequence[Any], document: Any, task: str) -> list[Any]:
        """Do the same with one reply to each request, without filters that compare repeats."""
        filters = [step for step in self._filters[task] if not _combines_repeats(step)]
        return self._apply(filters, [[reply] for reply in replies], document)

    def _apply(self, filters: list[Any], replies: Sequence[Any], document: Any) -> list[Any]:
        filtered: Any = [list(reply) for reply in replies]
        documents = [document] * len(filtered)
        for make_filter in filters:
            filtered = make_filter().apply(filtered, documents)
        return list(filtered)

    def read(self, text: str, sample: Sample) -> Answer:
        (answer,) = self.filter_one([text], self._document_of(sample), sample.subset)
        return describe_answer(answer)


def describe_answer(answer: Any) -> Answer:
    """Return what filters found as an answer: text as it is, other values as JSON."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if answer == NOTHING_FOUND or answer is None:
        return Answer(reason="no_marker")
    if isinstance(answer, str):
        return Answer(answer, "strict")
    return Answer(json.dumps(answer, ensure_ascii=False, default=str), "strict")


def _combines_repeats(make_filter: Any) -> bool:
    from lm_eval.filters.selection import MajorityVoteFilter, TakeKFilter

    kind = getattr(make_filter, "func", make_filter)
    return isinstance(kind, type) and issubclass(kind, MajorityVoteFilter | TakeKFilter)
