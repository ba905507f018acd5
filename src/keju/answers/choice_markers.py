"""The wordings with which models announce the label of an option.

Every pattern is linear: repeats are possessive and no two neighbours accept the same character.
"""

from __future__ import annotations

import re

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
_CORRECT = r"(?<=\b[cC])(?i:orrect (?:option|choice|response))"
_SAYS = r"[\s*_`\"'”’]*+(?i:is\b|would be\b|should be\b|must be\b|[:：])"
_HEDGE = (
    r"(?:[\s*_]*+(?i:therefore|thus|hence|then|clearly|simply|likely|probably|most likely)\b,?)?"
)
_COLON = r"(?:[\s*_]*+[:：])?"
_CHINESE = r"(?<=答)案(?<![不非]答案)(?:应该|应)?\s*+(?:是|为|选|[:：])\s*+[:：]?"

TOLERANT = re.compile(rf"[aAcC答](?:(?:{_ANSWER}|{_CORRECT}){_SAYS}{_HEDGE}{_COLON}|{_CHINESE})")
"""Any wording that announces an answer to an English question, in any case.

``answer`` (also final, correct, best) or ``correct option|choice|response``, then ``is`` or a
colon; and the Chinese cue, which bilingual models write under English questions too. The pattern
begins with a set of characters because that is what the regex engine can search for quickly.
"""

BOXED = "\\boxed"
"""What announces itself: ``\\boxed{B}`` is an answer without any other wording."""

ENGLISH = rf"[aAcC](?:{_ANSWER}|{_CORRECT}){_SAYS}{_HEDGE}{_COLON}"
"""The English wordings alone, to be combined with those of an exam in another language."""
