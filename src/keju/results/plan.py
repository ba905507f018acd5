"""How many questions a decision needs, which difference they show, and what they take.

What replies take is measured in a pilot, a stored run of some random questions; without one it is
a guess from the lengths of the prompts, and says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam
from keju.config import Price
from keju.config.exams import meant
from keju.config.load import data_folder, runs_folder
from keju.config.strict import Invalid
from keju.config.task import parse_limit
from keju.engine.job import Job
from keju.errors import Notice, UsageError
from keju.results.conditions import alike
from keju.results.gate import Decision, decision
from keju.results.metrics import accuracy_of, cluster_of
from keju.results.schema import InNotebook
from keju.results.sittings import Source, path_of, read_run
from keju.runs.run import Run, open_run
from keju.stats.intervals import FEW_CLUSTERS
from keju.stats.power import (
    LEVEL,
    LIKE_SIZE,
    POWER,
    cautious_mean,
    items_needed_exactly,
    minimal_detectable_effect,
    student_interval,
)

PILOT = 30
"""Random questions that tell what replies take."""
FEWEST_REPLIES = 2
"""Fewer tell nothing of how much replies differ."""
BYTES_PER_TOKEN, UNSURE = 4.0, 1.4
"""A guess of what a prompt takes: bytes of a token, and by which factor it may be wrong."""
REPLY, REPLY_LEAST, REPLY_MOST = 300.0, 50.0, 1500.0
"""A guess of the tokens of a reply, and the range within which most models stay."""
ALIKE = 0.2
"""A guess of the correlation of questions that share a context."""
SIZES = (50, 100, 250, 500, 1000, 2500, 5000, 10_000)

Goal = Literal["mde", "max_cost", "limit", "margin", "all"]
"""What decides how many questions are asked."""
Known = Literal["given", "assumed", "measured"]
"""Where a number comes from."""


class Range(msgspec.Struct, frozen=True):
    """A forecast with its 95 % interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Range:
        """So many times as much."""
        return Range(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, other: Range) -> Range:
        """Both together."""
        return Range(self.value + other.value, self.low + other.low, self.high + other.high)


class PlanRow(msgspec.Struct, frozen=True):
    """One size of the exam."""

    questions: int
    effect: float
    """The smallest difference that so many questions show with a power of 0.8."""
    cost: Range | None
    seconds: Range | None


class Plan(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """What to ask, what it shows and what it takes."""

    exam: str
    protocol: str
    goal: Goal
    whole: int
    """Questions of the exam."""
    questions: int
    """Questions to ask."""
    questions_in_general: int | None = None
    """With `mde`: how many show it for questions like these, as ``keju compare`` tests it. With
    `margin`: how many decide with a power of 0.8, as ``keju gate`` tests it."""
    questions_on_set: int | None = None
    """With `mde`: how many show it where only this very set counts."""
    effect: float
    """The smallest difference of two models that so many questions show, in general."""
    effect_on_set: float | None = None
    """The same on this very set, of which a part is asked."""
    power: float = POWER
    level: float = LEVEL
    discordance: float
    """The share of questions on which exactly one of the two is right."""
    discordance_from: Known
    deff: float = 1.0
    """What shared contexts do to the number of questions."""
    repeats: int = 1
    requests: float
    """With those that are repeated after a failure."""
    input_tokens: Range
    output_tokens: Range
    cost: Range | None = None
    """None without a price."""
    seconds: Range | None = None
    """None without a pilot."""
    at_once: int = 0
    """Requests in flight behind the time."""
    pilot: str = ""
    """The run that the forecasts come from; empty where they are guesses."""
    measured: int = 0
    """Replies of the pilot that were measured."""
    baseline: str = ""
    """With `margin`: the run that the pilot is to be no worse than."""
    margin: float | None = None
    seen: float | None = None
    """With `margin`: the difference between the two that the number of questions rests on."""
    sizes: tuple[PlanRow, ...] = ()
    notices: tuple[Notice, ...] = ()
    warnings: tuple[str, ...] = ()


class Taken(NamedTuple):
    """What one question takes, on average, in one reply."""

    input: Range
    output: Range
    cost: Range | None
    seconds: Range | None
    attempts: float = 1.0
    """Requests for a reply."""
    measured: int = 0
    counted: bool = False
    """Whether tokens are measured too."""

    def row(self, questions: int, effect: float, repeats: int, at_once: int) -> PlanRow:
        """What so many questions show and take."""
        requests = questions * repeats * self.attempts
        cost = self.cost and self.cost.times(requests)
        return PlanRow(
            questions, effect, cost, self.seconds and self.seconds.times(requests / at_once)
        )


def plan(
    name: str,
    *,
    mde: float | None = None,
    max_cost: float | None = None,
    limit: float | None = None,
    pilot: Source | None = None,
    baseline: Source | None = None,
    margin: float | None = None,
    discordance: float | None = None,
    repeats: int = 1,
    price: Price | Mapping[str, float] | None = None,
    at_once: int = 32,
    protocol: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
    seed: int = 42,
) -> Plan:
    """Plan an exam for one goal: a difference to show, money to spend, a limit, or a gate to
    decide; else all of it.

    `limit` is that of each subset, as for an exam that is sat; `pilot` a stored run of the exam,
    whose protocol and data count where none are named. `margin` asks how many questions decide
    whether the pilot is no worse than `baseline`, as ``keju gate`` does; then its settings count
    too.
    """
    share = LIKE_SIZE if discordance is None else discordance
    goal = _goal(share, mde=mde, max_cost=max_cost, limit=limit, margin=margin)
    gated = _gated(name, pilot, baseline, margin, data_dir=data_dir, work_dir=work_dir)
    if repeats < 1 or at_once < 1:
        raise UsageError("plan_counts")
    run = open_run(path_of(pilot), str(runs_folder(work_dir))) if pilot is not None else None
    manner = protocol or _protocol_of(run, name)
    where = _where(run, data_dir) if run else {"data_dir": data_folder(data_dir)}
    if run:
        kept = _settings_of(run, name)
        if not gated or dataset_args:
            kept = {} if data_dir else _place_of(kept)
        dataset_args = kept | (dataset_args or {})
    exam, _ = prepare_exam(name, dataset_args, protocol=manner, seed=seed, **where)
    job = _pilot_job(run, exam, data_dir) if run else None
    price = run.manifest.price if price is None and run else price
    own_price = Price(**price) if isinstance(price, Mapping) else price
    taken = _measured(exam, job, own_price) if job is not None else _guessed(exam, own_price)
    known: Known = "assumed" if discordance is None else "given"
    if discordance is None and gated and gated.discordance:
        share, known = gated.discordance, "measured"
    ground = Ground(exam, run, job, taken, share, known, _design_effect(exam, job), gated)
    wanted = _wanted(ground, goal, mde or max_cost or limit, repeats)
    return _forecast(ground, wanted, repeats, _in_flight(run, at_once))


class Ground(NamedTuple):
    """What a plan rests on."""

    exam: Exam
    run: Run | None
    """The pilot."""
    job: Job | None
    """The exam as the pilot sat it."""
    taken: Taken
    discordance: float
    discordance_from: Known
    deff: float
    gated: Decision | None = None
    """The gate that is to be decided."""

    def effect(self, questions: int) -> float:
        """The smallest difference that so many questions show."""
        return minimal_detectable_effect(questions, self.discordance, deff=self.deff)

    def effect_on_set(self, questions: int) -> float | None:
        """The same where only this set of questions counts; None where all of it is asked."""
        unasked = 1 - questions / len(self.exam.samples)
        return self.effect(round(questions / unasked)) if unasked else None

    def needed(self, effect: float, population: int = 0) -> int:
        """How many questions show a difference with the test that ``keju compare`` makes."""
        shares = ((self.discordance + sign * effect) / 2 for sign in (1, -1))
        n = self.deff * items_needed_exactly(*shares)
        return max(1, math.ceil(n / (1 + n / population) if population else n))


class Wanted(NamedTuple):
    """How many questions a goal asks for."""

    goal: Goal
    questions: int
    in_general: int | None = None
    """With `mde`: how many show it for questions like these. With `margin`: how many decide."""
    on_set: int | None = None
    """With `mde`: how many show it where only this very set counts."""


def _wanted(ground: Ground, goal: Goal, value: float | None, repeats: int) -> Wanted:
    """How many questions a goal of this value asks for, at most those of the exam."""
    whole = len(ground.exam.samples)
    if goal == "mde" and value is not None:
        general = ground.needed(value)
        return Wanted(goal, min(whole, general), general, ground.needed(value, whole))
    if ground.gated is not None:
        row = ground.gated.row
        decides = row.planned if row.verdict == "inconclusive" else row.n
        return Wanted(goal, min(whole, decides or whole), decides)
    if goal == "max_cost" and value is not None:
        return Wanted(goal, min(whole, _affordable(ground.taken, value, repeats) or whole))
    return Wanted(goal, _limited(ground.exam, value))


def _forecast(ground: Ground, wanted: Wanted, repeats: int, at_once: int) -> Plan:
    """What the questions that are wanted, and other numbers of them, show and take."""
    exam, run, taken, questions = ground.exam, ground.run, ground.taken, wanted.questions
    whole, units = len(exam.samples), questions * repeats * taken.attempts
    rows = {
        n: taken.row(n, ground.effect(n), repeats, at_once)
        for n in sorted({*(n for n in SIZES if n < whole), questions, whole})
    }
    chosen = rows[questions]
    notices, gated = tuple(_notices(ground, wanted)), ground.gated
    return Plan(
        exam=exam.benchmark,
        protocol=exam.protocol.name,
        goal=wanted.goal,
        whole=whole,
        questions=questions,
        questions_in_general=wanted.in_general,
        questions_on_set=wanted.on_set,
        effect=chosen.effect,
        effect_on_set=ground.effect_on_set(questions),
        discordance=ground.discordance,
        discordance_from=ground.discordance_from,
        deff=ground.deff,
        repeats=repeats,
        requests=units,
        input_tokens=taken.input.times(units),
        output_tokens=taken.output.times(units),
        cost=chosen.cost,
        seconds=chosen.seconds,
        at_once=at_once if chosen.seconds else 0,
        pilot=run.id if run else "",
        measured=taken.measured,
        baseline=gated.baseline if gated else "",
        margin=-gated.row.limit if gated else None,
        seen=gated.row.value if gated else None,
        sizes=tuple(rows.values()),
        notices=notices,
        warnings=tuple(notice.text() for notice in notices),
    )


def _in_flight(pilot: Run | None, at_once: int) -> int:
    """How many requests go at once: no more than a pilot's model has slots."""
    slots = pilot.manifest.endpoint.get("slots") if pilot is not None else None
    return min(at_once, slots) if isinstance(slots, int) and slots > 0 else at_once


def _goal(share: float, **goals: float | None) -> Goal:
    """The one goal that is named, all questions where there is none; UsageError for a wrong one."""
    if not 0 < share <= 1:
        raise UsageError("plan_discordance")
    named = [goal for goal, value in goals.items() if value is not None]
    if len(named) > 1:
        raise UsageError("plan_two_goals", first=named[0], second=named[1])
    mde, max_cost = goals["mde"], goals["max_cost"]
    if mde is not None and not 0 < mde <= share:
        raise UsageError("plan_mde", discordance=share)
    if max_cost is not None and not 0 < max_cost < math.inf:
        raise UsageError("plan_max_cost")
    return cast(Goal, named[0]) if named else "all"


def _affordable(taken: Taken, max_cost: float, repeats: int) -> int | None:
    """How many questions the money pays for, where they cost any; UsageError if not one."""
    if taken.cost is None:
        raise UsageError("plan_without_price")
    each = taken.cost.high * taken.attempts * repeats
    if not each:
        return None
    if each > max_cost:
        raise UsageError("plan_too_little", max_cost=max_cost, each=each)
    return int(max_cost / each)


def _limited(exam: Exam, limit: float | None) -> int:
    """How many questions a limit of each subset keeps."""
    try:
        most = parse_limit(limit)
    except Invalid as error:
        raise UsageError("plan_limit", problem=error) from None
    sizes = [len(subset) for subset in exam.subsets]
    if most is None:
        return sum(sizes)
    return sum(min(n, most if isinstance(most, int) else math.ceil(n * most)) for n in sizes)


def _gated(
    name: str,
    pilot: Source | None,
    baseline: Source | None,
    margin: float | None,
    **where: str | None,
) -> Decision | None:
    """The gate that is to be decided, where one is asked about."""
    if margin is None and baseline is None:
        return None
    if margin is None or baseline is None:
        raise UsageError("gate_margin")
    if pilot is None:
        raise UsageError("plan_margin_without_pilot")
    return decision(pilot, baseline, margin, name, **where)


def _settings_of(run: Run, name: str) -> dict[str, Any]:
    """The exam's own settings in a pilot."""
    stored = run.manifest.config.get("dataset_args") or {}
    exam = registry.get(name)
    named = [own for own in (name, exam.name, *exam.aliases) if own in stored]
    own = named[0] if named else meant(name, [*stored])
    return {} if own is None else cast(dict[str, Any], stored[own])


def _place_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of an exam's settings the one that says where its files lie."""
    return {name: value for name, value in settings.items() if name == "local_path"}


def _where(pilot: Run, data_dir: str | None) -> dict[str, Any]:
    """Where a pilot found its exams, unless a flag names another folder."""
    config = pilot.config(data_dir)
    return {"data_dir": config.data_dir, "hub": config.dataset_hub, "offline": config.offline}


def _protocol_of(run: Run | None, name: str) -> str | None:
    """The protocol by which a pilot sat the exam; None if it did not, or the name implies one."""
    exam = registry.get(name)
    if run is None or name in exam.alias_protocols:
        return None
    sat = (each.protocol.name for each in run.manifest.benchmarks if each.name == exam.name)
    return next(sat, None) or None


def _other_manner(exam: Exam, pilot: Exam, run: str) -> Iterator[Notice]:
    """That the pilot's questions were put in another way than those that are planned."""
    ours, theirs = ({"protocol": own.protocol.name, **own.settings} for own in (exam, pilot))
    for name in ours:
        if not alike(ours[name], theirs.get(name), exam, pilot):
            values = {"name": name, "theirs": theirs.get(name), "ours": ours[name]}
            yield Notice("plan_other_manner", {"pilot": run} | values)
            return


def _pilot_job(run: Run, exam: Exam, data_dir: str | None) -> Job:
    """The exam as the pilot sat it; UsageError if it did not, or has no reply."""
    jobs = [
        job for job in read_run(run, None, data_dir).jobs if job.exam.benchmark == exam.benchmark
    ]
    if not jobs:
        raise UsageError("plan_pilot_other", pilot=run.id, name=exam.benchmark)
    if len(_replied(jobs[0])) < FEWEST_REPLIES:
        raise UsageError("plan_pilot_empty", pilot=run.id)
    return jobs[0]


def _replied(job: Job) -> list[int]:
    """The units whose replies took something: time, or tokens where nothing was waited for."""
    assert job.ledger is not None
    tokens = job.ledger.tokens
    return [unit for unit, seconds in enumerate(job.seconds) if seconds > 0 or tokens(unit) > 0]


def _bytes(exam: Exam, item: int) -> int:
    prompt = exam.render(exam.samples[item])
    return sum(len(message.content.encode()) for message in prompt.messages)


def _mean_bytes(exam: Exam) -> float:
    return sum(_bytes(exam, item) for item in range(len(exam.samples))) / len(exam.samples)


def _measured(exam: Exam, job: Job, price: Price | None) -> Taken:
    """What the replies of a pilot took; its prompts are put in relation to those of the exam."""
    assert job.ledger is not None
    replied = _replied(job)
    ledger, most = job.ledger, job.sampling.max_tokens
    times = [job.seconds[unit] for unit in replied]
    seconds = Range(*cautious_mean(times)) if any(times) else None
    attempts = max(1.0, job.meter.requests / max(1, job.meter.replies))
    if not any(map(ledger.tokens, replied)):  # the endpoint does not count them
        guess = _guessed(exam, price)
        return guess._replace(seconds=seconds, attempts=attempts, measured=len(replied))
    inputs = [ledger.of(unit, "input") for unit in replied]
    outputs = [ledger.of(unit, "output") for unit in replied]
    lengths = [_bytes(job.exam, unit // job.epochs) for unit in replied]
    # Tokens go with the length of the prompt, which is known of all questions.
    rate, known = math.fsum(inputs) / sum(lengths), _mean_bytes(exam)
    beside = [own - rate * length for own, length in zip(inputs, lengths, strict=True)]
    half = student_interval(beside)[1]
    cap = math.inf if most is None else float(most)
    cost = None
    if price is not None:
        dearest = (max(inputs) * price.input + cap * price.output) / 1e6
        cost = Range(*cautious_mean([ledger.cost(unit, price) for unit in replied], dearest))
    return Taken(
        Range(rate * known, max(0.0, rate * known - half), rate * known + half),
        Range(*cautious_mean(outputs, cap)),
        cost,
        seconds,
        attempts,
        len(replied),
        counted=True,
    )


def _guessed(exam: Exam, price: Price | None) -> Taken:
    """What replies take by assumption: prompts by their length, replies as those of most models."""
    tokens = _mean_bytes(exam) / BYTES_PER_TOKEN
    asked = Range(tokens, tokens / UNSURE, tokens * UNSURE)
    reply = Range(REPLY, REPLY_LEAST, REPLY_MOST)
    if exam.protocol.decode == "labels":
        reply = Range(1.0, 1.0, 1.0)
    elif (most := exam.protocol.max_tokens) is not None:
        reply = Range(*(min(own, float(most)) for own in (reply.value, reply.low, reply.high)))
    cost = None
    if price is not None:
        cost = asked.times(price.input / 1e6).plus(reply.times(price.output / 1e6))
    return Taken(asked, reply, cost, None)


def _design_effect(exam: Exam, job: Job | None) -> float:
    """By how much shared contexts raise the number of questions: as measured, or by assumption."""
    if not exam.clustered:
        return 1.0
    if job is not None:
        score = accuracy_of(job.exam, job.tallies[0])
        if (score.clusters or 0) >= FEW_CLUSTERS and isinstance(score.deff, float):
            return max(1.0, score.deff)
    sizes = Counter(cluster_of(exam, item) for item in range(len(exam.samples))).values()
    return 1 + ALIKE * (sum(size * size for size in sizes) / sum(sizes) - 1)


def _notices(ground: Ground, wanted: Wanted) -> Iterator[Notice]:
    """What could mislead about a plan."""
    whole, taken, general = len(ground.exam.samples), ground.taken, wanted.in_general
    if ground.gated is not None:
        row = ground.gated.row
        yield row.conclusion
        if row.needed is not None and row.planned is not None:
            values = {"planned": row.planned, "needed": row.needed, "power": POWER}
            yield Notice("plan_gate_power", values)
        if general is not None and general > whole:
            yield Notice("plan_too_few", {"exam": ground.exam.benchmark, "whole": whole})
    elif general is not None and general > whole:
        most = 100 * ground.effect(whole)
        yield Notice("plan_beyond", {"whole": whole, "needed": general, "points": most})
    if ground.run is None:
        yield Notice("plan_guessed", {"reply": round(taken.output.value), "pilot": PILOT})
        return
    pilot = ground.run.manifest
    if not taken.counted:
        yield Notice("plan_uncounted", {"reply": round(taken.output.value), "pilot": pilot.run})
    if taken.measured < PILOT:
        yield Notice("plan_few", {"measured": taken.measured, "pilot": PILOT})
    config = pilot.config
    part = any(config.get(name) for name in ("limit", "total", "ids"))
    if part and config.get("sample", "first") == "first":
        yield Notice("plan_first", {"pilot": pilot.run})
    if ground.job is not None:
        yield from _other_manner(ground.exam, ground.job.exam, ground.run.id)
