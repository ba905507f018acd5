"""What a reply repeats of the form in which it was asked, and what it calls the options.

Base models go on with the prompt's own cues: ``A: Yes``, ``12 m\\n\\nA:``. A small model writes the
text of one option behind the label of another, and then means that label by that text.
"""

from __future__ import annotations

import re

import msgspec

from keju.answers.kinds import Kind
from keju.answers.options import option_by_text
from keju.types import Sample

# `A: A: `: the cue with which a prompt ends, and which a reply repeats; not the `A:` of a list.
_LEADING = re.compile(r"\s*+(?:A:\s++)++(?=\S)")
# `So the answer`, `The correct answer`: what makes of an `A:` before it a cue.
_ANNOUNCES = re.compile(r"(?:[Ss]o )?[Tt]he (?:final |correct )?answer\b")
# `\n\nA:`, `\nQ:\nA:\n`: cues after which nothing came.
_TRAILING = re.compile(r"(?:\s*\n[ \t]*[AQ]:)++\s*\Z")
# `(C) 10/30/2019`, `D: red`: a first line of a label (1) and a text (2).
_LABEL_AND_TEXT = re.compile(r"\s*+[(\[]?([A-Z])[)\].:、]{1,2}\s*+([^\n]++)")
# `\n(B) `, `\nB: `: the next line has a label too.
_LABELLED = re.compile(r"\s*+[(\[]?[A-Z][)\].:、]")


def without_cues(text: str, kind: Kind, sample: Sample) -> str:
    """A reply without the cues before and after what it says.

    Where labels are asked for, ``A:`` is a cue only before an announcement or an answer.
    """
    if text.rstrip().endswith(":") and (trailing := _TRAILING.search(text)):
        before = text[: trailing.start()]
        text = text if before.endswith((":", " is")) else before
    lead = _LEADING.match(text) if text.lstrip()[:2] == "A:" else None
    if lead is None:
        return text
    rest = text[lead.end() :]
    line, _, more = rest.partition("\n")
    if sample.choices and not _ANNOUNCES.match(rest):
        is_answer = kind.whole(line, sample) is not None and not _LABELLED.match(more)
        return rest if is_answer else text
    return rest


def as_named(text: str, sample: Sample) -> Sample:
    """The sample with its options as the first line of a reply calls them.

    After ``(C) 10/30/2019``, where that is the text of (D), the date means (C): the label counts.
    """
    line = _LABEL_AND_TEXT.match(text)
    if line is None or line[1] not in sample.labels or _LABELLED.match(text, line.end()):
        return sample
    own, said = sample.labels.index(line[1]), line[2].strip()
    other = option_by_text(said, sample.choices)
    if other is None or other == line[1]:
        return sample
    choices = list(sample.choices)
    choices[own], choices[sample.labels.index(other)] = said, ""
    return msgspec.structs.replace(sample, choices=tuple(choices))
