"""Every published prompt form, letter for letter, on small data made for the test."""

from __future__ import annotations

import pytest

from keju.errors import ConfigError
from tests.benchmarks.mmlu_pro.conftest import Prepare

EVALSCOPE_HEAD = (
    "The following are multiple choice questions (with answers) about math. Think step by step and "
    "then finish your answer with 'ANSWER: [LETTER]' (without quotes) where [LETTER] is the correct "
    "letter choice.\n\n"
)
EVALSCOPE_ASK = (
    "Answer the following multiple choice question. The last line of your response should be of the "
    "following format: 'ANSWER: [LETTER]' (without quotes) where [LETTER] is one of A,B,C. Think "
    "step by step before answering.\n\n"
    "Question:\nTwo and two?\nOptions:\nA) three\nB) four\nC) five \n"
)
EVALSCOPE_SHOT_1 = (
    "Question:\nOne and one?\nOptions:\nA two\nB N/A\nC ten\nD N/A\n"
    "A: Let's think step by step. It is two. ANSWER: A.\n\n"
)
EVALSCOPE_SHOT_2 = (
    "Question:\nOne and two?\nOptions:\nA four\nB three\n"
    "A: Let's think step by step. It is three. ANSWER: B.\n\n"
)


def test_evalscope_with_worked_examples(prepare: Prepare) -> None:
    exam = prepare()
    prompt = exam.render(exam.samples[0])
    assert prompt.text == EVALSCOPE_HEAD + EVALSCOPE_SHOT_1 + EVALSCOPE_SHOT_2 + EVALSCOPE_ASK
    assert [message.role for message in prompt.messages] == ["user"]


def test_evalscope_with_fewer_and_without_examples(prepare: Prepare) -> None:
    one_shot, zero_shot = prepare(few_shot_num=1), prepare(few_shot_num=0)
    assert (
        one_shot.render(one_shot.samples[0]).text
        == EVALSCOPE_HEAD + EVALSCOPE_SHOT_1 + EVALSCOPE_ASK
    )
    assert zero_shot.render(zero_shot.samples[0]).text == EVALSCOPE_ASK


def test_official_is_a_text_to_continue(prepare: Prepare) -> None:
    exam = prepare(protocol="official")
    assert exam.render(exam.samples[0]).text == (
        "The following are multiple choice questions (with answers) about math. Think step by step "
        'and then finish your answer with "the answer is (X)" where X is the correct letter choice.'
        "\n\n\n\n"
        "Question:\nOne and one?\nOptions:\nA. two\nB. ten\n"
        "Answer: Let's think step by step. It is two. The answer is (A).\n\n"
        "Question:\nOne and two?\nOptions:\nA. four\nB. three\n"
        "Answer: Let's think step by step. It is three. The answer is (B).\n\n"
        "Question:\nTwo and two?\nOptions:\nA. three\nB. four\nC. five \n"
        "Answer: Let's think step by step."
    )
    assert exam.protocol.form == "completion"
    assert exam.protocol.stop == ("Question:",)
    assert exam.protocol.max_tokens == 2048


def test_official_api_is_one_message(prepare: Prepare) -> None:
    exam = prepare(protocol="official-api")
    assert exam.render(exam.samples[0]).text == (
        "The following are multiple choice questions (with answers) about math. Think step by step "
        'and then output the answer in the format of "The answer is (X)" at the end.\n\n'
        "Question: One and one?\nOptions: A. two\nB. ten\n"
        "Answer: Let's think step by step. It is two. The answer is (A).\n\n"
        "Question: One and two?\nOptions: A. four\nB. three\n"
        "Answer: Let's think step by step. It is three. The answer is (B).\n\n"
        "Question: Two and two?\nOptions: A. three\nB. four\nC. five \n"
        "Answer: Let's think step by step.\n\n"
    )
    assert (exam.protocol.form, exam.protocol.max_tokens) == ("chat", 4000)


def test_questions_of_a_category_share_their_prefix(prepare: Prepare) -> None:
    for protocol in ("evalscope", "official", "official-api"):
        exam = prepare(protocol=protocol)
        first_prompt, second_prompt = (exam.render(sample) for sample in exam.samples)
        assert first_prompt.prefix is second_prompt.prefix
        assert "One and one?" in first_prompt.prefix.lead
        assert "Two and two?" in first_prompt.tail


def test_braces_of_a_question_are_text(prepare: Prepare) -> None:
    exam = prepare(subset_list=["history"], few_shot_num=0)
    text = exam.render(exam.samples[0]).text
    assert "Question:\nWho made {choices}?\nOptions:\nA) Cai Lun\nB) Bi Sheng\n" in text
    assert "one of A,B." in text


def test_templates_are_what_is_sent(prepare: Prepare) -> None:
    question = "{subject}: {question} [{letters}]\n{choices}"
    exam = prepare(prompt_template=question, few_shot_num=0)
    question_text = "math: Two and two? [A,B,C]\nA) three\nB) four\nC) five "
    assert exam.render(exam.samples[0]).text == question_text

    exam = prepare(prompt_template=question)
    shots = EVALSCOPE_HEAD + EVALSCOPE_SHOT_1 + EVALSCOPE_SHOT_2
    assert exam.render(exam.samples[0]).text == shots + question_text

    exam = prepare(few_shot_prompt_template="{question}\n{choices}\nSee:\n{examples}{subject}")
    examples = (EVALSCOPE_SHOT_1 + EVALSCOPE_SHOT_2).removesuffix("\n\n")
    assert exam.render(exam.samples[0]).text == (
        f"Two and two?\nA) three\nB) four\nC) five \nSee:\n{examples}math"
    )
    assert exam.settings["few_shot_prompt_template"].startswith("{question}")


def test_a_system_prompt_is_a_message_of_its_own(prepare: Prepare) -> None:
    for protocol in ("evalscope", "official-api"):
        exam = prepare(system_prompt="Be brief.", protocol=protocol)
        system_message, user_message = exam.render(exam.samples[0]).messages
        assert (system_message.role, system_message.content, user_message.role) == (
            "system",
            "Be brief.",
            "user",
        )
    exam = prepare(system_prompt="")
    assert [m.role for m in exam.render(exam.samples[0]).messages] == ["user"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"few_shot_num": 6}, "few_shot_num of protocol evalscope is 0 to 5, not 6"),
        ({"few_shot_num": 0, "few_shot_random": True}, "no worked examples to draw"),
        ({"protocol": "offical"}, "no protocol 'offical'.*official"),
        ({"subset_list": ["maths"]}, "no subset 'maths'.*'math'"),
        ({"subset_list": []}, "subset_list is empty"),
        ({"prompt_template": "{qestion}{choices}"}, "unknown placeholder.*question"),
        ({"prompt_template": "{question}"}, r"\{choices\} is missing"),
        (
            {"prompt_template": "{question}{choices}{examples}"},
            r"unknown placeholder '\{examples\}'",
        ),
        ({"few_shot_prompt_template": "{question}{choices}"}, r"\{examples\} is missing"),
        (
            {"few_shot_prompt_template": "{examples}{question}{choices}", "few_shot_num": 0},
            "no effect without worked examples",
        ),
        (
            {
                "few_shot_prompt_template": "{examples}{question}{choices}",
                "prompt_template": "{question}{choices}",
            },
            "no effect together with few_shot_prompt_template",
        ),
        ({"protocol": "official", "prompt_template": "{question}{choices}"}, "fixed prompt"),
        ({"protocol": "official-api", "few_shot_prompt_template": "x"}, "fixed prompt"),
        ({"protocol": "official", "system_prompt": "x"}, "no system message"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    prepare: Prepare, args: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare(**args)


def test_a_pool_that_is_too_small_is_an_error(prepare: Prepare) -> None:
    with pytest.raises(ConfigError, match=r"3 worked examples asked for, .* has 2 of 'math'"):
        prepare(few_shot_num=3)


def test_random_examples_depend_on_the_seed_alone(prepare: Prepare) -> None:
    leads = set()
    for seed in range(8):
        exam = prepare(few_shot_num=1, few_shot_random=True, seed=seed)
        repeated_exam = prepare(few_shot_num=1, few_shot_random=True, seed=seed)
        lead = exam.render(exam.samples[0]).prefix.lead
        assert repeated_exam.render(repeated_exam.samples[0]).prefix.lead == lead
        leads.add(lead)
    assert len(leads) == 2


def test_only_the_options_of_questions_are_shuffled(prepare: Prepare) -> None:
    plain = prepare()
    gold = {s.id: s.choices["ABCDEFGHIJ".index(s.target)] for s in plain.samples}
    orders = set()
    for seed in range(6):
        exam = prepare(shuffle_choices=True, seed=seed)
        for sample, before in zip(exam.samples, plain.samples, strict=True):
            assert sample.choices == tuple(before.choices[i] for i in sample.order)
            assert sample.choices["ABCDEFGHIJ".index(sample.target)] == gold[sample.id]
        first_sample = exam.samples[0]
        orders.add(first_sample.order)
        prompt = exam.render(first_sample)
        assert prompt.prefix.lead.startswith(EVALSCOPE_HEAD + EVALSCOPE_SHOT_1 + EVALSCOPE_SHOT_2)
        assert f"\nA) {first_sample.choices[0]}\n" in prompt.tail
    assert len(orders) > 1
