"""Describe problems of a run folder in one line, because runs may come from other people."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from starlette.exceptions import HTTPException

from keju.errors import DataError, KejuError

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class PageStopped(Exception):
    """The browser has disconnected, so the page was stopped."""


def with_data_errors(make: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wrap a function so that it raises DataError if files of a run make it fail.

    The files of a run may contain anything, and may change while a page is rendered.
    """

    @wraps(make)
    def wrapper(*values: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        try:
            return make(*values, **keywords)
        except (KejuError, HTTPException, PageStopped):
            raise
        except OSError as error:
            where, problem = error.filename or "", error.strerror or type(error).__name__
            raise DataError("file_unreadable", where=where, problem=problem) from None
        except Exception as error:
            raise DataError("view_run_damaged", problem=type(error).__name__) from error

    return wrapper
