"""Keju's additions to a log, from which ``keju import`` makes the same run.

A log has one `RunMark`, which describes the run, and each answer is a `PackedAnswer`. Texts that
the format itself stores are left out of the packed answer and put back when the log is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from keju.errors import DataError
from keju.files import explain_shape
from keju.runs.manifest import Manifest
from keju.types import Record

Stored = TypeVar("Stored")

KEY = "keju"
"""The key of Keju's additions in every format."""
FORMAT = 1
"""The version of these additions."""
ADDRESSES = ("api_url", "endpoints", "serve", "ca_file", "work_dir", "until_decided")
"""Settings with addresses and folders, which a log that may be published does not need."""


class RunMark(msgspec.Struct, kw_only=True):
    """The run of a log, and the part of it that the log has."""

    format: int = FORMAT
    version: str = ""
    """The version of Keju that wrote the log."""
    exam: str
    arm: str = ""
    readers: list[str] = []
    """The headline's reader first."""
    manifest: dict[str, Any] = {}
    verdicts: list[Record] = []
    """Replies of judges that belong to no answer of the run, such as those to labelled answers."""

    @classmethod
    def read(cls, document: Any, place: object) -> Self:
        """Return the mark of a log. Raise DataError if it is damaged or of a later version."""
        mark = _convert(document, cls, place)
        if mark.format > FORMAT:
            raise DataError("log_mark_newer", place=place, version=mark.version)
        return mark


class StoredText(NamedTuple):
    """The texts of a reply or of a turn, as a log stores them."""

    text: str
    reasoning: str = ""


class PackedAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One answer of a log, as Keju packed it."""

    record: dict[str, Any]
    """A record without the texts that are elsewhere in the log."""
    prompt: int = 0
    """The number of messages before the reply."""
    text: str = ""
    """The text of a reply, if the log does not have it elsewhere, as for an episode."""
    reasoning: str = ""
    """The reasoning of a reply, if the log does not have it elsewhere."""
    verdicts: list[Record] = []
    """The replies of judges about this question."""

    @classmethod
    def read(cls, document: Any, place: object) -> Self:
        """Return the packed answer in a log. Raise DataError if it is damaged."""
        return _convert(document, cls, place)

    @classmethod
    def pack(
        cls, record: Record, prompt: int, verdicts: Iterable[Record], *, has_messages: bool
    ) -> Self:
        """Return a record as a log stores it.

        The texts of turns and all reasoning are left out if the log `has_messages` for them.
        """
        document: dict[str, Any] = msgspec.to_builtins(record)
        reply = document["reply"]
        packed = cls(record=document, prompt=prompt, verdicts=list(verdicts))
        episode = reply.get("episode")
        if episode or record.reply.compared:
            packed.text = record.reply.text
        if episode or not has_messages:
            packed.reasoning = record.reply.reasoning
        for turn in episode["turns"] if episode and has_messages else ():
            _remove_texts(turn)
        _remove_texts(reply)
        return packed

    def unpack(self, reply: StoredText, turns: Sequence[StoredText], place: object) -> Record:
        """Return the record with the texts of the log.

        Without `turns` the packed record has the texts of its episode. Raise DataError if it is
        damaged.
        """
        document = deepcopy(self.record)
        try:
            episode = document["reply"].get("episode")
            for turn, texts in (
                zip(episode["turns"], turns, strict=True) if episode and turns else ()
            ):
                _set_texts(turn, texts)
            texts = StoredText(self.text or reply.text, self.reasoning or reply.reasoning)
            _set_texts(document["reply"], texts)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise DataError("log_mark_damaged", place=place, problem=problem) from None
        return _convert(document, Record, place)


def _convert(document: Any, kind: type[Stored], place: object) -> Stored:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        problem = explain_shape(error)
        raise DataError("log_mark_damaged", place=place, problem=problem) from None


def _remove_texts(document: dict[str, Any]) -> None:
    for name in ("text", "reasoning"):
        document.pop(name, None)


def _set_texts(document: dict[str, Any], texts: StoredText) -> None:
    document["text"] = texts.text
    if texts.reasoning:
        document["reasoning"] = texts.reasoning


def public_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest without addresses of endpoints and without folders of results."""
    document = deepcopy(manifest.as_dict())
    for settings in (document["config"], document["config"].get("judge") or {}):
        for name in ADDRESSES:
            settings.pop(name, None)
    document["endpoint"].pop("endpoint", None)
    _remove_addresses(document["sessions"])
    for judge in (document.get("judges") or {}).values():
        judge["endpoint"].pop("endpoint", None)
        _remove_addresses(judge["sessions"])
    return document


def _remove_addresses(sessions: Iterable[dict[str, Any]]) -> None:
    for session in sessions:
        session.pop("endpoint", None)
        session.pop("server", None)
        for number, endpoint in enumerate(session.get("endpoints") or (), 1):
            endpoint["address"] = f"endpoint {number}"
