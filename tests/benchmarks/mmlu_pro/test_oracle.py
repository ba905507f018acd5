"""The oracle test: replies with the right answer in many styles, and their mirror image."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.benchmarks.mmlu_pro.readers import make_readers
from keju.types import Sample
from tests.benchmarks.mmlu_pro.conftest import real_exam

STYLES = {
    "as asked": "ANSWER: <X>",
    "authors' form": "It follows. The answer is (<X>).",
    "bold line": "Thoughts.\n\n**ANSWER: <X>**",
    "bold label": "ANSWER: **<X>**",
    "bold marker": "**Answer:** <X>",
    "lower case": "answer: <x>",
    "full-width colon": "Answer：<X>",
    "brackets": "ANSWER: [<X>]",
    "quotes": 'The answer is "<X>"',
    "boxed": "The final answer is $\\boxed{<X>}$.",
    "boxed alone": "So\n\\[\\boxed{\\text{<X>}}\\]",
    "next line": "The correct answer is:\n\n<X>",
    "option": "The correct answer is option <X>.",
    "choice": "The correct choice is <X>",
    "label and text": "The answer is <X>. <TEXT>",
    "label and text, bare": "ANSWER: <X> <TEXT>",
    "next line with text": "**Answer:**\n\n(<X>) <TEXT>",
    "text": "The answer is <TEXT>",
    "text, ended": "The correct answer is: <TEXT>.",
    "last line": "Thoughts.\n<X>",
    "last line, brackets": "Thoughts.\n(<X>)",
    "last line, label and text": "Thoughts.\n<X>) <TEXT>",
    "last line, text": "Thoughts.\n<TEXT>",
    "commentary": "ANSWER: <X>\nI hope this helps. A and B are wrong, as is DNA.",
    "commentary in line": "The answer is (<X>), because a is b, and I think so.",
    "not the other": "ANSWER: <X>, not <OTHER>",
    "Chinese cue": "所以答案是<X>。",
    "other letters before": "A is wrong. I thought of (B). Not C: no.\nFinal answer: <X>",
    "corrected": "At first I thought the answer is (<OTHER>).\nBut the answer is (<X>).",
    "code block": "The answer is:\n```\n(<X>)\n```\nDone.",
    "tag": "<answer><X></answer>",
    "nested brackets": "ANSWER: [(<X>)]",
    "heading": "### Answer\n(<X>) <TEXT>\n\nThat is all.",
    "dash": "Answer - <X>",
    "emphasis": "The answer is clearly the option (<X>).",
    "rather than": "The answer is (<X>) rather than (<OTHER>).",
    "since": "The answer is (<X>), since (<OTHER>) is too small.",
    "remark": "The answer is (<X>). (<OTHER>) is wrong.",
    "doubtless": "There is no doubt that the answer is <X>.",
    "run-on": "The answer is (<X>).\n\nQuestion:\nWhy?\nThe answer is (<OTHER>).",
}
NO_ANSWER = "I cannot say. A good question about DNA; the answer is unclear. I stop here."


@pytest.fixture(scope="module")
def samples(data_dir: Path) -> list[Sample]:
    return list(real_exam(data_dir, few_shot_num=0).samples)


def reply(style: str, sample: Sample, answer_place: int, other_place: int) -> str:
    return (
        style.replace("<OTHER>", sample.labels[other_place])
        .replace("<X>", sample.labels[answer_place])
        .replace("<x>", sample.labels[answer_place].lower())
        .replace("<TEXT>", sample.choices[answer_place].strip())
    )


@pytest.mark.parametrize("name", STYLES)
def test_right_answers_are_recognised_and_wrong_ones_never(
    samples: list[Sample], name: str
) -> None:
    robust = make_readers("evalscope")["robust"]
    recognised = mistaken = 0
    for sample in samples:
        gold = sample.labels.index(sample.target)
        wrong = (gold + 1) % len(sample.choices)
        right = robust.read(reply(STYLES[name], sample, gold, wrong), sample)
        recognised += right.value == sample.target
        mirror = robust.read(reply(STYLES[name], sample, wrong, gold), sample)
        mistaken += mirror.value == sample.target
    assert mistaken == 0
    assert recognised >= 0.999 * len(samples)


def test_no_answer_is_never_right(samples: list[Sample]) -> None:
    robust = make_readers("evalscope")["robust"]
    assert all(robust.read(NO_ANSWER, sample).value is None for sample in samples)


BARREN = (
    "ANSWER: <X> or even <OTHER>",
    "The answer is (<X>) vs (<OTHER>)",
    "ANSWER: <X>; <OTHER>",
    "The answer is (<X>, <OTHER>).",
    "The answer is \\boxed{<X>} or \\boxed{<OTHER>}",
    "The answer is (<X>) if it is so, otherwise (<OTHER>).",
    "It is not the case that the answer is (<X>).",
    "I don't think the answer is <X>.",
    "The answer is not (<X>)",
    "答案：<X> 或者 <OTHER>",
    "答案不是<X>",
)


@pytest.mark.parametrize("style", BARREN)
def test_two_answers_and_denials_are_never_right(samples: list[Sample], style: str) -> None:
    for robust in (make_readers("evalscope")["robust"], make_readers("official")["robust"]):
        for sample in samples[::5]:
            gold = sample.labels.index(sample.target)
            other_place = (gold + 1) % len(sample.choices)
            assert robust.read(reply(style, sample, gold, other_place), sample).value is None
            assert (
                robust.read(reply(style, sample, other_place, gold), sample).value != sample.target
            )
