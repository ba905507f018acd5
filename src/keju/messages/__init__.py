"""What Keju says, in catalogues: a code stands for one sentence in every language.

Errors and notices carry a code and values, never a sentence, so that nothing in the house reads
English. A catalogue maps codes to templates::

    "cut_replies": "{part} of {whole} replies ({share:.1%}) were cut off before an answer"

A room that knows sentences of its own, such as an exam's, adds them when it is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Literal

Language = Literal["en", "zh"]

_added: dict[Language, dict[str, str]] = {"en": {}, "zh": {}}


def add(language: Language, texts: Mapping[str, str]) -> None:
    """Add the sentences of a room to the catalogue of a language."""
    _added[language].update(texts)


def catalogue(language: Language) -> dict[str, str]:
    """All codes of a language with their templates."""
    own: dict[str, str] = importlib.import_module(f"keju.messages.{language}").TEXTS
    return own | _added[language]


def labels(language: Language) -> Mapping[str, str]:
    """The words of the reports in a language, by name."""
    words: dict[str, str] = importlib.import_module(f"keju.messages.{language}").LABELS
    return words


def text_of(code: str, values: Mapping[str, Any], language: Language = "en") -> str:
    """The sentence of a code; one that a language lacks is said in English.

    What is in no catalogue is a sentence already: plug-ins may say what they like.
    """
    for tongue in dict.fromkeys((language, "en")):
        template = catalogue(tongue).get(code)
        if template is not None:
            return template.format_map(_in_language(values, language))
    return code


def _in_language(values: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """The values; an error among them is said in the same language."""
    return {k: v.text(language) if hasattr(v, "code") else v for k, v in values.items()}
