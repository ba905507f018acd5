"""Which of several answers of a reply counts.

A reply may state an answer, take it back and state another; or state it and go on to a summary, an
imagined next task, a list of other tasks' answers. Position alone cannot tell these apart, so the
text between two answers decides:

1. a word of correction makes the later one count (``Wait``, ``I made a mistake``, ``更正``), and
   so do a later ``final answer`` and the protocol's own marker after another wording;
2. of several answers in one line the last ends the reasoning, unless they answer the parts of a
   question, ``(a) … (b) …``, or merely stand side by side: then none of them is the answer;
3. otherwise the first answer ends the reasoning of this question, and what follows is run-on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from keju.answers.endings import has_chinese
from keju.answers.negation import HARMLESS
from keju.answers.segments import AMBIGUOUS, Statement


class Stated(NamedTuple):
    """A statement, and where in the text its marker begins and ends."""

    statement: Statement
    start: int
    end: int
    strict: bool
    """Whether the protocol's own marker announces it."""


class Decision(NamedTuple):
    """The statement that counts, and what else the reply says."""

    stated: Stated
    other: str | None = None
    """Another answer that the reply gives."""
    by_order: bool = False
    """Whether nothing but their order decided between the two."""


Relation = Literal["corrected", "beside", "run-on"]

_REACH = 1500
"""Characters after an answer, and before the next one, in which a correction is looked for."""

# Anywhere between two answers: `Wait`, `let me double-check`, `I made a mistake`, `that is not
# right`, `on second thought`, `my revised answer`; `更正`, `不对`, `重新`, `再想想`.
CORRECTION = re.compile(
    r"\b(?:wait|hm{2,}|oops|correction|scratch that|typo|apolog\w{2,6}|sorry|misread"
    r"|mistaken(?:ly)?"
    r"|on (?:second thoughts?|(?:further|closer|more careful)? ?(?:reflection|inspection|review"
    r"|examination))"
    r"|(?:re-?|double[- ])(?:check|consider|evaluat|examin|calculat|comput|read|think|visit|assess"
    r"|verif)\w{0,4}|let(?:['’]s| me| us) (?:verify|check|correct|fix|try again|start over|redo)"
    r"|(?:a|my|the|an) (?:mistake|error|slip)\b|(?:that|this|it)(?:['’]s| is| was|'s) (?:not"
    r" (?:right|correct|true|it\b)|wrong|incorrect)|(?:chang|revis|correct|updat"
    r"|fix)\w{1,3} (?:my|the)"
    r" (?:final )?(?:answer|choice)|(?:corrected|revised|updated|new) (?:final )?answer"
    r"|instead of (?:\(?[A-Z]\)?|my))\b"
    r"|\bhold on\b|\btake that back\b|\bI['’]d rather\b"
    r"|(?:\A|[.!?…\n*_>]\s{0,3})(?:but |oh,? |well,? )?(?:actually\b|no\b\s?[,.:;!—–-])"
    r"|其实|哦不|回头检查|弄混|反思|复核|复查|核对一|判断有误|想错"
    r"|等等|等一下|不对[,，。!！]|更正|修正|纠正|重新|再(?:想|看|检查|分析|确认)|我(?:刚才"
    r"|之前)?(?:算|看|弄|搞|写)?错"
    r"|抱歉|对不起|改(?:为|选|成)|(?:上述|上面|刚才|之前)[^。\n]{0,10}(?:错|误)|仔细(?:想|看|分析)",
    re.IGNORECASE,
)
# One of these, in small letters, is part of every English match of `CORRECTION`; whether they are
# there is quicker to see.
_STEMS = (
    "wait", "hmm", "oops", "orrection", "scratch", "typo", "apolog", "sorry", "misread", "mistake",
    "second thought", "reflection", "inspection", "review", "examination", "check", "re-", "recons",
    "reeval", "reexam", "recalc", "recomp", "reread", "rethink", "revis", "reass", "reverif",
    "double", "verify", "try again", "start over", "redo", "s correct", "me correct", "error",
    "slip", "not right", "not correct",
    "not true", "not it", "wrong", "incorrect", "chang", "updat", "fix", "corrected", "correcting",
    "new answer", "new final", "instead of", "hold on", "take that back", "d rather", "actually",
    "no,", "no.", "no:", "no;", "no!", "no-", "no—", "no–", "no ,", "no .", "no :", "no ;", "no !",
    "no -", "no —", "no –",
)  # fmt: skip


def correction_in(text: str) -> re.Match[str] | None:
    """The first word of correction in `text`."""
    if not has_chinese(text) and not any(map(text.lower().__contains__, _STEMS)):
        return None
    return CORRECTION.search(text)


# Right after an answer's own sentence: `. However, `, `. But since`; `。但是`.
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
_FINAL = re.compile(
    r"\bfinal(?:ly)?\b[^\n.]{0,12}\Z|\b(?:in conclusion|to conclude|in summary)\b[^\n.]{0,20}\Z"
    r"|最终[^\n。]{0,4}\Z|(?:综上|总之|结论)[^\n。]{0,8}[。,，]?\s{0,2}\Z",
    re.IGNORECASE,
)
_BEFORE = 60
"""Characters before a marker that belong to it."""

# `(a) `, `a) `, `Part 1`, `(i)`; then `(b) `, `Part 2`, `(ii)`; `第二问`.
_PART = re.compile(
    r"(?:^|(?<=[\s.;:,)]))(?:\(?(?:[b-h]|ii|iii|iv|[2-9])\)\s|[Pp]art \(?(?:[b-hB-H]|[2-9]|II)\b"
    r"|(?:second|third|next|other) (?:question|part|blank|statement)\b)|第[二三四2-4](?:问|空"
    r"|小题)|[(（][2-4二三四][)）]"
)
_FIRST_PART = re.compile(
    r"(?:^|[\s.(（])(?:\(?(?:a|i|1)\)|[Pp]art \(?[aA1I])|第[一1](?:问|空|小题)|[(（][1一][)）]"
)
# `. 2. The `: a list of the answers to several tasks goes on.
_NUMBERED = re.compile(r"[.)\n] ?\(?[2-9][.)、] ?[^\n]{0,12}\Z")
# ` or, if activities count, `; `或者`: the next answer is offered beside the last.
_OR = re.compile(r"[\s$})*,.](?:or|alternatively)\b[^.;\n。]*\Z|或[^。\n]*\Z", re.IGNORECASE)
_SIDE_BY_SIDE = 40
"""Two answers in a line with no more than this between them have no reasoning between them."""


def decide(text: str, stated: Sequence[Stated]) -> Decision:
    """The one of the statements of `text`, in order, that counts."""
    chosen = previous = stated[0]
    other: Stated | None = None
    by_order = undecided = False
    line_end = text.find("\n", chosen.end)
    for later in stated[1:]:
        before, previous = previous, later
        if later.statement == chosen.statement:
            continue
        relation = relation_of(
            text, chosen, before, later, same_line=not 0 <= line_end < later.start
        )
        if chosen.statement.value is None and not undecided and later.statement.value:
            relation = "corrected"  # one of two answers, or none that is possible, and then one
        if relation == "beside":
            chosen, undecided = chosen._replace(statement=AMBIGUOUS), True
            other = other or later
            continue
        if relation == "corrected":
            chosen, other, by_order, undecided = later, chosen, False, False
            line_end = text.find("\n", chosen.end)
        elif later.statement.value is not None:
            other, by_order = other if by_order else later, True
    if not chosen.strict:  # the same answer in the protocol's own form
        twins = (each for each in stated if each.strict and each.statement == chosen.statement)
        chosen = next(twins, chosen)
    said = other.statement.value if other else None
    if said == chosen.statement.value:
        return Decision(chosen)
    return Decision(chosen, said, by_order and chosen.statement.value is not None)


def relation_of(
    text: str, chosen: Stated, previous: Stated, later: Stated, *, same_line: bool
) -> Relation:
    """What makes of a later answer the text between it and the previous one."""
    begin, end = previous.end, later.start
    between = text[begin:end]
    if between.strip().lower() in HARMLESS:
        return "corrected"  # a first line without any marker, and then an announcement
    if end - begin > 2 * _REACH:
        between = text[begin : begin + _REACH] + "\n" + text[end - _REACH : end]
    before = text[max(0, chosen.start - _BEFORE) : chosen.start]
    if correction_in(between) or _HOWEVER.match(between) or _is_tentative(before):
        return "corrected"
    if _PART.search(between) and _FIRST_PART.search(
        text, max(0, chosen.start - _REACH), chosen.end
    ):
        return "beside"
    if same_line:
        if _NUMBERED.search(between):
            return "run-on"
        if _OR.search(between):
            return "beside"
        side_by_side = len(between) <= _SIDE_BY_SIDE and previous.statement.value is not None
        return "beside" if side_by_side else "corrected"
    if _FINAL.search(text[max(0, end - _BEFORE) : end]) and not _FINAL.search(before):
        return "corrected"
    if later.strict != chosen.strict:
        return "corrected" if later.strict else "run-on"
    return "beside" if _says_nothing_new(text, chosen, between) else "run-on"


def _says_nothing_new(text: str, chosen: Stated, between: str) -> bool:
    """Whether a loop goes on to another answer: no words between the two, or the same as before."""
    if _NUMBERED.search("." + between):
        return False
    words = between.partition("\n")[2].strip(" \n*_.:)(")
    return len(words) <= _SIDE_BY_SIDE // 2 or words[-_SIDE_BY_SIDE:] in text[: chosen.start]


def _is_tentative(before: str) -> bool:
    clause = before[max(map(before.rfind, ".\n。!?")) + 1 :]
    return _TENTATIVE.search(clause) is not None
