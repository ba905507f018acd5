"""Open answers: what rules decide, and what they leave to a judge."""

from __future__ import annotations

import pytest

from keju.benchmarks.bixbench.exam import EXACT_WARNING
from keju.types import Fault, Reading, Reply, Sample
from tests.benchmarks.bixbench.conftest import Prepare

UNDECIDED = ("ungraded", "undecided")


@pytest.fixture
def grade(prepare: Prepare) -> Grade:
    return Grade(prepare)


class Grade:
    """Grades an answer to a made-up question."""

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare

    def __call__(
        self, mode: str, target: str, text: str, reader: str = "native", **args: object
    ) -> tuple[str, str]:
        reading = self.reading(mode, target, text, reader, **args)
        return reading.score.outcome, reading.score.grader

    def reading(
        self, mode: str, target: str, text: str, reader: str = "native", **args: object
    ) -> Reading:
        exam = self._prepare(**{"answer_mode": "open", "no_judge": "ungraded"} | args)
        question = Sample(
            id="x", subset="v1.5", index=0, text="?", target=target, metadata={"eval_mode": mode}
        )
        return exam.grade(Reply(text=text), question, exam.readers[reader])


@pytest.mark.parametrize(
    ("target", "text", "outcome"),
    [
        ("(0.6 , 0.7)", "0.65", "correct"),
        ("(0.6 , 0.7)", "0.6", "correct"),
        ("(0.6 , 0.7)", "0.7", "correct"),
        ("(0.6 , 0.7)", "0.71", "incorrect"),
        ("(0.6 , 0.7)", "It is about 0.65.", "correct"),
        ("(-0.064,-0.084) ", "\u22120.07", "correct"),
        ("(-0.064,-0.084) ", "0.07", "incorrect"),
        ("(1.13e-10,1.13e-12)", "1.2×10⁻¹¹", "correct"),
        ("(1.13e-10,1.13e-12)", "1.2 x 10^-11", "correct"),
        ("(10000,20000)", "12,345 variants", "correct"),
        ("(24,26)", "25%", "correct"),
        ("(0.2,0.3)", "25%", "incorrect"),
        ("(0.6,0.7)", "With n = 12, r = 0.5; the answer is 0.65", "correct"),
        ("(0.6,0.7)", "At 5 genes r = 0.65", "correct"),
        ("(0.6,0.7)", "At 5 genes r ≈ 0.65", "correct"),
        ("(0.6,0.7)", "5 of 7 <answer> 0.65 </answer>", "correct"),
    ],
)
def test_ranges_are_decided_by_the_one_number(
    grade: Grade, target: str, text: str, outcome: str
) -> None:
    assert grade("range_verifier", target, text) == (outcome, "range")


@pytest.mark.parametrize(
    "text",
    [
        *("0.6 to 0.7", "(700,800)", "r = 0.5, p = 0.65", "<0.65", "10k"),
        *("about two thirds", "½ to ¾", "none of them", "三分之二", "twenty-five"),
    ],
)
def test_ranges_that_the_judge_must_decide(grade: Grade, text: str) -> None:
    assert grade("range_verifier", "(0.6,0.7)", text) == UNDECIDED


@pytest.mark.parametrize("text", ["I cannot tell", "NaN", "It was upregulated.", "see the figure"])
def test_a_range_that_is_answered_without_any_number_is_missed(grade: Grade, text: str) -> None:
    assert grade("range_verifier", "(0.6,0.7)", text) == ("incorrect", "range")


@pytest.mark.parametrize(
    "text",
    [
        "It is not 0.65",
        "at least 0.65",
        "At most 0.65",
        "The p-value is below 0.65",
        "above the threshold of 0.65",
        "more than 0.65",
        "less than 0.65",
        "over 0.65",
        "under 0.65",
        "It isn't 0.65",
        "I cannot compute this; 0.65 GB of data are missing",
        "The answer is not 0.65",
        "I do not think the answer is 0.65",
    ],
)
@pytest.mark.parametrize("reader", ["native", "tolerant"])
def test_a_number_that_is_denied_or_a_bound_is_for_the_judge(
    grade: Grade, text: str, reader: str
) -> None:
    assert grade("range_verifier", "(0.6,0.7)", text, reader) == UNDECIDED


@pytest.mark.parametrize(
    "text",
    [
        "I am not sure, but the answer is 0.65",
        "The effect is not significant (p = 0.65)",
        "Values over the limit were cut. The answer is 0.65.",
        "0.65, which is not significant",
    ],
)
def test_words_of_another_clause_leave_an_announced_number(grade: Grade, text: str) -> None:
    assert grade("range_verifier", "(0.6,0.7)", text) == ("correct", "range")


@pytest.mark.parametrize(
    ("target", "text", "outcome"),
    [
        *(
            (target, text, outcome)
            for text in (
                "–0.5",
                "—0.5",
                "- 0.5",
                "minus 0.5",
                "negative 0.5",
                "r = –0.5",
                "r = - 0.5",
            )
            for target, outcome in (("(0.4,0.6)", "incorrect"), ("(-0.6,-0.4)", "correct"))
        ),
        ("(-6,-4)", "–5", "correct"),
        ("(-6,-4)", "- 5", "correct"),
        ("(-6,-4)", "minus 5", "correct"),
        ("(-6,-4)", "It is about -5.", "correct"),
        ("(-6,-4)", "x: –5", "correct"),
        ("(-6,-4)", "The answer is negative 5", "correct"),
        ("(-0.0006,-0.0004)", "–5×10–4", "ungraded"),
        ("(0.0004,0.0006)", "5×10^–4", "correct"),
        ("(4,6)", "IL - 5", "ungraded"),
        ("(4,6)", "The result is – 5", "ungraded"),
        ("(4,6)", "The answer—5", "ungraded"),
        ("(4,6)", "Genes:\n- 5 up-regulated", "ungraded"),
        ("(4,6)", "false negative 5", "ungraded"),
    ],
)
def test_every_way_of_writing_a_minus_counts(
    grade: Grade, target: str, text: str, outcome: str
) -> None:
    assert grade("range_verifier", target, text)[0] == outcome


@pytest.mark.parametrize(
    "text",
    [
        "the answer is 5 or 7", "The answer is 5 to 50", "The answer is 5–50", "5 - 50",
        "answer: 5, or possibly 50", "answer is 5 x 9", "The answer is 5 (or 50)",
        "The answer is 5 and 50", "The answer is 5; 50 is plausible as well", "The answer is 5 000",
        "The answer is 5. The answer is 50.", "The answer is 5. Wait, 50.", "The answer is 5?",
        "The answer is 5. No, that was the old file.", "The answer is 5\nOr 50.",
        "r = 5 or 50", "r = 5 to 50", "With n = 5, the correlation was 50", "50 ≈ 5",
        "The correlation was 50 (n = 5)", "The answer is 5 of the 100 genes", "The answer is 5,7",
        "Three of the 5", "two or 5", "5 or seven", "half of 5",
    ],
)  # fmt: skip
@pytest.mark.parametrize("reader", ["native", "tolerant"])
def test_one_of_several_numbers_is_for_the_judge(grade: Grade, text: str, reader: str) -> None:
    assert grade("range_verifier", "(4,6)", text, reader) == UNDECIDED


@pytest.mark.parametrize(
    "text",
    [
        "5 is wrong", "5 is not the answer", "never 5", "neither 5", "excluding 5", "≠ 5", "!= 5",
        "wrong answer is 5", "anything but 5", r"$\neq 5$", "If so, the answer is 5",
        "I do not think that, given the data, the answer is 5",
        "I doubt that the answer is 5", "5, which is not right", "5? I do not know",
        "5 or more", "5 at most", "up to 5", "5+", "5 is the maximum", "no more than 5", "almost 5",
        "5.0.1", "5 dozen", "5 hundred", "1_234", "2^5", "2**5", "#5", "see Figure 5",
        "Figure **5**", "√5", "log(5)", r"\sqrt{5}", "5 and a half", "5 ± 2", "5e", "5...7",
        "5 < x", "The answer is unknown (p = 5)", "It was inconclusive with n = 5", "5 of ten",
        "5 tenths", "5 squared", "5 out of many", "5-HT", "5 / x", "5 x", "5 <x", "5′",
    ],
)  # fmt: skip
@pytest.mark.parametrize("reader", ["native", "tolerant"])
def test_a_denied_bounded_or_partial_number_is_for_the_judge(
    grade: Grade, text: str, reader: str
) -> None:
    assert grade("range_verifier", "(4,6)", text, reader) == UNDECIDED


@pytest.mark.parametrize(
    "text",
    [
        "5", "5.", "**5**", "≈ 5", "~5", "5 genes", "5-fold", "5 genes with both marks", "5<br>", "The answer is 5.", "The answer is **5**.",
        r"The answer is \boxed{5}.", "The total is about 5", "There are 5 genes",
        "The answer is 5 (95% CI 4 to 6)", "The answer is 5 (p = 0.03).", "10/2 = 5",
        "Answer: 5\n\nThis was counted in 12 samples.", "r = 5, and again r = 5",
    ],
)  # fmt: skip
@pytest.mark.parametrize("reader", ["native", "tolerant"])
def test_what_is_certain_stays_decided(grade: Grade, text: str, reader: str) -> None:
    assert grade("range_verifier", "(4,6)", text, reader) == ("correct", "range")
    assert grade("range_verifier", "(7,9)", text, reader) == ("incorrect", "range")


@pytest.mark.parametrize(
    ("target", "text", "grader"),
    [
        ("CDKN1A", "cdkn1a.", "exact"),
        ("CD14 Monocytes", '"CD14  monocytes"', "exact"),
        ("4,550", "4550", "number"),
        ("1.9E-05", "0.000019", "number"),
        ("1.9E-05", "1.9×10⁻⁵", "number"),
        ("-4.10", "\u22124.1", "number"),
        ("28%", "28 %", "number"),
        ("NaN", "nan", "exact"),
        ("0:0", "0:0", "exact"),
        ("1-50", "1-50", "exact"),
    ],
)
@pytest.mark.parametrize("mode", ["str_verifier", "llm_verifier"])
def test_equal_answers(grade: Grade, mode: str, target: str, text: str, grader: str) -> None:
    assert grade(mode, target, text) == ("correct", grader)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("4,550", "5"),
        ("4,550", "550"),
        ("1.9E-05", "1.9E+05"),
        ("1.9E-05", "1.9"),
        ("-0.5", "0.5"),
        ("3.5", "35"),
        ("28%", "28"),
        ("28%", "0.28"),
        ("22/64", "22"),
        ("NaN", "0"),
        ("CDKN1A", "The gene is CDKN1A"),
    ],
)
def test_no_part_of_the_target_and_no_dropped_sign_passes(
    grade: Grade, target: str, text: str
) -> None:
    assert grade("str_verifier", target, text) == UNDECIDED


@pytest.mark.parametrize("reader", ["native", "tolerant"])
@pytest.mark.parametrize("text", ["", "  \n", "<answer> </answer>"])
def test_the_empty_answer_is_unparsed(grade: Grade, text: str, reader: str) -> None:
    assert grade("str_verifier", "4,550", text, reader) == ("unparsed", "")
    assert grade("range_verifier", "(0,1)", text, reader, no_judge="exact") == ("unparsed", "")


@pytest.mark.parametrize(
    ("mode", "target", "text", "outcome"),
    [
        ("str_verifier", "0.0002", "0.00019", "correct"),
        ("str_verifier", "1.9E-05", "1.94e-5", "correct"),
        ("str_verifier", "1.9E-05", "1.96e-5", "ungraded"),
        ("str_verifier", "7.29E+07", "72896133", "correct"),
        ("str_verifier", "28%", "0.28", "correct"),
        ("str_verifier", "0.28", "28%", "correct"),
        ("str_verifier", "28%", "28", "correct"),
        ("str_verifier", "35", "3.5", "ungraded"),
        ("str_verifier", "0.0", "1e300", "ungraded"),
        ("range_verifier", "(0.2,0.3)", "25%", "correct"),
        ("range_verifier", "(0.2,0.3)", "25", "incorrect"),
        ("range_verifier", "(24,26)", "0.25%", "incorrect"),
        ("range_verifier", "(4,6)", "0.05%", "incorrect"),
        ("range_verifier", "(0.04,0.06)", "5%", "correct"),
        ("str_verifier", "0.04%", "4", "ungraded"),
        ("str_verifier", "0.04%", "0.0004", "correct"),
        ("str_verifier", "4", "0.04%", "ungraded"),
    ],
)
def test_tolerant_allows_for_rounding_and_per_cent(
    grade: Grade, mode: str, target: str, text: str, outcome: str
) -> None:
    assert grade(mode, target, text, "tolerant")[0] == outcome


def test_the_targets_very_text_is_right_by_rule_and_no_judge_is_asked(grade: Grade) -> None:
    for mode in ("range_verifier", "str_verifier", "llm_verifier"):
        assert grade(mode, "(0.6, 0.7)", "(0.6, 0.7)") == ("correct", "exact"), mode


def test_without_a_judge_exact_match_decides_every_row(grade: Grade, prepare: Prepare) -> None:
    wrong = grade("llm_verifier", "Canonical glycolysis", "glycolysis", no_judge="exact")
    assert wrong == ("incorrect", "exact")
    matching = grade("range_verifier", "(0.6 , 0.7)", "(0.6 , 0.7)", no_judge="exact")
    assert matching == ("correct", "exact")
    assert grade("range_verifier", "(0.6,0.7)", "0.65", no_judge="exact") == ("correct", "range")
    assert EXACT_WARNING in prepare(answer_mode="open", no_judge="exact").warnings
    assert EXACT_WARNING in prepare(answer_mode="open").warnings
    assert EXACT_WARNING not in prepare(answer_mode="open", no_judge="ungraded").warnings
    assert EXACT_WARNING not in prepare(answer_mode="open", llm_judge_model="j").warnings
    assert EXACT_WARNING not in prepare().warnings


def test_errors_and_cut_replies_are_no_answers(prepare: Prepare) -> None:
    exam = prepare(answer_mode="open")
    question, reader = exam.samples[0], exam.readers["native"]
    cut = exam.grade(Reply(text="", finish="length"), question, reader)
    assert cut.score.outcome == "truncated"
    failed = exam.grade(Reply(error=Fault("timeout", "late")), question, reader)
    assert failed.score.outcome == "error"


def test_official_open_answers_need_their_tags(prepare: Prepare) -> None:
    exam = prepare(answer_mode="open", protocol="official")
    question, reader = exam.samples[0], exam.readers["native"]
    assert exam.grade(Reply(text="0.0002"), question, reader).score.outcome == "unparsed"
    reading = exam.grade(Reply(text="<answer> 0.0002 </answer>"), question, reader)
    assert reading.score.outcome == "correct"


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("True", "True", ""),
        ("false.", "False", ""),
        ("**Yes**", "True", ""),
        ("No, the data do not support it.", "False", ""),
        ("True, there is no evidence against it.", "True", ""),
        ("No doubt this is true.", None, "ambiguous"),
        ("No question, the hypothesis is true", None, "ambiguous"),
        ("No one can say whether true", None, "ambiguous"),
        ("No idea.", None, "no_marker"),
        ("No doubt about it", None, "no_marker"),
        ("No", "False", ""),
        ("True, no doubt.", "True", ""),
        ("True or false", None, "ambiguous"),
        ("Yes and no.", None, "ambiguous"),
        ("True. No: false.", None, "ambiguous"),
        ("The hypothesis holds.", None, "no_marker"),
        ("Nothing is known", None, "no_marker"),
        ("I am unsure", None, "no_marker"),
        ("", None, "empty"),
    ],
)
def test_hypotheses(prepare: Prepare, text: str, value: str | None, reason: str) -> None:
    exam = prepare(question_source="hypothesis", answer_mode="open")
    assert list(exam.readers) == ["native"]
    reading = exam.grade(Reply(text=text), exam.samples[0], exam.readers["native"])
    assert (reading.answer.value, reading.answer.reason) == (value, reason)
    assert exam.samples[0].target == "True"
    if value is not None:
        outcome = "correct" if value == "True" else "incorrect"
        assert (reading.score.outcome, reading.score.grader) == (outcome, "hypothesis")
    else:
        assert reading.score.outcome == "unparsed"


def test_every_real_target_is_right(real: Prepare) -> None:
    """The oracle: a target as the answer is right, a middle value of a range too."""
    for args in ({}, {"data_version": "1.0", "all_questions": True}):
        exam = real(answer_mode="open", **args)
        for question in exam.samples:
            target = question.target
            if question.metadata["eval_mode"] == "range_verifier":
                low, high = target.strip().strip("()").split(",")
                target = repr((float(low) + float(high)) / 2)
            for reader in exam.readers.values():
                reading = exam.grade(Reply(text=target), question, reader)
                assert reading.score.outcome == "correct", (question.id, target)


def test_the_exam_names_its_judge_only_where_one_was_asked_for(prepare: Prepare) -> None:
    assert prepare(answer_mode="open").judge is None
    exam = prepare(answer_mode="open", llm_judge_model="j")
    assert exam.judge is not None
    assert exam.judge.model == "j"
    assert exam.beside == "tolerant"
    assert exam.protocol.reader == "native"
