#!/bin/sh
# Install Keju: the version that this action belongs to, or what PACKAGE names.
set -eu
python -m pip install --quiet "${PACKAGE:-${GITHUB_ACTION_PATH%/}/..[mcp]}"
