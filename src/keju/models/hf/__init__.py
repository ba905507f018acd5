"""Checkpoints run in this process with transformers: ``--model hf:NAME_OR_PATH``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from keju.config import TaskConfig
from keju.errors import ConfigError
from keju.models.hf.settings import read_settings

if TYPE_CHECKING:
    from keju.models.hf.model import HFModel

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
"""torch reads it when it is imported by the modules of this package. Waiting threads then sleep. If
they spin, small models on a busy machine take three times the processor time."""


def make(config: TaskConfig) -> HFModel:
    """Return the model that `config` names, not yet loaded; raise ConfigError for wrong settings.

    Raises ModuleNotFoundError if torch or transformers is not installed.
    """
    if not config.model.strip().removeprefix("hf:"):
        raise ConfigError("hf_no_name", model=config.model)
    settings = read_settings(config)
    from keju.models.hf.model import HFModel

    return HFModel(config.model.strip(), settings)
