"""YAML values mean what people read, in settings and in exams."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from keju.cli import main
from keju.config import GenerationConfig
from keju.config.load import load
from keju.config.strict import parse_yaml
from keju.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 10),
        ("-010", -10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.10", 1.1),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("-.inf", -math.inf),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("'010'", "010"),
        ("!!str 010", "010"),
        ("true", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("=", "="),
        ("[010, 1:30, yes]", [10, "1:30", True]),
    ],
)
def test_a_value_of_a_setting(text: str, value: Any) -> None:
    read = parse_yaml(text, "here")
    assert read == value
    assert type(read) is type(value)


def test_settings_of_a_file_and_of_flags_agree(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("model: scripted\ndatasets: demo\nseed: 010\n")
    assert load(file, environ={}).seed == 10
    assert load(file, ["seed=011"], environ={}).seed == 11


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: !!bool abc", "here, line 2: this is no bool"),
        ("a: 1\nb: !!int abc", "here, line 2: this is no int"),
        ("a: 1\nb: !!float abc", "here, line 2: this is no float"),
        ("a: 1\nb: !!map [a]", "here, line 2: this is no mapping"),
        ("a: 1\nb: !!seq {a: b}", "here, line 2: this is no sequence"),
        ("a: 1\nb: !!int [a]", "here, line 2: this is no scalar"),
        ("a: 1\nb: " + "1" * 5000, "here, line 2: this is no int"),
        ("a: 1\nb: !!set {a}", "here, line 2: the tag !!set is not supported"),
        ("a: 1\nb: !!timestamp 2024-01-01", "here, line 2: the tag !!timestamp is not"),
        ("a: 1\nb: !!binary x", "here, line 2: the tag !!binary is not supported"),
        ("a: \0", "here: the character U+0000 is not allowed in YAML"),
        ("[" * 5000, "here"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_yaml(text, "here")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


LEVELS = 30
LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, LEVELS)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, LEVELS)
)


@pytest.mark.parametrize(
    "text", [LAUGHS, MERGES, "a: &a\n  b: *a", "a: &a [*a]", "&a {b: [1, {c: *a}]}"]
)
def test_aliases_that_grow_without_bounds_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="its aliases make it grow without bounds") as error:
        parse_yaml(text, "here")
    assert "\n" not in str(error.value)


def test_aliases_of_a_usual_size_are_taken() -> None:
    text = "base: &base {x: 1}\nmine: {<<: *base, y: 2}\nboth: [*base, *base]"
    assert parse_yaml(text, "here") == {
        "base": {"x": 1},
        "mine": {"x": 1, "y": 2},
        "both": [{"x": 1}, {"x": 1}],
    }


def test_a_setting_that_refers_to_itself_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("generation_config:\n  extra_body: &a\n    more: *a\n")
    assert main(["eval", "--config", str(file), "--datasets", "demo", "--model", "scripted"]) == 2
    assert "c.yaml, line 2: its aliases" in capsys.readouterr().err


def test_a_setting_of_python_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    for body in (loop, deep):
        with pytest.raises(ConfigError, match=r"extra_body: nested more than 100 deep") as error:
            GenerationConfig(extra_body=body)
        assert "\n" not in str(error.value)
