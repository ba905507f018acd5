"""What ``model_args`` may say; these need neither torch nor transformers."""

from __future__ import annotations

from typing import Any

import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError
from keju.models.hf.settings import read_settings

pytestmark = pytest.mark.slow


def config(model: str = "hf:some/model", **settings: Any) -> TaskConfig:
    return TaskConfig(model=model, datasets=["demo"], **settings)


def test_name_and_defaults() -> None:
    settings = read_settings(config())
    assert settings.name == "some/model"
    assert (settings.dtype, settings.device, settings.reuse) == ("auto", "auto", "auto")
    assert not settings.trust_remote_code
    assert settings.batch_size is None


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"dtyp": "float32"}, "unknown key 'dtyp' (did you mean 'dtype'?)"),
        ({"atn_implementation": "sdpa"}, "did you mean 'attn_implementation'?"),
        ({"dtype": "int3"}, "dtype"),
        ({"batch_size": 0}, "batch_size"),
        ({"name": "x"}, "unknown key 'name'"),
        (
            {"prefix_reuse": "sometimes"},
            "model_args: prefix_reuse: 'sometimes' is none: take true, false or one of auto, tree",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(arguments: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_settings(config(model_args=arguments))
    assert hint in str(error.value)
    assert str(error.value).startswith("model_args")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("key", ["zzz", "name", "offline"])
def test_the_valid_keys_are_those_that_can_be_given(key: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_settings(config(model_args={key: "x"}))
    _, _, valid = str(error.value).partition(f"unknown key '{key}'")
    assert "batch_size" in valid
    assert "name" not in valid
    assert "offline" not in valid


def test_a_wrong_prefix_reuse_is_one_error() -> None:
    with pytest.raises(ConfigError) as error:
        read_settings(config(model_args={"prefix_reuse": "foo"}))
    assert "more)" not in str(error.value)
    assert "bool" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "form"), [(True, "auto"), (False, "off"), ("tree", "tree"), ("off", "off")]
)
def test_prefix_reuse_in_words(value: bool | str, form: str) -> None:
    assert read_settings(config(model_args={"prefix_reuse": value})).reuse == form


def test_a_gguf_path_is_a_folder_and_a_file() -> None:
    settings = read_settings(config("hf:models/some.Q4.gguf"))
    assert (settings.name, settings.gguf_file) == ("models", "some.Q4.gguf")


def test_a_batch_size_that_was_asked_for_is_used() -> None:
    assert read_settings(config(eval_batch_size=7)).batch_size == 7
    config_with_both = config(eval_batch_size=7, model_args={"batch-size": 3})
    assert read_settings(config_with_both).batch_size == 3
