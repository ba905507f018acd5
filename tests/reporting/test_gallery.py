from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from keju.files import natural_key
from keju.reporting.format import without_canary
from keju.reporting.gallery import FAILURES_SHOWN, TEXT_LIMIT, choose, excerpt, share_out
from keju.results.schema import ResultEntry
from keju.types import Record, Sample
from tests.reporting.documents import entry, lookup, no_questions, outcomes, record, results


def with_questions(
    records: Iterable[Record], questions: Callable[[str, str], Sample | None] = lookup
) -> list[tuple[Sample | None, Record]]:
    """Each record after its question."""
    return [(questions(record.bench, record.id), record) for record in records]


def entries(**failures: int) -> Sequence[ResultEntry]:
    subsets = [
        {"name": name, "n": n, "accuracy": 0.0, "ci95": None, "outcomes": outcomes(incorrect=n)}
        for name, n in failures.items()
    ]
    return results(entry(subsets=subsets)).benchmarks


@given(st.integers(0, 300), st.dictionaries(st.integers(), st.integers(0, 500), max_size=30))
def test_share_out_gives_everything_that_is_wanted_and_nobody_too_much(
    total: int, wishes: dict[int, int]
) -> None:
    shares = share_out(total, wishes)
    assert sum(shares.values()) == min(total, sum(wishes.values()))
    assert all(0 <= shares[key] <= want for key, want in wishes.items())
    hungry = [shares[key] for key, want in wishes.items() if shares[key] < want]
    if hungry:
        assert max(shares.values()) <= min(hungry) + 1


def test_failures_are_spread_over_subsets_even_if_one_has_most_of_them() -> None:
    records = [record(n, subset="large") for n in range(5000)]
    records += [record(n, subset="small") for n in range(7)]
    chosen = choose(with_questions(records), entries(large=5000, small=7)).failures
    assert Counter(case.subset for case in chosen) == {"large": FAILURES_SHOWN - 7, "small": 7}
    ids = [case.record.id for case in chosen if case.subset == "large"]
    assert ids == sorted(ids, key=natural_key)


def test_the_choice_does_not_depend_on_the_order_of_the_records() -> None:
    records = [record(n, subset="large") for n in range(1000)]
    forwards = choose(with_questions(records), entries(large=1000))
    backwards = choose(with_questions(reversed(records)), entries(large=1000))
    assert forwards == backwards


def test_repeats_of_one_question_are_separate_answers() -> None:
    records = [record(1, epoch=0), record(1, epoch=1)]
    assert len(choose(with_questions(records), results().benchmarks).failures) == 2


def test_subsets_are_told_from_ids_where_the_questions_are_missing() -> None:
    records = [record(n, subset=name) for n in range(300) for name in ("one_a", "two_b")]
    chosen = choose(with_questions(records, no_questions), entries(one_a=300, two_b=300)).failures
    assert Counter(case.subset for case in chosen) == {"one_a": 100, "two_b": 100}
    assert all(case.question is None for case in chosen)


def test_options_are_shown_in_the_order_of_the_record() -> None:
    case = choose(with_questions([record(1, order=(1, 0))]), results().benchmarks).failures[0]
    assert case.choices == ("the second option", "the first option")


def test_an_excerpt_keeps_both_ends_and_counts_what_it_left_out() -> None:
    text = "begin " + "x" * 10_000 + " So the answer is (A)."
    cut = excerpt(text)
    assert cut.head.startswith("begin")
    assert cut.tail.endswith("So the answer is (A).")
    assert len(cut.head) + len(cut.tail) == TEXT_LIMIT
    assert cut.left_out == len(text) - TEXT_LIMIT


def test_canary_lines_are_dropped_and_canary_birds_stay() -> None:
    guid = "26b5c67b-86b7-4d4c-8c9f-0123456789ab"
    text = f"first\nBIG-BENCH canary GUID {guid}\nA canary is a bird.\nCanary: {guid}"
    assert without_canary(text) == "first\nA canary is a bird."
