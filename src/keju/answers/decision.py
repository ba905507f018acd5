"""Rules for words that retract an answer or add a second one, and the choice between answers.

`announcement_status` checks the text before a marker (``I do not think that the answer is``). Other
rules check the text after an answer. ``(B) or maybe (A)`` offers two answers. ``B, not C`` names
one answer. ``B. A is too early`` continues with a discussion of another option. All patterns are
possessive and linear.

A reply may state an answer, retract it and state another. It may also state an answer and continue
with a summary, an imagined next task or a list of answers to other tasks. Position alone cannot
distinguish these cases. Therefore the text between two answers decides (`decide`):

1. The later answer counts after a word of correction (``Wait``, ``I made a mistake``, ``更正``). It
   also counts after ``final answer``, if it has the marker of the protocol and the earlier one has
   another wording, or if the reply ends with it after new reasoning.
2. Of several answers in one line the last one counts. There is no answer if they answer the parts
   of a question, ``(a) … (b) …``, or if there is no reasoning between them.
3. A loop that continues with other answers has no answer, unless it gave the first one twice
   before.
4. Otherwise the first answer counts, and the text after it is run-on text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from keju.answers.segments import AMBIGUOUS, AnswerStatement
from keju.answers.sentences import UNLESS_FORCED, has_chinese

# --- before a marker ---------------------------------------------------------------------------

AnnouncementStatus = Literal["stated", "denied", "alternative"]

REACH = 80
"""The number of characters before a marker that may deny or qualify it."""

_SENTENCE_END_SIGNS = ".\n!?;。；"
PLAIN_LEAD_INS = frozenset(
    f"{opening}{word}".strip()
    for opening in ("", "so ", "so, ", "thus, ", "therefore, ", "hence, ")
    for word in ("", "the ", "final ", "the final ", "the correct ", "correct ")
)
"""The usual texts before a marker. Any other text is checked with patterns."""

# ` the final correct `: words between a denial and its marker, up to the marker.
_WORDS_BEFORE_MARKER = (
    r"(?:\s+(?:the|my|our|your|its|this|an?|final|correct|right|best|true|actual|real|only|valid"
    r"|good)\b)*+[\s*_]*+\Z"
)
# `not`, `don't`, `doubt`; not `no doubt`, `without a doubt`.
_NEGATION = (
    r"(?:\bnot|\bnever|\bcannot|n[’']t|\bhardly|\bnor|\bneither|\bden(?:y|ies)"
    r"|(?<!no )(?<!any )(?<!without )(?<!without a )(?<!little )\bdoubt\w{0,3})"
)
# ` is it true`, in `not is it true that the answer is`.
_WORDS_AFTER_NEGATION = (
    r"(?:\s+(?:it|is|was|be|to|the|a|my|our|case|true|correct|right|certain|sure|clear|evident"
    r"|obvious|likely|possible|plausible|think|believe|say|mean|claim|agree|suggest|conclude"
    r"|expect|feel|know|convinced|necessarily|really|at|all|opinion|view|can|we|i|said)\b)*+"
)
# ` really think`, in `not really think the answer is`.
_NEGATED_SPEECH = (
    r"(?:\s+(?:really|necessarily|to|be)\b)*+\s+(?:think|believe|say|mean|claim|agree|suggest"
    r"|conclude|expect|feel|know|sure|certain|convinced|saying|thinking)"
)
# The answer of another person: `Some readers will say`, `you might think`; `很多人会`, `考生容易`.
OTHER_PEOPLE = (
    r"\b(?:one|some|others?|you|people|many|most|students?|someone|somebody|readers?|critics?)"
    r"(?: (?:people|readers|students|of us))? (?:might|may|could|would|will|often|tend to)\b"
    r"|\b(?:some|many|other|few|several) (?:students|people|readers|candidates|sources|textbooks"
    r"|authors)\b"
    r"|(?:很多|不少|许多|有些?|有的|部分|某些|大多数?)(?:人|同学|考生|学生|读者)|考生|同学们?"
    r"|易错|(?<!错)误选|误以为"
    r"|容易(?:错|误|选|认为|混淆)|易误"
)
# Line by line: `do not believe that the`, `not say the`, `is not the`; `the wrong `; `unlikely that
# the`; `if it were the`; `我不认为正确`, `如果`; `不应该`, `无法直接`. Not `it is not D, so the`.
_DENIAL = re.compile(
    rf"{_NEGATION}{_WORDS_AFTER_NEGATION}\s+that{_WORDS_BEFORE_MARKER}|{_NEGATION}{_NEGATED_SPEECH}{_WORDS_BEFORE_MARKER}|{_NEGATION}(?:\s+necessarily)?{_WORDS_BEFORE_MARKER}"
    rf"|\b(?:wrong|incorrect|false|untrue|invalid|no)\s+(?:final\s+)?\Z"
    rf"|\b(?:wrong|incorrect|false|untrue|unlikely|impossible|implausible|doubtful)"
    rf"(?:\s+to\s+\w{{1,10}})?\s+that{_WORDS_BEFORE_MARKER}"
    rf"|\bif the answer\b[^.]*\band{_WORDS_BEFORE_MARKER}"
    rf"|\b(?:if|whether|unless|supposed?|supposing|assumed?|assuming|imagine)"
    rf"(?:\s+(?:that|it|is|were|was|true|case|we|i|you|say)\b)*+{_WORDS_BEFORE_MARKER}"
    rf"|(?:{OTHER_PEOPLE})(?: be tempted to)?(?: (?:think|say|believe|assume|argue|guess|answer"
    rf"|pick|choose"
    r"|conclude))?(?: that)?(?: the)?(?: \w+)?\s?\Z"
    rf"|(?:如果|假如|倘若|假若|要是|假设|(?<![一-龥])若(?!干))[^。;；\n]*?(?:那么?|则|就|会|可能"
    rf"|应该?)?"
    r"(?:会|可|应|得到|得出)*\Z(?<!所以)(?<!因此)(?<!故)"
    r"|(?:很多|不少|许多|有些?|有的|部分|某些)(?:人|同学|考生|学生|读者)[^。,，;；\n]{0,8}\Z"
    r"|(?:误以为|容易|易|错误地|不小心)(?:会|被|误|错)?\Z"
    r"|(?:不认为|不觉得|不是说|并不是|并非|不能说|不代表|不意味着|不等于|未必|是否|如果|假如"
    r"|假设|倘若"
    r"|怀疑|难道|错误的?|不正确的?)[^。,，;；!！?？\n]{0,6}\Z"
    r"|(?:不(?:应[该当]?|能|会|可以?|要|该|宜)|无法|没有)(?:再|去|直接)?\Z",
    re.IGNORECASE,
)
# A part of every English match of `_DENIAL` in lower case; quicker to find than a pattern. The
# `no` also covers `not`, `cannot` and `nor`.
_DENIAL_STEMS = (
    "no", "never", "n't", "hardly", "neither", "den", "doubt", "wrong", "incorrect", "false",
    "untrue", "invalid", "unlikely", "impossible", "implausible", "if", "whether", "unless",
    "suppos", "assum", "imagine", "might", "may", "could", "would", "will", "often", "tend to",
    "students", "people", "readers", "candidates", "sources", "textbooks", "authors",
)  # fmt: skip
# `otherwise `, `or maybe the `; `否则`, `要么，`. Not `for the `.
_ALTERNATIVE = re.compile(
    rf"\b(?:or|otherwise|alternatively),?(?:\s+(?:else|maybe|perhaps|possibly|even|that)\b)*+"
    rf"{_WORDS_BEFORE_MARKER}|(?:否则|或者|要么)[,，]?\s?\Z",
    re.IGNORECASE,
)


SUPPOSES = re.compile(
    rf"\b(?:if{UNLESS_FORCED}|unless|suppos(?:e|ing)|assuming"
    r"|were (?:it|the))\b|如果|假如|倘若|假若|要是|假设|万一|否则"
    rf"|(?<![一-龥])若(?!干)|{OTHER_PEOPLE}",
    re.IGNORECASE,
)
"""Words of a supposition, or of an opinion of other people."""


# `answer would be`, after `if it were so, the`.
_WOULD = re.compile(r"[Aa]nswer would\b")


STATED_PREFIXES = (". The ", ". So the ")
"""The most frequent texts before a marker. The answer after them is stated."""


def announcement_status(text: str, start: int) -> AnnouncementStatus:
    """Return whether the sentence before the marker at `start` states, denies or qualifies it.

    ``It is not the case that the answer is`` denies the answer. ``if the answer is`` supposes it
    and also counts as a denial. ``otherwise the answer is`` is one of two alternatives.
    """
    if text.endswith(STATED_PREFIXES, 0, start):
        return "stated"
    if start < 2 or text[start - 2] in _SENTENCE_END_SIGNS or text[start - 1] == "\n":
        return "stated"
    before = text[max(0, start - REACH) : start]
    clause = before[1 + max(map(before.rfind, _SENTENCE_END_SIGNS)) :]
    if clause.strip(" *_#").lower() in PLAIN_LEAD_INS:
        return "stated"
    if _denies(clause) or (_WOULD.match(text, start) and SUPPOSES.search(clause)):
        return "denied"
    return "alternative" if _ALTERNATIVE.search(clause) else "stated"


@lru_cache(maxsize=64)
def _denies(clause: str) -> bool:
    """Whether the text before a marker denies its answer. The cache helps with looping replies."""
    if clause.isascii() and not any(map(clause.lower().__contains__, _DENIAL_STEMS)):
        return False
    return _DENIAL.search(clause) is not None


# `answer is`, `Answer would be`; `答案是`: markers that a sentence may deny.
_MARKER = re.compile(r"\b[Aa]nswer (?:is|was|would be|could be|might be|must be)\b|答案应?[是为]")
_MARKER_STEMS = ("nswer ", "案")
"""The text after the first letter of every match of `_MARKER`; quicker to find than a pattern."""
# The end of the part of a sentence that a denial covers: `, so`, `。`; not the comma of `1,000`.
_PART_END = re.compile(r"[,;](?=\s)|[.!?](?=[\s*_\"'”’)]|\Z)|[，；。！？\n]|,(?=[\u4e00-\u9fff])")


def remove_denied_parts(text: str) -> str:
    """Return a text without the parts of sentences that deny or suppose the answer they announce.

    Keju removes ``I do not think that the answer is No.``, so no rule finds ``No`` there.
    """
    if "nswer" not in text and "答案" not in text:
        return text
    kept_parts: list[str] = []
    position = 0
    for marker_start in _find_markers(text):
        if marker_start < position or announcement_status(text, marker_start) != "denied":
            continue
        nearest = max(position, marker_start - REACH)
        begin = max(text.rfind(end, nearest, marker_start) for end in _SENTENCE_END_SIGNS) + 1
        part = _PART_END.search(text, marker_start)
        kept_parts.append(text[position : begin or nearest])
        position = part.start() if part else len(text)
    return "".join([*kept_parts, text[position:]]) if kept_parts else text


def _find_markers(text: str) -> list[int]:
    """Return the positions at which matches of `_MARKER` begin, in order."""
    starts = []
    for stem in _MARKER_STEMS:
        at = text.find(stem)
        while at >= 0:
            if at and _MARKER.match(text, at - 1):
                starts.append(at - 1)
            at = text.find(stem, at + 1)
    return sorted(starts)


# --- between two answers and after them -------------------------------------------------------

LinkStrength = Literal["either", "joined", "apart"]
"""An alternative answer, an additional answer, or a following text that may be a remark."""

# Words that join two answers: `A or B`, `A 以及 B`; not the `or` of `for`.
_LINK_WORDS = (
    r"(?<![A-Za-z])(?:and/or|or|and|nor|even|maybe|perhaps|possibly|probably|potentially|also"
    r"|then|but|yet"
    r"|alternatively|either|both|else|otherwise|vs|versus|plus|through|to|as well as|followed by"
    r"|it could be|could be|might be|it is|rather)\b"
    r"|或者是?|或是|抑或|或|和|以及|与|與|及|还是|還是|也可能是?|也许是?|可能是?|甚至是?"
)
LINK = re.compile(
    rf"(?:[\s*_`$\"'”’)\].}}/&+|,、，;；:：~～\-–—→⇒>=。]|\(\s?(?=(?:or|and|maybe|perhaps|possibly"
    rf"|alternatively|also)\b)|{_LINK_WORDS})*+",
    re.IGNORECASE,
)
"""The text between two joined answers, ``) or maybe (``. It also matches an empty text."""

# `or maybe`, `/`, `还是`: one of the two; not `and`.
_EITHER = re.compile(
    r"\b(?:or|else|otherwise|alternatively|maybe|perhaps|possibly|probably|vs|versus|either"
    r"|could be|might be)\b|[或/|~～]|还是|還是|可能|也许",
    re.IGNORECASE,
)
# `,`, `&`, `and also`, `和`: both of them; not a full stop or a dash.
_JOINT = re.compile(rf"[&+,、，]|{_LINK_WORDS}", re.IGNORECASE)

COMPLETE_ANSWER_END = re.compile(
    r"[\s*_`$\"'”’)\].!}。]*+(?:\Z|[,;/&|+、，；]|(?:or|and|vs|because|since|as)\b)", re.IGNORECASE
)
"""The text after a complete answer: ``.``, ``, or``, `` because``; not `` is too``."""

NEGATIVE = re.compile(
    r"[\s*_`\"'”’)\]]*+(?:,\s?)?"
    r"(?:(?:which |that )?(?:is|was|are|were|be|would be|seems|looks)\b\s?"
    r"(?:(?:also|both|all|clearly|simply|just|therefore|obviously|definitely|the)\s)*+"
    r"(?:not\b|never\b|n[’']t|incorrect|wrong|false\b|invalid|impossible"
    r"|implausible|unlikely|ruled out|eliminated|excluded|too\b|out\b|contradict|inconsistent)"
    r"|(?:is|was|are|were|do|does|did|can|could|would)n[’']t\b|cannot\b|can[’']t\b"
    r"|(?:do|does|did|can|could|would) not\b|fails?\b|contradicts?\b|violates?\b"
    r"|only (?:if|when)\b|(?:似乎|看似|好像|貌似)(?!是?正确)"
    r"|(?:选?项)?\s?是?[也都均皆]?(?:不(?!(?:是|选择?)\s?(?:选项)?\s?[(\[]?[A-Z](?![A-Z]))"
    r"|错|误|排除|矛盾))",
    re.IGNORECASE,
)
"""The text after an answer that calls it wrong: `` is wrong``, ``项错误``.

``B不是C`` calls C wrong and not B.
"""

# The end of `B rather than the option (`, `B，而不是`; not of `B is no more than a guess, so`.
REJECTS = re.compile(
    r"(?:\b(?:not|never|neither|nor|no|than|unlike|except|excluding|without|against"
    r"|instead of|opposed to|compared (?:to|with)|over|eliminat\w{1,4}|exclud\w{1,4}"
    r"|reject\w{0,3}|rul\w{1,3} out|discard\w{0,3})|n[’']t|不是|而非|并非|不选|排除|而不)"
    r"(?:\s+(?:the|an?|any|of|both|either|with|be|for|option|choice|options|answer)\b)*"
    r"(?:选项)?[\s(*]*\Z",
    re.IGNORECASE,
)
"""The end of the text before another answer that is rejected."""
# `since`, `due`, `因为`; not `as well`, `in which case`, `而且`.
EXPLAINS = re.compile(
    r"\b(?:because|since|given|considering|due|while|whereas|though|although|which(?! case)|where"
    r"|so|thus|therefore|making|leaving|meaning|after|by"
    r"|(?<!well )(?<!much )(?<!likely )as(?! (?:well|much|likely)\b))\b"
    r"|因为|由于|因此|所以|而(?!且)",
    re.IGNORECASE,
)
"""The beginning of a reason. Options that are named after it are only discussed."""
# The end of `C if it rains, otherwise the answer is (`; not of `C, or (`, which `LINK` matches.
OFFERS = re.compile(
    r"\b(?:or else|otherwise|alternatively|or maybe|or perhaps|or possibly|or even|in which case)\b"
    r"[\s,:]*(?:it (?:is|would be|could be) |the (?:correct )?answer (?:is|would be) )?"
    r"(?:the |an? )?(?:option |choice )?[\s*(\[]*\Z",
    re.IGNORECASE,
)
"""The end of the text before another answer that is offered."""
# `. `, `?"`, `。`; not the point of `3.5` or of `A vs. B`.
SENTENCE_END = re.compile(r"(?<!\bvs)[.!?](?=[\"'”’*)]*(?:\s|\Z))|[;。！？；\n]")
"""The end of a sentence, and of its statement about an answer."""


def link_strength(link: str) -> LinkStrength:
    """Return how firmly a text that `LINK` matched joins two answers."""
    if _EITHER.search(link):
        return "either"
    return "joined" if _JOINT.search(link) else "apart"


def is_second_answer(text: str, link: str, end: int, after: int) -> bool:
    """Whether an answer that `link` joins to another one is a second answer.

    It ends at `end`, and the text of its option ends at `after`. The answer does not count if a
    remark calls it wrong, or if it only begins a sentence.
    """
    strength = link_strength(link)
    if strength == "either":
        return True
    if NEGATIVE.match(text, end):
        return False
    return strength == "joined" or COMPLETE_ANSWER_END.match(text, after) is not None


class StatementSpan(NamedTuple):
    """A statement with the positions of the beginning and end of its marker."""

    statement: AnswerStatement
    start: int
    end: int
    is_strict: bool
    """Whether the marker of the protocol announces the statement."""


class Decision(NamedTuple):
    """The statement that counts, and another answer of the reply."""

    deciding_span: StatementSpan
    other_value: str | None = None
    """Another answer that the reply gives."""
    by_order_only: bool = False
    """Whether only the order decided between the two answers."""


Relation = Literal["corrected", "beside", "run-on"]

_CORRECTION_REACH = 1500
"""The number of characters after an answer, and before the next, searched for a correction."""

# Anywhere between two answers: `Wait`, `let me double-check`, `I made a mistake`, `that is not
# right`, `on second thought`, `my revised answer`; `更正`, `不对`, `重新`, `再想想`.
CORRECTION = re.compile(
    r"\b(?:(?<!-)wait|hm{2,}|oops|correction|scratch that|typo|apolog\w{2,6}|sorry|misread"
    r"|mistaken(?:ly)?"
    r"|on (?:second thoughts?|(?:further|closer|more careful)? ?(?:reflection|inspection|review"
    r"|examination))"
    r"|(?:re-?|double[- ])(?:check|consider|evaluat|examin|calculat|comput|read|think|visit|assess"
    r"|verif)\w{0,4}|let(?:['’]s| me| us) (?:verify|check|correct|fix|try again|start over|redo)"
    r"|(?:a|my|the) (?:mistake|slip)\b|(?:my|an) error\b"
    r"|(?:that|this|it)(?:['’]s| is| was|'s) (?:not"
    r" (?:right|correct|true|it\b)|wrong|incorrect)|(?:chang|revis|correct|updat"
    r"|fix)\w{1,3} (?:my|the)"
    r" (?:final )?(?:answer|choice)|(?:corrected|revised|updated|new) (?:final )?answer"
    r"|instead of (?:\(?[A-Z]\)?|my))\b"
    r"|\bhold on\b|\btake that back\b|\bI['’]d rather\b"
    r"|(?:\A|[.!?…\n*_>]\s{0,3})(?:but |oh,? |well,? )?(?:actually\b|no\b\s?(?:[,.:;!—–]|-(?!\w)))"
    r"|其实|哦不|回头检查|弄混|反思|复核|复查|核对一|判断有误|想错"
    r"|等等|等一下|(?<![A-Z项法述都也])不对[,，。!！]|更正|修正|纠正|重新|再(?:想|看|检查|分析|确认)|推翻|我(?:刚才"
    r"|之前)?(?:算|看|弄|搞|写)?错"
    r"|抱歉|对不起|改(?:为|选|成)|(?:上述|上面|刚才|之前)[^。\n]{0,10}(?:错|误)|仔细(?:一?想|看|分析)",
    re.IGNORECASE,
)
# Every English match of `CORRECTION` contains one of these in lower case. They are quicker to find
# than the pattern.
_CORRECTION_STEMS = (
    "wait", "hmm", "oops", "scratch", "typo", "apolog", "sorry", "misread", "mistake",
    "second thought", "reflection", "inspection", "review", "examination", "check", "re-", "recons",
    "reeval", "reexam", "recalc", "recomp", "reread", "rethink", "revis", "reass", "reverif",
    "double", "verify", "try again", "start over", "redo", "error", "slip", "not right", "not true",
    "not it", "wrong", "chang", "updat", "fix", "new answer", "new final", "instead of", "hold on",
    "take that back", "d rather", "actually",
)  # fmt: skip
_CORRECT_STEMS = (
    "orrection", "s correct", "me correct", "not correct", "incorrect", "corrected", "correcting",
)  # fmt: skip
"""More of these stems, all with `orrect` in them."""
# `no,`, `no -`: a refusal at the beginning of a correction; not the `no` of `not`.
_NO_SIGN = re.compile(r"no ?[,.:;!—–-]")


def find_correction(text: str) -> re.Match[str] | None:
    """Return the first word of correction in `text`."""
    return next(find_corrections(text), None)


def find_corrections(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of correction in `text`."""
    if has_chinese(text):
        yield from CORRECTION.finditer(text)
        return
    small = text.lower()
    places = _find_correction_stems(small)
    if len(small) != len(text):
        places = [0, len(text)] if places else []
    for begin, end in _search_windows(places):
        yield from CORRECTION.finditer(text, begin, end)


_LONGEST_CORRECTION = 40
"""The most characters of a match of `CORRECTION` before its stem."""
_AFTER_STEM = 120
"""The most characters from the beginning of a stem to the end of its match."""


def _search_windows(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around the stems at `places`, in order."""
    begin = end = 0
    for place in places:
        if place - _LONGEST_CORRECTION > end:
            if end:
                yield begin, end
            begin = place - _LONGEST_CORRECTION
        end = place + _AFTER_STEM
    if end:
        yield begin, end


def _find_correction_stems(lowercase_text: str) -> list[int]:
    """Return the positions of correction stems in a lower-case English text, in order."""
    stems = [stem for stem in _CORRECTION_STEMS if stem in lowercase_text]
    if "orrect" in lowercase_text:
        stems += [stem for stem in _CORRECT_STEMS if stem in lowercase_text]
    places = [match.start() for match in _NO_SIGN.finditer(lowercase_text)]
    for stem in stems:
        at = lowercase_text.find(stem)
        while at >= 0:
            places.append(at)
            at = lowercase_text.find(stem, at + 1)
    return sorted(places)


# Directly after the sentence of an answer: `. However, `, `. But since`; `。但是`.
_HOWEVER = re.compile(
    r"[^\n.。]{0,80}[.。]?\s*+(?:however|but|yet)\b|[^\n。]{0,40}[。,，]\s*但是?", re.I
)
# Before a marker: `at first I thought that the`; `一开始以为`.
_TENTATIVE = re.compile(
    r"\b(?:at first|at first glance|initial(?:ly)?|preliminary|first thought|first guess"
    r"|tentative(?:ly)?"
    r"|previous(?:ly)?|original(?:ly)?)\b|一开始|起初|最初|初步|原来|原本|乍一看",
    re.IGNORECASE,
)
# Before a marker: `My final `, `In conclusion, the `; `最终`, `综上所述，`, `得出结论。`.
_FINAL_WORDING = re.compile(
    r"\bfinal(?:ly)?\b[^\n.]{0,12}\Z|\b(?:in conclusion|to conclude|in summary)\b[^\n.]{0,20}\Z"
    r"|最终[^\n。]{0,4}\Z|(?:综上|总之|结论)[^\n。]{0,8}[。,，]?\s{0,2}\Z",
    re.IGNORECASE,
)
# `所以选择`: a conclusion, before a loop of `选择`.
_CONCLUDING_WORD = re.compile(r"所以|因此|综上|故")
_CONTEXT_LENGTH = 60
"""The number of characters before a marker that belong to it."""

# `(a) `, `a) `, `Part 1`, `(i)`; then `(b) `, `Part 2`, `(ii)`; `第二问`.
_PART = re.compile(
    r"(?:^|(?<=[\s.;:,)]))(?:\(?(?:[b-h]|ii|iii|iv|[2-9])\)\s|[Pp]art \(?(?:[b-hB-H]|[2-9]|II)\b"
    r"|(?:second|third|next|other) (?:question|part|blank|statement)\b)|第[二三四2-4](?:问|空"
    r"|小题)|[(（][2-4二三四][)）]"
)
_FIRST_PART = re.compile(
    r"(?:^|[\s.(（])(?:\(?(?:a|i|1)\)|[Pp]art \(?[aA1I])|第[一1](?:问|空|小题)|[(（][1一][)）]"
)
# `. 2. The `: a list of answers to several tasks continues.
_NUMBERED = re.compile(r"[.)\n] ?\(?[2-9][.)、] ?[^\n]{0,12}\Z")
# ` or, if activities count, `; `或者`: the next answer is an alternative.
_OFFER = re.compile(r"[\s$})*,.](?:or|alternatively)\b[^.;\n。]*\Z|或[^。\n]*\Z", re.IGNORECASE)
# `____`, `?`, `\nA. `: another question, with its options, between two answers.
_ANOTHER_TASK = re.compile(r"_{2,}|[?？]|\n[(\[]?A[)\].、][ \t]*+[^\s]")
_LONGEST_GAP = 40
"""The most characters between two answers in a line that are not reasoning."""


def decide(text: str, stated: Sequence[StatementSpan]) -> Decision:
    """Return the statement that counts, from the statements of `text` in order."""
    deciding_span = previous = stated[0]
    other_span: StatementSpan | None = None
    by_order = is_undecided = False
    is_settled = _is_settled(stated)
    line_end = text.find("\n", deciding_span.end)
    for later_span in stated[1:]:
        previous_span, previous = previous, later_span
        if later_span.statement == deciding_span.statement:
            continue
        relation = find_relation(
            text,
            deciding_span,
            previous_span,
            later_span,
            same_line=not 0 <= line_end < later_span.start,
        )
        if (
            deciding_span.statement.value is None
            and not is_undecided
            and later_span.statement.value
        ):
            relation = "corrected"  # an ambiguous or impossible answer, and then a clear one
        if relation == "beside" and is_settled:
            relation = "run-on"
        if relation == "beside":
            deciding_span, is_undecided = deciding_span._replace(statement=AMBIGUOUS), True
            other_span = other_span or later_span
            continue
        if relation == "corrected":
            deciding_span, other_span, by_order, is_undecided = (
                later_span,
                deciding_span,
                False,
                False,
            )
            line_end = text.find("\n", deciding_span.end)
        elif later_span.statement.value is not None:
            other_span, by_order = other_span if by_order else later_span, True
    if not deciding_span.is_strict:  # the same answer with the marker of the protocol
        equal_strict_spans = (
            span for span in stated if span.is_strict and span.statement == deciding_span.statement
        )
        deciding_span = next(equal_strict_spans, deciding_span)
    other_value = other_span.statement.value if other_span else None
    if other_value == deciding_span.statement.value:
        return Decision(deciding_span)
    return Decision(
        deciding_span, other_value, by_order and deciding_span.statement.value is not None
    )


def _is_settled(stated: Sequence[StatementSpan]) -> bool:
    """Whether a loop gives the first answer twice before it continues with others: C, C, D, A.

    Not C, C, D, C, D, where the loop alternates between two answers.
    """
    values = [span.statement for span in stated]
    if len(values) < 3 or values[0] != values[1]:
        return False
    differing_values = [value for value in values if value != values[0]]
    return len(set(differing_values)) > 1 or len(differing_values) == 1


def find_relation(
    text: str,
    deciding_span: StatementSpan,
    previous_span: StatementSpan,
    later_span: StatementSpan,
    *,
    same_line: bool,
) -> Relation:
    """Return the relation of a later answer to the current one, from the text between answers."""
    begin, end = previous_span.end, later_span.start
    between = text[begin:end]
    if not begin and previous_span.is_strict and not _ANOTHER_TASK.search(between):
        return "corrected"  # an option at the beginning of the reply, and then an announcement
    if between.strip().lower() in PLAIN_LEAD_INS:
        return "corrected"  # a first line without any marker, and then an announcement
    if end - begin > 2 * _CORRECTION_REACH:
        between = (
            text[begin : begin + _CORRECTION_REACH] + "\n" + text[end - _CORRECTION_REACH : end]
        )
    before = text[max(0, deciding_span.start - _CONTEXT_LENGTH) : deciding_span.start]
    if find_correction(between) or _HOWEVER.match(between) or _is_tentative(before):
        return "corrected"
    if _PART.search(between) and _FIRST_PART.search(
        text, max(0, deciding_span.start - _CORRECTION_REACH), deciding_span.end
    ):
        return "beside"
    if same_line:
        return _find_relation_in_line(between, previous_span)
    return _find_relation_across_lines(text, deciding_span, later_span, between, before)


def _find_relation_in_line(between: str, previous_span: StatementSpan) -> Relation:
    """Return the relation of two answers in one line."""
    if _NUMBERED.search(between):
        return "run-on"
    if _OFFER.search(between):
        return "beside"
    are_adjacent = len(between) <= _LONGEST_GAP and previous_span.statement.value is not None
    return "beside" if are_adjacent else "corrected"


def _find_relation_across_lines(
    text: str, deciding_span: StatementSpan, later_span: StatementSpan, between: str, before: str
) -> Relation:
    """Return the relation of two answers in different lines; `before` precedes the first."""
    end = later_span.start
    if _FINAL_WORDING.search(
        text[max(0, end - _CONTEXT_LENGTH) : end]
    ) and not _FINAL_WORDING.search(before):
        return "corrected"
    if _CONCLUDING_WORD.match(text, deciding_span.start) and not _CONCLUDING_WORD.match(text, end):
        return "run-on"
    if _resumes_reasoning(text, between, later_span):
        return "corrected"
    if later_span.is_strict != deciding_span.is_strict:
        return "corrected" if later_span.is_strict else "run-on"
    return "beside" if _is_loop(text, deciding_span, between) else "run-on"


_LEAST_REASONING_BETWEEN = 200
"""The fewest characters between two answers that are reasoning."""
_LEAST_REASONING_BEFORE = 100
"""The fewest characters before a first answer that are reasoning."""


def _resumes_reasoning(text: str, between: str, later_span: StatementSpan) -> bool:
    """Whether a reply continues to reason about the question and then ends with another answer."""
    if len(between) < _LEAST_REASONING_BETWEEN or _ANOTHER_TASK.search(between):
        return False
    following_text = text[later_span.end :].strip()
    return len(following_text) <= _LONGEST_GAP and "\n" not in following_text


def _is_loop(text: str, deciding_span: StatementSpan, between: str) -> bool:
    """Whether a loop continues with another answer: no words between them, or repeated words."""
    if _NUMBERED.search("." + between):
        return False
    words = between.partition("\n")[2].strip(" \n*_.:)(")
    if words.lower() in PLAIN_LEAD_INS and deciding_span.start > _LEAST_REASONING_BEFORE:
        return False  # the reasoning ends with the first answer
    return len(words) <= _LONGEST_GAP // 2 or words[-_LONGEST_GAP:] in text[: deciding_span.start]


def _is_tentative(before: str) -> bool:
    clause = before[max(map(before.rfind, ".\n。!?")) + 1 :]
    return _TENTATIVE.search(clause) is not None
