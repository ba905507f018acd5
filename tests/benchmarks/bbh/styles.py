"""Ways in which models state an answer, for the oracle and the mirror test of readers."""

from __future__ import annotations

from collections.abc import Callable

from keju.types import Sample

Style = Callable[[str], str]

REASONING = "Let's see. I looked at (A) and then at (C). A careful look shows that B fails.\n\n"

PLAIN_STYLES: dict[str, Style] = {
    "marker": lambda t: f"So the answer is {t}.",
    "no full stop": lambda t: f"So the answer is {t}",
    "bold answer": lambda t: f"So the answer is **{t}**.",
    "bold line": lambda t: f"**So the answer is {t}.**",
    "trailing space": lambda t: f"So the answer is {t}. ",
    "paragraphs": lambda t: f"First this.\n\nThen that.\n\nSo the answer is {t}.\n\nThat is all.\n",
    "the answer is:": lambda t: f"The answer is: {t}",
    "the answer is": lambda t: f"The answer is {t}.",
    "Answer:": lambda t: f"**Answer:** {t}",
    "Answer plain": lambda t: f"Answer: {t}",
    "bold Answer": lambda t: f"**Answer: {t}**",
    "final answer": lambda t: f"Final answer: {t}",
    "the correct answer": lambda t: f"Therefore, the correct answer is {t}.",
    "boxed": lambda t: f"So the answer is \\boxed{{{t}}}.",
    "final boxed": lambda t: f"The final answer is $\\boxed{{{t}}}$.",
    "boxed alone": lambda t: f"All in all:\n\n\\boxed{{{t}}}",
    "boxed text": lambda t: f"So the answer is $\\boxed{{\\text{{{t}}}}}$",
    "display boxed": lambda t: f"The answer is:\n\n$$\n\\boxed{{{t}}}\n$$",
    "latex text": lambda t: f"So the answer is \\(\\text{{{t}}}\\).",
    "lower-case marker": lambda t: f"so the answer is {t}.",
    "upper-case marker": lambda t: f"SO THE ANSWER IS {t}.",
    "comma": lambda t: f"So, the answer is {t}.",
    "colon": lambda t: f"So the answer is: {t}.",
    "bold colon": lambda t: f"**So the answer is:** {t}",
    "double quotes": lambda t: f'So the answer is "{t}".',
    "double quotes, full stop inside": lambda t: f'So the answer is "{t}."',
    "curly quotes": lambda t: f"So the answer is “{t}”.",
    "backticks": lambda t: f"So the answer is `{t}`.",
    "next line": lambda t: f"So the answer is\n{t}",
    "next line after colon": lambda t: f"So the answer is:\n\n**{t}**",
    "next line, then more": lambda t: f"The final answer is:\n\n{t}\n\nLet me know if this helps.",
    "commentary": lambda t: f"So the answer is {t}. This follows from the steps above.",
    "commentary on a new line": lambda t: f"So the answer is {t}.\nI hope this helps!",
    "because": lambda t: f"So the answer is {t}, because nothing else fits.",
    "since": lambda t: f"So the answer is {t} since nothing else fits.",
    "Chinese cue": lambda t: f"所以答案是：{t}。",
    "Chinese cue without colon": lambda t: f"因此，答案是 {t}",
    "Chinese colon": lambda t: f"答案：{t}",
    "reasoning before": lambda t: f"{REASONING}So the answer is {t}.",
    "reasoning before tolerant": lambda t: f"{REASONING}**Answer**: {t}",
    "run-on": lambda t: f"So the answer is {t}.\n\nQ: Another?\nA: So the answer is (Z).",
    "last line": lambda t: f"{REASONING}{t}",
    "bold last line": lambda t: f"{REASONING}**{t}**\n",
    "reply": lambda t: t,
}
"""By name: from an answer as the data set spells it to a reply."""


def lettered(sample: Sample, label: str) -> dict[str, str]:
    """Answers that name the option `label` in other ways than ``(B)``."""
    text = sample.choices[sample.labels.index(label)]
    return {
        "letter": f"So the answer is {label}.",
        "letter without full stop": f"So the answer is {label}",
        "letter and bracket": f"The answer is {label})",
        "square brackets": f"So the answer is [{label}].",
        "lower case in brackets": f"So the answer is ({label.lower()}).",
        "lower case alone": f"Answer: {label.lower()}",
        "option": f"The correct answer is option {label}.",
        "Option in brackets": f"The correct answer is Option ({label}).",
        "boxed letter": f"The final answer is \\boxed{{{label}}}",
        "letter and text": f"So the answer is ({label}) {text}.",
        "letter, full stop and text": f"**Answer: {label}. {text}**",
        "bare letter and text": f"Answer: {label} {text}",
        "letter, colon and text": f"The answer is {label}: {text}",
        "text": f"So the answer is {text}.",
        "bold text": f"The answer is **{text}**",
        "letter and commentary": f"So the answer is {label}, because nothing else fits.",
        "letter since": f"So the answer is {label} since nothing else fits.",
        "reasoning, then letter": f"{REASONING}The answer is {label}.",
        "Chinese cue, letter": f"所以答案是{label}。",
        "full-width letter": f"答案：{chr(ord(label) + 0xFEE0)}",
        "letter as last line": f"{REASONING}{label}",
        "letter and text as last line": f"{REASONING}({label}) {text}",
        "text as last line": f"{REASONING}{text}",
        "not the other": f"So the answer is {label}, not {'B' if label != 'B' else 'A'}.",
    }
