"""Find likely causes why a reply was not read, or was read differently by different readers.

A reply is suspect in these cases:

- something went wrong before it was read;
- the headline's reader or the secondary reader finds no answer, or they find different answers;
- a published reader that looks for the same form finds a different answer;
- a free answer counts as wrong, but another reader of the exam finds it right;
- the stored score differs from today's score.

Causes are looked for only in suspect replies, in the order of `CAUSES`: problems of the request,
the gold answer, the content of the reply, the form of its answer. A reply is listed under the first
cause that applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from keju.answers.kinds import SOLVED
from keju.answers.numbers import find_numbers, parse_number, plain_numerals
from keju.answers.options import contains_option_text, find_text_labels, resembles_option
from keju.answers.other_questions import HEADS
from keju.answers.robust import RobustReader
from keju.answers.segments import last_line, split_any_thinking
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.grading import EXACT, UNDECIDED
from keju.models.base import is_error_text
from keju.results.reply_traits import (
    OWN_FORMS,
    TAIL,
    TRAITS,
    announces,
    breaks_off,
    denies,
    form_traits,
    gives_up,
    hedges,
    is_json,
    label_trait,
    leaks_tokens,
    leaves_placeholder,
    lone_label,
    lone_letter,
    loops,
    names_a_place,
    names_several,
    no_option_fits,
    refuses,
    says_in_words,
    wording_of,
)
from keju.scores.exam_scores import READER_FAILED
from keju.scores.question_limits import CutCause, QuestionLimits, find_cut_cause
from keju.types import CUT, FILTERED, Reading, Reply, Sample, Sampling

END = 300
"""The number of characters of a last line that are searched for a number."""
OUTSIDE = 0.5
"""A share of the probability. If more than this lies outside the labels, the choice of a label is
unreliable."""

Forms = dict[tuple[str, ...], str]
"""By reader, subset, answer and labels: the form in which the reader finds the answer."""


@dataclass(frozen=True)
class AuditedReply:
    """One reply with all readings that the audit has of it."""

    exam: Exam
    sampling: Sampling
    sample: Sample
    """The sample with its options in the order shown to the model."""
    reply: Reply
    """The reply as the readers received it."""
    readers: Sequence[Reader]
    """The headline's reader comes first."""
    readings: Sequence[Reading]
    stored_readings: Sequence[Reading] = ()
    """The readings in the journal."""
    stored_target: str | None = None
    has_judge: bool = False
    """Whether a judge grades the answers that no rule decides."""
    form_cache: Forms = field(default_factory=dict)
    """A cache of the forms in which readers find answers."""
    limits: QuestionLimits | None = None
    """The limits of each question, if there are any."""

    @property
    def text(self) -> str:
        """The text that the readers read."""
        return self.reply.text

    @property
    def headline_reading(self) -> Reading:
        """The reading of the headline's reader."""
        return self.readings[0]

    @cached_property
    def secondary_place(self) -> int:
        """The position of the exam's secondary reader; 0 if it is not among the readers."""
        names = [reader.name for reader in self.readers]
        return names.index(self.exam.beside) if self.exam.beside in names else 0

    @property
    def secondary_reading(self) -> Reading:
        """The reading of the secondary reader."""
        return self.readings[self.secondary_place]

    @property
    def value(self) -> str | None:
        """The answer that the reply states, according to the secondary reader."""
        return self.secondary_reading.answer.value

    def is_same_answer(self, left_answer: str | None, right_answer: str | None) -> bool:
        """Whether two answers are the same: ``(B)`` is the same as ``B``."""
        if left_answer is None or right_answer is None or left_answer == right_answer:
            return left_answer == right_answer
        reader = self.readers[self.secondary_place]
        if left_answer.strip("() .").casefold() == right_answer.strip("() .").casefold():
            return True
        if not isinstance(reader, RobustReader):
            return False
        return reader.alike(left_answer, right_answer, self.sample) or reader.alike(
            right_answer, left_answer, self.sample
        )

    # --- readers that find no answer ---

    @cached_property
    def traits(self) -> tuple[str, ...]:
        """The traits of the answer's form that keep a reader from finding it.

        The reader is the headline's reader. If that one finds the answer, it is a published reader
        that finds answers in the words that the protocol asks for.
        """
        if self.value is None:
            return ()
        headline_reader = self.readers[0]
        if self.guessed_right or not self.is_same_answer(
            self.headline_reading.answer.value, self.value
        ):
            form = self._find_form(headline_reader) or "{}"
            return form_traits(
                self.text, self._expected_text, form, self._make_finder(headline_reader)
            )
        if self.secondary_place == 0 or not headline_reader.marked:
            return ()
        form = ""
        for place, reader in enumerate(self.readers):
            if place in (0, self.secondary_place) or not reader.marked:
                continue
            if self.is_same_answer(self.readings[place].answer.value, self.value):
                continue
            form = form or self._find_form(headline_reader)
            if form.partition("{}")[0].rstrip("( ").casefold() not in self.text.casefold():
                break  # The answer is announced in other words, which both readers understand.
            if self._finds_form(reader, form):
                trait = label_trait(self.text, self._make_finder(reader))
                if trait:
                    return (trait,)
        return ()

    def _make_finder(self, reader: Reader) -> Callable[[str], bool]:
        def finds(text: str) -> bool:
            answer = reader.read(text, self.sample)
            if self.guessed_right and answer.tier == "fallback":
                return False
            return self.is_same_answer(answer.value, self.value)

        return finds

    @cached_property
    def guessed_right(self) -> bool:
        """Whether the headline's reader found no marker but guessed the stated answer."""
        headline_answer = self.headline_reading.answer
        return (
            self.secondary_place > 0
            and headline_answer.tier == "fallback"
            and headline_answer.value is not None
            and self.is_same_answer(headline_answer.value, self.value)
        )

    @property
    def wording(self) -> str:
        """The words before the answer if the headline's reader guessed it; otherwise empty."""
        return wording_of(self.text) if self.guessed_right else ""

    def _find_form(self, reader: Reader) -> str:
        """Return the strictest form in which a reader finds the value, as a template.

        The result is empty if there is no such form.
        """
        return self._cached_form(reader.name, lambda: self._strictest_form(reader))

    def _strictest_form(self, reader: Reader) -> str:
        tiers: dict[str, str] = {}
        for template in OWN_FORMS:
            for form in (template, template.replace("{}", "({})")):
                answer = reader.read(form.format(self._expected_text), self.sample)
                if self.is_same_answer(answer.value, self.value):
                    tiers.setdefault(answer.tier, form)
        return tiers.get("strict") or tiers.get("tolerant") or ""

    def _finds_form(self, reader: Reader, form: str) -> bool:
        """Whether a reader finds the value in a form without guessing it."""
        answer = reader.read(form.format(self._expected_text), self.sample)
        finds_value = answer.tier != "fallback" and self.is_same_answer(answer.value, self.value)
        return bool(
            self._cached_form(f"{reader.name} {form}", lambda: "yes" if finds_value else "")
        )

    def _cached_form(self, name: str, find: Callable[[], str]) -> str:
        key = (name, self.sample.subset, self._expected_text, self.sample.labels)
        if (form := self.form_cache.get(key)) is None:
            form = self.form_cache[key] = find()
        return form

    @property
    def _expected_text(self) -> str:
        """The value in the spelling of the gold answer, if they are the same answer."""
        value = self.value or ""
        return self.sample.target if self.is_same_answer(value, self.sample.target) else value

    # --- suspect replies ---

    @property
    def is_suspect(self) -> bool:
        """Whether the reply is suspect; the beginning of this module lists the cases."""
        headline, secondary = self.headline_reading, self.secondary_reading
        if None in (headline.answer.value, secondary.answer.value):
            return True
        outcomes = {headline.score.outcome, secondary.score.outcome}
        suspect_signs = {"order_decides", "replayed_examples"}
        return (
            not outcomes <= {"correct", "incorrect", "unlabelled", "ungraded"}
            or not self.is_same_answer(headline.answer.value or "", secondary.answer.value or "")
            or not suspect_signs.isdisjoint(secondary.answer.signs)
            or self.is_right_by_another_reader
            or self.has_stale_score
            or any(cause.applies(self) for cause in ALWAYS)
            or bool(not self.guessed_right and self.traits)
        )

    @property
    def is_right_by_another_reader(self) -> bool:
        """Whether a free answer counts as wrong but another reader of the exam finds it right.

        For example, one reader takes all of ``2 + 2 = 4`` as the answer and another takes the
        number. Letters are left out, since a reader that guesses a letter is often right by chance.
        """
        if self.sample.choices or self.headline_reading.score.outcome != "incorrect":
            return False
        return any(
            reading.score.outcome == "correct" and reading.reader in self.exam.readers
            for reading in self.readings
        )

    @cached_property
    def has_stale_score(self) -> bool:
        """Whether a stored score differs from the score that its reader gives today."""
        current_readings = {reading.reader: reading for reading in self.readings}
        return any(
            stored.reader in current_readings
            and stored.score.grader == current_readings[stored.reader].score.grader
            and (
                stored.score.value != current_readings[stored.reader].score.value
                or stored.score.outcome != current_readings[stored.reader].score.outcome
                or not self.is_same_answer(
                    stored.answer.value, current_readings[stored.reader].answer.value
                )
            )
            for stored in self.stored_readings
        )


def readers_of_form(exam: Exam, readers: Sequence[Reader]) -> list[str]:
    """Return the names of the readers that find a right answer in the protocol's form.

    The form is the strictest one in which the protocol's reader finds an answer.
    """
    protocol_reader = exam.readers.get(exam.protocol.reader, readers[0])
    sample = next((sample for sample in exam.samples if sample.target), None)
    forms = _forms_by_tier(protocol_reader, sample) if sample else {}
    form = forms.get("strict") or forms.get("tolerant")
    if form is None:
        return []
    return [reader.name for reader in readers if _find_tier(reader, form, sample) is not None]


def _forms_by_tier(reader: Reader, sample: Sample) -> dict[str, str]:
    """Return the first form of an answer that a reader finds in each tier."""
    forms: dict[str, str] = {}
    for template in OWN_FORMS:
        for form in (template, template.replace("{}", "({})")):
            if (tier := _find_tier(reader, form, sample)) is not None:
                forms.setdefault(tier, form)
    return forms


def _find_tier(reader: Reader, form: str, sample: Sample | None) -> str | None:
    """Return the tier at which a reader finds a sample's target in a form; None if it fails."""
    if sample is None:
        return None
    bare_target = sample.target.strip("()") if "({})" in form else sample.target
    try:
        answer = reader.read(form.format(bare_target), sample)
        is_match = answer.value is not None and reader.matches(answer.value, sample)
    except Exception:
        # A reader with a bug finds nothing; the replies it fails on are reported as faults.
        return None
    return answer.tier if is_match and answer.tier != "fallback" else None


class AuditCause(NamedTuple):
    """One cause: its code and its rule."""

    code: str
    applies: Callable[[AuditedReply], bool]
    always: bool = False
    """Whether this cause alone makes a reply suspect."""


def causes_of(case: AuditedReply) -> tuple[str, ...]:
    """Return the causes of a suspect reply, the likeliest first; there is always at least one."""
    codes = tuple(cause.code for cause in CAUSES if cause.applies(case))
    if codes and codes != ("stale_score",):
        return codes
    if case.value is None:
        headline_answer = case.headline_reading.answer.value
        fallback_code = "no_answer" if headline_answer is None else "one_reader_only"
    else:
        fallback_code = "other_reading"
    return (fallback_code, *codes)


# --- problems of the request -------------------------------------------------------------------


def _thinking_never_ended(case: AuditedReply) -> bool:
    reply = case.reply
    if not case.text.strip():
        return bool(reply.reasoning) and (bool(reply.raw) or _is_cut_at_max_tokens(case))
    return ("<" in case.text or "[" in case.text or "◁" in case.text) and split_any_thinking(
        case.text
    ).unclosed


def _is_empty(case: AuditedReply) -> bool:
    return not case.text.strip() and not case.reply.compared and case.reply.fault is None


def _is_cut_off(case: AuditedReply) -> bool:
    return "truncated" in (
        case.headline_reading.score.outcome,
        case.secondary_reading.score.outcome,
    )


CUT_BY: tuple[CutCause, ...] = ("time", "tokens", "cost", "turns", "context")
"""The limits that can cut a reply, except for its limit of tokens."""


def _is_cut_by(cause: CutCause) -> Callable[[AuditedReply], bool]:
    return lambda case: find_cut_cause(case.reply, case.limits) == cause


def _is_cut_at_max_tokens(case: AuditedReply) -> bool:
    return find_cut_cause(case.reply, case.limits) == "max_tokens"


def _is_cut_by_other_limit(case: AuditedReply) -> bool:
    """Whether a limit other than the reply's token limit has cut it."""
    return find_cut_cause(case.reply, case.limits) in CUT_BY


def _is_at_cap(case: AuditedReply) -> bool:
    cap, reply = case.sampling.max_tokens, case.reply
    return (
        bool(cap) and reply.usage.output >= (cap or 0) and reply.finish != CUT and _is_unread(case)
    )


def _is_broken_off(case: AuditedReply) -> bool:
    return (
        case.reply.finish != CUT and _is_unread(case) and bool(case.text) and breaks_off(case.text)
    )


def _is_unread(case: AuditedReply) -> bool:
    """Whether a reply has text but no readable answer."""
    return case.value is None and bool(case.text.strip()) and case.reply.fault is None


# --- the gold answer and the labels ------------------------------------------------------------


def _is_left_to_judge(case: AuditedReply) -> bool:
    score = case.headline_reading.score
    if case.has_judge:
        return False
    awaits_judge = score.outcome == "ungraded" and score.grader != READER_FAILED
    return awaits_judge or (
        case.exam.open_answers
        and score.outcome == "incorrect"
        and score.grader in (EXACT, UNDECIDED)
    )


def _gold_is_no_option(case: AuditedReply) -> bool:
    sample, reader = case.sample, case.readers[case.secondary_place]
    if not sample.choices or not sample.target or case.exam.open_answers:
        return False
    return not any(reader.matches(label, sample) for label in sample.labels)


# --- the content of the reply ------------------------------------------------------------------


def _has_sign(case: AuditedReply, *signs: str) -> bool:
    return not set(signs).isdisjoint(case.secondary_reading.answer.signs)


def _echoes_prompt(case: AuditedReply) -> bool:
    head = case.text.lstrip()[: 2 * HEADS]
    if len(head) < HEADS or case.sample.text.lstrip().startswith(head[:HEADS]):
        return False
    prompt = case.exam.render(case.sample)
    prompt_texts = (*(message.content for message in prompt.messages), prompt.tail)
    return any(text.lstrip().startswith(head) for text in prompt_texts)


def _restates_question(case: AuditedReply) -> bool:
    head = case.sample.text.strip()[: 2 * HEADS]
    return len(head) >= HEADS // 2 and head in case.text


def _has_reason(case: AuditedReply, *reasons: str) -> bool:
    return (
        case.secondary_reading.answer.value is None
        and case.secondary_reading.answer.reason in reasons
    )


def _names_several_answers(case: AuditedReply) -> bool:
    if _has_reason(case, "ambiguous"):
        return True
    return _is_unread(case) and names_several(case.text, case.sample.labels)


def _is_outside_options(case: AuditedReply) -> bool:
    if _has_reason(case, "invalid_label"):
        return True
    label, labels = case.headline_reading.answer.value or "", case.sample.labels
    is_unknown_label = bool(labels) and len(label) == 1 and label.isupper() and label not in labels
    return is_unknown_label and lone_label(case.text, label)


def _number_is_no_option(case: AuditedReply) -> bool:
    """Whether options are numbers and the reply ends with a number that is not an option."""
    if not _is_unread(case) or not any(parse_number(choice) for choice in case.sample.choices):
        return False
    end = last_line(case.text)[-END:]
    return any(number.clear for number in find_numbers(plain_numerals(end)))


def _answers_in_reasoning(case: AuditedReply) -> bool:
    thoughts = case.reply.reasoning
    return _is_unread(case) and bool(thoughts) and announces(thoughts[-2000:])


def _find_guessed_letter(case: AuditedReply) -> str:
    """Return the letter that the headline's reader took although the reply does not state it.

    This includes a letter that it found but rejected because the question has no such label. The
    result is empty if there is no such letter.
    """
    answer = case.headline_reading.answer
    if answer.value is not None and case.is_same_answer(answer.value, case.value):
        return ""
    if answer.value is None:
        unused = (
            answer.reason == "invalid_label"
            and case.secondary_reading.answer.reason != answer.reason
        )
        return next((c for c in reversed(case.text) if c.isupper()), "") if unused else ""
    label = answer.value.strip("()")
    return label if len(label) == 1 and label.isalpha() and case.sample.choices else ""


def _took_letter_of_word(case: AuditedReply) -> bool:
    letter = _find_guessed_letter(case)
    return bool(letter) and not lone_letter(case.text, letter)


def _took_letter_of_prose(case: AuditedReply) -> bool:
    letter = _find_guessed_letter(case)
    if not letter or not lone_letter(case.text, letter):
        return False
    return case.headline_reading.answer.tier == "fallback" or not lone_label(case.text, letter)


def _takes_line_as_answer(case: AuditedReply) -> bool:
    """Whether the headline's reader took a line or the whole reply, which is not an answer."""
    value = case.headline_reading.answer.value
    return (
        value is not None
        and not case.is_same_answer(value, case.value)
        and len(value) > 1
        and value in (case.text.strip(), case.text.strip().casefold())
    ) or (value is not None and case.headline_reading.answer.tier == "fallback" and len(value) > 12)


# --- the form of the answer --------------------------------------------------------------------


def _has_trait(name: str) -> Callable[[AuditedReply], bool]:
    return lambda case: name in case.traits


def _states_plainly(case: AuditedReply) -> bool:
    """Whether the reply states the answer without announcing it."""
    if case.value is None or case.exam.open_answers:
        return False
    return bool(case.text) and not announces(case.text)


def _answers_in_words(case: AuditedReply) -> bool:
    value = case.value
    if value is None:
        return _is_unread(case) and bool(case.sample.choices) and _is_near_option(case)
    if not case.sample.choices or not says_in_words(case.text, value):
        return False
    return value in find_text_labels(case.text[-TAIL:], case.sample.choices)


def _is_near_option(case: AuditedReply) -> bool:
    """Whether the end of the reply names or resembles an option."""
    end = case.text.strip().rpartition("\n")[2][-200:]
    return contains_option_text(end, case.sample.choices) or (
        len(end) < 100 and resembles_option(end, case.sample.choices)
    )


def _is_part_of_number(case: AuditedReply) -> bool:
    """Whether a wrong number contains the right one, is contained in it, or differs in sign."""
    value, target = case.value or case.headline_reading.answer.value, case.sample.target
    if value is None or case.sample.choices or case.is_same_answer(value, target):
        return False
    if {case.headline_reading.score.outcome, case.secondary_reading.score.outcome} != {"incorrect"}:
        return False
    if parse_number(value) is None or parse_number(target) is None:
        return False
    shorter, longer = sorted(map(_digits_of, (value, target)), key=len)
    return longer.endswith(shorter) or (len(longer) > 2 and shorter in longer)


def _digits_of(number: str) -> str:
    """Return a number without its sign and its separators."""
    return number.strip().replace(",", "").lstrip("+-−")


CAUSES: tuple[AuditCause, ...] = (
    # Problems of the request.
    AuditCause("broken_by_server", lambda c: c.reply.error is None and c.reply.fault is not None),
    AuditCause("request_failed", lambda c: c.reply.error is not None),
    AuditCause("filtered", lambda c: c.reply.finish == FILTERED),
    AuditCause("refused", lambda c: c.reply.refused),
    AuditCause("error_as_text", lambda c: is_error_text(c.text), always=True),
    *(AuditCause(f"cut_by_{name}", _is_cut_by(name)) for name in CUT_BY),
    AuditCause("thinking_never_ended", _thinking_never_ended, always=True),
    AuditCause("reasoning_only", lambda c: _is_empty(c) and bool(c.reply.reasoning)),
    AuditCause("tool_call_only", lambda c: _is_empty(c) and bool(c.reply.tool_calls)),
    AuditCause("empty_cut", lambda c: _is_empty(c) and _is_cut_at_max_tokens(c)),
    AuditCause("empty", lambda c: _is_empty(c) and not _is_cut_by_other_limit(c)),
    AuditCause("loops", lambda c: (_is_cut_off(c) or _is_unread(c)) and loops(c.text)),
    AuditCause("cut_off", lambda c: _is_cut_off(c) and not _is_cut_by_other_limit(c)),
    AuditCause("at_cap", _is_at_cap),
    AuditCause("stop_string", lambda c: _is_broken_off(c) and bool(c.sampling.stop)),
    # The gold answer, the grade and the labels.
    AuditCause("reader_failed", lambda c: c.headline_reading.score.grader == READER_FAILED),
    AuditCause("gold_no_option", _gold_is_no_option, always=True),
    AuditCause(
        "gold_changed",
        lambda c: c.stored_target is not None and c.stored_target != c.sample.target,
        always=True,
    ),
    AuditCause(
        "labels_missing", lambda c: c.headline_reading.answer.reason == "labels_not_in_top_logprobs"
    ),
    AuditCause("label_tie", lambda c: c.headline_reading.answer.reason == "tie", always=True),
    AuditCause("outside_labels", lambda c: (c.reply.outside_mass or 0) > OUTSIDE, always=True),
    # The content of the reply.
    AuditCause("refuses", lambda c: _is_unread(c) and refuses(c.text)),
    AuditCause("does_not_know", lambda c: _is_unread(c) and gives_up(c.text)),
    AuditCause("no_option_fits", lambda c: _is_unread(c) and no_option_fits(c.text)),
    AuditCause("placeholder", lambda c: _is_unread(c) and leaves_placeholder(c.text)),
    AuditCause("template_tokens", lambda c: leaks_tokens(c.text)),
    AuditCause("prompt_echoed", _echoes_prompt),
    AuditCause("replayed_examples", lambda c: _has_sign(c, "replayed_examples")),
    AuditCause("echoed_options", lambda c: c.value is None and _has_sign(c, "echoed_options")),
    AuditCause("restated_question", _restates_question),
    AuditCause("runs_on", lambda c: _has_sign(c, "run_on") and not _has_sign(c, "order_decides")),
    AuditCause("order_decides", lambda c: _has_sign(c, "order_decides")),
    AuditCause(
        "denied", lambda c: c.value is None and not _has_reason(c, "ambiguous") and denies(c.text)
    ),
    AuditCause("several_answers", _names_several_answers),
    AuditCause("two_answers", lambda c: _has_sign(c, "two_answers")),
    AuditCause("outside_options", _is_outside_options),
    AuditCause("value_no_option", _number_is_no_option),
    AuditCause("hedged", lambda c: hedges(c.text), always=True),
    AuditCause("answer_in_reasoning", _answers_in_reasoning),
    AuditCause(
        "echoed_and_answered", lambda c: c.value is not None and _has_sign(c, "echoed_options")
    ),
    AuditCause("breaks_off", lambda c: _is_broken_off(c) and not c.sampling.stop),
    # The form of the answer.
    AuditCause("as_json", lambda c: bool(c.traits) and is_json(c.text)),
    *(AuditCause(name, _has_trait(name)) for name, _ in TRAITS),
    AuditCause("after_hashes", lambda c: SOLVED.search(c.text) is not None),
    AuditCause("option_text", _answers_in_words),
    AuditCause("other_language", _has_trait("other_language")),
    AuditCause("in_sentence", _has_trait("in_sentence")),
    AuditCause("plain_statement", _states_plainly),
    AuditCause(
        "place_for_label", lambda c: _is_unread(c) and names_a_place(c.text, len(c.sample.choices))
    ),
    AuditCause("other_marker", _has_trait("other_marker")),
    AuditCause("other_spelling", _has_trait("other_spelling")),
    AuditCause("more_than_answer", _has_trait("more_than_answer")),
    AuditCause("letter_of_word", _took_letter_of_word),
    AuditCause("letter_of_prose", _took_letter_of_prose),
    AuditCause("line_as_answer", _takes_line_as_answer),
    AuditCause("part_of_number", _is_part_of_number, always=True),
    AuditCause("left_to_judge", _is_left_to_judge, always=True),
    AuditCause("stale_score", lambda c: c.has_stale_score),
)
"""In the order in which they are reported; the first one that applies is the likeliest."""
ALWAYS = tuple(cause for cause in CAUSES if cause.always)
LAST_RESORT = ("one_reader_only", "no_answer", "other_reading")
"""The codes for replies that no rule explains."""
CODES: tuple[str, ...] = (*(cause.code for cause in CAUSES), *LAST_RESORT)
