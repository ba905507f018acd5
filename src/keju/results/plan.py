"""Plan an evaluation: how many questions a decision needs, and what they cost.

The cost of replies is measured in a pilot, which is a stored run of some random questions. Without
a pilot it is estimated from the lengths of the prompts; the plan says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam
from keju.config import Price
from keju.config.exams import resolve_name
from keju.config.load import data_folder, runs_folder
from keju.config.strict import InvalidValue
from keju.config.task import parse_limit
from keju.errors import Notice, UsageError
from keju.results.comparability import is_comparable
from keju.results.gate import GateForecast, decision
from keju.results.metrics import accuracy_of, cluster_of
from keju.results.schema import InNotebook
from keju.results.scored_exam import Source, path_of, read_run
from keju.runs.run import Run, open_run
from keju.scores.exam_scores import ExamScores
from keju.scores.usage import UnitTokens
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
"""The number of random questions that a pilot needs."""
FEWEST_REPLIES = 2
"""The smallest number of replies from which their variation can be estimated."""
BYTES_PER_TOKEN, UNSURE = 4.0, 1.4
"""An assumption about prompts: bytes per token, and the factor by which this may be wrong."""
REPLY, REPLY_LEAST, REPLY_MOST = 300.0, 50.0, 1500.0
"""An assumption about the tokens of a reply, and the range for most models."""
ALIKE = 0.2
"""An assumption about the correlation of questions that share a context."""
SIZES = (50, 100, 250, 500, 1000, 2500, 5000, 10_000)

Goal = Literal["mde", "max_cost", "limit", "margin", "all"]
"""The goal that determines the number of questions."""
Known = Literal["given", "assumed", "measured"]
"""The source of a number."""


class ForecastRange(msgspec.Struct, frozen=True):
    """A forecast with its 95 % interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> ForecastRange:
        """Return this forecast multiplied by a factor."""
        return ForecastRange(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, addend: ForecastRange) -> ForecastRange:
        """Return the sum of two forecasts."""
        return ForecastRange(
            self.value + addend.value, self.low + addend.low, self.high + addend.high
        )


class PlanRow(msgspec.Struct, frozen=True):
    """One possible number of questions."""

    questions: int
    effect: float
    """The smallest difference that this number of questions shows with a power of 0.8."""
    cost: ForecastRange | None
    seconds: ForecastRange | None


class Plan(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """A plan: how many questions to ask, what they show, and what they cost."""

    exam: str
    protocol: str
    goal: Goal
    whole: int
    """The number of questions of the exam."""
    questions: int
    """The number of questions to ask."""
    questions_in_general: int | None = None
    """With `mde`: the number that shows it for questions like these, as ``keju compare`` tests it.
    With `margin`: the number that decides with a power of 0.8, as ``keju gate`` tests it."""
    questions_on_set: int | None = None
    """With `mde`: the number that shows it if only this exact set of questions counts."""
    effect: float
    """The smallest difference of two models that this number of questions shows, in general."""
    effect_on_set: float | None = None
    """The same for this exact set, of which only a part is asked."""
    power: float = POWER
    level: float = LEVEL
    discordance: float
    """The share of questions on which exactly one of the two is right."""
    discordance_from: Known
    deff: float = 1.0
    """The factor by which shared contexts increase the number of questions."""
    repeats: int = 1
    requests: float
    """The number of requests, including those that are repeated after a failure."""
    input_tokens: ForecastRange
    output_tokens: ForecastRange
    cost: ForecastRange | None = None
    """None without a price."""
    seconds: ForecastRange | None = None
    """None without a pilot."""
    at_once: int = 0
    """The number of parallel requests that the time assumes."""
    pilot: str = ""
    """The run that the forecasts are based on; empty if they are assumptions."""
    measured: int = 0
    """The number of measured replies of the pilot."""
    baseline: str = ""
    """With `margin`: the run that the pilot must not be worse than."""
    margin: float | None = None
    seen: float | None = None
    """With `margin`: the observed difference that the number of questions is based on."""
    sizes: tuple[PlanRow, ...] = ()
    notices: tuple[Notice, ...] = ()
    warnings: tuple[str, ...] = ()


class CostPerReply(NamedTuple):
    """The average usage of one reply to a question."""

    input: ForecastRange
    output: ForecastRange
    cost: ForecastRange | None
    seconds: ForecastRange | None
    attempts: float = 1.0
    """The number of requests per reply."""
    measured: int = 0
    counted: bool = False
    """Whether tokens are measured too."""

    def row(self, questions: int, effect: float, repeats: int, at_once: int) -> PlanRow:
        """Return what this number of questions shows and costs."""
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
    """Plan an exam for one goal; without a goal, plan the whole exam.

    A goal is a difference to show (`mde`), money to spend (`max_cost`), a `limit`, or a gate to
    decide (`margin`).

    `limit` applies to each subset, as in ``keju eval``. `pilot` is a stored run of the exam; its
    protocol and data are used unless others are given. `margin` asks how many questions decide
    whether the pilot is not worse than `baseline`, as ``keju gate`` does; then the settings of the
    pilot apply too.
    """
    share = LIKE_SIZE if discordance is None else discordance
    goal = _choose_goal(share, mde=mde, max_cost=max_cost, limit=limit, margin=margin)
    gated = _decide_gate(name, pilot, baseline, margin, data_dir=data_dir, work_dir=work_dir)
    if repeats < 1 or at_once < 1:
        raise UsageError("plan_counts")
    run = open_run(path_of(pilot), str(runs_folder(work_dir))) if pilot is not None else None
    if run is None:
        data_options: Mapping[str, Any] = {"data_dir": data_folder(data_dir)}
    else:
        data_options = _find_data_settings(run, data_dir)
        stored_settings = _find_stored_settings(run, name)
        if not gated or dataset_args:
            stored_settings = {} if data_dir else _keep_local_path(stored_settings)
        dataset_args = stored_settings | (dataset_args or {})
        price = run.manifest.price if price is None else price
    exam, _ = prepare_exam(
        name,
        dataset_args,
        protocol=protocol or _find_protocol(run, name),
        seed=seed,
        **data_options,
    )
    job = _load_pilot_job(run, exam, data_dir) if run else None
    usage = _estimate_usage(exam, job, Price(**price) if isinstance(price, Mapping) else price)
    discordance_source: Known = "assumed" if discordance is None else "given"
    if discordance is None and gated and gated.discordance:
        share, discordance_source = gated.discordance, "measured"
    ground = PlanBasis(
        exam, run, job, usage, share, discordance_source, _estimate_design_effect(exam, job), gated
    )
    sample_size = _choose_sample_size(ground, goal, mde or max_cost or limit, repeats)
    return _build_plan(ground, sample_size, repeats, _count_parallel_requests(run, at_once))


class PlanBasis(NamedTuple):
    """Everything that a plan is based on."""

    exam: Exam
    run: Run | None
    """The pilot run."""
    job: ExamScores | None
    """The exam as it was run in the pilot."""
    usage: CostPerReply
    discordance: float
    discordance_from: Known
    deff: float
    gated: GateForecast | None = None
    """The gate that is to be decided."""

    def effect(self, questions: int) -> float:
        """Return the smallest difference that this number of questions shows."""
        return minimal_detectable_effect(questions, self.discordance, deff=self.deff)

    def effect_on_set(self, questions: int) -> float | None:
        """Return the same if only this set of questions counts; None if all of it is asked."""
        unasked = 1 - questions / len(self.exam.samples)
        return self.effect(round(questions / unasked)) if unasked else None

    def needed(self, effect: float, population: int = 0) -> int:
        """Return how many questions show a difference with the test of ``keju compare``."""
        shares = ((self.discordance + sign * effect) / 2 for sign in (1, -1))
        n = self.deff * items_needed_exactly(*shares)
        return max(1, math.ceil(n / (1 + n / population) if population else n))


class RequiredQuestions(NamedTuple):
    """The number of questions that a goal requires."""

    goal: Goal
    questions: int
    in_general: int | None = None
    """With `mde`: the number that shows it for questions like these. With `margin`: the number that
    decides."""
    on_set: int | None = None
    """With `mde`: the number that shows it if only this exact set of questions counts."""


def _choose_sample_size(
    ground: PlanBasis, goal: Goal, value: float | None, repeats: int
) -> RequiredQuestions:
    """Return how many questions a goal requires, at most all questions of the exam."""
    exam_size = len(ground.exam.samples)
    if goal == "mde" and value is not None:
        general_size = ground.needed(value)
        return RequiredQuestions(
            goal, min(exam_size, general_size), general_size, ground.needed(value, exam_size)
        )
    if ground.gated is not None:
        row = ground.gated.row
        decides = row.planned if row.verdict == "inconclusive" else row.n
        return RequiredQuestions(goal, min(exam_size, decides or exam_size), decides)
    if goal == "max_cost" and value is not None:
        return RequiredQuestions(
            goal, min(exam_size, _find_affordable_size(ground.usage, value, repeats) or exam_size)
        )
    return RequiredQuestions(goal, _apply_limit(ground.exam, value))


def _build_plan(
    ground: PlanBasis, sample_size: RequiredQuestions, repeats: int, at_once: int
) -> Plan:
    """Return the plan for this number of questions, and for other numbers of them."""
    exam, run, usage, questions = ground.exam, ground.run, ground.usage, sample_size.questions
    exam_size, units = len(exam.samples), questions * repeats * usage.attempts
    rows = {
        n: usage.row(n, ground.effect(n), repeats, at_once)
        for n in sorted({*(n for n in SIZES if n < exam_size), questions, exam_size})
    }
    planned_row = rows[questions]
    notices, gated = tuple(_notices(ground, sample_size)), ground.gated
    return Plan(
        exam=exam.benchmark,
        protocol=exam.protocol.name,
        goal=sample_size.goal,
        whole=exam_size,
        questions=questions,
        questions_in_general=sample_size.in_general,
        questions_on_set=sample_size.on_set,
        effect=planned_row.effect,
        effect_on_set=ground.effect_on_set(questions),
        discordance=ground.discordance,
        discordance_from=ground.discordance_from,
        deff=ground.deff,
        repeats=repeats,
        requests=units,
        input_tokens=usage.input.times(units),
        output_tokens=usage.output.times(units),
        cost=planned_row.cost,
        seconds=planned_row.seconds,
        at_once=at_once if planned_row.seconds else 0,
        pilot=run.id if run else "",
        measured=usage.measured,
        baseline=gated.baseline if gated else "",
        margin=-gated.row.limit if gated else None,
        seen=gated.row.value if gated else None,
        sizes=tuple(rows.values()),
        notices=notices,
        warnings=tuple(notice.text() for notice in notices),
    )


def _count_parallel_requests(pilot: Run | None, at_once: int) -> int:
    """Return the number of parallel requests: not more than the slots of the pilot's model."""
    slots = pilot.manifest.endpoint.get("slots") if pilot is not None else None
    return min(at_once, slots) if isinstance(slots, int) and slots > 0 else at_once


def _choose_goal(share: float, **goals: float | None) -> Goal:
    """Return the one goal that is set, or all questions; raise UsageError if it is invalid."""
    if not 0 < share <= 1:
        raise UsageError("plan_discordance")
    named_goals = [goal for goal, value in goals.items() if value is not None]
    if len(named_goals) > 1:
        raise UsageError("plan_two_goals", first=named_goals[0], second=named_goals[1])
    mde, max_cost = goals["mde"], goals["max_cost"]
    if mde is not None and not 0 < mde <= share:
        raise UsageError("plan_mde", discordance=share)
    if max_cost is not None and not 0 < max_cost < math.inf:
        raise UsageError("plan_max_cost")
    return cast(Goal, named_goals[0]) if named_goals else "all"


def _find_affordable_size(usage: CostPerReply, max_cost: float, repeats: int) -> int | None:
    """Return how many questions the money pays for; None if they cost nothing.

    Raise UsageError if it does not pay for one.
    """
    if usage.cost is None:
        raise UsageError("plan_without_price")
    question_cost = usage.cost.high * usage.attempts * repeats
    if not question_cost:
        return None
    if question_cost > max_cost:
        raise UsageError("plan_too_little", max_cost=max_cost, each=question_cost)
    return int(max_cost / question_cost)


def _apply_limit(exam: Exam, limit: float | None) -> int:
    """Return how many questions a limit of each subset keeps."""
    try:
        subset_limit = parse_limit(limit)
    except InvalidValue as error:
        raise UsageError("plan_limit", problem=error) from None
    sizes = [len(subset) for subset in exam.subsets]
    if subset_limit is None:
        return sum(sizes)
    return sum(
        min(n, subset_limit if isinstance(subset_limit, int) else math.ceil(n * subset_limit))
        for n in sizes
    )


def _decide_gate(
    name: str,
    pilot: Source | None,
    baseline: Source | None,
    margin: float | None,
    **folders: str | None,
) -> GateForecast | None:
    """Return the gate that is to be decided, if there is one."""
    if margin is None and baseline is None:
        return None
    if margin is None or baseline is None:
        raise UsageError("gate_margin")
    if pilot is None:
        raise UsageError("plan_margin_without_pilot")
    return decision(pilot, baseline, margin, name, **folders)


def _find_stored_settings(run: Run, name: str) -> dict[str, Any]:
    """Return the settings of the exam in a pilot."""
    stored = run.manifest.config.get("dataset_args") or {}
    exam = registry.get(name)
    stored_names = [alias for alias in (name, exam.name, *exam.aliases) if alias in stored]
    stored_name = stored_names[0] if stored_names else resolve_name(name, [*stored])
    return {} if stored_name is None else cast(dict[str, Any], stored[stored_name])


def _keep_local_path(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the setting with the folder of the exam's files."""
    return {name: value for name, value in settings.items() if name == "local_path"}


def _find_data_settings(pilot: Run, data_dir: str | None) -> dict[str, Any]:
    """Return where a pilot found its exams, unless a flag names another folder."""
    config = pilot.config(data_dir)
    return {"data_dir": config.data_dir, "hub": config.dataset_hub, "offline": config.offline}


def _find_protocol(run: Run | None, name: str) -> str | None:
    """Return the protocol of the exam in a pilot.

    None if the pilot did not run the exam, or if the exam's name implies a protocol.
    """
    exam = registry.get(name)
    if run is None or name in exam.alias_protocols:
        return None
    protocols = (
        stored_exam.protocol.name
        for stored_exam in run.manifest.benchmarks
        if stored_exam.name == exam.name
    )
    return next(protocols, None) or None


def _protocol_mismatch_notices(exam: Exam, pilot: Exam, run: str) -> Iterator[Notice]:
    """Yield a notice if the pilot asked its questions in a different way than planned."""
    planned_settings, pilot_settings = (
        {"protocol": side.protocol.name, **side.settings} for side in (exam, pilot)
    )
    for name in planned_settings:
        if not is_comparable(planned_settings[name], pilot_settings.get(name), exam, pilot):
            values = {
                "name": name,
                "theirs": pilot_settings.get(name),
                "ours": planned_settings[name],
            }
            yield Notice("plan_other_manner", {"pilot": run} | values)
            return


def _load_pilot_job(run: Run, exam: Exam, data_dir: str | None) -> ExamScores:
    """Return the exam as it was run in the pilot; raise UsageError if it has no reply."""
    jobs = [
        job for job in read_run(run, None, data_dir).jobs if job.exam.benchmark == exam.benchmark
    ]
    if not jobs:
        raise UsageError("plan_pilot_other", pilot=run.id, name=exam.benchmark)
    if len(_find_measured_units(jobs[0])) < FEWEST_REPLIES:
        raise UsageError("plan_pilot_empty", pilot=run.id)
    return jobs[0]


def _find_measured_units(job: ExamScores) -> list[int]:
    """Return the units whose replies used time, or tokens if they were not waited for."""
    assert job.ledger is not None
    tokens = job.ledger.tokens
    return [unit for unit, seconds in enumerate(job.seconds) if seconds > 0 or tokens(unit) > 0]


def _count_prompt_bytes(exam: Exam, position: int) -> int:
    prompt = exam.render(exam.samples[position])
    return sum(len(message.content.encode()) for message in prompt.messages)


def _average_prompt_bytes(exam: Exam) -> float:
    return sum(_count_prompt_bytes(exam, position) for position in range(len(exam.samples))) / len(
        exam.samples
    )


def _estimate_usage(exam: Exam, job: ExamScores | None, price: Price | None) -> CostPerReply:
    """Return the usage of a reply: measured by a pilot, or assumed."""
    return _guess_usage(exam, price) if job is None else _measure_usage(exam, job, price)


def _measure_usage(exam: Exam, job: ExamScores, price: Price | None) -> CostPerReply:
    """Return the usage of a pilot's replies, scaled from its prompts to the prompts of the exam."""
    assert job.ledger is not None
    replied = _find_measured_units(job)
    ledger, max_tokens = job.ledger, job.sampling.max_tokens
    durations = [job.seconds[unit] for unit in replied]
    seconds = ForecastRange(*cautious_mean(durations)) if any(durations) else None
    attempts = max(1.0, job.meter.requests / max(1, job.meter.replies))
    if not any(map(ledger.tokens, replied)):  # The endpoint does not count tokens.
        guess = _guess_usage(exam, price)
        return guess._replace(seconds=seconds, attempts=attempts, measured=len(replied))
    inputs, outputs = (
        [ledger.count_of(unit, kind) for unit in replied] for kind in ("input", "output")
    )
    lengths = [_count_prompt_bytes(job.exam, unit // job.epochs) for unit in replied]
    # Tokens are proportional to the length of the prompt, which is known for all questions.
    rate, mean_bytes = math.fsum(inputs) / sum(lengths), _average_prompt_bytes(exam)
    residuals = [tokens - rate * length for tokens, length in zip(inputs, lengths, strict=True)]
    half = student_interval(residuals)[1]
    cap = math.inf if max_tokens is None else float(max_tokens)
    mean = rate * mean_bytes
    return CostPerReply(
        ForecastRange(mean, max(0.0, mean - half), mean + half),
        ForecastRange(*cautious_mean(outputs, cap)),
        _measure_cost(ledger, replied, price, max(inputs), cap) if price else None,
        seconds,
        attempts,
        len(replied),
        counted=True,
    )


def _measure_cost(
    ledger: UnitTokens, units: Sequence[int], price: Price, most_input: float, most_output: float
) -> ForecastRange:
    """Return the cost of a reply; no reply costs more than the largest prompt and reply."""
    largest_cost = (most_input * price.input + most_output * price.output) / 1e6
    return ForecastRange(*cautious_mean([ledger.cost(unit, price) for unit in units], largest_cost))


def _guess_usage(exam: Exam, price: Price | None) -> CostPerReply:
    """Return an assumed usage: prompts by their length, replies as long as those of most models."""
    tokens = _average_prompt_bytes(exam) / BYTES_PER_TOKEN
    prompt_tokens = ForecastRange(tokens, tokens / UNSURE, tokens * UNSURE)
    reply = ForecastRange(REPLY, REPLY_LEAST, REPLY_MOST)
    if exam.protocol.decode != "generate":
        reply = ForecastRange(1.0, 1.0, 1.0)
    elif (max_tokens := exam.protocol.max_tokens) is not None:
        reply = ForecastRange(
            *(min(bound, float(max_tokens)) for bound in (reply.value, reply.low, reply.high))
        )
    cost = None
    if price is not None:
        cost = prompt_tokens.times(price.input / 1e6).plus(reply.times(price.output / 1e6))
    return CostPerReply(prompt_tokens, reply, cost, None)


def _estimate_design_effect(exam: Exam, job: ExamScores | None) -> float:
    """Return the factor by which shared contexts increase the number of questions.

    It is measured in the pilot or assumed.
    """
    if not exam.clustered:
        return 1.0
    if job is not None:
        score = accuracy_of(job.exam, job.tallies[0])
        if (score.clusters or 0) >= FEW_CLUSTERS and isinstance(score.deff, float):
            return max(1.0, score.deff)
    sizes = Counter(cluster_of(exam, position) for position in range(len(exam.samples))).values()
    return 1 + ALIKE * (sum(size * size for size in sizes) / sum(sizes) - 1)


def _notices(ground: PlanBasis, sample_size: RequiredQuestions) -> Iterator[Notice]:
    """Yield the notices about anything that could mislead about a plan."""
    exam_size, general_size = len(ground.exam.samples), sample_size.in_general
    if ground.gated is not None:
        row = ground.gated.row
        yield row.conclusion
        if row.needed is not None and row.planned is not None:
            values = {"planned": row.planned, "needed": row.needed, "power": POWER}
            yield Notice("plan_gate_power", values)
        if general_size is not None and general_size > exam_size:
            yield Notice("plan_too_few", {"exam": ground.exam.benchmark, "whole": exam_size})
    elif general_size is not None and general_size > exam_size:
        effect_points = 100 * ground.effect(exam_size)
        yield Notice(
            "plan_beyond", {"whole": exam_size, "needed": general_size, "points": effect_points}
        )
    yield from _pilot_notices(ground)


def _pilot_notices(ground: PlanBasis) -> Iterator[Notice]:
    """Yield notices about a pilot that is missing, small, or not a random part of the exam."""
    reply_tokens = round(ground.usage.output.value)
    if ground.run is None:
        yield Notice("plan_guessed", {"reply": reply_tokens, "pilot": PILOT})
        return
    pilot = ground.run.manifest
    if not ground.usage.counted:
        yield Notice("plan_uncounted", {"reply": reply_tokens, "pilot": pilot.run})
    if ground.usage.measured < PILOT:
        yield Notice("plan_few", {"measured": ground.usage.measured, "pilot": PILOT})
    config = pilot.config
    is_part = any(config.get(name) for name in ("limit", "total", "ids"))
    if is_part and config.get("sample", "first") == "first":
        yield Notice("plan_first", {"pilot": pilot.run})
    if ground.job is not None:
        yield from _protocol_mismatch_notices(ground.exam, ground.job.exam, ground.run.id)
