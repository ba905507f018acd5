"""Tools of MCP servers: starting or connecting to servers, keeping them alive, and offering their
tools.

    launch       the command of a server, with variables and placeholders filled in
    placeholders fills values of data into commands, arguments, folders and addresses
    transport    MCP's messages over the pipes of a process
    http         MCP's messages over HTTP, within limits
    connection   one started server: a process, a session, the task that owns both
    shared       a server that many episodes call: restarts, retries one at a time
    wording      tools and results as a model receives them
    tools        the tools of one server as a source of an arm

Python's `mcp` takes a second to import, so nothing here is imported before an arm has servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from keju.config.arms import ServerSettings
from keju.errors import MissingExtra, TranslatableText

if TYPE_CHECKING:
    from keju.solvers.mcp.tools import ServerTools
    from keju.solvers.sandbox.supervisor import Supervisor


def server_tools(
    server: ServerSettings,
    supervisor: Supervisor,
    environ: Mapping[str, str],
    *,
    listed_only: bool = False,
) -> ServerTools:
    """Return the tools of one server; with `listed_only` it is closed as soon as they are
    listed."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise MissingExtra(TranslatableText("extra_for_mcp"), "mcp")
    from keju.solvers.mcp.tools import ServerTools

    return ServerTools(server, supervisor, environ, listed_only=listed_only)
