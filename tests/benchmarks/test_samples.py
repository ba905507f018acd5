"""Samples made on access: stored, chosen, and found by their id."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from keju.benchmarks import samples as module
from keju.benchmarks.samples import ChosenSamples, Positions, StoredSamples
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


def stored(count: int) -> StoredSamples:
    samples = StoredSamples()
    for number in range(count):
        samples.append(sample(number))
    return samples


@pytest.mark.parametrize("in_memory", [10, 1 << 20])
def test_stored_samples_come_back_as_they_were(
    monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(module, "IN_MEMORY", in_memory)
    monkeypatch.setattr(module, "KEPT", 3)
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
    assert list(StoredSamples()) == []


@pytest.mark.parametrize("rows", [[4, 0, 4], range(2, 5)])
def test_chosen_samples_stand_in_the_order_chosen(rows: Sequence[int]) -> None:
    chosen = ChosenSamples(stored(5), rows)
    assert [s.index for s in chosen] == list(rows)
    assert [chosen[place].index for place in range(3)] == list(rows)


def test_positions_are_those_of_a_dictionary() -> None:
    draw = random.Random(1)
    texts = [f"text {draw.randrange(3000)}" for _ in range(5000)]
    positions = Positions(texts.__getitem__)
    known: dict[str, int] = {}
    for number, text in enumerate(texts):
        assert positions.add(text, number) == known.get(text)
        known.setdefault(text, number)
    assert all(positions.get(text) == number for text, number in known.items())
    assert positions.get("text 3000") is None


def test_texts_of_one_hash_are_told_apart() -> None:
    class Alike(str):
        def __hash__(self) -> int:
            return 5

    texts = [Alike(number) for number in range(40)]
    positions = Positions(texts.__getitem__)
    assert [positions.add(text, number) for number, text in enumerate(texts)] == [None] * 40
    assert [positions.get(text) for text in texts] == list(range(40))
    assert positions.get(Alike("none")) is None


def test_samples_are_found_by_their_id() -> None:
    positions = Positions.of(stored(50))
    assert [positions.get(f"q{number}") for number in (0, 49, 50)] == [0, 49, None]
