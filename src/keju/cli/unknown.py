"""What to say of a flag that a command does not have: the nearest flag, or where the setting is.

Imported once a flag is unknown. A setting inside another one has no flag of its own: ``--subset
navigate`` is told ``--dataset-args 'bbh.subset_list=[navigate]'``, with the exam and the value that
the user wrote, so that it can be pasted. A command that has another flag for the setting is told
that one, ``--filter-category navigate``, and one without any but ``-s`` ``-s limit=5``.
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
from keju.config.exams import is_path, meant, short_name
from keju.config.load import OTHER_NAMES, inner_place
from keju.config.strict import alternatives, mapping, model_of, scalar
from keju.config.task import DatasetArgs, TaskConfig
from keju.errors import ConfigError, UsageError, find_nearest

if TYPE_CHECKING:
    from pydantic import BaseModel

    from keju.cli.command import Command
    from keju.cli.options import Option

ECHOED: Final = ("dataset_args", "generation_config", "datasets", "limit", "total", "ids")
"""Settings whose values may be said again; others may be keys."""
_PLAIN = re.compile(r"[\w.-]{1,64}")
"""A value that needs no quotes: ``navigate``, ``0.6``."""
_OF_VALUE = re.compile(r"[=\[\]{}]")
"""What only a piece of settings holds: ``few_shot_num=0``, ``snarks]``."""
KEY = re.compile(r"[A-Za-z_][\w-]{0,63}")
"""What can name an exam in ``NAME.subset_list=[A]``."""
OF_EXAMS: Final = ("dataset", "benchmark")
"""Flags that take the name of an exam, where ``--datasets`` takes none."""
FILES: Final = (".yaml", ".yml", ".json")
"""What files of settings end in."""
EXAM: Final = "NAME"
"""What stands for an exam whose name is not known."""


def unknown_option(option: str, words: Sequence[str], command: Command) -> UsageError:
    """The refusal of a flag, with what may be meant."""
    rows = command.rows.values()
    name = option.strip("-").replace("-", "_")
    own = {"option": option, "command": command.name}
    long = [flag for row in rows for flag in row.flags if flag.startswith("--")]
    place = (_place(name) or _near_place(option, long)) if option.startswith("--") else None
    if place is not None:
        outer, *inner = place.split(".")
        by_field = {row.field: row for row in rows if row.flags}
        row = by_field.get(place)
        if row is not None and row.name.rpartition(".")[2] != place:  # called otherwise here
            example = " ".join(f"{row.flags[0]} {value}" for value in _given(outer, option, words))
            return UsageError("cli_unknown_option_here", flag=row.flags[0], example=example, **own)
        if inner and outer in by_field:
            flag = by_field[outer].flags[0]
            example = f"{flag} {_assignment(outer, inner, option, words, command)}"
            return UsageError("cli_unknown_option_inside", flag=flag, example=example, **own)
        if row is None and "overrides" in command.rows:
            example = _settings(place, option, words)
            example = example or f"-s {_assignment(outer, [outer, *inner], option, words, command)}"
            return UsageError("cli_unknown_option_set", example=example, **own)
    other = "--" + OTHER_NAMES.get(name, "").replace("_", "-")
    near = find_nearest(option, long) if option.startswith("--") else None
    near = other if other in long else near
    code = "cli_unknown_option_near" if near else "cli_unknown_option"
    return UsageError(code, near=near, **own)


def given_twice(row: Option, values: Sequence[str], command: Command) -> UsageError:
    """The refusal of a flag that is repeated; settings are told the one value that holds them."""
    own = {"flag": row.flags[0], "command": command.name}
    if row.metavar != MAPPING:
        return UsageError("cli_flag_twice", **own)
    return UsageError("cli_settings_twice", example=_one_value(row, ",".join(values)), **own)


def left_over(over: Sequence[str], words: Sequence[str], command: Command) -> UsageError:
    """The refusal of the words that belong to nothing, with the flag that takes such a word here:
    ``keju eval bbh`` forgot ``--datasets``, ``keju run arms.yaml`` forgot ``-c``, and
    ``--dataset-args bbh.subset_list=[a, b]`` its quotes."""
    own = {"words": " ".join(over), "command": command.name}
    if (broken := _broken_value(words, command)) is not None:
        row, value = broken
        example = _one_value(row, value)
        return UsageError("cli_words_of_value", flag=row.flags[0], example=example, **own)
    rows = [row for row in command.rows.values() if row.flags]
    if (sitting := _model_and_exams(over, words, rows)) is not None:
        return UsageError("cli_words_for_option", flag=sitting[0], value=sitting[1], **own)
    arguments = [row for row in command.rows.values() if not row.flags]
    sole = len(arguments) == 1 and arguments[0].kind is not list
    flag = _flag_for(over[0], rows, likeliest=not sole)
    if flag is None and sole:
        argument = arguments[0].spelling.strip("[]")
        return UsageError("cli_one_at_a_time", argument=argument, **own)
    if flag is None:
        return UsageError("cli_words_left_over", **own)
    return UsageError("cli_words_for_option", flag=flag, value=shlex.join(over), **own)


def _broken_value(words: Sequence[str], command: Command) -> tuple[Option, str] | None:
    """The flag whose settings stand in several words for want of quotes, and them as one value."""
    rows = {f: row for row in command.rows.values() if row.metavar == MAPPING for f in row.flags}
    for place, word in enumerate(words):
        flag, equals, first = word.partition("=")
        if flag not in rows:
            continue
        after = takewhile(lambda each: not each.startswith("-"), words[place + 1 :])
        value, *others = [*([first] if equals else []), *after] or [""]
        for other in others:
            goes_on = value.endswith(",") or _is_open(value)
            if not goes_on and _OF_VALUE.search(other) is None:
                break
            value += f" {other}" if goes_on else f",{other}"
        else:
            if others:
                return rows[flag], value
    return None


def _is_open(value: str) -> bool:
    """Whether a bracket of the value is not closed yet."""
    return sum(value.count(each) for each in "[{") > sum(value.count(each) for each in "]}")


def _one_value(row: Option, value: str) -> str:
    """The flag with its settings in quotes: the user's own where they can be read that way and may
    be said again."""
    flag = row.flags[0]
    with suppress(ConfigError):
        if row.field.partition(".")[0] in ECHOED and mapping(value, flag):
            return f"{flag} '{value}'" if "'" not in value else f"{flag} {shlex.quote(value)}"
    key = "NAME.KEY" if row.field == "dataset_args" else "KEY"
    return f"{flag} '{key}=VALUE,{key}=VALUE'"


def _model_and_exams(
    over: Sequence[str], words: Sequence[str], rows: Sequence[Option]
) -> tuple[str, str] | None:
    """The flag of the model, and after it the model and the exams, where one word can only be the
    name of a model that is not given yet: ``keju eval scripted demo``."""
    from keju.benchmarks import registry
    from keju.models.registry import ENDPOINT, kind_of

    flags = {row.name.rpartition(".")[2]: row.flags for row in rows}
    given = {word.partition("=")[0] for word in words}
    known = (*registry.names(), *registry.ALIASES)
    at_endpoint = {word for word in over if kind_of(word) is ENDPOINT}  # as any other word is
    exams = [w for w in over if is_path(w) or (w in at_endpoint and find_nearest(w, known))]
    models = [word for word in over if word not in exams and not word.endswith(FILES)]
    if len(models) != 1 or len(models) + len(exams) != len(over):
        return None
    if "model" not in flags or given & {*flags["model"]}:
        return None
    if not exams and models[0] in at_endpoint:
        return None
    own = shlex.join(models)
    if not exams:
        return flags["model"][0], own
    if "datasets" not in flags or given & {*flags["datasets"]}:
        return None
    return flags["model"][0], f"{own} {flags['datasets'][0]} {shlex.join(exams)}"


def _flag_for(word: str, rows: Sequence[Option], *, likeliest: bool) -> str | None:
    """The flag among `rows` that takes a word such as this: a choice, a file of settings, an exam,
    a subset of one. Where an exam is the `likeliest`, any other word is taken for one."""
    from keju.benchmarks import registry

    by_name = {row.name.rpartition(".")[2]: row.flags[0] for row in rows}
    choice = next((r for r in rows if isinstance(r.kind, tuple) and word in r.kind), None)
    if choice is not None:
        return choice.flags[0]
    if word.endswith(FILES) and "config" in by_name:
        return by_name["config"]
    if "datasets" in by_name and likeliest:
        return by_name["datasets"]
    if is_path(word) or word in (*registry.names(), *registry.ALIASES):
        return next((by_name[name] for name in OF_EXAMS if name in by_name), None)
    rooms = map(registry.get, registry.BUILT_IN)
    if "subset" in by_name and any(word in room.subset_names for room in rooms):
        return by_name["subset"]
    return None


def _place(name: str) -> str | None:
    """Where the setting of this name stands, its own name where it stands outermost."""
    if (place := inner_place(name)) is not None:
        return place
    place = OTHER_NAMES.get(name, name)
    return place if place in TaskConfig.model_fields else None


def _near_place(option: str, flags: Sequence[str]) -> str | None:
    """Where the setting stands whose name is nearly this, if no flag is more like it."""
    inside = [*DatasetArgs.model_fields, *OTHER_NAMES]
    for field in TaskConfig.model_fields.values():
        inside += getattr(model_of(field.annotation), "model_fields", ())
    by_flag = {f"--{name.replace('_', '-')}": name for name in inside if inner_place(name)}
    near = find_nearest(option, [*by_flag, *flags])
    return inner_place(by_flag[near]) if near in by_flag and near not in flags else None


def _given(outer: str, option: str, words: Sequence[str]) -> list[str]:
    """The values that the user gave, or a word that stands for one."""
    return (_values(option, words) if outer in ECHOED else []) or ["VALUE"]


def _assignment(
    outer: str, inner: list[str], option: str, words: Sequence[str], command: Command
) -> str:
    """What to give the flag of the outer setting: ``'bbh.subset_list=[navigate]'``."""
    several = inner[-1] in DatasetArgs.model_fields and any(
        get_origin(kind) is list
        for kind in alternatives(DatasetArgs.model_fields[inner[-1]].annotation)
    )
    values = _values(option, words) if outer in ECHOED else []
    if several:
        value = f"[{','.join(values) or 'A,B'}]"
    else:
        value = values[0] if len(values) == 1 else "VALUE"
    if EXAM not in inner:
        return shlex.quote(f"{'.'.join(inner)}={value}")
    exam = _exam(words, command)
    if KEY.fullmatch(exam):
        return shlex.quote(f"{'.'.join(exam if part == EXAM else part for part in inner)}={value}")
    *outside, _, last = inner  # a path that has no short name
    own = json.dumps({exam: {last: scalar(value, option)}}, ensure_ascii=False)
    return shlex.quote(f"{'.'.join(outside)}={own}" if outside else own)


def _settings(place: str, option: str, words: Sequence[str]) -> str:
    """What sets the keys of a setting that is a mapping, ``-s generation_config.max_tokens=64``;
    empty for any other setting."""
    inside: type[BaseModel] | None = TaskConfig
    kinds: list[object] = []
    for part in place.split("."):
        field = inside.model_fields.get(part) if inside is not None else None
        kinds = list(alternatives(field.annotation)) if field is not None else []
        inside = model_of(field.annotation) if field is not None else None
    if not any(kind is inside is not None or get_origin(kind) is dict for kind in kinds):
        return ""
    said = place.split(".")[0] in ECHOED
    raw = _raw(option, words)
    pairs = [pair.partition("=") for pair in raw]
    with suppress(ValueError, AttributeError):  # {"max_tokens": 64}
        pairs = [(key, "=", str(value)) for key, value in json.loads(",".join(raw)).items()]
    if not pairs or not all(_PLAIN.fullmatch(key) and equals for key, equals, _ in pairs):
        pairs = [("KEY", "=", "VALUE")]
    given = [
        (key, value if said and _PLAIN.fullmatch(value) else "VALUE") for key, _, value in pairs
    ]
    return " ".join(f"-s {place}.{key}={value}" for key, value in given)


def _values(option: str, words: Sequence[str]) -> list[str]:
    """What the user gave the flag, as far as it is plain: ``--subset a,b``, ``--subset=a``."""
    given = _raw(option, words)
    return given if all(map(_PLAIN.fullmatch, given)) else []


def _raw(option: str, words: Sequence[str]) -> list[str]:
    """What the user gave the flag, whatever it is."""
    for place, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag == option:
            after = takewhile(lambda each: not each.startswith("-"), words[place + 1 :])
            return [part for each in ([value] if equals else after) for part in each.split(",")]
    return []


def _exam(words: Sequence[str], command: Command) -> str:
    """The first exam that the command line names; one at a path by its short name, if it has one
    that means no other."""
    named = _exams(words, command)
    first = next(iter(named), EXAM)
    if is_path(first) and KEY.fullmatch(short := short_name(first)):
        return short if meant(short, named) == first else first
    return first if is_path(first) or KEY.fullmatch(first) else EXAM


def _exams(words: Sequence[str], command: Command) -> list[str]:
    """The exams that the command line names."""
    flags = {flag for row in command.rows.values() if row.field == "datasets" for flag in row.flags}
    flags |= {"--datasets"}
    given = [part for flag in flags for part in _raw(flag, words) if part]
    if given:
        return given
    first = next(iter(words), "")
    named = any(not row.flags and row.spelling == EXAM for row in command.rows.values())
    return [first] if named and first and not first.startswith("-") else []
