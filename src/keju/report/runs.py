"""Stored runs and their results as users of Python hold them: mappings, rows, pictures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from keju.report import format as fmt
from keju.report.charts import forest
from keju.report.figure import Figure
from keju.report.format import Labels, interval
from keju.results.samples import Samples
from keju.results.schema import Entry, Results, to_document
from keju.results.score import current_results
from keju.runs import run as stored
from keju.runs.run import Run, find_run


class StoredRun(Run):
    """A stored run: its results, its answers, and how it looks in a notebook."""

    def results(self, data_dir: str | None = None) -> RunResults:
        """Its results; scored anew where ``results.json`` is missing or older than the journal.

        So it is where a run is still going on, or was killed.
        """
        return RunResults(current_results(self, data_dir), self.folder)

    def samples(self, data_dir: str | None = None) -> Samples:
        """Its answers, a row each."""
        return Samples(self, data_dir)

    def __repr__(self) -> str:
        exams = ", ".join(exam.name for exam in self.manifest.benchmarks)
        return f"<run {self.id}: {self.manifest.model} on {exams}>"

    def _repr_html_(self) -> str:
        return self.results()._repr_html_()


class RunResults(dict[str, Any]):
    """The results document of a run, as ``results.json`` holds it, and what belongs to it."""

    def __init__(self, results: Results, folder: Path) -> None:
        super().__init__(to_document(results))
        self.results = results
        """The same, typed."""
        self.folder = folder

    @cached_property
    def run(self) -> StoredRun:
        """The stored run."""
        return StoredRun(self.folder)

    def samples(self, data_dir: str | None = None) -> Samples:
        """The answers, a row each."""
        return self.run.samples(data_dir)

    def figure(self) -> Figure:
        """The subsets with their intervals."""
        return forest([self.results])

    def __repr__(self) -> str:
        lines = [f"<results of run {fmt.shorten(self.results.run, 80)}>", *self._lines()]
        return "\n  ".join(lines)

    def _lines(self) -> Iterator[str]:
        labels = Labels()
        for entry in self.results.benchmarks:
            figure, ends = _headline(entry, self.results, labels)
            beside = f" ({ends})" if ends else ""
            name = fmt.shorten(entry.full_name, 80)
            yield f"{name}, {fmt.protocol_line(entry)}: {figure}{beside}, n {labels.graded(entry)}"
        if ended := fmt.ended_words(self.results, labels):
            yield ended

    def _repr_html_(self) -> str:
        """A table of the results, what is to be warned of, and the subsets as a picture."""
        labels = Labels()
        model = fmt.printable(self.results.model, one_line=True)
        run = fmt.printable(self.results.run, one_line=True)
        titles = [labels(key) for key in ("exam", "protocol", "reader", "headline", "interval")]
        rows = [
            [
                entry.full_name,
                fmt.protocol_line(entry),
                entry.reader,
                *_headline(entry, self.results, labels),
                labels.graded(entry),
            ]
            for entry in self.results.benchmarks
        ]
        said = [text for entry in self.results.benchmarks for text in labels.warnings(entry)]
        if ended := fmt.ended_words(self.results, labels):
            said.insert(0, ended)
        parts = [
            f"<p><strong>{escape(model)}</strong> · {escape(run)}</p>",
            html_table([*titles, labels("n")], rows),
            *(f"<p>⚠ {escape(fmt.printable(text))}</p>" for text in dict.fromkeys(said)),
        ]
        if any(fmt.answered(entry.subsets) for entry in self.results.benchmarks):
            parts.append(self.figure()._repr_html_())
        return "\n".join(parts)


def _headline(entry: Entry, results: Results, labels: Labels) -> tuple[str, str]:
    """The number of an entry, or words in its place, and its interval."""
    headline = fmt.headline_of(entry, fmt.named_run(results), labels)
    ends = fmt.shown_metrics(entry, labels)[0].metric.ci95 if headline.figure else None
    return headline.figure or headline.title, interval(ends) if ends else ""


def html_table(titles: list[str], rows: list[list[str]]) -> str:
    """A plain table, everything escaped."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(fmt.printable(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def open_run(name: str | Path | Run, work_dir: str = "runs") -> StoredRun:
    """The stored run in the folder `name`, or with this id below `work_dir`."""
    return StoredRun(name.folder if isinstance(name, Run) else find_run(str(name), work_dir))


def list_runs(work_dir: str = "runs") -> list[StoredRun]:
    """The runs below `work_dir` whose manifests can be read, oldest first."""
    return [StoredRun(run.folder) for run in stored.list_runs(work_dir)]
