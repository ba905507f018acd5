"""The option that a reply concludes without an announcement: ``So option (B) is the odd one.``

`find_mentions` finds the options in each sentence, by label or by text. `judge_options` decides how
a sentence treats them: asserted, rejected, left open, called true or false. `find_conclusion`
starts at the last sentence and goes backwards. It takes the one option that a conclusion asserts.
Without such a sentence it takes the one option that a discussion of all options calls right. If the
question asks for the wrong statement, a false one is the answer. Two options, a supposition and a
question never count.

The rules were written from replies of Llama-3.2-3B-Instruct (half of them), GPT-4 (Chinese,
16 replies) and hand-written replies. `make readers` measures the rules on all other replies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from keju.answers.decision import find_corrections
from keju.answers.discussions import (
    CHOSEN,
    LONG_WORD,
    QUESTION_WORDS,
    Sentence,
    collect_verdicts,
    find_right_option,
    find_ticked_option,
    may_call_right,
    may_choose,
    split_remarks,
    split_sentences,
)
from keju.answers.eliminations import (
    find_chosen_option,
    find_remaining_option,
    leaves_one_option,
    may_leave_one_option,
)
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.option_mentions import (
    AROUND,
    CONSIDERED,
    RIGHT,
    WRONG,
    OptionMention,
    SentenceMentions,
    find_mentions,
    judge_options,
)
from keju.answers.options import normalise_formulas
from keju.answers.phrases import load_pattern, load_words
from keju.answers.segments import Conclusion
from keju.answers.sentences import (
    BRIEF,
    CONCLUDES,
    SHORT,
    UNDETERMINED,
    concludes,
    find_tail,
    has_chinese,
    is_ended,
    remove_stub,
)
from keju.types import Sample

_NOT_LISTED = load_pattern("not_listed")
# `(Chloroplasts are not listed.)`
_ASIDE = lazy_pattern(r"\([A-Z][^()]{15,}[.!]\)")
_PLACES = load_words("ordinals")
_ORDINAL = load_pattern("ordinal")
_CHOOSES = load_pattern("chooses")
_DECIDES = load_pattern("decides")
_HEADING = 10
"""The characters at the beginning of a line that may contain the label of its list item."""
_LEAST_LINES = 2
"""The fewest line breaks of a list of options."""
_NEAREST = 2
"""The number of last sentences that are always checked for an open answer."""
_FARTHEST = 8
"""The number of last sentences that may contain a conclusion."""


def find_conclusion(text: str, sample: Sample) -> Conclusion:
    """Return the one option that a reply concludes, with the rule and the sentence.

    Rules: ``conclusion`` (a concluding sentence names it) and ``discussion`` (it is the only option
    that the reply calls right, or wrong if the question asks for the wrong one). In a long reply
    that was cut off only a discussion counts.
    """
    if len(sample.labels) < 2:
        return Conclusion()  # a row without its options: any named option may be a different one
    if len(text) > 2 * BRIEF and text[-1] in _BREAKS_OFF:
        return Conclusion()  # quicker than the checks of the form, with the same result
    whole_length, text = len(text.rstrip()), _remove_incomplete_parts(text)
    if len(text) <= BRIEF and _ONLY_LABELS.fullmatch(text):
        return Conclusion()
    form = _read_form(text, whole_length)
    if form.is_cut and (len(text) > 2 * BRIEF or text.count("\n") < _LEAST_LINES):
        return Conclusion()
    return _conclude_tail(_normalise_tail(find_tail(text), sample), sample, form)


_BREAKS_OFF = frozenset("abcdfhijklmpquvwxyz0123456789=+*/\\({^_")
"""Last characters of a long reply that was cut off: of no sentence, stub or verdict."""


def _read_form(text: str, whole_length: int) -> _ReplyForm:
    """Return the form of a reply, which had `whole_length` characters with its stub."""
    ended = is_ended(text) or _VERDICT_END.search(text, max(0, len(text) - 12)) is not None
    is_cut = not ended and len(text) > SHORT
    return _ReplyForm(ended, len(text) <= BRIEF, len(text) < whole_length, is_cut)


def _conclude_tail(tail: str, sample: Sample, form: _ReplyForm) -> Conclusion:
    """Return the conclusion of the end of a reply: a ticked, chosen or concluded option."""
    if marked := find_ticked_option(tail, len(sample.labels)):
        return Conclusion(marked, rule="discussion", passage=tail[-SHORT:])
    is_chosen = may_choose(tail) and CHOSEN.search(tail) is not None
    if form.is_cut and not is_chosen and not _names_all(tail, sample):
        return Conclusion()
    parts = split_sentences(tail, sample)
    chosen_labels = collect_verdicts(parts, sample).chosen_labels if is_chosen else ()
    if len(chosen_labels) == 1:
        return Conclusion(min(chosen_labels), rule="discussion", passage=tail[-SHORT:])
    return _conclude_sentences(parts, tail, sample, form)


def _conclude_sentences(
    parts: Sequence[Sentence], tail: str, sample: Sample, form: _ReplyForm
) -> Conclusion:
    """Return the option that the last sentences conclude, or that a discussion leaves."""
    step = None if form.is_cut else _ConclusionSearch(parts, sample, form).find()
    if step is not None and (step.value or not _judges_all(parts, sample)):
        return step
    if not parts or not may_call_right(tail, sample):
        return Conclusion()
    return _find_discussed_option(parts, sample, ended=form.is_complete)


def _remove_incomplete_parts(text: str) -> str:
    """Return a reply without a stub, a cut-off label and the requested answer format."""
    text = remove_stub(text).rstrip()
    if text[-2:-1] in ("(", "["):
        text = _BROKEN_LABEL.sub("", text)
    if "[LETTER]" in text or "following format" in text:
        text = _FORM.sub("", text).rstrip()
    return text


def _normalise_tail(tail: str, sample: Sample) -> str:
    """Return the end of a reply after its last correction, with labels in place of ordinals."""
    tail = _ASIDE.sub("", _text_after_correction(tail, sample))
    if has_chinese(tail):
        tail = tail.replace("; ", ",")  # as it was before `normalise_chinese` set remarks apart
    if any(map(tail.__contains__, _ORDERED)):
        tail = _ORDINAL.sub(lambda match: _replace_ordinal(match, sample), tail)
    return tail


_ORDERED = ("option", "choice", "alternative", " one", " sentence", " statement", "项")
"""The nouns of options that have a place: ``the second option``."""
# `Which statement is sarcastic?`: a question whose options are statements.
_ASKS_WHICH = lazy_pattern(r"\b[Ww]hich (?:sentence|statement|one|of the)\b")


def _find_discussed_option(parts: Sequence[Sentence], sample: Sample, *, ended: bool) -> Conclusion:
    """Return the option that a discussion leaves.

    A discussion that was cut off must cover all options.
    """
    verdicts = collect_verdicts(parts, sample)
    judged_labels = verdicts.right_labels | verdicts.wrong_labels
    covered_labels = verdicts.discussed_labels if sample.asks_for_wrong else judged_labels
    if not ended and len(covered_labels) < len(sample.labels):
        return Conclusion()
    value = find_right_option(verdicts, sample)
    if value is None or any(_leaves_open(part, sample) for part in parts[-_FARTHEST:]):
        return Conclusion()
    return Conclusion(value, rule="discussion", passage=parts[-1].text.strip())


def _judges_all(parts: Sequence[Sentence], sample: Sample) -> bool:
    """Whether a reply calls each option right or wrong, and only the requested one wrong."""
    if not sample.asks_for_wrong:
        return False
    verdicts = collect_verdicts(parts, sample)
    return (
        len(verdicts.wrong_labels) == 1
        and not verdicts.right_labels & verdicts.wrong_labels
        and verdicts.right_labels | verdicts.wrong_labels == set(sample.labels)
    )


def _leaves_open(part: Sentence, sample: Sample) -> bool:
    """Whether a sentence outside the list of options says that no conclusion is possible."""
    sentence = normalise_formulas(part.text.strip())
    return not part.item_label and _is_left_open(sentence) and not find_mentions(sentence, sample)


def _names_all(text: str, sample: Sample) -> bool:
    """Whether a text contains the letters of all labels, as a discussion of all options does."""
    return all(map(text.__contains__, sample.labels))


class _ReplyForm(NamedTuple):
    """The length and completeness of a reply."""

    is_complete: bool
    is_brief: bool
    has_stub: bool
    """Whether the reply ended with the beginning of another sentence."""
    is_cut: bool = False
    """Whether the reply is long and breaks off. Then only a discussion of all options counts."""


_FORM = load_pattern("requested_form")
# `A. A.D.A`: only labels.
_ONLY_LABELS = lazy_pattern(r"\s*+(?:[A-Z][.,;:)\s]++)*+[A-Z]?[.,;:)\s]*+")
# `B选项正确`, `C is right`: a verdict that ends a reply without a full stop.
_VERDICT_END = lazy_pattern(r"(?:正确|错误|当选|\b(?:correct|right|incorrect|wrong|true|false))\Z")
# `(A`: a label that broke off.
_BROKEN_LABEL = lazy_pattern(r"[(\[][A-Z]\Z")
# The `not ` of `I have not double-checked`.
_NEVER_DONE = lazy_pattern(r"(?:\bnot|n[’']t|没有?|未) ?\Z")


def _text_after_correction(tail: str, sample: Sample) -> str:
    """Return the text after the last correction, or an empty text if it names no option."""
    corrections = list(find_corrections(tail))
    if not corrections:
        return tail
    last_correction = corrections[-1]
    corrected_text = tail[
        last_correction.start() if last_correction[0].startswith("改") else last_correction.end() :
    ]
    is_question_word = (
        last_correction[0].split()[-1:]
        and last_correction[0].split()[-1].lower() in sample.text.lower()
    )
    if is_question_word or _NEVER_DONE.search(
        tail, max(0, last_correction.start() - 12), last_correction.start()
    ):
        return tail
    return corrected_text if find_mentions(normalise_formulas(corrected_text), sample) else ""


class _FinalSentence(NamedTuple):
    """A sentence near the end of a reply, with its mentions of options."""

    part: Sentence
    sentences_after: int
    """The number of sentences that follow."""
    sentence: str
    judged: SentenceMentions
    labels: set[str]
    """The labels of the options that the sentence asserts."""
    concludes: bool
    chooses: bool

    @property
    def mention(self) -> OptionMention:
        """The last asserted mention, or else the last discussed one."""
        return (self.judged.asserted or self.judged.discussed)[-1]

    @property
    def has_number(self) -> bool:
        """Whether the mention is the text of an option with digits."""
        mentioned_text = self.sentence[self.mention.start : self.mention.end]
        return self.mention.is_text and any(map(str.isdigit, mentioned_text))

    @property
    def asserts_beyond_item(self) -> bool:
        """Whether it asserts options by label, other than as the label of its list item."""
        mentions = [
            mention
            for mention in self.judged.asserted
            if mention.label != self.part.item_label
            or (self.concludes and mention.start > _HEADING)
        ]
        return bool(mentions) and not any(mention.is_text for mention in mentions)


OPEN = Conclusion()
"""The conclusion of a reply that leaves the answer open."""


class _SkippedSentence(NamedTuple):
    """A sentence without a conclusion. It is checked when an earlier sentence has one."""

    part: Sentence
    sentences_after: int
    sentence: str


class _ConclusionSearch:
    """Goes back from the last sentence of a reply to the last one that concludes an option.

    A sentence without an option can only leave the answer open. It is checked after an earlier
    sentence names an option.
    """

    def __init__(self, parts: Sequence[Sentence], sample: Sample, form: _ReplyForm) -> None:
        self._parts, self._sample, self._form = parts, sample, form
        self._skipped: list[_SkippedSentence] = []

    def find(self) -> Conclusion | None:
        """Return the last conclusion, `OPEN`, or None if no sentence concludes anything."""
        for sentences_after, part in enumerate(reversed(self._parts[-_FARTHEST:])):
            sentence = normalise_formulas(part.text.strip())
            if len(sentence) > 3 * SHORT or (sentences_after and not self._form.is_complete):
                continue
            if leaves_one_option(sentence, self._sample):
                label = find_remaining_option(self._parts, self._sample)
                return _make_conclusion(label, part)
            step = self._read_sentence(part, sentences_after, sentence)
            if step is not None:
                return step
        return None

    def _read_sentence(
        self, part: Sentence, sentences_after: int, sentence: str
    ) -> Conclusion | None:
        """Return the conclusion of a sentence, or None if an earlier sentence may have one."""
        sample = self._sample
        may_count = self._may_conclude(part, sentences_after, sentence)
        if sentences_after >= _NEAREST and not may_count and not _may_decide(sentence, sample):
            self._skip(part, sentences_after, sentence)
            return None
        if not find_mentions(sentence, sample):
            return self._skip_unless_open(part, sentences_after, sentence)
        if _is_unknown(sentence, sample):
            return OPEN
        if label := find_chosen_option(sentence, sample):
            return self._conclude(label, part)
        analysis = _analyse_sentence(part, sentences_after, sentence, sample) if may_count else None
        if analysis is None or not self._is_conclusion(analysis):
            self._skip(part, sentences_after, sentence)
            return None
        return self._read_conclusion(analysis)

    def _skip(self, part: Sentence, sentences_after: int, sentence: str) -> None:
        """Remember a sentence outside the list of options."""
        if not part.item_label:
            self._skipped.append(_SkippedSentence(part, sentences_after, sentence))

    def _skip_unless_open(
        self, part: Sentence, sentences_after: int, sentence: str
    ) -> Conclusion | None:
        """Return `OPEN` if a sentence that names no option leaves the answer open."""
        if not sentences_after and _repeats_question(sentence, self._sample):
            return OPEN  # it answers the question with a value that is not an option
        is_open = sentences_after < _NEAREST and not part.item_label and _is_left_open(sentence)
        if is_open and not may_leave_one_option(self._parts):
            return OPEN
        self._skip(part, sentences_after, sentence)
        return None

    def _read_conclusion(self, analysis: _FinalSentence) -> Conclusion | None:
        """Return the conclusion of a concluding sentence, or None if it has no single option."""
        later_labels = {
            label
            for skipped in self._skipped
            for label in _analyse_sentence(*skipped, self._sample).labels
        }
        if analysis.judged.is_open or len(analysis.labels) > 1 or later_labels - analysis.labels:
            return OPEN
        label = _find_single_label(analysis, self._parts, self._form, self._sample)
        if not label:
            return None
        if not _is_sure(analysis, label, self._parts, self._form, self._sample):
            return OPEN
        return self._conclude(label, analysis.part)

    def _conclude(self, label: str, part: Sentence) -> Conclusion:
        """Return the conclusion of a sentence, or `OPEN` if a later one leaves the answer open."""
        is_open = any(
            _is_left_open(skipped.sentence) and not find_mentions(skipped.sentence, self._sample)
            for skipped in self._skipped
        )
        return OPEN if is_open else _make_conclusion(label, part)

    def _may_conclude(self, part: Sentence, sentences_after: int, sentence: str) -> bool:
        """Whether `_is_conclusion` may hold. This check does not judge the options."""
        is_outside = len(self._parts) == 1 or not part.item_label
        return (is_outside and self._is_near_end(sentences_after)) or _chooses(
            sentence, self._sample
        )

    def _is_conclusion(self, analysis: _FinalSentence) -> bool:
        """Whether a sentence may contain the conclusion: it chooses, or it is the last one."""
        if analysis.part.item_label and len(self._parts) > 1:
            return analysis.chooses and analysis.asserts_beyond_item
        return analysis.chooses or self._is_near_end(analysis.sentences_after)

    def _is_near_end(self, sentences_after: int) -> bool:
        """Whether a sentence is the last one, or the last but one of a brief reply."""
        if sentences_after == 0:
            return not self._form.has_stub
        return sentences_after == 1 and self._form.is_brief


def _make_conclusion(label: str | None, part: Sentence) -> Conclusion:
    """Return the conclusion of a sentence; `OPEN` if there is no label."""
    return Conclusion(label, rule="conclusion", passage=part.text.strip()) if label else OPEN


def _may_decide(sentence: str, sample: Sample) -> bool:
    """Whether a sentence without a choice may still name the choice or leave it open."""
    return UNDETERMINED.search(sentence) is not None or find_chosen_option(sentence, sample) != ""


def _is_left_open(sentence: str) -> bool:
    """Whether a sentence says that no option is right or that no conclusion is possible."""
    return bool(_NOT_LISTED.search(sentence) or UNDETERMINED.search(sentence))


def _is_unknown(sentence: str, sample: Sample) -> bool:
    """Whether a sentence says that no conclusion is possible and then names options."""
    first_mention = find_mentions(sentence, sample)[0]
    undetermined = (
        UNDETERMINED.search(sentence, 0, first_mention.start) if first_mention.start else None
    )
    if undetermined is None or undetermined[0] in sample.text:
        return False
    between = sentence[undetermined.end() : first_mention.start].partition("(")[0]
    return "," not in between and not concludes(between)


def _analyse_sentence(
    part: Sentence, sentences_after: int, sentence: str, sample: Sample
) -> _FinalSentence:
    """Return the analysis of a sentence that names an option."""
    answers = _repeats_question(sentence, sample)
    is_conclusion = answers or concludes(sentence)
    chooses = is_conclusion or _CHOOSES.search(sentence) is not None
    judged = judge_options(sentence, sample)
    if not sentences_after and answers and not judged.names_any_option:
        judged = SentenceMentions(
            is_open=True
        )  # it answers the question with a value that is not an option
    labels = _find_asserted_labels(sentence, judged, is_conclusion or "=" in sentence)
    return _FinalSentence(part, sentences_after, sentence, judged, labels, is_conclusion, chooses)


def _chooses(sentence: str, sample: Sample) -> bool:
    """Whether a sentence chooses or concludes."""
    return (
        concludes(sentence)
        or _CHOOSES.search(sentence) is not None
        or _repeats_question(sentence, sample)
    )


def _find_single_label(
    analysis: _FinalSentence, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> str:
    """Return the one option that a sentence asserts, or the only one that it discusses."""
    judged, labels = analysis.judged, analysis.labels
    discussed_labels = {mention.label for mention in judged.discussed} - labels
    may_be_answer = not labels and len(discussed_labels) == 1
    if may_be_answer and (
        _chooses_discussed(analysis, sample) or _is_only_one(analysis, parts, form, sample)
    ):
        labels, discussed_labels = discussed_labels, set()
    if len(labels) != 1 or (discussed_labels and not analysis.chooses):
        return ""
    if _calls_true(analysis.sentence, analysis.mention, sample) is False:
        return ""
    return next(iter(labels))


def _chooses_discussed(analysis: _FinalSentence, sample: Sample) -> bool:
    """Whether a sentence chooses the option that it names by label but does not assert."""
    if not analysis.chooses or analysis.judged.discussed[0].is_text:
        return False
    return not sample.asks_for_wrong or WRONG.search(analysis.sentence) is not None


def _is_sure(
    analysis: _FinalSentence,
    label: str,
    parts: Sequence[Sentence],
    form: _ReplyForm,
    sample: Sample,
) -> bool:
    """Whether there is no evidence against the option that a sentence concludes."""
    sentence, last_mention = analysis.sentence, analysis.mention
    at_end = not sentence[last_mention.end :].strip(AROUND)
    if not form.is_complete and not (at_end and _is_firm(sentence, last_mention)):
        return False
    if not at_end and _NOT_LISTED.search(sentence, last_mention.end):
        return False  # `it is 3.2 V, but this is not an option`
    if analysis.has_number and not (analysis.concludes or form.is_brief):
        return False  # a number on the way to another
    decides_at = last_mention.start if last_mention.is_text else len(sentence)
    if analysis.concludes or _DECIDES.search(sentence, 0, decides_at):
        return True
    earlier_sentences = parts[: len(parts) - analysis.sentences_after - 1]
    return not _asserts_another_option(earlier_sentences, label, sample, chooses=analysis.chooses)


def _find_asserted_labels(sentence: str, judged: SentenceMentions, is_conclusion: bool) -> set[str]:
    """Return the options that a sentence asserts; of several those after its last conclusion."""
    labels = {mention.label for mention in judged.asserted}
    if len(labels) > 1 and is_conclusion:
        begin = max((match.end() for match in CONCLUDES.finditer(sentence)), default=-1)
        labels = {
            asserted_mention.label
            for asserted_mention in judged.asserted
            if asserted_mention.start >= begin >= 0
        } or labels
    return labels


# Directly before the end of a reply without a full stop: `is `, `: `, `为`.
_IS = lazy_pattern(r"(?:\b(?:is|are|be|equals)|[:：=是为即])[\s*_\"“]*(?:the )?\Z")


def _is_firm(sentence: str, last_mention: OptionMention) -> bool:
    """Whether the last mention of a sentence without a full stop is an answer: ``it is B``."""
    return not last_mention.is_text or _IS.search(sentence, 0, last_mention.start) is not None


_MAY_BE = load_pattern("may_be")


def _is_only_one(
    analysis: _FinalSentence, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> bool:
    """Whether a short reply mentions only the option that its sentence discusses."""
    mention, sentence = analysis.judged.discussed[0], analysis.sentence
    is_named_firmly = not (mention.is_text or mention.is_weak) or _MAY_BE.search(
        sentence, 0, mention.start
    )
    is_looked_at = CONSIDERED.search(sentence, 0, mention.start)
    if not (form.is_brief and form.is_complete and is_named_firmly) or is_looked_at:
        return False
    mentioned_labels = {
        named_mention.label
        for part in parts
        for named_mention in find_mentions(normalise_formulas(part.text), sample)
    }
    return mentioned_labels == {mention.label}


def _calls_only_right(sentence: str) -> bool:
    """Whether a sentence calls something right and nothing wrong."""
    return RIGHT.search(sentence) is not None and not WRONG.search(sentence)


def _asserts_another_option(
    parts: Sequence[Sentence], label: str, sample: Sample, *, chooses: bool
) -> bool:
    """Whether an earlier sentence asserts another option: ``A is right. B is right.``

    If the last sentence chooses, only earlier conclusions count.
    """
    for part in parts[-_FARTHEST:]:
        if part.item_label or len(part.text) > 3 * SHORT or (chooses and not concludes(part.text)):
            continue
        if sample.asks_for_wrong and _calls_only_right(part.text):
            continue  # the question does not ask for the right option
        judged = judge_options(normalise_formulas(part.text.strip()), sample)
        if {mention.label for mention in judged.asserted} - {label}:
            return True
    return False


_LEAST_WORDS = 3


def _repeats_question(sentence: str, sample: Sample) -> bool:
    """Whether a sentence repeats most words of the question."""
    words = _question_words(sample.text)
    return len(words) >= _LEAST_WORDS and 4 * len(
        words.intersection(LONG_WORD.findall(sentence.lower()))
    ) >= 3 * len(words)


@lru_cache(maxsize=8)
def _question_words(text: str) -> set[str]:
    """Return the long words of the last sentence of a question."""
    end = text.find("\nOptions:")
    stem = text[: end if end >= 0 else len(text)].rstrip(" ?_\n")
    stem = stem[max(map(stem.rfind, (". ", "? ", "\n"))) + 1 :]
    return set(LONG_WORD.findall(stem.lower())) - QUESTION_WORDS


def _calls_true(sentence: str, last_mention: OptionMention, sample: Sample) -> bool | None:
    """Whether a sentence calls its option the one that the question asks for; None if unknown.

    If the question asks for the wrong statement, ``B is correct`` means that B is not the answer.
    """
    if not sample.asks_for_wrong or CHOSEN.search(sentence):
        return None
    remark = " ".join(clause for clause, labels in split_remarks(sentence, sample) if labels)
    if WRONG.search(remark):
        return True
    is_end = not sentence[last_mention.end :].strip(AROUND)
    return None if is_end and not RIGHT.search(remark) else False


def _replace_ordinal(match: re.Match[str], sample: Sample) -> str:
    """Return ``option B`` for a match of ``the second option``."""
    if match[3] or match[4]:
        place = "一二三四五六七八九十".index(match[3] or match[4])
    else:
        number = match[1] or match[2]
        place = _PLACES.index(number) if number in _PLACES else len(sample.labels) - 1
    is_statement = match[1] and match[0].endswith(("sentence", "statement", "one"))
    if place >= len(sample.labels) or (is_statement and not _ASKS_WHICH.search(sample.text)):
        return match[0]
    noun = "option " if match[0].isascii() else "选项"
    return f"{noun}{sample.labels[place]}"
