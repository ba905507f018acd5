"""The reference of Python: the public names of ``keju`` with signatures and docstrings."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

import keju
import keju.api
from keju.config.docs import field_docs
from keju.messages import Language
from tools.docs.markdown import code, one_line, opening, plain, table

NAME = "reference-python"
WIDEST = 96
"""Characters of a signature in one line; a longer one has a line for each parameter."""

# A title in both languages, and the names below it.
GROUPS: tuple[tuple[str, str, str], ...] = (
    (
        "Run and look",
        "运行与查看",
        "run_task arun_task run_matrix open_run list_runs score judge report plot export "
        "RunResults StoredRun Samples SampleRow Progress Matrix Figure",
    ),
    (
        "Compare and decide",
        "比较与判定",
        "compare Compared gate GateResult plan Plan audit Audit contamination Contamination",
    ),
    ("Settings", "设置", "TaskConfig DatasetArgs GenerationConfig"),
    (
        "Exams of your own",
        "自己的考试",
        "Benchmark Protocol Wording Question Questions Setup Subset Mean Reference Layout HubRepo "
        "by_name words find_benchmark prepare_exam Exam",
    ),
    (
        "Readers and graders",
        "答案提取器与评分函数",
        "reader grader pattern_reader Reader RobustReader Choice Number ANSWER_COLON",
    ),
    ("Models of your own", "自己的模型", "Model ModelKind Request Prompt Message Reply Fault"),
    ("What is stored", "存储的内容", "Run Record Sample Answer Score Results"),
    (
        "Errors",
        "错误",
        "KejuError UsageError ConfigError DataError EndpointError MissingExtra RunIncomplete "
        "Interrupted",
    ),
)
ELSEWHERE = {
    "TaskConfig": "reference-configuration#the-task",
    "DatasetArgs": "reference-configuration#datasetargs",
    "GenerationConfig": "reference-configuration#generationconfig",
    "Results": "reference-results#results",
}
"""Classes whose fields have a page of their own."""
WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "title": "Python reference",
        "intro": "The public names of `keju`, each `from keju import NAME`. [Python](python.md) "
        "shows how they are used. What is not here may change without a word.",
        "field": "field",
        "type": "type",
        "meaning": "meaning",
        "fields": "Fields: see [the reference]({place}).",
    },
    "zh": {
        "title": "Python 参考",
        "intro": "`keju` 的公开名称，都用 `from keju import NAME` 导入。"
        "用法见 [Python](python.zh-CN.md)。这里没有的，可能不经说明就改变。说明取自代码，为英文。",
        "field": "字段",
        "type": "类型",
        "meaning": "含义",
        "fields": "字段见[参考]({place})。",
    },
}


class Unquoted(str):
    """An annotation that is shown as it stands in the code."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def page(language: Language) -> str:
    """The page in a language."""
    words = WORDS[language]
    lines = [*opening(NAME, words["title"], language), words["intro"], ""]
    for english, chinese, listed in GROUPS:
        lines += [f"## {english if language == 'en' else chinese}", ""]
        for name in listed.split():
            lines += [f"### {name}", "", *_described(name, getattr(keju, name), language)]
    return "\n".join(lines).rstrip() + "\n"


def _described(name: str, thing: Any, language: Language) -> list[str]:
    if inspect.ismodule(thing):  # `report` is a function, and the room of its name
        thing = getattr(keju.api, name)
    if inspect.isfunction(thing):
        return [*_block(_signature(name, thing)), *_paragraphs(thing)]
    if not inspect.isclass(thing):
        return [*_block(f"{name} = {thing!r}")]
    lines = [*_block(_class_line(name, thing)), *_paragraphs(thing)]
    words = WORDS[language]
    if name in ELSEWHERE:
        suffix = ".md#" if language == "en" else ".zh-CN.md#"
        place = ELSEWHERE[name].replace("#", suffix)
        return [*lines, words["fields"].format(place=_in_page(place, language)), ""]
    docs = _public_fields(thing)
    if docs and not issubclass(thing, Exception):
        kinds = _annotations(thing)
        rows = [(code(key), code(kinds[key]), one_line(text)) for key, text in docs.items()]
        lines += table([words[key] for key in ("field", "type", "meaning")], rows)
    for key, member in vars(thing).items():
        if not key.startswith("_") and key not in docs:
            lines += _member(key, member)
    return lines


def _public_fields(kind: Any) -> dict[str, str]:
    return {key: text for key, text in field_docs(kind).items() if not key.startswith("_")}


def _in_page(place: str, language: Language) -> str:
    """Headings of the Chinese page are Chinese where the English ones are words."""
    return place.partition("#")[0] if language == "zh" and "the-task" in place else place


def _member(name: str, member: Any) -> list[str]:
    """A method or property of a class, with its docstring."""
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if inspect.isfunction(member):
        line = _signature(name, member)
    elif isinstance(member, property | cached_property):
        function = member.fget if isinstance(member, property) else member.func
        if function is None:
            return []
        line = f"{name}: {inspect.signature(function).return_annotation}"
    else:
        return []
    if not inspect.getdoc(member):
        return []
    return [*_block(line), *_paragraphs(member)]


def _block(text: str) -> list[str]:
    return ["```python", *text.replace("'", '"').splitlines(), "```", ""]


def _class_line(name: str, kind: type) -> str:
    parents = [base.__name__ for base in kind.__bases__ if base.__module__.startswith("keju")]
    public = [name for name in parents if name in keju.__all__]
    return f"class {name}({', '.join(public)})" if public else f"class {name}"


def _signature(name: str, function: Any) -> str:
    """``name(parameters) -> result`` as in the code, without quotes around annotations."""
    signature = inspect.signature(function)
    parameters = [
        _readable(parameter)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    result = signature.return_annotation
    signature = inspect.Signature(
        parameters, return_annotation=Unquoted(result) if isinstance(result, str) else result
    )
    before = "async " if inspect.iscoroutinefunction(function) else ""
    line = f"{before}{name}{signature}"
    if len(line) <= WIDEST:
        return line
    parts = [str(inspect.Signature([parameter]))[1:-1] for parameter in _alone(parameters)]
    end = f" -> {result}" if result is not inspect.Signature.empty else ""
    star = next((n for n, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
    if star is not None and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        parts.insert(star, "*")
    return "\n".join([f"{before}{name}(", *(f"    {part}," for part in parts), f"){end}"])


def _readable(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter whose annotation has no quotes, and whose default is no address in memory."""
    if isinstance(parameter.annotation, str):
        parameter = parameter.replace(annotation=Unquoted(parameter.annotation))
    if inspect.isroutine(parameter.default):
        parameter = parameter.replace(default=Unquoted("..."))
    return parameter


def _alone(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters so that each can be shown by itself."""
    plain_kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named_kinds = (inspect.Parameter.KEYWORD_ONLY, plain_kind)
    return [
        parameter.replace(kind=plain_kind) if parameter.kind in named_kinds else parameter
        for parameter in parameters
    ]


def _annotations(kind: type) -> dict[str, str]:
    """The annotations of all fields, as they stand in the code."""
    names_by_object: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        for name, annotation in vars(parent).get("__annotations__", {}).items():
            names_by_object[name] = annotation if isinstance(annotation, str) else repr(annotation)
    return names_by_object


def _paragraphs(thing: Any) -> list[str]:
    """A docstring; what is indented in it is code."""
    text = inspect.getdoc(thing) or ""
    lines = []
    for paragraph in text.split("\n\n"):
        is_code = paragraph.startswith("    ")
        lines += [paragraph if is_code else plain(paragraph), ""]
    return lines
