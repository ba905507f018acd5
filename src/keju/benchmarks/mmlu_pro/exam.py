"""MMLU-Pro as a benchmark: its test questions and worked examples, checked row by row, and what its
exam knows beyond that.

Two things differ from the files. Leading white space of options is removed, because in some
revisions it marks the gold option. And the answer is the letter, not the index, because they
disagree in one row.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks.base import Benchmark, Exam, Mean, Scores
from keju.benchmarks.choices import check_choices
from keju.benchmarks.kit import Questions, Setup, arrange, usual_settings
from keju.benchmarks.mmlu_pro.facts import (
    GOLDEN,
    OFFICIAL_METRIC,
    OFFICIAL_TITLE,
    TOOL_TASKS,
    expected_with_guess,
    official_guess_accuracy,
)
from keju.benchmarks.mmlu_pro.protocols import PROTOCOLS
from keju.benchmarks.mmlu_pro.readers import readers_of
from keju.benchmarks.mmlu_pro.sentences import ENGLISH
from keju.benchmarks.wording import Wording
from keju.bounds import parse_whole_number
from keju.config import DatasetArgs
from keju.errors import DataError, Notice, did_you_mean
from keju.files import parse_json
from keju.sources.folder import HubRepo, Layout
from keju.stats.estimate import Estimate
from keju.types import LABELS, Sample

if TYPE_CHECKING:
    pass


CATEGORIES: dict[str, int] = {
    "computer science": 410,
    "math": 1351,
    "chemistry": 1132,
    "engineering": 969,
    "law": 1101,
    "biology": 717,
    "health": 818,
    "physics": 1299,
    "business": 789,
    "philosophy": 499,
    "economics": 844,
    "other": 924,
    "psychology": 798,
    "history": 381,
}
"""Rows of the test split, in the order of the published tables (EvalScope 1.14)."""

GOLDS: dict[str, str] = {
    "computer science": "16ec1fb640448474",
    "math": "95367c5b42b70adb 6d562b73a67e3f42",
    "chemistry": "a412570761c750a7 3533848041464734",
    "engineering": "134641ba0d404a17 d357da3ffdb0bb32",
    "law": "e9e0e2dda3eb428d e33a5203a3731fd3",
    "biology": "8379a7d45fb2b0fa 573504a09fd4aad6",
    "health": "79d194ac43de08ba b1749671252571cb",
    "physics": "d270031bbaed2eb0",
    "business": "9d35c17e09aff1cf e167ceec83b2e9be",
    "philosophy": "4f50e9979de7cc29",
    "economics": "28aef9c47f891698 d5dfe61a726a7b1c",
    "other": "ca4cb28be165e86d",
    "psychology": "cb201ea9ce298313 146f644902abfa07",
    "history": "e7d3fd3fe9b6c929",
}
"""Digests of the gold answers of each category (see `gold_digest`), as published today and before
some of them were mended."""

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
"""The official Parquet files have changed several times: rows and gold answers are compared."""


class Row(NamedTuple):
    """One row of a file, checked."""

    question_id: int
    question: str
    options: tuple[str, ...]
    """Without leading white space, unless it is asked for."""
    answer: str
    cot: str
    """The rationale with which the pool answers; empty in the test split."""
    category: str
    indented: tuple[int, ...]
    """The options from which leading white space was removed."""
    fault: str
    """What is known to be wrong with the row; empty for nearly all."""


def read_row(raw_fields: Mapping[str, Any], where: str, *, as_published: bool = False) -> Row:
    """One row, checked; the numbers and the list that CSV keeps as text get their own types."""
    fields = dict(raw_fields)
    for name in ("question_id", "answer_index"):
        value = fields.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            fields[name] = parse_whole_number(value)
    if isinstance(fields.get("options"), str):
        with contextlib.suppress(DataError):  # else refused as the text that it is
            fields["options"] = parse_json(fields["options"].encode())
    question_id = _field(fields, "question_id", int, where)
    raw = _field(fields, "options", list, where)
    if not all(isinstance(option, str) for option in raw):
        raise DataError("mmlu_pro.options", where=where)
    options = tuple(raw if as_published else (option.lstrip() for option in raw))
    answer = _field(fields, "answer", str, where)
    if not answer.strip():
        raise DataError("mmlu_pro.empty_answer", where=where)
    check_choices(options, answer, where)
    question = _field(fields, "question", str, where)
    if not question.strip():
        raise DataError("mmlu_pro.empty_question", where=where)
    category = _field(fields, "category", str, where).lower()
    if category not in CATEGORIES:
        raise DataError(
            "mmlu_pro.category",
            where=where,
            category=category,
            hint=did_you_mean(category, CATEGORIES),
        )
    return Row(
        question_id=question_id,
        question=question,
        options=options,
        answer=answer,
        cot=fields.get("cot_content") or "",
        category=category,
        indented=tuple(i for i, option in enumerate(raw) if option != options[i]),
        fault=_fault(options, answer, fields.get("answer_index")),
    )


def _field(fields: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        fault = "is missing" if value is None else f"is {type(value).__name__}"
        raise DataError("mmlu_pro.field", where=where, name=name, kind=kind.__name__, fault=fault)
    return value


def _fault(options: Sequence[str], answer: str, index: Any) -> str:
    if isinstance(index, int) and answer and LABELS.index(answer) != index:
        return f"the answer is {answer} but answer_index is {index}; the letter counts"
    for option, count in Counter(options).items():
        if count > 1:
            same = [LABELS[i] for i, other in enumerate(options) if other == option]
            return f"options {' and '.join(same)} are identical"
    return ""


def samples(rows: Iterable[Row]) -> Iterator[Sample]:
    """The rows as samples, numbered inside their category."""
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
    """The id of the sample that a row's `question_id` names."""
    return f"mmlu_pro_{question_id}"


def gold_digest(rows: Iterable[Row]) -> str:
    """A digest of the lines ``70A``, ``71F``, …: question and gold answer, by question."""
    answers = sorted((row.question_id, row.answer) for row in rows)
    return sha256("".join(f"{n}{answer}\n" for n, answer in answers).encode()).hexdigest()[:16]


def warnings_on(rows: Sequence[Row]) -> list[Notice]:
    """Categories with all their rows whose gold answers nobody has published."""
    by_category: dict[str, list[Row]] = {}
    for row in rows:
        by_category.setdefault(row.category, []).append(row)
    strange = [
        name
        for name, own in by_category.items()
        if len(own) == CATEGORIES[name] and gold_digest(own) not in GOLDS[name].split()
    ]
    return [Notice("golds_edited", {"subsets": ", ".join(strange)})] if strange else []


def notes_on(rows: Sequence[Row]) -> list[str]:
    """What loading changed."""
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
    """The test questions of the chosen categories, in published order."""

    keeps_answers: bool = True

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        metric = expected_with_guess(self, scores)
        return {"accuracy_expected_with_guess": metric} if metric else {}

    def joint_metrics(
        self, answers: Mapping[str, Sequence[str | None]], targets: Sequence[str]
    ) -> Mapping[str, Mapping[str, Estimate]]:
        """The accuracy of the authors' scoring script, which guesses with one stream for both."""
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
    """What MMLU-Pro can be asked for beside the usual settings."""

    option_blanks: bool = False
    """Keep the white space that 480 rows begin an option with in the published files. In some
    revisions of the data it marks the gold option, so it is removed by default. The prompt lengths
    that EvalScope publishes are those without it."""


def read_rows(setup: Setup, table: str) -> list[Row]:
    """The rows of `table` in file order; DataError names the first one that is wrong."""
    assert isinstance(setup.args, MMLUProArgs)
    folder, as_published = setup.folder, setup.args.option_blanks
    where = folder.name_of(table)
    rows: list[Row] = []
    seen: set[int] = set()
    for number, fields in enumerate(folder.rows(table), 1):
        row = read_row(fields, f"{where}, row {number}", as_published=as_published)
        if row.question_id in seen:
            raise DataError(
                "mmlu_pro.id_twice", where=where, number=number, question_id=row.question_id
            )
        seen.add(row.question_id)
        rows.append(row)
    return rows


def settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """The usual settings, and whether options keep their white space."""
    assert isinstance(setup.args, MMLUProArgs)
    blanks = {"option_blanks": True} if setup.args.option_blanks else {}
    return usual_settings(setup, wording) | blanks


def questions(setup: Setup) -> Questions:
    """The test questions of the chosen categories."""
    rows = [row for row in read_rows(setup, TEST) if row.category in setup.subsets]
    made = arrange("mmlu_pro", samples(rows), setup.subsets)
    made.errata = {sample_id(row.question_id): row.fault for row in rows if row.fault}
    made.notes, made.warnings = notes_on(rows), warnings_on(rows)
    return made


MMLU_PRO = Benchmark(
    name="mmlu_pro",
    title="MMLU-Pro",
    about=ENGLISH["about_exam_mmlu_pro"],
    aliases=("mmlu-pro",),
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=readers_of("evalscope"),
    subset_names=tuple(CATEGORIES),
    rows=CATEGORIES,
    averages=(Mean("macro_accuracy", TITLE, TASKS), Mean("macro_14", TITLE, TASKS)),
    golden=GOLDEN,
    exam=MMLUProExam,
    questions=questions,
    examples=lambda setup: samples(read_rows(setup, POOL)),
    settings=settings,
    Args=MMLUProArgs,
    shot_key="{seed}:{name}:{subset}",
)
"""MMLU-Pro (Wang et al. 2024): up to ten options, reasoning before the letter."""
