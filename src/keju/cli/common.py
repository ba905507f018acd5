"""What the commands share: output, a stored run, an exam without a model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from keju.cli.command import COMMANDS, Output
from keju.errors import ConfigError, UsageError, did_you_mean
from keju.messages import printable

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark, Exam
    from keju.results.schema import Results
    from keju.runs.run import Run
    from keju.task import Finished


def print_json(document: Any) -> None:
    """Print exactly one JSON document; values that JSON does not have become null."""
    import msgspec

    from keju.cli.boundary import document_printed

    document_printed.set()
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        sys.stdout.write(json.dumps(json.loads(text), indent=2) + "\n")


def print_lines(*lines: str) -> None:
    """Print lines; characters that could drive a terminal or that it cannot hold are replaced."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = "".join(f"{printable(line)}\n" for line in lines)
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def note(line: str) -> None:
    """Say something that is not a result, on stderr."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    sys.stderr.write(f"{printable(line)}\n".encode(encoding, "replace").decode(encoding))


def session_output(finished: Finished, more: Callable[[], None] = lambda: None) -> Output:
    """The results of a session, `more` below them, and why it ended early if it did."""
    from keju.report.terminal import render_results

    def show() -> None:
        render_results(finished.results)
        more()

    if finished.exit_code:
        return Output(finished.document, show, finished.problem, finished.exit_code)
    return Output(finished.document, show, *verdict_on(finished.results))


def again_by(command: str, given: Mapping[str, Any], finished: Finished) -> Finished:
    """`finished` with the command that made it as the one that resumes it.

    A manifest holds no value of a server's variables and headers; the file of the run does.
    `given` are the values of the command's options.
    """
    if not finished.resume_command:
        return finished
    words = ["keju", *command.split()]
    own = {"run_id": finished.folder.name, "replace": None}
    given = {**given, **own, **({"api_key": "YOUR_KEY"} if given.get("api_key") else {})}
    for name, row in COMMANDS[command].rows.items():
        value = given.get(name)
        if value is True:
            words.append(row.flags[-1])
        elif value not in (None, False, []):
            for each in value if isinstance(value, list) else [value]:
                text = each if isinstance(each, str) else json.dumps(each)
                words += [row.flags[-1], text]
    return finished._replace(resume_command=shlex.join(words))


def verdict_on(results: Results) -> tuple[str, int]:
    """What is to be said of results that say next to nothing, and the exit code."""
    from keju.errors import Inconclusive

    names = [entry.name for entry in results.benchmarks if entry.inconclusive]
    if not names:
        return "", 0
    error = Inconclusive("inconclusive", names=", ".join(dict.fromkeys(names)))
    return error.said, error.exit_code


def stored_run(run: str, work_dir: str | None) -> Run:
    """A run that is named by its folder or its id."""
    from keju.config.load import runs_folder
    from keju.runs.run import open_run

    stored = open_run(run, str(runs_folder(work_dir)))
    stored.manifest  # noqa: B018 (one that cannot be read is refused before anything else is said)
    return stored


def names(text: str, flag: str) -> list[str]:
    """The names in ``R,R2``, of which there is one at least."""
    listed = [name.strip() for name in text.split(",") if name.strip()]
    if not listed:
        raise UsageError("cli_value_missing", flag=flag)
    return listed


def reader_names(text: str | None) -> list[str] | None:
    """The names in the value of ``--reader``, if it is given."""
    return None if text is None else names(text, "--reader")


def exam_for(
    name: str,
    *,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    protocol: str | None = None,
    seed: int = 42,
) -> Exam:
    """Load a benchmark as the flags say, for a look at its questions without a model."""
    from keju.benchmarks.prepare import prepare_exam
    from keju.config.load import data_folder

    exam, _ = prepare_exam(
        name,
        args_of(name, dataset_args or {}),
        data_dir=data_folder(data_dir),
        protocol=protocol,
        seed=seed,
    )
    return exam


def args_of(name: str, dataset_args: dict[str, Any]) -> dict[str, Any]:
    """The settings of one benchmark out of ``--dataset-args``, which may not name another."""
    from keju.benchmarks import registry
    from keju.config.load import canonical, merge

    own_name = registry.get(name).name
    args = canonical({"dataset_args": dataset_args}, "--dataset-args")["dataset_args"]
    for other, own in args.items():
        if other not in (name, own_name):
            raise ConfigError("cli_args_of_other", name=other, hint=did_you_mean(other, [own_name]))
        if not isinstance(own, dict):
            raise ConfigError("cli_args_not_mapping", name=other)
    return merge(args.get(name, {}), args.get(own_name, {}))


def exam_args(name: str | None, dataset_args: dict[str, Any] | None) -> dict[str, Any] | None:
    """The same where the benchmark may be left out; None where nothing was given."""
    if not dataset_args:
        return None
    if name is None:
        raise UsageError("cli_args_without_exam")
    return args_of(name, dataset_args)


def all_benchmarks() -> list[Benchmark]:
    """Every benchmark that can be loaded; a broken plug-in is named and left out."""
    from keju.benchmarks import registry

    benchmarks = []
    for name in registry.names():
        try:
            benchmarks.append(registry.get(name))
        except Exception as error:
            note(f"keju: benchmark '{name}' cannot be loaded: {type(error).__name__}: {error}")
    return benchmarks
