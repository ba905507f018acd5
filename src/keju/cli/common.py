"""Shared parts of the commands: printing, loading stored runs and exams, and exit codes.

`guarded` turns every way in which a command can end into an exit code and one line.
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

from keju.errors import (
    ConfigError,
    Interrupted,
    KejuError,
    TranslatableText,
    UsageError,
    did_you_mean,
)
from keju.messages import (
    command_lines,
    label_text,
    printable,
    reader_gone,
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
    from keju.task import FinishedTask

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
# JSON allows these in strings, but terminals obey them: DEL, U+009B, marks of direction
_DRIVES_TERMINAL: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class CommandOutput(NamedTuple):
    """The output of a command, for programs and for people."""

    document: Any
    """Printed as JSON with ``--json``."""
    show: Callable[[], None]
    """Prints the output for people."""
    problem: str = ""
    """A problem to report on stderr."""
    exit_code: int = 0
    is_problem_shown: bool = False
    """Whether `show` prints the problem, too. Then stderr repeats it only if it is read separately.
    """


def print_json(document: Any) -> None:
    """Print exactly one JSON document. Values that JSON does not have become null."""
    from keju.files import iter_json_pieces

    document_printed.set()
    for piece in iter_json_pieces(document, 2):
        text = _DRIVES_TERMINAL.sub(_escape, piece.decode())
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # only strings have such characters
            sys.stdout.write(_NOT_ASCII.sub(_escape, text))
    sys.stdout.write("\n")


def _escape(character: re.Match[str]) -> str:
    r"""Return a character in JSON's notation: ``\u009b``."""
    return json.dumps(character[0])[1:-1]


def print_lines(*lines: str) -> None:
    """Print lines unchanged: commands, paths, and texts from other sources.

    Characters that could control a terminal, or that the stream cannot encode, are replaced.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = "".join(f"{printable(line)}\n" for line in lines)
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def print_sentences(*sentences: str) -> None:
    """Print Keju's own sentences. On a terminal they are wrapped between words."""
    for sentence in sentences:
        print_lines(*sentence_lines(sys.stdout, sentence))


def print_steps(lines: Sequence[str], steps: Mapping[str, str]) -> None:
    """Print lines, then commands to paste, each with its purpose."""
    from keju.reporting.table import TerminalScreen

    screen = TerminalScreen()
    for line in lines:
        screen.line(line)
    screen.commands(list(steps.items()))
    screen.flush()


def note(line: str) -> None:
    """Print a line that is not a result on stderr."""
    write_sentence(tolerant(sys.stderr), line)


def remark(text: str, kind: Literal["own_note", "own_warning"] = "own_note") -> None:
    """Print a note or a warning by Keju on stderr."""
    note(label_text(kind, text=text))


def complain(text: str, exit_code: int) -> None:
    """Print why a command ended early.

    An interruption by the user is a note, not an error. The command that resumes a run gets its own
    line. Programs get one line; on a terminal text is wrapped, and commands break as a shell
    allows.
    """
    line = label_text("own_note" if exit_code == Interrupted.exit_code else "error", text=text)
    message, resume, command = line.partition(label_text("resume_with", command=""))
    note_step(f"{message}{resume}".rstrip(), command)


def note_step(text: str, command: str) -> None:
    """Print a text on stderr, and the next command on its own line.

    On a terminal both are wrapped: text between words, commands as a shell allows.
    """
    parts, commands = [text], [f"  {command}"]
    if sys.stderr.isatty():
        from keju.cli.help import terminal_width
        from keju.messages.wrapping import wrap

        width = terminal_width()
        parts, commands = wrap(text, width), command_lines(command, width, 2)
    for part in (*parts, *(commands if command else ())):
        write_line(tolerant(sys.stderr), part)


def is_same_stream() -> bool:
    """Whether stdout and stderr go to the same place, such as a terminal."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # closed, or not a file
        return False


def session_output(
    finished: FinishedTask,
    show_more: Callable[[], None] = lambda: None,
    *,
    verbose: bool = False,
    show_details: Callable[[], None] = lambda: None,
    show_last: Callable[[], None] = lambda: None,
) -> CommandOutput:
    """Return the results of a session as output, with the reason why it ended early, if it did.

    `show_details` prints more below complete results, `show_more` the next steps below them, and
    `show_last` prints at the end of a short answer, too.
    """

    def show() -> None:
        show_results(
            finished.results, verbose=verbose, show_details=show_details, show_more=show_more
        )
        show_last()

    if finished.exit_code:
        return CommandOutput(finished.document, show, finished.problem, finished.exit_code)
    return CommandOutput(finished.document, show, *find_problem(finished.results))


def show_results(
    results: Results,
    *,
    verbose: bool = False,
    show_details: Callable[[], None] = lambda: None,
    show_more: Callable[[], None] = lambda: None,
) -> None:
    """Print results: the short answer on a terminal, everything in a pipe and with ``--verbose``.

    `show_details` prints more below complete results. `show_more` prints the next steps in a pipe;
    the short answer has its own.
    """
    from keju.reporting.summary import render_summary
    from keju.reporting.terminal import render_results

    is_terminal = sys.stdout.isatty()
    if verbose or not is_terminal:
        render_results(results)
        show_details()
    if is_terminal:
        render_summary(results)
    else:
        show_more()


def is_brief(verbose: bool) -> bool:
    """Return whether a command prints its short answer: on a terminal, without ``--verbose``."""
    return sys.stdout.isatty() and not verbose


def find_problem(results: Results) -> tuple[str, int]:
    """Return the problem of results with almost no graded answers, and the exit code."""
    from keju.errors import Inconclusive

    names = [entry.name for entry in results.benchmarks if entry.inconclusive]
    if not names:
        return "", 0
    error = Inconclusive("inconclusive", names=[*dict.fromkeys(names)])
    return error.message, error.exit_code


def open_stored_run(run: str, work_dir: str | None) -> Run:
    """Return the run with this folder or id."""
    from keju.config.load import runs_folder
    from keju.runs.run import open_run

    stored = open_run(run, str(runs_folder(work_dir)))
    stored.manifest  # noqa: B018 (raises now if the manifest cannot be read)
    return stored


def is_run(name: str, work_dir: str | None = None) -> bool:
    """Whether a stored run has this id."""
    from keju.config.load import runs_folder
    from keju.runs.run import find_run

    try:
        return bool(find_run(name, str(runs_folder(work_dir))))
    except UsageError:
        return False


def split_names(text: str, flag: str) -> list[str]:
    """Return the names in ``R,R2``; UsageError if there is none."""
    stripped_names = [name.strip() for name in text.split(",") if name.strip()]
    if not stripped_names:
        raise UsageError("cli_value_missing", flag=flag)
    return stripped_names


def reader_names(text: str | None) -> list[str] | None:
    """Return the names in the value of ``--reader``; None if it is not set."""
    return None if text is None else split_names(text, "--reader")


def load_exam(
    name: str,
    *,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    protocol: str | None = None,
    seed: int = 42,
) -> Exam:
    """Load a benchmark according to the flags, to look at its questions without a model."""
    from keju.benchmarks.prepare import prepare_exam
    from keju.config.load import data_folder

    name = find_exam(name, folder := data_folder(data_dir))
    try:
        args = args_of(name, dataset_args or {})
    except ConfigError as error:
        if error.code != "unknown_benchmark" or not is_run(name):
            raise
        raise ConfigError(error.code, name=name, hint=TranslatableText("run_no_exam")) from None
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
"""File endings of formats other than HTML."""


def page_path(output: str | None) -> str | None:
    """Return the file for a page; UsageError if its ending belongs to another format."""
    if output is not None and output.lower().endswith(NOT_PAGES):
        raise UsageError("cli_page_ending", file=output)
    return output


def find_exam(name: str, data_dir: str | None) -> str:
    """Return the name of an exam. A relative path is also looked up in the data folder."""
    from pathlib import Path

    from keju.config.exams import find_in_folder

    return find_in_folder(name, Path(data_dir)) if data_dir else name


def args_of(name: str, dataset_args: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of one benchmark from ``--dataset-args``, which may not name another."""
    from keju.benchmarks import registry
    from keju.config.exams import resolve_name
    from keju.config.load import canonical, merge

    benchmark_name = registry.get(name).name
    args = canonical({"dataset_args": dataset_args}, "--dataset-args")["dataset_args"]
    settings: dict[str, Any] = {}
    for args_name, exam_settings in args.items():
        if args_name != benchmark_name and resolve_name(args_name, [name]) is None:
            raise ConfigError(
                "cli_args_of_other", name=args_name, hint=did_you_mean(args_name, [benchmark_name])
            )
        if not isinstance(exam_settings, dict):
            raise ConfigError("cli_args_not_mapping", name=args_name)
        settings = merge(settings, exam_settings)
    return settings


def exam_args(name: str | None, dataset_args: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the same for an optional benchmark; None without settings."""
    if not dataset_args:
        return None
    if name is None:
        raise UsageError("cli_args_without_exam")
    return args_of(name, dataset_args)


def all_benchmarks() -> list[Benchmark]:
    """Return every benchmark that can be loaded. Broken plug-ins are reported and left out."""
    from keju.benchmarks import registry

    benchmarks = []
    for name in registry.names():
        try:
            benchmarks.append(registry.get(name))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            remark(label_text("benchmark_broken", name=name, problem=problem))
    return benchmarks


INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE of sysexits.h."""
BROKEN_PIPE: Final = 141
"""The exit code that a shell reports for a program ended by SIGPIPE."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""System errors that prevent writing and are not bugs."""
NO_PATH: Final = (errno.ENAMETOOLONG, errno.ELOOP)
"""System errors for an impossible path, wherever it is first used."""
LONGEST_MESSAGE: Final = 1000
"""The most characters of a message, because it may quote anything."""
ABORTING: Final = ("pyreqwest", "ray", "torch", "xllamacpp")
"""Libraries with threads that may abort an interpreter that shuts down, or delay its end."""


def open_streams() -> None:
    """Open the null device for each standard stream that is closed, as some job schedulers leave
    it.

    Otherwise the next opened file, such as a journal, would get the stream's number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # this is the lowest free number
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


document_printed = threading.Event()
"""Set when a command has printed its ``--json`` document, because there must be exactly one."""


def run_guarded(run: Callable[[list[str]], int], argv: list[str]) -> int:
    """Call `run` and turn any exception into an exit code and at most one line on stderr.

    With ``--json`` stdout gets one document with the error.
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
    except (BrokenPipeError, SystemExit):  # rich raises SystemExit if the reader of stdout is gone
        return BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_PATH:
            values = {"path": error.filename, "problem": error.strerror}
            return _complain(error, UsageError("cli_no_path", **values), argv)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            values = {
                "place": error.filename or TranslatableText("the_output"),
                "problem": error.strerror,
            }
            return _complain(error, UsageError("cli_cannot_write", **values), argv)
        return _complain(error, _report_internal_error(error, argv), argv)
    return code


def leave(code: int) -> NoReturn:
    """End the process, without the interpreter's shutdown if that could abort."""
    stop_listening()
    for stream, failure_code in ((sys.stdout, UsageError.exit_code), (sys.stderr, code)):
        try:
            stream.flush()
        except OSError as error:
            code = code or (BROKEN_PIPE if isinstance(error, BrokenPipeError) else failure_code)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if reader_gone.is_set():
        code = code or BROKEN_PIPE
    if not sys.modules.keys().isdisjoint(ABORTING):
        os._exit(code)
    sys.exit(code)


class InternalError(KejuError):
    """A bug in Keju itself."""

    exit_code = INTERNAL_ERROR


def _complain(error: BaseException, reported_error: KejuError, argv: list[str]) -> int:
    """Print the error in one line, and with ``--json`` as a document, too."""
    if os.environ.get("KEJU_DEBUG"):
        import traceback

        traceback.print_exception(error)
    with suppress(OSError):
        complain(_shorten_message(reported_error.message), reported_error.exit_code)
        sys.stderr.flush()
    is_json_requested = "--json" in argv[: argv.index("--") if "--" in argv else None]
    if is_json_requested and not document_printed.is_set():
        import json

        # A sentence instead of a code is named by its class: `DataError`.
        code = (
            reported_error.code
            if reported_error.code.isidentifier()
            else type(reported_error).__name__
        )
        document = {
            "code": code,
            "message": _shorten_message(str(reported_error)),
            "exit_code": reported_error.exit_code,
        }
        with suppress(OSError):
            sys.stdout.write(json.dumps({"error": document}, indent=2) + "\n")
            sys.stdout.flush()
    return reported_error.exit_code


def _shorten_message(message: str) -> str:
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE - 200]} … {message[-200:]}"
    return printable(message, one_line=True)


def _report_internal_error(error: Exception, argv: list[str]) -> InternalError:
    import tempfile
    import traceback

    text = _redact("".join(traceback.format_exception(error)), argv)
    with tempfile.NamedTemporaryFile(
        "w", prefix="keju-error-", suffix=".txt", encoding="utf-8", delete=False
    ) as file:
        file.write(text)
    summary = _redact(f"{type(error).__name__}: {error}", argv)
    return InternalError("cli_internal_error", summary=summary, file=file.name)


def _redact(text: str, argv: list[str]) -> str:
    """Return `text` without this process's keys and without credentials in URLs."""
    from keju.cli.options import ADDRESS, OPTIONS
    from keju.config.address import PROVIDERS, strip_credentials
    from keju.redaction import hide_secrets

    providers = PROVIDERS.values()

    def secret_values(metavar: str, variables: Sequence[str]) -> list[str]:
        """Return the values of these flags on the command line, and of these variables."""
        flags = {flag for row in OPTIONS.values() if row.metavar == metavar for flag in row.flags}
        texts = [os.environ.get(name, "") for name in variables]
        texts += [value for flag, value in pairwise(argv) if flag in flags]
        texts += [arg.partition("=")[2] for arg in argv if arg.partition("=")[0] in flags]
        return [value for value in texts if value]

    keys = secret_values(
        "KEY", ["KEJU_API_KEY", *(provider.key_variable for provider in providers)]
    )
    text = hide_secrets(text, keys)
    for url in secret_values(
        ADDRESS, ["KEJU_API_URL", *(provider.url_variable for provider in providers)]
    ):
        text = text.replace(url, strip_credentials(url))
    return text
