"""How the replies of the corpus were drawn: by stratum, the hard ones oversampled.

``python -m perf.reading.draw DATA OUT [MODEL]`` writes ``OUT/MODEL.jsonl`` with the key and stratum
of each reply drawn, and ``OUT/strata.json`` with the size of each stratum, of all recorded models
or of the one named. It was run once, with the readers of commit dd7c663, and for the second set of
the embedded model with those of commit 32203de; for the third one with those of commit a44383b and
smaller shares, 300 replies in all. Later readers would draw other replies.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from keju.types import Sample
from perf.reading.replies import RECORDINGS, Written, replies_of
from perf.reading.rules import ROBUST, rules_of
from perf.reading.values import kind_of, value_of

SEED = 20261116
WANTED = 640
"""Replies drawn for each model that has more."""

STRATA = ("two", "conflict", "unread", "silent", "partial", "echo", "run-on", "cut", "agree")
"""The first that fits a reply is its stratum, see `stratum_of`."""
SHARES = {"two": 150, "conflict": 150, "unread": 130, "silent": 110, "partial": 60, "echo": 40}
SHARES |= {"run-on": 60, "cut": 40, "agree": 120}
"""How many are drawn of each; what a small stratum leaves goes to the others, in this order."""

# `answer is (B`, `Answer: 24`, `答案：B`: what a reply calls an answer, up to a blank.
_CALLED = re.compile(r"(?:[Aa]nswer|ANSWER|答案)\s*(?:is|:|：|是|为)\s*:?\s*[*(\[]*([^\s).,\]*]+)")
# A line that begins with a label, `(B) text`, `B. text`, `B) text`.
_LABELLED = re.compile(r"^\s*\(?([A-Z])[).:]\s*\S", re.MULTILINE)
# A line that begins another question.
_QUESTION = re.compile(r"^\s*(?:Q:|Question\b|问题|题目)", re.MULTILINE)
AFTER = 80
"""Characters after the first answer that make a reply one that runs on."""
SHORT = 15
ENDS = (".", "!", "?", ")", "]", ">", "}", "。", "*", "$")


def stratum_of(reply: Written) -> str:
    """The stratum of a reply.

    ``two``: it calls two different things the answer. ``conflict``: two rules read different
    answers. ``unread``: the robust reader reads nothing where another rule does. ``silent``: no
    rule reads anything. ``partial``: some rules read nothing. ``echo``: three or more lines begin
    with different labels. ``run-on``: much follows the first answer, or another question. ``cut``:
    the end of a sentence is missing, or it is very short. ``agree``: none of these.
    """
    text, sample = reply.text, reply.sample
    kind = kind_of(sample)
    read = {
        name: value_of(rule(text, sample), kind, sample)
        for name, rule in rules_of(reply.exam).items()
        if name not in _BLIND.get(reply.exam.benchmark, ())
    }
    values = {value for value in read.values() if value is not None}
    answer_calls = list(_CALLED.finditer(text))
    if len({match[1].casefold() for match in answer_calls}) > 1:
        return "two"
    if len(values) > 1:
        return "conflict"
    if not values:
        return "silent"
    if read[ROBUST] is None:
        return "unread"
    if None in read.values():
        return "partial"
    if _echoes(text, sample):
        return "echo"
    if _QUESTION.search(text) or (
        answer_calls and len(text.rstrip()) - answer_calls[0].end() > AFTER
    ):
        return "run-on"
    if len(text.strip()) < SHORT or not text.rstrip().endswith(ENDS):
        return "cut"
    return "agree"


_BLIND = {
    "bbh": ("mcpbr", "inspect"),
    "mmlu_pro": ("inspect", "opencompass", "evalscope"),
    "ceval": ("inspect",),
    "bixbench": ("inspect",),
}
"""Rules that wait for another marker than the prompt asks for say nothing about a reply."""


def _echoes(text: str, sample: Sample) -> bool:
    return len({label for label in _LABELLED.findall(text) if label in sample.labels}) >= 3


def shares_of(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """How many to draw of each stratum, `wanted` in all or as many as there are."""
    shares = {name: min(SHARES[name], sizes.get(name, 0)) for name in STRATA}
    for name in STRATA:
        free = size - sum(shares.values())
        shares[name] += max(0, min(free, sizes.get(name, 0) - shares[name]))
    return shares


def draw_replies(
    replies: Iterable[Written], size: int
) -> tuple[list[tuple[str, Written]], Counter[str]]:
    """The replies drawn, each with its stratum, in a random order; and the size of each stratum."""
    strata: defaultdict[str, list[Written]] = defaultdict(list)
    for reply in replies:
        strata[stratum_of(reply)].append(reply)
    sizes = Counter({name: len(members) for name, members in strata.items()})
    dice = random.Random(SEED)
    chosen = [
        (name, reply)
        for name, share in shares_of(sizes, size).items()
        for reply in dice.sample(strata[name], share)
    ]
    dice.shuffle(chosen)
    return chosen, sizes


def main(data: Path, out: Path, *models: str) -> None:
    """Write the keys of the models, and the sizes of their strata."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "strata.json"
    strata: dict[str, dict[str, int]] = msgspec.json.decode(
        file.read_bytes() if file.exists() else b"{}"
    )
    for model in models or [recording.model for recording in RECORDINGS]:
        chosen, sizes = draw_replies(replies_of(model, data).values(), WANTED)
        rows = [msgspec.json.encode({"key": reply.key, "stratum": name}) for name, reply in chosen]
        (out / f"{model}.jsonl").write_bytes(b"".join(row + b"\n" for row in rows))
        strata[model] = {name: sizes[name] for name in STRATA if sizes[name]}
    document = msgspec.json.format(msgspec.json.encode(strata), indent=1)
    file.write_bytes(document + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
