"""C-Eval: its settings, its tables, and its exam.

The tables are `{dev,val,test}/<subject>_<split>.csv`, or the layout of a hub. Text is kept as
published, including line breaks (some of them CRLF). A missing file, column or answer is an error.
A row count that differs from the published one is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from keju import messages
from keju.benchmarks.base import Benchmark, Exam
from keju.benchmarks.ceval.metadata import (
    AVERAGES,
    GOLDEN,
    LAYOUT,
    MODES,
    OPTIONS,
    SUBJECT_ALIASES,
    SUBJECTS,
    TOOL_TASKS,
    Split,
    check_mapping,
    find_references,
)
from keju.benchmarks.ceval.protocols import (
    PROTOCOLS,
    CEvalProtocol,
    DecodeChoice,
    Mode,
    PromptForm,
)
from keju.benchmarks.ceval.readers import make_readers
from keju.benchmarks.kit import (
    Questions,
    Setup,
    arrange,
    choose_protocol,
    count_rows,
    make_count_warnings,
)
from keju.benchmarks.metadata import Submission
from keju.benchmarks.prepare import prepare
from keju.bounds import parse_whole_number
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError
from keju.types import Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

MAPPING = "subject_mapping.json"


class CEvalArgs(DatasetArgs):
    """Settings of C-Eval."""

    # The reader of the official code depends on the number of worked examples.
    asking: ClassVar[frozenset[str]] = DatasetArgs.asking - {"few_shot_num"} | {"system_role"}

    split: Literal["val", "test", "dev"] = "val"
    """Which questions: val has labels, test may not; dev holds the worked examples."""
    mode: Mode | None = None
    """``answer-only`` or ``cot``; the protocol's own by default."""
    form: PromptForm | None = None
    """``base`` (a text to continue) or ``chat``; the protocol's own by default."""
    decode: DecodeChoice = "auto"
    """``labels``: the likeliest of A to D; ``generate``: free text."""
    system_role: bool = True
    """False for a model without a system role: its text opens the first user message."""


class CEvalExam(Exam):
    """One split of C-Eval under one protocol."""

    def locate(self, row: Mapping[str, Any]) -> str:
        """Return the id for ``subject`` (or ``subset``) and ``id`` (or ``index``), or a full sample
        id."""
        subject = row.get("subject", row.get("subset"))
        if subject is None:
            if isinstance(row.get("id"), str):
                return str(row["id"])
            raise KeyError("subject")
        key = "id" if "id" in row else "index"
        number = row[key]
        if isinstance(number, str) and number.startswith(f"{self.benchmark}_"):
            return number
        if isinstance(number, str):
            number = parse_whole_number(number)
        if isinstance(number, bool) or not isinstance(number, int):
            raise DataError("row_key_not_number", key=key)
        name = self.subset_named(subject) or subject
        return sample_id(name, self.settings["split"], number)

    def subset_named(self, name: Any) -> str | None:
        return CEVAL.subset_name(str(name))


def sample_id(subject: str, split: Split, number: int | str) -> str:
    """Return the id of a question, which is unique over subjects and splits."""
    return f"ceval_{subject}_{split}_{number}"


def make(args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
    """Fix the protocol's axes, then prepare the exam in the usual way."""
    if not isinstance(args, CEvalArgs):
        args = CEvalArgs(**args.model_dump(exclude_unset=True))
    if args.split == "dev":
        raise ConfigError("ceval.dev")
    published = choose_protocol(CEVAL, args.protocol)
    assert isinstance(published, CEvalProtocol)
    protocol = published.fix(
        mode=args.mode, form=args.form, decode=args.decode, shots=args.few_shot_num
    )
    protocol = replace(protocol, readers=make_readers(protocol))
    prepared_args = args
    if not args.system_role:
        protocol, prepared_args = drop_system_role(protocol, args)
    exam = prepare(CEVAL, prepared_args, folder, seed, protocol)
    if protocol.is_answer_only:
        exam.references = find_references(args.split, protocol.shots)
    templates = ("system_prompt", "prompt_template", "few_shot_prompt_template")
    exam.settings = {
        "split": args.split,
        "mode": protocol.modes[0],
        "form": protocol.forms[0],
        "decode": protocol.decode,
        "few_shot_num": protocol.shots,
        "few_shot_random": args.few_shot_random,
        "shuffle_choices": args.shuffle_choices,
        "system_role": args.system_role,
    } | {name: value for name in templates if (value := getattr(args, name)) is not None}
    return exam


def drop_system_role(protocol: CEvalProtocol, args: CEvalArgs) -> tuple[CEvalProtocol, CEvalArgs]:
    """Move the text of the system message to the beginning of the first user message.

    The official chat already has its head there, so its system message is dropped.
    """
    if protocol.is_base:
        raise ConfigError("ceval.system_role_base")
    wording, system = protocol.wording, args.system_prompt
    assert wording is not None
    if not (wording.system if system is None else system):
        raise ConfigError("ceval.system_role", protocol=protocol.name)
    opening = "{opening}\n\n"
    if system is None:
        opening = "" if wording.bare else f"{wording.system}\n\n"
    wording = replace(
        wording,
        bare=opening + wording.bare,
        head=opening + wording.head,
        constants={**wording.constants, "opening": system or ""},
    )
    settings_update = {"system_prompt": ""}
    if args.few_shot_prompt_template:
        settings_update["few_shot_prompt_template"] = opening + args.few_shot_prompt_template
    return replace(protocol, wording=wording), args.model_copy(update=settings_update)


# --- data --------------------------------------------------------------------------------------


def make_questions(setup: Setup) -> Questions:
    """Return the questions of the selected split and subjects."""
    args, folder = setup.args, setup.folder
    assert isinstance(args, CEvalArgs)
    if folder.exists(MAPPING):
        check_mapping(folder.json(MAPPING), str(folder.path / MAPPING))
    rows = (row for name in setup.subsets for row in read_rows(folder, name, args.split))
    arranged = arrange("ceval", rows, setup.subsets)
    arranged.subsets = [replace(s, title=SUBJECTS[s.name].chinese) for s in arranged.subsets]
    counts = count_rows(arranged.subsets, {s.name: s.rows(args.split) for s in SUBJECTS.values()})
    notes = [
        f"{count.name}: {count.rows} {args.split} rows, published {count.published}"
        for count in counts
        if count.differs
    ]
    total, unlabelled = len(arranged.samples), sum(not sample.target for sample in arranged.samples)
    if unlabelled == total:
        notes.append("no labels: no score, only outcome counts and predictions")
    elif unlabelled:
        notes.append(f"{unlabelled} of {total} rows have no label: no score for them")
    return replace(
        arranged, version=args.split, notes=tuple(notes), warnings=make_count_warnings(counts)
    )


def load_examples(setup: Setup) -> Iterator[Sample]:
    """Yield the worked examples of the selected subjects."""
    for name in setup.subsets:
        yield from read_rows(setup.folder, name, "dev")


def read_rows(folder: DataFolder, subject: str, split: Split) -> list[Sample]:
    """Return the rows of one subject in file order; only the test split may lack answers."""
    table = f"{split}/{subject}"
    if not folder.has(table):
        missing = folder.path / split / f"{subject}_{split}.csv"
        raise DataError("ceval.missing", missing=missing, subject=subject)
    origin = folder.name_of(table)
    rows: dict[int, Sample] = {}
    for number, fields in enumerate(folder.rows(table), 1):
        where = f"{origin}, row {number}"
        row = read_row(fields, subject, split, where)
        if row.index in rows:
            raise DataError("ceval.id_twice", where=where, index=row.index)
        rows[row.index] = row
    if not rows:
        raise DataError("ceval.no_rows", origin=origin)
    return list(rows.values())


REQUIRED_COLUMNS: Mapping[Split, tuple[str, ...]] = {
    "test": (),
    "val": ("answer",),
    "dev": ("answer", "explanation"),
}
"""The columns that the rows of a split must have next to the question and its options."""


def read_row(fields: Mapping[str, Any], subject: str, split: Split, where: str) -> Sample:
    """Return one checked row."""
    needed = ["id", "question", *OPTIONS, *REQUIRED_COLUMNS[split]]
    missing_columns = [column for column in needed if fields.get(column) is None]
    if missing_columns:
        raise DataError("ceval.no_value", where=where, names=missing_columns)
    text = {column: str(value) for column, value in fields.items() if value is not None}
    if parse_whole_number(text["id"]) is None:
        raise DataError("ceval.id_not_whole", where=where, id=text["id"])
    if not text["question"].strip():
        raise DataError("ceval.empty_question", where=where)
    answer = text.get("answer", "").strip()
    if (answer or split != "test") and (len(answer) != 1 or answer not in OPTIONS):
        raise DataError("ceval.answer", where=where, answer=answer)
    row = int(text["id"])
    return Sample(
        id=sample_id(subject, split, row),
        subset=subject,
        index=row,
        text=text["question"],
        target=answer,
        choices=tuple(text[label] for label in OPTIONS),
        metadata={"id": row, "explanation": text.get("explanation", ""), "subject": subject},
    )


def find_fault(sample: Sample) -> str | None:
    """Return the known error of a row: identical options."""
    for option in sample.choices:
        equal_labels = [OPTIONS[i] for i, text in enumerate(sample.choices) if text == option]
        if len(equal_labels) > 1:
            return f"options {' and '.join(equal_labels)} are identical"
    return None


PREDICTION_COLUMN = "模型预测"
"""The column of predictions, as the tutorial calls it."""


# --- submission --------------------------------------------------------------------------------


def make_submission(
    exam: Exam,
    answers: Mapping[str, str | None],
    fill: str | None = None,
    *,
    partial: bool = False,
) -> Submission:
    """Make the file for the C-Eval site: a letter for every question of the test split.

    The official form is ``{subject: {"0": "A", "1": "B", …}}``: subjects by file name, all 52 of
    them, ids as strings. The site does not document how it treats an empty value. So rows without a
    letter are listed, and filled only with a letter that the user names.

    `answers` holds labels of the displayed options, by sample id.

    A sample with the answer None was asked and not understood: it becomes ``""``, or `fill`. A
    sample that was never asked makes the submission incomplete, which is an error unless `partial`.
    Labels of permuted options are converted to the published ones.
    """
    if fill is not None and (len(fill) != 1 or fill not in OPTIONS):
        raise ConfigError("ceval.fill", fill=fill)
    split = exam.settings.get("split")
    if exam.benchmark != "ceval" or split != "test":
        raise ConfigError(
            f"a C-Eval submission is made of the test split, this run is of {exam.benchmark} "
            f"{split or ''}".rstrip()
            + "; run with split: test"
        )
    if not partial:
        _check_complete(exam, answers)
    document: dict[str, dict[int, str]] = {}
    missing: list[str] = []
    for sample in exam.samples:
        letter = _published_letter(sample, answers.get(sample.id))
        document.setdefault(sample.subset, {})[sample.index] = letter or fill or ""
        if not letter:
            missing.append(sample.id)
    document_in_order = {
        name: {str(number): letter for number, letter in sorted(document[name].items())}
        for name in SUBJECTS
        if name in document
    }
    return Submission(document_in_order, missing)


def _check_complete(exam: Exam, answers: Mapping[str, str | None]) -> None:
    """Raise DataError if a question of the test split is not in the exam or was never asked."""
    sizes = {subset.name: len(subset) for subset in exam.subsets}
    for name, subject in SUBJECTS.items():
        if (size := sizes.get(name, 0)) != subject.test:
            values = {"n": len(SUBJECTS), "name": name, "found": size, "test": subject.test}
            raise DataError("ceval.submission_subjects", **values)
    unasked_ids = [sample.id for sample in exam.samples if sample.id not in answers]
    if unasked_ids:
        n = len(exam.samples)
        answered = n - len(unasked_ids)
        raise DataError("ceval.submission_unasked", answered=answered, n=n, first=unasked_ids[0])


def _published_letter(sample: Sample, label: str | None) -> str:
    """Return the published letter of the option displayed as `label`; empty if there is none."""
    if not label or label not in sample.labels:
        return ""
    place = sample.labels.index(label)
    return OPTIONS[sample.order[place] if sample.order else place]


def make_prediction_files(
    exam: Exam, answers: Mapping[str, str | None]
) -> dict[str, list[list[str]]]:
    """Return the questions of each subject like its file, with the tutorial's prediction column.

    The cell of a question without a readable answer is empty. Labels of permuted options are
    converted to the published ones, and the options are in published order.
    """
    files: dict[str, list[list[str]]] = {}
    split = exam.settings.get("split", "")
    for sample in exam.samples:
        rows = files.setdefault(
            f"{sample.subset}_{split}.csv", [["id", "question", *OPTIONS, PREDICTION_COLUMN]]
        )
        order = sample.order or range(len(sample.choices))
        published = dict(zip(order, sample.choices, strict=True))
        letter = _published_letter(sample, answers.get(sample.id))
        choices = [published[number] for number in range(len(sample.choices))]
        rows.append([str(sample.index), sample.text, *choices, letter])
    return files


messages.add_folder(Path(__file__).parent / "texts")

CEVAL = Benchmark(
    name="ceval",
    title="C-Eval",
    about=messages.text_of("about_exam_ceval", {}),
    aliases=("c-eval",),
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    golden=GOLDEN,
    submission=make_submission,
    prediction_files=make_prediction_files,
    protocols=PROTOCOLS,
    readers=make_readers(PROTOCOLS["evalscope"].fix()),
    questions=make_questions,
    examples=load_examples,
    faults=find_fault,
    averages=AVERAGES,
    subset_names=tuple(SUBJECTS),
    subset_aliases=SUBJECT_ALIASES,
    subset_about={name: f"{s.chinese} ({s.category})" for name, s in SUBJECTS.items()},
    modes=MODES,
    exam=CEvalExam,
    Args=CEvalArgs,
    make=make,
)
"""C-Eval (Huang et al. 2023): 13,948 questions of 52 Chinese examinations."""
