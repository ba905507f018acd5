"""From a folder to a model, and what is said where that fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch

from keju import run_task
from keju.config import TaskConfig
from keju.errors import ConfigError, EndpointError, KejuError
from keju.models.factory import make_model
from keju.models.hf.load import choose_devices, choose_dtype, context_length, load, read_template
from keju.models.hf.settings import HFSettings
from tests.hf.tiny import Tiny, build


def start(model: str, **args: Any) -> None:
    config = TaskConfig(model=model, datasets=["demo"], model_args=args, offline=True)
    made = make_model(config)

    async def open_and_close() -> None:
        try:
            await made.start()
        finally:
            await made.close()

    asyncio.run(open_and_close())


def refusal(model: str, **args: Any) -> str:
    with pytest.raises(KejuError) as caught:
        start(model, **args)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_run_from_a_folder(tiny_folder: Path, tmp_path: Path) -> None:
    results = run_task(
        {
            "model": f"hf:{tiny_folder}",
            "datasets": ["demo"],
            "dataset_args": {"demo": {"size": 3}},
            "protocol": "letters",
            "work_dir": str(tmp_path),
            "run_id": "tiny",
        }
    )
    (entry,) = results["benchmarks"]
    assert entry["n"] == 18
    assert entry["outcomes"]["error"] == 0
    assert entry["usage"]["cached_tokens"] > entry["usage"]["input_tokens"] / 4
    facts = json.loads((tmp_path / "tiny" / "manifest.json").read_bytes())["endpoint"]
    assert facts["backend"] == "transformers"
    assert facts["dtype"] == "float32"
    assert facts["prefix_reuse"] == ["cache"]
    assert facts["attention"] == "sdpa"
    assert facts["versions"]["torch"] == str(torch.__version__)
    assert {"sha256", "config_hash", "chat_template_hash", "deterministic", "devices"} <= set(facts)


def test_text_from_a_folder_in_chat_form(tiny_folder: Path, tmp_path: Path) -> None:
    results = run_task(
        {
            "model": f"hf:{tiny_folder}",
            "datasets": ["demo"],
            "dataset_args": {"demo": {"size": 2}},
            "protocol": "text",
            "generation_config": {"max_tokens": 6},
            "model_args": {"dtype": "bfloat16", "batch_size": 5},
            "work_dir": str(tmp_path),
        }
    )
    (entry,) = results["benchmarks"]
    assert entry["outcomes"]["error"] == 0
    assert entry["usage"]["output_tokens"] <= 12 * 6


def test_other_weights_have_another_hash(tiny: Tiny) -> None:
    from keju.models.hf.facts import _weights_hash

    assert _weights_hash(tiny.net) == _weights_hash(build().net)
    assert _weights_hash(tiny.net) != _weights_hash(build(seed=1).net)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no folder" in refusal(f"hf:{tmp_path / 'nothing'}")
    assert "there is no folder" in refusal("hf:./nothing")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    assert "holds no config.json" in refusal(f"hf:{tmp_path}")
    assert "there is no file" in refusal(f"hf:{tmp_path}/none.gguf")


def test_a_broken_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no such architecture"}')
    message = refusal(f"hf:{tmp_path}")
    assert "cannot be loaded" in message
    assert len(message) < 600


def test_a_model_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal("hf:nobody/no-such-model")
    assert "is no folder here and could not be fetched" in message
    assert "check the name and the network" in message


def test_wrong_settings_are_found_before_loading(tiny_folder: Path) -> None:
    place = f"hf:{tiny_folder}"
    assert "did you mean 'dtype'?" in refusal(place, dtyp="float16")
    assert "is none: take auto, cpu" in refusal(place, device="gpu")
    assert "chat_template is neither" in refusal(place, chat_template="no/such/file.jinja")
    if not torch.cuda.is_available():
        assert "torch sees no GPU" in refusal(place, device="cuda:0")


def test_an_attention_that_does_not_exist(tiny_folder: Path) -> None:
    assert "cannot be loaded" in refusal(f"hf:{tiny_folder}", attn_implementation="of_its_own")


def test_a_prefix_reuse_that_the_architecture_does_not_allow(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.models.hf.forms.only_full_attention", lambda _: False)
    assert "prefix_reuse 'tree' gives other results" in refusal(
        f"hf:{tiny_folder}", prefix_reuse="tree"
    )


def test_the_eager_attention_of_transformers_works_too(tiny_folder: Path, tmp_path: Path) -> None:
    results = run_task(
        {
            "model": f"hf:{tiny_folder}",
            "datasets": ["demo"],
            "dataset_args": {"demo": {"size": 1}},
            "protocol": "text",
            "generation_config": {"max_tokens": 4},
            "model_args": {"attn_implementation": "eager"},
            "work_dir": str(tmp_path),
        }
    )
    assert results["benchmarks"][0]["outcomes"]["error"] == 0


def test_choices_of_device_and_dtype() -> None:
    (device,) = choose_devices("cpu")
    assert choose_dtype("auto", device) == torch.float32
    assert choose_dtype("auto", torch.device("cuda", 0)) == torch.bfloat16
    assert choose_dtype("float16", device) == torch.float16


def test_context_length(tiny: Tiny) -> None:
    config, tokenizer = tiny.net.config, tiny.tokenizer
    assert context_length(config, tokenizer, None) == 1024
    assert context_length(config, tokenizer, 100) == 100


def test_a_template_from_a_file(tmp_path: Path) -> None:
    place = tmp_path / "template.jinja"
    place.write_text("{{ messages }}")
    assert read_template(str(place)) == "{{ messages }}"
    assert read_template("{{ given }}") == "{{ given }}"
    assert read_template(None) is None


def test_code_that_comes_with_a_checkpoint_is_not_run(tiny_folder: Path, tmp_path: Path) -> None:
    for file in tiny_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {
        "model_type": "of_its_own",
        "auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text("raise SystemExit('this code was run')")
    message = refusal(f"hf:{tmp_path}")
    assert "model_args.trust_remote_code=true" in message


def test_load_gives_what_was_saved(tiny: Tiny, tiny_folder: Path) -> None:
    loaded = load(HFSettings(name=str(tiny_folder), device="cpu"))
    assert loaded.context == 1024
    assert loaded.eos == {tiny.tokenizer.eos_token_id}
    for name, part in tiny.net.state_dict().items():
        assert torch.equal(part, loaded.net.state_dict()[name])
    with pytest.raises((ConfigError, EndpointError)):
        load(HFSettings(name="/no/such/place"))
