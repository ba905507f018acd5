"""Pairing of the questions that two scored exams share."""

from __future__ import annotations

from keju.results.pairs import (
    ChangedQuestions,
    PairedScores,
    QuestionPositions,
    count_unanswered,
    load_flip_texts,
    pairs_of,
)
from tests.results.fake_exam import make_scored


def test_scores_are_pairs_of_arm_and_base_and_can_be_sliced() -> None:
    scores = PairedScores()
    for arm, base in ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0)):
        scores.append(arm, base)
    assert (len(scores), scores[1], list(scores[1:])) == (3, (0.5, 0.5), [(0.5, 0.5), (0.0, 1.0)])


def test_positions_follow_the_ids_where_the_order_differs() -> None:
    scored = make_scored("10")
    scored.exam.samples = scored.exam.samples[::-1]
    positions = QuestionPositions(scored)
    assert [positions.find(f"fake_all_{n}", n) for n in (0, 1)] == [1, 0]
    assert positions.find("another", 0) == -1


def test_questions_of_one_side_are_counted_and_not_paired() -> None:
    shared = pairs_of(make_scored("11.0"), make_scored("1.1g", "r2"))
    assert (list(shared.base), list(shared.scores)) == ([0], [(1.0, 1.0)])
    assert (shared.only_in_base, shared.only_in_arm) == (1, 1)
    assert dict(shared.left_out) == {"ungraded": 1}
    assert shared.bounds == (0.0, 0.5)


def test_different_gold_answers_are_counted() -> None:
    base, arm = make_scored("11"), make_scored("11", "r2")
    object.__setattr__(arm, "targets", {1: "C"})
    assert pairs_of(base, arm).other_gold == 1


def test_only_an_interrupted_run_has_unanswered_questions() -> None:
    complete, interrupted = make_scored("1110"), make_scored("1...", "r2")
    assert count_unanswered(complete, complete) == 0
    assert count_unanswered(complete, interrupted) == 3


def test_changed_questions_are_built_on_access_and_their_texts_on_request() -> None:
    base, arm = make_scored("1100"), make_scored("1011", "r2")
    flips = ChangedQuestions(base, arm, pairs_of(base, arm))
    assert [(flip.id, flip.base, flip.arm) for flip in flips[:]] == [
        ("fake_all_1", 1.0, 0.0),
        ("fake_all_2", 0.0, 1.0),
        ("fake_all_3", 0.0, 1.0),
    ]
    texts = load_flip_texts(base, arm, flips, limit=1)
    assert list(texts) == ["fake_all_2", "fake_all_1"]
    assert {flip.question for flip in texts.values()} == {"?"}
