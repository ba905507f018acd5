"""Stored runs and their results for users of Python: mappings, rows, pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from keju.reporting import format as fmt
from keju.reporting.charts import forest
from keju.reporting.figure import Figure
from keju.reporting.format import Labels, interval
from keju.reporting.titles import title_of
from keju.results.samples import Samples
from keju.results.schema import ResultEntry, Results, to_document
from keju.results.score import current_results
from keju.runs import run as stored
from keju.runs.run import Run, find_run

# `71.10 %`, `38.70–40.50`, `1,234`, `+3.2`, `12 of 20`, or an empty cell
_NUMBER = re.compile(r"[-+−]?[\d.,]+(?:[–…\s]+[-+−]?[\d.,]+| of [\d,]+)?(?: ?%)?|–?")


class StoredRun(Run):
    """A stored run: its results, its answers, and its notebook view."""

    def results(self, data_dir: str | None = None) -> RunResults:
        """Return its results; score the run again if ``results.json`` is missing or outdated.

        The results are outdated while a run is going on or after it was killed.
        """
        return RunResults(current_results(self, data_dir), self.folder)

    def samples(self, data_dir: str | None = None) -> Samples:
        """Return its answers, one row for each answer."""
        return Samples(self, data_dir)

    def __repr__(self) -> str:
        exams = ", ".join(exam.name for exam in self.manifest.benchmarks)
        return f"<run {self.id}: {self.manifest.model} on {exams}>"

    def _repr_html_(self) -> str:
        return self.results()._repr_html_()


class RunResults(dict[str, Any]):
    """The results document of a run, as stored in ``results.json``, with its run and its figure."""

    def __init__(self, results: Results, folder: Path) -> None:
        super().__init__(to_document(results))
        self.results = results
        """The results as typed structs."""
        self.folder = folder

    @cached_property
    def run(self) -> StoredRun:
        """The stored run."""
        return StoredRun(self.folder)

    def samples(self, data_dir: str | None = None) -> Samples:
        """Return the answers, one row for each answer."""
        return self.run.samples(data_dir)

    def figure(self) -> Figure:
        """Return a figure of the subsets with their intervals."""
        return forest([self.results])

    @fmt.one_decimal()
    def __repr__(self) -> str:
        lines = [f"<results of {fmt.shorten(self._title(), 120)}>", *self._lines()]
        return "\n  ".join(lines)

    def _title(self) -> str:
        """Return the model and its exams."""
        exams = dict.fromkeys(title_of(entry.name) for entry in self.results.benchmarks)
        return f"{self.results.model} · {', '.join(exams)}"

    def _lines(self) -> Iterator[str]:
        labels = Labels()
        for entry in self.results.benchmarks:
            figure, ends = _headline(entry, self.results, labels)
            interval_note = f" ({ends})" if ends else ""
            name = fmt.shorten(title_of(entry.name, entry.arm), 80)
            score = f"{figure}{interval_note}, n {labels.graded_count(entry)}"
            yield f"{name}, {fmt.protocol_line(entry)}: {score}"
        if ended := fmt.describe_incomplete(self.results, labels):
            yield ended

    @fmt.one_decimal()
    def _repr_html_(self) -> str:
        """Return a table of the results, the warnings, and a figure of the subsets."""
        labels = Labels()
        title = fmt.printable(self._title(), one_line=True)
        titles = [labels(key) for key in ("exam", "protocol", "reader", "headline", "interval")]
        rows = [
            [
                title_of(entry.name, entry.arm),
                fmt.protocol_line(entry),
                entry.reader,
                *_headline(entry, self.results, labels),
                labels.graded_count(entry),
            ]
            for entry in self.results.benchmarks
        ]
        warnings = [text for entry in self.results.benchmarks for text in labels.warnings(entry)]
        if ended := fmt.describe_incomplete(self.results, labels):
            warnings.insert(0, ended)
        parts = [
            f"<p><strong>{escape(title)}</strong></p>",
            html_table([*titles, labels("n")], rows),
            *(f"<p>⚠ {escape(fmt.printable(text))}</p>" for text in dict.fromkeys(warnings)),
        ]
        if any(fmt.answered_rows(entry.subsets) for entry in self.results.benchmarks):
            parts.append(self.figure()._repr_html_())
        return "\n".join(parts)


def _headline(entry: ResultEntry, results: Results, labels: Labels) -> tuple[str, str]:
    """Return the number of an entry, or the words that replace it, and its interval."""
    headline = fmt.headline_of(entry, fmt.run_command_name(results), labels)
    ends = fmt.display_metrics(entry, labels)[0].metric.ci95 if headline.figure else None
    return headline.figure or headline.title, interval(ends) if ends else ""


def html_table(titles: list[str], rows: list[list[str]]) -> str:
    """Return an HTML table with all text escaped: text on the left, numbers on the right.

    Notebooks would put all cells on the right.
    """
    numeric = [
        all(_NUMBER.fullmatch(cell) for cell in column) for column in zip(*rows, strict=True)
    ]
    aligns = ["right" if is_numeric else "left" for is_numeric in numeric or [False] * len(titles)]

    def line(tag: str, cells: list[str]) -> str:
        """Return one row of the table."""
        return "".join(
            f'<{tag} style="text-align: {align}">{escape(fmt.printable(cell))}</{tag}>'
            for align, cell in zip(aligns, cells, strict=True)
        )

    head = line("th", titles)
    body = "\n".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def open_run(name: str | Path | Run, work_dir: str = "runs") -> StoredRun:
    """Return the stored run in the folder `name`, or with this id below `work_dir`."""
    return StoredRun(name.folder if isinstance(name, Run) else find_run(str(name), work_dir))


def list_runs(work_dir: str = "runs") -> list[StoredRun]:
    """Return the runs below `work_dir` whose manifests can be read, oldest first."""
    return [StoredRun(run.folder) for run in stored.list_runs(work_dir)]
