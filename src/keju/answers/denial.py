"""Markers that announce nothing: denied, supposed, or one branch of an alternative."""

from __future__ import annotations

import re
from typing import Literal

Standing = Literal["stated", "denied", "alternative"]

REACH = 80
"""Characters before a marker that can still say something about it."""

_SENTENCE_ENDS = ".\n!?;。；"
_HARMLESS = frozenset(
    f"{opening}{word}".strip()
    for opening in ("", "so ", "so, ", "thus, ", "therefore, ", "hence, ")
    for word in ("", "the ", "final ", "the final ", "the correct ", "correct ")
)
"""Nearly all that really stands before a marker; what says more is looked at closely."""

_THE = (
    r"(?:\s+(?:the|my|our|your|its|this|an?|final|correct|right|best|true|actual|real|only|valid"
    r"|good)\b)*+[\s*_]*+\Z"
)
_NEVER = (
    r"(?:\bnot|\bnever|\bcannot|n[’']t|\bhardly|\bnor|\bneither|\bden(?:y|ies)"
    r"|(?<!no )(?<!any )(?<!without )(?<!without a )(?<!little )\bdoubt\w{0,3})"
)
_GLUE = (
    r"(?:\s+(?:it|is|was|be|to|the|a|my|our|case|true|correct|right|certain|sure|clear|evident"
    r"|obvious|likely|possible|plausible|think|believe|say|mean|claim|agree|suggest|conclude"
    r"|expect|feel|know|convinced|necessarily|really|at|all|opinion|view|can|we|i|said)\b)*+"
)
_SAYING = (
    r"(?:\s+(?:really|necessarily|to|be)\b)*+\s+(?:think|believe|say|mean|claim|agree|suggest"
    r"|conclude|expect|feel|know|sure|certain|convinced|saying|thinking)"
)
_DENIED = re.compile(
    rf"{_NEVER}{_GLUE}\s+that{_THE}|{_NEVER}{_SAYING}{_THE}|{_NEVER}(?:\s+necessarily)?{_THE}"
    rf"|\b(?:wrong|incorrect|false|untrue|invalid|no)\s+(?:final\s+)?\Z"
    rf"|\b(?:wrong|incorrect|false|untrue|unlikely|impossible|implausible|doubtful)"
    rf"(?:\s+to\s+\w{{1,10}})?\s+that{_THE}"
    rf"|\b(?:if|whether|unless|supposed?|supposing|assumed?|assuming|imagine)"
    rf"(?:\s+(?:that|it|is|were|was|true|case|we|i|you|say)\b)*+{_THE}"
    r"|(?:不认为|不觉得|不是说|并不是|并非|不能说|不代表|不意味着|不等于|未必|是否|如果|假如|假设|倘若"
    r"|怀疑|难道|错误的?|不正确的?)[^。,，;；!！?？\n]{0,6}\Z"
    r"|(?:不(?:应[该当]?|能|会|可以?|要|该|宜)|无法|没有)(?:再|去|直接)?\Z",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    rf"\b(?:or|otherwise|alternatively),?(?:\s+(?:else|maybe|perhaps|possibly|even|that)\b)*+"
    rf"{_THE}|(?:否则|或者|要么)[,，]?\s?\Z",
    re.IGNORECASE,
)


def standing_of(text: str, start: int) -> Standing:
    """What the sentence before the marker at `start` makes of it.

    ``It is not the case that the answer is`` denies what follows, ``if the answer is`` supposes it;
    ``otherwise the answer is`` is one branch of two.
    """
    if start < 2 or text[start - 2] in _SENTENCE_ENDS or text[start - 1] == "\n":
        return "stated"
    before = text[max(0, start - REACH) : start]
    clause = before[1 + max(map(before.rfind, _SENTENCE_ENDS)) :]
    if clause.strip(" *_#").lower() in _HARMLESS:
        return "stated"
    if _DENIED.search(clause):
        return "denied"
    return "alternative" if _ALTERNATIVE.search(clause) else "stated"
