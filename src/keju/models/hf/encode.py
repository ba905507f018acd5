"""From requests to tokens: the prompt, what it shares with its neighbours, and the label ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keju.errors import ConfigError, did_you_mean
from keju.models.hf.load import Checkpoint
from keju.types import Fault, Form, Prefix, Prompt, Request, Sampling

KEPT = 4096
"""Prefixes and label endings that are remembered before all are forgotten."""
LAST = 2
"""Tokens at the end of a prompt that tell whether a label may join them."""
EXTRA = ("top_k", "min_p", "seed", "chat_template_kwargs", "continue_final_message")
"""Fields of ``extra`` that have an effect here."""

LabelIds = dict[str, tuple[int, ...]]
"""Label to the ids of the tokens that spell it."""


@dataclass(eq=False, slots=True)
class Item:
    """One request as tokens, on its way through the model."""

    request: Request
    tokens: list[int]
    """What the model reads before it answers."""
    shared: int
    """How many of the first tokens are those of the prefix alone; always leaves one or more."""
    labels: LabelIds
    future: asyncio.Future[Any] | None = None
    started: float = 0.0
    timeout: float = float("inf")
    """Seconds from the start of work on it; time spent waiting for a place does not count."""

    @property
    def prefix(self) -> Prefix:
        """The shared part of the prompt."""
        return self.request.prompt.prefix


class LabelsUnreadable(Exception):
    """The tokenizer writes the labels in a way that one position cannot tell apart."""


class _Ending(NamedTuple):
    cut: int
    """Tokens at the end of the prompt that merge with a label, so that the label replaces them."""
    ids: LabelIds


class Encoder:
    """Renders and tokenises; what it returns equals tokenising every whole text by itself."""

    def __init__(self, checkpoint: Checkpoint, *, label_space: bool = False) -> None:
        self._tokenizer = checkpoint.tokenizer
        self._context = checkpoint.context
        self._template = checkpoint.chat_template
        self._label_space = label_space
        self._prefixes: dict[tuple[int, int], tuple[Prefix, Sampling, list[int]]] = {}
        self._endings: dict[tuple[str, tuple[int, ...], str, Form], _Ending] = {}
        plain, marked = (self._ids(["a"], special)[0] for special in (False, True))
        closed = len(marked) > len(plain) and marked[-1] in checkpoint.eos
        self._closing = 1 if closed else 0
        """Tokens that the tokenizer adds at the end, which a text to be continued must not have."""

    def check(self, sampling: Sampling) -> None:
        """Refuse what a local model cannot honour; ConfigError in one line."""
        for name in sampling.extra:
            if name not in EXTRA:
                raise ConfigError(
                    f"generation_config: an hf: model does not take '{name}'"
                    f"{did_you_mean(name, EXTRA)}"
                )
        if sampling.form == "chat" and self._template is None:
            raise ConfigError(
                "the tokenizer has no chat template: take a protocol in completion form "
                "(--api completions where the protocol allows it), or give model_args.chat_template"
            )

    def encode(self, requests: Sequence[Request]) -> list[Item | Fault]:
        """Tokenise requests together; a request that cannot be asked becomes a fault."""
        results: list[Item | Fault] = [Fault("bad_request", "not encoded")] * len(requests)
        forms: tuple[Form, ...] = ("completion", "chat")
        for form in forms:
            texts: dict[int, str] = {}
            for position, request in enumerate(requests):
                if request.sampling.form == form:
                    try:
                        texts[position] = self.text(request.prompt, request.sampling)
                    except _template_error() as error:
                        results[position] = Fault(
                            "bad_request", f"the chat template refuses this prompt: {error}"
                        )
            encoded = self._tokens(list(texts.values()), form)
            for (position, text), tokens in zip(texts.items(), encoded, strict=True):
                results[position] = self._item(requests[position], text, tokens)
        return results

    def text(self, prompt: Prompt, sampling: Sampling) -> str:
        """The whole text that the model continues."""
        if sampling.form == "completion":
            return prompt.text
        turns = [{"role": m.role, "content": m.content} for m in prompt.prefix.messages]
        turns.append({"role": "user", "content": prompt.text})
        rendered: str = self._tokenizer.apply_chat_template(
            turns,
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
            **sampling.extra.get("chat_template_kwargs", {}),
        )
        return rendered + prompt.cue

    def _item(self, request: Request, text: str, tokens: list[int]) -> Item | Fault:
        labels: LabelIds = {}
        if request.sampling.decode == "labels":
            try:
                ending = self._ending(text, tokens, request.labels, request.sampling.form)
            except LabelsUnreadable as error:
                return Fault("bad_request", str(error))
            labels = ending.ids
            tokens = tokens[: len(tokens) - ending.cut]
        most = self._context - (0 if labels else 1)
        if len(tokens) > most:
            return Fault(
                "context_length",
                f"the prompt has {len(tokens)} tokens, more than the context of {self._context}",
            )
        if not tokens:
            return Fault("bad_request", "the prompt is empty")
        shared = common_length(tokens, self._prefix_tokens(request))
        return Item(request, tokens, min(shared, len(tokens) - 1), labels)

    def _prefix_tokens(self, request: Request) -> list[int]:
        """The tokens of the prefix with no question behind it."""
        prefix, sampling = request.prompt.prefix, request.sampling
        key = (id(prefix), id(sampling))
        known = self._prefixes.get(key)
        if known is None:
            if len(self._prefixes) >= KEPT:
                self._prefixes.clear()
            text = self.text(Prompt(prefix, ""), sampling)
            known = (prefix, sampling, self._tokens([text], sampling.form)[0])
            self._prefixes[key] = known
        return known[2]

    def _ending(self, text: str, tokens: list[int], labels: str, form: Form) -> _Ending:
        """The label ids behind `text`.

        They are found by tokenising the text with each label behind it, once for every ending:
        the last line that is not blank, the breaks around it, and the last tokens.
        """
        key = (last_line(text), tuple(tokens[-LAST:]), labels, form)
        known = self._endings.get(key)
        if known is None:
            if len(self._endings) >= KEPT:
                self._endings.clear()
            known = self._endings[key] = self._find_ending(text, tokens, labels, form)
        return known

    def _find_ending(self, text: str, tokens: list[int], labels: str, form: Form) -> _Ending:
        """Compare from the first difference that a label makes.

        Where only some labels merge with the end of the prompt, all are read after the prompt as
        it stands, each as the token it is by itself: what a server does.
        """
        written = self._tokens([text + label for label in labels], form)
        starts = {common_length(tokens, ids) for ids in written}
        start = min(starts)
        if len(starts) > 1:
            start = len(tokens)
            written = [tokens + ids for ids in self._ids(list(labels), False) if len(ids) == 1]
        ids: LabelIds = {label: (seq[start],) for label, seq in zip(labels, written, strict=False)}
        if len(set(ids.values())) < len(labels):
            raise LabelsUnreadable(
                "the tokenizer does not write the labels as one token each at the end of this "
                "prompt, so the likeliest cannot be read at one position: use decode 'generate'"
            )
        if self._label_space:
            spaced = self._tokens([f"{text} {label}" for label in labels], form)
            apart = len({seq[start] for seq in spaced}) == len(labels)
            if apart and {common_length(tokens, seq) for seq in spaced} == {start}:
                ids = {
                    label: tuple(dict.fromkeys((*ids[label], seq[start])))
                    for label, seq in zip(labels, spaced, strict=True)
                }
        return _Ending(len(tokens) - start, ids)

    def _tokens(self, texts: list[str], form: Form) -> list[list[int]]:
        special = form == "completion"
        encoded = self._ids(texts, special) if texts else []
        return [ids[: -self._closing] for ids in encoded] if special and self._closing else encoded

    def _ids(self, texts: list[str], special: bool) -> list[list[int]]:
        batch = self._tokenizer(
            texts, add_special_tokens=special, return_attention_mask=False, verbose=False
        )
        ids: list[list[int]] = batch["input_ids"]
        return ids


def common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many leading tokens two sequences have in common."""
    least = min(len(first), len(second))
    if first[:least] == second[:least]:
        return least
    for position in range(least):
        if first[position] != second[position]:
            return position
    return least


def last_line(text: str) -> str:
    """The last line that is not blank, with all the white space before and behind it."""
    start = text.rfind("\n", 0, len(text.rstrip())) + 1
    return text[len(text[:start].rstrip()) :]


def seed_of(request: Request) -> int | None:
    """The seed that a request is sampled with, or None for none."""
    if request.seed is not None:
        return request.seed
    seed: int | None = request.sampling.extra.get("seed", request.sampling.seed)
    return seed


def _template_error() -> type[Exception]:
    from jinja2 import TemplateError

    return TemplateError
