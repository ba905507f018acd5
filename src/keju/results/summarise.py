"""Turn the tallies of a run into its results.

Errors of infrastructure and answers without a grade leave the denominator of every score. They are
counted separately, and the results show the worst and best scores they could lead to.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from keju.benchmarks.grading import GRADED
from keju.benchmarks.samples import mark_as_drawn
from keju.config import Price
from keju.errors import KejuError, Notice
from keju.results.causes import readers_of_form
from keju.results.cuts import CUT_REPLIES, cut_notices, ignored_limit_notices
from keju.results.doubts import declared_names, several_models
from keju.results.metrics import (
    ItemSetScore,
    accuracy_of,
    chance_levels,
    cluster_of,
    join,
    metrics_of,
    read_items,
    read_subset,
)
from keju.results.schema import (
    BEST,
    LISTED,
    NO_GOLD,
    SCHEMA,
    WITHOUT_JUDGE,
    WORST,
    ErrataCounts,
    ErrorCounts,
    JudgeReport,
    Metric,
    ResultEntry,
    Results,
    SubsetRow,
    Timing,
    UsageTotals,
)
from keju.runs.manifest import Manifest, ManifestFile
from keju.runs.run import command_name, missing_notices
from keju.scores.exam_scores import ExamScores
from keju.stats.estimate import FEW_QUESTIONS, FEWEST
from keju.stats.intervals import FEW_CLUSTERS, quantile
from keju.types import UNGRADED, Fault

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.judges.stage import JudgeStage
    from keju.scores.tally import Tally

WARN_ABOVE = 0.01
"""A result has a warning if more than this share of replies is truncated or unparsed."""
MUCH_OUTSIDE = 0.5
"""A result has a warning if more than this share of the probability is outside the labels."""
NOISE, A_POINT = 0.05, 0.01
"""Two readers of the same replies differ below this p, or from this difference on."""
QUANTILE_SAMPLE = 100_000
"""Quantiles of latency are taken over at most this many units."""


def build_results(
    jobs: Sequence[ExamScores],
    file: ManifestFile,
    stop: KejuError | None,
    stage: JudgeStage | None = None,
    notices: Sequence[Notice] = (),
) -> Results:
    """Return the results of a run from the tallies of its jobs; `notices` are added to each entry.

    Notices of a solver are added only to the entries of its arm.
    """
    price = file.manifest.price
    entries = [
        entry.with_notices([*notices, *_solver_notices(job, file)]).told_of(
            command_name(file.home), alone=len(file.manifest.benchmarks) == 1
        )
        for job in jobs
        for entry in entries_of(
            job,
            seconds=file.seconds,
            stage=stage,
            price=price,
            tools=tools_of(file.manifest, job),
            declared=declared_names(file.manifest),
            asked_by_keju=file.manifest.imported is not True,
        )
    ]
    return results_of(
        file.manifest,
        file.home,
        jobs,
        entries,
        complete=stop is None,
        stopped="" if stop is None else str(stop),
        stop=None if stop is None else stop.notice,
    )


def results_of(
    manifest: Manifest,
    folder: Path,
    jobs: Sequence[ExamScores],
    entries: Sequence[ResultEntry],
    **further_fields: Any,
) -> Results:
    """Return the results of a run, built from its entries; `further_fields` are added.

    The results are self-contained: they include the time, the version, the folder and the settings.
    """
    if any(job.arm for job in jobs):
        from keju.results.compare import compare_arms
        from keju.results.difficulty import curves_of

        further_fields["comparisons"] = tuple(
            compare_arms(jobs, manifest.price, command_name(folder))
        )
        further_fields["curves"] = tuple(curves_of(entries))
    stored = [session.endpoints or () for session in manifest.sessions]
    is_group = any(len(endpoints) > 1 for endpoints in stored)
    if is_group or any(endpoint.odd_wait for endpoints in stored for endpoint in endpoints):
        from keju.results.endpoints import endpoint_notices, endpoints_of

        uses = endpoints_of(manifest)
        if is_group:
            further_fields["endpoints"] = uses
        entries = [entry.with_notices([*endpoint_notices(uses)]) for entry in entries]
    return Results(
        schema=SCHEMA,
        run=manifest.run,
        model=manifest.model,
        benchmarks=tuple(entries),
        created=manifest.created,
        version=metadata.version("keju"),
        folder=str(folder),
        settings=manifest.config,
        **further_fields,
    )


def _solver_notices(job: ExamScores, file: ManifestFile) -> Iterator[Notice]:
    """Yield notices about an arm with tools that do not depend on its replies."""
    yield from job.session_notices
    if file.interrupted_episodes and tools_of(file.manifest, job):
        yield Notice("episodes_broken_off", {"episodes": file.interrupted_episodes})


def tools_of(manifest: Manifest, job: ExamScores) -> Mapping[str, Any]:
    """Return the tools of a job's arm from a manifest, and whether the arm is a placebo."""
    arms: Mapping[str, Mapping[str, Any]] = manifest.arms or {}
    stubs = [arm["name"] for arm in manifest.config.get("arms", ()) if arm.get("stub_tools")]
    return {**arms.get(job.arm, {}), **({"placebo": True} if job.arm in stubs else {})}


def entries_of(
    job: ExamScores,
    *,
    seconds: float = 0.0,
    secondary_as_metric: bool = True,
    stage: JudgeStage | None = None,
    price: Price | None = None,
    tools: Mapping[str, Any] | None = None,
    declared: Collection[str] = (),
    asked_by_keju: bool = False,
) -> list[ResultEntry]:
    """Return one entry for each reader.

    With `secondary_as_metric`, the second reader's accuracy becomes a metric of the first entry.
    `asked_by_keju` says that Keju asked for the replies, so that the job's settings were in effect.

    The headline is the accuracy by the protocol's reader. The accuracy by the secondary reader
    (nearly always `robust`) is printed next to it, so that a misread format is not mistaken for a
    lack of ability.
    """
    meter = job.meter
    cost = meter.cost(price)
    usage = UsageTotals(
        meter.requests,
        meter.input,
        meter.output,
        meter.cached,
        meter.reasoning,
        meter.written or msgspec.UNSET,
        retries=meter.requests - meter.replies,
        cost=msgspec.UNSET if cost is None else round(cost, 6),
    )
    step = max(1, len(job.seconds) // QUANTILE_SAMPLE)
    spans = array("f", sorted(value for value in job.seconds[::step] if value > 0))
    quantiles = [
        round(quantile(spans, fraction) or 0.0, 4) for fraction in (0.5, 0.95, 1.0) if spans
    ]
    timing = Timing(round(seconds, 3), *quantiles)
    early = job.stopping is not None and job.stopping.early
    exam = mark_as_drawn(job.exam) if early else job.exam
    faults = [*job.checks.notices(check_model=asked_by_keju, declared=declared)]
    entries = []
    for place, (reader, tally) in enumerate(zip(job.readers, job.tallies, strict=True)):
        entry = summarise(exam, tally, reader=reader.name, usage=usage, timing=timing)
        if asked_by_keju:
            entry = replace(entry, notices=(), warnings=()).with_notices(
                _explain_cuts(job, tally, entry)
            )
        entry = replace(entry, stopping=job.stopping, arm=job.arm)
        if job.uses:
            from keju.results.tool_stats import tool_notices, tool_stats

            stats = tool_stats(job, tools or {})
            entry = replace(entry, tools=stats).with_notices(tool_notices(job, stats, tools or {}))
        if kinds := Counter(fault.kind for fault in job.errors.values()).most_common():
            examples = examples_of(job.errors.values())
            entry = replace(entry, errors=ErrorCounts(dict(kinds), examples[kinds[0][0]], examples))
        if job.sampling.temperature == 0 and job.epochs > 1 and job.model:
            entry = entry.with_notices([Notice("repeats_at_temperature_0")])
        reply_count = entry.questions_with_reply * job.epochs
        if reply_count and sum(job.unlabelled_mass) > MUCH_OUTSIDE * reply_count:
            share = sum(job.unlabelled_mass) / reply_count
            entry = entry.with_notices([Notice("probability_outside_labels", {"share": share})])
        entry = entry.with_notices(_run_notices(job, declared))
        entry = entry.with_notices(faults)
        judgement = None
        if stage is not None:
            deff = entry.metrics["accuracy"].deff
            judgement = stage.judgement(job, place, deff if isinstance(deff, float) else 1.0)
        if judgement is not None:
            entry = entry.with_notices(judgement.notices).with_metrics(judgement.metrics)
            entry = replace(entry, judge=msgspec.convert(judgement.judge, JudgeReport))
            if judgement.by_rule is not None:
                accuracy_by_rule = accuracy_of(job.exam, judgement.by_rule)
                title = f"accuracy by the reader '{reader.name}' alone, without the judge"
                entry = entry.with_metrics({WITHOUT_JUDGE: replace(accuracy_by_rule, title=title)})
        elif reader.is_model_rule:
            entry = entry.with_notices([Notice("equality_by_rule", {"reader": reader.name})])
        entries.append(entry)
    for place in range(1, len(entries)):
        entries[0] = entries[0].with_notices(_reader_difference_notices(job, place))
    if no_answer_notice := _no_right_answer_notice(job):
        entries[0] = entries[0].with_first_notice(no_answer_notice)
    name = job.exam.beside
    if secondary_as_metric and len(entries) == 2 and entries[1].reader == name:
        headline_entry, robust = entries
        secondary_accuracy = replace(
            robust.metrics["accuracy"], title=f"accuracy as read by '{name}'"
        )
        entry = replace(headline_entry, signs=robust.signs, order_decides=robust.order_decides)
        return [entry.with_metrics({f"accuracy_{name}": secondary_accuracy})]
    return entries


def _explain_cuts(job: ExamScores, tally: Tally, entry: ResultEntry) -> Iterator[Notice]:
    """Yield the notices of an entry; the notice of cut replies names the setting that cut them."""
    for notice in entry.notices:
        if notice.code == CUT_REPLIES:
            yield from cut_notices(job, tally, notice)
        else:
            yield notice
    yield from ignored_limit_notices(job)


def examples_of(faults: Iterable[Fault]) -> dict[str, str]:
    """Return the message of the first fault of each kind."""
    examples: dict[str, str] = {}
    for fault in faults:
        examples.setdefault(fault.kind, fault.message)
    return examples


def _no_right_answer_notice(job: ExamScores) -> Notice | None:
    """Return a notice if the headline's reader finds no right answer and another one does.

    Then replies have another form than the reader expects: the score says nothing about the model.
    """
    rights = [sum(value > 0 for value in tally.values) for tally in job.tallies]
    if not rights or rights[0] or not any(rights):
        return None
    place = max(range(len(rights)), key=rights.__getitem__)
    values = {
        "reader": job.readers[0].name,
        "other": job.readers[place].name,
        "right": rights[place],
        "whole": job.tallies[0].done,
    }
    return Notice("reader_finds_nothing", values)


def _reader_difference_notices(job: ExamScores, place: int) -> Iterator[Notice]:
    """Yield a notice if the headline depends on its reader: the one at `place` scores differently.

    This is the case if the replies that only one of them finds right are unevenly distributed
    beyond chance, or if the two scores differ by a percentage point. A reader that does not know
    the protocol's form of answers is ignored if the headline's reader knows it.
    """
    pair = job.readers[0], job.readers[place]
    if readers_of_form(job.exam, pair) == [pair[0].name]:
        return
    exam, tallies = job.exam, (job.tallies[0], job.tallies[place])
    is_independent = job.epochs == 1 and not exam.clustered
    pairs: list[tuple[float, float]] = []
    groups: list[str] = []
    for unit, codes in enumerate(zip(*(tally.outcomes for tally in tallies), strict=True)):
        if all(code in GRADED for code in codes):
            pairs.append((tallies[0].values[unit], tallies[1].values[unit]))
            if not is_independent:
                position = unit // job.epochs
                groups.append(cluster_of(exam, position) or str(position))
    if all(headline_score == other_score for headline_score, other_score in pairs):
        return
    from keju.stats.paired import paired_difference

    difference = paired_difference(pairs, None if is_independent else groups)
    if difference is None or (difference.p >= NOISE and abs(difference.value) < A_POINT):
        return
    values = {
        "reader": job.readers[0].name,
        "other": job.readers[place].name,
        "points": 100 * difference.value,
        "whole": difference.n,
        "first_only": difference.first_only,
        "second_only": difference.second_only,
        "p": difference.p,
    }
    yield Notice("readers_apart", values)


def _run_notices(job: ExamScores, declared: Collection[str]) -> Iterator[Notice]:
    """Yield notices about anything that could mislead about the replies, under any reader."""
    if job.stopping is not None:
        yield job.stopping.notice
    if job.missing:
        yield from missing_notices(job.tallies[0].done, job.units)
    yield from several_models(job, declared)
    reader, thoughts = job.readers[0], sum(job.thoughts_cut)
    if thoughts and reader.scores_cut and not reader.raw:
        yield Notice("thinking_cut", {"replies": thoughts, "reader": reader.name})
    if unsafe := sum(use.unsafe for use in job.uses.values()):
        yield Notice("no_sandbox", {"episodes": unsafe})


def summarise(
    exam: Exam, tally: Tally, *, reader: str, usage: UsageTotals, timing: Timing
) -> ResultEntry:
    """Return the entry of one exam under one reader.

    Units without a record are not counted, so a run can be summarised while it is running. Memory
    does not grow with the number of samples unless they are clustered.
    """
    cells = {subset.name: read_subset(exam, tally, subset) for subset in exam.subsets}
    overall = join(cells.values(), clustered=exam.clustered)
    chances = chance_levels(exam, tally)
    metrics = metrics_of(exam, tally, cells, overall, chances)
    ungraded = sum(overall.outcomes[outcome] for outcome in UNGRADED)
    unlabelled = overall.outcomes["unlabelled"]
    goldless = bool(unlabelled) and ungraded + unlabelled == overall.units
    if goldless:  # Without gold answers, an error has no score either.
        ungraded = 0
        metrics = {
            name: Metric(None, None, 0, title=metric.title)
            for name, metric in metrics.items()
            if name not in (WORST, BEST)
        }
    numbered = enumerate(exam.samples) if exam.errata else ()
    if faulty := [position for position, sample in numbered if sample.id in exam.errata]:
        without_errata = overall.minus(read_items(exam, tally, faulty))
        metrics["accuracy_without_errata"] = without_errata.accuracy()
    rows = []
    for subset in exam.subsets:
        cell, chance = cells[subset.name], chances.get(subset.name)
        share = cell.accuracy()
        rows.append(
            SubsetRow(
                name=subset.name,
                n=cell.item_count if goldless else cell.graded,
                ungraded=0 if goldless else cell.item_count - cell.graded,
                accuracy=share.value,
                ci95=share.ci95,
                outcomes=cell.outcome_counts(),
                chance=chance.total / chance.n if chance else None,
                title=subset.title,
                population=subset.population,
                bounds=share.bounds,
                withheld=share.withheld,
                cut_right=cell.cut_right,
            )
        )
    notices = (*_notices(exam, overall, ungraded, metrics["accuracy"], goldless), *exam.warnings)
    return ResultEntry(
        name=exam.benchmark,
        protocol=exam.protocol.name,
        protocol_version=exam.protocol.version,
        reader=reader,
        headline=exam.protocol.headline,
        n=overall.item_count if goldless else overall.graded,
        ungraded=0 if goldless else overall.item_count - overall.graded,
        metrics=metrics,
        outcomes=overall.outcome_counts(),
        cut_right=overall.cut_right,
        subsets=tuple(rows),
        groups=tuple(_build_group_rows(exam, cells, metrics, goldless=goldless)),
        reference=tuple(exam.references),
        warnings=tuple(notice.text() for notice in notices),
        notices=notices,
        usage=usage,
        timing=timing,
        gold=NO_GOLD if goldless else "",
        grader=exam.grader,
        difficulty=exam.difficulty,
        repeats=tally.epochs,
        signs=tally.sign_counts(),
        order_decides=tuple(
            exam.samples[unit // tally.epochs].id
            for unit in islice(tally.units_with_sign("order_decides"), LISTED)
        ),
        errata=ErrataCounts(
            len(faulty), tuple(exam.samples[position].id for position in faulty[:LISTED])
        )
        if faulty
        else None,
    )


def _build_group_rows(
    exam: Exam, cells: Mapping[str, ItemSetScore], metrics: Mapping[str, Metric], *, goldless: bool
) -> Iterator[SubsetRow]:
    """Yield the rows of means that are also categories, each with its micro accuracy.

    If the drawn questions miss some subsets of a category, its mean over subsets is unknown and the
    row is marked ``partial``. If the user selected only some of its subsets, the category has no
    row.
    """
    for mean in exam.means():
        category_subsets = dict.fromkeys(name for task in mean.tasks for name in task)
        names = [name for name in category_subsets if name in cells]
        is_asked = category_subsets.keys() <= {*names, *exam.undrawn}
        if not mean.group or not names or not is_asked:
            continue
        is_whole = len(names) == len(category_subsets) and all(
            cells[name].is_graded for name in names
        )
        cell = join((cells[name] for name in names), clustered=exam.clustered)
        micro, metric = cell.accuracy(), metrics.get(mean.name, Metric(None, None, 0))
        yield SubsetRow(
            name=mean.name,
            title=mean.title,
            n=cell.item_count if goldless else cell.graded,
            ungraded=0 if goldless else cell.item_count - cell.graded,
            accuracy=metric.value,
            ci95=metric.ci95,
            micro_accuracy=micro.value,
            micro_ci95=micro.ci95,
            outcomes=cell.outcome_counts(),
            subsets=tuple(names),
            partial=not is_whole,
            bounds=metric.bounds,
            withheld=metric.withheld,
            cut_right=cell.cut_right,
        )


def _is_part(exam: Exam) -> bool:
    """Whether only a part of the published questions of an exam is asked."""
    asked_subsets = {subset.name for subset in exam.subsets}
    published_subsets = {name for mean in exam.means() for task in mean.tasks for name in task}
    return not published_subsets <= asked_subsets or any(
        subset.population for subset in exam.subsets
    )


def _notices(
    exam: Exam, overall: ItemSetScore, ungraded: int, accuracy: Metric, goldless: bool
) -> Iterator[Notice]:
    """Yield notices about anything that could mislead about the scores of an exam."""
    total = overall.units

    def share(code: str, part: int) -> Notice:
        return Notice(code, {"part": part, "whole": total, "share": part / total})

    if goldless:
        part = "no_gold_partial" if _is_part(exam) else "no_gold_submission"
        yield Notice(part if exam.submitted else "no_gold")
    elif total and ungraded == total:
        yield Notice("nothing_graded", {"whole": total})
    elif ungraded:
        yield share(
            "ungraded_replies" if accuracy.value is not None else "ungraded_share", ungraded
        )
    if overall.outcomes["unlabelled"] and not goldless:
        yield share("unlabelled_questions", overall.outcomes["unlabelled"])
    if overall.outcomes["truncated"] > WARN_ABOVE * total:
        yield share(CUT_REPLIES, overall.outcomes["truncated"])
    if overall.outcomes["refused"] > WARN_ABOVE * total:
        yield share("refused_replies", overall.outcomes["refused"])
    if overall.outcomes["unparsed"] > WARN_ABOVE * total:
        yield share("unread_replies", overall.outcomes["unparsed"])
    if accuracy.withheld == FEW_QUESTIONS:
        yield Notice(FEW_QUESTIONS, {"fewest": FEWEST})
    elif accuracy.withheld:
        yield Notice(accuracy.withheld)
    elif accuracy.clusters is not None and accuracy.clusters < FEW_CLUSTERS:
        yield Notice("few_clusters", {"clusters": accuracy.clusters})
