"""Wrong inputs of every kind, to every command: each is told in one line, with the right exit code.

    flags      every flag of every command without its value, twice, of the wrong kind; unknown ones
    settings   odd values at every place of a configuration, as YAML, JSON, -s and --dataset-args
    rows       predictions and questions whose fields are odd
    data       the files of exams, damaged
    runs       the files of a stored run, damaged, for every command that reads a run
    logs       the logs of other tools, damaged

A generated input may turn out to be right: then the command does what it should, and ends with 0.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from keju.cli import COMMANDS
from keju.cli.command import COMMANDS as DECLARED
from keju.cli.options import MAPPING
from keju.config import TaskConfig
from perf.measure import ROOT
from perf.soak.case import Case, CommandResult
from perf.soak.zygote import keju

SEED: Final = 11
DATA: Final = ROOT / "tests" / "runs01" / "data"
LOGS: Final = ROOT / "tests" / "interop" / "imports" / "fixtures"
STORED: Final = ROOT / "tests" / "runs01"
SECONDS: Final = 60.0
REFUSED: Final = (2,)
PERHAPS: Final = (0, 2)
"""Where the input may be a right one by chance."""
STOPPED: Final = (0, 2, 3, 4)
"""Where a damaged run may be incomplete, or prove nothing."""
EVAL: Final = ("eval", "--model", "scripted", "--datasets", "demo", "--quiet")


@dataclass(frozen=True)
class Input:
    """A command, the files in its folder, and how it may end."""

    name: str
    argv: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    codes: tuple[int, ...] = REFUSED
    prepare: Callable[[Path], None] | None = None
    """Lays further files into the folder."""


def cases() -> list[Case]:
    """All of them, in a fixed order."""
    kinds = (flags, settings, rows, data, runs, logs, places)
    return [
        Case(f"{kind.__name__}: {case_input.name}", functools.partial(_attack, case_input))
        for kind in kinds
        for case_input in kind()
    ]


def _attack(case_input: Input, folder: Path) -> str:
    if case_input.prepare is not None:
        case_input.prepare(folder)
    for name, content in case_input.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    process = keju(folder, *case_input.argv, environ=case_input.environ, seconds=SECONDS)
    return process.broken or _complaint(case_input, process)


def _is_refusal(case_input: Input, process: CommandResult) -> bool:
    """Whether stdout holds the one document that says what is wrong, as ``--json`` asks for."""
    try:
        document = json.loads(process.out)
    except ValueError:
        return False
    return "--json" in case_input.argv and bool(document.get("error", {}).get("exit_code") == 2)


def _complaint(case_input: Input, process: CommandResult) -> str:
    """What is wrong with how a command ended; empty if nothing is."""
    lines = process.err.splitlines()
    if process.code not in case_input.codes:
        return f"exit {process.code} instead of {case_input.codes}: {process.err.strip()[:300]!r}"
    if process.code == 2 and (len(lines) != 1 or not lines[0].startswith("keju: error: ")):
        return f"not one line on stderr: {process.err[:300]!r}"
    if process.code == 2 and process.out and not _is_refusal(case_input, process):
        return f"refused, and yet something is on stdout: {process.out[:100]!r}"
    if any(ord(sign) < 32 and sign != "\n" for sign in process.err):
        return f"control characters on stderr: {process.err[:300]!r}"
    if len(process.err) > 3000:
        return f"{len(process.err)} characters on stderr: {process.err[:100]!r}…"
    return ""


# --- flags -------------------------------------------------------------------------------------

ARGUMENTS: Final = {"NAME": "demo", "[NAME]": "demo", "WHAT": "benchmarks", "ENV": "bixbench"}
UNREADABLE: Final = {int: ("x", "1.5", "0x10", "１", "1e3"), float: ("x", "1,5", "--", "1_e")}


def flags() -> Iterator[Input]:
    """Flags that are typed wrongly."""
    for entry in COMMANDS:
        importlib.import_module(entry.module)
    for name, command in DECLARED.items():
        words = name.split()
        places = [row.spelling for row in command.rows.values() if not row.flags]
        call = (*words, *(ARGUMENTS.get(place, "r") for place in places))
        yield Input(f"{name} with an unknown flag", (*call, "--nonsense"))
        yield Input(f"{name} with an unknown short flag", (*call, "-Z"))
        yield Input(f"{name} with too many words", (*call, "more", "words"))
        if places and not places[0].startswith("["):
            yield Input(f"{name} without its argument", (*words,))
        for row in command.rows.values():
            if not row.flags or row.kind is bool:
                continue
            flag = row.flags[0]
            yield Input(f"{name} {flag} without a value", (*call, flag))
            yield Input(f"{name} {flag} before another flag", (*call, flag, "--json"))
            if row.kind is not list:
                yield Input(f"{name} {flag} twice", (*call, flag, "1", flag, "2"))
            if isinstance(row.kind, tuple):
                yield Input(f"{name} {flag} of another kind", (*call, flag, "nonsense"))
            for text in UNREADABLE.get(row.kind, ()):
                yield Input(f"{name} {flag} {text}", (*call, flag, text))
            if row.metavar == MAPPING:
                for text in ("{", "[1]", '"x"', "x", "1", '{"a": NaN}', '{"a": 1, "a": 2}', "=1"):
                    yield Input(f"{name} {flag} {text}", (*call, flag, text))


# --- settings ----------------------------------------------------------------------------------

ODD: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 1.5, 1e308, 10**9, 10**400, "", " ", "x", "a\0b", "\ud800", "../..", "/",
    "~", "=1+1", "\x1b[31m", "x" * 70_000, [], [[]], [None], {}, {"x": None}, {"": 1}, ["a", "a"],
)  # fmt: skip
"""Values that some setting may not expect."""
EXAMS: Final = ("bbh", "mmlu_pro", "ceval", "bixbench", "demo")
YAML: Final = (
    "- a", "a", "1", "", "~", "a: [", "a: 'b", "\ta: b", "a: b: c", "? a\n: b", "*a", "a: *b",
    "a: !!python/object:os.system x", "%YAML 9.9\n---\na: b", "---\na: 1\n---\nb: 2", "a: &x [*x]",
    "seed: &a 1\nlimit: *a\nmodel: *b", "{a: 1, a: 2}", "1: 2", "[a]: 2", "<<: [1, 2]", "<<: x",
    "seed: !!int x", "model: !!binary '=='", "seed: !!float ''", "offline: !!bool maybe",
    "datasets: !!set {demo}", "headers: !!omap [a: b]", "\x00", "\x85", "\ufeffseed: x",
    "a" * 100_000, "[" * 3000, "{" * 3000, "a: " * 500, "seed: " + "9" * 5000,
    "limit: 1:30", "seed: 0o9",
)  # fmt: skip


def settings() -> Iterator[Input]:
    """Odd values of settings, wherever they can be given."""
    draw = random.Random(SEED)
    for number, text in enumerate(YAML):
        files = {"c.yaml": text.encode("utf-8", "surrogatepass")}
        yield Input(f"file {number} {text[:30]!r}", (*EVAL, "-c", "c.yaml"), files, codes=PERHAPS)
    dry = (*EVAL, "--dry-run")
    for path in _places():
        for value in draw.sample(ODD, 5):
            value_text = repr(value)[:30]
            document: Any = value
            for key in reversed(path.split(".")):
                document = {key: document}
            files = {"c.json": json.dumps(document).encode()}
            yield Input(f"{path} {value_text}", (*dry, "-c", "c.json"), files, codes=PERHAPS)
    for exam in EXAMS:
        for name in sorted(_arguments(exam)):
            for value in draw.sample(ODD, 3):
                arguments = json.dumps({exam: {name: value}})
                words = ("stats", exam, "--data-dir", str(DATA), "--dataset-args", arguments)
                if "\0" not in arguments and len(arguments) < 60_000:
                    value_text = repr(value)[:30]
                    yield Input(f"{exam}.{name} {value_text}", words, codes=PERHAPS)
    for name in TaskConfig.model_fields:
        for text in ("\x7f", "[", "{}", "a=b", "NaN"):
            variable = {f"KEJU_{name.upper()}": text}
            yield Input(f"KEJU_{name.upper()} {text!r}", dry, environ=variable, codes=PERHAPS)


def _places() -> Iterator[str]:
    """The paths of all settings, and of mappings inside them."""
    from keju.config.strict import find_settings_class

    for name, model_field in TaskConfig.model_fields.items():
        yield name
        inner = find_settings_class(model_field.annotation)
        if inner is not None:
            yield from (f"{name}.{key}" for key in inner.model_fields)
    yield from ("dataset_args.demo", "dataset_args.demo.filters", "nonsense", "generation_config.x")


def _arguments(exam: str) -> set[str]:
    from keju.benchmarks import registry

    return set(registry.get(exam).Args.model_fields) | {"nonsense"}


# --- rows --------------------------------------------------------------------------------------

GOOD: Final[dict[str, dict[str, Any]]] = {
    "bbh": {"subset": "snarks", "index": 0, "output": "So the answer is (A)."},
    "mmlu_pro": {"question_id": 0, "output": "The answer is (A)."},
    "ceval": {"subject": "law", "id": 0, "output": "A"},
    "bixbench": {"question_id": "bix-1-q1", "output": "<answer>A</answer>"},
    "demo": {"subset": "word_sorting", "index": 0, "output": "A"},
}
MORE: Final = ("target", "answer", "choices", "finish_reason", "id", "subset", "index", "unsure")
QUESTION: Final[dict[str, Any]] = {"question": "q?", "choices": ["x", "y"], "answer": "A"}
QUESTION_FIELDS: Final = ("question", "choices", "answer", "id", "subset", "group", "A", "options")


def rows() -> Iterator[Input]:
    """Rows of predictions and of questions with an odd value in one field."""
    draw = random.Random(SEED)
    for exam, good in GOOD.items():
        arguments = {"subset_list": ["law", "logic"]} if exam == "ceval" else {}
        data_flags = ("--data-dir", str(DATA), "--dataset-args", json.dumps({exam: arguments}))
        words = ("score", "--datasets", exam, "--predictions", "p.jsonl", *data_flags)
        for key in dict.fromkeys([*good, *MORE]):
            for value in draw.sample(ODD, 5):
                line = json.dumps(good | {key: value}).encode()
                name = f"{exam} {key} {value!r:.30}"
                yield Input(name, words, {"p.jsonl": line}, codes=PERHAPS)
            line = json.dumps({k: v for k, v in good.items() if k != key}).encode()
            yield Input(f"{exam} without {key}", words, {"p.jsonl": line}, codes=PERHAPS)
        for name, content in _damages(json.dumps(good).encode() + b"\n", draw, 12):
            yield Input(f"{exam} {name}", words, {"p.jsonl": content}, codes=PERHAPS)
    evaluate = ("eval", "--model", "scripted", "--datasets", "./quiz", "--quiet", "--dry-run")
    for key in QUESTION_FIELDS:
        for value in draw.sample(ODD, 8):
            line = json.dumps(QUESTION | {key: value}).encode()
            files = {"quiz/q.jsonl": line}
            yield Input(f"question {key} {value!r:.30}", evaluate, files, codes=PERHAPS)
    keys = ("name", "kind", "questions", "few_shot", "template", "shot_template", "reader")
    table = json.dumps(QUESTION).encode()
    for key in (*keys, "system_prompt", "language", "max_tokens", "nonsense"):
        for value in draw.sample(ODD, 5):
            text = json.dumps({key: value}).encode()
            files = {"quiz/q.jsonl": table, "quiz/exam.yaml": text}
            yield Input(f"exam.yaml {key} {value!r:.30}", evaluate, files, codes=PERHAPS)
    for name, content in _damages(b"question,A,B,answer\nq?,x,y,A\n", draw, 20):
        for suffix in ("csv", "json", "yaml", "parquet", "jsonl.gz", "csv.gz"):
            files = {f"quiz/q.{suffix}": content}
            yield Input(f"q.{suffix} {name}", evaluate, files, codes=PERHAPS)


def _damages(good: bytes, draw: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """A file in many wrong states."""
    yield "empty", b""
    yield "blank", b" \n\n"
    yield "NUL", b"\0" * 100
    yield "not UTF-8", b"\xff\xfe" + good
    yield "in UTF-16", good.decode("latin-1").encode("utf-16")
    yield "with a mark", b"\xef\xbb\xbf" + good
    yield "twice", good + good
    yield "gzipped", gzip.compress(good)
    yield "gzip cut", gzip.compress(good)[:-4]
    yield "bomb", gzip.compress(bytes(1 << 27))
    yield "nested", b"[" * 100_000
    yield "nested objects", b'{"a":' * 100_000
    yield "digits", b'{"a": ' + b"9" * 5000 + b"}"
    yield "html", b"<!DOCTYPE html><html></html>"
    for number in range(count):
        place = draw.randrange(len(good))
        if number % 3 == 0:
            yield f"cut at {place} ({number})", good[:place]
        elif number % 3 == 1:
            replacement = bytes([draw.randrange(256)])
            yield (
                f"byte {place} is {replacement!r} ({number})",
                good[:place] + replacement + good[place + 1 :],
            )
        else:
            end = place + draw.randrange(1, 30)
            yield f"without {place} to {end} ({number})", good[:place] + good[end:]


# --- files -------------------------------------------------------------------------------------


def data() -> Iterator[Input]:
    """The published files of exams, damaged."""
    draw = random.Random(SEED)
    files = {
        "bbh": ("bbh/snarks.json", "cot-prompts/snarks.txt"),
        "mmlu_pro": tuple(p.name for p in sorted((DATA / "mmlu_pro").iterdir()) if p.is_file()),
        "ceval": ("val/law_val.csv", "dev/law_dev.csv"),
        "bixbench": tuple(p.name for p in sorted((DATA / "bixbench").iterdir()) if p.is_file()),
    }
    subsets = {"bbh": ["snarks"], "ceval": ["law"]}
    for exam, names in files.items():
        arguments = {"subset_list": subsets[exam]} if exam in subsets else {}
        arguments_text = json.dumps({exam: arguments})
        words = ("stats", exam, "--data-dir", ".", "--dataset-args", arguments_text)
        for file in names:
            good = (DATA / exam / file).read_bytes()
            for name, content in _damages(good, draw, 12):
                yield Input(
                    f"{exam} {file} {name}",
                    words,
                    {f"{exam}/{file}": content},
                    codes=PERHAPS,
                    prepare=functools.partial(_copy_stored, DATA / exam, exam),
                )


def _copy_stored(source: Path, name: str, folder: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, folder / name)
    else:
        shutil.copy(source, folder / name)


READING: Final = {
    "score": ("score", "r"),
    "score with readers": ("score", "r", "--reader", "robust"),
    "export": ("export", "r"),
    "report": ("report", "r"),
    "modes": ("modes", "r", "r"),
    "list": ("list", "runs", "--work-dir", "."),
    "judge": ("judge", "r", "--strategy", "rule"),
    "resume": ("eval", "-c", "r/manifest.json", "--resume", "--quiet"),
    "replay": ("eval", "-m", "replay:r", "--datasets", "bbh", "--work-dir", ".", "--quiet"),
    "cache": (*EVAL, "--use-cache", "r", "--work-dir", "."),
}


def runs() -> Iterator[Input]:
    """The files of a stored run, damaged, for every command that reads a run."""
    draw = random.Random(SEED)
    stored = {"bbh": ("manifest.json", "records.jsonl", "results.json")}
    stored["bixbench-judged"] = ("records.jsonl", "verdicts.jsonl", "grades.jsonl")
    for run, names in stored.items():
        for file in names:
            path = STORED / run / "run" / file
            if not path.is_file():
                continue
            good = path.read_bytes()
            for (name, content), (command, words) in zip(
                _damages(good, draw, 46), list(READING.items()) * 6, strict=True
            ):
                data_flags = ("--data-dir", str(DATA)) if command not in ("modes", "list") else ()
                yield Input(
                    f"{run} {command} {file} {name}",
                    (*words, *data_flags),
                    {f"r/{file}": content},
                    codes=(*STOPPED, 5),
                    prepare=functools.partial(_copy_stored, STORED / run / "run", "r"),
                )


PLACES: Final = ("/dev/zero", "/dev/full", "/dev/tty", "pipe", ".", "link", "/proc/self/mem")
"""What is no file; some of them never end, and some are never written to."""


def places() -> Iterator[Input]:
    """Devices, pipes, folders and links where a file is expected, and names that lead elsewhere."""
    commands: dict[str, tuple[str, ...]] = {
        "settings": (*EVAL, "-c"),
        "predictions": ("score", "--datasets", "demo", "--predictions"),
        "certificates": ("eval", "-m", "m", "--api-url", "https://127.0.0.1:9", "--ca-file"),
        "weights": ("eval", "--datasets", "demo", "--quiet", "-m"),
        "a log": ("import",),
    }
    for name, words in commands.items():
        for place in PLACES:
            argument = f"gguf:{place}" if name == "weights" else place
            yield Input(f"{name} {place}", (*words, argument), codes=PERHAPS, prepare=_odd_places)
    for place in PLACES:
        for command in ("export", "report"):
            words = (command, "r", "--output", place, "--data-dir", str(DATA))
            yield Input(f"{command} to {place}", words, codes=STOPPED, prepare=_odd_places)
    for file in ("records.jsonl", "manifest.json", "results.json"):
        for command, words in READING.items():
            data_flags = ("--data-dir", str(DATA)) if command not in ("modes", "list") else ()
            prepare = functools.partial(_linked, file)
            codes = (*STOPPED, 5)
            yield Input(
                f"{command} linked {file}", (*words, *data_flags), codes=codes, prepare=prepare
            )
    for name in ("../../out", "/etc/x", "a\0b", "..", "x" * 300, "$(touch P)", "a\nb"):
        row = json.dumps(QUESTION | {"id": name, "subset": name}).encode()
        files = {"q.jsonl": row + b"\n"}
        for words in (("prompts", "./q.jsonl", "--output", "p"), (*EVAL[:4], "./q.jsonl")):
            yield Input(f"{words[0]} with the name {name[:20]!r}", words, files, codes=PERHAPS)


def _odd_places(folder: Path) -> None:
    """Lay a run, a pipe that no program writes to, and a link to an endless device."""
    _copy_stored(STORED / "bbh" / "run", "r", folder)
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/zero")


def _linked(file: str, folder: Path) -> None:
    """Lay a run one of whose files is a link."""
    _copy_stored(STORED / "bbh" / "run", "r", folder)
    (folder / "r" / file).rename(folder / "elsewhere")
    (folder / "r" / file).symlink_to(folder / "elsewhere")


def logs() -> Iterator[Input]:
    """The logs of other tools, damaged."""
    draw = random.Random(SEED)
    for tool in (
        "evalscope",
        "inspect",
        "lm-eval/bbh",
        "opencompass/chat",
        "verifiers-0.3",
        "verifiers-0.4",
    ):
        files = [p for p in sorted((LOGS / tool).rglob("*")) if p.is_file()]
        for path in draw.sample(files, min(6, len(files))):
            file = path.relative_to(LOGS / tool)
            for name, content in _damages(path.read_bytes(), draw, 12):
                yield Input(
                    f"{tool} {file} {name}",
                    ("import", "log", "--data-dir", str(LOGS / "data")),
                    {f"log/{file}": content},
                    codes=PERHAPS,
                    prepare=functools.partial(_copy_stored, LOGS / tool, "log"),
                )
