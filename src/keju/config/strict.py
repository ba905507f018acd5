"""Settings that refuse invalid values, and readers for what people type: config files, JSON flags
and single values.

An error is one line that names the place: the full path of the key, the file and line, or the flag
and character. Errors never repeat values, because they may be secrets.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Never, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from keju import bounds
from keju.bounds import read_text
from keju.errors import ConfigError, Notice, TranslatableText, did_you_mean, near_hint, quoted
from keju.messages import Language, catalogue, first_of, text_of

LARGEST: Final = 2**53
"""Larger JSON numbers are not exact."""
LONGEST: Final = 1e9
"""The longest time in seconds, about 30 years: clocks cannot be set further."""

MOST_LEVELS = 100
"""The deepest nesting of a setting. A value that contains itself would have no end."""
_HALF = re.compile("[\ud800-\udfff]")

Whole = Annotated[int, Field(gt=0, le=LARGEST)]
Count = Annotated[int, Field(gt=0, le=100_000)]
"""The number of things that run at the same time, or repeatedly, and use memory."""
Seconds = Annotated[float, Field(gt=0, le=LONGEST)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Rate = Annotated[float, Field(ge=0.001)]
"""A rate per minute. Less than two a day is a typo."""
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[str], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]
"""Several texts, or one text without a list."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of an environment variable."""


def variable_name(value: str, setting: str) -> str:
    """Return `value` if it names a variable. The error does not repeat it: it may be a key."""
    if VARIABLE.fullmatch(value) is None:
        raise ConfigError("config_not_variable", path=setting)
    return value


class InvalidValue(ValueError):
    """The reason why a validator refuses a value, as a code of the catalogues; pydantic adds the
    place."""

    def __init__(self, code: str, /, **values: Any) -> None:
        super().__init__(text_of(code, values))
        self.code = code
        self.values = values

    def text(self, language: Language = "en") -> str:
        """Return the reason in a language."""
        return text_of(self.code, self.values, language)


class StrictSettings(BaseModel):
    """Settings that refuse unknown keys with the nearest valid name, and numbers that are not
    finite."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain_error(error, type(self)) from None

    # With this mark, pydantic checks nested settings itself and knows their full path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _hyphens(cls, data: Any) -> Any:
        """Accept ``eval-batch-size`` for ``eval_batch_size``."""
        if not isinstance(data, dict):
            return data
        return {k.replace("-", "_") if isinstance(k, str) else k: v for k, v in data.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse booleans as numbers, and values that JSON or paths cannot hold."""
        if value is None or value == "":
            return value
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool):
            kinds = set(union_members(annotation))
            if bool not in kinds and kinds & {int, float}:
                raise InvalidValue("config_not_number", value=str(value).lower())
        elif isinstance(value, str | dict | list | tuple):
            _check_texts_and_numbers(value, annotation)
        return value


def _check_texts_and_numbers(value: Any, annotation: Any) -> None:
    """Raise an error for a text or number inside a value that JSON or paths cannot hold.

    The settings class of a field with settings of its own checks these itself.
    """
    if find_settings_class(annotation) is not None:
        return
    for path in _find_wrong_places(value, _is_unusable):
        raise InvalidValue("config_unusable_text", inside=path)
    for path in _find_wrong_places(value, _is_infinite) if not isinstance(value, str) else ():
        raise InvalidValue("config_not_finite", inside=path)


def explain_error(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Return pydantic's report as one line that says what to change; `path` is the place."""
    first_error = error.errors(include_url=False)[0]
    cause = first_error.get("ctx", {}).get("error")
    inside = cause.values.get("inside", ()) if isinstance(cause, InvalidValue) else ()
    path = ".".join(str(part) for part in (*first_error["loc"], *inside))
    other_errors = _describe_other_errors(error, model)
    if first_error["type"] == "extra_forbidden":
        *parents, key = first_error["loc"]
        for part in parents:  # find the model that lacks this key
            field = model.model_fields.get(str(part))
            model = (find_settings_class(field.annotation) if field else None) or model
        hint = did_you_mean(str(key), model.model_fields)
        return ConfigError("config_unknown_key", origin="", path=path, hint=hint, more=other_errors)
    if first_error["type"] == "missing":
        return ConfigError("config_required", path=path, more=other_errors)
    problem: Any = cause
    if first_error["type"] == "literal_error":
        problem = InvalidValue("config_not_one_of", **_describe_choices(first_error))
    elif first_error["type"] == "list_type":
        problem = InvalidValue("config_not_a_list")
    elif first_error["type"] in NO_MAPPING:
        problem = _describe_mapping_form(first_error, model)
    elif not isinstance(cause, InvalidValue):
        message = str(cause) if first_error["type"] == "value_error" else first_error["msg"]
        problem = translate_report(first_error, message)
    code = "config_invalid" if path else "config_invalid_whole"
    return ConfigError(code, path=path, problem=problem, more=other_errors)


def translate_report(report: Mapping[str, Any], message: str) -> InvalidValue | str:
    """Return pydantic's message as a code of the catalogues if a code has the same English text."""
    message = message[:1].lower() + message[1:]
    limits = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in report.get("ctx", {}).items()
    }
    if (form := _FORMS.get(str(limits.get("pattern")))) is not None:
        return InvalidValue(form[0], most=form[1])
    code = f"config_{report['type']}"
    if code in catalogue("en"):
        refusal = InvalidValue(code, **limits)
        if str(refusal) == message:
            return refusal
    return message


_FORMS: Final[dict[str, tuple[str, int]]] = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$": ("config_form_id", 128),
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": ("config_form_id", 64),
    r"^\w[\w.-]{0,63}$": ("config_form_name", 64),
    r"^[^\x00-\x1f\x7f]{1,64}$": ("config_form_text", 64),
    r"^(auto|local|[^\s:/]+:\d{1,5})$": ("config_form_address", 0),
}
"""The patterns of settings, each with the code of its description and its most characters."""
NO_MAPPING = ("model_type", "dict_type", "mapping_type", "model_attributes_type")
"""pydantic's names for a value that should be a mapping."""


def _describe_mapping_form(report: Mapping[str, Any], model: type[BaseModel]) -> InvalidValue:
    """Return the form of a setting with keys, with the key that the user may mean.

    The rest of the value is not repeated: it may be a secret.
    """
    place, inside = report["loc"], model
    for part in place:
        field = inside.model_fields.get(str(part))
        inside = (find_settings_class(field.annotation) if field else None) or BaseModel
    setting_names = list(inside.model_fields)
    typed_text = report["input"] if isinstance(report["input"], str) else ""
    pair = _PAIR.match(typed_text)
    typed_key = pair[1].replace("-", "_") if pair else ""
    key = typed_key if typed_key in setting_names else next(iter(setting_names), "KEY")
    if not place or not all(isinstance(part, str) for part in place):
        return InvalidValue("config_not_a_mapping", key=key)
    return InvalidValue("config_not_a_mapping_at", key=key, path=".".join(place))


def _describe_choices(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the valid choices from pydantic's report, and the one nearest to the value."""
    expected = report["ctx"]["expected"]
    typed_text = report["input"] if isinstance(report["input"], str) else ""
    valid = re.findall(r"'([^']*)'", expected)  # `'auto', 'chat' or 'completions'`
    return {"choices": quoted(valid), "hint": near_hint(typed_text, valid)}


_LISTED_ERRORS = 3
"""The most further settings that are named after the first wrong one."""


def _describe_other_errors(error: ValidationError, model: type[BaseModel]) -> Notice | str:
    """Return a note with the names of the other wrong settings, as many as fit on a line."""
    reports = error.errors(include_url=False)
    places = [_setting_at(report["loc"], model) for report in reports]
    names = [name for name in dict.fromkeys(places) if name and name != places[0]]
    if not names:
        return ""
    listed_names = list(first_of(names, _LISTED_ERRORS))
    if len(listed_names) < len(names):
        return Notice(
            "config_others_more", {"names": listed_names, "more": len(names) - len(listed_names)}
        )
    missing = all(report["type"] == "missing" for report in reports)
    return Notice("config_others_missing" if missing else "config_others", {"names": listed_names})


def _setting_at(place: Sequence[int | str], model: type[BaseModel]) -> str:
    """Return the setting of an error: ``limit.int`` and ``limit.float`` are ``limit``."""
    parts: list[str] = []
    inside: type[BaseModel] | None = model
    for part in place:
        if inside is None:
            break
        parts.append(str(part))
        if isinstance(part, str):
            field = inside.model_fields.get(part)
            inside = find_settings_class(field.annotation) if field else None
    return ".".join(parts)


def find_settings_class(annotation: Any) -> type[BaseModel] | None:
    """Return the settings class that a field holds, alone or in a list; None if it holds none."""
    for candidate in union_members(annotation):
        if get_origin(candidate) is list:
            (candidate,) = get_args(candidate)
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def union_members(annotation: Any) -> list[Any]:
    """Return the types of a union, without their annotations."""
    members, pending = [], [annotation]
    while pending:
        part = pending.pop(0)
        if get_origin(part) is Annotated:
            pending.insert(0, get_args(part)[0])
        elif get_origin(part) in (Union, types.UnionType):
            pending[:0] = get_args(part)
        else:
            members.append(part)
    return members


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_unusable(value: Any) -> bool:
    """Whether a text contains a NUL or half a character (a lone surrogate)."""
    return isinstance(value, str) and ("\0" in value or _HALF.search(value) is not None)


def _find_wrong_places(
    value: Any, is_wrong: Callable[[Any], bool], levels: int = MOST_LEVELS
) -> Iterator[tuple[str, ...]]:
    """Yield the paths inside `value` where something is wrong, including keys."""
    if not levels:
        raise InvalidValue("config_nested_too_deep", levels=MOST_LEVELS)
    if is_wrong(value):
        yield ()
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    for key, element in value.items() if isinstance(value, dict) else ():
        if is_wrong(key):
            yield ()
        yield from ((str(key), *path) for path in _find_wrong_places(element, is_wrong, levels - 1))


_PAIR = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*=(.*)", re.DOTALL)
"""A key and its value: ``temperature = 0.6``."""
_NEXT_PAIR = re.compile(r",(?=\s*[A-Za-z_][\w.-]*\s*=)")
"""The comma before the next key, not one inside a value: only the second of ``stop=a,b,n=1``."""
_KINDS = {list: "list", str: "text", bool: "truth value", int: "number", float: "number"}


def document(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file."""
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError("config_unreadable", path=path, problem=error.strerror) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("config_not_utf8", path=path, line=line) from None
    if path.suffix.lower() == ".json":
        try:
            loaded = json.loads(text)
        except json.JSONDecodeError as error:
            problem = error.msg.lower().removesuffix(" at").removesuffix(" starting")
            raise ConfigError(
                "config_file_not_json", path=path, line=error.lineno, problem=problem
            ) from None
        except RecursionError:
            raise ConfigError("config_too_deep", path=path) from None
        except ValueError:  # a number with more digits than Python reads
            raise ConfigError("config_number_too_long", where=path) from None
        # JSON allows repeated keys. YAML refuses them and names the line.
        parse_yaml(text.replace("\t", " "), str(path))
    else:
        loaded = parse_yaml(text, str(path))
    if loaded is None:
        raise ConfigError("config_empty", path=path)
    if not isinstance(loaded, dict):
        kind = _KINDS.get(type(loaded), type(loaded).__name__)
        raise ConfigError("config_not_mapping", path=path, kind=kind)
    return loaded


def parse_mapping(text: str, flag: str, *, plain: bool = False) -> dict[str, Any]:
    """Return the mapping in a flag: a JSON object, or ``key=value,key.sub=value``.

    With `plain`, values of the short form stay texts. Otherwise they are parsed as YAML.
    """
    if not text.lstrip().startswith(("{", "[", '"')) and "=" in text:
        return _parse_pairs(text, flag, plain=plain)
    if text.strip().isidentifier():
        raise ConfigError("config_flag_no_value", flag=flag)
    value = _parse_json(text, flag)
    if not isinstance(value, dict):
        raise ConfigError("config_flag_not_object", flag=flag, text=text[:20])
    return value


def parse_mappings(text: str, flag: str) -> list[Any]:
    """Return the JSON list in a flag. A single mapping becomes a list."""
    value = _parse_json(text, flag)
    if not isinstance(value, list | dict):
        raise ConfigError("config_flag_not_object", flag=flag, text=text[:20])
    return value if isinstance(value, list) else [value]


def _parse_json(text: str, flag: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        position, problem = error.pos + 1, error.msg.lower().removesuffix(" at")
        raise ConfigError(
            "config_flag_not_json", flag=flag, problem=problem, position=position
        ) from None
    except (InvalidValue, RecursionError) as error:
        raise ConfigError("config_flag_unusable", flag=flag, problem=error) from None
    except ValueError:  # a number with more digits than Python reads
        raise ConfigError("config_number_too_long", where=flag) from None


def _parse_pairs(text: str, flag: str, *, plain: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    position = 1
    for part in _NEXT_PAIR.split(text):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise ConfigError("config_pair_form", flag=flag, position=position)
        *parents, leaf_key = match[1].split(".")
        inner = result
        for name in parents:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise ConfigError("config_value_and_mapping", flag=flag, name=name)
        if leaf_key in inner:
            problem = InvalidValue("config_key_twice", key=match[1])
            raise ConfigError("config_flag_unusable", flag=flag, problem=problem)
        inner[leaf_key] = match[2] if plain else parse_yaml(match[2], f"{flag} {match[1]}")
        position += len(part) + 1
    return result


def parse_yaml(text: str, where: str, *, as_written: bool = False) -> Any:
    """Parse one value, or a whole text, as YAML; repeated keys are refused.

    Numbers follow YAML 1.2: ``010`` is ten, and ``1:30`` and ``2024-01-01`` are texts. With
    `as_written` all values are texts, so that ``1.10`` keeps its 0.
    """
    import yaml

    problem: str
    if len(text) > bounds.LONGEST_YAML:
        problem = TranslatableText("config_yaml_long", most=bounds.LONGEST_YAML // bounds.MIB)
        raise ConfigError("config_yaml_at", where=where, line="", problem=problem)
    try:
        return yaml.load(text, Loader=_yaml_loader(as_written))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = ""
        if mark is not None and "\n" in text.strip():
            line = TranslatableText("config_yaml_line", line=mark.line + 1)
        problem = _yaml_problem(error.problem or "")
        raise ConfigError("config_yaml_at", where=where, line=line, problem=problem) from None
    except yaml.reader.ReaderError as error:
        code = error.character
        character = f"U+{code if isinstance(code, int) else ord(code):04X}"
        problem = TranslatableText("config_yaml_control", character=character)
        raise ConfigError("config_yaml_at", where=where, line="", problem=problem) from None
    except RecursionError:
        problem = TranslatableText("config_yaml_deep")
        raise ConfigError("config_yaml_at", where=where, line="", problem=problem) from None
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError("config_not_yaml", where=where, problem=problem) from None


_YAML_PROBLEMS = {
    # could not determine a constructor for the tag '!foo'; found undefined tag handle '!e!'
    "config_yaml_tag": re.compile(r"(?:could not determine .* the tag|.*tag handle) '(?P<tag>.*)'"),
    # found undefined alias 'x'
    "config_yaml_alias": re.compile(r"found undefined alias '(?P<alias>.*)'"),
    # found character '\\t' that cannot start any token
    "config_yaml_tab": re.compile(r"found character '\\t' that cannot start any token"),
    # found character '@' that cannot start any token
    "config_yaml_start": re.compile(r"found character '(?P<character>.)' that cannot start .*"),
    # mapping values are not allowed here
    "config_yaml_colon": re.compile(r"mapping values are not allowed .*"),
    # expected ',' or '}', but got '<stream end>'; found unexpected end of stream
    "config_yaml_end": re.compile(
        r"(?:expected .*<stream end>.*|found unexpected end of stream.*)"
    ),
    # expected a mapping node, but found sequence
    "config_value_not_tag": re.compile(r"expected a (?P<kind>\w+) node.*"),
    # but found another document
    "config_yaml_second": re.compile(r"but found another document"),
}
"""PyYAML's messages, by the code of the message that Keju shows instead."""


def _yaml_problem(text: str) -> str:
    """Return the problem of a YAML document in Keju's words."""
    if isinstance(text, TranslatableText):
        return text
    for code, pattern in _YAML_PROBLEMS.items():
        if match := pattern.fullmatch(text):
            values = {name: value.replace(_YAML, "!!") for name, value in match.groupdict().items()}
            return TranslatableText(code, **values)
    return TranslatableText("config_yaml_syntax")


MOST_ALIASED = 10_000
"""The most values that aliases such as ``*base`` may add beyond the characters of a document."""
_YAML = "tag:yaml.org,2002:"
_PLAIN_VALUES = {
    "null": r"~|null|Null|NULL|",
    "merge": r"<<",
    # Includes the words of YAML 1.1, because settings often use them: ``offline: yes``.
    "bool": r"(?i:true|false|yes|no|on|off)",
    # 8080, -1, 010 (ten), 0o17, 0x1F
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    # 0.5, .5, 1e-3, -.inf, .nan
    "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}
"""The type of a value without quotes, by the name of its tag. Everything else is a text."""
_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")
"""The tags that may be written, such as ``!!str 010``; others are refused."""


@cache
def _yaml_loader(as_written: bool) -> Any:
    """Return a safe YAML 1.2 loader with stricter checks than PyYAML's."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}  # noqa: RUF012 (the base class's own attribute)
        yaml_constructors = {  # noqa: RUF012
            tag: yaml.SafeLoader.yaml_constructors[tag]
            for tag in (*(_YAML + t for t in _TAGS), None)
        }

        values = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            """Read one value. Refuse a document with too many values before it fills the memory."""
            self.values += 1
            if self.values > bounds.MOST_YAML_VALUES:
                problem = TranslatableText("config_yaml_many", most=bounds.MOST_YAML_VALUES)
                mark = parent.start_mark if parent is not None else None
                raise yaml.composer.ComposerError(None, None, problem, mark)
            return super().compose_node(parent, index)

        def get_single_node(self) -> yaml.Node | None:
            """Read the document. Refuse one that aliases expand without bounds."""
            root = super().get_single_node()
            remaining_values, pending_nodes = (
                MOST_ALIASED + self.index,
                [root] if root is not None else [],
            )
            while pending_nodes:
                node, remaining_values = pending_nodes.pop(), remaining_values - 1
                if remaining_values < 0:
                    problem = TranslatableText("config_yaml_grows")
                    raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
                if isinstance(node, yaml.MappingNode):
                    pending_nodes += [child for pair in node.value for child in pair]
                elif isinstance(node, yaml.SequenceNode):
                    pending_nodes += node.value
            return root

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            """Build a value. Refuse one that does not fit its tag, such as ``!!bool abc``."""
            try:
                return super().construct_object(node, deep=deep)
            except (KeyError, ValueError, IndexError, OverflowError):
                kind = node.tag.removeprefix(_YAML)
                problem = TranslatableText("config_value_not_tag", kind=kind)
                raise yaml.constructor.ConstructorError(
                    None, None, problem, node.start_mark
                ) from None

        def construct_integer(self, node: yaml.ScalarNode) -> int:
            """Build a whole number: 010 is ten."""
            text = self.construct_scalar(node)
            prefixed = {"0x": 16, "0o": 8}.get(text[:2])
            return int(text[2:], prefixed) if prefixed else int(text)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            """Build a mapping whose keys are distinct texts."""
            keys: set[str] = set()
            for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if key_node.tag == _YAML + "merge":
                    continue
                key = self.construct_object(key_node, deep=True)
                problem = None
                if not isinstance(key, str):
                    key_text = key_node.value if isinstance(key_node.value, str) else "[…]"
                    problem = TranslatableText("config_key_not_text", key=key_text)
                elif key in keys:
                    problem = TranslatableText("config_key_twice", key=key)
                if problem is not None:
                    mark = key_node.start_mark
                    raise yaml.constructor.ConstructorError(None, None, problem, mark)
                keys.add(key)
            return super().construct_mapping(node, deep=deep)

    Loader.add_constructor(_YAML + "int", Loader.construct_integer)
    for name, pattern in _PLAIN_VALUES.items():
        if name in ("null", "merge") or not as_written:
            # Without a set of first letters, every value is tried.
            Loader.add_implicit_resolver(_YAML + name, re.compile(f"(?:{pattern})\\Z"), None)
    return Loader


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise InvalidValue("config_key_twice", key=key)
        result[key] = value
    return result


def _refuse_constant(constant: str) -> Never:
    raise InvalidValue("config_not_json_value", constant=constant)
