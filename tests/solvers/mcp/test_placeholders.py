"""Values of data in commands, arguments, folders and addresses of servers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keju.config.arms import ServerSettings
from keju.errors import ConfigError
from keju.files import make_file_name
from keju.solvers.mcp.launch import ServerLaunch, make_launch
from keju.solvers.toolbox import ToolsLost
from keju.types import Sample
from tests.solvers.mcp.conftest import faulty, opened

HOSTILE = [
    "x$(touch P)",
    "x`touch P`",
    "x;touch P",
    "x|touch P",
    "x&touch P&",
    "x\ntouch P\n",
    "' ; touch P ; '",
    '" ; touch P ; "',
    "'\"$(touch P)\"'",
    "\\$(touch P)",
    "x>P",
    "*",
    "$HOME",
    "~",
    "a b",
    "{workdir}$(touch P)",
    "#x",
    "!x",
]
IN_COMMANDS = [
    "printf %s {instance_id}",
    'printf %s "{instance_id}"',
    "printf %s '{instance_id}'",
    'printf %s "<{instance_id}>"',
    'printf %s "$(printf %s {instance_id})"',
    'printf %s "$(printf %s "{instance_id}")"',
    "(printf %s {instance_id})",
    "# don't\nprintf %s {instance_id}",
    'printf %s "it\'s {instance_id}"',
    "printf %s '\\' {instance_id}",
]
REFUSED = [
    "bash -c 'printf %s {instance_id}'",
    "sh -ec 'printf %s {instance_id}'",
    "eval printf %s {instance_id}",
    "printf %s `printf %s {instance_id}`",
    "cat <<END\n{instance_id}\nEND",
    "echo $(( {instance_id} ))",
    "echo ${UNSET-{instance_id}}",
    "python3 -c 'print(\"{instance_id}\")'",
    "echo x | xargs printf %s{instance_id}",
]


def command_of(template: str, value: str) -> str:
    server = ServerSettings(name="s", command="sh", setup_command=template)
    setup = make_launch(server, {"PATH": os.defpath}, "/w", value).setup
    assert setup is not None
    return setup


@pytest.mark.parametrize("template", IN_COMMANDS)
def test_a_value_in_a_command_of_a_shell_is_text(template: str, tmp_path: Path) -> None:
    for value in HOSTILE:
        command = command_of(template, value)
        argv = ["/bin/sh", "-c", command]
        ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert value.rstrip("\n") in ran.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("template", REFUSED)
def test_a_value_inside_of_other_code_is_refused_unless_it_is_plain(template: str) -> None:
    with pytest.raises(ConfigError, match="KEJU_INSTANCE_ID"):
        command_of(template, "x$(touch P)")
    assert "bix-1-q1" in command_of(template, "bix-1-q1")


def test_values_in_arguments_folders_and_addresses() -> None:
    around = {"PATH": os.defpath}

    def launched(value: str, **settings: Any) -> ServerLaunch:
        return make_launch(ServerSettings(name="s", **settings), around, "/w", value)

    assert launched("x$(touch P)", command="sh", args=["{instance_id}"]).argv[1] == "x$(touch P)"
    shell = launched("x;touch P", command="sh", args=["-c", "echo {instance_id}"])
    assert shell.argv[2] == "echo 'x;touch P'"
    for args in (["-c", "print('{instance_id}')"], ["--eval={instance_id}"]):
        with pytest.raises(ConfigError, match="as a separate argument"):
            launched("x;y", command=sys.executable, args=args)
    folder = launched(
        "../../etc", command="sh", cwd="/data/{instance_id}", args=["{workdir}/{instance_id}"]
    )
    assert folder.cwd == f"/data/{make_file_name('../../etc')}"
    assert folder.argv[1] == f"/w/{make_file_name('../../etc')}"
    address = launched("../a?b#c", url="http://h/of/{instance_id}/mcp")
    assert address.url == "http://h/of/..%2Fa%3Fb%23c/mcp"
    with pytest.raises(ConfigError, match="NUL"):
        launched("a\0b", command="sh", args=["{instance_id}"])
    with pytest.raises(ConfigError, match="begins with '-'"):
        launched("--output=x", command="sh", args=["{instance_id}"])


def test_a_hostile_id_is_not_run_and_reaches_the_setup_command_and_the_server(
    tmp_path: Path,
) -> None:
    output_file, planted = tmp_path / "told", tmp_path / "P"
    value = f"x$(touch {planted})"
    setup = (
        f'printf %s {{instance_id}} > {output_file}; printf %s "$KEJU_INSTANCE_ID" >> {output_file}'
    )

    async def episode(server: ServerSettings, sample: Sample) -> None:
        async with opened(server) as source, source.episode(sample, 0):
            pass

    sample = Sample(id=value, subset="s", index=0, text="?", target="!")
    asyncio.run(episode(faulty("{workdir}", setup_command=setup), sample))
    assert output_file.read_text() == value * 2
    server = faulty(
        setup_command=f"bash -c 'echo {{instance_id}}' > {json.dumps(str(output_file))}"
    )
    with pytest.raises(ToolsLost, match="KEJU_INSTANCE_ID"):
        asyncio.run(episode(server, sample))
    assert not planted.exists()
