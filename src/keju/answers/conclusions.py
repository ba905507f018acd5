"""The option that a reply concludes without announcing it: ``So option (B) is the odd one.``

Options are found sentence by sentence, by label or by text (`mentions`). `judge` decides what a
sentence says of them: asserted, rejected, left open, called true or false. `concluded` walks from
the last sentence back and takes the one option that a conclusion asserts; where none does, the one
option that a discussion of all of them calls right. Where the question asks for the wrong statement,
a false one is the answer. Two options, a supposition and a question never count.

The rules were written while looking at replies of Llama-3.2-3B-Instruct (half of them), GPT-4
(Chinese, 16 replies) and written replies; `make readers` shows what they do on all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keju.answers.decision import CORRECTION, LINK, NEGATIVE, SUPPOSES, correction_in, strength_of
from keju.answers.numbers import NUMBER_WORDS
from keju.answers.options import counted_option, framed_option, own_text, spoken, texts_in
from keju.answers.segments import Conclusion
from keju.answers.sentences import (
    BRIEF,
    CONCLUDES,
    CONTRAST,
    HEDGES,
    SHORT,
    UNDETERMINED,
    clauses,
    concludes,
    has_chinese,
    is_ended,
    is_unsure,
    tail_of,
    without_stub,
)
from keju.types import Sample


class Mention(NamedTuple):
    """An option named in a sentence."""

    label: str
    start: int
    end: int
    by_text: bool = False
    weak: bool = False
    """Whether something else may be meant: ``you get D``, ``vitamin C``."""


# --- finding mentions ----------------------------------------------------------------------------

# `(B)`, `(option b)`, `**B**`, `"B"`; `option B`; `选项B`, `B项`; not `f(A)`, `[A]^2`.
_LABEL = re.compile(
    r"(?<![A-Za-z0-9=/])(?<!= )[(\[]\s?(?:[Oo]ption |选项 ?)?([A-Z])\s?(?:选?项)?[)\]]"
    r"(?![\^_/=A-Za-z0-9]|\s?=)"
    r"|\*\*\(?([A-Z])\)?[.:]?\*\*|[\"“「『]([A-Z])[\"”」』]"
    r"|\b(?:[Oo]ptions?|[Cc]hoice|[Ll]etter|[Ss]tatement) [(*\"“]{0,3}([A-Z])(?![A-Za-z'’])"
    r"|(?:选项|说法) ?[(\"“]?([A-Z])(?![A-Za-z0-9])|(?<![A-Za-z0-9])([A-Z]) ?选?项"
    r"|\b[Oo]ption [(]?([a-z])[)](?![A-Za-z])|(?<=[a-z] )[(\[]([a-hj-z])[)\]](?=[.*\s]*\Z)"
)
# A part of each of them; quicker to find than a pattern.
_AROUND_LABEL = (
    "(", "[", "**", '"', "“", "「", "『", "ption", "hoice", "etter", "tatement", "项", "说法",
)  # fmt: skip
# A bare letter of a Chinese sentence, where an answer stands: `是B。`, `,D`; not `B细胞`, `24 J`,
# `维生素D`, `C(4, 1)=4`.
_LETTER_ZH = re.compile(
    r"(?:\A|(?<=[^\w=+*/^-])"
    r"|(?<=[是为选即就于到改成下剩和与或及非不除应得取故而案论猜定只有仅让者]))"
    r"(?<!\d )([A-Z])(?![A-Za-z0-9=+*/^°'’-]|\s?[(（][\w\s,+-]{1,12}[)）]\s?[=*/+-]"
    r"|\s?\(\s?\w{1,4}\s?,)"
    r"(?=\W|\Z|[和与或及才是正符最更项了吧呢这为不也都错还]|对(?:的|\W|\Z))"
)
# After a bare letter of an English sentence: `C is`, `C because`; not `A careful`.
_AFTER_LETTER = (
    "is|was|it is|fits|feels|seems|works|because|since|remains|survives|instead|as|here|for|and|or"
    "|both|are|have|has|gets|can|could|would|should|might"
)
# A bare letter of an English sentence: `, D.`, `so C`, `Only B survives`; not `vitamin C`,
# `A careful reader`.
_LETTER = re.compile(
    r"(?:\A\W{0,3}|[,;:—–→>.] |\b(?:so|is|be|on|to|say|with|that|only|pick|then|hence|thus|towards?"
    r"|therefore|choose|select|guess|answer|for|either|and|or|not|but|get|gives|leaves|it|options?"
    r"|[Ii]t[’']s|[Tt]hat[’']s|[Oo]nly"
    r"|[Ss]o|[Tt]hus|[Hh]ence) )([A-HJ-Z]|I(?! [a-z]))(?!\. [a-z])"
    rf"(?=[.,;:!?)。,](?![A-Za-z])|[\s*_\"'”’)]{{0,3}}\Z| (?:{_AFTER_LETTER})\b)"
)
# `system B.`, `hepatitis B`: perhaps an option.
_WEAK = re.compile(
    r"(?<=[a-z] )([B-HJ-Z])(?!\. [a-z])(?=[.,;:!?)。,]|[\s*_\"'”’)]{0,3}\Z| (?:and|or|is|was)\b)"
)
# A part of each of them: a capital letter alone, or a letter before a bracket.
_MAY_BE_LABEL = re.compile(r"(?<![A-Za-z])(?:[A-Z](?![A-Za-z])|[a-z][)\]])")
_WORD = re.compile(r"\w")


def mentions(sentence: str, sample: Sample) -> list[Mention]:
    """The options that a spoken sentence names, in order.

    A label and its own text next to it are one mention. A number is a mention where all options are
    numbers of things and the sentence has no other.
    """
    named = [
        Mention(label, start, end, True)
        for start, end, label in texts_in(sentence.lower(), sample.choices)
        if not UNDETERMINED.search(own_text(label, sample.choices))
        or sentence[:start].rstrip(' "*').endswith((":", "：", "answer is", "答案是"))
    ]
    for pattern in _patterns_for(sentence):
        for match in pattern.finditer(sentence):
            label = match[match.lastindex or 0].upper()
            start, end = match.span(pattern is not _LABEL)
            inside = any(each.start <= start and end <= each.end for each in named)
            if label in sample.labels and not inside:
                named = [each for each in named if not start <= each.start < each.end <= end]
                named.append(Mention(label, start, end, weak=pattern is _WEAK))
    if (there := _THERE_ARE.search(sentence)) and (
        other := counted_option(there[1], sample.choices)
    ):
        return [Mention(other[0], there.start(1), there.end(1), True)]
    if not named and (other := framed_option(sentence, sample.choices)):
        named.append(Mention(*other, True))
    if not named and (other := counted_option(sentence, sample.choices)):
        named.append(Mention(*other, True))
    merged: list[Mention] = []
    for mention in sorted(named, key=lambda mention: mention.start):
        last = merged[-1] if merged else None
        gap = sentence[last.end : mention.start] if last else "-"
        if last and last.label == mention.label and not _WORD.search(gap):
            by_text = last.by_text and mention.by_text
            merged[-1] = Mention(last.label, last.start, mention.end, by_text)
        elif last and not last.by_text and mention.by_text and not _WORD.search(gap):
            merged[-1] = last._replace(end=mention.end)  # `(C) right winger`: the label counts
        else:
            merged.append(mention)
    return merged


# `There are 3 penguins`, `there is only one`: the number of things, whatever other numbers follow.
_THERE_ARE = re.compile(
    rf"\bthere (?:is|are|was|were)(?: only| exactly| a total of| still)? (\d+|{'|'.join(NUMBER_WORDS)})\b",
    re.IGNORECASE,
)


def _patterns_for(sentence: str) -> list[re.Pattern[str]]:
    """The patterns of labels that may match in a sentence."""
    if not _MAY_BE_LABEL.search(sentence):
        return []
    patterns = [_LABEL] if any(map(sentence.__contains__, _AROUND_LABEL)) else []
    return [*patterns, _LETTER_ZH if has_chinese(sentence) else _LETTER, _WEAK]


# --- what a sentence says of them ----------------------------------------------------------------

# Where a clause of a sentence ends; not the comma of `1,000`, the colon of `3:1`.
_COMMA = re.compile(r"[,，;→](?!\d)|[:：](?!\s{0,2}\W{0,3}\w\b)|——|\bbut\b|但|而(?!是)")
# Before a mention that is one of several: `either`, `要么`, `, or it might be `.
_OPEN = re.compile(
    r"\A\W*(?:[Oo]r\b|或)[^,，]*(?:\bbe|是)(?: the| an?)? ?\Z"
    r"|\b(?:[Ee]ither|between|whether|both)\b|要么|介于"
    r"|\b[A-Z][)\]]? (?:or|and|vs\.?) \(?\Z"
)
# Between two options of which the second is set against the first.
_BUT = re.compile(r"\bbut\b|但|而", re.IGNORECASE)
# `, though (E) is tempting`, `while the momentum is 12`; `虽然`: what is conceded is not asserted.
_CONCEDES = re.compile(r"\b(?:though|although|whereas|while|unlike)\b|虽然|尽管", re.IGNORECASE)
_EQUALLY = re.compile(r"\b(?:just as|equally|as well)\b|同样|也(?:可以|对|行)", re.IGNORECASE)
# After an option's label: nothing, a reason, or a predicate that identifies it: `. `, `, since`,
# ` is the sarcastic one`, ` has the correct order`, `才是对的`; not `: needs arcs`, ` is a metal`.
_AFTER_LABEL = re.compile(
    r"[\s*_\"'”’」》)\]]*(?:\Z|[.。!,，;(；]"
    r"|(?:because|since|as|which|here|for|given|based|by|so|instead|it is|is it|is left|remains"
    r"|survives|fits|works|holds|matches|is mine|stands out)\b"
    r"|(?:is|are|was|would be|could be|might be|may be|can be|must be|seems|looks|feels|appears"
    r"|sounds)\b(?: to be)?(?: \w+){0,3}? (?:the|my|more|most|best|only)\b"
    r"|(?:is|was|would be|seems|looks|feels|must be|appears to be)\b(?: \w+){0,4}? (?:correct|right"
    r"|best|true|answer|choice|pick|likel\w+|plausible|left|one|option|guess|fit|match|possible"
    r"|sarcastic|humorous)\b"
    r"|(?:has|have|follows?|contains?|uses?|describes?|states?) (?:the|a) (?:\w+ )?(?:correct|right"
    r"|best|most|proper)\b"
    r"|(?:选?项)?(?:的?(?:说法|表述|描述))?(?:最|更|才|是|就|为|也|我|的|最终)*"
    r"(?:正确|符合|对(?=的|\W|\Z)|当选|合适|恰当|接近|答案|选择|准确|合理|成立|无疑|满足|佳|错误)"
    r"|选?项?[。,，;；了吧呢!]|这[一个]|选?项?\Z|因为|而)",
    re.IGNORECASE,
)
# After an option's text: ` diagonals.`, ` (A)`, `, which`, `账户。`; not ` is`, ` stores DNA of`.
_AFTER_TEXT = re.compile(
    r"[\s*_\"'”’」》)$]*(?:\Z|[.。!,，;:：(—–]"
    r"|(?:here|because|since|as|which|so|instead|option|choice|category|error)\b"
    r"|(in|at|for|per|by|when|with|of|from|under|on)\b"
    r"|(?:is|are|was|seems|appears|would be)(?: to be)? (?:the|my) (?:\w+ )?(?:only|best|most|correct"
    r"|closest|right|answer|odd)\b"
    r"|(?:(?!is|are|was|were|has|have|can|does)[a-z]+ ?){1,3}[\s*_.!]*\Z"
    r"|[\u4e00-\u9fff]{1,6}[。!,，*]|因为|而)",
    re.IGNORECASE,
)
# Nothing but an article before it: a text that begins its clause.
_BEGINS = re.compile(r"\W*(?:(?:the|an?)\s+\W*)?", re.IGNORECASE)
_ENDS_CLAUSE = tuple(',，.。;；!(（*"”」》)')
_AROUND = " .。!！,，*_\"'”’」》)）]`$✅✔✓"
_DIGIT = re.compile(r"\d")
# `(8·5/2)`, `, or roughly 2.8%`: says the same once more.
_AGAIN = re.compile(
    r"\([^()]*\)|,? (?:or|i\.e\.,?) (?:about|roughly|approximately|around)\b.*|[≈~].*|,? (?:while"
    r"|whereas|though|although|as|when|because|since)\b.*"
)
# The end of `25 %, is my final answer`.
_IS_MY_ANSWER = re.compile(
    r",? (?:is|would be|has to be) (?:my|the) (?:final |best |correct |right )?"
    r"(?:answer|choice|pick|guess)\W*\Z"
)
# `Grade: B`, which is another thing's; not `Revised: B`.
_ONE_WORD = re.compile(
    r"[\s*_]*(?!(?i:revised|corrected|updated|choice|pick|selection|verdict|guess|result|letter"
    r"|option|decision|solution|key|final|conclusion|correct|so|thus|hence|therefore|no|yes"
    r"|actually|sorry|wait|dr|answer)\b)"
    r"[A-Za-z]+[:：,][\s*_(\[]*[A-Z]\W*"
)
# `so that is option 2`: an option of another list.
_NUMBERED = re.compile(r"\b(?:option|choice) #?\d")
# Before an option that is only looked at: `I looked at (A) and then at `, `Let's consider `.
_LOOKED_AT = re.compile(
    r"\b(?:at|about|through|over|beyond|against|consider|examine|evaluate|check|analyze|compare"
    r"|discuss|start with|is to)"
    r"(?: (?:the|each|option|both))*[\s*_\"“(]*\Z",
    re.IGNORECASE,
)
# Before an option's text that more follows: `is a `, `called the `, `= `; `是`.
_NAMES = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|equals?|gives?|get|becomes?|remains?|called|namely|by|as|to|in"
    r"|into|at|with|from|for|on|so|thus|therefore|hence|recommend|choose|pick|select|suggest|say)\b"
    r"|[:：=≈,，是为即])"
    r"[\s*_\"“$]*(?:(?:the|an?|about|approximately|roughly|exactly|likely|probably|only)\s++)*\Z"
    r"|\A\W*\Z",
    re.IGNORECASE,
)


class Named(NamedTuple):
    """What a sentence says of options."""

    asserted: tuple[Mention, ...] = ()
    discussed: tuple[Mention, ...] = ()
    """Those that it names without a verdict."""
    rejected: tuple[str, ...] = ()
    is_open: bool = False
    """Whether it leaves several open."""


def judge(sentence: str, sample: Sample) -> Named:
    """What a spoken sentence says of options."""
    if sentence.rstrip("*_\"'”’) ").endswith(("?", "？")):
        return Named()
    named = mentions(sentence, sample)
    if not named or supposes(sentence, sample):
        return Named()
    if _ONE_WORD.fullmatch(sentence) or _NUMBERED.search(sentence):
        return Named(is_open=True)
    if (mine := _IS_MY_ANSWER.search(sentence)) is not None:
        sentence = sentence[: mine.start()]
        named = mentions(sentence, sample)
    asserted: list[Mention] = []
    discussed: list[Mention] = []
    rejected: list[str] = []
    is_open = False
    end = 0
    clause_ends = [match.end() for match in _COMMA.finditer(sentence)]
    for group in _joined(sentence, named):
        first, last = group[0], group[-1]
        commas = [comma for comma in clause_ends if comma <= first.start]
        clause = sentence[max([end, *commas]) : first.start]
        end = last.end
        if _is_rejected(sentence, last, clause, sample):
            rejected += [mention.label for mention in group]
        elif len(group) > 1 or _said(_OPEN, clause, sample, 4):
            asserted, is_open = [], True
        elif asserted and _EQUALLY.search(sentence, end):
            is_open = True
        elif _CONCEDES.search(clause):
            continue
        elif (
            first.weak
            or _said(HEDGES, clause, sample, 1)
            or not _is_answer(sentence, first, sample)
        ):
            discussed.append(first)
        else:
            is_open = False
            asserted.append(first)
    return Named(tuple(asserted), tuple(discussed), tuple(rejected), is_open)


def _joined(sentence: str, named: Sequence[Mention]) -> list[list[Mention]]:
    """Mentions of different options in groups that ``or``, ``and`` or a comma joins."""
    groups: list[list[Mention]] = []
    for mention in named:
        before = groups[-1][-1] if groups else None
        link = sentence[before.end : mention.start] if before else ""
        if (
            before
            and before.label != mention.label
            and not _BUT.search(link)
            and LINK.fullmatch(link)
            and strength_of(link) != "apart"
        ):
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups


def _is_rejected(sentence: str, mention: Mention, clause: str, sample: Sample) -> bool:
    """Whether a sentence says that an option is not the one, before it or after it."""
    if CONTRAST.search(clause) or is_unsure(clause, sample):
        return True
    after = _text_end(sentence, mention, sample)
    is_wrong = NEGATIVE.match(sentence, after) and not CONTRAST.match(sentence, after)
    return bool(is_wrong) and not sample.asks_for_wrong


def _text_end(sentence: str, mention: Mention, sample: Sample) -> int:
    """Where a mention ends, with its option's own text where that follows the label."""
    own = spoken(own_text(mention.label, sample.choices)).lower()
    rest = sentence[mention.end :]
    begin = len(rest) - len(rest.lstrip(" .:、)*_\"“"))
    if own and rest[begin:].lower().startswith(own):
        return mention.end + begin + len(own)
    return mention.end


def _said(pattern: re.Pattern[str], clause: str, sample: Sample, more: int) -> bool:
    """Whether a clause says what a pattern matches, other than in the question's own words.

    The question's words are recognised with some characters `more`.
    """
    return any(
        clause[match.start() : match.end() + more] not in sample.text
        for match in pattern.finditer(clause)
    )


def _is_answer(sentence: str, mention: Mention, sample: Sample) -> bool:
    """Whether a mention is where an answer would be, not where something is said of an option."""
    rest = sentence[mention.end :].lstrip(" .:、)*_")
    if _LOOKED_AT.search(sentence, 0, mention.start):
        return False
    if not rest.strip(_AROUND):
        return True
    if not mention.by_text:
        end = _text_end(sentence, mention, sample)
        if end > mention.end and _AFTER_TEXT.match(sentence, end):
            return True
        if sentence[: mention.start].endswith(("是", "为", "选", "即")):
            return sentence[mention.end] in ":：,，。;.! (（)）*"
        if _AFTER_LABEL.match(sentence, end):
            return True
        if _NAMES.search(sentence, 0, mention.start) and concludes(sentence[: mention.start]):
            return True
        return bool(_RIGHT.search(sentence, end)) and not _WRONG.search(sentence, end)
    if _is_counted(sentence, mention, sample):
        return _COUNTS.search(sentence, 0, mention.start) is not None
    if _DIGIT.search(sentence, *mention[1:3]) and _DIGIT.search(_AGAIN.sub("", rest)):
        return False  # a number on the way to another
    begins = _BEGINS.fullmatch(_COMMA.split(sentence[: mention.start])[-1])
    after = _AFTER_TEXT.match(sentence, mention.end)
    if begins and sentence[mention.end] not in _ENDS_CLAUSE and not (after and " " in after[0][3:]):
        return False  # the subject of a clause: `The nucleus stores`
    if after and after[1] and not _NAMES.search(sentence, 0, mention.start):
        return False  # `Create a line from 5 to 6`
    return after is not None


# Before a number of things that is the answer: `There are `, `is `, `a total of `, `= `.
_COUNTS = re.compile(
    r"(?:\b(?:is|are|was|were|be|of|have|has|equals?|gives?|get|leaves|with)|[=≈:：是为有])"
    r"[\s*_]*(?:(?:only|exactly|about|approximately|just)\s)?[\s*_$]*\Z",
    re.IGNORECASE,
)


def _is_counted(sentence: str, mention: Mention, sample: Sample) -> bool:
    """Whether a mention is a number that stands for an option with another text."""
    own = spoken(own_text(mention.label, sample.choices)).lower()
    written = sentence[mention.start : mention.end].lower()
    is_number = _QUANTITY.fullmatch(written) is not None
    is_there = _THERE_ARE.search(sentence, 0, mention.end) is not None
    return is_number and (own != written or is_there)


# `5`, `27/40`, `three`: a number.
_QUANTITY = re.compile(rf"-?[\d,.]+(?:/\d+)?%?|{'|'.join(NUMBER_WORDS)}")


# A part of every English match of `SUPPOSES`, in small letters; quicker to find than a pattern.
_SUPPOSING = (
    "if", "unless", "suppos", "assuming", "were ", " might", " may", " could", " would", " will",
    " often", " tend", " students", " people", " readers", " candidates", " sources", " textbooks",
    " authors",
)  # fmt: skip


def supposes(sentence: str, sample: Sample) -> bool:
    """Whether a sentence supposes what it says, other than in the question's own words."""
    if not has_chinese(sentence) and not any(map(sentence.lower().__contains__, _SUPPOSING)):
        return False
    for match in SUPPOSES.finditer(sentence):
        words = sentence[match.start() : match.end() + 6].casefold()
        if words not in sample.text.casefold() and not CONCLUDES.search(sentence, match.end()):
            return True
    return False


# --- verdicts on options -------------------------------------------------------------------------

# `not`, `incorrect`, `ruled out`, `✗`; `错误`, `不符合`: an option is called wrong.
_WRONG = re.compile(
    r"\bnot\b|n[’']t\b|\bincorrect|\bwrong|\bfalse\b|\bcannot\b|eliminat|\bruled? out|\bnever\b"
    r"|\bfails?\b|\buntrue|\binaccurate|\bimpossible"
    r"|\binvalid|\bunlikely|\bneither|[✗✘❌×]|\bless\b|不|错|误|排除|非|无关|违背|矛盾|没有",
    re.IGNORECASE,
)
# `correct`, `true`, `best`, `✓`; `正确`, `符合`: an option is called right.
_RIGHT = re.compile(
    r"\b(?:correct|right|best|more likely|most (?:accurate|appropriate|likely|suitable)|the answer"
    r"|accurate|true)\b|[✓✔✅√]"
    r"|正确|(?<![不])(?:符合|对(?=的|[。,;!]|\Z)|合适|恰当|成立|满足)|当选|为答案|是答案",
    re.IGNORECASE,
)
# The option is called the answer, whatever it says itself: `不准确,符合题意,当选`.
_CHOSEN = re.compile(
    r"(?<![不非])(?:当选|符合题意|为答案|是答案|正确答案|的答案|正确选项|应选)"
    r"|\b(?:is|as) (?:my|the|our) (?:\w+ )?(?:answer|choice|pick|exception|odd one)\b",
    re.IGNORECASE,
)
# `(A) ✗ (B) ✓`: options and marks in a line.
_MARKED = re.compile(r"(?<![A-Za-z])([A-Z])[)\].:]{0,2}\s?(?:([✓✔✅☑√])|[✗✘❌×])")
# `| B | 2.5 Mly | ✓ |`, `❌ A – phagocyte`, `B. 长江——太平洋，√`: a line with a mark at one end.
_MARKED_ROW = re.compile(
    r"(?m:^[\s|*-]*[(\[]?([A-Z])[)\].:、]{0,2}\s*[|—–:：-][^\n✓✔✅☑√✗✘❌×]*(?:([✓✔✅☑√])|[✗✘❌×])[\s|]*$)"
)
# The last cell of a table's row: `| yes |`.
_CELL = re.compile(
    r"[|:：)–—-]\s*(?:(yes|true|是|对)|(?:no|false|否|错))[\s|.。]*\Z", re.IGNORECASE
)
# Where a remark goes on to its reason: `, because`, ` since`, `, but`; `,因为`.
_REASON = re.compile(
    r"[,，;；]|\b(?:because|since|as it|as the|but|so that|which|and)\b|因为|由于|但", re.IGNORECASE
)
# A line that discusses one option: `(A) text - remark`, `- **Option B**: `, `选项C,`, `C选项,`.
_ITEM = re.compile(
    r"[\s\-•*|>#✓✔✅✗✘❌√×☑️\d.]*+(?:[Oo]ption |[Cc]hoice |[Ss]tatement |(?:对于|关于)?选项 ?)?"
    r"[(\[*\"“]{0,3}([A-Z])(?:[)\].:、*|：]| ?选?项|\s*[-–—✓✔✅✗✘❌√|]|(?=[,，]))"
)


class _Sentence(NamedTuple):
    """A sentence and the option under whose heading it stands in a list; empty for none."""

    text: str
    item: str


def _sentences(text: str, sample: Sample) -> list[_Sentence]:
    """The sentences of a text, each with the item of a list of options that it belongs to."""
    parts: list[_Sentence] = []
    item = ""
    for line in text.split("\n"):
        if not line.strip():
            continue
        heading = _ITEM.match(line)
        if heading and heading[1] in sample.labels:
            item = heading[1]
        elif not line[:1].isspace() and line.lstrip()[:1] not in "-*•":
            item = ""
        for each in clauses(_BOLD.sub("", _LIST_NUMBER.sub("", line, count=1))):
            if item and _BEGINS_CONCLUSION.match(each) and not _THIS_ITEM.search(each):
                item = ""
            if _WORD.search(each):
                parts.append(_Sentence(each, item))
    return parts


# `this statement`, `该项`: the item of the list once more.
_THIS_ITEM = re.compile(r"\b(?:this|it)\b(?! (?:means|analysis))|该|此项|本项", re.IGNORECASE)
# `1. `, `(2) `: the number of a list's line.
_LIST_NUMBER = re.compile(r"\s*\(?\d{1,2}[.)]\s+")
# `**` around more than a label.
_BOLD = re.compile(r"\*\*(?=[^\s*(]{2})|(?<=[^\s*)]{2})\*\*")
# `So`, `Therefore,`, `Based on`; `因此`: a sentence that ends the discussion of an option.
_BEGINS_CONCLUSION = re.compile(
    r"\s*(?:so|therefore|thus|hence|based on|considering|overall|in conclusion|finally)\b"
    r"|\s*(?:因此|所以|综上|故|由此|总之)",
    re.IGNORECASE,
)


class _Verdicts(NamedTuple):
    """The options that a reply calls right, wrong, and the answer."""

    right: set[str]
    wrong: set[str]
    chosen: set[str]
    named: set[str]
    """All options that are discussed."""


# `Which statement is sarcastic?`, `which of these is a humorous edit of`: what is asked for.
_ASKED_FOR = re.compile(
    r"\bwhich (?:\w+ ){0,4}?(?:is|are|has|have|was|were) ([^?:.\n]{3,60})", re.IGNORECASE
)
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")


def _asked_for(sample: Sample) -> frozenset[str]:
    """The first two words of what a question asks for: ``sarcastic``, ``humorous edit``."""
    asked = None if sample.asks_for_wrong else _ASKED_FOR.search(sample.text)
    words = _LONG_WORD.findall(asked[1].lower())[:2] if asked else ()
    return frozenset(words) - _ASKING


def _verdicts(parts: Sequence[_Sentence], sample: Sample) -> _Verdicts:
    """What all sentences call right and wrong, supposed sentences aside."""
    verdicts = _Verdicts(set(), set(), set(), set())
    asked_for = _asked_for(sample)
    for part in parts:
        sentence = spoken(part.text)
        if supposes(sentence, sample) or sentence.rstrip().endswith(("?", "？")):
            continue
        labels = [part.item] if part.item else []
        is_about = _ABOUT_ITEM.match(part.text) is not None
        for clause, named in _remarks(sentence, sample):
            labels = named or labels  # what is said after a comma is said of the same option
            if not labels:
                continue
            verdicts.named.update(labels)
            cell = _CELL.search(clause)
            if _CHOSEN.search(clause):
                verdicts.chosen.update(labels)
            elif not named and not is_about:
                continue
            elif _is_wrong(clause, asked_for, is_direct=bool(named)) or (cell and not cell[1]):
                verdicts.wrong.update(labels)
                labels = []
            elif _RIGHT.search(clause) or cell or _has_all(clause, asked_for):
                verdicts.right.update(labels)
                labels = []
    return verdicts


# `This option`, `It`, `The statement`; `该项`, or a heading before a dash: what is said of the item.
_ABOUT_ITEM = re.compile(
    r"[\s\-•*|>✓✔✅✗✘❌√×☑️]*(?:(?:so|therefore|thus|hence),? )?(?:this|it|that|the (?:option|statement"
    r"|sentence|choice)|option|choice|correct|incorrect|true|false|right|wrong|not )"
    r"|[\s\-•*]*(?:该|此|这|本|说法|表述|正确|错误|不)|[^.]{0,300}?(?:[-–—:：|]|[✗✘❌×✓✔✅√])",
    re.IGNORECASE,
)
# `incorrect`, `ruled out`, `✗`; `错误`: words that call an option wrong by themselves.
_CALLS_WRONG = re.compile(
    r"\bincorrect|\bwrong|\bfalse\b|eliminat|\bruled? out|\binvalid|\buntrue|\binaccurate"
    r"|[✗✘❌×]|错|误|排除|不正确|不符合|不对|不成立",
    re.IGNORECASE,
)


def _is_wrong(clause: str, asked_for: frozenset[str], *, is_direct: bool) -> bool:
    """Whether a clause calls an option wrong.

    In a remark that does not name the option, a mere ``not`` counts only with what it denies:
    ``This is not correct``.
    """
    if not _WRONG.search(clause):
        return False
    if is_direct or _CALLS_WRONG.search(clause):
        return True
    return _RIGHT.search(clause) is not None or _has_all(clause, asked_for) or "possible" in clause


# `is `, `a `: before what is said of an option.
_IS_A = re.compile(r"\b(?:is|are|has|have|being|it)\b", re.IGNORECASE)


def _has_all(clause: str, words: frozenset[str]) -> bool:
    """Whether a clause says all that is asked for: ``This statement is sarcastic``."""
    if not words or not _IS_A.search(clause):
        return False
    return words <= set(_LONG_WORD.findall(clause.lower()))


def _remarks(sentence: str, sample: Sample) -> Iterator[tuple[str, list[str]]]:
    """Yield each clause of a sentence without the texts of options, and the options that it names."""
    start = 0
    named = mentions(sentence, sample)
    ends = [match.start() for match in _REASON.finditer(sentence)] + [len(sentence)]
    for end in ends:
        inside = [each for each in named if start <= each.start < end]
        if end < len(sentence) and any(each.start < end < each.end for each in named):
            continue  # the comma of an option's text
        said = "".join(
            " " if any(each.start <= at < _text_end(sentence, each, sample) for each in inside) else c
            for at, c in enumerate(sentence[start:end], start)
        )
        yield said, [each.label for each in inside if not each.by_text or len(inside) == 1]
        start = end


def _by_verdicts(verdicts: _Verdicts, sample: Sample) -> str | None:
    """The one option that a discussion of several leaves as the answer."""
    right, wrong, chosen, _ = verdicts
    if len(chosen) == 1:
        return chosen.pop()
    if right & wrong:
        right, wrong = right - wrong, wrong - right
        if not sample.asks_for_wrong:
            return None
    if sample.asks_for_wrong:
        return wrong.pop() if len(wrong) == 1 and (right or len(verdicts.named) > 2) else None
    return right.pop() if len(right) == 1 else None


# --- what a reply concludes ----------------------------------------------------------------------

# `The answer is not listed`, `none of the options`; `选项中没有`: no option is the answer.
_NOT_LISTED = re.compile(
    r"\bnot (?:listed|among (?:the|these|any)|(?:in|one of) (?:the|these) (?:list|options|choices"
    r"|listed|given)|given as|an option)\b"
    r"|\bnone of (?:the|these)\b|\bno (?:option|choice)\b|\b(?:all|both) (?:of the |the )?options\b"
    r"|\bd(?:o|oes|id)(?: not|n[’']t) (?:match|equal|appear|correspond)\b"
    r"|选项[^。\n]{0,8}(?:没有|无)|没有[^。\n]{0,6}选项|都没有|都不(?:对|是|符合|正确)",
    re.IGNORECASE,
)
# `(Chloroplasts are not listed.)`
_ASIDE = re.compile(r"\([A-Z][^()]{15,}[.!]\)")
_PLACES = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
# `the second option`, `第三个选项`.
_ORDINAL = re.compile(
    rf"\b[Tt]he ({'|'.join(_PLACES)}|last) (?:listed )?(?:option|choice|alternative)\b"
    r"|第([一二三四五六七八九十])个?选项|最后一个选项"
)
# What chooses, wherever it stands near the end: `I would recommend`, `I'd go with`, `the closest`,
# `the only possible`; `应选`, `最符合`.
_CHOOSES = re.compile(
    r"\b(?:I|we|I['’]d|I['’]ll)(?: would| will| must| should| can| have to| had to)?"
    r"(?: therefore| probably| likely)? (?:choose|pick|select|recommend|suggest|say|answer|go"
    r"|lean|settle|guess|conclude)\b|\b(?:going|go|went|stick) with\b"
    r"|\b(?:best|closest|nearest|only|likeliest|right|correct|odd one|most \w+|final)\b"
    r"|\bleaves\b|\bleft with\b|\bmust be\b|\bmatch(?:es)?\b|\bcorrespond\w*\b|[→⇒∴]|=>|->"
    r"|选|最|只有|只能|应该?是|当选|符合|剩下|错误的|不正确的|正确的|倾向|认为|觉得",
    re.IGNORECASE,
)
# What leaves no other option: `the only possible`, `the closest`, `I would recommend`.
_DECIDES = re.compile(
    r"\b(?:only|best|closest|nearest|most (?!likely)\w+|recommend|choose|go with)\b|最|只有|只能",
    re.IGNORECASE,
)
_FARTHEST = 8
"""Sentences from the end in which a conclusion may stand."""


def concluded(text: str, sample: Sample) -> Conclusion:
    """The one option that a reply concludes, with the rule and the sentence; a cut reply has none.

    Rules: ``conclusion`` (a concluding sentence names it) and ``discussion`` (it is the only option
    that is called right, or wrong where the wrong one is asked for).
    """
    if len(sample.labels) < 2:
        return Conclusion()  # a row that lost its options: whatever is named may be another
    whole, text = text.rstrip(), without_stub(text).rstrip()
    text = _BROKEN_LABEL.sub("", text)
    if "[LETTER]" in text or "following format" in text:
        text = _FORM.sub("", text).rstrip()
    if len(text) <= BRIEF and _ONLY_LABELS.fullmatch(text):
        return Conclusion()
    ended = is_ended(text)
    if not ended and len(text) > 2 * BRIEF:
        return Conclusion()
    tail = _ASIDE.sub("", _after_correction(tail_of(text), sample))
    if has_chinese(tail):
        tail = tail.replace("; ", ",")  # as it was before `normal_chinese` set remarks apart
    if "option" in tail or "choice" in tail or "alternative" in tail or "选项" in tail:
        tail = _ORDINAL.sub(lambda match: _named_by_place(match, sample), tail)
    if marked := _marked_right(tail, len(sample.labels)):
        return Conclusion(marked, rule="discussion", passage=tail[-SHORT:])
    parts = _sentences(tail, sample)
    how = _Form(ended, len(text) <= BRIEF, len(text) < len(whole))
    label, passage = _conclusion(parts, sample, how)
    if label:
        return Conclusion(label, rule="conclusion", passage=passage)
    if label is None or not parts:
        return Conclusion()
    verdicts = _verdicts(parts, sample)
    if not ended and len(verdicts.right | verdicts.wrong) < len(sample.labels):
        return Conclusion()
    value = _by_verdicts(verdicts, sample)
    passage = parts[-1].text.strip()
    return Conclusion(value, rule="discussion", passage=passage) if value else Conclusion()


class _Form(NamedTuple):
    """The form of a reply."""

    ended: bool
    brief: bool
    has_stub: bool
    """Whether the beginning of a further sentence was cut off."""


# `'ANSWER: [LETTER]', where [LETTER] is one of A, B.`, `of the following format: 'one'`: the form
# that was asked for.
_FORM = re.compile(
    r"[^.。\n]*+\[LETTER\][^.。\n]*+[.。]?"
    r"|[^.。\n]*? of the following format: ?['\"][^'\"\n]*+['\"]?"
)
# `A. A.D.A`: nothing but labels.
_ONLY_LABELS = re.compile(r"\s*+(?:[A-Z][.,;:)\s]++)*+[A-Z]?[.,;:)\s]*+")
# `(A`: a label that broke off.
_BROKEN_LABEL = re.compile(r"[(\[][A-Z]\Z")
# The `not ` of `I have not double-checked`.
_NEVER_DONE = re.compile(r"(?:\bnot|n[’']t|没有?|未) ?\Z")


def _after_correction(tail: str, sample: Sample) -> str:
    """What follows the last word of correction, where it names an option."""
    if not correction_in(tail):
        return tail
    last = list(CORRECTION.finditer(tail))[-1]
    rest = tail[last.start() if last[0].startswith("改") else last.end() :]
    is_asked = last[0].split()[-1:] and last[0].split()[-1].lower() in sample.text.lower()
    if is_asked or _NEVER_DONE.search(tail, max(0, last.start() - 12), last.start()):
        return tail
    return rest if mentions(spoken(rest), sample) else ""


def _marked_right(text: str, options: int) -> str | None:
    """The one option with a tick, where each has a mark: ``(A) ✗ (B) ✓``, ``| B | 2 | ✓ |``."""
    if text.isascii():
        return None
    marks = [mark for pattern in (_MARKED, _MARKED_ROW) for mark in pattern.finditer(text)]
    ticked = {mark[1] for mark in marks if mark[2]}
    named = {mark[1] for mark in marks}
    is_list = len(named) > 1 and (is_ended(text) or len(named) >= min(options, _LEAST_MARKS))
    return ticked.pop() if is_list and len(ticked) == 1 else None


_LEAST_MARKS = 3
"""Options with marks that make a list, whatever ends it."""


def _conclusion(
    parts: Sequence[_Sentence], sample: Sample, form: _Form
) -> tuple[str | None, str]:
    """The option that the last conclusion asserts; None where a reply leaves it open."""
    later: set[str] = set()
    for number, part in enumerate(reversed(parts[-_FARTHEST:])):
        sentence = spoken(part.text.strip())
        if len(sentence) > 3 * SHORT or (number and not form.ended):
            continue
        is_open = _NOT_LISTED.search(sentence) or UNDETERMINED.search(sentence)
        if is_open and not part.item:
            if not mentions(sentence, sample):
                return None, ""
        named = judge(sentence, sample)
        is_conclusion = concludes(sentence) or _answers(sentence, sample)
        labels = _concluded_labels(sentence, named, is_conclusion or "=" in sentence)
        chooses = is_conclusion or _CHOOSES.search(sentence) is not None
        counts = (number == 0 and not form.has_stub) or (number == 1 and form.brief) or chooses
        if part.item and len(parts) > 1:
            others = [each for each in named.asserted if each.label != part.item]
            counts = chooses and bool(others) and not any(each.by_text for each in others)
        if not counts:
            later |= set() if part.item else labels
            continue
        if named.is_open or len(labels) > 1 or later - labels:
            return None, ""
        others = {each.label for each in named.discussed} - labels
        may_mean = chooses and (not sample.asks_for_wrong or _WRONG.search(sentence))
        if not labels and len(others) == 1:
            may_mean = may_mean and not named.discussed[0].by_text
            if may_mean or _is_only_one(parts, named, form, sample):
                labels, others = others, set()
        if len(labels) != 1 or (others and not chooses):
            continue
        if _calls_true(sentence, named, sample) is False and not (
            number == 0 and is_conclusion and _is_alone(parts, labels, sample)
        ):
            continue
        label = labels.pop()
        at_end = not sentence[(named.asserted or named.discussed)[-1].end :].strip(_AROUND)
        if not form.ended and not (at_end and _is_firm(sentence, named)):
            return None, ""
        earlier = parts[: len(parts) - number - 1]
        is_firm = is_conclusion or _DECIDES.search(sentence)
        if not is_firm and _says_other(earlier, label, sample, chooses=chooses):
            return None, ""
        return label, part.text.strip()
    return "", ""


def _concluded_labels(sentence: str, named: Named, is_conclusion: bool) -> set[str]:
    """The options that a sentence asserts; of several those after its last word of conclusion."""
    labels = {each.label for each in named.asserted}
    if len(labels) > 1 and is_conclusion:
        begin = max((match.end() for match in CONCLUDES.finditer(sentence)), default=-1)
        labels = {each.label for each in named.asserted if each.start >= begin >= 0} or labels
    return labels


# Right before the end of a reply without a full stop: `is `, `: `, `为`.
_IS = re.compile(r"(?:\b(?:is|are|be|equals)|[:：=是为即])[\s*_\"“]*(?:the )?\Z")


def _is_firm(sentence: str, named: Named) -> bool:
    """Whether the last mention of a sentence without a full stop is an answer: ``it is B``."""
    last = (named.asserted or named.discussed)[-1]
    return not last.by_text or _IS.search(sentence, 0, last.start) is not None


# `It might be the `: before an option at the end of a sentence.
_MAY_BE = re.compile(
    r"(?:\b(?:may|might|could|should|must)(?: well| still)? be|可能是|也许是)[\s*_\"“]*"
    r"(?:the |an? )?\Z"
)


def _is_only_one(
    parts: Sequence[_Sentence], named: Named, form: _Form, sample: Sample
) -> bool:
    """Whether a short reply speaks of no other option than the one that it only discusses."""
    mention = named.discussed[0]
    sentence = spoken(parts[-1].text.strip())
    is_said = not (mention.by_text or mention.weak) or _MAY_BE.search(sentence, 0, mention.start)
    is_looked_at = _LOOKED_AT.search(sentence, 0, mention.start)
    if not (form.brief and form.ended and is_said) or is_looked_at:
        return False
    spoken_of = {each.label for part in parts for each in mentions(spoken(part.text), sample)}
    return spoken_of == {mention.label}


def _says_other(
    parts: Sequence[_Sentence], label: str, sample: Sample, *, chooses: bool
) -> bool:
    """Whether an earlier sentence asserts another option: ``A is right. B is right.``

    Before a sentence that itself chooses, only a conclusion counts.
    """
    for part in parts[-_FARTHEST:]:
        if part.item or len(part.text) > 3 * SHORT or (chooses and not concludes(part.text)):
            continue
        named = judge(spoken(part.text.strip()), sample)
        if {mention.label for mention in named.asserted} - {label}:
            return True
    return False


_LEAST_WORDS = 3


def _answers(sentence: str, sample: Sample) -> bool:
    """Whether a sentence repeats most words of the question that is asked."""
    text = sample.text
    end = text.find("\nOptions:")
    asked = text[: end if end >= 0 else len(text)].rstrip(" ?_\n")
    asked = asked[max(map(asked.rfind, (". ", "? ", "\n"))) + 1 :]
    words = set(_LONG_WORD.findall(asked.lower())) - _ASKING
    return len(words) >= _LEAST_WORDS and 4 * len(
        words.intersection(_LONG_WORD.findall(sentence.lower()))
    ) >= 3 * len(words)


_ASKING = frozenset({"what", "which", "following", "does", "where", "when", "whom", "these", "many"})


def _is_alone(parts: Sequence[_Sentence], labels: set[str], sample: Sample) -> bool:
    """Whether a reply gives a verdict on no other option than the one that it concludes."""
    verdicts = _verdicts(parts, sample)
    return verdicts.right | verdicts.wrong == labels and verdicts.named == labels


def _calls_true(sentence: str, named: Named, sample: Sample) -> bool | None:
    """Whether a sentence about one option says what the question asks for; None if it does not say.

    Where the wrong statement is asked for, ``B is correct`` says that B is not the answer.
    """
    if not sample.asks_for_wrong or _CHOSEN.search(sentence):
        return None
    remarks = " ".join(said for said, _ in _remarks(sentence, sample))
    if _WRONG.search(remarks):
        return True
    last = (named.asserted or named.discussed)[-1]
    is_end = not sentence[last.end :].strip(_AROUND)
    return None if is_end and not _RIGHT.search(remarks) else False


def _named_by_place(match: re.Match[str], sample: Sample) -> str:
    """An option's label in place of its number: ``option B`` for ``the second option``."""
    if match[2]:
        place = "一二三四五六七八九十".index(match[2])
    else:
        place = _PLACES.index(match[1]) if match[1] in _PLACES else len(sample.labels) - 1
    return f"option {sample.labels[place]}" if place < len(sample.labels) else match[0]

