"""What the readers make of single replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.bbh.metadata import SUBSETS
from keju.benchmarks.bbh.readers import READERS
from keju.types import Answer, Sample
from tests.benchmarks.bbh.rows import (
    BOOL,
    BRACKETS,
    CHOICE,
    INTEGER,
    MADE,
    SPORTS,
    VALID,
    WORDS,
    YES_NO,
    row,
)

BIG = row("multistep_arithmetic_two", "1024")
MINUS = row("multistep_arithmetic_two", "-50")
WHOLE_LINE = "So the answer is"

FAULTS: list[tuple[Sample, str, str, str | None]] = [
    (CHOICE, "Let's see. I considered all.\nAnswer: B", "I", "B"),
    (CHOICE, "A careful look:\n…\nThe answer is (D)", "A", "D"),
    (CHOICE, "I think it is (C).\nSo, the answer is (B).", "C", "B"),
    (CHOICE, "So the answer is\n(B)", WHOLE_LINE, "B"),
    (CHOICE, "So the answer is (b).", "(b)", "B"),
    (BOOL, "so the answer is True.", "so the answer is True", "True"),
    (BOOL, "So the answer is: True", "So the answer is: True", "True"),
    (BOOL, "**So the answer is True.**", "True.**", "True"),
    (BOOL, 'So the answer is "True"', '"True"', "True"),
    (INTEGER, r"So the answer is \boxed{24}", r"\boxed{24}", "24"),
    (INTEGER, "So the answer is $24$", "$24$", "24"),
    (INTEGER, "So the answer is 24.0", "24.0", "24"),
    (BIG, "So the answer is 1,024", "1,024", "1024"),
    (WORDS, "So the answer is alpha, beta", "alpha, beta", "alpha beta"),
    (BRACKETS, "So the answer is ])}", "])}", "] ) }"),
    (YES_NO, "So the answer is No. He said so.", "No. He said so", "No"),
    (CHOICE, "So the answer is (A) or (B).", "A", None),
    (CHOICE, "(R)", "R", None),
    (CHOICE, "So the answer is (R).", "R", None),
]


@pytest.mark.parametrize(("sample", "reply", "evalscope", "robust"), FAULTS)
def test_where_the_published_reader_is_wrong(
    sample: Sample, reply: str, evalscope: str, robust: str | None
) -> None:
    assert READERS["evalscope"].read(reply, sample).value == evalscope
    assert READERS["robust"].read(reply, sample).value == robust


@pytest.mark.parametrize("reply", ["So the answer is {}.", "**{}**", "{}.", "Answer: {}"])
@pytest.mark.parametrize("sample", MADE, ids=lambda sample: sample.subset)
def test_mcpbr_wants_the_bare_answer_on_the_last_line(sample: Sample, reply: str) -> None:
    mcpbr, robust = READERS["mcpbr"], READERS["robust"]
    reply_text = reply.format(sample.target)
    dressed, read = mcpbr.read(reply_text, sample).value, robust.read(reply_text, sample).value
    assert dressed is not None
    assert not mcpbr.matches(dressed, sample)
    assert read is not None
    assert robust.matches(read, sample)
    bare = mcpbr.read(f"Steps.\n{sample.target.upper()} \n\n", sample).value
    assert bare is not None
    assert mcpbr.matches(bare, sample)


def test_mcpbr_needs_the_brackets() -> None:
    assert not READERS["mcpbr"].matches("b", CHOICE)
    assert READERS["mcpbr"].matches("(b)", CHOICE)


def test_paper_compares_exactly() -> None:
    paper = READERS["paper"]
    assert paper.read("Steps. So the answer is (B).\nMore", CHOICE) == Answer("(B)", "strict")
    assert paper.matches("(B)", CHOICE)
    assert not paper.matches("B", CHOICE)
    assert not paper.matches("(b)", CHOICE)
    assert not paper.matches("true", BOOL)


def test_paper_keeps_the_last_marker_and_flags_the_first() -> None:
    reply = "So the answer is (A).\nNo. So the answer is (B)."
    assert READERS["paper"].read(reply, CHOICE) == Answer("(B)", "strict", first="(A)")
    robust = READERS["robust"].read(reply, CHOICE)
    assert (robust.value, robust.other, robust.signs) == ("B", "A", ("two_answers",))
    assert READERS["evalscope"].read(reply, CHOICE) == Answer("B", "strict", first="A")


def test_only_robust_cuts_a_run_on() -> None:
    reply = "So the answer is (B).\n\nQ: And now?\nA: So the answer is (C)."
    for name in ("paper", "evalscope", "answer-only", "mcpbr"):
        assert not READERS[name].read(reply, CHOICE).cut, name
    assert READERS["paper"].read(reply, CHOICE) == Answer("(C)", "strict", first="(B)")
    assert READERS["evalscope"].read(reply, CHOICE) == Answer("C", "strict", first="B")
    answer = READERS["robust"].read(reply, CHOICE)
    assert (answer.value, answer.cut) == ("B", True)


def test_answer_only_reads_the_whole_output() -> None:
    reader = READERS["answer-only"]
    run_on = " (B)\n\nQ: next\nA: (C)"
    assert reader.read(run_on, CHOICE) == Answer("(B)\n\nQ: next\nA: (C)", "strict")
    assert reader.read("\n", CHOICE) == Answer(reason="empty")


def test_evalscope_takes_bold_text_in_free_form() -> None:
    assert READERS["evalscope"].read("So the answer is it is **True** now", BOOL).value == "True"


def test_evalscope_keeps_round_brackets_of_dyck_targets() -> None:
    value = READERS["evalscope"].read("So the answer is ] ) }.", BRACKETS).value
    assert value is not None
    assert READERS["evalscope"].matches(value, BRACKETS)


@pytest.mark.parametrize(
    ("reply", "tier"),
    [
        ("So the answer is (B).", "strict"),
        ("**So the answer is (B).**", "strict"),
        ("so the answer is (B).", "tolerant"),
        ("Answer:\n\nB", "tolerant"),
        (r"Hence \boxed{B}", "tolerant"),
        ("Steps.\n(B)", "fallback"),
        ("7am to 11am", "fallback"),
    ],
)
def test_tiers(reply: str, tier: str) -> None:
    answer = READERS["robust"].read(reply, CHOICE)
    assert (answer.value, answer.tier) == ("B", tier)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I think B is nice.", "no_marker"),
        ("So the answer is (R).", "invalid_label"),
        ("So the answer is (A) and (B).", "ambiguous"),
        (r"The answer is \boxed{A} or \boxed{B}", "ambiguous"),
        ("So the answer is [ANSWER].", "no_label"),
        ("  ", "empty"),
        ("It is not the case that the answer is (B).", "denied"),
        ("If so, the answer is (B); otherwise the answer is (A).", "ambiguous"),
    ],
)
def test_reasons(reply: str, reason: str) -> None:
    assert READERS["robust"].read(reply, CHOICE) == Answer(reason=reason)


@pytest.mark.parametrize(
    ("sample", "answer_text", "value"),
    [
        (BOOL, "TRUE", "True"),
        (BOOL, "Truely", None),
        (YES_NO, "no, never", "No"),
        (YES_NO, "nothing", None),
        (YES_NO, "no one", None),
        (YES_NO, "no doubt Yes", "Yes"),
        (YES_NO, "No answer", None),
        (YES_NO, "no longer clear", None),
        (YES_NO, "no matter what", None),
        (YES_NO, "No because he left", "No"),
        (YES_NO, "[No]", "No"),
        (YES_NO, "clearly no", "No"),
        (YES_NO, "No if it rains, otherwise Yes", None),
        (YES_NO, "No; Yes", None),
        (YES_NO, "No. Yes would be wrong", "No"),
        (YES_NO, "No?", None),
        (BOOL, "(True)", "True"),
        (BOOL, "True and False = False", "False"),
        (BOOL, "True or maybe False", None),
        (VALID, "logically valid", "valid"),
        (VALID, "valid, not invalid", "valid"),
        (SPORTS, "not plausible", "no"),
        (SPORTS, "Implausible", "no"),
        (SPORTS, "plausible", "yes"),
        (SPORTS, "No", "no"),
        (YES_NO, "plausible", None),
        (VALID, "not valid", "invalid"),
        (VALID, "deductively valid", "valid"),
        (VALID, "not deductively valid", "invalid"),
        (VALID, "validated", None),
        (VALID, "valid or invalid", None),
        (MINUS, "−50", "-50"),
        (MINUS, "- 50", "-50"),
        (MINUS, "10 - 60 = -50", "-50"),
        (MINUS, "minus 50", "-50"),
        (BIG, "$1,024", "1024"),
        (BIG, "+1024", "1024"),
        (BIG, "1{,}024", "1024"),
        (INTEGER, "24 objects", "24"),
        (INTEGER, "24.00", "24"),
        (INTEGER, "24.5", "24.5"),
        (INTEGER, "24/5", None),
        (INTEGER, "24th", None),
        (INTEGER, "24 or 25", None),
        (INTEGER, "3 * 8", None),
        (INTEGER, "3 * 8 = 24", "24"),
        (INTEGER, "24 (12 + 12)", "24"),
        (INTEGER, "24: 12 red and 12 blue ones", "24"),
        (INTEGER, "exactly 24", "24"),
        (INTEGER, "24 times", "24"),
        (INTEGER, "24 months", "24"),
        (INTEGER, "24 to be exact", "24"),
        (INTEGER, "eight hundred", None),
        (INTEGER, "eight or nine", None),
        (INTEGER, "eight and a half", None),
        (INTEGER, "eight", "8"),
        (INTEGER, "Twenty apples", "20"),
        (INTEGER, "twenty-four", None),
        (INTEGER, "twenty four", None),
        (INTEGER, "0024", "24"),
        (BRACKETS, "`] ) }`", "] ) }"),
        (BRACKETS, "], ), }", "] ) }"),
        (BRACKETS, "], ), and }", "] ) }"),
        (BRACKETS, "{ ( [ ] ) }", "] ) }"),
        (BRACKETS, r"\boxed{] ) \}}", "] ) }"),
        (BRACKETS, r"\( \boxed{] ) }} \)", "] ) }"),
        (BRACKETS, "] ) } (closing all)", "] ) }"),
        (BRACKETS, "] ) x }", "] )"),
        (BRACKETS, "empty", None),
        (BRACKETS, "(B)", None),
        (WORDS, "alpha, and beta", "alpha beta"),
        (WORDS, "1. alpha 2. beta", "alpha beta"),
        (WORDS, '["Alpha", "beta"]', "alpha beta"),
        (WORDS, "sorted: alpha beta", "alpha beta"),
        (WORDS, "beta alpha", "beta alpha"),
        (WORDS, "alpha beta gamma", "alpha beta gamma"),
        (WORDS, "not so clear", None),
        (WORDS, "clearly alpha beta", "alpha beta"),
        (WORDS, "alpha<beta", "alpha beta"),
        (WORDS, "alpha | beta", "alpha beta"),
        (BRACKETS, "] ) } or ] )", None),
    ],
)
def test_normal_forms(sample: Sample, answer_text: str, value: str | None) -> None:
    assert READERS["robust"].read(f"So the answer is {answer_text}.", sample).value == value


def test_a_heading_above_the_answer_announces_nothing() -> None:
    reply = "#### 24 and 25 are close.\n\nANSWER: 24"
    answer = READERS["robust"].read(reply, INTEGER)
    assert (answer.value, answer.tier) == ("24", "tolerant")


def test_words_below_the_marker() -> None:
    reply = "So the answer is:\n\n- alpha\n- beta\n\nDone."
    assert READERS["robust"].read(reply, WORDS).value == "alpha beta"
    assert READERS["robust"].read("1. alpha\n2. beta", WORDS).tier == "fallback"


@pytest.mark.parametrize(
    ("sample", "last_line"),
    [
        (INTEGER, "12 + 12 = 24 remainder 2"),
        (INTEGER, "There are 24"),
        (INTEGER, "(12 + 12) = (24"),
        (INTEGER, "I counted 24."),
        (INTEGER, "Total: 24 or 25"),
        (BOOL, "So it seems to be True"),
        (VALID, "The conclusion is invalid if the premise is."),
        (YES_NO, "There is no other way"),
        (CHOICE, "Conclusion: B is nice"),
        (CHOICE, "Grade: B"),
        (CHOICE, "x = B"),
        (CHOICE, "- (A) 6pm to 9pm\n- (B) 7am to 11am"),
        (YES_NO, "Options:\n- Yes\n- No"),
        (WORDS, "Sorted: alpha beta gamma"),
    ],
)
def test_other_last_lines_state_nothing(sample: Sample, last_line: str) -> None:
    assert READERS["robust"].read(f"Steps.\n{last_line}", sample).value is None


@pytest.mark.parametrize(
    ("subset", "reply", "value"),
    [
        ("multistep_arithmetic_two", "(7 * 5 + 6 - 7) = 35", None),  # a part of the expression
        ("multistep_arithmetic_two", "(34) - (2 + 1) = 34 - 3 = 31", "31"),
        ("boolean_expressions", "False and False or not False is False", "False"),
        ("formal_fallacies", "The argument is valid. It goes from the first premise to", "valid"),
        ("sports_understanding", "No, the sentence is not plausible. It is a story.", "no"),
        ("web_of_lies", "Ka says Elanor lies.", None),  # the question once more
    ],
)
def test_replies_without_an_announcement(subset: str, reply: str, value: str | None) -> None:
    sample = row(subset, "", text="Elanor lies. Ka says Elanor lies. Does Ka tell the truth?")
    assert READERS["robust"].read(reply, sample).value == value


def test_several_items_of_a_list_are_not_one_answer() -> None:
    assert READERS["robust"].read("So the answer is:\n- No", YES_NO).value == "No"
    assert READERS["robust"].read("So the answer is:\n- Yes\n- No", YES_NO).reason == "ambiguous"


def test_a_list_that_goes_on_is_another_list() -> None:
    longer = READERS["robust"].read("So the answer is:\n1. alpha\n2. beta\n3. zebra", WORDS)
    assert longer.value == "alpha beta zebra"
    prose = READERS["robust"].read("So the answer is:\n1. alpha\n2. beta\nThat is all.", WORDS)
    assert prose.value == "alpha beta"


def test_words_keep_apostrophes_ampersands_and_and() -> None:
    sample = row("word_sorting", "and it&t o'connell", text="Sort: List: o'connell and it&t")
    answer = READERS["robust"].read("So the answer is and, it&t, 'o'connell'.", sample)
    assert answer.value == "and it&t o'connell"


def test_a_text_target_is_accepted_as_text() -> None:
    sample = row("movie_recommendation", "Monsters, Inc", ("Monsters", "Inc", "Other"))
    robust = READERS["robust"]
    for reply in ("So the answer is Monsters, Inc.", "monsters, inc"):
        value = robust.read(reply, sample).value
        assert value is not None
        assert robust.matches(value, sample)
    assert not robust.matches(robust.read("So the answer is (A).", sample).value or "", sample)


UNITS = [
    "So the answer is ", "So the answer is (A) or ", "The answer is:\n", r"\boxed{", "A, ",
    "answer", "( ", "1,000,", "twenty ", "beta ", "**", r"\(", "答案是", "\n", "Answer: x\n",
    "clearly ", "not that the answer is (B) ", "```\n", "<answer>", "(A) not (B) ", "= 2 ", "- Yes\n", "| < ",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sample", MADE, ids=lambda sample: sample.subset)
def test_a_looping_reply_is_read_to_its_end(sample: Sample, unit: str) -> None:
    loop = unit * (100_000 // len(unit))
    for reader in READERS.values():
        reader.read(loop, sample)
    answer = READERS["robust"].read(f"{loop}\nSo the answer is {sample.target}.\n", sample)
    undecided = answer.reason == "ambiguous" and " or " in unit
    assert undecided or READERS["robust"].matches(answer.value or "", sample)


PIECES = st.sampled_from([
    "So the answer is ", "The answer is", "Answer:", r"\boxed{", "}", "(A)", "(B)", "B", "or", "and",
    "True", "false", "yes", "No", "valid", "not ", "24", "-", "=", ",", "] ", ") ", "{", "alpha",
    "beta", " ", "\n", "\n\n", "Q: ", "**", ".", "$", "答案是", "I", "A", "Z", "'", "—", "\u2212",
])  # fmt: skip


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map("".join)))
def test_readers_never_fail_and_never_change_their_mind(text: str) -> None:
    for sample in MADE:
        for reader in READERS.values():
            answer = reader.read(text, sample)
            assert answer == reader.read(text, sample)
            assert (answer.value is None) == bool(answer.reason)
            if answer.value is not None:
                reader.matches(answer.value, sample)


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map("".join)))
def test_robust_values_are_of_the_rows_kind(text: str) -> None:
    allowed = {"choice": set("ABCDE"), "bool": {"True", "False"}, "valid": {"valid", "invalid"}}
    for sample in MADE:
        value = READERS["robust"].read(text, sample).value
        kind = SUBSETS[sample.subset].kind
        if value is not None and kind in allowed:
            assert value in allowed[kind]
        if value is not None and kind == "brackets":
            assert set(value) <= set("()[]{}<> ")
        if value is not None and kind == "yes_no":
            assert value.lower() in ("yes", "no")
