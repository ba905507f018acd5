"""Say in one line what is wrong with a run folder: the viewer also shows runs of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from starlette.exceptions import HTTPException

from keju.errors import DataError, KejuError

Made = TypeVar("Made")
Given = ParamSpec("Given")


class Stopped(Exception):
    """The browser has left, so the page was stopped."""


def in_words(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Return a function that raises DataError where files of a run make another one fail.

    The files of a run may hold anything, and may change while a page is made.
    """

    @wraps(make)
    def made(*values: Given.args, **named: Given.kwargs) -> Made:
        try:
            return make(*values, **named)
        except (KejuError, HTTPException, Stopped):
            raise
        except OSError as error:
            where, problem = error.filename or "", error.strerror or type(error).__name__
            raise DataError("file_unreadable", where=where, problem=problem) from None
        except Exception as error:
            raise DataError("view_run_damaged", problem=type(error).__name__) from error

    return made
