"""The contract of every reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from keju.types import Answer, Sample


class Reader(ABC):
    """Reads an answer out of a reply's text and compares it with the target.

    Reading is separable from prompting: any reader of a benchmark can be applied to any stored
    run. A reader never guesses and never runs in more than linear time. `keju.reader` and
    `keju.grader` make one out of a function.
    """

    name: str
    version: int = 1
    marked: bool = True
    """Whether its strict tier means that the protocol's own marker stood before the answer; not
    where the whole reply, or its last line, is the answer."""
    scores_cut: bool = True
    """Whether what it reads in a reply that was cut off keeps its score: published readers know
    nothing of cuts."""

    @abstractmethod
    def read(self, text: str, sample: Sample) -> Answer:
        """Return what `text` (think blocks already removed) answers."""

    def facing(self, shown: Callable[[str], str]) -> Reader:
        """This reader, told what the prompts of a subset show before their question.

        Only a reader that has to know it returns another one.
        """
        return self

    def matches(self, value: str, sample: Sample) -> bool:
        """Say whether an answer that was read is the target's; by default the very same text."""
        return value == sample.target

    def worth(self, value: str, sample: Sample) -> float | Mapping[str, float] | None:
        """What an answer is worth, in [0, 1]: one number, or several by name, the score first.

        None says that it cannot be graded.
        """
        return float(self.matches(value, sample))
