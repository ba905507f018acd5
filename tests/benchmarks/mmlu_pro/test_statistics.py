"""Prompt lengths of the default protocol against the published table (EvalScope 1.14)."""

from __future__ import annotations

import pytest

from keju.benchmarks.base import Exam

PUBLISHED = {
    "computer science": (410, 5184.05, 4696, 7303),
    "math": (1351, 4853.54, 4574, 7519),
    "chemistry": (1132, 4567.20, 4182, 5975),
    "engineering": (969, 3595.66, 3048, 5775),
    "law": (1101, 7001.35, 5581, 9200),
    "biology": (717, 5881.08, 5179, 7850),
    "health": (818, 4624.44, 4134, 9310),
    "physics": (1299, 4389.59, 4004, 6511),
    "business": (789, 4646.01, 4316, 6915),
    "philosophy": (499, 3760.10, 3360, 5289),
    "economics": (844, 4680.21, 4118, 6907),
    "other": (924, 3730.86, 3316, 6108),
    "psychology": (798, 5274.19, 4656, 6942),
    "history": (381, 9919.94, 8711, 12100),
}
"""Rows, mean, minimum and maximum in code points, in the published order."""


def test_prompt_lengths_are_the_published_ones(exam: Exam) -> None:
    lengths: dict[str, list[int]] = {}
    for sample in exam.samples:
        lengths.setdefault(sample.subset, []).append(len(exam.render(sample).text))
    assert list(lengths) == list(PUBLISHED)
    for category, (rows, mean, shortest, longest) in PUBLISHED.items():
        category_lengths = lengths[category]
        assert (len(category_lengths), min(category_lengths), max(category_lengths)) == (
            rows,
            shortest,
            longest,
        ), category
        assert sum(category_lengths) / rows == pytest.approx(mean, abs=0.2), category
    all_lengths = [length for category_lengths in lengths.values() for length in category_lengths]
    assert (len(all_lengths), min(all_lengths), max(all_lengths)) == (12_032, 3048, 12_100)
    assert sum(all_lengths) / 12_032 == pytest.approx(4959.66, abs=0.2)
