"""How answers to the Chinese questions are read."""

from __future__ import annotations

import pytest

from keju.benchmarks.fresh.readers import CHINESE_READERS
from keju.types import Sample

SAMPLES = {
    "boolean_expressions": Sample(
        id="b", subset="boolean_expressions", index=0, text="非 真 或 假 的值是", target="假"
    ),
    "navigate": Sample(
        id="n",
        subset="navigate",
        index=0,
        text="如果按照下面的指示走，你会回到起点吗？向前走 3 步。\n选项：\n- 是\n- 否",
        target="否",
    ),
    "web_of_lies": Sample(
        id="w", subset="web_of_lies", index=0, text="小明说谎。小红说小明说谎。小红说真话吗？",
        target="是",
    ),
    "dyck_languages": Sample(
        id="d", subset="dyck_languages", index=0, text="补全序列，使括号正确闭合。输入：< [ (",
        target=") ] >",
    ),
    "object_counting": Sample(
        id="o", subset="object_counting", index=0, text="我有三个苹果和两个梨。一共有多少个水果？",
        target="5",
    ),
    "tracking_shuffled_objects_three_objects": Sample(
        id="t",
        subset="tracking_shuffled_objects_three_objects",
        index=0,
        text="…\n选项：\n(A) 红球\n(B) 蓝球\n(C) 绿球",
        choices=("红球", "蓝球", "绿球"),
        target="(B)",
    ),
}  # fmt: skip
RIGHT = [
    ("boolean_expressions", "非 真 = 假。假 或 假 = 假。\n所以答案是假。"),
    ("boolean_expressions", "答案是**假**"),
    ("boolean_expressions", "因此，该表达式的值为假。"),
    ("boolean_expressions", "So the answer is False."),
    ("navigate", "所以答案是否。"),
    ("navigate", "所以答案是否定的。"),
    ("navigate", "不会，因为你离起点还有 3 步。"),
    ("navigate", "你不会回到起点。"),
    ("web_of_lies", "所以答案是是。"),
    ("web_of_lies", "小红说的是真话。"),
    ("dyck_languages", "所以答案是 ) ] >。"),
    ("dyck_languages", "完整序列：< [ ( ) ] >"),
    ("object_counting", "所以答案是 五。"),
    ("object_counting", "3 + 2 = 5。所以答案是：5 个"),
    ("tracking_shuffled_objects_three_objects", "所以答案是（B）。"),
    ("tracking_shuffled_objects_three_objects", "最后她拿着蓝球。"),
    (
        "tracking_shuffled_objects_three_objects",
        "所以答案是 (B)。\n\n问：另一道题\n答：所以答案是 (C)。",
    ),
]
WRONG = [
    ("boolean_expressions", "结果是真。"),
    ("boolean_expressions", "所以答案是 真。"),
    ("navigate", "是的，你会回到起点。"),
    ("navigate", "是因为向前走了 3 步。"),
    ("web_of_lies", "小红说谎。"),
    ("object_counting", "所以答案是 十五。"),
    ("tracking_shuffled_objects_three_objects", "所以答案是 (A) 或 (B)。"),
]


@pytest.mark.parametrize(("subset", "text"), RIGHT)
def test_robust_reads_what_is_right(subset: str, text: str) -> None:
    reader, sample = CHINESE_READERS["robust"], SAMPLES[subset]
    answer = reader.read(text, sample)
    assert answer.value is not None
    assert reader.matches(answer.value, sample)


@pytest.mark.parametrize(("subset", "text"), WRONG)
def test_robust_takes_nothing_else_for_right(subset: str, text: str) -> None:
    reader, sample = CHINESE_READERS["robust"], SAMPLES[subset]
    value = reader.read(text, sample).value
    assert value is None or not reader.matches(value, sample)


@pytest.mark.parametrize("name", ["evalscope", "paper"])
@pytest.mark.parametrize("subset", SAMPLES)
def test_the_published_form_is_read_strictly(subset: str, name: str) -> None:
    reader, sample = CHINESE_READERS[name], SAMPLES[subset]
    answer = reader.read(f"想一想。所以答案是 {sample.target}。", sample)
    assert answer.tier == "strict"
    assert answer.value is not None
    assert reader.matches(answer.value, sample)


def test_without_its_marker_the_paper_form_reads_nothing() -> None:
    answer = CHINESE_READERS["paper"].read("答案是假", SAMPLES["boolean_expressions"])
    assert answer.reason == "no_marker"
