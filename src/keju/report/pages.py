"""What all HTML of Keju shares: templates that escape everything, and the filters for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keju.report import format as fmt
from keju.report.tongues import plain

if TYPE_CHECKING:
    from jinja2 import Environment


def make_environment(*packages: str) -> Environment:
    """Templates of the report and, before them, of further packages."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "keju.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    for name in ("percent", "published", "interval", "count", "share"):
        environment.filters[name] = getattr(fmt, name)
    return environment
