"""``keju stats``, ``show``, ``list``, ``schema`` and ``doctor``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from keju.cli.stats import LengthStats
from keju.models.registry import OptionalExtra
from keju.solvers.sandbox.sandbox import NO_KERNEL
from keju.solvers.sandbox.supervisor import PREFIX
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint

pytestmark = pytest.mark.slow

SHAPE = {"n", "mean", "min", "max"}


def test_lengths() -> None:
    lengths = LengthStats()
    for length in (3, 1, 2, 2):
        lengths.add(length)
    assert lengths.to_document() == {"n": 4, "mean": 2.0, "min": 1, "max": 3}


def test_stats_shape(keju: Keju) -> None:
    document = keju("stats", "demo", "--json").json
    assert list(document) == ["name", "protocol", "total", "subsets"]
    assert set(document["total"]) == SHAPE
    assert all(set(statistics) == SHAPE for statistics in document["subsets"].values())
    assert (
        sum(statistics["n"] for statistics in document["subsets"].values())
        == document["total"]["n"]
    )
    lengths = [statistics["min"] for statistics in document["subsets"].values()]
    assert min(lengths) == document["total"]["min"]
    table = keju("stats", "demo").out
    assert all(name in table for name in document["subsets"])


def test_stats_of_bbh_are_the_published_ones(keju: Keju, data_dir: Path) -> None:
    ran = keju("stats", "bbh", "--data-dir", str(data_dir), "--json")
    assert ran.code == 0, ran.err
    document = ran.json
    assert document["total"] == {"n": 6511, "mean": 3307.29, "min": 1060, "max": 7885}
    assert document["subsets"]["snarks"] == {"n": 178, "mean": 3493.68, "min": 3339, "max": 3693}
    assert next(iter(document["subsets"])) == "temporal_sequences"


def test_stats_follow_the_settings(
    keju: Keju, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEJU_DATA_DIR", str(data_dir))
    args = '{"bbh": {"few_shot_num": 0, "subset_list": ["snarks"]}}'
    document = keju("stats", "bigbench-hard", "--dataset-args", args, "--json").json
    assert list(document["subsets"]) == ["snarks"]
    assert document["total"]["max"] < 3339


def test_show_has_exactly_the_published_fields(keju: Keju, data_dir: Path) -> None:
    ran = keju("show", "bbh", "--data-dir", str(data_dir), "--json")
    assert ran.code == 0, ran.err
    document = ran.json
    assert list(document) == ["input", "target", "id", "group_id", "subset_key", "metadata"]
    assert (document["target"], document["id"], document["subset_key"]) == (
        "A",
        0,
        "temporal_sequences",
    )
    assert list(document["input"][0]) == ["id", "content"]
    assert document["metadata"] == {"task_type": "multiple_choice"}


def test_show_for_people(keju: Keju, data_dir: Path) -> None:
    args = ("--subset", "SNARKS", "--index", "88", "--data-dir", str(data_dir))
    ran = keju("show", "bbh", *args)
    assert ran.code == 0, ran.err
    assert "--- user ---" in ran.out
    assert "target: " in ran.out
    assert "erratum: " in ran.out


def test_show_finds_the_published_position(keju: Keju) -> None:
    protocols = keju("show", "demo", "--subset", "word_sorting", "--index", "3", "--json").json
    assert (protocols["id"], protocols["subset_key"]) == (3, "word_sorting")
    text = keju("show", "demo", "--subset", "word_sorting", "--index", "3").out
    assert protocols["choices"][0] in text
    assert f"target: {protocols['target']}" in text


def test_the_list_of_protocols_says_what_the_c_eval_tutorial_reports_first(keju: Keju) -> None:
    protocols = keju("list", "protocols", "--benchmark", "ceval")
    (line,) = [line for line in protocols.out.splitlines() if " tutorial " in line]
    assert "reports in-context answer-only first" in line


def test_list_benchmarks_and_protocols(keju: Keju) -> None:
    names = [row["name"] for row in keju("list", "benchmarks", "--json").json["benchmarks"]]
    assert {"bbh", "mmlu_pro", "ceval", "demo"} <= set(names)
    protocols = keju("list", "protocols", "--benchmark", "demo", "--json").json["protocols"]
    assert [row["default"] for row in protocols].count(True) == 1
    readers = keju("list", "readers", "--json").json["readers"]
    assert {"robust"} <= {row["reader"] for row in readers if row["benchmark"] == "bbh"}
    table = keju("list", "benchmarks").out
    assert all(name in table for name in names)


def test_every_reader_that_a_command_takes_is_listed_with_what_it_does(keju: Keju) -> None:
    rows = keju("list", "readers", "--json").json["readers"]
    assert all(row["about"] and " " in row["about"] for row in rows)
    shared = {row["reader"] for row in rows if not row["benchmark"]}
    assert shared == {"robust", "evalscope", "inspect", "last-line", "whole-reply"}
    for exam in {row["benchmark"] for row in rows} - {""}:
        own_readers = [row for row in rows if row["benchmark"] == exam]
        assert [row["default"] for row in own_readers].count(True) == 1, exam
    keju("eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "--run-id", "r", "-q")
    readers = [
        row["reader"]
        for row in keju("list", "readers", "--benchmark", "demo", "--json").json["readers"]
    ]
    assert readers == ["marker", "robust", "evalscope", "inspect", "last-line", "whole-reply"]
    for reader in readers:
        assert keju("score", "r", "--reader", reader).code == 0
    nearest = keju("score", "r", "--reader", "none").err
    assert all(reader in nearest for reader in readers[:3]), nearest


def test_readers_of_an_exam_of_ones_own_are_described(keju: Keju) -> None:
    Path("sql.csv").write_text("question,answer\nHow many?,2\n")
    for language, description in (("en", "letter for letter"), ("zh", "逐字比较")):
        reader_table = keju(
            "list", "readers", "--benchmark", "./sql.csv", "--language", language
        ).out
        (line,) = [line for line in reader_table.splitlines() if " exact " in line]
        assert description in line


def test_list_models_says_what_is_missing(keju: Keju) -> None:
    rows = keju("list", "models", "--json").json["models"]
    for row in rows:
        assert row["ready"] == (row["needs"] == "")
    assert rows[0]["ready"]
    assert not OptionalExtra("x", ("no_such_module",)).installed
    assert OptionalExtra("x", ("no_such_module",)).remedy == "pip install 'keju[x]'"


def test_list_runs(keju: Keju) -> None:
    assert keju("list", "runs", "--json").json == {"runs": []}
    assert keju("list", "runs").out.startswith("no runs in runs yet; ")
    keju("eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "--run-id", "one", "-q")
    (row,) = keju("list", "runs", "--json").json["runs"]
    assert f"keju view {row['run']}" in keju("list", "runs").err
    assert (row["run"], row["model"], row["benchmarks"]) == ("one", "scripted", ["demo"])
    assert row["complete"] is True


def test_schema_says_what_every_setting_means(keju: Keju) -> None:
    schema = keju("schema").json
    nodes = {"TaskConfig": schema, **schema["$defs"]}
    bare = [
        f"{kind}.{name}"
        for kind, node in nodes.items()
        for name, field_schema in node.get("properties", {}).items()
        if not field_schema.get("description")
    ]
    assert bare == []
    assert schema["properties"]["seed"]["description"] == "The seed for everything that is random."


def test_schema_holds_every_setting(keju: Keju) -> None:
    schema = keju("schema").json
    assert schema["additionalProperties"] is False
    assert {"model", "datasets", "generation_config"} <= set(schema["properties"])
    reference = schema["properties"]["dataset_args"]["properties"]["bbh"]["$ref"]
    args_schema = schema["$defs"][reference.rpartition("/")[2]]
    assert "few_shot_num" in args_schema["properties"]
    assert keju("schema", "--json").json == schema


def test_doctor_names_what_is_missing_and_what_to_do(keju: Keju, tmp_path: Path) -> None:
    ran = keju("doctor", "--json")
    assert ran.code == 0
    checks = {check["name"]: check for check in ran.json["checks"]}
    assert checks["pydantic"]["status"] == "ok"
    assert checks["data folder"] == {
        "name": "data folder",
        "status": "missing",
        "found": "not named",
        "remedy": "give --data-dir DIR or set KEJU_DATA_DIR",
    }
    assert "KEJU_DATA_DIR" in keju("doctor").out
    (tmp_path / "bbh").mkdir()
    local_checks = keju("doctor", "--data-dir", ".", "--json").json["checks"]
    data = {
        check["name"]: check["status"]
        for check in local_checks
        if check["name"].startswith("data ")
    }
    assert (data["data bbh"], data["data ceval"]) == ("ok", "missing")


def test_doctor_looks_for_hubs_and_a_gpu(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB'\necho 'NVIDIA H200, 143771 MiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with FaultyEndpoint() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:9")
        checks = {check["name"]: check for check in keju("doctor", "--json").json["checks"]}
    assert checks["gpu"]["found"] == "NVIDIA H200, 143771 MiB"
    assert checks["hub huggingface"]["status"] == "ok"
    assert checks["hub modelscope"]["status"] == "missing"
    assert "connection refused" in checks["hub modelscope"]["found"]
    assert "MODELSCOPE_ENDPOINT" in checks["hub modelscope"]["remedy"]


def test_doctor_speaks_chinese_and_fits_a_narrow_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    out = keju("doctor", "--language", "zh").out
    assert "正常" in out
    assert "用 --data-dir DIR 指定" in out
    english = {"not installed", "installed", "answers", "missing", "lacks", "give", "choose"}
    assert not english & set(out.split())


def test_doctor_fails_on_what_was_asked_for(keju: Keju, tmp_path: Path) -> None:
    assert keju("doctor", "--data-dir", "absent").code == 2
    (tmp_path / "file").write_text("")
    assert keju("doctor", "--work-dir", "file").code == 2
    ran = keju("doctor", "--api-url", "http://127.0.0.1:9/v1")
    assert ran.code == 5
    assert "check --api-url" in ran.out
    assert keju("doctor", "--api-url", "nonsense").code == 2


def test_json_in_a_stream_that_holds_only_ascii(data_dir: Path) -> None:
    words = ["-m", "keju", "show", "ceval", "--data-dir", str(data_dir), "--json"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KEJU_")}
    for encoding in ("ascii", "utf-8"):
        environ = clean | {"PYTHONIOENCODING": encoding}
        ran = subprocess.run([sys.executable, *words], capture_output=True, env=environ, check=True)
        assert "答案" in json.loads(ran.stdout.decode(encoding))["input"][0]["content"]


@pytest.mark.parametrize(
    ("name", "subset_name", "subset"),
    [
        ("mmlu_pro", "Computer_Science", "computer science"),
        ("ceval", "逻辑学", "logic"),
        ("ceval", "Computer Network", "computer_network"),
        ("bbh", "Snarks", "snarks"),
    ],
)
def test_show_takes_the_names_that_subset_list_takes(
    keju: Keju, data_dir: Path, name: str, subset_name: str, subset: str
) -> None:
    ran = keju("show", name, "--subset", subset_name, "--data-dir", str(data_dir), "--json")
    assert ran.code == 0, ran.err
    assert ran.json["subset_key"] == subset


@pytest.mark.parametrize("written", ["010", "1.10", "1:30", "1e3", "yes", "0x1F", "2024-01-01"])
def test_an_answer_in_yaml_stays_as_it_is_written(written: str, keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz" / "q.yaml").write_text(f"- question: Which?\n  answer: {written}\n")
    assert keju("show", "./quiz", "--json").json["target"] == written


def test_doctor_lists_what_sandboxes_left_behind(keju: Keju) -> None:
    exited = subprocess.Popen(["true"])
    exited.wait()
    for owner, is_listed in ((exited.pid, True), (os.getpid(), False)):
        folder = Path(tempfile.gettempdir()) / f"{PREFIX}{owner}-test"
        folder.mkdir()
        try:
            checks = keju("doctor", "--json").json["checks"]
            folder_checks = [check for check in checks if str(folder) in check["found"]]
            assert [check["status"] for check in folder_checks] == ["left over"] * is_listed
        finally:
            folder.rmdir()
    assert {"sandbox bwrap", "sandbox docker", "sandbox podman"} <= {c["name"] for c in checks}


FAKE = {
    "namespaces": "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n",
    "kernel": f"#!/bin/sh\nexit {NO_KERNEL}\n",
}


@pytest.mark.parametrize(
    ("case", "english", "remedy", "found_zh"),
    [
        ("", "the program bwrap is not installed", "apt install bubblewrap", "未安装程序 bwrap"),
        (
            "namespaces",
            "cannot make a sandbox: bwrap: setting up uid map: Permission denied",
            "seccomp=unconfined",
            "无法建立沙箱：bwrap: setting up uid map: Permission denied",
        ),
        ("kernel", "lacks ipykernel", "pip install 'keju[agent]'", "缺少运行代码所需的 ipykernel"),
    ],
)
def test_doctor_says_in_words_what_bubblewrap_lacks(
    keju: Keju,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    english: str,
    remedy: str,
    found_zh: str,
) -> None:
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    place = tmp_path / "bin"
    place.mkdir()
    (place / "sh").symlink_to("/bin/sh")
    if case:
        (place / "bwrap").write_text(FAKE[case])
        (place / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    checks = {check["name"]: check for check in keju("doctor", "--json").json["checks"]}
    check = checks["sandbox bwrap"]
    assert (check["status"], english in check["found"]) == ("missing", True), check
    assert remedy in check["remedy"]
    monkeypatch.setenv("COLUMNS", "400")
    assert found_zh in keju("doctor", "--language", "zh").out
    assert checks["sandbox podman"]["found"] == "the program podman is not installed"
