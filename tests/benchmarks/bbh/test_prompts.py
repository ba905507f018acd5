"""What is sent: the published prompts to the letter, and the user's own templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.bbh import BBH, BBHArgs
from keju.errors import ConfigError
from keju.sources.folder import DataFolder
from keju.types import Message

STATISTICS: list[tuple[str, int, float, int, int]] = [
    ("temporal_sequences", 250, 3746.18, 3646, 3876),
    ("disambiguation_qa", 250, 4047.48, 3993, 4099),
    ("date_understanding", 250, 1550.66, 1491, 1641),
    ("tracking_shuffled_objects_three_objects", 250, 3257.42, 3195, 3316),
    ("penguins_in_a_table", 146, 3030.88, 2922, 3201),
    ("geometric_shapes", 250, 5270.24, 5201, 5384),
    ("snarks", 178, 3493.68, 3339, 3693),
    ("ruin_names", 250, 3832.01, 3781, 3948),
    ("tracking_shuffled_objects_seven_objects", 250, 3598.1, 3506, 3682),
    ("tracking_shuffled_objects_five_objects", 250, 3419.36, 3338, 3489),
    ("logical_deduction_three_objects", 250, 3093.32, 3014, 3165),
    ("hyperbaton", 250, 3433.3, 3386, 3486),
    ("logical_deduction_five_objects", 250, 3264.38, 3118, 3379),
    ("logical_deduction_seven_objects", 250, 3434.09, 3217, 3633),
    ("movie_recommendation", 250, 2489.85, 2436, 2613),
    ("salient_translation_error_detection", 250, 7401.64, 7223, 7885),
    ("reasoning_about_colored_objects", 250, 2818.32, 2572, 3102),
    ("multistep_arithmetic_two", 250, 2596.98, 2594, 2600),
    ("navigate", 250, 2508.7, 2452, 2626),
    ("dyck_languages", 250, 2723.8, 2680, 2874),
    ("word_sorting", 250, 2481.34, 2397, 2569),
    ("sports_understanding", 250, 1077.42, 1060, 1122),
    ("boolean_expressions", 250, 1991.7, 1980, 1998),
    ("object_counting", 250, 1706.66, 1647, 1787),
    ("formal_fallacies", 250, 5185.5, 4918, 5514),
    ("causal_judgement", 187, 4877.42, 4194, 6311),
    ("web_of_lies", 250, 3300.84, 3267, 3340),
]
"""EvalScope's published prompt statistics: rows, mean, shortest and longest prompt."""

EVALSCOPE_CUE = (
    "A: Let's think step by step. Put your final answer in the format of "
    '"So the answer is [ANSWER]" (without quotes and markdown) where [ANSWER] is the answer to '
    "the problem.\n"
)


def prepare(data_dir: Path, **args: Any) -> Exam:
    args = {"subset_list": ["snarks", "dyck_languages"]} | args
    return BBH.prepare(BBHArgs(**args), DataFolder(data_dir / "bbh", BBH.layout), seed=1)


def test_prompt_lengths_are_the_published_ones(exam: Exam) -> None:
    rows = []
    all_lengths: list[int] = []
    for subset in exam.subsets:
        lengths = [len(exam.render(s).text) for s in exam.samples[subset.start : subset.stop]]
        mean = round(sum(lengths) / len(lengths), 2)
        rows.append((subset.name, len(lengths), mean, min(lengths), max(lengths)))
        all_lengths += lengths
    assert rows == STATISTICS
    assert len(all_lengths) == 6511
    assert round(sum(all_lengths) / 6511, 2) == 3307.29
    assert (min(all_lengths), max(all_lengths)) == (1060, 7885)


def test_no_canary_and_one_prefix_for_a_subset(exam: Exam) -> None:
    for subset in exam.subsets:
        prompts = [exam.render(s) for s in exam.samples[subset.start : subset.stop]]
        assert len({id(prompt.prefix) for prompt in prompts}) == 1
        assert "canary" not in prompts[0].text.lower()
        assert "-----" not in prompts[0].text


def test_evalscope_without_shots(data_dir: Path) -> None:
    exam = prepare(data_dir, few_shot_num=0)
    sample = exam.samples[0]
    assert exam.render(sample).text == f"Q: {sample.text}\n{EVALSCOPE_CUE}"
    assert exam.settings["few_shot_num"] == 0


def test_evalscope_with_shots(data_dir: Path) -> None:
    exam = prepare(data_dir)
    sample = exam.samples[3]
    text = exam.render(sample).text
    assert text.startswith("Determine which of two sentences is sarcastic.")
    assert text.endswith(f"\n\nQ: {sample.text}\n{EVALSCOPE_CUE}")
    assert text.count("Q: ") == 4


def test_paper_and_answer_only(data_dir: Path) -> None:
    paper = prepare(data_dir, protocol="paper")
    sample = paper.samples[0]
    text = paper.render(sample).text
    assert text.endswith(f"\n\nQ: {sample.text}\nA: Let's think step by step.")
    answer_only = prepare(data_dir, protocol="answer-only").render(sample).text
    assert answer_only.endswith(f")\n\nQ: {sample.text}\nA:")
    assert "Let's think" not in answer_only
    assert answer_only.count("Q: ") == text.count("Q: ") == 4


MCPBR = """Solve the following reasoning challenge:

Solve the following reasoning task (snarks):

{}

Think step-by-step and provide your final answer.

IMPORTANT INSTRUCTIONS:
- Think carefully step-by-step
- Show your reasoning process
- Provide a clear, definitive final answer"""


def test_mcpbr(data_dir: Path) -> None:
    exam = prepare(data_dir, protocol="mcpbr")
    sample = exam.samples[0]
    assert exam.render(sample).text == MCPBR.format(sample.text)
    with_line = prepare(data_dir, protocol="mcpbr", final_line=True)
    text = with_line.render(sample).text
    assert text.startswith(MCPBR.format(sample.text) + "\n- ")
    assert "last line" in text.rpartition("\n")[2]
    assert with_line.settings["final_line"] is True
    assert with_line.settings["prompt_template"] != exam.settings["prompt_template"]


def test_mcpbr_templates_replace_one_placeholder_only(data_dir: Path) -> None:
    template = 'Do: {problem_statement}\nReply as {"answer": x} or {question} or \\boxed{}'
    exam = prepare(data_dir, protocol="mcpbr", prompt_template=template)
    sample = exam.samples[0]
    text = exam.render(sample).text
    assert text.startswith("Do: Solve the following reasoning task (snarks):\n\n")
    assert text.endswith('Reply as {"answer": x} or {question} or \\boxed{}')
    assert text.count(sample.text) == 1


def test_templates_are_what_is_sent(data_dir: Path) -> None:
    template = 'Answer {question} as {"a": 1} in \\boxed{X}. Again: {question}!'
    plain = prepare(data_dir, few_shot_num=0, prompt_template=template)
    question = plain.samples[0].text
    expected = f'Answer {question} as {{"a": 1}} in \\boxed{{X}}. Again: {question}!'
    assert plain.render(plain.samples[0]).text == expected
    with_shots = prepare(data_dir, prompt_template=template)
    text = with_shots.render(plain.samples[0]).text
    assert text.startswith("Determine which")
    assert text.endswith(f"\n\n{expected}")
    custom_exam = prepare(data_dir, few_shot_prompt_template="{question}|{fewshot}|")
    rendered = custom_exam.render(plain.samples[0]).text
    assert rendered.startswith(f"{question}|Determine which")
    assert rendered.endswith(".|")


def test_a_question_is_never_looked_into(data_dir: Path) -> None:
    exam = prepare(data_dir, few_shot_num=0, prompt_template="{question}")
    odd = msgspec.structs.replace(exam.samples[0], text="What is {question} of {fewshot}?")
    assert exam.render(odd).text == odd.text
    assert exam.render(exam.samples[-1]).text == exam.samples[-1].text


def test_system_prompt(data_dir: Path) -> None:
    exam = prepare(data_dir, system_prompt="Be brief.")
    system_message, user_message = exam.render(exam.samples[0]).messages
    assert system_message == Message("system", "Be brief.")
    assert user_message.role == "user"
    assert exam.settings["system_prompt"] == "Be brief."
    assert len(prepare(data_dir, system_prompt="").render(exam.samples[0]).messages) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"protocol": "papper"}, "did you mean 'paper'"),
        ({"subset_list": ["snark"]}, "did you mean 'snarks'"),
        ({"subset_list": []}, "subset_list is empty"),
        ({"few_shot_num": 2}, "0 or 3, not 2"),
        ({"few_shot_num": 0, "protocol": "paper"}, "is 3, not 0"),
        ({"few_shot_num": 0, "protocol": "answer-only"}, "is 3, not 0"),
        ({"few_shot_num": 3, "protocol": "mcpbr"}, "is 0, not 3"),
        ({"few_shot_random": True}, "few_shot_random"),
        ({"shuffle_choices": True}, "shuffle_choices"),
        ({"final_line": True}, "final_line belongs to protocol mcpbr"),
        ({"prompt_template": "{questoin}"}, "did you mean 'question'"),
        ({"prompt_template": "no question"}, "{question} is missing"),
        ({"few_shot_prompt_template": "{question}"}, "{fewshot} is missing"),
        ({"few_shot_prompt_template": "{fewshot}{question}", "few_shot_num": 0}, "no effect"),
        ({"few_shot_prompt_template": "{fewshot}{question}", "prompt_template": "{question}"},
         "give one of them"),
        ({"prompt_template": "{question}", "protocol": "mcpbr"}, "{problem_statement} is missing"),
        ({"prompt_template": "{problem_statment}", "protocol": "mcpbr"},
         "did you mean 'problem_statement'"),
        ({"few_shot_prompt_template": "x", "protocol": "mcpbr"}, "no worked examples"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(data_dir: Path, args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        prepare(data_dir, **args)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_settings_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'final_line'"):
        BBHArgs(final_lin=True)  # type: ignore[call-arg]


def test_the_sample_as_shown(data_dir: Path) -> None:
    exam = prepare(data_dir, subset_list=["Temporal-Sequences"])
    description = exam.describe(exam.samples[0])
    assert set(description) == {"input", "target", "id", "group_id", "subset_key", "metadata"}
    assert set(description["input"][0]) == {"id", "content"}
    assert len(description["input"][0]["id"]) == 8
    assert {key: description[key] for key in description if key != "input"} == {
        "target": "A",
        "id": 0,
        "group_id": 0,
        "subset_key": "temporal_sequences",
        "metadata": {"task_type": "multiple_choice"},
    }
    paper = prepare(data_dir, subset_list=["temporal_sequences"], protocol="paper")
    assert paper.describe(paper.samples[0])["target"] == "(A)"
    free = prepare(data_dir, subset_list=["dyck_languages"])
    document = free.describe(free.samples[0])
    assert (document["target"], document["metadata"]) == ("] ]", {"task_type": "free_form"})
