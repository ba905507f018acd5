"""The model of the recorded runs: a fixed reply to each prompt and seed, mostly right.

It knows the answers to the questions of `tests/runs01/questions.py`.
"""

from __future__ import annotations

import json
import re

from tests.runs01.questions import bbh_rows
from tests.support.judged import parts
from tests.support.replies import Asked, draw

KNOCK = "Answer with one letter, A or B."
"""The prompt of a call that only checks whether the endpoint works."""


def reply(asked: Asked) -> str:
    """What candidates and judges say: a fixed reply to each prompt and seed, mostly right."""
    if asked.text == KNOCK:
        return "A"
    if str(asked.body.get("model")).startswith("judge"):
        return _verdict(asked)
    text, chance = asked.text, draw(asked.text, asked.body.get("seed"))
    if chance > 0.95:
        return "The weather is fine today."
    known = _bbh_target(text)
    if known is not None:
        return f"Let me see. So the answer is {known if chance < 0.7 else _other(known)}."
    label = _label(text)
    if label is None:
        return f"So the answer is ({'AB'[int(chance * 2)]})."
    if chance > 0.7:
        label = "BAAAAAAAAA"["ABCDEFGHIJ".index(label)]
    return _worded(label, asked)


def _worded(label: str, asked: Asked) -> str:
    """An answer in the form that the prompt asks for."""
    text = json.dumps(asked.body, ensure_ascii=False)
    if asked.route == "completion":
        return f" It is so. The answer is ({label})."
    if "ANSWER" in text:
        return f"I add them up.\nANSWER: {label}"
    if "答案" in text:
        return f"加起来。\n答案：{label}"
    if "Options:" not in text:
        gene = re.findall(r"label (\d+)\?", asked.text)[-1]
        wrong = "" if label == "D" else "0"
        return f"I would say that it is the gene called K{gene}{wrong}."
    return label


def _bbh_target(text: str) -> str | None:
    found = [(text.rfind(question), len(question), gold) for question, gold in _TARGETS.items()]
    place, _, target = max(found)
    return target if place >= 0 else None


_TARGETS = {row["input"]: row["target"] for rows in bbh_rows().values() for row in rows}
_OTHERS = {"Yes": "No", "yes": "no", "True": "False", "valid": "invalid", "(A)": "(B)"}
_OTHERS |= {other: one for one, other in _OTHERS.items()}


def _other(target: str) -> str:
    """A wrong answer of the same kind."""
    if target in _OTHERS:
        return _OTHERS[target]
    if target.startswith("("):
        return "(A)"
    return str(int(target) + 1) if re.fullmatch(r"-?\d+", target) else f"{target} {target}"


def _label(text: str) -> str | None:
    """The label of the right option of the last question, if it is one of ours."""
    sums = list(re.finditer(r"(\d+)(?: plus |加)(\d+)(?:\?|等于)", text))
    genes = list(re.finditer(r"label (\d+)\?", text))
    if not sums and not genes:
        return None
    last = (sums or genes)[-1]
    value = sum(int(number) for number in last.groups())
    shown = rf"([A-J])\W+(?:the value |the number |数|Gene K)?{value}(?!\d)"
    found = re.search(shown, text[last.end() :])
    return found[1] if found else "D" if draw(text) < 0.6 else "C"


def _verdict(asked: Asked) -> str:
    shown = parts(asked)
    gene = re.search(r"K\d+", shown.target)
    right = gene is not None and gene[0] in re.findall(r"K\d+", shown.answer)
    return f"I compared them. <grade>{'correct' if right else 'incorrect'}</grade>"
