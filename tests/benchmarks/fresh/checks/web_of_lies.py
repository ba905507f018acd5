"""Each lie that is told in the chain turns the last answer round; two turn it back."""

from __future__ import annotations

import re


def answer(text: str) -> str:
    """Whether the last of a chain tells the truth."""
    statements = re.split(r"[.。]", text)[:-1]
    speakers = [re.split(" says |说，", statement)[0].split()[-1] for statement in statements[1:]]
    subjects = [
        re.split(r" (?:tells|lies)|说[真谎]", re.split(" says |说，", s)[-1])[0] for s in statements
    ]
    chain = [subjects[0].removeprefix("Question: ").removeprefix("问题："), *speakers]
    assert [chain[0], *subjects[1:]] == [chain[0], *chain[:-1]]
    assert chain[-1] in text.rpartition(statements[-1])[2]
    lies = sum("lies" in statement or "谎话" in statement for statement in statements)
    return (("Yes", "No") if "?" in text else ("是", "否"))[lies % 2]
