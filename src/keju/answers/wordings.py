r"""Wordings of replies that announce an answer, in English and in Chinese.

Every pattern is linear: repetitions are possessive and no two neighbours accept the same character.
The Chinese patterns expect text in Unicode normal form KC (`normalise_chinese`), which converts
full-width letters, colons and brackets to ASCII.
"""

from __future__ import annotations

import re
import unicodedata

from keju.answers.decision import LINK, link_strength

# --- English -----------------------------------------------------------------------------------

ANSWER_COLON = re.compile(r"ANSWER:")
"""The marker in the prompts of EvalScope and Inspect, ``ANSWER: [LETTER]``; not ``Answer:``."""

ANSWER_IS = re.compile(r"answer is\b")
"""The marker in the prompts of the MMLU-Pro authors, ``the answer is (X)``; not ``Answer is``."""

# `nswer` after `a`: `answer`, `Answer choice`, `final_answer`; not `the wrong answer`,
# `if the answer`.
_ANSWER = (
    r"(?<![^\W_][aA])(?<=[aA])(?i:nswer)"
    r"(?<!(?i:wrong answer))(?<!(?i:incorrect answer))(?<!(?i:not the answer))"
    r"(?<!(?i:no answer))(?<!(?i:if the answer))(?<!(?i:whether the answer))"
    r"(?i: (?:choice|option|letter|#?\d{1,2}(?=[*_]*:)))?"
)
# ` to this question`, ` to the whole problem`: the object of the answer.
_ADDRESSEE = (
    r"(?: to (?:this|the)(?: [\w-]{1,20}){0,3}? (?:question|problem|challenge|task|puzzle|exercise)"
    r"(?= (?:is|would be|should be)\b))?"
)
# `orrect option` after `c`: `correct option`, `Correct choice`; not `incorrect option`.
_CORRECT = r"(?<=\b[cC])(?i:orrect (?:option|choice|response|letter))"
# The word alone at the beginning of a line: `Answer`, `# Final answer`, `**The correct answer`.
_HEADING = "|".join(
    f"(?<={before}{word}answer)"
    for before in ("^", "^the ", "# ", r"\*")
    for word in ("", "final ", "correct ")
)
# Signs of an announcement: ` is`, `**:`, ` should be`; the `>` of `<answer>`; after a
# heading the end of its line or a dash, `Answer - C`. Not `answer was hard`, `answer-only`.
_ANNOUNCEMENT_SIGN = (
    r"(?:[\s*_`\"'”’]*+(?i:is\b|would be\b|should be\b|must be\b|[:：=])"
    r"|(?i:(?<=<answer)|(?<=<final_answer))>"
    rf"|(?im:{_HEADING})[*_]*+(?:[ \t]*+(?:(?=\n)|—)|[ \t]++[-–]{{1,2}}[ \t]))"
)
# `therefore`, ` most likely,`, and a second colon: `The answer is therefore: C`.
_HEDGE = (
    r"(?:[\s*_]*+(?i:therefore|thus|hence|then|clearly|simply|likely|probably|most likely)\b,?)?"
)
_ENGLISH = rf"(?:{_ANSWER}{_ADDRESSEE}|{_CORRECT}){_ANNOUNCEMENT_SIGN}{_HEDGE}(?:[\s*_]*+[:：])?"
# `答案显然是`: words between `答案` and `是` that do not change the meaning.
_EMPHASIS = r"(?:应[该当]?|就|显然|明显|无疑|当然|自然|肯定|一定|只能){0,2}+"
# `案` after `答`: `答案是`, `答案应该选：`; not `非答案是`.
_CHINESE_CUE = rf"(?<=答)案(?<![不非]答案){_EMPHASIS}\s*+(?:是|为|选|[:：])\s*+[:：]?"

TOLERANT = re.compile(rf"[aAcC答](?:{_ENGLISH}|{_CHINESE_CUE})")
"""Any wording that announces an answer to an English question, in any case.

``The final answer is``, ``**Answer**:``, ``Correct choice:``, ``<answer>``, and the Chinese cue
``答案是``, which bilingual models also write after English questions. Not ``the wrong answer is``.
The pattern begins with a set of characters because the regex engine finds such a set quickly.
"""

# --- Chinese -----------------------------------------------------------------------------------

CUE = "答案:"
"""`答案：` in normal form."""

# Words that must not precede a marker, since they change its meaning: `错误答案`, `如果选`.
_NOT = r"(?<![不非误错勿别未没若])(?<!错误)(?<!错误的)(?<!如果)(?<!假如)"
# `答案`, `正确答案`; not `错误答案`, `不正确的答案`.
_HEAD = rf"(?:{_NOT}(?:正确|最终)|{_NOT}(?<!正确)(?<!最终)(?<![不非]正确的))答案"
# `答案是`, `正确答案**应该为`, `答案:`; not `答案不是`.
_ANSWER_WORD = (
    rf"{_HEAD}[\s*_\"”』」]*+{_EMPHASIS}(?:是|为|选择?|:|(?=[ *(]*+[A-Z][)*]*+(?:[。.,;!\s]|\Z)))"
)
# The subject of a choice: `本题`, `这道题`, `我`.
_CHOOSER = r"(?:[本此该]题|这道?题|我)"
# `故选`, `所以,本题应选择`, `选择`; not `如果选择`, `选择题`.
_CHOICE_WORD = (
    rf"{_NOT}(?:(?:故|应[该当]?|因此|所以|综上(?:所述)?|{_CHOOSER}),?{_CHOOSER}?"
    r"(?:应[该当]?|会)?选择?|(?<![\u4e00-\u9fff])选择)(?![题项])"
)
# `正确的一项是`, `正确选项:`, and `正确的是` before a label; not `不正确的是`, `正确的是因为`.
_CORRECT_ONE = (
    rf"{_NOT}正确(?:的?(?:一项|选项|答案)(?:应该|应)?(?:是|为|:)"
    r"|的(?:应该|应|就|才)?[是为](?=[ :*(]*+(?:选项 ?)?[A-Z](?![A-Za-z0-9])))"
)
# A line with only `选B`, `选 B 项`, `选B,而不是C。`; not `选BC`, `选B的人`.
_WHOLE_LINE = (
    r"(?m:^选(?= ?[A-Za-z] ?(?:选?项)?(?:,?而?不[是选] ?[A-Z] ?(?:选?项)?)?[.。]?[ \t]*+$))"
)
# A line that begins with `选D: text`, `选出C. text`; not `选项`.
_CHOSEN_LINE = r"(?m:^选出?(?= ?[A-D] ?[:.、]))"
# After the marker, before the label: `:`, `**`, `选项`.
_AFTER = r"[\s*]*+:?[\s*]*+(?:选项|选)?"

CHINESE_STRICT = re.compile(rf"{_HEAD}:|所以答案是")
"""The markers of the protocols: `答案：X` and `所以答案是X。`; not `错误答案：X`."""

CHINESE_COMPLETE = re.compile(rf"(?:{_ANSWER_WORD}|所以答案是){_AFTER}[(\[]?[A-D](?![A-Za-z0-9])")
"""A marker with the word for answer in it, and its label: ``答案是选项(B``; not ``故选B``."""

CHINESE = re.compile(
    r"(?=[正最答故应因所综本此该这我选结【\[\s*aAcC])(?:"
    rf"(?:{_ANSWER_WORD}|{_CHOICE_WORD}|{_CORRECT_ONE}|[【\[](?:答案|解答)[】\]]"
    rf"|(?m:^[*\s]{{0,40}}+(?:答|结论|最终选择|我的选择|选择):)"
    rf"|{_WHOLE_LINE}|{_CHOSEN_LINE}){_AFTER}"
    rf"|[aAcC]{_ENGLISH})"
)
"""Any wording that announces an answer to a Chinese question, in Chinese or English: ``故选``,
``【答案】``, ``正确的是``, ``the answer is``.
"""

# The comma before a remark on another option: ``B,D也错误`` names one answer, ``B,D`` two.
_CLAUSE = re.compile(
    r",\s?(?=[A-D]\s?(?:选?项)?\s?"
    r"(?!选?项|[和与及或都均皆]|也(?:都|是|对|可|正确|符合))[\u4e00-\u9fff])"
)


def normalise_chinese(text: str) -> str:
    """Return `text` in normal form KC, with a semicolon before a remark on another option."""
    return _CLAUSE.sub("; ", unicodedata.normalize("NFKC", text))


# --- announcements and boxes -------------------------------------------------------------------

# ` $\(`: only decoration between a marker and its box, `answer is: $\boxed{B}`.
_DRESSING = re.compile(r"[ \t$*:(\[{\\]*+")
# A whole box with its decoration, `$\boxed{\text{B}}$`, nested once; not one of several lines.
_BOX = re.compile(
    r"[ \t$*:(\[{\\]*+boxed ?\{[^{}\n]{0,40}(?:\{[^{}\n]{0,40}\})?[^{}\n]{0,20}\}[\\)$]*+"
)
_NEAR = 120
"""The most characters between a marker and a box that belongs to it."""


FIELD = re.compile(
    r"[\"'](?:final_?|selected_?|correct_?|chosen_?)?(?:answer|choice|option|letter|label|response"
    r"|选项|答案)[\"']\s{0,4}:\s{0,4}[\"']?",
    re.IGNORECASE,
)
"""The field of an answer in JSON: ``"choice": "``."""

_STEMS = ("nswer", "NSWER", "orrect ", "ORRECT ", "案")
"""The text after the first letter of every match of `TOLERANT`; quicker to find than a pattern."""
_SMALL_STEMS = ("nswer", "orrect ")


def _select_stems(text: str) -> tuple[str, ...]:
    """Return the stems that may be in a text. Stems in capitals are possible only with an R."""
    return _STEMS if "R" in text or not text.isascii() else _SMALL_STEMS


def _find_tolerant_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the matches of `TOLERANT`, in order."""
    spans: list[tuple[int, int]] = []
    for stem in _select_stems(text):
        at = text.find(stem)
        while at >= 0:
            match = TOLERANT.match(text, at - 1) if at else None
            if match:
                spans.append(match.span())
            at = text.find(stem, match.end() if match else at + 1)
    return sorted(spans) if len(spans) > 1 else spans


def may_announce(text: str) -> bool:
    """Whether `TOLERANT`, a box or a field of JSON may announce an answer in a text.

    One character is much quicker to find than two, so it is searched first.
    """
    return (
        any(map(text.__contains__, _select_stems(text)))
        or ("\\" in text and "\\boxed" in text)
        or ('"' in text and '":' in text)
    )


def find_announcements(text: str, pattern: re.Pattern[str] = TOLERANT) -> list[tuple[int, int]]:
    r"""Return the spans at which `pattern` or a box announces an answer, in order.

    A ``\boxed{`` is an announcement with an empty span, so the box is part of the announced text. A
    box after another marker, alone or joined to another box, belongs to that marker.
    """
    if pattern is TOLERANT:
        spans = _find_tolerant_spans(text)
    else:
        spans = [match.span() for match in pattern.finditer(text)]
    if '":' in text and "{" in text:
        spans += [
            field.span()
            for field in FIELD.finditer(text)
            if not any(start < field.end() and field.start() < end for start, end in spans)
        ]
        spans.sort()
    if "\\boxed" not in text:
        return spans
    # The backslash of each `\boxed{B}`.
    boxes = [(match.start(), match.start()) for match in re.finditer(r"\\boxed", text)]
    kept_spans: list[tuple[int, int]] = []
    for span in sorted(spans + boxes):
        is_box = span[0] == span[1]
        if not (is_box and kept_spans and _box_belongs_to_marker(text, kept_spans[-1][1], span[0])):
            kept_spans.append(span)
    return kept_spans


def _box_belongs_to_marker(text: str, marker_end: int, box: int) -> bool:
    """Whether a box is the answer of the marker before it, or joined to this answer."""
    if box - marker_end > _NEAR:
        return False
    between = text[marker_end:box]
    if _DRESSING.fullmatch(between):
        return True
    position = 0
    while box_match := _BOX.match(between, position):
        link = LINK.match(between, box_match.end())
        position = link.end() if link else box_match.end()
        joint = between[box_match.end() : position]
        if "\n" in joint or link_strength(joint) == "apart":
            return False
        if _DRESSING.fullmatch(between, position):
            return True
    return False
