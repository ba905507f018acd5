"""What replies conclude without announcing it: lists of options, negation, polarity, corrections."""

from __future__ import annotations

import pytest

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_IS
from keju.benchmarks.bbh.kinds import KIND_OF
from keju.types import Sample

WORDS = ("alpha", "beta", "gamma", "delta")
READER = RobustReader(Choice(), strict=ANSWER_IS)


def read(reply: str, question: str = "Which one is it?", choices: tuple[str, ...] = WORDS) -> str:
    """The label that is read, and `-` where none is."""
    sample = Sample(id="x", subset="s", index=0, text=question, target="", choices=choices)
    return READER.read(reply, sample).value or "-"


def free(subset: str, question: str, reply: str) -> str | None:
    """What is read in a reply to a question without options."""
    reader = RobustReader(KIND_OF[subset], strict="So the answer is ")
    sample = Sample(id="x", subset=subset, index=0, text=question, target="")
    return reader.read(reply, sample).value


LIST = "(A) alpha - x.\n\n(B) beta - y.\n\n(C) gamma - z.\n\n(D) delta - w.\n\n"


@pytest.mark.parametrize(
    ("end", "label"),
    [
        ("I am not sure.", "-"),
        ("So, the humorous edit is option (B) beta.", "B"),
        ("Based on the analysis, option (A) is the sarcastic statement.", "A"),
        ("Considering all of this, I would recommend option (C) as the closest match.", "C"),
        ("However, if I had to choose one, I would say:\n\n(B) beta", "B"),
        ("So, the edit of the artist or movie name is (D) delta.", "D"),
        ("None of the options match.", "-"),
        ("It could be (A) or (B).", "-"),
        ("Therefore, it is not (B).", "-"),
    ],
)
def test_a_list_of_options_is_no_answer_and_its_conclusion_is(end: str, label: str) -> None:
    assert read(LIST + end) == label


def test_a_chinese_list_is_no_answer_and_its_conclusion_is() -> None:
    option_list = "A. 甲\n\nB. 乙\n\nC. 丙\n\nD. 丁\n\n"
    assert read(f"{option_list}由此可见，最符合题意的是A项。", choices=tuple("甲乙丙丁")) == "A"
    assert read(f"{option_list}这道题很难。", choices=tuple("甲乙丙丁")) == "-"


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("A is a metal. B is a metal. C is a metal. D is not a metal.", "D"),
        ("A is true. B is true. C is false. D is true.", "C"),
        (
            "Option A is correct. Option B is correct. Option D is right. So the exception is C.",
            "C",
        ),
        ("Options A, B and D are all true. Therefore, option C is the incorrect statement.", "C"),
        ("Therefore, option B is correct. Option C is incorrect. Option D is correct.", "C"),
        ("Option B is correct. Option D is correct.", "-"),
        ("The answer is (C), since A, B and D are true.", "C"),
    ],
)
def test_where_the_wrong_one_is_asked_for_the_false_statement_is_the_answer(
    reply: str, label: str
) -> None:
    assert read(reply, "Which of the following is NOT true?") == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("所以D选项是正确的。因此，错误的选项是C。", "C"),
        ("A选项是正确的。B选项也正确。C选项是正确的。D选项是错误的。", "D"),
        ("所以A选项正确。所以B选项也正确。因此，D选项是不正确的。", "D"),
        ("A项正确，B项正确，D项正确。", "-"),
        ("C项说法错误，当选。", "C"),
    ],
)
def test_the_same_in_chinese(reply: str, label: str) -> None:
    assert read(reply, "下列说法错误的是____", tuple("甲乙丙丁")) == label


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        ("Which of the following is NOT a metal?", True),
        ("All of the following are functions of the liver EXCEPT", True),
        ("Which statement about cells is incorrect?", True),
        ("Which of these is least likely to occur?", True),
        ("Which of these did not happen in 1848?", True),
        ("下列关于细胞的叙述，错误的是（ ）", True),
        ("下列不属于我国四大发明的是____", True),
        ("其职权不包括____。", True),
        ("Which of the following is a metal?", False),
        ("It does not rain. Which tool is at least 3 m long?", False),
        ("Why is it wrong to say so?", False),
        ("下列说法正确的是____", False),
        ("管径不应小于____。", False),
        ("下列各句中，没有语病的一项是____", False),
    ],
)
def test_polarity_is_a_property_of_the_question(question: str, wrong: bool) -> None:
    sample = Sample(id="x", subset="s", index=0, text=question, target="", choices=WORDS)
    assert sample.asks_for_wrong is wrong


@pytest.mark.parametrize(
    ("subset", "question", "reply", "value"),
    [
        (
            "causal_judgement",
            "Did Billy cause the alarm to go off?",
            "A typical person would likely conclude that Billy's action did not cause the alarm.",
            "No",
        ),
        (
            "web_of_lies",
            "Does Phoebe tell the truth?",
            "We can't definitively say whether Phoebe tells the truth or lies.",
            None,
        ),
        ("web_of_lies", "Does Amy tell the truth?", "Amy tells the truth when Bob lies.", None),
        ("sports_understanding", "Plausible?", "The sentence is highly implausible.", "no"),
        ("sports_understanding", "Plausible?", "It is unlikely to be plausible.", "no"),
        (
            "boolean_expressions",
            "not ( True ) and ( True ) is",
            'Therefore, the result of the expression "not ( True ) and ( True )" is False.',
            "False",
        ),
        (
            "dyck_languages",
            "Complete the rest. Input: [ { (",
            "So the completed sequence would be: [ { ( ) } ]",
            ") } ]",
        ),
        (
            "word_sorting",
            "Sort the words. List: pear fig apple",
            "Here is the sorted list:\n\n1. Apple\n2. Fig\n3. List\n4. Pear\n\nAsk me for more!",
            "apple fig list pear",
        ),
        (
            "formal_fallacies",
            "Is the argument valid?",
            "Therefore, the answer is: The argument is invalid.",
            "invalid",
        ),
    ],
)
def test_negated_and_plain_conclusions(
    subset: str, question: str, reply: str, value: str | None
) -> None:
    assert free(subset, question, reply) == value


@pytest.mark.parametrize(
    ("reply", "choices", "label"),
    [
        ("There are 5 red things on the desk.", ("three", "four", "five", "six"), "C"),
        ("So there are 3 penguins that are more than 4 years old.", ("1", "2", "3", "4"), "C"),
        ("So the probability is 27/40.", ("0.700", "0.510", "0.675", "0.580"), "C"),
        ("The only possible time is between 8am and 9am.", ("7am to 8am", "8am to 9am"), "B"),
        ("So Rob must be in the first position.", tuple(f"{n} finished first" for n in ("Rob", "Eve", "Amy")), "A"),
        ("We choose C(4, 1)=4 of them.", WORDS, "-"),
        ("The answer is C(4, 1)=4.", WORDS, "-"),
        ("The answer is (i).", tuple("qrstuvwxyz"), "-"),
        ("The answer is (a) 0.10c and (b) 0.10c.", WORDS, "-"),
        ("There is not enough information.", (*WORDS, "not enough information"), "-"),
    ],
)  # fmt: skip
def test_numbers_for_options_and_what_only_looks_like_a_label(
    reply: str, choices: tuple[str, ...], label: str
) -> None:
    assert read(reply, choices=choices) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("The answer is (B). Correction: (C).", "C"),
        ("The answer is B.\nWait, no, it's C.", "C"),
        ("The answer is (B).\n\nThat is all.", "B"),
    ],
)
def test_a_correction_after_an_answer_counts(reply: str, label: str) -> None:
    assert read(reply) == label


def test_a_correction_keeps_the_first_answer_as_the_other_one() -> None:
    sample = Sample(id="x", subset="s", index=0, text="?", target="", choices=WORDS)
    answer = READER.read("The answer is (B). Correction: (C).", sample)
    assert (answer.other, answer.signs, answer.rule) == ("B", ("two_answers",), "correction")


def test_text_of_another_question_is_not_read() -> None:
    other_question = "Q: A library has 8 shelves with 12 books. How many books are there?\nA: "
    assert (
        read(f"{other_question}The answer is D.", "Which metal is liquid at room temperature?")
        == "-"
    )
    assert read(f"The answer is B.\n\n{other_question}The answer is D.") == "B"


def test_the_final_channel_is_what_is_read() -> None:
    thought = "<|channel|>analysis<|message|>A or B?<|end|><|start|>assistant"
    assert read(f"{thought}<|channel|>final<|message|>B<|return|>") == "B"


def test_a_replay_of_the_worked_examples_leaves_the_last_answer() -> None:
    examples = "".join(f"Question: {n}\nAnswer: The answer is (A).\n\n" for n in range(5))
    reader = READER.facing(lambda _: examples)
    reply = "\n\n".join(f"The answer is ({label})." for label in "BDCDAC")
    sample = Sample(id="x", subset="s", index=0, text="?", target="", choices=WORDS)
    answer = reader.read(reply, sample)
    assert (answer.value, answer.signs) == ("C", ("replayed_examples",))
    assert READER.read(reply, sample).value is None  # without examples it is a loop


def test_a_replay_of_the_shown_answers_leaves_the_answer_after_it() -> None:
    examples = "".join(f"Question: {n}\nAnswer: The answer is ({n}).\n\n" for n in "ABCD")
    reader = READER.facing(lambda _: examples)
    why = "This follows from the text of the question, as shown above, and from nothing else. " * 2
    sample = Sample(id="x", subset="s", index=0, text="?", target="", choices=WORDS)

    def replayed(labels: str) -> str | None:
        return reader.read("\n\n".join(f"{why}The answer is ({x})." for x in labels), sample).value

    assert replayed("ABCDB") == "B"
    assert replayed("ABCAC") == "C"  # one of the four is not as shown
    assert replayed("ABCD") != "D"  # the examples alone answer nothing else


@pytest.mark.parametrize(
    "reply",
    [
        "B because it is first.\n\nIt rains. So I would choose option C.",
        "B, since it is old.\n\nTherefore, option (D) is the best choice.",
    ],
)
def test_a_first_sentence_and_another_conclusion_are_ambiguous(reply: str) -> None:
    sample = Sample(id="x", subset="s", index=0, text="?", target="", choices=WORDS)
    answer = READER.read(reply, sample)
    assert (answer.value, answer.reason) == (None, "ambiguous")


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Either the answer is (A) or the answer is (B).", "-"),
        ("The answer is (A), and for part two the answer is (B).", "-"),
        ("The ANSWER: A. Or the answer is (B).", "-"),
        ("I do not think that the answer is (B).", "-"),
    ],
)
def test_a_line_with_two_answers_does_not_end_plainly(reply: str, label: str) -> None:
    assert read(reply) == label


@pytest.mark.parametrize(
    ("reply", "rule", "passage"),
    [
        ("It is so. The answer is (B).", "marker", "It is so. The answer is (B)."),
        ("Hence the correct option is (B).", "wording", "Hence the correct option is (B)."),
        ("B", "whole_reply", "B"),
        ("Let us see.\n(B) beta", "last_line", "(B) beta"),
        ("It rains. So I would choose option B.", "conclusion", "So I would choose option B."),
        ("A: no ✗\nB: yes ✓\nC: no ✗", "discussion", "A: no ✗\nB: yes ✓\nC: no ✗"),
    ],
)
def test_every_reading_names_its_rule_and_its_passage(reply: str, rule: str, passage: str) -> None:
    sample = Sample(id="x", subset="s", index=0, text="?", target="", choices=WORDS)
    answer = READER.read(reply, sample)
    assert (answer.value, answer.rule, answer.passage) == ("B", rule, passage)
