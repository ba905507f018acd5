"""One entry of results.json: counts, scores, intervals, means."""

from __future__ import annotations

import json
import tracemalloc
from array import array
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.benchmarks.base import Mean, Scores, Subset
from keju.results.schema import Timing, UsageTotals
from keju.results.summarise import summarise
from keju.scores.tally import CODE, Tally
from keju.stats.estimate import Estimate
from keju.stats.intervals import student_t_quantile, wilson
from keju.types import OUTCOMES, Answer, Outcome, Reading, Sample, Score
from tests.results.fake_exam import (
    REFERENCE,
    FakeExam,
    LazySamples,
    document_of,
    entry_of,
    make_exam,
    make_sample,
    make_tally,
)


def test_contract_shape() -> None:
    exam = make_exam({"a": 3, "b": 2}, references=[REFERENCE])
    usage, timing = UsageTotals(input_tokens=5), Timing(1.5)
    tally = make_tally("110u0")
    typed = summarise(exam, tally, reader="robust", usage=usage, timing=timing)
    document = document_of(typed)
    (entry,) = document["benchmarks"]
    assert (entry["name"], entry["protocol"], entry["reader"]) == ("fake", "plain", "robust")
    assert entry["headline"] == "accuracy"
    assert entry["n"] == 5
    assert entry["metrics"]["accuracy"]["value"] == 2 / 5
    assert entry["metrics"]["accuracy"]["ci95"] == list(wilson(0.4, 5))
    assert entry["metrics"]["accuracy"]["n"] == 5
    assert entry["metrics"]["macro_accuracy"]["value"] == pytest.approx((2 / 3 + 0) / 2)
    assert list(entry["outcomes"]) == list(OUTCOMES)
    assert sum(entry["outcomes"].values()) == 5
    assert [subset["name"] for subset in entry["subsets"]] == ["a", "b"]
    assert entry["subsets"][0]["accuracy"] == 2 / 3
    assert entry["subsets"][1]["outcomes"]["unparsed"] == 1
    assert entry["groups"] == []
    assert (entry["usage"]["input_tokens"], entry["timing"]) == (5, {"seconds": 1.5})
    assert entry["reference"] == [
        {"name": "paper", "overall": {"accuracy": 0.5}, "subsets": {"a": 0.4}}
    ]
    assert json.loads(json.dumps(document)) == document
    assert (document["schema"], document["run"], document["model"]) == (1, "r1", "m")


def test_errors_leave_the_denominator_and_show_their_bounds() -> None:
    entry = entry_of(make_exam({"a": 1000}), make_tally("1" * 620 + "0" * 355 + "e" * 25))
    metrics = entry["metrics"]
    assert (entry["n"], entry["ungraded"]) == (975, 25)
    assert (entry["subsets"][0]["n"], entry["subsets"][0]["ungraded"]) == (975, 25)
    assert metrics["accuracy"]["n"] == 975
    assert metrics["accuracy"]["value"] == pytest.approx(0.635897, abs=5e-7)
    assert metrics["accuracy_worst"]["value"] == 0.620
    assert metrics["accuracy_best"]["value"] == 0.645
    assert any("25 of 1000" in warning for warning in entry["warnings"])


def test_no_bounds_without_errors() -> None:
    assert "accuracy_worst" not in entry_of(make_exam({"a": 4}), make_tally("1100"))["metrics"]


@pytest.mark.parametrize("outcomes", ["....", "ee..", "gggg"])
def test_nothing_graded_is_null_never_zero(outcomes: str) -> None:
    entry = entry_of(make_exam({"a": 2, "b": 2}), make_tally(outcomes))
    for name in ("accuracy", "macro_accuracy"):
        assert entry["metrics"][name]["value"] is None
        assert entry["metrics"][name]["ci95"] is None
        assert entry["metrics"][name]["n"] == 0
    assert (entry["n"], entry.get("ungraded", 0)) == (0, 4 - outcomes.count("."))
    assert entry["subsets"][0]["accuracy"] is None


def test_pending_units_are_not_counted() -> None:
    entry = entry_of(make_exam({"a": 4, "b": 4}), make_tally("10..1..."))
    assert entry["n"] == 3
    assert entry["metrics"]["accuracy"]["value"] == 2 / 3
    assert [subset["n"] for subset in entry["subsets"]] == [2, 1]


def test_refused_truncated_and_unparsed_count_as_not_right() -> None:
    entry = entry_of(make_exam({"a": 5}), make_tally("1rtu0"))
    assert entry["metrics"]["accuracy"]["value"] == 1 / 5
    assert len(entry["warnings"]) == 3


@pytest.mark.parametrize(("cut", "warned"), [(1, False), (2, True)])
def test_truncation_above_one_percent_warns(cut: int, warned: bool) -> None:
    entry = entry_of(make_exam({"a": 100}), make_tally("t" * cut + "1" * (100 - cut)))
    assert any("max_tokens" in warning for warning in entry["warnings"]) is warned


NESTED = (
    Mean("macro_2", "mean of tasks", (("a",), ("b", "c"))),
    Mean("pair", "the pair", (("b",), ("c",)), group=True),
)


def test_means_are_of_tasks_of_subsets() -> None:
    exam = make_exam({"a": 4, "b": 2, "c": 4}, NESTED)
    entry = entry_of(exam, make_tally("1110" + "10" + "0001"))
    metrics = entry["metrics"]
    assert metrics["macro_2"]["value"] == pytest.approx((0.75 + (0.5 + 0.25) / 2) / 2)
    assert metrics["macro_accuracy"]["value"] == pytest.approx(0.5)
    assert metrics["macro_2"]["method"] == "stratified"
    variance = 0.5**2 * 0.1875 / 3 + 0.25**2 * 0.25 / 1 + 0.25**2 * 0.1875 / 3
    assert metrics["macro_2"]["se"] == pytest.approx(variance**0.5)
    assert "partial" not in metrics["macro_2"]
    (group,) = entry["groups"]
    assert (group["name"], group["title"], group["n"]) == ("pair", "the pair", 6)
    assert group["accuracy"] == pytest.approx(0.375)
    assert group["micro_accuracy"] == 2 / 6
    assert group["outcomes"]["incorrect"] == 4


def test_incomplete_means_are_left_out_but_the_main_one_is_partial() -> None:
    entry = entry_of(make_exam({"a": 4, "b": 2}, NESTED), make_tally("1110" + "10"))
    assert entry["metrics"]["macro_2"]["partial"] is True
    assert entry["metrics"]["macro_2"]["title"] == "mean of tasks"
    assert entry["metrics"]["macro_2"]["value"] == pytest.approx((0.75 + 0.5) / 2)
    assert entry["metrics"]["macro_accuracy"]["partial"] is True
    assert "pair" not in entry["metrics"]
    assert entry["groups"] == []


def test_subset_without_a_grade_makes_the_main_mean_partial_and_others_null() -> None:
    exam = make_exam({"a": 4, "b": 2, "c": 4}, NESTED)
    metrics = entry_of(exam, make_tally("1110" + "10" + "eeee"))["metrics"]
    assert metrics["macro_2"]["partial"] is True
    assert metrics["macro_2"]["value"] is None
    assert metrics["macro_2"]["bounds"] == pytest.approx([(0.75 + 0.25) / 2, (0.75 + 0.75) / 2])
    assert metrics["pair"]["value"] is None


def test_subsets_without_spread_keep_the_macro_interval_open() -> None:
    entry = entry_of(make_exam({"a": 5, "b": 5}), make_tally("1" * 10))
    macro = entry["metrics"]["macro_accuracy"]
    assert macro["value"] == 1
    assert macro["ci95"][0] < 0.95
    assert macro["strata_by_wilson"] == 2


def test_drawn_subsets_use_the_finite_population_and_their_size() -> None:
    exam = make_exam({"a": 20, "b": 30, "c": 50})
    exam.subsets = [
        Subset("a", 0, 20, population=200),
        Subset("b", 20, 50, population=300),
        Subset("c", 50, 100, population=500),
    ]
    tally = make_tally("1" * 12 + "0" * 8 + "1" * 24 + "0" * 6 + "1" * 20 + "0" * 30)
    metrics = entry_of(exam, tally)["metrics"]
    assert metrics["macro_accuracy"]["value"] == pytest.approx(0.6)
    assert metrics["macro_accuracy"]["se"] == pytest.approx(0.0480071, rel=1e-6)
    assert metrics["accuracy_whole_set"]["value"] == pytest.approx(0.56)
    assert metrics["accuracy_whole_set"]["se"] == pytest.approx(0.0447624, rel=1e-6)


def clustered_exam(sizes: list[int]) -> FakeExam:
    samples: list[Sample] = []
    for cluster, size in enumerate(sizes):
        for _ in range(size):
            samples.append(make_sample("a", len(samples), group=f"capsule {cluster}"))
    exam = FakeExam(samples, [Subset("a", 0, len(samples))])
    exam.clustered = True
    return exam


def test_clustered_exam() -> None:
    entry = entry_of(clustered_exam([3] * 5), make_tally("111110000100111"))
    accuracy = entry["metrics"]["accuracy"]
    assert accuracy["method"] == "clustered"
    assert accuracy["clusters"] == 5
    assert accuracy["se"] == pytest.approx(0.1943651, rel=1e-6)
    assert accuracy["deff"] == pytest.approx(2.2037037, rel=1e-6)
    assert accuracy["n_eff"] == pytest.approx(6.8067227, rel=1e-6)
    assert accuracy["ci95"] == pytest.approx([0.1976195, 0.8925783], abs=1e-6)
    assert accuracy["t_interval"] == pytest.approx([0.0603561, 1.1396439], rel=1e-6)
    assert any("only 5 clusters" in warning for warning in entry["warnings"])


def test_bounds_of_a_clustered_exam_are_as_unsure_as_its_accuracy() -> None:
    exam = clustered_exam([4] * 12)
    tally = make_tally("1111" * 6 + "0000" * 5 + "e" * 4)
    clustered = entry_of(exam, tally)["metrics"]
    exam.clustered = False
    independent = entry_of(exam, tally)["metrics"]
    for name, value in (("accuracy_worst", 24 / 48), ("accuracy_best", 28 / 48)):
        assert clustered[name]["value"] == independent[name]["value"] == value
        assert independent[name]["ci95"] == pytest.approx(list(wilson(value, 48)))
        assert clustered[name]["clusters"] == 12
        assert clustered[name]["deff"] == pytest.approx(4.3, abs=0.2)
        low, high = clustered[name]["ci95"]
        size = 48 / clustered[name]["deff"]
        unclustered = wilson(value, size, student_t_quantile(0.975, 11))
        assert high - low == pytest.approx(unclustered.high - unclustered.low, rel=0.02)


def test_subsets_of_one_question_have_the_interval_of_one_pot() -> None:
    """`--limit 1`: 27 subsets of one question each covered 82 % when each had its own interval."""
    exam = make_exam({f"s{place}": 1 for place in range(27)})
    macro = entry_of(exam, make_tally("1" * 20 + "0" * 7))["metrics"]["macro_accuracy"]
    assert macro["ci95"] == pytest.approx(list(wilson(20 / 27, 27)))


def test_small_subsets_near_all_right_are_no_wider_than_one_pot() -> None:
    exam = make_exam({f"s{place}": 10 for place in range(27)})
    low, high = entry_of(exam, make_tally(("0" + "1" * 89) * 3))["metrics"]["macro_accuracy"][
        "ci95"
    ]
    pot = wilson(267 / 270, 270)
    assert high - low == pytest.approx(pot.high - pot.low, rel=0.05)


def test_ten_clusters_do_not_warn_and_one_has_no_interval() -> None:
    assert entry_of(clustered_exam([2] * 10), make_tally("10" * 10))["warnings"] == []
    entry = entry_of(clustered_exam([6]), make_tally("110010"))
    assert entry["metrics"]["accuracy"]["value"] == 0.5
    assert entry["metrics"]["accuracy"]["ci95"] is None
    assert entry["metrics"]["accuracy"]["withheld"] == entry["notices"][0]["code"] == "one_cluster"
    assert entry["subsets"][0]["withheld"] == "one_cluster"
    assert any("one context" in warning for warning in entry["warnings"])


def test_fewer_than_five_questions_have_no_interval_and_a_reason() -> None:
    small_groups = entry_of(make_exam({"a": 4, "b": 4}), make_tally("1100" + "0010"))
    assert small_groups["metrics"]["accuracy"]["ci95"] is not None
    assert [(row["ci95"], row["withheld"]) for row in small_groups["subsets"]] == [
        (None, "few_questions")
    ] * 2
    entry = entry_of(make_exam({"a": 4}), make_tally("1100"))
    assert entry["metrics"]["accuracy"]["withheld"] == entry["notices"][0]["code"]
    assert entry["notices"][0]["code"] == "few_questions"
    assert any("fewer than 5 questions" in warning for warning in entry["warnings"])


def test_samples_without_a_group_are_clusters_of_their_own() -> None:
    exam = make_exam({"a": 8}, clustered=True)
    accuracy = entry_of(exam, make_tally("11110000"))["metrics"]["accuracy"]
    assert accuracy["method"] == "wilson"
    assert accuracy["ci95"] == list(wilson(0.5, 8))


def test_clusters_over_subsets_widen_the_macro_mean() -> None:
    samples = [make_sample(name, i, group=f"g{i // 2}") for name in "ab" for i in range(24)]
    subsets = [Subset("a", 0, 24), Subset("b", 24, 48)]
    exam = FakeExam(samples, subsets)
    tally = make_tally("1100" * 12)
    plain = entry_of(exam, tally)["metrics"]["macro_accuracy"]
    exam.clustered = True
    wide = entry_of(exam, tally)["metrics"]["macro_accuracy"]
    assert wide["method"] == "clustered"
    assert wide["clusters"] == 12
    assert wide["value"] == plain["value"]
    assert wide["se"] > 1.8 * plain["se"]


def test_chance_level_over_samples_that_have_one() -> None:
    exam = make_exam({"a": 3})
    exam.samples = [make_sample("a", i, choices=n) for i, n in enumerate((4, 2, 0))]
    chance = entry_of(exam, make_tally("111"))["metrics"]["chance"]
    assert chance == {"value": pytest.approx(0.375), "ci95": None, "n": 2}


def test_chance_level_of_each_subset() -> None:
    exam = make_exam({"a": 2, "b": 1, "c": 1})
    exam.samples = [
        make_sample(subset, i, choices=n)
        for i, (subset, n) in enumerate((("a", 4), ("a", 2), ("b", 5), ("c", 0)))
    ]
    entry = entry_of(exam, make_tally("1111"))
    levels = {subset["name"]: subset.get("chance") for subset in entry["subsets"]}
    assert levels == {"a": pytest.approx(0.375), "b": pytest.approx(0.2), "c": None}
    assert entry["metrics"]["chance"]["value"] == pytest.approx((0.25 + 0.5 + 0.2) / 3)


def test_chance_level_of_a_part_is_that_of_the_questions_answered() -> None:
    exam = make_exam({"a": 2, "b": 2})
    exam.samples = [
        make_sample(subset, i, choices=n)
        for i, (subset, n) in enumerate((("a", 4), ("a", 4), ("b", 2), ("b", 2)))
    ]
    entry = entry_of(exam, make_tally("10.."))
    assert entry["metrics"]["chance"] == {"value": 0.25, "ci95": None, "n": 2}
    assert [subset.get("chance") for subset in entry["subsets"]] == [0.25, 0.5]
    assert entry_of(exam, make_tally("...."))["metrics"]["chance"]["value"] == 0.375


def test_chance_level_of_a_subset_is_that_of_its_answered_questions() -> None:
    exam = make_exam({"a": 4})
    exam.samples = [make_sample("a", i, choices=n) for i, n in enumerate((4, 4, 2, 2))]
    entry = entry_of(exam, make_tally("10.."))
    assert entry["metrics"]["chance"] == {"value": 0.25, "ci95": None, "n": 2}
    assert [subset.get("chance") for subset in entry["subsets"]] == [0.25]


def test_errata_are_counted_and_scored_apart() -> None:
    exam = make_exam({"a": 3, "b": 3}, errata={"fake_b_0": "two right options", "other": "x"})
    entry = entry_of(exam, make_tally("110" + "011"))
    assert entry["errata"] == {"n": 1, "ids": ["fake_b_0"]}
    assert entry["metrics"]["accuracy"]["value"] == 4 / 6
    assert entry["metrics"]["accuracy_without_errata"]["value"] == 4 / 5
    untouched = make_exam({"a": 3, "b": 3}, errata={"other": "x"})
    assert "errata" not in entry_of(untouched, make_tally("110011"))


def test_extra_metrics_are_merged() -> None:
    class Extra(FakeExam):
        def extra_metrics(self, scores: Scores) -> dict[str, Estimate]:
            return {"coverage": Estimate(scores.outcome_counts()["correct"] / 4, None, 4)}

    exam = Extra([make_sample("a", i) for i in range(4)], [Subset("a", 0, 4)])
    assert entry_of(exam, make_tally("11ee"))["metrics"]["coverage"]["value"] == 0.5


def test_partial_scores_get_a_mean_of_their_own() -> None:
    tally = Tally(4)
    for unit, value in enumerate((1.0, 0.7, 0.3, 0.0)):
        outcome: Outcome = "correct" if value > 0.5 else "incorrect"
        tally.add(unit, Reading("robust", Answer("x"), Score(value, outcome)))
    metrics = entry_of(make_exam({"a": 4}), tally)["metrics"]
    assert metrics["accuracy"]["value"] == 0.5
    assert metrics["mean_score"]["value"] == 0.5
    assert metrics["mean_score"]["n"] == 4
    assert "mean_score" not in entry_of(make_exam({"a": 2}), make_tally("10"))["metrics"]


def peak_memory(size: int, epochs: int) -> int:
    exam = FakeExam(LazySamples(size), [Subset("a", 0, size // 2), Subset("b", size // 2, size)])
    tally = Tally(size, epochs)
    tally.outcomes[:] = bytes([CODE["correct"], CODE["incorrect"]]) * (size * epochs // 2)
    tally.values[:] = array("f", [1.0, 0.0]) * (size * epochs // 2)
    tracemalloc.start()
    entry = entry_of(exam, tally)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert entry["n"] == size
    assert entry["metrics"]["accuracy"]["value"] == 0.5
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [1, 2])
def test_memory_does_not_grow_with_the_exam(epochs: int) -> None:
    small, large = peak_memory(100_000, epochs), peak_memory(1_000_000, epochs)
    assert large < 1.5 * small + 100_000


def golden_exam(counts: dict[str, tuple[int, int]], means: list[Mean]) -> tuple[FakeExam, Tally]:
    exam = make_exam({name: n for name, (_, n) in counts.items()}, means)
    outcomes = "".join("1" * correct + "0" * (n - correct) for correct, n in counts.values())
    return exam, make_tally(outcomes)


def counts_of(rows: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {name: (row["correct"], row["n"]) for name, row in rows.items()}


def test_ceval_golden_aggregates(data_dir: Path) -> None:
    golden = json.loads((data_dir / "golden/ceval/minimind_val_golden.json").read_text("utf-8"))
    subjects = json.loads((data_dir / "ceval/subject_mapping.json").read_text("utf-8"))["subjects"]
    counts = counts_of(golden["subjects"])
    means = [Mean("average", "Average", tuple((name,) for name in counts))]
    for category in golden["summary"]["categories"]:
        members = tuple((n,) for n in counts if subjects[n]["category"] == category)
        means.append(Mean(category, category, members, group=True))
    hard = tuple((n,) for n in counts if subjects[n]["hard"])
    means.append(Mean("hard", "Hard", hard, group=True))
    exam, tally = golden_exam(counts, means)
    entry = entry_of(exam, tally)
    summary = golden["summary"]
    assert entry["metrics"]["accuracy"]["value"] == 330 / 1346
    assert entry["metrics"]["accuracy"]["ci95"] == pytest.approx([0.2229355, 0.2688566], rel=1e-6)
    assert 100 * entry["metrics"]["average"]["value"] == pytest.approx(
        summary["macro_52_subjects"], abs=1e-5
    )
    groups = {group["name"]: group for group in entry["groups"]}
    for name, row in [*summary["categories"].items(), ("hard", summary["hard"])]:
        assert groups[name]["n"] == row["n"]
        assert 100 * groups[name]["accuracy"] == pytest.approx(row["macro"], abs=1e-5)
        assert 100 * groups[name]["micro_accuracy"] == pytest.approx(row["micro"], abs=1e-5)


def test_bbh_golden_aggregates(data_dir: Path) -> None:
    path = data_dir / "golden/bbh/code-davinci-002_cot_golden.json"
    golden = json.loads(path.read_text("utf-8"))
    counts = counts_of(golden["subsets"])
    families = ("logical_deduction", "tracking_shuffled_objects")
    tasks = [tuple(n for n in counts if n.startswith(family)) for family in families]
    tasks += [(n,) for n in counts if not n.startswith(families)]
    exam, tally = golden_exam(counts, [Mean("macro_23", "mean of tasks", tuple(tasks))])
    entry = entry_of(exam, tally)
    assert entry["metrics"]["accuracy"]["value"] == 4816 / 6511
    assert entry["metrics"]["accuracy"]["ci95"] == pytest.approx([0.7288735, 0.7501865], rel=1e-6)
    assert 100 * entry["metrics"]["macro_accuracy"]["value"] == pytest.approx(73.71160413998147)
    assert 100 * entry["metrics"]["macro_23"]["value"] == pytest.approx(73.92811500490579)
    assert entry["metrics"]["macro_23"]["tasks"] == 23


def test_bixbench_golden_is_clustered_by_capsule(data_dir: Path) -> None:
    path = data_dir / "golden/bixbench/v1.0_gpt-4o_mcq-refusal-False_predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    samples = [make_sample("all", i, group=row["capsule_uuid"]) for i, row in enumerate(rows)]
    exam = FakeExam(samples, [Subset("all", 0, len(rows))])
    exam.clustered = True
    accuracy = entry_of(exam, make_tally("".join(str(row["grade"]) for row in rows)))["metrics"][
        "accuracy"
    ]
    assert accuracy["value"] == 95 / 296
    assert accuracy["clusters"] == len(Counter(row["capsule_uuid"] for row in rows))
    assert accuracy["n_eff"] <= 296
    assert accuracy["ci95"][0] <= 0.2703492 + 1e-6
    assert accuracy["ci95"][1] >= 0.3761306 - 1e-6


def test_without_any_gold_answer_nothing_is_scored_and_one_line_says_so() -> None:
    exam = make_exam({"a": 3})
    exam.samples = [msgspec.structs.replace(sample, target="") for sample in exam.samples]
    entry = entry_of(exam, make_tally("nne"))
    assert entry["gold"] == "none"
    assert entry["warnings"] == ["no score: no labels"]
    assert (entry["outcomes"]["unlabelled"], entry["outcomes"]["ungraded"]) == (2, 0)
    assert entry["metrics"]["accuracy"]["value"] is None
    assert not {"accuracy_worst", "accuracy_best"} & entry["metrics"].keys()
    exam.submitted = True
    (line,) = entry_of(exam, make_tally("nne"))["warnings"]
    assert line.endswith("with keju export RUN --format submission")
    judged = make_exam({"a": 3})
    assert "gold" not in entry_of(judged, make_tally("gge"))
    assert "accuracy_worst" in entry_of(judged, make_tally("gge"))["metrics"]
