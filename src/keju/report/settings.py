"""What determines the numbers, out of a run's manifest, fit to be shown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keju.config.address import shown_url
from keju.report.format import printable, without_canary
from keju.report.strings import Strings
from keju.report.summary import Summary

MANIFEST_ROWS = 1_000
"""Rows of the whole manifest that a page shows."""
_VALUE_LIMIT = 400

_SECRET = re.compile(r"api_?key(?!_var)|secret|password|authorization|bearer", re.IGNORECASE)
_HIDDEN = "•••"
_WITH_CREDENTIALS = re.compile(r"https?://\S+[@?]\S*", re.IGNORECASE)


class Setting(NamedTuple):
    """One row of a table of settings."""

    label: str
    value: str


def main_settings(
    manifest: Mapping[str, Any], summaries: Sequence[Summary], strings: Strings
) -> list[Setting]:
    """The settings a reader needs to reproduce the numbers; what is not recorded is left out."""
    rows: list[Setting] = []

    def add(key: str, value: Any, prefix: str = "") -> None:
        if value not in (None, "", {}, [], ()):
            label = strings(f"setting.{key}")
            rows.append(Setting(f"{prefix} · {label}" if prefix else label, _shown(value)))

    config = _mapping(manifest.get("config"))
    add("model", manifest.get("model") or next((s.model for s in summaries), ""))
    add("endpoint", _endpoint(manifest, config))
    for summary in summaries:
        prefix = summary.name
        add("protocol", summary.protocol_line, prefix)
        add("reader", summary.reader, prefix)
    for exam in _exams(manifest):
        prefix = str(exam.get("name") or "")
        add("sampling", exam.get("sampling"), prefix)
        add("prompt", exam.get("settings"), prefix)
        add("data", _data(exam.get("data"), strings), prefix)
    add("sampling", manifest.get("sampling") or config.get("generation_config"))
    for key in ("limit", "repeats", "seed"):
        add(key, manifest.get(key, config.get(key)))
    add("judge", _mapping(config.get("judge")).get("model"))
    add("versions", _versions(manifest))
    add("created", manifest.get("created"))
    return rows


def all_settings(manifest: Mapping[str, Any]) -> list[Setting]:
    """Every leaf of the manifest by its dotted path; anything like a secret is masked."""
    rows = []
    for path, value in _leaves(manifest, ""):
        shown = _HIDDEN if _SECRET.search(path) and value is not None else _shown(value)
        rows.append(Setting(path, shown))
    return rows


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list) and any(isinstance(item, Mapping) for item in node):
        for position, item in enumerate(node):
            yield from _leaves(item, f"{path}[{position}]")
    else:
        yield path, node


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = {k: v for k, v in value.items() if v not in (None, "", {}, [], ())}
        text = ", ".join(
            f"{k} {_HIDDEN if _SECRET.search(str(k)) else _shown(v)}" for k, v in pairs.items()
        )
    elif isinstance(value, list | tuple):
        text = ", ".join(_shown(item) for item in value)
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = "" if value is None else str(value)
        text = shown_url(text) if _WITH_CREDENTIALS.match(text) else text
    text = printable(without_canary(text))
    return text if len(text) <= _VALUE_LIMIT else text[:_VALUE_LIMIT] + " …"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _exams(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    exams = manifest.get("benchmarks") or ()
    if isinstance(exams, Mapping):
        return [{"name": name} | dict(_mapping(exam)) for name, exam in exams.items()]
    return [exam for exam in exams if isinstance(exam, Mapping)]


def _endpoint(manifest: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
    endpoint = manifest.get("endpoint")
    if isinstance(endpoint, Mapping):
        endpoint = endpoint.get("url") or endpoint.get("api_url") or endpoint
    return endpoint or config.get("api_url")


def _data(data: Any, strings: Strings) -> str:
    """The data's version and one hash that stands for all its files."""
    facts = _mapping(data)
    files = _mapping(facts.get("files"))
    words = [str(facts["version"])] if facts.get("version") else []
    if len(files) == 1:
        words += [f"{name} {digest}" for name, digest in files.items()]
    elif files:
        listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
        together = hashlib.sha256(listing.encode()).hexdigest()
        words.append(f"{strings('files_together', n=len(files))} {together}")
    return ", ".join(words)


def _versions(manifest: Mapping[str, Any]) -> dict[str, Any]:
    environment = _mapping(manifest.get("environment")) or manifest
    versions = dict(_mapping(environment.get("packages")))
    for key in ("python", "platform"):
        if environment.get(key):
            versions[key] = environment[key]
    return versions
