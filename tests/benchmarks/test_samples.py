"""Samples made on access: stored and chosen; numbers by digest, as a dictionary gives them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from keju.benchmarks import samples as module
from keju.benchmarks.samples import (
    DIGEST,
    ChosenSamples,
    DigestTable,
    SpooledSamples,
    hash_digest,
    text_digest,
)
from keju.types import Sample


def sample(number: int) -> Sample:
    return Sample(
        id=f"q{number}",
        subset="s",
        index=number,
        text="Frage “é” " * (number % 5),
        target="B",
        choices=("x", "y"),
        order=(1, 0),
        group="g",
        metadata={"fields": {"country": "Perú"}, "accepted": ["B", "b"]},
    )


def stored(count: int) -> SpooledSamples:
    samples = SpooledSamples()
    for number in range(count):
        samples.append(sample(number))
    return samples


@pytest.mark.parametrize("in_memory", [10, 1 << 20])
def test_stored_samples_come_back_as_they_were(
    monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr("keju.files.IN_MEMORY", in_memory)
    monkeypatch.setattr(module, "CACHE_SIZE", 3)
    samples, originals = stored(20), [sample(number) for number in range(20)]
    assert list(samples) == originals
    assert [samples[place] for place in (7, 0, 19, 7)] == [originals[p] for p in (7, 0, 19, 7)]
    assert samples[3:9:2] == originals[3:9:2]
    samples.append(sample(20))
    assert (len(samples), samples[20], samples[0]) == (21, sample(20), originals[0])
    for outside in (21, -1):
        with pytest.raises(IndexError):
            samples[outside]


def test_no_samples_are_an_empty_sequence() -> None:
    assert list(SpooledSamples()) == []


@pytest.mark.parametrize("rows", [[4, 0, 4], range(2, 5)])
def test_chosen_samples_stand_in_the_order_chosen(rows: Sequence[int]) -> None:
    chosen = ChosenSamples(stored(5), rows)
    assert [s.index for s in chosen] == list(rows)
    assert [chosen[place].index for place in range(3)] == list(rows)


def test_a_table_numbers_as_a_dictionary_does() -> None:
    draw = random.Random(1)
    texts = [f"text {draw.randrange(3000)}" for _ in range(5000)]
    table = DigestTable()
    numbers: dict[str, int] = {}
    for text in texts:
        assert table.add(text_digest(text)) == numbers.setdefault(text, len(numbers))
    assert len(table) == len(numbers)
    assert all(table.find(text_digest(text)) == number for text, number in numbers.items())
    assert table.find(text_digest("text 3000")) == -1


def test_digests_that_begin_alike_are_told_apart() -> None:
    similar_digests = [bytes(8) + number.to_bytes(8) for number in range(40)]
    table = DigestTable(similar_digests)
    assert [table.find(digest) for digest in similar_digests] == list(range(40))
    assert table.find(bytes(8) + b"\xff" * 8) == -1


def test_a_hash_spells_its_digest() -> None:
    assert hash_digest("ab" * DIGEST) == b"\xab" * DIGEST
    assert hash_digest("no hash") == text_digest("no hash")
