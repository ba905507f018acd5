"""Reading MMLU-Pro: the test questions and the pool of worked examples, checked row by row.

Two things differ from the files. Leading white space of options is removed, because in some
revisions it marks the gold option. And the answer is the letter, not the index, because they
disagree in one row.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks.choices import check_choices
from keju.errors import DataError, Notice, did_you_mean
from keju.files import parse_json
from keju.sources.folder import HubRepo, Layout
from keju.types import LABELS, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

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


def read_rows(folder: DataFolder, table: str, *, as_published: bool = False) -> list[Row]:
    """The rows of `table` in file order; DataError names the first one that is wrong.

    With `as_published` the options keep their leading white space.
    """
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


def read_row(raw_fields: Mapping[str, Any], where: str, *, as_published: bool = False) -> Row:
    """One row, checked; the numbers and the list that CSV keeps as text get their own types."""
    fields = dict(raw_fields)
    for name in ("question_id", "answer_index"):
        value = fields.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            fields[name] = int(value)
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
