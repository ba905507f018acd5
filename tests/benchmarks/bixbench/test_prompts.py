"""The prompts, letter for letter."""

from __future__ import annotations

import pytest

from keju.errors import ConfigError
from tests.benchmarks.bixbench.conftest import Prepare

MCQ_SYSTEM = (
    "Respond with a single letter A, B, C, or D. If an 'E. I don't know' option is shown, you may "
    "answer E. Output only the letter."
)


def test_environment_mcq(prepare: Prepare) -> None:
    exam = prepare(shuffle_options=False)
    system, user = exam.render(exam.samples[0]).messages
    assert (system.role, system.content) == ("system", MCQ_SYSTEM)
    assert user.content == (
        "What is bix-1-q1?\n\nOptions:\nA. 0.0002\nB. 7.8E-05\nC. 0.0003\nD. 1.8E-05\n"
    )


def test_environment_mcq_with_refusal(prepare: Prepare) -> None:
    exam = prepare(shuffle_options=False, with_refusal=True)
    assert exam.render(exam.samples[0]).text.endswith("D. 1.8E-05\nE. I don't know\n")


def test_environment_open(prepare: Prepare) -> None:
    exam = prepare(answer_mode="open")
    system, user = exam.render(exam.samples[0]).messages
    assert system.content == (
        "Answer succinctly in one or two sentences. Do not include qualifiers like 'I think'."
    )
    assert user.content == "What is bix-1-q1?"


def test_hypothesis_with_a_legend_computed_after_shuffling(real: Prepare) -> None:
    exam = real(question_source="hypothesis", add_tf_legend=True)
    targets = set()
    for sample in exam.samples:
        true, false = ("A", "B") if sample.choices[0] == "True" else ("B", "A")
        targets.add(true)
        first_option, second_option = sample.choices
        assert exam.render(sample).text == (
            f"{sample.text}\n\nLegend: {true}=True, {false}=False\n\n"
            f"Options:\nA. {first_option}\nB. {second_option}\n"
        )
    assert targets == {"A", "B"}


def test_no_claim_about_letters_that_shuffling_makes_false(prepare: Prepare) -> None:
    exam = prepare(question_source="hypothesis")
    system, user = exam.render(exam.samples[0]).messages
    assert system.content == (
        "You are evaluating whether a scientific hypothesis is supported. Respond with a single "
        "letter A or B. If a 'C. I don't know' option is shown, you may answer C. Output only the "
        "letter."
    )
    assert "Legend" not in user.content


def test_hypothesis_open(prepare: Prepare) -> None:
    exam = prepare(question_source="hypothesis", answer_mode="open")
    system, user = exam.render(exam.samples[0]).messages
    assert system.content == (
        "Answer whether the hypothesis is true or false. Respond with 'True' or 'False' only, "
        "unless you are unsure."
    )
    assert user.content == "Hypothesis of bix-1."
    assert exam.chance(exam.samples[0]) == 0.5


def test_official_mcq(prepare: Prepare) -> None:
    exam = prepare(protocol="official", shuffle_options=False)
    (user,) = exam.render(exam.samples[0]).messages
    assert exam.protocol.temperature == 1.0
    assert user.content == (
        "Extract the single letter answer to the following question from the given options. You "
        "must pick one answer even if you are unsure.\n\nQuestion: What is bix-1-q1?\n\nOptions:\n"
        "(A) 0.0002\n(B) 7.8E-05\n(C) 0.0003\n(D) 1.8E-05IMPORTANT: You must only output a single "
        "letter answer in XML format.\n\n Example Output: <answer> X </answer>"
    )


def test_official_mcq_with_refusal(prepare: Prepare) -> None:
    exam = prepare(protocol="official", shuffle_options=False, with_refusal=True)
    (user,) = exam.render(exam.samples[0]).messages
    assert user.content == (
        "Extract the single letter answer to the following question from the given options given "
        "below.\n\nQuestion: What is bix-1-q1?\n\nOptions:\n(A) 0.0002\n(B) 7.8E-05\n(C) 0.0003\n"
        "(D) 1.8E-05\n(E) Insufficient information to answer the questionIMPORTANT: You must only "
        "output a single letter answer in XML format.\n\nExample Output: <answer> X </answer>"
    )


def test_official_open(prepare: Prepare) -> None:
    exam = prepare(protocol="official", answer_mode="open")
    (user,) = exam.render(exam.samples[0]).messages
    assert user.content == (
        "Answer following question to the best of your knowledge.Keep your answer concise and to "
        "the point.\n\nQuestion: What is bix-1-q1?IMPORTANT: You must only output your answer in "
        "XML format.\n\nExample Output: <answer> Your answer </answer>"
    )


def test_official_has_no_hypothesis_view(prepare: Prepare) -> None:
    with pytest.raises(ConfigError, match="no hypothesis view"):
        prepare(protocol="official", question_source="hypothesis")


def test_system_prompt_null_is_the_default_and_empty_is_none(prepare: Prepare) -> None:
    with_prompt = prepare(system_prompt="Be brief.")
    assert with_prompt.render(with_prompt.samples[0]).messages[0].content == "Be brief."
    without_prompt = prepare(system_prompt="")
    assert [m.role for m in without_prompt.render(without_prompt.samples[0]).messages] == ["user"]


def test_a_template_of_the_user_is_what_is_sent(prepare: Prepare) -> None:
    exam = prepare(prompt_template="Q {question}\n{choices}", shuffle_options=False)
    assert exam.render(exam.samples[0]).text.startswith("Q What is bix-1-q1?\nA. 0.0002\n")
    with pytest.raises(ConfigError, match=r"the placeholder \{choices\} is missing"):
        prepare(prompt_template="{question}")
    with pytest.raises(ConfigError, match="unknown placeholder"):
        prepare(prompt_template="{question}{choices}{x}")


def test_the_prefix_is_shared(prepare: Prepare) -> None:
    exam = prepare(protocol="official")
    first_prefix, second_prefix = (exam.render(sample).prefix for sample in exam.samples[:2])
    assert first_prefix is second_prefix
    assert first_prefix.lead.endswith("Question: ")
