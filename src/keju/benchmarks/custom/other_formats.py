"""Questions in files that authors of MCP servers already have.

``evaluation.xml`` is the form of mcp-builder: pairs of a question and its answer. A file of
promptfoo has ``tests:`` with variables and assertions. Assertions that Keju cannot check in the
same way are errors, so that no test seems to pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from xml.parsers import expat

from keju.errors import DataError

LARGEST_XML: Final = 16 << 20
MOST_ELEMENTS: Final = 200_000
ROOT, PAIR = "evaluation", "qa_pair"
FIELDS: Final = ("question", "answer")
TEST_KEYS: Final = ("description", "vars", "assert", "metadata")
ASSERTION_KEYS: Final = ("type", "value", "metric")
# {{ city }}, {{city}}
_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")


class _PairReader:
    """Collects the pairs of an ``evaluation.xml`` from the events of a parser."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.rows: list[dict[str, Any]] = []
        self._path: list[str] = []
        self._texts: dict[str, str] = {}
        self._elements = 0

    def refuse(self, *_: Any) -> None:
        """Raise DataError for a document type: it may define entities."""
        raise DataError("custom.xml_doctype", where=self.where)

    def start(self, name: str, _: Mapping[str, str]) -> None:
        """Open an element; DataError if it has no meaning at this place."""
        self._elements += 1
        self._path.append(name)
        expected = ((ROOT,), (PAIR,), FIELDS)
        depth = len(self._path)
        if depth > len(expected) or name not in expected[depth - 1]:
            path = "/".join(self._path[:4])
            raise DataError("custom.xml_element", where=self.where, path=path)
        if self._elements > MOST_ELEMENTS:
            raise DataError("custom.xml_large", where=self.where)
        if name in FIELDS:
            if name in self._texts:
                values = {"where": self.where, "pair": len(self.rows) + 1, "field": name}
                raise DataError("custom.xml_twice", **values)
            self._texts[name] = ""

    def text(self, text: str) -> None:
        """Add text to the open question or answer."""
        if self._path and self._path[-1] in FIELDS:
            self._texts[self._path[-1]] += text

    def end(self, name: str) -> None:
        """Close an element; a closed pair is a row."""
        self._path.pop()
        if name == PAIR:
            self.rows.append({field: text.strip() for field, text in self._texts.items()})
            self._texts = {}


def read_evaluation_xml(content: bytes, where: str) -> list[dict[str, Any]]:
    """Return the pairs of an ``evaluation.xml`` as rows. No entity is defined or opened."""
    if len(content) > LARGEST_XML:
        raise DataError("custom.xml_large", where=where)
    pairs = _PairReader(where)
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = pairs.refuse
    parser.StartElementHandler = pairs.start
    parser.EndElementHandler = pairs.end
    parser.CharacterDataHandler = pairs.text
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError("custom.xml_broken", where=where, problem=str(error)) from None
    return pairs.rows


def is_promptfoo(content: Any) -> bool:
    """Whether the content of a YAML file is a configuration of promptfoo with its tests."""
    return isinstance(content, dict) and isinstance(content.get("tests"), list)


def read_promptfoo(content: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield the tests of promptfoo as rows. Raise DataError for what has no meaning here.

    As in promptfoo, a test passes if all its assertions hold.
    """
    prompt = _only_prompt(content.get("prompts"), where)
    defaults = _known_part(content.get("defaultTest") or {}, f"{where}, defaultTest")
    if "scenarios" in content:
        raise DataError("custom.promptfoo_part", where=where, name="scenarios")
    for number, content_of_test in enumerate(content["tests"], 1):
        place = f"{where}, test {number}"
        test = _known_part(content_of_test, place)
        variables = {**_mapping(defaults.get("vars")), **_mapping(test.get("vars"))}
        row: dict[str, Any] = {"question": _fill(prompt, variables, place)}
        if isinstance(test.get("description"), str):
            row["description"] = test["description"]
        assertions = [*_list(defaults.get("assert")), *_list(test.get("assert"))]
        for assertion in assertions:
            _add_assertion(row, assertion, place)
        if "expect" in row:
            row["expect"]["score"] = "all"
        yield row


def _known_part(test: Any, where: str) -> dict[str, Any]:
    """Return a test whose keys all have a meaning here; raise DataError for any other."""
    if not isinstance(test, dict):
        raise DataError("custom.promptfoo_test", where=where)
    for key, value in test.items():
        has_list = isinstance(value, list) if key == "assert" else True
        if key not in TEST_KEYS or not has_list:
            raise DataError("custom.promptfoo_part", where=where, name=str(key))
    return test


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _only_prompt(prompts: Any, where: str) -> str:
    """Return the only prompt, as text; a file or several prompts have no meaning here."""
    texts = [prompts] if isinstance(prompts, str) else _list(prompts)
    if len(texts) != 1 or not isinstance(texts[0], str) or texts[0].startswith("file://"):
        raise DataError("custom.promptfoo_prompt", where=where)
    return texts[0]


def _fill(prompt: str, variables: Mapping[str, Any], where: str) -> str:
    """Return the prompt with its variables filled in; a list of values would be several tests."""

    def value(match: re.Match[str]) -> str:
        filled = variables.get(match[1])
        if not isinstance(filled, str | int | float):
            raise DataError("custom.promptfoo_variable", where=where, name=match[1])
        return str(filled)

    for sign in ("{{", "{%"):  # {{ city | upper }}, {% if city %}
        if sign in _VARIABLE.sub("", prompt):
            raise DataError("custom.promptfoo_part", where=where, name=sign)
    return _VARIABLE.sub(value, prompt)


def _add_assertion(row: dict[str, Any], assertion: Any, where: str) -> None:
    """Add an assertion of promptfoo to a row, as the field that has its meaning."""
    kind = assertion.get("type") if isinstance(assertion, dict) else None
    reader = _READERS.get(str(kind))
    if reader is None:
        raise DataError("custom.promptfoo_kind", where=where, kind=kind, valid=[*_READERS])
    for key in assertion:
        if key not in ASSERTION_KEYS:
            raise DataError("custom.promptfoo_part", where=where, name=str(key))
    value = assertion.get("value")
    is_template = isinstance(value, str) and ("{{" in value or value.startswith("file://"))
    if is_template or not reader(row, value):
        raise DataError("custom.promptfoo_value", where=where, kind=kind)


def _expect(row: dict[str, Any]) -> dict[str, Any]:
    expect: dict[str, Any] = row.setdefault("expect", {})
    return expect


def _read_answer(row: dict[str, Any], value: Any) -> bool:
    if not isinstance(value, str | int | float) or "answer" in row:
        return False
    row["answer"] = str(value)
    return True


def _read_used(row: dict[str, Any], value: Any, key: str = "tools") -> bool:
    names = [value] if isinstance(value, str) else value
    if isinstance(value, dict) and set(value) == {"name"}:
        names = [value["name"]]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return False
    _expect(row).setdefault(key, []).extend(names)
    return bool(names)


def _read_unused(row: dict[str, Any], value: Any) -> bool:
    return _read_used(row, value, "not")


def _read_arguments(row: dict[str, Any], value: Any) -> bool:
    if not isinstance(value, dict) or value.get("mode", "partial") != "partial":
        return False
    arguments = value.get("args", value.get("arguments"))
    if not isinstance(value.get("name"), str) or not isinstance(arguments, dict):
        return False
    by_tool = _expect(row).setdefault("arguments", {})
    return by_tool.setdefault(value["name"], arguments) is arguments


def _read_sequence(row: dict[str, Any], value: Any) -> bool:
    steps = value.get("steps") if isinstance(value, dict) else value
    mode = value.get("mode", "in_order") if isinstance(value, dict) else "in_order"
    names = [step.get("name") if isinstance(step, dict) else step for step in _list(steps)]
    if mode != "in_order" or not names or not all(isinstance(name, str) for name in names):
        return False
    return _expect(row).setdefault("order", names) is names


def _read_count(row: dict[str, Any], value: Any) -> bool:
    if not isinstance(value, dict) or not {"max"} <= value.keys() <= {"type", "max"}:
        return False
    if value.get("type", "tool") != "tool":
        return False
    most = value["max"]
    return bool(_expect(row).setdefault("max_calls", most) == most)


_READERS: Mapping[str, Callable[[dict[str, Any], Any], bool]] = {
    "equals": _read_answer,
    "trajectory:tool-used": _read_used,
    "not-trajectory:tool-used": _read_unused,
    "trajectory:tool-args-match": _read_arguments,
    "trajectory:tool-sequence": _read_sequence,
    "trajectory:step-count": _read_count,
}
"""The assertions of promptfoo that have a meaning here."""
