"""Read an HTML report as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "wbr", "line", "rect", "link", "img", "hr"}


class ParsedReport(HTMLParser):
    """Checks that tags are balanced, and gathers what a browser would show and load."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.language = ""
        self.hidden: list[int] = []
        """How deep the words of the other language stand."""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"event handler {name}"
            if name in ("href", "src", "action", "data", "srcset"):
                self.links.append(value or "")
            if tag == "html" and name == "lang":
                self.language = value or ""
            elif tag == "span" and name == "lang" and value != self.language:
                self.hidden.append(len(self.open))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.hidden and self.hidden[-1] == len(self.open):
            self.hidden.pop()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style" and not self.hidden:
            self.texts.append(data)

    @property
    def text(self) -> str:
        text = " ".join(" ".join(self.texts).split())
        # A word in two languages is an element of its own; signs stand close to words all the same.
        return re.sub(r"(?<=\() | (?=[,;:.)、；])", "", text)
