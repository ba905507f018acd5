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

from keju.answers.decision import corrections_in
from keju.answers.discussions import (
    ASKING,
    CHOSEN,
    LONG_WORD,
    Sentence,
    called_right,
    marked_right,
    may_call_right,
    may_choose,
    remarks,
    sentences_of,
    verdicts_of,
)
from keju.answers.eliminations import chosen_in, leaves_one, left_over, may_leave_one
from keju.answers.option_mentions import (
    AROUND,
    LOOKED_AT,
    RIGHT,
    WRONG,
    OptionMention,
    SentenceMentions,
    judge,
    mentions,
)
from keju.answers.options import spoken
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


def concluded(text: str, sample: Sample) -> Conclusion:
    """The one option that a reply concludes, with the rule and the sentence; a cut reply has none.

    Rules: ``conclusion`` (a concluding sentence names it) and ``discussion`` (it is the only option
    that is called right, or wrong where the wrong one is asked for).
    """
    if len(sample.labels) < 2:
        return Conclusion()  # a row that lost its options: whatever is named may be another
    whole, text = text.rstrip(), _complete_part(text)
    if len(text) <= BRIEF and _ONLY_LABELS.fullmatch(text):
        return Conclusion()
    ended = is_ended(text) or _VERDICT_END.search(text, max(0, len(text) - 12)) is not None
    form = _ReplyForm(
        ended, len(text) <= BRIEF, len(text) < len(whole), not ended and len(text) > SHORT
    )
    if form.is_cut and (len(text) > 2 * BRIEF or text.count("\n") < _LEAST_LINES):
        return Conclusion()
    tail = tail_of(text)
    if form.is_cut and tail.isascii() and not (may_choose(tail) or _names_all(tail, sample)):
        return Conclusion()
    return _of_tail(_plain_tail(tail, sample), sample, form)


def _of_tail(tail: str, sample: Sample, form: _ReplyForm) -> Conclusion:
    """What the end of a reply concludes: an option with a tick, a chosen one, a conclusion."""
    if marked := marked_right(tail, len(sample.labels)):
        return Conclusion(marked, rule="discussion", passage=tail[-SHORT:])
    is_chosen = may_choose(tail) and CHOSEN.search(tail)
    if form.is_cut and not is_chosen and not _names_all(tail, sample):
        return Conclusion()
    parts = sentences_of(tail, sample)
    if is_chosen and len(chosen := verdicts_of(parts, sample).chosen) == 1:
        return Conclusion(chosen.pop(), rule="discussion", passage=tail[-SHORT:])
    label, passage = ("", "") if form.is_cut else _conclusion(parts, sample, form)
    if label:
        return Conclusion(label, rule="conclusion", passage=passage)
    if label is None or not parts or not may_call_right(tail, sample):
        return Conclusion()
    return _discussed(parts, sample, ended=form.ended)


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
    tail = _ASIDE.sub("", _after_correction(tail, sample))
    if has_chinese(tail):
        tail = tail.replace("; ", ",")  # as it was before `normal_chinese` set remarks apart
    if any(map(tail.__contains__, ("option", "choice", "alternative", " one", "项"))):
        tail = _ORDINAL.sub(lambda match: _named_by_place(match, sample), tail)
    return tail


def _discussed(parts: Sequence[Sentence], sample: Sample, *, ended: bool) -> Conclusion:
    """The option that a discussion leaves; a discussion that was cut off must be of all options."""
    verdicts = verdicts_of(parts, sample)
    if not ended and len(verdicts.right | verdicts.wrong) < len(sample.labels):
        return Conclusion()
    value = called_right(verdicts, sample)
    if value is None or any(_leaves_open(part, sample) for part in parts[-_FARTHEST:]):
        return Conclusion()
    return Conclusion(value, rule="discussion", passage=parts[-1].text.strip())


def _leaves_open(part: Sentence, sample: Sample) -> bool:
    """Whether a sentence apart from the list of options says that nothing can be concluded."""
    sentence = spoken(part.text.strip())
    return not part.item and _is_left_open(sentence) and not mentions(sentence, sample)


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


def _after_correction(tail: str, sample: Sample) -> str:
    """What follows the last word of correction, where it names an option."""
    found = list(corrections_in(tail))
    if not found:
        return tail
    last = found[-1]
    rest = tail[last.start() if last[0].startswith("改") else last.end() :]
    is_asked = last[0].split()[-1:] and last[0].split()[-1].lower() in sample.text.lower()
    if is_asked or _NEVER_DONE.search(tail, max(0, last.start() - 12), last.start()):
        return tail
    return rest if mentions(spoken(rest), sample) else ""


class _FinalSentence(NamedTuple):
    """A sentence near the end of a reply, and what it says."""

    part: Sentence
    place: int
    """The number of sentences after it."""
    sentence: str
    named: SentenceMentions
    labels: set[str]
    """The options that it asserts."""
    concludes: bool
    chooses: bool

    @property
    def mention(self) -> OptionMention:
        """The mention that counts."""
        return (self.named.asserted or self.named.discussed)[-1]


def _conclusion(
    parts: Sequence[Sentence], sample: Sample, form: _ReplyForm
) -> tuple[str | None, str]:
    """The option that the last conclusion asserts; None where a reply leaves it open.

    A sentence that names no option can only leave the answer open, which is looked at when another
    sentence names one.
    """
    passed: list[_Passed] = []
    alone = len(parts) == 1
    for place, part in enumerate(reversed(parts[-_FARTHEST:])):
        sentence = spoken(part.text.strip())
        if len(sentence) > 3 * SHORT or (place and not form.ended):
            continue
        if leaves_one(sentence, sample):
            return left_over(parts, sample), part.text.strip()
        may_count = _may_count(part, place, sentence, sample, form, alone=alone)
        if place >= _NEAREST and not may_count and not _says_more(sentence, sample):
            passed += [] if part.item else [_Passed(part, place, sentence)]
            continue
        if not mentions(sentence, sample):
            if not place and _answers(sentence, sample):
                return None, ""  # it answers the question with something that is no option
            if not part.item:
                if place < _NEAREST and _is_left_open(sentence) and not may_leave_one(parts):
                    return None, ""
                passed.append(_Passed(part, place, sentence))
            continue
        if _is_unknown(sentence, sample):
            return None, ""
        if label := chosen_in(sentence, sample):
            return _unless_open(label, part, passed, sample)
        look = _look_at(part, place, sentence, sample) if may_count else None
        if look is None or not _counts(look, form, alone=alone):
            passed += [] if part.item else [_Passed(part, place, sentence)]
            continue
        later = {label for each in passed for label in _look_at(*each, sample).labels}
        if look.named.is_open or len(look.labels) > 1 or later - look.labels:
            return None, ""
        label = _one_label(look, parts, form, sample)
        if label and not _is_sure(look, label, parts, form, sample):
            return None, ""
        if label:
            return _unless_open(label, part, passed, sample)
    return "", ""


class _Passed(NamedTuple):
    """A sentence that concludes nothing; it is looked at when an earlier one does."""

    part: Sentence
    place: int
    sentence: str


def _says_more(sentence: str, sample: Sample) -> bool:
    """Whether a sentence that does not choose may still name what to choose, or leave it open."""
    return UNDETERMINED.search(sentence) is not None or chosen_in(sentence, sample) != ""


def _unless_open(
    label: str, part: Sentence, passed: Sequence[_Passed], sample: Sample
) -> tuple[str | None, str]:
    """What a sentence concludes, unless a later one says that nothing can be concluded."""
    is_open = any(
        _is_left_open(each.sentence) and not mentions(each.sentence, sample) for each in passed
    )
    return (None, "") if is_open else (label, part.text.strip())


def _is_left_open(sentence: str) -> bool:
    """Whether a sentence without an option says that none is right, or that nothing is known."""
    return bool(_NOT_LISTED.search(sentence) or UNDETERMINED.search(sentence))


def _is_unknown(sentence: str, sample: Sample) -> bool:
    """Whether a clause says that nothing can be concluded and then names options."""
    first = mentions(sentence, sample)[0]
    undetermined = UNDETERMINED.search(sentence, 0, first.start) if first.start else None
    if undetermined is None or undetermined[0] in sample.text:
        return False
    between = sentence[undetermined.end() : first.start].partition("(")[0]
    return "," not in between and not concludes(between)


def _look_at(part: Sentence, place: int, sentence: str, sample: Sample) -> _FinalSentence:
    """What a sentence that names an option says."""
    answers = _answers(sentence, sample)
    is_conclusion = answers or concludes(sentence)
    chooses = is_conclusion or _CHOOSES.search(sentence) is not None
    named = judge(sentence, sample)
    if not place and answers and not named.is_any:
        named = SentenceMentions(
            is_open=True
        )  # it answers the question with something that is no option
    labels = _concluded_labels(sentence, named, is_conclusion or "=" in sentence)
    return _FinalSentence(part, place, sentence, named, labels, is_conclusion, chooses)


def _may_count(
    part: Sentence, place: int, sentence: str, sample: Sample, form: _ReplyForm, *, alone: bool
) -> bool:
    """Whether `_counts` may hold for a sentence; cheaper, since options are not judged."""
    if alone or not part.item:
        if place == 0 and not form.has_stub:
            return True
        if place == 1 and form.brief:
            return True
    return _chooses(sentence, sample)


def _chooses(sentence: str, sample: Sample) -> bool:
    """Whether a sentence chooses or concludes."""
    return (
        concludes(sentence) or _CHOOSES.search(sentence) is not None or _answers(sentence, sample)
    )


def _counts(look: _FinalSentence, form: _ReplyForm, *, alone: bool) -> bool:
    """Whether a sentence is where a conclusion may be: it chooses, or it is the last one."""
    if look.part.item and not alone:
        apart = [
            each
            for each in look.named.asserted
            if each.label != look.part.item or (look.concludes and each.start > _HEADING)
        ]
        return look.chooses and bool(apart) and not any(each.by_text for each in apart)
    if look.place == 0 and not form.has_stub:
        return True
    return look.chooses or (look.place == 1 and form.brief)


def _one_label(
    look: _FinalSentence, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> str:
    """The one option that a sentence asserts, or the only one that it discusses."""
    named, labels = look.named, look.labels
    others = {each.label for each in named.discussed} - labels
    if not labels and len(others) == 1:
        may_mean = look.chooses and not named.discussed[0].by_text
        if sample.asks_for_wrong:
            may_mean = may_mean and WRONG.search(look.sentence) is not None
        if may_mean or _is_only_one(look, parts, form, sample):
            labels, others = others, set()
    if len(labels) != 1 or (others and not look.chooses):
        return ""
    if _calls_true(look.sentence, look.mention, sample) is False:
        return ""
    return next(iter(labels))


def _is_sure(
    look: _FinalSentence, label: str, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> bool:
    """Whether nothing speaks against the option that a sentence concludes."""
    sentence, last = look.sentence, look.mention
    at_end = not sentence[last.end :].strip(AROUND)
    if not form.ended and not (at_end and _is_firm(sentence, last)):
        return False
    if not at_end and _NOT_LISTED.search(sentence, last.end):
        return False  # `it is 3.2 V, but this is not an option`
    is_number = last.by_text and any(map(str.isdigit, sentence[last.start : last.end]))
    if is_number and not (look.concludes or form.brief):
        return False  # a number on the way to another
    decides_at = last.start if last.by_text else len(sentence)
    if look.concludes or _DECIDES.search(sentence, 0, decides_at):
        return True
    earlier = parts[: len(parts) - look.place - 1]
    return not _says_other(earlier, label, sample, chooses=look.chooses)


def _concluded_labels(sentence: str, named: SentenceMentions, is_conclusion: bool) -> set[str]:
    """The options that a sentence asserts; of several those after its last word of conclusion."""
    labels = {each.label for each in named.asserted}
    if len(labels) > 1 and is_conclusion:
        begin = max((match.end() for match in CONCLUDES.finditer(sentence)), default=-1)
        labels = {each.label for each in named.asserted if each.start >= begin >= 0} or labels
    return labels


# Right before the end of a reply without a full stop: `is `, `: `, `为`.
_IS = re.compile(r"(?:\b(?:is|are|be|equals)|[:：=是为即])[\s*_\"“]*(?:the )?\Z")


def _is_firm(sentence: str, last: OptionMention) -> bool:
    """Whether the last mention of a sentence without a full stop is an answer: ``it is B``."""
    return not last.by_text or _IS.search(sentence, 0, last.start) is not None


# `It might be the `: before an option at the end of a sentence.
_MAY_BE = re.compile(
    r"(?:\b(?:may|might|could|should|must)(?: well| still)? be|可能是|也许是)[\s*_\"“]*"
    r"(?:the |an? )?\Z"
)


def _is_only_one(
    look: _FinalSentence, parts: Sequence[Sentence], form: _ReplyForm, sample: Sample
) -> bool:
    """Whether a short reply speaks of no other option than the one that it only discusses."""
    mention, sentence = look.named.discussed[0], look.sentence
    is_said = not (mention.by_text or mention.weak) or _MAY_BE.search(sentence, 0, mention.start)
    is_looked_at = LOOKED_AT.search(sentence, 0, mention.start)
    if not (form.brief and form.ended and is_said) or is_looked_at:
        return False
    spoken_of = {each.label for part in parts for each in mentions(spoken(part.text), sample)}
    return spoken_of == {mention.label}


def _says_other(parts: Sequence[Sentence], label: str, sample: Sample, *, chooses: bool) -> bool:
    """Whether an earlier sentence asserts another option: ``A is right. B is right.``

    Before a sentence that itself chooses, only a conclusion counts.
    """
    for part in parts[-_FARTHEST:]:
        if part.item or len(part.text) > 3 * SHORT or (chooses and not concludes(part.text)):
            continue
        if sample.asks_for_wrong and RIGHT.search(part.text) and not WRONG.search(part.text):
            continue  # what is right is not what is asked for
        named = judge(spoken(part.text.strip()), sample)
        if {mention.label for mention in named.asserted} - {label}:
            return True
    return False


_LEAST_WORDS = 3


def _answers(sentence: str, sample: Sample) -> bool:
    """Whether a sentence repeats most words of the question that is asked."""
    words = _words_asked(sample.text)
    return len(words) >= _LEAST_WORDS and 4 * len(
        words.intersection(LONG_WORD.findall(sentence.lower()))
    ) >= 3 * len(words)


@lru_cache(maxsize=8)
def _words_asked(text: str) -> set[str]:
    """The long words of the sentence in which a question asks."""
    end = text.find("\nOptions:")
    asked = text[: end if end >= 0 else len(text)].rstrip(" ?_\n")
    asked = asked[max(map(asked.rfind, (". ", "? ", "\n"))) + 1 :]
    return set(LONG_WORD.findall(asked.lower())) - ASKING


def _calls_true(sentence: str, last: OptionMention, sample: Sample) -> bool | None:
    """Whether a sentence about one option says what the question asks for; None if it does not say.

    Where the wrong statement is asked for, ``B is correct`` says that B is not the answer.
    """
    if not sample.asks_for_wrong or CHOSEN.search(sentence):
        return None
    remark = " ".join(clause for clause, labels in remarks(sentence, sample) if labels)
    if WRONG.search(remark):
        return True
    is_end = not sentence[last.end :].strip(AROUND)
    return None if is_end and not RIGHT.search(remark) else False


def _named_by_place(match: re.Match[str], sample: Sample) -> str:
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
