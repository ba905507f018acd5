"""Where settings come from, and which source wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.config import GenerationConfig, TaskConfig
from keju.config import load as settings
from keju.config.strict import parse_mapping
from keju.errors import ConfigError
from keju.models.registry import settings_without_effect

BASE = {"model": "m", "datasets": ["bbh"]}


def load(
    flags: dict[str, Any] | None = None,
    *,
    file: Path | None = None,
    overrides: tuple[str, ...] = (),
    environ: dict[str, str] | None = None,
) -> TaskConfig:
    """Load on top of a model and a benchmark, in an empty environment."""
    return settings.load(file, overrides, BASE | (flags or {}), environ or {})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(
        "limit: 1\nseed: 1\nrepeats: 1\ngeneration_config: {max_tokens: 7, top_p: 0.5}\n"
    )
    return path


def test_flags_beat_overrides_beat_environment_beat_file(file: Path) -> None:
    environ = {"KEJU_LIMIT": "2", "KEJU_SEED": "2", "KEJU_REPEATS": "2"}
    config = load({"limit": 4}, file=file, overrides=("seed=3", "limit=3"), environ=environ)
    assert (config.limit, config.seed, config.repeats) == (4, 3, 2)
    assert load(file=file).repeats == 1


def test_mappings_merge_key_by_key(file: Path) -> None:
    config = load(
        {"generation_config": {"temperature": 0.6}},
        file=file,
        overrides=("generation_config.top_p=0.9",),
    )
    generation = config.generation_config
    assert (generation.max_tokens, generation.top_p, generation.temperature) == (7, 0.9, 0.6)


def test_other_spellings_meet_in_one_key(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("eval-batch-size: 3\ngeneration-config: {max_new_tokens: 5}\n")
    config = load({"generation_config": {"max_tokens": 9}}, file=path)
    assert config.eval_batch_size == 3
    assert config.generation_config.max_tokens == 9
    path.write_text("dataset_args: {bbh: {few-shot-num: 3}}\n")
    config = load(file=path, overrides=("dataset_args.bbh.few_shot_num=0",))
    assert config.dataset_args == {"bbh": {"few_shot_num": 0}}


def test_lists_replace(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("datasets: [bbh, ceval]\nmodel: m\n")
    assert settings.load(path, environ={}).datasets == ["bbh", "ceval"]
    assert settings.load(path, flags={"datasets": ["demo"]}, environ={}).datasets == ["demo"]


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("limit=0.5", "limit", 0.5),
        ("offline=true", "offline", True),
        ("limit=null", "limit", None),
        ('generation_config={"temperature": 0.5, "stop": ["a"]}', "generation_config", None),
        ("run_id=2026-11-15", "run_id", "2026-11-15"),
        ("api_url=http://h:1/v1?a=b", "api_url", "http://h:1/v1?a=b"),
        ("datasets=[demo]", "datasets", ["demo"]),
    ],
)
def test_override_values_are_yaml(override: str, field: str, value: object) -> None:
    config = settings.load(None, ("model=m", "datasets=bbh", override), {}, {})
    if field == "generation_config":
        assert config.generation_config.stop == ["a"]
    else:
        assert getattr(config, field) == value


def test_every_scalar_field_has_a_variable() -> None:
    nested = {"headers", "model_args", "dataset_args", "generation_config", "budget", "price"}
    for field in TaskConfig.model_fields:
        variable = {f"KEJU_{field.upper()}": "1"}
        if field in nested | {"judge", "arms", "agent", "sandbox", "endpoints", "ray"}:
            with pytest.raises(ConfigError, match="is a mapping; give it in a file or by its flag"):
                settings.from_environment(variable)
        else:
            assert settings.from_environment(variable)[field] in ("1", ["1"])
    environ = {"KEJU_DATASETS": "bbh,ceval", "KEJU_MODEL": "7", "KEJU_OFFLINE": "true"}
    config = settings.load(environ=environ)
    assert (config.datasets, config.model, config.offline) == (["bbh", "ceval"], "7", True)


def test_variables_that_are_no_settings_pass() -> None:
    environ = {"KEJU_CACHE_DIR": "x", "KEJU_DEBUG": "1", "KEJU_TEST_ANY": "1", "KEJU_LIMIT": ""}
    assert load(environ=environ).limit is None


def test_openai_variables_stand_between_the_file_and_the_flags(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "shared", "OPENAI_BASE_URL": "http://shared/v1"}
    path = tmp_path / "c.yaml"
    path.write_text("api_url: http://file/v1\napi_key: file\n")
    config = settings.load(path, flags={"model": "m", "datasets": ["demo"]}, environ=environ)
    assert config.api_url == "http://shared/v1"
    assert config.api_key is not None
    assert config.api_key.get_secret_value() == "shared"
    explicit = load({"api_url": "http://own/v1", "api_key": "own"}, environ=environ)
    assert explicit.api_url == "http://own/v1"
    keju_variable = load(environ=environ | {"KEJU_API_URL": "http://keju/v1"})
    assert keju_variable.api_url == "http://keju/v1"


def test_a_manifest_outranks_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "run" / "manifest.json"
    path.parent.mkdir()
    path.write_text('{"config": {"model": "m", "datasets": ["demo"], "api_url": "http://run/v1"}}')
    config = settings.load(path, environ={"OPENAI_BASE_URL": "http://shared/v1"})
    assert (config.api_url, config.run_id) == ("http://run/v1", "run")


@pytest.mark.parametrize("model", ["scripted", "replay:runs/a", "gguf:x", "hf:x", "embedded"])
def test_local_models_get_no_endpoint(model: str) -> None:
    environ = {"OPENAI_API_KEY": "shared", "OPENAI_BASE_URL": "http://shared/v1"}
    flags = {"model": model, "datasets": ["demo"]}
    config = settings.load(flags=flags, environ=environ, idle=settings_without_effect)
    assert config.api_url is None
    assert config.api_key is None


ENDPOINT_FILE = """
model: m
datasets: [demo]
api_url: http://own/v1
api_key: sk-own
ca_file: own.pem
headers: {X-Own: "1"}
generation_config: {extra_headers: {X-Own: "1"}, temperature: 0.5}
"""


@pytest.mark.parametrize(
    ("flags", "overrides", "environ"),
    [
        ({"model": "embedded"}, (), {}),
        ({}, ("model=embedded",), {}),
        ({}, (), {"KEJU_MODEL": "embedded"}),
    ],
)
def test_a_local_model_leaves_out_the_endpoint_of_a_weaker_source(
    flags: dict[str, Any], overrides: tuple[str, ...], environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(ENDPOINT_FILE)
    lines: list[str] = []
    config = settings.load(
        path, overrides, flags, environ, idle=settings_without_effect, say=lines.append
    )
    assert (config.api_url, config.api_key, config.ca_file, config.headers) == (
        None,
        None,
        None,
        {},
    )
    assert config.generation_config == GenerationConfig(temperature=0.5)
    left_out = [line for line in lines if "left out" in line]
    names = "api_url, api_key, ca_file, headers, generation_config.extra_headers"
    assert left_out == [f"keju: {names} of {path} left out: no effect on model 'embedded'"]


def test_settings_of_a_local_model_are_left_out_for_one_at_an_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("model: embedded\ndatasets: [demo]\nmodel_args: {n_ctx: 512}\n")
    lines: list[str] = []
    flags = {"model": "m", "api_url": "http://own/v1"}
    config = settings.load(path, (), flags, {}, idle=settings_without_effect, say=lines.append)
    assert (config.model_args, config.api_url) == ({}, "http://own/v1")
    assert lines == [f"keju: model_args of {path} left out: no effect on model 'm'"]
    local_config = settings.load(
        path, (), {"model": "gguf:x"}, {}, idle=settings_without_effect, say=lines.append
    )
    assert local_config.model_args == {"n_ctx": 512}
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("content", "overrides", "flags"),
    [
        ("model: embedded\napi_url: http://own/v1", (), {}),
        ("{}", ("api_url=http://own/v1",), {"model": "embedded"}),
        ("{}", ("model=embedded",), {"api_url": "http://own/v1"}),
        ("model: embedded", (), {"api_url": "http://own/v1"}),
    ],
)
def test_an_address_that_is_not_below_the_model_is_kept_and_so_refused(
    content: str, overrides: tuple[str, ...], flags: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    flags = {"datasets": ["demo"]} | flags
    config = settings.load(
        path, overrides, flags, {}, idle=settings_without_effect, say=pytest.fail
    )
    assert config.api_url == "http://own/v1"


def test_a_name_that_begins_like_a_local_model_is_one_at_an_endpoint() -> None:
    flags = {"model": "hf-chat", "datasets": ["demo"]}
    environ = {"OPENAI_BASE_URL": "http://shared/v1"}
    config = settings.load(flags=flags, environ=environ, idle=settings_without_effect)
    assert config.api_url == "http://shared/v1"


def test_json_file_and_yaml_anchors(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"timeout": 1e3, "seed": 5}).replace(" ", "\t"))
    assert load(file=path).timeout == 1000
    path = tmp_path / "c.yaml"
    path.write_text(
        "generation_config: &g {temperature: 0.1, top_p: 0.2}\n"
        "judge: {model: j, generation_config: {<<: *g, temperature: 0.3}}\n"
    )
    judge = load(file=path).judge
    assert judge is not None
    assert (judge.generation_config.temperature, judge.generation_config.top_p) == (0.3, 0.2)


def test_manifest_of_a_run_resumes_it_from_anywhere(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "tuesday"
    folder.mkdir(parents=True)
    config = BASE | {"run_id": "tuesday", "work_dir": "deep", "limit": 3}
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "config": config}))
    loaded = settings.load(folder / "manifest.json", environ={})
    assert Path(loaded.work_dir) == tmp_path / "deep"
    assert (loaded.run_id, loaded.limit) == ("tuesday", 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("temperature=0.6,max_tokens=512", {"temperature": 0.6, "max_tokens": 512}),
        ("temperature=0.6, stop=[a, b]", {"temperature": 0.6, "stop": ["a", "b"]}),
        ("extra_body.x=1,extra_body.y=yes", {"extra_body": {"x": 1, "y": True}}),
        ('chat_template_kwargs={"enable_thinking": false}', None),
    ],
)
def test_mapping_flags_take_json_and_pairs(text: str, expected: dict[str, Any] | None) -> None:
    parsed = parse_mapping(text, "--generation-config")
    assert parsed == (expected or {"chat_template_kwargs": {"enable_thinking": False}})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"limt": 1}, "unknown key 'limt' (did you mean 'limit'?)"),
        ({"self": 1}, "unknown key 'self'"),
        (
            {"judge": {"model": "j", "generation_config": {"top_p": 2}}},
            "judge.generation_config.top_p",
        ),
        ({"generation_config": {"temperature": "x"}}, "generation_config.temperature"),
        ({"price": {"input": "x"}}, "price.input: "),
        ({"price": {"input": True}}, "price.input: must be a number, not true"),
        ({"judge": {"strategy": "llm"}}, "'judge.model' is required"),
        (
            {"judge": {"model": "j", "budget": {"tokns": 1}}},
            "unknown key 'judge.budget.tokns' (did",
        ),
        ({"limit": "x"}, "limit: must be a whole number of at least 1, or a share between 0 and 1"),
        (
            {"generation_config": {"extra_body": {"seed": 1}}},
            "generation_config.extra_body: cannot",
        ),
        ({"model_args": {"a": [float("nan")]}}, "model_args.a.0: must be a finite number"),
    ],
)
def test_messages_have_the_whole_path(flags: dict[str, Any], message: str) -> None:
    """Once, whether the settings are loaded or given to the class itself."""
    for make in (load, lambda values: TaskConfig(**(BASE | values))):
        with pytest.raises(ConfigError) as raised:
            make(flags)
        assert str(raised.value).startswith(message)
        assert "more)" not in str(raised.value)
        assert "\n" not in str(raised.value)


def test_settings_inside_settings_can_be_made_alone() -> None:
    with pytest.raises(ConfigError, match=r"^temperature: input should be a finite number$"):
        GenerationConfig(temperature=float("inf"))
    config = load({"generation_config": GenerationConfig(temperature=0.5)})
    assert config.generation_config.temperature == 0.5


@pytest.mark.parametrize(
    ("value", "limit"), [(1, 1), (1.0, 1), ("5", 5), (0.5, 0.5), ("0.5", 0.5), (None, None)]
)
def test_limit(value: object, limit: object) -> None:
    assert load({"limit": value}).limit == limit


def test_secrets_are_in_no_message() -> None:
    secret = "sk-very-secret"
    for flags in ({"api_key": [secret]}, {"headers": {"X-Key": [secret]}}):
        with pytest.raises(ConfigError) as raised:
            load(flags)
        assert secret not in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        parse_mapping(f'{{"Authorization": "{secret}', "--headers", plain=True)
    assert secret not in str(raised.value)


def test_folders_of_small_commands() -> None:
    assert settings.data_folder(None, {}) is None
    assert settings.data_folder(None, {"KEJU_DATA_DIR": "a"}) == "a"
    assert settings.data_folder("b", {"KEJU_DATA_DIR": "a"}) == "b"
    assert settings.runs_folder(None, {}) == Path("runs")
    assert settings.runs_folder(None, {"KEJU_WORK_DIR": "w"}) == Path("w")


def test_a_variable_and_a_file_that_differ_are_told(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("model: scripted\ndatasets: demo\ndata_dir: /nope\nseed: 5\n")
    lines: list[str] = []
    environ = {"KEJU_DATA_DIR": "/tmp", "KEJU_SEED": "5"}
    assert settings.load(file, environ=environ, say=lines.append).data_dir == "/tmp"
    assert lines == [f"keju: data_dir of the environment counts, that of {file} does not"]
