"""What a server is started with."""

from __future__ import annotations

import base64
import os

import pytest

from keju.config.arms import ServerSettings
from keju.errors import ConfigError
from keju.solvers.mcp.launch import make_launch


@pytest.mark.parametrize(
    "text",
    [
        '{"Authorization": "Bearer abc123", "X-Team": "7"}',
        "Authorization: Bearer abc123\nX-Team: 7",
    ],
)
def test_headers_come_from_a_variable(text: str) -> None:
    server = ServerSettings(name="w", url="http://h/mcp?key=${KEY}", headers_var="HEADERS")
    launch = make_launch(server, {"HEADERS": text, "KEY": "k3y-of-url"})
    assert launch.headers == {"Authorization": "Bearer abc123", "X-Team": "7"}
    assert launch.url == "http://h/mcp?key=k3y-of-url"
    redacted = launch.hide("at http://h/mcp?key=k3y-of-url with Bearer abc123 of team 7")
    assert redacted == "at *** with *** of team 7"
    assert "abc123" not in repr(launch)


def test_headers_that_cannot_be_read_are_not_repeated() -> None:
    server = ServerSettings(name="w", url="http://h/mcp", headers_var="HEADERS")
    with pytest.raises(ConfigError, match="'w': HEADERS must hold a JSON object") as refused:
        make_launch(server, {"HEADERS": "t0ken without a colon"})
    assert "t0ken" not in str(refused.value)
    with pytest.raises(ConfigError, match="HEADERS is not set"):
        make_launch(server, {})


def test_placeholders_and_the_environment() -> None:
    args = ["{workdir}/a", "{instance_id}", "{other}"]
    env: dict[str, str | None] = {"PLACE": "{workdir}", "MINE": None, "EMPTY": "${E:-}"}
    server = ServerSettings(name="s", command="sh", args=args, env=env)
    around = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-1", "MINE": "of-keju", "HOME": "/h"}
    launch = make_launch(server, around, "/w", "bbh_snarks_1")
    assert launch.argv[1:] == ("/w/a", "bbh_snarks_1", "{other}")
    assert launch.argv[0].endswith("/sh")
    assert launch.env == {
        "PATH": "/usr/bin:/bin",
        "HOME": "/h",
        "PLACE": "/w",
        "MINE": "of-keju",
        "EMPTY": "",
    }


def test_what_a_tool_answers_keeps_words_that_are_no_keys() -> None:
    env: dict[str, str | None] = {
        "MODE": "production",
        "API_TOKEN": "abc-def",
        "SEED": "ghp_16C7e42F292c69",
        "ROOT": "${HOME}",
        "PATHX": "${PATHX:-fallback-word}",
    }
    launch = make_launch(ServerSettings(name="s", command="sh", env=env), {"HOME": "/home/me"})
    text = "production abc-def ghp_16C7e42F292c69 /home/me/file fallback-word"
    assert launch.hide(text, keys_only=True) == "production *** *** /home/me/file fallback-word"
    assert launch.hide(text) == "*** *** *** ***/file ***"


def test_keys_in_arguments_and_forms_of_headers_are_neither_stored_nor_shown() -> None:
    args = ["--api-key", "sk-of-args-1", "--token=tok-of-args", "--mode", "fast"]
    server = ServerSettings(name="s", command="sh", args=args)
    stored = server.model_dump(mode="json")["args"]
    assert stored == ["--api-key", "***", "--token=***", "--mode", "fast"]
    launch = make_launch(server, {"PATH": os.defpath})
    assert launch.argv[2] == "sk-of-args-1"
    assert launch.hide("with sk-of-args-1 and tok-of-args") == "with *** and ***"
    with pytest.raises(ConfigError, match="not stored with the run"):
        make_launch(ServerSettings(name="s", command="sh", args=stored), {"PATH": os.defpath})
    remote = ServerSettings(
        name="w", url="http://h/mcp", headers={"Authorization": "Bearer k3y/of+header"}
    )
    hide = make_launch(remote, {}).hide
    assert hide("got k3y/of+header and k3y%2Fof%2Bheader") == "got *** and ***"
    assert "***" in hide(base64.b64encode(b"x:k3y/of+header").decode())
