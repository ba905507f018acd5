"""Reading a letter: the rules of the environment, the official ones, and Keju's own.

No rule ever takes the first character of prose for a label: ``Because…`` is not B, ``As an AI`` is
not A and ``E. coli`` is not E. Options that are numbers are met by value, words by their letters,
never the other way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from unicodedata import normalize

from keju.answers.decision import LINK, strength_of
from keju.answers.kinds import Choice
from keju.answers.labels import bare_label, read_label
from keju.answers.numbers import comparable, number_of, range_of, same_number
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import LONGEST, NO_LABEL, Statement, clean_segment, tag_content
from keju.answers.statements import statements
from keju.answers.wordings import TOLERANT
from keju.benchmarks.grading import REFUSAL
from keju.types import Answer, Sample, Tier

NAMES = ("environment", "official", "robust")

LABEL_LENGTH = 12
"""Characters of a reply in which a full-width label is looked for."""
FUZZY_RATIO = 0.8
"""The least likeness that counts (README of the verifiers environment `bixbench`)."""
SHORT = 200
"""Characters of a reply that may still be nothing but an option's text, misspelt."""

# `**(B).`: one letter with dressing around it; not `B is`.
_ONE_LABEL = re.compile(r"[\s*_`\"'(\[{$]*+([A-Za-z])[\s*_`\"')\]}$.:,;!]*+")
# `B.two`, `B选项`: no blank between a label and what follows, which the environment does not read.
_GLUED = re.compile(r"\W{0,4}[A-Za-z](?:[)\].:、]{1,3}+\S|\s?选?项)")
# `Option (B`, `option  B`; not `Option Bs`, `option b`.
_OPTION = re.compile(r"\b(?:[Oo]ption|OPTION)\s{1,3}[*_`(\[]{0,3}([A-Z])(?![A-Za-z0-9'’])")
# A label at the beginning, `(b) **`, `B.`, set off by a new line, a comma, a dash or ` because`;
# group 3 is set where something else follows it, `B two`. Not `Because`, `E.coli`.
_LEADING = re.compile(
    r"[\s*_`]*+(?:[(\[]([A-Za-z])[)\]]|([A-Z]))(?![A-Za-z0-9'’])[*_`]{0,3}[).:]{0,2}[*_`]{0,3}"
    r"(?=\s*(?:\n|[,;–—]\s|-\s)|\s+(?:is|because|since)\b|\s+(\S))"
)

# `<answer>` where `</answer>` closes it; `ANSWER:`.
_TAG_OR_MARKER = re.compile(r"(?i:<answer>(?=[^<]*+</answer>))|ANSWER:")

Step = Callable[[str, Sample], "Answer | None"]


class OfficialReader(Reader):
    """The last closed ``<answer>…</answer>``, compared by letters and digits alone.

    The published parser cuts garbage out of replies without tags; here they hold no answer.
    """

    name = "official"
    about = "bixbench.about_reader_official"

    def read(self, text: str, sample: Sample) -> Answer:
        inside = tag_content(text)
        if inside is None:
            return Answer(reason="no_marker")
        letter = re.sub(r"[^A-Za-z0-9]+", "", inside).upper()  # ` (b). ` is B
        return _valid(letter, sample, "strict") if letter else Answer(reason="empty")


class EnvironmentReader(Reader):
    """The rules that the verifiers environment promises, without its defects.

    One label alone; ``answer is X``; a label that leads the reply; ``Option X``; the text of an
    option; a text much like one.
    """

    name = "environment"
    about = "bixbench.about_reader_environment"
    version = 2

    def read(self, text: str, sample: Sample) -> Answer:
        return _first(text.strip(), sample, (_alone, _announced, _leading, _option, _text, _fuzzy))


class Options(Choice):
    """A label, or an option's text, of which numbers count by value."""

    def read(self, segment: str, sample: Sample) -> Statement:
        statement = super().read(segment, sample)
        label = option_of(segment, sample) if statement == NO_LABEL else None
        return Statement(label) if label else statement

    def whole(self, text: str, sample: Sample) -> str | None:
        return super().whole(text, sample) or option_of(text, sample)


class TaggedReader(RobustReader):
    """Keju's own: tags and the strict marker, any other wording, then the reply's own form."""

    version = 8

    def __init__(self) -> None:
        super().__init__(Options(), strict=_TAG_OR_MARKER)

    def fallback(self, text: str, sample: Sample) -> Answer:
        return _first(text.strip(), sample, (_alone, _leading, _option))


def readers() -> dict[str, Reader]:
    """All readers of multiple choice by name."""
    return {
        reader.name: reader for reader in (EnvironmentReader(), OfficialReader(), TaggedReader())
    }


# --- the environment's steps -------------------------------------------------------------------


def _first(text: str, sample: Sample, steps: tuple[Step, ...]) -> Answer:
    """What the first step that finds anything says, be it that the answer is not valid."""
    for step in steps:
        answer = step(text, sample)
        if answer is not None:
            return answer
    return Answer(reason="no_marker" if text else "empty")


def _valid(label: str, sample: Sample, tier: Tier) -> Answer:
    if len(label) == 1 and label in sample.labels:
        return Answer(label, tier)
    return Answer(reason="invalid_label")


def _alone(text: str, sample: Sample) -> Answer | None:
    """The whole reply is one label, or a label and its own option's text."""
    match = _ONE_LABEL.fullmatch(normalize("NFKC", text) if len(text) <= LABEL_LENGTH else text)
    if match:
        return _valid(match[1].upper(), sample, "strict")
    label = None if _GLUED.match(text) else bare_label(text, sample.labels, sample.choices)
    return Answer(label, "tolerant") if label and option_of(text, sample) in (None, label) else None


class _TextFirst(Choice):
    """An option's text, which counts before a label."""

    def read(self, segment: str, sample: Sample) -> Statement:
        label = option_of(segment, sample)
        return Statement(label) if label else read_label(segment, sample.labels, sample.choices)


def _announced(text: str, sample: Sample) -> Answer | None:
    """``answer is X`` or ``Answer: X``, the last that is followed by an answer and not denied."""
    marked, _ = statements(text, "", TOLERANT, _TextFirst(), sample)
    if not marked:
        return None
    value, reason = marked[-1].statement
    return Answer(value, "tolerant" if value else "", reason)


def _leading(text: str, sample: Sample) -> Answer | None:
    """A label at the beginning, set off from what follows or followed by its own text."""
    match = _LEADING.match(text)
    if match is None:
        return None
    label = (match[1] or match[2]).upper()
    if match[3] and not _own_text_follows(text, match.start(3), label, sample):
        return None
    statement = read_label(text.partition("\n")[0], sample.labels, sample.choices)
    if statement.reason == "ambiguous":
        return Answer(reason="ambiguous")
    return Answer(label, "tolerant") if statement.value == label else None


def _own_text_follows(text: str, start: int, label: str, sample: Sample) -> bool:
    index = sample.labels.find(label)
    own = sample.choices[index].strip() if index >= 0 else ""
    follows = text[start : start + len(own) + 1].casefold()
    whole = len(follows) <= len(own) or not (follows[-1].isalnum() or follows[-1] in "%.,-")
    return bool(own) and follows.startswith(own.casefold()) and whole


def _option(text: str, sample: Sample) -> Answer | None:
    """``Option X``, the last one; where two are joined, or it is called wrong, there is none."""
    named = list(_OPTION.finditer(text))
    if not named:
        return None
    last = named[-1]
    if len(named) > 1 and named[-2][1] != last[1]:
        link = LINK.fullmatch(text, named[-2].end(), last.start())
        if link and strength_of(link[0]) != "apart":
            return Answer(reason="ambiguous")
    line = text[last.start() : last.start() + LONGEST].partition("\n")[0]
    statement = read_label(line, sample.labels, sample.choices)
    if statement.reason == "no_label":
        return None
    if statement.value is None:
        return Answer(reason=statement.reason)
    return _valid(last[1], sample, "tolerant")


def _text(text: str, sample: Sample) -> Answer | None:
    label = option_of(text, sample)
    return Answer(label, "tolerant") if label else None


def _fuzzy(text: str, sample: Sample) -> Answer | None:
    """The option of mere words that a short `text` is most like, if it is alike.

    Not to know is never read out of likeness, nor the opposite of what was said.
    """
    letters = _letters(text)
    if len(text) > SHORT or not letters:
        return None
    refusal = sample.metadata.get(REFUSAL)
    ratios = [
        (SequenceMatcher(None, letters, _letters(choice)).ratio(), label, choice)
        for label, choice in zip(sample.labels, sample.choices, strict=True)
        if label != refusal and _only_words(choice)
    ]
    best = max((ratio for ratio, _, _ in ratios), default=0.0)
    winners = [(label, choice) for ratio, label, choice in ratios if ratio == best]
    if best < FUZZY_RATIO or len(winners) != 1 or _opposed(text, winners[0][1]):
        return None
    return Answer(winners[0][0], "fallback")


# --- which option a text repeats ---------------------------------------------------------------

# Words, and beginnings of words, of which one turns a statement into its opposite: `not`, `didn't`,
# `upregulated`, `fewer`.
_POLARITY = re.compile(
    r"\b(?:(no|not|non|un|never|neither|nor|none|without|cannot|lack(?:s|ed|ing)?|absen(?:t|ce)"
    r"|fail(?:s|ed)?)\b"
    r"|(up|down|incr|decr|hyper|hypo|over|under|positiv|negativ|lower|higher|more|less|fewer"
    r"|above|below|before|after|gain|loss|same|differen))|(n['’]t\b)"
)
_PREFIXES = ("un", "non", "in", "im", "ir", "dis", "anti")


def option_of(text: str, sample: Sample) -> str | None:
    """The label of the one option that `text` is; None where none or several fit.

    An option that is a number or a range is met by value only. One with digits inside is met by
    its whole text; only options of mere words may differ in punctuation.
    """
    labelled = zip(sample.labels, sample.choices, strict=True)
    fitting = [label for label, choice in labelled if _is_option(text, choice)]
    return fitting[0] if len(fitting) == 1 else None


def _is_option(text: str, choice: str) -> bool:
    if (number := number_of(choice)) is not None:
        other = number_of(text)
        return other is not None and same_number(other, number)
    if (bounds := range_of(choice)) is not None:
        return range_of(clean_segment(text)) == bounds
    if _only_words(choice):
        return bool(_letters(choice)) and _letters(text) == _letters(choice)
    return comparable(text) == comparable(choice)


def _only_words(text: str) -> bool:
    """Whether an option has no digit: ``upregulated``; not ``3-fold``."""
    return re.search(r"\d", text) is None


def _letters(text: str) -> str:
    """The letters and digits of a text, lower case, anything between them one space.

    ``Up-regulated (IL-6)`` is ``up regulated il 6``.
    """
    return re.sub(r"[^a-z0-9]+", " ", normalize("NFKC", text).lower()).strip()


def _opposed(first: str, second: str) -> bool:
    """Whether two texts that are alike may say the opposite: only one of them has a ``not``."""
    polarities = [
        sorted("".join(groups) for groups in _POLARITY.findall(normalize("NFKC", text).lower()))
        for text in (first, second)
    ]
    one, other = (frozenset(_letters(text).split()) for text in (first, second))
    return polarities[0] != polarities[1] or any(
        prefix + word in longer
        for shorter, longer in ((one, other), (other, one))
        for word in shorter - longer
        for prefix in _PREFIXES
    )
