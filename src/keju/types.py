"""The central types of Keju: the data on its way from the data set to the results.

Every type is immutable. Data goes one way. A `Sample` is rendered into a `Prompt`, sent as a
`Request`, and answered by a `Reply`. The reply is read into an `Answer`, graded into a `Score`, and
stored as a `Record`, one line of the journal. None of these can be part of a reference cycle, so
the garbage collector need not follow them (``gc=False``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, get_args

import msgspec

from keju.messages import Language, current_language, text_of

Outcome = Literal[
    "correct", "incorrect", "unparsed", "truncated", "refused", "ungraded", "error", "unlabelled",
]  # fmt: skip
ALL_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
OUTCOMES: tuple[Outcome, ...] = ALL_OUTCOMES[:-1]
"""The outcomes that every result counts. ``unlabelled``, a question without a published answer, is
listed only where it occurs."""
UNGRADED: tuple[Outcome, ...] = ("error", "ungraded")
"""Outcomes of replies without a grade. A score is reported with its bounds if all of them were
wrong or all were right."""
UNSCORED: tuple[Outcome, ...] = (*UNGRADED, "unlabelled")
"""Outcomes that are not in the denominator of any score."""


def complete_counts(counts: Mapping[Outcome, int]) -> dict[Outcome, int]:
    """Return counts by outcome as results show them: all outcomes that every result counts, with
    zeros."""
    return {
        outcome: counts.get(outcome, 0)
        for outcome in ALL_OUTCOMES
        if outcome in OUTCOMES or counts.get(outcome)
    }


Decode = Literal["generate", "labels", "continuations"]
"""How the model answers: free text, the most likely option label, or the log-probabilities of given
texts."""

LogprobIssue = Literal["", "nan", "positive"]
"""Log-probabilities that cannot be right: some are not numbers, or are above 0."""

Form = Literal["chat", "completion"]
"""The kind of endpoint that a prompt is for: a list of messages, or one text to continue."""

Tier = Literal["strict", "tolerant", "fallback", "labels", ""]
"""How a reader found the answer: the protocol's own marker, another wording, a bare last line."""

Sign = Literal["two_answers", "order_decides", "echoed_options", "replayed_examples", "run_on"]
"""Signs in a reply: two different answers; two answers of which only the order decides; its options
repeated; worked examples answered again; more questions after the answer."""
SIGNS: tuple[Sign, ...] = get_args(Sign)

FaultKind = Literal[
    "auth", "not_found", "bad_request", "context_length", "content_filter", "rate_limit",
    "server", "timeout", "connection", "malformed", "tools",
]  # fmt: skip
"""The reason for a missing reply. ``tools``: a part that the tools need failed."""

CallKind = Literal[
    "ok", "tool_error", "bad_arguments", "unknown_tool", "timeout", "server_crash",
    "protocol_error", "invalid_output", "broken_off",
]  # fmt: skip
"""How a call of a tool ended. ``broken_off``: its episode ended before the call did."""

Stop = Literal[
    "final", "max_iterations", "max_iterations_forced", "timeout", "budget", "context_overflow",
    "server_lost", "provider_error",
    "submitted", "forced_answer", "no_tool_call", "kernel_died", "episode_timeout",
]  # fmt: skip
"""Why an episode ended. The reasons in the last line apply where a tool submits the answer."""

LimitCut = Literal["time", "tokens", "cost"]
"""A limit of one question that cuts its reply."""
CutBy = Literal["", "time", "tokens", "cost", "turns", "context"]
"""The cause that ended a question before its answer, by Keju or a full context: one of its limits,
the number of turns, or the context."""

ToolChoice = Literal["auto", "none"]
"""Whether the model may call its tools in a turn."""

FILTERED: Final = "content_filter"
"""Finish reason, and fault, of a reply that the endpoint's filter withheld or interrupted."""
CUT: Final = "length"
"""Finish reason of a reply that reached its limit of tokens, or another limit of its question."""
REFUSAL_FINISH: Final = "refusal"
"""Finish reason of a reply in which the endpoint reports that the model refused."""
BROKEN_FINISHES: Final = ("abort", "error", "insufficient_system_resource")
"""Finish reasons of servers (vLLM, SGLang, routers, DeepSeek) that gave up on a reply."""

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Message(msgspec.Struct, frozen=True):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One question of an exam."""

    id: str
    """Unique inside the benchmark and stable between runs, e.g. ``demo_word_sorting_3``."""
    subset: str
    index: int
    """Position inside the subset as published, from 0."""
    text: str
    """The question as in the data set."""
    target: str
    """The gold answer in the data set's own spelling; empty when it is not known."""
    choices: tuple[str, ...] = ()
    """The options in the order in which they are shown; label i is ``LABELS[i]``."""
    order: tuple[int, ...] = ()
    """Permutation behind `choices`: shown option i is option ``order[i]`` of the data."""
    group: str = ""
    """Samples of one group share context, so their scores are not independent."""
    metadata: dict[str, Any] = {}

    @property
    def labels(self) -> str:
        """The labels of this sample's options, e.g. ``ABCD``."""
        return LABELS[: len(self.choices)]

    @property
    def asks_for_wrong(self) -> bool:
        """Whether the question asks for the option that is wrong or does not belong.

        ``Which of these is NOT a metal?``, ``… EXCEPT``, ``下列说法错误的是``. The false
        statement is then the answer.
        """
        return _asks_for_wrong(self.text)


# `\nOptions:\n`, `\n(A) `, `\nA. `: where the options of a question begin inside its text.
_OPTIONS_BEGIN = re.compile(r"\n\s*(?:Options?:|选项[:：]|[(\[]?A[)\].、:])")
# In capitals anywhere: `NOT`, `EXCEPT`; otherwise in the sentence that asks: `which of these is
# not`, `which statement is incorrect`, `least likely`, `all of these except`; not `why is it not`,
# `at least`.
_ASKS_FOR_WRONG = re.compile(
    r"\b(?:NOT|EXCEPT|LEAST|INCORRECT|FALSE|WRONG)\b"
    r"|(?i:\b(?:which|what|who|one)\b[^.?!\n]{0,120}?(?:\b(?:is|are|was|were|do|does|did|can|could"
    r"|would|will|should|has|have|had|may|might|must)(?:(?: \w+ly)? not|n['’]t)\b"
    r"|\b(?:cannot|never|incorrect"
    r"|false|untrue|inaccurate|(?<!at )least|except|inconsistent|unlikely|inappropriate|exception"
    r"|wrong(?! with)|does not)\b))"
    r"|(?i:\bit is (?:not true|incorrect|false) that\b|\bonly [a-z ]{1,30}that is not\b"
    r"|\bexcept(?: for)?\b[\s_:.?…]*\Z)"
)
# `错误的是`, `不属于……的一项是（ ）`, `不包括____`, `哪一项不是`: in the clause that asks; not
# `不应小于____`, `没有语病的一项`.
_ASKS_FOR_WRONG_ZH = re.compile(
    r"(?:不(?![同断良仅等得])|错误|有误|无关|失实|除[^,，。]{0,12}外)[^。,，!！]{0,30}?"
    r"的?(?:一项|选项|说法|叙述|表述|做法)?的?[是为有](?=[\s:：]*(?:[(（_$]|\Z))"
    r"|(?:不正确|错误|不属于|不符合|不包括|不是|不对)[^。,，]{0,25}?(?:[_(（?？]|[:：]?\s*\Z)"
    r"|哪[^。,，?？]{0,20}?(?:不(?![同断良仅等得])|错误)|除了[^。]{0,20}\Z|例外"
    r"|_(?:是不|不是|不属于|不)"
)


@lru_cache(maxsize=4096)
def _asks_for_wrong(text: str) -> bool:
    options = _OPTIONS_BEGIN.search(text)
    stem = (text[: options.start()] if options else text).strip()[-400:]
    if not stem.isascii() and any("\u4e00" <= character <= "\u9fff" for character in stem):
        stem = "".join(stem.split())
        sentence = max(stem.rstrip("_?？。:：").rfind(end) for end in "。！？；．")
        return _ASKS_FOR_WRONG_ZH.search(stem, sentence + 1) is not None
    sentence = max(stem[:-1].rfind(end) for end in (". ", "? ", "! ", "\n"))
    return _ASKS_FOR_WRONG.search(stem, sentence + 1) is not None


@dataclass(frozen=True, eq=False)
class Prefix:
    """The part of a prompt that all questions of a subset share, built once per subset.

    `messages` are complete turns (system, worked examples). `lead` is the beginning of the last
    user message, or of the text to continue.
    """

    messages: tuple[Message, ...] = ()
    lead: str = ""

    @cached_property
    def digest(self) -> bytes:
        """Content hash, so that a request's hash needs only the question's own text."""
        seed = hashlib.sha256()
        for message in self.messages:
            seed.update(f"{message.role}\0{message.content}\0".encode())
        seed.update(b"\1" + self.lead.encode())
        return seed.digest()


class Prompt(msgspec.Struct, frozen=True, gc=False):
    """A rendered question: the shared prefix and the tail of this question."""

    prefix: Prefix
    tail: str
    cue: str = ""
    """Beginning of the assistant's turn that the model continues (chat form only)."""

    @property
    def text(self) -> str:
        """The last user message, or the whole text to continue."""
        return self.prefix.lead + self.tail

    @property
    def messages(self) -> list[Message]:
        """The prompt as chat turns, without the cue, since few endpoints continue a turn."""
        return [*self.prefix.messages, Message("user", self.text)]

    @property
    def cued_messages(self) -> list[Message]:
        """The prompt as chat turns. The last one is unfinished where the prompt has a cue."""
        return [*self.messages, *([Message("assistant", self.cue)] if self.cue else [])]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the model is asked to decode; equal for all requests of one exam."""

    form: Form = "chat"
    decode: Decode = "generate"
    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: dict[str, Any] = {}
    """Further body fields from the user (``extra_body``)."""
    label_lead: str | msgspec.UnsetType = msgspec.UNSET
    """The text that the protocol puts before a compared label or option: a space where it is
    ``" A"``. Not set where it is empty, so that the hashes of such requests are those of version
    0.1."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one reply as the endpoint counted them."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """The part of `input` that came from the server's prefix cache."""
    reasoning: int = 0
    """The part of `output` that was hidden reasoning."""
    written: int = 0
    """The part of `input` that the server's prefix cache has kept for later requests."""


class Tool(msgspec.Struct, frozen=True):
    """A tool that a model may call: its name, its description, and the JSON schema of its
    arguments."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A call as the model wrote it. `arguments` is JSON text and may be malformed."""

    id: str
    name: str
    arguments: str


class Turn(msgspec.Struct, frozen=True, eq=False, weakref=True, omit_defaults=True, kw_only=True):
    """A turn after the prompt: by the model, by a tool, or by Keju as the user."""

    role: Literal["assistant", "tool", "user"]
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    """The tools that the model called, in order."""
    call: str = ""
    """The id of the call that a tool answers."""
    kind: CallKind = "ok"
    """How that call ended."""
    seconds: float = 0.0
    queued: float = 0.0
    """Seconds that a call waited for its turn. They are not part of its `seconds`."""
    usage: Usage | None = None
    """Only for the model's turns."""
    images: tuple[bytes, ...] = ()
    """Pictures, sent with the turn and not stored in the journal."""
    native: bytes = b""
    """The model's turn as its endpoint wrote it, in JSON. It is sent back byte for byte, and not
    stored in the journal."""


class Continuation(msgspec.Struct, frozen=True, gc=False):
    """A text whose log-probability after a context is asked for."""

    context: str
    """The whole text before. Its trailing spaces belong to the first token of `text`; the model
    moves them."""
    text: str
    rolling: bool = False
    """Whether the whole of `text` is scored without a context, in windows of the model's length."""


class ContinuationScore(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The log-probability of a continuation."""

    logprob: float
    """The sum over its tokens."""
    greedy: bool = False
    """Whether each of its tokens is the most likely one."""
    tokens: int = 0
    """The number of its tokens, where the model reports it."""


class Episode(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The transcript of a model that acts, from the end of the prompt on."""

    turns: tuple[Turn, ...]
    stop: Stop
    requests: int = 0
    """Requests of the episode, without those that failed and were repeated."""
    facts: dict[str, Any] = {}
    """Facts from the tools about the episode: restarts, the file of its notebook."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request to a model. `hash` is its identity (model, prompt, sampling, sample, epoch).

    All requests of one episode have the same hash; their `turns` grow.
    """

    prompt: Prompt
    sampling: Sampling
    hash: str
    labels: str = ""
    """The labels to choose from when ``sampling.decode`` is ``labels``."""
    seed: int | None = None
    turns: tuple[Turn, ...] = ()
    """The turns after the prompt, where tools are used."""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    continuations: tuple[Continuation, ...] = ()
    """The texts to score when ``sampling.decode`` is ``continuations``, in order."""

    @property
    def continues_cue(self) -> bool:
        """Whether the reply continues a prefilled turn, so that its first token is the label."""
        return bool(self.prompt.cue and self.sampling.extra.get("continue_final_message"))


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why an attempt gave no reply. The message never holds a secret."""

    kind: FaultKind
    message: str
    status: int = 0
    retry_after: float | None = None
    """Seconds that the endpoint asked to wait."""
    sent: bool = True
    """False if no connection could be made, so that the endpoint never received the request."""
    request_id: str = ""
    """The endpoint's id of the request, if a header has it."""
    odd_wait: str = ""
    """The Retry-After header, if it is neither a number of seconds nor a date."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The reply of a model. Reasoning is separate from the answer text."""

    text: str = ""
    reasoning: str = ""
    finish: str = ""
    """``stop``, ``length``, ``content_filter``, ``tool_calls``, or another reason of the
    endpoint."""
    usage: Usage = Usage()
    seconds: float = 0.0
    label_logprobs: dict[str, float] | None = None
    """Log-probability of each label that was returned (``decode: labels``)."""
    label_ids: dict[str, list[int]] | None = None
    """Token ids of `label_logprobs`, where the model reports them."""
    outside_mass: float | None = None
    """Probability of everything that is not a label, where it is known."""
    model: str = ""
    """The model name as the endpoint reported it."""
    raw: str = ""
    """The text as received, stored only where think tags were cut out of it."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    error: Fault | None = None
    refusal: str = ""
    """The model's refusal to answer, as a field of the endpoint apart from any text."""
    request_id: str = ""
    """The endpoint's id of the request, if a header has it."""
    native: bytes = b""
    """The message as received, in JSON, where the request had tools and it can be sent back."""
    episode: Episode | None = None
    """The episode behind the text, where the model could act. Usage and seconds are the
    episode's."""
    cut_by: CutBy = ""
    """The cause that cut the question, unless it was the limit of tokens of a single reply."""
    logprob_issue: LogprobIssue = ""
    """The problem with the log-probabilities that the endpoint returned."""
    choices: int = 1
    """The number of choices that the endpoint returned. Only the first is read."""
    continuations: tuple[ContinuationScore, ...] | None = None
    """The score of each continuation, in the order of the request (``decode: continuations``)."""

    @property
    def compared(self) -> bool:
        """Whether the reply holds log-probabilities of labels or continuations and no answer in
        words."""
        return self.label_logprobs is not None or self.continuations is not None

    @property
    def requests(self) -> int:
        """The number of requests of the reply, without those that failed and were repeated."""
        return 1 if self.episode is None else self.episode.requests

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of `tool_calls`. A call without a valid id gets one."""
        calls: list[ToolCall] = []
        ids: set[str] = set()
        for number, call in enumerate(self.tool_calls):
            function = call.get("function")
            call_fields = function if isinstance(function, dict) else call
            name, arguments, key = (
                call_fields.get("name"),
                call_fields.get("arguments"),
                call.get("id"),
            )
            if not isinstance(arguments, str):  # some servers give the object itself
                arguments = msgspec.json.encode({} if arguments is None else arguments).decode()
            key = key if isinstance(key, str) and key and key not in ids else f"call_{number}"
            ids.add(key)
            calls.append(ToolCall(key, name if isinstance(name, str) else "", arguments))
        return tuple(calls)

    @property
    def fault(self) -> Fault | None:
        """The fault of this reply, including failures that a server reports as a finish reason."""
        if self.error is None and self.finish in BROKEN_FINISHES:
            problem = f"the endpoint broke the reply off (finish reason {self.finish})"
            return Fault("server", problem)
        return self.error

    @property
    def refused(self) -> bool:
        """Whether the endpoint itself reports that the model refused."""
        return bool(self.refusal) or self.finish == REFUSAL_FINISH


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The answer that a reader found in a reply. `value` is None if it found no valid one."""

    value: str | None = None
    tier: Tier = ""
    reason: str = ""
    """Why no answer was read: empty, no_marker, invalid_label, ambiguous, unclosed_think, …"""
    first: str | None = None
    """The first marker's answer where it differs from the last one's."""
    cut: bool = False
    """Whether the text was cut where the model continued with a new question."""
    other: str | None = None
    """Another answer that the reply states in addition to the one that counts."""
    signs: tuple[Sign, ...] = ()
    """Signs noticed in the reply, independent of its answer."""
    rule: str = ""
    """The rule of the reader that decided, e.g. ``marker``; empty where a reader has only one."""
    passage: str = ""
    """The words of the reply from which the answer was read."""


class Score(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A value in [0, 1] and its outcome."""

    value: float
    outcome: Outcome
    grader: str = ""
    """The grader that decided, if not the reader: ``exact``, ``range``, ``judge``, …"""
    parts: dict[str, float] = {}
    """Several numbers in [0, 1] by name, where the grader gives them. The first is `value`, except
    for questions with assertions about tools (`keju.benchmarks.expectations`)."""


class Reading(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The result of one reader on one reply."""

    reader: str
    answer: Answer
    score: Score


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One line of the journal: a sample, its reply, and its readings."""

    bench: str
    id: str
    epoch: int = 0
    arm: str = ""
    hash: str
    target: str = ""
    order: tuple[int, ...] = ()
    reply: Reply
    readings: tuple[Reading, ...] = ()
    """The headline reader's first, then the others."""
    faults: tuple[Fault, ...] = ()
    """The attempts that failed before this reply, in order."""
    at: float = 0.0
    """Unix time at which the reply was scored."""
    origin: str = ""
    """The run that asked, if the reply was copied from another one."""
    endpoint: str = ""
    """The address of the endpoint that replied, where the run had several."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A notice for readers of results, as a code of the catalogues and its values."""

    code: str
    values: dict[str, Any] = {}

    def text(self, language: Language = "en") -> str:
        """Return the sentence in a language."""
        return text_of(self.code, self.values, language)

    @property
    def message(self) -> str:
        """The sentence in the language of the terminal."""
        return self.text(current_language())
