"""Mathematical answers as a kind of answer of the robust reader.

An announced answer is the content of a box, the formula after the announcement, or its words. An
unannounced answer is a formula or number that ends the reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from keju.answers.decision import find_correction
from keju.answers.kinds import SOLVED, AnswerKind
from keju.answers.mathematics.equivalence import is_equivalent
from keju.answers.mathematics.notation import MOST_CHARACTERS
from keju.answers.mathematics.parsing import Unparsable, parse
from keju.answers.numbers import find_numbers, plain_numerals
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import AMBIGUOUS, NO_ANSWER, AnswerStatement, remove_lead
from keju.types import Answer, Sample

BOXED = re.compile(r"\\(?:boxed|fbox)(?=\s?\{)")
r"""The marker of prompts that ask for a box, ``\boxed{5}``."""
# `\boxed{`, `\fbox {`, and each single brace; not `\{`.
_BRACES = re.compile(r"\\(?:boxed|fbox)\s?\{|(?<!\\)(?:\\\\)*+[{}]")
# `$…$`, `$$…$$`, `\(…\)`, `\[…\]`: a formula; the content is in one of the groups.
_FORMULA = re.compile(
    r"(?<!\\)\$\$([^$]{1,1500})\$\$|(?<!\\)\$((?:\\.|[^$\n\\]){1,1500})\$|\\\(((?:(?!\\\)).){1,1500})\\\)"
    r"|\\\[((?:(?!\\\]).){1,1500})\\\]",
    re.DOTALL,
)
# ` and `, `, `: joins two parts of one answer.
_JOINT = re.compile(r"\s*(?:,|and|or|,\s*and|,\s*or)\s*(?:[A-Za-z]\s*=\s*)?")
# `. So`, `, because`, ` (see`: the end of an answer in words.
_END_OF_ANSWER = re.compile(
    r"[.;!?](?=\s|\*|\Z)|,?\s(?:because|since|as|which|where|when|so|with|for)\b|\n|\s\("
)
# ` or `, `, `: between two answers in words; kept when they are split.
_CONJUNCTION = re.compile(r"(\s(?:and|or)\s|,\s)")
# `**`, `` ` ``, `"`: marks around an answer.
_MARKS = " \t\r\n*`\"'“”_:："
# `12 meters`, `-3.5`, `x + 1`: words after which a sentence goes on are too many for an answer.
MOST_WORDS = 5
_LONGEST_LINE = 300


def find_boxes(text: str) -> list[str]:
    r"""Return the contents of all closed boxes in order: ``\boxed{\frac{1}{2}}``."""
    boxes: list[str] = []
    starts: list[int] = []
    """The beginnings of open braces; negative for those that do not open a box."""
    for match in _BRACES.finditer(text):
        if match[0].endswith("{"):
            starts.append(match.end() if match[0].startswith(("\\b", "\\f")) else -1)
        elif starts and (start := starts.pop()) >= 0:
            boxes.append(text[start : match.end() - 1])
    return boxes


def join_box_lines(text: str) -> str:
    """Return a reply in which every box is in one line."""
    parts: list[str] = []
    position = depth = 0
    for match in _BRACES.finditer(text):
        is_box = match[0].startswith(("\\b", "\\f"))
        if depth:
            depth += 1 if match[0].endswith("{") else -1
            if not depth:
                parts.append(text[position : match.end()].replace("\n", " "))
                position = match.end()
        elif is_box:
            parts.append(text[position : match.start()])
            position, depth = match.start(), 1
    parts.append(text[position:])
    return "".join(parts)


def formulas(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each formula of a text with its place."""
    for match in _FORMULA.finditer(text):
        content = next(group for group in match.groups() if group is not None)
        yield content.strip(), match.start(), match.end()


def last_side(formula: str) -> str:
    """Return the result of a chain of equations: ``7`` for ``3 + 4 = 7``; names stay."""
    lhs, sign, rhs = formula.rpartition("=")
    if not sign or lhs.endswith(("\\", "<", ">", "!", ":")) or not rhs.strip():
        return formula
    is_chain = "=" in lhs or "\\approx" in lhs or any(c.isdigit() for c in lhs)
    return rhs.strip() if is_chain else formula


class Mathematics(AnswerKind):
    """An expression, a tuple, a set, an equation or a text, compared by `is_equivalent`."""

    closed = False
    many = True
    marker = SOLVED

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        if segment.startswith("{"):
            segment = f"\\boxed{segment}"
        if boxes := find_boxes(segment):
            return AnswerStatement(", ".join(dict.fromkeys(box.strip() for box in boxes)))
        if BOXED.search(segment):  # cut off inside the box
            return NO_ANSWER
        value = _joined_formulas(segment) or _words_of(segment)
        return AnswerStatement(value) if value else NO_ANSWER

    def whole(self, text: str, sample: Sample) -> str | None:
        line = text.strip()
        if not line or "\n" in line or len(line) > _LONGEST_LINE:
            return None
        if boxes := find_boxes(line):
            return boxes[-1].strip()
        line_formulas = list(formulas(line))
        if line_formulas:
            content, _, end = line_formulas[-1]
            is_last = len(line[end:].strip(_MARKS + ".").split()) <= 2
            return last_side(content) if is_last else None
        return _plain_result(line)

    def same(self, value: str, target: str) -> bool:
        return is_equivalent(value, target)


def _joined_formulas(segment: str) -> str:
    """Return the first formula of a segment with those that are joined to it; empty without one.

    Words before the formula must be few: ``the answer is that $x$ …`` is prose.
    """
    parts: list[str] = []
    previous_end = 0
    for content, start, end in formulas(segment):
        if not parts:
            if len(segment[:start].split()) > MOST_WORDS:
                return ""
        elif not _JOINT.fullmatch(segment[previous_end:start]):
            break
        parts.append(last_side(content))
        previous_end = end
    if len(parts) == 1:
        unit = segment[previous_end:].strip(_MARKS + ".")
        is_percentage = unit.startswith(("%", "percent"))
        return parts[0] + ("\\%" if is_percentage else "")
    return ", ".join(parts)


def _words_of(segment: str) -> str:
    """Return the announced answer in words or plain notation: ``42 meters``; empty for prose."""
    bare = remove_lead(segment.strip(_MARKS)).strip(_MARKS)
    end = _END_OF_ANSWER.search(bare)
    parts = _CONJUNCTION.split((bare[: end.start()] if end else bare).strip(_MARKS))
    answer = "".join(map(last_side, parts))
    if len(answer) > MOST_CHARACTERS or not any(c.isalnum() for c in answer):
        return ""
    return answer if len(answer.split()) <= MOST_WORDS or _is_expression(answer) else ""


def _is_expression(text: str) -> bool:
    try:
        return parse(text).kind != "text"
    except (Unparsable, RecursionError):
        return False


def _plain_result(line: str) -> str | None:
    """Return a line that is an expression with digits, or the number that ends a sentence."""
    bare = line.strip(_MARKS + ".")
    result = last_side(bare)
    if any(c.isdigit() for c in result) and len(result) < 60 and _is_expression(result):
        return result
    plain = plain_numerals(bare)
    numbers = [number for number in find_numbers(plain) if number.clear]
    if not numbers:
        return None
    last_number = numbers[-1]
    is_last = len(plain[last_number.end :].split()) <= 2
    return plain[last_number.start : last_number.end] if is_last else None


_POWERS = str.maketrans({"²": "^{2}", "³": "^{3}"})
"""Signs that the normal form of Chinese text would change to digits."""


class MathReader(RobustReader):
    """The robust reader for mathematical answers; a box may have several lines."""

    version = 100 + RobustReader.version

    def read(self, text: str, sample: Sample) -> Answer:
        """Return the answer by the general rules; of several different boxes the last one counts.

        Steps of a solution may also have boxes. Run-on text and corrections are decided by
        the general rules.
        """
        answer = super().read(text, sample)
        is_open = answer.reason == AMBIGUOUS.reason or "two_answers" in answer.signs
        if not is_open or answer.rule == "correction" or "run_on" in answer.signs:
            return answer
        prepared, _, _ = self.prepare(text, sample)
        boxes = find_boxes(prepared)
        if len(boxes) < 2 or find_correction(prepared[prepared.rfind("\\boxed") :]):
            return answer
        last_box = boxes[-1].strip()
        return Answer(last_box, "strict", signs=answer.signs, rule="marker", passage=last_box)

    def prepare(self, text: str, sample: Sample) -> tuple[str, Sample, bool]:
        return super().prepare(join_box_lines(text).translate(_POWERS), sample)


def make_math_reader(strict: re.Pattern[str] | str = BOXED) -> Reader:
    """Return the robust reader for prompts with the marker `strict`."""
    return MathReader(Mathematics(), strict=strict)
