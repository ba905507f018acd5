"""How questions are put into words: one vocabulary for the prompts of every exam.

A template is text with placeholders, ``{name}``. Only known names are replaced and the values are
never looked into, so every other brace is literal text. A `Wording` holds the templates of one
protocol, and `Wording.prompts` makes the prompts of an exam out of them:

    Wording(question="Q: {question}\\nA:", shot="Q: {question}\\nA: {explanation} {answer}")

Every question of a subset begins with the same `keju.types.Prefix`: servers cache it, and its
hash is part of each request's identity. Where a template is cut into that prefix and the
question's own tail is therefore never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keju.benchmarks.choices import LabelStyle, label_lines
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean
from keju.types import Message, Prefix, Prompt, Sample

Word = Callable[[Sample], str]
"""What a placeholder stands for: a function of the question."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""``{question}`` in ``Q: {question}``; not ``{"a": 1}`` and not ``{}``."""
_IN_CONTEXT = re.compile(r"(\\[A-Za-z]+)?\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A placeholder and the LaTeX command before it, which makes an unknown name an argument:
``\\boxed{X}`` is text."""

SHARED = ("subject", "subset")
"""Placeholders that are the subset's: its title."""


def words(style: LabelStyle = "A) text", between: str = ",") -> dict[str, Word]:
    """The usual vocabulary of a question: its text, its labelled options, its letters."""
    return {
        "question": lambda sample: sample.text,
        "choices": lambda sample: label_lines(sample.choices, style),
        "letters": lambda sample: between.join(sample.labels),
    }


ANSWERED: Mapping[str, Word] = {
    "answer": lambda sample: sample.target,
    "explanation": lambda sample: str(sample.metadata.get("explanation", "")),
}
"""What a worked example has beside its question."""


def placeholders(template: str) -> list[str]:
    """The names in a template: ``["question"]`` of ``Q: {question}``."""
    return _PLACEHOLDER.findall(template)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders named in `values`, in one pass: values are never looked into."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def put(template: str, vocabulary: Mapping[str, Word], sample: Sample) -> str:
    """Replace the placeholders that `vocabulary` knows by what they stand for in `sample`."""

    def value(match: re.Match[str]) -> str:
        word = vocabulary.get(match[1])
        return match[0] if word is None else word(sample)

    return _PLACEHOLDER.sub(value, template)


def check_template(
    template: str, *, known: Collection[str], required: Collection[str] = (), setting: str
) -> None:
    """Refuse a template that names an unknown placeholder or lacks a required one.

    Braces that do not enclose a plain name, such as those of JSON, are text, and so are those of a
    LaTeX command. `setting` is the name of the setting to blame.
    """
    present = _IN_CONTEXT.findall(template)
    for command, name in present:
        if name not in known and not command:
            hint = did_you_mean(name, known)
            raise ConfigError("wording_unknown", setting=setting, name=name, hint=hint)
    names = {name for _, name in present}
    missing = [f"{{{name}}}" for name in required if name not in names]
    if missing:
        raise ConfigError("wording_missing", setting=setting, placeholder=missing[0])


@dataclass(frozen=True, kw_only=True)
class Wording:
    """The templates of one protocol."""

    question: str
    """The prompt of a question; the user's ``prompt_template`` takes its place."""
    shot: str = ""
    """One worked example: its question and, unless `reply` has it, its answer."""
    reply: str = ""
    """The answer of a worked example, where that is a turn of its own (see `turns`)."""
    head: str = "{examples}\n\n"
    """What stands before the question where there are worked examples."""
    bare: str = ""
    """What stands before the question where there are none."""
    whole: str = ""
    """Head and question in one, where the user gave ``few_shot_prompt_template``."""
    between: str = "\n\n"
    """What stands between two worked examples."""
    system: str = ""
    """The system message."""
    system_prompt: str | None = None
    """The user's system message in its place, taken as it is; an empty one means none."""
    cue: str = ""
    """The beginning of the reply that the model continues (chat form only)."""
    turns: bool = False
    """Worked examples are turns of a chat, not text; `bare` opens the first user message."""
    tail_is_whole: bool = False
    """The prefix ends before the question's template, not before its first word that differs."""
    words: Mapping[str, Word] = field(default_factory=words)
    """The placeholders that differ from question to question."""
    shot_words: Mapping[str, Word] | None = None
    """Those of worked examples, where they are written in another way."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Placeholders that are the same in all prompts."""
    shared: Collection[str] = SHARED
    """Placeholders of the subset that these templates know."""
    examples: str = "examples"
    """What the placeholder of the worked examples is called."""

    def check(self, place: str) -> None:
        """Refuse a placeholder that these templates do not know, such as a misspelt one."""
        known = {*self.words, *self.constants, *self.shared}
        of_shots = {*known, *ANSWERED, *(self.shot_words or ())}
        for names, fields in (
            (known, ("question", "bare", "system")),
            ({*known, self.examples}, ("head", "whole")),
            (of_shots, ("shot", "reply")),
        ):
            for field_name in fields:
                template, setting = getattr(self, field_name), f"{place}: {field_name}"
                check_template(template, known=names, setting=setting)

    def adapted(self, args: DatasetArgs, shots: bool) -> Wording:
        """With the user's templates and system message; one without effect is refused."""
        question, whole = args.prompt_template, args.few_shot_prompt_template
        required = [name for name in ("question", "choices") if name in self.words]
        known = {*self.words, *self.constants, *self.shared}
        wording = self
        if question is not None:
            check_template(question, known=known, required=required, setting="prompt_template")
            wording = replace(wording, question=question)
        if whole is not None:
            setting = "few_shot_prompt_template"
            if not shots:
                raise ConfigError("wording_no_shots", setting=setting)
            if question is not None:
                raise ConfigError("wording_two", setting=setting)
            check_template(
                whole,
                known={*known, self.examples},
                required=(self.examples, *required),
                setting=setting,
            )
            wording = replace(wording, whole=whole)
        return replace(wording, system_prompt=args.system_prompt)

    def template(self, shots: bool) -> str:
        """The whole prompt as one template."""
        if shots and self.whole:
            return self.whole
        return (self.head if shots else self.bare) + self.question

    def parts(self, shots: bool) -> tuple[str, str]:
        """The template of what all questions of a subset share, and that of their own part."""
        if self.tail_is_whole:
            return self.head if shots else self.bare, self.question
        template = self.template(shots)
        own = (m.start() for m in _PLACEHOLDER.finditer(template) if m[1] in self.words)
        end = next(own, len(template))
        return template[:end], template[end:]

    def prompts(
        self,
        subsets: Iterable[str],
        shots: Mapping[str, Sequence[Sample]] | None = None,
        *,
        examples: Mapping[str, str] | None = None,
        titles: Mapping[str, str] | None = None,
    ) -> Prompts:
        """The prompts of an exam.

        The worked examples of each subset are given as `shots` or, where they are published as
        text, as `examples`; `titles` are the names by which prompts call the subsets.
        """
        prefixes: dict[str, Prefix] = {}
        tails: dict[str, list[str | Word]] = {}
        for subset in subsets:
            title = (titles or {}).get(subset, subset)
            own = (shots or {}).get(subset, ())
            text = (examples or {}).get(subset, "")
            values = {**self.constants, **dict.fromkeys(self.shared, title)}
            system = self.system_prompt
            if system is None:
                system = fill(self.system, values)
            messages = [Message("system", system)] if system else []
            vocabulary = {**ANSWERED, **(self.shot_words or self.words)}
            vocabulary |= {name: _constant(value) for name, value in values.items()}
            asked = [put(self.shot, vocabulary, shot) for shot in own]
            answered = [put(self.reply, vocabulary, shot) for shot in own]
            if self.turns:
                lead, tail = self.parts(False)
                lead = fill(lead, values)
                for question, answer in zip(asked, answered, strict=True):
                    messages += [Message("user", lead + question), Message("assistant", answer)]
                    lead = ""
            else:
                pairs = zip(asked, answered, strict=True)
                text = text or self.between.join(question + answer for question, answer in pairs)
                values[self.examples] = text
                lead, tail = self.parts(bool(text))
                lead = fill(lead, values)
            prefixes[subset] = Prefix(tuple(messages), lead)
            tails[subset] = pieces(tail, self.words, values)
        return Prompts(prefixes, tails, self.cue)


def _constant(value: str) -> Word:
    return lambda _: value


class Prompts:
    """Makes the prompt of each question; the shared part of a subset is one object."""

    def __init__(
        self,
        prefixes: Mapping[str, Prefix],
        tails: Mapping[str, Sequence[str | Word]],
        cue: str = "",
    ) -> None:
        self._prefixes = prefixes
        self._tails = tails
        self._cue = cue

    def shown(self, subset: str) -> str:
        """All that the prompts of a subset show before their question."""
        prefix = self._prefixes[subset]
        return "\n\n".join([*(turn.content for turn in prefix.messages), prefix.lead])

    def render(self, sample: Sample) -> Prompt:
        """The prompt of one question."""
        subset = sample.subset
        tail = [piece if isinstance(piece, str) else piece(sample) for piece in self._tails[subset]]
        return Prompt(self._prefixes[subset], "".join(tail), self._cue)


def pieces(
    template: str, vocabulary: Mapping[str, Word], values: Mapping[str, str]
) -> list[str | Word]:
    """A template taken apart once: ``a {question} b`` is ``a ``, the question's word, `` b``.

    Placeholders in `values` are filled at once; their text is never looked into.
    """
    made: list[str | Word] = []
    start = 0
    for match in _PLACEHOLDER.finditer(template):
        name = match[1]
        if name in vocabulary or name in values:
            made.append(template[start : match.start()])
            made.append(vocabulary[name] if name in vocabulary else values[name])
            start = match.end()
    return [piece for piece in (*made, template[start:]) if piece]
