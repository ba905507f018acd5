"""How Chinese replies announce an answer.

Every pattern is meant for text in Unicode normal form KC (`normalised`), where full-width letters,
colons and brackets have become the ASCII ones, and runs in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from keju.answers.choice_markers import CHINESE_EMPHASIS, ENGLISH
from keju.benchmarks.ceval.data import OPTIONS

CUE = "答案:"
"""`答案：` in normal form."""

_NOT = r"(?<![不非误错勿别未没若])(?<!错误)(?<!错误的)(?<!如果)(?<!假如)"
"""What stands before a marker and makes it say something else."""

_HEAD = rf"(?:{_NOT}(?:正确|最终)|{_NOT}(?<!正确)(?<!最终)(?<![不非]正确的))答案"
_ANSWER = rf"{_HEAD}[\s*_\"”』」]*+{CHINESE_EMPHASIS}(?:是|为|选择?|:)"
_CHOOSER = r"(?:[本此该]题|这道?题|我)"
_CHOSEN = (
    rf"{_NOT}(?:(?:故|应[该当]?|因此|所以|综上(?:所述)?|{_CHOOSER}),?{_CHOOSER}?"
    r"(?:应[该当]?|会)?选择?|选择)(?![题项])"
)
_CORRECT = (
    rf"{_NOT}正确(?:的?(?:一项|选项|答案)(?:应该|应)?(?:是|为|:)"
    r"|的(?:应该|应)?是(?=[ :*(]*+(?:选项 ?)?[A-D](?![A-Za-z0-9])))"
)
_BRACKETED = r"[【\[]答案[】\]]"
_REJECTED = r"(?:,?而?不[是选] ?[A-D] ?(?:选?项)?)?"
_WHOLE_LINE = rf"(?m:^选(?= ?[A-Da-d] ?(?:选?项)?{_REJECTED}[.。]?[ \t]*+$))"
_AFTER = r"[\s*]*+:?[\s*]*+(?:选项|选)?"

STRICT = re.compile(rf"{_HEAD}:|所以答案是")
"""The protocols' own markers: `答案：X` and `所以答案是X。`."""

COMPLETE = re.compile(rf"(?:{_ANSWER}|所以答案是){_AFTER}[(\[]?[A-D](?![A-Za-z0-9])")
"""A marker with the word for answer in it, and its label."""

TOLERANT = re.compile(
    r"(?=[正最答故应因所综本此该这我选【\[aAcC])(?:"
    rf"(?:{_ANSWER}|{_CHOSEN}|{_CORRECT}|{_BRACKETED}|{_WHOLE_LINE}){_AFTER}|{ENGLISH})"
)
"""Any wording that announces the answer, in Chinese or English."""

_CLAUSE = re.compile(
    r",\s?(?=[A-D]\s?(?:选?项)?\s?"
    r"(?!选?项|[和与及或都均皆]|也(?:都|是|对|可|正确|符合))[\u4e00-\u9fff])"
)
"""The comma before a remark on another option: ``B,D也错误`` names one answer, ``B,D`` two."""

_VERDICT = re.compile(
    r"(?:选项 ?(?P<after>[A-D])(?![A-Za-z0-9])|(?<![A-Za-z0-9])(?P<before>[A-D]) ?选?项) ?"
    r"(?:的?(?:说法|表述|描述))?是?正确的?(?P<ends>[.。!]?\s*+\Z)?"
)
_VERDICT_LEAD = re.compile(r"(?:\A|[\n。!?])[\s*]*+(?:因此|所以|故|综上(?:所述)?)?,?(?:只有)?\Z")
_LONGEST_LEAD = 20

_EMPTY_LINE = re.compile(r"\n[ \t\r]*+\n")
_BARE_START = re.compile(r"\s*+[(\[]?[A-Da-d][)\]]?\.?(?=[ \t\r]*+(?:\n|\Z)|[。,;])")
_FIRST_OPTION = re.compile(r"\s*+[(\[]?([A-D])[)\]]?[.:、][ \t]*+([^\n]++)")


def normalised(text: str) -> str:
    """`text` in normal form KC; a comma that begins a remark on another option ends the clause."""
    return _CLAUSE.sub("; ", unicodedata.normalize("NFKC", text))


def completed(text: str) -> str:
    """A base model's reply to a prompt that ends with the cue, normalised, the cue before it."""
    return CUE + normalised(text)


def opens_with_answer(text: str, choices: Sequence[str]) -> bool:
    """Whether a chat reply to a prompt that ends with the cue begins by completing it.

    It does with a line that is only a label, or a label and its own option's text (or as much of
    it as came); it may as well begin to discuss option A. `text` and `choices` are normalised.
    """
    if _BARE_START.match(text):
        return True
    option = _FIRST_OPTION.match(text)
    if option is None:
        return False
    own = choices[OPTIONS.index(option[1])].strip()
    written = option[2].strip()
    return own == written or (own.startswith(written) and not text[option.end() :].strip())


def only_verdict(text: str) -> str | None:
    """The one option that `text` calls correct, where that is its whole last sentence.

    ``选项B是正确的。``. Where several options are called correct, the question may well ask for the
    one that is not. `text` is normalised.
    """
    verdicts = list(_VERDICT.finditer(text))
    if not verdicts or verdicts[-1]["ends"] is None:
        return None
    named = {verdict["after"] or verdict["before"] for verdict in verdicts}
    start = verdicts[-1].start()
    is_sentence = _VERDICT_LEAD.search(text, max(0, start - _LONGEST_LEAD), start) is not None
    return named.pop() if len(named) == 1 and is_sentence else None


def cut_after_answer(text: str, answer: re.Pattern[str]) -> tuple[str, bool]:
    """Cut `text` at the first empty line after the first match of `answer`."""
    first = answer.search(text)
    end = _EMPTY_LINE.search(text, first.end()) if first else None
    if end is None or not text[end.end() :].strip():
        return text, False
    return text[: end.start()], True


def cut_run_on(text: str) -> tuple[str, bool]:
    """Cut a base model's run-on: at the first empty line after its first complete answer."""
    return cut_after_answer(text, COMPLETE)
