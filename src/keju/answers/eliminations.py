"""The option that a sentence tells the reader to choose, and the option that an elimination leaves.

``D 是对的,要选的错误表述是 B``: both clauses name options, and the second one names the requested
option. ``Not A. Not C either. That leaves only one.``: the remaining option counts only if the
reply rejects all others.

Sources of the rules: GPT-4 (Chinese), hand-written replies.
"""

from __future__ import annotations

from collections.abc import Sequence

from keju.answers.discussions import Sentence, collect_verdicts
from keju.answers.option_mentions import find_mentions, is_supposition, judge_options
from keju.answers.options import normalise_formulas
from keju.answers.phrases import load_pattern
from keju.types import Sample

_TO_CHOOSE = load_pattern("to_choose")
_WRONG_ONE = load_pattern("wrong_one")
_LEAVES_ONE = load_pattern("leaves_one")

_ALL_BUT = load_pattern("all_but")
_THE_OTHERS = load_pattern("the_others")

_ONE_LEFT = (" one", "a single", "the last", "剩")
"""A part of each match of `_LEAVES_ONE`; quicker to find than a pattern."""


def find_chosen_option(sentence: str, sample: Sample) -> str:
    """Return the one option that a sentence tells the reader to choose, or an empty text."""
    patterns = (_TO_CHOOSE, _WRONG_ONE) if sample.asks_for_wrong else (_TO_CHOOSE,)
    labels = {
        match[match.lastindex or 0]
        for pattern in patterns
        for match in pattern.finditer(sentence)
        if judge_options(sentence[match.end() :], sample).names_any_option is False
    }
    if sample.asks_for_wrong and not labels:
        labels = _find_exceptions(sentence, sample)
    is_one = len(labels) == 1 and labels <= set(sample.labels)
    return labels.pop() if is_one and not _is_doubtful(sentence, sample) else ""


def _find_exceptions(sentence: str, sample: Sample) -> set[str]:
    """Return the options that a sentence sets against all others: ``all of them except argon``."""
    mentions = find_mentions(sentence, sample)
    excepted = {
        mention.label for mention in mentions if _ALL_BUT.search(sentence, 0, mention.start)
    }
    other_options = _THE_OTHERS.search(sentence)
    is_set_apart = other_options and mentions and mentions[-1].end <= other_options.start()
    return {mention.label for mention in mentions} if is_set_apart else excepted


def _is_doubtful(sentence: str, sample: Sample) -> bool:
    return sentence.rstrip("*_ ").endswith(("?", "？")) or is_supposition(sentence, sample)


def may_leave_one_option(parts: Sequence[Sentence]) -> bool:
    """Whether any sentence may say that one option remains."""
    return any(stem in part.text for part in parts for stem in _ONE_LEFT)


def leaves_one_option(sentence: str, sample: Sample) -> bool:
    """Whether a sentence says that one option remains, without naming it."""
    if not any(map(sentence.__contains__, _ONE_LEFT)):
        return False
    match = _LEAVES_ONE.search(sentence)
    return match is not None and not find_mentions(sentence[match.end() :], sample)


def find_remaining_option(parts: Sequence[Sentence], sample: Sample) -> str | None:
    """Return the only option that was not excluded, or None if several remain.

    If the question asks for the wrong statement, options that are called right are excluded.
    """
    verdicts = collect_verdicts(parts, sample)
    if sample.asks_for_wrong:
        excluded_labels = verdicts.right_labels
    else:
        excluded_labels = set(verdicts.wrong_labels)
        for part in parts:
            excluded_labels.update(
                judge_options(normalise_formulas(part.text.strip()), sample).rejected
            )
    remaining_labels = set(sample.labels) - excluded_labels
    return remaining_labels.pop() if len(remaining_labels) == 1 else None
