"""Recognition of options by their text: as written, in another spelling, or by value.

``-0.5`` is ``−0.5``, ``1/9`` is ``\\frac{1}{9}``, ``3 ohm`` is ``3 Ω``, ``3/8`` is ``0.375``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.numbers import NUMBER_WORDS, plain_numerals
from keju.answers.phrases import load_pattern, load_words
from keju.answers.segments import clean_segment


class _OptionTexts(NamedTuple):
    """The texts of the options in three forms, from strict to tolerant."""

    original: tuple[str, ...]
    folded: tuple[str, ...]
    """The texts without letter case."""
    plain: tuple[str, ...]
    """The texts without decoration, letter case and final full stops."""


@lru_cache(maxsize=1024)
def option_texts(choices: tuple[str, ...]) -> _OptionTexts:
    """Return the texts of the options in their three forms."""
    stripped = tuple(choice.strip() for choice in choices)
    return _OptionTexts(
        stripped, tuple(map(str.casefold, stripped)), tuple(map(plain_text, choices))
    )


def plain_text(option: str) -> str:
    """Return the text of an option without decoration, letter case or final full stops."""
    return clean_segment(option).rstrip(".…。;；,， ").casefold()


def plain_option_text(label: str, choices: Sequence[str]) -> str:
    """Return the plain text of the option `label`, or an empty text if it is unknown."""
    index = ord(label) - ord("A")
    return option_texts(tuple(choices)).plain[index] if index < len(choices) else ""


def option_by_text(segment: str, choices: Sequence[str], labels: str = "") -> str | None:
    """Return the label of the one choice whose text is `segment`, in the strictest matching form.

    The options of some exams differ only by letter case (``BB`` and ``Bb``). So the exact text is
    tried first, then the text without letter case, without decoration, in another spelling, and by
    value. The result is None if no choice or more than one matches. `labels` are A, B, C, … by
    default.
    """
    if not choices:
        return None
    if len(segment) > LONGEST_DRESSED and is_longer(segment, choices, LONGEST_DRESSED):
        return None
    fits = _find_by_text(segment, tuple(choices)) or _find_in_any_spelling(segment, tuple(choices))
    if len(fits) != 1:
        return None
    return labels[fits[0]] if labels else chr(ord("A") + fits[0])


def _find_by_text(segment: str, choices: tuple[str, ...]) -> list[int]:
    """Return the indices of the options whose text is `segment`, in the strictest matching form."""
    texts = option_texts(choices)
    stripped_segment = segment.strip()
    for forms, text in (
        (texts.original, stripped_segment),
        (texts.original, stripped_segment.removesuffix(".")),
        (texts.folded, stripped_segment.casefold()),
        (texts.plain, plain_text(segment)),
    ):
        if text in forms and (text or forms is not texts.plain):
            return [index for index, form in enumerate(forms) if form == text]
    return []


def _find_in_any_spelling(segment: str, choices: tuple[str, ...]) -> list[int]:
    """Return the indices of the options that equal `segment` in another spelling or by value."""
    text = segment.strip()
    if len(text) > LONGEST_SPELT:
        return []
    spelling = normalise_spelling(clean_segment(text))
    is_word = spelling[:1].isalpha() and spelling.casefold() not in NUMBER_WORDS
    if is_word and spelling[:2].casefold() not in _option_beginnings(choices):
        return []  # no option has this beginning
    if is_longer(text, choices, 30):
        return []
    return _find_by_spelling(spelling, spell_options(choices), choices)


LONGEST_DRESSED = 60
"""The most characters of decoration around the text of an option."""

# --- other spellings ---------------------------------------------------------------------------

LONGEST_SPELT = 200
"""The longest text, in characters, that is compared in another spelling."""

# `\dfrac{1}{9}`, `\frac19`: a fraction.
_FRACTION = lazy_pattern(r"\\[dt]?frac ?(?:\{([^{}]*)\} ?\{([^{}]*)\}|(\d)(\d))")
# The `\log` of `O(\log n)`, the `\left` of `\left(`.
_COMMAND = lazy_pattern(r"\\(?:left|right|text|mathrm|mathbf|displaystyle|[,;:! ])|\\")
_BEFORE_VALUE = load_pattern("before_value")
_BEGINS_VALUE = frozenset("tTaArReE≈~=")
"""The first characters of all matches of `_BEFORE_VALUE`."""
_UNITS = (
    ("ohm", "ω", re.compile(r"(?<=\d)\s?[ΩωΩ]|(?<=\d) ?ohms?\b", re.I), " ohm"),
    ("degree", "", re.compile(r"\bdegrees?\b", re.I), "°"),
    ("cent", "", re.compile(r"\bper ?cent\b", re.I), "%"),
    ("met", "", re.compile(r"(?<=\d) ?(?:metres?|meters?)\b", re.I), " m"),
    ("joule", "焦", re.compile(r"(?<=\d) ?(?:joules?|焦耳?)", re.I), " j"),
    ("newton", "牛", re.compile(r"(?<=\d) ?(?:newtons?|牛顿?)", re.I), " n"),
    ("volt", "伏", re.compile(r"(?<=\d) ?(?:volts?|伏特?)", re.I), " v"),
    ("sec", "秒", re.compile(r"(?<=\d) ?(?:seconds?|secs?|秒)", re.I), " s"),
)
"""Units: a part of every match in lower case, or a non-ASCII sign; the pattern; the name."""
_DIGIT = lazy_pattern(r"\d")
_REMOVED_SIGNS = str.maketrans(dict.fromkeys(" \t\n\u00a0\u202f\u2009$*_`{}\"'“”‘’「」"))
# `-1,000.5`, `3/8`, `5x10^-3`, then a unit.
_QUANTITY = lazy_pattern(
    r"([+-]?(?:\d+(?:,\d{3})*(?:\.\d*)?|\.\d+))(?:/(\d+(?:\.\d+)?))?"
    r"(?:(?:[x*]10\^?|e)([+-]?\d{1,3}))?(%?)([a-zμ°][a-z0-9μ°/^·-]{0,12}"
    r"|[元米个只人次件天年岁度斤克秒种倍名条张本]?)"
)


# `\sqrt{2}`: a root; the blank of `2 √2`; the hyphen of `light-years`, not that of `x-1`.
_ROOT = lazy_pattern(r"\\sqrt ?\{([^{}]*)\}")
# `\Rightarrow`, `\implies`: arrows of a formula.
_ARROW = lazy_pattern(r"\\(?:Longrightarrow|Rightarrow|implies|therefore)\b")
# `\text{kg}`: words inside a formula.
_TEXT_COMMAND = lazy_pattern(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it))\s?\{([^{}]*)\}")
_BEFORE_ROOT = lazy_pattern(r"(?<=\d)\s+(?=√)")
_HYPHEN = lazy_pattern(r"(?<=[a-z]{2})-(?=[a-z]{2})")
_BETWEEN = load_pattern("between")


def normalise_formulas(text: str) -> str:
    """Return a text without LaTeX, with one name for each unit and one form for each sign."""
    plain = text
    if not text.isascii():
        plain = plain_numerals(text).replace("×", "x").replace("\u2013", "-")
    if "\\" in plain:
        plain = _remove_latex(plain)
    if "-" in plain:
        plain = _HYPHEN.sub(" ", plain)
    if "√" in plain:
        plain = _BEFORE_ROOT.sub("", plain)
    if ", 19" in plain or "20" in plain:
        plain = _DATE_IN_WORDS.sub(_write_date, plain)
    return _normalise_units(plain) if _DIGIT.search(plain) else plain


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# `February 24th, 2021`, `24 Feb 2021`: a date in words, which is `02/24/2021` in digits.
_DATE_IN_WORDS = lazy_pattern(
    rf"\b(?:({'|'.join(_MONTHS)})[a-z]{{0,6}}\.? (\d{{1,2}})(?:st|nd|rd|th)?,? "
    rf"|(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?,? )(\d{{4}})\b",
    re.IGNORECASE,
)


def _write_date(date: re.Match[str]) -> str:
    month = 1 + _MONTHS.index((date[1] or date[4]).lower())
    return f"{month:02}/{int(date[2] or date[3]):02}/{date[5]}"


def _remove_latex(text: str) -> str:
    """Return a text with the signs that its LaTeX commands show."""
    plain = _TEXT_COMMAND.sub(r"\1", text)
    plain = _ARROW.sub("⇒", plain)
    plain = _ROOT.sub(r"√\1", plain)
    plain = _FRACTION.sub(lambda m: f"{m[1] or m[3]}/{m[2] or m[4]}", plain)
    return _COMMAND.sub("", plain.replace("\\times", "x").replace("\\cdot", "*"))


def _normalise_units(text: str) -> str:
    """Return a text with numbers in which ranges and units have one form."""
    plain, small, wide = text, text.lower(), not text.isascii()
    if "between" in small or "from" in small:
        plain = _BETWEEN.sub(r"\1 to \2", plain)
        small = plain.lower()
    for stem, sign, unit, name in _UNITS:
        if stem in small or (wide and sign and sign in small):
            plain = unit.sub(name, plain)
    return plain


def normalise_spelling(text: str) -> str:
    """Return the normalised text without blanks, decoration and articles."""
    spelt = normalise_formulas(text.strip(" .。"))
    if spelt[:1] in _BEGINS_VALUE:
        spelt = _BEFORE_VALUE.sub("", spelt, count=1)
    spelt = spelt.translate(_REMOVED_SIGNS)
    if "/" in spelt:
        spelt = _DATE.sub(_shorten_date, spelt)
    return spelt.rstrip(".")


# `08/3/1997`: a date; without the zeros it is `8/3/1997`.
_DATE = lazy_pattern(r"(?<![\d/])0?(\d{1,2})/0?(\d{1,2})/(\d{4})(?![\d/])")


def _shorten_date(date: re.Match[str]) -> str:
    return f"{date[1]}/{date[2]}/{date[3]}"


@lru_cache(maxsize=1024)
def spell_options(choices: tuple[str, ...]) -> _OptionSpellings:
    """Return the texts of the options in one spelling."""
    texts = tuple(map(normalise_spelling, choices))
    return _OptionSpellings(texts, tuple(map(str.casefold, texts)), max(map(len, texts)))


@lru_cache(maxsize=1024)
def _option_quantities(choices: tuple[str, ...]) -> tuple[tuple[Fraction, str] | None, ...]:
    """Return the options as quantities, with None for other options."""
    return tuple(map(_parse_quantity, spell_options(choices).texts))


@lru_cache(maxsize=1024)
def _option_beginnings(choices: tuple[str, ...]) -> frozenset[str]:
    """Return the first two letters of the options, in all forms, in lower case.

    Most options begin with the same two letters, or with a digit, in all forms.
    """
    starts = set()
    for choice in choices:
        start = choice[:2]
        if start[:1].isdigit() or (start[:1] in _SIGNS and start[1:].isdigit()):
            continue
        is_regular = start.isalpha() and start.isascii() and "\\" not in choice
        if is_regular and not (start[0] in _BEGINS_VALUE and _BEFORE_VALUE.match(choice)):
            starts.add(start.lower())
            continue
        forms = (choice.strip(), plain_text(choice), normalise_spelling(choice))
        starts.update(form[:2].casefold() for form in forms)
    return frozenset(starts)


_LEADING = load_words("leading_words")
_LEADS_ON = lazy_pattern(rf"(?:{'|'.join(_LEADING)})\b", re.IGNORECASE)
_MAY_LEAD_ON = frozenset(word[:2] for word in _LEADING)
"""The first two letters of the words in `_LEADING`."""


def is_other_prose(line: str, choices: tuple[str, ...]) -> bool:
    """Whether a line begins with a word that begins neither an option nor a label.

    The check is cheap, and most lines are of this kind.
    """
    beginnings = _option_beginnings(choices)
    at = 4 if line[:4].lower() == "the " else 0
    start = line[at : at + 2]
    if len(start) < 2 or not (start.isalpha() and start.isascii()):
        return False
    start = start.lower()
    if start in beginnings or (at and "th" in beginnings):
        return False
    return start not in _MAY_LEAD_ON or not _LEADS_ON.match(line, at)


_SIGNS = frozenset("+-.$(")
"""Signs before the digits of an option."""


class _OptionSpellings(NamedTuple):
    """The texts of the options in one spelling."""

    texts: tuple[str, ...]
    folded: tuple[str, ...]
    """The texts without letter case."""
    longest: int


def is_longer(text: str, choices: Sequence[str], spare: int) -> bool:
    """Whether a text is more than `spare` characters longer than any option, in any spelling.

    LaTeX may be several times as long as the text that it shows.
    """
    if not choices:
        return _exceeds(text, spare, 0)
    return _exceeds(text, spare, _longest_spelling(tuple(choices)))


@lru_cache(maxsize=64)
def _longest_spelling(choices: tuple[str, ...]) -> int:
    """Return the length of the longest option in any spelling."""
    joined = "".join(choices)
    if joined.isascii() and "\\" not in joined:  # another spelling has no blanks
        return max([len(choice) - choice.count(" ") for choice in choices])
    return spell_options(choices).longest


def _exceeds(text: str, spare: int, longest: int) -> bool:
    """Whether a text without blanks and LaTeX is longer than `longest` plus `spare`."""
    if len(text) <= longest + spare:
        return False
    if "\\" in text:
        return len(text) > 3 * longest + spare
    return len(text) - text.count(" ") > longest + spare


def _find_by_spelling(text: str, options: _OptionSpellings, choices: tuple[str, ...]) -> list[int]:
    """Return the indices of the options equal to `text`, or else of the same quantity."""
    if not text:
        return []
    for forms, form in ((options.texts, text), (options.folded, text.casefold())):
        if form in forms:
            return [index for index, option in enumerate(forms) if option == form]
    if (quantity := _parse_quantity(text)) is None:
        return []
    return [
        index
        for index, value in enumerate(_option_quantities(choices))
        if value and value[0] == quantity[0] and (not value[1] or quantity[1] in ("", value[1]))
    ]


def _parse_quantity(text: str) -> tuple[Fraction, str] | None:
    """Return the value and unit of a quantity in normal spelling: ``50%`` is one half."""
    match = _QUANTITY.fullmatch(text) if text[:1] in _BEGINS_NUMBER else None
    if match is None:
        word = NUMBER_WORDS.get(text.casefold())
        return None if word is None else (Fraction(word), "")
    try:
        value = Fraction(match[1].replace(",", "")) / Fraction(match[2] or 1)
    except (ValueError, ZeroDivisionError):
        return None
    value *= Fraction(10) ** int(match[3] or 0)
    return value / (100 if match[4] else 1), match[5] or ""


_BEGINS_NUMBER = frozenset("+-.0123456789")


# --- options in a text -------------------------------------------------------------------------


def echoes_options(text: str, choices: Sequence[str]) -> bool:
    """Whether `text` repeats the options: consecutive labels with the texts of the options."""
    if len(choices) < 2 or "B" not in text:
        return False
    first_option, second_option = choices[0].strip(), choices[1].strip()
    at = text.find(first_option) if first_option else -1
    while at >= 0:
        gap = _NEXT_OPTION.match(text, at + len(first_option))
        if gap and text.startswith(second_option, gap.end()):
            return True
        at = text.find(first_option, at + 1)
    return False


# From the text of option A to that of B: `.\n(B) `, `\n- **B.** `, ` (B) `.
_NEXT_OPTION = lazy_pattern(r"[.;,|\s*]{0,3}[\n ][\s\-(*\[]{0,5}B[)\].:、*]{1,4}\s?")


def flatten_options(text: str, choices: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return `text` and `choices` with each option on one line.

    An announcement ends with its line, so an option of several lines cannot be found there.
    """
    flat = tuple(" ".join(choice.split()) if "\n" in choice else choice for choice in choices)
    for choice, line in zip(choices, flat, strict=True):
        if choice is not line and choice.strip():
            text = text.replace(choice.strip(), line)
    return text, flat


@lru_cache(maxsize=1024)
def _normalised_option_texts(choices: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the unique normalised option texts with their labels, longer texts first."""
    texts = list(map(normalise_formulas, option_texts(choices).plain))
    pairs = [
        (text, chr(ord("A") + index)) for index, text in enumerate(texts) if texts.count(text) == 1
    ]
    pairs += [(part, label) for text, label in pairs if (part := _find_other_form(text, pairs))]
    return sorted(pairs, key=lambda pair: -len(pair[0]))


# `A. `, `(B) `: a line that begins with a label.
_LABEL = lazy_pattern(r"[(\[]?[A-Z][)\].:、]{1,2}\s++")


def remove_half_option(text: str, choices: Sequence[str], *, labelled: bool = False) -> str:
    """Return `text` without a last line that broke off inside the text of one option.

    With `labelled` the label may precede the text.
    """
    begin = text.rfind("\n") + 1
    if len(text) - begin > LONGEST_SPELT:
        return text
    label = _LABEL.match(text, begin) if labelled else None
    half = plain_text(text[label.end() if label else begin :])
    texts: Sequence[str] = option_texts(tuple(choices)).plain
    least_length = LEAST_PART
    if label and (
        option_text := plain_option_text(text[label.start() :].lstrip("([ ")[0], choices)
    ):
        texts, least_length = [option_text], 0
    fits = [option for option in texts if option.startswith(half) and option != half]
    return text[:begin].rstrip() if len(half) >= least_length and len(fits) == 1 else text


LEAST_PART = 8
"""The fewest characters of a text that may be a part of an option."""


# The plural of `mitochondrion`, `nucleus`, `bacterium`.
_PLURALS = {"on": "a", "us": "i", "um": "a", "ty": "ties", "ry": "ries", "cy": "cies"}
# The verb of `it increases`.
_ITS_VERB = lazy_pattern(r"it ([a-z]{4,})s")
# The beginning of `It was the employee's performance`.
_IT_IS = lazy_pattern(r"(?:it|they|there|this|these) (?:is|are|was|were) ")
# The reason in `No, because the goods were late`.
_REASON = lazy_pattern(r"\b(?:because|since) (.{20,})")


def _find_other_form(text: str, options: Sequence[tuple[str, str]]) -> str:
    """Return another form of an option: its plural, or a reason that only this option gives."""
    if reason := _REASON.search(text):
        part = reason[1].rstrip(".")
        return part if sum(part in option for option, _ in options) == 1 else ""
    if verb := _ITS_VERB.fullmatch(text):
        return verb[1]
    if (there := _IT_IS.match(text)) and len(text) - there.end() >= LEAST_PART:
        return text[there.end() :]
    return text[:-2] + _PLURALS[text[-2:]] if len(text) > 4 and text[-2:] in _PLURALS else ""


def find_option_texts(sentence: str, choices: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return start, end and label of the option texts in a normalised sentence, in order.

    The sentence must be in lower case.

    A text inside the text of a longer option counts only for the longer option.
    """
    spans: list[tuple[int, int, str]] = []
    for text, label in _normalised_option_texts(tuple(choices)) if choices else ():
        at = sentence.find(text) if text else -1
        while at >= 0:
            end = at + len(text)
            before = sentence[at - 1] if at else ""
            if not (
                _is_inside_word(before, text[0])
                or before == "√"
                or _continues_word(sentence, end, text)
            ):
                spans.append((at, end, label))
                sentence = sentence[:at] + "\0" * len(text) + sentence[end:]
            at = sentence.find(text, end)
    return sorted(spans)


def _continues_word(sentence: str, end: int, text: str) -> bool:
    """Whether a text is only the beginning of a word. A plural ending does not change the word."""
    if len(text) > 2 and text[-1].isalpha() and sentence[end : end + 1] == "s":
        end += 1
    next_character, character_after = sentence[end : end + 1], sentence[end + 1 : end + 2]
    if next_character in (".", "-") and not character_after.isdigit():
        return False  # the full stop of `is 20.`
    return _is_inside_word(next_character, text[-1])


# `27/40`, `1,000`, `-0.5`, `40%`, `three`: a quantity in a sentence; not `(2)`, `3.5.1`, `step 2`.
_QUANTITIES = lazy_pattern(
    r"(?<![\w.(/-])(?<!step )(?<!option )-?(?:\d[\d,]*(?:\.\d+)?(?:/\d+)?%?"
    rf"|{'|'.join(NUMBER_WORDS)})"
    r"(?![\w/]|\.\d)",
    re.IGNORECASE,
)


def find_counted_option(sentence: str, choices: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the option that is the only number of a sentence, with its start and end.

    ``There are 5 of them`` means ``five``, and ``27/40`` means ``0.675``. All options must be
    numbers, with the same unit or none. If there is an equals sign, only the text after it counts.
    """
    if not choices or not _is_number_like(choices[0]):
        return None
    places = _index_by_value(tuple(choices))
    if places is None:
        return None
    begin = max(sentence.rfind("="), sentence.rfind("≈"), 0)
    numbers = list(_QUANTITIES.finditer(sentence, begin))
    spelt = {number[0].casefold().replace(",", "") for number in numbers}
    if len(set(map(float, filter(_is_decimal, spelt)))) > 1:
        return None
    values = set(map(_parse_quantity, spelt))
    value = values.pop() if len(values) == 1 else None
    place = places.get(value[0], -1) if value else -1
    if place < 0:
        return None
    return chr(ord("A") + place), numbers[-1].start(), numbers[-1].end()


@lru_cache(maxsize=1024)
def _index_by_value(choices: tuple[str, ...]) -> Mapping[Fraction, int] | None:
    """Return the indices of numeric options by value, or None without a common unit.

    The index of a value that several options have is -1.
    """
    places: dict[Fraction, int] = {}
    units = set()
    for place, quantity in enumerate(_option_quantities(choices)):
        if quantity is None:
            return None
        units.add(quantity[1])
        places[quantity[0]] = -1 if quantity[0] in places else place
    return places if len(units) == 1 else None


def _is_decimal(number_text: str) -> bool:
    """Whether a number consists of digits, with at most one point and a minus sign."""
    return number_text.removeprefix("-").replace(".", "", 1).isdecimal()


def _is_number_like(option: str) -> bool:
    """Whether an option may be a number. The check is quick for most other options."""
    return _DIGIT.search(option) is not None or option.strip(" .").casefold() in NUMBER_WORDS


# `the`, `of`: words that do not identify an option.
_COMMON_WORDS = frozenset({"the", "a", "an", "is", "are", "was", "of", "from", "to", "in", "on"})
_WORDS = lazy_pattern(r"\w+")
# `first`, `last`, `leftmost`, `cheapest`: the place in an order.
_PLACE = lazy_pattern(r"\w*(?:first|second|third|fourth|fifth|sixth|seventh|last|most|est)")


def _significant_words(text: str) -> frozenset[str]:
    """Return the words of an option without common words."""
    return frozenset(_WORDS.findall(text)) - _COMMON_WORDS


@lru_cache(maxsize=1024)
def _find_frame(
    choices: tuple[str, ...],
) -> tuple[frozenset[str], tuple[frozenset[str], ...]] | None:
    """Return the words that all options share and the other words of each option.

    ``Rob finished first`` and ``Eve finished first`` share ``finished first``. If the shared words
    name a place in an order, only these words are returned. The result is None without a common
    frame.
    """
    texts = option_texts(choices).plain
    if len(texts) < 3 or not _significant_words(texts[0]) & _significant_words(texts[1]):
        return None
    words = list(map(_significant_words, texts))
    shared = frozenset.intersection(*words)
    distinct_words = tuple(option_words - shared for option_words in words)
    is_frame = (
        shared
        and all(0 < len(words_left) <= 3 for words_left in distinct_words)
        and len(set(distinct_words)) == len(distinct_words)
    )
    places = frozenset(word for word in shared if _PLACE.fullmatch(word))
    return (places or shared, distinct_words) if is_frame else None


def find_framed_option(sentence: str, choices: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the option that a sentence paraphrases, with its start and end.

    The sentence must contain the words of this option only, and the place that all options share.
    ``Rob must be in the first position`` means ``Rob finished first``.
    """
    frame = _find_frame(tuple(choices)) if choices else None
    if frame is None:
        return None
    shared, distinct_words = frame
    small = sentence.lower()
    if not all(map(small.__contains__, shared)):
        return None
    words = {word.lower(): word for word in _WORDS.findall(sentence)}
    if not shared <= words.keys():
        return None
    fits = [
        index for index, option_words in enumerate(distinct_words) if option_words & words.keys()
    ]
    if len(fits) != 1 or not distinct_words[fits[0]] <= words.keys():
        return None
    start = min(sentence.find(words[word]) for word in distinct_words[fits[0]])
    return chr(ord("A") + fits[0]), start, len(sentence.rstrip(" .。!"))


def contains_option_text(text: str, choices: Sequence[str]) -> bool:
    """Whether a text contains the text of any option, in any form."""
    normalised_text = normalise_formulas(text).lower()
    return any(option in normalised_text for option, _ in _normalised_option_texts(tuple(choices)))


def find_text_labels(sentence: str, choices: Sequence[str]) -> list[str]:
    """Return the labels of the options whose whole text is in `sentence`, in order."""
    return list(
        dict.fromkeys(
            label
            for _, _, label in find_option_texts(normalise_formulas(sentence).lower(), choices)
        )
    )


def _is_inside_word(neighbour: str, edge: str) -> bool:
    """Whether a character next to an option's text continues its word: ``18`` in ``180``."""
    if not (neighbour and neighbour.isascii() and edge.isascii()):
        return False
    return neighbour.isalnum() or (edge.isdigit() and neighbour in ".-")


def resembles_option(text: str, choices: Sequence[str]) -> bool:
    """Whether most character pairs of a text occur in one option: ``large square match``."""
    pairs = _character_pairs(plain_text(text))
    return any(
        len(pairs & _character_pairs(option_text)) > len(pairs) / 2
        for option_text in option_texts(tuple(choices)).plain
    )


def _character_pairs(text: str) -> set[str]:
    """Return the pairs of neighbouring characters."""
    return set(map(str.__add__, text, text[1:]))
