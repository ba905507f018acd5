"""Own exams whose answers are programs: ``grader: python``, columns ``tests``, ``entry_point``."""

from __future__ import annotations

from keju.benchmarks.base import Reader
from keju.benchmarks.custom.exam_file import FIELDS, ExamFile
from keju.benchmarks.programs import ProgramTests, program_readers
from keju.errors import ConfigError
from keju.types import Sample

TESTS, ENTRY, PRELUDE = "tests", "entry_point", "prelude"
"""The columns: the tests, the function that they call, and code that runs before them."""


def make_tests(sample: Sample) -> ProgramTests:
    """Return the tests of a row."""
    fields = sample.metadata[FIELDS]
    prelude = str(fields.get(PRELUDE, ""))
    return ProgramTests(entry_point=fields[ENTRY], tests=fields[TESTS], prelude=prelude)


def make_program_readers(exam: ExamFile) -> tuple[str, dict[str, Reader]]:
    """Return the name of the main reader, and the readers of programs."""
    readers = program_readers(())
    name = exam.reader if isinstance(exam.reader, str) else "robust"
    if exam.kind not in (None, "free") or name not in readers:
        raise ConfigError("custom.reader_of_programs", name=name, valid=[*readers])
    return name, readers
