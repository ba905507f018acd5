"""The reference of the configuration: every setting with its type, default and meaning."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from keju.cli.common import all_benchmarks
from keju.cli.options import OPTIONS
from keju.config import DatasetArgs, TaskConfig
from keju.config.load import PREFIX
from keju.messages import Language, labels
from tools.docs.markdown import code, in_language, meaning, opening, table
from tools.docs.shapes import default, shape

NAME = "reference-configuration"
WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "title": "Settings",
        "intro": "Every setting of a task: as a key of a YAML or JSON file, as `-s KEY=VALUE`, as "
        "a field of `TaskConfig` in Python. Scalar settings of the task are variables of the "
        "environment, too: `{prefix}LIMIT=10`. [Configuration](configuration.md) says which of "
        "them wins. `keju schema` prints the same for programs.",
        "task": "The task",
        "parts": "Parts of the task",
        "exams": "Settings of single exams",
        "at": "At {places}.",
        "exam": "Under `dataset_args.{name}`, beside those of [DatasetArgs](#datasetargs).",
        "none": "It has no settings of its own.",
        "setting": "setting",
        "type": "type",
        "default": "default",
        "flag": "flag",
        "meaning": "meaning",
        "required": "required",
    },
    "zh": {
        "title": "设置",
        "intro": "一次任务的全部设置：可以是 YAML 或 JSON 文件中的键、`-s KEY=VALUE`，或 Python 中 "
        "`TaskConfig` 的字段。任务的标量设置也可以写成环境变量：`{prefix}LIMIT=10`。哪一个优先，"
        "见[配置](configuration.zh-CN.md)。`keju schema` 打印同样的内容，供程序使用。",
        "task": "任务",
        "parts": "任务的各部分",
        "exams": "各门考试自己的设置",
        "at": "位置：{places}。",
        "exam": "位于 `dataset_args.{name}`，与 [DatasetArgs](#datasetargs) 的设置并列。",
        "none": "没有自己的设置。",
        "setting": "设置",
        "type": "类型",
        "default": "默认值",
        "flag": "选项",
        "meaning": "含义",
        "required": "必填",
    },
}


def page(language: Language) -> str:
    """The page in a language."""
    words = WORDS[language]
    lines = [*opening(NAME, words["title"], language), words["intro"].format(prefix=PREFIX), ""]
    lines += [f"## {words['task']}", "", in_language(TaskConfig.__doc__ or "", language), ""]
    lines += _table(TaskConfig, language, with_flags=True)
    lines += [f"## {words['parts']}", ""]
    for kind, places in _places().items():
        about = in_language(kind.__doc__ or "", language)
        listed = labels(language)["list_separator"].join(map(code, places))
        where = words["at"].format(places=listed)
        lines += [f"### {kind.__name__}", "", f"{where} {about}".strip(), ""]
        lines += _table(kind, language)
    lines += [f"## {words['exams']}", ""]
    for benchmark in all_benchmarks():
        lines += [f"### {benchmark.name}", ""]
        added_fields = set(benchmark.Args.model_fields) - set(DatasetArgs.model_fields)
        if added_fields:
            lines += [words["exam"].format(name=benchmark.name), ""]
            lines += _table(benchmark.Args, language, only=added_fields)
        else:
            lines += [words["none"], ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(
    kind: type[BaseModel],
    language: Language,
    *,
    only: set[str] | None = None,
    with_flags: bool = False,
) -> list[str]:
    words, schema = WORDS[language], kind.model_json_schema(by_alias=False)
    columns = ["setting", "type", "default", *(["flag"] if with_flags else []), "meaning"]
    rows = []
    for name, field in kind.model_fields.items():
        if only is not None and name not in only:
            continue
        node = schema["properties"][name]
        value = words["required"] if field.is_required() else default(node.get("default"))
        flags = [_flags_of(name)] if with_flags else []
        text = meaning(kind, name, language)
        rows.append([code(name), shape(node, language), _plain(node, value), *flags, text])
    return table([words[column] for column in columns], rows)


def _plain(node: dict[str, Any], value: str) -> str:
    """Defaults of whole sections are in their own tables."""
    return "" if "$ref" in node or value.startswith("`{") else value


def _flags_of(name: str) -> str:
    """The flag of ``keju eval`` that sets a field."""
    row = OPTIONS.get(name)
    return " ".join(map(code, row.flags)) if row is not None and row.field == name else ""


def _places() -> dict[type[BaseModel], list[str]]:
    """The sections of a configuration with the paths at which they stand, outermost first."""
    places: dict[type[BaseModel], list[str]] = {}
    pending: list[tuple[type[BaseModel], str]] = [(TaskConfig, "")]
    pending.append((DatasetArgs, "dataset_args.NAME"))
    while pending:
        kind, path = pending.pop(0)
        if path:
            places.setdefault(kind, []).append(path)
        for name, field in kind.model_fields.items():
            for inner, several in _settings_in(field.annotation):
                where = f"{path}.{name}".lstrip(".") + ("[]" if several else "")
                pending.append((inner, where))
    return places


def _settings_in(annotation: Any, several: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The sections that a field holds, and whether it holds a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, several
    for inner in typing.get_args(annotation):
        yield from _settings_in(inner, several or typing.get_origin(annotation) is list)
