"""Conclusions in the last sentences of a reply to a question without options.

``It is invalid.``, ``So he did not cause it.``, ``So I have ten vegetables.``, ``所以一共有10只。``
A denied phrase counts as the opposite value. Suppositions, questions and open statements do not
count.

Sources of the rules: Llama-3.2-3B-Instruct (half of its BBH replies), code-davinci-002,
hand-written replies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.numbers import NUMBER_WORDS, find_numbers, plain_numerals
from keju.answers.phrases import load_pattern, load_phrase
from keju.answers.segments import NO_ANSWER, AnswerStatement
from keju.answers.sentences import (
    AROUND,
    BEGINS_CONCLUSION,
    BRIEF,
    ENDED,
    SHORT,
    UNDETERMINED,
    clauses,
    concludes,
    find_last_sentences,
    is_about_part,
    remove_stub,
)

Phrases = Sequence[tuple[re.Pattern[str], str, str]]
"""Patterns that express a value without its word, the value, and the value if they are denied. The
last value is empty if the pattern itself contains the denial."""

LONGEST_EXPRESSION = 16
"""The longest sentence, in characters, that may repeat the question by chance."""

# --- words of a verdict ------------------------------------------------------------------------

_LEADS = load_pattern("verdict_lead")
# `"not ( True ) or False"`, "`True and False`": an expression of several words in quotes.
_QUOTED = lazy_pattern(r"(?<!\w)\"[^\"\n]* [^\"\n]*\"|`[^`\n]* [^`\n]*`|“[^”\n]* [^”\n]*”")
_DENIES = load_pattern("verdict_denial")
_UNSETTLED = load_pattern("unsettled")
_GOES_ON = load_pattern("verdict_goes_on")
_SUPPOSED = load_pattern("supposed")
_HEDGED = load_pattern("hedged")


def find_last_verdict(
    text: str,
    word: re.Pattern[str],
    values: Mapping[str, str],
    at: Callable[[str, int], re.Match[str] | None],
    phrases: Phrases = (),
    question: str = "",
) -> AnswerStatement:
    """Return the verdict of the last sentence that has one: ``It is invalid.``, ``→ **No**``.

    `at` tells whether a word is a verdict at its position. `phrases` express a verdict without its
    word. Suppositions are skipped. Of the earlier sentences only conclusions count.
    """
    if text.rstrip("*_ \n").endswith((":", "：")):
        return NO_ANSWER  # the announced text is missing
    text = remove_stub(text).rstrip()
    words = _VerdictWords(word, values, at, phrases, question, _find_question_names(question))
    ended = ENDED.search(text) is not None
    sentences = find_last_sentences(text, 12)
    is_concluded = any(map(BEGINS_CONCLUSION.match, sentences[:1]))
    for number, original_sentence in enumerate(sentences):
        if len(original_sentence) > 3 * SHORT or (number and not ended):
            break
        if _leaves_open(original_sentence):
            return NO_ANSWER
        may_count = number + is_concluded < 2 or concludes(original_sentence)
        if not may_count or _says_nothing(original_sentence, question):
            continue
        before = sentences[1:4] if number == 0 else ()
        statement = _read_sentence(original_sentence, before, words, text, ended=ended)
        if statement is not None:
            return statement
    return _read_sentences_about_name(sentences, words.names, phrases)


class _VerdictWords(NamedTuple):
    """The words and phrases of verdicts, and the question."""

    word: re.Pattern[str]
    values: Mapping[str, str]
    at: Callable[[str, int], re.Match[str] | None]
    phrases: Phrases
    question: str
    names: set[str]
    """The names in the question."""

    def has_one_value(self, text: str) -> bool:
        """Whether all verdicts of a brief reply have the same value."""
        verdict_values = {self.values[match[1].lower()] for match in self.word.finditer(text)}
        return len(verdict_values) == 1 and len(text) <= BRIEF

    def find_all(self, sentence: str) -> list[re.Match[str]]:
        """Return the verdicts of a sentence that are separate words."""
        return [
            match
            for match in self.word.finditer(sentence)
            if _is_separate_word(sentence, match) and self.at(sentence, match.start())
        ]


def _read_sentence(
    original_sentence: str, before: Sequence[str], words: _VerdictWords, text: str, *, ended: bool
) -> AnswerStatement | None:
    """Return the verdict of one sentence, or None if an earlier sentence may have one.

    A conclusion in one of the sentences `before` takes precedence over a phrase without one.
    """
    sentence = _remove_expressions(original_sentence, words.question)
    hedged = _HEDGED.search(sentence)
    verdict_matches = words.find_all(sentence)
    statement = (
        _choose_verdict(sentence, verdict_matches, words.values) if verdict_matches else NO_ANSWER
    )
    if statement.value is None and _is_about(sentence, words.names):
        certain_part = sentence[: hedged.start()] if hedged else sentence
        value = _find_phrase_value(_REASON.split(certain_part)[0], words.phrases, ended=ended)
        if value and before and not concludes(original_sentence):
            value = _find_concluded_phrase(before, words) or value
        if value:
            return AnswerStatement(value)
    # a possible verdict counts if the reply contains no other
    counts = verdict_matches and (not hedged or words.has_one_value(text))
    return statement if counts else None


def _leaves_open(sentence: str) -> bool:
    """Whether a sentence says that no answer is possible, without a conclusion at its end."""
    return bool(UNDETERMINED.search(sentence)) and not concludes(sentence.rpartition(",")[2])


def _says_nothing(sentence: str, question: str) -> bool:
    """Whether a sentence asks, supposes, is about a part, or repeats the question."""
    if sentence.endswith(("?", "？")) or _SUPPOSED.search(sentence) or is_about_part(sentence):
        return True
    return len(sentence) > LONGEST_EXPRESSION and sentence in question


def _is_about(sentence: str, names: set[str]) -> bool:
    """Whether a sentence contains a name of the question, if there is one."""
    return not names or any(name in sentence for name in names)


def _find_concluded_phrase(sentences: Sequence[str], words: _VerdictWords) -> str | None:
    """Return the value of a conclusion before the last sentence: ``So he did not cause it.``"""
    for original_sentence in sentences:
        if (
            concludes(original_sentence)
            and _is_about(original_sentence, words.names)
            and not _HEDGED.search(original_sentence)
        ):
            sentence = _REASON.split(_remove_expressions(original_sentence, words.question))[0]
            if value := _find_phrase_value(sentence, words.phrases, ended=True):
                return value
    return None


def _remove_expressions(sentence: str, question: str) -> str:
    """Return a sentence without quoted expressions and the expression of the question."""
    if '"' in sentence or "`" in sentence or "“" in sentence:
        sentence = _QUOTED.sub("…", sentence)
    question_expression = question.strip().removesuffix(" is")
    if len(question_expression) > LONGEST_EXPRESSION and question_expression in sentence:
        sentence = sentence.replace(question_expression, "…")
    return sentence


def _choose_verdict(
    sentence: str, verdict_matches: Sequence[re.Match[str]], values: Mapping[str, str]
) -> AnswerStatement:
    """Return the verdict at the end of a sentence, or the one that it concludes.

    A verdict that is only a contrast does not count: ``Yes, not No``.
    """
    if len(verdict_matches) > 1 and _SET_AGAINST.fullmatch(
        sentence, verdict_matches[-2].end(), verdict_matches[-1].start()
    ):
        verdict_matches = verdict_matches[:-1]
    last_match = verdict_matches[-1]
    if _contradict(sentence, verdict_matches, values):
        return NO_ANSWER
    before = sentence[max(0, last_match.start() - 40) : last_match.start()]
    clause = before[max(map(before.rfind, ",，:：;→")) + 1 :]
    after = sentence[last_match.end() :].strip(AROUND)
    is_end = not after or _GOES_ON.match(sentence, last_match.end())
    if not _LEADS.search(before) or _DENIES.search(clause) or _UNSETTLED.search(after):
        return NO_ANSWER
    if _BUT_NOT.search(sentence, last_match.end()):
        return NO_ANSWER
    is_conclusion = is_end or concludes(before)
    return AnswerStatement(values[last_match[1].lower()]) if is_conclusion else NO_ANSWER


def _contradict(
    sentence: str, verdict_matches: Sequence[re.Match[str]], values: Mapping[str, str]
) -> bool:
    """Whether a sentence has different verdicts, and does not conclude the last of them."""
    if len({values[match[1].lower()] for match in verdict_matches}) < 2:
        return False
    between = sentence[verdict_matches[-2].end() : verdict_matches[-1].start()]
    return not (concludes(between) or _EVALUATES.search(between))


# `", not "`, ` rather than `: between a verdict and a contrasting one.
_SET_AGAINST = lazy_pattern(
    r"[\W_]*\b(?:and not|not|rather than|instead of)\b[\W_]*", re.IGNORECASE
)
# `, because`, ` since`: a reason follows, not a verdict.
_REASON = lazy_pattern(r",? (?:because(?! of)|since)\b|, as\b|因为|由于", re.IGNORECASE)
# ` → `, ` = `, ` evaluates to `: between an expression and its value.
_EVALUATES = lazy_pattern(r"→|=|\bis\s[*_`\"]*\Z|\bto\s[*_`\"]*\Z")


def _is_separate_word(sentence: str, match: re.Match[str]) -> bool:
    """Whether no letter or digit touches a match."""
    before, after = sentence[match.start() - 1 : match.start()], sentence[match.end() :][:1]
    return not (before.isalnum() and before.isascii()) and not (after.isalnum() and after.isascii())


# --- verdicts in other words -------------------------------------------------------------------

_NEGATION = load_pattern("phrase_negation")
# ` is False`: the denial after a phrase, `Amy tells the truth is False`.
_IS_FALSE = lazy_pattern(
    r"[\s\"'”’]+(?:is|was) (?:false|not true|untrue|incorrect)\b", re.IGNORECASE
)
_BUT_NOT = load_pattern("but_not_clause")
# `whether `, `if `, before a question or supposition.
_ASKED = lazy_pattern(r"\b(?:whether|if|when|neither|nor|or)\b[^,]*\Z|是否|或", re.IGNORECASE)
# `Bob says `, before reported speech: `Bob says Amy lies`.
_SAID_BY = lazy_pattern(r"\b(?:says?|said|claims?|claimed|states?)\b(?: that)?(?: [A-Z]\w+)?\s?\Z")
_CONDITION = load_pattern("condition")
_DOUBTFUL = load_pattern("doubtful_before_phrase")
# `Although it was `: the main clause follows.
_CONCESSION = lazy_pattern(
    r"\b(?:while|although|though|despite|whereas)\b[^,]*\Z|虽然[^,，]*\Z", re.IGNORECASE
)
# ` and you `: another clause begins.
_NEW_SUBJECT = lazy_pattern(r"\b(?:and|so) (?:you|he|she|it|we|they|so|therefore|thus)\b")
# `, rather than Ann, `: before a phrase, which is then about something else.
_REPLACED = lazy_pattern(r"\b(?:rather than|instead of)\b|而不是|而非", re.IGNORECASE)
# ` by the heater, not by Ann`, ` would be a stretch`: after a phrase.
_REPLACED_AFTER = lazy_pattern(
    r"[^.;:]{0,60},? (?:not|rather than|instead of) (?:by|because of|due to)\b"
    r"|[^.,;:]{0,30}\bwould be (?:a stretch|wrong|an? \w+ mistake|a mistake|going too far)\b",
    re.IGNORECASE,
)


# `deny`, `hard`, `no one`: two of them before a phrase may cancel each other.
_TURNS = lazy_pattern(
    r"\b(?:not(?! only)|never|cannot|no one|nobody|none|few|hardly|den(?:y|ies|ied)|dispute|doubt"
    r"|hard|difficult|impossible|unlikely|refuse|reluctant|hesitate|without|wrong|false)\b|n[’']t\b",
    re.IGNORECASE,
)


# `(not putting oil in the machine)`, ` and not`: parts of a clause.
_PARTS = lazy_pattern(r"[,;:，；：]|\([^)]*\)|\band\b")


def _find_phrase_value(sentence: str, phrases: Phrases, *, ended: bool) -> str | None:
    """Return the value of the last phrase in a sentence; of two with the same end the longer one.

    If the reply was cut off, the sentence must end with the phrase.
    """
    candidates = []
    for pattern, affirmed, denied in phrases:
        for match in pattern.finditer(sentence):
            before = sentence[max(0, match.start() - 60) : match.start()]
            if _is_reported(sentence, match, before):
                continue
            value = affirmed
            if len(_TURNS.findall(_PARTS.split(before)[-1])) > 1:
                value = ""  # `hard to see how anyone could deny that`
            elif denied and _is_denied(sentence, match, before):
                value = denied
            elif _is_doubtful(sentence, match, before):
                value = ""
            candidates.append((match.end(), -match.start(), value))
    if not candidates:
        return None
    end, _, value = max(candidates)
    return value if ended or end == len(sentence) else None


def _is_reported(sentence: str, phrase: re.Match[str], before: str) -> bool:
    """Whether a phrase is a question, a condition or the words of someone else."""
    if _ASKED.search(before) or _SAID_BY.search(sentence, 0, phrase.start()):
        return True
    return _CONDITION.match(sentence, phrase.end()) is not None


def _is_denied(sentence: str, phrase: re.Match[str], before: str) -> bool:
    """Whether the words before or after a phrase deny it."""
    return bool(
        _NEGATION.search(before)
        or _IS_FALSE.match(sentence, phrase.end())
        or _BUT_NOT.search(sentence, phrase.end())
    )


def _is_doubtful(sentence: str, phrase: re.Match[str], before: str) -> bool:
    """Whether other words may turn the meaning of a phrase: ``Few people would say that``.

    A phrase that contains a denial itself is only checked for its circumstances.
    """
    if _CONCESSION.search(before) or _REPLACED.search(sentence, 0, phrase.start()):
        return True
    if _REPLACED_AFTER.match(sentence, phrase.end()):
        return True
    clause = before[max(map(before.rfind, ",;:—，；：")) + 1 :]
    clause = _NEW_SUBJECT.split(clause)[-1]
    return _DOUBTFUL.search(clause) is not None


def find_phrase_value(segment: str, phrases: Phrases, question: str) -> str | None:
    """Return the value of a phrase in an announced sentence: ``Amy tells the truth.``"""
    first_sentence = next(clauses(segment)).strip()
    if (
        len(first_sentence) > SHORT
        or _REPORTS.search(first_sentence)
        or _DENIED.search(first_sentence)
    ):
        return None
    names = _find_question_names(question)
    if names and not any(name in first_sentence for name in names):
        return None
    return _find_phrase_value(first_sentence, phrases, ended=True)


# `Amy says that`, `if`: reported or supposed statements are not verdicts.
_REPORTS = lazy_pattern(r"\b(?:says?|said|claims?|if|whether|when)\b|[?？]", re.IGNORECASE)
_DENIED = load_pattern("denied")
# A name in the middle of a sentence.
_NAME = lazy_pattern(r"(?<=[a-z] )[A-Z][a-z]+")


def _find_question_names(question: str) -> set[str]:
    """Return the names in the last sentence of a question."""
    end = question.find("\nOptions:")
    question = question[:end] if end >= 0 else question
    return set(_NAME.findall(question[question.rfind(".", 0, len(question) - 2) :]))


def _read_sentences_about_name(
    sentences: Sequence[str], names: set[str], phrases: Phrases
) -> AnswerStatement:
    """Return the common value of all sentences that begin with the one name: ``Amy is lying.``"""
    name = next(iter(names)) if len(names) == 1 else ""
    phrase_values = {
        _find_phrase_value(sentence, phrases, ended=True)
        for sentence in sentences
        if name and sentence.startswith(f"{name} ") and not _REPORTS.search(sentence)
    }
    value = phrase_values.pop() if len(phrase_values) == 1 else None
    return AnswerStatement(value) if value else NO_ANSWER


# --- numbers -----------------------------------------------------------------------------------

_GUESSES = load_phrase("count_guess")
_GUESS = lazy_pattern(_GUESSES, re.IGNORECASE)
_COUNTS = load_pattern("count_cue")
_COUNTS_OR_EQUALS = lazy_pattern(rf"{load_phrase('count_cue')}|=", re.IGNORECASE)
_NUMBER_WORD = lazy_pattern(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
# Between a Chinese character and the digits next to it.
_NEXT_TO_DIGITS = lazy_pattern(r"(?<=[\u4e00-\u9fff])(?=[-\d])|(?<=\d)(?=[\u4e00-\u9fff])")
# `合计: 7`, `等于 2,416`: a number that ends a reply without a full stop; not `There are 24`.
_ENDS_WITH_NUMBER = lazy_pattern(r"[:：=是为有于得共]\s*[*_]*-?\d[\d,]*[*_]*\Z")
# `The final result is 24, and`, up to the number, even if other numbers follow.
_FINAL_RESULT = lazy_pattern(
    r"\bfinal (?:result|value|count|total|sum) (?:is|=):? ?", re.IGNORECASE
)
_IN_TOTAL = load_pattern("in_total")


def find_last_count(text: str) -> str | None:
    """Return the one number after the last concluding word: ``so I have ten vegetables``."""
    if text.rstrip("*_ \n").endswith((":", "：")):
        return None
    for number, sentence in enumerate(find_last_sentences(remove_stub(text), 2)):
        if not (ENDED.search(text[-8:].rstrip()) or _ENDS_WITH_NUMBER.search(sentence)):
            return None  # it breaks off
        if sentence.endswith(("?", "？")) or is_about_part(sentence):
            continue
        plain = _NEXT_TO_DIGITS.sub(" ", plain_numerals(sentence))
        if plain.count("(") > plain.count(")"):
            return None  # it breaks off inside an expression
        cues = _COUNTS if number else _COUNTS_OR_EQUALS
        value = _find_final_result(plain) or _find_count(plain, cues)
        if value is not None:
            return value or None
    return None


def _find_final_result(plain: str) -> str | None:
    """Return the number after ``the final result is``, or the one of ``12 in total``."""
    if final := _FINAL_RESULT.search(plain):
        number = next(iter(find_numbers(plain[final.end() :])), None)
        if number and number.start < 3 and number.clear and not number.percent:
            return number.plain
    total = _IN_TOTAL.search(plain)
    return str(NUMBER_WORDS.get(total[1].lower(), total[1])) if total else None


def _find_count(plain: str, cues: re.Pattern[str]) -> str | None:
    """Return the number after the last cue with a number; empty if unclear, None without one."""
    for cue in reversed(list(cues.finditer(plain))):
        value = _find_number_after(plain if _GUESS.fullmatch(cue[0]) else plain[cue.end() :])
        if value is not None:
            return value
    return None


# `, not -48`, `, rather than 7`: a contrast between two numbers.
_NOT_NUMBER = lazy_pattern(r",? (?:not|rather than|instead of) (?=-?\d)", re.IGNORECASE)


_MOST_REPETITIONS = 2
"""The most repetitions of a number in a conclusion. A list contains more numbers."""


def _find_number_after(text: str) -> str | None:
    """Return the only number in the text after a cue; empty if unclear, None without a number."""
    contrast = _NOT_NUMBER.search(text)
    if contrast and any(map(str.isdigit, text[: contrast.start()])):
        text = text[: contrast.start()]
    all_numbers = find_numbers(text)
    numbers = [number.plain for number in all_numbers if number.clear and not number.percent]
    words = [str(NUMBER_WORDS[word.lower()]) for word in _NUMBER_WORD.findall(text)]
    candidates = numbers or words
    if not candidates and not all_numbers:
        return None
    is_one = len(set(candidates)) == 1 and len(candidates) <= _MOST_REPETITIONS
    if not is_one or len(all_numbers) > len(numbers) or _DENIES.search(text):
        return ""
    return candidates[0]


# --- words -------------------------------------------------------------------------------------

_BEFORE_WORDS = frozenset({"is", "are", "be", "order", "list", "words", "follows", "then", "as"})


def find_last_words(words: Sequence[str], question_words: Sequence[str]) -> str | None:
    """Return the words at the end of a sentence if they are those of the question, in any order."""
    tail = list(words[-len(question_words) :]) if question_words else []
    before = words[-len(question_words) - 1] if len(words) > len(question_words) else "is"
    is_list = len(tail) > 1 and sorted(tail) == sorted(question_words) and before in _BEFORE_WORDS
    return " ".join(tail) if is_list else None
