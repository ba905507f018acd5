"""``keju show``: one question as the model gets it, or the content of a stored run."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import (
    CommandOutput,
    load_exam,
    note,
    note_step,
    open_stored_run,
    print_lines,
    remark,
)
from keju.errors import (
    ConfigError,
    KejuError,
    TranslatableText,
    UsageError,
    did_you_mean,
    near_hint,
)
from keju.messages import foreign, label_text

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.reporting.format import Labels
    from keju.runs.run import Run
    from keju.types import Outcome, Record, Sample

LISTED = 10
"""Questions of a run that are listed if none is named."""
ANSWER_WIDTH = 40
"""Characters of an answer in that list."""


@command(
    "show",
    "keju show bbh",
    "keju show bbh --subset snarks --index 3 --protocol paper",
    "keju show mmlu_pro --subset 'computer science' --json",
    "keju show tuesday",
    "keju show runs/tuesday --sample bbh_snarks_3",
    "keju show bbh --lengths",
    "keju show ceval --prompts -o lib_prompt",
    forms="lengths prompts",
    sets="protocol dataset_args data_dir seed",
)
def show(
    name: str,
    subset: str | None,
    index: int,
    sample_id: str | None,
    arm: str | None,
    work_dir: str | None,
    **settings: Any,
) -> CommandOutput:
    """Show one question of a benchmark: the prompt as it is sent, the options, the gold answer.

    For a stored run: its exams, the outcomes of its replies, and some of their ids, wrong ones
    first. With --sample: one question with its prompt, its replies, and the extracted answers.
    """
    if sample_id is not None:
        return show_reply(name, sample_id, work_dir, settings.get("data_dir"), arm)
    from keju.benchmarks import registry
    from keju.config.load import runs_folder
    from keju.messages import current_language
    from keju.reporting.format import Labels, printable

    if name not in registry.names():
        if (run := _find_run(name, work_dir)) is not None:
            if subset is not None or index or settings.keys() - {"data_dir"}:
                first_id = next((record.id for _, record in run.answers()), "ID")
                raise UsageError("cli_show_needs_sample", name=name, id=first_id)
            return show_run(run, arm)
        _refuse_unknown(name, work_dir)
    elif _find_run(name, work_dir) is not None:
        command_line = f"keju show {shlex.quote(str(runs_folder(work_dir) / name))}"
        remark(label_text("show.exam_wins", name=name, command=command_line))
    exam = load_exam(name, **settings)
    if subset is not None:  # the benchmark may have another name for it
        subset = registry.get(name).subset_name(subset) or subset
    sample = find_sample(exam, subset, index)
    prompt, labels = exam.render(sample), Labels(current_language())
    exam_values = {"exam": exam.benchmark, "protocol": exam.protocol.name}
    lines = [labels("show.exam", id=sample.id, **exam_values), ""]
    if exam.protocol.form == "completion":
        lines += [f"--- {labels('show.continue')} ---", printable(prompt.text)]
    else:
        for message in prompt.messages:
            lines += [f"--- {message.role} ---", printable(message.content)]
    lines += ["---", ""]
    for label, choice in zip(sample.labels, sample.choices, strict=True):
        lines.append(f"{label}  {printable(choice, one_line=True)}")
    lines.append(labels("show.target", target=sample.target or labels("show.unpublished")))
    if sample.id in exam.errata:
        lines.append(labels("show.erratum", text=exam.errata[sample.id]))
    return CommandOutput(exam.describe(sample), lambda: print_lines(*lines))


def _find_run(name: str, work_dir: str | None) -> Run | None:
    """Return the stored run of this name, if there is one."""
    try:
        return open_stored_run(name, work_dir)
    except UsageError:
        return None


def _refuse_unknown(name: str, work_dir: str | None) -> None:
    """Raise ConfigError if `name` is not a benchmark either."""
    from keju.benchmarks import registry
    from keju.config.load import runs_folder

    try:
        registry.get(name)
    except ConfigError as error:
        if error.code != "unknown_benchmark":
            raise
        hint = TranslatableText(
            "nor_a_run", hint=error.values["hint"], folder=runs_folder(work_dir)
        )
        raise ConfigError(error.code, name=name, hint=hint) from None


def find_sample(exam: Exam, name: str | None, index: int) -> Sample:
    """Return the sample at a published position; UsageError names a near subset or the range."""
    if not exam.subsets:
        raise UsageError("no_question_selected", name=exam.benchmark)
    folded = exam.subsets[0].name.casefold() if name is None else name.casefold()
    subset = next(
        (candidate for candidate in exam.subsets if candidate.name.casefold() == folded), None
    )
    if subset is None:
        hint = did_you_mean(str(name), [subset.name for subset in exam.subsets])
        raise UsageError("cli_no_subset", benchmark=exam.benchmark, name=name, hint=hint)
    for position in range(subset.start, subset.stop):
        sample = exam.samples[position]
        if sample.index == index:
            return sample
    raise UsageError("cli_no_question", subset=subset.name, index=index, last=len(subset) - 1)


def _arms_of(run: Run, requested_arm: str | None) -> list[str]:
    """Return the arms of a run; UsageError if the requested arm is not one of them."""
    arms = [each["name"] for each in run.manifest.config.get("arms", ())]
    arms += [arm for exam in run.manifest.benchmarks for arm in exam.samples_of or ()]
    if requested_arm is not None and requested_arm not in arms:
        raise UsageError(
            "cli_no_arm", run=run.id, arm=requested_arm, arms=arms or TranslatableText("no_names")
        )
    return arms


def show_run(run: Run, arm: str | None) -> CommandOutput:
    """Return a run's questions and outcomes, and ids for ``--sample``."""
    from keju.benchmarks.grading import PASS
    from keju.types import ALL_OUTCOMES

    _arms_of(run, arm)
    outcomes: dict[tuple[str, str], Counter[Outcome]] = defaultdict(Counter)
    correct_cut_replies: Counter[tuple[str, str]] = Counter()
    rows_by_outcome: dict[Outcome, list[dict[str, Any]]] = {outcome: [] for outcome in ALL_OUTCOMES}
    for _, record in run.answers():
        if arm not in (None, record.arm) or not record.readings:
            continue
        answer, outcome = record.readings[0].answer.value, record.readings[0].score.outcome
        outcomes[record.bench, record.arm][outcome] += 1
        is_correct = record.readings[0].score.value >= PASS
        correct_cut_replies[record.bench, record.arm] += outcome == "truncated" and is_correct
        if len(outcome_rows := rows_by_outcome[outcome]) < LISTED:
            row: dict[str, Any] = {"id": record.id, "arm": record.arm, "outcome": outcome}
            row |= {"answer": answer, "target": record.target}
            outcome_rows += [row] if row not in outcome_rows else []  # skip repeats of a question
    order = sorted(ALL_OUTCOMES, key=lambda outcome: outcome == "correct")
    manifest = run.manifest
    stored = {exam.name: exam for exam in manifest.benchmarks}
    document = {
        "run": run.id,
        "model": manifest.model,
        "complete": manifest.complete,
        "benchmarks": [
            {
                "name": name,
                "arm": arm_name,
                "protocol": stored[name].protocol.name if name in stored else "",
                "reader": next(iter(stored[name].readers), "") if name in stored else "",
                "outcomes": {
                    outcome: counts[outcome] for outcome in ALL_OUTCOMES if counts[outcome]
                },
                "cut_right": correct_cut_replies[name, arm_name],
            }
            for (name, arm_name), counts in outcomes.items()
        ],
        "samples": [row for outcome in order for row in rows_by_outcome[outcome]][:LISTED],
    }
    return CommandOutput(document, lambda: _show_run(run, document))


def _print_results(run: Run) -> None:
    """Print all results of a run: subsets, readers, intervals. Without its data, print nothing."""
    from keju.reporting.terminal import render_results
    from keju.results.score import current_results

    try:
        results = current_results(run)
    except KejuError as error:
        remark(label_text("show.no_results", problem=error.message))
        return
    render_results(results)


def _show_run(run: Run, document: dict[str, Any]) -> None:
    from keju.messages import current_language
    from keju.reporting.format import Labels, count, describe_outcomes, shorten
    from keju.reporting.table import TableColumn, TerminalScreen
    from keju.runs.run import command_name

    _print_results(run)
    screen, labels = TerminalScreen(), Labels(current_language())
    replies = sum(sum(exam["outcomes"].values()) for exam in document["benchmarks"])
    state = labels("board.complete" if document["complete"] else "board.incomplete")
    values = {"run": run.id, "model": document["model"], "state": state}
    screen.line(labels("show.stored", n=count(replies), **values), style="bold")
    for exam in document["benchmarks"]:
        parts = [exam["name"], *([labels.arm(exam["arm"])] if exam["arm"] else [])]
        parts.append(f"{labels.word('protocol')} {exam['protocol']}")
        parts.append(labels("read_by", reader=exam["reader"]))
        parts += describe_outcomes(exam["outcomes"], labels, cut_right=exam["cut_right"])
        screen.line(" · ".join(parts))
    samples = document["samples"]
    if samples:
        screen.line()
        names = ("id", "arm", "outcome", "answer", "target")
        columns = [
            TableColumn(labels(f"show.column.{name}"), "left", fold=n > 2, id=name == "id")
            for n, name in enumerate(names)
        ]
        rows = [
            [
                row["id"],
                row["arm"],
                labels(f"outcome.{row['outcome']}"),
                *(shorten(row[name] or "", ANSWER_WIDTH) for name in names[3:]),
            ]
            for row in samples
        ]
        screen.table(columns, rows)
    screen.flush()
    if samples:
        note("")
        remaining_count = replies - len(samples)
        words = (
            label_text("show.more", n=remaining_count)
            if remaining_count > 0
            else label_text("show.one")
        )
        sample = shlex.quote(samples[0]["id"])
        note_step(words, f"keju show {command_name(run.folder)} --sample {sample}")


def show_reply(
    name: str, sample_id: str, work_dir: str | None, data_dir: str | None, arm: str | None = None
) -> CommandOutput:
    """Return one stored question with all its valid replies, and its prompt if its data is
    available."""
    import msgspec

    from keju.judges.exam import GRADER as JUDGE
    from keju.messages import current_language
    from keju.reporting.format import Labels

    run = open_stored_run(name, work_dir)
    records = [record for _, record in run.answers() if record.id == sample_id]
    if not records:
        ids = [record.id for _, _, record in run.counting()]
        raise UsageError(
            "cli_no_reply", run=run.id, id=sample_id, hint=_suggest_id(sample_id, ids, run)
        )
    arms = _arms_of(run, arm)
    prompt = _prompt_of(run, records, data_dir, arm)
    records = [record for record in records if arm in (None, record.arm)]
    records.sort(key=lambda record: arms.index(record.arm) if record.arm in arms else -1)
    document: dict[str, Any] = {"run": run.id, "id": sample_id, "prompt": prompt}
    judge = (run.manifest.judge or {}).get("model")
    if any(reading.score.grader == JUDGE for record in records for reading in record.readings):
        document["judge"] = judge
    document["replies"] = [msgspec.to_builtins(record) for record in records]
    labels = Labels(current_language())
    lines = [labels("show.run", id=sample_id, run=run.id), ""]
    for turn in prompt or ():
        lines += [f"--- {turn['role']} ---", turn["content"]]
    for record in records:
        lines += _reply_lines(record, judge, labels)
    return CommandOutput(document, lambda: print_lines(*lines))


def _suggest_id(sample_id: str, ids: list[str], run: Run) -> str:
    """Return the nearest id, or else an example and the command that lists more."""
    from keju.runs.run import command_name

    if (near := near_hint(sample_id, ids)) or not ids:
        return near
    return TranslatableText("reply_ids", command=f"keju show {command_name(run.folder)}", id=ids[0])


def _reply_lines(record: Record, judge: str | None, labels: Labels) -> Iterator[str]:
    """Yield the lines of a reply: its steps, its facts, and its readings."""
    from keju.judges.exam import GRADER as JUDGE
    from keju.reporting.arms import printable_steps

    reply = record.reply
    title = labels("show.reply_n", n=record.epoch + 1) if record.epoch else labels("show.reply")
    title = labels("show.in_arm", title=title, arm=labels.arm(record.arm)) if record.arm else title
    turns = reply.episode.turns if reply.episode is not None else ()
    if reply.reasoning and not turns:
        yield from (f"--- {labels('show.reasoning', title=title)} ---", reply.reasoning)
    yield f"--- {title} ---"
    if reply.episode is not None:
        for step in printable_steps(reply.episode, labels):
            yield from (f"--- {step.title} ---", step.text)
    if not turns or turns[-1].text != reply.text:  # otherwise the last step is the answer
        yield reply.text
    if reply.error is not None:
        problem = foreign(reply.error.message, labels.language)
        kind = labels.get(f"fault.{reply.error.kind}", reply.error.kind)
        yield labels("show.error", kind=kind, problem=problem)
    facts = {"finish": reply.finish or "–", "tokens": reply.usage.output, "seconds": reply.seconds}
    yield from ("---", labels("show.facts", **facts, attempts=1 + len(record.faults)))
    yield labels("show.target", target=record.target or labels("show.unpublished"))
    for reading in record.readings:
        answer, score = reading.answer, reading.score
        outcome, reader = labels(f"outcome.{score.outcome}"), reading.reader
        unread_label = labels("show.nothing", reason=labels.reason(answer.reason))
        answer_text = unread_label if answer.value is None else answer.value
        line = labels(
            "show.read", reader=reader, answer=answer_text, outcome=outcome, score=score.value
        )
        yield labels("show.judged", line=line, judge=judge) if score.grader == JUDGE else line


def _prompt_of(
    run: Run, records: Sequence[Record], data_dir: str | None, arm: str | None
) -> list[dict[str, str]] | None:
    """Return the prompt of these records as turns; None if it is unknown.

    It is unknown if the exam cannot be loaded, or if its data has changed so that the prompt
    differs from the one that the records answer. Prompts of another version or tool have other
    hashes over the same data. Then the current prompt is returned.
    """
    from keju.runs.resume_compat import find_changed_files
    from keju.scores.exams import describe_exams, make_scores

    try:
        jobs = make_scores(run.config(data_dir))
    except KejuError as error:
        remark(label_text("show.no_question", problem=error.message))
        return None
    sample_id, hashes = records[0].id, {record.hash for record in records}
    exams = {record.bench for record in records}
    jobs = [job for job in jobs if job.exam.benchmark in exams and arm in (None, job.arm)]
    requests = [
        job.request(index * job.epochs + epoch)
        for job in jobs
        for index, sample in enumerate(job.exam.samples)
        if sample.id == sample_id
        for epoch in range(job.epochs)
    ]
    matching_request = next((request for request in requests if request.hash in hashes), None)
    if matching_request is None and (
        changed := find_changed_files(run.manifest, describe_exams(jobs))
    ):
        remark(label_text("show.data_changed", file=changed[0]))
        return None
    if (displayed_request := matching_request or next(iter(requests), None)) is None:
        return None
    return [{"role": m.role, "content": m.content} for m in displayed_request.prompt.messages]
