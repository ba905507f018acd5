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
    digests take 24 MB; a dict of them takes 150. `size` is the number of digests that are expected.
    """

    def __init__(self, digests: Iterable[bytes] = (), *, size: int = 0) -> None:
        self._digests = bytearray()
        self._slots = array("I", bytes(4 << max(10, (size * 3 // 2).bit_length())))
        for digest in digests:
            self.add(digest)

    def __len__(self) -> int:
        return len(self._digests) // DIGEST

    def find(self, digest: bytes) -> int:
        """The number of a digest; -1 if it is not in the table."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while (end := slots[slot]) and digests[(end - 1) * DIGEST : end * DIGEST] != digest:
            slot = (slot + 1) & mask
        return end - 1

    def add(self, digest: bytes) -> int:
        """The number of a digest, the next one if it is new."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while end := slots[slot]:
            if digests[(end - 1) * DIGEST : end * DIGEST] == digest:
                return end - 1
            slot = (slot + 1) & mask
        digests += digest
        slots[slot] = len(digests) // DIGEST
        if 3 * slots[slot] > 2 * len(slots):  # nearly full, and slow: begin a larger table
            larger = DigestTable(size=4 * len(self))
            for start in range(0, len(digests), DIGEST):
                larger.add(bytes(digests[start : start + DIGEST]))
            self._slots, self._digests = larger._slots, larger._digests
        return len(self) - 1
