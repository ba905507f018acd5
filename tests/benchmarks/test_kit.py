"""Rows that are counted and recognised."""

from __future__ import annotations

from keju.benchmarks.kit import SHOWN, Count, count_warnings, fingerprint


def test_differing_counts_make_one_warning() -> None:
    assert count_warnings([Count("a", 3, 3)]) == ()
    (warning,) = count_warnings([Count("a", 3, 3), Count("b", 1, 2)])
    assert warning.text().endswith(": b has 1 of 2")
    many = [Count(f"s{i}", 1, 2) for i in range(SHOWN + 3)]
    assert count_warnings(many)[0].text().endswith("s4 has 1 of 2 and 3 more")


def test_a_fingerprint_depends_on_text_and_target() -> None:
    assert len({fingerprint("a", "b"), fingerprint("a", "c"), fingerprint("ab", "")}) == 3
