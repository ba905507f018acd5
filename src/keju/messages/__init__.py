"""Keju's texts, in catalogues: a code names one sentence in every language.

Errors and notices carry a code and values, never a sentence. So no part of Keju depends on English
texts. A catalogue maps codes to templates::

  "cut_replies": "{part} of {whole} replies ({share:.2 %}) were cut off"

A number chooses between singular and plural: ``{lines} {lines:line|lines}``. ``{share:.2 %}``
formats a share as in tables: ``8.30 %``. A module with its own sentences, such as an exam's, adds
them when it is imported.
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

Element = TypeVar("Element")

# Escapes of terminals, all control characters except the tab and the line end, and marks that
# change the direction of writing. ``\x1b[2J`` in an endpoint's message would clear the screen.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

# A word of a command, including quotes: ``'other runs/r'``.
_WORD = re.compile(r"(?:'[^']*'|\S)+")

_added: dict[Language, dict[str, str]] = {"en": {}, "zh": {}}
_added_help: dict[str, str] = {}
_language: Language | None = None


def speak(language: Language | None) -> None:
    """Set the language, regardless of the environment; None resets it."""
    global _language
    _language = language


def language_of(tag: str) -> Language | None:
    """Return the language of a tag such as ``zh-CN`` or ``en_US``; None for any other language."""
    name = re.split("[-_.]", tag, maxsplit=1)[0].lower()
    return "zh" if name == "zh" else "en" if name == "en" else None


def current_language() -> Language:
    """Return the language of the terminal.

    It comes from ``--language``, ``KEJU_LANGUAGE`` or the locale: ``LANG=zh_CN.UTF-8`` is Chinese.
    Stored files and the output of ``--json`` are always English.
    """
    if (language := requested_language()) is not None:
        return language
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return language_of(value) or "en"
    return "en"


def requested_language() -> Language | None:
    """Return the language that the user chose with ``--language`` or ``KEJU_LANGUAGE``.

    Return None if only the locale sets one: a browser has its own language.
    """
    if _language is not None:
        return _language
    value = os.environ.get("KEJU_LANGUAGE")
    return (language_of(value) or "en") if value else None


def add(language: Language, texts: Mapping[str, str]) -> None:
    """Add a module's sentences to the catalogue of a language."""
    _added[language].update(texts)


def add_help(texts: Mapping[str, str]) -> None:
    """Add Chinese for English texts of a module, such as ``protocol.NAME.PROTOCOL``."""
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


def label_text(word: str, **values: Any) -> str:
    """Return the text of a label in the language of the terminal."""
    return fill(labels(current_language())[word], values)


def helped(name: str, english: str) -> str:
    """Return a text of the help, such as ``flag.api_url``, in the language of the terminal.

    The English text is declared with the flag, the command or the protocol. The Chinese text is in
    a catalogue, by name. A text without Chinese, such as a plug-in's, is English.
    """
    if current_language() == "en":
        return english
    return store.texts("zh", "help").get(name) or _added_help.get(name, english)


def text_of(code: str, values: Mapping[str, Any], language: Language = "en") -> str:
    """Return the sentence of a code; in English if the language lacks it.

    A text that is in no catalogue is already a sentence, for example a plug-in's.
    """
    template = template_of(code, language)
    if template is None:
        return code
    named = _facts(values, language) if code in _OF_FACTS else values
    return fill(template, _in_language(named, language))


LEAST_PRINTED_P = 0.001
"""Smaller p values are printed as ``< 0.001``."""


def format_p(p: float, digits: int) -> str:
    """Return a p value with this number of digits, as ``0.031`` or ``< 0.001``."""
    return f"< {LEAST_PRINTED_P:g}" if p < LEAST_PRINTED_P else f"{p:.{digits}g}"


class _WordChoice:
    """A value that chooses between two words: ``{n:line|lines}`` is ``line`` only for 1.

    ``.2 %`` formats it as a percentage with a space before the sign, and ``p`` as a p value.
    """

    def __format__(self, spec: str) -> str:
        singular, bar, plural = spec.partition("|")
        if bar:
            return singular if str(self) == "1" else plural
        if spec == "p":
            return format_p(float(self), 2)  # type: ignore[arg-type]
        if spec.endswith(" %"):
            return super().__format__(f"{spec[:-2]}%")[:-1] + " %"
        return super().__format__(spec)


class _NumberValue(_WordChoice, int):
    """A whole number in a sentence."""


class _FractionValue(_WordChoice, float):
    """A share or another fraction in a sentence."""


class _TextValue(_WordChoice, str):
    """A text in a sentence, or a formatted number: ``1,200``."""


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with its values, which may choose words."""
    return template.format_map({name: _wrap_value(value) for name, value in values.items()})


def _wrap_value(value: Any) -> Any:
    kinds = {int: _NumberValue, float: _FractionValue, str: _TextValue}
    return kinds[type(value)](value) if type(value) in kinds else value


def printable(text: str, *, one_line: bool = False) -> str:
    """Return `text` without characters that could control a terminal; `one_line` joins lines."""
    text = text.replace("\r\n", "\n")
    if one_line:
        text = " ".join(text.split())
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


reader_gone = threading.Event()
"""Set when a `tolerant` stream finds that the reader of its pipe is gone."""


class _TolerantStream(io.TextIOBase):
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
    """Return `stream` for side messages: errors in writing them are ignored.

    Such errors are a closed pipe, a closed terminal, or a full disk.
    """
    return cast(TextIO, _TolerantStream(stream))


def write_line(stream: TextIO, line: str) -> None:
    """Print a line at once. Characters that the stream cannot encode are replaced."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(printable(line).encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()


def write_sentence(stream: TextIO, text: str) -> None:
    """Print a sentence at once, wrapped between words on a terminal.

    No word is cut, so that a path can be copied. Use `write_line` for commands and for texts that
    must not be wrapped.
    """
    for line in sentence_lines(stream, text):
        write_line(stream, line)


def sentence_lines(stream: TextIO, text: str) -> list[str]:
    """Return a sentence as lines of the terminal's width, with its indent; unwrapped otherwise."""
    import shutil

    from keju.messages.wrapping import cells, wrap

    width = shutil.get_terminal_size().columns if stream.isatty() else 0
    if not width or cells(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return [indent + line for line in wrap(text, width - len(indent), cut=False)]


def first_of(elements: Sequence[Element], limit: int) -> Sequence[Element]:
    """Return the first elements of a list, at most `limit`, but never all except one.

    "(and 1 more)" would take as much space as that element.
    """
    return elements if len(elements) <= limit + 1 else elements[:limit]


def command_lines(command: str, width: int, indent: int = 0) -> list[str]:
    """Return a command as lines that a shell accepts and that fit a terminal.

    Lines break between arguments, and a flag stays with its values::

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
"""Values that may come from another program: a parser, the HTTP library, or Docker's engine."""
_PLACES = frozenset({"where", "place", "first", "second"})
# A line of a file, as logs and documents name it: `samples.jsonl, line 3`.
_LINE = re.compile(r"(?P<where>.+), (?:line|row) (?P<line>\d+)", re.DOTALL)
# Two words, as in `connection refused`. A single one is a name: `TypeError`.
_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z0-9]+[A-Za-z]{2,}")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
# An endpoint's message after its status: `503: overloaded`.
_STATUS = re.compile(r"(?P<status>[1-5]\d\d): (?P<rest>.+)", re.DOTALL)


@cache
def _system_messages() -> Mapping[str, str]:
    """Return the Chinese of the operating system's error messages, by the system's English text."""
    words = store.texts("zh", "system")
    return {os.strerror(getattr(errno, name)).casefold(): text for name, text in words.items()}


@cache
def _program_messages() -> Mapping[re.Pattern[str], str]:
    """The same for what other programs say often, by patterns of their words."""
    words = store.texts("zh", "patterns")
    return {re.compile(pattern, re.IGNORECASE | re.DOTALL): text for pattern, text in words.items()}


def foreign(text: str, language: Language) -> str:
    """Return another program's English message for a sentence in a language.

    Frequent messages are translated. Any other message is put in quotation marks, to separate it
    from the sentence.
    """
    if language == "en" or _CHINESE.search(text):
        return text
    if translation := _system_messages().get(text.casefold()):
        return translation
    for pattern, template in _program_messages().items():
        if match := pattern.fullmatch(text):
            return template.format(**match.groupdict())
    if match := _STATUS.fullmatch(text):
        message = foreign(match["rest"], language)
        return labels(language)["named"].format(name=match["status"], text=message)
    return fill(labels(language)["foreign"], {"text": text}) if _WORDS.search(text) else text


_OF_FACTS = frozenset(
    {"compare_unlike", "gate_unlike", "until_baseline_unlike", "fact_with_values"}
)
"""Sentences about differences between scored exams, with names and values that files also hold."""


def field_word(name: str, language: Language) -> str:
    """Return the word for a field of a comparison: ``protocol version``.

    A setting without a translation keeps its own name.
    """
    return labels(language).get(f"field.{name}", name)


def value_word(text: str, language: Language) -> str:
    """Return the word for a stored value; only values such as ``none`` and ``true`` have one."""
    return labels(language).get(f"value.{text}", text)


def _facts(values: Mapping[str, Any], language: Language) -> dict[str, Any]:
    words = {"field": field_word, "fact": field_word, "first": value_word, "second": value_word}
    return {
        name: words[name](value, language) if name in words and isinstance(value, str) else value
        for name, value in values.items()
    }


def translate_place(text: str, language: Language) -> str:
    """Return a stored place, ``NAME, line 3`` or ``NAME, row 3``, in a language."""
    match = _LINE.fullmatch(text) if language != "en" else None
    return text_of("file_place", match.groupdict(), language) if match else text


def _in_language(values: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """Return the values with errors among them, also stored ones, translated.

    Lists are translated element by element.
    """
    translated_values = {"run": "RUN", "sent": ""} | dict(values)  # values that older files lack
    for name, value in values.items():
        if hasattr(value, "code"):
            translated_values[name] = value.text(language)
        elif isinstance(value, Mapping) and "code" in value:
            translated_values[name] = text_of(value["code"], value.get("values", {}), language)
        elif name in _FOREIGN and isinstance(value, str | Exception):
            translated_values[name] = foreign(str(value), language)
        elif name in _PLACES and isinstance(value, str | os.PathLike):
            translated_values[name] = translate_place(str(value), language)
        elif isinstance(value, list | tuple):
            parts = (_in_language({"": value_in_list}, language)[""] for value_in_list in value)
            translated_values[name] = labels(language)["list_separator"].join(map(str, parts))
    return translated_values
