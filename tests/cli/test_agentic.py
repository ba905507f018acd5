"""BixBench's agentic mode from end to end: capsules, cells in the real sandbox, answers, grades."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox import memory
from keju.solvers.sandbox import sandbox as sandbox_module
from keju.solvers.sandbox.sandbox import Sandbox
from tests.benchmarks.bixbench.conftest import write
from tests.cli.conftest import Keju, Ran
from tests.support.agentic import ROWS, SUM, Model, analyst, make_data
from tests.support.endpoint import FaultyEndpoint
from tests.support.notebooks import PIXEL
from tests.support.replies import Plan
from tests.support.tools import calling

pytestmark = [pytest.mark.usefixtures("_a_sandbox"), pytest.mark.slow]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def env(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model
) -> Iterator[Keju]:
    """The command with two capsules and the scripted model."""
    make_data(tmp_path / "data" / "bixbench")
    monkeypatch.setenv("KEJU_DATA_DIR", str(tmp_path / "data"))
    with FaultyEndpoint(Plan(answers=model, raw=model.raw)) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        yield keju


def evaluate(env: Keju, *flags: str, rollouts: int = 1, **settings: Any) -> Ran:
    args = json.dumps({"mode": "agentic", **settings})
    numbers = ("-n", "-1", "-r", str(rollouts))
    return env("vf-eval", "bixbench", "-a", args, *numbers, "--json", *flags)


def entry(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    first_entry: dict[str, Any] = ran.json["benchmarks"][0]
    return first_entry


def records(ran: Ran) -> list[dict[str, Any]]:
    lines = Path(ran.json["folder"], "records.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def stops(ran: Ran) -> list[str]:
    return [record["reply"]["episode"]["stop"] for record in records(ran)]


def test_every_command_of_the_environment_s_page(
    env: Keju, model: Model, seeds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's own text, with capsules in KEJU_DATA_DIR: the agentic command works as well.

    Its key is that of the default judge, which the same endpoint serves.
    """
    page = (seeds / "verifiers-bixbench.md").read_text("utf-8")
    lines = "\n".join(re.findall(r"```bash\n(.*?)```", page, re.DOTALL)).splitlines()

    def reply(question: str, results: list[str]) -> Any:
        if "<grade>" in str(model.bodies[-1]["messages"]):
            return "<grade>correct</grade>"
        return analyst(question, results) if "tools" in model.bodies[-1] else "B"

    model.script = reply
    command_count = 0
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["export"]:
            monkeypatch.setenv(*words[1].split("=", 1))
        elif words:
            assert words[:4] == ["uv", "run", "vf-eval", "bixbench"]
            ran = env(*words[2:])
            assert ran.code == 0, (line, ran.err)
            assert ("mode=agentic" in ran.out) == ("agentic" in line)
            assert ("reward/avg=" in ran.out) == ("-s" in words)
            command_count += 1
    assert command_count == 8
    episodes = [path.parent.name for path in Path("runs").glob("*/episodes/*/notebook.ipynb")]
    ids = Counter(name.rpartition(".")[0] for name in episodes)
    assert ids == {"bixbench_bix-1-q1": 3, "bixbench_bix-1-q2": 3}


def test_the_id_of_a_question_cannot_lead_out_of_the_run(env: Keju, tmp_path: Path) -> None:
    rows = [ROWS[0] | {"question_id": "../../../../out"}]
    write(tmp_path / "data" / "bixbench" / "BixBench_v1.5.jsonl", rows)
    ran = evaluate(env)
    assert ran.code == 0, ran.err
    (notebook,) = tmp_path.rglob("notebook.ipynb")
    assert notebook.parents[1] == Path(ran.json["folder"]).absolute() / "episodes"
    assert not (tmp_path.parent / "out.0").exists()


@pytest.mark.parametrize(
    ("settings", "n"),
    [
        ({}, 3),
        ({"answer_mode": "open"}, 3),
        ({"question_source": "hypothesis", "answer_mode": "open"}, 2),
        ({"question_source": "hypothesis"}, 2),
    ],
)
def test_a_model_that_analyses_is_right(env: Keju, settings: dict[str, Any], n: int) -> None:
    if "question_source" in settings:
        rows = [row | {"answer": False} for row in ROWS]
        write(Path("data/bixbench/BixBench_v1.5.jsonl"), rows)
    ran = evaluate(env, **settings)
    assert entry(ran)["outcomes"]["correct"] == n
    assert stops(ran) == ["submitted"] * n


def test_a_majority_of_rollouts_is_right_where_one_is_not(env: Keju, model: Model) -> None:
    """Of three rollouts of each question one submits another option, as in the paper's vote."""
    started_counts: Counter[str] = Counter()

    def wavers(question: str, results: list[str]) -> Any:
        started_counts[question] += not results
        message = analyst(question, results)
        (call,) = message["message"]["tool_calls"]
        if call["function"]["name"] == "submit_answer" and started_counts[question] == 2:
            right = json.loads(call["function"]["arguments"])["answer"]
            return calling(("submit_answer", {"answer": "B" if right == "A" else "A"}))
        return message

    model.script = wavers
    ran = evaluate(env, "-c", "1", rollouts=3, max_episodes=2)
    metrics = entry(ran)["metrics"]
    assert metrics["accuracy"]["value"] == pytest.approx(2 / 3)
    assert (metrics["majority_vote"]["value"], metrics["majority_vote"]["n"]) == (1.0, 2)
    assert Counter(stops(ran)) == {"submitted": 6}
    assert len(list(Path(ran.json["folder"]).glob("episodes/*/notebook.ipynb"))) == 6


def test_an_episode_that_the_endpoint_ended_is_worked_on_again_later(
    env: Keju, model: Model
) -> None:
    model.refuses = lambda question, results: "mean" in question and len(results) == 2
    broken = evaluate(env, "--run-id", "r")
    assert broken.code == 4
    outcomes = json.loads(broken.out)["benchmarks"][0]["outcomes"]
    assert (outcomes["correct"], outcomes["error"]) == (2, 1)
    assert Counter(stops(broken)) == {"submitted": 2, "provider_error": 1}
    model.refuses, before = None, len(model.bodies)
    resumed = evaluate(env, "--run-id", "r")
    assert entry(resumed)["outcomes"]["correct"] == 3
    resumed_bodies = [
        body for body in model.bodies[before:] if "tools" in body and len(body["messages"]) > 1
    ]
    assert all("mean of column a" in json.dumps(body) for body in resumed_bodies)
    assert stops(resumed)[-1] == "submitted"


def test_capsules_may_be_zip_files(env: Keju) -> None:
    place = Path("data/bixbench/capsules")
    for short in ("bix-1", "bix-2"):
        shutil.make_archive(str(place / short), "zip", place / short)
        shutil.rmtree(place / short)
    ran = evaluate(env, answer_mode="open")
    assert entry(ran)["outcomes"]["correct"] == 3
    left_out = [record["reply"]["episode"]["facts"]["data"]["left_out"] for record in records(ran)]
    assert left_out == [["Notebook/solution.ipynb"]] * 3


@pytest.mark.parametrize("with_images", [False, True])
def test_pictures_are_shown_where_the_settings_say_so(
    env: Keju, model: Model, with_images: bool
) -> None:
    draw = f"from IPython.display import Image; import base64\nImage(base64.b64decode('{PIXEL}'))"

    def draws(question: str, results: list[str]) -> Any:
        submission = calling(("submit_answer", {"answer": "42"}))
        return submission if results else calling(("edit_cell", {"contents": draw}))

    model.script = draws
    ran = evaluate(env, max_episodes=1, answer_mode="open", images=with_images)
    parts = [part for message in model.bodies[-1]["messages"] for part in message["content"] or ()]
    urls = [
        part["image_url"]["url"] for part in parts if isinstance(part, dict) and "image_url" in part
    ]
    assert [url[:22] for url in urls] == ["data:image/png;base64,"] * with_images
    assert ("AVOID USING PLOTS" in json.dumps(model.bodies[-1])) is not with_images
    assert records(ran)[0]["reply"]["episode"]["facts"]["images"] == 1


def test_the_episode_is_kept_with_its_notebook_and_its_facts(env: Keju) -> None:
    ran = evaluate(env, max_episodes=1)
    (record,) = records(ran)
    episode = record["reply"]["episode"]
    assert [turn["role"] for turn in episode["turns"]][:4] == [
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    workdir_listing = json.loads(episode["turns"][1]["text"])
    assert workdir_listing == {"files": ["table.csv"]}
    facts = episode["facts"]
    assert facts["cells"] == 3
    assert facts["data"]["left_out"] == ["Notebook/solution.ipynb"]
    assert facts["kernel"]["backend"] == "bwrap"
    assert facts["kernel"]["network"] == "none"
    assert facts["kernel"]["exit"] == "closed"
    assert facts["kernel"]["peak_memory"] > 0
    place = Path(ran.json["folder"], "episodes", f"{record['id']}.0", "notebook.ipynb")
    read: Any = nbformat.read
    notebook = read(place, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source == SUM
    assert "42" in str(notebook.cells[2].outputs)


async def _speaks_r() -> bool:
    async with Sandbox(Settings()) as sandbox:
        return await sandbox.can_run("r")


def statistician(question: str, results: list[str]) -> Any:
    """Works in R, with a cell of bash between."""
    turns = [
        "t <- read.csv('table.csv')",
        '%%bash\necho "lines: $(wc -l < table.csv)"\nfalse',
        "if (grepl('mean', 'QUESTION')) mean(t$a) else if (grepl('gene', 'QUESTION')) "
        "t$gene[2] else sum(t$a)".replace("QUESTION", question.partition("<questions>")[2][:80]),
    ]
    if len(results) < len(turns):
        return calling(("edit_cell", {"contents": turns[len(results)].replace("\n\n", " ")}))
    computed = results[-1].splitlines()[-1].removeprefix("[1] ").strip('"')
    return calling(("submit_answer", {"answer": computed}))


def test_a_model_works_in_r(env: Keju, model: Model) -> None:
    if not asyncio.run(_speaks_r()):
        pytest.skip("no R with IRkernel here")
    model.script = statistician
    ran = evaluate(env, language="r", answer_mode="open")
    assert entry(ran)["outcomes"]["correct"] == 3
    record, *_ = records(ran)
    episode = record["reply"]["episode"]
    tool_texts = [turn["text"] for turn in episode["turns"] if turn["role"] == "tool"]
    assert "lines: 4\n" in tool_texts[1]
    assert "bash ended with exit code 1" in tool_texts[1]
    assert episode["facts"]["kernel"]["language"] == "r"
    manifest = json.loads(Path(ran.json["folder"], "manifest.json").read_text())
    assert manifest["arms"][""]["sources"]["sandbox"]["r"].startswith("R version")
    place = Path(ran.json["folder"], "episodes", f"{record['id']}.0", "notebook.ipynb")
    assert json.loads(place.read_text())["metadata"]["kernelspec"]["name"] == "ir"


def test_r_that_is_not_there_is_refused_before_anything_is_asked(
    env: Keju, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "R_TRIAL", "library(NoSuchPackage)")
    ran = evaluate(env, language="r")
    assert ran.code == 2
    assert "kernels of R cannot be started in the sandbox bwrap" in ran.json["error"]["message"]
    assert model.bodies == []


def test_few_episodes_share_the_whole_memory(env: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 10 * memory.GIB)
    ran = evaluate(env, max_episodes=2)
    assert "2 of 3 examples x 1 rollout = 2 episodes, at most 2 at once" in ran.err
    manifest = json.loads(Path(ran.json["folder"], "manifest.json").read_text())
    (arm,) = manifest["arms"].values()
    sandbox = arm["sources"]["sandbox"]
    assert (sandbox["at_once"], sandbox["memory"]) == (2, 3 * memory.GIB)


def test_the_notebook_is_shown_after_each_turn_and_nothing_of_the_gold(
    env: Keju, model: Model
) -> None:
    evaluate(env, max_episodes=1, answer_mode="open")
    last_body = json.dumps(model.bodies[-1])
    assert "### Cell 2:" in last_body
    assert "### Output 2:" in last_body
    assert "the solution" not in last_body
    assert "solution.ipynb" not in last_body


def test_at_the_limit_of_turns_the_answer_is_asked_for_in_text(env: Keju, model: Model) -> None:
    def never(question: str, results: list[str]) -> Any:
        if model.bodies[-1].get("tool_choice") == "none":
            return "42"
        return calling(("edit_cell", {"contents": "1"}))

    model.script = never
    ran = evaluate(env, max_turns=2, max_episodes=1, answer_mode="open")
    assert stops(ran) == ["forced_answer"]
    assert entry(ran)["outcomes"]["correct"] == 1
    last_body = model.bodies[-1]
    assert all(body["tools"] == last_body["tools"] for body in model.bodies[2:])


def test_a_model_that_calls_no_tool_is_reminded_and_then_done(env: Keju, model: Model) -> None:
    def talker(question: str, results: list[str]) -> Any:
        return "The answer is 42."

    model.script = talker
    ran = evaluate(env, max_episodes=1, answer_mode="open")
    assert stops(ran) == ["no_tool_call"]
    assert 1 < len(model.bodies) < 10


def test_a_wrong_tool_and_a_wrong_answer_are_sent_back(env: Keju, model: Model) -> None:
    def clumsy(question: str, results: list[str]) -> Any:
        turns = [
            calling(("run_shell", {"command": "ls"})),
            calling(("edit_cell", {"cell": "1"})),
            calling(("submit_answer", {"answer": "no idea"})),
            calling(("submit_answer", {"answer": "no idea"})),
        ]
        return turns[len(results)]

    model.script = clumsy
    ran = evaluate(env, max_episodes=1)
    turns = records(ran)[0]["reply"]["episode"]["turns"]
    kinds = [turn.get("kind", "ok") for turn in turns if turn["role"] == "tool"]
    assert kinds == ["unknown_tool", "bad_arguments", "bad_arguments", "ok"]
    assert entry(ran)["outcomes"]["correct"] == 0


def test_a_cell_that_takes_too_long_is_interrupted_and_the_episode_goes_on(
    env: Keju, model: Model
) -> None:
    def slow(question: str, results: list[str]) -> Any:
        turns = [
            calling(("edit_cell", {"contents": "kept = 42"})),
            calling(("edit_cell", {"contents": "while True: pass"})),
            calling(("edit_cell", {"contents": "print(kept)"})),
        ]
        if len(results) < 3:
            return turns[len(results)]
        return calling(("submit_answer", {"answer": results[-1].splitlines()[-1]}))

    model.script = slow
    ran = evaluate(env, max_episodes=1, docker_timeout=3, answer_mode="open")
    assert entry(ran)["outcomes"]["correct"] == 1
    assert records(ran)[0]["reply"]["episode"]["facts"]["kernel"]["timeouts"] == 1


def test_the_time_of_a_cell_is_the_exam_s_or_the_sandbox_s_and_is_recorded(
    env: Keju, model: Model
) -> None:
    def waits(question: str, results: list[str]) -> Any:
        submission = calling(("submit_answer", {"answer": "42"}))
        sleep = calling(("edit_cell", {"contents": "import time; time.sleep(600)"}))
        return submission if results else sleep

    model.script = waits
    limit = ("--sandbox", "cell_timeout=2")
    setting_choices: list[dict[str, Any]] = [{}, {"docker_timeout": 1}]
    for settings, seconds in zip(setting_choices, (2, 1), strict=True):
        ran = evaluate(env, *limit, max_episodes=1, answer_mode="open", **settings)
        (record,) = records(ran)
        assert f"[the cell ran for {seconds} s and was interrupted]" in json.dumps(record)
        manifest = json.loads(Path(ran.json["folder"], "manifest.json").read_text())
        (arm,) = manifest["arms"].values()
        assert arm["sources"]["sandbox"]["cell_timeout"] == seconds


@pytest.mark.parametrize(
    ("settings", "flags", "problem"),
    [
        ({}, ["--sandbox", "backend=bwrap"], "ask for a container, the sandbox's settings for 'b"),
        ({}, ["--unsafe-no-sandbox"], "ask for a container, the sandbox's settings for 'none'"),
        (
            {"docker_image": "x:1"},
            ["--sandbox", "backend=podman,image=y:1"],
            "name the image 'x:1', the sandbox's settings 'y:1'",
        ),
    ],
)
def test_settings_of_containers_that_contradict_each_other_are_refused(
    env: Keju, model: Model, settings: dict[str, Any], flags: list[str], problem: str
) -> None:
    ran = evaluate(env, *flags, enable_agentic_docker=True, **settings)
    assert (ran.code, problem in ran.err, model.bodies) == (2, True, []), ran.err


def test_code_that_kills_its_kernel_is_no_error_of_the_exam(env: Keju, model: Model) -> None:
    def suicidal(question: str, results: list[str]) -> Any:
        if len(results) < 3:
            return calling(("edit_cell", {"contents": "import os; os._exit(3)"}))
        return calling(("submit_answer", {"answer": "42"}))

    model.script = suicidal
    ran = evaluate(env, max_episodes=1, answer_mode="open")
    assert entry(ran)["outcomes"]["correct"] == 1
    assert "not started again" in json.dumps(model.bodies[-1])
    # The kernel is started once more; the third cell finds it gone and is not run.
    episode = records(ran)[0]["reply"]["episode"]
    kinds = [turn.get("kind", "ok") for turn in episode["turns"] if turn["role"] == "tool"]
    assert kinds == ["server_crash", "server_crash", "server_crash", "ok"]
    facts = episode["facts"]
    assert (facts["cells"], facts["cells_run"], facts["kernel"]["cells"]) == (3, 2, 2)
    assert (facts["kernel"]["exit"], facts["kernel"]["deaths"]) == ("exit", 2)


BREAKS = {
    "locked": "import os; os.chmod('.', 0); os._exit(3)",
    "nested": "import os\nfor _ in range(1400): os.mkdir('d'); os.chdir('d')",
    "shadowed": "import os\nopen('signal.py', 'w').write('raise SystemExit')\nos._exit(3)",
}


@pytest.mark.parametrize("damage", list(BREAKS))
def test_a_model_cannot_choose_to_be_ungraded(env: Keju, model: Model, damage: str) -> None:
    def saboteur(question: str, results: list[str]) -> Any:
        calls = [("edit_cell", {"contents": BREAKS[damage]}), ("list_workdir", {})]
        if len(results) < len(calls):
            return calling(calls[len(results)])
        return calling(("submit_answer", {"answer": "41"}))

    model.script = saboteur
    ran = evaluate(env, max_episodes=1, answer_mode="open")
    outcomes = entry(ran)["outcomes"]
    assert (outcomes["incorrect"], outcomes["error"]) == (1, 0)
    assert stops(ran) == ["submitted"]


def test_a_capsule_may_hold_files_named_like_modules(env: Keju) -> None:
    for name in ("random", "signal", "zmq"):
        Path(f"data/bixbench/capsules/bix-1/Data/{name}.py").write_text("raise SystemExit\n")
    assert entry(evaluate(env, max_episodes=1))["outcomes"]["correct"] == 1


def test_missing_capsules_are_one_line_with_the_command_that_gets_them(env: Keju) -> None:
    Path("data/bixbench/capsules").rename("elsewhere")
    settings = '{"bixbench": {"mode": "agentic"}}'
    ran = env("eval", "-m", "m", "--datasets", "bixbench", "--dataset-args", settings)
    assert ran.code == 2, ran.err
    assert "keju data pull bixbench --capsules" in ran.err
    assert not list(Path().glob("runs/*"))
    ran = evaluate(env)
    assert ran.code == 0, ran.err
    assert "without tools" in ran.err
    assert "keju data pull bixbench --capsules" in ran.err
    ran = evaluate(env, "--capsules", "elsewhere")
    assert entry(ran)["outcomes"]["correct"] == 3


def test_a_broken_capsule_is_an_error_of_its_questions_alone(env: Keju) -> None:
    Path("data/bixbench/capsules/bix-2/Data/link").symlink_to("/etc")
    ran = evaluate(env)
    document = json.loads(ran.out)["benchmarks"][0]
    assert ran.code == 4
    assert document["outcomes"]["error"] == 1
    assert document["outcomes"]["correct"] == 2
    assert "is a link" in document["errors"]["example"]
