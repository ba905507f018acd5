"""Options that a reply names without announcing them: ``I'd go with B``, ``the closest is (C)``.

They count only where nothing is announced. What is called wrong, supposed or asked about does not
count, and neither do two different options: never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from keju.answers.decision import CORRECTION
from keju.answers.labels import labels_of_texts, read_label
from keju.answers.segments import DRESSING, NO_LABEL, Statement
from keju.types import Sample

TAIL = 4000
"""Characters at the end of a reply in which options are looked for."""

# The end of a sentence or of a clause that stands for itself; not the point of `B. text`, `3.5`.
_CLAUSE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bvs)[.!?](?=[*_\"'”’)\]]*(?:\s|\Z))[*_\"'”’)\]]*|[\n;。；！]"
)

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
    r"|(?:go|going|went|stick) with"
    r"|(?:I|we|I['’]d|I['’]ll)(?: would| will| must| should| can| therefore)? (?:choose|pick"
    r"|select|say)"
    r"|(?:final|my|our) (?:choice|pick|selection|guess|letter|verdict|decision)(?: is| would be"
    r"|\s?[*_]{0,2}:)"
    r"|(?:right|proper|matching) (?:answer|option|choice|letter|one)(?: is| would be|:)"
    r"|(?:that|this|which|only) leaves(?: us)?(?: with)?(?: only)?|left with(?: only)?"
    r"|(?:(?:corresponds?|corresponding) to|match(?:es|ing))(?= (?:the )?(?:(?:option|choice"
    r"|answer) )?[*(\[]{0,3}[A-Z]\b)"
    r"|(?:which|this|that|it|must|would|should|can only)(?: is| be| must be)"
    r"(?: simply| therefore| clearly)?(?=(?: the| therefore)? (?:option|choice"
    r"|answer) [(\[*]{0,3}[A-Z]\b"
    r"| [*(\[]{1,3}[A-Z][)\]*])"
    r"|(?<=, )or(?= (?:answer|option|choice) [(\[]?[A-Z]\b))",
    re.IGNORECASE,
)
# `选B`, `只能是D`, `故B`, `因此选项B`: what follows is a label.
_LEANS_ZH = re.compile(
    r"(?:(?<![不非勿别未没能若候备任])选择?|(?:只能|应该?|只有|就|正|显然|一定)[是为]"
    r"|(?:因此|所以|故|即|综上(?:所述)?|可知|可得|那么)[,:]?(?:本题|答案|结果)?[是为应]{0,2}"
    r"|最(?:符合|合适|适合|佳|接近|恰当|准确|合理)[^。,\n]{0,6}[是为])"
    r"(?=[\s*:(\[]*+(?:选项 ?|选)?[*(\[]*+[A-Z](?![A-Za-z0-9]))[\s*:]*+"
)
# After such a label the clause ends, or a reason begins: `项。`, `,因为`; not `股`, `的值`, `=3`.
_ENDS_ZH = re.compile(
    r"[\s*)\]$}]*+(?:选?项)?[\s*)\]]*+(?:\Z|[。,;:!.?、\n(]|因为|而不|符合|正确|是正确)"
)
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
    r"|[(\[]([A-Z])[)\]]"
    r"|\A[\s\-•*|>#]*+(?:[Tt]hus,? |[Ss]o,? |[Tt]herefore,? |[Hh]ence,? )?([A-Z])(?=[).:*|]"
    r"|\s+(?:is|was|would|seems)\b|\s*[✓✔✅✗✘❌√])"
)
_NAMED_ZH = re.compile(r"(?<![A-Za-z0-9])()()([A-Z])(?![A-Za-z0-9])")
_WRONG = re.compile(
    r"\bnot\b|n[’']t\b|\bincorrect|\bwrong|\bfalse\b|\bcannot\b|eliminat|\bruled? out|\bnever\b"
    r"|\bfails?\b"
    r"|\binvalid|\bunlikely|\bneither|[✗✘❌×]|\bless\b|不|错|误|排除|非|无关|违背|矛盾|没有",
    re.IGNORECASE,
)
_RIGHT = re.compile(
    r"\b(?:correct|right|best|most (?:accurate|appropriate|likely|suitable)|the answer"
    r"|accurate)\b|[✓✔✅√]"
    r"|正确|(?<![不])(?:符合|对(?![于比应照象称])|合适|恰当|成立|满足)|当选|为答案|是答案",
    re.IGNORECASE,
)
# The question asks for the option that is wrong: `NOT`, `EXCEPT`; `不正确的是`, `错误的`, `不属于`.
_ASKS_WRONG = re.compile(
    r"\b(?:NOT|EXCEPT|LEAST)\b|\b(?:incorrect|false|except|not (?:true|correct))\b"
    r"|不正确|错误|不属于|不符合|不是|不包括|有误|不恰当|不可能|不能|不合|不当|不准确|不一致"
    r"|除了|无关"
)
_SUPPOSES = re.compile(r"\b(?:if|whether|unless)\b|如果|假如|若", re.IGNORECASE)
# In the last sentence: the option is only looked at, or rejected.
_LOOKS_AT = re.compile(
    r"\b(?:not|cannot|consider|look(?:ing)? at|evaluat\w*|check|examin\w*|eliminat\w*|rul(?:e"
    r"|es|ed|ing) out|reject\w*"
    r"|exclud\w*|discard\w*|except|without|unlike|than|if|whether|either|or|nor|neither|and"
    r"|between|versus|vs|from|may|might|could|perhaps|maybe|possibly)\b"
    r"|n[’']t\b|\?|不|非|排除|如果|是否|或|和|与|、",
    re.IGNORECASE,
)
# `Therefore, `, `So `, `Thus the pressure`: what opens a conclusion.
_CONCLUDES = re.compile(
    r"(?:(?:therefore|thus|hence|so|consequently|in conclusion|as a result)\b|因此|所以|故"
    r"|综上所述|综上|可见)[,，:]?\s*+",
    re.I,
)
_UNSURE = re.compile(
    r"\b(?:not|cannot|never|no|impossible|either|or|if|whether|maybe|perhaps|might|may|could"
    r"|unless|between"
    r"|neither|except|eliminat\w*|wrong|incorrect|false|unlike|than|first)\b|n[’']t\b|[?？]|不"
    r"|非|无法|或|如果|是否|错|可能|排除|而",
    re.IGNORECASE,
)
SHORT = 200
"""Characters of a reply that is one sentence, or of a last sentence, that may name an option."""


def plainly_stated(text: str, sample: Sample, *, chinese: bool = False) -> Statement:
    """The one option that a reply without an announcement names as its answer."""
    tail = text[-TAIL:]
    statement = _leaning(tail, sample, chinese)
    if statement == NO_LABEL:
        statement = _called_right(tail, sample, chinese)
    for rule in (_named_last, _named_by_text):
        if statement == NO_LABEL:
            statement = rule(tail, sample)
    return statement


def _leaning(text: str, sample: Sample, chinese: bool) -> Statement:
    """What `_LEANS` and arrows introduce: the last of it, if nothing else stands beside it."""
    patterns = (_LEANS, _ARROW, _LEANS_ZH) if chinese else (_LEANS, _ARROW)
    found = sorted(
        (match.end(), statement)
        for pattern in patterns
        for match in pattern.finditer(text)
        if (statement := _after(text, match, sample, pattern is _LEANS_ZH)) != NO_LABEL
    )
    return found[-1][1] if found else NO_LABEL


def _after(text: str, match: re.Match[str], sample: Sample, chinese: bool) -> Statement:
    limit = match.end() + SHORT
    end = _CLAUSE_END.search(text, match.end(), limit)
    segment = text[match.end() : end.start() if end else limit].strip()
    if end and end[0][:1] in "?？":
        return NO_LABEL
    clause = text[max(0, match.start() - 60) : match.start()]
    clause = clause[max(map(clause.rfind, ".\n。;；!?")) + 1 :]
    if match.re is not _ARROW and _DENIES.search(clause):
        return NO_LABEL
    if stands := _STANDS.match(segment):
        ends = _ENDS_ZH if chinese else _STANDS_END
        if not ends.match(segment, stands.end()):
            return NO_LABEL
    return read_label(segment, sample.labels, sample.choices)


# `would not`, `don't`, `if we`; `不应`: what stands before takes back what follows.
_DENIES = re.compile(
    r"(?:\bnot|n[’']t|\bnever|\bif|\bwhether|\bwhy|\bunless|\bcannot|\bdoubt|\bwrong"
    r"|\bincorrect)\b[^,]{0,30}\Z"
    r"|(?:不|别|如果|是否|若|为什么|误|错|非|怀疑)[^,。]{0,6}\Z",
    re.IGNORECASE,
)


def _clauses(text: str) -> Iterator[str]:
    """The clauses of a text, in order."""
    start = 0
    for end in _CLAUSE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def _called_right(text: str, sample: Sample, chinese: bool) -> Statement:
    """The one option that is called right; where the wrong one is asked for, perhaps that one."""
    right: set[str] = set()
    wrong: set[str] = set()
    doubted = supposed = False
    for sentence in _clauses(text):
        if right and CORRECTION.search(sentence):
            doubted = True
        supposed = supposed or _SUPPOSES.search(sentence) is not None
        if supposed:
            supposed = sentence.endswith((";", "；"))
            continue
        for clause in re.split(r"[,，]", sentence) if chinese else (sentence,):
            named = list((_NAMED_ZH if chinese else _NAMED).finditer(clause))
            labels = [label for n in named if (label := n[1] or n[2] or n[3]) in sample.labels]
            if not labels or "?" in clause or "？" in clause:
                continue
            remark = clause[named[-1].end() : named[-1].end() + SHORT]
            if _WRONG.search(remark):
                wrong.update(labels)
            elif _RIGHT.search(remark):
                right.update(labels)
                doubted = False
    if right & wrong or doubted:
        return NO_LABEL
    asks_wrong = _ASKS_WRONG.search(sample.text) is not None
    if len(right) == 1 and not (asks_wrong and len(wrong) == 1):
        return Statement(right.pop())
    return Statement(wrong.pop()) if asks_wrong and len(wrong) == 1 < len(right) else NO_LABEL


def _named_last(text: str, sample: Sample) -> Statement:
    """The option that the last sentence ends with: `` … would be (E).``, ``上海(B)。``."""
    bare = text.rstrip()
    last = [clause for clause in _clauses(bare) if clause.strip(DRESSING + ".。")]
    if not last or len(last[-1]) > 3 * SHORT:
        return NO_LABEL
    sentence = last[-1].strip().rstrip(".。!*_ \"'”’")
    ending = re.search(
        r"[(\[]([A-Z])[)\]]\Z|\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer|选项) ?\**([A-Z])\Z", sentence
    )
    if ending is None or (label := ending[1] or ending[2]) not in sample.labels:
        return NO_LABEL
    head = sentence[: ending.start()]
    if re.search(r"[(\[][A-Z][)\]]|\b(?:option|choice) [A-Z]\b", head) or len(head) < 2:
        return NO_LABEL
    clause = head[max(head.rfind(","), head.rfind("，"), head.rfind(":")) + 1 :]
    texts = labels_of_texts(clause, sample.choices)
    if texts and texts != [label]:
        return NO_LABEL
    return NO_LABEL if _LOOKS_AT.search(clause[-80:]) and texts != [label] else Statement(label)


def _named_by_text(text: str, sample: Sample) -> Statement:
    """The option whose text a reply of one sentence names, or its conclusion is."""
    if not sample.choices:
        return NO_LABEL
    bare = text.strip()
    clauses = [clause.strip() for clause in _clauses(bare) if clause.strip(DRESSING + ".。")]
    if not clauses or len(clauses[-1]) > SHORT:
        return NO_LABEL
    sentence = clauses[-1].strip(DRESSING + ".。")
    opening = _CONCLUDES.match(sentence)
    rest = sentence[opening.end() :] if opening else sentence
    if len(clauses) > 1 and not opening:
        return NO_LABEL
    labels = labels_of_texts(rest, sample.choices)
    if len(labels) != 1:
        return NO_LABEL
    own = sample.choices[sample.labels.index(labels[0])].strip(DRESSING + ".。").casefold()
    folded = rest.casefold()
    around = folded.replace(own, " ", 1)
    if len(clauses) > 1 and around.strip():
        is_end = re.search(r"(?:\b(?:is|are|be|=)|[是为])\s*\Z", folded[: folded.rfind(own)])
        if not (folded.endswith(own) and is_end):
            return NO_LABEL
    elif around.strip() and not folded.startswith(own):
        return NO_LABEL
    return NO_LABEL if _UNSURE.search(around) else Statement(labels[0])
