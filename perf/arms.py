"""Equal arms under equal limits: `python -m perf arms` runs 200 simulated A/B runs.

The baseline has no tools. The other arm has a tool that the model never calls, so that both arms
have the same replies by construction: the letter, the time and the number of tokens of each reply
are drawn in the same way. Many replies exceed the limits of 3 s, 100 tokens and 0.01 USD. Every run
is a whole run of Keju (`run_exams`) on a simulated clock: no reply takes real time.

The mean difference of the arms under all limits must be within two standard errors of 0. Draws are
random, so a mean difference may be far from 0 by chance; the control without limits has the same
draws. So each reply is also compared with its draw: every question whose draw exceeds a limit, and
no other, must be cut in both arms.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import math
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

from keju.config import TaskConfig
from keju.engine import session
from keju.models.base import Model
from keju.models.scripted import ScriptedModel
from keju.runs.journal import Records
from keju.solvers import tool_setup
from keju.solvers.toolbox import Toolbox, ToolResult, ToolSource
from keju.types import Fault, Record, Reply, Request, Sample, Tool, Usage
from perf.measure import Row

RUNS = 200
SIZE = 5
"""Questions of each subset of the demo exam."""
LIMITS = {"timeout_seconds": 3.0, "max_tokens": 100, "max_cost": 0.01}
PRICE = {"input": 50.0, "output": 110.0}
"""Dollars for a million tokens: 100 tokens cost about as much as the limit."""
INPUT = 20
LABELS = "AAAB"
"""Letters that the model draws from."""
TIMED = ("keju.engine.", "keju.solvers.")
"""Packages whose modules read the time of replies and calls with `monotonic`."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is to be done."""

    now = 0.0

    def time(self) -> float:
        """Return the simulated time."""
        return self.now

    def _run_once(self) -> None:
        timers: list[Any] = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0]._cancelled:
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            heapq.heappop(timers)._scheduled = False
        if timers and not self._ready:  # type: ignore[attr-defined]
            self.now = max(self.now, timers[0].when())
        super()._run_once()  # type: ignore[misc]


class SlowModel(ScriptedModel):
    """Draws for each request what it answers, how long it takes and how long it is."""

    counts = False

    def __init__(self, seed: object, *, same_draws: bool = False) -> None:
        """With `same` both arms draw the same for a question."""
        super().__init__()
        self._seed, self._same_draws = seed, same_draws
        self.draws: dict[str, tuple[float, int]] = {}
        """Seconds and tokens of the output, by the hash of the request."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Return the reply after its time, or a fault when `timeout` is over before."""
        arm = "" if self._same_draws else bool(request.tools)
        draw = Random(f"{self._seed}\0{arm}\0{request.prompt.text}")
        seconds, output = draw.lognormvariate(math.log(2.5), 0.4), draw.randint(30, 95)
        label = draw.choice(LABELS)
        self.draws[request.hash] = seconds, output
        await asyncio.sleep(min(seconds, timeout))
        if seconds > timeout:
            return Reply(error=Fault("timeout", f"no reply within {timeout:g} s"))
        text = f"So the answer is ({label})."
        usage = Usage(INPUT, output)
        return Reply(text=text, finish="stop", usage=usage, seconds=seconds, model=self.name)


class _Unused(ToolSource):
    """A tool that the model never calls."""

    tools = (Tool("look_up", "Look something up."),)

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        yield _Box()


class _Box(Toolbox):
    tools = _Unused.tools

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult("")


class Arm(NamedTuple):
    """What one arm of a run came to."""

    mean: float
    """The mean score over all questions."""
    cut: dict[str, str]
    """By question: the limit that cut it."""
    seconds: float
    """The longest time of a question."""
    wrong: int
    """Questions that were cut although no limit was exceeded, or not cut although one was."""


@contextmanager
def simulated(model: Model) -> Iterator[None]:
    """Let runs ask `model`, on a simulated clock."""

    def clock() -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:  # before the run and after it
            return 0.0

    with ExitStack() as stack:
        for name, module in [*sys.modules.items()]:
            if name.startswith(TIMED) and hasattr(module, "monotonic"):
                stack.enter_context(mock.patch.object(module, "monotonic", clock))
        stack.enter_context(mock.patch.object(session, "_new_loop", SimulatedLoop))
        stack.enter_context(mock.patch("keju.task.make_model", return_value=model))
        stack.enter_context(mock.patch.object(tool_setup, "arm_sources", return_value=[_Unused()]))
        yield


def run_once(seed: object, limits: dict[str, Any], *, same_draws: bool = False) -> tuple[Arm, Arm]:
    """Return both arms of one simulated run."""
    from keju.task import run_exams

    model = SlowModel(seed, same_draws=same_draws)
    with tempfile.TemporaryDirectory() as folder, simulated(model):
        settings: dict[str, Any] = {
            "model": "scripted",
            "datasets": ["demo"],
            "dataset_args": {"demo": {"size": SIZE}},
            "work_dir": folder,
            "run_id": "r",
            "eval_batch_size": 8,
            "price": PRICE,
            "agent": limits,
            "arms": [{"name": "baseline"}, {"name": "tools", "tools": ["python"]}],
        }
        finished = run_exams(TaskConfig(**settings), report=False)
        assert finished.exit_code == 0, finished.message
        records = list(Records(Path(folder, "r")))
    plain_arm, tools_arm = (
        _arm([record for record in records if record.arm == name], model, limits)
        for name in ("baseline", "tools")
    )
    return plain_arm, tools_arm


def exceeds(seconds: float, output: int, limits: dict[str, Any]) -> bool:
    """Whether a drawn reply exceeds one of the limits."""
    cost = (INPUT * PRICE["input"] + output * PRICE["output"]) / 1e6
    amounts = {"timeout_seconds": seconds, "max_tokens": INPUT + output, "max_cost": cost}
    return any(amounts[name] > limit for name, limit in limits.items())


def _arm(records: Sequence[Record], model: SlowModel, limits: dict[str, Any]) -> Arm:
    scores = [record.readings[0].score for record in records]
    cut = {
        record.id: getattr(record.reply, "cut_by", "cut")
        for record, score in zip(records, scores, strict=True)
        if score.outcome == "truncated"
    }
    seconds = max(record.reply.seconds for record in records)
    wrong = sum(
        exceeds(*model.draws[record.hash], limits) != (record.id in cut) for record in records
    )
    return Arm(sum(score.value for score in scores) / len(scores), cut, seconds, wrong)


class Difference(NamedTuple):
    """The mean of paired differences over runs, and its standard error."""

    mean: float
    se: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Difference:
        """Return the mean and the standard error of `values`."""
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return cls(mean, math.sqrt(variance / len(values)))


def measure(runs: int = RUNS) -> Iterator[Row]:
    """Yield the differences of equal arms under all limits, under each alone, and under none."""
    cases: dict[str, dict[str, Any]] = {"3 s, 100 tokens, 0.01 USD": LIMITS}
    cases |= {f"{name} {LIMITS[name]:g}": {name: LIMITS[name]} for name in LIMITS}
    cases["no limits (control)"] = {}
    for title, limits in cases.items():
        pairs = [run_once(number, limits) for number in range(runs)]
        questions = SIZE * 6
        difference = Difference.of(
            [tools_arm.mean - plain_arm.mean for plain_arm, tools_arm in pairs]
        )
        ratio = abs(difference.mean) / difference.se
        yield Row(
            f"arms: mean difference, {title}, {runs} runs",
            f"{100 * difference.mean:+.2f} points",
            f"standard error {100 * difference.se:.2f}",
            ratio,
            ratio <= 2 if limits == LIMITS else None,
        )
        wrong = sum(arm.wrong for pair in pairs for arm in pair)
        shares = [sum(len(pair[arm].cut) for pair in pairs) / runs / questions for arm in (0, 1)]
        yield Row(
            f"arms: wrongly cut or not cut, {title}; cut without, with tools",
            f"{wrong} of {2 * runs * questions}",
            f"{100 * shares[0]:.1f} %, {100 * shares[1]:.1f} %",
            None,
            wrong == 0,
        )


def main() -> None:
    """Print the rows for `--runs` runs."""
    parser = argparse.ArgumentParser(prog="python -m perf.arms", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    for row in measure(parser.parse_args().runs):
        print(*row[:3], f"{row.ratio or 0:.2f}", row.ok, sep="  ")


if __name__ == "__main__":
    main()
