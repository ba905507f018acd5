"""The model of the recorded runs: a fixed reply to each prompt and seed, mostly right.

It knows the answers to the questions of `tests/runs01/questions.py`.
"""

from __future__ import annotations

import json
import re

from tests.runs01.questions import bbh_rows
from tests.support.judged import prompt_blocks
from tests.support.replies import EndpointRequest, draw

KNOCK = "Answer with one letter, A or B."
"""The prompt of a call that only checks whether the endpoint works."""


def reply(request: EndpointRequest) -> str:
    """What candidates and judges say: a fixed reply to each prompt and seed, mostly right."""
    if request.text == KNOCK:
        return "A"
    if str(request.body.get("model")).startswith("judge"):
        return _verdict(request)
    text, chance = request.text, draw(request.text, request.body.get("seed"))
    if chance > 0.95:
        return "The weather is fine today."
    target = _bbh_target(text)
    if target is not None:
        return f"Let me see. So the answer is {target if chance < 0.7 else _wrong_target(target)}."
    label = _label(text)
    if label is None:
        return f"So the answer is ({'AB'[int(chance * 2)]})."
    if chance > 0.7:
        label = "BAAAAAAAAA"["ABCDEFGHIJ".index(label)]
    return _worded(label, request)


def _worded(label: str, request: EndpointRequest) -> str:
    """An answer in the form that the prompt asks for."""
    text = json.dumps(request.body, ensure_ascii=False)
    if request.route == "completion":
        return f" It is so. The answer is ({label})."
    if "ANSWER" in text:
        return f"I add them up.\nANSWER: {label}"
    if "答案" in text:
        return f"加起来。\n答案：{label}"
    if "Options:" not in text:
        gene = re.findall(r"label (\d+)\?", request.text)[-1]
        changed_digits = "" if label == "D" else "0"
        return f"I would say that it is the gene called K{gene}{changed_digits}."
    return label


def _bbh_target(text: str) -> str | None:
    matches = [(text.rfind(question), len(question), gold) for question, gold in _TARGETS.items()]
    place, _, target = max(matches)
    return target if place >= 0 else None


_TARGETS = {row["input"]: row["target"] for rows in bbh_rows().values() for row in rows}
_WRONG_TARGETS = {"Yes": "No", "yes": "no", "True": "False", "valid": "invalid", "(A)": "(B)"}
_WRONG_TARGETS |= {wrong_target: target for target, wrong_target in _WRONG_TARGETS.items()}


def _wrong_target(target: str) -> str:
    """A wrong answer of the same kind."""
    if target in _WRONG_TARGETS:
        return _WRONG_TARGETS[target]
    if target.startswith("("):
        return "(A)"
    return str(int(target) + 1) if re.fullmatch(r"-?\d+", target) else f"{target} {target}"


def _label(text: str) -> str | None:
    """The label of the right option of the last question, if it is one of ours."""
    sums = list(re.finditer(r"(\d+)(?: plus |加)(\d+)(?:\?|等于)", text))
    genes = list(re.finditer(r"label (\d+)\?", text))
    if not sums and not genes:
        return None
    question = (sums or genes)[-1]
    value = sum(int(number) for number in question.groups())
    option = rf"([A-J])\W+(?:the value |the number |数|Gene K)?{value}(?!\d)"
    option_match = re.search(option, text[question.end() :])
    return option_match[1] if option_match else "D" if draw(text) < 0.6 else "C"


def _verdict(request: EndpointRequest) -> str:
    blocks = prompt_blocks(request)
    gene = re.search(r"K\d+", blocks.target)
    is_correct = gene is not None and gene[0] in re.findall(r"K\d+", blocks.answer)
    return f"I compared them. <grade>{'correct' if is_correct else 'incorrect'}</grade>"
