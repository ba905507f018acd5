"""Models without a network, and how a configuration names its model."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError, DataError, MissingExtra
from keju.models.openai.client import OpenAIModel
from keju.models.registry import make_model, model_name
from keju.models.scripted import ScriptedModel
from keju.runs.replay import ReplayModel
from keju.types import Fault, Record, Reply, Request, Sampling, Tool, Turn, Usage
from tests.models.helpers import KEY, request_of


def ask(model: ScriptedModel | ReplayModel, request: Request) -> Reply:
    async def session() -> Reply:
        await model.start()
        try:
            return await model.ask(request, timeout=1)
        finally:
            await model.close()

    return asyncio.run(session())


def hashed(hash_: str, **more: Any) -> Request:
    return msgspec.structs.replace(request_of(**more), hash=hash_)


def test_scripted_guesses_depend_on_the_hash_alone() -> None:
    model = ScriptedModel()
    texts = [ask(model, hashed(str(i))).text for i in range(40)]
    assert texts == [ask(ScriptedModel(), hashed(str(i))).text for i in range(40)]
    assert len(set(texts)) > 3
    assert all(text.startswith("So the answer is ") for text in texts)


def test_scripted_labels() -> None:
    reply = ask(ScriptedModel(), hashed("1", sampling=Sampling(decode="labels"), labels="ABCDEF"))
    assert reply.label_logprobs is not None
    assert list(reply.label_logprobs) == list("ABCDEF")
    assert sum(map(math.exp, reply.label_logprobs.values())) == pytest.approx(1)
    assert reply.text == max(reply.label_logprobs, key=lambda k: reply.label_logprobs[k])  # type: ignore[index]


def test_scripted_says_what_its_script_says() -> None:
    request = hashed("1", tail="tail")
    assert ask(ScriptedModel(script="fixed"), request).text == "fixed"
    assert ask(ScriptedModel(script=lambda r: r.prompt.tail), request).text == "tail"
    whole = Reply(error=Fault("server", "down"))
    assert ask(ScriptedModel(script=lambda _: whole), request) is whole


SUM = "On 2024-01-02: what is 7 - 1?\nQ: ((-5 + 9) * (4 - -2)) =\nA: Let's think."
EXPRESSION = {"type": "object", "properties": {"expression": {"type": "string"}}}
TOOLS = (
    Tool("now", "The time."),
    Tool("round", "", {"properties": {"x": {"type": "number"}}, "required": ["x"]}),
    Tool("calculate", "", EXPRESSION),
)


def acting(**more: Any) -> Request:
    return msgspec.structs.replace(hashed("1", tail=SUM), tools=TOOLS, **more)


def test_scripted_calls_a_tool_once_and_answers_with_its_number() -> None:
    model = ScriptedModel()
    (call,) = ask(model, acting()).calls
    assert call.name == "calculate"
    assert json.loads(call.arguments) == {"expression": "((-5 + 9) * (4 - -2))"}
    turns = (Turn(role="assistant", calls=(call,)), Turn(role="tool", text="24\n", call=call.id))
    reply = ask(model, acting(turns=turns))
    assert (reply.text, reply.calls) == ("So the answer is 24.", ())
    assert reply.usage.input > ask(model, acting()).usage.input


@pytest.mark.parametrize(
    "request_",
    [
        hashed("1", tail=SUM),
        acting(tool_choice="none"),
        acting(turns=(Turn(role="tool", text="This tool is not available."),)),
        msgspec.structs.replace(acting(), tools=TOOLS[:2]),
        msgspec.structs.replace(hashed("1", tail="Is 2024-01-02 before 3-4?"), tools=TOOLS),
    ],
)
def test_scripted_guesses_where_no_tool_helps(request_: Request) -> None:
    reply = ask(ScriptedModel(), request_)
    assert (reply.text, reply.calls) == (ask(ScriptedModel(), hashed("1")).text, ())


def record(hash_: str, text: str = "", error: Fault | None = None) -> bytes:
    reply = Reply(text=text, usage=Usage(3, 4), error=error)
    return msgspec.json.encode(Record(bench="b", id=hash_, hash=hash_, reply=reply)) + b"\n"


def stored_run(folder: Path, *lines: bytes) -> Path:
    folder.mkdir()
    (folder / "records.jsonl").write_bytes(b"".join(lines))
    (folder / "manifest.json").write_text(json.dumps({"model": "recorded-model"}))
    return folder


def test_replay(tmp_path: Path) -> None:
    run = stored_run(
        tmp_path / "run-1",
        record("one", "first"),
        record("two", "字" * 50),
        b'{"kind":"verdict","hash":"one"}\n',
        record("one", "second"),
        record("one", error=Fault("server", "down")),
        record("three", error=Fault("server", "down")),
        b"not JSON\n",
        record("four")[:-9],
    )
    model = ReplayModel(run)
    assert model.name == "recorded-model"
    assert ask(model, hashed("one")).text == "first"
    assert ask(model, hashed("two")) == Reply(text="字" * 50, usage=Usage(3, 4))
    for lacking in ("three", "four", "five"):
        error = ask(model, hashed(lacking)).error
        assert error is not None
        assert error.kind == "not_found"
        assert "run-1 holds no reply" in error.message


def test_replay_of_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot replay"):
        ask(ReplayModel(tmp_path), hashed("one"))
    (tmp_path / "records.jsonl").write_text("hello\n")
    with pytest.raises(DataError, match="holds no records"):
        ask(ReplayModel(tmp_path), hashed("one"))


def config(model: str, **more: Any) -> TaskConfig:
    return TaskConfig(model=model, datasets=["bbh"], **more)


def test_factory_makes_what_is_named(tmp_path: Path) -> None:
    assert isinstance(make_model(config("scripted")), ScriptedModel)
    run = stored_run(tmp_path / "run-1", record("one", "x"))
    for name, work_dir in ((f"replay:{run}", "elsewhere"), ("replay:run-1", str(tmp_path))):
        named = config(name, work_dir=work_dir)
        assert isinstance(make_model(named), ReplayModel)
        assert model_name(named) == "recorded-model"
    endpoint = config(
        "qwen:7b",
        api_url="http://h:1",
        api_key=KEY,
        headers={"X-A": "aaaa"},
        generation_config={"extra_headers": {"X-B": "bbbb"}},
    )
    model = make_model(endpoint)
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.address.display_url) == ("qwen:7b", "http://h:1/v1")
    assert model.redact(f"{KEY} aaaa bbbb") == "[redacted] [redacted] [redacted]"
    assert model_name(endpoint) == "qwen:7b"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": " "}, "model is empty"),
        ({"model": "m"}, "needs the address of its endpoint: give --api-url"),
        ({"model": "m", "api_url": "localhost:8000"}, "must begin with http"),
        ({"model": "m", "api_url": "http://h", "model_args": {"n_ctx": 1}}, "model_args has no"),
        ({"model": "scripted", "ca_file": "x.pem"}, "ca_file has no effect"),
        ({"model": "replay:nowhere"}, "no stored run 'nowhere'"),
        ({"model": "replay:"}, "no stored run ''"),
        ({"model": "hf:"}, "names nothing after 'hf:'"),
    ],
)
def test_factory_refuses_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_model(config(**settings))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("embedded", "keju.models.llama.model", "local"),
        ("gguf:model.gguf", "keju.models.llama.model", "local"),
        ("hf:org/name", "keju.models.hf", "hf"),
    ],
)
def test_local_models_are_made_by_their_module(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ScriptedModel("local")
    stand_in = ModuleType(module)
    stand_in.make = lambda _: made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, stand_in)
    assert make_model(config(name)) is made
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"keju\[{extra}\]"):
        make_model(config(name))
