"""``keju eval`` with tools of the tests: for runs that are killed.

The tools are real programs' stand-ins that take a moment, so that a kill hits the middle of episodes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from keju.cli import main
from keju.config import Arm
from keju.solvers import tool_setup as shop
from keju.solvers.toolbox import ToolSource
from keju.types import Sample
from tests.support.tools import Functions


async def lookup(sample: Sample) -> str:
    """Look the answer up."""
    await asyncio.sleep(float(os.environ.get("KEJU_TEST_TOOL_SECONDS", "0.005")))
    return sample.target


def sources_of(arm: Arm, tool_setup: shop.ToolSetup) -> Iterator[ToolSource]:
    yield Functions({"lookup": lookup})


if __name__ == "__main__":
    shop.arm_sources = sources_of
    sys.exit(main(sys.argv[1:]))
