"""Every wrong input gives one clear line on stderr, the right exit code, and no traceback."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

USAGE, ENDPOINT = 2, 5
RUN = ("eval", "--model", "scripted", "--datasets", "demo", "--quiet")
"""A command that is right as it stands."""
ASK = ("eval", "--datasets", "demo", "--quiet", "--model")
"""The same for another model."""


@dataclass(frozen=True)
class Case:
    """A command, what stands in its folder and environment, and what it is told."""

    argv: tuple[str, ...]
    message: str
    code: int = USAGE
    files: dict[str, str | bytes] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)


def with_config(content: str | bytes, message: str, name: str = "c.yaml") -> Case:
    """A case about a configuration file."""
    return Case((*RUN, "-c", name), message, files={name: content})


COMMANDS = [
    Case(("evl",), "unknown command 'evl' (did you mean 'eval'?); see 'keju --help'"),
    Case(("foo",), "unknown command 'foo'; see 'keju --help'"),
    Case(("version",), "unknown command 'version' (did you mean '--version'?); see 'keju --help'"),
    Case(("data", "pul"), "unknown command 'data pul' (did you mean 'pull'?); see 'keju data"),
    Case(("run",), "'keju init arms' writes one"),
    Case(
        ("stats", "gsm8k"), "demo, bigbench-hard, mmlu-pro, c-eval, fresh-bbh); for your own exam"
    ),
    Case(("stats", "gsm8k"), "give the path of its folder or file, such as ./gsm8k"),
    Case(("--json", "eval"), "expected a command before '--json'"),
    Case(("eval", "--modle", "x"), "unknown option --modle (did you mean '--model'?)"),
    Case(("eval", "-x"), "unknown option -x"),
    Case(("eval", "surplus"), "surplus"),
    Case(("eval", "--model"), "--model needs a value"),
    Case(("eval", "--model", "--datasets", "demo"), "--model needs a value"),
    Case(("eval", "--datasets", "--limit", "5"), "--datasets needs a value"),
    Case(("stats",), "NAME is missing; for example: keju stats "),
    Case(("show",), "NAME is missing; for example: keju show "),
    Case(("list", "--benchmark", "demo"), "say what to list, such as 'keju list runs'"),
    Case(
        ("list", "modles"),
        "invalid value for 'WHAT': 'modles' is not one of 'benchmarks', 'models', 'protocols', "
        "'readers', 'runs', 'subsets' (did you mean 'models'?); see 'keju list --help'",
    ),
    Case(("list", "runs", "--benchmark", "demo"), "--benchmark is for protocols and readers"),
    Case(("list", "protocols", "--benchmark", "dmo"), "unknown benchmark 'dmo'"),
    Case(("report", "nothing"), "no run 'nothing'"),
    Case(("report",), " is missing; for example: keju report "),
    Case(("score",), "give a RUN, or both --datasets NAME and --predictions FILE"),
    Case(("score", "--datasets", "demo"), "give a RUN, or both"),
    Case(("score", "nothing"), "no run 'nothing'"),
    Case(("score", "r", "--predictions", "p.jsonl"), "--predictions is for a file of predictions"),
    Case(("score", "r", "--gold", "best"), "--gold"),
    Case(("score", "--datasets", "demo", "--predictions", "p.jsonl"), "cannot read p.jsonl"),
    Case(
        ("score", "--datasets", "demo", "--predictions", "p.jsonl"),
        "p.jsonl, line 1",
        files={"p.jsonl": "{"},
    ),
    Case(("show", "demo", "--index", "99999"), "--index goes from 0 to"),
    Case(("show", "demo", "--index", "-1"), "has no question -1"),
    Case(("show", "demo", "--index", "x"), "--index"),
    Case(("show", "demo", "--subset", "word_sortin"), "did you mean 'word_sorting'?"),
    Case(("stats", "dmo"), "unknown benchmark 'dmo' (did you mean 'demo'?)"),
    Case(("stats", "demo", "--protocol", "txt"), "demo has no protocol 'txt'"),
    Case(
        ("stats", "demo", "--dataset-args", '{"bbh": {}}'),
        "names 'bbh', which this command does not run",
    ),
    Case(("stats", "demo", "--dataset-args", '{"demo": 3}'), "must be a mapping"),
    Case(("stats", "bbh", "--data-dir", "absent"), "absent"),
    Case(("doctor", "--api-key"), "--api-key needs a value"),
]
PLAN = ("plan", "demo", "--price", "input=1,output=1")
NUMBERS = [
    *(
        Case(("view", "--no-browser", f"--port={port}"), f"--port needs a port, {numbers}")
        for port in ("99999", "65536", "-1", "9" * 30, "-" + "9" * 30)
        for numbers in (f"a whole number from 0 to 65535, not '{port}'; see 'keju view --help'",)
    ),
    Case(("view", "--port", "abc"), "--port needs a whole number, not 'abc'"),
    Case((*RUN, "--metrics-port", "65536"), "metrics_port: input should be less than or equal"),
    Case((*RUN, "--until-ci", "1e-320"), "until_ci: input should be greater than or equal"),
    Case((*PLAN, "--mde", "1e-320"), "--mde: '1e-320' is beyond what is calculated with"),
    Case((*PLAN, "--max-cost", "1e308"), "--max-cost: '1e308' is beyond what is calculated with"),
    Case((*PLAN, "--margin", "1e-320"), "--margin: '1e-320' is beyond"),
    Case(("gate", "r", "--at-least", "1e-320"), "--at-least: '1e-320' is beyond"),
    Case(("show", "demo", "--index", "9" * 30), "--index: '" + "9" * 30 + "' is beyond"),
]
FLAGS = [
    Case(("eval", "--datasets", "demo"), "'model' is required: give --model"),
    Case(("eval", "--model", "scripted"), "'datasets' is required: give --datasets"),
    Case((*RUN, "--datasets", "demo"), "datasets: named twice: demo"),
    Case(("eval", "-m", "scripted", "--datasets", "dmo"), "unknown benchmark 'dmo'"),
    Case((*RUN, "--datasets", ","), "--datasets needs a value"),
    Case((*RUN, "--work-dir", "x" * 5000), "File name too long"),
    Case((*RUN, "--work-dir", "x" * 5000, "--dry-run"), "cannot be a path: File name too long"),
    Case(("compare", "x" * 5000, "y"), "File name too long"),
    Case((*RUN, "--reader", ","), "demo has no reader ''"),
    Case(("score", "--datasets", "demo", "--predictions", "p", "--reader", ","), "--reader needs"),
    Case((*RUN, "-s", 'generation_config.stop=[""]'), "generation_config.stop.0: string should"),
    Case((*RUN, "--rpm", "1e-300"), "rpm: input should be greater than or equal to 0.001"),
    Case((*RUN, "--repeats", "1000000000"), "repeats: input should be less than or equal to"),
    Case(
        (*RUN, "--repeats", "100000", "--dataset-args", '{"demo": {"size": 5000}}'),
        "more than one run can",
    ),
    Case((*RUN, "-s", 'work_dir="a\\0b"'), "-s: work_dir: holds a NUL or half a character"),
    Case((*RUN, "-s", 'model_args={a: {"b\\0": 1}}'), "model_args.a: holds a NUL"),
    Case((*RUN, "--run-id", "\udcff"), "run_id: holds a NUL or half a character"),
    Case((*RUN, "--debug"), "unknown option --debug; see 'keju eval --help'"),
    Case((*RUN, "--tasks", "bbh"), "unknown option --tasks (did you mean '--datasets'?)"),
    Case((*RUN, "--batch-size", "1"), "(did you mean '--eval-batch-size'?)"),
    Case((*RUN, "--limit", "0"), "limit: must be a whole number of at least 1"),
    Case((*RUN, "--limit", "-3"), "limit: must be"),
    Case((*RUN, "--limit", "2.5"), "limit: must be"),
    Case((*RUN, "--limit", "ten"), "--limit"),
    Case((*RUN, "--limit", "inf"), "error: limit: must be"),
    Case((*RUN, "--limit", "1e400"), "error: limit: must be"),
    Case((*RUN, "--limit", "nan"), "error: limit: must be"),
    Case((*RUN, "--limit", "1e30"), "error: limit: must be"),
    Case((*RUN, "-s", "limit=[1]"), "-s: limit: must be"),
    Case((*RUN, "-s", "limit=true"), "-s: limit: must be"),
    Case((*RUN, "-s", "seed=true"), "-s: seed: must be a number, not true"),
    Case((*RUN, "--timeout", "inf"), "timeout: input should be a finite number"),
    Case((*RUN, "--timeout", "1e300"), "timeout: input should be less than"),
    Case((*RUN, "--seed", "1" + "0" * 30), "seed: input should be less than"),
    Case((*RUN, "--rpm", "nan"), "rpm: input should be a finite number"),
    Case((*RUN, "--budget", "seconds=.inf"), "budget.seconds: input should be a finite"),
    Case((*RUN, "--sample", "random"), "sample: 'random' has an effect only with limit"),
    Case((*RUN, "--sample", "stratified"), "give --limit N"),
    Case(
        (*RUN, "--generation-config", '{"extra_body": {"x": {"y": [0, 1e999]}}}'),
        "generation_config.extra_body.x.y.1: must be a finite number",
    ),
    Case(
        (*RUN, "--generation-config", '{"extra_body": {"max_new_tokens": 9}}'),
        "give it as generation_config.max_tokens",
    ),
    Case((*RUN, "-s", "generation_config.extra_body.stream=true"), "cannot set 'stream'"),
    Case((*RUN, "--dataset-args", '{"demo": {"x": 1e999}}'), "dataset_args.demo.x: must be a fin"),
    Case((*RUN, "--seed", "1.5"), "--seed"),
    Case((*RUN, "--repeats", "0"), "repeats: "),
    Case((*RUN, "--eval-batch-size", "0"), "eval_batch_size: "),
    Case((*RUN, "--timeout", "-1"), "timeout: "),
    Case((*RUN, "--error-limit", "2"), "error_limit: "),
    Case((*RUN, "--sample", "last"), "sample: "),
    Case((*RUN, "--api", "rest"), "api: "),
    Case((*RUN, "--language", "fr"), "'--language': 'fr' is not one of"),
    Case((*RUN, "--dataset-hub", "github"), "dataset_hub: "),
    Case((*RUN, "--run-id", "../up"), "run_id: "),
    Case((*RUN, "--protocol", "txt"), "demo has no protocol 'txt'"),
    Case((*RUN, "--reader", "mark"), "demo has no reader 'mark' (did you mean 'marker'?)"),
    Case((*RUN, "--run-id", "absent", "--resume"), "no run 'absent'"),
    Case((*RUN, "--use-cache", "absent"), "no run 'absent'"),
    Case((*RUN, "--dataset-args", "{demo"), "--dataset-args is not valid JSON"),
    Case((*RUN, "--dataset-args", '{"demo": {"a": }}'), "at character 16"),
    Case((*RUN, "--dataset-args", '{"a": "\n"}'), "JSON: invalid control character at character 8"),
    Case((*RUN, "--dataset-args", "[1]"), "--dataset-args must be a JSON object"),
    Case((*RUN, "--dataset-args", '{"demo": 5}'), "dataset_args"),
    Case((*RUN, "--dataset-args", '{"demo": {}, "demo": {}}'), "'demo' is given twice"),
    Case((*RUN, "--dataset-args", '{"bbh": {}}'), "dataset_args names 'bbh', which is not run"),
    Case((*RUN, "--dataset-args", '{"demo": {"few_shots": 1}}'), "few_shot_num"),
    Case((*RUN, "--generation-config", '{"max_token": 5}'), "did you mean 'max_tokens'?"),
    Case((*RUN, "--generation-config", "temperature"), "--generation-config is not valid JSON"),
    Case((*RUN, "--generation-config", "temperature=0.5,=3"), "generation_config.temperature"),
    Case((*RUN, "--generation-config", "temperature=hot"), "generation_config.temperature: "),
    Case((*RUN, "--generation-config", "temperature=-1"), "generation_config.temperature: "),
    Case(
        (*RUN, "--generation-config", "temperature=1,temperature=0"),
        "--generation-config cannot be used: the key 'temperature' is given twice",
    ),
    Case((*RUN, "--dataset-args", f'{{"demo": {"1" * 5000}}}'), "a number has too many digits"),
    Case((*RUN, "--generation-config", '{"top_p": NaN}'), "NaN is not a JSON value"),
    Case((*RUN, "--budget", "dollars=5"), "unknown key 'budget.dollars'"),
    Case((*RUN, "--price", '{"input": -1}'), "price.input: "),
    Case((*RUN, "--judge", "strategy=llm"), "'judge.model' is required"),
    Case((*RUN, "--headers", "{bad"), "--headers is not valid JSON"),
    Case((*RUN, "--headers", '{"X-A": 1}'), "headers.X-A: "),
    Case((*RUN, "-s", "limit"), "-s limit: expected KEY=VALUE"),
    Case((*RUN, "-s", "limt=3"), "-s: unknown key 'limt' (did you mean 'limit'?)"),
    Case(
        (*RUN, "-s", "generation_config.max_token=3"), "unknown key 'generation_config.max_token'"
    ),
    Case((*RUN, "-s", "limit=[1"), "-s limit: "),
    Case((*RUN, "-s", "limit.sub=1"), "-s: limit"),
    Case((*RUN, "-s", ".limit=1"), "expected KEY=VALUE"),
]
FILES = [
    Case((*RUN, "-c", "absent.yaml"), "cannot read absent.yaml: No such file"),
    Case((*RUN, "-c", "."), "cannot read .: Is a directory"),
    with_config("", "c.yaml, line 1: is empty"),
    with_config("- bbh\n", "c.yaml, line 1: holds a list"),
    with_config("just words", "c.yaml, line 1: holds a text"),
    with_config("limit: 3\nseed: [1, 2\n", "c.yaml, line 3: "),
    with_config("limit: 3\nlimit: 4\n", "c.yaml, line 2: the key 'limit' is given twice"),
    with_config("seed: 1\n7: x\n", "c.yaml, line 2: the key '7' is not a string"),
    with_config("limit: 3\n\tseed: 4\n", "c.yaml, line 2: "),
    with_config("seed: 1\nmodel: !!python/name:os.system\n", "c.yaml, line 2: "),
    with_config(b"seed: 1\nmodel: \xff\n", "c.yaml, line 2: not UTF-8 text"),
    with_config('seed: 1\noffline: !!bool "abc"\n', "c.yaml, line 2: this is no bool"),
    with_config("seed: 1\nheaders: !!map [a]\n", "c.yaml, line 2: this is no mapping"),
    with_config(f'{{"seed": {"1" * 5000}}}', "c.json: a number has too many digits", "c.json"),
    with_config("benchmark: bbh\n", "unknown key 'benchmark' (did you mean 'datasets'?)"),
    with_config("temperature: 1\n", "(did you mean 'generation_config.temperature'?)"),
    with_config("sampel_size: 3\n", "c.yaml: unknown key 'sampel_size'"),
    with_config("limit: 0\n", "c.yaml: limit: must be a whole number"),
    with_config("limit: yes\n", "c.yaml: limit: must be a whole number"),
    with_config("timeout: .inf\n", "c.yaml: timeout: input should be a finite number"),
    with_config("repeats: true\n", "c.yaml: repeats: must be a number, not true"),
    with_config('{"limit": 1e999}', "c.json: limit: must be a whole number", "c.json"),
    with_config("eval-batch-size: 3\neval_batch_size: 4\n", "given twice, in two spellings"),
    with_config("generation_config: hot\n", "generation_config: "),
    with_config("dataset_args: {bbh: {}}\n", "dataset_args names 'bbh', which is not run"),
    with_config('{"limit": 3,\n}', "c.json, line 2: not valid JSON", "c.json"),
    with_config('{"limit": 3,\n\t"limit": 4}', "c.json, line 2: the key 'limit'", "c.json"),
    with_config("[1]", "c.json, line 1: holds a list", "c.json"),
]
ENVIRONMENT = [
    Case(RUN, "KEJU_LIMT (did you mean 'KEJU_LIMIT'?)", environ={"KEJU_LIMT": "3"}),
    Case(("stats", "demo"), "KEJU_DATADIR (did you mean", environ={"KEJU_DATADIR": "x"}),
    Case(("list", "runs"), "KEJU_WORKDIR (did you mean", environ={"KEJU_WORKDIR": "x"}),
    Case(RUN, "KEJU_LIMIT: limit: must be", environ={"KEJU_LIMIT": "0"}),
    Case(RUN, "KEJU_SEED: seed: ", environ={"KEJU_SEED": "x"}),
    Case(RUN, "'generation_config' is a mapping", environ={"KEJU_GENERATION_CONFIG": "{}"}),
    Case(RUN, "KEJU_RESUME: resume: ", environ={"KEJU_RESUME": "maybe"}),
]
MODELS = [
    Case(("eval", "-m", "x", "--datasets", "demo", "-q"), "give --api-url or set OPENAI_BASE_URL"),
    Case(("eval", "-m", "", "--datasets", "demo", "-q"), "-m needs a value"),
    Case((*ASK, "replay:absent"), "no stored run 'absent'"),
    Case((*ASK, "x", "--api-url", "localhost:8000"), "api_url must begin with http"),
    Case((*RUN, "--model-args", "n_ctx=5"), "model_args has no effect on model 'scripted'"),
    Case((*RUN, "--api-url", "http://h"), "api_url has no effect on model 'scripted'"),
    Case((*RUN, "--api-key", "sk-1"), "api_key has no effect on model 'scripted'"),
    Case(
        (*RUN, "-s", "generation_config.extra_headers.a=b"),
        "generation_config.extra_headers has no effect on model 'scripted'",
    ),
    Case((*ASK, "x", "--api-url", "http://127.0.0.1:9/v1"), "cannot connect", ENDPOINT),
    Case((*ASK, "x", "--api-url", "http://h", "--ca-file", "no.pem"), "ca_file no.pem"),
    Case((*RUN, "--work-dir", "file"), "cannot create file", files={"file": "x"}),
]

QUIZ = ("eval", "--model", "scripted", "--datasets", "./quiz", "--quiet")
BROKEN_GZIP = gzip.compress(b"{}" * 1000)[:12] + b"\xff" * 20
"""A gzip file that is damaged behind its head."""
ROW = "question,A,B,answer\nq?,x,y,A\n"
"""A file of questions that is right as it stands."""


def with_quiz(files: dict[str, str | bytes], message: str, *flags: str) -> Case:
    """A case about an exam in a folder."""
    return Case(
        (*QUIZ, *flags), message, files={f"quiz/{name}": content for name, content in files.items()}
    )


EXAMS = [
    Case(QUIZ, "no exam at quiz"),
    Case((*QUIZ[:4], "custom:", "-q"), "holds no questions"),
    Case((*QUIZ[:4], "custom:absent", "-q"), "no exam at absent"),
    Case((*QUIZ[:4], "quiz", "-q"), "for the exam at that path write ./quiz", files={"quiz/a": ""}),
    with_quiz({"q.txt": "?"}, "quiz holds no questions: expected a CSV"),
    with_quiz({"q.csv": "question,A,B,answer\nq?,x,y,C\n"}, "quiz/q.csv, row 1: the answer 'C'"),
    with_quiz({"q.csv": "a,b\n1,2\n"}, "quiz/q.csv, row 1: 'question' is missing"),
    with_quiz({"q.jsonl": '{"question": "q?"}\n{"question"'}, "quiz/q.jsonl, line 2"),
    with_quiz({"q.json": "{}"}, "quiz/q.json holds no list of rows"),
    with_quiz({"q.yaml": "- a: 1\n- b: [\n"}, "quiz/q.yaml, line"),
    with_quiz({"q.csv": ROW, "exam.yaml": "knd: free"}, "unknown key 'knd' (did you mean 'kind'?)"),
    with_quiz({"q.csv": ROW, "exam.yaml": "kind: free"}, "row 1 has options"),
    with_quiz({"q.csv": ROW, "exam.yaml": "reader: exact"}, "is not for questions with options"),
    with_quiz({"q.csv": ROW, "exam.yaml": "few_shot: 2"}, "2 worked examples asked for"),
    with_quiz({"q.csv": ROW, "exam.yaml": "template: '{q}'"}, "unknown placeholder '{q}'"),
    with_quiz({"q.csv": ROW, "few_shot.csv": "question,A,B\nq?,x,y\n"}, "needs an 'answer'"),
    with_quiz({"q.csv": ROW}, "at most 2 options", "--rotate-options", "3"),
    with_quiz({"q.csv": "question,answer\nq?,x\n"}, "without options", "--rotate-options", "2"),
    with_quiz({"q.csv": ROW}, "'few_shots'", "--dataset-args", '{"./quiz": {"few_shots": 1}}'),
    with_quiz(
        {"q.csv": ROW}, "no subset 'y'", "--dataset-args", '{"./quiz": {"subset_list": ["y"]}}'
    ),
    Case((*RUN, "--rotate-options", "0"), "rotate_options: "),
    Case((*RUN, "--rotate-options", "9"), "demo has at most 4 options"),
]
AFTERWARDS = [
    Case(("verify",), "give the folder that holds the recorded outputs"),
    Case(("verify", "--data-dir", "absent"), "absent has no folder 'golden'"),
    Case(("verify", "more"), "more"),
    Case(
        ("verify", "--data-dir", "."),
        "golden/bbh/x_golden.json has no matching x_predictions.jsonl",
        files={"golden/bbh/x_golden.json": "{}"},
    ),
    Case(
        ("verify", "--data-dir", "."),
        "no rule to verify 'bhb' (did you mean 'bbh'?)",
        files={"golden/bhb/x_golden.json": "{}", "golden/bhb/x_predictions.jsonl": "{}"},
    ),
    Case(
        ("score", "--datasets", "demo", "--predictions", "p.jsonl.gz"),
        "p.jsonl.gz is not a whole gzip file: ",
        files={"p.jsonl.gz": BROKEN_GZIP},
    ),
    Case(("export",), " is missing; for example: keju "),
    Case(("export", "nothing"), "no run 'nothing'"),
    Case(("export", "r", "--format", "xlsx"), "--format"),
    Case(("export", "r", "--format", "parquet"), "name the file to write with -o FILE"),
    Case(("export", "r", "--json"), "--json reports on a file"),
    Case(("export", "r", "--fill", "A"), "--fill is for --format submission, not for csv"),
    Case(("export", "r", "--partial"), "--partial is for --format submission"),
    Case(("export", "r", "--format", "submission", "--full-text"), "--full-text has no place"),
    Case(("modes", "a"), " is missing; for example: keju "),
    Case(("modes", "a", "b"), "no run 'a'"),
    Case(("init", "benchmark"), " is missing; for example: keju "),
    Case(("init", "benchmark", "Chess"), "'Chess' cannot be the name of a benchmark"),
    Case(("init", "benchmark", "bbh"), "there is a benchmark 'bbh' already"),
    Case(("init", "benchmark", "chess"), "chess exists and is not empty", files={"chess/x": ""}),
    Case(("init", "benchmark", "chess", "--dir", "x"), "x exists", files={"x": ""}),
    Case(("init", "config"), "keju.yaml exists", files={"keju.yaml": ""}),
    Case(("init", "config", "-o", "x/y"), "cannot write x/y", files={"x": ""}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [*COMMANDS, *NUMBERS, *FLAGS, *FILES, *ENVIRONMENT, *MODELS, *EXAMS, *AFTERWARDS],
    ids=lambda case: f"{' '.join(case.argv)[-40:]} {case.message[:20]}",
)
def test_wrong_input_is_told_in_one_line(
    case: Case, keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in case.files.items():
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    for variable, value in case.environ.items():
        monkeypatch.setenv(variable, value)
    code, out, err = keju(*case.argv)
    assert case.message in err
    assert err.startswith("keju: error: ")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    assert "internal error" not in err
    assert code == case.code
    assert bool(out) == ("--json" in case.argv)
