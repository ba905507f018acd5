"""Whatever bytes and values come in: a setting or a row is read, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keju.config import GenerationConfig, TaskConfig
from keju.config.strict import parse_mapping, parse_yaml
from keju.errors import KejuError
from keju.files import LOG, TABLE, parse_json
from keju.messages import printable

ODD_TEXTS = st.one_of(
    st.text(st.characters(), max_size=20),
    st.sampled_from(["\0", "\ud800", "../..", "010", "1:30", "NaN", "=1", "\x1b[0m", "1e400"]),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    ODD_TEXTS,
    st.sampled_from([10**30, -(10**30), 1e308, 5e-324]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXTS, inner, max_size=3),
    max_leaves=6,
)
YAML = st.text("ab01:-.,[]{}&*!|>%@`'\"#?~=<\n\t \0\ufeff", max_size=60)


def refusal_of(read: Callable[..., Any], *args: Any, **options: Any) -> str:
    """Why something is refused; a word where it is read."""
    try:
        read(*args, **options)
    except KejuError as error:
        return printable(str(error), one_line=True)  # as the command line prints it
    return "read"


@given(st.sampled_from(sorted(TaskConfig.model_fields)), VALUES)
def test_any_value_of_any_setting(name: str, value: Any) -> None:
    settings = {"model": "m", "datasets": ["demo"], name: value}
    assert len(refusal_of(TaskConfig, **settings).splitlines()) == 1


@given(st.sampled_from(sorted(GenerationConfig.model_fields)), VALUES)
def test_any_value_of_any_sampling_setting(name: str, value: Any) -> None:
    assert len(refusal_of(GenerationConfig, **{name: value}).splitlines()) == 1


@given(YAML, st.booleans())
def test_any_text_as_yaml(text: str, as_written: bool) -> None:
    assert len(refusal_of(parse_yaml, text, "here", as_written=as_written).splitlines()) == 1


@given(st.text(max_size=40) | YAML)
def test_any_text_as_a_flag(text: str) -> None:
    assert refusal_of(parse_mapping, text, "--flag")


@given(st.binary(max_size=60), st.sampled_from([TABLE, LOG]))
def test_any_bytes_as_json(raw: bytes, decoder: Any) -> None:
    assert len(refusal_of(parse_json, raw, decoder).splitlines()) == 1
