"""A setting that is accepted has an effect: refusing those that a benchmark does not take."""

from __future__ import annotations

from collections.abc import Collection

from keju.config import DatasetArgs
from keju.errors import ConfigError

EVERYWHERE = frozenset({"protocol", "reader", "shuffle", "filters", "extra_params"})
"""Settings that are carried out before or after the benchmark sees them."""


def refuse_unused(args: DatasetArgs, honoured: Collection[str], benchmark: str) -> None:
    """Raise ConfigError for a setting that was given and is not among those `honoured`.

    A benchmark's own settings, which its subclass of `DatasetArgs` adds, are its own business.
    """
    for name, field in DatasetArgs.model_fields.items():
        if name in EVERYWHERE or name in honoured:
            continue
        if getattr(args, name) != field.default:
            raise ConfigError(f"{benchmark}: the setting '{name}' is not available here")
