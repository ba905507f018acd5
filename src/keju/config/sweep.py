"""One arm for each tool of the servers: ``arms: each tool left out`` and ``arms: each tool alone``.

Every tool is left out of one arm and compared with all tools, or offered alone and compared with no
tools. The tools are known only when the servers were asked, so a file names the servers, and
`sweep_arms` makes the arms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from keju.config.arms import Arm, ServerSettings
from keju.errors import ConfigError, did_you_mean

SweepKind = Literal["left_out", "alone"]
FORMS: Final[Mapping[str, SweepKind]] = {
    "each tool left out": "left_out",
    "each tool alone": "alone",
}
"""The values of ``arms`` in a file, and the kinds of comparison that they mean."""
FEWEST_TOOLS: Final = 2
MOST_TOOLS: Final = 40
BASELINES: Final[Mapping[SweepKind, str]] = {"left_out": "all-tools", "alone": "no-tools"}
PREFIXES: Final[Mapping[SweepKind, str]] = {"left_out": "without-", "alone": "only-"}
LONGEST_NAME: Final = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def read_sweep(text: str, servers: Any) -> dict[str, Any]:
    """Return the settings that a text in place of arms means, given the servers of the file.

    The only arm has all tools, until the servers were asked for them.
    """
    kind = FORMS.get(" ".join(text.lower().split()))
    if kind is None:
        raise ConfigError("sweep_form", text=text[:80], hint=did_you_mean(text.lower(), FORMS))
    if not isinstance(servers, list) or not servers:
        raise ConfigError("sweep_without_servers", text=text)
    return {"sweep": kind, "arms": [{"name": BASELINES["left_out"], "servers": servers}]}


def sweep_arms(
    kind: SweepKind, servers: Sequence[ServerSettings], tools: Sequence[Sequence[str]]
) -> list[Arm]:
    """Return the baseline and an arm for each tool; `tools` are the tools of each server.

    Raise ConfigError if there are too few or too many tools, or if two arms would have one name.
    """
    count = sum(map(len, tools))
    if not FEWEST_TOOLS <= count <= MOST_TOOLS:
        code = "sweep_one_tool" if count < FEWEST_TOOLS else "sweep_many_tools"
        raise ConfigError(code, n=count, most=MOST_TOOLS)
    is_alone = kind == "alone"
    arms = [Arm(name=BASELINES[kind], servers=[] if is_alone else list(servers))]
    for place, (server, names) in enumerate(zip(servers, tools, strict=True)):
        for tool in names:
            if is_alone:
                arm_servers = [_offering(server, [tool])]
            else:
                other_tools = [name for name in names if name != tool]
                reduced = [_offering(server, other_tools)] if other_tools else []
                arm_servers = [*servers[:place], *reduced, *servers[place + 1 :]]
            name = (PREFIXES[kind] + _NOT_IN_NAMES.sub("_", tool))[:LONGEST_NAME]
            arms.append(Arm(name=name, servers=arm_servers))
    arm_names = [arm.name for arm in arms]
    if repeated := sorted({name for name in arm_names if arm_names.count(name) > 1}):
        raise ConfigError("sweep_same_names", names=repeated)
    return arms


def _offering(server: ServerSettings, tools: list[str]) -> ServerSettings:
    """Return a server that offers only these tools."""
    return server.model_copy(update={"tools": type(server.tools)(allow=tools)})
