"""The oracle test: the right answer in many styles is read, a wrong one is never scored right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keju.answers.segments import split_thinking
from keju.benchmarks.base import Exam
from keju.benchmarks.grading import grade
from keju.types import Reply, Sample

Evaluate = Callable[..., Exam]
OTHERS = "先看各选项：A不对，B存疑，C选项错误，D也不完整。"

STYLES = {
    "cue": "答案：{X}",
    "half-width colon": "答案: {X}",
    "full stop": "答案：{X}。",
    "bold": "**答案：{X}**",
    "bold cue": "**答案**：{X}",
    "bold label": "答案：**{X}**",
    "brackets": "答案：({X})",
    "full-width brackets": "答案：（{X}）",
    "lenticular brackets": "答案：【{X}】",
    "full-width letter": "答案：{W}",
    "lower case": "答案：{x}",
    "next line": "答案：\n{X}",
    "after an empty line": "答案：\n\n**{X}**",
    "with its text": "答案：{X}. {text}",
    "quoted": "答案是“{X}”。",
    "boxed": "最终答案是 $\\boxed{{{X}}}$。",
    "boxed alone": OTHERS + "\n\\boxed{{{X}}}",
    "boxed text": "答案：\\boxed{{\\text{{{X}}}}}",
    "official": "1. 分析。\n所以答案是{X}。",
    "is": "综上所述，正确答案是{X}。",
    "is with colon": "故答案为：{X}．",
    "should be": "因此答案应该是选项{X}。",
    "choose": "故选：{X}",
    "choose option": "应选 {X} 选项，因为 DNA 如此。",
    "therefore": "因此选{X}。",
    "so": OTHERS + "所以选{X}，其余都错误",
    "select": "我选择{X}。",
    "correct one": "正确的一项是{X}。",
    "correct option": "正确的选项是 {X}",
    "bracketed cue": "【答案】{X}\n【解析】略。",
    "other letters before": OTHERS + "\n答案：{X}",
    "commentary after": "答案：{X}\n\n以上分析供参考，A、B、C、D 各有道理。",
    "remark on another": "所以选{X}，{Y}也错误",
    "thinking": "<think>答案：{Y}</think>\n答案：{X}",
    "english": "The answer is {X}.",
    "english cue": "**Answer:** {X}",
    "english brackets": "So the correct answer is ({X}).",
    "letter": "{X}",
    "letter with full stop": "{X}。",
    "letter last": OTHERS + "\n{X}",
    "option": "{X}选项",
    "code block": "答案：\n```\n{X}\n```",
    "tag": "<answer>{X}</answer>",
    "nested brackets": "答案：[({X})]",
    "rather than": "答案是{X}，而不是{Y}。",
    "because": "答案：{X}，因为{Y}选项不成立。",
    "heading": "### Answer\n{X}\n\n完。",
    "corrected": "答案：{Y}\n不对，重新计算。\n答案：{X}",
}
ONE_LINE_STYLES = {
    "letter and text": "{X}. {text}",
    "letter and text last": OTHERS + "\n{X}、{text}",
    "text": "{text}",
}
BARREN = {
    "placeholder": "答案：[LETTER]",
    "negated": "不选{X}",
    "both": "答案：{X}、{Y}",
    "either": "答案是{X}或{Y}",
    "prose": "我无法确定，仅供参考 DN{X}",
    "wrong answer": "错误答案是{X}",
    "not": "答案不是{X}",
    "or": "答案：{X} 或者 {Y}",
    "or else": "答案是{X}还是{Y}",
    "semicolon": "答案：{X}；{Y}",
    "listed": "答案：({X}、{Y})",
    "boxes": "答案是 $\\boxed{{{X}}}$ 或 $\\boxed{{{Y}}}$",
    "versus": "The answer is ({X}) vs ({Y})",
    "denied": "我不认为答案是{X}",
    "denied in English": "It is not the case that the answer is {X}",
}


def reply(style: str, sample: Sample, label: str) -> Reply:
    wrong_label = next(
        wrong_label for wrong_label in sample.labels if wrong_label not in (label, sample.target)
    )
    text = style.format(
        X=label,
        Y=wrong_label,
        x=label.lower(),
        W=chr(ord(label) + 0xFEE0),
        text=sample.choices[sample.labels.index(label)],
    )
    return Reply(text=split_thinking(text).text)


def count(exam: Exam, style: str, *, shift: int, one_line: bool = False) -> tuple[int, int]:
    """How many rows are scored right where the reply names the gold's `shift`-th successor."""
    reader = exam.readers["robust"]
    right = total = 0
    for sample in exam.samples:
        broken = any("\n" in choice for choice in sample.choices)
        if one_line and (broken or sample.id in exam.errata):
            continue
        label = sample.labels[(sample.labels.index(sample.target) + shift) % 4]
        total += 1
        right += grade(reply(style, sample, label), sample, reader).score.outcome == "correct"
    return right, total


@pytest.fixture(scope="module")
def exam(real: Evaluate) -> Exam:
    """The whole val split; the prompts do not matter here."""
    return real(few_shot_num=0)


@pytest.mark.parametrize("style", STYLES)
def test_the_right_answer_is_read_and_a_wrong_one_is_not(exam: Exam, style: str) -> None:
    right, total = count(exam, STYLES[style], shift=0)
    assert total == 1346
    assert right / total >= 0.999
    for shift in (1, 2, 3):
        assert count(exam, STYLES[style], shift=shift)[0] == 0


@pytest.mark.parametrize("style", ONE_LINE_STYLES)
def test_options_are_recognised_by_their_text(exam: Exam, style: str) -> None:
    right, total = count(exam, ONE_LINE_STYLES[style], shift=0, one_line=True)
    assert total > 1300
    assert right / total >= 0.999
    assert count(exam, ONE_LINE_STYLES[style], shift=1, one_line=True)[0] == 0


@pytest.mark.parametrize("style", BARREN)
def test_a_reply_without_an_answer_is_never_right(exam: Exam, style: str) -> None:
    assert count(exam, BARREN[style], shift=0)[0] == 0


@pytest.mark.parametrize("protocol", ["tutorial", "official", "lm-eval", "opencompass"])
def test_a_base_model_that_runs_on_is_read_where_it_answered(real: Evaluate, protocol: str) -> None:
    exam = real(protocol=protocol, form="base", few_shot_num=0, decode="generate")
    reader = exam.readers["robust"]
    for sample, after in zip(exam.samples, exam.samples[1:], strict=False):
        wrong = "ABCD"["ABCD".index(sample.target) - 1]
        run_on = f"{sample.target}\n\n{exam.render(after).text}{wrong}\n\n"
        reading = grade(Reply(text=run_on), sample, reader)
        assert (reading.score.outcome, reading.answer.cut) == ("correct", True)
