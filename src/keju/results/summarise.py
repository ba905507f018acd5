"""From the scoreboards of a run to its results.

Errors of infrastructure and answers without a grade leave the denominator of every score, are
counted beside it, and the worst and best they could have made of it are shown.
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
from keju.benchmarks.samples import as_drawn
from keju.config import Price
from keju.engine.job import Job
from keju.errors import KejuError, Notice
from keju.results.causes import readers_of_form
from keju.results.cuts import CUT_REPLIES, cut_notices, ignored_limit_notices
from keju.results.doubts import declared_names, several_models
from keju.results.metrics import (
    Cell,
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
    Entry,
    Errata,
    Errors,
    Judge,
    Metric,
    Results,
    Row,
    Timing,
    Usage,
)
from keju.runs.manifest import Manifest, ManifestFile
from keju.runs.run import command_name, missing_notices
from keju.stats.estimate import FEW_QUESTIONS, FEWEST
from keju.stats.intervals import FEW_CLUSTERS, quantile
from keju.types import UNGRADED, Fault

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.engine.tally import Tally
    from keju.judges.stage import JudgeStage

WARN_ABOVE = 0.01
"""Share of truncated or unparsed replies above which a result carries a warning."""
MUCH_OUTSIDE = 0.5
"""Share of the probability that lies on no label above which a result carries a warning."""
NOISE, A_POINT = 0.05, 0.01
"""From which p, and from which difference on, two readers of the same replies differ."""
QUANTILE_SAMPLE = 100_000
"""Latency quantiles are taken over at most this many units."""


def build_results(
    jobs: Sequence[Job],
    file: ManifestFile,
    stop: KejuError | None,
    stage: JudgeStage | None = None,
    notices: Sequence[Notice] = (),
) -> Results:
    """The results of a run, from the scoreboards of its jobs; `notices` stand on each entry.

    What a solver has to tell stands on the entries of its own arm alone.
    """
    price = file.manifest.price
    entries = [
        entry.with_notices([*notices, *_notices_of_solver(job, file)]).told_of(
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
            asked=file.manifest.imported is not True,
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
    manifest: Manifest, folder: Path, jobs: Sequence[Job], entries: Sequence[Entry], **more: Any
) -> Results:
    """The results of a run out of its entries; `more` are further fields.

    They can stand alone: they say when, by which version, where and with what they were made.
    """
    if any(job.arm for job in jobs):
        from keju.results.compare import compare_arms
        from keju.results.difficulty import curves_of

        more["comparisons"] = tuple(compare_arms(jobs, manifest.price, command_name(folder)))
        more["curves"] = tuple(curves_of(entries))
    stored = [session.endpoints or () for session in manifest.sessions]
    is_group = any(len(endpoints) > 1 for endpoints in stored)
    if is_group or any(endpoint.odd_wait for endpoints in stored for endpoint in endpoints):
        from keju.results.endpoints import endpoint_notices, endpoints_of

        uses = endpoints_of(manifest)
        if is_group:
            more["endpoints"] = uses
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
        **more,
    )


def _notices_of_solver(job: Job, file: ManifestFile) -> Iterator[Notice]:
    """What could mislead about an arm with tools beyond its replies."""
    yield from job.solver.notices
    if file.interrupted_episodes and tools_of(file.manifest, job):
        yield Notice("episodes_broken_off", {"episodes": file.interrupted_episodes})


def tools_of(manifest: Manifest, job: Job) -> Mapping[str, Any]:
    """What a manifest tells of the tools of a job's arm, and whether it is a placebo."""
    arms: Mapping[str, Mapping[str, Any]] = manifest.arms or {}
    stubs = [arm["name"] for arm in manifest.config.get("arms", ()) if arm.get("stub_tools")]
    return {**arms.get(job.arm, {}), **({"placebo": True} if job.arm in stubs else {})}


def entries_of(
    job: Job,
    *,
    seconds: float = 0.0,
    beside: bool = True,
    stage: JudgeStage | None = None,
    price: Price | None = None,
    tools: Mapping[str, Any] | None = None,
    declared: Collection[str] = (),
    asked: bool = False,
) -> list[Entry]:
    """One entry for each reader; with `beside` the second stands as a metric of the first.

    `asked` says that Keju asked for the replies, so that the job's settings were in force.

    The headline is the protocol's own reader. What the reader beside it (nearly always `robust`)
    makes of the same replies is printed next to it, so that a misread format never passes for a
    lack of ability.
    """
    meter = job.meter
    cost = meter.cost(price)
    usage = Usage(
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
    quantiles = [round(quantile(spans, q) or 0.0, 4) for q in (0.5, 0.95, 1.0) if spans]
    timing = Timing(round(seconds, 3), *quantiles)
    early = job.stopping is not None and job.stopping.early
    exam = as_drawn(job.exam) if early else job.exam
    faults = [*job.checks.notices(check_model=asked, declared=declared)]
    entries = []
    for place, (reader, tally) in enumerate(zip(job.readers, job.tallies, strict=True)):
        entry = summarise(exam, tally, reader=reader.name, usage=usage, timing=timing)
        if asked:
            entry = replace(entry, notices=(), warnings=()).with_notices(
                _why_cut(job, tally, entry)
            )
        entry = replace(entry, stopping=job.stopping, arm=job.arm)
        if job.uses:
            from keju.results.tool_stats import tool_notices, tool_stats

            stats = tool_stats(job, tools or {})
            entry = replace(entry, tools=stats).with_notices(tool_notices(job, stats, tools or {}))
        if kinds := Counter(fault.kind for fault in job.errors.values()).most_common():
            examples = examples_of(job.errors.values())
            entry = replace(entry, errors=Errors(dict(kinds), examples[kinds[0][0]], examples))
        if job.sampling.temperature == 0 and job.epochs > 1:
            entry = entry.with_notices([Notice("repeats_at_temperature_0")])
        if (asked_n := entry.asked) and sum(
            job.unlabelled_mass
        ) > MUCH_OUTSIDE * asked_n * job.epochs:
            share = sum(job.unlabelled_mass) / (asked_n * job.epochs)
            entry = entry.with_notices([Notice("probability_outside_labels", {"share": share})])
        entry = entry.with_notices(_notices_of_run(job, declared))
        entry = entry.with_notices(faults)
        judgement = None
        if stage is not None:
            deff = entry.metrics["accuracy"].deff
            judgement = stage.judgement(job, place, deff if isinstance(deff, float) else 1.0)
        if judgement is not None:
            entry = entry.with_notices(judgement.notices).with_metrics(judgement.metrics)
            entry = replace(entry, judge=msgspec.convert(judgement.judge, Judge))
            if judgement.by_rule is not None:
                alone = accuracy_of(job.exam, judgement.by_rule)
                title = f"accuracy by the reader '{reader.name}' alone, without the judge"
                entry = entry.with_metrics({WITHOUT_JUDGE: replace(alone, title=title)})
        entries.append(entry)
    for place in range(1, len(entries)):
        entries[0] = entries[0].with_notices(_readers_apart(job, place))
    name = job.exam.beside
    if beside and len(entries) == 2 and entries[1].reader == name:
        own, robust = entries
        other = replace(robust.metrics["accuracy"], title=f"accuracy as read by '{name}'")
        entry = replace(own, signs=robust.signs, order_decides=robust.order_decides)
        return [entry.with_metrics({f"accuracy_{name}": other})]
    return entries


def _why_cut(job: Job, tally: Tally, entry: Entry) -> Iterator[Notice]:
    """The notices of an entry; that of replies cut off says what cut them by the job's settings."""
    for notice in entry.notices:
        if notice.code == CUT_REPLIES:
            yield from cut_notices(job, tally, notice)
        else:
            yield notice
    yield from ignored_limit_notices(job)


def examples_of(faults: Iterable[Fault]) -> dict[str, str]:
    """What the first fault of each kind says."""
    examples: dict[str, str] = {}
    for fault in faults:
        examples.setdefault(fault.kind, fault.message)
    return examples


def _readers_apart(job: Job, place: int) -> Iterator[Notice]:
    """Whether the headline depends on its reader: the one at `place` scores otherwise.

    It does where the replies that only one of them finds right are not even by chance, or where
    the two scores are a point apart. A reader that does not know the protocol's form of answers
    says nothing about a score by one that does.
    """
    pair = job.readers[0], job.readers[place]
    if readers_of_form(job.exam, pair) == [pair[0].name]:
        return
    exam, tallies = job.exam, (job.tallies[0], job.tallies[place])
    alone = job.epochs == 1 and not exam.clustered
    pairs: list[tuple[float, float]] = []
    groups: list[str] = []
    for unit, codes in enumerate(zip(*(tally.outcomes for tally in tallies), strict=True)):
        if all(code in GRADED for code in codes):
            pairs.append((tallies[0].values[unit], tallies[1].values[unit]))
            if not alone:
                item = unit // job.epochs
                groups.append(cluster_of(exam, item) or str(item))
    if all(first == second for first, second in pairs):
        return
    from keju.stats.paired import paired_difference

    apart = paired_difference(pairs, None if alone else groups)
    if apart is None or (apart.p >= NOISE and abs(apart.value) < A_POINT):
        return
    values = {
        "reader": job.readers[0].name,
        "other": job.readers[place].name,
        "points": 100 * apart.value,
        "whole": apart.n,
        "first_only": apart.first_only,
        "second_only": apart.second_only,
        "p": apart.p,
    }
    yield Notice("readers_apart", values)


def _notices_of_run(job: Job, declared: Collection[str]) -> Iterator[Notice]:
    """What could mislead about the replies of an exam, whoever reads them."""
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


def summarise(exam: Exam, tally: Tally, *, reader: str, usage: Usage, timing: Timing) -> Entry:
    """The entry of one exam under one reader.

    Units without a record are not counted anywhere, so a run can be summarised while it goes on.
    Memory does not grow with the number of samples unless they are clustered.
    """
    cells = {subset.name: read_subset(exam, tally, subset) for subset in exam.subsets}
    overall = join(cells.values(), clustered=exam.clustered)
    chances = chance_levels(exam, tally)
    metrics = metrics_of(exam, tally, cells, overall, chances)
    lost = sum(overall.outcomes[outcome] for outcome in UNGRADED)
    unlabelled = overall.outcomes["unlabelled"]
    goldless = bool(unlabelled) and lost + unlabelled == overall.units
    if goldless:  # an error has no score there either
        lost = 0
        metrics = {
            name: Metric(None, None, 0, title=own.title)
            for name, own in metrics.items()
            if name not in (WORST, BEST)
        }
    numbered = enumerate(exam.samples) if exam.errata else ()
    if faulty := [item for item, sample in numbered if sample.id in exam.errata]:
        rest = overall.minus(read_items(exam, tally, faulty))
        metrics["accuracy_without_errata"] = rest.accuracy()
    rows = []
    for subset in exam.subsets:
        cell, chance = cells[subset.name], chances.get(subset.name)
        share = cell.accuracy()
        rows.append(
            Row(
                name=subset.name,
                n=cell.items if goldless else cell.graded,
                ungraded=0 if goldless else cell.items - cell.graded,
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
    notices = (*_notices(exam, overall, lost, metrics["accuracy"], goldless), *exam.warnings)
    return Entry(
        name=exam.benchmark,
        protocol=exam.protocol.name,
        protocol_version=exam.protocol.version,
        reader=reader,
        headline=exam.protocol.headline,
        n=overall.items if goldless else overall.graded,
        ungraded=0 if goldless else overall.items - overall.graded,
        metrics=metrics,
        outcomes=overall.outcome_counts(),
        cut_right=overall.cut_right,
        subsets=tuple(rows),
        groups=tuple(_group_rows(exam, cells, metrics, goldless=goldless)),
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
        errata=Errata(len(faulty), tuple(exam.samples[item].id for item in faulty[:LISTED]))
        if faulty
        else None,
    )


def _group_rows(
    exam: Exam, cells: Mapping[str, Cell], metrics: Mapping[str, Metric], *, goldless: bool
) -> Iterator[Row]:
    """The means that are also categories; the micro accuracy of their rows stands beside.

    A category of which a draw of questions takes no question of some subsets has no mean of
    subsets, and says ``partial``. Where the user has chosen some of its subsets it has no row.
    """
    for mean in exam.means():
        wanted = dict.fromkeys(name for task in mean.tasks for name in task)
        names = [name for name in wanted if name in cells]
        is_asked = wanted.keys() <= {*names, *exam.undrawn}
        if not mean.group or not names or not is_asked:
            continue
        is_whole = len(names) == len(wanted) and all(cells[name].is_graded for name in names)
        cell = join((cells[name] for name in names), clustered=exam.clustered)
        micro, metric = cell.accuracy(), metrics.get(mean.name, Metric(None, None, 0))
        yield Row(
            name=mean.name,
            title=mean.title,
            n=cell.items if goldless else cell.graded,
            ungraded=0 if goldless else cell.items - cell.graded,
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
    """Whether not all published questions of an exam are asked."""
    asked = {subset.name for subset in exam.subsets}
    published = {name for mean in exam.means() for task in mean.tasks for name in task}
    return not published <= asked or any(subset.population for subset in exam.subsets)


def _notices(
    exam: Exam, overall: Cell, lost: int, accuracy: Metric, goldless: bool
) -> Iterator[Notice]:
    """What could mislead about the scores of an exam."""
    whole = overall.units

    def share(code: str, part: int) -> Notice:
        return Notice(code, {"part": part, "whole": whole, "share": part / whole})

    if goldless:
        part = "no_gold_partial" if _is_part(exam) else "no_gold_submission"
        yield Notice(part if exam.submitted else "no_gold")
    elif whole and lost == whole:
        yield Notice("nothing_graded", {"whole": whole})
    elif lost:
        yield share("ungraded_replies" if accuracy.value is not None else "ungraded_share", lost)
    if overall.outcomes["unlabelled"] and not goldless:
        yield share("unlabelled_questions", overall.outcomes["unlabelled"])
    if overall.outcomes["truncated"] > WARN_ABOVE * whole:
        yield share(CUT_REPLIES, overall.outcomes["truncated"])
    if overall.outcomes["refused"] > WARN_ABOVE * whole:
        yield share("refused_replies", overall.outcomes["refused"])
    if overall.outcomes["unparsed"] > WARN_ABOVE * whole:
        yield share("unread_replies", overall.outcomes["unparsed"])
    if accuracy.withheld == FEW_QUESTIONS:
        yield Notice(FEW_QUESTIONS, {"fewest": FEWEST})
    elif accuracy.withheld:
        yield Notice(accuracy.withheld)
    elif accuracy.clusters is not None and accuracy.clusters < FEW_CLUSTERS:
        yield Notice("few_clusters", {"clusters": accuracy.clusters})
