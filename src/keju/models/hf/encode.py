"""Encodes requests as tokens: the prompt, the part it shares with other prompts, and the label
ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from keju.errors import ConfigError, did_you_mean
from keju.models.hf.continuations import ContinuationEncoder
from keju.models.hf.forest import ScoredTree
from keju.models.hf.load import Checkpoint
from keju.models.labels import common_length
from keju.types import Fault, Form, Prefix, Prompt, Request, Sampling

KEPT = 4096
"""Number of prefixes and label endings that are kept before all are dropped."""
LAST = 2
"""Number of tokens at the end of a prompt that decide whether a label may merge with them."""
EXTRA = ("top_k", "min_p", "seed", "chat_template_kwargs", "continue_final_message")
"""Fields of ``extra`` that have an effect here."""

UNREADABLE = (
    "the tokenizer does not write the labels as one token each at the end of this "
    "prompt, so the likeliest cannot be read at one position: use decode 'generate'"
)

LabelIds = dict[str, tuple[int, ...]]
"""Label to the ids of the tokens that spell it."""


@dataclass(eq=False, slots=True)
class EncodedRequest:
    """One request as tokens, on its way through the model."""

    request: Request
    tokens: list[int]
    """The tokens that the model reads before it answers."""
    shared: int
    """Number of leading tokens that belong to the prefix alone; at least one token is always
    left."""
    labels: LabelIds
    trees: list[ScoredTree] = field(default_factory=list)
    """The continuations to score, where the request has any."""
    future: asyncio.Future[Any] | None = None
    started: float = 0.0
    timeout: float = float("inf")
    """Seconds from the start of work on it; the time in the queue does not count."""

    @property
    def prefix(self) -> Prefix:
        """The shared part of the prompt."""
        return self.request.prompt.prefix


class RequestEncoder:
    """Renders and tokenises requests; the result equals tokenising every whole text by itself."""

    def __init__(self, checkpoint: Checkpoint, *, label_space: bool = False) -> None:
        self._tokenizer = checkpoint.tokenizer
        self._context = checkpoint.context
        self._template = checkpoint.chat_template
        self._label_space = label_space
        self._prefixes: dict[tuple[int, int], tuple[Prefix, Sampling, list[int]]] = {}
        self._endings: dict[Any, tuple[int, list[int], LabelIds] | None] = {}
        without_special, with_special = (
            self._tokenize(["a"], special)[0] for special in (False, True)
        )
        adds_end = len(with_special) > len(without_special) and with_special[-1] in checkpoint.eos
        self._closing = 1 if adds_end else 0
        """Tokens that the tokenizer adds at the end, which are removed from a text to continue."""

        def tokenize(texts: list[str], special: bool) -> list[list[int]]:
            return (
                self._tokenize_texts(texts, "completion")
                if special
                else self._tokenize(texts, False)
            )

        self._continuations = ContinuationEncoder(
            tokenize, checkpoint.tokenizer, checkpoint.context
        )

    def check(self, sampling: Sampling) -> None:
        """Refuse settings that a local model does not support; raise ConfigError in one line."""
        for name in sampling.extra:
            if name not in EXTRA:
                raise ConfigError("hf_not_taken", name=name, hint=did_you_mean(name, EXTRA))
        if sampling.decode == "continuations":  # their contexts are whole texts in any form
            return
        if sampling.form == "chat" and self._template is None:
            raise ConfigError("hf_no_template")

    def encode(self, requests: Sequence[Request]) -> list[EncodedRequest | Fault]:
        """Tokenise requests together; a request that cannot be asked becomes a fault."""
        from jinja2 import TemplateError

        results: list[EncodedRequest | Fault] = [Fault("bad_request", "not encoded")] * len(
            requests
        )
        scored = [
            number for number, r in enumerate(requests) if r.sampling.decode == "continuations"
        ]
        trees = self._continuations.encode([requests[number] for number in scored])
        for number, grown in zip(scored, trees, strict=True):
            if isinstance(grown, Fault):
                results[number] = grown
            else:
                tokens = list(grown[0].tokens) if grown else []
                results[number] = EncodedRequest(requests[number], tokens, 0, {}, grown)
        forms: tuple[Form, ...] = ("completion", "chat")
        for form in forms:
            texts: dict[int, str] = {}
            for position, request in enumerate(requests):
                if request.sampling.form == form and request.sampling.decode != "continuations":
                    try:
                        texts[position] = self.text(request.prompt, request.sampling)
                    except TemplateError as error:
                        message = f"the chat template refuses this prompt: {error}"
                        results[position] = Fault("bad_request", message)
            encoded = self._tokenize_texts(list(texts.values()), form)
            for (position, text), tokens in zip(texts.items(), encoded, strict=True):
                results[position] = self._make_item(requests[position], text, tokens)
        return results

    def text(self, prompt: Prompt, sampling: Sampling) -> str:
        """Return the whole text that the model continues."""
        if sampling.form == "completion":
            return prompt.text
        turns = [{"role": m.role, "content": m.content} for m in prompt.prefix.messages]
        turns.append({"role": "user", "content": prompt.text})
        rendered = self._tokenizer.apply_chat_template(
            turns,
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
            **sampling.extra.get("chat_template_kwargs", {}),
        )
        return str(rendered) + prompt.cue

    def _make_item(self, request: Request, text: str, tokens: list[int]) -> EncodedRequest | Fault:
        labels: LabelIds = {}
        if request.sampling.decode == "labels":
            ending = self._find_ending(text, tokens, request.labels, request.sampling)
            if ending is None:
                return Fault("bad_request", UNREADABLE)
            cut, lead, labels = ending
            tokens = tokens[: len(tokens) - cut] + lead
        limit = self._context - (0 if labels else 1)
        if len(tokens) > limit:
            return Fault(
                "context_length",
                f"the prompt has {len(tokens)} tokens, more than the context of {self._context}",
            )
        if not tokens:
            return Fault("bad_request", "the prompt is empty")
        # The tokens of the prefix without a question. The prefix and the sampling are kept with
        # them, so no other objects get their ids.
        prefix, sampling = request.prompt.prefix, request.sampling
        entry = self._prefixes.get((id(prefix), id(sampling)))
        if entry is None:
            if len(self._prefixes) >= KEPT:
                self._prefixes.clear()
            prefix_text = self.text(Prompt(prefix, ""), sampling)
            entry = (prefix, sampling, self._tokenize_texts([prefix_text], sampling.form)[0])
            self._prefixes[id(prefix), id(sampling)] = entry
        shared = common_length(tokens, entry[2])
        return EncodedRequest(request, tokens, min(shared, len(tokens) - 1), labels)

    def _find_ending(
        self, text: str, tokens: list[int], labels: str, sampling: Sampling
    ) -> tuple[int, list[int], LabelIds] | None:
        """Return the label ids after `text`, how many tokens it loses at its end, and the tokens
        that replace them.

        The ids are found by tokenising the text with each label after it, as the protocol
        writes it. This is done once for every ending: the last line that is not
        blank, the line breaks around it, and the last tokens. The first token that
        differs between the labels is compared. After ``答案：`` this is the token ``"
        A"`` for the label ``" A"``; or ``"A"``, after the token ``" "``, if the
        tokenizer writes two.

        If only some labels merge with the end of the prompt, all labels are read after the
        unchanged prompt, each as its own token, as a server does. None if one position cannot
        distinguish the labels.
        """
        lead, form = sampling.label_lead or "", sampling.form
        key = (last_line(text), tuple(tokens[-LAST:]), labels, lead, form)
        if key in self._endings:
            return self._endings[key]
        label_tokens = self._tokenize_texts([text + lead + label for label in labels], form)
        starts = {common_length(tokens, ids) for ids in label_tokens}
        start = min(starts)
        if len(starts) > 1:
            start = len(tokens)
            single_tokens = self._tokenize([lead + label for label in labels], False)
            label_tokens = [tokens + ids for ids in single_tokens if len(ids) == 1]
        position = _find_difference(label_tokens, start) if lead else start
        ids: LabelIds = {
            label: (seq[position],) for label, seq in zip(labels, label_tokens, strict=False)
        }
        readable = len(set(ids.values())) == len(labels)
        if readable and self._label_space and not lead:
            ids = self._with_spaced(ids, text, tokens, start, form)
        if len(self._endings) >= KEPT:
            self._endings.clear()
        ending = (len(tokens) - start, label_tokens[0][start:position], ids) if readable else None
        self._endings[key] = ending
        return ending

    def _with_spaced(
        self, ids: LabelIds, text: str, tokens: list[int], start: int, form: Form
    ) -> LabelIds:
        """Return the ids of the labels and of the labels after a space, if these differ too."""
        spaced = self._tokenize_texts([f"{text} {label}" for label in ids], form)
        is_distinct = len({seq[start] for seq in spaced}) == len(ids)
        if not is_distinct or {common_length(tokens, seq) for seq in spaced} != {start}:
            return ids
        return {
            label: tuple(dict.fromkeys((*label_ids, seq[start])))
            for (label, label_ids), seq in zip(ids.items(), spaced, strict=True)
        }

    def _tokenize_texts(self, texts: list[str], form: Form) -> list[list[int]]:
        special = form == "completion"
        encoded = self._tokenize(texts, special) if texts else []
        return [ids[: -self._closing] for ids in encoded] if special and self._closing else encoded

    def _tokenize(self, texts: list[str], special: bool) -> list[list[int]]:
        batch = self._tokenizer(
            texts, add_special_tokens=special, return_attention_mask=False, verbose=False
        )
        return list(batch["input_ids"])


def last_line(text: str) -> str:
    """Return the last line that is not blank, with all the white space before and after it."""
    start = text.rfind("\n", 0, len(text.rstrip())) + 1
    return text[len(text[:start].rstrip()) :]


def _find_difference(sequences: list[list[int]], start: int) -> int:
    """Return the first position from `start` where the sequences differ, or their last common
    one."""
    last = min((len(ids) for ids in sequences), default=0) - 1
    position = start
    while position < last and len({tuple(ids[: position + 1]) for ids in sequences}) == 1:
        position += 1
    return position
