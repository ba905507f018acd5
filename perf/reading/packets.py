"""Packets of replies for people who label them, without any answer or reading in them.

``python -m perf.reading.packets DATA KEYS OUT SIZE`` writes the replies whose keys stand in the
files ``KEYS/MODEL.jsonl`` as ``OUT/MODEL-1.txt`` and so on, each reply under an opaque name.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from pathlib import Path

import msgspec

from keju.types import LABELS
from perf.reading.replies import Written, replies_of
from perf.reading.values import kind_of

WANTED = {
    "choice": "the label of an option",
    "bool": "true or false",
    "yes_no": "yes or no",
    "valid": "valid or invalid",
    "integer": "a whole number",
    "brackets": "the closing brackets that complete the sequence",
    "words": "the words of the list, sorted",
}
HEAD, TAIL, OPTION, QUESTION = 1500, 800, 120, 700
"""Characters shown of a long reply's beginning and end, of an option, of a question."""
# Words without which hardly anybody states an answer.
_TELLING = re.compile(
    r"answer|correct|option|choice|choose|select|boxed|答案|选|正确", re.IGNORECASE
)
QUOTED = 15
"""How many sentences of a gap are shown."""
OFTEN = 3
"""How often a sentence is shown before its further copies are left out."""


def opaque(key: str) -> str:
    """The name of a reply in a packet."""
    return hashlib.sha256(f"label {key}".encode()).hexdigest()[:8]


def as_packet_entry(reply: Written, number: str) -> str:
    """One reply as a labeller sees it."""
    sample, kind = reply.sample, kind_of(reply.sample)
    labels = f" ({sample.labels[0]} to {sample.labels[-1]})" if sample.choices else ""
    lines = [f"######## {opaque(reply.key)}   [{number}]   wanted: {WANTED[kind]}{labels}"]
    lines += ["QUESTION:", shortened(sample.text, QUESTION * 2 // 3, QUESTION // 3)]
    if sample.choices and f"(A) {sample.choices[0]}" not in sample.text:
        options = (shortened(choice, OPTION, 0) for choice in sample.choices)
        lines += [f"  {label}. {text}" for label, text in zip(LABELS, options, strict=False)]
    lines += [f"REPLY ({len(reply.text)} characters):", "<<<", without_loops(reply.text), ">>>", ""]
    return "\n".join(lines)


def shortened(text: str, head: int, tail: int) -> str:
    """`text` without its middle if it is long, and a note of how much is missing."""
    if len(text) <= head + tail + 40:
        return text
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]} [… {len(text) - head - tail} characters left out …] {end}"


def without_loops(text: str) -> str:
    """`text` without most copies of sentences that repeat; its end always stays as it is."""
    if len(text) <= TAIL * 2:
        return text
    body, end = text[:-TAIL], text[-TAIL:]
    occurrences: Counter[str] = Counter()
    pieces: list[str] = []
    left_out = 0
    for piece in _pieces(body):
        occurrences[piece.strip()] += 1
        if piece.strip() and occurrences[piece.strip()] > OFTEN:
            left_out += 1
            continue
        if left_out:
            pieces.append(f"[… {left_out} sentences left out that all stand above …] ")
            left_out = 0
        pieces.append(piece)
    if left_out:
        pieces.append(f"[… {left_out} sentences left out that all stand above …] ")
    start = "".join(pieces)
    if len(start) <= HEAD + 400:
        return start + end
    gap = [piece for piece in _pieces(start[HEAD:]) if _TELLING.search(piece)]
    quoted = " | ".join(dict.fromkeys(piece.strip()[:300] for piece in gap[:QUOTED]))
    note = f"[… {len(start) - HEAD} characters left out; sentences in them that speak of answers: "
    return f"{start[:HEAD]} {note}{quoted or 'none'} …] {end}"


def _pieces(text: str) -> list[str]:
    """Sentences and lines."""
    return text.replace("\n", "\n\0").replace(". ", ". \0").split("\0")


def main(data: Path, keys: Path, out: Path, size: int) -> None:
    """Write the packets of all models."""
    out.mkdir(parents=True, exist_ok=True)
    for file in sorted(keys.glob("*.jsonl")):
        wanted_keys = [msgspec.json.decode(line)["key"] for line in file.read_bytes().splitlines()]
        replies = replies_of(file.stem, data)
        for start in range(0, len(wanted_keys), size):
            part, number = wanted_keys[start : start + size], start // size + 1
            texts = [
                as_packet_entry(replies[key], f"{i}/{len(part)}") for i, key in enumerate(part, 1)
            ]
            (out / f"{file.stem}-{number}.txt").write_text("\n".join(texts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
