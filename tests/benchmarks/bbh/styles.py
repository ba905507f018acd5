"""Ways in which models state an answer, for the oracle and the mirror test of readers."""

from __future__ import annotations

from collections.abc import Callable

from keju.benchmarks.bbh.metadata import Kind
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
    "code block": lambda t: f"So the answer is:\n```\n{t}\n```",
    "code block with a language": lambda t: f"The answer is:\n\n```text\n{t}\n```\nDone.",
    "code block at the end": lambda t: f"{REASONING}```\n{t}\n```\n",
    "tag": lambda t: f"Steps.\n<answer>{t}</answer>",
    "tag on its own lines": lambda t: f"<answer>\n{t}\n</answer>\nDone.",
    "heading": lambda t: f"### Answer\n\n{t}\n\nThat is all.",
    "bold heading": lambda t: f"**Final Answer**\n{t}\n\nThat is all.",
    "dash": lambda t: f"Answer - {t}",
    "long dash": lambda t: f"**Answer** — {t}",
    "equals": lambda t: f"Final answer = {t}",
    "emphasis": lambda t: f"So the answer is clearly {t}.",
    "more emphasis": lambda t: f"The answer is therefore definitely {t}.",
    "between rules": lambda t: f"The answer is:\n\n---\n{t}\n\n---",
}
"""By name: from an answer as the data set spells it to a reply."""


def lettered(sample: Sample, label: str) -> dict[str, str]:
    """Answers that name the option `label` in other ways than ``(B)``."""
    text = sample.choices[sample.labels.index(label)]
    wrong_label = "B" if label != "B" else "A"
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
        "nested brackets": f"So the answer is [({label})].",
        "wide brackets": f"So the answer is (  {label}  ).",
        "the option": f"So the answer is the option ({label}).",
        "that the option is correct": f"So the answer is that option {label} is correct.",
        "bulleted": f"So the answer is:\n- ({label}) {text}",
        "correct option": f"The correct option is {label}",
        "final bold": f"Final Answer: **({label})**",
        "choice as last line": f"{REASONING}Final choice: {label}",
        "others discussed": f"So the answer is ({label}), since ({wrong_label}) does not fit.",
        "others discussed later": f"So the answer is {label}. {wrong_label} is too early. ({wrong_label}) fails.",
        "other found wrong": f"So the answer is ({label}), and ({wrong_label}) is wrong.",
        "rather than": f"So the answer is ({label}) rather than ({wrong_label}).",
        "instead of": f"The answer is {label} instead of {wrong_label}.",
        "not the other": f"So the answer is {label}, not {wrong_label}.",
    }


STATEMENTS: dict[Kind, tuple[Style, ...]] = {
    "integer": (
        lambda t: f"We add up: 2 + 3 = {t}",
        lambda t: f"#### {t}",
        lambda t: f"Total: {t}",
        lambda t: f"**Result:** {t}",
        lambda t: f"So the total is {t}.",
        lambda t: f"Therefore, the total number of things is {t}.",
    ),
    "bool": (
        lambda t: f"Result: {t}",
        lambda t: f"not ( not x ) = {t}",
        lambda t: f"So the whole expression is {t}.",
    ),
    "yes_no": (lambda t: f"Conclusion: {t}", lambda t: f"**Verdict:** {t}"),
    "valid": (
        lambda t: f"The argument is {t}.",
        lambda t: f"Therefore, the argument is deductively {t}.",
        lambda t: f"Thus, the argument, given the explicitly stated premises, is {t}.",
    ),
    "brackets": (lambda t: f"Output: {t}", lambda t: f"Result: `{t}`"),
    "words": (
        lambda t: f"Sorted: {t}",
        lambda t: f"The sorted list is: {t.replace(' ', ', ')}",
        lambda t: f"So the answer is {t.replace(' ', ' < ')}",
        lambda t: f"So the answer is {t.replace(' ', ' → ')}",
        lambda t: f"So the answer is {t.replace(' ', ' -> ')}.",
        lambda t: "So the answer is:\n" + _numbered(t),
        lambda t: "Here is the list:\n" + _numbered(t),
        lambda t: f"Steps.\n\n```\n{t.replace(' ', chr(10))}\n```",
    ),
}
"""Ways in which an answer of a kind is stated at the end of a reply, without the usual marker."""


def _numbered(words: str) -> str:
    return "\n".join(f"{number}. {word}" for number, word in enumerate(words.split(), 1))


TWO_ANSWERS: tuple[Callable[[str, str], str], ...] = tuple(
    (lambda a, b, form=form: "So the answer is " + form.format(a=a, b=b))  # type: ignore[misc]
    for form in (
        "{a} or maybe {b}.", "{a} or even {b}", "{a}; {b}", "{a} | {b}", "{a} vs {b}", "{a} vs. {b}",
        "{a} + {b}", "{a} / {b}", "{a}, or possibly {b}.", "{a} (or {b})", "{a}, maybe {b}",
        "{a} and {b}", "{a} & {b}", "{a}, {b}", "{a}. {b}.", "{a}, alternatively {b}",
        "{a} if the first reading holds, otherwise {b}.", "**{a}** or **{b}**",
    )
)  # fmt: skip
"""Replies that offer two answers, which is no answer."""

DENIALS = (
    "It is not the case that the answer is {}.",
    "I do not think that the answer is {}.",
    "I don't believe the answer is {}.",
    "It is unlikely that the correct answer is {}.",
    "Suppose the answer is {}.",
    "It is unclear whether the answer is {}.",
    "The wrong answer is {}.",
    "我不认为答案是{}。",
)
"""Sentences that name an answer without giving it."""

MORE_THAN_A_NUMBER = (
    "{} million", "{} thousand", "{} hundred", "{} dozen", "{} to 99", "{}%", "{} percent",
    "{} x 10", "{} × 10", "{} * 10", "{} times ten", "{} 1/2", "{} and a half", "{}½", "{}-99",
    "{}–99", "{} – 99", "{}/7", "{} or 99", "{} or maybe 99", "{} or more", "{}²", "{}^2", "{} ± 1",
    "{} plus 5", "{} divided by 2", "{},000", "{}k", "{}th", "{} 000", "{}e3",
)  # fmt: skip
"""What looks like a number at its beginning and is another one, or none."""
