"""Which token is the label: as the tokenizer writes it behind the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from keju.models.llama.label_tokens import LabelTokens, find_label_tokens

VOCABULARY = ["答", "案", "：", ":", ":A", ":B", " ", " A", " B", "A", "B", "\n"]


def greedy(text: str) -> list[int]:
    """A toy tokenizer: the longest entry that fits, from left to right."""
    tokens = []
    while text:
        best = max((word for word in VOCABULARY if text.startswith(word)), key=len)
        tokens.append(VOCABULARY.index(best))
        text = text[len(best) :]
    return tokens


def find(
    ending: str,
    tokenize: Callable[[str], list[int]] = greedy,
    *,
    lead: str = "",
    space: bool = False,
) -> LabelTokens | None:
    async def tokens(text: str) -> list[int]:
        return tokenize(text)

    return asyncio.run(find_label_tokens(ending, "AB", tokens, lead=lead, space=space))


def ids_of(*words: str) -> list[int]:
    return [VOCABULARY.index(word) for word in words]


def test_the_token_behind_a_cue() -> None:
    found = find("答案：", greedy)
    assert found is not None
    assert found.cut == 0
    assert list(found.ids) == ids_of("A", "B")


def test_a_label_that_merges_with_the_end_of_the_prompt() -> None:
    for ending, merged in (("答案：\n ", (" A", " B")), ("答案:", (":A", ":B"))):
        found = find(ending)
        assert found is not None
        assert found.cut == 1
        assert list(found.ids) == ids_of(*merged)
        assert found.by_label() == {"A": ids_of(merged[0]), "B": ids_of(merged[1])}


def test_a_space_before_the_label_counts_when_asked_for() -> None:
    found = find("答案：", greedy, space=True)
    assert found is not None
    assert found.by_label() == {"A": ids_of("A", " A"), "B": ids_of("B", " B")}


def test_labels_that_one_token_cannot_tell_apart() -> None:
    assert find("答案：", lambda text: [7] * len(text)) is None
    assert find("答案：", lambda text: [ord(c) // 99 for c in text]) is None


def test_a_label_that_the_protocol_writes_with_a_space_is_that_token_alone() -> None:
    for space in (False, True):
        found = find("答案：", lead=" ", space=space)
        assert found is not None
        assert (found.cut, found.lead) == (0, ())
        assert found.by_label() == {"A": ids_of(" A"), "B": ids_of(" B")}


def test_a_space_that_is_a_token_of_its_own_becomes_part_of_the_prompt() -> None:
    found = find("答案：", lambda text: [ord(char) for char in text], lead=" ")
    assert found is not None
    assert (found.cut, found.lead) == (0, (ord(" "),))
    assert found.by_label() == {"A": [ord("A")], "B": [ord("B")]}
