"""The reference of ``results.json``: every key of every struct."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.messages import Language
from keju.results.schema import Results
from tools.docs.markdown import code, in_language, meaning, opening, table
from tools.docs.shapes import shape

NAME = "reference-results"
Struct = msgspec.inspect.StructType | msgspec.inspect.DataclassType
WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "title": "results.json",
        "intro": "Every key of `results.json`, which `--json` prints, too, and which `run_task` "
        "gives in Python. [Results](results.md) explains the numbers. A key that is not always "
        "there is left out where it says nothing, such as an empty list. Keys of `details` "
        "stand in the metric itself.",
        "key": "key",
        "type": "type",
        "always": "always there",
        "meaning": "meaning",
        "yes": "yes",
        "no": "no",
        "null": "null or ",
    },
    "zh": {
        "title": "results.json",
        "intro": "`results.json` 的全部键；`--json` 打印的、Python 中 `run_task` 给出的都是它。"
        "这些数字的含义见[结果](results.zh-CN.md)。不是总有的键，在没有内容时（例如空列表）省去。"
        "`details` 中的键直接写在该指标里。",
        "key": "键",
        "type": "类型",
        "always": "总有",
        "meaning": "含义",
        "yes": "是",
        "no": "否",
        "null": "null 或",
    },
}


def page(language: Language) -> str:
    """The page in a language."""
    words = WORDS[language]
    _, definitions = msgspec.json.schema_components([Results])
    lines = [*opening(NAME, words["title"], language), words["intro"], ""]
    for name, info in _kinds(Results).items():
        about = (info.cls.__doc__ or "").split("\n\n")[0]
        lines += [f"## {name}", "", in_language(about, language), ""]
        lines += _table(info, definitions[name], language)
    return "\n".join(lines).rstrip() + "\n"


def _table(info: Struct, schema: dict[str, Any], language: Language) -> list[str]:
    words = WORDS[language]
    rows = []
    for field in info.fields:
        node = schema["properties"][field.encode_name]
        omitted = field.default is msgspec.UNSET or _omits_defaults(info.cls)
        always = field.required or not omitted
        null = words["null"] if {"type": "null"} in node.get("anyOf", ()) else ""
        rows.append(
            [
                code(field.encode_name),
                null + shape(node, language),
                words["yes" if always else "no"],
                meaning(info.cls, field.name, language),
            ]
        )
    return table([words[name] for name in ("key", "type", "always", "meaning")], rows)


def _omits_defaults(kind: Any) -> bool:
    config = getattr(kind, "__struct_config__", None)
    return config is not None and bool(config.omit_defaults)


def _kinds(root: type) -> dict[str, Struct]:
    """The structs that a document is made of, in the order in which they are met."""
    kinds: dict[str, Struct] = {}
    pending: list[Any] = [msgspec.inspect.type_info(root)]
    while pending:
        info = pending.pop(0)
        if isinstance(info, Struct) and info.cls.__name__ not in kinds:
            kinds[info.cls.__name__] = info
            pending += [field.type for field in info.fields]
        for name in ("item_type", "value_type"):
            if hasattr(info, name):
                pending.append(getattr(info, name))
        pending += [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    return kinds
