"""The edge of the command line: every way a command can end becomes an exit code and one line."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NoReturn

from keju.errors import KejuError, UsageError, did_you_mean

if TYPE_CHECKING:
    from keju.cli import Command

INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE of sysexits.h."""
BROKEN_PIPE: Final = 141
"""What a shell reports for a program ended by SIGPIPE."""
INTERRUPTED: Final = 130
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Why nothing more can be written, where no bug is to blame."""
SECRET_VARIABLES: Final = ("KEJU_API_KEY", "OPENAI_API_KEY")
SECRET_FLAG: Final = "--api-key"
URL_VARIABLES: Final = ("KEJU_API_URL", "OPENAI_BASE_URL")
URL_FLAGS: Final = ("--api-url", "-b")
HTTP_CLIENT: Final = "pyreqwest"


def guarded(run: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run `run` and turn whatever it raises into an exit code and at most one line on stderr."""
    try:
        code = run(argv)
        sys.stdout.flush()
    except KejuError as error:
        return _complain(error, str(error), error.exit_code)
    except KeyboardInterrupt as error:
        return _complain(error, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in NO_ROOM:
            return _internal(error, argv)
        where = error.filename or "the output"
        return _complain(error, f"cannot write {where}: {error.strerror}", UsageError.exit_code)
    except Exception as error:
        return _internal(error, argv)
    return code


def invoke(command: Command, argv: list[str]) -> int:
    """Run the typer application of one command; its usage errors become `UsageError`."""
    import importlib

    import typer
    from typer.main import get_command

    app = get_command(importlib.import_module(command.module).app)
    usage_errors: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        with app.make_context(f"keju {command.name}", list(argv)) as context:
            code = app.invoke(context)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:  # how rich ends when the reader of stdout has gone away
        raise BrokenPipeError from None
    except usage_errors as error:
        raise UsageError(f"{_usage(error)}; see 'keju {command.name} --help'") from None
    return code if isinstance(code, int) else 0


def leave(code: int) -> NoReturn:
    """End the process, without the interpreter's shutdown where the HTTP client was in use."""
    for stream, failed in ((sys.stdout, UsageError.exit_code), (sys.stderr, code)):
        try:
            stream.flush()
        except OSError as error:
            code = code or (BROKEN_PIPE if isinstance(error, BrokenPipeError) else failed)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if HTTP_CLIENT in sys.modules:
        os._exit(code)
    sys.exit(code)


def _complain(error: BaseException, message: str, code: int) -> int:
    if os.environ.get("KEJU_DEBUG"):
        import traceback

        traceback.print_exception(error)
    one_line = " ".join(message.split())
    with suppress(OSError):
        sys.stderr.write(f"keju: error: {one_line}\n")
        sys.stderr.flush()
    return code


def _internal(error: Exception, argv: list[str]) -> int:
    import tempfile
    import traceback

    text = _redacted("".join(traceback.format_exception(error)), argv)
    with tempfile.NamedTemporaryFile(
        "w", prefix="keju-error-", suffix=".txt", encoding="utf-8", delete=False
    ) as file:
        file.write(text)
    summary = _redacted(f"{type(error).__name__}: {error}", argv)
    return _complain(error, f"internal error: {summary}; details in {file.name}", INTERNAL_ERROR)


def _redacted(text: str, argv: list[str]) -> str:
    """`text` without the keys and the URLs' credentials of this process."""
    from keju.config.address import shown_url

    for secret in _given(argv, (SECRET_FLAG,), SECRET_VARIABLES):
        text = text.replace(secret, "***")
    for url in _given(argv, URL_FLAGS, URL_VARIABLES):
        text = text.replace(url, shown_url(url))
    return text


def _given(argv: list[str], flags: Sequence[str], variables: Sequence[str]) -> list[str]:
    """The values that the command line and the environment hold under these names."""
    values = [os.environ.get(name, "") for name in variables]
    values += [value for flag, value in pairwise(argv) if flag in flags]
    values += [arg.partition("=")[2] for arg in argv if arg.partition("=")[0] in flags]
    return [value for value in values if value]


def _usage(error: BaseException) -> str:
    """One line for what typer complains about, with the nearest option where one is unknown."""
    option = getattr(error, "option_name", None)
    context = getattr(error, "ctx", None)
    if option is not None and hasattr(error, "possibilities") and context is not None:
        known = [name for p in context.command.get_params(context) for name in p.opts]
        long = [name for name in known if name.startswith("--")]
        hint = did_you_mean(option, long) if option.startswith("--") else ""
        return f"unknown option {option}" + (hint if "did you mean" in hint else "")
    message: str = getattr(error, "format_message", error.__str__)()
    message = " ".join(message.split()).replace("Value error, ", "").rstrip(".")
    return message[:1].lower() + message[1:]
