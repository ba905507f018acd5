"""Chinese as it is written: its punctuation and its terms, in what Keju says and in the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from keju import messages
from keju.benchmarks import custom as custom
from keju.benchmarks import registry
from keju.config.strict import parse_yaml
from keju.errors import ConfigError, DataError, Notice, quoted
from keju.files import parse_json
from keju.messages import store
from tests.support.chinese_text import HALF_WIDTH, PROGRAM

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.zh-CN.md")), ROOT / "README.zh-CN.md"]

# Blocks, comments, `words`, the target of a link and tags are no prose.
CODE = re.compile(
    r"^(?P<fence>```|~~~).*?^(?P=fence)|<!--.*?-->|`[^`\n]+`|\]\([^)]*\)|<[^>]+>", re.M | re.S
)
REJECTED = {
    "评委|评判模型|评审模型|裁判模型": "评分模型",
    "裁决": "判定",
    "接口": "服务端点",
    "读取器": "答案提取器",
    "门槛": "上线检查",
    "您": "你",
    "95 % 区间": "95 % 置信区间",
    r"\} ?分(?![0-9钟之支])|（分）": "个百分点",
    "(?<!百)分数(?!运算)": "得分",
    "基准(?!测试)": "基线，或考试",
    "附加部分": "可选组件",
    "模型库": "数据站",
    "运行目录": "运行文件夹",
    r"[\u3400-\u9fff，、；] ?[Tt]okens?\b|\b[Tt]okens? ?[\u3400-\u9fff]": "词元",
}
"""Words that stand for a thing which has another name in the table of CONTRIBUTING.md."""


def sentences() -> Iterator[tuple[str, str]]:
    """Everything that is said in Chinese, by its place."""
    for name in registry.names():
        registry.get(name)  # an exam adds the sentences of its own room
    yield from messages.catalogue("zh").items()
    yield from messages.labels("zh").items()
    yield from store.texts("zh", "help").items()
    for page in PAGES:
        yield page.name, CODE.sub("", page.read_text("utf-8"))


def test_chinese_has_its_own_punctuation() -> None:
    offences = [
        (place, text[max(0, hit.start() - 20) : hit.end() + 20])
        for place, text in sentences()
        for hit in HALF_WIDTH.finditer(text.removeprefix(PROGRAM))
    ]
    assert offences == []


def test_a_thing_has_one_name_in_chinese() -> None:
    offences = [
        (place, text[max(0, hit.start() - 20) : hit.end() + 20], chosen)
        for place, text in sentences()
        for pattern, chosen in REJECTED.items()
        for hit in re.finditer(pattern, text)
    ]
    assert offences == []


def test_the_names_are_in_the_table_for_translators() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for chosen in REJECTED.values():
        for name in chosen.split("，或"):
            assert name.removeprefix("95 % ") in table, name


# `原文“…”`, or two English words in a row.
ENGLISH = re.compile(r"原文|[A-Za-z]{3,} [A-Za-z]{3,}")


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[1,",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{'a': 1}",
        '{"a"',
        '["a',
        "[] []",
        '["\n"]',
        r'["\q"]',
    ],
)
def test_what_is_wrong_with_a_json_document_is_told_in_chinese(document: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(document.encode())
    chinese = caught.value.text("zh")
    assert not ENGLISH.search(chinese), chinese


@pytest.mark.parametrize(
    "document",
    [
        "a: b: c",
        "a: [1\nb: 2",
        'a: "b',
        "\ta: 1",
        "- a\nb: c",
        "a: ]",
        "a\nb: c",
        "a: *b",
        "a: {b c",
    ],
)
def test_what_is_wrong_with_a_yaml_document_is_told_in_chinese(document: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(document, "task.yaml")
    chinese = caught.value.text("zh")
    assert chinese.startswith("task.yaml")
    assert not ENGLISH.search(chinese), chinese


@pytest.mark.parametrize(
    ("problem", "chinese"),
    [
        ("connection refused", "（连接被拒绝）"),
        ("the host is not known (Name or service not known)", "（找不到这个主机）"),
        ("failed to lookup address information: Name or service not known", "（找不到这个主机）"),
        ("no reply within 2.5 s", "（2.5 秒内没有回复）"),
        ("invalid peer certificate: Expired", "（服务器的证书已过期（invalid peer "),
        ("the server closed the connection before its reply was whole", "回复完整之前"),
        ("503: status 503", "（503：状态码 503）"),
        ("400: The model is {tired}.", "（400：原文“The model is {tired}.”）"),
        ("模型过载", "（模型过载）"),
        ("TypeError", "（TypeError）"),
    ],
)
def test_the_words_of_another_program_are_no_part_of_a_chinese_sentence(
    problem: str, chinese: str
) -> None:
    notice = Notice("endpoint_refused_request", {"url": "http://h/v1", "problem": problem})
    assert chinese in notice.text("zh")
    assert problem in notice.text("en")


def test_a_line_of_a_log_is_told_in_chinese() -> None:
    """Rows of logs, and the documents about them, hold their place as a text."""
    values = {"first": "a.jsonl, line 3", "second": Path("logs/b.jsonl, line 12"), "id": "q1"}
    error = DataError("import_twice", **values)
    assert error.text("zh").startswith("a.jsonl，第 3 行 和 logs/b.jsonl，第 12 行 都回答了")
    assert str(error).startswith("a.jsonl, line 3 and logs/b.jsonl, line 12 ")


# `'en'`, `'{name}'`; not what a shell takes as it stands, such as `pip install 'keju[mcp]'`.
ASCII_QUOTES = re.compile(r"'(?:\{\w+(?:![rs])?\}|[\w.-]+)'|\{\w+!r\}")


def test_names_and_values_stand_between_chinese_quotation_marks() -> None:
    offences = [
        (place, hit.group())
        for place, text in sentences()
        if not place.endswith(".md")
        for hit in ASCII_QUOTES.finditer(text)
    ]
    assert offences == []
    assert [name.text("zh") for name in quoted(["en", "zh"])] == ["“en”", "“zh”"]
    assert quoted(["en", "zh"]) == ["'en'", "'zh'"]
