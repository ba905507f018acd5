"""What all HTML of Keju shares: templates that escape everything, filters for numbers, and one page
in two languages, of which a switch hides one.

The page is made ready once in each language, and what differs is paired:

    Reply      <span lang="en">Reply</span><span lang="zh-CN">回复</span>

Attributes hold no elements; they take the first language alone (`plain`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from keju.messages import Language
from keju.report import format as fmt
from keju.report.format import Labels
from keju.results.schema import Row
from keju.types import Outcome

if TYPE_CHECKING:
    from jinja2 import Environment


HTML_LANG: dict[Language, str] = {"en": "en", "zh": "zh-CN"}
_PAIR = Markup('<span lang="{}">{}</span><span lang="{}">{}</span>')
_TIME = Markup('<time datetime="{}">{}</time>')


class Pair(Markup):
    """The same words in two languages."""

    texts: tuple[str, str]


class Tongues:
    """The labels of two languages at once; see `Labels`."""

    def __init__(self, first: Labels, second: Labels) -> None:
        self.both = first, second

    def pair(self, first: str, second: str) -> str:
        """Two texts as one, unless they are alike."""
        if first == second:
            return first
        one, two = (HTML_LANG[labels.language] for labels in self.both)
        pair = Pair(_PAIR.format(one, first, two, second))
        pair.texts = first, second
        return pair

    def __call__(self, key: str, **values: Any) -> str:
        """The label `key` with its placeholders filled, by pairs among them as well."""
        own = [
            {n: v.texts[place] if isinstance(v, Pair) else v for n, v in values.items()}
            for place in (0, 1)
        ]
        return self.pair(*(labels(key, **own[n]) for n, labels in enumerate(self.both)))

    def get(self, key: str, otherwise: str) -> str:
        """The label `key` if the catalogues have it, else `otherwise`."""
        return self.pair(*(labels.get(key, otherwise) for labels in self.both))

    def row(self, row: Row) -> str:
        """A subset or group."""
        return self.pair(*(labels.row(row) for labels in self.both))

    def counted(self, row: Row, outcome: Outcome) -> str:
        """How many replies of a subset have an outcome."""
        return self.pair(*(labels.counted(row, outcome) for labels in self.both))

    def merged(self, first: Any, second: Any) -> Any:
        """Two contexts of a template that differ in their texts alone, as one."""
        if isinstance(first, str) and isinstance(second, str):
            return self.pair(first, second)
        if isinstance(first, dict):
            return {key: self.merged(value, second[key]) for key, value in first.items()}
        if isinstance(first, tuple | list):
            parts = [self.merged(*each) for each in zip(first, second, strict=True)]
            named = hasattr(first, "_fields")
            return type(first)(*parts) if named else type(first)(parts)
        return first


def plain(text: Any) -> str:
    """A text as attributes hold it."""
    return text.texts[0] if isinstance(text, Pair) else str(text)


def bilingual(text: Any) -> str:
    """A text in both languages, for places where no style can choose one, such as a list."""
    return " / ".join(text.texts) if isinstance(text, Pair) else str(text)


def moment(stamp: str) -> str:
    """A time as a clock here shows it, with the exact one for programs; other texts stay texts."""
    shown = fmt.moment(stamp)
    return shown if shown == stamp else _TIME.format(stamp, shown)


@cache
def make_environment(*packages: str) -> Environment:
    """Templates of the report and, before them, of further packages; compiled once a process."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "keju.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "bilingual": bilingual, "moment": moment}
    for name in ("percent", "published", "interval", "count", "share", "shorten"):
        environment.filters[name] = getattr(fmt, name)
    return environment
