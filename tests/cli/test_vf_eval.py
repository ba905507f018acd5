"""``keju vf-eval``: the command lines of the environment's README, against a real endpoint."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from keju.cli.vf_eval import RewardSummary, reward_lines
from tests.benchmarks.bixbench.conftest import CANARY, FLAT, write
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

pytestmark = pytest.mark.slow

REWARD = re.compile(r"^reward/avg=(\S+) std=(\S+)$", re.MULTILINE)
OPEN = '{"mode": "zero_shot", "answer_mode": "open", "max_episodes": 8}'


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers="D")


@pytest.fixture
def env(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: FaultyEndpoint
) -> Keju:
    """The command with small data, and the endpoint where OPENAI_BASE_URL says."""
    (tmp_path / "data" / "bixbench").mkdir(parents=True)
    write(tmp_path / "data" / "bixbench" / "BixBench_v1.5.jsonl", FLAT)
    monkeypatch.setenv("KEJU_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    return keju


README_LINES = [
    ("",),
    ("-a", '{"mode": "zero_shot", "answer_mode": "mcq", "max_episodes": 8}'),
    ("-a", OPEN),
    ("-a", '{"question_source": "hypothesis", "answer_mode": "mcq", "max_episodes": 8}'),
    ("-a", '{"question_source": "hypothesis", "answer_mode": "open", "max_episodes": 8}'),
    ("-a", '{"question_source": "hypothesis", "answer_mode": "mcq", "add_tf_legend": true, '
     '"shuffle_options": false}'),
    ("-a", '{"mode": "agentic", "max_episodes": 2, "max_turns": 10}'),
    ("-a", '{"mode":"zero_shot","answer_mode":"mcq","max_episodes":8}', "-s"),
]  # fmt: skip


@pytest.mark.parametrize("line", README_LINES)
def test_every_line_of_the_readme_works(env: Keju, line: tuple[str, ...]) -> None:
    ran = env("vf-eval", "bixbench", *filter(None, line))
    assert ran.code == 0, ran.err
    assert "env=bixbench model=gpt-4.1-mini provider=http://127.0.0.1:" in ran.out
    assert "run folder: runs" in ran.out
    assert bool(REWARD.search(ran.out)) == ("-s" in line)


def test_the_two_lines_of_the_readme(env: Keju, endpoint: FaultyEndpoint) -> None:
    ran = env("vf-eval", "bixbench", "-m", "deepseek-chat", "-b", endpoint.url, "-r", "1", "-s")
    first_lines = (
        f"env=bixbench model=deepseek-chat provider={endpoint.url} split=train episodes=3 "
        "mode=zero_shot answer_mode=mcq\n"
    )
    assert first_lines in ran.out
    records = next(Path("runs").glob("*/records.jsonl")).read_text().splitlines()
    scores = [json.loads(line)["readings"][0]["score"]["value"] for line in records]
    mean, std = statistics.mean(scores), statistics.pstdev(scores)
    assert f"{first_lines}reward/avg={mean:.2f} std={std:.2f}\n" in ran.out
    assert 0 < mean < 1


def test_effective_numbers_are_shown(env: Keju, endpoint: FaultyEndpoint) -> None:
    ran = env("vf-eval", "bixbench", "-n", "2", "-c", "4")
    assert "bixbench: 2 of 3 examples x 3 rollouts = 6 requests, at most 4 at once" in ran.err
    assert endpoint.stats.answered >= 6
    assert "repeats at temperature 0" in ran.out
    warm = env("vf-eval", "bixbench", "-n", "-1", "-r", "2", "-T", "0.7")
    assert "3 examples x 2 rollouts = 6 requests" in warm.err
    assert "repeats at temperature 0" not in warm.out
    assert env("vf-eval", "bixbench", "-n", "0").code == 2


def test_max_episodes_takes_the_place_of_the_default_number(env: Keju) -> None:
    ran = env("vf-eval", "bixbench", "-a", '{"max_episodes": 1}', "-r", "1")
    assert "1 of 3 examples x 1 rollout = 1 request," in ran.err


def test_json_is_one_document(env: Keju) -> None:
    ran = env("vf-eval", "bixbench", "-r", "2", "--run-id", "one", "--json")
    assert ran.code == 0, ran.err
    vf = ran.json["vf_eval"]
    assert (vf["env"], vf["episodes"], vf["rollouts"], vf["split"]) == ("bixbench", 3, 2, "train")
    assert vf["reward"]["avg"] == ran.json["benchmarks"][0]["metrics"]["reward"]["value"]
    assert vf["reward"]["n"] == 6


def test_the_key_comes_from_the_variable_that_is_named(
    env: Keju, endpoint: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "sk-marked-secret"
    monkeypatch.setenv("MY_KEY", secret)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-someone-else")
    ran = env("vf-eval", "bixbench", "-k", "MY_KEY", "-r", "1", "-s")
    assert ran.code == 0
    assert endpoint.last_headers["authorization"] == f"Bearer {secret}"
    assert secret not in ran.out + ran.err
    for path in (tmp_path / "runs").rglob("*"):
        assert not path.is_file() or secret not in path.read_text()


def test_no_other_key_is_sent_where_the_named_one_is_missing(
    env: Keju, endpoint: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-someone-else")
    assert env("vf-eval", "bixbench", "-k", "MISSING_KEY", "-r", "1").code == 0
    assert "authorization" not in endpoint.last_headers


def test_an_endpoint_that_wants_the_missing_key_is_one_line(env: Keju) -> None:
    with FaultyEndpoint(Plan(answers="B", key="right")) as closed:
        ran = env("vf-eval", "bixbench", "-b", closed.url, "-k", "MISSING_KEY")
    assert ran.code == 5
    assert ran.err.splitlines()[-1].endswith("-k: the variable MISSING_KEY is not set")


def test_open_answers_without_a_key_are_compared_exactly(env: Keju) -> None:
    ran = env("vf-eval", "bixbench", "-a", OPEN, "-r", "1", "-s", "--json")
    assert ran.code == 0
    assert "OPENAI_API_KEY is not set, so there is no judge" in ran.err
    assert ran.json["benchmarks"][0]["outcomes"]["ungraded"] == 0
    assert any("no judge" in warning for warning in ran.json["benchmarks"][0]["warnings"])
    record = json.loads(next(Path("runs").glob("*/records.jsonl")).read_text().splitlines()[0])
    assert record["readings"][0]["score"]["grader"] == "exact"


def test_open_answers_are_judged_where_the_key_is_set(
    env: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_texts: list[str] = []

    def answers(question: EndpointRequest) -> str:
        if question.body["model"] != "judge":
            return "some prose of 5 or 6 words"
        judged_texts.append(question.text)
        return "<grade>correct</grade>"

    with FaultyEndpoint(Plan(answers=answers)) as shared_endpoint:
        monkeypatch.setenv("JUDGE_KEY", "sk-judge")
        args: dict[str, Any] = {
            "answer_mode": "open",
            "llm_judge_model": "judge",
            "llm_judge_base_url": shared_endpoint.url,
            "llm_judge_api_key_var": "JUDGE_KEY",
        }
        ran = env(
            "vf-eval", "bixbench", "-a", json.dumps(args), "-b", shared_endpoint.url, "-r", "1", "-s"
        )  # fmt: skip
    assert ran.code == 0, ran.err
    match = REWARD.search(ran.out)
    assert match is not None
    assert match.groups() == ("1.00", "0.00")
    assert any("some prose" in text and "What is bix-1-q1?" in text for text in judged_texts)
    assert "sk-judge" not in ran.out + ran.err


def candidate_or_default_judge(question: EndpointRequest) -> str:
    """A reply in prose; a favourable verdict where the prompt is the judge's."""
    is_judge = "<grade>" in question.text or "<grade>" in str(question.body["messages"][0])
    return "<grade>correct</grade>" if is_judge else "some prose of 5 or 6 words"


def test_the_default_judge_is_asked_where_its_key_is_set(
    env: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyEndpoint(Plan(answers=candidate_or_default_judge)) as shared_endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", shared_endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
        ran = env("vf-eval", "bixbench", "-a", OPEN, "-r", "1", "--json", "--run-id", "r")
        assert ran.code == 0, ran.err
        announced = re.search(
            r"the judge of open answers is gpt-4.1-mini at http://127.0.0.1:\d+/v1: at most 3 "
            r"verdicts, about [\d,]+ tokens, \$0\.00\d\d; --no-judge turns it off",
            ran.err,
        )
        assert announced, ran.err
        assert ran.json["benchmarks"][0]["judge"]["model"] == "gpt-4.1-mini"
        assert ran.json["vf_eval"]["reward"]["avg"] == 1
        assert Path("runs/r/verdicts.jsonl").exists()
        assert "sk-judge" not in ran.out + ran.err


def test_no_judge_turns_the_judge_off(
    env: Keju, monkeypatch: pytest.MonkeyPatch, endpoint: FaultyEndpoint
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
    words = ("vf-eval", "bixbench", "-a", OPEN, "-r", "1", "--json", "--run-id", "r")
    ran = env(*words, "--no-judge")
    assert ran.code == 0, ran.err
    assert "the judge of open answers" not in ran.err
    assert ran.json["benchmarks"][0]["grader"] == "exact"
    assert not Path("runs/r/verdicts.jsonl").exists()
    judge_args = (
        OPEN[:-1] + ', "llm_judge_model": "j", "llm_judge_base_url": "' + endpoint.url + '"}'
    )
    judged_run = env("vf-eval", "bixbench", "-a", judge_args, "-r", "1", "--run-id", "s")
    assert f"the judge of open answers is j at {endpoint.url}" in judged_run.err


def test_exact_comparison_that_was_asked_for_asks_no_judge(
    env: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
    args = json.dumps({"answer_mode": "open", "no_judge": "exact"})
    ran = env("vf-eval", "bixbench", "-a", args, "-r", "1", "--json", "--run-id", "r")
    assert ran.code == 0, ran.err
    assert json.loads(Path("runs/r/manifest.json").read_text())["config"].get("judge") is None
    assert not Path("runs/r/verdicts.jsonl").exists()


def test_a_judge_named_later_takes_the_place_of_exact_comparison(
    env: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyEndpoint(Plan(answers="some prose of 5 or 6 words")) as candidate:
        model_flags = ("-b", candidate.url, "-r", "1", "--json", "--run-id", "r")
        exact_run = env("vf-eval", "bixbench", "-a", OPEN, *model_flags)
    assert "OPENAI_API_KEY is not set, so there is no judge" in exact_run.err
    assert exact_run.json["benchmarks"][0]["metrics"]["accuracy"]["value"] == 0
    with FaultyEndpoint(Plan(answers="<grade>correct</grade>")) as judge:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
        judged = env("judge", "r", "--model", "j", "--api-url", judge.url, "--json", "-q")
    assert judged.code == 0, judged.err
    entry = judged.json["benchmarks"][0]
    assert entry["metrics"]["accuracy"]["value"] == 1
    assert "the judge of the task takes the place of no_judge" in entry["warnings"]


def test_an_address_of_the_judge_that_is_none_is_one_line(env: Keju) -> None:
    args = json.dumps({"answer_mode": "open", "llm_judge_base_url": "nonsense"})
    ran = env("vf-eval", "bixbench", "-a", args, "-r", "1")
    assert ran.code == 2
    assert ran.err.startswith("keju: error: -a: llm_judge_base_url must begin with http://")
    assert len(ran.err.splitlines()) == 1


def test_the_seed_moves_the_options_unless_the_arguments_set_it(env: Keju) -> None:
    def orders(*flags: str) -> list[Any]:
        run = f"run{len(list(Path().glob('runs/*')))}"
        assert env("vf-eval", "bixbench", "-r", "1", "--run-id", run, *flags).code == 0
        records = Path("runs", run, "records.jsonl").read_text().splitlines()
        return sorted((json.loads(r)["id"], json.loads(r)["order"]) for r in records)

    assert orders("--seed", "1") != orders()
    assert orders("--seed", "1", "-a", '{"seed": 42}') == orders()


def test_the_canary_is_in_no_output(env: Keju, tmp_path: Path) -> None:
    ran = env("vf-eval", "bixbench", "-r", "1", "-s")
    assert CANARY not in ran.out + ran.err
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert len(files) >= 4
    for path in files:
        assert CANARY not in path.read_text()


def test_any_benchmark_can_be_named(env: Keju) -> None:
    ran = env("vf-eval", "demo", "-m", "scripted", "-n", "2", "-r", "1", "-s")
    assert ran.code == 0, ran.err
    assert "env=demo model=scripted provider=local episodes=12\n" in ran.out
    match = REWARD.search(ran.out)
    assert match is not None
    assert 0 <= float(match[1]) <= 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("bixbnech",), "unknown benchmark 'bixbnech' (did you mean 'bixbench'?)"),
        (("bixbench", "-a", "{"), "-a is not valid JSON"),
        (("bixbench", "-a", '{"max_turns": 3}'), "has an effect only with mode 'agentic'"),
        (("bixbench", "-a", '{"mod": "x"}'), "-a: unknown key 'mod' (did you mean 'mode'?)"),
        (("bixbench", "-r", "0"), "repeats: input should be greater than 0"),
    ],
)
def test_mistakes_are_one_line(env: Keju, argv: tuple[str, ...], message: str) -> None:
    ran = env("vf-eval", *argv)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_lines_of_the_reward() -> None:
    assert reward_lines(RewardSummary(0.2, 0.4, 5, 0, 0)) == ["reward/avg=0.20 std=0.40"]
    assert reward_lines(RewardSummary(None, None, 0, 2, 1)) == [
        "reward/avg=null std=null",
        "without a reward: 2 ungraded, 1 error (the mean is over 0)",
    ]


def test_open_answers_that_stay_ungraded_are_not_said_to_be_compared(env: Keju) -> None:
    settings = OPEN.replace("}", ', "no_judge": "ungraded"}')
    ran = env("vf-eval", "bixbench", "-a", settings, "-r", "1", "--json")
    assert "no rule decides stay ungraded" in ran.err
    assert "exact match" not in ran.err


def test_a_run_is_not_graded_against_other_data(
    env: Keju, tmp_path: Path, endpoint: FaultyEndpoint
) -> None:
    assert env("vf-eval", "bixbench", "-a", OPEN, "-r", "1", "--run-id", "r").code == 0
    before = Path("runs/r/results.json").read_bytes()
    changed = [FLAT[0] | {"ideal": "another"}, *FLAT[1:]]
    write(tmp_path / "data" / "bixbench" / "BixBench_v1.5.jsonl", changed)
    judged = env("judge", "r", "--model", "j", "--api-url", endpoint.url)
    resumed = env("vf-eval", "bixbench", "-a", OPEN, "-r", "1", "--run-id", "r")
    for refusal in (judged, resumed):
        assert refusal.code == 2
        assert "run 'r' has other settings (bixbench data BixBench_v1.5.jsonl: " in refusal.err
    assert Path("runs/r/results.json").read_bytes() == before


HYPOTHESIS = '{"question_source": "hypothesis", "answer_mode": "open"}'


def test_a_judge_decides_on_hypotheses_that_no_rule_can_read(
    env: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyEndpoint(Plan(answers=candidate_or_default_judge)) as shared_endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", shared_endpoint.url)
        without_key = env("vf-eval", "bixbench", "-a", HYPOTHESIS, "-r", "1", "--json")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
        judged = env("vf-eval", "bixbench", "-a", HYPOTHESIS, "-r", "1", "--json")
    assert without_key.code == judged.code == 0, judged.err
    assert without_key.json["benchmarks"][0]["outcomes"]["unparsed"] == 2
    assert judged.json["benchmarks"][0]["outcomes"]["correct"] == 2


def test_a_hypothesis_that_a_rule_reads_needs_no_judge(
    env: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_texts: list[str] = []

    def answers(question: EndpointRequest) -> str:
        asked_texts.append(question.text)
        return "True"

    with FaultyEndpoint(Plan(answers=answers)) as shared_endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", shared_endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
        ran = env("vf-eval", "bixbench", "-a", HYPOTHESIS, "-r", "1", "--json")
    assert ran.json["benchmarks"][0]["outcomes"]["correct"] == 1
    assert not any("[begin" in text or "| True" in text for text in asked_texts)


AGENTIC = '{"mode": "agentic", "max_episodes": 2, "max_turns": 10}'


def test_the_agentic_line_without_capsules_takes_turns_without_tools(env: Keju) -> None:
    conversations: list[list[str]] = []

    def answers(question: EndpointRequest) -> str:
        roles = [m["role"] for m in question.body["messages"] if m["role"] != "system"]
        conversations.append(roles)
        return "D" if len(roles) == 19 else "Let me think."

    with FaultyEndpoint(Plan(answers=answers)) as talker:
        ran = env("vf-eval", "bixbench", "-a", AGENTIC, "-b", talker.url, "-r", "1", "-s", "--json")
    assert ran.code == 0, ran.err
    assert "the model replies 10 times in a row without tools" in ran.err
    assert "keju data pull bixbench --capsules" in ran.err
    asked_conversations = [roles for roles in conversations if len(roles) > 1]
    assert len(asked_conversations) == 2 * 9
    assert max(asked_conversations, key=len) == [*(["user", "assistant"] * 9), "user"]
    entry = ran.json["benchmarks"][0]
    assert (entry["protocol"], entry["n"], entry["outcomes"]["unparsed"]) == ("environment", 2, 0)
    assert ran.json["vf_eval"]["mode"] == "agentic"
    assert entry["usage"]["requests"] >= 2


def test_tools_that_are_asked_for_need_capsules(env: Keju, tmp_path: Path) -> None:
    settings = AGENTIC.replace("}", ', "notebook": true}')
    ran = env("vf-eval", "bixbench", "-a", settings, "-r", "1")
    assert ran.code == 2
    assert "keju data pull bixbench --capsules" in ran.err
    ran = env("vf-eval", "bixbench", "-a", '{"notebook": false}', "-r", "1")
    assert "notebook has an effect only with mode 'agentic'" in ran.err
