"""The wordings with which models announce the label of an option.

Every pattern is linear: repeats are possessive and no two neighbours accept the same character.
"""

from __future__ import annotations

import re

from keju.answers.links import LINK, strength_of

ANSWER_COLON = re.compile(r"ANSWER:")
"""What EvalScope and Inspect ask for: ``ANSWER: [LETTER]``."""

ANSWER_IS = re.compile(r"answer is\b")
"""What the MMLU-Pro authors ask for: ``the answer is (X)``."""

_ANSWER = (
    r"(?<=\b[aA])(?i:nswer)"
    r"(?<!(?i:wrong answer))(?<!(?i:incorrect answer))(?<!(?i:not the answer))"
    r"(?<!(?i:no answer))(?<!(?i:if the answer))(?<!(?i:whether the answer))"
    r"(?i: (?:choice|option|letter))?"
)
_CORRECT = r"(?<=\b[cC])(?i:orrect (?:option|choice|response|letter))"
_HEADING = "|".join(
    f"(?<={before}{word}answer)"
    for before in ("^", "^the ", "# ", r"\*")
    for word in ("", "final ", "correct ")
)
_SAYS = (
    r"(?:[\s*_`\"'”’]*+(?i:is\b|would be\b|should be\b|must be\b|[:：=])"
    r"|(?i:(?<=<answer)|(?<=<final_answer))>"
    rf"|(?im:{_HEADING})[*_]*+(?:[ \t]*+(?:(?=\n)|—)|[ \t]++[-–]{{1,2}}[ \t]))"
)
_HEDGE = (
    r"(?:[\s*_]*+(?i:therefore|thus|hence|then|clearly|simply|likely|probably|most likely)\b,?)?"
)
_COLON = r"(?:[\s*_]*+[:：])?"
CHINESE_EMPHASIS = r"(?:应[该当]?|就|显然|明显|无疑|当然|自然|肯定|一定|只能){0,2}+"
"""What may stand between `答案` and `是` without changing it."""
_CHINESE = rf"(?<=答)案(?<![不非]答案){CHINESE_EMPHASIS}\s*+(?:是|为|选|[:：])\s*+[:：]?"

TOLERANT = re.compile(rf"[aAcC答](?:(?:{_ANSWER}|{_CORRECT}){_SAYS}{_HEDGE}{_COLON}|{_CHINESE})")
"""Any wording that announces an answer to an English question, in any case.

``answer`` (also final, correct, best) or ``correct option|choice|response``, then ``is`` or a
colon; ``Answer`` as a heading or before a dash; the tag ``<answer>``; and the Chinese cue, which
bilingual models write under English questions too. The pattern begins with a set of characters
because that is what the regex engine can search for quickly.
"""

BOXED = "\\boxed"
"""What announces itself: ``\\boxed{B}`` is an answer without any other wording."""

_ATTACHED = re.compile(r"[ \t$*:(\[{\\]*+")
_BOX = re.compile(
    r"[ \t$*:(\[{\\]*+boxed ?\{[^{}\n]{0,40}(?:\{[^{}\n]{0,40}\})?[^{}\n]{0,20}\}[\\)$]*+"
)
_NEAR = 120
"""Characters between a marker and a box that still belongs to what it introduces."""


def announcements(text: str, pattern: re.Pattern[str] = TOLERANT) -> list[tuple[int, int]]:
    r"""Where `pattern` or a box announces an answer, in order.

    A ``\boxed{`` announces itself, with the wrapper as part of what it announces, unless it belongs
    to what another marker introduces: alone, or joined to another box.
    """
    spans = [match.span() for match in pattern.finditer(text)]
    if BOXED not in text:
        return spans
    boxes = [(match.start(), match.start()) for match in re.finditer(r"\\boxed", text)]
    kept: list[tuple[int, int]] = []
    for span in sorted(spans + boxes):
        is_box = span[0] == span[1]
        if is_box and kept and _belongs_to(text, kept[-1][1], span[0]):
            continue
        kept.append(span)
    return kept


def _belongs_to(text: str, marker_end: int, box: int) -> bool:
    """Whether a box is the answer, or joined to the answer, that the marker before introduces."""
    if box - marker_end > _NEAR:
        return False
    between = text[marker_end:box]
    if _ATTACHED.fullmatch(between):
        return True
    position = 0
    while first := _BOX.match(between, position):
        link = LINK.match(between, first.end())
        position = link.end() if link else first.end()
        joint = between[first.end() : position]
        if "\n" in joint or strength_of(joint) == "apart":
            return False
        if _ATTACHED.fullmatch(between, position):
            return True
    return False


ENGLISH = rf"[aAcC](?:{_ANSWER}|{_CORRECT}){_SAYS}{_HEDGE}{_COLON}"
"""The English wordings alone, to be combined with those of an exam in another language."""
