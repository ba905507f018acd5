"""An index of many samples or records that stays small: numbers by 16-byte digests."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

DIGEST = 16
"""Bytes of a request's hash, of a key's and of an id's."""


def hash_digest(text: str) -> bytes:
    """The digest that a record's hash spells; another text than 32 hex digits gets its own."""
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    return digest if len(digest) == DIGEST else text_digest(text)


def text_digest(text: str) -> bytes:
    """The digest of any text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()


class DigestTable:
    """Numbers digests from 0 in the order in which they are added.

    Open addressing: each slot holds the number of a digest plus 1, or 0 where it is free. A million
    digests take 32 MB; a dict of them takes 150.
    """

    def __init__(self, digests: Iterable[bytes] = ()) -> None:
        self._digests = bytearray()
        self._slots = array("I", bytes(4 << 10))
        for digest in digests:
            self.add(digest)

    def __len__(self) -> int:
        return len(self._digests) // DIGEST

    def find(self, digest: bytes) -> int:
        """The number of a digest; -1 if it is not in the table."""
        return self._slots[self._slot(digest)] - 1

    def add(self, digest: bytes) -> int:
        """The number of a digest, the next one if it is new."""
        slot = self._slot(digest)
        number = self._slots[slot] - 1
        if number >= 0:
            return number
        self._digests += digest
        self._slots[slot] = len(self)
        if 3 * len(self) > 2 * len(self._slots):
            # A table that is nearly full is slow: make it four times as large.
            self._slots = array("I", bytes(16 * len(self._slots)))
            for number in range(len(self)):
                known = self._digests[number * DIGEST : (number + 1) * DIGEST]
                self._slots[self._slot(known)] = number + 1
        return len(self) - 1

    def _slot(self, digest: bytes | bytearray) -> int:
        """The slot of a digest, or the free one where it belongs."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while (end := slots[slot]) and digests[(end - 1) * DIGEST : end * DIGEST] != digest:
            slot = (slot + 1) & mask
        return slot
