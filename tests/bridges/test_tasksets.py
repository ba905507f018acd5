"""The real ``vf-eval`` of verifiers 0.4 gives Keju's scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bridges.conftest import KEY, Command, environment_of, run
from tests.bridges.replies import keju_scores, mixed
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan
from tests.support.verifiers_environments import (
    REWARD,
    assert_same,
    flags,
    graded,
    outcome_of,
    tool_call,
    with_calculator,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "limit", "exam_args"),
    [
        ("bbh", 4, {"few_shot_num": 0}),
        ("mmlu_pro", 6, {"subset_list": ["math", "law"]}),
        ("ceval", 3, {"subset_list": ["logic", "law"]}),
        ("bixbench", None, {"max_episodes": 60, "with_refusal": True, "seed": 7}),
    ],
)
def test_rewards_are_kejus_scores(
    vf_eval: Command,
    tmp_path: Path,
    data_dir: Path,
    name: str,
    limit: int | None,
    exam_args: dict[str, Any],
) -> None:
    limited_args = exam_args if limit is None else exam_args | {"limit": limit}
    with FaultyEndpoint(Plan(answers=mixed, key=KEY)) as endpoint:
        args = {name: exam_args}
        expected = keju_scores(endpoint, tmp_path, data_dir, name, limit=limit, dataset_args=args)
        body = endpoint.last_body
        ran = vf_eval(f"keju-{name.replace('_', '-')}", endpoint, *flags(data_dir, **limited_args))
        assert {k: v for k, v in endpoint.last_body.items() if k != "messages"} == {
            k: v for k, v in body.items() if k != "messages"
        }
    assert_same(ran, expected)
    assert len({score.outcome for score in expected.values()}) >= 3
    assert KEY not in ran.out


def test_what_the_endpoint_refuses_for_good_is_an_error_and_never_a_zero(
    vf_eval: Command, data_dir: Path
) -> None:
    plan = Plan(answers=mixed, context=900, first_faults=("500",))
    with FaultyEndpoint(plan) as endpoint:
        ran = vf_eval("keju-bbh", endpoint, *flags(data_dir, few_shot_num=0, limit=2))
    traces = ran.traces()
    failed = [trace for trace in traces.values() if not trace["ok"]]
    assert 0 < len(failed) < len(traces)
    for trace in failed:
        assert trace.get("rewards", {}) == {}
        assert "maximum context length" in trace["errors"][-1]["message"]
    for trace in traces.values():
        if trace["ok"]:
            assert [bool(call.get("error")) for call in trace["calls"]] == [True, False]


def test_sampling_flags_go_before_the_protocol(vf_eval: Command, data_dir: Path) -> None:
    with FaultyEndpoint(Plan(answers=mixed)) as endpoint:
        chosen = flags(data_dir, subset_list=["snarks"], limit=1)
        vf_eval("keju-bbh", endpoint, *chosen, "--sampling.temperature", "0.7")
        assert endpoint.last_body["temperature"] == 0.7


def test_tools_are_called_until_there_is_an_answer(vf_eval: Command, data_dir: Path) -> None:
    with FaultyEndpoint(Plan(answers=with_calculator)) as endpoint:
        chosen = flags(data_dir, subset_list=["multistep_arithmetic_two"], tools=["calculator"])
        ran = vf_eval("keju-bbh", endpoint, *chosen, "-n", "3")
        assert [tool["function"]["name"] for tool in endpoint.last_body["tools"]] == ["calculator"]
        assert "tool_choice" not in endpoint.last_body
    for trace in ran.traces().values():
        roles = [node["message"]["role"] for node in trace["nodes"]]
        assert roles[-4:] == ["user", "assistant", "tool", "assistant"]
        assert trace["nodes"][-2]["message"]["content"] == "8.75"
        assert trace["info"]["keju_reply"]["text"] == "So the answer is 8.75."
        assert trace["stop_condition"] == "agent_completed"
        assert outcome_of(trace) == "incorrect"


def test_the_last_turn_has_to_be_an_answer(vf_eval: Command, data_dir: Path) -> None:
    def obeys(request: EndpointRequest) -> str | dict[str, Any]:
        return "So the answer is 5." if "tool_choice" in request.body else tool_call("2 + 3")

    with FaultyEndpoint(Plan(answers=obeys)) as endpoint:
        chosen = flags(data_dir, subset_list=["object_counting"], tools=["calculator"])
        ran = vf_eval("keju-bbh", endpoint, *chosen, "-n", "1", "--env.agent.max-turns", "3")
        assert endpoint.last_body["tool_choice"] == "none"
    (trace,) = ran.traces().values()
    assert len(trace["calls"]) == 3
    assert trace["info"]["keju_reply"]["text"] == "So the answer is 5."


def test_a_model_that_calls_in_its_last_turn_too_has_no_answer(
    vf_eval: Command, data_dir: Path
) -> None:
    def insists(request: EndpointRequest) -> dict[str, Any]:
        return tool_call("2 + 3")

    with FaultyEndpoint(Plan(answers=insists)) as endpoint:
        chosen = flags(data_dir, subset_list=["object_counting"], tools=["calculator"])
        ran = vf_eval("keju-bbh", endpoint, *chosen, "-n", "1", "--env.agent.max-turns", "2")
        assert endpoint.stats.requests == 2
    (trace,) = ran.traces().values()
    assert trace["ok"]
    assert trace["info"]["keju_reply"]["episode"]["stop"] == "max_iterations_forced"
    assert trace["rewards"][REWARD]["score"] == 0.0
    assert outcome_of(trace) == "unparsed"


def verdict(request: EndpointRequest) -> str:
    return f"<grade>{'correct' if int(request.key, 16) % 2 else 'incorrect'}</grade>"


def test_open_answers_are_judged_as_by_keju(
    vf_eval: Command, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_answer(request: EndpointRequest) -> str:
        return f"About {int(request.key, 16) % 90}, with enrichment of pathway {request.key}."

    monkeypatch.setenv("JUDGE_KEY", "judge-key-5678")
    with (
        FaultyEndpoint(Plan(answers=open_answer)) as endpoint,
        FaultyEndpoint(Plan(answers=verdict, key="judge-key-5678", first_faults=("500",))) as judge,
    ):
        exam_args = {
            "answer_mode": "open",
            "max_episodes": 30,
            "llm_judge_model": "j",
            "llm_judge_base_url": judge.url,
            "llm_judge_api_key_var": "JUDGE_KEY",
        }
        args = {"bixbench": exam_args}
        expected = keju_scores(endpoint, tmp_path, data_dir, "bixbench", dataset_args=args)
        ran = vf_eval(
            "keju-bixbench", endpoint, *flags(data_dir, **exam_args), JUDGE_KEY="judge-key-5678"
        )
    assert_same(ran, expected)
    assert {"correct", "incorrect"} <= {score.outcome for score in expected.values()}
    assert any(score.grader == "judge" for score in expected.values())
    assert "judge-key-5678" not in ran.out


def test_a_judge_that_fails_is_an_error_and_never_a_zero(vf_eval: Command, data_dir: Path) -> None:
    with (
        FaultyEndpoint(Plan(answers="Something about enrichment.")) as endpoint,
        FaultyEndpoint(Plan(answers=verdict, key="another")) as judge,
    ):
        exam_args = {"answer_mode": "open", "max_episodes": 12, "llm_judge_base_url": judge.url}
        ran = vf_eval(
            "keju-bixbench", endpoint, *flags(data_dir, **exam_args), OPENAI_API_KEY="wrong"
        )
    traces = ran.traces().values()
    failed = [trace for trace in traces if not trace["ok"]]
    # A range that is answered without a number is wrong by rule: no judge is asked about it.
    assert len(traces) == 12 > len(failed) > 0
    assert all(trace["rewards"][REWARD]["score"] == 0 for trace in traces if trace["ok"])
    for trace in failed:
        assert trace.get("rewards", {}).get(REWARD) is None
        assert "has no verdict on" in trace["errors"][-1]["message"]


def test_replaying_gives_the_same_rewards(vf_eval: Command, tmp_path: Path, data_dir: Path) -> None:
    """Also for traces of another harness, which leaves no reply of ours behind."""
    with FaultyEndpoint(Plan(answers=mixed)) as endpoint:
        chosen = flags(data_dir, subset_list=["snarks", "navigate"], limit=10)
        ran = vf_eval("keju-bbh", endpoint, *chosen)
    (path,) = ran.folder.rglob("traces.jsonl")
    before = graded(ran)
    assert len({outcome for _, outcome in before.values()}) >= 3
    for name in ("as they are", "of another harness"):
        out = tmp_path / name
        arguments = [str(path.parent), "--no-rich", "--output-dir", str(out)]
        replayed = run(environment_of("0.4") / "vf-replay", arguments, tmp_path / "vf")
        assert replayed.code == 0, replayed.out[-3000:]
        assert graded(replayed._replace(folder=out)) == before
        path.write_text(path.read_text("utf-8").replace("keju_reply", "something_else"), "utf-8")


@pytest.mark.parametrize(
    ("env", "settings", "line"),
    [
        ("keju-bbh", {"protocol": "papr"}, "bbh has no protocol 'papr' (did you mean 'paper'?)"),
        (
            "keju-bixbench",
            {"answer_mode": "essay"},
            "answer_mode: input should be one of 'mcq', 'open'",
        ),
        ("keju-ceval", {"protocol": "tutorial"}, "compares log-probabilities"),
    ],
)
def test_bad_settings_are_one_line(
    vf_eval: Command, data_dir: Path, env: str, settings: dict[str, Any], line: str
) -> None:
    with FaultyEndpoint() as endpoint:
        ran = vf_eval(env, endpoint, *flags(data_dir, **settings))
        assert endpoint.stats.requests == 0
    assert ran.code != 0
    assert "Traceback" not in ran.out
    (error,) = (
        out_line for out_line in ran.out.splitlines() if out_line.startswith("keju: error:")
    )
    assert line in error


RESCORED = """
import asyncio
from types import SimpleNamespace
from keju.interop.verifiers.harness import REPLY
from keju.interop.verifiers.tasksets import ExamConfig, exam_taskset

task = next(iter(exam_taskset("demo")(ExamConfig(limit=1)).load()))

async def main():
    trace = SimpleNamespace(id="one and the same", info={REPLY: {"text": "?", "finish": "stop"}})
    await task.outcomes(trace)
    for text in (f"The answer is ({task.data.target}).", "The answer is (Z)."):
        trace.info = {REPLY: {"text": text, "finish": "stop"}}
        print(await task.score_by_protocol(trace))

asyncio.run(main())
"""


def test_a_reading_is_that_of_the_reply_and_not_of_the_trace(tmp_path: Path) -> None:
    """A trace whose reply was rewritten between the metrics and the reward."""
    python = environment_of("0.4") / "python"
    ran = run(python, ["-c", RESCORED], tmp_path / "vf")
    assert ran.out.split()[-2:] == ["1.0", "0.0"], ran.out
