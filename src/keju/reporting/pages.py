"""The parts that all HTML pages share: templates, filters for numbers, and text in two languages.

Templates escape all text. A page holds both languages, and a switch hides one of them. Keju renders
the values once per language and joins the values that differ:

    Reply      <span lang="en">Reply</span><span lang="zh-CN">回复</span>

Attributes cannot hold elements, so they use the first language only (`plain`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from keju.messages import Language
from keju.reporting import format as fmt
from keju.reporting import page_numbers
from keju.reporting.format import Labels
from keju.results.schema import SubsetRow
from keju.types import Outcome

if TYPE_CHECKING:
    from jinja2 import Environment


HTML_LANG: dict[Language, str] = {"en": "en", "zh": "zh-CN"}
_PAIR = Markup('<span lang="{}">{}</span><span lang="{}">{}</span>')
_TIME = Markup('<time datetime="{}">{}</time>')


class BilingualText(Markup):
    """One text in two languages."""

    texts: tuple[str, str]


class BilingualLabels:
    """The labels of two languages at once; see `Labels`."""

    def __init__(self, primary_labels: Labels, secondary_labels: Labels) -> None:
        self.all_labels = primary_labels, secondary_labels

    def combine(self, primary_text: str, secondary_text: str) -> str:
        """Return both texts as one value, or the first text if they are equal."""
        if primary_text == secondary_text:
            return primary_text
        primary_lang, secondary_lang = (HTML_LANG[labels.language] for labels in self.all_labels)
        pair = BilingualText(
            _PAIR.format(primary_lang, primary_text, secondary_lang, secondary_text)
        )
        pair.texts = primary_text, secondary_text
        return pair

    def __call__(self, key: str, **values: Any) -> str:
        """Return the label `key` with its placeholders filled; the values may be pairs."""
        values_by_language = [
            {n: v.texts[place] if isinstance(v, BilingualText) else v for n, v in values.items()}
            for place in (0, 1)
        ]
        return self.combine(
            *(labels(key, **values_by_language[n]) for n, labels in enumerate(self.all_labels))
        )

    def get(self, key: str, default: str) -> str:
        """Return the label `key` if the catalogues have it, otherwise the default."""
        return self.combine(*(labels.get(key, default) for labels in self.all_labels))

    def row(self, row: SubsetRow) -> str:
        """Return the name of a subset or group."""
        return self.combine(*(labels.row(row) for labels in self.all_labels))

    def outcome_count(self, row: SubsetRow, outcome: Outcome) -> str:
        """Return the number of replies of a subset that have an outcome."""
        return self.combine(*(labels.outcome_count(row, outcome) for labels in self.all_labels))

    def merge_contexts(self, primary_value: Any, secondary_value: Any) -> Any:
        """Merge two template contexts that differ only in their texts."""
        if primary_value == secondary_value:
            return primary_value
        if isinstance(primary_value, str) and isinstance(secondary_value, str):
            return self.combine(primary_value, secondary_value)
        if isinstance(primary_value, dict):
            return {
                key: self.merge_contexts(value, secondary_value[key])
                for key, value in primary_value.items()
            }
        if isinstance(primary_value, tuple | list):
            parts = [
                self.merge_contexts(*values)
                for values in zip(primary_value, secondary_value, strict=True)
            ]
            is_named_tuple = hasattr(primary_value, "_fields")
            return type(primary_value)(*parts) if is_named_tuple else type(primary_value)(parts)
        return primary_value


def plain(text: Any) -> str:
    """Return a text as it is written in an attribute."""
    return text.texts[0] if isinstance(text, BilingualText) else str(text)


def bilingual(text: Any) -> str:
    """Return a text in both languages, for elements that CSS cannot switch, such as an option."""
    return " / ".join(text.texts) if isinstance(text, BilingualText) else str(text)


def breakable(name: str) -> str:
    """Allow line breaks after each part of a name, but not before its number: ``word_sorting_3``
    may end a line after ``word_``.
    """
    if isinstance(name, BilingualText):
        return name
    *parts, last_part = name.split("_")
    if parts and last_part.isdecimal():
        last_part = f"{parts.pop()}_{last_part}"
    return Markup("_<wbr>").join([*parts, last_part])


def moment(timestamp: str) -> str:
    """Format a time as local time and keep the exact time in an attribute."""
    local_time = fmt.moment(timestamp)
    return local_time if local_time == timestamp else _TIME.format(timestamp, local_time)


@cache
def make_environment(*packages: str) -> Environment:
    """Return the templates of the report and of further packages, which take precedence.

    They are compiled once per process.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    from keju.reporting.compiled_templates import CompiledTemplates

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "keju.reporting")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=CompiledTemplates(),
    )
    environment.filters |= {
        "plain": plain, "bilingual": bilingual, "moment": moment, "breakable": breakable,
        "percent": page_numbers.page_percent, "interval": page_numbers.page_interval,
        "share": page_numbers.page_share,
        "published": fmt.published, "count": fmt.count, "shorten": fmt.shorten,
    }  # fmt: skip
    return environment
