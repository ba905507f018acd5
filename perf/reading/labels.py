"""The labels of the corpus: which answer a reply states, read one by one, by no rule.

A row of ``MODEL.jsonl`` holds the key, the stratum, the labels of two readers who did not know each
other's (``a``, ``b``), and ``label``: theirs where they agree, else that of a further reading, with
both in sight. ``python -m perf.reading.labels LABELS`` enters the files ``LABELS/PACKET.a.jsonl``
and so on, by opaque name, and leaves all others as they are; ``--seal`` only writes the hashes;
``--texts DATA OUT`` writes both halves with their texts.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec

from perf.reading.packets import opaque
from perf.reading.replies import CORPUS, replies_of
from perf.reading.values import AMBIGUOUS, kind_of, value_of

Half = Literal["tuning", "reported"]
SUMS = CORPUS / "SHA256SUMS"


class Labelled(msgspec.Struct, omit_defaults=True):
    """One reply of the corpus; a label is None where the reply states no answer."""

    key: str
    stratum: str
    a: str | msgspec.UnsetType | None = msgspec.UNSET
    b: str | msgspec.UnsetType | None = msgspec.UNSET
    label: str | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def half(self) -> Half:
        """Which half the reply belongs to; readers are tuned on one and reported on the other.

        The embedded model's first set is tuned on as a whole since version 5 of `robust`, and its
        second one since version 6, which is reported on the third.
        """
        model = self.key.partition("/")[0]
        if model.startswith("embedded"):
            return "reported" if model == "embedded-third" else "tuning"
        return "reported" if hashlib.sha256(self.key.encode()).digest()[-1] % 2 else "tuning"

    @property
    def agreed_label(self) -> str | msgspec.UnsetType | None:
        """The label that counts so far."""
        return self.a if self.label is msgspec.UNSET else self.label


def rows_of(model: str) -> list[Labelled]:
    """The replies of one model that were drawn."""
    lines = (CORPUS / f"{model}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Labelled) for line in lines]


def models() -> list[str]:
    """The models of the corpus."""
    return sorted(path.stem for path in CORPUS.glob("*.jsonl") if "-texts" not in path.stem)


def enter(folder: Path) -> None:
    """Enter what people wrote down; print how often they agree."""
    labels_by_person: dict[str, dict[str, str | None]] = {"a": {}, "b": {}, "c": {}}
    for path in sorted(folder.glob("*.jsonl")):
        person = path.stem.rpartition(".")[2]
        for row in map(msgspec.json.decode, path.read_bytes().splitlines()):
            labels_by_person[person][row["id"]] = row["label"]
    for model in models():
        rows, agreement = rows_of(model), Counter[str]()
        for row in rows:
            name = opaque(row.key)
            if not any(name in labels for labels in labels_by_person.values()):
                continue
            row.a, row.b = (labels_by_person[person].get(name, msgspec.UNSET) for person in "ab")
            row.label = labels_by_person["c"].get(name, row.a if row.a == row.b else msgspec.UNSET)
            agreement["both" if row.b is not msgspec.UNSET else "one"] += 1
            agreement["disagree"] += row.b is not msgspec.UNSET and row.a != row.b
            agreement["open"] += row.label is msgspec.UNSET
        text = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        (CORPUS / f"{model}.jsonl").write_bytes(text)
        print(model, dict(agreement))
    seal()


def seal() -> None:
    """Write the hashes of all files of the corpus."""
    names = [path.name for path in sorted(CORPUS.iterdir()) if path != SUMS]
    sums = (hashlib.sha256((CORPUS / name).read_bytes()).hexdigest() for name in names)
    SUMS.write_text("".join(f"{s}  {n}\n" for s, n in zip(sums, names, strict=True)))


def write_texts(data: Path, out: Path) -> None:
    """Write the halves with their texts, which the repository does not hold."""
    halves: dict[Half, list[Any]] = {"tuning": [], "reported": []}
    for model in models():
        replies = replies_of(model, data)
        for row in rows_of(model):
            if row.agreed_label is msgspec.UNSET or row.key not in replies:
                continue
            reply = replies[row.key]
            sample, kind = reply.sample, kind_of(reply.sample)
            stated = row.agreed_label
            if stated not in (None, AMBIGUOUS):
                stated = value_of(stated, kind, sample) or f"no valid answer: {stated}"
            facts: dict[str, Any] = {"key": row.key, "stratum": row.stratum, "label": stated}
            facts |= {"kind": kind}
            facts |= {"benchmark": reply.exam.benchmark, "subset": sample.subset}
            facts |= {"question": sample.text, "choices": sample.choices, "text": reply.text}
            halves[row.half].append(facts)
    for half, rows in halves.items():
        text = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        (out / f"{half}.jsonl").write_bytes(text)
        print(half, len(rows))


if __name__ == "__main__":
    if sys.argv[1] == "--texts":
        write_texts(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1] == "--seal":
        seal()
    else:
        enter(Path(sys.argv[1]))
