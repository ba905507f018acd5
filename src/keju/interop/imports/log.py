"""The common form of a tool's log: its files, its replies, and the tool's verdicts."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

import msgspec

from keju import bounds
from keju.answers.segments import as_reply
from keju.benchmarks import registry
from keju.benchmarks.base import ToolTask
from keju.config.strict import parse_yaml
from keju.errors import ConfigError, DataError, UsageError
from keju.files import LOG, SpooledSequence, iter_json_rows, parse_json
from keju.models.base import REDACTED, kind_of, one_line
from keju.models.openai.wire import finish_of
from keju.types import FILTERED, Fault, FaultKind, Reply, Usage

PREDICTIONS = "predictions"
"""The folder of a run in which EvalScope and OpenCompass store replies."""
MAX_FILES = 20_000
"""A folder with more files is not the log of one run."""


class LogSource:
    """A file, or a folder with everything in it.

    Names are relative to `root`. For a single file, `names` contains only this file. Its companions
    can still be read by name.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise UsageError("import_no_file", path=path)
        self.path = path
        self.is_single = path.is_file()
        # The folder above ``predictions`` if `path` is inside of one; else the folder itself.
        run_folders = (
            p.parent for p in (path, *path.parents) if p.name == PREDICTIONS and p.is_dir()
        )
        self.root = next(run_folders, path.parent if self.is_single else path)
        self.hashes: dict[str, str] = {}
        """Relative path and SHA-256 of each file that was read so far."""
        files = [path] if self.is_single else [p for p in sorted(path.rglob("*")) if p.is_file()]
        if len(files) > MAX_FILES:
            raise UsageError("import_many_files", path=path, most=MAX_FILES)
        self.names = [file.relative_to(self.root).as_posix() for file in files]

    def matching_names(self, pattern: str) -> list[str]:
        """Return the names whose end matches `pattern`."""
        return [name for name in self.names if PurePosixPath(name).match(pattern)]

    def has(self, name: str) -> bool:
        """Whether the file `name` exists, in the folder or next to the single file."""
        return (self.root / name).is_file()

    def siblings(self, name: str, pattern: str) -> list[str]:
        """Return the names of files in the folder of `name` that match `pattern`."""
        folder = (self.root / name).parent
        names = sorted(path.name for path in folder.glob(pattern) if path.is_file())
        return [str(PurePosixPath(name).parent / sibling) for sibling in names]

    def content(self, name: str) -> bytes:
        """Return the content of one file."""
        with self.open(name) as file:
            return bounds.read_whole(file, name)

    @contextmanager
    def open(self, name: str) -> Iterator[io.BufferedReader]:
        """Open one file, and store its hash."""
        try:
            with cast(io.BufferedReader, bounds.open_file(self.root / name)) as file:
                self.hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                yield file
        except OSError as error:
            problem = error.strerror
            raise DataError("file_unreadable", where=self.root / name, problem=problem) from None

    def refuse_several_models(self, models: set[str]) -> None:
        """Raise UsageError if the log has several models: a run has only one."""
        if len(models) > 1:
            raise UsageError("import_several_models", path=self.path, models=sorted(models))

    def json(self, name: str) -> Any:
        """Return one JSON document. Python's ``NaN`` and ``Infinity`` are accepted."""
        try:
            return parse_json(self.content(name), LOG)
        except DataError as error:
            raise DataError("file_not_json", where=self.root / name, problem=error) from None

    def mapping(self, name: str) -> dict[str, Any]:
        """Return one JSON object."""
        document = self.json(name)
        if not isinstance(document, dict):
            raise DataError("file_no_object", where=self.root / name)
        return document

    def yaml(self, name: str) -> dict[str, Any]:
        """Return one YAML mapping; an empty one if the file has none."""
        try:
            document = parse_yaml(self.content(name).decode(), name)
        except (ConfigError, UnicodeDecodeError):
            return {}
        return document if isinstance(document, dict) else {}

    def jsonl(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the objects of a JSON Lines file, each with its place."""
        with self.open(name) as lines:
            for number, row in iter_json_rows(lines, str(self.root / name), LOG):
                yield f"{name}, line {number}", row

    def start(self, name: str, size: int) -> bytes:
        """Return the beginning of a file; nothing if it cannot be read."""
        try:
            with bounds.open_file(self.root / name) as file:
                return file.read(size)
        except OSError:
            return b""

    def first_object(self, name: str) -> dict[str, Any]:
        """Return the first object of a JSON Lines file; an empty one if there is none."""
        with suppress(OSError, DataError), bounds.open_file(self.root / name) as lines:
            for _, row in iter_json_rows(lines, name, LOG):
                return row
        return {}


REFUSED_CALLS: dict[str, FaultKind] = {"model_length": "context_length", FILTERED: FILTERED}
"""Stop reasons with which EvalScope and Inspect store an endpoint's refusal as a reply. Its text is
the endpoint's message, and it has no tokens."""

LARGEST = (1 << 63) - 1
"""Larger numbers in a log cannot be stored."""
EXCERPT_LENGTH = 100
"""The number of characters of a malformed reply in its error."""
_SECRET = re.compile(r"\bsk-[\w.*-]{4,}|(?<=Bearer )\S+|(?<=api key provided: )\S+", re.IGNORECASE)
"""Keys as endpoints quote them: ``sk-abc…``, ``Bearer abc…``, ``… API key provided: abc…``."""


def text_of(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") in (None, "text"):
            part = str(part.get("text") or "")
        texts.append(part if isinstance(part, str) else "")
    return "\n".join(text for text in texts if text)


def reasoning_of(content: Any) -> str:
    """Return the reasoning in the parts of a message's content."""
    if not isinstance(content, list):
        return ""
    parts = [p for p in content if isinstance(p, Mapping) and p.get("type") == "reasoning"]
    return "\n".join(str(part.get("reasoning") or "") for part in parts)


def prompt_of(messages: Any) -> str:
    """Return the whole prompt as one text: the messages before the model's last one."""
    if isinstance(messages, str):
        return messages
    earlier_messages = (
        [m for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []
    )
    while earlier_messages and earlier_messages[-1].get("role") in ("assistant", "BOT"):
        earlier_messages.pop()
    return "\n\n".join(text_of(m.get("content", m.get("prompt"))) for m in earlier_messages)


def make_reply(
    content: Any,
    *,
    reasoning: Any = None,
    finish: Any = "",
    usage: Any = None,
    seconds: Any = 0.0,
    model: Any = "",
) -> Reply:
    """Return the reply in a stored message, with its reasoning separated."""
    word, text = str(finish or ""), text_of(content)
    counts = usage if isinstance(usage, Mapping) else {}

    def count(*names: str) -> int:
        """Return the tokens under the first of `names` that exists."""
        numbers = (counts.get(name) for name in names)
        return min(LARGEST, int(next((n for n in numbers if isinstance(n, int | float)), 0)))

    if word in REFUSED_CALLS and text and not count("output_tokens", "completion_tokens"):
        return Reply(error=Fault(REFUSED_CALLS[word], one_line(_SECRET.sub(REDACTED, text))))
    return as_reply(
        text,
        reasoning=(text_of(reasoning), reasoning_of(content)),
        finish=finish_of(word),
        usage=Usage(
            count("input_tokens", "prompt_tokens"),
            count("output_tokens", "completion_tokens"),
            count("input_tokens_cache_read"),
            count("reasoning_tokens"),
        ),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        model=str(model or ""),
    )


def failed_reply(message: Any) -> Reply:
    """Return the reply of a row on which the tool failed."""
    line = one_line(_SECRET.sub(REDACTED, str(message))) or "the tool says nothing more"
    kind = kind_of(0, line, "")
    return Reply(error=Fault("server" if kind == "bad_request" else kind, line))


def malformed_reply(stored: Any) -> Reply:
    """Return the reply of a row without a valid reply."""
    excerpt = one_line(_SECRET.sub(REDACTED, repr(stored)))[:EXCERPT_LENGTH]
    return Reply(error=Fault("malformed", f"the log holds no reply here: {excerpt}"))


@contextmanager
def row_errors(place: Path) -> Iterator[None]:
    """Turn errors about a row with an unexpected structure into a DataError with its place."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        kind = type(error).__name__
        values = {"place": place, "kind": kind, "problem": str(error)}
        raise DataError("import_strange_row", **values) from None


def nested(document: Mapping[str, Any], *keys: str) -> Any:
    """Return the object under a path of keys; an empty one if a part of the path is missing."""
    for key in keys:
        document = document.get(key) or {}
    return document


def to_number(value: Any) -> float | None:
    """Return a score as a number; None if there is none."""
    if isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, int | float) and value == value else None


class RunningMean:
    """A running mean; None without values."""

    def __init__(self) -> None:
        self._total, self._n = 0.0, 0

    def add(self, value: float) -> None:
        """Add one number."""
        self._total += value
        self._n += 1

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._total / self._n if self._n else None


def text_or_none(answer: Any) -> str | None:
    """Return the tool's answer as text; None if it cannot be compared."""
    return str(answer) if isinstance(answer, str | int | float) else None


def question_keys(facts: Mapping[str, Any], subset: str) -> dict[str, Any]:
    """Return the id of a question from the exam's own facts about it, as far as it has one."""
    if "question_id" in facts:
        return {"question_id": facts["question_id"]}
    return {"subject": subset, "id": facts["id"]} if isinstance(facts.get("id"), int) else {}


class LogTask(NamedTuple):
    """A task of a tool: its exam, its subset, and the exam's facts about it."""

    benchmark: str = ""
    subset: str = ""
    facts: ToolTask | None = None
    """None if Keju does not have the exam."""


def find_task(tool: str, name: str) -> LogTask:
    """Return the exam that a tool calls `name`."""
    for benchmark in map(registry.get, registry.names()):
        for task in benchmark.tool_tasks:
            if task.tool == tool and (match := re.fullmatch(task.name, name)):
                subset = match[1] if match.re.groups else None
                return LogTask(benchmark.name, subset or "", task)
    return LogTask()


class LogRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One reply of a log, with all data that can identify its question."""

    where: str
    """File and place in it, for messages."""
    reply: Reply
    keys: dict[str, Any] = {}
    """The question's own ids, as in a row of a predictions file."""
    subset: str = ""
    """In the tool's spelling; empty if unknown."""
    index: int | None = None
    """Position inside the subset, from 0."""
    question: str = ""
    """The question without the rest of the prompt, if the log has it."""
    prompt: str = ""
    """The whole text that was sent."""
    choices: tuple[str, ...] = ()
    """The options in the order in which they were shown, if the log has them."""
    target: str = ""
    """The gold answer in the log."""
    answer: str | None = None
    """The answer that the tool read."""
    verdict: float | None = None
    """The tool's score of this row."""
    epoch: int = 0
    note: str = ""
    """Why the row belongs to no exam, as a code, if the log's reader knows it."""


class LogRows(SpooledSequence[LogRow]):
    """The rows of a part in order, stored on disk instead of in memory."""

    def __init__(self, rows: Iterable[LogRow] = ()) -> None:
        super().__init__(LogRow)
        self.subsets: set[str] = set()
        """The tool's names of the rows' subsets."""
        for row in rows:
            self.append(row)

    def append(self, row: LogRow) -> None:
        """Add one row."""
        if row.epoch < 0:
            raise ValueError(f"{row.where}: epoch {row.epoch}")
        self.subsets.add(row.subset)
        try:
            super().append(row)
        except OverflowError:  # no question has such numbers
            keys = {name: str(value) for name, value in row.keys.items()}
            epoch = min(row.epoch, LARGEST)
            super().append(msgspec.structs.replace(row, keys=keys, index=None, epoch=epoch))

    def extend(self, other_rows: SpooledSequence[LogRow]) -> None:
        """Add the rows of another part."""
        super().extend(other_rows)
        self.subsets |= other_rows.subsets if isinstance(other_rows, LogRows) else set()


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """One exam of a log: its rows, the tool's figure, and Keju's way to read it."""

    task: str
    """The tool's name of the task."""
    rows: LogRows
    benchmark: str = ""
    """Keju's name of the exam; empty if Keju does not have it."""
    protocol: str = ""
    """The protocol with the tool's reading; the exam's own by default."""
    reader: str = ""
    """The equivalent reader, if it is not the protocol's own."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the exam, e.g. the number of worked examples."""
    reported: Mapping[str, float] = field(default_factory=dict)
    """The tool's own figures by name, the headline first, in [0, 1]."""
    n: int | None = None
    """The number of rows of these figures, according to the tool."""
    written_count: int | None = None
    """The number of rows that the tool wrote, according to the tool; None if it is `n`."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """The tool's sampling settings, as far as its log has them."""

    def read_as(self, task: LogTask, settings: Mapping[str, Any] | None = None) -> LogPart:
        """Return this part as the exam of `task`. `settings` are those that the log names."""
        if task.facts is None:
            return self
        settings, facts = settings or {}, task.facts
        args = dict(facts.args)
        if facts.shots and isinstance(settings.get("few_shot_num"), int):
            args["few_shot_num"] = min(settings["few_shot_num"], facts.shots)
        args |= {key: settings[key] for key in facts.settings if settings.get(key) is not None}
        return replace(
            self,
            benchmark=task.benchmark,
            protocol=self.protocol or facts.protocol,
            reader=self.reader or facts.reader,
            args=args,
        )


@dataclass(frozen=True, kw_only=True)
class ModelLog:
    """The log of one model."""

    tool: str
    version: str
    model: str
    parts: Sequence[LogPart]
    files: Mapping[str, str]
    """Relative path and SHA-256 of each file that was read."""
