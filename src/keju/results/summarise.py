"""Turn the tallies of a run into its results.

Errors of infrastructure and answers without a grade leave the denominator of every score. They are
counted separately, and the results show the worst and best scores they could lead to.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    ChanceScores,
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
from keju.types import UNGRADED, Fault, Outcome

if TYPE_CHECKING:
    from keju.answers.reader import Reader
    from keju.benchmarks.base import Exam, Subset
    from keju.judges import GradingStage
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
    stage: GradingStage | None = None,
    notices: Sequence[Notice] = (),
) -> Results:
    """Return the results of a run from the tallies of its jobs; `notices` are added to each entry.

    Notices of a solver are added only to the entries of its arm.
    """
    price = file.manifest.price
    entries = [
        entry.with_notices([*notices, *_solver_notices(job, file)]).with_run(
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
        further_fields |= _arm_fields(manifest, folder, jobs, entries)
    stored = [session.endpoints or () for session in manifest.sessions]
    is_group = any(len(endpoints) > 1 for endpoints in stored)
    if is_group or any(endpoint.odd_wait for endpoint in chain.from_iterable(stored)):
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


def _arm_fields(
    manifest: Manifest, folder: Path, jobs: Sequence[ExamScores], entries: Sequence[ResultEntry]
) -> dict[str, Any]:
    """Return the comparisons of the arms with each other, and their curves over difficulty."""
    from keju.results.compare import compare_arms
    from keju.results.difficulty import curves_of

    kind, run = manifest.config.get("sweep"), command_name(folder)
    comparisons = compare_arms(jobs, manifest.price, run, with_first_only=kind is not None)
    fields = {"comparisons": tuple(comparisons), "curves": tuple(curves_of(entries))}
    if kind is None:
        return fields
    from keju.results.sweep import sweeps_of

    return fields | {"sweeps": tuple(sweeps_of(kind, manifest, entries, comparisons))}


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
    stage: GradingStage | None = None,
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
    usage, timing = _usage_of(job, price), _timing_of(job, seconds)
    exam = mark_as_drawn(job.exam) if job.stopped_early else job.exam
    faults = [*job.checks.notices(check_model=asked_by_keju, declared=declared)]
    entries: list[ResultEntry] = []
    for place, (reader, tally) in enumerate(zip(job.readers, job.tallies, strict=True)):
        entry = summarise(exam, tally, reader=reader.name, usage=usage, timing=timing)
        if asked_by_keju:
            notices = _explain_cuts(job, tally, entry)
            entry = replace(entry, notices=(), warnings=()).with_notices(notices)
        entry = replace(entry, stopping=job.stopping, arm=job.arm)
        entry = _with_errors(_with_tools(entry, job, tools or {}), job)
        entry = entry.with_notices(_sampling_notices(job, entry))
        entry = entry.with_notices(_run_notices(job, declared))
        entry = entry.with_notices(faults)
        entry = entry if stage is None else _with_judgement(entry, job, place, stage)
        entries.append(entry.with_notices(_model_rule_notices(entry, reader)))
    for place in range(1, len(entries)):
        entries[0] = entries[0].with_notices(_reader_difference_notices(job, place))
    if no_answer_notice := _no_right_answer_notice(job):
        entries[0] = entries[0].with_first_notice(no_answer_notice)
    is_pair = len(entries) == 2 and entries[1].reader == job.exam.beside
    return [_with_secondary(*entries)] if secondary_as_metric and is_pair else entries


def _with_secondary(entry: ResultEntry, secondary: ResultEntry) -> ResultEntry:
    """Return the headline's entry with the accuracy by the secondary reader as a metric."""
    name = secondary.reader
    accuracy = replace(secondary.metrics["accuracy"], title=f"accuracy as read by '{name}'")
    entry = replace(entry, signs=secondary.signs, order_decides=secondary.order_decides)
    return entry.with_metrics({f"accuracy_{name}": accuracy})


def _usage_of(job: ExamScores, price: Price | None) -> UsageTotals:
    """Return the requests and tokens of a job, with their cost if there is a price."""
    meter = job.meter
    cost = meter.cost(price)
    return UsageTotals(
        meter.requests,
        meter.input,
        meter.output,
        meter.cached,
        meter.reasoning,
        meter.written or msgspec.UNSET,
        retries=meter.requests - meter.replies,
        cost=msgspec.UNSET if cost is None else round(cost, 6),
    )


def _timing_of(job: ExamScores, seconds: float) -> Timing:
    """Return how long a job took, with quantiles over its replies."""
    step = max(1, len(job.seconds) // QUANTILE_SAMPLE)
    spans = array("f", sorted(value for value in job.seconds[::step] if value > 0))
    fractions = (0.5, 0.95, 1.0) if spans else ()
    quantiles = [round(quantile(spans, fraction) or 0.0, 4) for fraction in fractions]
    return Timing(round(seconds, 3), *quantiles)


def _with_tools(entry: ResultEntry, job: ExamScores, tools: Mapping[str, Any]) -> ResultEntry:
    """Return an entry with the use of the tools, if there are any."""
    if not job.uses:
        return entry
    from keju.results.tool_stats import tool_notices, tool_stats

    stats = tool_stats(job, tools)
    return replace(entry, tools=stats).with_notices(tool_notices(job, stats, tools))


def _with_errors(entry: ResultEntry, job: ExamScores) -> ResultEntry:
    """Return an entry with the errors of the endpoint, by kind."""
    kinds = Counter(fault.kind for fault in job.errors.values()).most_common()
    if not kinds:
        return entry
    examples = examples_of(job.errors.values())
    return replace(entry, errors=ErrorCounts(dict(kinds), examples[kinds[0][0]], examples))


def _sampling_notices(job: ExamScores, entry: ResultEntry) -> Iterator[Notice]:
    """Yield notices about repeats without randomness and about labels with little probability."""
    if job.sampling.temperature == 0 and job.epochs > 1 and job.model:
        yield Notice("repeats_at_temperature_0")
    reply_count = entry.questions_with_reply * job.epochs
    if reply_count and sum(job.unlabelled_mass) > MUCH_OUTSIDE * reply_count:
        share = sum(job.unlabelled_mass) / reply_count
        yield Notice("probability_outside_labels", {"share": share})


def _with_judgement(
    entry: ResultEntry, job: ExamScores, place: int, stage: GradingStage
) -> ResultEntry:
    """Return an entry with the report on the judge of its grades."""
    deff = entry.metrics["accuracy"].deff
    judgement = stage.judgement(job, place, deff if isinstance(deff, float) else 1.0)
    if judgement is None:
        return entry
    entry = entry.with_notices(judgement.notices).with_metrics(judgement.metrics)
    entry = replace(entry, judge=msgspec.convert(judgement.judge, JudgeReport))
    if judgement.by_rule is None:
        return entry
    accuracy_by_rule = accuracy_of(job.exam, judgement.by_rule)
    title = f"accuracy by the reader '{entry.reader}' alone, without the judge"
    return entry.with_metrics({WITHOUT_JUDGE: replace(accuracy_by_rule, title=title)})


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


def _model_rule_notices(entry: ResultEntry, reader: Reader) -> Iterator[Notice]:
    """Yield a notice if the published rule asks a model, and no judge graded the answers."""
    if reader.is_model_rule and not entry.judge:
        yield Notice("equality_by_rule", {"reader": reader.name})


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
    pairs, groups = _score_pairs(job, place)
    if all(headline_score == other_score for headline_score, other_score in pairs):
        return
    from keju.stats.paired import paired_difference

    difference = paired_difference(pairs, groups)
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


def _score_pairs(job: ExamScores, place: int) -> tuple[list[tuple[float, float]], list[str] | None]:
    """Return the scores of the first reader and the one at `place`, where both gave one.

    The second value holds the cluster of each pair, or None if all pairs are independent.
    """
    tallies = job.tallies[0], job.tallies[place]
    units = [
        unit
        for unit, codes in enumerate(zip(*(tally.outcomes for tally in tallies), strict=True))
        if all(code in GRADED for code in codes)
    ]
    pairs = [(tallies[0].values[unit], tallies[1].values[unit]) for unit in units]
    if job.epochs == 1 and not job.exam.clustered:
        return pairs, None
    positions = [unit // job.epochs for unit in units]
    return pairs, [cluster_of(job.exam, position) or str(position) for position in positions]


def _run_notices(job: ExamScores, declared: Collection[str]) -> Iterator[Notice]:
    """Yield notices about anything that could mislead about the replies, under any reader."""
    if job.stopping is not None and job.stopping.rule != "sweep":  # its table says it
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
    # A metric that is not a share, such as a perplexity, needs no right answer.
    is_scored = any(metric.unit for metric in metrics.values())
    goldless = bool(unlabelled) and ungraded + unlabelled == overall.units and not is_scored
    if goldless:  # Without gold answers, an error has no score either.
        ungraded, metrics = 0, _without_values(metrics)
    if faulty := _find_faulty(exam):
        without_errata = overall.minus(read_items(exam, tally, faulty))
        metrics["accuracy_without_errata"] = without_errata.accuracy()
    n, without_grade = _count_questions(overall, goldless=goldless)
    notices = (*_notices(exam, overall, ungraded, metrics["accuracy"], goldless), *exam.warnings)
    return ResultEntry(
        name=exam.benchmark,
        protocol=exam.protocol.name,
        protocol_version=exam.protocol.version,
        reader=reader,
        headline=exam.protocol.headline,
        n=n,
        ungraded=without_grade,
        metrics=metrics,
        outcomes=overall.outcome_counts(),
        cut_right=overall.cut_right,
        subsets=tuple(
            _build_subset_row(subset, cells[subset.name], chances, goldless=goldless)
            for subset in exam.subsets
        ),
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
        errata=_count_errata(exam, faulty),
    )


def _without_values(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return the metrics of an exam without gold answers: their titles alone."""
    named = {name: metric for name, metric in metrics.items() if name not in (WORST, BEST)}
    return {name: Metric(None, None, 0, title=metric.title) for name, metric in named.items()}


def _count_questions(cell: ItemSetScore, *, goldless: bool) -> tuple[int, int]:
    """Return the number of questions that count, and of those without a grade.

    Without gold answers all questions count.
    """
    return (cell.item_count, 0) if goldless else (cell.graded, cell.item_count - cell.graded)


def _find_faulty(exam: Exam) -> list[int]:
    """Return the positions of the questions with a known error."""
    samples = enumerate(exam.samples) if exam.errata else ()
    return [position for position, sample in samples if sample.id in exam.errata]


def _count_errata(exam: Exam, positions: Sequence[int]) -> ErrataCounts | None:
    """Return the questions with a known error, or None if there are none."""
    ids = tuple(exam.samples[position].id for position in positions[:LISTED])
    return ErrataCounts(len(positions), ids) if positions else None


def _build_subset_row(
    subset: Subset, cell: ItemSetScore, chances: Mapping[str, ChanceScores], *, goldless: bool
) -> SubsetRow:
    """Return the row of one subset."""
    n, ungraded = _count_questions(cell, goldless=goldless)
    accuracy, chance = cell.accuracy(), chances.get(subset.name)
    return SubsetRow(
        name=subset.name,
        n=n,
        ungraded=ungraded,
        accuracy=accuracy.value,
        ci95=accuracy.ci95,
        outcomes=cell.outcome_counts(),
        chance=chance.total / chance.n if chance else None,
        title=subset.title,
        population=subset.population,
        bounds=accuracy.bounds,
        withheld=accuracy.withheld,
        cut_right=cell.cut_right,
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
        category_subsets = dict.fromkeys(chain.from_iterable(mean.tasks))
        names = [name for name in category_subsets if name in cells]
        is_asked = category_subsets.keys() <= {*names, *exam.undrawn}
        if not mean.group or not names or not is_asked:
            continue
        is_whole = len(names) == len(category_subsets) and all(
            cells[name].is_graded for name in names
        )
        cell = join((cells[name] for name in names), clustered=exam.clustered)
        n, ungraded = _count_questions(cell, goldless=goldless)
        micro, metric = cell.accuracy(), metrics.get(mean.name, Metric(None, None, 0))
        yield SubsetRow(
            name=mean.name,
            title=mean.title,
            n=n,
            ungraded=ungraded,
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
    total, outcomes = overall.units, overall.outcomes
    shares: list[tuple[str, int]] = []
    if goldless:
        form = "no_gold_partial" if _is_part(exam) else "no_gold_submission"
        yield Notice(form if exam.submitted else "no_gold")
    elif total and ungraded == total:
        yield Notice("nothing_graded", {"whole": total})
    elif ungraded:
        code = "ungraded_replies" if accuracy.value is not None else "ungraded_share"
        shares.append((code, ungraded))
    if outcomes["unlabelled"] and not goldless and not exam.keeps_items:
        shares.append(("unlabelled_questions", outcomes["unlabelled"]))
    for code, outcome in _UNUSUAL_OUTCOMES.items():
        if outcomes[outcome] > WARN_ABOVE * total:
            shares.append((code, outcomes[outcome]))
    for code, part in shares:
        yield Notice(code, {"part": part, "whole": total, "share": part / total})
    if accuracy.withheld == FEW_QUESTIONS:
        yield Notice(FEW_QUESTIONS, {"fewest": FEWEST})
    elif accuracy.withheld:
        yield Notice(accuracy.withheld)
    elif accuracy.clusters is not None and accuracy.clusters < FEW_CLUSTERS:
        yield Notice("few_clusters", {"clusters": accuracy.clusters})


_UNUSUAL_OUTCOMES: Final[dict[str, Outcome]] = {
    CUT_REPLIES: "truncated",
    "refused_replies": "refused",
    "unread_replies": "unparsed",
}
"""Notices about outcomes of which more than `WARN_ABOVE` is unusual."""
