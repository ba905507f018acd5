"""The published ways to ask C-Eval, with their exact prompts and the supported variants.

A protocol has axes: the mode (answer only, or chain of thought), the form (a text for a base model
to continue, or a chat) and the decoding. `CEvalProtocol.fix` chooses a value on each axis, and
rejects values that the protocol does not support.

Sources: the C-Eval tutorial (Yao Fu), hkust-nlp/ceval, EvalScope, lm-evaluation-harness,
OpenCompass. All prompts use the Chinese name of the subject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

from keju.benchmarks.base import Protocol, by_name
from keju.benchmarks.wording import Word, Wording, words
from keju.errors import ConfigError
from keju.types import Decode

Mode = Literal["answer-only", "cot"]
PromptForm = Literal["base", "chat"]
DecodeChoice = Literal["auto", "labels", "generate"]
Words = Mapping[str, Word]
_Axis = TypeVar("_Axis", Mode, PromptForm)

ANSWER_ONLY_TOKENS = 16
"""Enough for `答案：B` or `B. …`; the answer is at the beginning."""
MAX_SHOTS = 5

EXAM_HEAD = "以下是中国关于{subject}考试的单项选择题，请选出其中的正确答案。"
PLAIN_HEAD = "以下是中国关于{subject}的单项选择题，请选出其中的正确答案。"
CUE = "答案："
STEPS = "让我们一步一步思考"
BLOCK = "{question}\n{choices}"

OFFICIAL_PERSONA = "你是一个中文人工智能助手，"
OFFICIAL_STEPS = STEPS + "，\n"
OFFICIAL_FIRST_STEP = "1."
OPENCOMPASS_BLOCK = f"{EXAM_HEAD}\n{BLOCK}\n答案: "

EVALSCOPE_QUESTION = (
    PLAIN_HEAD + '你的回答的最后一行应该是这样的格式："答案：[LETTER]"（不带引号），'
    "其中 [LETTER] 是 {letters} 中的一个。\n\n问题：{question}\n选项：\n{choices}\n"
)
EVALSCOPE_EXAMPLES = "以下是一些示例问题：\n\n{fewshot}\n\n\n"
EVALSCOPE_SHOT = "问题：{question}\n选项：\n{choices}\n解析：{explanation}\n答案：{answer}"
LETTERS = "A、B、C、D"

WORDS = {name: word for name, word in words("A. text").items() if name != "letters"}


def _base_wording(
    question: str, *, head: str, shot: str, reply: str, words: Words = WORDS
) -> Wording:
    """Return the wording of a text to continue: the head once, then all examples."""
    return Wording(
        question=question,
        head=f"{head}{{examples}}",
        bare=head,
        shot=shot,
        reply=reply,
        between="",
        tail_is_whole=True,
        words=words,
    )


def _evalscope_wording(_: CEvalProtocol) -> Wording:
    """One user message: examples with their explanations, then the question."""
    return Wording(
        question=EVALSCOPE_QUESTION,
        head=EVALSCOPE_EXAMPLES,
        shot=EVALSCOPE_SHOT,
        examples="fewshot",
        words=WORDS,
        constants={"letters": LETTERS},
        shared=("subject",),
    )


def _tutorial_wording(protocol: CEvalProtocol) -> Wording:
    """Options `A: text`; in a chat the head is the system message."""
    cot = not protocol.is_answer_only
    user = f"{BLOCK}\n{STEPS}" if cot else BLOCK
    reply = ("{explanation}\n" if cot else "") + CUE + "{answer}"
    labelled_words = words("A: text")
    if protocol.is_base:
        question = f"{user}\n" + ("" if cot else CUE)
        head, shot = f"{EXAM_HEAD}\n\n", f"{user}\n"
        return _base_wording(
            question, head=head, shot=shot, reply=f"{reply}\n\n", words=labelled_words
        )
    cue = CUE if protocol.decode == "labels" else ""
    return Wording(
        question=user,
        shot=user,
        reply=reply,
        system=EXAM_HEAD,
        cue=cue,
        turns=True,
        words=labelled_words,
    )


def _official_wording(protocol: CEvalProtocol) -> Wording:
    """Options `A. text`, every user turn ends with the cue; in a chat the head occurs twice."""
    cot = not protocol.is_answer_only
    user, head = f"{BLOCK}\n{CUE}", f"{EXAM_HEAD}\n\n"
    reply = OFFICIAL_STEPS + "{explanation}\n所以答案是{answer}。" if cot else "{answer}"
    if protocol.is_base:
        question = user + (OFFICIAL_STEPS + OFFICIAL_FIRST_STEP if cot else "")
        return _base_wording(question, head=head, shot=user, reply=f"{reply}\n\n")
    system = OFFICIAL_PERSONA + EXAM_HEAD
    return Wording(
        question=user, shot=user, reply=reply, system=system, bare=head, turns=True, words=WORDS
    )


def _lm_eval_wording(_: CEvalProtocol) -> Wording:
    """The head once, the question stripped, a space between the cue and the label."""
    stripped = {**WORDS, "question": lambda sample: sample.text.strip()}
    user = f"{BLOCK}\n{CUE}"
    head, reply = f"{PLAIN_HEAD}\n\n", " {answer}\n\n"
    return _base_wording(user, head=head, shot=user, reply=reply, words=stripped)


def _opencompass_wording(protocol: CEvalProtocol) -> Wording:
    """The head in every example; in base form the label is on its own line.

    In base form upstream compares four completed texts. So a question ends with that line break if
    the label is chosen by log-probability, and with the cue if the reply is generated.
    """
    if protocol.is_base:
        question = OPENCOMPASS_BLOCK + ("\n" if protocol.decode == "labels" else "")
        return _base_wording(question, head="", shot=OPENCOMPASS_BLOCK, reply="\n{answer}\n\n\n")
    return Wording(
        question=OPENCOMPASS_BLOCK,
        shot=OPENCOMPASS_BLOCK,
        reply="{answer}",
        turns=True,
        tail_is_whole=True,
        words=WORDS,
    )


@dataclass(frozen=True, kw_only=True)
class CEvalProtocol(Protocol):
    """One publication, with the values that each axis can take; the first one is the default.

    After `fix` each axis has one value.
    """

    make_wording: Callable[[CEvalProtocol], Wording]
    """Makes the prompts for the selected values."""
    modes: tuple[Mode, ...]
    forms: tuple[PromptForm, ...]
    decodes: Mapping[PromptForm, tuple[Decode, ...]]
    """Decodings of answer-only by form; a chain of thought is always generated."""
    cued: bool = False
    """Whether user turns also end with the cue `答案：` in a chat."""
    templates: bool = False
    shot_choices: Collection[int] | None = range(MAX_SHOTS + 1)

    @property
    def is_answer_only(self) -> bool:
        """Whether the prompts neither show nor request a chain of thought."""
        return self.modes[0] == "answer-only"

    @property
    def is_base(self) -> bool:
        """Whether the prompt is a text to continue."""
        return self.forms[0] == "base"

    @property
    def ends_with_cue(self) -> bool:
        """Whether the prompt ends with the cue `答案：`, so that the reply begins with a label."""
        return (self.is_base or self.cued) and self.is_answer_only

    def fix(
        self,
        *,
        mode: Mode | None = None,
        form: PromptForm | None = None,
        decode: DecodeChoice = "auto",
        shots: int | None = None,
    ) -> Self:
        """Return this protocol with one value on each axis; the default if none is requested."""
        mode = self._pick("mode", mode, self.modes)
        form = self._pick("form", form, self.forms)
        if mode == "cot" and decode == "labels":
            raise ConfigError("ceval.labels_cot")
        default_decode: Decode = "generate" if mode == "cot" else self.decodes[form][0]
        chosen_decode: Decode = default_decode if decode == "auto" else decode
        # The version names every value that was chosen among several, and an unusual decoding.
        parts = [self.version]
        parts += [mode] if len(self.modes) > 1 else []
        parts += [form] if len(self.forms) > 1 else []
        parts += [chosen_decode] if chosen_decode != default_decode else []
        is_short = (mode, chosen_decode) == ("answer-only", "generate")
        fixed_protocol = replace(
            self,
            version="-".join(parts),
            form="completion" if form == "base" else "chat",
            decode=chosen_decode,
            max_tokens=ANSWER_ONLY_TOKENS if is_short else None,
            shots=self.shots if shots is None else shots,
            modes=(mode,),
            forms=(form,),
        )
        return replace(fixed_protocol, wording=self.make_wording(fixed_protocol))

    def _pick(self, axis: str, requested: _Axis | None, available: tuple[_Axis, ...]) -> _Axis:
        if requested is None or requested in available:
            return requested or available[0]
        supporting_protocols = [
            p.name for p in PROTOCOLS.values() if requested in getattr(p, f"{axis}s")
        ]
        raise ConfigError(
            "ceval.not_offered",
            axis=axis,
            asked=requested,
            protocol=self.name,
            names=" or ".join(supporting_protocols),
        )


_LABELS_FIRST: Mapping[PromptForm, tuple[Decode, ...]] = {
    "base": ("labels", "generate"),
    "chat": ("labels", "generate"),
}

PROTOCOLS: Mapping[str, CEvalProtocol] = by_name(
    CEvalProtocol(
        name="evalscope",
        version="1.1",
        reader="evalscope",
        about="EvalScope, C-Eval v1.1: explained examples in one message; asks for 答案：X",
        make_wording=_evalscope_wording,
        modes=("cot",),
        forms=("chat",),
        decodes={"chat": ("generate",)},
        shots=MAX_SHOTS,
        templates=True,
    ),
    CEvalProtocol(
        name="tutorial",
        version="1",
        reader="tutorial",
        headline="average",
        decode="labels",
        about="The C-Eval tutorial: answer-only by label logits, or chain of thought; its page "
        "reports in-context answer-only first; mode, form and few_shot_num choose among its eight "
        "prompts",
        make_wording=_tutorial_wording,
        modes=("answer-only", "cot"),
        forms=("chat", "base"),
        decodes=_LABELS_FIRST,
        shots=MAX_SHOTS,
    ),
    CEvalProtocol(
        name="official",
        version="1",
        reader="official",
        headline="average",
        decode="labels",
        about="The scripts of hkust-nlp/ceval, with the Chinese subject name; "
        "mode and form choose among their prompts",
        make_wording=_official_wording,
        modes=("answer-only", "cot"),
        forms=("chat", "base"),
        decodes=_LABELS_FIRST,
        shots=MAX_SHOTS,
        cued=True,
    ),
    CEvalProtocol(
        name="lm-eval",
        version="2.1",
        reader="first-capital",
        decode="labels",
        form="completion",
        label=" ",
        about="lm-evaluation-harness ceval-valid v2: zero-shot completion, likeliest label, "
        "micro average",
        make_wording=_lm_eval_wording,
        modes=("answer-only",),
        forms=("base",),
        decodes=_LABELS_FIRST,
        shots=0,
    ),
    CEvalProtocol(
        name="opencompass",
        version="1",
        reader="first-capital",
        headline="average",
        about="OpenCompass: header in every example; chat reads the first capital; base takes "
        "the likeliest label (upstream: mean cross-entropy of the whole text)",
        make_wording=_opencompass_wording,
        modes=("answer-only",),
        forms=("chat", "base"),
        decodes={"chat": ("generate", "labels"), "base": ("labels", "generate")},
        shots=MAX_SHOTS,
        cued=True,
    ),
)
