"""MMLU-Pro as a benchmark: it reads and checks test questions and worked examples.

Two things differ from the files. Leading white space of options is removed, because in some
revisions it marks the gold option. The answer is the letter, not the index, because they disagree
in one row.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from keju import messages
from keju.benchmarks.base import Benchmark, Exam, Mean, Scores
from keju.benchmarks.choices import check_choices
from keju.benchmarks.kit import Questions, Setup, arrange, default_settings
from keju.benchmarks.mmlu_pro.metadata import (
    CATEGORIES,
    GOLDEN,
    GOLDS,
    OFFICIAL_METRIC,
    OFFICIAL_TITLE,
    TOOL_TASKS,
    expected_with_guess,
    official_guess_accuracy,
)
from keju.benchmarks.mmlu_pro.protocols import PROTOCOLS
from keju.benchmarks.mmlu_pro.readers import make_readers
from keju.benchmarks.wording import Wording
from keju.bounds import parse_whole_number
from keju.config import DatasetArgs
from keju.errors import DataError, Notice, did_you_mean
from keju.files import parse_json
from keju.sources.folder import HubRepo, Layout
from keju.stats.estimate import Estimate
from keju.types import LABELS, Sample

TEST = "test"
POOL = "validation"

LAYOUT = Layout(
    tables=(TEST, POOL),
    stems=("{table}", "data/{table}"),
    folders=("MMLU-Pro", "mmlu-pro"),
    hubs={
        "huggingface": HubRepo("TIGER-Lab/MMLU-Pro", "main"),
        "modelscope": HubRepo("TIGER-Lab/MMLU-Pro", "master"),
    },
    rows={TEST: sum(CATEGORIES.values()), POOL: 70},
)
"""The official Parquet files changed several times, so Keju checks rows and gold answers instead.
"""


class MMLUProRow(NamedTuple):
    """One checked row of a file."""

    question_id: int
    question: str
    options: tuple[str, ...]
    """Without leading white space, unless the settings keep it."""
    answer: str
    cot: str
    """The rationale of a worked example; empty in the test split."""
    category: str
    indented: tuple[int, ...]
    """The indices of the options from which leading white space was removed."""
    fault: str
    """The known error of the row; empty for nearly all rows."""


def read_row(
    raw_fields: Mapping[str, Any], where: str, *, as_published: bool = False
) -> MMLUProRow:
    """Return one checked row; numbers and the list of options may be text, as in CSV."""
    fields = _parse_texts(raw_fields)
    question_id = _read_field(fields, "question_id", int, where)
    raw_options = _read_field(fields, "options", list, where)
    if not all(isinstance(option, str) for option in raw_options):
        raise DataError("mmlu_pro.options", where=where)
    options = tuple(raw_options if as_published else (option.lstrip() for option in raw_options))
    answer = _read_text(fields, "answer", "mmlu_pro.empty_answer", where)
    check_choices(options, answer, where)
    question = _read_text(fields, "question", "mmlu_pro.empty_question", where)
    category = _read_field(fields, "category", str, where).lower()
    if category not in CATEGORIES:
        raise DataError(
            "mmlu_pro.category",
            where=where,
            category=category,
            hint=did_you_mean(category, CATEGORIES),
        )
    return MMLUProRow(
        question_id=question_id,
        question=question,
        options=options,
        answer=answer,
        cot=fields.get("cot_content") or "",
        category=category,
        indented=tuple(i for i, option in enumerate(raw_options) if option != options[i]),
        fault=_find_fault(options, answer, fields.get("answer_index")),
    )


def _parse_texts(raw_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row with its numbers and its list of options parsed."""
    fields = dict(raw_fields)
    for name in ("question_id", "answer_index"):
        value = fields.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            fields[name] = parse_whole_number(value)
    if isinstance(fields.get("options"), str):
        with contextlib.suppress(DataError):  # rejected later because it is text
            fields["options"] = parse_json(fields["options"].encode())
    return fields


def _read_text(fields: Mapping[str, Any], name: str, code: str, where: str) -> str:
    """Return a field that must hold a text; DataError with `code` if it is blank."""
    text: str = _read_field(fields, name, str, where)
    if not text.strip():
        raise DataError(code, where=where)
    return text


def _read_field(fields: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        fault = "is missing" if value is None else f"is {type(value).__name__}"
        raise DataError("mmlu_pro.field", where=where, name=name, kind=kind.__name__, fault=fault)
    return value


def _find_fault(options: Sequence[str], answer: str, index: Any) -> str:
    if isinstance(index, int) and answer and LABELS.index(answer) != index:
        return f"the answer is {answer} but answer_index is {index}; the letter counts"
    for option, count in Counter(options).items():
        if count > 1:
            equal_labels = [LABELS[i] for i, text in enumerate(options) if text == option]
            return f"options {' and '.join(equal_labels)} are identical"
    return ""


def make_samples(rows: Iterable[MMLUProRow]) -> Iterator[Sample]:
    """Yield the rows as samples, numbered within their category."""
    counts: Counter[str] = Counter()
    for row in rows:
        yield Sample(
            id=sample_id(row.question_id),
            subset=row.category,
            index=counts[row.category],
            text=row.question,
            target=row.answer,
            choices=row.options,
            metadata={
                "cot_content": row.cot,
                "subject": row.category,
                "question_id": row.question_id,
            },
        )
        counts[row.category] += 1


def sample_id(question_id: int | str) -> str:
    """Return the id of the sample with this `question_id`."""
    return f"mmlu_pro_{question_id}"


def gold_digest(rows: Iterable[MMLUProRow]) -> str:
    """Return a digest of the lines ``70A``, ``71F``, …: question and gold answer, by question."""
    answers = sorted((row.question_id, row.answer) for row in rows)
    return sha256("".join(f"{n}{answer}\n" for n, answer in answers).encode()).hexdigest()[:16]


def find_edited_golds(rows: Sequence[MMLUProRow]) -> list[Notice]:
    """Warn about complete categories whose gold answers match no published version."""
    by_category: dict[str, list[MMLUProRow]] = {}
    for row in rows:
        by_category.setdefault(row.category, []).append(row)
    edited_categories = [
        name
        for name, category_rows in by_category.items()
        if len(category_rows) == CATEGORIES[name] and gold_digest(category_rows) not in GOLDS[name]
    ]
    return (
        [Notice("golds_edited", {"subsets": ", ".join(edited_categories)})]
        if edited_categories
        else []
    )


def describe_changes(rows: Sequence[MMLUProRow]) -> list[str]:
    """Return a note about the changes made while loading."""
    indented = [row for row in rows if row.indented]
    if not indented:
        return []
    options = sum(len(row.indented) for row in indented)
    gold = sum(row.indented == (LABELS.find(row.answer),) for row in indented)
    return [
        f"leading white space removed from {options} options in {len(indented)} test rows"
        f" ({gold} of them had it before the gold option only)"
    ]


TASKS = tuple((category,) for category in CATEGORIES)
TITLE = "mean of the 14 categories"


@dataclass(kw_only=True, eq=False)
class MMLUProExam(Exam):
    """The test questions of the selected categories, in published order."""

    keeps_answers: bool = True

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        metric = expected_with_guess(self, scores)
        return {"accuracy_expected_with_guess": metric} if metric else {}

    def joint_metrics(
        self, answers: Mapping[str, Sequence[str | None]], targets: Sequence[str]
    ) -> Mapping[str, Mapping[str, Estimate]]:
        """Return the accuracy of the authors' script, which guesses with one stream for both
        readers."""
        if "l1" not in answers or "l2" not in answers:
            return {}
        shares = official_guess_accuracy(answers["l1"], answers["l2"], targets)
        return {
            reader: {OFFICIAL_METRIC: Estimate(share, None, len(targets), title=OFFICIAL_TITLE)}
            for reader, share in shares.items()
        }

    def locate(self, row: Mapping[str, Any]) -> str:
        if "question_id" not in row and isinstance(row.get("id"), str):
            return str(row["id"])
        return sample_id(row["question_id"])


class MMLUProArgs(DatasetArgs):
    """The settings of MMLU-Pro in addition to the usual ones."""

    option_blanks: bool = False
    """Keep the white space that 480 rows begin an option with in the published files. In some
    revisions of the data it marks the gold option, so it is removed by default. The prompt lengths
    that EvalScope publishes are those without it."""


def read_rows(setup: Setup, table: str) -> list[MMLUProRow]:
    """Return the rows of `table` in file order; DataError names the first invalid row."""
    assert isinstance(setup.args, MMLUProArgs)
    folder, as_published = setup.folder, setup.args.option_blanks
    where = folder.name_of(table)
    rows: list[MMLUProRow] = []
    seen_ids: set[int] = set()
    for number, fields in enumerate(folder.rows(table), 1):
        row = read_row(fields, f"{where}, row {number}", as_published=as_published)
        if row.question_id in seen_ids:
            raise DataError(
                "mmlu_pro.id_twice", where=where, number=number, question_id=row.question_id
            )
        seen_ids.add(row.question_id)
        rows.append(row)
    return rows


def manifest_settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """Return the default settings, and whether options keep their white space."""
    assert isinstance(setup.args, MMLUProArgs)
    blanks = {"option_blanks": True} if setup.args.option_blanks else {}
    return default_settings(setup, wording) | blanks


def make_questions(setup: Setup) -> Questions:
    """Return the test questions of the selected categories."""
    rows = [row for row in read_rows(setup, TEST) if row.category in setup.subsets]
    arranged = arrange("mmlu_pro", make_samples(rows), setup.subsets)
    arranged.errata = {sample_id(row.question_id): row.fault for row in rows if row.fault}
    arranged.notes, arranged.warnings = describe_changes(rows), find_edited_golds(rows)
    return arranged


messages.add_folder(Path(__file__).parent / "texts")

MMLU_PRO = Benchmark(
    name="mmlu_pro",
    title="MMLU-Pro",
    about=messages.text_of("about_exam_mmlu_pro", {}),
    aliases=("mmlu-pro",),
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=make_readers("evalscope"),
    subset_names=tuple(CATEGORIES),
    rows=CATEGORIES,
    averages=(Mean("macro_accuracy", TITLE, TASKS), Mean("macro_14", TITLE, TASKS)),
    golden=GOLDEN,
    exam=MMLUProExam,
    questions=make_questions,
    examples=lambda setup: make_samples(read_rows(setup, POOL)),
    settings=manifest_settings,
    Args=MMLUProArgs,
    shot_key="{seed}:{name}:{subset}",
)
"""MMLU-Pro (Wang et al. 2024): up to ten options, reasoning before the letter."""
