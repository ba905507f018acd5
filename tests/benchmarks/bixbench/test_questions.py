"""Permutations: seeded by question, recorded, and a refusal that never scores."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from keju.benchmarks.choices import shuffle_order
from keju.benchmarks.prepare import prepare_exam
from keju.stats.options import option_bias
from keju.types import Reply
from tests.benchmarks.bixbench.conftest import Prepare


def test_the_permutation_depends_on_seed_and_question_id(prepare: Prepare) -> None:
    exam = prepare()
    for sample in exam.samples:
        key = sample.metadata["question_id"]
        assert sample.order == shuffle_order(4, 42, key)
    reseeded = prepare(seed=43)
    assert [s.order for s in reseeded.samples] != [s.order for s in exam.samples]
    first_sample = exam.samples[0]
    options = ("0.0002", "7.8E-05", "0.0003", "1.8E-05")
    assert first_sample.choices == tuple(options[i] for i in first_sample.order)
    assert first_sample.choices[first_sample.labels.index(first_sample.target)] == "0.0002"


def test_the_seed_of_the_task_counts_unless_the_exam_has_its_own(data_dir: Path) -> None:
    def orders(exam_args: dict[str, Any], seed: int) -> list[tuple[int, ...]]:
        exam, _ = prepare_exam("bixbench", exam_args, data_dir=str(data_dir), seed=seed)
        assert exam.settings["seed"] == exam_args.get("seed", seed)
        return [sample.order for sample in exam.samples]

    assert orders({}, 7) == orders({"seed": 7}, 42) != orders({}, 42)


def test_same_seed_same_prompt(prepare: Prepare) -> None:
    exam = prepare()
    prompt = exam.render(exam.samples[0])
    prompt_text = "\0".join(f"{m.role}:{m.content}" for m in prompt.messages)
    digest = hashlib.sha256(prompt_text.encode()).hexdigest()
    assert digest == "0e909dce0043ab2a9448e61d2d256c4c8e78aa055ae65829d0121f71cbe18dfc"


def test_without_shuffling_the_ideal_comes_first(prepare: Prepare) -> None:
    for sample in prepare(shuffle_options=False).samples:
        assert (sample.target, sample.order) == ("A", (0, 1, 2, 3))


def test_compat_shuffle_reproduces_the_environment(real: Prepare) -> None:
    exam = real(data_version="1.0", compat_shuffle=True)
    assert {sample.order for sample in exam.samples} == {(3, 0, 2, 1)}
    assert {sample.target for sample in exam.samples} == {"B"}
    five = real(data_version="1.0", compat_shuffle=True, with_refusal=True)
    assert {sample.order for sample in five.samples} == {(3, 0, 2, 1, 4)}


def test_gold_letters_are_spread_at_seed_42(real: Prepare) -> None:
    exam = real()
    counts = Counter(sample.target for sample in exam.samples)
    assert option_bias([counts[label] for label in "ABCD"], [1, 1, 1, 1]).p > 0.05
    note = "gold letters: " + ", ".join(f"{label} {counts[label]}" for label in "ABCD")
    assert note in exam.data.notes


def test_a_refusal_is_the_last_label_and_never_scores(real: Prepare) -> None:
    exam = real(with_refusal=True)
    for sample in exam.samples:
        assert sample.choices[4] == "I don't know"
        assert sample.order[4] == 4
        assert sample.metadata["refusal"] == "E"
        for text in ("E", "I don't know", "i don’t know."):
            reading = exam.grade(Reply(text=text), sample, exam.readers["environment"])
            assert (reading.score.value, reading.score.outcome) == (0.0, "refused")
    assert exam.chance(exam.samples[0]) == 0.2


def test_a_refusal_in_the_hypothesis_view_is_c(prepare: Prepare) -> None:
    exam = prepare(question_source="hypothesis", with_refusal=True)
    for sample in exam.samples:
        assert sample.choices[2] == "I don't know"
        assert sample.target in "AB"


def test_the_official_refusal_is_shuffled_among_the_options(real: Prepare) -> None:
    exam = real(protocol="official", with_refusal=True)
    places = {sample.metadata["refusal"] for sample in exam.samples}
    assert places == set("ABCDE")
    for sample in exam.samples:
        label = sample.metadata["refusal"]
        text = "Insufficient information to answer the question"
        assert sample.choices[sample.labels.index(label)] == text
        reading = exam.grade(
            Reply(text=f"<answer> {label} </answer>"), sample, exam.readers["official"]
        )
        assert reading.score.outcome == "refused"


def test_every_gold_is_recognised_and_no_other_option(real: Prepare) -> None:
    """The oracle: the target's letter and text are right, every other option's is not."""
    for args in ({}, {"data_version": "1.0", "all_questions": True}, {"with_refusal": True}):
        exam = real(**args)
        for sample in exam.samples:
            if "same" in exam.errata.get(sample.id, ""):
                continue
            for label, choice in zip(sample.labels, sample.choices, strict=True):
                for name in ("environment", "robust"):
                    for text in (
                        label,
                        f"({label})",
                        f"{label}. {choice}",
                        f"The answer is {label}.",
                    ):
                        reading = exam.grade(Reply(text=text), sample, exam.readers[name])
                        assert reading.answer.value == label, (name, text, sample.choices)
                reading = exam.grade(Reply(text=choice), sample, exam.readers["environment"])
                assert reading.answer.value == label, (choice, sample.choices)
