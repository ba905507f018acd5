"""The settings of a run that determine its numbers, taken from its manifest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from keju.config.address import strip_credentials
from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.reporting.pages import moment
from keju.results.schema import Results
from keju.runs.manifest import Manifest, StoredData

MANIFEST_ROWS = 1_000
"""The number of manifest rows that a page shows."""
_VALUE_LIMIT = 400
_HIDDEN = "•••"
_NOTHING: tuple[Any, ...] = (None, "", {}, [], ())

# A setting that may hold a secret, e.g. ``config.api_key``; not ``judge.api_key_var``, a name.
_SECRET = re.compile(r"api_?key(?!_var)|secret|password|authorization|bearer", re.IGNORECASE)
# An address that contains credentials, e.g. ``https://user:word@host/v1?key=...``.
_WITH_CREDENTIALS = re.compile(r"https?://\S+[@?]\S*", re.IGNORECASE)


def manifest_leaves(manifest: Manifest) -> list[tuple[str, str]]:
    """Return every entry of the manifest with its path; secrets are masked."""
    return [
        (path, _HIDDEN if _SECRET.search(path) and value is not None else _describe_value(value))
        for path, value in _leaves(manifest.as_dict(), "")
    ]


def main_settings(
    manifest: Manifest, results: Results, labels: Labels
) -> Iterator[tuple[str, str]]:
    """Yield the recorded settings that are needed to reproduce the numbers.

    Names and values are meant for a page: a time is an HTML element.
    """
    rows = [*_model_rows(manifest, results), *_exam_rows(manifest, results, labels)]
    config = manifest.config
    rows += [
        ("", "sampling", config.get("generation_config")),
        *(("", key, config.get(key)) for key in ("limit", "repeats", "seed")),
        ("", "judge", (config.get("judge") or {}).get("model")),
        ("", "versions", _versions(manifest.environment)),
        ("", "created", moment(manifest.created)),
    ]
    for name, key, value in rows:
        if value not in _NOTHING:
            label = labels(f"setting.{key}")
            text = value if isinstance(value, Markup) else _describe_value(value)
            yield f"{name} · {label}" if name else label, text


_SettingRow = tuple[str, str, Any]


def _model_rows(manifest: Manifest, results: Results) -> Iterator[_SettingRow]:
    """Yield the model and the address of the endpoint."""
    endpoint = manifest.endpoint
    address = endpoint.get("url") or endpoint.get("api_url") or endpoint
    yield "", "model", manifest.model or results.model
    yield "", "endpoint", address or manifest.config.get("api_url")


def _exam_rows(manifest: Manifest, results: Results, labels: Labels) -> Iterator[_SettingRow]:
    """Yield the protocol, the readers, the sampling, the prompt and the data of each exam."""
    for entry in results.benchmarks:
        yield entry.name, "protocol", fmt.protocol_line(entry)
        yield entry.name, "reader", entry.reader
    for exam in manifest.benchmarks:
        yield exam.name, "sampling", exam.sampling
        yield exam.name, "prompt", exam.settings
        yield exam.name, "data", _data(exam.data, labels)


def _versions(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions of the packages, of Python and of the platform."""
    platform = {key: environment.get(key) for key in ("python", "platform")}
    return (environment.get("packages") or {}) | platform


def _data(data: StoredData, labels: Labels) -> str:
    """Return the data's version and one hash for all its files."""
    words = [data.version] if data.version else []
    if len(data.files) == 1:
        words += [f"{name} {digest}" for name, digest in data.files.items()]
    elif data.files:
        listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(data.files.items()))
        together = hashlib.sha256(listing.encode()).hexdigest()
        words.append(f"{labels('files_together', n=len(data.files))} {together}")
    return labels("clause_separator").join(words)


def _leaves(node: Any, path: str) -> list[tuple[str, Any]]:
    """Return every leaf of the manifest with its dotted path, e.g. ``config.judge.model``."""
    if isinstance(node, Mapping) and node:
        parts = [(f"{path}.{key}" if path else str(key), value) for key, value in node.items()]
    elif isinstance(node, list) and any(isinstance(element, Mapping) for element in node):
        parts = [(f"{path}[{position}]", element) for position, element in enumerate(node)]
    else:
        return [(path, node)]
    return [leaf for place, value in parts for leaf in _leaves(value, place)]


def _describe_value(value: Any) -> str:
    """Describe a setting; mask anything that looks like a secret."""
    if isinstance(value, Mapping):
        pairs = {k: v for k, v in value.items() if v not in _NOTHING}
        text = ", ".join(
            f"{k} {_HIDDEN if _SECRET.search(str(k)) else _describe_value(v)}"
            for k, v in pairs.items()
        )
    elif isinstance(value, list | tuple):
        text = ", ".join(_describe_value(element) for element in value)
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = "" if value is None else str(value)
        text = strip_credentials(text) if _WITH_CREDENTIALS.match(text) else text
    text = fmt.printable(fmt.without_canary(text))
    return text if len(text) <= _VALUE_LIMIT else text[:_VALUE_LIMIT] + " …"
