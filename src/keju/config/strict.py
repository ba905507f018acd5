"""Settings that refuse what they cannot carry out, in one line with the whole path of the key."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from keju.errors import ConfigError, did_you_mean

LARGEST: Final = 2**53
"""Beyond it a JSON number is no longer exact."""
LONGEST: Final = 1e9
"""Seconds, some 30 years: what a clock can still be set to."""

Whole = Annotated[int, Field(gt=0, le=LARGEST)]
Seconds = Annotated[float, Field(gt=0, le=LONGEST)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class StrictSettings(BaseModel):
    """Unknown keys are refused with the nearest valid name; numbers are finite, and numbers."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise ConfigError(explain(error, type(self))) from None

    # Settings inside settings are then checked by pydantic itself, which knows their whole path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _hyphens(cls, data: Any) -> Any:
        """Accept ``eval-batch-size`` for ``eval_batch_size``."""
        if not isinstance(data, dict):
            return data
        return {k.replace("-", "_") if isinstance(k, str) else k: v for k, v in data.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse yes and no where a number is meant, and what no JSON can hold inside mappings."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = set(_alternatives(annotation))
        if isinstance(value, bool) and bool not in kinds and kinds & {int, float}:
            raise ValueError(f"must be a number, not {str(value).lower()}")
        if isinstance(value, dict | list) and model_of(annotation) is None:
            for path in _not_finite(value):
                raise PydanticCustomError(
                    "not_finite", "must be a finite number", {"inside": list(path)}
                )
        return value


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The settings that a field of this type holds, if it holds settings."""
    for candidate in _alternatives(annotation):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Turn pydantic's report into one line that says what to change."""
    first = error.errors(include_url=False)[0]
    place = [*first["loc"], *first.get("ctx", {}).get("inside", ())]
    path = ".".join(str(part) for part in place)
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        owner = _owner(model, first["loc"][:-1])
        return f"unknown key '{path}'{did_you_mean(str(first['loc'][-1]), owner)}{more}"
    if first["type"] == "missing":
        return f"'{path}' is required{more}"
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{path}: {message}{more}" if path else f"{message}{more}"


def _owner(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The valid keys at `path` inside `model`."""
    for part in path:
        field = model.model_fields.get(str(part))
        inner = model_of(field.annotation) if field is not None else None
        if inner is None:
            break
        model = inner
    return list(model.model_fields)


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The types that a union allows, without what is said about them."""
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from _alternatives(part)
    else:
        yield annotation


def _not_finite(value: Any) -> Iterator[tuple[str, ...]]:
    """Where inside `value` there is a number that is infinite or none."""
    if isinstance(value, float) and not math.isfinite(value):
        yield ()
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from ((str(key), *path) for path in _not_finite(item))
