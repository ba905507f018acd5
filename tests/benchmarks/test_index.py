"""Numbers by digest: as a dictionary gives them."""

from __future__ import annotations

import random

from keju.benchmarks.index import DIGEST, DigestTable, hash_digest, text_digest


def test_a_table_numbers_as_a_dictionary_does() -> None:
    draw = random.Random(1)
    texts = [f"text {draw.randrange(3000)}" for _ in range(5000)]
    table = DigestTable()
    known: dict[str, int] = {}
    for text in texts:
        assert table.add(text_digest(text)) == known.setdefault(text, len(known))
    assert len(table) == len(known)
    assert all(table.find(text_digest(text)) == number for text, number in known.items())
    assert table.find(text_digest("text 3000")) == -1


def test_digests_that_begin_alike_are_told_apart() -> None:
    alike = [bytes(8) + number.to_bytes(8) for number in range(40)]
    table = DigestTable(alike)
    assert [table.find(digest) for digest in alike] == list(range(40))
    assert table.find(bytes(8) + b"\xff" * 8) == -1


def test_a_hash_spells_its_digest() -> None:
    assert hash_digest("ab" * DIGEST) == b"\xab" * DIGEST
    assert hash_digest("no hash") == text_digest("no hash")
