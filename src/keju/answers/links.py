"""How two answers are joined: what stands between them, and whether the second one counts.

``(B) or maybe (A)`` offers two answers, ``B, not C`` names one, and ``B. A is too early`` goes on
to discuss another. All patterns are possessive and linear.
"""

from __future__ import annotations

import re
from typing import Literal

Strength = Literal["either", "joined", "apart"]
"""An alternative; one more beside it; or merely next to it, where a remark may begin."""

_WORDS = (
    r"(?<![A-Za-z])(?:and/or|or|and|nor|even|maybe|perhaps|possibly|probably|potentially|also|then|but|yet"
    r"|alternatively|either|both|else|otherwise|vs|versus|plus|through|to|as well as|followed by"
    r"|it could be|could be|might be|it is|rather)\b"
    r"|或者是?|或是|抑或|或|和|以及|与|與|及|还是|還是|也可能是?|也许是?|可能是?|甚至是?"
)
LINK = re.compile(
    rf"(?:[\s*_`$\"'”’)\].}}/&+|,、，;；:：~～\-–—→⇒>=。]|\(\s?(?=(?:or|and|maybe|perhaps|possibly"
    rf"|alternatively|also)\b)|{_WORDS})*+",
    re.IGNORECASE,
)
"""All that can stand between two joined answers; matches nothing at all, too."""

_EITHER = re.compile(
    r"\b(?:or|else|otherwise|alternatively|maybe|perhaps|possibly|probably|vs|versus|either"
    r"|could be|might be)\b|[或/|~～]|还是|還是|可能|也许",
    re.IGNORECASE,
)
_JOINED = re.compile(rf"[&+,、，]|{_WORDS}", re.IGNORECASE)

FINAL = re.compile(
    r"[\s*_`$\"'”’)\].!}。]*+(?:\Z|[,;/&|+、，；]|(?:or|and|vs|because|since|as)\b)", re.IGNORECASE
)
"""What follows an answer that stands for itself and is no beginning of a remark."""

NEGATIVE = re.compile(
    r"[\s*_`\"'”’)\]]*+(?:,\s?)?"
    r"(?:(?:which |that )?(?:is|was|are|were|be|would be|seems|looks)\b\s?"
    r"(?:(?:also|both|all|clearly|simply|just|therefore|obviously|definitely|the)\s)*+"
    r"(?:not\b|never\b|n[’']t|incorrect|wrong|false\b|invalid|impossible"
    r"|implausible|unlikely|ruled out|eliminated|excluded|too\b|out\b|contradict|inconsistent)"
    r"|(?:is|was|are|were|do|does|did|can|could|would)n[’']t\b|cannot\b|can[’']t\b"
    r"|(?:do|does|did|can|could|would) not\b|fails?\b|contradicts?\b|violates?\b"
    r"|(?:选?项)?\s?[也都均皆]?(?:不(?!(?:是|选择?)\s?(?:选项)?\s?[(\[]?[A-Z](?![A-Z]))"
    r"|错|误|排除|矛盾))",
    re.IGNORECASE,
)
"""What follows an answer that is named only to say that it is wrong.

``B不是C`` says so of C and not of B.
"""

_REJECTS = re.compile(
    r"(?:\b(?:not|never|neither|nor|no|than|unlike|except|excluding|without|against"
    r"|instead of|opposed to|compared (?:to|with)|over|eliminat\w{1,4}|exclud\w{1,4}"
    r"|reject\w{0,3}|rul\w{1,3} out|discard\w{0,3})|n[’']t|不是|而非|并非|不选|排除|而不)"
    r"(?:\s+(?:the|an?|any|of|both|either|with|be|for|option|choice|options|answer)\b)*"
    r"(?:选项)?[\s(*]*\Z",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\b(?:because|since|given|considering|due|while|whereas|though|although|which(?! case)|where"
    r"|so|thus|therefore|making|leaving|meaning|after|by"
    r"|(?<!well )(?<!much )(?<!likely )as(?! (?:well|much|likely)\b))\b"
    r"|因为|由于|因此|所以|而(?!且)",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"\b(?:or else|otherwise|alternatively|or maybe|or perhaps|or possibly|or even|in which case)\b"
    r"[\s,:]*(?:it (?:is|would be|could be) |the (?:correct )?answer (?:is|would be) )?"
    r"(?:the |an? )?(?:option |choice )?[\s*(\[]*\Z",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<!\bvs)[.!?](?=[\"'”’*)]*(?:\s|\Z))|[;。！？；\n]")


def strength_of(link: str) -> Strength:
    """How firmly what was matched by `LINK` joins two answers."""
    if _EITHER.search(link):
        return "either"
    return "joined" if _JOINED.search(link) else "apart"


def counts_as_second(text: str, link: str, end: int, after: int) -> bool:
    """Whether an answer that `link` joins to another one stands beside it as a second answer.

    It ends at `end`, and with its own option's text at `after`. A remark that it is wrong does not
    count, nor does a sentence that merely begins with it.
    """
    strength = strength_of(link)
    if strength == "either":
        return True
    if NEGATIVE.match(text, end):
        return False
    return strength == "joined" or FINAL.match(text, after) is not None


def sentence_end(text: str, position: int) -> int:
    """Where the sentence that goes on at `position` ends."""
    found = _SENTENCE_END.search(text, position)
    return found.start() if found else len(text)


def is_offered(between: str) -> bool:
    """Whether `between`, which stands before a further answer, offers it: ``…, otherwise``."""
    return _OFFERS.search(between) is not None


def is_rejected(between: str) -> bool:
    """Whether `between`, which stands before a further answer, rejects it: ``rather than``."""
    return _REJECTS.search(between) is not None


def explains(between: str) -> bool:
    """Whether a reason begins in `between`: what is named after it is only discussed."""
    return _EXPLAINS.search(between) is not None
