"""A slip of the pen is told the name that is meant, and a line that can be pasted."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

EVAL = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "-q", "--no-report")


@pytest.mark.parametrize(
    ("flag", "pasted"),
    [
        (
            ("--subsets=word_sorting,dyck_languages",),
            "--dataset-args 'demo.subset_list=[word_sorting,dyck_languages]'",
        ),
        (
            ("--subset-list", "word_sorting", "dyck_languages"),
            "--dataset-args 'demo.subset_list=[word_sorting,dyck_languages]'",
        ),
        (("--shuffle", "true"), "--dataset-args demo.shuffle=true"),
        (("--top-k", "5"), "--generation-config top_k=5"),
        (("--shufle=true",), "--dataset-args demo.shuffle=true"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_setting_inside_another_has_no_flag_and_is_told_the_line_that_sets_it(
    keju: Keju, flag: tuple[str, ...], pasted: str, language: str
) -> None:
    ran = keju("--language", language, *EVAL, *flag)
    assert (ran.code, pasted in ran.err) == (2, True), ran.err
    assert keju(*EVAL, "--dry-run", *shlex.split(pasted)).code == 0


@pytest.mark.parametrize(
    ("arguments", "pasted"),
    [
        (
            ("--dataset-args", "demo.subset_list=[word_sorting,", "dyck_languages]"),
            "--dataset-args 'demo.subset_list=[word_sorting, dyck_languages]'",
        ),
        (
            ("--dataset-args=demo.subset_list=word_sorting,", "dyck_languages"),
            "--dataset-args 'demo.subset_list=word_sorting, dyck_languages'",
        ),
        (
            ("--dataset-args", "demo.subset_list=word_sorting", "demo.shuffle=true"),
            "--dataset-args 'demo.subset_list=word_sorting,demo.shuffle=true'",
        ),
        (
            ("--dataset-args", "demo.limit=1", "--dataset-args", "demo.shuffle=true"),
            "--dataset-args 'demo.limit=1,demo.shuffle=true'",
        ),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_settings_in_several_words_are_told_the_one_value_that_holds_them(
    keju: Keju, arguments: tuple[str, ...], pasted: str, language: str
) -> None:
    ran = keju("--language", language, *EVAL, *arguments)
    assert (ran.code, pasted in ran.err, "--datasets" in ran.err) == (2, True, False), ran.err
    assert keju(*EVAL, "--dry-run", *shlex.split(pasted)).code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dataset-args", "{demo:", "{limit:", "1}}"),
        ("--dataset-args", "{}", "--dataset-args", '{"demo": {"shuffle": true}}'),
    ],
)
def test_settings_that_cannot_be_put_together_are_told_the_form(
    keju: Keju, arguments: tuple[str, ...]
) -> None:
    assert "--dataset-args 'NAME.KEY=VALUE,NAME.KEY=VALUE'" in keju(*EVAL, *arguments).err


def test_an_exam_after_settings_is_no_piece_of_them(keju: Keju) -> None:
    ran = keju("eval", "-m", "scripted", "--dataset-args", "demo.limit=1", "demo")
    assert "'demo' belongs to no option: write --datasets demo;" in ran.err
    ran = keju(*EVAL, "--headers", "X-Key=sk-secret", "--headers", "X-Other=sk-other")
    assert "--headers 'KEY=VALUE,KEY=VALUE'" in ran.err
    assert "sk-" not in ran.err


@pytest.mark.parametrize(
    ("text", "subsets"),
    [("word_sorting", ["word_sorting"]), ("word_sorting, boolean_expressions", None)],
)
def test_subsets_may_stand_in_one_text_and_are_stored_as_a_list(
    keju: Keju, text: str, subsets: list[str] | None
) -> None:
    flag = f"demo.subset_list={text},demo.limit=1"
    ran = keju(*EVAL, "--run-id", "one", "--dataset-args", flag)
    assert ran.code == 0, ran.err
    manifest = json.loads(Path("runs/one/manifest.json").read_text())
    stored = manifest["config"]["dataset_args"]["demo"]
    assert stored["subset_list"] == (subsets or ["word_sorting", "boolean_expressions"])
    assert stored["limit"] == 1


@pytest.mark.parametrize(
    ("flag", "pasted"),
    [
        (("--subset", "word_sorting"), "--filter-category word_sorting"),
        (
            ("--subsets", "word_sorting,dyck_languages"),
            "--filter-category word_sorting --filter-category dyck_languages",
        ),
        (("--datasets", "demo"), "--benchmark demo"),
        (("--ids", "demo_word_sorting_0"), "--task demo_word_sorting_0"),
        (("--limit", "2"), "-s limit=2"),
        (("--generation-config", "max_tokens=64"), "-s generation_config.max_tokens=64"),
        (
            ("--generation-config=max_tokens=64,temperature=0.5",),
            "-s generation_config.max_tokens=64 -s generation_config.temperature=0.5",
        ),
        (("--generation-config", '{"max_tokens": 64}'), "-s generation_config.max_tokens=64"),
        (("--temperature", "0.5"), "-s generation_config.temperature=0.5"),
        (("--shuffle", "true", "-b", "demo"), "-s dataset_args.demo.shuffle=true"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_setting_of_a_run_from_a_file_is_told_the_line_that_sets_it(
    keju: Keju, tmp_path: Path, flag: tuple[str, ...], pasted: str, language: str
) -> None:
    (tmp_path / "task.yaml").write_text("model: scripted\ndatasets: [demo]\n")
    words = ("run", "-c", "task.yaml", "-q")
    ran = keju("--language", language, *words, *flag)
    assert (ran.code, pasted in ran.err) == (2, True), ran.err
    assert keju(*words, *shlex.split(pasted)).code == 0


def test_a_value_that_may_be_a_key_is_not_said_again(keju: Keju) -> None:
    ran = keju(*EVAL, "--api-key-var", "sk-secret")
    assert (ran.code, "sk-secret" in ran.err) == (2, False)
    assert "--judge api_key_var=VALUE" in ran.err
    ran = keju("run", "-c", "task.yaml", "--headers", "X-Key=sk-secret")
    assert (ran.code, "sk-secret" in ran.err) == (2, False)
    assert "-s headers.X-Key=VALUE" in ran.err


def test_short_flags_of_settings_inside_others_are_accepted(keju: Keju) -> None:
    flags = ("--subset", "word_sorting", "--temperature", "0.3", "--max-tokens", "64")
    more_flags = ("--top-p", "0.9", "--concurrency", "3", "--name", "short")
    assert keju(*EVAL, *flags, *more_flags).code == 0
    config = json.loads(Path("runs/short/manifest.json").read_text())["config"]
    expected = {"temperature": 0.3, "max_tokens": 64, "top_p": 0.9}
    assert {key: config["generation_config"][key] for key in expected} == expected
    assert config["dataset_args"]["demo"]["subset_list"] == ["word_sorting"]
    assert config["eval_batch_size"] == 3
    near = keju(*EVAL, "--temprature", "0")
    assert (near.code, "did you mean '--temperature'?" in near.err) == (2, True)
    assert "few_shot_num" in keju(*EVAL, "--few-shot", "1").err
    several = keju("eval", "-m", "scripted", "--datasets", "demo", "bbh", "--subset", "snarks")
    assert "Write --dataset-args 'demo.subset_list=[snarks]'" in several.err
    named = keju(*EVAL, "--name", "bbh")
    assert (named.code, "choose another name, such as bbh-1" in named.err) == (2, True)


def test_other_tools_names_of_a_setting_inside_another(keju: Keju) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", "bbh", "--num-fewshot", "2")
    assert "did you mean '--few-shot'" in ran.err


def test_the_exam_of_a_look_is_its_argument(keju: Keju) -> None:
    ran = keju("stats", "demo", "--subset", "word_sorting")
    assert "--dataset-args 'demo.subset_list=[word_sorting]'" in ran.err


@pytest.mark.parametrize("name", ["demo:word_sorting", "tracking_shuffled_objects"])
def test_a_subset_in_place_of_an_exam_is_told_how_to_choose_it(keju: Keju, name: str) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", name)
    (line,) = re.findall(r"write (--datasets .*)", ran.err)
    ran = keju("eval", "-m", "scripted", "--dry-run", "--json", *shlex.split(line))
    assert ran.code == 0, ran.err
    assert [exam["subsets"] for exam in ran.json["benchmarks"]] == [1]


@pytest.mark.parametrize(
    ("model", "suggestion"),
    [
        ("embeded", "embedded"),
        ("Embedded", "embedded"),
        ("smollm2", "embedded"),
        ("smolm2", "embedded"),
        ("script", "scripted"),
        ("sonnet", "anthropic:sonnet"),
        ("antropic:opus", "anthropic:opus"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gguff:small.gguf", "gguf:small.gguf"),
        ("small.gguf", "gguf:small.gguf"),
        ("checkpoint", "hf:checkpoint"),
    ],
)
def test_a_model_without_an_address_that_is_nearly_a_local_one(
    keju: Keju, tmp_path: Path, model: str, suggestion: str
) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").write_text("{}")
    command = ("eval", "--datasets", "demo", "--dry-run", "--model", model)
    ran = keju(*command)
    assert (ran.code, f"did you mean '{suggestion}'?" in ran.err) == (2, True), ran.err
    assert "--api-url" in ran.err
    assert keju(*command, "--api-url", "http://127.0.0.1:1/v1").code == 0  # any name is one there


def test_a_model_that_is_like_none_here_needs_an_address(keju: Keju) -> None:
    ran = keju("eval", "--datasets", "demo", "--model", "qwen:7b")
    assert "model 'qwen:7b' needs the address of its endpoint" in ran.err


@pytest.mark.parametrize(
    ("argv", "suggestion"),
    [
        ((*EVAL, "--sample", "frist"), "first"),
        ((*EVAL, "--order", "randm"), "random"),
        ((*EVAL, "--tools", "pyton"), "python"),
        ((*EVAL, "--reader", "markr"), "marker"),
        ((*EVAL, "--protocol", "leters"), "letters"),
        (("eval", "-m", "scripted", "--datasets", "bhb"), "bbh"),
        (("list", "benchmark"), "benchmarks"),
        (("completion", "bsh"), "bash"),
        (("export", "r", "--format", "cvs"), "csv"),
        (("plot", "r", "--kind", "forst"), "forest"),
        (("model", "pull", "smolm2"), "smollm2"),
        (("eval", "-m", "replay:monda", "--datasets", "demo"), "monday"),
        (("score", "monda"), "monday"),
    ],
)
def test_a_name_out_of_a_list_is_told_the_nearest(
    keju: Keju, argv: tuple[str, ...], suggestion: str
) -> None:
    keju(*EVAL, "--run-id", "monday")
    ran = keju(*argv)
    assert (ran.code, f"did you mean '{suggestion}'?" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_new_benchmark_is_told_how_it_is_installed_and_sat(keju: Keju, language: str) -> None:
    ran = keju("--language", language, "init", "benchmark", "chess", "--dir", "my exams")
    steps = [shlex.split(line, comments=True) for line in ran.out.splitlines() if line[:2] == "  "]
    pip, show, named_command, placed = steps
    assert pip == ["pip", "install", "-e", "./my exams"]
    assert show == ["keju", "show", "chess"]
    assert (Path(pip[-1]) / "pyproject.toml").is_file()
    ran = keju(*placed[1:], "-q", "--json")
    assert (ran.code, ran.json["benchmarks"][0]["name"]) == (0, "chess"), ran.err
    ran = keju(*named_command[1:])  # it is not installed yet
    assert (ran.code, shlex.join(pip) in ran.err) == (2, True), ran.err
    ran = keju("eval", "-m", "scripted", "--datasets", "./my exams")
    assert (ran.code, "pip install -e 'my exams'" in ran.err) == (2, True), ran.err


def test_list_alone_says_what_can_be_listed(keju: Keju) -> None:
    ran = keju("list")
    commands = [line.partition("#")[0].split() for line in ran.out.splitlines()[1:]]
    assert len(commands) == 6
    for command in commands:
        assert keju(*command[1:]).code == 0
    assert [row["what"] for row in keju("list", "--json").json["lists"]] == [
        command[-1] for command in commands
    ]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("list_kind", ["benchmarks", "subsets", "protocols", "models", "runs"])
def test_below_a_table_stands_what_to_do_with_it(keju: Keju, list_kind: str, language: str) -> None:
    keju(*EVAL, "--run-id", "monday")
    extra_flags = ("--benchmark", "demo") if list_kind in ("subsets", "protocols") else ()
    ran = keju("--language", language, "list", list_kind, *extra_flags)
    (command,) = re.findall(r"keju .*", ran.err)
    assert "keju" not in ran.out.split()  # a program that reads the table gets the table alone
    words = shlex.split(command)[1:]
    if list_kind == "runs":  # `keju view` serves pages until Ctrl-C
        assert words == ["view", "monday"]
        return
    executed = keju(*words)
    assert executed.code == 0, executed.err


def test_no_runs_yet_says_how_to_make_one(keju: Keju) -> None:
    ran = keju("list", "runs")
    command = re.findall(r"keju eval .*", ran.out)[0]
    assert keju(*command.split()[1:], "-q", "--no-report", "--limit", "1").code == 0


def test_listed_runs_name_their_arms_and_the_newest_is_the_next_step(keju: Keju) -> None:
    evaluate = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report", "--run-id")
    arms = '[{"name": "plain"}, {"name": "other"}]'
    assert keju(*evaluate, "a-older", "--arms", arms, "--limit", "1").code == 0
    assert keju(*evaluate, "b-newer", "--dataset-args", "demo.size=200").code == 0
    ran = keju("list", "runs")
    assert re.search(r"plain \d+\.\d\d %, other \d+\.\d\d %", ran.out)
    assert " 1,200 " in ran.out
    assert "keju view b-newer" in ran.err
    first_listed = keju("list", "runs", "--json").json["runs"][0]
    assert [type(score) for score in first_listed["scores"]] == [float, float]


def test_completion_alone_prints_a_line_for_each_shell(keju: Keju) -> None:
    ran = keju("completion")
    assert ran.code == 0
    for shell in ("bash", "zsh", "fish"):
        assert f"keju completion {shell}" in ran.out
        assert "complete" in keju("completion", shell).out


def test_a_group_alone_shows_its_commands(keju: Keju) -> None:
    ran = keju("init")
    assert (ran.code, ran.out) == (2, "")
    assert "keju init benchmark chess" in ran.err
    assert ran.err.splitlines()[-1].startswith("keju: error: 'keju init' needs one of its commands")


def test_doctor_examines_the_model_that_is_named(keju: Keju) -> None:
    checks = {row["name"]: row for row in keju("doctor", "-m", "scripted", "--json").json["checks"]}
    assert checks["model"]["status"] == "ok"
    ran = keju("doctor", "-m", "embeded", "--json")
    checks = {row["name"]: row for row in ran.json["checks"]}
    assert (ran.code, checks["model"]["status"]) == (2, "missing")
    assert "did you mean 'embedded'?" in checks["model"]["remedy"]


@pytest.mark.parametrize(
    ("setting", "form"),
    [
        ("generation_config=max_tokens=64", "-s generation_config.max_tokens=VALUE, or {max_"),
        ("budget=3", "-s budget."),
        ("headers=s3cret", "-s headers.KEY=VALUE, or {KEY: VALUE} in a file"),
        ("sandbox=docker", "-s sandbox."),
        ("generation_config.extra_body=s3cret", "-s generation_config.extra_body.KEY=VALUE"),
    ],
)
def test_a_setting_with_keys_names_the_form_that_is_taken(
    keju: Keju, setting: str, form: str
) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", "demo", "-s", setting, "--dry-run")
    assert ran.code == 2
    assert f"{setting.partition('=')[0]}: it takes keys with values: write {form}" in ran.err
    assert "s3cret" not in ran.err


@pytest.mark.parametrize("place", ["runs", "else/where"])
def test_a_resumed_run_is_told_of_by_paths_as_they_are_typed_here(
    keju: Keju, tmp_path: Path, place: str
) -> None:
    first_run = keju(*EVAL[:-1], "--run-id", "monday", "--work-dir", place)
    printed_folder = first_run.out.partition("run folder: ")[2]
    assert printed_folder.startswith(f"{place}/monday\nreport: {place}/monday/report.html\n")
    for file in (f"{place}/monday/manifest.json", f"{tmp_path}/{place}/monday/manifest.json"):
        resumed = keju("eval", "--config", file, "--resume", "-q")
        assert resumed.out.partition("run folder: ")[2] == printed_folder
        commands = re.findall(r"  keju (.*?)(?:  #|$)", printed_folder, re.MULTILINE)
        assert commands[0].startswith("view ")  # it shows pages until Ctrl-C
        assert all(keju(*shlex.split(command)).code == 0 for command in commands[1:])


def test_a_path_outside_of_the_current_folder_stays_whole(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keju(*EVAL, "--run-id", "monday")
    monkeypatch.chdir(tmp_path / "runs" / "monday")
    ran = keju("eval", "--config", "manifest.json", "--resume", "-q")
    assert f"run folder: {tmp_path}/runs/monday\nreport: report.html\n" in ran.out


def _next_command(err: str) -> str:
    """The command on its own line below a list."""
    return next(line for line in err.splitlines() if line.startswith("  keju ")).strip()


@pytest.mark.parametrize("list_kind", ["protocols", "subsets"])
def test_the_command_below_a_list_of_all_exams_needs_no_data_where_none_is_named(
    keju: Keju, list_kind: str
) -> None:
    _, *words = shlex.split(_next_command(keju("list", list_kind).err))
    assert keju(*words, *(["--dry-run"] if words[0] == "eval" else [])).code == 0


@pytest.mark.parametrize("list_kind", ["protocols", "subsets"])
def test_the_command_below_a_list_of_one_exam_names_the_data_that_is_not_there(
    keju: Keju, list_kind: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    err = keju("list", list_kind, "--benchmark", "bbh").err
    command = _next_command(err)
    assert command.endswith(" --data-dir DIR")
    assert "DIR is your folder of data" in err
    _, *words = shlex.split(command.replace(" DIR", f" {data_dir}"))
    assert keju(*words, *(["--dry-run"] if words[0] == "eval" else [])).code == 0
    monkeypatch.setenv("KEJU_DATA_DIR", str(data_dir))
    assert "--data-dir" not in keju("list", list_kind, "--benchmark", "bbh").err


def test_the_command_below_a_list_of_an_own_exam_names_its_path(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "my quiz.csv").write_text("question,answer\n1+1?,2\n")
    _, *words = shlex.split(
        _next_command(keju("list", "protocols", "--benchmark", "./my quiz.csv").err)
    )
    assert keju(*words).code == 0


@pytest.mark.parametrize(
    ("exams", "pasted"),
    [
        (("./sql.csv",), "--dataset-args 'sql.subset_list=[join]'"),
        (
            ("./sql.csv", "./a/sql.csv"),
            """--dataset-args '{"./sql.csv": {"subset_list": ["join"]}}'""",
        ),
        (("./my quiz.csv",), """--dataset-args '{"./my quiz.csv": {"subset_list": ["join"]}}'"""),
        (
            ("custom:题目.csv",),
            """--dataset-args '{"custom:题目.csv": {"subset_list": ["join"]}}'""",
        ),
    ],
)
def test_a_setting_of_an_exam_at_a_path_is_told_a_line_that_sets_it(
    keju: Keju, tmp_path: Path, exams: tuple[str, ...], pasted: str
) -> None:
    for exam in exams:
        path = tmp_path / exam.removeprefix("custom:")
        path.parent.mkdir(exist_ok=True)
        path.write_text("question,answer,subset\n1+1?,2,join\n2+2?,4,group\n3+3?,6,group\n")
    words = ("eval", "-m", "scripted", "--datasets", *exams)
    ran = keju(*words, "--subset-list", "join")
    assert (ran.code, pasted in ran.err) == (2, True), ran.err
    if len(exams) == 1:  # two of one name are refused for that
        ran = keju(*words, *shlex.split(pasted), "--dry-run", "--json")
        assert [exam["subsets"] for exam in ran.json["benchmarks"]] == [1], ran.err


def test_a_setting_of_an_exam_at_a_path_in_a_run_from_a_file(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "sql.csv").write_text("question,answer,subset\n1+1?,2,join\n2+2?,4,group\n")
    (tmp_path / "task.yaml").write_text("model: scripted\ndatasets: [demo]\n")
    words = ("run", "-c", "task.yaml", "-q", "-b", "./sql.csv")
    pasted = "-s dataset_args.sql.shuffle=true"
    assert pasted in keju(*words, "--shuffle", "true").err
    assert keju(*words, *shlex.split(pasted)).code == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_stand_in_says_that_it_can_use_calculators_alone(
    keju: Keju, tmp_path: Path, language: str
) -> None:
    (tmp_path / "server.py").write_text(
        "from mcp.server import MCPServer\n"
        "server = MCPServer('s')\n"
        "@server.tool()\n"
        "def look(word: str) -> str:\n"
        "    return word\n"
        "server.run()\n"
    )
    server = {"name": "s", "command": "{python}", "args": ["server.py"]}
    for subset, is_warned in (("word_sorting", True), ("multistep_arithmetic", False)):
        args = {"demo": {"subset_list": [subset]}}
        task = {"model": "scripted", "datasets": ["demo"], "dataset_args": args, "limit": 1}
        task["arms"] = [{"name": "own", "servers": [server]}]
        (tmp_path / f"{subset}.json").write_text(json.dumps(task))
        ran = keju("--language", language, "run", "-c", f"{subset}.json", "-q")
        assert (ran.code, "--model NAME --api-url URL" in ran.err) == (0, is_warned), ran.err


def test_a_run_in_place_of_an_exam_is_told_apart_from_one(keju: Keju) -> None:
    assert keju(*EVAL, "--run-id", "tuesday").code == 0
    for command in ("stats", "prompts"):
        ran = keju(command, "tuesday")
        assert (ran.code, "this command takes an exam" in ran.err) == (2, True), ran.err
        assert "此命令接受的是考试" in keju("--language", "zh", command, "tuesday").err
        assert "a run has this name" not in keju(command, "wednesday").err


@pytest.mark.parametrize(
    ("arguments", "pasted"),
    [
        (("scripted", "demo"), "--model scripted --datasets demo"),
        (("demo", "scripted"), "--model scripted --datasets demo"),
        (("qwen3-8b", "demo", "bbh"), "--model qwen3-8b --datasets demo bbh"),
        (("--datasets=demo", "--quiet", "scripted"), "--model scripted;"),
        (("--model=scripted", "demo"), "--datasets demo;"),
        (("dmo", "bbh"), "--datasets dmo bbh;"),
    ],
)
def test_a_model_and_exams_without_flags_are_told_both(
    keju: Keju, arguments: tuple[str, ...], pasted: str
) -> None:
    ran = keju("eval", *arguments)
    assert (ran.code, f"write {pasted}" in ran.err) == (2, True), ran.err
