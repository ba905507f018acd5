"""Every published prompt, letter by letter, and the settings that change it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keju.benchmarks.base import Exam
from keju.types import Message

Evaluate = Callable[..., Exam]

HEAD = "以下是中国关于逻辑学考试的单项选择题，请选出其中的正确答案。"
SHOT = "一加一等于____。\nA{0}一\nB{0}二\nC{0}三\nD{0}四"
QUESTION = "雨后____？\r\n看图。\nA{0}天晴\nB{0}下雪\nC{0}刮风\r\n不停\nD{0}打雷"
WHY = "1. 一加一是二。\r\n2. 选二。"
STEPS = "让我们一步一步思考"


def tutorial(text: str) -> str:
    return text.format(": ")


def dotted(text: str) -> str:
    return text.format(". ")


def turns(exam: Exam) -> list[tuple[str, str]]:
    return [(m.role, m.content) for m in exam.render(exam.samples[0]).messages]


BASE = {
    ("tutorial", "answer-only", 0): f"{HEAD}\n\n{tutorial(QUESTION)}\n答案：",
    ("tutorial", "answer-only", 1): f"{HEAD}\n\n{tutorial(SHOT)}\n答案：B\n\n{tutorial(QUESTION)}\n答案：",
    ("tutorial", "cot", 0): f"{HEAD}\n\n{tutorial(QUESTION)}\n{STEPS}\n",
    ("tutorial", "cot", 1): f"{HEAD}\n\n{tutorial(SHOT)}\n{STEPS}\n{WHY}\n答案：B\n\n"
    f"{tutorial(QUESTION)}\n{STEPS}\n",
    ("official", "answer-only", 0): f"{HEAD}\n\n{dotted(QUESTION)}\n答案：",
    ("official", "answer-only", 1): f"{HEAD}\n\n{dotted(SHOT)}\n答案：B\n\n{dotted(QUESTION)}\n答案：",
    ("official", "cot", 0): f"{HEAD}\n\n{dotted(QUESTION)}\n答案：{STEPS}，\n1.",
    ("official", "cot", 1): f"{HEAD}\n\n{dotted(SHOT)}\n答案：{STEPS}，\n{WHY}\n所以答案是B。\n\n"
    f"{dotted(QUESTION)}\n答案：{STEPS}，\n1.",
}  # fmt: skip


@pytest.mark.parametrize(("protocol", "mode", "shots"), BASE)
def test_base_form_is_one_text_to_continue(
    evaluate: Evaluate, protocol: str, mode: str, shots: int
) -> None:
    exam = evaluate(protocol=protocol, mode=mode, form="base", few_shot_num=shots)
    prompt = exam.render(exam.samples[0])
    assert prompt.text == BASE[protocol, mode, shots]
    assert prompt.prefix.messages == ()
    assert prompt.cue == ""
    assert exam.protocol.form == "completion"


SYSTEM = ("system", HEAD)
PERSONA = ("system", f"你是一个中文人工智能助手，{HEAD}")
CHAT = {
    ("tutorial", "answer-only", 0): [SYSTEM, ("user", tutorial(QUESTION))],
    ("tutorial", "answer-only", 1): [
        SYSTEM,
        ("user", tutorial(SHOT)),
        ("assistant", "答案：B"),
        ("user", tutorial(QUESTION)),
    ],
    ("tutorial", "cot", 0): [SYSTEM, ("user", f"{tutorial(QUESTION)}\n{STEPS}")],
    ("tutorial", "cot", 1): [
        SYSTEM,
        ("user", f"{tutorial(SHOT)}\n{STEPS}"),
        ("assistant", f"{WHY}\n答案：B"),
        ("user", f"{tutorial(QUESTION)}\n{STEPS}"),
    ],
    ("official", "answer-only", 0): [PERSONA, ("user", f"{HEAD}\n\n{dotted(QUESTION)}\n答案：")],
    ("official", "answer-only", 1): [
        PERSONA,
        ("user", f"{HEAD}\n\n{dotted(SHOT)}\n答案："),
        ("assistant", "B"),
        ("user", f"{dotted(QUESTION)}\n答案："),
    ],
    ("official", "cot", 0): [PERSONA, ("user", f"{HEAD}\n\n{dotted(QUESTION)}\n答案：")],
    ("official", "cot", 1): [
        PERSONA,
        ("user", f"{HEAD}\n\n{dotted(SHOT)}\n答案："),
        ("assistant", f"{STEPS}，\n{WHY}\n所以答案是B。"),
        ("user", f"{dotted(QUESTION)}\n答案："),
    ],
}


@pytest.mark.parametrize(("protocol", "mode", "shots"), CHAT)
def test_chat_form_is_a_list_of_turns(
    evaluate: Evaluate, protocol: str, mode: str, shots: int
) -> None:
    exam = evaluate(
        protocol=protocol, mode=mode, form="chat", few_shot_num=shots, decode="generate"
    )
    assert turns(exam) == CHAT[protocol, mode, shots]
    assert exam.protocol.form == "chat"


def test_labels_over_a_chat_continue_the_tutorials_cue(evaluate: Evaluate) -> None:
    exam = evaluate(protocol="tutorial", few_shot_num=0)
    assert exam.protocol.decode == "labels"
    assert exam.render(exam.samples[0]).cue == "答案："
    assert turns(exam)[-1][0] == "user"
    official = evaluate(protocol="official", few_shot_num=0)
    assert turns(official)[-1][0] == "user"


EVALSCOPE_QUESTION = (
    '以下是中国关于逻辑学的单项选择题，请选出其中的正确答案。你的回答的最后一行应该是这样的格式："答案：[LETTER]"'
    "（不带引号），其中 [LETTER] 是 A、B、C、D 中的一个。\n\n问题：雨后____？\r\n看图。\n选项：\nA. 天晴\nB. 下雪\n"
    "C. 刮风\r\n不停\nD. 打雷\n"
)
EVALSCOPE_SHOT = "问题：一加一等于____。\n选项：\nA. 一\nB. 二\nC. 三\nD. 四\n解析：1. 一加一是二。\r\n2. 选二。\n答案：B"


def test_evalscope_is_one_user_message(evaluate: Evaluate) -> None:
    assert turns(evaluate(few_shot_num=0)) == [("user", EVALSCOPE_QUESTION)]
    second_shot = EVALSCOPE_SHOT.replace("一加一等于____。", "例1")
    assert turns(evaluate(few_shot_num=2)) == [
        (
            "user",
            f"以下是一些示例问题：\n\n{EVALSCOPE_SHOT}\n\n{second_shot}\n\n\n{EVALSCOPE_QUESTION}",
        )
    ]
    assert turns(evaluate())[0][1].count("解析：") == 5


def test_lm_eval_strips_the_question_and_puts_a_space_before_the_label(evaluate: Evaluate) -> None:
    head = "以下是中国关于逻辑学的单项选择题，请选出其中的正确答案。\n\n"
    zero = evaluate(protocol="lm-eval")
    assert zero.render(zero.samples[0]).text == f"{head}{dotted(QUESTION)}\n答案："
    one_shot = evaluate(protocol="lm-eval", few_shot_num=1)
    cat = "猫是____。\nA. 动物\nB. 植物\nC. 动物\nD. 石头\n答案："
    assert one_shot.render(one_shot.samples[1]).text == f"{head}{dotted(SHOT)}\n答案： B\n\n{cat}"


def test_opencompass_repeats_the_head(evaluate: Evaluate) -> None:
    shot, question = f"{HEAD}\n{dotted(SHOT)}\n答案: ", f"{HEAD}\n{dotted(QUESTION)}\n答案: "
    assert turns(evaluate(protocol="opencompass", few_shot_num=1)) == [
        ("user", shot),
        ("assistant", "B"),
        ("user", question),
    ]
    base = evaluate(protocol="opencompass", form="base", few_shot_num=1)
    assert base.render(base.samples[0]).text == f"{shot}\nB\n\n\n{question}\n"
    text = evaluate(protocol="opencompass", form="base", few_shot_num=1, decode="generate")
    assert text.render(text.samples[0]).text == f"{shot}\nB\n\n\n{question}"


@pytest.mark.parametrize("protocol", ["evalscope", "tutorial", "official", "opencompass"])
def test_the_prefix_is_one_object_per_subject(evaluate: Evaluate, protocol: str) -> None:
    exam = evaluate(protocol=protocol)
    first_prefix, second_prefix, law = (exam.render(sample).prefix for sample in exam.samples)
    assert first_prefix is second_prefix
    assert law is not first_prefix
    assert first_prefix.digest != law.digest


def test_system_prompt_replaces_the_head_and_empty_means_none(evaluate: Evaluate) -> None:
    settings = {"protocol": "tutorial", "few_shot_num": 0, "decode": "generate"}
    assert turns(evaluate(system_prompt="你好", **settings))[0] == ("system", "你好")
    assert [role for role, _ in turns(evaluate(system_prompt="", **settings))] == ["user"]
    assert turns(evaluate(system_prompt="你好"))[0] == ("system", "你好")


def test_without_a_system_role_the_head_opens_the_first_user_message(evaluate: Evaluate) -> None:
    settings = {"protocol": "tutorial", "decode": "generate", "system_role": False}
    assert turns(evaluate(few_shot_num=0, **settings)) == [
        ("user", f"{HEAD}\n\n{tutorial(QUESTION)}")
    ]
    with_shot = turns(evaluate(few_shot_num=1, **settings))
    assert with_shot[0] == ("user", f"{HEAD}\n\n{tutorial(SHOT)}")
    assert with_shot[-1] == ("user", tutorial(QUESTION))
    settings["protocol"] = "official"
    official = turns(evaluate(few_shot_num=0, **settings))
    assert official == [("user", f"{HEAD}\n\n{dotted(QUESTION)}\n答案：")]
    with_prompt = turns(evaluate(few_shot_num=0, system_prompt="你好", **settings))
    assert with_prompt == [("user", f"你好\n\n{HEAD}\n\n{dotted(QUESTION)}\n答案：")]


def test_a_template_that_is_accepted_is_what_is_sent(evaluate: Evaluate) -> None:
    template = '科目{subject}：{question}（{letters}）\n{choices}\n{"a": 1} 答？'
    exam = evaluate(prompt_template=template, few_shot_num=0)
    options = "A. 天晴\nB. 下雪\nC. 刮风\r\n不停\nD. 打雷"
    written = f'科目逻辑学：雨后____？\r\n看图。（A、B、C、D）\n{options}\n{{"a": 1}} 答？'
    assert turns(exam) == [("user", written)]


def test_few_shot_templates_are_used_too(evaluate: Evaluate) -> None:
    template = "例：{fewshot}\n问{subject}：{question}\n{choices}"
    (user,) = turns(evaluate(few_shot_prompt_template=template, few_shot_num=1))
    options = "A. 天晴\nB. 下雪\nC. 刮风\r\n不停\nD. 打雷"
    assert user[1] == f"例：{EVALSCOPE_SHOT}\n问逻辑学：雨后____？\r\n看图。\n{options}"
    (message,) = turns(evaluate(prompt_template="{question}{choices}", few_shot_num=1))
    assert message[1].startswith(f"以下是一些示例问题：\n\n{EVALSCOPE_SHOT}\n\n\n雨后")


def test_random_examples_depend_on_the_seed_alone(evaluate: Evaluate) -> None:
    random_exam = evaluate(few_shot_num=3, few_shot_random=True)
    repeated_exam = evaluate(few_shot_num=3, few_shot_random=True)
    assert turns(random_exam) == turns(repeated_exam)
    assert turns(random_exam) != turns(evaluate(few_shot_num=3))
    assert turns(random_exam)[0][1].count("解析：") == 3


def test_shuffled_options_move_the_target_and_leave_the_examples(evaluate: Evaluate) -> None:
    plain, shuffled = evaluate(), evaluate(shuffle_choices=True)
    assert any(sample.order != (0, 1, 2, 3) for sample in shuffled.samples)
    for before, after in zip(plain.samples, shuffled.samples, strict=True):
        assert tuple(before.choices[i] for i in after.order) == after.choices
        gold = before.choices["ABCD".index(before.target)]
        assert after.choices["ABCD".index(after.target)] == gold
        assert plain.render(before).prefix.lead == shuffled.render(after).prefix.lead
        prompt_text = shuffled.render(after).text
        assert all(
            f"{label}. {text}" in prompt_text
            for label, text in zip("ABCD", after.choices, strict=True)
        )


def test_line_breaks_of_the_real_data_are_kept(real: Callable[..., Exam]) -> None:
    exam = real()
    broken = [sample for sample in exam.samples if "\r\n" in sample.text + "".join(sample.choices)]
    assert len(broken) > 5
    for sample in broken:
        text = exam.render(sample).text
        assert sample.text in text
        assert all(choice in text for choice in sample.choices)
    messages = exam.render(exam.samples[0]).messages
    assert messages == [Message("user", messages[0].content)]
