"""``keju stats``: the number of questions of an exam, and the length of its prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, load_exam, print_sentences
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam


class LengthStats:
    """Running statistics of text lengths, in code points."""

    def __init__(self) -> None:
        self.n = self.total = self.minimum = self.maximum = 0

    def add(self, length: int) -> None:
        """Count one text."""
        self.minimum = min(self.minimum, length) if self.n else length
        self.maximum = max(self.maximum, length)
        self.n += 1
        self.total += length

    def to_document(self) -> dict[str, int | float]:
        """Return the statistics for JSON, with the mean rounded to two digits."""
        mean = round(self.total / self.n, 2) if self.n else 0.0
        return {"n": self.n, "mean": mean, "min": self.minimum, "max": self.maximum}


@command(
    "stats",
    "keju stats bbh",
    "keju stats ceval --protocol official --json",
    'keju stats demo --dataset-args \'{"demo": {"few_shot_num": 0}}\'',
    sets="protocol dataset_args data_dir seed",
)
def stats(name: str, **settings: Any) -> CommandOutput:
    """Count the questions of a benchmark and measure its prompts.

    The length of a prompt is the number of characters in its last user message.
    """
    from keju.reporting.table import render_table

    document = measure(load_exam(name, **settings))

    def show() -> None:
        values = {"exam": document["name"], "protocol": document["protocol"]}
        print_sentences(label_text("stats.title", **values), "")
        rows = [(label_text("stats.all"), document["total"]), *document["subsets"].items()]
        cells = [(name, d["n"], float(d["mean"]), d["min"], d["max"]) for name, d in rows]
        titles = ("column.subset", "column.n", "stats.mean", "stats.min", "stats.max")
        render_table([label_text(title) for title in titles], cells)

    return CommandOutput(document, show)


def measure(exam: Exam) -> dict[str, Any]:
    """Return the statistics of all prompts, rendered one at a time."""
    total = LengthStats()
    subsets: dict[str, LengthStats] = {subset.name: LengthStats() for subset in exam.subsets}
    for sample in exam.samples:
        length = len(exam.render(sample).text)
        total.add(length)
        subsets[sample.subset].add(length)
    return {
        "name": exam.benchmark,
        "protocol": exam.protocol.name,
        "total": total.to_document(),
        "subsets": {name: lengths.to_document() for name, lengths in subsets.items()},
    }
