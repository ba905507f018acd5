"""The structure of ``results.json``: structs whose encoding is the document, schema 1.

Structs are never changed in place; to add something, make a new struct from an old one
(`msgspec.structs.replace`). `to_document` and `from_document` are the only ways to write and read a
document. A key that may be absent has a default; one that may also be null has `UNSET`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from shlex import quote
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from keju.benchmarks.base import Reference
from keju.errors import DataError, Notice, TranslatableText
from keju.files import explain_shape
from keju.messages import catalogue
from keju.results.curve import Curve
from keju.runs.manifest import StoredStop
from keju.stats.estimate import Ends, Estimate
from keju.stats.paired import SIGNIFICANT as SIGNIFICANT
from keju.types import OUTCOMES, UNGRADED, Outcome, Sign

SCHEMA = 1
ACCURACY, MACRO = "accuracy", "macro_accuracy"
WHOLE_SET = "accuracy_whole_set"
"""The accuracy with subsets weighted by their size in the whole set, if only a part was drawn."""
WORST, BEST = "accuracy_worst", "accuracy_best"
CUT_AS_WRONG = "accuracy_cut_as_wrong"
WITHOUT_JUDGE = "accuracy_without_judge"
"""The accuracy by the reader of an exam with closed answers, if a judge replaced it."""
NO_GOLD = "none"
"""The value of `ResultEntry.gold` if nothing could be scored for lack of gold answers."""

INCONCLUSIVE = 0.5
"""The share of replies without a grade above which results are inconclusive."""

Metric = Estimate


LONGEST_FACT = 60
"""The number of characters of a fact that a sentence quotes."""
DATA = "data "
"""The prefix of the condition that holds the hash of a data file."""
LISTED = 100
"""The number of questions that an entry lists by id."""


class SubsetRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One subset, or one group of subsets."""

    name: str
    n: int
    """The number of questions with a grade, which is the denominator of the accuracy; the number of
    all questions with a reply if the exam has no gold answers."""
    accuracy: float | None
    """For a group: the mean of its subsets."""
    ci95: Ends | None
    outcomes: dict[Outcome, int]
    chance: float | None = None
    title: str = ""
    population: int = 0
    """The number of rows of the published subset, if fewer were drawn from it."""
    micro_accuracy: float | UnsetType | None = UNSET
    """For a group: the mean over its questions."""
    micro_ci95: Ends | UnsetType | None = UNSET
    subsets: tuple[str, ...] = ()
    partial: bool = False
    """For a group: whether some of its subsets were not asked or have no grade. Its accuracy is
    then unknown, and `micro_accuracy` is over the questions that were asked."""
    bounds: Ends | None = None
    """The accuracy if all replies that lack a grade were wrong, and if they were right; None if no
    reply lacks a grade."""
    withheld: str = ""
    """Why a known accuracy has no interval: the code of a notice."""
    cut_right: int = 0
    """The number of truncated replies that are scored as right: published readers score the answer
    that they find in a reply that was cut off."""
    ungraded: int = 0
    """The number of further questions, whose replies have no grade. Up to version 1.0 they were
    part of `n`."""


class UsageTotals(msgspec.Struct, frozen=True):
    """The usage of the requests behind some results."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input that came from the prefix cache."""
    reasoning_tokens: int = 0
    """The part of the output that is hidden reasoning."""
    written_tokens: int | msgspec.UnsetType = msgspec.UNSET
    """The part of the input that the prefix cache stored for later requests, if the endpoint
    reports it."""
    retries: int | msgspec.UnsetType = msgspec.UNSET
    """The number of requests that followed a failed attempt."""
    cost: float | msgspec.UnsetType = msgspec.UNSET
    """Money, if a price is known."""


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The duration of a run and of its replies, in seconds."""

    seconds: float
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_max: float | None = None


class ErrorCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why samples have no usable reply: counts by kind, and an example of the most common kind."""

    kinds: dict[str, int]
    example: str
    """An example of the most common kind."""
    examples: dict[str, str] = {}
    """An example of each kind."""


class ErrataCounts(msgspec.Struct, frozen=True):
    """The number of asked questions that are known to be faulty, and their ids."""

    n: int
    ids: tuple[str, ...] = ()
    """The first of them; empty in older files."""


class LabelledCost(msgspec.Struct, frozen=True):
    """The cost of measuring a judge on labelled answers."""

    usage: UsageTotals
    cost: float | None


class SecondJudge(msgspec.Struct, frozen=True):
    """How far a second judge agrees with the first."""

    model: str
    n: int
    disagreements: int
    observed: float | None
    kappa: float | None


class JudgeAgreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far verdicts agree: repeats of one judge, and two judges."""

    self_consistency: float | UnsetType | None = UNSET
    second: SecondJudge | None = None


class JudgeAccuracy(msgspec.Struct, frozen=True):
    """How often a judge is right about labelled answers."""

    sensitivity: float | None
    specificity: float | None
    positives: int
    negatives: int
    unjudged: int


class JudgeReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The judge, its verdicts and its cost."""

    model: str
    strategy: str
    protocol: str
    protocol_version: str
    judged: int
    ungraded: int
    usage: UsageTotals
    cost: float | None
    labelled: LabelledCost | None = None
    verdicts: dict[str, int] = {}
    repeats: int = 1
    ties: int = 0
    """The number of answers on which the repeats are split evenly, so that the first verdict
    decided."""
    doubts: int = 0
    """The number of verdicts whose reply contains other verdicts as well."""
    failed_replies: dict[str, int] = {}
    """The number of replies without a verdict, by reason."""
    agreement: JudgeAgreement | None = None
    quality: JudgeAccuracy | None = None


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """How one tool was used."""

    name: str
    calls: int
    samples: int
    """The number of episodes with at least one call of it."""
    kinds: dict[str, int]
    """The number of calls by how they ended."""
    seconds_p50: float | None
    seconds_p95: float | None
    seconds_max: float | None
    queued: float
    """The total time in seconds that its calls waited for their turn."""
    result_chars: int


class ToolStats(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the tools of an arm were used."""

    offered: int
    used: int
    """The number of offered tools that were called at least once."""
    episodes: int
    with_calls: int
    """The number of episodes with at least one call."""
    calls: int
    failed: int
    """The number of calls that did not end well, for any reason."""
    requests: int
    stops: dict[str, int]
    """Why the episodes ended."""
    unknown: int = 0
    """The number of calls of tools that do not exist."""
    tools: tuple[ToolRow, ...] = ()
    score_with_calls: float | None = None
    """The accuracy of the episodes that called a tool. It is only descriptive, since harder
    questions call more tools."""
    score_without_calls: float | None = None
    schema_tokens: int | None = None
    """The number of tokens that the tools' definitions add to each request."""
    schema_tokens_from: str = ""
    """The source of this number: the ``endpoint``, or an ``estimate``."""


class ResultEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The results of one reader on one exam."""

    name: str
    protocol: str
    protocol_version: str
    reader: str
    headline: str
    """The name of the metric that the protocol's publication reports."""
    n: int
    """The number of questions with a grade; the number of all questions with a reply if there are
    no gold answers."""
    metrics: dict[str, Metric]
    outcomes: dict[Outcome, int]
    subsets: tuple[SubsetRow, ...]
    groups: tuple[SubsetRow, ...]
    reference: tuple[Reference, ...]
    warnings: tuple[str, ...]
    """The notices in English."""
    notices: tuple[Notice, ...]
    usage: UsageTotals
    timing: Timing
    gold: str = ""
    """The gold answers that counted, if there was a choice; `NO_GOLD` if there are none."""
    grader: str = ""
    """``exact`` if, for lack of a judge, open answers that no rule decides had to match the
    target exactly. The accuracy is then a lower bound; its `bounds` end at the best score that a
    judge could give."""
    arm: str = ""
    """The name of the arm, if the run has arms."""
    tools: ToolStats | None = None
    """How the tools of the arm were used."""
    difficulty: float | None = None
    """The difficulty of its questions, if it can be chosen; 1 is the published difficulty."""
    repeats: int = 1
    signs: dict[Sign, int] = {}
    """The number of replies with each sign that `robust`, if it is the secondary reader, or else
    the reader found."""
    order_decides: tuple[str, ...] = ()
    """The questions that only the order of two answers decides, up to `LISTED`."""
    errata: ErrataCounts | None = None
    errors: ErrorCounts | None = None
    judge: JudgeReport | None = None
    stopping: StoredStop | None = None
    """How a stopping rule ended the run, if it did."""
    gold_differs: int = 0
    """The number of predictions whose gold answer differs from the current one."""
    cut_right: int = 0
    """The number of truncated replies that are scored as right: published readers score the answer
    that they find in a reply that was cut off."""
    ungraded: int = 0
    """The number of further questions, whose replies have no grade. Up to version 1.0 they were
    part of `n`."""

    @property
    def questions_with_reply(self) -> int:
        """The number of questions with a reply."""
        return self.n + self.ungraded

    @property
    def inconclusive(self) -> bool:
        """Whether most replies have no grade, so that the possible scores have a wide range."""
        ungraded = sum(self.outcomes[outcome] for outcome in UNGRADED)
        total = sum(self.outcomes[outcome] for outcome in OUTCOMES)
        return self.gold != NO_GOLD and ungraded > INCONCLUSIVE * total

    @property
    def full_name(self) -> str:
        """The exam and, if it has one, the arm, e.g. ``demo · calc``."""
        return f"{self.name} · {self.arm}" if self.arm else self.name

    def with_notices(self, notices: Iterable[Notice]) -> ResultEntry:
        """Return this entry with further notices."""
        new_notices = tuple(notices)
        return msgspec.structs.replace(
            self,
            notices=self.notices + new_notices,
            warnings=self.warnings + tuple(notice.text() for notice in new_notices),
        )

    def with_first_notice(self, notice: Notice) -> ResultEntry:
        """Return this entry with a notice before all others."""
        return msgspec.structs.replace(
            self,
            notices=(notice, *self.notices),
            warnings=(notice.text(), *self.warnings),
        )

    def with_run(self, run: str, *, is_file: bool = False, alone: bool = True) -> ResultEntry:
        """Return this entry with the name of its run in the commands that its notices suggest.

        A file of predictions is named by its flags, which only ``keju score`` accepts. If the run
        has other exams, so that this one is not `alone`, the command for ``keju score`` names the
        exam: the others may lack its readers.
        """
        of_score = run if alone else f"{run} --datasets {quote(self.name)}"
        templates = catalogue("en")
        notices = []
        for notice in self.notices:
            of_file = f"{notice.code}_of_file"
            code = of_file if is_file and of_file in templates else notice.code
            template = templates.get(code, "")
            scored = "keju score {run}" in template
            names_run = scored or (not is_file and "{run}" in template)
            run_values = {"run": of_score if scored else run} if names_run else {}
            values = run_values | dict(notice.values)
            notices.append(msgspec.structs.replace(notice, code=code, values=values))
        without_notices = msgspec.structs.replace(self, notices=(), warnings=())
        return without_notices.with_notices(notices)

    def with_metrics(self, metrics: Mapping[str, Metric]) -> ResultEntry:
        """Return this entry with further metrics."""
        return msgspec.structs.replace(self, metrics=self.metrics | dict(metrics))


class CostChange(msgspec.Struct, frozen=True):
    """The average usage of a question in two arms, and how much more the later arm uses."""

    base: float
    arm: float
    difference: float
    ci95: Ends | None
    """None for a single question."""


class SubsetChange(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two scored exams on one subset."""

    name: str
    n: int
    difference: float
    arm_only: int
    base_only: int
    p: float
    p_adjusted: float
    """`p` adjusted for all subsets, so that the rate of false discoveries is controlled."""
    p_log10: float | None = None
    """The base-10 logarithm of `p`, which itself is never below 1e-300."""
    base_rate: float | None = None
    arm_rate: float | None = None
    ci95: Ends | None = None
    detectable: float | None = None
    """The smallest difference that this number of questions shows with a power of about 0.8."""


class AssertionChange(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The scores of one assertion about tools or state, on the questions that have it in both."""

    name: str
    """``expect_tools``, ``expect_order``, …, ``state``, or ``answer`` for the answer alone."""
    n: int
    base_rate: float | None = None
    arm_rate: float | None = None
    difference: float | None = None
    ci95: Ends | None = None
    """The interval of the difference."""
    p: float | None = None
    score_ci95: Ends | None = None
    """The interval of the score, where nothing is compared."""


class Mismatch(msgspec.Struct, frozen=True):
    """A fact that differs between two scored exams."""

    field: str
    first: Any
    second: Any
    decisive: bool
    """Whether the difference makes their scores incomparable."""

    @property
    def name(self) -> Notice | str:
        """The name of the fact as a notice; a setting keeps its own name."""
        if self.field.startswith(DATA):
            return Notice("fact_data", {"file": self.field.removeprefix(DATA)})
        code = f"fact_{self.field.replace(' ', '_')}"
        return Notice(code) if code in catalogue("en") else self.field

    @property
    def words(self) -> Notice:
        """The name with both values, if they are informative: ``temperature (0, 0.7)``."""
        if (plain_name := self.plain_name) is not None:
            return plain_name
        values = {"first": quote_fact(self.first), "second": quote_fact(self.second)}
        return Notice("fact_with_values", {"fact": self.name, **values})

    @property
    def plain_name(self) -> Notice | None:
        """The name alone, if the values are not informative, such as hashes; otherwise None."""
        name, values = self.name, (self.first, self.second)
        if isinstance(name, Notice) and self.field not in ("dtype", "attention", "api_version"):
            return name
        if any(
            (isinstance(value, Mapping) and value) or quote_fact(value).endswith("…")
            for value in values
        ):
            return Notice("fact_setting", {"name": self.field})
        return None

    def told(self, code: str, **names: str) -> tuple[str, dict[str, Any]]:
        """Return the code and values of a sentence about it.

        The code is `code` with both values, or ``CODE_plainly`` without values.
        """
        if (fact := self.plain_name) is not None:
            return f"{code}_plainly", {**names, "fact": fact}
        values = {"first": quote_fact(self.first), "second": quote_fact(self.second)}
        return code, {**names, "field": self.field, **values}


class InNotebook:
    """Displays an object as tables and pictures in a notebook, and as a few lines elsewhere.

    The module that does this is in a higher package, so it is named by text.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the conclusions only; the fields hold everything."""
        return str(import_module("keju.reporting.notebook").text_of(self))

    def _repr_html_(self) -> str:
        return str(import_module("keju.reporting.notebook").html_of(self))


class ChangedQuestion(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question that is scored differently in two scored exams, with both answers."""

    id: str
    subset: str
    target: str
    base: float
    arm: float
    base_answer: str | None
    arm_answer: str | None
    base_outcome: Outcome
    arm_outcome: Outcome
    question: str = ""
    """The texts are present only if they were requested."""
    choices: tuple[str, ...] = ()
    base_reply: str = ""
    arm_reply: str = ""


Verdict = Literal["above", "below", "tie", "nothing", "not comparable"]


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Two scored exams on the questions that have a score in both; differences are arm minus base.

    They are two arms of one run, or come from two runs, logs or files of predictions.
    """

    exam: str
    reader: str
    base: str
    arm: str
    base_model: str = ""
    arm_model: str = ""
    """Present if they are not arms of one run."""
    unlike: tuple[Mismatch, ...] = ()
    """The differences between their settings, the most important first. A decisive one makes them
    incomparable."""
    n: int
    left_out: int
    """The number of questions that lack a grade in either arm."""
    left_out_why: dict[str, int] = {}
    """The same number by the outcome that has no grade."""
    only_in_base: int = 0
    """The number of questions that only one of them has a record of."""
    only_in_arm: int = 0
    bounds: Ends | None = None
    """The difference including the left-out questions, if all of them went against the arm, and if
    all went for it."""
    base_is_first: bool = True
    """Whether the base is the first arm of its exam, with which the others are compared."""
    base_rate: float | None
    arm_rate: float | None
    difference: float | None
    ci95: Ends | None
    p: float | None
    """McNemar's exact p for right-or-wrong scores of independent questions; otherwise the p of a
    permutation test."""
    p_log10: float | None = None
    """The base-10 logarithm of `p`, which itself is never below 1e-300."""
    p_holm: float | None = None
    """The same p adjusted for all pairs of the exam (Holm), if there are several."""
    both: int | None
    """The number of questions that both arms get right; None if scores are graded. The same applies
    to `neither`."""
    arm_only: int
    """The number of questions on which the arm scores more than the base."""
    base_only: int
    neither: int | None
    clusters: int | None = None
    detectable: float | None = None
    """The smallest difference that this number of questions shows with a power of about 0.8."""
    needed: int | None = None
    """The number of questions that show a difference of the observed size with a power of 0.8."""
    subsets: tuple[SubsetChange, ...] = ()
    gained: tuple[str, ...] = ()
    """The questions of `arm_only`, up to `LISTED`."""
    lost: tuple[str, ...] = ()
    flips: Sequence[ChangedQuestion] = ()
    """All questions with different scores, if they were requested."""
    notices: tuple[Notice, ...] = ()
    """Notices about anything that could mislead about the comparison."""
    se: float | None = None
    headline: str = ""
    """The metric of the exam's headline, if it is not the mean over questions."""
    deff: float = 1.0
    tokens: CostChange | None = None
    cost: CostChange | None = None
    seconds: CostChange | None = None
    assertions: tuple[AssertionChange, ...] = ()
    """The same comparison for each assertion about tools or state."""

    @property
    def obstacle(self) -> Mismatch | None:
        """The most important difference that makes them incomparable; None if there is none."""
        return next((mismatch for mismatch in self.unlike if mismatch.decisive), None)

    @property
    def verdict(self) -> Verdict:
        """Which one is better; a tie unless both the interval and p show a difference.

        If several pairs are compared, p is adjusted (Holm).
        """
        if self.obstacle is not None:
            return "not comparable"
        p = self.p if self.p_holm is None else self.p_holm
        if self.difference is None or p is None:
            return "nothing"
        if self.ci95 is None or self.ci95[0] <= 0 <= self.ci95[1] or p >= SIGNIFICANT:
            return "tie"
        return "above" if self.difference > 0 else "below"

    @property
    def conclusion(self) -> Notice:
        """A sentence that says what the comparison shows, and how many questions show more."""
        names: dict[str, Any] = {"arm": self.arm, "base": self.base, "n": self.n}
        if mismatch := self.obstacle:
            return Notice(*mismatch.told("compare_unlike", base=self.base, arm=self.arm))
        if self.difference is None or self.p is None:
            return Notice("arms_not_compared", names)
        if self.ci95 is None:
            return Notice("arms_one_question" if self.n == 1 else "arms_one_cluster", names)
        p = self.p if self.p_holm is None else self.p_holm
        values = {**names, "points": 100 * self.difference, "p": p, "needed": self.needed}
        values |= {"alone": int(self.p_holm is None)}  # p is of this pair alone, or Holm's
        values |= {"low": 100 * self.ci95[0], "high": 100 * self.ci95[1]}
        values |= {"apart": abs(100 * self.difference), "detectable": 100 * (self.detectable or 0)}
        if not self.arm_only and not self.base_only:
            return Notice("arms_alike", values)
        if self.base_model and self.needed:
            return Notice(f"compare_{self.verdict}", values)
        if self.verdict == "tie":
            return Notice("arms_undecided" if self.needed else "arms_even", values)
        is_above = self.difference > 0
        if self.base_is_first:
            return Notice("arms_better" if is_above else "arms_worse", values)
        return Notice("arms_above" if is_above else "arms_below", values)


class Disagreement(msgspec.Struct, frozen=True):
    """A reply whose outcome depends on its reader."""

    id: str
    subset: str
    target: str
    answers: dict[str, str | None]
    """By reader."""
    outcomes: dict[str, Outcome]
    scores: dict[str, float] = {}

    @property
    def decides(self) -> bool:
        """Whether the score, not only the outcome, depends on the reader."""
        return len(set(self.scores.values())) > 1


ToolVerdict = Literal["earns", "harms", "small", "open"]
"""The evidence about a tool: a loss without it (or a gain with it alone), the opposite, that it
matters little, or nothing yet."""


class ToolEffect(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one tool is worth: its arm compared with the first arm."""

    tool: str
    """Its name at the server."""
    arm: str
    """The arm without the tool, or with this tool alone."""
    verdict: ToolVerdict
    """``earns``: a loss without it, or a gain with it alone, is shown. ``harms``: the opposite is
    shown. ``small``: it is shown to matter less than `small`. ``open``: nothing is shown yet."""
    n: int
    """The number of questions that both arms have a score for."""
    difference: float | None
    """The score of the arm minus the score of the first arm."""
    ci95: Ends | None
    """Its interval; valid at every look if there were several."""
    p_holm: float | None
    """Adjusted for all tools (Holm)."""
    tokens: int | None = None
    """The tokens that its definition adds to every request."""
    tokens_from: str = ""
    """`endpoint` if the model counted them, otherwise `estimate`."""
    tokens_per_question: float | None = None
    """The same for all requests of a question."""
    calls: int = 0
    """Calls of the tool, in the arm with all tools or in its own."""
    failed: int = 0
    """The number of these calls that failed."""
    seconds_p50: float | None = None
    """The median time of these calls, in seconds."""
    seconds: float | None = None
    """How many more seconds a question of the arm takes than one of the first arm."""
    looks: int = 0
    """How often the arm was compared before it ended; 0 if only the last question could end it."""


class ToolSweep(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Which tools of an exam earn their tokens: each tool left out, or alone."""

    exam: str
    reader: str
    kind: Literal["left_out", "alone"]
    """Whether each arm lacks one tool, or has one tool alone."""
    base: str
    """The first arm: with all tools, or without tools."""
    small: float
    """The difference that counts as small."""
    questions: int
    """The number of questions of the exam. Arms that are decided are not asked all of them."""
    rows: tuple[ToolEffect, ...]
    """One row for each tool: first those that earn their tokens, the largest effect first."""
    sentence: str = ""
    """The conclusion, in English."""


class EndpointUse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The use of one endpoint over all sessions of a run."""

    address: str
    """Without credentials."""
    requests: int
    replies: int
    mean_seconds: float | None
    """The average duration of a reply, in seconds."""
    input_tokens: int
    cached_tokens: int
    cached_share: float | None
    """The share of the input that came from its prefix cache."""
    output_tokens: int
    moved: int = 0
    """The number of questions that were moved from it to another endpoint."""
    outages: int = 0
    down_seconds: float = 0.0
    other_models: dict[str, int] = {}
    """Other model names that it reported, and the number of replies that were not used because of
    them."""
    odd_wait: str = ""
    """A Retry-After that it sent but Keju did not follow, because it was too long or not
    readable."""
    lost: Notice | None = None
    """Why it could not be used any more, or not at all."""


class Results(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The whole of ``results.json``."""

    schema: int
    run: str
    model: str
    benchmarks: tuple[ResultEntry, ...]
    complete: bool | None = None
    """Whether everything was asked and graded; None if nothing had to be asked."""
    stopped: str = ""
    """Why a run ended early, in English."""
    stop: Notice | None = None
    """The same as a code with values, for other languages."""
    created: str = ""
    """When the run was started."""
    version: str = ""
    """The version of Keju that made this document."""
    folder: str = ""
    """Where the run is stored."""
    settings: dict[str, Any] = {}
    """The settings of the run, without secrets."""
    disagreements: tuple[Disagreement, ...] | None = None
    """Present if several readers were requested and they disagree."""
    comparisons: tuple[Comparison, ...] = ()
    """Every pair of arms, if the run has several."""
    endpoints: tuple[EndpointUse, ...] = ()
    """The use of each endpoint, if the run had several."""
    curves: tuple[Curve, ...] = ()
    """Accuracy against difficulty, if an exam was run at several difficulties."""
    sweeps: tuple[ToolSweep, ...] = ()
    """What each tool is worth, if each was left out or offered alone."""

    def is_level(self, entry: ResultEntry) -> bool:
        """Whether an entry is one difficulty of a curve; then its arm only names the difficulty."""
        return any(
            (curve.exam, curve.reader, point.arm) == (entry.name, entry.reader, entry.arm)
            for curve in self.curves
            for point in curve.points
        )


# A digest in hexadecimal digits, such as a SHA-256. Its first digits identify it.
_HASH = re.compile(r"[0-9a-f]{32,}")
_HASH_SHOWN = 12


def quote_fact(value: Any) -> str:
    """Return a short text for a fact: ``0.7``, ``Q: {question}…``, or ``none`` for None."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = "none" if value is None else text
    if _HASH.fullmatch(text):
        return f"{text[:_HASH_SHOWN]}…"
    return text if len(text) <= LONGEST_FACT else f"{text[:LONGEST_FACT]}…"


_FIELDS = frozenset(Metric.__struct_fields__)


def to_document(results: Results) -> dict[str, Any]:
    """Return the plain document, as it is printed, written and returned to callers of Python."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(results))
    for entry in document["benchmarks"]:
        for metric in entry["metrics"].values():
            metric |= metric.pop("details", {})
    return document


def from_document(document: Mapping[str, Any]) -> Results:
    """Return the results that a document contains.

    Documents of version 0.1 have sentences instead of notices. Raise DataError if it is not a
    results document.
    """
    try:
        entries = []
        for entry in document["benchmarks"]:
            metrics = {  # Keys that only one metric has go into its details.
                name: {key: value for key, value in metric.items() if key in _FIELDS}
                | {"details": {key: value for key, value in metric.items() if key not in _FIELDS}}
                for name, metric in entry["metrics"].items()
            }
            sentences = [{"code": sentence} for sentence in entry["warnings"]]
            entries.append({"notices": sentences, **entry, "metrics": metrics})
        return msgspec.convert({**document, "benchmarks": entries}, Results)
    except msgspec.ValidationError as error:
        raise DataError("results_shape", problem=explain_shape(error)) from None
    except KeyError as error:
        problem = TranslatableText("shape_missing", name=str(error.args[0]), place="")
        raise DataError("results_shape", problem=problem) from None
    except (TypeError, AttributeError):
        problem = TranslatableText("shape_other")
        raise DataError("results_shape", problem=problem) from None
