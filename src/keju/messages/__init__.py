"""What Keju says, in catalogues: a code stands for one sentence in every language.

Errors and notices carry a code and values, never a sentence, so that nothing in the house reads
English. A catalogue maps codes to templates::

    "cut_replies": "{part} of {whole} replies ({share:.2 %}) were cut off"

A number that may be 1 chooses its word: ``{lines} {lines:line|lines}``. A share is told as the
tables have it, ``8.30 %``, with ``{share:.2 %}``. A room that knows
sentences of its own, such as an exam's, adds them when it is imported.
"""

from __future__ import annotations

import errno
import io
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from keju.messages import store
from keju.messages.store import Language as Language

Item = TypeVar("Item")

# Escapes of terminals, the other control characters but the tab and the line end, and marks that
# turn the direction of writing: ``\x1b[2J`` in an endpoint's message would clear the screen.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

# A word of a command, quotes included: ``'other runs/r'``.
_WORD = re.compile(r"(?:'[^']*'|\S)+")

_added: dict[Language, dict[str, str]] = {"en": {}, "zh": {}}
_added_help: dict[str, str] = {}
_chosen: Language | None = None


def speak(language: Language | None) -> None:
    """Speak this language from now on, whatever the environment says; None takes that back."""
    global _chosen
    _chosen = language


def language_of(tag: str) -> Language | None:
    """The language of a tag such as ``zh-CN`` or ``en_US``; None for one that is not spoken."""
    name = re.split("[-_.]", tag, maxsplit=1)[0].lower()
    return "zh" if name == "zh" else "en" if name == "en" else None


def spoken() -> Language:
    """The language in which the terminal is spoken to.

    ``--language`` says it, or ``KEJU_LANGUAGE``, or the locale: ``LANG=zh_CN.UTF-8`` is Chinese.
    What is stored, and what ``--json`` prints, stays English.
    """
    if (language := asked_for()) is not None:
        return language
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return language_of(value) or "en"
    return "en"


def asked_for() -> Language | None:
    """The language that the user chose for Keju: ``--language``, or ``KEJU_LANGUAGE``.

    None where nothing but the locale says one: a browser has a language of its own.
    """
    if _chosen is not None:
        return _chosen
    value = os.environ.get("KEJU_LANGUAGE")
    return (language_of(value) or "en") if value else None


def add(language: Language, texts: Mapping[str, str]) -> None:
    """Add the sentences of a room to the catalogue of a language."""
    _added[language].update(texts)


def add_help(texts: Mapping[str, str]) -> None:
    """Add Chinese for what a room declares in English, such as ``protocol.NAME.PROTOCOL``."""
    _added_help.update(texts)


def add_folder(folder: Path) -> None:
    """Add the texts of a package: ``en.json`` and ``zh.json`` of a folder; see `store`."""
    for language in store.LANGUAGES:
        sections = store.read(folder / f"{language}.json")
        add(language, sections["messages"])
        add_help(sections.get("help", {}))


def catalogue(language: Language) -> dict[str, str]:
    """Return all codes of a language with their templates."""
    return {**store.texts(language, "messages"), **_added[language]}


def template_of(code: str, language: Language) -> str | None:
    """Return the template of a code; in English if the language lacks it."""
    for tongue in dict.fromkeys((language, "en")):
        template = _added[tongue].get(code) or store.texts(tongue, "messages").get(code)
        if template is not None:
            return template
    return None


@cache
def labels(language: Language) -> Mapping[str, str]:
    """Return the words of reports and of the terminal, by name; English if a language lacks one."""
    return {**store.texts("en", "labels"), **store.texts(language, "labels")}


def said(word: str, **values: Any) -> str:
    """The words of a label in the language of the terminal."""
    return fill(labels(spoken())[word], values)


def helped(name: str, english: str) -> str:
    """A text of the help, such as ``flag.api_url``, in the language of the terminal.

    English stands where the flag, the command or an exam's protocol is declared, Chinese in a
    catalogue by name; what that does not have, such as a plug-in's, is said in English.
    """
    if spoken() == "en":
        return english
    return store.texts("zh", "help").get(name) or _added_help.get(name, english)


def text_of(code: str, values: Mapping[str, Any], language: Language = "en") -> str:
    """The sentence of a code; one that a language lacks is said in English.

    What is in no catalogue is a sentence already: plug-ins may say what they like.
    """
    template = template_of(code, language)
    if template is None:
        return code
    named = _facts(values, language) if code in _OF_FACTS else values
    return fill(template, _in_language(named, language))


LEAST_SHOWN_P = 0.001
"""Smaller p are shown as ``< 0.001``."""


def shown_p(p: float, digits: int) -> str:
    """Return a p in so many digits, as ``0.031`` or ``< 0.001``."""
    return f"< {LEAST_SHOWN_P:g}" if p < LEAST_SHOWN_P else f"{p:.{digits}g}"


class _Choosing:
    """A value that chooses between two words: ``{n:line|lines}`` is ``line`` for 1 alone.

    With ``.2 %`` it is told in percent, with a blank before the sign; with ``p`` as a p.
    """

    def __format__(self, spec: str) -> str:
        one, bar, many = spec.partition("|")
        if bar:
            return one if str(self) == "1" else many
        if spec == "p":
            return shown_p(float(self), 2)  # type: ignore[arg-type]
        if spec.endswith(" %"):
            return super().__format__(f"{spec[:-2]}%")[:-1] + " %"
        return super().__format__(spec)


class _Number(_Choosing, int):
    """A number in a sentence."""


class _Share(_Choosing, float):
    """A share or another broken number in a sentence."""


class _Words(_Choosing, str):
    """A text in a sentence, or a number as it is shown: ``1,200``."""


def fill(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values, which may choose words."""
    return template.format_map({name: _choosing(value) for name, value in values.items()})


def _choosing(value: Any) -> Any:
    kinds = {int: _Number, float: _Share, str: _Words}
    return kinds[type(value)](value) if type(value) in kinds else value


def printable(text: str, *, one_line: bool = False) -> str:
    """`text` without characters that could drive a terminal; line ends kept unless `one_line`."""
    text = text.replace("\r\n", "\n")
    if one_line:
        text = " ".join(text.split())
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


reader_gone = threading.Event()
"""Set once words of a `tolerant` stream found that the reader of its pipe has gone away."""


class _Tolerant(io.TextIOBase):
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    @staticmethod
    def _try(work: Callable[[], object]) -> None:
        try:
            work()
        except BrokenPipeError:
            reader_gone.set()
        except OSError:
            pass

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def tolerant(stream: TextIO) -> TextIO:
    """`stream` for words beside a work: where nobody can read them any more, the work goes on.

    Its reader has closed the pipe, its terminal is gone, its disk is full.
    """
    return cast(TextIO, _Tolerant(stream))


def write_line(stream: TextIO, line: str) -> None:
    """Print a line at once; what the stream cannot hold is replaced."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(printable(line).encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()


def write_sentence(stream: TextIO, text: str) -> None:
    """Print a sentence at once, on a terminal in lines broken between words.

    No word is cut: a path can be copied whole. What is a command, or not Keju's to break, goes to
    `write_line`.
    """
    for line in sentence_lines(stream, text):
        write_line(stream, line)


def sentence_lines(stream: TextIO, text: str) -> list[str]:
    """A sentence in lines as wide as a terminal, with its indent; whole for anything else."""
    import shutil

    from keju.messages.wrapping import cells, wrap

    width = shutil.get_terminal_size().columns if stream.isatty() else 0
    if not width or cells(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return [indent + line for line in wrap(text, width - len(indent), cut=False)]


def first_of(items: Sequence[Item], most: int) -> Sequence[Item]:
    """The first of a list that is said in part: at most so many, but never all but one.

    "(and 1 more)" takes as much room as that one.
    """
    return items if len(items) <= most + 1 else items[:most]


def command_lines(command: str, width: int, indent: int = 0) -> list[str]:
    """A command in lines that a shell takes as they stand, and that fit a terminal.

    A line is broken between arguments, a flag stays with its values::

        keju compare 20260101-120000-demo-embedded \\
            20260102-120000-demo-embedded
    """
    parts: list[str] = []
    for word in _WORD.findall(command):
        if parts and parts[-1].startswith("-") and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines, room = [" " * indent], width - len(" \\")
    for part in parts:
        if lines[-1].strip() and len(lines[-1]) + len(part) > room:
            lines[-1] = f"{lines[-1].rstrip()} \\"
            lines.append(" " * (indent + 4))
        lines[-1] += f"{part} "
    return [line.rstrip() for line in lines]


_FOREIGN = frozenset({"problem", "cause", "summary"})
"""Values in which another program may speak: a parser, the HTTP library, Docker's engine."""
_PLACES = frozenset({"where", "place", "first", "second"})
# A line of a file as rows of logs and documents hold it: `samples.jsonl, line 3`.
_LINE = re.compile(r"(?P<where>.+), (?:line|row) (?P<line>\d+)", re.DOTALL)
# Two words: `connection refused`. One alone is a name: `TypeError`.
_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z0-9]+[A-Za-z]{2,}")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
# What an endpoint says has its status before it: `503: overloaded`.
_STATUS = re.compile(r"(?P<status>[1-5]\d\d): (?P<rest>.+)", re.DOTALL)


@cache
def _of_the_system() -> Mapping[str, str]:
    """What is said in Chinese where the operating system refuses something, by its own words."""
    words = store.texts("zh", "system")
    return {os.strerror(getattr(errno, name)).casefold(): text for name, text in words.items()}


@cache
def _of_programs() -> Mapping[re.Pattern[str], str]:
    """The same for what other programs say often, by patterns of their words."""
    words = store.texts("zh", "patterns")
    return {re.compile(pattern, re.IGNORECASE | re.DOTALL): text for pattern, text in words.items()}


def foreign(text: str, language: Language) -> str:
    """What another program says in English, for a sentence of a language.

    What is met often is translated; anything else stands between quotation marks, so that nobody
    takes it for a part of the sentence.
    """
    if language == "en" or _CHINESE.search(text):
        return text
    if told := _of_the_system().get(text.casefold()):
        return told
    for pattern, template in _of_programs().items():
        if found := pattern.fullmatch(text):
            return template.format(**found.groupdict())
    if found := _STATUS.fullmatch(text):
        rest = foreign(found["rest"], language)
        return labels(language)["named"].format(name=found["status"], text=rest)
    return fill(labels(language)["foreign"], {"text": text}) if _WORDS.search(text) else text


_OF_FACTS = frozenset(
    {"compare_unlike", "gate_unlike", "until_baseline_unlike", "fact_with_values"}
)
"""Sentences that name what sittings have otherwise, by names and values that files hold too."""


def field_word(name: str, language: Language) -> str:
    """What sittings may have otherwise, by its name in documents: ``protocol version``.

    A setting that no catalogue knows is called as its user writes it.
    """
    return labels(language).get(f"field.{name}", name)


def value_word(text: str, language: Language) -> str:
    """A value as documents hold it; ``none``, ``true`` and ``false`` are words."""
    return labels(language).get(f"value.{text}", text)


def _facts(values: Mapping[str, Any], language: Language) -> dict[str, Any]:
    words = {"field": field_word, "fact": field_word, "first": value_word, "second": value_word}
    return {
        name: words[name](value, language) if name in words and isinstance(value, str) else value
        for name, value in values.items()
    }


def placed(text: str, language: Language) -> str:
    """A place as documents hold it, ``NAME, line 3`` or ``NAME, row 3``, in a language."""
    found = _LINE.fullmatch(text) if language != "en" else None
    return text_of("file_place", found.groupdict(), language) if found else text


def _in_language(values: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """The values; an error among them, also as a file has it, is said in the same language.

    So are those of a list, one after the other.
    """
    said = {"run": "RUN", "sent": ""} | dict(values)  # what older files do not have
    for name, value in values.items():
        if hasattr(value, "code"):
            said[name] = value.text(language)
        elif isinstance(value, Mapping) and "code" in value:
            said[name] = text_of(value["code"], value.get("values", {}), language)
        elif name in _FOREIGN and isinstance(value, str | Exception):
            said[name] = foreign(str(value), language)
        elif name in _PLACES and isinstance(value, str | os.PathLike):
            said[name] = placed(str(value), language)
        elif isinstance(value, list | tuple):
            parts = (_in_language({"": each}, language)[""] for each in value)
            said[name] = labels(language)["list_separator"].join(map(str, parts))
    return said
