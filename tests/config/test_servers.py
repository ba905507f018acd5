"""The settings of MCP servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keju.config.arms import ServerSettings, expand
from keju.errors import ConfigError


def test_references_are_filled_in_as_in_a_shell() -> None:
    environ = {"TOKEN": "abc", "EMPTY": ""}
    assert expand("-t ${TOKEN} ${PORT:-8000}${EMPTY}", environ) == "-t abc 8000"
    assert expand("${EMPTY:-x} $TOKEN {workdir}", environ) == "x $TOKEN {workdir}"
    with pytest.raises(ConfigError, match=r"MISSING is not set.*\$\{MISSING:-DEFAULT\}"):
        expand("${MISSING}", environ)


def test_values_of_variables_and_headers_are_never_stored() -> None:
    env = {"A": "literal-secret", "B": "${SECRET}", "C": "${SECRET:-fallback-secret}", "D": None}
    started = ServerSettings(name="s", command="x", args=["--key", "${SECRET}"], env=env)
    stored = json.dumps(started.model_dump(mode="json", exclude_defaults=True))
    assert "literal-secret" not in stored
    assert "fallback-secret" not in stored
    assert '"env": {"A": null, "B": "${SECRET}", "C": null, "D": null}' in stored
    assert '"--key", "${SECRET}"' in stored
    url = "https://me:secret@host/mcp?key=secret"
    reached = ServerSettings(name="w", url=url, headers={"Authorization": "secret"})
    assert "secret" not in json.dumps(reached.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "either a command"),
        ({"command": "x", "url": "http://h"}, "either a command"),
        ({"url": "ftp://h"}, "url: must begin with http"),
        ({"url": "http://h", "args": ["a"]}, "'args' has no effect.*http"),
        ({"command": "x", "headers_var": "H"}, "'headers_var' has no effect.*stdio"),
        ({"command": "x", "workers": 2}, "scope: worker"),
        ({"command": "x", "args": ["{instance_id}"], "scope": "run"}, "needs scope: sample"),
        ({"command": "x", "name": "a\nb"}, "name: "),
        ({"command": "x", "tool_timeout": 5}, r"unknown key 'tool_timeout' \(did you mean"),
        ({"command": "x", "tools": {"alow": []}}, "unknown key 'tools.alow'.*'allow'"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ServerSettings(**settings)


def test_a_server_that_is_told_its_question_serves_that_one_alone() -> None:
    assert ServerSettings(command="x", args=["{instance_id}"]).scope == "sample"
    assert ServerSettings(command="x", args=["{workdir}"]).scope == "run"
