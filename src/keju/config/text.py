"""Reading what people type: config files, JSON flags, and single values.

Everything that cannot be read gives one line that names the place: the file and the line, or the
flag and the character. Values are never echoed, since they may hold secrets.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Never

from keju.config.strict import Invalid
from keju.errors import ConfigError

_PAIR = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*=(.*)", re.DOTALL)
"""A key and its value: ``temperature = 0.6``."""
_NEXT_PAIR = re.compile(r",(?=\s*[A-Za-z_][\w.-]*\s*=)")
"""The comma before the next key, not one inside a value: only the second of ``stop=a,b,n=1``."""
_KINDS = {list: "list", str: "text", bool: "truth value", int: "number", float: "number"}


def document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError("config_unreadable", path=path, problem=error.strerror) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("config_not_utf8", path=path, line=line) from None
    if path.suffix.lower() == ".json":
        try:
            loaded = json.loads(text)
        except json.JSONDecodeError as error:
            problem = error.msg.lower()
            raise ConfigError(
                "config_file_not_json", path=path, line=error.lineno, problem=problem
            ) from None
        except RecursionError:
            raise ConfigError("config_too_deep", path=path) from None
        except ValueError:  # a number of more digits than Python reads
            raise ConfigError("config_number_too_long", where=path) from None
        # JSON allows repeated keys; YAML refuses them and names the line.
        scalar(text.replace("\t", " "), str(path))
    else:
        loaded = scalar(text, str(path))
    if loaded is None:
        raise ConfigError("config_empty", path=path)
    if not isinstance(loaded, dict):
        kind = _KINDS.get(type(loaded), type(loaded).__name__)
        raise ConfigError("config_not_mapping", path=path, kind=kind)
    return loaded


def mapping(text: str, flag: str, *, plain: bool = False) -> dict[str, Any]:
    """The mapping in a flag: a JSON object, or ``key=value,key.sub=value``.

    With `plain` the values of the short form stay texts; otherwise they are read as in YAML.
    """
    if not text.lstrip().startswith(("{", "[", '"')) and "=" in text:
        return _pairs(text, flag, plain=plain)
    value = _json(text, flag)
    if not isinstance(value, dict):
        raise ConfigError("config_flag_not_object", flag=flag, text=text[:20])
    return value


def mappings(text: str, flag: str) -> list[Any]:
    """The JSON list in a flag; one mapping alone is a list of it."""
    value = _json(text, flag)
    if not isinstance(value, list | dict):
        raise ConfigError("config_flag_not_object", flag=flag, text=text[:20])
    return value if isinstance(value, list) else [value]


def _json(text: str, flag: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        position, problem = error.pos + 1, error.msg.lower()
        raise ConfigError(
            "config_flag_not_json", flag=flag, problem=problem, position=position
        ) from None
    except (Invalid, RecursionError) as error:
        raise ConfigError("config_flag_unusable", flag=flag, problem=error) from None
    except ValueError:  # a number of more digits than Python reads
        raise ConfigError("config_number_too_long", where=flag) from None


def _pairs(text: str, flag: str, *, plain: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    position = 1
    for part in _NEXT_PAIR.split(text):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise ConfigError("config_pair_form", flag=flag, position=position)
        *parents, last = match[1].split(".")
        inner = result
        for name in parents:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise ConfigError("config_value_and_mapping", flag=flag, name=name)
        if last in inner:
            problem = Invalid("config_key_twice", key=match[1])
            raise ConfigError("config_flag_unusable", flag=flag, problem=problem)
        inner[last] = match[2] if plain else scalar(match[2], f"{flag} {match[1]}")
        position += len(part) + 1
    return result


def scalar(text: str, where: str, *, as_written: bool = False) -> Any:
    """One value, or a whole text, as YAML reads it; repeated keys are refused.

    Numbers are those of YAML 1.2, which mean what people read: ``010`` is ten, ``1:30`` and
    ``2024-01-01`` are texts. With `as_written` all values are texts, so that ``1.10`` keeps its 0.
    """
    import yaml

    try:
        return yaml.load(text, Loader=_yaml_loader(as_written))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark and "\n" in text.strip() else ""
        problem = " ".join((error.problem or "not valid YAML").split())
        raise ConfigError("config_yaml_at", where=where, line=line, problem=problem) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError("config_not_yaml", where=where, problem=problem) from None


MOST_ALIASED = 10_000
"""Values that a document may have beyond its characters, by aliases such as ``*base``."""
_YAML = "tag:yaml.org,2002:"
_PLAIN_VALUES = {
    "null": r"~|null|Null|NULL|",
    "merge": r"<<",
    # Also the words of YAML 1.1, since settings are full of them: ``offline: yes``.
    "bool": r"(?i:true|false|yes|no|on|off)",
    # 8080, -1, 010 (ten), 0o17, 0x1F
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    # 0.5, .5, 1e-3, -.inf, .nan
    "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}
"""What a value without quotes is, by the name of its tag; everything else is a text."""
_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")
"""The tags that can be written out, such as ``!!str 010``; others are refused."""


@cache
def _yaml_loader(as_written: bool) -> Any:
    """A safe loader of YAML 1.2 that refuses what a plain one lets pass in silence."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}  # noqa: RUF012 (the base class's own attribute)
        yaml_constructors = {  # noqa: RUF012
            tag: yaml.SafeLoader.yaml_constructors[tag]
            for tag in (*(_YAML + t for t in _TAGS), None)
        }

        def get_single_node(self) -> yaml.Node | None:
            """Read the document; one whose aliases make it grow without bounds is refused."""
            root = super().get_single_node()
            most, waiting = MOST_ALIASED + self.index, [root] if root is not None else []
            while waiting:
                node, most = waiting.pop(), most - 1
                if most < 0:
                    problem = str(Invalid("config_yaml_grows"))
                    raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
                if isinstance(node, yaml.MappingNode):
                    waiting += [each for pair in node.value for each in pair]
                elif isinstance(node, yaml.SequenceNode):
                    waiting += node.value
            return root

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            """Build a value; one that does not fit its tag, such as ``!!bool abc``, is refused."""
            try:
                return super().construct_object(node, deep=deep)
            except (KeyError, ValueError, IndexError, OverflowError):
                kind = node.tag.removeprefix(_YAML)
                problem = str(Invalid("config_value_not_tag", kind=kind))
                raise yaml.constructor.ConstructorError(
                    None, None, problem, node.start_mark
                ) from None

        def construct_whole(self, node: yaml.ScalarNode) -> int:
            """Build a whole number: 010 is ten."""
            text = self.construct_scalar(node)
            prefixed = {"0x": 16, "0o": 8}.get(text[:2])
            return int(text[2:], prefixed) if prefixed else int(text)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            """Build a mapping whose keys are distinct texts."""
            seen: set[str] = set()
            for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if key_node.tag == _YAML + "merge":
                    continue
                key = self.construct_object(key_node, deep=True)
                problem = None
                if not isinstance(key, str):
                    problem = Invalid("config_key_not_text", key=key_node.value)
                elif key in seen:
                    problem = Invalid("config_key_twice", key=key)
                if problem is not None:
                    mark = key_node.start_mark
                    raise yaml.constructor.ConstructorError(None, None, str(problem), mark)
                seen.add(key)
            return super().construct_mapping(node, deep=deep)

    Loader.add_constructor(_YAML + "int", Loader.construct_whole)
    for name, pattern in _PLAIN_VALUES.items():
        if name in ("null", "merge") or not as_written:
            # Without letters to begin with, every value is tried.
            Loader.add_implicit_resolver(_YAML + name, re.compile(f"(?:{pattern})\\Z"), None)
    return Loader


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise Invalid("config_key_twice", key=key)
        result[key] = value
    return result


def _refuse(constant: str) -> Never:
    raise Invalid("config_not_json_value", constant=constant)
