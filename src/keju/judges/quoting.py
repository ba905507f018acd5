"""Showing a judge what others wrote, so that none of it can pass for a rule or a verdict."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect

STAND_IN, BRACKET = "‹", "⁅"
"""Replace the first character, ``<`` or ``[``, of what looks like a tag that could mislead a judge.
"""
MOST_CHARACTERS = 40_000
"""A longer text is shown without its middle: an answer stands at the end, a task at the start."""
_TAGS = re.compile(
    r"<(?=[|｜]|<?\s{0,8}/?\s{0,8}(?:grade|score|verdict|answer|question|target|rules?"
    r"|system|sys|user|assistant|instructions?)\b"
    r"|/?(?:s|bos|eos|pad|unk|sop|eop|eod|model|human|bot|developer|think|tool_\w{1,20}"
    r"|(?:start|begin|end)_of_\w{1,20}|(?:reserved|extra_id|special)_\d{1,6})>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w{1,20}|THINK|gMASK|sMASK)\])",
    re.IGNORECASE,
)
"""Tags of verdicts and blocks; the turns and special tokens of chat templates: ChatML and Llama 3
(``<|…|>``), DeepSeek (``<｜…｜>``), Llama 2 and Mistral (``<s>``, ``[INST]``, ``<<SYS>>``), Gemma
(``<start_of_turn>``), GLM (``[gMASK]<sop>``), Baichuan (``<reserved_106>``), and their like."""
_AS_WRITTEN = {ord(STAND_IN): "<", ord(BRACKET): "["}
"""Undoes `defused`, to compare what a judge repeats with what it was shown."""
_VERDICT = re.compile(r"<\s{0,4}(grade|score)\s{0,4}>[^<>]*<\s{0,4}/\s{0,4}\1\s{0,4}>", re.I)
"""``<grade>correct</grade>``, ``< Score >0.5</ score >``."""
_MARKS = "\"'“”‘’«»「」`"
_MARKED = re.compile(rf"(?<=[{_MARKS}])[^{_MARKS}\n]+(?=[{_MARKS}])")
"""What stands between one mark and the next: ``so be it`` in ``He wrote "so be it".``"""
_FENCED = re.compile(r"(```|~~~)[^\n`~]*\n(.*?)\1", re.DOTALL)
"""A block of code between two lines ```` ``` ```` or ``~~~``, the first perhaps with a language."""
_NEAR = 60
"""Characters on either side of a quotation that show whether it stands inside a sentence."""
_OPENING = re.compile(r"^\[begin \w+ ([0-9a-f]{12})\]$", re.MULTILINE)
"""``[begin answer 0123456789ab]``, the first line of a block."""


def defused(text: str) -> str:
    """`text` with every tag of a verdict, of a block and of a chat template made harmless."""
    return _TAGS.sub(lambda tag: STAND_IN if tag[0] == "<" else BRACKET, text)


def fence(*texts: str) -> str:
    """A code for the lines around blocks of `texts`.

    It follows from the texts, so that the same request is made again on resume, and none of the
    texts can hold it: to write it down an author would have to know the hash of the result.
    """
    digest = hashlib.blake2b(digest_size=6)
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def block(name: str, text: str, code: str) -> str:
    """One text between two lines that carry the code."""
    if len(text) > MOST_CHARACTERS:
        kept = MOST_CHARACTERS // 2
        left_out = f"[{len(text) - 2 * kept} characters are left out here]"
        text = f"{text[:kept]}\n{left_out}\n{text[-kept:]}"
    return f"[begin {name} {code}]\n{defused(text)}\n[end {name} {code}]"


def without_blocks(text: str, shown: str) -> str:
    """What a judge that was `shown` some blocks says outside whole repetitions of them.

    Of a block that is begun and never ended only the lines that really are repeated are cut out,
    so that a verdict of the judge's own stays.
    """
    code = _OPENING.search(shown)
    if code is None:
        return text
    opening = re.compile(rf"^[ \t]*\[begin (\w+) {code[1]}\][ \t]*$", re.MULTILINE)
    kept, position = [], 0
    while opened := opening.search(text, position):
        kept.append(text[position : opened.start()])
        ending = f"[end {opened[1]} {code[1]}]"
        end = text.find(ending, opened.end())
        if end < 0:
            repeated = shown.partition(opened[0].strip())[2]
            return "".join([*kept, _after_repetition(text[opened.end() :], repeated)])
        position = end + len(ending)
    return "".join([*kept, text[position:]])


def quotations(text: str, shown: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where a judge's `text` repeats shown verdicts, tags in whichever spelling: start and end.

    First those in quotation marks, backticks or a code fence, then those that are lines of their
    own. A repetition counts only if it holds a whole verdict and more: a tag, half a verdict or a
    bare one could be found in whatever a judge writes itself. Inside a sentence, what stands in
    backticks with a verdict and more is a quotation even if it is not repeated to the letter.
    """
    said, shown = text.translate(_AS_WRITTEN), _stripped(shown.translate(_AS_WRITTEN))
    fences = list(_FENCED.finditer(said))
    inline = [
        fence.span(2)
        for fence in fences
        if _holds_more(fence[2]) and _stripped(fence[2]).strip() in shown
    ]
    for marked in _MARKED.finditer(said):
        if _holds_more(marked[0]) and (marked[0].strip() in shown or _is_code(marked)):
            inline.append(marked.span())
    lines = {line for line in shown.splitlines() if _VERDICT.search(line)}
    lines = {line for line in lines if not _VERDICT.fullmatch(line)}
    for line in lines:
        if line in said:
            quoted = re.finditer(rf"[{_MARKS}]{re.escape(line)}[{_MARKS}]", said)
            inline += [match.span() for match in quoted]
    starts = [fence.start(2) for fence in fences]
    own_lines: list[tuple[int, int]] = []
    position = 0
    for line in said.splitlines(keepends=True) if lines else ():
        end = position + len(line)
        if line.strip() in lines:
            before = bisect(starts, position)
            fenced = before > 0 and end <= fences[before - 1].end(2)
            (inline if fenced else own_lines).append((position, end))
        position = end
    return inline, own_lines


def _holds_more(text: str) -> bool:
    """Whether there is a whole verdict in `text`, and words or numbers beside it."""
    rest, verdicts = _VERDICT.subn("", text)
    return verdicts > 0 and any(character.isalnum() for character in rest)


def _is_code(marked: re.Match[str]) -> bool:
    """Whether what is `marked` stands in backticks, inside a line that says more."""
    text, (start, end) = marked.string, marked.span()
    if text[start - 1] != "`" or text[end] != "`":
        return False
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    after = text[end : end + _NEAR].partition("\n")[0]
    return any(character.isalnum() for character in before + after)


def _stripped(text: str) -> str:
    """`text` without the space at both ends of its lines."""
    return "\n".join(line.strip() for line in text.splitlines())


def _after_repetition(text: str, shown: str) -> str:
    """`text` from its first line on that is not the next one of `shown`."""
    lines = text.splitlines(keepends=True)
    same = 0
    for said, line in zip(lines, shown.splitlines(), strict=False):
        if said.translate(_AS_WRITTEN).strip() != line.translate(_AS_WRITTEN).strip():
            break
        same += 1
    return "".join(lines[same:])
