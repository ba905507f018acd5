"""Normal forms of answers that are sequences: brackets to close, words to sort."""

from __future__ import annotations

import re

from keju.answers.clean import DRESSING, unwrap_latex
from keju.answers.lead import without_emphasis
from keju.benchmarks.bbh.forms import AMBIGUOUS, NOTHING, Found
from keju.types import Sample

# --- brackets --------------------------------------------------------------------------------

BRACKETS = "()[]{}<>"
_SEPARATORS = DRESSING + ","
_BRACKET_RUN = re.compile(rf"[{re.escape(BRACKETS + _SEPARATORS)}]*+")
_NOT_BRACKETS = {ord(separator): None for separator in _SEPARATORS}
_WRAPPER = re.compile(r"[\s$*]*+\\(?:boxed|fbox|text|texttt|mathrm|mathtt|textbf|mathbf)\s?\{")
_DELIMITED = re.compile(r"[\s*]*+\\([(\[])")
_ANOTHER_RUN = re.compile(r"[\s,;|]*+(?:or|vs|versus|alternatively|otherwise)\b", re.IGNORECASE)
_DEEPEST = 4
"""Wrappers around brackets that are peeled off; nobody means more."""


def read_brackets(segment: str, sample: Sample) -> Found:
    """The brackets that `segment` begins with; only words may follow them."""
    segment = without_emphasis(segment.removeprefix("- "))
    brackets, rest = _leading_brackets(segment)
    if brackets.endswith("(") and rest[:1].isalnum():
        brackets, rest = brackets[:-1], " "
    elif rest and not _is_commentary(rest):
        return NOTHING
    if _ANOTHER_RUN.match(rest):
        return AMBIGUOUS
    return _closing(brackets, sample)


def whole_brackets(line: str, sample: Sample) -> str | None:
    """The brackets of a line that holds nothing else."""
    brackets, rest = _leading_brackets(line)
    return _closing(brackets, sample).value if not rest.strip(DRESSING + ".。") else None


def same_brackets(value: str, target: str) -> bool:
    return value.replace(" ", "") == target.replace(" ", "")


def _leading_brackets(segment: str) -> tuple[str, str]:
    """The brackets at the beginning without what separates them, and the rest of the segment."""
    plain = _unwrapped(segment) if "\\" in segment else segment
    plain = plain.replace(" and ", " ")
    run = _BRACKET_RUN.match(plain)
    end = run.end() if run else 0
    gap = " " if end and (plain[end - 1].isspace() or plain[end - 1] == ",") else ""
    return plain[:end].translate(_NOT_BRACKETS), gap + plain[end:] if plain[end:] else ""


def _is_commentary(rest: str) -> bool:
    """Whether what follows the brackets is set apart from them."""
    return rest[0] in " .;:!。，" or not rest[0].isascii()


def _closing(brackets: str, sample: Sample) -> Found:
    """The answer itself, where the whole sequence of the question may stand before it."""
    opened = sample.text.rpartition("Input: ")[2].replace(" ", "").strip()
    if opened:
        brackets = brackets.removeprefix(opened)
    return Found(" ".join(brackets)) if brackets else NOTHING


def _unwrapped(segment: str) -> str:
    r"""Peel ``\(…\)`` and ``\boxed{…}`` off brackets, whose own braces need not balance."""
    bare = segment
    for _ in range(_DEEPEST):
        if delimiter := _DELIMITED.match(bare):
            bare = _without_last(bare[delimiter.end() :], "\\)" if delimiter[1] == "(" else "\\]")
        elif wrapper := _WRAPPER.match(bare):
            bare = _without_last(bare[wrapper.end() :], "}")
        else:
            break
    bare = bare.replace("\\langle", "<").replace("\\rangle", ">")
    return bare.replace("\\", "")


def _without_last(text: str, part: str) -> str:
    before, _, after = text.rpartition(part)
    return before + after if before or after != text else text


# --- words -----------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\s,;]+")
_ORDER_SIGN = re.compile(r"\s*+(?:->|=>|<=?|[→⟶➔➜⇒≤|])\s*+")
"""What may stand between words to show their order: ``alpha < beta``."""
_BULLET = re.compile(r"[-–—*•·]|\(?\d+[.)]")
_AROUND_WORD = DRESSING + "[](){}"
_SETS_APART = re.compile(
    r"[*_`\"'”’)\]]*+(?:[.:!。，]|\s*+[(—–]|\s*?\n| - "
    r"|[,;]?\s++(?:as|because|since|so|which|where|by|in|this|these|with|after|based)\b)",
    re.IGNORECASE,
)
"""What ends a list of words when more text follows; another word alone does not."""
_MOST = 4
"""A wrong list is kept up to this many times the length of the right one."""


def input_words(sample: Sample) -> list[str]:
    """The words that the question asks to sort."""
    return sample.text.rpartition("List: ")[2].lower().split()


def read_words(segment: str, sample: Sample) -> Found:
    """The list of words in `segment`; commentary after exactly the question's words is dropped."""
    wanted = input_words(sample)
    segment = _plain_list(segment)
    found = _sorted_words(segment, wanted)
    if found is None and (plain := without_emphasis(segment)) != segment:
        found = _sorted_words(plain, wanted)
    if found is None and ":" in segment:
        found = _sorted_words(segment.rpartition(":")[2], wanted)
    if found is not None:
        return Found(" ".join(found))
    words = [word for word, _ in _words(segment, wanted, _MOST * len(wanted))]
    known = set(wanted)
    if not words or 2 * sum(word in known for word in words) < len(words):
        return NOTHING
    return Found(" ".join(words))


def whole_words(text: str, sample: Sample) -> str | None:
    """The words of a text that holds exactly the question's words, in some order."""
    wanted = input_words(sample)
    words = [word for word, _ in _words(_plain_list(text), wanted, len(wanted) + 1)]
    return " ".join(words) if sorted(words) == sorted(wanted) else None


def _plain_list(segment: str) -> str:
    """`segment` without LaTeX wrappers and without signs of order between its words."""
    if "\\" in segment:
        segment = unwrap_latex(segment)
    return _ORDER_SIGN.sub(" ", segment)


def same_words(value: str, target: str) -> bool:
    return value.split() == target.lower().split()


def _sorted_words(segment: str, wanted: list[str]) -> list[str] | None:
    """Exactly the words `wanted`, in the order of `segment`, if it begins with all of them."""
    found = _words(segment, wanted, len(wanted) + 1)
    words = [word for word, _ in found[: len(wanted)]]
    if sorted(words) != sorted(wanted):
        return None
    end = found[len(wanted) - 1][1]
    if len(found) > len(wanted) and not _SETS_APART.match(segment, end):
        return None
    return None if _goes_on(segment, end) else words


def _goes_on(segment: str, end: int) -> bool:
    """Whether a list with a word on each line has a further item after the word ending at `end`."""
    line_end = segment.find("\n", end)
    if line_end < 0 or "\n" not in segment[:end]:
        return False
    following = segment[line_end + 1 :].partition("\n")[0].strip()
    first, _, rest = following.partition(" ")
    is_item = _BULLET.fullmatch(first) is not None
    bulleted = _BULLET.fullmatch(segment.strip().split(None, 1)[0]) is not None
    return is_item if bulleted else bool(first) and not rest


def _words(segment: str, wanted: list[str], most: int) -> list[tuple[str, int]]:
    """The first `most` words of `segment`, each with where its letters end."""
    found: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(segment):
        word = token[0].strip(_AROUND_WORD).lower()
        end = token.end()
        if word.endswith((".", ":", "!", "。")) and word not in wanted:
            word = word.rstrip(".:!。" + _AROUND_WORD)
            end = token.start() + token[0].lower().rfind(word) + len(word)
        is_bullet = not word or _BULLET.fullmatch(token[0])
        if (is_bullet or word == "and") and word not in wanted:
            continue
        found.append((word, end))
        if len(found) == most:
            break
    return found
