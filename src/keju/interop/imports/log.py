"""What the log of any tool comes down to: its files, the replies in it, and what the tool made of
them."""

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
from keju.config.strict import scalar
from keju.errors import ConfigError, DataError, UsageError
from keju.files import LOG, Spool, iter_json_rows, parse_json
from keju.models.base import REDACTED, kind_of, one_line
from keju.models.openai.wire import finish_of
from keju.types import FILTERED, Fault, FaultKind, Reply, Usage

PREDICTIONS = "predictions"
"""The folder of a run in which EvalScope and OpenCompass keep replies."""
MOST_FILES = 20_000
"""A folder with more files is no log of one run."""


class Source:
    """A file, or a folder with everything below it.

    Names are relative to `root`. Where a single file was given, `names` holds it alone, and its
    companions can still be read by name.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise UsageError("import_no_file", path=path)
        self.path = path
        self.single = path.is_file()
        # The folder above ``predictions`` where `path` lies in one; else the folder given.
        inside = (p.parent for p in (path, *path.parents) if p.name == PREDICTIONS and p.is_dir())
        self.root = next(inside, path.parent if self.single else path)
        self.hashes: dict[str, str] = {}
        """Relative path to SHA-256 of each file read so far."""
        files = [path] if self.single else [p for p in sorted(path.rglob("*")) if p.is_file()]
        if len(files) > MOST_FILES:
            raise UsageError("import_many_files", path=path, most=MOST_FILES)
        self.names = [file.relative_to(self.root).as_posix() for file in files]

    def named(self, pattern: str) -> list[str]:
        """The names that match `pattern`, which is compared from their end."""
        return [name for name in self.names if PurePosixPath(name).match(pattern)]

    def has(self, name: str) -> bool:
        """Whether there is a file `name`, given or beside the one given."""
        return (self.root / name).is_file()

    def siblings(self, name: str, pattern: str) -> list[str]:
        """The names of files beside `name` that match `pattern`."""
        folder = (self.root / name).parent
        names = sorted(path.name for path in folder.glob(pattern) if path.is_file())
        return [str(PurePosixPath(name).parent / each) for each in names]

    def content(self, name: str) -> bytes:
        """The content of one file."""
        with self.opened(name) as file:
            return bounds.read_whole(file, name)

    @contextmanager
    def opened(self, name: str) -> Iterator[io.BufferedReader]:
        """One file, opened; its hash is noted."""
        try:
            with cast(io.BufferedReader, bounds.open_file(self.root / name)) as file:
                self.hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                yield file
        except OSError as error:
            problem = error.strerror
            raise DataError("file_unreadable", where=self.root / name, problem=problem) from None

    def refuse_several(self, models: set[str]) -> None:
        """A run is of one model: UsageError, and how to choose, where the log has more."""
        if len(models) > 1:
            raise UsageError("import_several_models", path=self.path, models=sorted(models))

    def json(self, name: str) -> Any:
        """One JSON document; also one with the ``NaN`` and ``Infinity`` that Python writes."""
        try:
            return parse_json(self.content(name), LOG)
        except DataError as error:
            raise DataError("file_not_json", where=self.root / name, problem=error) from None

    def mapping(self, name: str) -> dict[str, Any]:
        """One JSON object."""
        document = self.json(name)
        if not isinstance(document, dict):
            raise DataError("file_no_object", where=self.root / name)
        return document

    def yaml(self, name: str) -> dict[str, Any]:
        """One YAML mapping; empty if it is none."""
        try:
            document = scalar(self.content(name).decode(), name)
        except (ConfigError, UnicodeDecodeError):
            return {}
        return document if isinstance(document, dict) else {}

    def jsonl(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a JSON Lines file, each with its place."""
        with self.opened(name) as lines:
            for number, row in iter_json_rows(lines, str(self.root / name), LOG):
                yield f"{name}, line {number}", row

    def start(self, name: str, size: int) -> bytes:
        """How a file begins; nothing if it cannot be read."""
        try:
            with bounds.open_file(self.root / name) as file:
                return file.read(size)
        except OSError:
            return b""

    def first(self, name: str) -> dict[str, Any]:
        """The first object of a JSON Lines file; empty if it does not begin with one."""
        with suppress(OSError, DataError), bounds.open_file(self.root / name) as lines:
            for _, row in iter_json_rows(lines, name, LOG):
                return row
        return {}


REFUSED_CALLS: dict[str, FaultKind] = {"model_length": "context_length", FILTERED: FILTERED}
"""Stop reasons under which EvalScope and Inspect write an endpoint's refusal as a reply: its text
is the endpoint's message, and no token was counted."""

LARGEST = (1 << 63) - 1
"""What a log may have more of, in a number, cannot be stored."""
SHOWN = 100
"""Characters of a malformed reply that its error quotes."""
_SECRET = re.compile(r"\bsk-[\w.*-]{4,}|(?<=Bearer )\S+|(?<=api key provided: )\S+", re.IGNORECASE)
"""Keys as endpoints quote them: ``sk-abc…``, ``Bearer abc…``, ``… API key provided: abc…``."""


def text_of(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") in (None, "text"):
            part = str(part.get("text") or "")
        texts.append(part if isinstance(part, str) else "")
    return "\n".join(text for text in texts if text)


def reasoning_of(content: Any) -> str:
    """The reasoning among the parts of a message's content."""
    if not isinstance(content, list):
        return ""
    parts = [p for p in content if isinstance(p, Mapping) and p.get("type") == "reasoning"]
    return "\n".join(str(part.get("reasoning") or "") for part in parts)


def prompt_of(messages: Any) -> str:
    """All that was sent, as one text: the messages before the model's last."""
    if isinstance(messages, str):
        return messages
    listed = [m for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []
    while listed and listed[-1].get("role") in ("assistant", "BOT"):
        listed.pop()
    return "\n\n".join(text_of(m.get("content", m.get("prompt"))) for m in listed)


def make_reply(
    content: Any,
    *,
    reasoning: Any = None,
    finish: Any = "",
    usage: Any = None,
    seconds: Any = 0.0,
    model: Any = "",
) -> Reply:
    """The reply behind a stored message, its thoughts kept apart."""
    word, text = str(finish or ""), text_of(content)
    counts = usage if isinstance(usage, Mapping) else {}

    def count(*names: str) -> int:
        """Tokens under the first of `names` that the tool uses."""
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
    """The reply of a row on which the tool failed."""
    line = one_line(_SECRET.sub(REDACTED, str(message))) or "the tool says nothing more"
    kind = kind_of(0, line, "")
    return Reply(error=Fault("server" if kind == "bad_request" else kind, line))


def malformed_reply(stored: Any) -> Reply:
    """The reply of a row that holds none: nothing, or not what the tool's versions store."""
    shown = one_line(_SECRET.sub(REDACTED, repr(stored)))[:SHOWN]
    return Reply(error=Fault("malformed", f"the log holds no reply here: {shown}"))


@contextmanager
def naming(place: Path) -> Iterator[None]:
    """Tell of a row that is laid out otherwise than expected where it stands."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        kind = type(error).__name__
        values = {"place": place, "kind": kind, "problem": str(error)}
        raise DataError("import_strange_row", **values) from None


def number(value: Any) -> float | None:
    """A score as a number; None where the tool gave none."""
    if isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, int | float) and value == value else None


class Mean:
    """The mean of what was added; None of nothing."""

    def __init__(self) -> None:
        self._total, self._n = 0.0, 0

    def add(self, value: float) -> None:
        """Take one more number in."""
        self._total += value
        self._n += 1

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._total / self._n if self._n else None


def text_or_none(answer: Any) -> str | None:
    """What a tool read, as text; None where it tells nothing that can be compared."""
    return str(answer) if isinstance(answer, str | int | float) else None


class Task(NamedTuple):
    """A task of a tool: the exam and subset that it is, and what the exam says of it."""

    benchmark: str = ""
    subset: str = ""
    facts: ToolTask | None = None
    """None where it is no exam of Keju's."""


def find_task(tool: str, name: str) -> Task:
    """The exam that a tool calls `name`."""
    for benchmark in map(registry.get, registry.names()):
        for task in benchmark.tool_tasks:
            if task.tool == tool and (match := re.fullmatch(task.name, name)):
                subset = match[1] if match.re.groups else None
                return Task(benchmark.name, subset or "", task)
    return Task()


class LogRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One reply of a log, with all that can tell which question it answers."""

    where: str
    """File and place in it, for messages."""
    reply: Reply
    keys: dict[str, Any] = {}
    """The question's own ids, as a row of a predictions file carries them."""
    subset: str = ""
    """As the tool spells it; empty where it does not say."""
    index: int | None = None
    """Position inside the subset, from 0."""
    question: str = ""
    """The question alone, where the log keeps it apart from the prompt."""
    prompt: str = ""
    """The whole text that was sent."""
    choices: tuple[str, ...] = ()
    """The options in the order in which they were shown, where the log keeps them apart."""
    target: str = ""
    """The gold answer as the log has it."""
    answer: str | None = None
    """What the tool read out of the reply."""
    verdict: float | None = None
    """The tool's score of this row."""
    epoch: int = 0
    note: str = ""
    """Why the row is of no exam, as a code, where the reader of the log knows it."""


class LogRows(Spool[LogRow]):
    """The rows of a part in their order, none of which is held in memory."""

    def __init__(self, rows: Iterable[LogRow] = ()) -> None:
        super().__init__(LogRow)
        self.subsets: set[str] = set()
        """What the tool calls the subsets that they are of."""
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

    def extend(self, other: Spool[LogRow]) -> None:
        """Add the rows of another part."""
        super().extend(other)
        self.subsets |= other.subsets if isinstance(other, LogRows) else set()


@dataclass(frozen=True, kw_only=True)
class Part:
    """One exam of a log: its rows, the figure the tool reports, and how Keju reads the same."""

    task: str
    """The tool's name of it."""
    rows: LogRows
    benchmark: str = ""
    """Keju's name of the exam; empty where the tool's task is none of them."""
    protocol: str = ""
    """The protocol whose reading is the tool's; the exam's own by default."""
    reader: str = ""
    """The equivalent reader where it is not the protocol's own."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the exam, e.g. the number of worked examples."""
    reported: Mapping[str, float] = field(default_factory=dict)
    """The tool's own figures by their names there, the headline first, in [0, 1]."""
    n: int | None = None
    """How many rows the figures are about, as the tool says."""
    asked: int | None = None
    """How many rows the tool says it wrote; `n` where it says no more."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """How the tool asked, as far as its log says so."""

    def read_as(self, task: Task, settings: Mapping[str, Any] | None = None) -> Part:
        """This part as the exam that `task` is; `settings` are those that the log names."""
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
class Log:
    """The log of one model, read."""

    tool: str
    version: str
    model: str
    parts: Sequence[Part]
    files: Mapping[str, str]
    """Relative path to SHA-256 of each file read."""
