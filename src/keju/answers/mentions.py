r"""Options that sentences name, and what the last of them concludes.

An option is named by its label, ``(B)``, ``option B``, ``B项``, or by its text. A mention is
asserted unless what stands around it denies, supposes or asks about it, or only compares with it:
``B, rather than C``. A conclusion asserts exactly one option.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from keju.answers.copies import paraphrased
from keju.answers.decision import LINK, NEGATIVE, SUPPOSES, strength_of
from keju.answers.endings import (
    BRIEF,
    CONCLUDES,
    CONTRAST,
    ENDED,
    HEDGES,
    SHORT,
    clauses,
    concludes,
    has_chinese,
    is_unsure,
    without_stub,
)
from keju.answers.options import own_text, spoken, texts_in
from keju.answers.segments import NO_LABEL, Statement
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
    r"(?<![A-Za-z0-9=/])(?<!= )[(\[]\s?(?:[Oo]ption |选项 ?)?([A-Za-z])\s?(?:选?项)?[)\]]"
    r"(?![\^_/=A-Za-z0-9])"
    r"|\*\*\(?([A-Z])\)?[.:]?\*\*|[\"“「『]([A-Z])[\"”」』]"
    r"|\b(?:[Oo]ptions?|[Cc]hoice|[Ll]etter) [(*\"“]{0,3}([A-Z])(?![A-Za-z'’])"
    r"|选项 ?[(\"“]?([A-Z])(?![A-Za-z0-9])|(?<![A-Za-z0-9])([A-Z]) ?选?项"
)
# A part of each of them; quicker to find than a pattern.
_AROUND_LABEL = ("(", "[", "**", '"', "“", "「", "『", "ption", "hoice", "etter", "项")
# A bare letter of a Chinese sentence, where an answer stands: `是B。`, `,D`; not `B细胞`, `24 J`,
# `维生素D`.
_LETTER_ZH = re.compile(
    r"(?:\A|(?<=[^\w=+*/^-])"
    r"|(?<=[是为选即就于到改成下剩和与或及非不除应得取故而案论猜定只有仅让者]))"
    r"(?<!\d )([A-Z])(?![A-Za-z0-9=+*/^°'’-])"
    r"(?=\W|\Z|[和与或及才是正符最更项了吧呢这为不也都错还]|对(?:的|\W|\Z))"
)
# After a bare letter of an English sentence: `C is`, `C because`; not `A careful`.
_AFTER_LETTER = (
    "is|was|it is|fits|feels|seems|works|because|since|remains|survives|instead|as|here|for|and|or"
    "|both|are|have|can|could|would|should|might"
)
# A bare letter of an English sentence: `, D.`, `so C`, `Only B survives`; not `vitamin C`,
# `A careful reader`.
_LETTER = re.compile(
    r"(?:\A\W{0,3}|[,;:—–→.] |\b(?:so|is|be|on|to|say|with|that|only|pick|then|hence|thus|towards?"
    r"|therefore|choose|guess|answer|for|either|and|or|not|but|get|gives|leaves|it|options?"
    r"|[Ii]t[’']s|[Tt]hat[’']s|[Oo]nly"
    r"|[Ss]o|[Tt]hus|[Hh]ence) )([A-HJ-Z]|I(?! [a-z]))(?!\. [a-z])"
    rf"(?=[.,;:!?)。,](?![A-Za-z])|[\s*_\"'”’)]{{0,3}}\Z| (?:{_AFTER_LETTER})\b)"
)
# `system B.`, `hepatitis B`: perhaps an option.
_WEAK = re.compile(
    r"(?<=[a-z] )([B-HJ-Z])(?!\. [a-z])(?=[.,;:!?)。,]|[\s*_\"'”’)]{0,3}\Z| (?:and|or|is|was)\b)"
)
# A part of each of them: a capital letter alone, or a letter before a bracket.
_MAY_BE_LABEL = re.compile(r"(?<![A-Za-z])(?:[A-Z](?![A-Za-z])|[a-z]\s?(?:选?项)?[)\]])")
# A part of `_LETTER` and of `_WEAK`: the letter and what follows it, which is found quickly.
_MAY_BE_LETTER = re.compile(
    rf"(?<![A-Za-z])[A-Z](?=[.,;:!?)。]|[\s*_\"'”’)]{{0,3}}\Z| (?:{_AFTER_LETTER})\b)"
)
_WORD = re.compile(r"\w")


def mentions(sentence: str, sample: Sample) -> list[Mention]:
    """The options that a spoken sentence names, in order.

    What stands inside another mention is none; a label and its own text beside it are one.
    """
    found = [
        Mention(label, start, end, True)
        for start, end, label in texts_in(sentence.lower(), sample.choices)
    ]
    for pattern in _patterns_for(sentence):
        for match in pattern.finditer(sentence):
            written = match[match.lastindex or 0]
            label = written.upper()
            if pattern is _LABEL and (written == "i" or f"({label.lower()})" in sample.text):
                continue  # `(i)`, `(b)`: a number, or a part of the question
            start, end = match.span(pattern is not _LABEL)
            inside = any(each.start <= start and end <= each.end for each in found)
            if label in sample.labels and not inside:
                found = [each for each in found if not start <= each.start < each.end <= end]
                found.append(Mention(label, start, end, weak=pattern is _WEAK))
    merged: list[Mention] = []
    for mention in sorted(found, key=lambda mention: mention.start):
        last = merged[-1] if merged else None
        gap = sentence[last.end : mention.start] if last else "-"
        if last and last.label == mention.label and not _WORD.search(gap):
            by_text = last.by_text and mention.by_text
            merged[-1] = Mention(last.label, last.start, mention.end, by_text)
        else:
            merged.append(mention)
    return merged


def _patterns_for(sentence: str) -> list[re.Pattern[str]]:
    """The patterns of labels that may match in a sentence."""
    if not _MAY_BE_LABEL.search(sentence):
        return []
    patterns = [_LABEL] if any(map(sentence.__contains__, _AROUND_LABEL)) else []
    if has_chinese(sentence):
        patterns += [_LETTER_ZH, _WEAK]
    elif _MAY_BE_LETTER.search(sentence):
        patterns += [_LETTER, _WEAK]
    return patterns


# --- what a sentence says of them ----------------------------------------------------------------

# Where a clause of a sentence ends; not the comma of `1,000`, the colon of `3:1`.
_COMMA = re.compile(r"[,，;→](?!\d)|[:：](?!\s{0,2}\W{0,3}\w\b)|——|\bbut\b|但|而(?!是)")
# Before a mention that is one of several: `either`, `要么`, `confirm A or `, `, or it might be `.
_OPEN = re.compile(
    r"\A\W*(?:[Oo]r\b|或)[^,，]*(?:\bbe|是)(?: the| an?)? ?\Z"
    r"|\b(?:[Ee]ither|between|whether)\b|要么|介于"
    r"|\b[A-Z][)\]]? (?:or|and|vs\.?) \(?\Z"
)
# Between two options of which the second is set against the first.
_BUT = re.compile(r"\bbut\b|但|而", re.IGNORECASE)
# `, though (E) is tempting`, `while the momentum is 12`; `虽然`: what is conceded is not asserted.
_CONCEDES = re.compile(r"\b(?:though|although|whereas|while|unlike)\b|虽然|尽管", re.IGNORECASE)
_EQUALLY = re.compile(r"\b(?:just as|equally|as well)\b|同样|也(?:可以|对|行)", re.IGNORECASE)
# After an option's label: nothing, a remark, or that it is right: `. `, `, since`, ` is correct`,
# `才是对的`; not ` is a metal`, `: needs arcs`.
_AFTER_LABEL = re.compile(
    r"[\s*_\"'”’」》)\]]*(?:\Z|[.。!,，;(；]"
    r"|(?:because|since|as|which|here|for|given|based|by|so|instead|it is|is it|is left|remains"
    r"|survives|fits|works|holds|matches|is mine)\b"
    r"|(?:is|was|would be|seems|looks|feels|must be)\b(?: \w+){0,4}? (?:correct|right|best|true"
    r"|answer|choice|pick|likel\w+|plausible|left|one|option|guess|fit|match)\b"
    r"|(?:选?项)?(?:的?(?:说法|表述|描述))?(?:最|更|才|是|就|为|也|我|的|最终)*"
    r"(?:正确|符合|对(?=的|\W|\Z)|当选|合适|恰当|接近|答案|选择|准确|合理|成立|无疑|满足|佳)"
    r"|选?项?[。,，;；了吧呢!]|这[一个]|选?项?\Z|因为|而)",
    re.IGNORECASE,
)
# After an option's text: ` diagonals.`, ` (A)`, `, which`, `账户。`; not ` is`, ` stores DNA of`.
_AFTER_TEXT = re.compile(
    r"[\s*_\"'”’」》)$]*(?:\Z|[.。!,，;:：(—–]"
    r"|(?:here|because|since|as|which|so|instead)\b"
    r"|(in|at|for|per|by|when|with|of|from|under|on)\b"
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
    r"|whereas|though|although)\b.*"
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
    r"|actually|sorry|wait|dr)\b)"
    r"[A-Za-z]+[:：,][\s*_(\[]*[A-Z]\W*"
)


# `so that is option 2`: an option of another list.
_NUMBERED = re.compile(r"\b(?:option|choice) #?\d")


class _Named(NamedTuple):
    """What a sentence says of options."""

    asserted: tuple[Mention, ...] = ()
    discussed: tuple[Mention, ...] = ()
    """Those of which it speaks without a verdict."""
    is_open: bool = False
    """Whether it leaves several open."""


def _named(sentence: str, sample: Sample) -> _Named:
    """What a spoken sentence says of options."""
    if sentence.rstrip("*_\"'”’) ").endswith(("?", "？")):
        return _Named()
    found = mentions(sentence, sample)
    if not found or supposes(sentence, sample):
        return _Named()
    if _ONE_WORD.fullmatch(sentence) or _NUMBERED.search(sentence):
        return _Named(is_open=True)
    if (mine := _IS_MY_ANSWER.search(sentence)) is not None:
        sentence = sentence[: mine.start()]
        found = mentions(sentence, sample)
    kept: list[Mention] = []
    discussed: list[Mention] = []
    is_open = denied = False
    before: Mention | None = None
    clause_ends = [match.end() for match in _COMMA.finditer(sentence)]
    for mention in found:
        commas = [end for end in clause_ends if end <= mention.start]
        link = sentence[before.end : mention.start] if before else ""
        differs = before and before.label != mention.label and not _BUT.search(link)
        joined = differs and LINK.fullmatch(link)
        clause = sentence[max([before.end if before else 0, *commas]) : mention.start]
        wrong = bool(NEGATIVE.match(sentence, mention.end)) and not CONTRAST.match(
            sentence, mention.end
        )
        was_denied, before = denied, mention
        denied = wrong or bool(CONTRAST.search(clause)) or is_unsure(clause, sample)
        if joined and strength_of(link) != "apart":
            denied = was_denied or wrong  # what is said of the one is said of the other
            if not denied:
                kept, is_open = [], True
        elif _said(_OPEN, clause, sample, 4) or (kept and _EQUALLY.search(sentence, mention.end)):
            is_open = True
        elif _CONCEDES.search(clause) or denied:
            continue
        elif (
            mention.weak
            or _said(HEDGES, clause, sample, 1)
            or not _is_answer(sentence, mention, sample)
        ):
            discussed.append(mention)
        else:
            is_open = False
            kept.append(mention)
    return _Named(tuple(kept), tuple(discussed), is_open)


def _said(pattern: re.Pattern[str], clause: str, sample: Sample, more: int) -> bool:
    """Whether a clause says what a pattern matches, other than in the question's own words.

    By those it is known with some characters `more`.
    """
    return any(
        clause[match.start() : match.end() + more] not in sample.text
        for match in pattern.finditer(clause)
    )


# Before an option that is only looked at: `I looked at (A) and then at `.
_LOOKED_AT = re.compile(r"\b(?:at|about|through|over|beyond|against)[\s*_\"“(]*\Z", re.IGNORECASE)


def _is_answer(sentence: str, mention: Mention, sample: Sample) -> bool:
    """Whether a mention stands where an answer does, not where something is said of an option."""
    rest = sentence[mention.end :].lstrip(" .:、)*_")
    if _LOOKED_AT.search(sentence, 0, mention.start):
        return False
    if not rest.strip(_AROUND):
        return True
    if not mention.by_text:
        own = spoken(own_text(mention.label, sample.choices)).lower()
        if own and rest.lower().startswith(own):
            return _AFTER_TEXT.match(rest, len(own)) is not None
        if sentence[: mention.start].endswith(("是", "为", "选", "即")):
            return sentence[mention.end] in ":：,，。;.! (（)）*"
        return _AFTER_LABEL.match(sentence, mention.end) is not None
    if _DIGIT.search(sentence, *mention[1:3]) and _DIGIT.search(_AGAIN.sub("", rest)):
        return False  # a number on the way to another
    begins = _BEGINS.fullmatch(_COMMA.split(sentence[: mention.start])[-1])
    if begins and sentence[mention.end] not in _ENDS_CLAUSE:
        return False  # the subject of a clause: `The nucleus stores`
    after = _AFTER_TEXT.match(sentence, mention.end)
    if after and after[1] and not _NAMES.search(sentence, 0, mention.start):
        return False  # `Create a line from 5 to 6`
    return after is not None


# Before an option's text that more follows: `is a `, `called the `, `= `; `是`.
_NAMES = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|equals?|gives?|get|becomes?|remains?|called|namely|by|as|to|in"
    r"|into|at|with|from|for|on|so|thus|therefore|hence)\b|[:：=≈,，是为即])"
    r"[\s*_\"“$]*(?:(?:the|an?|about|approximately|roughly|exactly|likely|probably)\s++)*\Z|\A\W*\Z",
    re.IGNORECASE,
)


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


# --- what a reply concludes ----------------------------------------------------------------------

# `The answer is not listed`, `none of the options`; `选项中没有`: no option is the answer.
_NOT_LISTED = re.compile(
    r"\bnot (?:listed|among (?:the|these|any)|(?:in|one of) (?:the|these) (?:list|options|choices"
    r"|listed|given)"
    r"|given as|an option)\b"
    r"|\bnone of (?:the|these)\b|\bno (?:option|choice)\b"
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


def _named_by_place(sample: Sample) -> Callable[[re.Match[str]], str]:
    """Puts an option's label in place of its number."""

    def label(match: re.Match[str]) -> str:
        if match[2]:
            place = "一二三四五六七八九十".index(match[2])
        else:
            place = _PLACES.index(match[1]) if match[1] in _PLACES else len(sample.labels) - 1
        return f"option {sample.labels[place]}" if place < len(sample.labels) else match[0]

    return label


def concluded(text: str, sample: Sample) -> Statement:
    """The one option that the last sentence with any asserts; a long reply must say so.

    Where a reply breaks off, only what it ends with counts.
    """
    text = _ASIDE.sub("", without_stub(text))
    if "option" in text or "choice" in text or "alternative" in text or "选项" in text:
        text = _ORDINAL.sub(_named_by_place(sample), text)
    statement = _concluded(text, sample)
    if statement.value and _NOT_LISTED.search(text):
        return statement if _NOT_LISTED.search("\n".join(sample.choices)) else NO_LABEL
    return statement


def _concluded(text: str, sample: Sample) -> Statement:
    """What `concluded` says of a text in which options are named by their labels."""
    sentences = [each for each in clauses(text) if any(map(str.isalnum, each))]
    ended = ENDED.search(text[-8:].rstrip()) is not None
    last = 2 if len(text.strip()) <= BRIEF else 1
    for number, each in enumerate(reversed(sentences)):
        if len(each) > 2 * SHORT or (number >= last and not concludes(each)):
            continue
        before = sentences[-number - 2].rstrip() if number + 1 < len(sentences) else ""
        if before.endswith((";", "；")) and supposes(before, sample):
            return NO_LABEL  # `如果天冷; B项正确`
        sentence = spoken(each.strip())
        given, discussed, is_open = _named(sentence, sample)
        labels = {each.label for each in given}
        if len(labels) > 1:
            begin = max((match.end() for match in CONCLUDES.finditer(sentence)), default=-1)
            labels = {each.label for each in given if each.start >= begin >= 0} or labels
        others = {each.label for each in discussed} - labels
        at_end = given and not sentence[given[-1].end :].strip(_AROUND)
        is_conclusion = concludes(sentence) or "=" in sentence
        if others and labels and not is_conclusion and (given[-1].by_text or not at_end):
            return NO_LABEL
        if is_open or len(labels) > 1:
            return NO_LABEL
        if others and not labels:
            break
        if number and given and given[-1].by_text and _DIGIT.search(sentence, *given[-1][1:3]):
            return NO_LABEL  # a number on the way to another
        firm = at_end and (not given[-1].by_text or _IS.search(sentence, 0, given[-1].start))
        if labels and last > 1 and not is_conclusion and _says_other(sentences, labels, sample):
            return NO_LABEL
        if labels and (ended or (number == 0 and firm)):
            return Statement(labels.pop())
        if not number and not given and (label := paraphrased(sentence, sample.choices)):
            return Statement(label)
        if labels or (number == 0 and not ended):
            return NO_LABEL
    return _only_one(sentences, sample) if ended and last > 1 else NO_LABEL


# Right before the end of a reply without a full stop: `is `, `: `, `为`.
_IS = re.compile(r"(?:\b(?:is|are|be|equals)|[:：=是为即])[\s*_\"“]*(?:the )?\Z")
# `It might be the `: before an option at the end of a sentence.
_MAY_BE = re.compile(
    r"(?:\b(?:may|might|could|should|must)(?: well| still)? be|可能是|也许是)[\s*_\"“]*"
    r"(?:the |an? )?\Z"
)
# After an option's text that begins a sentence: ` is the `, `就是`.
_SUBJECT = re.compile(
    r"[\s*_\"'”’」》]*(?:(?:is|are|was|were|from|here|makes?|produces?|does|has)\b|[就才正]?是|符合"
    r"|\W*\Z)",
    re.IGNORECASE,
)


def _says_other(sentences: list[str], labels: set[str], sample: Sample) -> bool:
    """Whether a sentence asserts another option: ``A is right. B is right.``"""
    return any(
        {mention.label for mention in _named(spoken(each.strip()), sample).asserted} - labels
        for each in sentences
    )


def _only_one(sentences: list[str], sample: Sample) -> Statement:
    """The only option that a short reply speaks of: ``The oboe is the woodwind.``, ``Perhaps B.``

    A label may stand anywhere, an option's text must begin the sentence.
    """
    spoken_of: set[str] = set()
    is_clear = False
    for sentence in (spoken(each.strip()) for each in sentences):
        given, discussed, is_open = _named(sentence, sample)
        if is_open or sentence.endswith(("?", "？")) or supposes(sentence, sample):
            return NO_LABEL
        for mention in (*given, *discussed):
            if _LOOKED_AT.search(sentence, 0, mention.start):
                return NO_LABEL
            spoken_of.add(mention.label)
            begins = mention.start < 6 and _SUBJECT.match(sentence, mention.end)
            is_end = not sentence[mention.end :].strip(_AROUND)
            is_said = begins or (is_end and _MAY_BE.search(sentence, 0, mention.start))
            is_clear = is_clear or bool(is_said) or not (mention.by_text or mention.weak)
    return Statement(spoken_of.pop()) if len(spoken_of) == 1 and is_clear else NO_LABEL
