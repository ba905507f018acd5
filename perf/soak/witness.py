"""An endpoint in a process of its own that misbehaves and writes down all that it does.

Its answer depends on nothing but the prompt, whose digest it holds: two runs can be compared text
by text, and a reply that went to another question is seen. It fails in two ways: now and then, by
its seed, and for a while when it is told to, by a line in a file::

    {"kind": "503", "requests": 12, "seconds": 1.5}      until either is over

The ledger has a line for each thing that it does, written before anything is sent, so that a kill
loses none: ``asked``, then ``gave`` (the true answer), ``other`` (that of another model) or
``fault``. ``knocked`` is the cheap call before the first question, ``began`` the process itself.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw, draw

KNOCK: Final = "Answer with one letter"
"""How the question of the cheap call begins."""
NAME: Final = "m"
"""The name of the model; the other one's is ``another``."""
ANSWERS: Final = ("(A)", "(B)", "(C)", "(D)", "yes", "no", "True", "False", "valid", "invalid", "2")
LOOK_EVERY: Final = 0.02
"""Seconds between two looks at the orders."""
REFUSED: Final = b'{"error": {"message": "injected", "type": "t", "param": null, "code": null}}'
ATTEMPT_FAULTS: Final = ("429", "500", "503", "cut", "garbage", "broken off", "stall")
"""What can be wrong with one attempt."""
FAULTS: Final = (*ATTEMPT_FAULTS, "refuse", "other")
"""What can be ordered: also that nobody listens, and that another model answers."""


def answer(key: str) -> str:
    """The true answer to a prompt; some are right."""
    return f"[{key}] So the answer is {ANSWERS[int(draw(key, 'answer') * len(ANSWERS))]}."


def body(text: str, finish: str = "stop") -> bytes:
    """A reply as it stands between head and end."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    return json.dumps({"object": "chat.completion", "model": NAME, "choices": [choice]}).encode()


def reply(status: int, content: bytes, *headers: str) -> bytes:
    """A whole reply, after which the connection ends."""
    lines = [f"HTTP/1.1 {status} Status", "Content-Type: application/json", *headers]
    lines += ["Connection: close", f"Content-Length: {len(content)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


FAULTY: Final = "So the answer is (A)."
"""What a fault may say: never with a digest, so that it is no answer to anything."""


def fault_bytes(kind: str, chance: random.Random, garbage: Sequence[Raw]) -> Raw:
    """What goes over the wire in place of a reply."""
    if kind == "stall":
        return Raw(data=b"", then="keep")
    if kind == "cut":
        full_reply = reply(200, body(FAULTY))
        cut = full_reply[: int(chance.random() * len(full_reply))]
        return Raw(data=cut, then="abort" if chance.random() < 0.5 else "close")
    if kind == "broken off":
        return Raw(data=reply(200, body(FAULTY, "abort")))
    if kind == "garbage" and garbage:
        return chance.choice(garbage)
    status = int(kind) if kind.isdigit() else 500
    retry_header = ("Retry-After: 0.1",) if status == 429 else ()
    return Raw(data=reply(status, REFUSED, *retry_header))


@dataclass(frozen=True)
class Order:
    """What to do for a while."""

    kind: str = ""
    requests: int = 0
    seconds: float = 0.0


class Witness:
    """The endpoint, its weather and its ledger."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._ledger = os.open(args.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._orders = Path(args.orders)
        self._orders.touch()
        self._read = self._orders.stat().st_size  # what was ordered of an earlier process is over
        self._noise: float = args.noise
        self._seed: int = args.seed
        self._garbage = garbage_in(args.garbage) if args.garbage else ()
        self._order, self._until = Order(), 0.0
        latency = {float(k): float(v) for k, v in json.loads(args.latency).items()}
        self._usual = Plan(
            answers=self._answer, raw=self._raw, latency=latency, seed=args.seed, model_name=NAME
        )
        self.endpoint = FaultyEndpoint(self._usual, port=args.port)

    def write(self, did: str, key: str = "", **fields: Any) -> None:
        """Add a line to the ledger."""
        os.write(self._ledger, json.dumps({"did": did, "key": key} | fields).encode() + b"\n")

    async def serve(self) -> None:
        """Listen, and do what is ordered."""
        await self.endpoint.listen()
        self.write("began", pid=os.getpid())
        address = {"url": self.endpoint.url, "port": self.endpoint.port}
        sys.stdout.write(json.dumps(address) + "\n")
        sys.stdout.flush()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            with self._orders.open("rb") as orders:
                orders.seek(self._read)
                lines = orders.read().splitlines(keepends=True)
            for line in lines:
                if line.endswith(b"\n"):
                    self._read += len(line)
                    await self._obey(Order(**json.loads(line)))

    async def _obey(self, order: Order) -> None:
        self._order, self._until = order, monotonic() + order.seconds
        self.write("ordered", kind=order.kind)
        other_model_plan = replace(self._usual, answers=self._wrong_reply, model_name="another")
        self.endpoint.plan = other_model_plan if order.kind == "other" else self._usual
        if order.kind == "refuse":
            await self.endpoint.shut()
            await asyncio.sleep(order.seconds)
            await self.endpoint.listen()

    def _answer(self, request: EndpointRequest) -> str:
        text = answer(request.key)
        if not request.text.startswith(KNOCK):
            self.write("gave", request.key, text=text)
        return text

    def _wrong_reply(self, request: EndpointRequest) -> str:
        if not self._lasts("other"):
            self.endpoint.plan = self._usual
        if not request.text.startswith(KNOCK):
            self.write("other", request.key)
        return FAULTY

    def _lasts(self, kind: str) -> bool:
        """Whether an order stands; each request that it meets counts."""
        if self._order.kind != kind or self._order.requests < 1 or monotonic() > self._until:
            return False
        self._order = replace(self._order, requests=self._order.requests - 1)
        return True

    def _raw(self, request: EndpointRequest, attempt: int) -> Raw | None:
        """What a request meets in place of a reply, if anything."""
        self.write("knocked" if request.text.startswith(KNOCK) else "asked", request.key)
        kind = ""
        chance = random.Random(f"{self._seed} {request.key} {attempt}")
        if self._order.kind in ATTEMPT_FAULTS and self._lasts(self._order.kind):
            kind = self._order.kind
        elif chance.random() < self._noise:
            kind = chance.choice(ATTEMPT_FAULTS)
        if not kind:
            return None
        self.write("fault", request.key, kind=kind)
        return fault_bytes(kind, chance, self._garbage)


def garbage_out(path: Path, raws: Sequence[Raw]) -> None:
    """Write odd replies to a file, so that no endpoint needs to make them."""
    lines = [(base64.b64encode(raw.data).decode(), raw.then) for raw in raws]
    path.write_text(json.dumps(lines))


def garbage_in(path: str) -> tuple[Raw, ...]:
    """The odd replies of a file."""
    lines = json.loads(Path(path).read_text())
    return tuple(Raw(data=base64.b64decode(data), then=then) for data, then in lines)


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m perf.soak.witness", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ledger", required=True)
    parser.add_argument("--orders", required=True)
    parser.add_argument("--garbage", default="", help="a file of odd replies")
    parser.add_argument("--noise", type=float, default=0.0, help="share of attempts that fail")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency", default="{}", help="JSON: seconds to share of prompts")
    return parser.parse_args()


def main() -> None:
    """Serve until the process is ended."""
    witness = Witness(arguments())
    witness.endpoint.loop.run_until_complete(witness.serve())


if __name__ == "__main__":
    main()
