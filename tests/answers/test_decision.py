"""Which of several answers counts, and answers that nothing announces."""

from __future__ import annotations

import pytest

from keju.answers.kinds import Choice, Number
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_IS
from keju.benchmarks.bbh.kinds import YES_NO
from keju.types import Sample

METALS = ("iron", "gold", "zinc", "lead")
READER = RobustReader(Choice(), strict=ANSWER_IS)


def row(choices: tuple[str, ...] = METALS, text: str = "Which one shines most?") -> Sample:
    return Sample(id="x", subset="s", index=0, text=text, target="B", choices=choices)


@pytest.mark.parametrize(
    ("reply", "value", "signs"),
    [
        ("The answer is B.\n\nTo sum up what metals do.\n\nThe answer is D.", "B", {"two_answers", "order_decides", "run_on"}),
        ("The answer is D.\n\nWait, that is wrong. The answer is B.", "B", {"two_answers"}),
        ("The answer is D. However, lead is dull, so the answer is B.", "B", {"two_answers"}),
        ("At first the answer is D, it seems.\nIt shines.\nThe answer is B.", "B", {"two_answers"}),
        ("The answer is B.\n\nQuestion: What is heavy?\nThe answer is D.", "B", {"run_on"}),
        ("Sure.\n\nQuestion: Which one shines most?\n\nThe answer is B.", "B", set()),
        ("(a) It is dull. The answer is D. (b) It shines. The answer is B.", None, {"two_answers"}),
        ("The answer is D. The answer is B.", None, {"two_answers"}),
        ("The answer is (B). 2. The answer is (D). 3. The answer is (A).", "B", {"two_answers", "order_decides", "run_on"}),
        ("The answer is B or D.\nGold shines.\nThe answer is B.", "B", set()),
        ("The answer is D. Hold on.\n\nLet me double-check: gold shines.\n\nSo I'd go with B.", "B", {"two_answers"}),
        ("答案是D。更正：金更亮，所以选B。", "B", {"two_answers"}),
    ],
)  # fmt: skip
def test_what_stands_between_two_answers_decides(
    reply: str, value: str | None, signs: set[str]
) -> None:
    answer = READER.read(reply, row())
    assert (answer.value, set(answer.signs)) == (value, signs)
    assert (answer.reason == "ambiguous") == (value is None)


def test_replayed_examples_are_set_aside() -> None:
    examples = "Q1\nThe answer is (A).\n\nQ2\nThe answer is (C).\n\nQ3\nThe answer is (D).\n\n"
    reader = READER.facing(lambda _: examples)
    reply = "\n".join(f"{n}. Text {n}. The answer is ({x})." for n, x in enumerate("ACDB", 1))
    answer = reader.read(reply, row())
    assert (answer.value, answer.signs) == ("B", ("replayed_examples",))
    assert READER.read(reply, row()).value == "A"


@pytest.mark.parametrize(
    "reply",
    [
        "A. iron\nB. gold\nC. zinc\nD. lead",
        "(A) iron (B) gold (C) zinc (D) lead",
        "The correct answer is:\nA. iron\nB. gold\nC. zinc\nD. lead",
        "A. iron\n\nA. iron\n\nB. gold\n\nC. zinc",
        "A. irom\nB. golt\nC. zinc\nD",
        "A:",
        "Grade: B",
        "One might think the answer is (D). Let us begin with the colour.",
        "Let us consider option (B).",
        "It is either B or D.",
        "This rules out (B).",
        "Not B.",
        "Gold and lead both have it, as far as I know of V_m(B",
    ],
)
def test_nothing_is_stated(reply: str) -> None:
    assert READER.read(reply, row()).value is None


@pytest.mark.parametrize(
    "reply",
    [
        "None of them fits, but the closest is (B).", "So I'd go with B.", "I lean toward B.", "That leaves B.",
        "Option B is the correct one.", "A is wrong. B is correct. C is wrong.", "It shines, so **B**.", "B it is.",
        "Only B survives.", "Let me settle this: B.", "B\n\nGold shines more than the others.", "B. gold\n\nIt shines.",
        "The best choice here would be B.", "It is gold (B).", "So it must be gold.", "The metal is gold.",
        "Iron: wrong. Gold: right. Zinc: wrong.", "A ✗\nB ✓\nC ✗", "Metal → **B**", "The answer is not D but B.",
        "排除A、C、D，选B。", "A错误，B正确，C错误，D错误。", "只剩下B了。", "我更倾向于B。", "所以应选 B（gold）。", "不是A，而是B。",
    ],
)  # fmt: skip
def test_plainly_stated_answers_are_read(reply: str) -> None:
    assert READER.read(reply, row()).value == "B"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("You end where you began, so the verdict is **Yes**.", "Yes"),
        ("Yes.\n\nThe steps cancel.", "Yes"),
        ("Others will say no, since it moved.", None),
        ("It is not clear whether the answer is yes.", None),
    ],
)
def test_verdicts_that_end_a_reply(reply: str, value: str | None) -> None:
    assert RobustReader(YES_NO, strict=ANSWER_IS).read(reply, row(())).value == value


def test_counts_that_end_a_reply() -> None:
    reader = RobustReader(Number(), strict=ANSWER_IS)
    assert reader.read("Two and eight make ten, so I have ten eggs.", row(())).value == "10"
    assert reader.read("总数是12。更正：所以总数是11。", row(())).value == "11"
    assert reader.read("I have 3 hens and 4 cows.", row(())).value is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("(C) Belle and Sebastian", "C"),  # the label counts, whatever stands beside it
        ("(C) gold", "C"),
        ("D) gold and zinc", "D"),
        ("(C) gold\n\nStep-by-step process:\n1. Look at the metals.", "C"),
        ("D:", "D"),
        ("A:", None),
        ("A: So the answer is 1.", None),  # the prompt's own cue
        ("(C) fails because it is dull.", None),
        ("C) gold\n\nThe answer is D) lead", "D"),
        ("B\n\nWhich one is not a metal?\nA. tin\nB. salt\nThe answer is (C).", "B"),
    ],
)
def test_replies_that_are_an_option(reply: str, value: str | None) -> None:
    assert READER.read(reply, row()).value == value


def test_the_only_option_left_is_not_taken_for_the_answer() -> None:
    reply = "I looked at (A) and then at (C). A careful look shows that B fails.\n\n(B)"
    assert READER.read(reply, row(("iron",))).value is None
