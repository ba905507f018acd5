"""The real ``vf-eval`` of verifiers 0.3 gives Keju's scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.conftest import Command
from tests.bridges.replies import keju_scores, mixed
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan
from tests.support.verifiers_environments import with_calculator

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "limit", "exam_args"),
    [("bbh", 4, {"few_shot_num": 0}), ("bixbench", None, {"max_episodes": 60, "seed": 7})],
)
def test_rewards_are_kejus_scores(
    old_vf_eval: Command,
    tmp_path: Path,
    data_dir: Path,
    name: str,
    limit: int | None,
    exam_args: dict[str, Any],
) -> None:
    with FaultyEndpoint(Plan(answers=mixed)) as endpoint:
        args = {name: exam_args}
        expected = keju_scores(endpoint, tmp_path, data_dir, name, limit=limit, dataset_args=args)
        arguments = (
            exam_args | {"data_dir": str(data_dir)} | ({} if limit is None else {"limit": limit})
        )
        ran = old_vf_eval(f"keju-{name}", endpoint, "-a", json.dumps(arguments))
        assert endpoint.last_body["temperature"] == 0.0
    assert ran.code == 0, ran.out[-3000:]
    rows = ran.rows()
    assert {i: row["reward"] for i, row in rows.items()} == {
        i: score.value for i, score in expected.items()
    }
    for sample_id, score in expected.items():
        row = rows[sample_id]
        if row["error"] is not None:  # verifiers' own word for a reply without any text
            assert row["error"]["error"] == "EmptyModelResponseError"
            assert score.outcome == "unparsed"
        else:
            assert row[f"outcome_{score.outcome}"] == 1.0


def test_tools_are_called_until_there_is_an_answer(old_vf_eval: Command, data_dir: Path) -> None:
    exam_args = {"subset_list": ["multistep_arithmetic_two"], "limit": 2, "tools": ["calculator"]}
    with FaultyEndpoint(Plan(answers=with_calculator)) as endpoint:
        arguments = json.dumps(exam_args | {"data_dir": str(data_dir)})
        ran = old_vf_eval("keju-bbh", endpoint, "-a", arguments)
    assert ran.code == 0, ran.out[-3000:]
    for row in ran.rows().values():
        assert [message["role"] for message in row["completion"]] == [
            "assistant",
            "tool",
            "assistant",
        ]
        assert row["completion"][1]["content"] == "8.75"
        assert row["outcome_incorrect"] == 1.0


def test_a_judge_that_fails_is_an_error_of_the_rollout(
    old_vf_eval: Command, data_dir: Path
) -> None:
    with (
        FaultyEndpoint(Plan(answers="Something about enrichment.")) as endpoint,
        FaultyEndpoint(Plan(key="another")) as judge,
    ):
        exam_args = {"answer_mode": "open", "max_episodes": 3, "llm_judge_base_url": judge.url}
        arguments = json.dumps(exam_args | {"data_dir": str(data_dir)})
        ran = old_vf_eval("keju-bixbench", endpoint, "-a", arguments, OPENAI_API_KEY="wrong")
    rows = ran.rows().values()
    assert len(rows) == 3
    # A range that is answered without a number is wrong by rule: no judge is asked about it.
    failed = [row for row in rows if row["error"]]
    assert failed
    assert all("has no verdict on" in json.dumps(row["error"]) for row in failed)
    assert all(row["reward"] == 0 for row in rows if not row["error"])


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"answer_mode": "essay"}, "answer_mode: input should be one of 'mcq', 'open'"),
        ({"mode": "agentic"}, "models act in environments of verifiers 0.4 and later"),
    ],
)
def test_bad_settings_are_one_line(
    old_vf_eval: Command, data_dir: Path, settings: dict[str, Any], line: str
) -> None:
    with FaultyEndpoint() as endpoint:
        arguments = json.dumps({"data_dir": str(data_dir), **settings})
        ran = old_vf_eval("keju-bixbench", endpoint, "-a", arguments)
        assert endpoint.stats.requests == 0
    assert ran.code != 0
    assert "Traceback" not in ran.out
    (error,) = (
        out_line for out_line in ran.out.splitlines() if out_line.startswith("keju: error:")
    )
    assert line in error
