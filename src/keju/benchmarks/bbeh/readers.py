"""The authors' reader of BBEH: ``evaluate.py`` of google-deepmind/bbeh."""

from __future__ import annotations

from keju.answers.reader import Reader
from keju.types import Answer, Sample

PREFIXES = (
    "The answer is:",
    "The final answer is ",
    "The final answer is: ",
    "The answer is ",
)
"""The announcements of the answer, in the order in which the authors split at them."""
COMMANDS = ("boxed{", "text{", "texttt{")


def remove_latex(text: str) -> str:
    """Return a text without the dollars and the LaTeX command around it: ``$\\boxed{4}$`` is 4."""
    if text.startswith("$") and text.endswith("$"):
        text = text[1:-1]
    for command in COMMANDS:
        if command in text and text.endswith("}"):
            text = text[:-1].split(command)[1]
    return text


def find_answer(reply: str) -> str:
    """Return the text after the last announcement, without its final full stop and LaTeX."""
    answer = reply
    for prefix in PREFIXES:
        if prefix in answer:
            answer = answer.split(prefix)[-1].strip()
    return remove_latex(answer.removesuffix("."))


def normalise_prediction(reply: str) -> str:
    """Return the answer of a reply as the authors compare it: its first line in lower case."""
    answer = find_answer(reply.strip()).lower().replace(", ", ",").replace("**", "")
    return answer.split("\n")[0].removesuffix(".")


def normalise_target(target: str) -> str:
    """Return a target as the authors compare it."""
    return target.strip().lower().replace(", ", ",")


def _is_bracketed(text: str) -> bool:
    return len(text) == 3 and text[0] == "(" and text[-1] == ")"


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def is_equal(prediction: str, target: str) -> bool:
    """Return the authors' verdict on two normalised texts: ``(a)`` equals a, 25 equals 25.0."""
    if prediction == target:
        return True
    if _is_bracketed(prediction):
        return prediction[1] == target
    if _is_bracketed(target):
        return target[1] == prediction
    number = _as_number(prediction)
    if number is not None and number == _as_number(target):
        return True
    return (
        prediction.replace("'", "") == target.replace("'", "")
        or f"[{target}]" == prediction
        or f"[{prediction}]" == target
        or (prediction.endswith("?") and prediction[:-1] == target)
    )


def matches_target(value: str, target: str) -> bool:
    """Return whether an answer equals a target by the authors' rule."""
    return is_equal(normalise_prediction(value), normalise_target(target))


class BBEHOfficialReader(Reader):
    """The authors' rule. Without an announcement the whole reply is the answer."""

    name = "official"
    about = "bbeh.about_reader_official"

    def read(self, text: str, sample: Sample) -> Answer:
        value = normalise_prediction(text)
        announced = any(prefix in text for prefix in PREFIXES)
        if not value:
            return Answer(reason="empty")
        return Answer(value, "strict" if announced else "fallback")

    def matches(self, value: str, sample: Sample) -> bool:
        return is_equal(value, normalise_target(sample.target))
