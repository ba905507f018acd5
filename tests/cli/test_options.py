"""Options are rows of one table: every command takes them in the same way."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic_core.core_schema import ErrorType

from keju.cli import COMMANDS as ENTRIES
from keju.cli.command import COMMANDS, Command, collect, parse, repeat_flags
from keju.cli.options import MAPPING, OPTIONS, OptionRow
from keju.config import GenerationConfig, JudgeConfig, TaskConfig
from keju.config.arms import SandboxSettings
from keju.config.cluster import RaySettings
from keju.config.task import DatasetArgs
from keju.errors import UsageError
from keju.messages import catalogue
from tests.cli.conftest import Keju

for entry in ENTRIES:
    importlib.import_module(entry.module)

VALUED = [
    (command, name)
    for command in COMMANDS.values()
    for name, row in command.rows.items()
    if row.flags and row.kind is not bool
]
"""Every flag of every command that takes a value."""


def value_of(row: OptionRow) -> str:
    """A value that the row takes."""
    return row.kind[0] if isinstance(row.kind, tuple) else "1"


def arguments(command: Command) -> list[str]:
    """What the command wants beside its flags."""
    return [value_of(row) for row in command.rows.values() if row.spelling[:1].isupper()]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("--datasets a b --limit 1", "--datasets a --datasets b --limit 1"),
        ("--datasets a,b c", "--datasets a,b --datasets c"),
        ("--datasets=a b", "--datasets=a --datasets b"),
        ("--limit 1 --datasets a --datasets b", "--limit 1 --datasets a --datasets b"),
        ("--model x y", "--model x y"),
        ("--datasets a -s k=v b", "--datasets a -s k=v b"),
    ],
)
def test_several_values_after_one_flag(argv: str, expected: str) -> None:
    assert repeat_flags(argv.split(), ("--datasets",)) == expected.split()


def test_every_row_is_taken_by_a_command_and_no_spelling_twice() -> None:
    row_names = {row.name for command in COMMANDS.values() for row in command.rows.values()}
    assert row_names == set(OPTIONS)
    for command in COMMANDS.values():
        flags = [flag for row in command.rows.values() for flag in row.flags]
        assert len(flags) == len(set(flags)), command.name


def test_every_setting_is_a_field_of_the_configuration() -> None:
    for row in OPTIONS.values():
        if row.field:
            field, _, below = row.field.partition(".")
            models: dict[str, type[BaseModel]] = {
                "judge": JudgeConfig,
                "sandbox": SandboxSettings,
                "ray": RaySettings,
                "dataset_args": DatasetArgs,
            }
            below = below.removeprefix("NAME.")  # an exam's
            assert field in TaskConfig.model_fields
            assert not below or below in models.get(field, GenerationConfig).model_fields
    rows = COMMANDS["eval"].rows
    settings = {rows[name].field.partition(".")[0] for name in COMMANDS["eval"].settings}
    assert settings == set(TaskConfig.model_fields)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"), VALUED, ids=lambda row_or_name: getattr(row_or_name, "name", row_or_name)
)
def test_a_flag_with_a_value_is_given_once_unless_it_is_a_list(command: Command, name: str) -> None:
    row = command.rows[name]
    value = value_of(row)
    once = parse(command, [*arguments(command), f"{row.flags[0]}={value}"])
    for repeated_flag in row.flags:
        words = [*arguments(command), row.flags[0], value, repeated_flag, value]
        if row.kind is list:
            assert parse(command, words)[name] == [value, value]
            continue
        with pytest.raises(UsageError, match=re.escape(f"{row.flags[0]} is given twice")) as raised:
            parse(command, words)
        assert raised.value.exit_code == 2
    expected: object = [value] if row.kind is list else value
    assert once[name] == (row.kind(value) if row.kind in (int, float) else expected)


def test_settings_of_tools_are_refused_without_tools(keju: Keju) -> None:
    """Version 1.0 accepted them: a run that has begun goes on, with a warning."""
    words = ("eval", "--model", "scripted", "--datasets", "demo", "--limit", "1", "--run-id", "r")
    idle = ("--agent", "max_iterations=3,protocol=text")
    for flags in (idle, (*idle, "--dry-run")):
        refusal = keju(*words, *flags)
        assert refusal.code == 2
        assert "agent.max_iterations, agent.protocol: no effect without tools" in refusal.err
        assert "--tools python" in refusal.err
        assert not Path("runs").exists()
    assert keju(*words, "--agent", "timeout_seconds=60", "--no-report").code == 0
    resumed = keju(*words, "--agent", "timeout_seconds=60,max_iterations=3", "--no-report")
    assert resumed.code == 0
    assert "agent.max_iterations: no effect, since this run has no tools" in resumed.err


def test_given_twice_is_one_line(keju: Keju) -> None:
    ran = keju("eval", "--protocol", "a", "--protocol=b", "-m", "x", "--datasets", "d")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "keju: error: --protocol is given twice but takes one value; see 'keju eval --help'\n"
    )
    assert "-mb" not in ran.err
    assert "--model is given twice" in keju("eval", "-ma", "-mb").err


def test_flags_that_are_not_given_set_nothing() -> None:
    command = COMMANDS["eval"]
    values = parse(command, [])
    assert collect({command.rows[name]: values[name] for name in command.settings}) == {}
    values = parse(command, ["--datasets", "a,b", "c", "--resume"])
    assert collect({command.rows[name]: values[name] for name in command.settings}) == {
        "datasets": ["a", "b", "c"],
        "resume": True,
    }


def test_a_flag_of_one_key_goes_before_the_mapping() -> None:
    rows = COMMANDS["judge"].rows
    values = {rows["model"]: "b", rows["judge"]: '{"model": "a", "repeats": 2}'}
    assert collect(values) == {"judge": {"model": "b", "repeats": 2}}


def test_headers_stay_texts() -> None:
    assert OPTIONS["headers"].metavar == MAPPING
    values = {OPTIONS["headers"]: "X-Id=007,X-B=a=b"}
    assert collect(values) == {"headers": {"X-Id": "007", "X-B": "a=b"}}


def test_every_error_has_its_sentence_in_both_languages() -> None:
    source = Path(importlib.import_module("keju").__file__ or "").parent
    codes = {
        code
        for room in ("cli", "config")
        for file in (source / room).glob("*.py")
        for code in re.findall(r'"((?:cli|config|endpoint)_[a-z0-9_]+)"', file.read_text())
    }
    assert len(codes) > 70
    for language in ("en", "zh"):
        assert codes - set(catalogue(language)) == set()
    catalogued = {code for code in catalogue("en") if code.startswith(("cli_", "config_"))}
    of_pydantic = {f"config_{kind}" for kind in get_args(ErrorType)}
    assert catalogued - codes - of_pydantic == set()
