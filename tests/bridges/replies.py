"""Replies of every kind, and what ``keju eval`` makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from keju.config import TaskConfig
from keju.runs.run import Run
from keju.task import run_exams
from keju.types import Score
from tests.bridges.conftest import KEY, MODEL
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, draw

KINDS = 9


def mixed(request: EndpointRequest) -> str | dict[str, Any]:
    """A reply that depends on nothing but the whole prompt: another prompt, another reply."""
    letter = "ABCD"[int(draw(request.key, "letter") * 4)]
    styles: list[str | dict[str, Any]] = [
        f"Reasoning first. So the answer is ({letter}).",
        f"Reasoning first. So the answer is ({letter}).",
        letter,
        f"ANSWER: {letter}",
        f"<think>Maybe (A)? So the answer is (A).</think>\n\nANSWER: ({letter})",
        f"Therefore **{letter}** it is. The answer is True.",
        "",
        {
            "message": {"role": "assistant", "content": "Let us see, first we"},
            "finish_reason": "length",
        },
        {"content": f"The answer is {letter}.", "reasoning_content": "So the answer is (B)."},
    ]
    assert len(styles) == KINDS
    return styles[int(draw(request.key, "style") * KINDS)]


def keju_scores(
    endpoint: FaultyEndpoint, folder: Path, data_dir: Path, name: str, **settings: Any
) -> dict[str, Score]:
    """The headline's score of each question, as ``keju eval`` gives it."""
    config = TaskConfig(
        model=MODEL,
        api_url=endpoint.url,
        api_key=SecretStr(KEY),
        datasets=[name],
        data_dir=str(data_dir),
        work_dir=str(folder),
        run_id="keju",
        **settings,
    )
    finished = run_exams(config, report=False)
    assert finished.exit_code == 0, finished.message
    return {r.id: r.readings[0].score for _, r in Run(finished.folder).answers()}
