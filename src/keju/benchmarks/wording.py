"""Build prompts from templates, with one vocabulary for all exams.

A template is text with placeholders, ``{name}``. Only known names are replaced and the values are
never searched for placeholders, so all other braces are literal text. A `Wording` holds the
templates of one protocol, and `Wording.prompts` makes the prompts of an exam from them:

    Wording(question="Q: {question}\\nA:", shot="Q: {question}\\nA: {explanation} {answer}")

All questions of a subset begin with the same `keju.types.Prefix`. Servers cache it, and its hash
is part of each request's identity. So the point at which a template is split into the prefix and
the question's part must never change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keju.benchmarks.choices import LabelStyle, format_choices
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean
from keju.types import Message, Prefix, Prompt, Sample

Word = Callable[[Sample], str]
"""The meaning of a placeholder: a function of the question."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""``{question}`` in ``Q: {question}``; not ``{"a": 1}`` and not ``{}``."""
_IN_CONTEXT = re.compile(r"(\\[A-Za-z]+)?\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A placeholder and the LaTeX command before it. After a command an unknown name is literal text,
as in ``\\boxed{X}``."""

SHARED = ("subject", "subset")
"""Placeholders for the title of the subset."""


def words(style: LabelStyle = "A) text", between: str = ",") -> dict[str, Word]:
    """The usual vocabulary of a question: its text, its labelled options, its letters."""
    return {
        "question": lambda sample: sample.text,
        "choices": lambda sample: format_choices(sample.choices, style),
        "letters": lambda sample: between.join(sample.labels),
    }


SHOT_WORDS: Mapping[str, Word] = {
    "answer": lambda sample: sample.target,
    "explanation": lambda sample: str(sample.metadata.get("explanation", "")),
}
"""The additional placeholders of a worked example."""


def placeholders(template: str) -> list[str]:
    """Return the names in a template: ``["question"]`` for ``Q: {question}``."""
    return _PLACEHOLDER.findall(template)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders in `values` in one pass; the values are not searched again."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def fill_from_sample(template: str, vocabulary: Mapping[str, Word], sample: Sample) -> str:
    """Replace the placeholders in `vocabulary` with their values for `sample`."""

    def value(match: re.Match[str]) -> str:
        word = vocabulary.get(match[1])
        return match[0] if word is None else word(sample)

    return _PLACEHOLDER.sub(value, template)


def check_template(
    template: str, *, known_names: Collection[str], required: Collection[str] = (), setting: str
) -> None:
    """Reject a template that has an unknown placeholder or lacks a required one.

    Braces are literal text unless they enclose a plain name, as are those after a LaTeX command.
    Errors name `setting`.
    """
    present = _IN_CONTEXT.findall(template)
    for command, name in present:
        if name not in known_names and not command:
            hint = did_you_mean(name, known_names)
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
    """The answer of a worked example, if it is a separate turn (see `turns`)."""
    head: str = "{examples}\n\n"
    """The text before the question if there are worked examples."""
    bare: str = ""
    """The text before the question without worked examples."""
    whole: str = ""
    """Head and question as one template: the user's ``few_shot_prompt_template``."""
    between: str = "\n\n"
    """The text between two worked examples."""
    system: str = ""
    """The system message."""
    system_prompt: str | None = None
    """The user's system message, unchanged, in place of `system`; an empty one means none."""
    cue: str = ""
    """The beginning of the reply that the model continues (chat form only)."""
    turns: bool = False
    """Worked examples are turns of a chat, not text; `bare` opens the first user message."""
    tail_is_whole: bool = False
    """The prefix ends before the question's template, not before its first word that differs."""
    words: Mapping[str, Word] = field(default_factory=words)
    """The placeholders that differ from question to question."""
    shot_words: Mapping[str, Word] | None = None
    """The placeholders of worked examples, if they differ from `words`."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Placeholders that are the same in all prompts."""
    shared: Collection[str] = SHARED
    """Placeholders of the subset that these templates know."""
    examples: str = "examples"
    """The name of the placeholder for the worked examples."""

    def check(self, place: str) -> None:
        """Refuse a placeholder that these templates do not know, such as a misspelt one."""
        known_names = {*self.words, *self.constants, *self.shared}
        shot_names = {*known_names, *SHOT_WORDS, *(self.shot_words or ())}
        for names, fields in (
            (known_names, ("question", "bare", "system")),
            ({*known_names, self.examples}, ("head", "whole")),
            (shot_names, ("shot", "reply")),
        ):
            for field_name in fields:
                template, setting = getattr(self, field_name), f"{place}: {field_name}"
                check_template(template, known_names=names, setting=setting)

    def adapted(self, args: DatasetArgs, shots: bool) -> Wording:
        """Return the wording with the user's templates and system message.

        Refuse a template without effect.
        """
        question, few_shot_template = args.prompt_template, args.few_shot_prompt_template
        required = [name for name in ("question", "choices") if name in self.words]
        known_names = {*self.words, *self.constants, *self.shared}
        wording = self
        if question is not None:
            check_template(
                question, known_names=known_names, required=required, setting="prompt_template"
            )
            wording = replace(wording, question=question)
        if few_shot_template is not None:
            setting = "few_shot_prompt_template"
            if not shots:
                raise ConfigError("wording_no_shots", setting=setting)
            if question is not None:
                raise ConfigError("wording_two", setting=setting)
            check_template(
                few_shot_template,
                known_names={*known_names, self.examples},
                required=(self.examples, *required),
                setting=setting,
            )
            wording = replace(wording, whole=few_shot_template)
        return replace(wording, system_prompt=args.system_prompt)

    def template(self, shots: bool) -> str:
        """The whole prompt as one template."""
        if shots and self.whole:
            return self.whole
        return (self.head if shots else self.bare) + self.question

    def parts(self, shots: bool) -> tuple[str, str]:
        """Return the templates of the prefix that a subset shares and of the question."""
        if self.tail_is_whole:
            return self.head if shots else self.bare, self.question
        template = self.template(shots)
        question_starts = (m.start() for m in _PLACEHOLDER.finditer(template) if m[1] in self.words)
        end = next(question_starts, len(template))
        return template[:end], template[end:]

    def prompts(
        self,
        subsets: Iterable[str],
        shots: Mapping[str, Sequence[Sample]] | None = None,
        *,
        examples: Mapping[str, str] | None = None,
        titles: Mapping[str, str] | None = None,
    ) -> PromptMaker:
        """The prompts of an exam.

        The worked examples of each subset are given as `shots` or, where they are published as
        text, as `examples`; `titles` are the names by which prompts call the subsets.
        """
        prefixes: dict[str, Prefix] = {}
        tails: dict[str, list[str | Word]] = {}
        for subset in subsets:
            title = (titles or {}).get(subset, subset)
            values = {**self.constants, **dict.fromkeys(self.shared, title)}
            system = self.system_prompt
            if system is None:
                system = fill(self.system, values)
            messages = [Message("system", system)] if system else []
            written_shots = self._write_shots((shots or {}).get(subset, ()), values)
            if self.turns:
                lead, tail = self.parts(False)
                lead = fill(lead, values)
                for question, answer in written_shots:
                    messages += [Message("user", lead + question), Message("assistant", answer)]
                    lead = ""
            else:
                text = (examples or {}).get(subset) or self.between.join(
                    map("".join, written_shots)
                )
                values[self.examples] = text
                lead, tail = self.parts(bool(text))
                lead = fill(lead, values)
            prefixes[subset] = Prefix(tuple(messages), lead)
            tails[subset] = split_template(tail, self.words, values)
        return PromptMaker(prefixes, tails, self.cue)

    def _write_shots(
        self, shots: Sequence[Sample], values: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the question and the answer of each worked example."""
        vocabulary = {**SHOT_WORDS, **(self.shot_words or self.words)}
        vocabulary |= {name: _constant(value) for name, value in values.items()}
        return [
            (
                fill_from_sample(self.shot, vocabulary, shot),
                fill_from_sample(self.reply, vocabulary, shot),
            )
            for shot in shots
        ]

    def drawn_prompts(
        self, subsets: Iterable[str], pool: Sequence[Sample], key: str
    ) -> PromptMaker:
        """The prompts of an exam whose questions have different worked examples of one `pool`.

        `key` of a sample's metadata holds the places of its worked examples in the pool.
        """
        vocabulary = {**SHOT_WORDS, **(self.shot_words or self.words)}

        def examples(sample: Sample) -> str:
            shots = [pool[place] for place in sample.metadata[key]]
            return self.between.join(
                fill_from_sample(self.shot + self.reply, vocabulary, shot) for shot in shots
            )

        system = self.system if self.system_prompt is None else self.system_prompt
        prefix = Prefix((Message("system", system),) if system else (), "")
        question_words = {**self.words, self.examples: examples}
        tail = split_template(self.template(True), question_words, self.constants)
        names = list(subsets)
        return PromptMaker(dict.fromkeys(names, prefix), dict.fromkeys(names, tail), self.cue)


def _constant(value: str) -> Word:
    return lambda _: value


class PromptMaker:
    """Makes the prompt of each question; all questions of a subset share one prefix object."""

    def __init__(
        self,
        prefixes: Mapping[str, Prefix],
        tails: Mapping[str, Sequence[str | Word]],
        cue: str = "",
    ) -> None:
        self._prefixes = prefixes
        self._tails = tails
        self._cue = cue

    @classmethod
    def joined(cls, makers: Sequence[PromptMaker]) -> PromptMaker:
        """Return one maker for the subsets of all makers, which have the same cue."""
        if len(makers) == 1:
            return makers[0]
        prefixes = {name: prefix for maker in makers for name, prefix in maker._prefixes.items()}
        tails = {name: tail for maker in makers for name, tail in maker._tails.items()}
        return cls(prefixes, tails, makers[0]._cue)

    def prefix_text(self, subset: str) -> str:
        """Return all text that the prompts of a subset contain before the question."""
        prefix = self._prefixes[subset]
        return "\n\n".join([*(turn.content for turn in prefix.messages), prefix.lead])

    def render(self, sample: Sample) -> Prompt:
        """Return the prompt of one question."""
        subset = sample.subset
        tail = [piece if isinstance(piece, str) else piece(sample) for piece in self._tails[subset]]
        return Prompt(self._prefixes[subset], "".join(tail), self._cue)


def split_template(
    template: str, vocabulary: Mapping[str, Word], values: Mapping[str, str]
) -> list[str | Word]:
    """Split a template: ``a {question} b`` becomes ``a ``, the question's function, `` b``.

    Placeholders in `values` are filled immediately; their text is not searched again.
    """
    parts: list[str | Word] = []
    start = 0
    for match in _PLACEHOLDER.finditer(template):
        name = match[1]
        if name in vocabulary or name in values:
            parts.append(template[start : match.start()])
            parts.append(vocabulary[name] if name in vocabulary else values[name])
            start = match.end()
    return [piece for piece in (*parts, template[start:]) if piece]
