"""Rows made for the tests, and wrong answers to real rows."""

from __future__ import annotations

from keju.benchmarks.bbh.metadata import SUBSETS
from keju.types import Sample

OPPOSITES = {
    "True": "False", "False": "True", "Yes": "No", "No": "Yes", "yes": "no", "no": "yes",
    "valid": "invalid", "invalid": "valid",
}  # fmt: skip


def row(
    subset: str, target: str, choices: tuple[str, ...] = (), text: str = "a question"
) -> Sample:
    """A row as the loader would make it."""
    return Sample(
        id=f"bbh_{subset}_0", subset=subset, index=0, text=text, target=target, choices=choices
    )


CHOICE = row("temporal_sequences", "(B)", ("6pm to 9pm", "7am to 11am", "1pm", "2pm", "3pm"))
BOOL = row("boolean_expressions", "True")
YES_NO = row("navigate", "No")
SPORTS = row("sports_understanding", "no")
VALID = row("formal_fallacies", "invalid")
INTEGER = row("multistep_arithmetic_two", "24")
BRACKETS = row("dyck_languages", "] ) }", text="Complete it. Input: { ( [")
WORDS = row("word_sorting", "alpha beta", text="Sort the words: List: beta alpha")
MADE = (CHOICE, BOOL, YES_NO, SPORTS, VALID, INTEGER, BRACKETS, WORDS)


def wrong_label(sample: Sample) -> str:
    """Some other label of a multiple-choice row."""
    wrong_labels = [label for label in sample.labels if f"({label})" != sample.target]
    return wrong_labels[sample.index % len(wrong_labels)] if wrong_labels else "B"


def wrong_answers(sample: Sample) -> list[str]:
    """Answers of the row's kind that are near the target and wrong."""
    target = sample.target
    match SUBSETS[sample.subset].kind:
        case "choice":
            return [f"({wrong_label(sample)})"]
        case "integer":
            near = [str(int(target) + 1), f"1{target.lstrip('-')}", f"{target}.5"]
            return near + ([str(-int(target)), f"{target}0"] if int(target) else [])
        case "brackets":
            return [f"{target} ]", f"] {target}", target[:-1] + (")" if target[-1] != ")" else ">")]
        case "words":
            words = target.split()
            swapped = [words[1], words[0], *words[2:]]
            return [" ".join(words[1:]), " ".join([*words, "zebra"]), " ".join(swapped)]
        case _:
            return [OPPOSITES[target]]
