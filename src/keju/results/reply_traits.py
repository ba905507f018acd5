"""Detect traits of a reply (it refuses, hedges, loops, breaks off, leaks tokens) and of the form of
its answer.

Nothing here reads an answer. An audit uses these functions if readers found no answer or different
ones. A trait of the form is the cause if the reader finds the answer once the trait is removed:
``ANSWER: b`` has a lower-case label, because ``ANSWER: B`` is read. Each trait is therefore a
rewriting of the reply, and readers need not explain why they failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from keju.answers.decision import announcement_status
from keju.answers.kinds import GIVES_UP
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.segments import read_segment, unwrap_latex
from keju.answers.sentences import CJK, clauses
from keju.answers.wordings import CHINESE, FIELD, TOLERANT, find_announcements, normalise_chinese

TAIL = 2000
"""The number of characters at the end of a reply that are searched for a loop or for giving up."""
NEAR = 120
"""The number of characters at the end of a reply that count as its last words."""

# `I'm sorry, but I can't help with that`, `As an AI language model`, `violates our guidelines`;
# `抱歉，我无法回答`, `作为一个人工智能`. Not `I cannot determine`, `the patient refused`.
_REFUSES = lazy_pattern(
    r"\b(?:I|we)(?:['’]m| am)?,? (?:can(?:not|['’]t)|won['’]t|will not|(?:am |are )?(?:not able"
    r"|unable) to|(?:must |have to |respectfully )?decline to)\b(?: \w+){0,3}? (?:help|assist"
    r"|answer|provide|comply|fulfil+|discuss|engage|continue|participate|complete|respond"
    r"|do that|share|support)\b"
    r"|\bas an? (?:AI|artificial intelligence|(?:large )?language model)\b"
    r"|\b(?:against|violat\w{1,4}) (?:my|our|the) (?:\w+ )?(?:guidelines?|polic(?:y|ies)"
    r"|programming)\b"
    r"|\bI(?:['’]m| am) sorry,? but (?:I|this)\b"
    r"|(?:抱歉|对不起|很遗憾)[,，]?[^。\n]{0,20}(?:不能|无法|不便|没法)"
    r"|作为(?:一个|一名)?(?:AI|人工智能|大?语言模型)|我(?:不能|无法)(?:回答|提供|协助|帮助|讨论)",
    re.IGNORECASE,
)


def refuses(text: str) -> bool:
    """Whether a reply declines to answer."""
    return _REFUSES.search(text[:TAIL]) is not None or _REFUSES.search(text[-TAIL:]) is not None


def gives_up(text: str) -> bool:
    """Whether one of the last sentences says that the answer is not known."""
    if _UNDETERMINED.search(text[-TAIL:]):
        return True
    sentences = (sentence.strip(" *_.。!！\n") for sentence in clauses(text[-TAIL:]))
    return any(GIVES_UP.fullmatch(sentence) for sentence in sentences if sentence)


# `it is impossible to say`, `cannot be determined`, `not enough information`; `无法判断`.
_UNDETERMINED = lazy_pattern(
    r"\b(?:impossible|not possible|no way) to (?:say|tell|know|determine|decide|answer)\b"
    r"|\bcan(?:not|['’]t) (?:be )?(?:determined?|known|decided?|answered|tell|say)\b"
    r"|\b(?:not enough|insufficient|isn['’]t enough) (?:information|data)\b"
    r"|无法(?:确定|判断|作答|得出)|难以(?:确定|判断)|拿不准",
    re.IGNORECASE,
)
# `None of the options matches`, `not among the choices`; `以上选项都不正确`.
_NONE_FITS = lazy_pattern(
    r"\b(?:none|neither) of (?:the |these |those )?(?:\w+ )?(?:options|choices|answers|above)\b"
    r"|\bno (?:correct|right|matching|suitable|such) (?:option|choice|answer)\b"
    r"|\bnot (?:among|one of|listed|in) (?:the |these )?(?:\w+ )?(?:options|choices|answers)\b"
    r"|(?:以上|所有|各|四个)?选项(?:都|均|全)(?:不|错)|没有(?:正确|合适|符合)的?(?:选项|答案)",
    re.IGNORECASE,
)


def no_option_fits(text: str) -> bool:
    """Whether a reply says that none of the options is right."""
    return _NONE_FITS.search(text[-TAIL:]) is not None


# `[LETTER]`, `<your answer>`, `答案：X`: placeholders that a prompt asks to fill in.
_PLACEHOLDER = lazy_pattern(
    r"\[(?:LETTER|ANSWER|OPTION|NUMBER)\]|\$LETTER\b|<(?:your )?(?:answer|letter|option)>(?!.*</)"
    r"|(?:ANSWER: |答案：)(?:X|\$)(?![A-Za-z0-9])"
)


def leaves_placeholder(text: str) -> bool:
    """Whether a reply still has the placeholder of the answer."""
    return _PLACEHOLDER.search(text.rstrip()[-NEAR:]) is not None


_LABEL = lazy_pattern(r"(?<![A-Za-z0-9])([A-Z])(?![A-Za-z0-9'’])")


def names_several(text: str, labels: str) -> bool:
    """Whether the last words name two or three options without deciding for one of them."""
    ending = text.rstrip()[-2 * NEAR :]
    named_labels = {
        label for label in _LABEL.findall(ending) if label in labels and lone_label(ending, label)
    }
    return 2 <= len(named_labels) <= 3


# `I'm not sure`, `just a guess`, `might be wrong`; `不太确定`. Not `make sure`, `certainly`.
_HEDGES = lazy_pattern(
    r"\bnot (?:\w+ ){0,2}?(?:sure|certain|confident)\b|\b(?:unsure|uncertain about|guessing"
    r"|(?:could|may|might) be (?:wrong|mistaken))\b"
    r"|\b(?:an? |my |just |best |educated |wild ){1,3}guess\b|\bhard to (?:say|tell)\b"
    r"|不(?:太|很|是很|完全|能|敢)?(?:确定|肯定)|没有?把握|猜的?是?",
    re.IGNORECASE,
)


def hedges(text: str) -> bool:
    """Whether a reply says in its last words that it may be wrong."""
    return _HEDGES.search(text.rstrip()[-NEAR:]) is not None


TURNS, LEAST = 4, 160
"""A loop repeats itself at least this many times, over at least this many characters."""


def loops(text: str) -> bool:
    """Whether the reply ends in a loop; its last repetition may be incomplete."""
    tail = text.rstrip()[-4 * TAIL :]
    seed = tail[-24:]
    repetition_start = tail.rfind(seed, 0, len(tail) - 1)
    if repetition_start < 0:
        return False
    period = len(tail) - len(seed) - repetition_start
    span = max(TURNS * period, LEAST)
    if span > len(tail) or not seed.strip():
        return False
    return tail[-span + period :] == tail[-span:-period]


# The end of a complete statement: `.`, `**`, `)`, a label or a number.
_ENDED = lazy_pattern(r"[.!?。！？)\]}>）】」*\"'”’`$|✅✔✓~…:：]\Z|(?<![A-Za-z])[A-Z]\Z|\d\Z")
# Endings that no complete sentence has: `the answer is`, `So the`, `because of`, `答案是`.
_GOES_ON = lazy_pattern(
    r"(?:[:：,，、(（]|\b(?:the|an?|is|are|was|of|to|and|or|but|that|because|since|so|with|for|in|if"
    r"|we|I|as|answer|option)|[是为的和与或则即因])\s*\Z"
)
LONG = 240
"""A reply of at least this many characters without a final full stop counts as broken off."""


def breaks_off(text: str) -> bool:
    """Whether a reply ends in the middle of a sentence."""
    stripped = text.rstrip()
    if _GOES_ON.search(stripped[-20:]):
        return True
    return len(stripped) >= LONG and _ENDED.search(stripped[-2:]) is None


# `<|im_end|>`, `<｜end▁of▁sentence｜>`, `[INST]`, `<</SYS>>`, `</s>`, `<end_of_turn>`, `[EOS]`.
_TOKENS = lazy_pattern(
    r"<\|[\w ./-]{2,40}\|>|<｜[^｜\n]{2,40}｜>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|<(?:bos|eos|pad|unk)>|\[(?:BOS|EOS|PAD|UNK)\]|<reserved_\d+>"
)


def leaks_tokens(text: str) -> bool:
    """Whether a reply contains tokens of a chat template as text."""
    return _TOKENS.search(text) is not None


def lone_label(text: str, label: str) -> bool:
    """Whether a text contains a letter in the form of a label: ``(B)``, ``B.``, not ``Because``.

    The article and the pronoun are not labels: ``A dog``, ``I hope``.
    """
    prose = r"(?!\s+[a-z’'])(?!['’])" if label in "AI" else "(?!['’])"
    return re.search(rf"(?<![A-Za-z0-9]){label}(?![A-Za-z0-9]){prose}", text) is not None


def lone_letter(text: str, letter: str) -> bool:
    """Whether a text contains a capital letter as a separate word."""
    return re.search(rf"(?<![A-Za-z0-9]){letter}(?![A-Za-z0-9])", text) is not None


# --- traits of the label -----------------------------------------------------------------------

_WIDE = {wide: wide - 0xFEE0 for wide in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B))}
_WIDE |= {wide: wide - 0xFF41 + 0x41 for wide in range(0xFF41, 0xFF5B)}

# A small label at the end of its line, after a marker or alone, (2) or in brackets (3):
# `ANSWER: b`, `答案：(b)`; not the article in `is a`.
_SMALL = lazy_pattern(
    r"((?:[:：=是为选]|\bis\b|\A)[\s*_(\[（【{$\"'“]*+)([a-z])(?=[\s)\]）】}$\"'”.。!,，*_]*+(?:\n|\Z))"
    r"|(?<=[(\[（【])([a-z])(?=[)\]）】])",
    re.IGNORECASE,
)
# `**`, `__`, a backtick; `*B*`.
_MARKS = lazy_pattern(r"\*\*|__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_QUOTES = lazy_pattern("[\"“”„‟「」『』«»]|(?<![A-Za-z])['‘’]|['‘’](?![A-Za-z])")


def _narrow_letters(text: str) -> str:
    return text.translate(_WIDE)


def _capitalise_labels(text: str) -> str:
    return _SMALL.sub(lambda match: (match[1] or "") + (match[2] or match[3]).upper(), text)


def _strip_markup(text: str) -> str:
    return _MARKS.sub("", text)


def _strip_boxes(text: str) -> str:
    return unwrap_latex(text).replace("$", "") if "\\" in text or "$" in text else text


def _strip_quotes(text: str) -> str:
    return _QUOTES.sub("", text)


def _join_marker_lines(text: str) -> str:
    """Return the text with each answer on the same line as the marker that announces it."""
    parts, position = [], 0
    for _, end in _find_announcements(text):
        gap = _GAP.match(text, end)
        if gap and "\n" in gap[0]:
            parts += [text[position:end], " "]
            position = gap.end()
    return "".join([*parts, text[position:]])


_GAP = lazy_pattern(r"[*_]*+\s*+")


def _close_answer_tag(text: str) -> str:
    opened = text.rfind("<answer>")
    return text + "</answer>" if opened > text.rfind("</answer>") else text


TRAITS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("full_width", _narrow_letters),
    ("lower_case", _capitalise_labels),
    ("bold", _strip_markup),
    ("boxed", _strip_boxes),
    ("quoted", _strip_quotes),
    ("next_line", _join_marker_lines),
    ("open_tag", _close_answer_tag),
)
"""By name: a function that returns the reply without the trait."""

# --- the wording -------------------------------------------------------------------------------

OWN_FORMS: Final = (
    "So the answer is {}.",
    "The answer is {}.",
    "ANSWER: {}",
    "答案：{}",
    "所以答案是{}。",
    "<answer>{}</answer>",
    "{}",
)
"""The forms in which protocols ask for an answer, the most specific first."""
_LAST = 3
"""The number of announcements at the end of a reply that are rewritten."""


def _find_announcements(text: str) -> list[tuple[int, int]]:
    """Return the spans in which a reply announces answers; Chinese must be in normal form."""
    return find_announcements(text, CHINESE if CJK.search(text) else TOLERANT)


def form_traits(text: str, value: str, form: str, reads: Callable[[str], bool]) -> tuple[str, ...]:
    """Return why a reader that asks for `form` does not find `value`, which the reply states.

    `reads` says whether the reader finds the value in a text. If removing one trait is enough, only
    this trait is returned; otherwise the smallest set of traits that must be removed together. The
    result is empty if no rewriting helps.
    """
    if single_trait := label_trait(text, reads):
        return (single_trait,)
    for name, rewritten in _reword(text, value, form):
        if reads(rewritten):
            return (name,)
    present = [(name, rewrite) for name, rewrite in TRAITS if rewrite(text) != text]
    plain = _remove_traits(text, present)
    for wording, rewritten in (("", plain), *_reword(plain, value, form)):
        if not reads(rewritten):
            continue
        for trait in list(present):
            fewer = [candidate for candidate in present if candidate is not trait]
            reduced_text = _remove_traits(text, fewer)
            attempts = [("", reduced_text)] if not wording else _reword(reduced_text, value, form)
            if any(reads(attempt) for name, attempt in attempts if name == wording):
                present = fewer
        return (*(name for name, _ in present), *([wording] if wording else []))
    return ()


def label_trait(text: str, reads: Callable[[str], bool]) -> str:
    """Return the one trait whose removal makes the reader find the answer; may be empty."""
    for name, rewrite in TRAITS:
        if (rewritten := rewrite(text)) != text and reads(rewritten):
            return name
    return ""


def _remove_traits(text: str, traits: Iterable[tuple[str, Callable[[str], str]]]) -> str:
    for _, rewrite in traits:
        text = rewrite(text)
    return text


def _reword(text: str, value: str, form: str) -> Iterator[tuple[str, str]]:
    """Yield the reply with one of its last announcements in the reader's form.

    For each announcement, the last version has only the value in this form.
    """
    text = normalise_chinese(text) if CJK.search(text) else text
    spans = _find_announcements(text)
    form_is_chinese = CJK.search(form) is not None
    if form == "{}":
        if value in text:
            yield "in_sentence", value
        return
    for number in range(len(spans) - 1, max(-1, len(spans) - 1 - _LAST), -1):
        start, end = spans[number]
        announced_text = read_segment(text, spans, number).text
        marker = text[start:end]
        name = "other_marker"
        if not marker:
            name = "boxed"  # A box is an announcement by itself.
        elif FIELD.search(text, max(0, start - 2), end):
            name = "as_json"
        elif (CJK.search(marker) is not None) != form_is_chinese:
            name = "other_language"
        preceding_lines = text[: text.rfind("\n", 0, start) + 1]
        bare_answer = announced_text.rstrip(".。 ")
        yield name, preceding_lines + form.format(bare_answer)
        yield name, preceding_lines + form.format(f"({bare_answer})")
        short = len(bare_answer) <= 2 * len(value) + 12
        yield (
            ("other_spelling" if short else "more_than_answer"),
            preceding_lines + form.format(value),
        )


def announces(text: str) -> bool:
    """Whether a reply announces an answer in any wording."""
    return bool(_find_announcements(normalise_chinese(text) if CJK.search(text) else text))


def is_json(text: str) -> bool:
    """Whether the answer is a field of JSON: ``{"answer": "B"}``."""
    return "{" in text and FIELD.search(text) is not None


def denies(text: str) -> bool:
    """Whether a reply says that an answer is not the right one."""
    text = normalise_chinese(text) if CJK.search(text) else text
    return any(
        announcement_status(text, start) == "denied" for start, _ in _find_announcements(text)
    )


def wording_of(text: str) -> str:
    """Return the words that announce the last answer, without markup; a dash if there are none."""
    text = normalise_chinese(text) if CJK.search(text) else text
    spans = _find_announcements(text)
    if not spans:
        return "-"
    start, end = spans[-1]
    return " ".join(_DRESSING.sub(" ", text[start:end]).casefold().split()) or "\\boxed"


_DRESSING = lazy_pattern(r"[*_`\"'“”:：]")


def says_in_words(text: str, label: str) -> bool:
    """Whether a reply whose answer is the option `label` never writes that letter as a label."""
    text = _capitalise_labels(_narrow_letters(text))
    if len(label) != 1 or lone_label(text, label):
        return False
    label_pattern = re.compile(
        rf"(?:option|choice|answer|letter|选项?)\W{{0,4}}{label}\b", re.IGNORECASE
    )
    return label_pattern.search(text) is None


# `Answer: 2`, `the second option`, `第三个`: the position of an option instead of its label.
_PLACE = lazy_pattern(
    r"(?:\b(?:answer|option|choice)\b(?: is)?(?: number)?|答案|选项?)\s?[:：#]?\s?(?:是|为)?\s?"
    r"\(?(\d{1,2})(?![\d.,%])"
    r"|\b(first|second|third|fourth|fifth|sixth|last) (?:option|choice|answer|one)\b"
    r"|第[一二三四五六1-9](?:个|项)",
    re.IGNORECASE,
)


def names_a_place(text: str, options: int) -> bool:
    """Whether the end of a reply names an option by its position among `options`."""
    places = list(_PLACE.finditer(text[-400:]))
    return bool(places) and (places[-1][1] is None or 1 <= int(places[-1][1]) <= options)
