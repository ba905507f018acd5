"""The edge of the command line: every way a command can end becomes an exit code and one line."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final, NoReturn

from keju.cli.common import note
from keju.errors import Interrupted, KejuError, UsageError
from keju.messages import printable
from keju.signals import stop_listening

INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE of sysexits.h."""
BROKEN_PIPE: Final = 141
"""What a shell reports for a program ended by SIGPIPE."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Why nothing more can be written, where no bug is to blame."""
LONGEST_MESSAGE: Final = 1000
"""Characters of a message; what it quotes may be anything."""
HTTP_CLIENT: Final = "pyreqwest"


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
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            values = {"place": error.filename or "the output", "problem": error.strerror}
            return _complain(error, UsageError("cli_cannot_write", **values), argv)
        return _complain(error, _internal(error, argv), argv)
    return code


def leave(code: int) -> NoReturn:
    """End the process, without the interpreter's shutdown where the HTTP client was in use."""
    stop_listening()
    for stream, failed in ((sys.stdout, UsageError.exit_code), (sys.stderr, code)):
        try:
            stream.flush()
        except OSError as error:
            code = code or (BROKEN_PIPE if isinstance(error, BrokenPipeError) else failed)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if HTTP_CLIENT in sys.modules:
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
        note(f"keju: error: {_line(told.said)}")
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
    from keju.cli.options import OPTIONS
    from keju.config.address import shown_url
    from keju.config.providers import PROVIDERS

    providers = PROVIDERS.values()

    def values(metavar: str, variables: Sequence[str]) -> list[str]:
        """What the command line holds for flags of this kind, and the environment."""
        flags = {flag for row in OPTIONS.values() if row.metavar == metavar for flag in row.flags}
        texts = [os.environ.get(name, "") for name in variables]
        texts += [value for flag, value in pairwise(argv) if flag in flags]
        texts += [arg.partition("=")[2] for arg in argv if arg.partition("=")[0] in flags]
        return [value for value in texts if value]

    for secret in values("KEY", ["KEJU_API_KEY", *(each.key_variable for each in providers)]):
        text = text.replace(secret, "***")
    for url in values("URL", ["KEJU_API_URL", *(each.url_variable for each in providers)]):
        text = text.replace(url, shown_url(url))
    return text
