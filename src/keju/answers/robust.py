"""The robust reader of Keju for all kinds of answers.

Keju reads a reply in these steps:

1. `prepare` converts the text to normal forms and writes each option on one line.
2. `find_statements` finds and reads every announcement once.
3. Repeated worked examples are skipped.
4. In the stretch up to the next question, `decide` chooses the announcement that counts.
5. Without an announcement, the end of the stretch may be an answer, or a sentence may conclude one.
6. If a stretch has no answer, the next stretch is read.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from keju.answers.boundaries import (
    BARE,
    LABELLED,
    ends_a_list,
    find_final_answer,
    find_introduced_option,
    find_leading_answer,
    find_sentence_answer,
    is_one_long_line,
    remove_courtesy,
    remove_cues,
    remove_cut_letter,
    remove_display,
    remove_half_character,
    remove_pictures,
)
from keju.answers.decision import (
    STATED_PREFIXES,
    StatementSpan,
    announcement_status,
    decide,
    find_correction,
    remove_denied_parts,
)
from keju.answers.kinds import AnswerKind, Choice
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.options import echoes_options, flatten_options, remove_half_option
from keju.answers.other_questions import (
    begins_with_other_question,
    find_restated_question,
    select_own_stretches,
)
from keju.answers.reader import Reader
from keju.answers.segments import (
    AMBIGUOUS,
    INVALID_LABEL,
    NEXT_QUESTION,
    Conclusion,
    ReplyStretch,
    last_block,
    last_line,
    split_any_thinking,
    split_stretches,
)
from keju.answers.sentences import has_chinese, has_wide
from keju.answers.statements import find_statements
from keju.answers.wordings import (
    ANSWER_COLON,
    ANSWER_IS,
    CHINESE,
    TOLERANT,
    may_announce,
    normalise_chinese,
)
from keju.types import LABELS, Answer, Sample, Sign, Tier

ACCEPTED = "accepted"
"""The key of `Sample.metadata` with all right answers, if there are several."""

# A part of every announcement: `Answer`, `\\boxed`, `答案`, `correct option`.
_ANNOUNCES = lazy_pattern(r"nswer|NSWER|boxed|orrect|答|选|正确")
# `orrect option`: another wording of an announcement.
_CORRECT_OPTION = lazy_pattern(r"orrect (?i:option|choice|response|letter)")


_MAY_ASK = frozenset("QP*#问题第 \n\t\r")
"""The first characters of a reply that may begin with another question."""
_DISPLAY_ENDS = frozenset("]$∎□■\n ")
"""The last characters of a displayed formula and of a proof, which blanks may follow."""
# Chinese, and full-width letters and signs, which have separate wordings.
_WIDE = lazy_pattern(r"[\u3000-\u9fff\uff00-\uffef]")


# The colon of `D:`, `The Fugitive:`; not of the cue `A:`.
_COLON = lazy_pattern(r"(?<!\bA)\s?:\s*\Z")
_PLAIN_ENDINGS = {f"answer is ({label}).": place for place, label in enumerate(LABELS)}
_ENDING = len("answer is (B).")


class RobustReader(Reader):
    """Reads an answer of the sample's kind: strict marker, tolerant marker, the end of the reply.

    If a reply announces several answers, `keju.answers.decision` chooses the one that counts. The
    result also contains the other one.
    """

    name = "robust"
    about = "about_reader_robust"
    version = 7
    scores_cut = False

    def __init__(
        self,
        kind: AnswerKind | Callable[[Sample], AnswerKind],
        *,
        strict: re.Pattern[str] | str,
        tolerant: re.Pattern[str] = TOLERANT,
        name: str = "",
        about: str = "",
        explains: bool = False,
    ) -> None:
        r"""Set the kind of answers and the markers that announce them.

        `strict` is the marker of the protocol. It is a text if the marker has only one form, since
        a text is quicker to find than a pattern. `tolerant` matches other wordings. ``\boxed{…}``
        always counts too. `kind` is a function of the sample if an exam has several kinds of
        answers. With `explains` the reason tells why a marker has no answer: ``no_label``,
        ``denied``.
        """
        self._kind_of = (lambda _: kind) if isinstance(kind, AnswerKind) else kind
        self._strict, self._tolerant = strict, tolerant
        self._lead = strict.find("answer is") if isinstance(strict, str) else -1
        self._is_usual = tolerant is TOLERANT and _names_answer(strict)
        self._ends_plainly = (
            type(kind) is Choice
            and tolerant is TOLERANT
            and type(self).prepare is RobustReader.prepare
        )
        self._explains = explains
        self._shown: Callable[[str], str] | None = None
        self._replayed: dict[str, tuple[str, ...]] = {}
        self.name, self.about = name or self.name, about or self.about

    def facing(self, shown: Callable[[str], str]) -> RobustReader:
        """Return this reader with access to the text of the prompts before the question."""
        reader = copy.copy(self)
        reader._shown, reader._replayed = shown, {}
        return reader

    def read(self, text: str, sample: Sample) -> Answer:
        if self._ends_plainly and (answer := self._read_plain_ending(text, sample)):
            return answer
        text, sample, cut = self.prepare(text, sample)
        kind = self._kind_of(sample)
        if len(text) <= BARE and (value := _read_brief_reply(text, kind, sample)):
            return Answer(value, "fallback", cut=cut, rule="whole_reply", passage=text.strip())
        if not text or text.isspace():
            return Answer(reason="empty", cut=cut)
        answer = self._read_stretches(text, kind, sample)
        return msgspec.structs.replace(answer, cut=True) if cut and not answer.cut else answer

    def matches(self, value: str, sample: Sample) -> bool:
        """Return whether `value` is the target, or one of several right answers."""
        is_same = self._kind_of(sample).same
        accepted = sample.metadata.get(ACCEPTED)
        return (
            any(is_same(value, a) for a in accepted) if accepted else is_same(value, sample.target)
        )

    def alike(self, first: str, second: str, sample: Sample) -> bool:
        """Return whether two answers are equal in any spelling: ``(B)`` and ``B``."""
        return self._kind_of(sample).same(first, second)

    def prepare(self, text: str, sample: Sample) -> tuple[str, Sample, bool]:
        """Return the text to read, the sample to use, and whether run-on text was cut off."""
        is_ascii = text.isascii()
        if not is_ascii:
            text = remove_pictures(remove_half_character(text), sample)
        if ("<" in text or "[" in text or not is_ascii) and _may_contain_thinking(text):
            text = split_any_thinking(text).text
        if not is_ascii and self._tolerant is TOLERANT and has_chinese(text):
            text = normalise_chinese(text)
        if text[-1:] in _DISPLAY_ENDS:
            text = remove_display(text)
        if ":" in text and (":" in text[:4] or ":" in text[-4:]):
            text = remove_cues(text, self._kind_of(sample), sample)
        if text[-2:-1] == "\n" and text[-1].isalpha():
            text = remove_cut_letter(text)
        if sample.choices and "\n" in "".join(sample.choices):
            text, flat = flatten_options(text, sample.choices)
            sample = msgspec.structs.replace(sample, choices=flat)
        return text, sample, False

    def fallback(self, text: str, sample: Sample) -> Answer:
        """Return the answer by additional rules of an exam, if no other rule finds one."""
        return Answer()

    def _read_plain_ending(self, text: str, sample: Sample) -> Answer | None:
        """Return the answer of an English line ending with ``answer is (B).`` as most replies do.

        The line must not contain another announcement or text that needs preparation. The general
        rules read all other replies.
        """
        line = text.rstrip()
        place = _PLAIN_ENDINGS.get(line[-_ENDING:])
        if place is None or place >= len(sample.choices):
            return None
        at = len(line) - _ENDING
        if _needs_preparation(line) or _has_other_announcement(line, at):
            return None
        if not line.endswith(STATED_PREFIXES, 0, at) and announcement_status(line, at) != "stated":
            return None
        passage = line[-BEFORE_MARKER - _ENDING :]
        if self._strict is ANSWER_IS or self._is_strict(line, at):
            return Answer(LABELS[place], "strict", rule="marker", passage=passage)
        return Answer(LABELS[place], TOLERATED, rule="wording", passage=passage)

    def _read_stretches(self, text: str, kind: AnswerKind, sample: Sample) -> Answer:
        """Return the answer of the first stretch that has one and is about this question."""
        if text[0] in _MAY_ASK and begins_with_other_question(text, sample):
            return Answer(reason="other_question")
        if answer := self._read_last_line(text, kind, sample):
            return answer
        is_silent = self._is_usual and kind.marker is None and not may_announce(text.strip())
        if is_silent and type(kind) is Choice and is_one_long_line(text, kind, sample):
            answer = self._read_conclusion(text, kind.plainly(text, sample), sample, ())
            return _with_reason(answer, kind.nothing)
        return self._read_announced(text, kind, sample, is_silent=is_silent)

    def _read_announced(
        self, text: str, kind: AnswerKind, sample: Sample, *, is_silent: bool
    ) -> Answer:
        """Return the answer of the first stretch that has one, after all announcements are read."""
        marked, reason = self._find_announcements(text, kind, sample, is_silent=is_silent)
        if len(marked) > 2 and (after := self._skip_replayed_examples(text, marked, sample)):
            return _answer_of_statements(
                text, marked[after : after + 1], kind, ("replayed_examples",)
            )
        stretches, signs = self._split_stretches(text, marked, sample)
        answer = self._find_first_answer(text, stretches[:MOST_STRETCHES], marked, sample, signs)
        if _is_decided(answer):
            return answer
        reason = answer.reason or reason
        reasons = [
            reason if self._explains or reason == INVALID_LABEL.reason else "",
            "echoed_options" if "echoed_options" in signs else "",
            answer.reason,
        ]
        return Answer(reason=next(filter(None, reasons), kind.nothing), signs=signs)

    def _find_first_answer(
        self,
        text: str,
        stretches: Sequence[ReplyStretch],
        marked: Sequence[StatementSpan],
        sample: Sample,
        signs: tuple[Sign, ...],
    ) -> Answer:
        """Return the answer of the first stretch that has one, or else the last reason."""
        kind = self._kind_of(sample)
        reason = ""
        for stretch in stretches:
            stretch_spans = [span for span in marked if stretch.start <= span.start < stretch.end]
            answer = self._read_stretch(text, stretch, stretch_spans, kind, sample, signs)
            if not _is_decided(answer):
                reason = answer.reason or reason
                part = remove_denied_parts(text[stretch.start : stretch.end])
                answer = self._read_unannounced(part, kind, sample, signs)
            if _is_decided(answer):
                return _mark_as_cut(answer) if stretch.end < len(text) else answer
            reason = reason or answer.reason
        return Answer(reason=reason)

    def _find_announcements(
        self, text: str, kind: AnswerKind, sample: Sample, *, is_silent: bool
    ) -> tuple[list[StatementSpan], str]:
        """Return the announced statements and an answer in the first line, and a reason.

        The reason tells why the last marker without an answer has none.
        """
        is_chinese = self._tolerant is TOLERANT and has_chinese(text)
        marked: list[StatementSpan] = []
        reason = ""
        if is_chinese or not is_silent:
            tolerant = CHINESE if is_chinese else self._tolerant
            marked, reason = find_statements(text, self._strict, tolerant, kind, sample)
        if leading := find_leading_answer(text, kind, sample, marked):
            marked.insert(0, leading)
        return marked, reason

    def _split_stretches(
        self, text: str, marked: Sequence[StatementSpan], sample: Sample
    ) -> tuple[list[ReplyStretch], tuple[Sign, ...]]:
        """Return the stretches that may answer this question, and the signs of other questions."""
        signs: tuple[Sign, ...] = ()
        runs_on = "\n" in text and NEXT_QUESTION.search(text)
        stretches = split_stretches(text) if runs_on else [ReplyStretch(0, len(text), -1)]
        if len(marked) > 1 and (again := find_restated_question(text, marked[0], sample)):
            signs = ("run_on",)
            stretches = [ReplyStretch(again, len(text), again)]
        elif len(stretches) > 1:
            prompt_text = self._shown(sample.subset) if self._shown else ""
            stretches, replays = select_own_stretches(text, stretches, sample, prompt_text)
            signs = ("replayed_examples",) if replays else ()
        if echoes_options(text, sample.choices):
            signs += ("echoed_options",)
        return stretches, signs

    def _read_stretch(
        self,
        text: str,
        stretch: ReplyStretch,
        stretch_spans: Sequence[StatementSpan],
        kind: AnswerKind,
        sample: Sample,
        signs: tuple[Sign, ...],
    ) -> Answer:
        """Return the announced answer of a stretch, or a later one if the stretch retracts it."""
        answer = (
            _answer_of_statements(text, stretch_spans, kind, signs) if stretch_spans else Answer()
        )
        if answer.value is None:
            return answer
        corrected_value = self._read_correction(text, stretch_spans, stretch, sample)
        if corrected_value is None:
            return answer
        all_signs = (*signs, "two_answers") if corrected_value != answer.value else signs
        return Answer(
            corrected_value, "tolerant", other=answer.value, signs=all_signs, rule="correction"
        )

    def _read_last_line(self, text: str, kind: AnswerKind, sample: Sample) -> Answer | None:
        """Return the answer of a reply whose only announcement is in its last line.

        The general rules read replies that may contain more answers.
        """
        at = text.rfind("answer is ")
        if at < 0 or kind.marker is not None:
            return None
        if _may_say_more(text, at):
            return None
        if text.find("\n", 0, at) >= 0 and _may_answer_before(text, kind, sample):
            return None
        end = at + len("answer is")
        announced_text = text[end:].strip()
        if len(announced_text) > SHORT_ANSWER and find_correction(announced_text):
            return None
        value = kind.read(announced_text, sample).value
        if value is None or announcement_status(text, at) != "stated":
            return None
        passage = text[max(0, at - BEFORE_MARKER) : at + LONGEST_PASSAGE].strip()
        if not self._is_strict(text, at):
            return Answer(value, TOLERATED, rule="wording", passage=passage)
        return Answer(value, _find_tier(text, end, value, kind), rule="marker", passage=passage)

    def _is_strict(self, text: str, at: int) -> bool:
        """Whether the `answer is ` at a position belongs to the marker of the protocol."""
        if self._strict is ANSWER_IS:
            return True
        if isinstance(self._strict, str):
            return self._lead >= 0 and text.startswith(self._strict, at - self._lead)
        return self._strict.match(text, at) is not None

    def _read_correction(
        self, text: str, stated: Sequence[StatementSpan], stretch: ReplyStretch, sample: Sample
    ) -> str | None:
        """Return the answer of a stretch after it retracts its last announced answer."""
        following_text = text[stated[-1].end : stretch.end]
        if len(following_text) < 8 or not (taken_back := find_correction(following_text)):
            return None
        kind = self._kind_of(sample)
        part = following_text[taken_back.end() :]
        return (
            find_final_answer(part, kind, sample, listed=False) or kind.plainly(part, sample).value
        )

    def _read_unannounced(
        self, text: str, kind: AnswerKind, sample: Sample, signs: tuple[Sign, ...]
    ) -> Answer:
        """Return the answer of a stretch without an announcement."""
        text = remove_courtesy(text)
        if value := find_final_answer(text, kind, sample, listed="echoed_options" in signs):
            return _answer_without_marker(value, "fallback", "last_line", last_line(text), signs)
        if value := find_introduced_option(text, kind, sample):
            return _answer_without_marker(value, "tolerant", "after_colon", last_line(text), signs)
        leading = None if "echoed_options" in signs else find_sentence_answer(text, kind, sample)
        if "echoed_options" in signs:
            text = _remove_echoed_options(text, kind, sample)
        block = last_block(text)
        if kind.listed and ends_a_list(text, block, kind, sample, listed=False):
            return Answer(signs=signs)
        plain = kind.plainly(text, sample)
        if leading and leading != plain.value:
            plain = (
                Conclusion(leading, rule="first_sentence", passage=text.lstrip()[:LONGEST_PASSAGE])
                if plain.value is None
                else Conclusion(None, AMBIGUOUS.reason)
            )
        return self._read_conclusion(text, plain, sample, signs)

    def _read_conclusion(
        self, text: str, plain: Conclusion, sample: Sample, signs: tuple[Sign, ...]
    ) -> Answer:
        """Return the conclusion of a stretch by the rules of the kind, then of the exam."""
        if plain.value is not None:
            passage = plain.passage or last_line(text)
            return _answer_without_marker(plain.value, "tolerant", plain.rule, passage, signs)
        if plain.reason == AMBIGUOUS.reason:
            return Answer(reason=plain.reason, signs=signs)
        answer = self.fallback(text, sample)
        return msgspec.structs.replace(answer, signs=signs) if signs else answer

    # --- worked examples that a reply repeats ---

    def _skip_replayed_examples(
        self, text: str, marked: Sequence[StatementSpan], sample: Sample
    ) -> int:
        """Return the index of the first statement after the answers of worked examples, or 0."""
        answers = self._read_worked_examples(sample)
        example_count = len(answers)
        if not 2 <= example_count < len(marked):
            return 0
        reply_values = [
            marked_span.statement.value or "?" for marked_span in marked[:example_count]
        ]
        if sum(map(str.__eq__, answers, reply_values)) >= max(2, example_count - 1):
            return example_count
        if len(marked) == example_count + 1 and _only_last_is_about(marked, text, sample):
            return example_count
        # one bare answer for each worked example, and one for the question
        is_bare = marked[0].start <= BARE and all(
            later.start - earlier.end <= BARE for earlier, later in pairwise(marked)
        )
        return example_count if is_bare and len(marked) == example_count + 1 else 0

    def _read_worked_examples(self, sample: Sample) -> tuple[str, ...]:
        """Return the answers of the worked examples before the question, read once per subset."""
        subset, kind = sample.subset, self._kind_of(sample)
        if self._shown is None or not kind.many:
            return ()
        if subset not in self._replayed:
            row = msgspec.structs.replace(sample, choices=("\0",) * len(LETTERS))
            spans, _ = find_statements(self._shown(subset), self._strict, self._tolerant, kind, row)
            values = (span.statement.value for span in spans)
            self._replayed[subset] = tuple(filter(None, values))
        return self._replayed[subset]


def _only_last_is_about(marked: Sequence[StatementSpan], text: str, sample: Sample) -> bool:
    """Whether each statement ends a paragraph, and only the last paragraph is about the question.

    A reply that answers each worked example and then the question has one paragraph for each.
    """
    ends = [0, *(text.find("\n\n", span.end) for span in marked[:-1]), len(text)]
    if not all(span.is_strict for span in marked) or ends != sorted(set(ends)):
        return False
    question_words = set(_LONG_WORD.findall(sample.text.lower()))
    shared_words = [
        len(question_words.intersection(_LONG_WORD.findall(text[start:end].lower())))
        for start, end in pairwise(ends)
    ]
    return shared_words[-1] > 1 and shared_words[-1] > 2 * max(shared_words[:-1])


_LONG_WORD = lazy_pattern(r"\w{5,}")


def _read_brief_reply(text: str, kind: AnswerKind, sample: Sample) -> str | None:
    """Return the answer of a brief reply that is an answer alone."""
    if not kind.closed or (len(text) >= 6 and _ANNOUNCES.search(text)):
        return None
    return kind.whole(_COLON.sub("", text) if ":" in text else text, sample)


def _names_answer(strict: re.Pattern[str] | str) -> bool:
    """Whether every match of a marker contains the word ``answer``."""
    if isinstance(strict, str):
        return "nswer" in strict or "NSWER" in strict
    return strict in (ANSWER_IS, ANSWER_COLON)


MOST_STRETCHES = 50
"""The most stretches that are read. A reply with more of them and no answer is a loop."""
LETTERS = "ABCDEFGHIJ"
SHORT_ANSWER = 12
"""The longest announced answer, in characters, that is too short for a correction."""
BEFORE_MARKER = 24
"""The number of characters before a marker in a passage."""
LONGEST_PASSAGE = 160
"""The longest passage of an answer, in characters."""


def _may_answer_before(text: str, kind: AnswerKind, sample: Sample) -> bool:
    """Whether a reply of several lines may answer before its last line."""
    if NEXT_QUESTION.search(text) or echoes_options(text, sample.choices):
        return True
    first_line = text.partition("\n")[0]
    leads = len(first_line) <= BARE or LABELLED.match(first_line)
    return bool(leads) and find_leading_answer(text, kind, sample) is not None


def _has_other_announcement(line: str, at: int) -> bool:
    """Whether an English line may announce an answer other than with the ``answer is`` at `at`."""
    if line.find("nswer") < at or "orrect " in line:
        return True
    return ("R" in line and "NSWER" in line) or ("\\" in line and "boxed" in line)


def _needs_preparation(line: str) -> bool:
    """Whether a reply has several lines, or text that `RobustReader.prepare` may change."""
    if "\n" in line or ":" in line[:4] or _may_contain_thinking(line):
        return True
    return not line.isascii() and has_wide(line)


def _may_contain_thinking(text: str) -> bool:
    """Whether a text may contain the tags of any model for its reasoning."""
    return "<" in text or ("[" in text and "[THINK]" in text) or "◁" in text


def _may_say_more(text: str, at: int) -> bool:
    """Whether a reply continues after the line of its ``answer is``, or may announce another."""
    if "\n" in text[at:].rstrip():
        return True
    if text.count("nswer") > 1 or ("R" in text and "NSWER" in text):
        return True
    if "orrect " in text and _CORRECT_OPTION.search(text):
        return True
    if "\\" in text and "boxed" in text:
        return True
    return not text.isascii() and has_wide(text) and _WIDE.search(text) is not None


def _is_decided(answer: Answer) -> bool:
    """Whether an answer was found, or several that contradict each other."""
    return answer.value is not None or answer.reason == AMBIGUOUS.reason


def _with_reason(answer: Answer, reason: str) -> Answer:
    """Return an answer, or `reason` if it has neither a value nor a reason."""
    return answer if answer.value or answer.reason else Answer(reason=reason)


def _remove_echoed_options(text: str, kind: AnswerKind, sample: Sample) -> str:
    """Return a text without the lines that are options."""
    text = remove_half_option(text, sample.choices, labelled=True)
    lines = text.split("\n")
    return "\n".join(line for line in lines if not kind.whole(line.lstrip("-•* "), sample))


def _mark_as_cut(answer: Answer) -> Answer:
    """Return an answer marked as cut: the reply continues with another question."""
    signs = answer.signs if "run_on" in answer.signs else (*answer.signs, "run_on")
    return msgspec.structs.replace(answer, cut=True, signs=signs)


def _answer_of_statements(
    text: str, stated: Sequence[StatementSpan], kind: AnswerKind, signs: tuple[Sign, ...]
) -> Answer:
    """Return the answer from the statements of a stretch. Invalid labels count only if alone."""
    if len(stated) == 1:
        return _answer_of_span(text, stated[0], kind, None, signs)
    possible = [span for span in stated if span.statement != INVALID_LABEL]
    decision = decide(text, possible or stated)
    if decision.other_value is not None:
        signs += ("two_answers",)
    if decision.by_order_only:
        signs += ("order_decides", "run_on")
    return _answer_of_span(text, decision.deciding_span, kind, decision.other_value, signs)


def _answer_of_span(
    text: str,
    stated: StatementSpan,
    kind: AnswerKind,
    other_value: str | None,
    signs: tuple[Sign, ...],
) -> Answer:
    value, reason = stated.statement
    if value is None:
        return Answer(reason=reason, other=other_value, signs=signs)
    tier = _find_tier(text, stated.end, value, kind) if stated.is_strict else TOLERATED
    rule = "marker" if stated.is_strict else "wording"
    if not stated.end:
        rule = "first_line"
    passage = text[max(0, stated.start - BEFORE_MARKER) : stated.start + LONGEST_PASSAGE].strip()
    return Answer(value, tier, other=other_value, signs=signs, rule=rule, passage=passage)


def _answer_without_marker(
    value: str, tier: Tier, rule: str, passage: str, signs: tuple[Sign, ...]
) -> Answer:
    """Return an answer without a marker."""
    return Answer(value, tier, signs=signs, rule=rule, passage=passage[-LONGEST_PASSAGE:])


TOLERATED: Tier = "tolerant"


def _find_tier(text: str, end: int, value: str, kind: AnswerKind) -> Tier:
    """Return the tier of a value after the marker of the protocol, which ends at `end`."""
    if kind.plain is None or not end:
        return "strict"
    plain = kind.plain.match(text, end)
    return "strict" if plain and plain[1] == value else TOLERATED
