"""Keju's own reader: one reader over all kinds of answer.

A reply goes through four steps: `prepare` (cut a run-on, flatten options), the tiers (what the
protocol's own marker announces, then what any other wording does), the standing of each
announcement (denied, supposed, one branch of two), and the value of the kind. Where nothing is
announced, the end of the reply may be an answer by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from keju.answers.kinds import Kind
from keju.answers.labels import flatten_options
from keju.answers.negation import standing_of
from keju.answers.reader import Reader
from keju.answers.segments import (
    AMBIGUOUS,
    DENIED,
    DRESSING,
    INVALID_LABEL,
    LONGEST,
    SILENT,
    Spans,
    Statement,
    clean_segment,
    cut_run_on,
    last_block,
    last_paragraph,
    segment_at,
)
from keju.answers.wordings import TOLERANT, announcements
from keju.types import Answer, Sample, Tier

ACCEPTED = "accepted"
"""Key of `Sample.metadata` that holds all right answers, where there are several."""

# `(B)?`: after the protocol's own marker and colon a question mark fills in a form.
_FILLED_IN = re.compile(r"([(\[（]?[A-Z][)\]）]?)\s?[?？]")


class RobustReader(Reader):
    """Reads an answer of the sample's kind: strict marker, tolerant marker, the end of the reply.

    Inside a tier the last marker that is followed by an answer wins; the first one's answer is
    kept where it differs. Two answers that are joined are ambiguous and end the reading, and a
    label that the row does not have ends its tier.
    """

    name = "robust"
    version = 2
    scores_cut = False

    def __init__(
        self,
        kind: Kind | Callable[[Sample], Kind],
        *,
        strict: re.Pattern[str] | str,
        tolerant: re.Pattern[str] = TOLERANT,
        questions: tuple[str, ...] = (),
        name: str = "",
        explains: bool = False,
    ) -> None:
        r"""`strict` is the marker that the protocol asks for, a text where it has one form, which
        is quicker to find than a pattern; `tolerant` any other wording, beside which ``\boxed{…}``
        always counts; `questions` says how a line begins where a model runs on into a new question.
        `kind` is given by the sample where answers are of several kinds. With
        `explains` the reason says why nothing was read after a marker: ``no_label``, ``denied``.
        """
        self._kind_of = (lambda _: kind) if isinstance(kind, Kind) else kind
        self._strict, self._tolerant = strict, tolerant
        self._questions = questions
        self._explains = explains
        self.name = name or self.name

    def read(self, text: str, sample: Sample) -> Answer:
        text, sample, cut = self.prepare(text, sample)
        if not text.strip():
            return Answer(reason="empty", cut=cut)
        answer = self._read_tiers(text, self._kind_of(sample), sample)
        return msgspec.structs.replace(answer, cut=True) if cut else answer

    def matches(self, value: str, sample: Sample) -> bool:
        """Whether `value` is the target, or one of several that count as right."""
        same = self._kind_of(sample).same
        accepted = sample.metadata.get(ACCEPTED)
        return any(same(value, a) for a in accepted) if accepted else same(value, sample.target)

    def prepare(self, text: str, sample: Sample) -> tuple[str, Sample, bool]:
        """The text to read, the sample to read it with, and whether a run-on was cut off."""
        text, cut = cut_run_on(text, self._questions)
        if sample.choices and "\n" in "".join(sample.choices):
            text, flat = flatten_options(text, sample.choices)
            sample = msgspec.structs.replace(sample, choices=flat)
        return text, sample, cut

    def fallback(self, text: str, sample: Sample) -> Answer:
        """What an exam's own rules read in a reply in which nothing else was found."""
        return Answer()

    def _read_tiers(self, text: str, kind: Kind, sample: Sample) -> Answer:
        reason = ""
        memory: dict[str, Statement] = {}
        tiers: tuple[tuple[Tier, re.Pattern[str] | str | None], ...] = (
            ("strict", self._strict),
            ("strict", kind.marker),
            ("tolerant", self._tolerant),
        )
        for tier, pattern in tiers:
            if pattern is None:
                continue
            answer = read_tier(text, pattern, tier, kind, sample, memory)
            if answer.value is not None or answer.reason == "ambiguous":
                return answer
            if self._explains or answer.reason == INVALID_LABEL.reason:
                reason = reason or answer.reason
        if value := _end_of_reply(text, kind, sample):
            return Answer(value, "fallback")
        answer = self.fallback(text, sample)
        if answer.value is not None:
            return answer
        return Answer(reason=answer.reason or reason or kind.nothing)


def read_tier(
    text: str,
    pattern: re.Pattern[str] | str,
    tier: Tier,
    kind: Kind,
    sample: Sample,
    memory: dict[str, Statement],
) -> Answer:
    """The last statement of `text` among those that `pattern` announces."""
    if isinstance(pattern, str):
        spans, start = [], text.find(pattern)
        while start >= 0:
            end = start + len(pattern)
            spans.append((start, end))
            start = text.find(pattern, end)
    elif tier == "tolerant":
        spans = announcements(text, pattern)
    else:
        spans = [match.span() for match in pattern.finditer(text)]
    if not spans:
        return Answer()
    strict = tier == "strict"
    numbers = range(len(spans))
    statement, end = _first_statement(text, spans, reversed(numbers), strict, kind, sample, memory)
    value = statement.value
    if value is None:
        return Answer(reason=statement.reason)
    if strict and kind.plain:
        plain = kind.plain.match(text, end)
        tier = "strict" if plain and plain[1] == value else "tolerant"
    if len(spans) == 1:
        return Answer(value, tier)
    first = _first_statement(text, spans, numbers, strict, kind, sample, memory)[0].value
    return Answer(value, tier, first=first if first != value else None)


def _first_statement(
    text: str,
    spans: Spans,
    order: Iterable[int],
    strict: bool,
    kind: Kind,
    sample: Sample,
    memory: dict[str, Statement],
) -> tuple[Statement, int]:
    """What the first of the markers at `spans` that announces anything says, and where it ends.

    Prose and denials state nothing. `memory` holds what was read already, so that a looping reply
    costs no more than one turn.
    """
    nothing = Statement(None)
    for number in order:
        words, start, end = segment_at(text, spans, number, paragraph=kind.paragraph)
        # In a form that is filled in, `ANSWER: B?`, the mark is no doubt; in a sentence, `the
        # answer is (B)?`, it stays and says that nothing was decided.
        if strict and words.endswith(("?", "？")) and text[end - 1] in ":：":
            form = _FILLED_IN.fullmatch(words)
            words = form[1] if form else words
        if (statement := memory.get(words)) is None:
            statement = memory[words] = kind.read(words, sample)
        if statement.value is None and statement in SILENT:
            nothing = statement
            continue
        standing = standing_of(text, start)
        if standing != "denied":
            return (statement if standing == "stated" else AMBIGUOUS), end
        nothing = DENIED
    return nothing, 0


# --- the end of a reply ------------------------------------------------------------------------

# `### `, `=> `, `∴`: what may stand before a last line's answer.
_HEADING = re.compile(r"(?:#{1,6}(?=\s)|>|=>|→|⇒|∴)\s*+")
# `So, `, `In conclusion: `, `We can conclude that `.
_OPENING = (
    r"(?:(?:so|therefore|thus|hence|consequently|finally|overall|ultimately|in conclusion"
    r"|in summary|in total|as a result|this means(?: that)?|we (?:can )?conclude that)\b"
    r"[,:]?\s{1,3})"
)
# A noun that announces the outcome, up to the answer: `Total: `, `The sorted list is `, `Result =`;
# not `The total weight is`.
_RESULT_NOUN = re.compile(
    rf"{_OPENING}{{0,2}}(?:the |my |our )?(?:(?:final|overall|grand|total|correct|sorted) )?"
    r"(?:result|total|output|conclusion|verdict|decision|count|sum|value|solution|choice"
    r"|selection|evaluation|list|words|order|sequence|sorted|number)"
    r"(?: (?:list|count|order|words|number|value|sequence|of (?:the )?(?:list|words|expression)))?"
    r"[*_]*+\s{0,2}(?:[:：=]|is\b:?|are\b:?|[-–—]\s)[*_]*+",
    re.IGNORECASE,
)
# `So the number of red things is `, `The whole expression evaluates to`.
_COUNT_PHRASE = re.compile(
    rf"{_OPENING}{{0,2}}(?:the )?(?:total )?number of [a-z ]{{1,40}}? is\b:?|"
    rf"{_OPENING}{{0,2}}(?:the )?(?:whole |entire |given |final )?expression "
    r"(?:is|evaluates to|simplifies to|equals|is equal to)\b:?",
    re.IGNORECASE,
)
# `, given all the above premises`.
_PREMISES = r"(?:,? (?:given|from|based on|by) (?:the|these|all the)[a-z ]{0,30} premises?,?)?"
# `The argument, given the premises, is not deductively valid`; `The sentence is plausible`.
_VERDICT = re.compile(
    rf"{_OPENING}{{0,2}}(?:the|this) (?:given |above |whole )?(?:argument|deduction|reasoning"
    rf"|inference|syllogism|sentence|statement|claim|scenario){_PREMISES} is "
    r"((?:not )?(?:(?:deductively|logically) )?(?:valid|invalid|plausible|implausible))"
    rf"{_PREMISES}",
    re.IGNORECASE,
)


def _end_of_reply(text: str, kind: Kind, sample: Sample) -> str | None:
    """The answer of a reply that ends with nothing else, or with a plain statement of it.

    That is the last line or a code block at the end, alone or as a statement: ``= -50``, ``Total:
    8``, a verdict; where answers go on over lines, the last paragraph; or the whole reply. A letter
    is never taken out of prose.
    """
    block = last_block(text)
    if len(block) > LONGEST:
        return None
    bare = clean_segment(block)
    parts = [block]
    if heading := _HEADING.match(bare):
        bare = bare[heading.end() :].strip(DRESSING)
        parts.append(bare)
    left, sign, right = bare.rpartition("=") if kind.equations else ("", "", "")
    if sign and left[-1:] not in ("!", "<", ">"):
        parts.append(right)
    if kind.equations and (counted := _COUNT_PHRASE.match(bare)):
        parts.append(bare[counted.end() :])
    if verdict := _VERDICT.fullmatch(bare):
        parts.append(verdict[1])
    if named := _RESULT_NOUN.match(bare):
        parts.append(bare[named.end() :])
    if len(text) <= LONGEST:
        parts += [last_paragraph(text), text] if kind.paragraph else [text]
    return next((value for part in parts if (value := kind.whole(part, sample))), None)
