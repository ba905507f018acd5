"""Chinese as it is written: its punctuation and its terms, in what Keju says and in the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from keju import messages
from keju.benchmarks import custom as custom
from keju.benchmarks import registry
from keju.messages.zh_help import HELP

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.zh-CN.md")), ROOT / "README.zh-CN.md"]

# `准确率: 5`, `清单 (manifest)`, `a; 另外`: not `原子组 (?>…)`, which is a pattern.
HALF_WIDTH = re.compile(
    r"[\u3400-\u9fff][,;:!?)]|[\u3400-\u9fff] ?\((?!\?)|[,;:] ?[\u3400-\u9fff]|\([\u3400-\u9fff]"
)
# Blocks, comments, `words`, the target of a link and tags are no prose.
CODE = re.compile(
    r"^(?P<fence>```|~~~).*?^(?P=fence)|<!--.*?-->|`[^`\n]+`|\]\([^)]*\)|<[^>]+>", re.M | re.S
)
REJECTED = {
    "评委|评判模型|评审模型|裁判模型": "评分模型",
    "裁决": "判定",
    "端点": "接口",
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
PROGRAM = "keju: "
"""Stands before a line of standard error, as with all programs."""


def sentences() -> Iterator[tuple[str, str]]:
    """Everything that is said in Chinese, by its place."""
    for name in registry.names():
        registry.get(name)  # an exam adds the sentences of its own room
    yield from messages.catalogue("zh").items()
    yield from messages.labels("zh").items()
    yield from HELP.items()
    for page in PAGES:
        yield page.name, CODE.sub("", page.read_text("utf-8"))


def test_chinese_has_its_own_punctuation() -> None:
    found = [
        (place, text[max(0, hit.start() - 20) : hit.end() + 20])
        for place, text in sentences()
        for hit in HALF_WIDTH.finditer(text.removeprefix(PROGRAM))
    ]
    assert found == []


def test_a_thing_has_one_name_in_chinese() -> None:
    found = [
        (place, text[max(0, hit.start() - 20) : hit.end() + 20], chosen)
        for place, text in sentences()
        for pattern, chosen in REJECTED.items()
        for hit in re.finditer(pattern, text)
    ]
    assert found == []


def test_the_names_are_in_the_table_for_translators() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for chosen in REJECTED.values():
        for name in chosen.split("，或"):
            assert name.removeprefix("95 % ") in table, name
