"""The answers of a run as rows, for ``keju export`` and ``run.samples()``.

A row is one question in one epoch and arm. `keju.runs.run` defines which record of it counts. Rows
are built one by one, so memory holds positions in the journal but no replies.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec

from keju.benchmarks.choices import restore_order
from keju.errors import MissingExtra, UsageError
from keju.files import natural_key
from keju.runs.run import Run, enter_grades
from keju.scores.question_limits import find_stop
from keju.scores.stored_replies import ExamRequests, iter_answers, load_requests
from keju.types import UNSCORED, Answer, Outcome, Reading, Record, Reply, Sample, Score

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

Cell = str | int | float | list[str] | list[int] | None
Row = dict[str, Cell]

COLUMNS: dict[str, str] = {
    "run": "VARCHAR",
    "benchmark": "VARCHAR",
    "subset": "VARCHAR",
    "id": "VARCHAR",
    "index": "BIGINT",
    "group": "VARCHAR",
    "epoch": "BIGINT",
    "arm": "VARCHAR",
    "reader": "VARCHAR",
    "answer": "VARCHAR",
    "tier": "VARCHAR",
    "reason": "VARCHAR",
    "signs": "VARCHAR",
    "outcome": "VARCHAR",
    "score": "DOUBLE",
    "grader": "VARCHAR",
    "target": "VARCHAR",
    "order": "BIGINT[]",
    "finish": "VARCHAR",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "cached_tokens": "BIGINT",
    "reasoning_tokens": "BIGINT",
    "seconds": "DOUBLE",
    "attempts": "BIGINT",
    "error": "VARCHAR",
    "error_message": "VARCHAR",
    "at": "DOUBLE",
}
"""The type of each column in SQL."""

TEXTS: dict[str, str] = {
    "question": "VARCHAR",
    "choices": "VARCHAR[]",
    "reply": "VARCHAR",
    "reasoning": "VARCHAR",
}
"""The columns with texts of the data set and of the model."""

ACTING: dict[str, str] = {"stop_reason": "VARCHAR", "tool_calls": "BIGINT"}
"""The columns of runs in which a model may use tools; ``transcript`` is a further column with
text."""

READING_ORDER = ("question", "reply", "answer", "target", "score", "outcome")
"""The first columns of a frame, for people who look at it; an export has the order of `COLUMNS`."""

LONGEST_ROW = 1 << 26
"""The largest size of one row as JSON, in bytes; replies may be long."""

_UNREAD = Reading("", Answer(), Score(0.0, "ungraded"))


class SampleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One answer with its reading by the headline's reader; a value is None if it is not known."""

    run: str
    benchmark: str
    subset: str | None
    """None if the exam's data is not available, as for `index`, `group` and `question`."""
    id: str
    index: int | None
    group: str | None
    epoch: int
    arm: str | None
    reader: str
    answer: str | None
    tier: str | None
    reason: str | None
    """Why no answer was read."""
    signs: str | None
    outcome: Outcome
    score: float | None
    grader: str | None
    target: str | None
    order: list[int] | None
    finish: str | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    seconds: float
    attempts: int
    error: str | None
    error_message: str | None
    at: float
    stop_reason: str | None = None
    tool_calls: int | None = None
    transcript: str | None = None
    question: str | None = None
    choices: list[str] | None = None
    reply: str
    reasoning: str | None = None
    readings: tuple[Reading, ...] = ()
    """The readings of all readers, the headline's first."""

    @property
    def correct(self) -> bool:
        """Whether the headline's reader found it correct."""
        return self.outcome == "correct"

    def cells(self, columns: Iterable[str], beside: Iterable[str]) -> Row:
        """Return the cells of these columns; `beside` names the readers after the headline's."""
        reader_cells: Row = {}
        by_name = {reading.reader: reading for reading in self.readings[1:]}
        for name in beside:
            reading = by_name.get(name)
            reader_cells[f"answer_{name}"] = reading.answer.value if reading else None
            reader_cells[f"outcome_{name}"] = reading.score.outcome if reading else None
        return {
            name: reader_cells[name] if name in reader_cells else getattr(self, name)
            for name in columns
        }


class SamplesTable(NamedTuple):
    """The rows of a run, ready to be written."""

    columns: dict[str, str]
    rows: Iterator[Row]


class Samples:
    """The answers of a run, one row each; every iteration reads them from the journal.

    Rows are in the order of the exams. If the exams' data is not available, or has changed since
    the run, `problem` says so; then rows are sorted by id and lack the fields that only the exam
    knows.
    """

    def __init__(
        self,
        run: Run,
        data_dir: str | None = None,
        *,
        load: bool = True,
        keep: Callable[[SampleRow], bool] | None = None,
    ) -> None:
        """With ``load=False``, do not look for the data; `keep` filters the rows."""
        self._run = run
        self._data_dir = data_dir
        self._load = load
        self._keep = keep

    @cached_property
    def _loaded(self) -> tuple[ExamRequests | None, UsageError | None]:
        if not self._load:
            return None, None
        try:
            return load_requests(self._run, self._data_dir), None
        except UsageError as error:
            return None, error

    @property
    def requests(self) -> ExamRequests | None:
        """The requests of the run's exams; None if their data is not available."""
        return self._loaded[0]

    @property
    def problem(self) -> UsageError | None:
        """Why the data of the exams is not available, or is not the data of the run."""
        return self._loaded[1]

    def __iter__(self) -> Iterator[SampleRow]:
        answers = exported_answers(self._run, self.requests)
        rows = (_build_row(self._run.id, sample, record) for sample, record in answers)
        return rows if self._keep is None else filter(self._keep, rows)

    def __repr__(self) -> str:
        return f"<samples of run {self._run.id}>"

    def _repr_html_(self) -> str:
        """Return the first rows as a table, by a module of a higher package."""
        return str(import_module("keju.reporting.notebook").html_of(self))

    def only(
        self,
        keep: Callable[[SampleRow], bool] | None = None,
        *,
        subset: str | None = None,
        outcome: Outcome | None = None,
        arm: str | None = None,
    ) -> Samples:
        """Return the answers that `keep` accepts, of this subset, outcome and arm."""
        filters = {"subset": subset, "outcome": outcome, "arm": arm}
        active_filters = {name: value for name, value in filters.items() if value is not None}
        earlier_filter = self._keep

        def is_selected(row: SampleRow) -> bool:
            return (
                (earlier_filter is None or earlier_filter(row))
                and all(getattr(row, name) == value for name, value in active_filters.items())
                and (keep is None or bool(keep(row)))
            )

        selected = Samples(self._run, self._data_dir, load=self._load, keep=is_selected)
        if "_loaded" in self.__dict__:
            selected.__dict__["_loaded"] = self._loaded
        return selected

    @property
    def failures(self) -> Samples:
        """The answers that are not correct."""
        return self.only(lambda row: not row.correct)

    def table(self, *, full_text: bool = False, is_frame: bool = False) -> SamplesTable:
        """Return the answers as a table; `full_text` adds the texts of questions and replies.

        The columns of a frame begin with those that people look at.
        """
        exams, rows = self._run.manifest.benchmarks, iter(self)
        other_readers = [*dict.fromkeys(chain.from_iterable([*e.readers][1:] for e in exams))]
        first_row = next(rows, None)
        has_stop = first_row is not None and first_row.stop_reason
        uses_tools = bool(self._run.manifest.config.get("arms") or has_stop)
        if first_row is None and self._keep is None:
            raise UsageError("export_nothing", run=self._run.id)
        columns = _choose_columns(other_readers, uses_tools=uses_tools, full_text=full_text)
        if is_frame:
            first_columns = [name for name in READING_ORDER if name in columns]
            columns = {name: columns[name] for name in (*first_columns, *columns)}
        all_rows = rows if first_row is None else chain([first_row], rows)
        return SamplesTable(columns, (row.cells(columns, other_readers) for row in all_rows))

    # Tables of other libraries.

    def to_pandas(self, *, full_text: bool = True) -> pandas.DataFrame:
        """Return a pandas frame; its columns of whole numbers and texts may have missing values."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("a frame of pandas", "frames") from None
        kinds = {"VARCHAR": "string", "BIGINT": "Int64", "DOUBLE": "Float64"}
        columns, values = self._values_by_column(full_text)
        series = {
            name: pandas.Series(values[name], dtype=kinds.get(kind, "object"))
            for name, kind in columns.items()
        }
        return pandas.DataFrame(series, columns=list(columns))

    def to_polars(self, *, full_text: bool = True) -> polars.DataFrame:
        """Return a polars frame."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("a frame of polars", "frames") from None
        kinds: dict[str, Any] = {
            "VARCHAR": polars.String,
            "BIGINT": polars.Int64,
            "DOUBLE": polars.Float64,
            "BIGINT[]": polars.List(polars.Int64),
            "VARCHAR[]": polars.List(polars.String),
        }
        columns, values = self._values_by_column(full_text)
        return polars.DataFrame(values, {name: kinds[kind] for name, kind in columns.items()})

    def _values_by_column(self, full_text: bool) -> tuple[dict[str, str], dict[str, list[Cell]]]:
        columns, rows = self.table(full_text=full_text, is_frame=True)
        values: dict[str, list[Cell]] = {name: [] for name in columns}
        for row in rows:
            for name, cell in row.items():
                values[name].append(cell)
        return columns, values

    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        name: str = "samples",
        *,
        full_text: bool = True,
    ) -> duckdb.DuckDBPyRelation:
        """Return a table `name` of `connection` or of a new database in memory.

        An existing table of this name is replaced.
        """
        connection = connection or import_duckdb("a table of DuckDB").connect(
            ":memory:", config=SETTINGS
        )
        quoted = '"' + name.replace('"', '""') + '"'
        with TemporaryDirectory(prefix="keju-") as scratch:
            table = self.table(full_text=full_text, is_frame=True)
            query, _ = lines_query(table, Path(scratch))
            connection.execute(f"CREATE OR REPLACE TABLE {quoted} AS {query}")
        return connection.table(quoted)


SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "threads": 1,
}
"""Settings of DuckDB, which opens no socket with them."""


def import_duckdb(what: str) -> Any:
    """Return the module; raise MissingExtra with the purpose `what` if it is not installed."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra(what, "data") from None
    return duckdb


def lines_query(table: SamplesTable, folder: Path) -> tuple[str, int]:
    """Write a table into `folder` as JSON Lines; return DuckDB's query for it, and its rows."""
    lines = folder / "rows.jsonl"
    types = ", ".join(f"{_quote_sql(name)}: '{kind}'" for name, kind in table.columns.items())
    with lines.open("wb") as stream:
        count = write_jsonl(table, stream)
    query = (
        f"SELECT * FROM read_json({_quote_sql(str(lines))}, format='newline_delimited', "
        f"maximum_object_size={LONGEST_ROW}, columns={{{types}}})"
    )
    return query, count


def _quote_sql(text: str) -> str:
    """Return a text quoted for SQL."""
    return "'" + text.replace("'", "''") + "'"


def write_jsonl(table: SamplesTable, stream: BinaryIO) -> int:
    """Write one JSON object per line; return the number of rows."""
    encoder = msgspec.json.Encoder()
    count = 0
    for count, row in enumerate(table.rows, 1):  # noqa: B007 (the last number is the answer)
        stream.write(encoder.encode(row) + b"\n")
    return count


def exported_answers(
    run: Run, requests: ExamRequests | None
) -> Iterator[tuple[Sample | None, Record]]:
    """Yield the records that count, each with its question as it was shown, if that is known."""
    if requests is None:
        yield from ((None, record) for record in _sort_by_id(run))
        return
    for sample, record in iter_answers(run, requests):
        yield sample and restore_order(sample, record.order), record


def _sort_by_id(run: Run) -> Iterator[Record]:
    """Yield the records that count, sorted by exam, id in natural order, arm and epoch.

    Each sort key is a byte string that ends in the record's number, because a million tuples would
    not fit into memory. A number in an id follows the count of its digits, so that ``q2`` (one
    digit) comes before ``q10`` (two digits).
    """
    exams = {exam.name: number for number, exam in enumerate(run.manifest.benchmarks)}
    starts, keys = array("q"), list[bytes]()
    for number, start, record in run.counting():
        starts[number : number + 1] = array("q", [start])
        if number < len(keys):
            continue
        key = exams.get(record.bench, len(exams)).to_bytes(4)
        for is_number, digits, text in natural_key(record.id):
            if is_number:
                key += b"\2%b%d" % (len(str(digits)).to_bytes(2), digits)
            else:
                key += b"\1%b\0" % text.encode()
        arm = record.arm.encode()
        keys.append(b"%b\0%b\0%b%b" % (key, arm, record.epoch.to_bytes(4), number.to_bytes(4)))
    keys.sort()
    in_order = (starts[int.from_bytes(key[-4:])] for key in keys)
    yield from enter_grades(run.folder, run.records.at(in_order))


def _choose_columns(
    other_readers: Sequence[str], *, uses_tools: bool, full_text: bool
) -> dict[str, str]:
    """Return the columns of a table with their types."""
    columns = dict(COLUMNS)
    for reader in other_readers:
        columns |= {f"answer_{reader}": "VARCHAR", f"outcome_{reader}": "VARCHAR"}
    columns |= ACTING if uses_tools else {}
    if full_text:
        columns |= TEXTS | ({"transcript": "VARCHAR"} if uses_tools else {})
    return columns


def _build_row(run: str, sample: Sample | None, record: Record) -> SampleRow:
    readings: Sequence[Reading] = record.readings or (_UNREAD,)
    signs = dict.fromkeys(sign for reading in record.readings for sign in reading.answer.signs)
    return SampleRow(
        run=run,
        benchmark=record.bench,
        id=record.id,
        epoch=record.epoch,
        arm=record.arm or None,
        signs=",".join(signs) or None,
        target=record.target or None,
        order=list(record.order) or None,
        attempts=1 + len(record.faults),
        at=record.at,
        readings=tuple(readings),
        **_reading_columns(readings[0]),
        **_question_columns(sample),
        **_reply_columns(record.reply),
    )


def _reading_columns(reading: Reading) -> dict[str, Any]:
    """Return the columns of a reading: the answer and its score."""
    answer, score = reading.answer, reading.score
    return {
        "reader": reading.reader,
        "answer": answer.value,
        "tier": answer.tier or None,
        "reason": answer.reason or None,
        "outcome": score.outcome,
        "score": None if score.outcome in UNSCORED else score.value,
        "grader": score.grader or None,
    }


def _question_columns(sample: Sample | None) -> dict[str, Any]:
    """Return the columns of a question; all are empty if the exam is not loaded."""
    if sample is None:
        return dict.fromkeys(("subset", "index", "group", "question", "choices"))
    return {
        "subset": sample.subset,
        "index": sample.index,
        "group": sample.group or None,
        "question": sample.text,
        "choices": list(sample.choices) or None,
    }


def _reply_columns(reply: Reply) -> dict[str, Any]:
    """Return the columns of a reply, with its error or its episode."""
    error, episode = reply.error, reply.episode
    return {
        "finish": reply.finish or None,
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.output,
        "cached_tokens": reply.usage.cached,
        "reasoning_tokens": reply.usage.reasoning,
        "seconds": reply.seconds,
        "error": error.kind if error else None,
        "error_message": error.message if error else None,
        "stop_reason": find_stop(reply),
        "tool_calls": sum(len(turn.calls) for turn in episode.turns) if episode else None,
        "transcript": msgspec.json.encode(episode.turns).decode() if episode else None,
        "reply": reply.text,
        "reasoning": reply.reasoning or None,
    }
