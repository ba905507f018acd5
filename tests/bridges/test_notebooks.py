"""The real ``vf-eval`` of verifiers 0.4 lets models work in Keju's notebooks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.conftest import KEY, Command, Ran, environment_of, run
from tests.bridges.replies import keju_scores
from tests.support.agentic import Model, analyst, make_data
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan
from tests.support.tools import calling
from tests.support.verifiers_environments import REWARD, assert_same, flags, graded, outcome_of

pytestmark = [
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing"),
    pytest.mark.slow,
]

AGENTIC: dict[str, Any] = {"mode": "agentic"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with three questions about two capsules."""
    make_data(tmp_path / "data" / "bixbench")
    return tmp_path / "data"


def half_right(question: str, results: list[str]) -> Any:
    """An analyst who is too lazy for one of the questions."""
    if "second" in question:
        return calling(("submit_answer", {"answer": "A" if "(A)" in question else "alpha"}))
    return analyst(question, results)


def model_of(script: Any) -> Model:
    model = Model()
    model.script = script
    return model


def episodes(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.out[-3000:]
    return [trace["info"]["keju_reply"]["episode"] for trace in ran.traces().values()]


@pytest.mark.parametrize("mode_args", [{}, {"answer_mode": "open"}])
def test_rollouts_are_episodes_with_kejus_scores(
    vf_eval: Command, tmp_path: Path, data: Path, mode_args: dict[str, Any]
) -> None:
    model = model_of(half_right)
    (tmp_path / "t").mkdir()
    with FaultyEndpoint(Plan(answers=model, key=KEY, first_faults=("500",))) as endpoint:
        args = {"bixbench": AGENTIC | mode_args}
        expected = keju_scores(endpoint, tmp_path, data, "bixbench", dataset_args=args)
        before = model.bodies[-1]
        chosen = flags(data, **AGENTIC, **mode_args)
        ran = vf_eval("keju-bixbench", endpoint, *chosen, TMPDIR=str(tmp_path / "t"))
    assert_same(ran, expected)
    assert {score.outcome for score in expected.values()} == {"correct", "incorrect"}
    after = model.bodies[-1]
    assert {k: v for k, v in after.items() if k != "messages"} == {
        k: v for k, v in before.items() if k != "messages"
    }
    assert KEY not in ran.out
    assert not list((tmp_path / "t").glob("keju-*")), "nothing outlives the command"
    worked = [episode for episode in episodes(ran) if len(episode["turns"]) > 3]
    for episode in worked:
        assert episode["stop"] == "submitted"
        assert episode["facts"]["cells"] == 3
        assert episode["facts"]["data"]["left_out"] == ["Notebook/solution.ipynb"]
        assert episode["facts"]["kernel"]["backend"] == "bwrap"
    assert len(worked) == 2
    for trace in ran.traces().values():
        assert trace["stop_condition"] == "agent_completed"
        assert trace["nodes"][-1]["message"]["tool_calls"][0]["name"] == "submit_answer"


def test_the_last_turn_that_verifiers_allows_is_an_answer(vf_eval: Command, data: Path) -> None:
    def never(question: str, results: list[str]) -> Any:
        if model.bodies[-1].get("tool_choice") == "none":
            return "42"
        return calling(("edit_cell", {"contents": "1"}))

    model = model_of(never)
    chosen = flags(data, **AGENTIC, answer_mode="open", max_episodes=1)
    with FaultyEndpoint(Plan(answers=model)) as endpoint:
        ran = vf_eval("keju-bixbench", endpoint, *chosen, "--env.agent.max-turns", "3")
        assert endpoint.stats.requests == 3
    assert [episode["stop"] for episode in episodes(ran)] == ["forced_answer"]


def test_a_rollout_that_verifiers_stops_is_truncated(vf_eval: Command, data: Path) -> None:
    with FaultyEndpoint(Plan(answers=model_of(analyst))) as endpoint:
        chosen = flags(data, **AGENTIC, max_episodes=1)
        ran = vf_eval("keju-bixbench", endpoint, *chosen, "--env.agent.max-output-tokens", "1")
        assert endpoint.stats.requests == 1
    (trace,) = ran.traces().values()
    assert trace["ok"]
    assert trace["stop_condition"] == "max_output_tokens"
    assert outcome_of(trace) == "truncated"


def test_broken_data_is_an_error_of_its_rollout_and_never_a_zero(
    vf_eval: Command, data: Path
) -> None:
    (data / "bixbench/capsules/bix-2/Data/link").symlink_to("/etc")
    with FaultyEndpoint(Plan(answers=model_of(analyst))) as endpoint:
        ran = vf_eval("keju-bixbench", endpoint, *flags(data, **AGENTIC))
    traces = ran.traces().values()
    (failed,) = (trace for trace in traces if not trace["ok"])
    assert "is a link" in failed["errors"][-1]["message"]
    assert failed.get("rewards", {}) == {}
    assert [t["rewards"][REWARD]["score"] for t in traces if t["ok"]] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"capsule_dir": "nowhere"}, "keju data pull bixbench --capsules"),
        ({"sandbox": {"backend": "none"}}, "unsafe"),
        ({"agent": {"max_iteration": 3}}, "did you mean 'max_iterations'?"),
    ],
)
def test_what_cannot_be_worked_with_is_one_line_before_the_first_question(
    vf_eval: Command, data: Path, settings: dict[str, Any], line: str
) -> None:
    with FaultyEndpoint() as endpoint:
        ran = vf_eval("keju-bixbench", endpoint, *flags(data, **AGENTIC, **settings))
        assert endpoint.stats.requests == 0
    assert ran.code != 0
    assert "Traceback" not in ran.out
    (error,) = (
        out_line for out_line in ran.out.splitlines() if out_line.startswith("keju: error:")
    )
    assert line in error


def test_replaying_needs_neither_data_nor_sandbox(
    vf_eval: Command, tmp_path: Path, data: Path
) -> None:
    with FaultyEndpoint(Plan(answers=model_of(half_right))) as endpoint:
        ran = vf_eval("keju-bixbench", endpoint, *flags(data, **AGENTIC))
    shutil.rmtree(data / "bixbench" / "capsules")
    (path,) = ran.folder.rglob("traces.jsonl")
    arguments = [str(path.parent), "--no-rich", "--output-dir", str(tmp_path / "again")]
    replayed = run(environment_of("0.4") / "vf-replay", arguments, tmp_path / "vf")
    assert replayed.code == 0, replayed.out[-3000:]
    assert graded(replayed._replace(folder=tmp_path / "again")) == graded(ran)
