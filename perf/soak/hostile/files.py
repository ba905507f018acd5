"""Hostile files: predictions, settings, logs of other tools, archives; ids in placeholders."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perf.soak.case import Case
from perf.soak.hostile import mcp_server
from perf.soak.hostile.judge import attacked
from perf.soak.hostile.writing import (
    ALIASES,
    CODES,
    PLAIN,
    SECONDS,
    SHELL,
    TEXTS,
    VALUES,
    Build,
    changing,
    combined,
    fifo,
    lines,
    link,
    write,
    zipped,
)


def cases() -> list[Case]:
    """Return every attack with a file that a command reads, and with an id in a placeholder."""
    attack_cases = [Case(f"command: {name}", _commands(*attack)) for name, attack in FILES.items()]
    attack_cases += [
        Case(f"placeholder: {name}", _placeholder(text)) for name, text in TEXTS.items()
    ]
    return attack_cases


def _commands(build: Build, commands: tuple[str, ...]) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        place = folder / "work/input"
        place.mkdir(parents=True)
        build(place)
        for words in commands:
            if problem := attacked(folder, *words.split(), codes=CODES, seconds=SECONDS).problem:
                return problem
        return ""

    return run


SCORE = ("score --datasets demo --predictions input/p.jsonl --json",)
EVAL = ("eval --config input/c.yaml --work-dir runs --json",)
IMPORT = ("import input --work-dir runs",)
LM = {
    "doc_id": 0,
    "doc": {"question": "x"},
    "target": "A",
    "resps": [["A"]],
    "filtered_resps": ["A"],
    "arguments": [],
}
EVALSCOPE = {"index": 0, "model": "m", "model_output": {"choices": [{"message": {"content": "A"}}]}}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "x", "model": "m"}, "samples": []}
VERIFIERS = {
    "completion": [{"role": "assistant", "content": "A"}],
    "reward": 1.0,
    "answer": "A",
    "prompt": [],
}
PREDICTION = {"id": "demo_object_counting_0", "output": "(A)"}


def _predictions(**changes: Any) -> Build:
    return write("p.jsonl", lines(PREDICTION | changes))


def _tar(*entries: tuple[str, bytes, str]) -> bytes:
    """Return a tar file of (name, kind, target) entries."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, target in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            data = b"x" if kind == tarfile.REGTYPE else b""
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


_CAPSULE = {
    "question": "Q?",
    "ideal": "A",
    "distractors": ["B"],
    "question_id": "q1",
    "capsule_uuid": "c",
    "data_folder": "CapsuleFolder-c.zip",
    "eval_mode": "str_verifier",
}
FILES: dict[str, tuple[Build, tuple[str, ...]]] = {
    "predictions: an empty file": (write("p.jsonl", b""), SCORE),
    "predictions: every wrong type as output": (
        write("p.jsonl", lines(*[PREDICTION | {"output": value} for value in VALUES])),
        SCORE,
    ),
    "predictions: every wrong type as id": (
        write("p.jsonl", lines(*[PREDICTION | {"id": value} for value in VALUES])),
        SCORE,
    ),
    "predictions: hostile texts as id": (
        write("p.jsonl", lines(*[PREDICTION | {"id": text} for text in TEXTS.values()])),
        SCORE,
    ),
    "predictions: hostile texts as output": (
        write(
            "p.jsonl",
            lines(
                *[
                    PREDICTION
                    | {"id": f"demo_object_counting_{n % 3}", "epoch": n // 3, "output": text}
                    for n, text in enumerate(TEXTS.values())
                ]
            ),
        ),
        SCORE,
    ),
    "predictions: an epoch of 10 to the power of 400": (_predictions(epoch=10**400), SCORE),
    "predictions: an index that is not a number": (
        _predictions(index=float("nan"), subset="../x"),
        SCORE,
    ),
    "predictions: choices of all types": (
        write(
            "p.jsonl",
            lines(*[PREDICTION | {"choices": value, "answer": value} for value in VALUES]),
        ),
        SCORE,
    ),
    "predictions: 100,000 nested arrays": (
        write("p.jsonl", b'{"id": ' + b"[" * 100_000 + b"\n"),
        SCORE,
    ),
    "predictions: a gzip bomb": (write("p.jsonl", lambda: gzip.compress(b" " * 2**28)), SCORE),
    "predictions: a gzip bomb by name": (
        write("p.jsonl.gz", lambda: gzip.compress(b" " * 2**28)),
        ("score --datasets demo --predictions input/p.jsonl.gz",),
    ),
    "predictions: a FIFO": (fifo("p.jsonl"), SCORE),
    "predictions: /dev/zero": (link("p.jsonl", "/dev/zero"), SCORE),
    "predictions: a folder": (lambda place: (place / "p.jsonl").mkdir(), SCORE),
    "predictions: they change while they are read": (changing("p.jsonl"), SCORE),
    "settings: an empty file": (write("c.yaml", b""), EVAL),
    "settings: a list": (write("c.yaml", b"[1, 2]"), EVAL),
    "settings: aliases that grow to 9^11 values": (write("c.yaml", ALIASES), EVAL),
    "settings: an alias to itself": (write("c.yaml", "model: &a [*a]"), EVAL),
    "settings: tags of Python": (
        write("c.yaml", "model: !!python/object/apply:os.system ['touch canary']"),
        EVAL,
    ),
    "settings: 20,000 nested lists": (write("c.yaml", "model: " + "[" * 20_000), EVAL),
    "settings: every wrong type": (
        write(
            "c.yaml", "model: {a: 1}\ndatasets: 5\nlimit: x\nseed: 1e400\nprice: []\nbudget: nan\n"
        ),
        EVAL,
    ),
    "settings: NUL and escapes": (
        write("c.yaml", 'model: "\\0\\e[2J"\ndatasets: ["\\0"]\nrun_id: "\\0"'),
        EVAL,
    ),
    "settings: a run id from outside": (
        write("c.yaml", "model: scripted\ndatasets: [demo]\nlimit: 1\nrun_id: ../../outside"),
        EVAL,
    ),
    "settings: a run id of 5,000 characters": (
        write("c.yaml", "model: scripted\ndatasets: [demo]\nlimit: 1\nrun_id: " + "r" * 5000),
        EVAL,
    ),
    "settings: numbers beyond all bounds": (
        write(
            "c.yaml",
            "model: scripted\ndatasets: [demo]\nlimit: 1"
            + "0" * 300
            + "\nseed: -1"
            + "0" * 300
            + "\ntimeout: .inf\neval_batch_size: 999999999999",
        ),
        EVAL,
    ),
    "settings: a variable in every place": (
        write("c.yaml", "model: ${NOPE:-$(touch canary)}\ndatasets: ['${HOME}']\n"),
        EVAL,
    ),
    "settings: 20 MiB": (write("c.yaml", lambda: b"# " + b"x" * 20 * 2**20), EVAL),
    "settings: a FIFO": (fifo("c.yaml"), EVAL),
    "settings: /dev/zero": (link("c.yaml", "/dev/zero"), EVAL),
    "settings: /dev/stdin": (link("c.yaml", "/dev/stdin"), EVAL),
    "settings: UTF-16": (
        write("c.yaml", "model: scripted\ndatasets: [demo]\n".encode("utf-16")),
        EVAL,
    ),
    "settings of servers: hostile texts": (
        write(
            "c.yaml",
            json.dumps(
                {
                    "datasets": ["demo"],
                    "model": "scripted",
                    "arms": [
                        {
                            "name": text,
                            "servers": [
                                {"name": text, "command": text, "args": [text], "env": {text: text}}
                            ],
                        }
                        for text in TEXTS.values()
                    ],
                }
            ),
        ),
        ("run -c input/c.yaml --work-dir runs", "mcp check -c input/c.yaml"),
    ),
    "log of lm-eval: every wrong type": (
        write(
            "samples_bbh_x_2026-01-01T00-00-00.1.jsonl",
            lines(
                *[
                    LM | {key: value}
                    for key in LM
                    for value in VALUES
                    if key not in ("doc_id", "resps")
                ]
            ),
        ),
        IMPORT,
    ),
    "log of lm-eval: every wrong type, one by one": (
        combined(
            *[
                write(f"{n}/samples_demo_2026-01-01T00-00-00.1.jsonl", lines(LM | {"resps": value}))
                for n, value in enumerate(VALUES)
            ]
        ),
        tuple(f"import input/{n} --work-dir runs" for n in range(len(VALUES))),
    ),
    "log of lm-eval: a task from outside": (
        write("samples_..%2f..%2foutside_2026-01-01T00-00-00.1.jsonl", lines(LM)),
        IMPORT,
    ),
    "log of EvalScope: every wrong type": (
        write(
            "predictions/m/demo_default.jsonl",
            lines(
                EVALSCOPE,
                *[
                    EVALSCOPE | {"model_output": value, "index": n}
                    for n, value in enumerate(VALUES)
                ],
            ),
        ),
        IMPORT,
    ),
    "log of EvalScope: hostile names": (
        write(
            "predictions/..m/\x1b[2J<img src=x onerror=pwned()>.jsonl",
            lines(EVALSCOPE | {"model": "../../outside\x1b[2J"}),
        ),
        IMPORT,
    ),
    "log of Inspect: every wrong type": (
        write(
            "a.json",
            json.dumps(
                INSPECT
                | {
                    "samples": [
                        {
                            "id": value,
                            "epoch": value,
                            "output": value,
                            "scores": value,
                            "target": value,
                        }
                        for value in VALUES[:8]
                    ]
                }
            ),
        ),
        IMPORT,
    ),
    "log of Inspect: an archive with a bomb": (
        write(
            "a.eval",
            lambda: zipped(
                ("header.json", json.dumps(INSPECT).encode()), ("samples/1.json", b" " * 2**29)
            ),
        ),
        IMPORT,
    ),
    "log of Inspect: an archive with paths outside": (
        write(
            "a.eval",
            zipped(
                ("header.json", json.dumps(INSPECT).encode()),
                ("samples/../../../outside.json", b"{}"),
            ),
        ),
        IMPORT,
    ),
    "log of Inspect: an archive with 250,000 entries": (
        write("a.eval", lambda: zipped(*[(f"samples/{n}.json", b"{}") for n in range(250_000)])),
        IMPORT,
    ),
    "log of Inspect: a damaged archive": (
        write("a.eval", zipped(("header.json", b"{}"))[:-30]),
        IMPORT,
    ),
    "log of Inspect: 50,000 nested arrays": (
        write("a.json", '{"eval": {"task": 1}, "status": ' + "[" * 50_000),
        IMPORT,
    ),
    "log of verifiers: every wrong type": (
        combined(
            write("metadata.json", b'{"env_id": "demo", "model": "m"}'),
            write(
                "results.jsonl",
                lines(
                    VERIFIERS,
                    *[VERIFIERS | {"completion": value, "reward": value} for value in VALUES],
                ),
            ),
        ),
        IMPORT,
    ),
    "log of verifiers: hostile metadata": (
        combined(
            write(
                "metadata.json", json.dumps({"env_id": "../../outside", "model": SHELL}).encode()
            ),
            write("results.jsonl", lines(VERIFIERS)),
        ),
        IMPORT,
    ),
    "log of OpenCompass: every wrong type": (
        write(
            "predictions/m/bbh-x.json",
            json.dumps(
                {
                    str(n): {"prediction": value, "gold": value, "origin_prompt": value}
                    for n, value in enumerate(VALUES)
                }
            ),
        ),
        IMPORT,
    ),
    "log: YAML settings with aliases": (
        combined(
            write("predictions/m/demo_default.jsonl", lines(EVALSCOPE)),
            write("configs/task_config.yaml", ALIASES),
        ),
        IMPORT,
    ),
    "log: a link to itself": (
        combined(write("predictions/m/demo_default.jsonl", lines(EVALSCOPE)), link("loop", ".")),
        IMPORT,
    ),
    "log: a FIFO": (fifo("samples_demo_2026-01-01T00-00-00.1.jsonl"), IMPORT),
    "BixBench: ids and capsules from outside": (
        write(
            "bixbench/BixBench.jsonl",
            lines(
                *[
                    _CAPSULE | {"question_id": text, "capsule_uuid": text, "data_folder": text}
                    for text in TEXTS.values()
                ]
            ),
        ),
        ("show bixbench --data-dir input", "stats bixbench --data-dir input"),
    ),
    "list of runs: folders of all kinds": (
        combined(
            write("a/manifest.json", b"{"),
            write("b/manifest.json", b"[]"),
            write("c/manifest.json", b"\0" * 100),
            fifo("manifest.json"),
            link("loop", "."),
            write("\x1b[2J/manifest.json", b"{}"),
        ),
        ("list runs --work-dir input", "list runs --work-dir input --json"),
    ),
}
"""Files by what is wrong with them, and the commands that read them."""
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": gzip.compress,
    "tar.xz": lzma.compress,
    "tar.bz2": bz2.compress,
}

for _name, _entries in {
    "leads outside": (("../../outside", tarfile.REGTYPE, ""),),
    "is absolute": (("/tmp/outside-of-keju", tarfile.REGTYPE, ""),),
    "is a link outside": (("a", tarfile.SYMTYPE, "/etc"), ("a/passwd", tarfile.REGTYPE, "")),
    "is a hard link outside": (("a", tarfile.LNKTYPE, "/etc/passwd"),),
    "is a device": (("a", tarfile.CHRTYPE, ""),),
    "is a FIFO": (("a", tarfile.FIFOTYPE, ""),),
    "has escapes": (("\x1b[2J\x07", tarfile.REGTYPE, ""),),
}.items():
    for _form, _pack in PACKERS.items():
        FILES[f"archive: {_form} whose entry {_name}"] = (
            write(f"bbh.{_form}", _pack(_tar(*_entries))),
            (f"stats bbh --data-dir input/bbh.{_form}", "data verify bbh --data-dir input"),
        )


def _placeholder(text: str) -> Callable[[Path], str]:
    """Return an attack with an id that reaches every placeholder of an MCP server's settings."""

    def run(folder: Path) -> str:
        script = str(Path(mcp_server.__file__))
        place = folder / "work/input"
        place.mkdir(parents=True)
        (place / "q.jsonl").write_text(lines(PLAIN | {"id": text, "subset": text}))
        setup = "echo {instance_id} \"{instance_id}\" '{instance_id}' {workdir} > /dev/null"
        server = {
            "name": "calc",
            "command": "bash",
            "args": [
                "-c",
                f'echo "{{instance_id}}" >&2; exec {sys.executable} {script} ignores_signals',
            ],
            "env": {"ID": "{instance_id}"},
            "setup_command": setup,
            "scope": "sample",
        }
        arms = [{"name": "tools", "servers": [server]}]
        settings = {"datasets": ["./input"], "model": "scripted", "arms": arms}
        (folder / "work/arms.yaml").write_text(json.dumps(settings))
        words = ["run", "-c", "arms.yaml", "--work-dir", "runs", "--run-id", "r", "--json"]
        return attacked(folder, *words, codes=CODES, seconds=SECONDS).problem

    return run
