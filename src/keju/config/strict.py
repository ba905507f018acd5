"""Settings that refuse what they cannot carry out, in one line with the whole path of the key."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterator
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

from keju.errors import ConfigError, did_you_mean
from keju.messages import Language, text_of

LARGEST: Final = 2**53
"""Beyond it a JSON number is no longer exact."""
LONGEST: Final = 1e9
"""Seconds, some 30 years: what a clock can still be set to."""

MOST_LEVELS = 100
"""How deep a setting may be nested: what refers to itself has no bottom."""
_HALF = re.compile("[\ud800-\udfff]")

Whole = Annotated[int, Field(gt=0, le=LARGEST)]
Count = Annotated[int, Field(gt=0, le=100_000)]
"""Of what is done at once or again and again, and takes memory."""
Seconds = Annotated[float, Field(gt=0, le=LONGEST)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Invalid(ValueError):
    """Why a validator refuses a value, as a code of the catalogues; pydantic adds the place."""

    def __init__(self, code: str, /, **values: Any) -> None:
        super().__init__(text_of(code, values))
        self.code = code
        self.values = values

    def text(self, language: Language = "en") -> str:
        """The reason in a language."""
        return text_of(self.code, self.values, language)


class StrictSettings(BaseModel):
    """Unknown keys are refused with the nearest valid name; numbers are finite, and numbers."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain(error, type(self)) from None

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
        """Refuse yes and no where a number is meant, and what no JSON or no path can hold."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = set(alternatives(annotation))
        if isinstance(value, bool) and bool not in kinds and kinds & {int, float}:
            raise Invalid("config_not_number", value=str(value).lower())
        if model_of(annotation) is None:
            for path in _places(value, _is_unusable):
                raise Invalid("config_unusable_text", inside=path)
        if isinstance(value, dict | list) and model_of(annotation) is None:
            for path in _places(value, _is_infinite):
                raise Invalid("config_not_finite", inside=path)
        return value


def explain(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Pydantic's report as one line that says what to change; `path` says where."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    inside = cause.values.get("inside", ()) if isinstance(cause, Invalid) else ()
    path = ".".join(str(part) for part in (*first["loc"], *inside))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        *parents, key = first["loc"]
        for part in parents:  # the model that has no such key
            field = model.model_fields.get(str(part))
            model = (model_of(field.annotation) if field else None) or model
        hint = did_you_mean(str(key), model.model_fields)
        return ConfigError("config_unknown_key", origin="", path=path, hint=hint, more=more)
    if first["type"] == "missing":
        return ConfigError("config_required", path=path, more=more)
    problem: Any = cause
    if not isinstance(cause, Invalid):
        message = str(cause) if first["type"] == "value_error" else first["msg"]
        problem = message[:1].lower() + message[1:]
    code = "config_invalid" if path else "config_invalid_whole"
    return ConfigError(code, path=path, problem=problem, more=more)


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The settings that a field of this type holds, alone or in a list, if it holds settings."""
    for candidate in alternatives(annotation):
        if get_origin(candidate) is list:
            (candidate,) = get_args(candidate)
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def alternatives(annotation: Any) -> Iterator[Any]:
    """The types that a union allows, without what is said about them."""
    if get_origin(annotation) is Annotated:
        yield from alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from alternatives(part)
    else:
        yield annotation


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_unusable(value: Any) -> bool:
    """Whether a text holds a NUL or half a character (a lone surrogate)."""
    return isinstance(value, str) and ("\0" in value or _HALF.search(value) is not None)


def _places(
    value: Any, wrong: Callable[[Any], bool], levels: int = MOST_LEVELS
) -> Iterator[tuple[str, ...]]:
    """Where inside `value` there is something wrong, keys included."""
    if not levels:
        raise Invalid("config_nested_too_deep", levels=MOST_LEVELS)
    if wrong(value):
        yield ()
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        if wrong(key):
            yield ()
        yield from ((str(key), *path) for path in _places(item, wrong, levels - 1))
