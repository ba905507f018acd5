"""OpenCompass: ``predictions/MODEL/DATASET.json`` with its results.

A dataset may be split over ``DATASET_0.json``, ``DATASET_1.json``, …. An unfinished one is
``tmp_DATASET.jsonl``. Results have verdicts by row unless the user disabled them. They are a list
by question if the evaluator judged the rows, or an object by row if only the compared answers are
known.

For logs without verdicts, the rules of OpenCompass 0.5 judge the replies. They are the rules of the
dataset's standard configuration, including their faults. Their verdicts count only if they add up
to the figure in the log.
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
    LogPart,
    LogRow,
    LogRows,
    LogSource,
    LogTask,
    ModelLog,
    find_task,
    make_reply,
    malformed_reply,
    prompt_of,
    to_number,
)
from keju.sources.files import first_value
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
"""``B. two cells``: without a chain of thought, the gold answer is the option with its label."""


def decide(rule: str, reply: str, gold: str) -> bool | None:
    """Whether `reply` is right by the rule of this name; None for an unknown rule."""
    if rule == "choice":
        return extract_choice(reply) == extract_choice(gold)
    if rule == "free form":
        return extract_free_form(reply).casefold() == extract_free_form(gold).casefold()
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


def extract_choice(text: str) -> str:
    """Return the first label after the first marker: one in brackets, else any capital letter."""
    pieces = text.split(_CHOICE_MARKER)
    part = pieces[1].strip() if len(pieces) > 1 else text
    if bracketed := _BRACKETED.search(part):
        return bracketed[1]
    capital = _CAPITAL.search(part)
    return capital[0] if capital else part


def extract_free_form(text: str) -> str:
    """Return the line after the last marker, without full stop, bold type and commas."""
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
    """Whether the first line is the label or the option. An option with ``. `` never matches."""
    line = text.split("\n")[0].strip()
    return ". " not in option and line in (label, option.strip())


TOOL = "opencompass"
RESULTS = "results"
DETECTED_IN = 100
"""The first entry of a file begins within this number of bytes."""
UNFINISHED = "tmp_"
"""The prefix of a file's name while its dataset is unfinished."""
UNSPLIT = -1
"""The number of a file that is not part of a split dataset."""

_FIRST = re.compile(rb'\s*\{\s*"\d+"\s*:\s*\{')
"""The beginning of a file of predictions: ``{"0": {``."""
_PART = re.compile(r"(.+)_(\d+)")
"""A part of a split dataset: ``DATASET_2``."""
DIRECT_READER = "robust"
"""The reader for choices without a chain of thought, where replies are only a label."""
LABEL = "label: "
"""The prefix of keys for the options' log-likelihoods (as perplexities)."""
_FIGURE = re.compile(r"(?:accuracy|score)(?: \(\d+ runs average\))?")
"""``accuracy``, ``score (4 runs average)``"""
FULL_PERCENT = 100
"""Figures are percentages."""
TOLERANCE = 1e-6
"""Shares with a smaller difference are equal."""
VERDICT_KEYS = ("correct", "is_correct", "cascade_correct")
ANSWER_KEYS = ("pred", "predictions")
GOLD_KEYS = ("answer", "references", "ref")
"""The evaluators' keys for the verdict, the answer that they read, and the gold answer."""
OTHER_SPLIT = "import_other_split"
"""The reason why rows of a second split are left out."""


class LogDataset(NamedTuple):
    """The predictions with one abbreviation."""

    abbreviation: str
    files: tuple[str, ...]
    """Its predictions: one file, or the parts in order."""
    complete: bool
    """Whether these are all files, so that the results apply to them."""


class PredictionEntry(NamedTuple):
    """One prediction."""

    where: str
    number: int
    """Its position in the dataset, counting all parts and repeats."""
    row: Mapping[str, Any]


def find(source: LogSource) -> list[str]:
    """Return the files of predictions."""
    return [
        name
        for name in source.names
        if (source.is_single or PREDICTIONS in PurePosixPath(name).parts[:-1])
        and _has_predictions(source, name)
    ]


def _has_predictions(source: LogSource, name: str) -> bool:
    """Whether a file begins like a file of predictions."""
    if name.endswith(".jsonl"):
        return {"idx", "prediction"} <= source.first_object(name).keys()
    return name.endswith(".json") and _FIRST.match(source.start(name, DETECTED_IN)) is not None


def read(source: LogSource, names: Sequence[str]) -> ModelLog:
    """Return the log of one run."""
    models = {_model_name(name) for name in names}
    source.refuse_several_models(models)
    exams: dict[tuple[str, str], list[tuple[LogDataset, LogTask]]] = {}
    for dataset in _group_files(source, names):
        task = find_task(TOOL, dataset.abbreviation)
        key = task.facts.name if task.facts else dataset.abbreviation
        exams.setdefault((task.benchmark, key), []).append((dataset, task))
    # The parts of Keju's exams come first. If an exam has two splits, such as val and test, the one
    # that needs no setting is read.
    exams_without_split = {
        benchmark for (benchmark, _), [(_, task), *_] in exams.items() if _has_no_split(task)
    }
    parts = [
        _read_part(
            source,
            members,
            is_second_split=benchmark in exams_without_split and not _has_no_split(members[0][1]),
        )
        for (benchmark, _), members in sorted(exams.items(), key=lambda exam: not exam[0][0])
    ]
    model = models.pop() or "unknown"
    return ModelLog(tool=TOOL, version="", model=model, parts=parts, files=source.hashes)


def _model_name(name: str) -> str:
    """Return the folders between ``predictions`` and the file; a model's abbreviation may have
    slashes."""
    folder = PurePosixPath(name).parent
    if PREDICTIONS not in folder.parts:
        return folder.name
    return "/".join(folder.parts[folder.parts.index(PREDICTIONS) + 1 :])


def _group_files(source: LogSource, names: Sequence[str]) -> list[LogDataset]:
    """Return the files by dataset; UsageError if two runs have the same one."""
    files_by_dataset: dict[str, dict[str, dict[int, str]]] = {}
    for name in sorted(names, key=_is_unfinished):
        abbreviation, part = PurePosixPath(name).stem.removeprefix(UNFINISHED), UNSPLIT
        part_match, results_path = _PART.fullmatch(abbreviation), _results_path(name, abbreviation)
        # DATASET_2 with its own results is a dataset's name, not a part.
        if part_match is not None and (results_path == name or not source.has(results_path)):
            abbreviation, part = part_match[1], int(part_match[2])
        runs = files_by_dataset.setdefault(abbreviation, {})
        runs.setdefault(str(PurePosixPath(name).parent), {}).setdefault(part, name)
    for abbreviation, runs in files_by_dataset.items():
        if len(runs) > 1:
            values = {"name": abbreviation, "runs": sorted(runs)}
            raise UsageError("import_several_runs", path=source.path, **values)
    return [_make_dataset(source, name, *runs.values()) for name, runs in files_by_dataset.items()]


def _is_unfinished(name: str) -> bool:
    return PurePosixPath(name).name.startswith(UNFINISHED)


def _make_dataset(source: LogSource, abbreviation: str, parts: Mapping[int, str]) -> LogDataset:
    """Return the files that OpenCompass would evaluate: the unsplit one or the parts."""
    unsplit_file = parts.get(UNSPLIT)
    if unsplit_file is not None and (len(parts) == 1 or not _is_unfinished(unsplit_file)):
        return LogDataset(abbreviation, (unsplit_file,), not _is_unfinished(unsplit_file))
    numbers = sorted(part for part in parts if part != UNSPLIT)
    files = tuple(parts[part] for part in numbers)
    complete = not source.is_single and numbers == list(range(len(numbers)))
    return LogDataset(abbreviation, files, complete and not any(map(_is_unfinished, files)))


def _read_part(
    source: LogSource,
    members: Sequence[tuple[LogDataset, LogTask]],
    *,
    is_second_split: bool = False,
) -> LogPart:
    """Return one exam. Rows of a second split are marked as left out."""
    rows: list[LogRow] = []
    figures: list[DatasetFigure] = []
    for dataset, task in members:
        results = _read_results(source, dataset)
        dataset_rows = list(_read_rows(source, _read_entries(source, dataset), results, task))
        rows += dataset_rows
        headline = _read_headline(results)
        if headline and any(row.target for row in dataset_rows):
            judged = _count_judged(results.get("details"))
            figures.append(DatasetFigure(*headline, judged, judged or len(dataset_rows)))
    task = members[0][1]
    is_direct = rule_of(task) == "colon" and any(DIRECT_GOLD.fullmatch(row.target) for row in rows)
    if is_direct:
        rows = [replace(row, target=DIRECT_GOLD.sub(r"\1", row.target)) for row in rows]
    if is_second_split:
        rows = [replace(row, note=OTHER_SPLIT) for row in rows]
    has_all_figures = len(figures) == len(members)
    part = LogPart(
        task=", ".join(dataset.abbreviation for dataset, _ in members),
        rows=LogRows(rows),
        reader=DIRECT_READER if is_direct else "",
        reported=_join_figures(figures) if has_all_figures else {},
        n=_sum_judged(figures) if has_all_figures else None,
    )
    return part if is_second_split else part.read_as(task)


class DatasetFigure(NamedTuple):
    """The headline of a dataset's results."""

    name: str
    value: float
    judged: int
    """The number of rows that the evaluator lists; 0 if lists were disabled."""
    weight: int
    """The number of judged rows, or else of all rows."""


def _read_results(source: LogSource, dataset: LogDataset) -> Mapping[str, Any]:
    """Return the results of a dataset; empty if there are none for all of its files."""
    path = _results_path(dataset.files[0], dataset.abbreviation)
    has_results = dataset.complete and path not in dataset.files and source.has(path)
    return source.mapping(path) if has_results else {}


def _join_figures(figures: Sequence[DatasetFigure]) -> dict[str, float]:
    """Return the figure over all datasets, each weighted by its number of judged rows."""
    total = sum(figure.weight for figure in figures)
    return {figures[0].name: sum(figure.weight * figure.value for figure in figures) / total}


def _sum_judged(figures: Sequence[DatasetFigure]) -> int | None:
    """Return the number of judged rows; None if a dataset does not list them."""
    counts = [figure.judged for figure in figures]
    return sum(counts) if all(counts) else None


def _has_no_split(task: LogTask) -> bool:
    return task.facts is not None and "split" not in task.facts.args


def rule_of(task: LogTask) -> str:
    """Return the name of OpenCompass's rule for a task; empty if Keju knows none."""
    rules = task.facts.rules if task.facts else {}
    return rules.get(task.subset, rules.get("", ""))


def _results_path(name: str, abbreviation: str) -> str:
    """Return the path of a dataset's results, given one of its files of predictions."""
    folder = [RESULTS if p == PREDICTIONS else p for p in PurePosixPath(name).parent.parts]
    return str(PurePosixPath(*folder, f"{abbreviation}.json"))


def _read_headline(results: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the headline of a dataset: its name and value."""
    for metric in results:
        value = to_number(results[metric])
        if _FIGURE.fullmatch(metric) and value is not None:
            return metric, value / FULL_PERCENT
    return None


def _count_judged(details: Any) -> int:
    """Return the number of rows that the evaluator lists; 0 if lists were disabled."""
    if isinstance(details, Mapping):
        return sum(key.isdecimal() for key in details)
    return len(details) if isinstance(details, list) else 0


def _read_entries(source: LogSource, dataset: LogDataset) -> list[PredictionEntry]:
    """Return the predictions of a dataset in the order of its questions."""
    entries: list[PredictionEntry] = []
    for name in dataset.files:
        previous_count = len(entries)
        if name.endswith(".jsonl"):
            rows = source.jsonl(name)
            keyed_rows = ((where, str(row.get("idx")), row) for where, row in rows)
        else:
            rows_by_key = source.mapping(name).items()
            keyed_rows = ((f"{name}, entry {key}", key, row) for key, row in rows_by_key)
        for where, key, row in keyed_rows:
            number = parse_whole_number(key)
            if number is None or not isinstance(row, dict) or "prediction" not in row:
                raise DataError("import_no_prediction", where=source.root / where, tool=TOOL)
            entries.append(PredictionEntry(where, previous_count + number, row))
    return sorted(entries, key=lambda entry: entry.number)


def _read_rows(
    source: LogSource, entries: Sequence[PredictionEntry], results: Mapping[str, Any], task: LogTask
) -> Iterator[LogRow]:
    size = _count_questions(entries)
    details = [_read_detail(results.get("details"), entry.number, size) for entry in entries]
    verdicts = _find_verdicts(entries, details, _read_headline(results), rule_of(task))
    for entry, detail, verdict in zip(entries, details, verdicts, strict=True):
        answer = first_value(detail, ANSWER_KEYS)
        gold = entry.row.get("gold") or first_value(detail, GOLD_KEYS) or ""
        target = str(gold[-1] if isinstance(gold, list) and gold else gold)
        yield LogRow(
            where=entry.where,
            reply=_read_reply(entry.row, f"{source.root / entry.where}"),
            subset=task.subset,
            index=entry.number % size,
            prompt=_read_prompt(entry.row),
            target=target,
            answer=answer if isinstance(answer, str) else None,
            verdict=verdict if target else None,
            epoch=entry.number // size,
        )


def _count_questions(entries: Sequence[PredictionEntry]) -> int:
    """Return the number of questions: a dataset that is run n times lists all of them n times."""
    last_number = max((entry.number for entry in entries), default=0)
    if last_number >= len(entries):
        return last_number + 1
    questions = [(_read_prompt(entry.row), str(entry.row.get("gold"))) for entry in entries]
    for size in range(1, len(questions) // 2 + 1):
        if len(questions) % size == 0 and questions[size:] == questions[:-size]:
            return size
    return last_number + 1


def _read_prompt(row: Mapping[str, Any]) -> str:
    """Return the prompt. Up to version 0.2, rows of perplexities have it only under each option."""
    option: Mapping[str, Any] = next((row[key] for key in row if key.startswith(LABEL)), {})
    return prompt_of(row.get("origin_prompt", option.get("testing input")))


def _read_detail(details: Any, place: int, size: int) -> dict[str, Any]:
    """Return the evaluator's facts about one row, listed by question or by the row's number."""
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


def _find_verdicts(
    entries: Sequence[PredictionEntry],
    details: Sequence[Mapping[str, Any]],
    figure: tuple[str, float] | None,
    rule: str,
) -> list[float | None]:
    """Return the evaluator's verdicts, or else others that add up to its figure.

    The others are the comparison of the listed answers, and the rule applied to the replies, with
    or without their reasoning. The first of these that adds up is used.
    """
    evaluator_verdicts = [to_number(first_value(detail, VERDICT_KEYS)) for detail in details]
    if any(verdict is not None for verdict in evaluator_verdicts):
        return evaluator_verdicts
    compared_verdicts = list(map(_compare_answers, entries, details))
    if figure is None:
        are_choices = all(_is_choice(entry.row) for entry in entries)
        return compared_verdicts if are_choices else evaluator_verdicts
    whole_verdicts = [_apply_rule(entry.row, rule, with_thoughts=True) for entry in entries]
    answer_verdicts = [_apply_rule(entry.row, rule, with_thoughts=False) for entry in entries]
    for verdicts in (compared_verdicts, whole_verdicts, answer_verdicts):
        if _adds_up(verdicts, figure[1]):
            return verdicts
    return evaluator_verdicts


def _adds_up(verdicts: Sequence[float | None], share: float) -> bool:
    """Whether all verdicts are known and their mean is the tool's figure."""
    known_verdicts = [verdict for verdict in verdicts if verdict is not None]
    if not verdicts or len(known_verdicts) < len(verdicts):
        return False
    return abs(sum(known_verdicts) / len(verdicts) - share) < TOLERANCE


def _compare_answers(entry: PredictionEntry, detail: Mapping[str, Any]) -> float | None:
    """Whether the answer equals the gold answer, character by character."""
    answer, gold = first_value(detail, ANSWER_KEYS), first_value(detail, GOLD_KEYS)
    if answer is None and _is_choice(entry.row):
        answer, gold = entry.row["prediction"], entry.row.get("gold")
    return None if answer is None or gold is None else float(str(answer) == str(gold))


def _apply_rule(row: Mapping[str, Any], rule: str, *, with_thoughts: bool) -> float | None:
    """Return the verdict of OpenCompass's rule on a reply, with or without its reasoning."""
    text, gold = row["prediction"], row.get("gold")
    if not isinstance(text, str) or not isinstance(gold, str):
        return None
    is_right = decide(rule, text if with_thoughts else split_thinking(text).text, gold)
    return None if is_right is None else float(is_right)


def _is_choice(row: Mapping[str, Any]) -> bool:
    """Whether an option was chosen by its perplexity."""
    return any(key.startswith(LABEL) for key in row)


def _read_reply(row: Mapping[str, Any], where: str) -> Reply:
    """Return the reply. Perplexities of the options become log-probabilities of their labels."""
    perplexities = {key[len(LABEL) :]: row[key].get("PPL") for key in row if key.startswith(LABEL)}
    if perplexities:
        return _read_perplexities(perplexities, where)
    text = row["prediction"]
    text = text[-1] if isinstance(text, list) and text else text
    text = text.get("prediction") if isinstance(text, Mapping) else text
    return make_reply(text) if isinstance(text, str) else malformed_reply(text)


def _read_perplexities(perplexities: Mapping[str, Any], where: str) -> Reply:
    """Return the log-probabilities of the labels, given the perplexities of their options."""
    if not all(isinstance(value, int | float) for value in perplexities.values()):
        raise DataError("import_no_ppl", where=where)
    if any(to_number(value) is None for value in perplexities.values()):
        return malformed_reply(perplexities)
    return Reply(label_logprobs={label: -float(value) for label, value in perplexities.items()})
