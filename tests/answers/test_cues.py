"""What replies of small models repeat, copy badly, or only suppose."""

from __future__ import annotations

import pytest

from keju.answers.kinds import Choice, Number, Verdict
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON
from keju.benchmarks.bbh.kinds import KIND_OF
from keju.types import Sample

DATES = ("03/11/2021", "03/12/2021", "02/25/2021", "03/11/2012", "03/10/2021")
FILMS = ("Father of the Bride", "Monsters, Inc", "The Girl on the Train", "Dead Man Walking")
CASES = ("It was the nurse's shift", "It was the surgeon's shift", "Ambiguous")
FRUITS = tuple(f"The {name} are the second-most expensive" for name in ("kiwis", "plums", "pears"))
BOOL = Verdict({"true": "True", "false": "False"}, equations=True)


def read(reply: str, choices: tuple[str, ...]) -> str | None:
    reader = RobustReader(Choice(), strict=ANSWER_COLON)
    sample = Sample(id="x", subset="s", index=0, text="?", target="A", choices=choices)
    return reader.read(reply, sample).value


@pytest.mark.parametrize(
    ("reply", "choices", "label"),
    [
        # the prompt's own cue
        ("A: 03/12/2021", DATES, "B"),
        ("A: A: (C)", DATES, "C"),
        ("03/12/2021\n\nA:", DATES, "B"),
        ("A:", DATES, None),
        ("A: 03/11/2021\nB: 03/12/2021\nC: 02/25/2021", DATES, None),
        # a label with the text of another option: the label counts
        ("E: 03/11/2021", DATES, "E"),
        ("(B) 03/10/2021\n\nThe answer is (D).", DATES, "D"),
        # bad copies state no option, parts of options may
        ("The answer is The Girl in the Train.", FILMS, None),
        ("Dad of the Bride:\nDad of the Bride:", FILMS, None),
        ("The answer is not Father of the Bride.", FILMS, None),
        ("The answer is the nurse's shift.", CASES, "A"),
        ("The answer is the shift.", CASES, None),
        ('The pronoun "their" refers to the surgeon\'s shift.', CASES, "B"),
        ("The correct answer is later than 03/11/2021, so", DATES, None),
        # a sentence turned round, and half an option after it
        ("So the second-most expensive fruit is the pears.", FRUITS, "C"),
        ("So the second-most expensive fruit is not the pears.", FRUITS, None),
        # lists
        ("Dead Man Walking\n\nOptions:\n\nA) Father of the Bride\nB) Monsters, Inc", FILMS, "D"),
        ("A.\nB.\nC.\nD.\nD.\nD.", FILMS, None),
        ("(A)\n\nB)\n\nC)\n\nThe answer is (C).", FILMS, "C"),
        ("The correct order of the options is:\n\n(A", FILMS, None),
        ("The film most like these is:\n\nB) Monsters, Inc\n\nThis is because it has", FILMS, "B"),
        ("A. A.D.A.D.B.A.A.", FILMS, None),
    ],
)
def test_small_models(reply: str, choices: tuple[str, ...], label: str | None) -> None:
    assert read(reply, choices) == label


@pytest.mark.parametrize(
    "wording",
    [
        "It may be {}.",
        "It might be {}.",
        "Maybe {}",
        "Perhaps {}.",
        "Probably {}.",
        "I think it is {}.",
        "It could be {}",
    ],
)
def test_a_hedged_only_answer_counts_for_every_kind(wording: str) -> None:
    question = Sample(id="x", subset="s", index=0, text="?", target="")
    for kind, answer in ((Number(), "7"), (BOOL, "True")):
        reader = RobustReader(kind, strict=ANSWER_COLON)
        assert reader.read(wording.format(answer), question).value == answer
    assert read(wording.format("(B)"), FILMS) == "B"
    assert read(wording.format("Dead Man Walking"), FILMS) == "D"


@pytest.mark.parametrize("wording", ["It may be {}, or it may be {}.", "It could be {} or {}."])
def test_two_hedged_answers_are_none(wording: str) -> None:
    question = Sample(id="x", subset="s", index=0, text="?", target="")
    for kind, answers in ((Number(), ("7", "8")), (BOOL, ("True", "False"))):
        reader = RobustReader(kind, strict=ANSWER_COLON)
        assert reader.read(wording.format(*answers), question).value is None
    assert read(wording.format("B", "C"), FILMS) is None
    assert read(wording.format("Dead Man Walking", "Monsters, Inc"), FILMS) is None


def test_an_expression_is_no_verdict() -> None:
    reader = RobustReader(BOOL, strict=ANSWER_COLON)
    question = Sample(id="x", subset="s", index=0, text="?", target="")
    assert reader.read('The answer is "False or not True".', question).value is None


SHAPES = ("circle", "kite", "line", "sector")
ERRORS = ("Named Entities", "Dropped Content", "Facts")
TIMES = ("9am to 10am", "6am to 7am", "5pm to 6pm")
LAYERS = tuple(f"layer {number}" for number in range(1, 10))


@pytest.mark.parametrize(
    ("reply", "choices", "label"),
    [
        # what is answered stands between the word and its verb
        ("The answer to this challenge is (D) sector. I looked at all.", SHAPES, "D"),
        ("I think the answer to the problem is C: sector.", SHAPES, "C"),
        ("The answer to (D) is wrong, since it is open.", SHAPES, None),
        # an option and another one
        ("Dropped Content: or perhaps Facts.", ERRORS, None),
        # an option's text as a mere word
        ("It has four commands.\n(4) L 42,12: Create a line from 42,12 to 42,12.", SHAPES, None),
        ("It moves, and then it closes. So it draws a line from 1 to 2.", SHAPES, None),
        # numbers that look like labels, and the form that was asked for
        ("(i) is a true statement.", LAYERS, None),
        ("The last line is 'ANSWER: [LETTER]', where [LETTER] is one of A,B,C.", SHAPES, None),
        ("A: Let's think step by step. We refer to articles for help.", SHAPES, None),
        # an option that begins a reply gives way to one that is announced; not to another task's
        ("(B)\n\nStep 1: I look at the lines.\n\nSo, the correct answer is (C)", SHAPES, "C"),
        ("B\n\nWhich one is round? ____\nA. tin\nB. salt\nAnswer: C", SHAPES, "B"),
        ("#### D\n\nThe last line is given above.", SHAPES, "D"),
        # loops and lists that break off
        ("Borderline:\nBorderline:\nB", SHAPES, None),
        ("A. circle\nB. kite\nC. line\nD. sector\n\nA. circ", SHAPES, None),
        ("选A: circle\n选B: kite\n选C: line", SHAPES, None),
    ],
)
def test_what_looks_like_an_answer(reply: str, choices: tuple[str, ...], label: str | None) -> None:
    assert read(reply, choices) == label


def test_a_word_of_the_question_is_no_hedge() -> None:
    reader = RobustReader(Choice(), strict=ANSWER_COLON)
    question_text = "Between what times could she have gone to the pool?"
    sample = Sample(id="x", subset="s", index=0, text=question_text, target="A", choices=TIMES)
    reply = "The only time when she could have gone there was 6am to 7am."
    assert reader.read(reply, sample).value == "B"


@pytest.mark.parametrize(
    ("subset", "question", "reply", "value"),
    [
        ("formal_fallacies", "Valid or invalid?", "- valid", "valid"),
        ("formal_fallacies", "Valid or invalid?", "- valid\n- invalid", None),
        ("web_of_lies", "Bob says Amy lies. Does Amy lie?", "Bob says Amy lies.", None),
        ("web_of_lies", "Bob lies. Does Amy tell?", "The answer is: Amy tells the truth.", "Yes"),
        ("web_of_lies", "Bob lies. Does Amy tell?", "The answer is: Bob tells the truth.", None),
        ("boolean_expressions", "not ( True ) is", "It is not True.", "False"),
        ("boolean_expressions", "not ( True ) is", "Answer: True and True is False", "False"),
        (
            "sports_understanding",
            "Plausible?",
            "The sentence is not plausible because it is.",
            "no",
        ),
        ("object_counting", "How many?", "The final result is 24, in a total of 10 steps.", "24"),
    ],
)
def test_other_kinds(subset: str, question: str, reply: str, value: str | None) -> None:
    reader = RobustReader(KIND_OF[subset], strict="So the answer is")
    sample = Sample(id="x", subset=subset, index=0, text=question, target="")
    assert reader.read(reply, sample).value == value
