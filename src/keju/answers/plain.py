"""Options that a reply names without announcing them: ``I'd go with B``, ``the closest is (C)``.

They count only where nothing is announced. What is called wrong, supposed or asked about does not
count, and neither do two different options: never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from keju.answers.copies import paraphrased
from keju.answers.decision import CORRECTION, LINK, correction_in
from keju.answers.endings import (
    ASKS_WRONG,
    BRIEF,
    SHORT,
    clauses,
    has_chinese,
    last_sentences,
    without_stub,
)
from keju.answers.labels import read_label
from keju.answers.mentions import concluded, mentions, supposes
from keju.answers.options import labels_of_texts, names_any, without_half_option
from keju.answers.segments import AMBIGUOUS, DRESSING, NO_LABEL, Statement
from keju.types import Sample

TAIL = 1600
"""Characters at the end of a reply in which options are looked for."""

NEAR = 700
"""Characters at the end of a reply in which it concludes."""
_BEGINNING = re.compile(r"[.\n。;]\s?")
# The `not ` of `I have not double-checked`.
_NEVER_DONE = re.compile(r"(?:\bnot|n[’']t|没有?|未) ?\Z")
_LETTER = re.compile(r"[A-J](?![A-Za-z0-9])")
# `'ANSWER: [LETTER]', where [LETTER] is one of A, B.`, `The last line should be of the following
# format: 'one'`: the form that was asked for.
_FORM = re.compile(
    r"[^.。\n]*+\[LETTER\][^.。\n]*+[.。]?"
    r"|[^.。\n]*? of the following format: ?['\"][^'\"\n]*+['\"]?"
)
# `A. A.D.A`: nothing but labels.
_ONLY_LABELS = re.compile(r"\s*+(?:[A-Z][.,;:)\s]++)*+[A-Z]?[.,;:)\s]*+")

# --- wordings that lean towards an option --------------------------------------------------------

# Line by line: `the closest option is`, `closest to`; `the best choice here would be`; `I'd go
# with`; `we choose`; `My pick:`, `the right letter is`; `That leaves`, `left with`; `corresponds
# to`; `which is`, before a named or bracketed option; `or`, before `answer (F)`.
_LEANS = re.compile(
    r"\b(?:(?:closest|nearest)(?: (?:[a-z]+ ){0,2}(?:option|answer|choice|value|match|one))?"
    r"(?: (?:here|listed|given|available|to (?:this|that|it|our)[a-z ]{0,20}))?"
    r"(?: (?:is|would be|will be|seems to be|must be)| to|:)"
    r"|(?:best|likeliest|most (?:likely|plausible|appropriate|suitable|accurate|reasonable"
    r"|logical))"
    r" (?:[a-z]+ )?(?:option|answer|choice|match|one|fit|candidate)(?: here| given)?(?: is"
    r"| would be|:)"
    r"|(?:go|going|went|stick) with|settle (?:on|for)|lean(?:ing)? towards?|(?:I['’]ll|I) guess"
    r"|most likely"
    r"|(?:I|we|I['’]d|I['’]ll)(?: would| will| must| should| can| therefore)? (?:choose|pick"
    r"|select|say|answer|go for)"
    r"|(?:final|my|our) (?:choice|pick|selection|guess|letter|verdict"
    r"|decision)(?: is(?: therefore)?| would be"
    r"|\s?[*_]{0,2}:)"
    r"|(?:right|proper|matching) (?:answer|option|choice|letter|one)(?: is| would be|:)"
    r"|(?:that|this|which|only) leaves(?: us)?(?: with)?(?: only)?|left with(?: only)?"
    r"|(?:(?:corresponds?|corresponding) to|match(?:es|ing))(?= (?:the )?(?:(?:option|choice"
    r"|answer) )?[*(\[]{0,3}[A-Z]\b)"
    r"|(?:which|this|that|it|must|would|should|can only)(?: is| be| must be)"
    r"(?: simply| therefore| clearly)?(?=(?: the| therefore)? (?:option|choice"
    r"|answer) [(\[*]{0,3}[A-Z]\b"
    r"| [*(\[]{1,3}[A-Z][)\]*])"
    r"|(?:it|this|that|which|answer) (?:must|has to|should|can only) be"
    r"|(?:i\.e\.,?|namely,?)(?= (?:(?:option|choice|answer) )?[*(\[]{0,3}[A-Z]\b)"
    r"|^[*_#\s]{0,4}(?:[Cc]orrect|[Ff]inal|[Aa]nswer)[*_]{0,2}:"
    r"|(?<=, )or(?= (?:answer|option|choice) [(\[]?[A-Z]\b))",
    re.IGNORECASE | re.MULTILINE,
)
# A part of every match of it in small letters, or what must follow: `(B)`, `**B**`.
_LEAN_STEMS = (
    "closest", "nearest", "best", "likel", "most ", "o with", "ing with", "nt with", "ck with",
    "settle", "lean", "guess", "choose", "pick", "select", "say", "answer", "go for", "choice",
    "letter", "verdict", "decision", "right", "proper", "match", "leaves", "left with",
    "correspond", "must be", "to be", "should be", "only be", "i.e.", "namely", "correct", "final",
    "option",
)  # fmt: skip
_BRACKETED = re.compile(r"[(\[*][A-Z][)\]*]")
# `选B`, `只能是D`, `故B`, `因此选项B`: what follows is a label.
_LEANS_ZH = re.compile(
    r"(?:(?<![不非勿别未没能若候备任])选择?(?:的?是)?|(?:只能|应该?|只有|就|正|显然|一定|选择"
    r"|当选的|结论|剩下的?)[是为:]"
    r"|只剩下?|[更较]?倾向于|应?改[为成选]|那就选?|(?:也就|便)是|我猜是?"
    r"|(?:因此|所以|故|即|综上(?:所述)?|可知|可得|那么|结论)[,:]?(?:本题|答案|结果)?[是为应]{0,2}"
    r"|最(?:符合|合适|适合|佳|接近|恰当|准确|合理)[^。,\n]{0,6}[是为])"
    r"(?=[\s*:(\[]*+(?:选项 ?|选)?[*(\[]*+[A-Z](?![A-Za-z0-9]))[\s*:]*+"
)
# After such a label the clause ends, or a reason begins: `项。`, `,因为`; not `股`, `的值`, `=3`.
_ENDS_ZH = re.compile(
    r"[\s*)\]$}]*+(?:选?项)?[\s*)\]]*+(?:\Z|[。,;:!.?、\n(]|[了吧啦呀就]|即可|因为|而不|符合|正确"
    r"|是正确)"
)
_LABEL_ZH = re.compile(r"[\s*:(\[\"“]*(?:选项 ?|选)?[*(\[]*([A-Z])")
# `→ B`, `=> **(B)**` at the end of a line.
_ARROW = re.compile(
    r"(?:→|⇒|=>|->|➜|∴)\s*+(?=[*_(\[]{0,4}(?:[Oo]ption |选项 ?)?[A-Z][)\]*_]{0,4}[.。]?[ \t]*+$)",
    re.M,
)
# A bare label after such a wording stands at the end of what is said: `B.`, `B because`; not
# `C such that`.
_STANDS = re.compile(
    r"\s*+(?:(?:the )?(?:option|choice|answer|letter) )?[*_\"'“]{0,3}[A-Z](?![\w'’-])"
)
_STANDS_END = re.compile(r"[*_)\]\"'”]{0,4}\s*+(?:\Z|[.,;:!—–(\n-]|as\b|because|since|which|is\b)")

# --- verdicts on options -------------------------------------------------------------------------

# `option B`, `(B)`, or at the beginning of a clause `- **B.`, `B is`, `| B |`.
_NAMED = re.compile(
    r"\b(?:[Oo]ption|[Cc]hoice|[Ss]tatement|[Aa]nswer) [(\[*\"“]{0,3}([A-Z])(?![A-Za-z])"
    r"|(?<!\w)[(\[]([A-Z])[)\]]"
    r"|\A[\s\-•*|>#✓✔✅✗✘❌√×☑️]*+(?:[Tt]hus,? |[Ss]o,? |[Tt]herefore,? |[Hh]ence,? )?([A-HJ-Z]"
    r"|I(?! [a-z]))(?=[).:*|]"
    r"|\s+(?:is|was|would|seems|feels|gets|fits|has)\b|\s+[-–—|:]|\s*[✓✔✅✗✘❌√])"
    r"|(?<=, )([A-Z])(?= is (?:right|correct|the answer)\b)"
)
_NAMED_ZH = re.compile(r"(?<![A-Za-z0-9])()()()([A-Z])(?![A-Za-z0-9])")
_WRONG = re.compile(
    r"\bnot\b|n[’']t\b|\bincorrect|\bwrong|\bfalse\b|\bcannot\b|eliminat|\bruled? out|\bnever\b"
    r"|\bfails?\b"
    r"|\binvalid|\bunlikely|\bneither|[✗✘❌×]|\bless\b|不|错|误|排除|非|无关|违背|矛盾|没有",
    re.IGNORECASE,
)
_RIGHT = re.compile(
    r"\b(?:correct|right|best|more likely|most (?:accurate|appropriate|likely|suitable)|the answer"
    r"|accurate)\b|[✓✔✅√]"
    r"|正确|(?<![不])(?:符合|对(?=的|[。,;!]|\Z)|合适|恰当|成立|满足)|当选|为答案|是答案",
    re.IGNORECASE,
)
# A part of all that calls an option right, in small letters; quicker to find than a pattern.
_MAYBE_RIGHT = (
    "correct", "right", "best", "likely", "accurate", "appropriate", "suit", "the answer", "yes",
    "true",
)  # fmt: skip
_SYMBOLS = re.compile(r"[\u4e00-\u9fff✓✔✅☑√✗✘❌×]")
# The option is said to be the one, whatever it says itself: `不准确,符合题意,当选`.
_CHOSEN = re.compile(r"(?<![不非])(?:当选|符合题意|为答案|是答案)")
_SUPPOSES = re.compile(r"\b(?:if|whether|unless)\b|如果|假如|若", re.IGNORECASE)


# A mark before an option: `✅ B`.
_MARK = re.compile(r"[\s\-•*|>]*+[✓✔✅✗✘❌√×☑]")
# The last cell of a table's row: `| yes |`.
_CELL = re.compile(
    r"[|:：)–—-]\s*(?:(yes|true|是|对)|(?:no|false|否|错))[\s|.。]*\Z", re.IGNORECASE
)
# `(A) ✗ (B) ✓`: options and marks in a line.
_MARKED = re.compile(r"(?<![A-Za-z])([A-Z])[)\].:]{0,2}\s?(?:([✓✔✅☑√])|[✗✘❌×])")
_ENDS = frozenset(".!?。！？)]}*\"'”’`$✅✔✓")
"""What ends a sentence; a label may, too."""


def plainly_stated(text: str, sample: Sample) -> Statement:
    """The one option that a reply without an announcement names as its answer."""
    if len(sample.labels) < 2:
        return NO_LABEL  # a row that lost its options: whatever is named may be another
    if len(text) <= BRIEF and _ONLY_LABELS.fullmatch(text) and len(set(_LETTER.findall(text))) > 1:
        return NO_LABEL
    has_form = "[" in text and "[LETTER]" in text
    has_form = has_form or (":" in text and "following format:" in text)
    text = without_stub(_FORM.sub("", text) if has_form else text)
    if text[-2:-1] in ("(", "[") and text[-1:].isupper():  # a label that broke off says nothing
        text = text[:-2].rstrip()
    if not _is_ended(text):
        whole, text = text, without_half_option(text, sample.choices)
        if len(text) > SHORT and (text == whole or not _is_ended(text)):
            return NO_LABEL  # it breaks off
    tail = text[-TAIL:]
    if len(text) > BRIEF and not (_LETTER.search(tail) or names_any(tail, sample.choices)):
        last = "".join(last_sentences(tail))
        label = paraphrased(last, sample.choices) if last[-1:] == "." else None
        return Statement(label) if label else NO_LABEL
    if correction_in(tail) and (taken_back := list(CORRECTION.finditer(tail))):
        rest, at = tail[taken_back[-1].end() :], taken_back[-1].start()
        if mentions(rest, sample):
            tail = rest
        elif not _NEVER_DONE.search(tail, max(0, at - 12), at):
            return NO_LABEL
    chinese = has_chinese(tail)
    near = tail
    if len(tail) > NEAR:  # from the beginning of a sentence on
        near = tail[-NEAR:]
        near = near[_BEGINNING.search(near + ". ").end() :]  # type: ignore[union-attr]
    statement = _leaning(near, sample, chinese)
    if statement == NO_LABEL:
        statement = _called_right(tail, sample, chinese)
    return concluded(near, sample) if statement == NO_LABEL else statement


def _is_ended(text: str) -> bool:
    """Whether a text ends with a sentence, or with a label: ``it is (B).``, ``it is B``."""
    end = text[-8:].rstrip()
    if "A" <= end[-1:] <= "Z":
        return not (end[-2:-1].isascii() and end[-2:-1].isalpha())
    return end[-1:] in _ENDS


def _leaning(text: str, sample: Sample, chinese: bool) -> Statement:
    """What `_LEANS` and arrows introduce: the last of it, if nothing else stands beside it."""
    matches = list(_ARROW.finditer(text))
    if _may_lean(text):
        matches += _leans_in(text, sample)
    if chinese:
        matches += _LEANS_ZH.finditer(text)
    found = sorted(
        (match.end(), statement)
        for match in matches
        if (statement := _after(text, match, sample, match.re is _LEANS_ZH)) != NO_LABEL
    )
    if len({statement for _, statement in found}) > 2:
        return AMBIGUOUS  # `选A: …`, `选B: …`, `选C: …`: a list
    return found[-1][1] if found else NO_LABEL


def _may_lean(text: str) -> bool:
    """Whether `_LEANS` may match in a text."""
    stands = text.lower().__contains__
    return any(map(stands, _LEAN_STEMS)) or _BRACKETED.search(text) is not None


# A label: a capital letter alone, or a letter in brackets.
_ANY_LABEL = re.compile(r"(?<![A-Za-z])(?:[A-Z](?![A-Za-z0-9])|[a-z][)\]])")


def _leans_in(text: str, sample: Sample) -> Iterator[re.Match[str]]:
    """Where `_LEANS` matches; sentences without a label are left out where no text is named."""
    if not text.isascii() or names_any(text, sample.choices):
        yield from _LEANS.finditer(text)
        return
    start = 0
    for clause in clauses(text):
        end = start + len(clause)
        if _ANY_LABEL.search(clause) and _may_lean(clause):
            yield from _LEANS.finditer(text, start, end)
        start = end


def _after(text: str, match: re.Match[str], sample: Sample, chinese: bool) -> Statement:
    limit = match.end() + SHORT
    segment = next(clauses(text[match.end() : limit]))
    if segment.rstrip("*_\"'”’ ").endswith(("?", "？")):
        return NO_LABEL
    segment = segment.strip()
    clause = text[max(0, match.start() - 60) : match.start()]
    clause = clause[max(map(clause.rfind, ".\n。;；!?")) + 1 :]
    if match.re is not _ARROW and (_DENIES.search(clause) or supposes(clause, sample)):
        return NO_LABEL
    if chinese and (label := _LABEL_ZH.match(segment)):
        own = sample.choices[sample.labels.index(label[1])] if label[1] in sample.labels else ""
        rest = segment[label.end() :].lstrip(" .:、*)")
        if not (_ENDS_ZH.match(segment, label.end()) or (own and rest.startswith(own))):
            return NO_LABEL
    elif (stands := _STANDS.match(segment)) and not _STANDS_END.match(segment, stands.end()):
        return NO_LABEL
    return read_label(segment, sample.labels, sample.choices)


# `would not`, `don't`, `if we`; `不应`: what stands before takes back what follows.
_DENIES = re.compile(
    r"(?:\bnot|n[’']t|\bnever|\bif(?! I (?:had|have|must))|\bwhether|\bwhy|\bunless|\bcannot"
    r"|\bdoubt|\bwrong"
    r"|\bincorrect)\b[^,]{0,30}\Z"
    r"|(?:不(?!过)|别|如果|是否|若|为什么|误|错|非|怀疑|还是|或者?)[^,。]{0,6}\Z",
    re.IGNORECASE,
)


def _beyond_text(remark: str, label: str, sample: Sample) -> str:
    """What is said of an option beyond its own text, whole or cut off."""
    own = sample.choices[sample.labels.index(label)].strip(DRESSING + ".。")
    said = remark.lstrip(" )].:：、*_-")
    if own and said.startswith(own):
        return said[len(own) :]
    return "" if len(said) > 3 and own.startswith(said.rstrip(" .。\n;；")) else remark


# A capital letter alone, as all that `_NAMED` matches.
_CAPITAL = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")


def _may_call_right(sentence: str) -> bool:
    """Whether a sentence may call an option right: it names one, by its label or before a colon."""
    if not any(map(sentence.lower().__contains__, _MAYBE_RIGHT)):
        return False
    return ":" in sentence or _CAPITAL.search(sentence) is not None


def _called_right(text: str, sample: Sample, chinese: bool) -> Statement:
    """The one option that is called right; where the wrong one is asked for, perhaps that one."""
    symbols = not text.isascii() and _SYMBOLS.search(text)
    if not symbols and not any(map(text.lower().__contains__, _MAYBE_RIGHT)):
        return NO_LABEL
    right: set[str] = set()
    chosen: set[str] = set()
    wrong: set[str] = set()
    doubted = supposed = False
    for choice in sample.choices:  # what an option says itself is no verdict: `You're right, it's`
        if choice and choice in text and _RIGHT.search(choice):
            text = text.replace(choice, "…")
    marked = list(_MARKED.finditer(text)) if symbols else []
    ticked = {mark[1] for mark in marked if mark[2]}
    if len(marked) > 1 and len(ticked) == 1:
        return Statement(ticked.pop())
    sentences = list(clauses(text))
    if not symbols and not any(map(_may_call_right, sentences)):
        return NO_LABEL
    for sentence in sentences:
        if right and correction_in(sentence):
            doubted = True
        supposed = supposed or _SUPPOSES.search(sentence) is not None
        if supposed:
            supposed = sentence.endswith((";", "；"))
            continue
        labels: list[str] = []
        for clause in re.split(r"[,，]", sentence) if chinese else (sentence,):
            named = list((_NAMED_ZH if chinese else _NAMED).finditer(clause))
            given = [
                label for n in named if (label := n[1] or n[2] or n[3] or n[4]) in sample.labels
            ]
            start = named[-1].end() if named else 0
            if not given and not chinese and (colon := clause.find(":")) > 0:
                given, start = labels_of_texts(clause[:colon], sample.choices), colon
            if not chinese and len(named) > 1:
                between = clause[named[-2].end() : named[-1].start()]
                given = given if LINK.fullmatch(between) else given[-1:]
            labels = given or labels  # what is said after a comma is said of the same option
            if not labels or "?" in clause or "？" in clause:
                continue
            remark = _beyond_text(clause[start : start + SHORT], labels[-1], sample)
            if mark := _MARK.match(clause):
                remark += mark[0]
            if cell := _CELL.search(clause):
                remark += "✓" if cell[1] else "✗"
            if set(labels_of_texts(remark, sample.choices)) - set(labels):
                continue  # another option's text is no remark: `(A) right winger`
            if _CHOSEN.search(remark):
                chosen.update(labels)
            if _WRONG.search(remark):
                wrong.update(labels)
            elif _RIGHT.search(remark):
                right.update(labels)
                doubted = False
    if len(chosen) == 1 and not doubted:
        return Statement(chosen.pop())
    if right & wrong or doubted:
        return NO_LABEL
    asks_wrong = ASKS_WRONG.search(sample.text) is not None
    if len(right) == 1 and not (asks_wrong and len(wrong) == 1):
        return Statement(right.pop())
    return Statement(wrong.pop()) if asks_wrong and len(wrong) == 1 < len(right) else NO_LABEL
