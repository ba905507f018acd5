"""What is odd about a reply, whatever it answers: it refuses, hedges, loops, breaks off, leaks.

Nothing here reads an answer. An audit asks these when readers found none, or not the same one.
"""

from __future__ import annotations

import re

from keju.answers.endings import clauses
from keju.answers.kinds import GIVES_UP

TAIL = 2000
"""Characters at the end of a reply in which a loop, or a word that it gives up, is looked for."""
NEAR = 120
"""Characters at the end of a reply that are its last words."""

# `I'm sorry, but I can't help with that`, `As an AI language model`, `violates our guidelines`;
# `抱歉，我无法回答`, `作为一个人工智能`. Not `I cannot determine`, `the patient refused`.
_REFUSES = re.compile(
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
    """Whether a reply declines to answer in its own words."""
    return _REFUSES.search(text[:TAIL]) is not None or _REFUSES.search(text[-TAIL:]) is not None


def gives_up(text: str) -> bool:
    """Whether one of the last sentences says that the answer is not known."""
    if _UNDETERMINED.search(text[-TAIL:]):
        return True
    sentences = (sentence.strip(" *_.。!！\n") for sentence in clauses(text[-TAIL:]))
    return any(GIVES_UP.fullmatch(sentence) for sentence in sentences if sentence)


# `it is impossible to say`, `cannot be determined`, `not enough information`; `无法判断`.
_UNDETERMINED = re.compile(
    r"\b(?:impossible|not possible|no way) to (?:say|tell|know|determine|decide|answer)\b"
    r"|\bcan(?:not|['’]t) (?:be )?(?:determined?|known|decided?|answered|tell|say)\b"
    r"|\b(?:not enough|insufficient|isn['’]t enough) (?:information|data)\b"
    r"|无法(?:确定|判断|作答|得出)|难以(?:确定|判断)|拿不准",
    re.IGNORECASE,
)
# `None of the options matches`, `not among the choices`; `以上选项都不正确`.
_NONE_FITS = re.compile(
    r"\b(?:none|neither) of (?:the |these |those )?(?:\w+ )?(?:options|choices|answers|above)\b"
    r"|\bno (?:correct|right|matching|suitable|such) (?:option|choice|answer)\b"
    r"|\bnot (?:among|one of|listed|in) (?:the |these )?(?:\w+ )?(?:options|choices|answers)\b"
    r"|(?:以上|所有|各|四个)?选项(?:都|均|全)(?:不|错)|没有(?:正确|合适|符合)的?(?:选项|答案)",
    re.IGNORECASE,
)


def no_option_fits(text: str) -> bool:
    """Whether a reply says that none of the options is right."""
    return _NONE_FITS.search(text[-TAIL:]) is not None


# `[LETTER]`, `<your answer>`, `答案：X`: what a prompt asks to be filled in.
_PLACEHOLDER = re.compile(
    r"\[(?:LETTER|ANSWER|OPTION|NUMBER)\]|\$LETTER\b|<(?:your )?(?:answer|letter|option)>(?!.*</)"
    r"|(?:ANSWER: |答案：)(?:X|\$)(?![A-Za-z0-9])"
)


def leaves_placeholder(text: str) -> bool:
    """Whether the place of the answer was not filled in."""
    return _PLACEHOLDER.search(text.rstrip()[-NEAR:]) is not None


_LABEL = re.compile(r"(?<![A-Za-z0-9])([A-Z])(?![A-Za-z0-9'’])")


def names_several(text: str, labels: str) -> bool:
    """Whether the last words name two or three options, and decide for none of them."""
    last = text.rstrip()[-2 * NEAR :]
    named = {label for label in _LABEL.findall(last) if label in labels and lone_label(last, label)}
    return 2 <= len(named) <= 3


# `I'm not sure`, `just a guess`, `might be wrong`; `不太确定`. Not `make sure`, `certainly`.
_HEDGES = re.compile(
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
"""How often the end must repeat itself, and over how many characters, to be a loop."""


def loops(text: str) -> bool:
    """Whether the reply ends in a loop, perhaps in the middle of a turn."""
    tail = text.rstrip()[-4 * TAIL :]
    seed = tail[-24:]
    before = tail.rfind(seed, 0, len(tail) - 1)
    if before < 0:
        return False
    period = len(tail) - len(seed) - before
    span = max(TURNS * period, LEAST)
    if span > len(tail) or not seed.strip():
        return False
    return tail[-span + period :] == tail[-span:-period]


# The end of what was said: `.`, `**`, `)`, a label or a number.
_ENDED = re.compile(r"[.!?。！？)\]}>）】」*\"'”’`$|✅✔✓~…:：]\Z|(?<![A-Za-z])[A-Z]\Z|\d\Z")
# What no sentence ends with: `the answer is`, `So the`, `because of`, `答案是`.
_GOES_ON = re.compile(
    r"(?:[:：,，、(（]|\b(?:the|an?|is|are|was|of|to|and|or|but|that|because|since|so|with|for|in|if"
    r"|we|I|as|answer|option)|[是为的和与或则即因])\s*\Z"
)
LONG = 240
"""Characters from which on a reply without a final full stop counts as broken off."""


def breaks_off(text: str) -> bool:
    """Whether a reply ends in the middle of a sentence."""
    bare = text.rstrip()
    if _GOES_ON.search(bare[-20:]):
        return True
    return len(bare) >= LONG and _ENDED.search(bare[-2:]) is None


# `<|im_end|>`, `<｜end▁of▁sentence｜>`, `[INST]`, `<</SYS>>`, `</s>`, `<end_of_turn>`, `[EOS]`.
_TOKENS = re.compile(
    r"<\|[\w ./-]{2,40}\|>|<｜[^｜\n]{2,40}｜>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|<(?:bos|eos|pad|unk)>|\[(?:BOS|EOS|PAD|UNK)\]|<reserved_\d+>"
)


def leaks_tokens(text: str) -> bool:
    """Whether tokens of a chat template stand in a reply as text."""
    return _TOKENS.search(text) is not None


def lone_label(text: str, label: str) -> bool:
    """Whether a letter stands in a text as a label could: ``(B)``, ``B.``, not ``Because``.

    The article and the pronoun are no labels: ``A dog``, ``I hope``.
    """
    prose = r"(?!\s+[a-z’'])(?!['’])" if label in "AI" else "(?!['’])"
    return re.search(rf"(?<![A-Za-z0-9]){label}(?![A-Za-z0-9]){prose}", text) is not None


def lone_letter(text: str, letter: str) -> bool:
    """Whether a capital stands in a text as a word of its own."""
    return re.search(rf"(?<![A-Za-z0-9]){letter}(?![A-Za-z0-9])", text) is not None
