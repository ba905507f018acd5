"""Compiled templates, which are kept next to the templates as Python keeps compiled modules."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache


class CompiledTemplates(FileSystemBytecodeCache):
    """The compiled templates in the folder ``__pycache__`` of this package.

    A template is compiled again if its text, or the version of Python or Jinja, has changed.
    Nothing is written where Python itself would write no compiled modules.
    """

    def __init__(self) -> None:
        folder = Path(__file__).with_name("__pycache__")
        super().__init__(str(folder), f"template-jinja{version('jinja2')}-%s.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a compiled template, if the folder exists and can be written."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)
