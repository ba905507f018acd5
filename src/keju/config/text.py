"""Reading settings that people type: config files, JSON flags and single values.

Everything that cannot be read gives one line that names the place: the file and the line, or the
flag and the character. Values are never echoed, since they may hold secrets.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Never

from keju.errors import ConfigError

_PAIR = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*=(.*)", re.DOTALL)
_NEXT_PAIR = re.compile(r",(?=\s*[A-Za-z_][\w.-]*\s*=)")


def document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file."""
    text = _text(path)
    if path.suffix.lower() == ".json":
        loaded = _json(text, path)
        _yaml(text.replace("\t", " "), str(path))  # JSON allows repeated keys; YAML names the line
    else:
        loaded = _yaml(text, str(path))
    if not isinstance(loaded, dict):
        found = "is empty" if loaded is None else f"holds a {_kind(loaded)}"
        raise ConfigError(f"{path}, line 1: {found}; expected a mapping such as 'model: NAME'")
    return loaded


def mapping(text: str, flag: str, *, plain: bool = False) -> dict[str, Any]:
    """The mapping in a flag: a JSON object, or ``key=value,key.sub=value``.

    With `plain` the values of the short form stay texts; otherwise they are read as in YAML.
    """
    if not text.lstrip().startswith(("{", "[", '"')) and "=" in text:
        return _pairs(text, flag, plain=plain)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"at character {error.pos + 1}"
        raise ConfigError(f"{flag} is not valid JSON: {error.msg.lower()} {where}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{flag} cannot be used: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{flag} must be a JSON object such as '{{\"key\": 1}}', not {text[:20]}")
    return value


def scalar(text: str, where: str) -> Any:
    """One value as YAML or JSON reads it; dates stay texts."""
    return _yaml(text, where)


def _pairs(text: str, flag: str, *, plain: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    position = 1
    for part in _NEXT_PAIR.split(text):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise ConfigError(f"{flag}: expected KEY=VALUE or JSON at character {position}")
        *parents, last = match[1].split(".")
        inner = result
        for name in parents:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{flag}: '{name}' is given as a value and as a mapping")
        inner[last] = match[2] if plain else scalar(match[2], f"{flag} {match[1]}")
        position += len(part) + 1
    return result


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text") from None


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}, line {error.lineno}: not valid JSON: {error.msg.lower()}"
        ) from None
    except RecursionError:
        raise ConfigError(f"{path}, line 1: nested too deep") from None


def _yaml(text: str, where: str) -> Any:
    import yaml

    from keju.config.yaml_loader import StrictLoader

    try:
        return yaml.load(text, Loader=StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark and "\n" in text.strip() else ""
        problem = " ".join((error.problem or "not valid YAML").split())
        raise ConfigError(f"{where}{line}: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{where}: not valid YAML: {problem}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key '{key}' is given twice")
        result[key] = value
    return result


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not a JSON value")


def _kind(value: object) -> str:
    names = {list: "list", str: "text", bool: "truth value", int: "number", float: "number"}
    return names.get(type(value), type(value).__name__)
