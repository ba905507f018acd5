"""Errors for unknown flags and extra words: they suggest the nearest flag or setting.

This module is imported only after such an error. A nested setting has no separate flag. For
``--subset word_sorting`` the error suggests ``--dataset-args 'demo.subset_list=[word_sorting]'``,
with the user's exam and value, ready to paste. If the command has another flag for the setting, the
error suggests that one, such as ``--filter-category word_sorting``. For a command with ``-s`` only,
it suggests ``-s limit=5``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Final, get_origin

from keju.cli.options import MAPPING
from keju.config.exams import is_path, resolve_name, short_name
from keju.config.load import OTHER_NAMES, find_setting_path
from keju.config.strict import find_settings_class, parse_mapping, parse_yaml, union_members
from keju.config.task import DatasetArgs, TaskConfig
from keju.errors import ConfigError, UsageError, find_nearest

if TYPE_CHECKING:
    from pydantic import BaseModel

    from keju.cli.command import Command
    from keju.cli.options import OptionRow

ECHOED: Final = ("dataset_args", "generation_config", "datasets", "limit", "total", "ids")
"""Settings whose values may be repeated in errors. Others may be keys."""
_PLAIN = re.compile(r"[\w.-]{1,64}")
"""A value that needs no quotes: ``navigate``, ``0.6``."""
_OF_VALUE = re.compile(r"[=\[\]{}]")
"""Characters that occur only in a piece of settings: ``few_shot_num=0``, ``snarks]``."""
KEY = re.compile(r"[A-Za-z_][\w-]{0,63}")
"""A name that can be an exam in ``NAME.subset_list=[A]``."""
EXAM_FLAGS: Final = ("dataset", "benchmark")
"""Flags for the name of an exam, in commands without ``--datasets``."""
FILES: Final = (".yaml", ".yml", ".json")
"""File endings of settings files."""
SHORT_FLAGS: Final = {"dataset_args.NAME.few_shot_num": "--few-shot"}
"""Flags for a setting of the exams."""
EXAM: Final = "NAME"
"""Stands for an exam with an unknown name."""


def unknown_option(option: str, words: Sequence[str], command: Command) -> UsageError:
    """Return the error for an unknown flag, with the likely meaning."""
    rows = command.rows.values()
    name = option.strip("-").replace("-", "_")
    error_values = {"option": option, "command": command.name}
    long_flags = [flag for row in rows for flag in row.flags if flag.startswith("--")]
    place = (
        (_find_setting(name) or _find_near_setting(option, long_flags))
        if option.startswith("--")
        else None
    )
    if (short_flag := SHORT_FLAGS.get(place or "")) in long_flags:
        return UsageError("cli_unknown_option_near", near=short_flag, **error_values)
    if place is not None:
        outer, *inner = place.split(".")
        by_field = {row.field: row for row in rows if row.flags}
        row = by_field.get(place)
        # the flag has another name in this command
        if row is not None and row.name.rpartition(".")[2] != place:
            example = " ".join(
                f"{row.flags[0]} {value}" for value in _values_or_placeholder(outer, option, words)
            )
            return UsageError(
                "cli_unknown_option_here", flag=row.flags[0], example=example, **error_values
            )
        if inner and outer in by_field:
            flag = by_field[outer].flags[0]
            example = f"{flag} {_make_assignment(outer, inner, option, words, command)}"
            return UsageError(
                "cli_unknown_option_inside", flag=flag, example=example, **error_values
            )
        if row is None and "overrides" in command.rows:
            example = _make_overrides(place, option, words)
            example = (
                example or f"-s {_make_assignment(outer, [outer, *inner], option, words, command)}"
            )
            return UsageError("cli_unknown_option_set", example=example, **error_values)
    other_flag = "--" + OTHER_NAMES.get(name, "").replace("_", "-")
    near = find_nearest(option, long_flags) if option.startswith("--") else None
    near = other_flag if other_flag in long_flags else near
    code = "cli_unknown_option_near" if near else "cli_unknown_option"
    return UsageError(code, near=near, **error_values)


def repeated_flag_error(row: OptionRow, values: Sequence[str], command: Command) -> UsageError:
    """Return the error for a repeated flag. For settings, it shows them as one value."""
    error_values = {"flag": row.flags[0], "command": command.name}
    if row.metavar != MAPPING:
        return UsageError("cli_flag_twice", **error_values)
    return UsageError(
        "cli_settings_twice", example=_quote_settings(row, ",".join(values)), **error_values
    )


def extra_words_error(
    extra_words: Sequence[str], words: Sequence[str], command: Command
) -> UsageError:
    """Return the error for extra words, with the flag that accepts such a word.

    Examples: ``keju eval demo`` lacks ``--datasets``, ``keju run arms.yaml`` lacks ``-c``, and
    ``--dataset-args demo.subset_list=[a, b]`` lacks quotes.
    """
    error_values = {"words": " ".join(extra_words), "command": command.name}
    if (broken_value := _find_broken_value(words, command)) is not None:
        row, value = broken_value
        example = _quote_settings(row, value)
        return UsageError("cli_words_of_value", flag=row.flags[0], example=example, **error_values)
    rows = [row for row in command.rows.values() if row.flags]
    if (model_and_exams := _find_model_and_exams(extra_words, words, rows)) is not None:
        return UsageError(
            "cli_words_for_option",
            flag=model_and_exams[0],
            value=model_and_exams[1],
            **error_values,
        )
    arguments = [row for row in command.rows.values() if not row.flags]
    has_one_argument = len(arguments) == 1 and arguments[0].kind is not list
    flag = _find_flag(extra_words[0], rows, is_exam_likely=not has_one_argument)
    if flag is None and has_one_argument:
        argument = arguments[0].spelling.strip("[]")
        return UsageError("cli_one_at_a_time", argument=argument, **error_values)
    if flag is None:
        return UsageError("cli_words_left_over", **error_values)
    return UsageError(
        "cli_words_for_option", flag=flag, value=shlex.join(extra_words), **error_values
    )


def _find_broken_value(words: Sequence[str], command: Command) -> tuple[OptionRow, str] | None:
    """Return the flag whose settings lack quotes, and the settings as one value."""
    rows = {f: row for row in command.rows.values() if row.metavar == MAPPING for f in row.flags}
    for position, word in enumerate(words):
        flag, equals, first_part = word.partition("=")
        if flag not in rows:
            continue
        following_words = takewhile(
            lambda following_word: not following_word.startswith("-"), words[position + 1 :]
        )
        value, *further_parts = [*([first_part] if equals else []), *following_words] or [""]
        for part in further_parts:
            is_continued = value.endswith(",") or _is_open(value)
            if not is_continued and _OF_VALUE.search(part) is None:
                break
            value += f" {part}" if is_continued else f",{part}"
        else:
            if further_parts:
                return rows[flag], value
    return None


def _is_open(value: str) -> bool:
    """Whether a bracket of the value is still open."""
    return sum(value.count(bracket) for bracket in "[{") > sum(value.count(each) for each in "]}")


def _quote_settings(row: OptionRow, value: str) -> str:
    """Return the flag with its settings in quotes.

    The settings are the user's if they can be parsed and repeated, and else placeholders.
    """
    flag = row.flags[0]
    with suppress(ConfigError):
        if row.field.partition(".")[0] in ECHOED and parse_mapping(value, flag):
            return f"{flag} '{value}'" if "'" not in value else f"{flag} {shlex.quote(value)}"
    key = "NAME.KEY" if row.field == "dataset_args" else "KEY"
    return f"{flag} '{key}=VALUE,{key}=VALUE'"


def _find_model_and_exams(
    extra_words: Sequence[str], words: Sequence[str], rows: Sequence[OptionRow]
) -> tuple[str, str] | None:
    """Return the model's flag, and the value after it with model and exams.

    None unless exactly one word can only be a model that is not set yet: ``keju eval scripted
    demo``.
    """
    from keju.benchmarks import registry
    from keju.models.registry import ENDPOINT, kind_of

    flags = {row.name.rpartition(".")[2]: row.flags for row in rows}
    used_flags = {word.partition("=")[0] for word in words}
    exam_names = (*registry.names(), *registry.ALIASES)
    # any other word counts as such a model, too
    at_endpoint = {word for word in extra_words if kind_of(word) is ENDPOINT}
    exams = [
        w
        for w in extra_words
        if (is_path(w) and not w.endswith(FILES))
        or (w in at_endpoint and find_nearest(w, exam_names))
    ]
    models = [word for word in extra_words if word not in exams and not word.endswith(FILES)]
    if len(models) != 1 or len(models) + len(exams) != len(extra_words):
        return None
    if "model" not in flags or used_flags & {*flags["model"]}:
        return None
    if not exams and models[0] in at_endpoint:
        return None
    model = shlex.join(models)
    if not exams:
        return flags["model"][0], model
    if "datasets" not in flags or used_flags & {*flags["datasets"]}:
        return None
    return flags["model"][0], f"{model} {flags['datasets'][0]} {shlex.join(exams)}"


def _find_flag(word: str, rows: Sequence[OptionRow], *, is_exam_likely: bool) -> str | None:
    """Return the flag among `rows` that accepts such a word: a choice, a settings file, an exam, or
    one of its subsets.

    If `is_exam_likely`, any other word counts as an exam.
    """
    from keju.benchmarks import registry

    by_name = {row.name.rpartition(".")[2]: row.flags[0] for row in rows}
    choice = next((r for r in rows if isinstance(r.kind, tuple) and word in r.kind), None)
    if choice is not None:
        return choice.flags[0]
    if word.endswith(FILES) and "config" in by_name:
        return by_name["config"]
    if "datasets" in by_name and is_exam_likely:
        return by_name["datasets"]
    if is_path(word) or word in (*registry.names(), *registry.ALIASES):
        return next((by_name[name] for name in EXAM_FLAGS if name in by_name), None)
    benchmarks = map(registry.get, registry.BUILT_IN)
    if "subset" in by_name and any(word in room.subset_names for room in benchmarks):
        return by_name["subset"]
    return None


def _find_setting(name: str) -> str | None:
    """Return the path of the setting with this name."""
    if (place := find_setting_path(name)) is not None:
        return place
    place = OTHER_NAMES.get(name, name)
    return place if place in TaskConfig.model_fields else None


def _find_near_setting(option: str, flags: Sequence[str]) -> str | None:
    """Return the path of the setting with nearly this name, unless a flag is closer."""
    setting_names = [*DatasetArgs.model_fields, *OTHER_NAMES]
    for field in TaskConfig.model_fields.values():
        setting_names += getattr(find_settings_class(field.annotation), "model_fields", ())
    by_flag = {
        f"--{name.replace('_', '-')}": name for name in setting_names if find_setting_path(name)
    }
    near = find_nearest(option, [*by_flag, *flags])
    return find_setting_path(by_flag[near]) if near in by_flag and near not in flags else None


def _values_or_placeholder(outer: str, option: str, words: Sequence[str]) -> list[str]:
    """Return the user's values, or a placeholder."""
    return (_plain_values(option, words) if outer in ECHOED else []) or ["VALUE"]


def _make_assignment(
    outer: str, inner: list[str], option: str, words: Sequence[str], command: Command
) -> str:
    """Return the value for the flag of the outer setting: ``'demo.subset_list=[word_sorting]'``."""
    is_list = inner[-1] in DatasetArgs.model_fields and any(
        get_origin(kind) is list
        for kind in union_members(DatasetArgs.model_fields[inner[-1]].annotation)
    )
    values = _plain_values(option, words) if outer in ECHOED else []
    if is_list:
        value = f"[{','.join(values) or 'A,B'}]"
    else:
        value = values[0] if len(values) == 1 else "VALUE"
    if EXAM not in inner:
        return shlex.quote(f"{'.'.join(inner)}={value}")
    exam = _find_first_exam(words, command)
    if KEY.fullmatch(exam):
        return shlex.quote(f"{'.'.join(exam if part == EXAM else part for part in inner)}={value}")
    *outer_keys, _, leaf_key = inner  # a path without a short name
    exam_json = json.dumps({exam: {leaf_key: parse_yaml(value, option)}}, ensure_ascii=False)
    return shlex.quote(f"{'.'.join(outer_keys)}={exam_json}" if outer_keys else exam_json)


def _make_overrides(place: str, option: str, words: Sequence[str]) -> str:
    """Return the overrides for a setting that is a mapping: ``-s generation_config.max_tokens=64``.

    Return an empty text for any other setting.
    """
    settings_class: type[BaseModel] | None = TaskConfig
    kinds: list[object] = []
    for part in place.split("."):
        field = settings_class.model_fields.get(part) if settings_class is not None else None
        kinds = list(union_members(field.annotation)) if field is not None else []
        settings_class = find_settings_class(field.annotation) if field is not None else None
    if not any(kind is settings_class is not None or get_origin(kind) is dict for kind in kinds):
        return ""
    is_echoed = place.split(".")[0] in ECHOED
    typed_values = _typed_values(option, words)
    pairs = [pair.partition("=") for pair in typed_values]
    with suppress(ValueError, AttributeError):  # {"max_tokens": 64}
        pairs = [
            (key, "=", str(value)) for key, value in json.loads(",".join(typed_values)).items()
        ]
    if not pairs or not all(_PLAIN.fullmatch(key) and equals for key, equals, _ in pairs):
        pairs = [("KEY", "=", "VALUE")]
    assignments = [
        (key, value if is_echoed and _PLAIN.fullmatch(value) else "VALUE")
        for key, _, value in pairs
    ]
    return " ".join(f"-s {place}.{key}={value}" for key, value in assignments)


def _plain_values(option: str, words: Sequence[str]) -> list[str]:
    """Return the user's values of a flag if they need no quotes: ``--subset a,b``."""
    typed_values = _typed_values(option, words)
    return typed_values if all(map(_PLAIN.fullmatch, typed_values)) else []


def _typed_values(option: str, words: Sequence[str]) -> list[str]:
    """Return the user's values of a flag, unchecked."""
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag == option:
            following_words = takewhile(
                lambda following_word: not following_word.startswith("-"), words[position + 1 :]
            )
            return [
                part
                for text in ([value] if equals else following_words)
                for part in text.split(",")
            ]
    return []


def _find_first_exam(words: Sequence[str], command: Command) -> str:
    """Return the first exam on the command line. Use the unique short name for a path."""
    exams = _find_exams(words, command)
    first_exam = next(iter(exams), EXAM)
    if is_path(first_exam) and KEY.fullmatch(short := short_name(first_exam)):
        return short if resolve_name(short, exams) == first_exam else first_exam
    return first_exam if is_path(first_exam) or KEY.fullmatch(first_exam) else EXAM


def _find_exams(words: Sequence[str], command: Command) -> list[str]:
    """Return the exams on the command line."""
    flags = {flag for row in command.rows.values() if row.field == "datasets" for flag in row.flags}
    flags |= {"--datasets"}
    flag_values = [part for flag in flags for part in _typed_values(flag, words) if part]
    if flag_values:
        return flag_values
    first_word = next(iter(words), "")
    takes_exam = any(not row.flags and row.spelling == EXAM for row in command.rows.values())
    return [first_word] if takes_exam and first_word and not first_word.startswith("-") else []
