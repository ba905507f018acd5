"""What the commands share: what they print, a stored run, an exam without a model; and their edge,
where every way in which a command can end becomes an exit code and one line.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn

from keju.errors import ConfigError, Hint, Interrupted, KejuError, UsageError, did_you_mean
from keju.messages import (
    command_lines,
    printable,
    reader_gone,
    said,
    sentence_lines,
    tolerant,
    write_line,
    write_sentence,
)
from keju.signals import stop_listening

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark, Exam
    from keju.results.schema import Results
    from keju.runs.run import Run
    from keju.task import Finished

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
# Characters that JSON allows in strings and that a terminal obeys: DEL, U+009B, marks of direction
_DRIVES_TERMINAL: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Output(NamedTuple):
    """What a command says, for programs and for people."""

    document: Any
    """Printed as JSON with ``--json``."""
    show: Callable[[], None]
    """Prints the same for people."""
    problem: str = ""
    """What went wrong all the same, for stderr."""
    exit_code: int = 0
    shown: bool = False
    """Whether `show` says the problem too: then stderr has it where somebody else reads that."""


def print_json(document: Any) -> None:
    """Print exactly one JSON document; values that JSON does not have become null."""
    from keju.files import iter_json_pieces

    document_printed.set()
    for piece in iter_json_pieces(document, 2):
        text = _DRIVES_TERMINAL.sub(_escaped, piece.decode())
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # only strings have such characters
            sys.stdout.write(_NOT_ASCII.sub(_escaped, text))
    sys.stdout.write("\n")


def _escaped(character: re.Match[str]) -> str:
    r"""Return a character of a string in JSON as ``\u009b``."""
    return json.dumps(character[0])[1:-1]


def print_lines(*lines: str) -> None:
    """Print lines as they are: commands, paths, texts of others.

    Characters that could drive a terminal or that it cannot hold are replaced.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = "".join(f"{printable(line)}\n" for line in lines)
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def print_sentences(*sentences: str) -> None:
    """Print Keju's own sentences, on a terminal in lines broken between words."""
    for sentence in sentences:
        print_lines(*sentence_lines(sys.stdout, sentence))


def print_steps(lines: Sequence[str], steps: Mapping[str, str]) -> None:
    """Print lines, then commands that can be pasted, each with what it does."""
    from keju.report.table import Screen

    screen = Screen()
    for line in lines:
        screen.line(line)
    screen.commands(list(steps.items()))
    screen.flush()


def note(line: str) -> None:
    """Say something that is not a result, on stderr."""
    write_sentence(tolerant(sys.stderr), line)


def remark(text: str, kind: Literal["own_note", "own_warning"] = "own_note") -> None:
    """Say something in Keju's own name on stderr."""
    note(said(kind, text=text))


def complain(text: str, exit_code: int) -> None:
    """Say why a command ended early: one line for programs, on a terminal broken between words.

    That its user interrupted it is no error. The command that resumes a run has a line of its own,
    on a terminal lines as a shell takes them.
    """
    line = said("own_note" if exit_code == Interrupted.exit_code else "error", text=text)
    before, resume, command = line.partition(said("resume_with", command=""))
    note_step(f"{before}{resume}".rstrip(), command)


def note_step(text: str, command: str) -> None:
    """Say something on stderr, and the command that it leads to on a line of its own.

    On a terminal both are as wide as that is: lines broken between words, and as a shell takes
    them.
    """
    parts, commands = [text], [f"  {command}"]
    if sys.stderr.isatty():
        from keju.cli.help import terminal_width
        from keju.messages.wrapping import wrap

        width = terminal_width()
        parts, commands = wrap(text, width), command_lines(command, width, 2)
    for part in (*parts, *(commands if command else ())):
        write_line(tolerant(sys.stderr), part)


def read_together() -> bool:
    """Whether what goes to stdout and to stderr is read in one place, such as a terminal."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return False


def session_output(finished: Finished, more: Callable[[], None] = lambda: None) -> Output:
    """The results of a session, `more` below them, and why it ended early if it did."""
    from keju.report.terminal import render_results

    def show() -> None:
        render_results(finished.results)
        more()

    if finished.exit_code:
        return Output(finished.document, show, finished.problem, finished.exit_code)
    return Output(finished.document, show, *verdict_on(finished.results))


def verdict_on(results: Results) -> tuple[str, int]:
    """What is to be said of results that say next to nothing, and the exit code."""
    from keju.errors import Inconclusive

    names = [entry.name for entry in results.benchmarks if entry.inconclusive]
    if not names:
        return "", 0
    error = Inconclusive("inconclusive", names=[*dict.fromkeys(names)])
    return error.said, error.exit_code


def stored_run(run: str, work_dir: str | None) -> Run:
    """A run that is named by its folder or its id."""
    from keju.config.load import runs_folder
    from keju.runs.run import open_run

    stored = open_run(run, str(runs_folder(work_dir)))
    stored.manifest  # noqa: B018 (one that cannot be read is refused before anything else is said)
    return stored


def is_run(name: str, work_dir: str | None = None) -> bool:
    """Whether a stored run has this id."""
    from keju.config.load import runs_folder
    from keju.runs.run import find_run

    try:
        return bool(find_run(name, str(runs_folder(work_dir))))
    except UsageError:
        return False


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

    name = found_exam(name, folder := data_folder(data_dir))
    try:
        args = args_of(name, dataset_args or {})
    except ConfigError as error:
        if error.code != "unknown_benchmark" or not is_run(name):
            raise
        raise ConfigError(error.code, name=name, hint=Hint("run_no_exam")) from None
    exam, _ = prepare_exam(
        name,
        args,
        data_dir=folder,
        protocol=protocol,
        seed=seed,
    )
    return exam


NOT_PAGES = (
    *(".pdf", ".png", ".svg", ".jpg", ".jpeg", ".docx", ".xlsx", ".parquet"),
    *(".md", ".txt", ".tex", ".json", ".jsonl", ".csv", ".tsv"),
)
"""Endings of formats that a page is not written in."""


def page_path(output: str | None) -> str | None:
    """The file that a page is written to; UsageError if its ending promises another format."""
    if output is not None and output.lower().endswith(NOT_PAGES):
        raise UsageError("cli_page_ending", file=output)
    return output


def found_exam(name: str, data_dir: str | None) -> str:
    """The name of an exam; a relative path that only the data folder has leads there."""
    from pathlib import Path

    from keju.config.exams import beside

    return beside(name, Path(data_dir)) if data_dir else name


def args_of(name: str, dataset_args: dict[str, Any]) -> dict[str, Any]:
    """The settings of one benchmark out of ``--dataset-args``, which may not name another."""
    from keju.benchmarks import registry
    from keju.config.exams import meant
    from keju.config.load import canonical, merge

    own_name = registry.get(name).name
    args = canonical({"dataset_args": dataset_args}, "--dataset-args")["dataset_args"]
    settings: dict[str, Any] = {}
    for other, own in args.items():
        if other != own_name and meant(other, [name]) is None:
            raise ConfigError("cli_args_of_other", name=other, hint=did_you_mean(other, [own_name]))
        if not isinstance(own, dict):
            raise ConfigError("cli_args_not_mapping", name=other)
        settings = merge(settings, own)
    return settings


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
            problem = f"{type(error).__name__}: {error}"
            remark(said("benchmark_broken", name=name, problem=problem))
    return benchmarks


INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE of sysexits.h."""
BROKEN_PIPE: Final = 141
"""What a shell reports for a program ended by SIGPIPE."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Why nothing more can be written, where no bug is to blame."""
NO_PATH: Final = (errno.ENAMETOOLONG, errno.ELOOP)
"""Why a path can be none, wherever it is looked at first."""
LONGEST_MESSAGE: Final = 1000
"""Characters of a message; what it quotes may be anything."""
ABORTING: Final = ("pyreqwest", "ray", "torch", "xllamacpp")
"""Libraries with threads of their own, which may abort an interpreter that shuts down, or keep it
waiting for work that nobody wants any more."""


def open_streams() -> None:
    """Put the null device where a standard stream is closed, as some starters of jobs leave it.

    Otherwise the next file that is opened, such as a journal, would get the stream's number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # the lowest number that is free is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


document_printed = threading.Event()
"""Set once a command has printed its document under ``--json``: there is exactly one."""


def guarded(run: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run `run` and turn whatever it raises into an exit code and at most one line on stderr.

    Under ``--json`` stdout gets one document all the same, which says what is wrong.
    """
    document_printed.clear()
    try:
        code = run(argv)
        sys.stdout.flush()
    except KejuError as error:
        return _complain(error, error, argv)
    except KeyboardInterrupt as error:
        stop_listening()
        return _complain(error, Interrupted("cli_interrupted"), argv)
    except (BrokenPipeError, SystemExit):  # rich ends so when the reader of stdout has gone away
        return BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_PATH:
            values = {"path": error.filename, "problem": error.strerror}
            return _complain(error, UsageError("cli_no_path", **values), argv)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            values = {"place": error.filename or Hint("the_output"), "problem": error.strerror}
            return _complain(error, UsageError("cli_cannot_write", **values), argv)
        return _complain(error, _internal(error, argv), argv)
    return code


def leave(code: int) -> NoReturn:
    """End the process, without the interpreter's shutdown where that may end in an abort."""
    stop_listening()
    for stream, failed in ((sys.stdout, UsageError.exit_code), (sys.stderr, code)):
        try:
            stream.flush()
        except OSError as error:
            code = code or (BROKEN_PIPE if isinstance(error, BrokenPipeError) else failed)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if reader_gone.is_set():
        code = code or BROKEN_PIPE
    if not sys.modules.keys().isdisjoint(ABORTING):
        os._exit(code)
    sys.exit(code)


class InternalError(KejuError):
    """A fault of Keju itself."""

    exit_code = INTERNAL_ERROR


def _complain(error: BaseException, told: KejuError, argv: list[str]) -> int:
    """Say in one line what went wrong, and under ``--json`` as a document too."""
    if os.environ.get("KEJU_DEBUG"):
        import traceback

        traceback.print_exception(error)
    with suppress(OSError):
        complain(_line(told.said), told.exit_code)
        sys.stderr.flush()
    wanted = "--json" in argv[: argv.index("--") if "--" in argv else None]
    if wanted and not document_printed.is_set():
        import json

        # A sentence that stands in place of a code is named by its kind: `DataError`.
        code = told.code if told.code.isidentifier() else type(told).__name__
        document = {"code": code, "message": _line(str(told)), "exit_code": told.exit_code}
        with suppress(OSError):
            sys.stdout.write(json.dumps({"error": document}, indent=2) + "\n")
            sys.stdout.flush()
    return told.exit_code


def _line(message: str) -> str:
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE - 200]} … {message[-200:]}"
    return printable(message, one_line=True)


def _internal(error: Exception, argv: list[str]) -> InternalError:
    import tempfile
    import traceback

    text = _redacted("".join(traceback.format_exception(error)), argv)
    with tempfile.NamedTemporaryFile(
        "w", prefix="keju-error-", suffix=".txt", encoding="utf-8", delete=False
    ) as file:
        file.write(text)
    summary = _redacted(f"{type(error).__name__}: {error}", argv)
    return InternalError("cli_internal_error", summary=summary, file=file.name)


def _redacted(text: str, argv: list[str]) -> str:
    """`text` without the keys and the URLs' credentials of this process."""
    from keju.cli.options import ADDRESS, OPTIONS
    from keju.config.address import PROVIDERS, shown_url
    from keju.redaction import hide_secrets

    providers = PROVIDERS.values()

    def values(metavar: str, variables: Sequence[str]) -> list[str]:
        """What the command line holds for flags of this kind, and the environment."""
        flags = {flag for row in OPTIONS.values() if row.metavar == metavar for flag in row.flags}
        texts = [os.environ.get(name, "") for name in variables]
        texts += [value for flag, value in pairwise(argv) if flag in flags]
        texts += [arg.partition("=")[2] for arg in argv if arg.partition("=")[0] in flags]
        return [value for value in texts if value]

    keys = values("KEY", ["KEJU_API_KEY", *(each.key_variable for each in providers)])
    text = hide_secrets(text, keys)
    for url in values(ADDRESS, ["KEJU_API_URL", *(each.url_variable for each in providers)]):
        text = text.replace(url, shown_url(url))
    return text
