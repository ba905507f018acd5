"""Exams in which every item was asked several times."""

from __future__ import annotations

import random

import pytest

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON
from keju.engine.job import Job
from keju.results.metrics import option_identity
from keju.scores.tally import restore_label
from keju.stats.repeats import pass_at_k
from keju.types import LABELS, Answer, Reading, Record, Reply, Sampling, Score
from tests.results.fake_exam import entry_of, make_exam, make_sample, make_tally

FIVE_ITEMS = "1101" + "0001" + "1111" + "0101" + "0000"


def test_item_means_come_first() -> None:
    entry = entry_of(make_exam({"a": 5}), make_tally(FIVE_ITEMS, epochs=4))
    accuracy = entry["metrics"]["accuracy"]
    assert entry["n"] == 5
    assert entry["repeats"] == 4
    assert sum(entry["outcomes"].values()) == 20
    assert accuracy["n"] == 5
    assert accuracy["value"] == 0.5
    assert accuracy["se"] == pytest.approx(0.1767767, rel=1e-6)
    assert accuracy["within_variance"] == pytest.approx(0.1666667, rel=1e-6)
    assert accuracy["between_variance"] == pytest.approx(0.1145833, rel=1e-6)


def test_pass_at_k_and_pass_hat_k() -> None:
    metrics = entry_of(make_exam({"a": 5}), make_tally(FIVE_ITEMS, epochs=4))["metrics"]
    for k in (1, 2, 4):
        expected = sum(pass_at_k(4, c, k) for c in (3, 1, 4, 2, 0)) / 5
        assert metrics[f"pass@{k}"]["value"] == pytest.approx(expected)
    assert metrics["pass@4"]["value"] == 4 / 5
    assert metrics["pass^4"]["value"] == 1 / 5
    assert metrics["pass@1"]["value"] == metrics["accuracy"]["value"]


def test_subsets_and_macro_use_item_means() -> None:
    entry = entry_of(make_exam({"a": 2, "b": 1}), make_tally("10" + "11" + "10", epochs=2))
    assert [subset["accuracy"] for subset in entry["subsets"]] == [0.75, 0.5]
    assert entry["metrics"]["macro_accuracy"]["value"] == pytest.approx(0.625)


def test_errors_shorten_an_item_and_pending_repeats_do_not_count() -> None:
    entry = entry_of(make_exam({"a": 4}), make_tally("1e" + "10" + "ee" + ".1", epochs=2))
    metrics = entry["metrics"]
    assert (entry["n"], entry["ungraded"]) == (3, 1)
    assert metrics["accuracy"]["n"] == 3
    assert metrics["accuracy"]["value"] is None
    assert metrics["accuracy_worst"]["value"] == pytest.approx((0.5 + 0.5 + 0 + 1) / 4)
    assert metrics["accuracy_best"]["value"] == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert metrics["pass@2"]["n"] == 2, "one right repeat of two is enough to know it"
    assert metrics["pass@2"]["value"] is None
    assert metrics["pass@2"]["bounds"] == [2 / 3, 1]


def test_majority_vote() -> None:
    outcomes = "1100" + "1000" + "1u0u" + "00uu" + "uuuu" + "eeee"
    answers = [*"AABC", *"ABBB", "A", None, "B", None, "B", "C", None, None, *[None] * 8]
    metrics = entry_of(make_exam({"a": 6}), make_tally(outcomes, epochs=4, answers=answers))[
        "metrics"
    ]
    assert metrics["majority_vote"]["n"] == 5
    assert metrics["majority_vote"]["value"] == pytest.approx((1 + 0 + 0.5 + 0 + 0) / 5)
    agreement = (1 / 6 + 3 / 6 + 0 + 0) / 4
    assert metrics["agreement"]["value"] == pytest.approx(agreement)
    assert metrics["agreement"]["of"] == "answers"
    assert metrics["agreement"]["n"] == 4
    pairs = [(1 + 4 * 0.5 + 0) / 6, 3 * 0.5 / 6, (0.5 + 1 + 1 + 0 + 0 + 0) / 6, 0, 0]
    assert metrics["majority_vote@2"]["value"] == pytest.approx(sum(pairs) / 5)


def test_votes_and_passes_have_the_bounds_that_replies_without_a_grade_leave() -> None:
    outcomes = "1111" + "0000" + "110e" + "e001" + "1111" * 6
    answers = [*"AAAA", *"BBBB", "A", "A", "B", None, None, "B", "B", "A", *"AAAA" * 6]
    tally = make_tally(outcomes, epochs=4, answers=answers)
    metrics = entry_of(make_exam({"a": 10}), tally)["metrics"]
    vote = metrics["majority_vote"]
    assert vote["value"] == pytest.approx(8 / 10)
    # Items 3 and 4 have 2 votes of 3 for A and for B: the lost one may tie the vote.
    assert vote["bounds"] == [pytest.approx(7.5 / 10), pytest.approx(8.5 / 10)]
    # One repeat of four is lost, and yet it is known that one is right and that not all are.
    assert (metrics["pass@4"]["value"], metrics["pass@4"]["n"]) == (pytest.approx(9 / 10), 10)
    assert (metrics["pass^4"]["value"], metrics["pass^4"]["n"]) == (pytest.approx(7 / 10), 10)
    assert metrics["pass@1"]["value"] == pytest.approx(0.8)
    assert metrics["pass@1"]["bounds"] == [pytest.approx(0.775), pytest.approx(0.825)]


def test_a_refusal_is_an_option_that_can_win() -> None:
    tally = make_tally("rr1", epochs=3, answers=["E", "E", "A"])
    assert entry_of(make_exam({"a": 1}), tally)["metrics"]["majority_vote"]["value"] == 0


def test_option_identity_goes_through_the_stored_order() -> None:
    reordered = make_sample("a", 0, order=(2, 0, 3, 1))
    turned = make_sample("a", 0, order=(0, 1, 2, 3))
    assert option_identity(reordered, "B") == option_identity(turned, "A")
    assert option_identity(reordered, "A") != option_identity(turned, "A")
    assert option_identity(reordered, "42") == "42"
    assert option_identity(make_sample("a", 0), "B") == "B"


def test_votes_are_on_options_where_each_repeat_had_its_own_order() -> None:
    """Two repeats choose the right option and one a wrong one, under letters that all differ."""
    orders = [(0, 1, 2, 3), (3, 2, 1, 0), (3, 1, 0, 2)]
    chosen = [0, 0, 1]
    exam = make_exam({"a": 6})
    exam.samples = [make_sample("a", i, order=orders[i % 3]) for i in range(6)]
    reader = RobustReader(Choice(), strict=ANSWER_COLON)
    job = Job(exam, Sampling(), [reader], model="m", epochs=3)
    for unit in range(job.units):
        question, epoch = divmod(unit, 3)
        order, option = orders[epoch], chosen[epoch]
        label = LABELS[order.index(option)]
        score = Score(float(not option), "incorrect" if option else "correct")
        record = Record(
            bench="fake",
            id=exam.samples[question].id,
            epoch=epoch,
            hash=str(unit),
            order=order,
            reply=Reply(label),
            readings=(Reading("robust", Answer(label), score),),
        )
        job.recall(unit, record, trusted=True)
    metrics = entry_of(exam, job.tallies[0])["metrics"]
    assert metrics["majority_vote"]["value"] == 1.0
    assert metrics["agreement"]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("order", [(), (0, 1), (0, 1, 2, 4)])
def test_an_order_of_other_options_leaves_the_label(order: tuple[int, ...]) -> None:
    reading = Reading("robust", Answer("B"), Score(1.0, "correct"))
    assert restore_label(reading, make_sample("a", 0), order) == reading


def test_an_answer_that_is_no_label_has_no_place_in_the_order() -> None:
    for value in (None, "", "42", "Z", "AB"):
        reading = Reading("robust", Answer(value), Score(0.0, "incorrect"))
        assert restore_label(reading, make_sample("a", 0), (3, 2, 1, 0)) == reading


def test_without_answers_agreement_is_of_scores_and_there_is_no_vote() -> None:
    metrics = entry_of(make_exam({"a": 2}), make_tally("11" + "10", epochs=2))["metrics"]
    assert metrics["agreement"]["value"] == 0.5
    assert metrics["agreement"]["of"] == "scores"
    assert "majority_vote" not in metrics


def test_errata_and_clusters_with_repeats() -> None:
    exam = make_exam({"a": 4}, errata={"fake_a_3": "wrong gold"}, clustered=True)
    exam.samples = [make_sample("a", i, group=f"g{i // 2}") for i in range(4)]
    metrics = entry_of(exam, make_tally("11" + "10" + "00" + "11", epochs=2))["metrics"]
    assert metrics["accuracy"]["clusters"] == 2
    assert metrics["accuracy"]["value"] == pytest.approx(2.5 / 4)
    assert metrics["accuracy_without_errata"]["value"] == pytest.approx(1.5 / 3)
    assert metrics["pass@2"]["clusters"] == 2


@pytest.mark.slow
def test_intervals_of_simulated_runs_cover_the_models_true_score() -> None:
    """From the tally to the entry: the truth of a known model lies inside 95 % of the time."""
    chance = random.Random(11)
    size, epochs, runs = 40, 4, 600
    exam = make_exam({"a": size})
    abilities = (0.1, 0.5, 0.9)
    truth = {
        "accuracy": sum(abilities) / 3,
        "pass@2": sum(1 - (1 - p) ** 2 for p in abilities) / 3,
        "pass@4": sum(1 - (1 - p) ** 4 for p in abilities) / 3,
        "pass^4": sum(p**4 for p in abilities) / 3,
    }
    covered = dict.fromkeys(truth, 0)
    for _ in range(runs):
        skills = [chance.choice(abilities) for _ in range(size)]
        outcomes = "".join(
            "1" if chance.random() < p else "0" for p in skills for _ in range(epochs)
        )
        metrics = entry_of(exam, make_tally(outcomes, epochs=epochs))["metrics"]
        for name, target in truth.items():
            low, high = metrics[name]["ci95"]
            covered[name] += low <= target <= high
    for name, count in covered.items():
        assert 0.92 <= count / runs <= 0.98, (name, count / runs)
