"""The authors' reader of CMMLU for replies that a model writes."""

from __future__ import annotations

import re

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.reader import Reader
from keju.types import Answer, Sample

_STATEMENTS = tuple(
    lazy_pattern(pattern)
    for pattern in (
        r"答案(?:选项)?(?:是|为)：? ?([ABCD])",  # `答案选项是：B`
        r"答案(?:是|为)选项 ?([ABCD])",  # `答案为选项 B`
        r"故?选择?：? ?([ABCD])",  # `故选：B`, `选择 B`
        r"([ABCD]) ?选?项(?:是|为)?正确",  # `B选项正确`
        r"正确的?选项(?:是|为) ?([ABCD])",  # `正确的选项是 B`
        r"答案(?:应该)?(?:是|为)([ABCD])",  # `答案应该是B`
        r"选项 ?([ABCD]) ?(?:是|为)?正确",  # `选项B是正确`
        r"选择答案 ?([ABCD])",  # `选择答案 B`
        r"答案?：?([ABCD])",  # `答案：B`, `答B`
        r"([ABCD])(?:选?项)?是?符合题意",  # `B项符合题意`
        r"答案选项：? ?([ABCD])",  # `答案选项：B`
    )
)
"""The first of these patterns that matches decides, by its first match."""
# `答案为`, `答案选项为`: the first letter after it on the same line counts.
_ANNOUNCED = lazy_pattern(r"答案(?:选项)?为")
# `B`, or the end of the line.
_LETTER_OR_END = lazy_pattern(r"[ABCD\n]")
# `选是B`, `但是：B`; not `不是B`.
_WEAK = lazy_pattern(r"[^不]是：? ?([ABCD])")
_CONFIRMED = ("当选", "正确")


def find_announced(text: str) -> str | None:
    """Return the first letter that follows ``答案为`` on its line."""
    start = 0
    while match := _ANNOUNCED.search(text, start):
        letter = _LETTER_OR_END.search(text, match.end())
        if letter is None:
            return None
        if letter[0] != "\n":
            return letter[0]
        start = letter.end()
    return None


def find_confirmed(text: str, word: str) -> str | None:
    """Return the last letter before the first `word` that a letter precedes on its line."""
    for line in text.split("\n"):
        first_letter = re.search(r"[ABCD]", line)  # `B` in `B项说法正确`
        end = line.find(word, first_letter.end()) if first_letter else -1
        if end >= 0:
            return next(letter for letter in reversed(line[:end]) if letter in "ABCD")
    return None


def find_only_letter(text: str) -> str | None:
    """Return the letter if a text has exactly one of A to D."""
    letters = re.findall(r"[ABCD]", text)  # `B` in `选择 B 即可`
    return letters[0] if len(letters) == 1 else None


class CMMLUOfficialReader(Reader):
    """The authors' rule: the first character if it is a letter, else their patterns in order.

    Where nothing matches the authors draw a letter at random; here the reply has no answer.
    """

    name = "official"
    about = "cmmlu.about_reader_official"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        if text[:1] and text[0] in "ABCD":
            return Answer(text[0], "strict")
        for pattern in _STATEMENTS:
            if match := pattern.search(text):
                return Answer(match[1], "tolerant")
        letter = find_announced(text)
        for word in _CONFIRMED:
            letter = letter or find_confirmed(text, word)
        if letter is None and (match := _WEAK.search(text)):
            letter = match[1]
        letter = letter or find_only_letter(text)
        return Answer(letter, "fallback") if letter else Answer(reason="no_marker")
