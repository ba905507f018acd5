"""The settings of a transformers model (``model_args``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    PositiveInt,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from keju.config import TaskConfig
from keju.config.strict import explain_error
from keju.errors import ConfigError, did_you_mean

Reuse = Literal["auto", "tree", "cache", "off"]
"""How a shared prefix is computed once: packed with its questions, as a kept cache, or not at
all."""

GGUF = ".gguf"


class HFModelArgs(BaseModel):
    """The ``model_args`` of a checkpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of weights and arithmetic: bfloat16 on a GPU and float32 elsewhere unless it is set."""
    device: str = "auto"
    """``cpu``, ``cuda:1``, ``mps``; ``auto`` takes every GPU there is, each with a copy."""
    batch_size: PositiveInt | None = None
    """The most questions worked on at once; by default what memory and device suggest."""
    batch_tokens: PositiveInt | None = None
    """The most tokens in one pass over packed questions; automatic by default."""
    attn_implementation: str | None = None
    """Attention as transformers names it: sdpa, eager, flash_attention_2, …"""
    prefix_reuse: bool | Reuse = True
    """Compute a shared prefix once: true or ``auto`` chooses how, false or ``off`` does not."""
    max_length: PositiveInt | None = None
    """The context in tokens; the checkpoint's own by default."""
    chat_template: str | None = None
    """A template in Jinja, or the path of a file with one, instead of the tokenizer's."""
    label_space: bool = False
    """Count `` A`` with a space before it as a spelling of the label ``A``."""
    revision: str | None = None
    """Branch, tag or commit of a model that is fetched."""
    trust_remote_code: bool = False
    """Run Python code that comes with the checkpoint."""
    gguf_file: str | None = None
    """A GGUF file in the folder or repository, dequantised when it is loaded."""

    @field_validator("prefix_reuse", mode="wrap")
    @classmethod
    def _check_reuse(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            words = ", ".join(get_args(Reuse))
            raise ValueError(f"'{value}' is none: take true, false or one of {words}") from None

    @property
    def reuse(self) -> Reuse:
        """`prefix_reuse` in words."""
        if isinstance(self.prefix_reuse, bool):
            return "auto" if self.prefix_reuse else "off"
        return self.prefix_reuse


class HFSettings(HFModelArgs):
    """``model_args`` together with settings from other places."""

    name: str = ""
    """The folder or repository, without ``hf:``."""
    offline: bool = False
    """Whether downloads are forbidden."""


OWN = ("name", "offline")
"""Fields that do not come from ``model_args``."""


def read_settings(config: TaskConfig) -> HFSettings:
    """Check ``model_args``; a given ``--eval-batch-size`` is the batch size."""
    args: dict[str, Any] = {key.replace("-", "_"): v for key, v in config.model_args.items()}
    for field in OWN:
        if field in args:
            hint = did_you_mean(field, list(HFModelArgs.model_fields))
            raise ConfigError("model_args_unknown", field=field, hint=hint)
    if "eval_batch_size" in config.model_fields_set:
        args.setdefault("batch_size", config.eval_batch_size)
    name = config.model.strip().removeprefix("hf:")
    if name.lower().endswith(GGUF) and "gguf_file" not in args:
        file = Path(name).expanduser()
        name, args["gguf_file"] = str(file.parent), file.name
    try:
        return HFSettings(**args, name=name, offline=config.offline)
    except ValidationError as error:
        raise ConfigError("model_args_wrong", problem=explain_error(error, HFModelArgs)) from None
