"""The option that a reply concludes without announcing it: ``So option (B) is the odd one.``

Options are found sentence by sentence, by label or by text (`mentions`). `judge` decides what a
sentence says of them: asserted, rejected, left open, called true or false. `concluded` walks from
the last sentence back and takes the one option that a conclusion asserts; where none does, the one
option that a discussion of all of them calls right. Where the question asks for the wrong
statement, a false one is the answer. Two options, a supposition and a question never count.

The rules were written while looking at replies of Llama-3.2-3B-Instruct (half of them), GPT-4
(Chinese, 16 replies) and written replies; `make readers` shows what they do on all others.
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
from keju.answers.option_mentions import (
    AROUND,
    LOOKED_AT,
    RIGHT,
    WRONG,
    OptionMention,
    SentenceMentions,
    find_mentions,
    judge_options,
)
from keju.answers.options import normalise_formulas
from keju.answers.segments import Conclusion
from keju.answers.sentences import (
    BRIEF,
    CONCLUDES,
    SHORT,
    UNDETERMINED,
    concludes,
    has_chinese,
    is_ended,
    tail_of,
    without_stub,
)
from keju.types import Sample

# `The answer is not listed`, `none of the options`; `选项中没有`: no option is the answer.
_NOT_LISTED = re.compile(
    r"\bnot (?:listed|among (?:the|these|any)|(?:in|one of) (?:the|these) (?:list|options|choices"
    r"|listed|given)|given as|an option)\b"
    r"|\bnone of (?:the|these)\b|\bno (?:option|choice)\b|\b(?:all|both) (?:of the |the )?options\b"
    r"|\bd(?:o|oes|id)(?: not|n[’']t) (?:match|equal|appear|correspond|answer)\b"
    r"|选项[^。\n]{0,8}(?:没有|无)|没有[^。\n]{0,6}选项|都没有|都不(?:对|是|符合|正确)",
    re.IGNORECASE,
)
# `(Chloroplasts are not listed.)`
_ASIDE = re.compile(r"\([A-Z][^()]{15,}[.!]\)")
_PLACES = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
# `the second option`, `go with the first one`, `第三个选项`; `是第二项。`, not a term of a series.
_ORDINAL = re.compile(
    rf"\b[Tt]he ({'|'.join(_PLACES)}|last) (?:listed )?(?:option|choice|alternative)\b"
    rf"|(?:(?<=with )|(?<=choose )|(?<=pick )|(?<=select ))the ({'|'.join(_PLACES)}|last) one\b"
    r"|第([一二三四五六七八九十])个?选项|最后一个选项"
    r"|(?<=[是选])(?:第([一二三四五六七八九十])|最后一)项(?=[。,，;；]|\Z)"
)
# What chooses, wherever it stands near the end: `I would recommend`, `I'd go with`, `the closest`,
# `the only possible`; `应选`, `最符合`.
_CHOOSES = re.compile(
    r"\b(?:I|we|I['’]d|I['’]ll)(?: would| will| must| should| can| have to| had to)?"
    r"(?: therefore| probably| likely)? (?:choose|pick|select|take|recommend|suggest|say|answer|go"
    r"|lean|settle|guess|conclude)\b|\b(?:going|go|went|stick) with\b"
    r"|\b(?:best|closest|nearest|only|likeliest|right|correct|odd one|most \w+|final)\b"
    r"|\bleaves\b|\bleft with\b|\bmust be\b|\bmatch(?:es)?\b|\bcorrespond\w*\b|[→⇒∴]|=>|->"
    r"|选|最|只有|只能|应该?是|当选|符合|剩下|错误的|不正确的|正确的|倾向|认为|觉得",
    re.IGNORECASE,
)
# What leaves no other option: `the only possible`, `the closest`, `I would recommend`.
_DECIDES = re.compile(
    r"\b(?:only|best|closest|nearest|most (?!likely)\w+|recommend|choose|go with)\b|最|只有|只能",
    re.IGNORECASE,
)
_HEADING = 10
"""Characters at the beginning of a line in which the label of its item is."""
_LEAST_LINES = 2
"""Line breaks of a list of options."""
_NEAREST = 2
"""Sentences at the end that are asked at once whether they leave the answer open."""
_FARTHEST = 8
"""Sentences from the end in which a conclusion may stand."""


def find_conclusion(text: str, sample: Sample) -> Conclusion:
    """The one option that a reply concludes, with the rule and the sentence; a cut reply has none.

    Rules: ``conclusion`` (a concluding sentence names it) and ``discussion`` (it is the only option
    that is called right, or wrong where the wrong one is asked for).
    """
    if len(sample.labels) < 2:
        return Conclusion()  # a row that lost its options: whatever is named may be another
    stripped_text, text = text.rstrip(), _complete_part(text)
    if len(text) <= BRIEF and _ONLY_LABELS.fullmatch(text):
        return Conclusion()
    ended = is_ended(text) or _VERDICT_END.search(text, max(0, len(text) - 12)) is not None
    form = _ReplyForm(
        ended, len(text) <= BRIEF, len(text) < len(stripped_text), not ended and len(text) > SHORT
    )
    if form.is_cut and (len(text) > 2 * BRIEF or text.count("\n") < _LEAST_LINES):
        return Conclusion()
    tail = tail_of(text)
    if form.is_cut and tail.isascii() and not (may_choose(tail) or _names_all(tail, sample)):
        return Conclusion()
    return _conclude_tail(_plain_tail(tail, sample), sample, form)


def _conclude_tail(tail: str, sample: Sample, form: _ReplyForm) -> Conclusion:
    """What the end of a reply concludes: an option with a tick, a chosen one, a conclusion."""
    if marked := find_ticked_option(tail, len(sample.labels)):
        return Conclusion(marked, rule="discussion", passage=tail[-SHORT:])
    is_chosen = may_choose(tail) and CHOSEN.search(tail)
    if form.is_cut and not is_chosen and not _names_all(tail, sample):
        return Conclusion()
    parts = split_sentences(tail, sample)
    if is_chosen and len(chosen_labels := collect_verdicts(parts, sample).chosen_labels) == 1:
        return Conclusion(chosen_labels.pop(), rule="discussion", passage=tail[-SHORT:])
    label, passage = ("", "") if form.is_cut else _find_conclusion(parts, sample, form)
    if label:
        return Conclusion(label, rule="conclusion", passage=passage)
    if label is None or not parts or not may_call_right(tail, sample):
        return Conclusion()
    return _find_discussed_option(parts, sample, ended=form.ended)


def _complete_part(text: str) -> str:
    """A reply without a stub, a label that broke off and the form that was asked for."""
    text = without_stub(text).rstrip()
    if text[-2:-1] in ("(", "["):
        text = _BROKEN_LABEL.sub("", text)
    if "[LETTER]" in text or "following format" in text:
        text = _FORM.sub("", text).rstrip()
    return text


def _plain_tail(tail: str, sample: Sample) -> str:
    """The end of a reply after its last correction, without asides and with labels for places."""
    tail = _ASIDE.sub("", _text_after_correction(tail, sample))
    if has_chinese(tail):
        tail = tail.replace("; ", ",")  # as it was before `normal_chinese` set remarks apart
    if any(map(tail.__contains__, ("option", "choice", "alternative", " one", "项"))):
        tail = _ORDINAL.sub(lambda match: _replace_ordinal(match, sample), tail)
    return tail


def _find_discussed_option(parts: Sequence[Sentence], sample: Sample, *, ended: bool) -> Conclusion:
    """The option that a discussion leaves; a discussion that was cut off must be of all options."""
    verdicts = collect_verdicts(parts, sample)
    if not ended and len(verdicts.right_labels | verdicts.wrong_labels) < len(sample.labels):
        return Conclusion()
    value = find_right_option(verdicts, sample)
    if value is None or any(_leaves_open(part, sample) for part in parts[-_FARTHEST:]):
        return Conclusion()
    return Conclusion(value, rule="discussion", passage=parts[-1].text.strip())


def _leaves_open(part: Sentence, sample: Sample) -> bool:
    """Whether a sentence apart from the list of options says that nothing can be concluded."""
    sentence = normalise_formulas(part.text.strip())
    return not part.item_label and _is_left_open(sentence) and not find_mentions(sentence, sample)


def _names_all(text: str, sample: Sample) -> bool:
    """Whether the letters of all labels are in a text, as in a discussion of all options."""
    return all(map(text.__contains__, sample.labels))


class _ReplyForm(NamedTuple):
    """The form of a reply."""

    ended: bool
    brief: bool
    has_stub: bool
    """Whether the beginning of a further sentence was cut off."""
    is_cut: bool = False
    """Whether it is long and breaks off; only a discussion of all options counts then."""


# `'ANSWER: [LETTER]', where [LETTER] is one of A, B.`, `of the following format: 'one'`: the form
# that was asked for.
_FORM = re.compile(
    r"[^.。\n]*+\[LETTER\][^.。\n]*+[.。]?"
    r"|[^.。\n]*? of the following format: ?['\"][^'\"\n]*+['\"]?"
)
# `A. A.D.A`: nothing but labels.
_ONLY_LABELS = re.compile(r"\s*+(?:[A-Z][.,;:)\s]++)*+[A-Z]?[.,;:)\s]*+")
# `B选项正确`, `C is right`: a verdict that ends a reply without a full stop.
_VERDICT_END = re.compile(r"(?:正确|错误|当选|\b(?:correct|right|incorrect|wrong|true|false))\Z")
# `(A`: a label that broke off.
_BROKEN_LABEL = re.compile(r"[(\[][A-Z]\Z")
# The `not ` of `I have not double-checked`.
_NEVER_DONE = re.compile(r"(?:\bnot|n[’']t|没有?|未) ?\Z")


def _text_after_correction(tail: str, sample: Sample) -> str:
    """What follows the last word of correction, where it names an option."""
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
    """A sentence near the end of a reply, and what it says."""

    part: Sentence
    place: int
    """The number of sentences after it."""
    sentence: str
    judged: SentenceMentions
    labels: set[str]
    """The options that it asserts."""
    concludes: bool
    chooses: bool

    @property
    def mention(self) -> OptionMention:
        """The mention that counts."""
        return (self.judged.asserted or self.judged.discussed)[-1]


def _find_conclusion(
    parts: Sequence[Sentence], sample: Sample, form: _ReplyForm
) -> tuple[str | None, str]:
    """The option that the last conclusion asserts; None where a reply leaves it open.

    A sentence that names no option can only leave the answer open, which is looked at when another
    sentence names one.
    """
    skipped_sentences: list[_SkippedSentence] = []
    alone = len(parts) == 1
    for place, part in enumerate(reversed(parts[-_FARTHEST:])):
        sentence = normalise_formulas(part.text.strip())
        if len(sentence) > 3 * SHORT or (place and not form.ended):
            continue
        if leaves_one_option(sentence, sample):
            return find_remaining_option(parts, sample), part.text.strip()
        may_count = _may_be_conclusion(part, place, sentence, sample, form, alone=alone)
        if place >= _NEAREST and not may_count and not _may_decide(sentence, sample):
            skipped_sentences += (
                [] if part.item_label else [_SkippedSentence(part, place, sentence)]
            )
            continue
        if not find_mentions(sentence, sample):
            if not place and _repeats_question(sentence, sample):
                return None, ""  # it answers the question with something that is no option
            if not part.item_label:
                if place < _NEAREST and _is_left_open(sentence) and not may_leave_one_option(parts):
                    return None, ""
                skipped_sentences.append(_SkippedSentence(part, place, sentence))
            continue
        if _is_unknown(sentence, sample):
            return None, ""
        if label := find_chosen_option(sentence, sample):
            return _conclude_unless_open(label, part, skipped_sentences, sample)
        analysis = _analyse_sentence(part, place, sentence, sample) if may_count else None
        if analysis is None or not _is_conclusion(analysis, form, alone=alone):
            skipped_sentences += (
                [] if part.item_label else [_SkippedSentence(part, place, sentence)]
            )
            continue
        later = {
            label
            for passed_sentence in skipped_sentences
            for label in _analyse_sentence(*passed_sentence, sample).labels
        }
        if analysis.judged.is_open or len(analysis.labels) > 1 or later - analysis.labels:
            return None, ""
        label = _find_single_label(analysis, parts, form, sample)
        if label and not _is_sure(analysis, label, parts, form, sample):
            return None, ""
        if label:
            return _conclude_unless_open(label, part, skipped_sentences, sample)
    return "", ""


class _SkippedSentence(NamedTuple):
    """A sentence that concludes nothing; it is looked at when an earlier one does."""

    part: Sentence
    place: int
    sentence: str


def _may_decide(sentence: str, sample: Sample) -> bool:
    """Whether a sentence that does not choose may still name what to choose, or leave it open."""
    return UNDETERMINED.search(sentence) is not None or find_chosen_option(sentence, sample) != ""


def _conclude_unless_open(
    label: str, part: Sentence, skipped_sentences: Sequence[_SkippedSentence], sample: Sample
) -> tuple[str | None, str]:
    """What a sentence concludes, unless a later one says that nothing can be concluded."""
    is_open = any(
        _is_left_open(passed_sentence.sentence)
        and not find_mentions(passed_sentence.sentence, sample)
        for passed_sentence in skipped_sentences
    )
    return (None, "") if is_open else (label, part.text.strip())


def _is_left_open(sentence: str) -> bool:
    """Whether a sentence without an option says that none is right, or that nothing is known."""
    return bool(_NOT_LISTED.search(sentence) or UNDETERMINED.search(sentence))


def _is_unknown(sentence: str, sample: Sample) -> bool:
    """Whether a clause says that nothing can be concluded and then names options."""
    first_mention = find_mentions(sentence, sample)[0]
    undetermined = (
        UNDETERMINED.search(sentence, 0, first_mention.start) if first_mention.start else None
    )
    if undetermined is None or undetermined[0] in sample.text:
        return False
    between = sentence[undetermined.end() : first_mention.start].partition("(")[0]
    return "," not in between and not concludes(between)


def _analyse_sentence(part: Sentence, place: int, sentence: str, sample: Sample) -> _FinalSentence:
    """What a sentence that names an option says."""
    answers = _repeats_question(sentence, sample)
    is_conclusion = answers or concludes(sentence)
    chooses = is_conclusion or _CHOOSES.search(sentence) is not None
    judged = judge_options(sentence, sample)
    if not place and answers and not judged.is_any:
        judged = SentenceMentions(
            is_open=True
        )  # it answers the question with something that is no option
    labels = _find_asserted_labels(sentence, judged, is_conclusion or "=" in sentence)
    return _FinalSentence(part, place, sentence, judged, labels, is_conclusion, chooses)


def _may_be_conclusion(
    part: Sentence, place: int, sentence: str, sample: Sample, form: _ReplyForm, *, alone: bool
) -> bool:
    """Whether `_counts` may hold for a sentence; cheaper, since options are not judged."""
    if alone or not part.item_label:
        if place == 0 and not form.has_stub:
            return True
        if place == 1 and form.brief:
            return True
    return _chooses(sentence, sample)


def _chooses(sentence: str, sample: Sample) -> bool:
    """Whether a sentence chooses or concludes."""
    return (
        concludes(sentence)
        or _CHOOSES.search(sentence) is not None
        or _repeats_question(sentence, sample)
    )


def _is_conclusion(analysis: _FinalSentence, form: _ReplyForm, *, alone: bool) -> bool:
    """Whether a sentence is where a conclusion may be: it chooses, or it is the last one."""
    if analysis.part.item_label and not alone:
        independent_mentions = [
            mention
            for mention in analysis.judged.asserted
            if mention.label != analysis.part.item_label
            or (analysis.concludes and mention.start > _HEADING)
        ]
        return (
            analysis.chooses
            and bool(independent_mentions)
            and not any(independent_mention.by_text for independent_mention in independent_mentions)
        )
    if analysis.place == 0 and not form.has_stub:
        return True
    return analysis.chooses or (analysis.place == 1 and form.brief)


def _find_single_label(
    analysis: _FinalSentence, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> str:
    """The one option that a sentence asserts, or the only one that it discusses."""
    judged, labels = analysis.judged, analysis.labels
    discussed_labels = {mention.label for mention in judged.discussed} - labels
    if not labels and len(discussed_labels) == 1:
        may_mean = analysis.chooses and not judged.discussed[0].by_text
        if sample.asks_for_wrong:
            may_mean = may_mean and WRONG.search(analysis.sentence) is not None
        if may_mean or _is_only_one(analysis, parts, form, sample):
            labels, discussed_labels = discussed_labels, set()
    if len(labels) != 1 or (discussed_labels and not analysis.chooses):
        return ""
    if _calls_true(analysis.sentence, analysis.mention, sample) is False:
        return ""
    return next(iter(labels))


def _is_sure(
    analysis: _FinalSentence,
    label: str,
    parts: Sequence[Sentence],
    form: _ReplyForm,
    sample: Sample,
) -> bool:
    """Whether nothing speaks against the option that a sentence concludes."""
    sentence, last_mention = analysis.sentence, analysis.mention
    at_end = not sentence[last_mention.end :].strip(AROUND)
    if not form.ended and not (at_end and _is_firm(sentence, last_mention)):
        return False
    if not at_end and _NOT_LISTED.search(sentence, last_mention.end):
        return False  # `it is 3.2 V, but this is not an option`
    is_number = last_mention.by_text and any(
        map(str.isdigit, sentence[last_mention.start : last_mention.end])
    )
    if is_number and not (analysis.concludes or form.brief):
        return False  # a number on the way to another
    decides_at = last_mention.start if last_mention.by_text else len(sentence)
    if analysis.concludes or _DECIDES.search(sentence, 0, decides_at):
        return True
    earlier = parts[: len(parts) - analysis.place - 1]
    return not _asserts_another_option(earlier, label, sample, chooses=analysis.chooses)


def _find_asserted_labels(sentence: str, judged: SentenceMentions, is_conclusion: bool) -> set[str]:
    """The options that a sentence asserts; of several those after its last word of conclusion."""
    labels = {mention.label for mention in judged.asserted}
    if len(labels) > 1 and is_conclusion:
        begin = max((match.end() for match in CONCLUDES.finditer(sentence)), default=-1)
        labels = {
            asserted_mention.label
            for asserted_mention in judged.asserted
            if asserted_mention.start >= begin >= 0
        } or labels
    return labels


# Right before the end of a reply without a full stop: `is `, `: `, `为`.
_IS = re.compile(r"(?:\b(?:is|are|be|equals)|[:：=是为即])[\s*_\"“]*(?:the )?\Z")


def _is_firm(sentence: str, last_mention: OptionMention) -> bool:
    """Whether the last mention of a sentence without a full stop is an answer: ``it is B``."""
    return not last_mention.by_text or _IS.search(sentence, 0, last_mention.start) is not None


# `It might be the `: before an option at the end of a sentence.
_MAY_BE = re.compile(
    r"(?:\b(?:may|might|could|should|must)(?: well| still)? be|可能是|也许是)[\s*_\"“]*"
    r"(?:the |an? )?\Z"
)


def _is_only_one(
    analysis: _FinalSentence, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> bool:
    """Whether a short reply speaks of no other option than the one that it only discusses."""
    mention, sentence = analysis.judged.discussed[0], analysis.sentence
    is_named_firmly = not (mention.by_text or mention.weak) or _MAY_BE.search(
        sentence, 0, mention.start
    )
    is_looked_at = LOOKED_AT.search(sentence, 0, mention.start)
    if not (form.brief and form.ended and is_named_firmly) or is_looked_at:
        return False
    mentioned_labels = {
        named_mention.label
        for part in parts
        for named_mention in find_mentions(normalise_formulas(part.text), sample)
    }
    return mentioned_labels == {mention.label}


def _asserts_another_option(
    parts: Sequence[Sentence], label: str, sample: Sample, *, chooses: bool
) -> bool:
    """Whether an earlier sentence asserts another option: ``A is right. B is right.``

    Before a sentence that itself chooses, only a conclusion counts.
    """
    for part in parts[-_FARTHEST:]:
        if part.item_label or len(part.text) > 3 * SHORT or (chooses and not concludes(part.text)):
            continue
        if sample.asks_for_wrong and RIGHT.search(part.text) and not WRONG.search(part.text):
            continue  # what is right is not what is asked for
        judged = judge_options(normalise_formulas(part.text.strip()), sample)
        if {mention.label for mention in judged.asserted} - {label}:
            return True
    return False


_LEAST_WORDS = 3


def _repeats_question(sentence: str, sample: Sample) -> bool:
    """Whether a sentence repeats most words of the question that is asked."""
    words = _question_words(sample.text)
    return len(words) >= _LEAST_WORDS and 4 * len(
        words.intersection(LONG_WORD.findall(sentence.lower()))
    ) >= 3 * len(words)


@lru_cache(maxsize=8)
def _question_words(text: str) -> set[str]:
    """The long words of the sentence in which a question asks."""
    end = text.find("\nOptions:")
    stem = text[: end if end >= 0 else len(text)].rstrip(" ?_\n")
    stem = stem[max(map(stem.rfind, (". ", "? ", "\n"))) + 1 :]
    return set(LONG_WORD.findall(stem.lower())) - QUESTION_WORDS


def _calls_true(sentence: str, last_mention: OptionMention, sample: Sample) -> bool | None:
    """Whether a sentence about one option says what the question asks for; None if it does not say.

    Where the wrong statement is asked for, ``B is correct`` says that B is not the answer.
    """
    if not sample.asks_for_wrong or CHOSEN.search(sentence):
        return None
    remark = " ".join(clause for clause, labels in split_remarks(sentence, sample) if labels)
    if WRONG.search(remark):
        return True
    is_end = not sentence[last_mention.end :].strip(AROUND)
    return None if is_end and not RIGHT.search(remark) else False


def _replace_ordinal(match: re.Match[str], sample: Sample) -> str:
    """An option's label in place of its number: ``option B`` for ``the second option``."""
    if match[3] or match[4]:
        place = "一二三四五六七八九十".index(match[3] or match[4])
    else:
        number = match[1] or match[2]
        place = _PLACES.index(number) if number in _PLACES else len(sample.labels) - 1
    if place >= len(sample.labels):
        return match[0]
    noun = "option " if match[0].isascii() else "选项"
    return f"{noun}{sample.labels[place]}"
