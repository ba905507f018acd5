"""The prompts of every exam and protocol fit the schema of Anthropic's API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.benchmarks import registry
from keju.config import TaskConfig
from keju.engine.job import make_jobs
from keju.errors import ConfigError
from keju.models.anthropic.wire import body_of
from keju.sources.folder import is_data_available
from tests.support.anthropic_schema import NEW, OLD, Request, check, marked

PROTOCOLS = [
    (name, protocol)
    for name in registry.names()
    if registry.get(name).layout or name == "demo"
    for protocol in registry.get(name).protocols
    # Capsules; rows of the hub's shape.
    if (name, protocol) not in {("bixbench", "agentic"), ("mbpp_plus", "lm-eval")}
]


@pytest.mark.parametrize(("name", "protocol"), PROTOCOLS)
@pytest.mark.parametrize(("model", "version"), [("sonnet", NEW), ("claude-haiku-4-5", OLD)])
def test_the_first_prompts_of_a_protocol(
    name: str, protocol: str, model: str, version: str, data_dir: Path
) -> None:
    if not is_data_available(name, registry.get(name).layout, data_dir=str(data_dir)):
        pytest.skip(f"no data of {name} at {data_dir}")
    config = TaskConfig(
        model=f"anthropic:{model}",
        model_args={"api_version": version},
        datasets=[name],
        protocol=protocol,
        api="chat",
        data_dir=str(data_dir),
        limit=1,
    )
    chosen = registry.get(name).protocols[protocol]
    refused = chosen.decode == "labels" or (chosen.temperature is not None and version == NEW)
    if refused:
        with pytest.raises(ConfigError) as caught:
            make_jobs(config)
        assert caught.value.code == "sampling_refused"
        return
    for job in make_jobs(config):
        for unit in range(0, job.units, max(1, job.units // 5)):
            request = job.request(unit)
            body = json.loads(body_of(model_id(config), request).encoded())
            check(Request(body, version, lambda *_: False))
            marks = [block for block in marked(body) if "cache_control" in block]
            shared = request.prompt.prefix
            assert bool(marks) == bool(shared.lead.strip() or shared.messages)
            text = "".join(block["text"] for block in body["messages"][-1]["content"])
            assert text.endswith(request.prompt.text)


def model_id(config: TaskConfig) -> str:
    return config.model.partition(":")[2]
