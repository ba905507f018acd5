"""Labelled and written replies of the data folder and of `tests/readers`: shares, rules at work.

``labels_3`` is weighted as the README of the data says; contested rows are left out, and the
stratum `agree_not_plain` is listed but not counted in the shares. All others are counted as they
are.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from keju.answers.segments import split_thinking
from keju.benchmarks.base import Exam
from keju.types import Sample
from perf.measure import ROOT
from perf.reading.replies import OTHERS, RECORDINGS, exam_of, recorded, samples_of
from perf.reading.values import AMBIGUOUS, kind_of, value_of

READERS = ROOT / "tests" / "readers"
WRITTEN_HERE = (
    "polarity.jsonl",
    "styles.jsonl",
    "newer_models.jsonl",
    "denials.jsonl",
    "unseen.jsonl",
)
"""Written for the reader: wrong statements, styles, newer models, denials, further styles."""
ERRORS = ("misread", "missed", "invented")
WORD_LIST = "WL"
"""The label of a reply that states a list of words, whichever."""
UNWEIGHTED = "agree_not_plain"
PROTOCOLS = {"bbh": "paper", "mmlu_pro": "official", "ceval": "evalscope", "bixbench": "official"}


class Tally:
    """Weighted verdicts, also by rule."""

    def __init__(self) -> None:
        self.errors: dict[str, float] = defaultdict(float)
        self.weight = 0.0
        self.rules: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, verdict: str, rule: str, weight: float = 1.0) -> None:
        """Count a reading."""
        self.weight += weight
        self.errors[verdict] += weight
        self.rules[rule or "(nothing read)"][verdict] += 1

    def print(self, title: str) -> None:
        """Print the shares, and for each rule how many readings are right."""
        shares = "".join(f"{self.errors[e] / (self.weight or 1):>9.2%} {e}" for e in ERRORS)
        print(f"  {title:<34}{shares}")
        for rule, counts in sorted(self.rules.items()):
            wrong = ", ".join(f"{counts[e]} {e}" for e in ERRORS if counts[e])
            print(f"      {rule:<20}{counts.total():>6} read, {counts['right']} right  {wrong}")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines; none where it does not exist."""
    if not path.is_file():
        return []
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [msgspec.json.decode(line) for line in data.splitlines()]


def verdict_of(label: str | None, read: str | None, sample: Sample) -> str:
    """Whether what was read is what a reply states."""
    kind = kind_of(sample)
    if label == WORD_LIST:
        return "missed" if read is None else "right"
    value = value_of(read, kind, sample)
    stated = label if label in (None, AMBIGUOUS) else value_of(label, kind, sample)
    if stated in (None, AMBIGUOUS):
        return "right" if read is None else "invented"
    if value == stated:
        return "right"
    return "missed" if read is None else "misread"


def _read(exam: Exam, sample: Sample, text: str, label: str | None) -> tuple[str, str]:
    reader = exam.readers["robust"]
    if exam.prompts is not None:
        reader = reader.facing(exam.prompts.prefix_text)
    answer = reader.read(split_thinking(text).text, sample)
    return verdict_of(label, answer.value, sample), answer.rule


def print_labels(path: Path, data: Path, *, weighted: bool = True) -> None:
    """Print the shares of each model of a file of labelled replies."""
    rows = [row for row in rows_of(path) if not row.get("contested")]
    sizes = Counter((row["set"], row.get("stratum")) for row in rows)
    tallies: dict[str, Tally] = defaultdict(Tally)
    strata: Counter[str] = Counter()
    for row in rows:
        exam = _exam(row, data)
        sample = samples_of(exam)[row["id"]]
        verdict, rule = _read(exam, sample, row["text"], row["label"])
        weight = 1.0
        if weighted:
            weight = row["stratum_size"] / sizes[row["set"], row["stratum"]]
            weight = 0.0 if row["stratum"] == UNWEIGHTED else weight
        tallies[row["set"]].add(verdict, rule, weight)
        if verdict != "right":
            strata[f"{row['set']}/{row.get('stratum')}: {verdict}"] += 1
    for name, tally in tallies.items():
        tally.print(f"{path.name.split('.')[0]}: {name}")
    for place, n in sorted(strata.items()):
        print(f"      {n} in {place}")


def _exam(row: Mapping[str, Any], data: Path) -> Exam:
    """The exam of a labelled row."""
    benchmark = row.get("benchmark") or ("bbh" if row["id"].startswith("bbh") else "mmlu_pro")
    return exam_of(benchmark, PROTOCOLS[benchmark], data)


def _written(row: Mapping[str, Any], data: Path) -> tuple[Exam, Sample, str]:
    exam = _exam(row, data)
    if "question" not in row:
        return exam, samples_of(exam)[row["id"]], row["text"]
    sample = Sample(
        id="written",
        subset=row["subset"],
        index=0,
        text=row["question"],
        target="",
        choices=tuple(row.get("choices", ())),
    )
    return exam, sample, row["output"]


def tally_written(path: Path, data: Path) -> Tally:
    """What is made of a file of written replies."""
    tally = Tally()
    for row in rows_of(path):
        exam, sample, text = _written(row, data)
        tally.add(*_read(exam, sample, text, row["label"]))
    return tally


def print_written(path: Path, data: Path) -> None:
    """Print the shares of a file of written replies."""
    tally = tally_written(path, data)
    if tally.weight:
        tally.print(path.name.split(".")[0])


BLIND = READERS / "blind_labels.jsonl"
"""Labels of recorded replies that were given before the reader saw them; the texts are in the data
folder, and `sha256` says which they are."""


def tally_blind(data: Path) -> dict[str, Tally]:
    """What is made of the replies that were labelled before the reader saw them, by model."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    rows = {row["key"]: row for row in rows_of(BLIND) if not row.get("contested")}
    recordings = {recording.model: recording for recording in (*RECORDINGS, *OTHERS)}
    for model in dict.fromkeys(key.partition("/")[0] for key in rows):
        if not (data / recordings[model].file).is_file():
            continue
        for reply in recorded(recordings[model], data):
            row = rows.get(reply.key)
            if row and sha256(reply.text.encode()).hexdigest().startswith(row["sha256"]):
                verdict, rule = _read(reply.exam, reply.sample, reply.text, row["label"])
                tallies[model].add(verdict, rule)
    return tallies


# `A. `, `B．`: where an option begins inside a question.
_OPTION = re.compile(r"(?:^|\s)([A-D])[.．、]\s*")


def question_with_options(text: str) -> Sample:
    """A question whose options are part of its text, taken apart; the last run of A to D counts."""
    starts = list(_OPTION.finditer(text))
    for first_option in reversed([at for at, match in enumerate(starts) if match[1] == "A"]):
        run = list(_run(starts[first_option:]))
        if len(run) == 4:
            ends = [match.start() for match in run[1:]] + [len(text)]
            choices = tuple(text[m.end() : end].strip() for m, end in zip(run, ends, strict=True))
            stem = text[: run[0].start()].strip()
            return Sample(id="q", subset="q", index=0, text=stem, target="", choices=choices)
    return Sample(
        id="q", subset="q", index=0, text=text, target="", choices=("甲", "乙", "丙", "丁")
    )


def _run(starts: list[re.Match[str]]) -> Iterator[re.Match[str]]:
    """The first A, the next B, the next C and the next D."""
    letters = iter("ABCD")
    label = next(letters)
    for match in starts:
        if match[1] == label:
            yield match
            label = next(letters, "")


def print_polarity(path: Path, data: Path) -> None:
    """Print the shares of replies to questions that ask for the wrong statement."""
    tally = Tally()
    exam = exam_of("ceval", PROTOCOLS["ceval"], data)
    for row in rows_of(path):
        sample = question_with_options(row["question"])
        answer = exam.readers["robust"].read(row["reply_without_tag"], sample)
        right = answer.value == row["label"]
        verdict = "right" if right else "missed" if answer.value is None else "misread"
        tally.add(verdict, answer.rule)
    if tally.weight:
        tally.print(path.name.split(".")[0])


def print_outside(data: Path) -> None:
    """Print all of them."""
    print("\nReplies of the data folder")
    folder = data / "readers"
    print_labels(folder / "labels_3.jsonl.gz", data)
    print_polarity(folder / "gaokao_not_questions.jsonl.gz", data)
    for name in ("written_2.jsonl.gz", "adversarial.jsonl"):
        print_written(folder / name, data)
    for name in WRITTEN_HERE:
        print_written(READERS / name, data)
    for model, tally in tally_blind(data).items():
        tally.print(f"{BLIND.stem}: {model}")
