"""The published ways to sit C-Eval, and what each of them can be asked for.

A protocol has axes: the mode (answer only, or chain of thought), the form (a text for a base model
to continue, or a chat) and the decoding. `resolve` fixes them, and refuses in one line what a
protocol cannot honour.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from keju.benchmarks.base import Protocol
from keju.errors import ConfigError
from keju.types import Decode

Mode = Literal["answer-only", "cot"]
PromptForm = Literal["base", "chat"]
DecodeChoice = Literal["auto", "labels", "generate"]
_Axis = TypeVar("_Axis", Mode, PromptForm)

ANSWER_ONLY_TOKENS = 16
"""Room for `答案：B` or `B. …`; the answer stands at the very beginning."""
MAX_SHOTS = 5


@dataclass(frozen=True, kw_only=True)
class Published:
    """One publication: its protocol and the values that its axes can take, the default first."""

    protocol: Protocol
    modes: tuple[Mode, ...]
    forms: tuple[PromptForm, ...]
    decodes: Mapping[PromptForm, tuple[Decode, ...]]
    """Of answer-only by form; a chain of thought is always generated."""
    shots: int
    templates: bool = False
    """Whether the prompt templates can be replaced."""


class Setting(NamedTuple):
    """What was chosen: a protocol with all its axes fixed."""

    protocol: Protocol
    mode: Mode
    form: PromptForm
    decode: Decode
    shots: int

    @property
    def continues(self) -> bool:
        """Whether the prompt ends with the cue `答案：`, so that the reply begins with a label."""
        cued = self.form == "base" or self.protocol.name in ("official", "opencompass")
        return cued and self.mode == "answer-only"


_BOTH: Mapping[PromptForm, tuple[Decode, ...]] = {
    "base": ("labels", "generate"),
    "chat": ("labels", "generate"),
}

PUBLISHED: Mapping[str, Published] = {
    "evalscope": Published(
        protocol=Protocol(
            name="evalscope",
            version="1.1",
            reader="evalscope",
            about="EvalScope, C-Eval v1.1: explained examples in one message; asks for 答案：X",
        ),
        modes=("cot",),
        forms=("chat",),
        decodes={"chat": ("generate",)},
        shots=5,
        templates=True,
    ),
    "tutorial": Published(
        protocol=Protocol(
            name="tutorial",
            version="1",
            reader="tutorial",
            headline="average",
            decode="labels",
            about="The C-Eval tutorial: answer-only by label logits, or chain of thought; "
            "mode, form and few_shot_num choose among its eight prompts",
        ),
        modes=("answer-only", "cot"),
        forms=("chat", "base"),
        decodes=_BOTH,
        shots=5,
    ),
    "official": Published(
        protocol=Protocol(
            name="official",
            version="1",
            reader="official",
            headline="average",
            decode="labels",
            about="The scripts of hkust-nlp/ceval, with the Chinese subject name; "
            "mode and form choose among their prompts",
        ),
        modes=("answer-only", "cot"),
        forms=("chat", "base"),
        decodes=_BOTH,
        shots=5,
    ),
    "lm-eval": Published(
        protocol=Protocol(
            name="lm-eval",
            version="2",
            reader="first-capital",
            decode="labels",
            form="completion",
            about="lm-evaluation-harness ceval-valid v2: zero-shot completion, likeliest label, "
            "micro average",
        ),
        modes=("answer-only",),
        forms=("base",),
        decodes={"base": ("labels", "generate")},
        shots=0,
    ),
    "opencompass": Published(
        protocol=Protocol(
            name="opencompass",
            version="1",
            reader="first-capital",
            headline="average",
            about="OpenCompass: header in every example; chat reads the first capital; base takes "
            "the likeliest label (upstream: mean cross-entropy of the whole text)",
        ),
        modes=("answer-only",),
        forms=("chat", "base"),
        decodes={"chat": ("generate", "labels"), "base": ("labels", "generate")},
        shots=5,
    ),
}

PROTOCOLS: Mapping[str, Protocol] = {name: p.protocol for name, p in PUBLISHED.items()}


def resolve(
    name: str,
    *,
    mode: Mode | None,
    form: PromptForm | None,
    decode: DecodeChoice,
    shots: int | None,
) -> Setting:
    """Fix the axes of the protocol called `name`, taking its defaults where nothing is asked."""
    published = PUBLISHED[name]
    mode = _pick(name, "mode", mode, published.modes)
    form = _pick(name, "form", form, published.forms)
    decoded = _decode(published, mode, form, decode)
    count = published.shots if shots is None else shots
    if count > MAX_SHOTS:
        raise ConfigError(
            f"few_shot_num: C-Eval has {MAX_SHOTS} worked examples a subject, {count} asked for"
        )
    protocol = dataclasses.replace(
        published.protocol,
        version=_version(published, mode, form, decoded),
        form="completion" if form == "base" else "chat",
        decode=decoded,
        max_tokens=ANSWER_ONLY_TOKENS if (mode, decoded) == ("answer-only", "generate") else None,
    )
    return Setting(protocol, mode, form, decoded, count)


def _pick(protocol: str, axis: str, asked: _Axis | None, offered: tuple[_Axis, ...]) -> _Axis:
    if asked is None or asked in offered:
        return asked or offered[0]
    able = [name for name, p in PUBLISHED.items() if asked in getattr(p, f"{axis}s")]
    raise ConfigError(
        f"{axis} '{asked}' is not offered by protocol '{protocol}': "
        f"leave it out, or take protocol {' or '.join(able)}"
    )


def _decode(published: Published, mode: Mode, form: PromptForm, asked: DecodeChoice) -> Decode:
    if mode == "cot":
        if asked == "labels":
            raise ConfigError(
                "decode 'labels' needs mode 'answer-only': a chain of thought is generated"
            )
        return "generate"
    offered = published.decodes[form]
    return offered[0] if asked == "auto" else asked


def _version(published: Published, mode: Mode, form: PromptForm, decode: Decode) -> str:
    """The version names whatever was chosen among several, and a decoding that is not the usual."""
    parts = [published.protocol.version]
    parts += [mode] if len(published.modes) > 1 else []
    parts += [form] if len(published.forms) > 1 else []
    usual = "generate" if mode == "cot" else published.decodes[form][0]
    parts += [decode] if decode != usual else []
    return "-".join(parts)
