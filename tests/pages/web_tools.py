"""A small MCP server over HTTP: ``python -m tests.pages.web_tools PORT``."""

from __future__ import annotations

import sys

from mcp.server import MCPServer

server = MCPServer("web")


@server.tool()
def search(words: str) -> str:
    """Search the web."""
    return f"nothing was found about {words}"


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
