"""What commands say: numbers and words that fit, names that can be typed, files as they are named."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import pytest

from keju.benchmarks import registry
from keju.errors import Notice, did_you_mean
from keju.messages import catalogue, text_of
from keju.runs.run import make_run_id
from tests.cli.conftest import Keju
from tests.support.chinese_text import HALF_WIDTH, PROGRAM

pytestmark = pytest.mark.slow

DEMO = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report", "--limit", "2")


def test_one_is_said_as_one() -> None:
    singular, plural = (Notice("damaged_lines", {"lines": lines}).text() for lines in (1, 2))
    assert singular == "1 line of the journal cannot be read: it counts as not asked"
    assert plural == "2 lines of the journal cannot be read: they count as not asked"
    assert "1 题没有预测" in Notice("missing_predictions", {"missing": 1, "whole": 2}).text("zh")


@pytest.mark.parametrize(
    ("datasets", "model", "words"),
    [
        (["."], "scripted", "my-quiz-scripted"),
        (["../my quiz/"], "gguf:/models/tiny.gguf", "my-quiz-gguf-tiny.gguf"),
        (["custom:./考试"], "hf:Qwen/Qwen3", "custom-考试-hf-Qwen3"),
        (["demo", "bbh"], "a//b", "demo-bbh-b"),
        (["quiz.csv"], "qwen", "quiz-qwen"),
        (["./my quiz.csv.gz"], "qwen", "my-quiz-qwen"),
        (["demo", "bbh", "gsm8k", "aime"], "b", "demo-bbh-2-more-b"),
    ],
)
def test_a_run_is_named_by_the_folder_of_its_exam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, datasets: list[str], model: str, words: str
) -> None:
    (tmp_path / "my quiz").mkdir()
    monkeypatch.chdir(tmp_path / "my quiz")
    assert make_run_id(model, datasets) == words
    assert len(make_run_id("考" * 300, datasets).encode()) <= 200


def test_all_settings_that_are_wrong_are_named(keju: Keju) -> None:
    Path("c.yaml").write_text("model: x\ndatasets: demo\nlimit: many\nrepeats: lots\n", "utf-8")
    assert "(also wrong: repeats)" in keju("eval", "-c", "c.yaml").err
    err = keju("eval", "-c", "c.yaml", "-s", "seed=x", "-s", "rpm=y", "-s", "tpm=z").err
    assert "(also wrong: repeats, seed, rpm, tpm)" in err
    assert "also" not in keju("eval", "-m", "x", "--datasets", "demo", "-s", "limit=many").err


def test_what_is_valid_is_listed_in_one_order() -> None:
    assert did_you_mean("zzz", {"b", "c", "a"}) == " (valid: a, b, c)"


def test_names_of_a_list_may_have_blanks(keju: Keju) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", "demo, nonsense", "-q")
    assert ran.err.startswith("keju: error: unknown benchmark 'nonsense'")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("-o", "a.jsonl", "--format", "csv"), "a.jsonl is named for another format than"),
        (("-o", "a.xlsx"), "a.xlsx: Keju does not know this suffix. Use one of .csv, "),
    ],
)
def test_a_file_that_is_named_for_another_format_is_refused(
    keju: Keju, argv: tuple[str, ...], message: str
) -> None:
    keju(*DEMO, "--run-id", "r")
    ran = keju("export", "r", *argv)
    assert (ran.code, message in ran.err, Path(argv[1]).exists()) == (2, True, False)


def test_the_suffix_of_a_file_is_its_format(keju: Keju) -> None:
    keju(*DEMO, "--run-id", "r")
    for name in ("a.jsonl", "a.csv", "plain"):
        assert keju("export", "r", "-o", name).code == 0
    rows = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert len(rows) == 12
    assert Path("a.csv").read_bytes() == Path("plain").read_bytes()


def test_a_run_with_flags_of_an_exam_says_what_to_give(keju: Keju) -> None:
    keju(*DEMO, "--run-id", "r")
    ran = keju("show", "r", "--subset", "word_sorting")
    assert ran.code == 2
    words = shlex.split(ran.err.strip().rpartition("such as ")[2])
    assert keju("show", "r", *words).code == 0
    error = keju("show", "nonsense", "--work-dir", "kept").err
    assert "unknown benchmark 'nonsense'" in error
    assert error.endswith("; no run in kept has this name either\n")
    error = keju("show", "nonsense", "--language", "zh").err
    assert error.endswith("；runs 中也没有这个名字的运行\n")


def test_warnings_name_the_run_itself(keju: Keju, data_dir: Path, tmp_path: Path) -> None:
    """The command in a warning can be typed as it stands, wherever the run is."""
    args = '{"ceval": {"split": "test", "subset_list": ["logic"]}}'
    ran = keju(
        "eval", "-m", "scripted", "--datasets", "ceval", "--dataset-args", args, "-q", "--limit", "2",
        "--data-dir", str(data_dir), "--work-dir", "other runs", "--run-id", "r", "--no-report",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.out.splitlines() if "warning: no score" in line]
    command = line.partition("with ")[2].partition(", since")[0]
    assert command == "keju export 'other runs/r' --format submission --partial"
    assert keju(*shlex.split(command)[1:], "-o", "s.json").code == 0
    assert "RUN" not in ran.out


def test_nobody_was_asked_for_a_file_of_predictions(keju: Keju) -> None:
    Path("p.jsonl").write_text('{"subset": "word_sorting", "index": 0, "output": "(A)"}')
    argv = ("score", "--datasets", "demo", "--predictions", "p.jsonl")
    assert keju(*argv, "--json").json["benchmarks"][0]["usage"]["requests"] == 0
    assert "request" not in keju(*argv).out


def test_a_short_run_took_some_time(keju: Keju) -> None:
    output = keju(*DEMO, "--run-id", "r").out
    assert "12 requests (0 of them retries)" in output
    assert " 0 s for the whole run" not in output


PLUGIN = """
from keju import Benchmark, Protocol, Question, Wording, by_name, reader

@reader
def whole(text, sample):
    return text.strip()

def questions(setup):
    yield Question("1 + 1?", "2")
    {body}

SUMS = Benchmark(
    name="sums", title="Sums", about="additions", questions=questions, readers=by_name(whole),
    protocols=by_name(Protocol(
        name="plain", version="1", reader="whole", about="as it is",
        wording=Wording(question="{template}"),
    )),
)
"""


@pytest.mark.parametrize(
    ("body", "template", "message"),
    [
        ("raise ValueError('odd')", "{question}", "(sums_exam.py, line 10): ValueError: odd"),
        ("pass", "{qestion}", "question: unknown placeholder '{qestion}' (did you mean"),
    ],
)
def test_a_plug_in_that_is_wrong_is_one_line(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, body: str, template: str, message: str
) -> None:
    text = PLUGIN.replace("{body}", body).replace("{template}", template)
    names = {"__name__": "sums_exam"}
    exec(compile(text, "sums_exam.py", "exec"), names)
    monkeypatch.setattr(registry, "get", lambda _: names["SUMS"])
    ran = keju("eval", "-m", "scripted", "--datasets", "sums", "-q")
    assert ran.code == 2, ran.err
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_terminal_speaks_chinese_and_documents_stay_english(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    ran = keju(*DEMO, "--run-id", "a")
    for words in ("协议 text@1", "95 % 置信区间", "随机水平", "注意：", "接下来可以："):
        assert words in ran.out
    wrong = keju("eval", "-m", "scripted", "--datasets", "demoo")
    assert wrong.err == "keju: 错误：未知的考试“demoo”（是否指“demo”？）\n"
    error_document = keju("eval", "-m", "scripted", "--datasets", "demoo", "--json").json["error"]
    assert error_document["message"] == "unknown benchmark 'demoo' (did you mean 'demo'?)"
    (entry,) = keju("score", "a", "--json").json["benchmarks"]
    assert all(warning.isascii() for warning in entry["warnings"])


ENGLISH = {"the", "of", "and", "rows", "with", "not", "was", "is", "wrote", "files", "questions"}
"""Words that no Chinese sentence has."""


def test_commands_speak_chinese_throughout(keju: Keju, tmp_path: Path) -> None:
    logs = Path(__file__).parents[1] / "interop" / "imports" / "fixtures"
    data = ("--data-dir", str(logs / "data"))
    assert keju(*DEMO, "--run-id", "one").code == 0
    for words in (
        ("import", str(logs / "opencompass" / "split"), *data, "--run-id", "two"),
        ("data", "list", *data),
        ("stats", "demo"),
        ("prompts", "demo", "-o", "texts"),
        ("export", "one", "-o", "answers.csv"),
        ("rm", "one", "--yes"),
    ):
        ran = keju(*words, "--language", "zh")
        assert ran.code == 0, (words, ran.err)
        output = ran.out + ran.err
        assert not ENGLISH & set(output.replace(str(tmp_path), "").split()), output
        assert any("\u4e00" <= character <= "\u9fff" for character in output), words


def test_what_is_missing_is_not_called_wrong(keju: Keju) -> None:
    assert "'model' is required (also missing: datasets):" in keju("eval").err
    assert "缺少“model”（还缺少：datasets）" in keju("eval", "--language", "zh").err


def test_exams_are_listed_in_the_language_of_the_terminal(keju: Keju) -> None:
    table = keju("list", "benchmarks", "--language", "zh").out
    for name in registry.names():
        (line,) = (line for line in table.splitlines() if line.startswith(f"{name} "))
        assert any("\u4e00" <= character <= "\u9fff" for character in line), line
    benchmarks = keju("list", "benchmarks", "--language", "zh", "--json").json["benchmarks"]
    assert benchmarks[-1]["about"].startswith("generated reasoning questions")


@pytest.mark.parametrize("list_kind", ["protocols", "subsets", "models", "readers"])
def test_what_is_listed_is_described_in_the_language_of_the_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, list_kind: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    table, english = (
        keju("list", list_kind, "--language", language).out for language in ("zh", "en")
    )
    rows = keju("list", list_kind, "--language", "zh", "--json").json[list_kind]
    described = [row["about"] for row in rows if row["about"]]
    assert described
    for about in described:  # documents stay English
        assert about in english
        assert about not in table


def test_the_doctor_names_what_it_examines_in_the_language_of_the_terminal(keju: Keju) -> None:
    words = ("doctor", "-m", "scripted", "--language", "zh", "--data-dir", ".")
    check_names = [row["name"] for row in keju(*words, "--json").json["checks"]]
    english = {"extra data", "gpu", "data folder", "hub modelscope", "sandbox bwrap", "model"}
    assert english <= {*check_names}, check_names
    table = keju(*words).out
    for name in (
        "GPU",
        "数据文件夹",
        "数据站 modelscope",
        "缓存文件夹",
        "工作文件夹",
    ):
        assert re.search(f"^(正常|缺少) +{name} ", table, re.M), name
    for name in ("软件包", "可选组件", "沙箱 bwrap", "模型"):
        assert re.search(f"^(正常|缺少) +{name} ", table, re.M), name
    kinds = "extras?|packages|data|hub|cache|work|sandbox|model|gpu"
    assert not re.search(rf"^\S+ +({kinds})\b", table, re.M)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("eval -m scripted --datasets bbh", "没有 bbh 的数据：没有从数据站下载过；"),
        ("eval -m scripted --datasets bbh --data-dir .", "：. 中没有文件夹“bbh”，没有从数据站"),
        ("eval -m embedded --datasets demo", "模型“embedded”需要可选组件："),
        ("eval -m scripted --datasets demo --run-id r --limit 1", "（limit：已存 2，现为 1）"),
        ("merge r other -o both", "（seed：42 / 9；demo seed：42 / 9）"),
        ("eval -m scripted --datasets demo -c none.yaml", "none.yaml：没有这个文件或文件夹"),
        (
            "eval -m scripted --datasets demo -c broken.yaml",
            "broken.yaml，第 2 行：不是有效的 YAML",
        ),
        ("score --datasets demo --predictions p.jsonl", "p.jsonl，第 2 行：该行没有"),
        ("data path demo", "demo 没有文件夹：其题目为内置"),
        ("show r --sample demo_word_sorting_0 --arm x", "（有：无）"),
    ],
)
def test_reasons_are_told_in_the_language_of_the_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, argv: str, message: str
) -> None:
    monkeypatch.setattr("keju.models.llama.model.find_spec", lambda _: None)
    row = '{"subset": "word_sorting", "index": 0, "output": "(A)"}\n'
    Path("p.jsonl").write_text(row + '{"subset": "word_sorting"}\n')
    Path("broken.yaml").write_text("model: x\nlimit: ]\n")
    assert keju(*DEMO, "--run-id", "r").code == 0
    if argv.startswith("merge"):
        assert keju(*DEMO, "--run-id", "other", "--seed", "9").code == 0
    monkeypatch.delenv("KEJU_DATA_DIR", raising=False)
    ran = keju(*argv.split(), "--language", "zh")
    assert ran.code != 0
    assert message in ran.err


def test_a_run_that_grows_says_so_in_the_language_of_the_terminal(keju: Keju) -> None:
    assert keju(*DEMO, "--run-id", "r").code == 0
    grown_eval = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "3", "--run-id", "r")
    assert (
        "运行继续（limit：已存 2，现为 3）"
        in keju(*grown_eval, "--dry-run", "--language", "zh").out
    )
    notices = keju(*grown_eval, "--dry-run", "--language", "zh", "--json").json["notices"]
    assert notices[0]["values"]["differences"] == "limit: stored 2, asked 3"
    assert "运行继续（limit：已存 2，现为 3）" in keju(*grown_eval, "--language", "zh").err


def test_weights_are_described_in_the_language_of_the_terminal(keju: Keju) -> None:
    assert "每个权重 4 位" in keju("model", "list", "--language", "zh").out
    about = keju("model", "list", "--language", "zh", "--json").json["models"][0]["about"]
    assert about == "SmolLM2-135M-Instruct, 4 bits a weight"


def test_tokens_have_one_name_in_chinese(keju: Keju) -> None:
    output = keju(*DEMO, "--dry-run", "--language", "zh").out
    assert "输入词元" in output
    for text in catalogue("zh").values():
        assert " token" not in re.sub(r"--?[a-z_-]*tokens?", "", text), text


@pytest.mark.parametrize(
    ("setting", "english", "chinese"),
    [
        ("until_ci=5", "input should be less than 0.5", "应小于 0.5"),
        ("repeats=0", "input should be greater than 0", "应大于 0"),
        ("few_shot_num=x", "input should be a valid integer, unable to parse", "应为整数"),
        ("timeout=x", "input should be a valid number, unable to parse", "应为一个数"),
        ("run_id=/", "it should begin with a letter or a digit", "应以字母或数字开头"),
        (
            "ray.address=a/b",
            "it should be auto, local or HOST:PORT",
            "应为 auto、local 或 HOST:PORT",
        ),
    ],
)
def test_a_setting_out_of_range_is_refused_in_the_language_of_the_terminal(
    keju: Keju, setting: str, english: str, chinese: str
) -> None:
    if setting.startswith("few_shot_num"):
        setting = f"dataset_args.demo.{setting}"
    words = ("eval", "-m", "scripted", "--datasets", "demo", "-s", setting)
    assert english in keju(*words).err
    assert chinese in keju(*words, "--language", "zh").err


def test_commands_on_a_page_name_the_run_as_the_terminal_does(keju: Keju) -> None:
    eval_words = (
        "eval",
        "-m",
        "scripted",
        "--datasets",
        "demo",
        "--run-id",
        "r",
        "-q",
        "--repeats",
        "9",
    )
    out = keju(*eval_words, "--work-dir", "demo").out
    page = html.unescape(Path("demo/r/report.html").read_text("utf-8"))
    commands = set(re.findall(r"<code>(keju [^<]*)</code>", page))
    commands |= {
        line.split("  #")[0].strip() for line in out.splitlines() if line.startswith("  keju ")
    }
    assert any("--full-text" in command for command in commands)
    for command in commands:
        words = shlex.split(command)[1:]
        assert "demo/r" in words, command
        if words[0] != "view":  # `keju view` serves pages until Ctrl-C
            assert keju(*words).code == 0, command


def test_a_run_that_is_resumed_is_named_as_at_first(keju: Keju) -> None:
    eval_words = (
        "eval",
        "-m",
        "scripted",
        "--datasets",
        "demo",
        "--limit",
        "2",
        "--run-id",
        "c1",
        "-q",
    )
    first_output = keju(*eval_words).out
    resumed_output = keju("eval", "--config", "runs/c1/manifest.json", "--resume", "-q").out
    for out in (first_output, resumed_output):
        commands = [line.strip() for line in out.splitlines() if line.startswith("  keju ")]
        assert {shlex.split(line)[2] for line in commands} == {"c1"}


def test_lines_in_chinese_have_its_punctuation(keju: Keju) -> None:
    evaluate = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "6", "--language", "zh")
    plain_run, dry_run = (
        keju(*evaluate, "--run-id", run, "--seed", seed) for run, seed in (("a", "1"), ("b", "2"))
    )
    assert "36/36（100 %），准确率 " in plain_run.err
    assert re.search(
        r"（微平均）：[\d.]+ %（95 % 置信区间 [\d.–]+），n 36；区间方法：", plain_run.out
    )
    commands = (
        "compare a b", "gate a --baseline b --margin 0.05", "gate a --at-least 0.5", "audit a",
        "audit a b", "list protocols", "score a --reader none", "import none.json",
        "eval -m scripted --datasets demo --sample none", "export a --format none", "data",
    )  # fmt: skip
    ran = [keju(*argv.split(), "--language", "zh") for argv in commands]
    for ran_command in (plain_run, dry_run, *ran):
        for line in (ran_command.out + ran_command.err).splitlines():
            assert not HALF_WIDTH.search(line.removeprefix(PROGRAM)), line
    assert "必须是“first”、“random”、" in ran[-3].err


# `12 s`, `2 min 05 s`, `1 h 00 min`.
LATIN_UNITS = re.compile(r"\d (?:s|min|h)\b")


def test_times_in_chinese_have_its_units(keju: Keju, tmp_path: Path) -> None:
    """Progress, summary, forecast, plan and page."""
    chinese = ("--language", "zh")
    evaluate = ("eval", "-m", "scripted", "--datasets", "demo", *chinese)
    ran = [keju(*evaluate, "--run-id", "a"), keju(*evaluate, "--seed", "2", "--dry-run")]
    journal = tmp_path / "runs" / "a" / "records.jsonl"
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    for line in lines:
        line["reply"]["seconds"] = 200.0
        line.pop("crc", None)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    ran.append(keju("plan", "demo", "--pilot", "a", *chinese))
    for ran_command in ran:
        assert ran_command.code == 0, ran_command.err
        assert not LATIN_UNITS.search(ran_command.out + ran_command.err), (
            ran_command.out + ran_command.err
        )
    assert re.search(r"已用时间 [\d.]+ 秒", ran[0].err)
    assert re.search(r"整次运行 [\d.]+ 秒", ran[0].out)
    assert re.search(r"\n时间 +\d+ 分钟 \d+ 秒 ", ran[-1].out)
    assert "Time" not in ran[-1].out
    page = (tmp_path / "runs" / "a" / "report.html").read_text("utf-8")
    visible_page = re.sub(
        r'<style.*?</style>|<span lang="en">.*?</span>', "", page, flags=re.DOTALL
    )
    assert not LATIN_UNITS.search(visible_page)


def test_the_row_of_a_file_is_said_in_the_language_of_the_terminal(
    keju: Keju, tmp_path: Path
) -> None:
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz" / "wrong.csv").write_text("question,answer\n,B\n")
    assert "wrong.csv, row 1: " in keju("show", "./quiz").err
    assert "wrong.csv，第 1 行：" in keju("--language", "zh", "show", "./quiz").err


def test_a_fact_is_named_without_stray_blanks_in_chinese() -> None:
    """It may begin and end with letters of either script."""
    values = {"base": "a", "arm": "b", "run": "a", "baseline": "b", "name": "a", "hint": ""}
    fact = Notice("fact_setting", {"name": "few_shot_num"})
    for code in (
        "compare_unlike_plainly",
        "gate_unlike_plainly",
        "until_baseline_unlike_plainly",
        "run_made_with_other",
    ):
        sentence = text_of(code, values | {"fact": fact}, "zh")
        assert "：设置 few_shot_num" in sentence
