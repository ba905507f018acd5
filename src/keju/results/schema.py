"""The shape of ``results.json``: structs whose encoding is the document, schema 1.

Nobody edits a document: whoever has something to add makes a new struct of an old one
(`msgspec.structs.replace`). `to_document` and `from_document` are the only ways out and in.
A key that may be absent has a default; one that may also be null has `UNSET`.
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
from keju.errors import DataError, Hint, Notice
from keju.files import explain_shape
from keju.messages import catalogue
from keju.results.curve import Curve
from keju.runs.manifest import Stopping
from keju.stats.estimate import Ends, Estimate
from keju.stats.paired import SIGNIFICANT as SIGNIFICANT
from keju.types import OUTCOMES, UNGRADED, Outcome, Sign

SCHEMA = 1
ACCURACY, MACRO = "accuracy", "macro_accuracy"
WHOLE_SET = "accuracy_whole_set"
"""The accuracy with subsets weighted by their size in the whole set, of which a part was drawn."""
WORST, BEST = "accuracy_worst", "accuracy_best"
CUT_AS_WRONG = "accuracy_cut_as_wrong"
WITHOUT_JUDGE = "accuracy_without_judge"
"""What the reader of an exam with closed answers gives, where a judge took its place."""
NO_GOLD = "none"
"""What `Entry.gold` says where nothing could be scored for lack of gold answers."""

INCONCLUSIVE = 0.5
"""Share of replies without a grade above which results say nothing."""

Metric = Estimate


LONGEST_FACT = 60
"""Characters of a fact that a sentence quotes."""
DATA = "data "
"""Stands before the name of a file whose hash is a condition of a comparison."""
LISTED = 100
"""Questions that an entry lists by id."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One subset, or one group of subsets."""

    name: str
    n: int
    """Questions with a grade, of which the accuracy is the mean; all questions with a reply where
    the exam has no gold answers."""
    accuracy: float | None
    """Of a group: the mean of its subsets."""
    ci95: Ends | None
    outcomes: dict[Outcome, int]
    chance: float | None = None
    title: str = ""
    population: int = 0
    """Rows of the published subset, where fewer were drawn from it."""
    micro_accuracy: float | UnsetType | None = UNSET
    """Of a group: the mean over its questions."""
    micro_ci95: Ends | UnsetType | None = UNSET
    subsets: tuple[str, ...] = ()
    partial: bool = False
    """Of a group: whether subsets of it were not asked, or have no grade; its accuracy is unknown
    then, and `micro_accuracy` is over the questions that were asked."""
    bounds: Ends | None = None
    """The accuracy with all replies that lack a grade wrong, and right; None if none lacks one."""
    withheld: str = ""
    """Why an accuracy that is known has no interval: the code of a notice."""
    cut_right: int = 0
    """Of the truncated replies, those whose score is that of a right answer all the same: published
    readers score what they find in a reply that was cut off."""
    ungraded: int = 0
    """Further questions, whose replies have no grade. Up to version 1.0 they were part of `n`."""


class Usage(msgspec.Struct, frozen=True):
    """What the requests behind some results took."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input, what came from the prefix cache."""
    reasoning_tokens: int = 0
    """Of the output, hidden reasoning."""
    written_tokens: int | msgspec.UnsetType = msgspec.UNSET
    """Of the input, what the prefix cache has kept for later requests, where it tells."""
    retries: int | msgspec.UnsetType = msgspec.UNSET
    """Of the requests, those that followed a failed attempt."""
    cost: float | msgspec.UnsetType = msgspec.UNSET
    """Money, where a price is known."""


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a run took, and its replies, in seconds."""

    seconds: float
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_max: float | None = None


class Errors(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why samples have no usable reply: counts by kind, and one of the commonest."""

    kinds: dict[str, int]
    example: str
    """Of the commonest kind."""
    examples: dict[str, str] = {}
    """One of each kind."""


class Errata(msgspec.Struct, frozen=True):
    """How many of the questions asked are known to be faulty, and which."""

    n: int
    ids: tuple[str, ...] = ()
    """The first of them; none in older files."""


class LabelledCost(msgspec.Struct, frozen=True):
    """What it took to measure a judge on labelled answers."""

    usage: Usage
    cost: float | None


class SecondJudge(msgspec.Struct, frozen=True):
    """How far a second judge agrees with the first."""

    model: str
    n: int
    disagreements: int
    observed: float | None
    kappa: float | None


class Agreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far the verdicts agree: repeats of one judge, and two judges."""

    self_consistency: float | UnsetType | None = UNSET
    second: SecondJudge | None = None


class Quality(msgspec.Struct, frozen=True):
    """How often a judge is right about labelled answers."""

    sensitivity: float | None
    specificity: float | None
    positives: int
    negatives: int
    unjudged: int


class Judge(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who judged the answers, what came of it, and what it cost."""

    model: str
    strategy: str
    protocol: str
    protocol_version: str
    judged: int
    ungraded: int
    usage: Usage
    cost: float | None
    labelled: LabelledCost | None = None
    verdicts: dict[str, int] = {}
    repeats: int = 1
    ties: int = 0
    """Answers on which the repeats are split evenly, so that the first verdict decided."""
    doubts: int = 0
    """Verdicts beside which the judge's reply has others."""
    failed_replies: dict[str, int] = {}
    """Replies without a verdict, by reason."""
    agreement: Agreement | None = None
    quality: Quality | None = None


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """How one tool was used."""

    name: str
    calls: int
    samples: int
    """Episodes with at least one call of it."""
    kinds: dict[str, int]
    """Calls by how they ended."""
    seconds_p50: float | None
    seconds_p95: float | None
    seconds_max: float | None
    queued: float
    """Seconds that its calls waited for their turn, all together."""
    result_chars: int


class ToolStats(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the tools of an arm were used."""

    offered: int
    used: int
    """Of the tools offered, those that were called at least once."""
    episodes: int
    with_calls: int
    """Episodes with at least one call."""
    calls: int
    failed: int
    """Calls that did not end well, whosever fault it was."""
    requests: int
    stops: dict[str, int]
    """Why the episodes ended."""
    unknown: int = 0
    """Calls of tools that do not exist."""
    tools: tuple[ToolRow, ...] = ()
    score_with_calls: float | None = None
    """Accuracy of the episodes that called a tool; descriptive, as harder questions call more."""
    score_without_calls: float | None = None
    schema_tokens: int | None = None
    """Tokens that the tools' definitions add to each request."""
    schema_tokens_from: str = ""
    """Who says so: the ``endpoint``, or an ``estimate``."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one reader makes of one exam."""

    name: str
    protocol: str
    protocol_version: str
    reader: str
    headline: str
    """Name of the metric that the protocol's publication reports."""
    n: int
    """Questions with a grade; all questions with a reply where there are no gold answers."""
    metrics: dict[str, Metric]
    outcomes: dict[Outcome, int]
    subsets: tuple[Row, ...]
    groups: tuple[Row, ...]
    reference: tuple[Reference, ...]
    warnings: tuple[str, ...]
    """The notices in English."""
    notices: tuple[Notice, ...]
    usage: Usage
    timing: Timing
    gold: str = ""
    """Which gold answers counted, where there was a choice; `NO_GOLD` if there are none."""
    grader: str = ""
    """``exact`` where open answers that no rule decides had to be the target's very text for lack
    of a judge: the accuracy is a lower bound then; its `bounds` end at what a judge may find."""
    arm: str = ""
    """Where the run has arms: with which tools, by the name of the arm."""
    tools: ToolStats | None = None
    """How the tools of the arm were used."""
    difficulty: float | None = None
    """How hard its questions are, where that can be chosen; 1 is as published."""
    repeats: int = 1
    signs: dict[Sign, int] = {}
    """How many replies show what `robust`, where it stands beside, or the reader itself noticed."""
    order_decides: tuple[str, ...] = ()
    """The questions where nothing but the order of two answers decides, up to `LISTED`."""
    errata: Errata | None = None
    errors: Errors | None = None
    judge: Judge | None = None
    stopping: Stopping | None = None
    """How a rule ended the asking, where one did."""
    gold_differs: int = 0
    """How many predictions carry another gold answer than the current one."""
    cut_right: int = 0
    """Of the truncated replies, those whose score is that of a right answer all the same: published
    readers score what they find in a reply that was cut off."""
    ungraded: int = 0
    """Further questions, whose replies have no grade. Up to version 1.0 they were part of `n`."""

    @property
    def asked(self) -> int:
        """Questions with a reply."""
        return self.n + self.ungraded

    @property
    def inconclusive(self) -> bool:
        """Whether most replies have no grade, so that the range says next to nothing."""
        lost = sum(self.outcomes[outcome] for outcome in UNGRADED)
        whole = sum(self.outcomes[outcome] for outcome in OUTCOMES)
        return self.gold != NO_GOLD and lost > INCONCLUSIVE * whole

    @property
    def full_name(self) -> str:
        """The exam and, where it has one, the arm, e.g. ``bbh · calc``."""
        return f"{self.name} · {self.arm}" if self.arm else self.name

    def with_notices(self, notices: Iterable[Notice]) -> Entry:
        """This entry with further notices."""
        more = tuple(notices)
        return msgspec.structs.replace(
            self,
            notices=self.notices + more,
            warnings=self.warnings + tuple(notice.text() for notice in more),
        )

    def told_of(self, run: str, *, is_file: bool = False, alone: bool = True) -> Entry:
        """This entry with the name of its run in the commands that its notices give.

        A file of predictions is named by its flags, which no command takes but ``keju score``.
        Where the exam is not `alone` in its run, ``keju score`` is told which one to read: the
        others may lack its readers.
        """
        of_score = run if alone else f"{run} --datasets {quote(self.name)}"
        templates = catalogue("en")
        notices = []
        for notice in self.notices:
            of_file = f"{notice.code}_of_file"
            code = of_file if is_file and of_file in templates else notice.code
            template = templates.get(code, "")
            scored = "keju score {run}" in template
            named = scored or (not is_file and "{run}" in template)
            told = {"run": of_score if scored else run} if named else {}
            values = told | dict(notice.values)
            notices.append(msgspec.structs.replace(notice, code=code, values=values))
        bare = msgspec.structs.replace(self, notices=(), warnings=())
        return bare.with_notices(notices)

    def with_metrics(self, metrics: Mapping[str, Metric]) -> Entry:
        """This entry with further metrics."""
        return msgspec.structs.replace(self, metrics=self.metrics | dict(metrics))


class Change(msgspec.Struct, frozen=True):
    """What a question takes in two arms on average, and how much more in the later one."""

    base: float
    arm: float
    difference: float
    ci95: Ends | None
    """None for a single question."""


class SubsetChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two sittings on the questions of one subset."""

    name: str
    n: int
    difference: float
    arm_only: int
    base_only: int
    p: float
    p_adjusted: float
    """The same p with the rate of false discoveries over all subsets controlled."""
    p_log10: float | None = None
    """The logarithm of `p`, which itself is never below 1e-300."""
    base_rate: float | None = None
    arm_rate: float | None = None
    ci95: Ends | None = None
    detectable: float | None = None
    """The smallest difference that so many questions show with a power of 0.8, about."""


class Unlike(msgspec.Struct, frozen=True):
    """Something that two sittings have otherwise."""

    field: str
    first: Any
    second: Any
    decisive: bool
    """Whether it makes their scores incomparable."""

    @property
    def name(self) -> Notice | str:
        """What it is, in words; a setting by its own name."""
        if self.field.startswith(DATA):
            return Notice("fact_data", {"file": self.field.removeprefix(DATA)})
        code = f"fact_{self.field.replace(' ', '_')}"
        return Notice(code) if code in catalogue("en") else self.field

    @property
    def words(self) -> Notice:
        """The same with both values where they tell something: ``temperature (0, 0.7)``."""
        if (bare := self.bare) is not None:
            return bare
        values = {"first": shown(self.first), "second": shown(self.second)}
        return Notice("fact_with_values", {"fact": self.name, **values})

    @property
    def bare(self) -> Notice | None:
        """The name of what has values that tell nobody anything, such as hashes; else None."""
        name, values = self.name, (self.first, self.second)
        if isinstance(name, Notice) and self.field not in ("dtype", "attention", "api_version"):
            return name
        if any((isinstance(v, Mapping) and v) or shown(v).endswith("…") for v in values):
            return Notice("fact_setting", {"name": self.field})
        return None

    def told(self, code: str, **names: str) -> tuple[str, dict[str, Any]]:
        """A sentence that says so: `code` with both values, or its plain sister without them."""
        if (fact := self.bare) is not None:
            return f"{code}_plainly", {**names, "fact": fact}
        values = {"first": shown(self.first), "second": shown(self.second)}
        return code, {**names, "field": self.field, **values}


class InNotebook:
    """Shown as tables and pictures in a notebook, and in a few lines elsewhere.

    The room that makes them stands above this one, and is named by text.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """The conclusions alone; all of it is in the fields."""
        return str(import_module("keju.report.notebook").text_of(self))

    def _repr_html_(self) -> str:
        return str(import_module("keju.report.notebook").html_of(self))


class Flip(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question that scores otherwise in two sittings, with both answers."""

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
    """The texts, where they were asked for."""
    choices: tuple[str, ...] = ()
    base_reply: str = ""
    arm_reply: str = ""


Verdict = Literal["above", "below", "tie", "nothing", "not comparable"]


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Two sittings of one exam on the questions that both have a score for; arm minus base.

    They are two arms of one run, or of two: two runs, logs or files of predictions.
    """

    exam: str
    reader: str
    base: str
    arm: str
    base_model: str = ""
    arm_model: str = ""
    """Where they are not arms of one run."""
    unlike: tuple[Unlike, ...] = ()
    """In what they differ, the weightiest first; one that is decisive makes them incomparable."""
    n: int
    left_out: int
    """Questions that lack a grade in either arm."""
    left_out_why: dict[str, int] = {}
    """The same by the outcome that has no grade."""
    only_in_base: int = 0
    """Questions that only one of them has a record of."""
    only_in_arm: int = 0
    bounds: Ends | None = None
    """The difference with those that are left out, if all went against the arm, or for it."""
    base_is_first: bool = True
    """Whether the base is the first arm of its exam, which the others are tried against."""
    base_rate: float | None
    arm_rate: float | None
    difference: float | None
    ci95: Ends | None
    p: float | None
    """McNemar's exact p for yes-or-no scores of independent questions, else a permutation's."""
    p_log10: float | None = None
    """The logarithm of `p`, which itself is never below 1e-300."""
    p_holm: float | None = None
    """The same adjusted for all pairs of the exam, where there are several."""
    both: int | None
    """Questions that both arms get right; None where scores are graded, as `neither`."""
    arm_only: int
    """Questions on which the arm scores more than the base."""
    base_only: int
    neither: int | None
    clusters: int | None = None
    detectable: float | None = None
    """The smallest difference that so many questions show with a power of 0.8, about."""
    needed: int | None = None
    """How many questions show a difference as large as the one seen, with a power of 0.8."""
    subsets: tuple[SubsetChange, ...] = ()
    gained: tuple[str, ...] = ()
    """The questions of `arm_only`, up to `LISTED`."""
    lost: tuple[str, ...] = ()
    flips: Sequence[Flip] = ()
    """All questions that score otherwise, where they were asked for."""
    notices: tuple[Notice, ...] = ()
    """What could mislead about the comparison."""
    se: float | None = None
    headline: str = ""
    """The metric of the exam's headline, where that is not the mean over questions."""
    deff: float = 1.0
    tokens: Change | None = None
    cost: Change | None = None
    seconds: Change | None = None

    @property
    def obstacle(self) -> Unlike | None:
        """The weightiest thing that makes them incomparable."""
        return next((own for own in self.unlike if own.decisive), None)

    @property
    def verdict(self) -> Verdict:
        """Which one is better; a tie unless both the interval and p say that one is.

        Where several pairs are compared p is Holm's.
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
        """What the comparison shows, and what would be needed to show more."""
        names: dict[str, Any] = {"arm": self.arm, "base": self.base, "n": self.n}
        if unlike := self.obstacle:
            return Notice(*unlike.told("compare_unlike", base=self.base, arm=self.arm))
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
        above = self.difference > 0
        if self.base_is_first:
            return Notice("arms_better" if above else "arms_worse", values)
        return Notice("arms_above" if above else "arms_below", values)


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


class EndpointUse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one endpoint of several was asked and told, over all sessions of a run."""

    address: str
    """Without credentials."""
    requests: int
    replies: int
    mean_seconds: float | None
    """Seconds of a reply, on average."""
    input_tokens: int
    cached_tokens: int
    cached_share: float | None
    """The share of the input that came from its prefix cache."""
    output_tokens: int
    moved: int = 0
    """Questions that went from it to another endpoint."""
    outages: int = 0
    down_seconds: float = 0.0
    other_models: dict[str, int] = {}
    """Other names that it gave its model, and how many replies were not used because of that."""
    odd_wait: str = ""
    """A Retry-After that it sent and that Keju did not keep: too long, or not readable."""
    lost: Notice | None = None
    """Why it could not be used any more, or not at all."""


class Results(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The whole of ``results.json``."""

    schema: int
    run: str
    model: str
    benchmarks: tuple[Entry, ...]
    complete: bool | None = None
    """Whether everything was asked and graded; None where nothing was to be asked."""
    stopped: str = ""
    """Why a run ended early, in English."""
    stop: Notice | None = None
    """The same as a code and values, for other languages."""
    created: str = ""
    """When the run was begun."""
    version: str = ""
    """The version of Keju that made this document."""
    folder: str = ""
    """Where the run is stored."""
    settings: dict[str, Any] = {}
    """The settings of the run; no secret is among them."""
    disagreements: tuple[Disagreement, ...] | None = None
    """Where several readers were asked for and do not agree."""
    comparisons: tuple[Comparison, ...] = ()
    """Every pair of arms, where the run has several."""
    endpoints: tuple[EndpointUse, ...] = ()
    """What each endpoint was asked and told, where the run had several."""
    curves: tuple[Curve, ...] = ()
    """Accuracy against difficulty, where an exam is sat at several."""

    def is_level(self, entry: Entry) -> bool:
        """Whether an entry is one difficulty of a curve, so that its arm says only that."""
        return any(
            (curve.exam, curve.reader, point.arm) == (entry.name, entry.reader, entry.arm)
            for curve in self.curves
            for point in curve.points
        )


# A digest as hexadecimal digits, such as a SHA-256: its first digits tell it from others.
_HASH = re.compile(r"[0-9a-f]{32,}")
_HASH_SHOWN = 12


def shown(value: Any) -> str:
    """A fact in a few words: ``0.7``, ``Q: {question}…``, or ``none`` where there is none."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = "none" if value is None else text
    if _HASH.fullmatch(text):
        return f"{text[:_HASH_SHOWN]}…"
    return text if len(text) <= LONGEST_FACT else f"{text[:LONGEST_FACT]}…"


_FIELDS = frozenset(Metric.__struct_fields__)


def to_document(results: Results) -> dict[str, Any]:
    """The plain document, as it is printed, written and handed to callers of Python."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(results))
    for entry in document["benchmarks"]:
        for metric in entry["metrics"].values():
            metric |= metric.pop("details", {})
    return document


def from_document(document: Mapping[str, Any]) -> Results:
    """The results that a document holds; those of 0.1 have sentences in place of notices.

    DataError if it is no results document.
    """
    try:
        entries = []
        for entry in document["benchmarks"]:
            metrics = {  # keys that only one metric has become its details
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
        problem = Hint("shape_missing", name=str(error.args[0]), place="")
        raise DataError("results_shape", problem=problem) from None
    except (TypeError, AttributeError):
        problem = Hint("shape_other")
        raise DataError("results_shape", problem=problem) from None
