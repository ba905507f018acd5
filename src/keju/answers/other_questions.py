"""Parts of a reply that belong to another question: repeated worked examples, imagined tasks.

Keju recognises a question by its beginning, or by the words that it shares with the question of the
sample. Sources of the rules: code-davinci-002, Mistral-7B, Llama-3.1-8B, the embedded model,
gemini-1.5-pro.
"""

from __future__ import annotations

from keju.answers.decision import StatementSpan
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.segments import NEXT_QUESTION, ReplyStretch, find_opening_question
from keju.types import Sample

HEADS = 40
"""The number of characters that distinguish one question from another."""
_LONG_WORD = lazy_pattern(r"\w{4,}")
# `____`, `?`: a question.
_ASKS = lazy_pattern(r"_{2,}|[?？]")


def begins_with_other_question(text: str, sample: Sample) -> bool:
    """Whether a reply begins with one other question and is about it: ``Q: Who …``."""
    opening = find_opening_question(text)
    return (
        opening >= 0
        and not NEXT_QUESTION.search(text, opening)
        and not _is_same_question(text, ReplyStretch(0, len(text), opening), sample)
    )


def select_own_stretches(
    text: str, stretches: list[ReplyStretch], sample: Sample, prompt_text: str
) -> tuple[list[ReplyStretch], bool]:
    """Return the stretches that belong to this question, and whether any repeats a worked example.

    `prompt_text` is the text of the prompt before the question.
    """
    question_start = sample.text.strip()[:HEADS]
    kept_stretches, replays = [], False
    for number, stretch in enumerate(stretches):
        head = text[stretch.question : stretch.question + 2 * HEADS].lstrip(" *_\n")[:HEADS]
        if stretch.question < 0 or len(head) < HEADS // 2:
            kept_stretches.append(stretch)
        elif question_start.startswith(head[: len(question_start)]) or head.startswith(
            question_start
        ):
            return [*kept_stretches, *stretches[number:]] if kept_stretches else stretches[
                number:
            ], replays
        elif head in prompt_text and number < len(stretches) - 1:
            replays = True
        elif _is_same_question(text, stretch, sample):
            kept_stretches.append(stretch)
    return kept_stretches, replays


def _is_same_question(text: str, stretch: ReplyStretch, sample: Sample) -> bool:
    """Whether the question of a stretch shares at least half its words with this question."""
    head = text[stretch.question : stretch.end].lstrip(" *_\n").partition("\n")[0][: 5 * HEADS]
    words = {word.lower() for word in _LONG_WORD.findall(head)}
    if "?" not in head and "？" not in head and len(words) < HEADS // 10:
        return True  # not a complete question
    return 2 * len(words.intersection(_LONG_WORD.findall(sample.text.lower()))) >= len(words)


def find_restated_question(text: str, first_span: StatementSpan, sample: Sample) -> int:
    """Return the position of this question in a reply that first answers other questions, or 0.

    A reply is of this kind if a question precedes the first answer, or if most words before the
    repeated question are not words of this question.
    """
    question_start = sample.text.strip()[:HEADS]
    at = text.find(question_start) if len(question_start) >= HEADS // 4 else -1
    if at <= first_span.start:
        return 0
    if _ASKS.search(text, 0, first_span.start):
        return at
    words = set(_LONG_WORD.findall(sample.text))
    is_whole = text.startswith(sample.text.strip()[: 5 * HEADS], at)
    strange = 2 * len(words.intersection(_LONG_WORD.findall(text[:at]))) < len(words)
    return at if is_whole and strange else 0
