"""Templates: only known placeholders are replaced, unknown ones are refused."""

from __future__ import annotations

import pytest

from keju.benchmarks.wording import check_template, fill
from keju.errors import ConfigError


def test_values_are_put_in_and_never_looked_into() -> None:
    filled = fill("{question} {choices}", {"question": "{choices}?", "choices": "A) {question}"})
    assert filled == "{choices}? A) {question}"


def test_other_braces_stay_as_they_are() -> None:
    template = 'Write {"answer": "{x y}"} or \\boxed{X} for {question} {}'
    assert fill(template, {"question": "this"}) == template.replace("{question}", "this")
    check_template(template, known_names=("question",), required=("question",), setting="t")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{qestion} {choices}", r"prompt_template: unknown placeholder '\{qestion\}'.*question"),
        ("{choices}", r"prompt_template: the placeholder \{question\} is missing"),
    ],
)
def test_a_template_that_cannot_work_is_refused(template: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_template(
            template,
            known_names=("question", "choices"),
            required=("question", "choices"),
            setting="prompt_template",
        )
