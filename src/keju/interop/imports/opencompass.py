"""OpenCompass: ``predictions/MODEL/DATASET.json`` and the results beside it.

A dataset may be split over ``DATASET_0.json``, ``DATASET_1.json``, …; one that was never finished
is ``tmp_DATASET.jsonl``. Results have verdicts by row unless the user turned them off: a list by
question where the evaluator judged the rows, an object by row where only the answers it compared
are known.

For logs that were written without verdicts, the rules of OpenCompass 0.5 decide on a reply: those
of the dataset's standard configuration, faults included. What a rule gives is believed only where
it adds up to the figure that the log reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from msgspec.structs import replace

from keju.answers.segments import split_thinking
from keju.bounds import parse_whole_number
from keju.errors import DataError, UsageError
from keju.interop.imports.log import (
    PREDICTIONS,
    Log,
    LogRow,
    LogRows,
    Part,
    Source,
    Task,
    find_task,
    make_reply,
    malformed_reply,
    number,
    prompt_of,
)
from keju.types import Reply

_CHOICE_MARKER = "answer is "
_FREE_MARKER = re.compile(r"answer is\s*:?\s*", re.IGNORECASE)  # "So the answer is: "
_BRACKETED = re.compile(r"\(([A-Z])")  # "(B) two cells" gives B
_CAPITAL = re.compile(r"[A-Z]")
_BOLD = re.compile(r"\*\*(.*?)\*\*")  # "**two cells**" gives two cells
_WORD = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)  # "Yes, it is" gives Yes
_LISTED_NUMBERS = re.compile(r"\d\s*,\s*\d")  # "3, 5"
_ANSWER_COLON = re.compile(r"ANSWER\s*:\s*([A-P])", re.IGNORECASE)  # "Answer: B" gives B
DIRECT_GOLD = re.compile(r"([A-P])\. (.*)", re.DOTALL)
"""``B. two cells``: without chain of thought the gold answer is the option with its label."""


def decide(rule: str, reply: str, gold: str) -> bool | None:
    """Whether `reply` is right by the rule of that name; None where Keju knows none."""
    if rule == "choice":
        return choice_of(reply) == choice_of(gold)
    if rule == "free form":
        return free_form(reply).casefold() == free_form(gold).casefold()
    if rule == "capital":
        # The first capital letter of any script.
        return next((letter for letter in reply if letter.isupper()), "") == gold
    if rule == "colon":
        direct = DIRECT_GOLD.fullmatch(gold)
        if direct is not None:
            return is_option(reply, *direct.groups())
        match = _ANSWER_COLON.search(reply)
        return (match[1] if match else "") == gold
    return None


def choice_of(text: str) -> str:
    """The first label after the first marker: one in brackets, else any capital."""
    pieces = text.split(_CHOICE_MARKER)
    part = pieces[1].strip() if len(pieces) > 1 else text
    if bracketed := _BRACKETED.search(part):
        return bracketed[1]
    capital = _CAPITAL.search(part)
    return capital[0] if capital else part


def free_form(text: str) -> str:
    """The line after the last marker without full stop, bold type and commas between words."""
    pieces = _FREE_MARKER.split(text)
    part = pieces[-1].strip() if len(pieces) > 1 else text
    line = part.split("\n")[0].strip()
    line = line.removesuffix(".").strip()
    if bold := _BOLD.search(line):
        line = bold[1].strip()
    if word := _WORD.match(line):
        return word[1]
    if not _LISTED_NUMBERS.search(line):
        line = line.replace(",", " ")
    return " ".join(line.split())


def is_option(text: str, label: str, option: str) -> bool:
    """Whether the first line is the label or the option; one that holds ``. `` is never met."""
    line = text.split("\n")[0].strip()
    return ". " not in option and line in (label, option.strip())


TOOL = "opencompass"
RESULTS = "results"
DETECTED_IN = 100
"""Bytes of a file in which its first entry begins."""
UNFINISHED = "tmp_"
"""How the name of a file begins while its dataset is being asked."""
WHOLE = -1
"""The number of a file that is no part of a split dataset."""

_FIRST = re.compile(rb'\s*\{\s*"\d+"\s*:\s*\{')
"""How a file of predictions begins: ``{"0": {``."""
_PART = re.compile(r"(.+)_(\d+)")
"""A part of a split dataset: ``DATASET_2``."""
DIRECT_READER = "robust"
"""For choices without chain of thought, where replies are a label alone."""
LABEL = "label: "
"""What the log-likelihoods (as perplexities) of the options are filed under."""
_FIGURE = re.compile(r"(?:accuracy|score)(?: \(\d+ runs average\))?")
"""``accuracy``, ``score (4 runs average)``"""
SHARE_OF = 100
"""Figures are percentages."""
SAME = 1e-6
"""Shares that differ by less are the same."""
JUDGED = ("correct", "is_correct", "cascade_correct")
ANSWERS = ("pred", "predictions")
GOLDS = ("answer", "references", "ref")
"""What the evaluators call the verdict, the answer they read and the one they compare it with."""
OTHER_SPLIT = "import_other_split"
"""Why rows of a second split are left out."""


class Dataset(NamedTuple):
    """What was asked under one abbreviation."""

    abbreviation: str
    files: tuple[str, ...]
    """Its predictions: one file, or the parts in their order."""
    complete: bool
    """Whether these are all of them, so that the results are about them."""


class Entry(NamedTuple):
    """One prediction."""

    where: str
    number: int
    """Its place in the dataset, all parts and repeats counted."""
    row: Mapping[str, Any]


def find(source: Source) -> list[str]:
    """The files of predictions."""
    files = []
    for name in source.names:
        if not source.single and PREDICTIONS not in PurePosixPath(name).parts[:-1]:
            continue
        if name.endswith(".jsonl"):
            fits = {"idx", "prediction"} <= source.first(name).keys()
        else:
            start = source.start(name, DETECTED_IN) if name.endswith(".json") else b""
            fits = _FIRST.match(start) is not None
        if fits:
            files.append(name)
    return files


def read(source: Source, names: Sequence[str]) -> Log:
    """The log of one run."""
    models = {_model(name) for name in names}
    source.refuse_several(models)
    exams: dict[tuple[str, str], list[tuple[Dataset, Task]]] = {}
    for dataset in _datasets(source, names):
        task = find_task(TOOL, dataset.abbreviation)
        key = task.facts.name if task.facts else dataset.abbreviation
        exams.setdefault((task.benchmark, key), []).append((dataset, task))
    # The parts of exams that Keju has come first. Of two splits of one exam, such as val and test,
    # the one that needs no setting is read.
    plain = {benchmark for (benchmark, _), [(_, task), *_] in exams.items() if _is_plain(task)}
    parts = [
        _part(source, members, second=benchmark in plain and not _is_plain(members[0][1]))
        for (benchmark, _), members in sorted(exams.items(), key=lambda exam: not exam[0][0])
    ]
    model = models.pop() or "unknown"
    return Log(tool=TOOL, version="", model=model, parts=parts, files=source.hashes)


def _model(name: str) -> str:
    """The folders between ``predictions`` and the file; a model's abbreviation may have slashes."""
    folder = PurePosixPath(name).parent
    if PREDICTIONS not in folder.parts:
        return folder.name
    return "/".join(folder.parts[folder.parts.index(PREDICTIONS) + 1 :])


def _datasets(source: Source, names: Sequence[str]) -> list[Dataset]:
    """The files by dataset; UsageError where two runs have the same one."""
    grouped: dict[str, dict[str, dict[int, str]]] = {}
    for name in sorted(names, key=_is_unfinished):
        abbreviation, part = PurePosixPath(name).stem.removeprefix(UNFINISHED), WHOLE
        split, own = _PART.fullmatch(abbreviation), _results_of(name, abbreviation)
        # DATASET_2 with results of its own is the name of a dataset, not a part of one.
        if split is not None and (own == name or not source.has(own)):
            abbreviation, part = split[1], int(split[2])
        runs = grouped.setdefault(abbreviation, {})
        runs.setdefault(str(PurePosixPath(name).parent), {}).setdefault(part, name)
    for abbreviation, runs in grouped.items():
        if len(runs) > 1:
            values = {"name": abbreviation, "runs": sorted(runs)}
            raise UsageError("import_several_runs", path=source.path, **values)
    return [_dataset(source, name, *runs.values()) for name, runs in grouped.items()]


def _is_unfinished(name: str) -> bool:
    return PurePosixPath(name).name.startswith(UNFINISHED)


def _dataset(source: Source, abbreviation: str, parts: Mapping[int, str]) -> Dataset:
    """The files that OpenCompass would evaluate: the whole one, else the parts in order."""
    whole = parts.get(WHOLE)
    if whole is not None and (len(parts) == 1 or not _is_unfinished(whole)):
        return Dataset(abbreviation, (whole,), not _is_unfinished(whole))
    numbers = sorted(part for part in parts if part != WHOLE)
    files = tuple(parts[part] for part in numbers)
    complete = not source.single and numbers == list(range(len(numbers)))
    return Dataset(abbreviation, files, complete and not any(map(_is_unfinished, files)))


def _part(source: Source, members: Sequence[tuple[Dataset, Task]], *, second: bool = False) -> Part:
    """One exam; with `second` it stands beside another split, which alone is read."""
    rows: list[LogRow] = []
    figures: list[tuple[str, int, float]] = []
    judged: list[int] = []
    for dataset, task in members:
        beside = _results_of(dataset.files[0], dataset.abbreviation)
        apart = dataset.complete and beside not in dataset.files and source.has(beside)
        results = source.mapping(beside) if apart else {}
        listed = list(_rows(source, _entries(source, dataset), results, task))
        rows += listed
        figure = _figure(results)
        if figure and any(row.target for row in listed):
            judged.append(_judged(results.get("details")))
            figures.append((figure[0], judged[-1] or len(listed), figure[1]))
    task = members[0][1]
    direct = rule_of(task) == "colon" and any(DIRECT_GOLD.fullmatch(row.target) for row in rows)
    if direct:
        rows = [replace(row, target=DIRECT_GOLD.sub(r"\1", row.target)) for row in rows]
    if second:
        rows = [replace(row, note=OTHER_SPLIT) for row in rows]
    reported: dict[str, float] = {}
    if len(figures) == len(members):
        # The figure over all datasets, each weighing as many rows as were judged.
        total = sum(weight for _, weight, _ in figures)
        reported[figures[0][0]] = sum(weight * value for _, weight, value in figures) / total
    part = Part(
        task=", ".join(dataset.abbreviation for dataset, _ in members),
        rows=LogRows(rows),
        reader=DIRECT_READER if direct else "",
        reported=reported,
        n=sum(judged) if reported and all(judged) else None,
    )
    return part if second else part.read_as(task)


def _is_plain(task: Task) -> bool:
    return task.facts is not None and "split" not in task.facts.args


def rule_of(task: Task) -> str:
    """The name of OpenCompass's rule for a task; empty where Keju knows none."""
    rules = task.facts.rules if task.facts else {}
    return rules.get(task.subset, rules.get("", ""))


def _results_of(name: str, abbreviation: str) -> str:
    """Where the results of a dataset are, given one of its files of predictions."""
    folder = [RESULTS if p == PREDICTIONS else p for p in PurePosixPath(name).parent.parts]
    return str(PurePosixPath(*folder, f"{abbreviation}.json"))


def _figure(results: Mapping[str, Any]) -> tuple[str, float] | None:
    """The headline of a dataset: its name and value."""
    for metric in results:
        value = number(results[metric])
        if _FIGURE.fullmatch(metric) and value is not None:
            return metric, value / SHARE_OF
    return None


def _judged(details: Any) -> int:
    """How many rows the evaluator lists; 0 where it was told not to."""
    if isinstance(details, Mapping):
        return sum(key.isdecimal() for key in details)
    return len(details) if isinstance(details, list) else 0


def _entries(source: Source, dataset: Dataset) -> list[Entry]:
    """The predictions of a dataset in the order of its questions."""
    entries: list[Entry] = []
    for name in dataset.files:
        before = len(entries)
        if name.endswith(".jsonl"):
            rows = source.jsonl(name)
            listed = ((where, str(row.get("idx")), row) for where, row in rows)
        else:
            items = source.mapping(name).items()
            listed = ((f"{name}, entry {key}", key, row) for key, row in items)
        for where, key, row in listed:
            number = parse_whole_number(key)
            if number is None or not isinstance(row, dict) or "prediction" not in row:
                raise DataError("import_no_prediction", where=source.root / where, tool=TOOL)
            entries.append(Entry(where, before + number, row))
    return sorted(entries, key=lambda entry: entry.number)


def _rows(
    source: Source, entries: Sequence[Entry], results: Mapping[str, Any], task: Task
) -> Iterator[LogRow]:
    size = _size(entries)
    details = [_detail(results.get("details"), entry.number, size) for entry in entries]
    verdicts = _verdicts(entries, details, _figure(results), rule_of(task))
    for entry, detail, verdict in zip(entries, details, verdicts, strict=True):
        answer = _first(detail, ANSWERS)
        gold = entry.row.get("gold") or _first(detail, GOLDS) or ""
        target = str(gold[-1] if isinstance(gold, list) and gold else gold)
        yield LogRow(
            where=entry.where,
            reply=_reply(entry.row, f"{source.root / entry.where}"),
            subset=task.subset,
            index=entry.number % size,
            prompt=_prompt(entry.row),
            target=target,
            answer=answer if isinstance(answer, str) else None,
            verdict=verdict if target else None,
            epoch=entry.number // size,
        )


def _size(entries: Sequence[Entry]) -> int:
    """How many questions there are: a dataset that is run n times lists all of them n times."""
    last = max((entry.number for entry in entries), default=0)
    if last >= len(entries):
        return last + 1
    asked = [(_prompt(entry.row), str(entry.row.get("gold"))) for entry in entries]
    for size in range(1, len(asked) // 2 + 1):
        if len(asked) % size == 0 and asked[size:] == asked[:-size]:
            return size
    return last + 1


def _prompt(row: Mapping[str, Any]) -> str:
    """What was asked; up to 0.2 rows of perplexities have it under each option alone."""
    option: Mapping[str, Any] = next((row[key] for key in row if key.startswith(LABEL)), {})
    return prompt_of(row.get("origin_prompt", option.get("testing input")))


def _detail(details: Any, place: int, size: int) -> dict[str, Any]:
    """What the evaluator says of one row: listed by question, or filed under the row's number."""
    epoch = place // size
    if isinstance(details, list):
        detail = details[place % size] if place % size < len(details) else {}
    else:
        detail = details.get(str(place)) if isinstance(details, Mapping) else {}
    if not isinstance(detail, Mapping):
        return {}
    return {
        key: value[epoch] if isinstance(value, list) and epoch < len(value) else value
        for key, value in detail.items()
    }


def _first(detail: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((detail[key] for key in keys if detail.get(key) is not None), None)


def _verdicts(
    entries: Sequence[Entry],
    details: Sequence[Mapping[str, Any]],
    figure: tuple[str, float] | None,
    rule: str,
) -> list[float | None]:
    """The evaluator's verdicts; else the first others that add up to the figure it reports.

    Those are the comparison of the answers it lists, and its rule applied to the replies, whole
    or without their thoughts.
    """
    judged = [number(_first(detail, JUDGED)) for detail in details]
    if any(verdict is not None for verdict in judged):
        return judged
    compared = [_compared(*both) for both in zip(entries, details, strict=True)]
    if figure is None:
        return compared if all(_is_choice(entry.row) for entry in entries) else judged
    whole = [_ruled(entry.row, rule, thoughts=True) for entry in entries]
    spoken = [_ruled(entry.row, rule, thoughts=False) for entry in entries]
    for verdicts in (compared, whole, spoken):
        share = sum(verdict or 0.0 for verdict in verdicts) / max(1, len(verdicts))
        if verdicts and None not in verdicts and abs(share - figure[1]) < SAME:
            return verdicts
    return judged


def _compared(entry: Entry, detail: Mapping[str, Any]) -> float | None:
    """Whether the answer is the gold one, letter by letter."""
    answer, gold = _first(detail, ANSWERS), _first(detail, GOLDS)
    if answer is None and _is_choice(entry.row):
        answer, gold = entry.row["prediction"], entry.row.get("gold")
    return None if answer is None or gold is None else float(str(answer) == str(gold))


def _ruled(row: Mapping[str, Any], rule: str, *, thoughts: bool) -> float | None:
    """What OpenCompass's rule makes of a reply, with or without its thoughts."""
    text, gold = row["prediction"], row.get("gold")
    if not isinstance(text, str) or not isinstance(gold, str):
        return None
    right = decide(rule, text if thoughts else split_thinking(text).text, gold)
    return None if right is None else float(right)


def _is_choice(row: Mapping[str, Any]) -> bool:
    """Whether an option was chosen by its perplexity."""
    return any(key.startswith(LABEL) for key in row)


def _reply(row: Mapping[str, Any], where: str) -> Reply:
    """The reply; perplexities of the options become log-probabilities of their labels."""
    options = {key[len(LABEL) :]: row[key] for key in row if key.startswith(LABEL)}
    if options:
        values = {label: option.get("PPL") for label, option in options.items()}
        if not all(isinstance(value, int | float) for value in values.values()):
            raise DataError("import_no_ppl", where=where)
        if any(number(value) is None for value in values.values()):
            return malformed_reply(values)
        return Reply(label_logprobs={label: -float(value) for label, value in values.items()})
    text = row["prediction"]
    text = text[-1] if isinstance(text, list) and text else text
    text = text.get("prediction") if isinstance(text, Mapping) else text
    return make_reply(text) if isinstance(text, str) else malformed_reply(text)
