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
from transformers import PreTrainedConfig

from keju import run_task
from keju.config import TaskConfig
from keju.errors import ConfigError, EndpointError, KejuError
from keju.models.hf.load import choose_devices, choose_dtype, context_length, load, read_template
from keju.models.hf.settings import HFSettings
from keju.models.registry import make_model
from tests.hf.tiny import Tiny, build
from tests.support.local_model import small_gguf

pytestmark = pytest.mark.slow


def start(model: str, **args: Any) -> None:
    config = TaskConfig(model=model, datasets=["demo"], model_args=args, offline=True)
    model_object = make_model(config)

    async def open_and_close() -> None:
        try:
            await model_object.start()
        finally:
            await model_object.close()

    asyncio.run(open_and_close())


def refusal(model: str, **args: Any) -> str:
    with pytest.raises(KejuError) as error:
        start(model, **args)
    message = str(error.value)
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
    from keju.models.hf.metadata import _weights_hash

    assert _weights_hash(tiny.net) == _weights_hash(build().net)
    assert _weights_hash(tiny.net) != _weights_hash(build(seed=1).net)


def test_the_hash_sees_every_value_and_its_place() -> None:
    from keju.models.hf.metadata import _weights_hash

    net = build().net
    table = net.model.embed_tokens.weight.data
    hashes = {_weights_hash(net)}
    table[-1, -1] += 1
    hashes.add(_weights_hash(net))
    table[:, 5] += 1
    hashes.add(_weights_hash(net))
    table[[3, 4]] = table[[4, 3]]
    hashes.add(_weights_hash(net))
    table[:, [7, 9]] = table[:, [9, 7]]
    hashes.add(_weights_hash(net))
    assert len(hashes) == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool])
def test_the_checksum_is_that_of_the_values_wherever_they_lie(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keju.models.hf.metadata import _checksum

    values = torch.randint(0, 2, (37, 11)).to(dtype)
    expected = _checksum(values)
    assert _checksum(values.t().contiguous().t()) == expected
    assert _checksum(torch.cat([values[:1], values])[1:]) == expected
    monkeypatch.setattr("keju.models.hf.metadata.CHUNK", 7)
    assert _checksum(values) == expected
    assert _checksum(torch.zeros(0, dtype=dtype)) == (0, [])
    assert _checksum(torch.ones((), dtype=dtype)) != _checksum(torch.zeros((), dtype=dtype))


def copied(folder: Path, place: Path) -> Path:
    for file in folder.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place / "model.safetensors"


def test_weights_that_are_missing_are_not_made_up(tiny_folder: Path, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    file = copied(tiny_folder, tmp_path)
    parts = safetensors.load_file(file)
    name = "model.layers.1.mlp.up_proj.weight"
    parts["of.another.name"] = parts.pop(name)
    safetensors.save_file(parts, file, metadata={"format": "pt"})
    message = refusal(f"hf:{tmp_path}")
    assert "weights are missing from the checkpoint and would be random" in message
    assert message.endswith(f": {name} (1 in all)")
    parts[name] = torch.zeros(3, 3)
    safetensors.save_file(parts, file, metadata={"format": "pt"})
    message = refusal(f"hf:{tmp_path}")
    assert "weights have another shape" in message
    assert message.endswith(f": {name} (1 in all)")


def test_tied_weights_are_not_missing(tmp_path: Path) -> None:
    tied = build(tie_word_embeddings=True)
    tied.net.save_pretrained(tmp_path)
    tied.tokenizer.save_pretrained(tmp_path)
    loaded = load(HFSettings(name=str(tmp_path), device="cpu"))
    assert torch.equal(loaded.net.lm_head.weight, tied.net.model.embed_tokens.weight)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_weights_that_are_cut_short(tiny_folder: Path, tmp_path: Path, share: float) -> None:
    file = copied(tiny_folder, tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    assert "cut short or damaged, fetch it again" in refusal(f"hf:{tmp_path}")


@pytest.mark.parametrize(
    ("byte_count", "reason"),
    [(100, "header ends too early"), (300, "fetch it again"), (2, "not a GGUF")],
)
def test_a_gguf_that_is_cut_short(tmp_path: Path, byte_count: int, reason: str) -> None:
    file = small_gguf(tmp_path / "cut.gguf")
    file.write_bytes(file.read_bytes()[:byte_count])
    message = refusal(f"hf:{file}")
    assert reason in message
    assert "cut.gguf" in message


def test_a_gguf_without_a_tokenizer(tmp_path: Path) -> None:
    assert "cannot be loaded" in refusal(f"hf:{small_gguf(tmp_path / 'bare.gguf')}")


def test_a_revision_of_a_folder_is_refused(tiny_folder: Path) -> None:
    assert "has no revisions" in refusal(f"hf:{tiny_folder}", revision="main")


def test_a_context_beyond_the_positions_is_refused(tiny_folder: Path) -> None:
    message = refusal(f"hf:{tiny_folder}", max_length=1025)
    assert "max_length: 1025 is more than the 1024 positions" in message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no folder" in refusal(f"hf:{tmp_path / 'nothing'}")
    assert "there is no folder" in refusal("hf:./nothing")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    assert "has no config.json" in refusal(f"hf:{tmp_path}")
    assert "does not exist" in refusal(f"hf:{tmp_path}/none.gguf")


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
    silent = PreTrainedConfig()
    assert context_length(silent, tokenizer, 5000) == 5000
    silent.max_position_embeddings = 512
    silent.rope_parameters = {"factor": 4.0, "original_max_position_embeddings": 512}
    assert context_length(silent, tokenizer, None) == 512
    assert context_length(silent, tokenizer, 2048) == 2048
    with pytest.raises(ConfigError):
        context_length(silent, tokenizer, 2049)


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
