"""Why a reply was not read, or not by everybody: the likely causes, each by a rule of its own.

A reply is suspect where something went wrong before it was read; where the headline's reader, or
the one beside it, finds nothing, or they do not find the same; where a published reader that looks
for the same form finds something else; where another reader of the exam finds a free answer right
that counts as wrong; or where the stored score is not today's. Only then its
causes are looked for, in the order of `CAUSES`: what came back, the gold answer, what the reply
says, the form of its answer. The first is the cause under which it is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from keju.answers.kinds import SOLVED
from keju.answers.numbers import number_of, numbers_in, plain_numerals
from keju.answers.options import labels_of_texts, names_any, resembles
from keju.answers.other_questions import HEADS
from keju.answers.robust import RobustReader
from keju.answers.segments import last_line, split_any_thinking
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.grading import EXACT, UNDECIDED
from keju.engine.job import READER_FAILED
from keju.engine.question_limits import CutCause, QuestionLimits, find_cut_cause
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
from keju.types import CUT, FILTERED, Reading, Reply, Sample, Sampling

END = 300
"""Characters of a last line in which a number is looked for."""
OUTSIDE = 0.5
"""Share of the probability on no label above which a label was chosen among the unlikely."""

Forms = dict[tuple[str, ...], str]
"""By reader, subset, answer and labels: the form in which a reader finds the answer."""


@dataclass(frozen=True)
class Case:
    """One reply as the audit sees it."""

    exam: Exam
    sampling: Sampling
    sample: Sample
    """With its options in the order in which they were shown."""
    reply: Reply
    """As the readers were given it."""
    readers: Sequence[Reader]
    """The headline's first."""
    readings: Sequence[Reading]
    stored: Sequence[Reading] = ()
    """What the journal says."""
    stored_target: str | None = None
    judged: bool = False
    """Whether a judge grades what no rule decides."""
    forms: Forms = field(default_factory=dict)
    """What is known already of the forms that readers find."""
    limits: QuestionLimits | None = None
    """The limits of each question, where there are any."""

    @property
    def text(self) -> str:
        """What the readers read."""
        return self.reply.text

    @property
    def own(self) -> Reading:
        """What the headline's reader made of it."""
        return self.readings[0]

    @cached_property
    def place(self) -> int:
        """The place of the exam's other reader, which stands beside the headline's."""
        names = [reader.name for reader in self.readers]
        return names.index(self.exam.beside) if self.exam.beside in names else 0

    @property
    def beside(self) -> Reading:
        """What the reader beside it made of it."""
        return self.readings[self.place]

    @property
    def value(self) -> str | None:
        """The answer that the reply states, as far as one can tell."""
        return self.beside.answer.value

    def same(self, first: str | None, second: str | None) -> bool:
        """Whether two answers are one: ``(B)`` is ``B``."""
        if first is None or second is None or first == second:
            return first == second
        reader = self.readers[self.place]
        if first.strip("() .").casefold() == second.strip("() .").casefold():
            return True
        if not isinstance(reader, RobustReader):
            return False
        return reader.alike(first, second, self.sample) or reader.alike(second, first, self.sample)

    # --- readers that fail ---

    @cached_property
    def traits(self) -> tuple[str, ...]:
        """The traits of the answer's form that keep readers from finding it.

        The headline's reader, or else a published one that finds it in the words that the protocol
        asks for.
        """
        if self.value is None:
            return ()
        first = self.readers[0]
        if self.guessed_right or not self.same(self.own.answer.value, self.value):
            form = self._form_of(first) or "{}"
            return form_traits(self.text, self._written, form, self._finds(first))
        if self.place == 0 or not first.marked:
            return ()
        form = ""
        for place, reader in enumerate(self.readers):
            if place in (0, self.place) or not reader.marked:
                continue
            if self.same(self.readings[place].answer.value, self.value):
                continue
            form = form or self._form_of(first)
            if form.partition("{}")[0].rstrip("( ").casefold() not in self.text.casefold():
                break  # the answer stands in other words, which these two understand
            if self._finds_form(reader, form):
                trait = label_trait(self.text, self._finds(reader))
                if trait:
                    return (trait,)
        return ()

    def _finds(self, reader: Reader) -> Callable[[str], bool]:
        def finds(text: str) -> bool:
            answer = reader.read(text, self.sample)
            if self.guessed_right and answer.tier == "fallback":
                return False
            return self.same(answer.value, self.value)

        return finds

    @cached_property
    def guessed_right(self) -> bool:
        """Whether the headline's reader found no marker, and guessed what the reply states."""
        own = self.own.answer
        return (
            self.place > 0
            and own.tier == "fallback"
            and own.value is not None
            and self.same(own.value, self.value)
        )

    @property
    def wording(self) -> str:
        """The words before the answer where the headline's reader guessed; empty elsewhere."""
        return wording_of(self.text) if self.guessed_right else ""

    def _form_of(self, reader: Reader) -> str:
        """The form in which a reader finds the value, as a template: the strictest, or none."""
        return self._known(reader.name, lambda: self._strictest_form(reader))

    def _strictest_form(self, reader: Reader) -> str:
        tiers: dict[str, str] = {}
        for template in OWN_FORMS:
            for form in (template, template.replace("{}", "({})")):
                answer = reader.read(form.format(self._written), self.sample)
                if self.same(answer.value, self.value):
                    tiers.setdefault(answer.tier, form)
        return tiers.get("strict") or tiers.get("tolerant") or ""

    def _finds_form(self, reader: Reader, form: str) -> bool:
        """Whether a reader finds the value in a form, and does not guess it."""
        answer = reader.read(form.format(self._written), self.sample)
        found = answer.tier != "fallback" and self.same(answer.value, self.value)
        return bool(self._known(f"{reader.name} {form}", lambda: "yes" if found else ""))

    def _known(self, name: str, find: Callable[[], str]) -> str:
        key = (name, self.sample.subset, self._written, self.sample.labels)
        if (form := self.forms.get(key)) is None:
            form = self.forms[key] = find()
        return form

    @property
    def _written(self) -> str:
        """The value as the exam would have it written."""
        value = self.value or ""
        return self.sample.target if self.same(value, self.sample.target) else value

    # --- what is suspect ---

    @property
    def suspect(self) -> bool:
        """Whether the reply is worth a look at all."""
        own, beside = self.own, self.beside
        if own.answer.value is None or beside.answer.value is None:
            return True
        outcomes = {own.score.outcome, beside.score.outcome}
        if not outcomes <= {"correct", "incorrect", "unlabelled", "ungraded"}:
            return True
        if not self.same(own.answer.value, beside.answer.value):
            return True
        if not {"order_decides", "replayed_examples"}.isdisjoint(beside.answer.signs):
            return True
        if self.right_by_another:
            return True
        if self.restored or any(each.applies(self) for each in ALWAYS):
            return True
        return not self.guessed_right and bool(self.traits)

    @property
    def right_by_another(self) -> bool:
        """Whether a free answer counts as wrong that another reader of the exam finds right.

        Of ``2 + 2 = 4`` one reader takes the whole line, another the number. Letters are not
        looked at: a reader that guesses one is often right by chance.
        """
        if self.sample.choices or self.own.score.outcome != "incorrect":
            return False
        return any(
            reading.score.outcome == "correct" and reading.reader in self.exam.readers
            for reading in self.readings
        )

    @cached_property
    def restored(self) -> bool:
        """Whether a stored score is not what its reader gives today."""
        now = {reading.reader: reading for reading in self.readings}
        return any(
            stored.reader in now
            and stored.score.grader == now[stored.reader].score.grader
            and (
                stored.score.value != now[stored.reader].score.value
                or stored.score.outcome != now[stored.reader].score.outcome
                or not self.same(stored.answer.value, now[stored.reader].answer.value)
            )
            for stored in self.stored
        )


def readers_of_form(exam: Exam, readers: Sequence[Reader]) -> list[str]:
    """The names of the readers that find a right answer in the form that the protocol asks for.

    That is the strictest form in which the protocol's own reader finds one.
    """
    own = exam.readers.get(exam.protocol.reader, readers[0])
    sample = next((sample for sample in exam.samples if sample.target), None)
    tiers: dict[str, str] = {}
    for template in OWN_FORMS if sample else ():
        for form in (template, template.replace("{}", "({})")):
            if (tier := _tier(own, form, sample)) is not None:
                tiers.setdefault(tier, form)
    form = tiers.get("strict") or tiers.get("tolerant") or ""
    found = (reader for reader in readers if form and _tier(reader, form, sample) is not None)
    return [reader.name for reader in found]


def _tier(reader: Reader, form: str, sample: Sample | None) -> str | None:
    """How far a reader has to go to find the target of a sample in a form; None if it does not."""
    if sample is None:
        return None
    bare = sample.target.strip("()") if "({})" in form else sample.target
    try:
        answer = reader.read(form.format(bare), sample)
        found = answer.value is not None and reader.matches(answer.value, sample)
    except Exception:  # a reader with a bug reads nothing; the replies it fails on are faults
        return None
    return answer.tier if found and answer.tier != "fallback" else None


class Cause(NamedTuple):
    """One cause: its code, and its rule."""

    code: str
    applies: Callable[[Case], bool]
    always: bool = False
    """Whether it makes a reply suspect by itself."""


def causes_of(case: Case) -> tuple[str, ...]:
    """The causes of a suspect reply, the likeliest first; never none."""
    found = tuple(cause.code for cause in CAUSES if cause.applies(case))
    if found and found != ("stale_score",):
        return found
    if case.value is None:
        left = "one_reader_only" if case.own.answer.value is not None else "no_answer"
    else:
        left = "other_reading"
    return (left, *found)


# --- what came back ----------------------------------------------------------------------------


def _thinking_never_ended(case: Case) -> bool:
    reply = case.reply
    if not case.text.strip():
        return bool(reply.reasoning) and (bool(reply.raw) or _at_max_tokens(case))
    return ("<" in case.text or "[" in case.text or "◁" in case.text) and split_any_thinking(
        case.text
    ).unclosed


def _empty(case: Case) -> bool:
    return not case.text.strip() and case.reply.label_logprobs is None and case.reply.fault is None


def _cut_off(case: Case) -> bool:
    return "truncated" in (case.own.score.outcome, case.beside.score.outcome)


CUT_BY: tuple[CutCause, ...] = ("time", "tokens", "cost", "turns", "context")
"""What cuts a reply apart from its own limit of tokens."""


def _cut_by(cause: CutCause) -> Callable[[Case], bool]:
    return lambda case: find_cut_cause(case.reply, case.limits) == cause


def _at_max_tokens(case: Case) -> bool:
    return find_cut_cause(case.reply, case.limits) == "max_tokens"


def _is_cut(case: Case) -> bool:
    """Whether another limit than that of a reply's tokens has cut it."""
    return find_cut_cause(case.reply, case.limits) in CUT_BY


def _at_cap(case: Case) -> bool:
    cap, reply = case.sampling.max_tokens, case.reply
    return bool(cap) and reply.usage.output >= (cap or 0) and reply.finish != CUT and _unread(case)


def _broken_off(case: Case) -> bool:
    return case.reply.finish != CUT and _unread(case) and bool(case.text) and breaks_off(case.text)


def _unread(case: Case) -> bool:
    """Whether nothing can be read in a text that did come."""
    return case.value is None and bool(case.text.strip()) and case.reply.fault is None


# --- the gold answer and the labels ------------------------------------------------------------


def _left_to_judge(case: Case) -> bool:
    score = case.own.score
    if case.judged:
        return False
    waits = score.outcome == "ungraded" and score.grader != READER_FAILED
    return waits or (
        case.exam.open_answers
        and score.outcome == "incorrect"
        and score.grader in (EXACT, UNDECIDED)
    )


def _gold_is_no_option(case: Case) -> bool:
    sample, reader = case.sample, case.readers[case.place]
    if not sample.choices or not sample.target or case.exam.open_answers:
        return False
    return not any(reader.matches(label, sample) for label in sample.labels)


# --- what the reply says -----------------------------------------------------------------------


def _signs(case: Case, *signs: str) -> bool:
    return not set(signs).isdisjoint(case.beside.answer.signs)


def _echoes_prompt(case: Case) -> bool:
    head = case.text.lstrip()[: 2 * HEADS]
    if len(head) < HEADS or case.sample.text.lstrip().startswith(head[:HEADS]):
        return False
    prompt = case.exam.render(case.sample)
    shown = (*(message.content for message in prompt.messages), prompt.tail)
    return any(each.lstrip().startswith(head) for each in shown)


def _restates(case: Case) -> bool:
    head = case.sample.text.strip()[: 2 * HEADS]
    return len(head) >= HEADS // 2 and head in case.text


def _reason(case: Case, *reasons: str) -> bool:
    return case.beside.answer.value is None and case.beside.answer.reason in reasons


def _several(case: Case) -> bool:
    if _reason(case, "ambiguous"):
        return True
    return _unread(case) and names_several(case.text, case.sample.labels)


def _outside_options(case: Case) -> bool:
    if _reason(case, "invalid_label"):
        return True
    label, labels = case.own.answer.value or "", case.sample.labels
    strange = bool(labels) and len(label) == 1 and label.isupper() and label not in labels
    return strange and lone_label(case.text, label)


def _value_no_option(case: Case) -> bool:
    """Whether the reply ends with a number where options are numbers, and none is that one."""
    if not _unread(case) or not any(number_of(choice) for choice in case.sample.choices):
        return False
    end = last_line(case.text)[-END:]
    return any(number.clear for number in numbers_in(plain_numerals(end)))


def _answer_in_reasoning(case: Case) -> bool:
    thoughts = case.reply.reasoning
    return _unread(case) and bool(thoughts) and announces(thoughts[-2000:])


def _guessed(case: Case) -> str:
    """The letter that the headline's reader took where the reply does not state it; empty if none.

    Also one that it found and could not use, since the question has no such label.
    """
    answer = case.own.answer
    if answer.value is not None and case.same(answer.value, case.value):
        return ""
    if answer.value is None:
        unused = answer.reason == "invalid_label" and case.beside.answer.reason != answer.reason
        return next((c for c in reversed(case.text) if c.isupper()), "") if unused else ""
    label = answer.value.strip("()")
    return label if len(label) == 1 and label.isalpha() and case.sample.choices else ""


def _letter_of_word(case: Case) -> bool:
    letter = _guessed(case)
    return bool(letter) and not lone_letter(case.text, letter)


def _letter_of_prose(case: Case) -> bool:
    letter = _guessed(case)
    if not letter or not lone_letter(case.text, letter):
        return False
    return case.own.answer.tier == "fallback" or not lone_label(case.text, letter)


def _first_line(case: Case) -> bool:
    """Whether the headline's reader took a line or the whole reply, which is no answer."""
    value = case.own.answer.value
    return (
        value is not None
        and not case.same(value, case.value)
        and len(value) > 1
        and value in (case.text.strip(), case.text.strip().casefold())
    ) or (value is not None and case.own.answer.tier == "fallback" and len(value) > 12)


# --- the form of the answer --------------------------------------------------------------------


def _trait(name: str) -> Callable[[Case], bool]:
    return lambda case: name in case.traits


def _plainly(case: Case) -> bool:
    """Whether the answer is stated, and by no announcement."""
    if case.value is None or case.exam.open_answers:
        return False
    return bool(case.text) and not announces(case.text)


def _in_words(case: Case) -> bool:
    value = case.value
    if value is None:
        return _unread(case) and bool(case.sample.choices) and _near_option(case)
    if not case.sample.choices or not says_in_words(case.text, value):
        return False
    return value in labels_of_texts(case.text[-TAIL:], case.sample.choices)


def _near_option(case: Case) -> bool:
    """Whether the end of the reply names an option, or resembles one."""
    end = case.text.strip().rpartition("\n")[2][-200:]
    return names_any(end, case.sample.choices) or (
        len(end) < 100 and resembles(end, case.sample.choices)
    )


def _part_of_number(case: Case) -> bool:
    """Whether a wrong number ends with the right one, or begins with it, or has another sign."""
    value, target = case.value or case.own.answer.value, case.sample.target
    if value is None or case.sample.choices or case.same(value, target):
        return False
    if {case.own.score.outcome, case.beside.score.outcome} != {"incorrect"}:
        return False
    if number_of(value) is None or number_of(target) is None:
        return False
    first, second = sorted(
        (text.strip().replace(",", "").lstrip("+-−") for text in (value, target)), key=len
    )
    return second.endswith(first) or (len(second) > 2 and first in second)


CAUSES: tuple[Cause, ...] = (
    # What came back.
    Cause("broken_by_server", lambda c: c.reply.error is None and c.reply.fault is not None),
    Cause("request_failed", lambda c: c.reply.error is not None),
    Cause("filtered", lambda c: c.reply.finish == FILTERED),
    Cause("refused", lambda c: c.reply.refused),
    Cause("error_as_text", lambda c: is_error_text(c.text), always=True),
    *(Cause(f"cut_by_{name}", _cut_by(name)) for name in CUT_BY),
    Cause("thinking_never_ended", _thinking_never_ended, always=True),
    Cause("reasoning_only", lambda c: _empty(c) and bool(c.reply.reasoning)),
    Cause("tool_call_only", lambda c: _empty(c) and bool(c.reply.tool_calls)),
    Cause("empty_cut", lambda c: _empty(c) and _at_max_tokens(c)),
    Cause("empty", lambda c: _empty(c) and not _is_cut(c)),
    Cause("loops", lambda c: (_cut_off(c) or _unread(c)) and loops(c.text)),
    Cause("cut_off", lambda c: _cut_off(c) and not _is_cut(c)),
    Cause("at_cap", _at_cap),
    Cause("stop_string", lambda c: _broken_off(c) and bool(c.sampling.stop)),
    # The gold answer, the grade and the labels.
    Cause("reader_failed", lambda c: c.own.score.grader == READER_FAILED),
    Cause("gold_no_option", _gold_is_no_option, always=True),
    Cause(
        "gold_changed",
        lambda c: c.stored_target is not None and c.stored_target != c.sample.target,
        always=True,
    ),
    Cause("labels_missing", lambda c: c.own.answer.reason == "labels_not_in_top_logprobs"),
    Cause("label_tie", lambda c: c.own.answer.reason == "tie", always=True),
    Cause("outside_labels", lambda c: (c.reply.outside_mass or 0) > OUTSIDE, always=True),
    # What the reply says.
    Cause("refuses", lambda c: _unread(c) and refuses(c.text)),
    Cause("does_not_know", lambda c: _unread(c) and gives_up(c.text)),
    Cause("no_option_fits", lambda c: _unread(c) and no_option_fits(c.text)),
    Cause("placeholder", lambda c: _unread(c) and leaves_placeholder(c.text)),
    Cause("template_tokens", lambda c: leaks_tokens(c.text)),
    Cause("prompt_echoed", _echoes_prompt),
    Cause("replayed_examples", lambda c: _signs(c, "replayed_examples")),
    Cause("echoed_options", lambda c: c.value is None and _signs(c, "echoed_options")),
    Cause("restated_question", _restates),
    Cause("runs_on", lambda c: _signs(c, "run_on") and not _signs(c, "order_decides")),
    Cause("order_decides", lambda c: _signs(c, "order_decides")),
    Cause("denied", lambda c: c.value is None and not _reason(c, "ambiguous") and denies(c.text)),
    Cause("several_answers", _several),
    Cause("two_answers", lambda c: _signs(c, "two_answers")),
    Cause("outside_options", _outside_options),
    Cause("value_no_option", _value_no_option),
    Cause("hedged", lambda c: hedges(c.text), always=True),
    Cause("answer_in_reasoning", _answer_in_reasoning),
    Cause("echoed_and_answered", lambda c: c.value is not None and _signs(c, "echoed_options")),
    Cause("breaks_off", lambda c: _broken_off(c) and not c.sampling.stop),
    # The form of its answer.
    Cause("as_json", lambda c: bool(c.traits) and is_json(c.text)),
    *(Cause(name, _trait(name)) for name, _ in TRAITS),
    Cause("after_hashes", lambda c: SOLVED.search(c.text) is not None),
    Cause("option_text", _in_words),
    Cause("other_language", _trait("other_language")),
    Cause("in_sentence", _trait("in_sentence")),
    Cause("plain_statement", _plainly),
    Cause("place_for_label", lambda c: _unread(c) and names_a_place(c.text, len(c.sample.choices))),
    Cause("other_marker", _trait("other_marker")),
    Cause("other_spelling", _trait("other_spelling")),
    Cause("more_than_answer", _trait("more_than_answer")),
    Cause("letter_of_word", _letter_of_word),
    Cause("letter_of_prose", _letter_of_prose),
    Cause("line_as_answer", _first_line),
    Cause("part_of_number", _part_of_number, always=True),
    Cause("left_to_judge", _left_to_judge, always=True),
    Cause("stale_score", lambda c: c.restored),
)
"""In the order in which they are told; the first that applies is the likeliest."""
ALWAYS = tuple(cause for cause in CAUSES if cause.always)
LAST_RESORT = ("one_reader_only", "no_answer", "other_reading")
"""Codes of replies for which no rule has an explanation."""
CODES: tuple[str, ...] = (*(cause.code for cause in CAUSES), *LAST_RESORT)
