r"""The published reader of Qwen2.5-Math: the last box, and its rules for equal answers.

Both answers are stripped of units, words and layout by a list of substitutions, in their published
order. They are then compared as texts, as numbers (also a hundred times larger or smaller), part by
part, and as formulas. The published code parses formulas with sympy. Keju reads them by the same
grammar (see `qwen_formulas`), with the published tolerance of 1 in 10,000. The number words of the
published code (``two hundred``) are read by the same rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib.resources import files

from keju.answers.mathematics.notation import MOST_CHARACTERS
from keju.answers.mathematics.qwen_formulas import is_same_formula
from keju.answers.phrases import load_words
from keju.answers.reader import Reader
from keju.types import Answer, Sample

TOLERANCE = 1e-4

# --- the answer in a reply ---------------------------------------------------------------------

# `3.5`, `-2`, `.5`: the last number of a reply without an announcement.
_NUMBER = re.compile(r"-?\d*\.?\d+")
_LINE_BREAK = re.compile(r"\n\s*")


def find_box(text: str) -> str:
    """Return the content of the last ``boxed``: up to its closing brace, else up to a ``$``."""
    content = text.rsplit("boxed", 1)[1]
    if content[:1] != "{":
        return content.split("$")[0].strip()
    depth = 0
    for match in re.finditer(r"[{}]", content):  # `{` or `}`
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return content[1 : match.start()]
    return content[1:]


def find_answer(text: str) -> str:
    """Return the answer of a reply before any stripping; empty if there is none."""
    if "final answer is $" in text and "$. I hope" in text:
        return text.split("final answer is $", 1)[1].split("$. I hope", 1)[0].strip()
    if "boxed" in text:
        return find_box(text)
    for phrase in ("he answer is", "final answer is"):
        if phrase in text:
            return text.rsplit(phrase, 1)[1].strip()
    if "答案是" in text:
        return text.split("答案是")[1].strip().split("\n\n")[0].strip()
    last_number = ""
    for match in _NUMBER.finditer(text.replace(",", "")):
        last_number = match[0]
    return last_number


def extract(text: str) -> str:
    """Return the stripped answer of a reply."""
    answer = _LINE_BREAK.sub("", find_answer(text))
    answer = answer.removeprefix(":").removesuffix(".").removesuffix("/")
    return strip(answer)


# --- the substitutions -------------------------------------------------------------------------

_UNITS = files(__package__).joinpath("qwen_units.txt").read_text("utf-8").splitlines()
"""The words that are removed wherever they are not part of a longer word, in published order."""
_UNIT_PATTERNS = [
    (unit, re.compile(rf"(^|\W){unit}($|\W)"))  # ` cm `, ` degrees.`
    for unit in (*_UNITS, *(f"{unit}s" for unit in _UNITS))
]
# `\begin{array}{cc}`, `\end{array}`: a matrix under another name.
_ARRAY = re.compile(r"\\begin\{array\}\{[^{}]*?\}")
# `\text{ cm}` at the end: a unit.
_LAST_TEXT = re.compile(r"\\text{.*?}$")
_TEXT = re.compile(r"\\text\{(.*?)\}")
_MBOX = re.compile(r"\\mbox{.*?}")
# `3.00x`, `3.0`: zeros after the point.
_ZEROS = re.compile(r"(\d+)\.0*([^\d])")
_LAST_ZEROS = re.compile(r"(\d+)\.0*$")
# `\sqrt2`, `\sqrtx`: a root without braces.
_ROOT = re.compile(r"\\sqrt(\w+)")
_NAMES = ("x=", "y=", "z=", "x\\in", "y\\in", "z\\in", "x\\to", "y\\to", "z\\to")
_LAYOUT = (
    ("bmatrix", "pmatrix"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\neq", "\\ne"),
    ("\\leq", "\\le"), ("\\geq", "\\ge"), ("\\left", ""), ("\\right", ""), ("\\{", "{"),
    ("\\}", "}"),
)  # fmt: skip
_SIGNS = (("^{\\circ}", ""), ("^\\circ", ""), ("\\$", ""), ("$", ""), ("\\(", ""), ("\\)", ""))
_SETS = (
    ("\\emptyset", "{}"), ("(-\\infty,\\infty)", "\\mathbb{R}"), ("\\%", ""), ("%", ""),
    (" .", " 0."), ("{.", "{0."),
)  # fmt: skip


def strip(text: str) -> str:
    """Return an answer without units, words and layout, by the published substitutions."""
    text = text.strip()[:MOST_CHARACTERS].replace("\n", "").rstrip(".").replace("\\!", "")
    text = _ARRAY.sub(r"\\begin{pmatrix}", text).replace("\\end{array}", "\\end{pmatrix}")
    text = _replace_all(text, _LAYOUT)
    text = _LAST_TEXT.sub("", text).strip() or text
    text = _replace_all(_remove_units(text), _SIGNS)
    text = _TEXT.sub(r"\1", number_word(text))
    text = _replace_all(text, tuple((name, "") for name in _NAMES))
    text = _replace_all(text, _SETS).replace("infinity", "\\infty")
    if "\\infty" not in text:
        text = text.replace("inf", "\\infty")
    text = _MBOX.sub("", text.replace("and", "").replace("\\mathbf", ""))
    if "j" in text and "i" not in text:
        text = text.replace("j", "i")
    text = _LAST_ZEROS.sub(r"\1", _ZEROS.sub(r"\1\2", text))
    return _strip_name_and_roots(f"0{text}" if text[:1] == "." else text)


def _strip_name_and_roots(text: str) -> str:
    """Return ``5`` for ``k = 5``, with braces around the arguments of roots and fractions."""
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        text = sides[1]
    text = _ROOT.sub(r"\\sqrt{\1}", text).replace(" ", "")
    return _fix_slash(_fix_fractions(text))


def _replace_all(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for before, after in pairs:
        text = text.replace(before, after)
    return text


def _remove_units(text: str) -> str:
    for _ in range(2):
        for unit, pattern in _UNIT_PATTERNS:
            if unit[:1] in text:
                text = pattern.sub(r"\1\2", text) or text
    return text


def _fix_fractions(text: str) -> str:
    r"""Return ``\frac{1}{2}`` for ``\frac12`` and ``\frac1{2}``."""
    beginning, *parts = text.split("\\frac")
    fixed = [beginning]
    for part in parts:
        if part[:1] == "{":
            fixed.append(f"\\frac{part}")
        elif len(part) < 2:
            return text
        elif part[1] == "{":
            fixed.append(f"\\frac{{{part[0]}}}{part[1:]}")
        else:
            fixed.append(f"\\frac{{{part[0]}}}{{{part[1]}}}{part[2:]}")
    return "".join(fixed)


# `3/4`, `sqrt{2}/2`: a fraction with a slash.
_SLASH = re.compile(r"(-?\d+|[^/]*sqrt[^/]*)/(-?\d+|[^/]*sqrt[^/]*)")


def _fix_slash(text: str) -> str:
    r"""Return ``\frac{3}{4}`` for ``3/4``."""
    match = _SLASH.fullmatch(text)
    if match is None or any(part != _canonical(part) for part in match.groups()):
        return text
    return f"\\frac{{{match[1]}}}{{{match[2]}}}"


def _canonical(part: str) -> str:
    return part if "sqrt" in part or len(part) > 400 else str(int(part))


# --- numbers in words --------------------------------------------------------------------------

_ONES = {word: number for number, word in enumerate(load_words("number_words"))}
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2
    )
}
_SCALES = {"billion": 10**9, "million": 10**6, "thousand": 10**3}
_VALUES = _ONES | _TENS | {"hundred": 100} | _SCALES
POINT = "point"
MOST_DIGITS = 400


def number_word(text: str) -> str:
    """Return a text of number words as digits, ``two hundred`` as ``200``; other texts unchanged.

    Words that are not numbers do not count, as in the published code. ``-4`` stays as it is.
    """
    sentence = text.replace("-", " ").lower()
    if sentence.isdecimal():
        return str(int(sentence)) if len(sentence) < MOST_DIGITS else text
    words = [word for word in sentence.split() if word in _VALUES or word == POINT]
    if not words or any(words.count(word) > 1 for word in (*_SCALES, POINT)):
        return text
    place = words.index(POINT) if POINT in words else len(words)
    value = _value_of_words(words[:place])
    decimals = [_ONES.get(word, 10) for word in words[place + 1 :]]
    if value is None:
        return text
    if decimals and max(decimals) < 10:
        return str(value + float(f"0.{''.join(map(str, decimals))}"))
    return str(value)


def _value_of_words(words: list[str]) -> int | None:
    """Return the number of some words; None if the published code gives an error."""
    if len(words) < 2:
        return _VALUES[words[0]] if words else 0
    places = [words.index(scale) for scale in _SCALES if scale in words]
    if places != sorted(places):
        return None
    total, start = 0, 0
    for place in places:
        if place == start:
            return None
        total += _combine(words[start:place]) * _SCALES[words[place]]
        start = place + 1
    return total + _combine(words[start:]) if start < len(words) else total


def _combine(words: list[str]) -> int:
    """Return the number of up to four words below a thousand: ``two hundred thirty five``."""
    first, *others = (_VALUES[word] for word in words)
    if len(others) > 3 or not others:
        return first
    if len(others) == 1:
        return first * others[0] if 100 in (first, others[0]) else first + others[0]
    return first * others[0] + sum(others[1:])


# --- equal answers -----------------------------------------------------------------------------


def parse_digits(text: str) -> float | None:
    """Return a number in digits with commas; a percentage as a share."""
    plain = text.replace(",", "")
    share = plain.removesuffix("%")
    for digits, scale in ((plain, 1.0), (share.removesuffix("\\"), 100.0)):
        try:
            return float(digits) / scale
        except ValueError:
            if share == plain:
                return None
    return None


def is_equal(value: str, target: str) -> bool:
    """Return whether two stripped answers are equal by the published rules."""
    if value.strip().lower() == target.strip().lower():
        return True
    if target in tuple("ABCDE") and _last_letter(value) == target:
        return True
    numbers = parse_digits(value), parse_digits(target)
    if numbers[0] is not None and numbers[1] is not None:
        return _is_number_equal(numbers[0], numbers[1])
    if not value:
        return False
    value, target = value.strip(), target.strip()
    if "pmatrix" in value and "pmatrix" not in target:
        target = _as_matrix(target)
    return any(compare(value, target) for compare in _COMPARISONS)


def _is_number_equal(value: float, target: float) -> bool:
    scaled = (target / 100, target, target * 100)
    return any(math.isclose(number, value, rel_tol=TOLERANCE) for number in scaled)


# `(B)`, `B`: a letter that is a word.
_LETTER = re.compile(r"\b[A-E]\b")


def _last_letter(value: str) -> str:
    bare = value.strip("\n").rstrip(".").rstrip("/").strip(" ").lstrip(":")
    letters = _LETTER.findall(bare.upper())
    return str(letters[-1]) if letters else bare.strip().strip(".")


# `{1,2}`: the greedy content of braces with a comma.
_BRACES = re.compile(r"\{.*,.*\}")


def _as_matrix(text: str) -> str:
    """Return ``{1,2}`` as a column matrix, as the published code does."""
    return ", ".join(
        "\\begin{pmatrix}" + part.strip().strip("{}").replace(",", "\\") + "\\end{pmatrix}"
        for part in _BRACES.findall(text)
    )


def _is_bare_equal(value: str, target: str) -> bool:
    """Compare without brackets and braces."""
    is_bracketed = (value[0] == "[" and value[-1] == "]" and target[:1] != "(") or (
        value[0] == "(" and value[-1] == ")" and target[:1] != "["
    )
    texts = [text.strip("[]()") if is_bracketed else text for text in (value, target)]
    bare = [re.sub(r"[{}()]", "", text).lower() for text in texts]  # `{`, `(`
    return bare[0] == bare[1]


# `(1, 2]`: something in brackets at the beginning.
_SEQUENCE = re.compile(r"[(\[].+[)\]]")


def _is_sequence_equal(value: str, target: str) -> bool:
    """Compare tuples and intervals part by part; the brackets do not count."""
    if not _SEQUENCE.match(value) or not _SEQUENCE.match(target):
        return False
    parts, target_parts = value[1:-1].split(","), target[1:-1].split(",")
    return len(parts) == len(target_parts) and all(map(is_equal, parts, target_parts))


_MATRIX = re.compile(r"\\begin\{[pb]matrix\}(.*)\\end\{[pb]matrix\}")


def _is_matrix_equal(value: str, target: str) -> bool:
    """Compare matrices part by part."""
    matches = _MATRIX.fullmatch(value), _MATRIX.fullmatch(target)
    if matches[0] is None or matches[1] is None:
        return False
    rows, target_rows = (
        [line.strip().split("&") for line in match[1].split("\\\\") if line.strip()]
        for match in matches
        if match is not None
    )
    return [len(row) for row in rows] == [len(row) for row in target_rows] and all(
        is_equal(part, target_part)
        for row, target_row in zip(rows, target_rows, strict=True)
        for part, target_part in zip(row, target_row, strict=True)
    )


def _is_equation_equal(value: str, target: str) -> bool:
    """Compare equations by the difference of their sides, or the side after a short name."""
    sides, other_sides = value.split("="), target.split("=")
    if len(sides) == len(other_sides) == 2:
        lhs, rhs = (f"{a.strip()} - ({b.strip()})" for a, b in (sides, other_sides))
        return _is_expression_equal(lhs, rhs) or _is_expression_equal(f"-({lhs})", rhs)
    if len(sides) == 2 and len(sides[0].strip()) <= 2 and len(other_sides) == 1:
        return is_equal(sides[1], target)
    if len(other_sides) == 2 and len(other_sides[0].strip()) <= 2 and len(sides) == 1:
        return is_equal(value, other_sides[1])
    return False


def _is_expression_equal(value: str, target: str) -> bool:
    """Compare formulas; numbers have the published tolerance."""
    return is_same_formula(value, target, TOLERANCE)


_COMPARISONS: tuple[Callable[[str, str], bool], ...] = (
    _is_bare_equal,
    _is_sequence_equal,
    _is_matrix_equal,
    _is_equation_equal,
    _is_expression_equal,
)


class QwenReader(Reader):
    """Qwen2.5-Math: the last box, compared by its grader."""

    name = "qwen"
    version = 2
    about = "about_reader_qwen"

    def read(self, text: str, sample: Sample) -> Answer:
        value = extract(text)
        return Answer(strip(value), "strict") if value else Answer(reason="no_number")

    def matches(self, value: str, sample: Sample) -> bool:
        return is_equal(value, strip(sample.target))
