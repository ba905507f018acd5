"""All options of the command line, declared once as the rows of one table.

A command uses a row by its name: as a parameter of its function, or in its list of settings (see
`keju.cli.command`). To add a flag, add a row here and its name to the command. A row called
``judge.model`` replaces ``model`` in ``keju judge`` only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

MODEL, EXAMS, TOOLS, PACE, RUN = "Model", "Exams", "Tools", "Pace and limits", "Run"
ARGUMENTS, PLAIN = "Arguments", "Options"
DATA, ENDPOINT, JUDGE, OUTPUT = "Data", "Endpoint", "Judge", "Output"
MAPPING = "JSON"
"""Metavar of flags with a mapping as value, in JSON or as ``key=value,key=value``."""
ADDRESS = "URL"
"""Metavar of flags with addresses as values. Addresses may contain a password and commas."""
MAPPINGS = "JSON,..."
"""Metavar of flags with a JSON list of mappings as value."""
FILE = "FILE"
"""Metavar of flags with a file to read or to write."""
PORT = "PORT"
"""Metavar of flags with a port."""


class OptionRow(NamedTuple):
    """One row: a flag, or an argument if the spelling is a word such as ``RUN``."""

    name: str
    metavar: str
    """The name of the value in the help. With ``X...`` all words up to the next flag are values."""
    help: str
    kind: Any = str
    """str, int, float, bool (a flag without a value), list (repeatable), or the choices."""
    default: Any = None
    spelling: str = ""
    """``--model -m``; by default from the name. An argument such as ``[RUN]`` is optional."""
    field: str = ""
    """The field of `TaskConfig` that it sets, e.g. ``generation_config.temperature``."""
    variable: str = ""
    """An environment variable with the same effect."""
    panel: str = ""
    """Its group in the help."""

    @property
    def flags(self) -> list[str]:
        """The spellings of a flag, the usual one first; empty for an argument."""
        short_name = self.name.rpartition(".")[2]
        spellings = (self.spelling or "--" + short_name.replace("_", "-")).split()
        return spellings if spellings[0].startswith("-") else []


def _setting(name: str, metavar: str, help: str, kind: Any = str, spelling: str = "") -> OptionRow:
    """Return the row for a field of `TaskConfig`."""
    return OptionRow(name, metavar, help, kind, spelling=spelling, field=name)


_PANELS: dict[str, tuple[OptionRow, ...]] = {
    ARGUMENTS: (
        OptionRow("run", "", "A run: its folder or its id.", spelling="RUN"),
        OptionRow("runs", "", "Runs: their folders or ids.", list, spelling="RUN..."),
        OptionRow("report.runs", "", "A run, or several to compare.", list, spelling="RUN..."),
        OptionRow(
            "followed",
            "",
            "A plan, a run, or a folder of runs; the work folder by default.",
            spelling="[NAME]",
        ),
        OptionRow("score.run", "", "A run: its folder or its id.", spelling="[RUN]"),
        OptionRow("name", "", "A benchmark; see 'keju list'.", spelling="NAME"),
        OptionRow("data verify.name", "", "A benchmark; see 'keju list'.", spelling="[NAME]"),
        OptionRow("init benchmark.name", "", "The name of the benchmark.", spelling="NAME"),
        OptionRow("weights", "", "A model; see 'keju model list'.", spelling="NAME"),
        OptionRow("env", "", "A benchmark; see 'keju list'.", spelling="ENV"),
        OptionRow("log", "", "A log file, or a run's folder.", spelling="LOG"),
        OptionRow(
            "what",
            "",
            "One of: benchmarks, models, protocols, readers, runs, subsets.",
            ("benchmarks", "models", "protocols", "readers", "runs", "subsets"),
            spelling="[WHAT]",
        ),
        OptionRow("show.name", "", "A benchmark, or a stored run.", spelling="NAME"),
        OptionRow(
            "view.folder",
            "",
            "Folder of runs, or one run by folder or id; --work-dir by default.",
            spelling="[DIR]",
        ),
        OptionRow(
            "shell", "", "One of: bash, zsh, fish.", ("bash", "zsh", "fish"), spelling="[SHELL]"
        ),
        OptionRow(
            "sources",
            "",
            "Runs (folder or id), other tools' logs, files of predictions; the first is the base.",
            list,
            spelling="A B...",
        ),
        OptionRow("left_source", "", "A run, log or file of predictions.", spelling="A"),
        OptionRow("right_source", "", "Another one.", spelling="B"),
        OptionRow("answer_only", "", "The run that answered at once.", spelling="RUN_AO"),
        OptionRow("cot", "", "The run with a chain of thought.", spelling="RUN_COT"),
    ),
    PLAIN: (
        OptionRow("mde", "D", "The difference to show, e.g. 0.03 for three points.", float),
        OptionRow("max_cost", "USD", "The most to spend, by the forecast's upper end.", float),
        OptionRow(
            "questions",
            "N",
            "Questions of each subset: a number, or a share below 1.",
            float,
            spelling="--limit",
        ),
        OptionRow(
            "pilot", "RUN", "A stored run of the benchmark, to forecast the cost of replies."
        ),
        OptionRow(
            "discordance",
            "SHARE",
            "Questions that only one of the two models gets right: 0.28 for models of like size, "
            "0.05 for a quantised copy; 0.28 by default.",
            float,
        ),
        OptionRow(
            "contamination",
            "",
            "A published exam and fresh questions of its kinds: does the model know the first?",
            bool,
        ),
        OptionRow("port", PORT, "Port of the pages; 0 takes a free one.", int, 8123),
        OptionRow("host", "HOST", "Address to listen at.", default="127.0.0.1"),
        OptionRow("no_browser", "", "Print the address and open no browser.", bool),
        OptionRow("wheel", "WHEEL", "Take them out of this wheel; no download.", spelling="--from"),
        OptionRow("baseline", "RUN", "The run to be no worse than; with --margin."),
        OptionRow("margin", "M", "By how much it may be worse, e.g. 0.01 for a point.", float),
        OptionRow("at_least", "X", "The least score, e.g. 0.7.", float),
        OptionRow("junit", FILE, "Also write JUnit XML."),
        OptionRow("markdown", FILE, "Also write Markdown, for a pull request."),
        OptionRow("badge", FILE, "Also write a badge, as SVG."),
        OptionRow("yes", "", "Do not ask.", bool, spelling="--yes -y"),
        OptionRow("call", "TOOL JSON...", "Call a tool, with these arguments.", list),
        OptionRow("everything", "", "All benchmarks that are found.", bool, spelling="--all"),
    ),
    MODEL: (
        _setting(
            "model",
            "NAME",
            "Name at the endpoint, or anthropic:NAME (such as anthropic:sonnet), scripted, "
            "replay:RUN, embedded, gguf:PATH, hf:NAME.",
            spelling="--model -m",
        ),
        _setting(
            "api_url",
            ADDRESS,
            "Address of the endpoint (or OPENAI_BASE_URL, ANTHROPIC_BASE_URL); several share "
            "the work.",
            list,
        ),
        _setting("endpoints", MAPPINGS, "Several endpoints with settings: url, weight, model, …"),
        _setting(
            "serve",
            "COMMAND",
            "Start this server for the run, e.g. 'vllm serve NAME --port {port}'.",
        ),
        _setting("api_key", "KEY", "Its key (or OPENAI_API_KEY, ANTHROPIC_API_KEY); never stored."),
        _setting("api", "ROUTE", "auto (the protocol's own), chat or completions."),
        _setting("headers", MAPPING, "Further request headers; never stored."),
        _setting("ca_file", FILE, "Certificate authority to trust, in PEM."),
        _setting("model_args", MAPPING, "Settings of a local model, e.g. n_ctx=4096."),
        _setting("generation_config", MAPPING, "Sampling, e.g. temperature=0.6, max_tokens=512."),
    ),
    ENDPOINT: (
        OptionRow("doctor.model", "NAME", "Ask it.", spelling="--model -m"),
        OptionRow("doctor.api_url", ADDRESS, "Endpoint to reach."),
        OptionRow("doctor.api_key", "KEY", "Its key (or OPENAI_API_KEY, ANTHROPIC_API_KEY)."),
    ),
    EXAMS: (
        _setting("datasets", "NAME...", "Benchmarks: a b, a,b, or repeated.", list),
        _setting(
            "limit",
            "N",
            "Questions of each subset: a number, or a share below 1; not with --total.",
            float,
        ),
        _setting("total", "N", "Questions of each benchmark in all; not with --limit.", int),
        _setting("ids", "ID...", "Only these questions, by id.", list),
        _setting("failed_of", "RUN", "Only the questions that a stored run did not get right."),
        _setting("sample", "HOW", "Which questions a limit keeps: first, random or stratified."),
        _setting("shard", "K/N", "One of N parts of the questions; see 'keju merge'."),
        _setting("repeats", "K", "Times each question is asked.", int),
        _setting("rotate_options", "K", "Ask under K rotations of the options.", int),
        _setting("until_ci", "HALF", "Stop when the score is known within HALF, e.g. 0.02.", float),
        _setting("until_decided", "BASELINE", "Stop when better or worse than a run or file."),
        _setting("capsules", "DIR", "Folder of the data that questions are worked on with."),
        _setting("dataset_hub", "HUB", "huggingface or modelscope: for data not in --data-dir."),
        _setting("offline", "", "Open no socket but the model's.", bool),
        _setting("judge", MAPPING, "A model that grades open answers, e.g. model=NAME."),
    ),
    TOOLS: (
        OptionRow("tools", "NAME", "Also with a built-in tool: python, in a sandbox.", list),
        _setting("arms", MAPPINGS, "The arms to compare: names, servers, tools."),
        _setting("agent", MAPPING, "Limits of an episode, e.g. max_iterations=15."),
        _setting("sandbox", MAPPING, "Where code of a model runs, e.g. memory=4GiB."),
        OptionRow(
            "unsafe_no_sandbox",
            "",
            "Run code of a model without any sandbox; every result says so.",
            bool,
            field="sandbox.unsafe",
        ),
    ),
    DATA: (
        _setting(
            "dataset_args",
            MAPPING,
            "Settings by benchmark, in one value: 'demo.subset_list=[word_sorting],"
            "demo.shuffle=true'.",
        ),
        _setting("protocol", "P", "Published protocol of the exam; see 'keju list protocols'."),
        _setting("reader", "R,R2", "Readers to score with; several are shown side by side."),
        _setting("order", "HOW", "Order inside a subset: auto (longest first) or random."),
        _setting("seed", "S", "Seed of all random draws; 42 by default.", int),
        _setting(
            "data_dir",
            "DIR",
            "Folder with one folder a benchmark (or KEJU_DATA_DIR).",
            spelling="--data-dir --dataset-dir",
        ),
        _setting("work_dir", "DIR", "Folder of the runs (or KEJU_WORK_DIR); 'runs' by default."),
        OptionRow(
            "dataset",
            "NAME",
            "The exam that predictions answer; one exam of a run.",
            spelling="--datasets",
        ),
        OptionRow(
            "exam",
            "NAME",
            "The exam that predictions answer; one exam of runs with several exams.",
            spelling="--datasets",
        ),
        OptionRow(
            "one_reader",
            "R",
            "Read all of them with this reader; by default each with its own.",
            spelling="--reader",
        ),
        OptionRow(
            "audit.one_reader",
            "R",
            "Take the headline from this reader; by default from the protocol's own.",
            spelling="--reader",
        ),
        OptionRow("predictions", FILE, "JSON Lines (or .gz): the sample's key and 'output'."),
        OptionRow(
            "gold",
            "",
            "Which gold answers count where a row carries its own.",
            ("recorded", "current"),
        ),
        OptionRow(
            "import.dataset",
            "NAME",
            "The benchmark, where the tool's task has another name.",
            spelling="--datasets",
        ),
        OptionRow(
            "import.reader", "R,R2", "Readers to score with; the tool's equivalent by default."
        ),
        OptionRow(
            "tool",
            "TOOL",
            "evalscope, lm-eval, inspect, opencompass or verifiers; detected by default.",
            ("evalscope", "lm-eval", "inspect", "opencompass", "verifiers"),
            spelling="--from",
        ),
        OptionRow("benchmark", "NAME", "Protocols, readers or subsets of this benchmark only."),
        OptionRow(
            "sample_id",
            "ID",
            "A stored reply: the question of this id in the run NAME.",
            spelling="--sample",
        ),
        OptionRow("arm", "NAME", "With --sample: only the replies in this arm."),
        OptionRow("subset", "S", "Its first by default."),
        OptionRow(
            "fresh.subsets",
            "S",
            "A subset; repeatable; all by default.",
            list,
            spelling="--subset",
        ),
        OptionRow("fresh.seed", "S", "Seed of the questions.", int, 42),
        OptionRow("fresh.size", "N", "Questions of each subset.", int, 50, spelling="--size -n"),
        OptionRow("fresh.difficulty", "D", "0.25 to 4; 1 is as published.", float, 1.0),
        OptionRow("fresh.lang", "", "Language of the questions.", ("en", "zh"), "en"),
        OptionRow("index", "I", "Position in the subset as published, from 0.", int, 0),
        OptionRow(
            "hub",
            "",
            "The hub; huggingface by default.",
            ("huggingface", "modelscope"),
            spelling="--from",
        ),
        OptionRow("revision", "R", "Branch, tag or commit; the pinned one by default."),
        OptionRow("repo", "OWNER/NAME", "Another copy of the data set on the hub."),
        OptionRow(
            "data pull.capsules",
            "",
            "Also the data that questions are worked on with (large).",
            bool,
        ),
        OptionRow(
            "data pull.offline",
            "",
            "Open no socket: succeed only if it is pulled already.",
            bool,
            variable="KEJU_OFFLINE",
        ),
        OptionRow("local_path", "DIR", "The benchmark's own folder."),
    ),
    PACE: (
        _setting("eval_batch_size", "C", "The most requests in flight.", int),
        _setting("timeout", "SECONDS", "Time for one attempt.", float),
        _setting("attempts", "N", "Attempts for one request, the first included.", int),
        _setting("retry_interval", "SECONDS", "Wait before the second attempt; doubles.", float),
        _setting("rpm", "N", "Requests a minute.", float),
        _setting("tpm", "N", "Tokens a minute, input and output.", float),
        _setting("give_up_after", "SECONDS", "How long an endpoint may stay down.", float),
        _setting("error_limit", "SHARE", "Share of errors above which the exit code is 4.", float),
        _setting("budget", MAPPING, "Hard limits: requests=N, tokens=N, cost=X, seconds=S."),
        _setting("price", MAPPING, "Money a million tokens: input=X, output=Y."),
        _setting("executor", "WHO", "Who asks: local (this process) or ray (actors of a cluster)."),
        _setting("ray", MAPPING, "The cluster: actors=N, cpus=N, gpus=N, patience=SECONDS."),
        OptionRow(
            "ray_address",
            "WHERE",
            "Cluster of Ray: auto (an existing one), local (a new one) or HOST:PORT.",
            field="ray.address",
        ),
    ),
    RUN: (
        _setting("run_id", "ID", "Name of the run; one that exists is resumed, and may only grow."),
        _setting("resume", "", "Require that the run exists.", bool),
        _setting("replace", "", "Start over; a run of this id is moved aside.", bool),
        _setting("use_cache", "RUN", "Reuse the replies of a stored run."),
        _setting("events", FILE, "Write what happens as JSON lines to a file or pipe."),
        _setting("metrics_port", "N", "Show the run to Prometheus on this port of loopback.", int),
        _setting("otel", "", "Send a span for each request as the OTEL_* variables say.", bool),
        OptionRow(
            "config",
            FILE,
            "Settings as YAML or JSON, or the manifest of a run.",
            spelling="--config -c",
        ),
        OptionRow(
            "overrides",
            "KEY=VALUE",
            "One setting, e.g. dataset_args.demo.shuffle=true; repeatable.",
            list,
            spelling="--set -s",
        ),
        OptionRow(
            "dry_run",
            "",
            "Check everything, show the first prompts and a forecast; ask nothing.",
            bool,
        ),
        # mcpbr's names
        OptionRow(
            "run.config",
            FILE,
            "mcpbr's config file, or Keju's with arms, as YAML or JSON.",
            spelling="--config -c",
        ),
        OptionRow(
            "run.benchmark",
            "NAME",
            "Benchmark, in place of the file's.",
            spelling="--benchmark -b",
            field="datasets",
        ),
        OptionRow(
            "size",
            "N",
            "Questions in all, spread over the subsets; in place of the file's.",
            int,
            spelling="--sample -n",
            field="total",
        ),
        OptionRow(
            "filter_category",
            "S",
            "Only this subset; repeatable, in place of the file's.",
            list,
            field="dataset_args.NAME.subset_list",
        ),
        OptionRow(
            "task",
            "ID",
            "Only this question, by its id; repeatable, in place of the file's.",
            list,
            spelling="--task -t",
            field="ids",
        ),
        OptionRow(
            "sampling_strategy",
            "",
            "Which questions -n takes: mcpbr's first ones, or random ones of all or of each "
            "subset; by default the first of each subset.",
            ("sequential", "random", "stratified"),
        ),
        OptionRow(
            "run.seed",
            "S",
            "Seed of all random draws.",
            int,
            spelling="--random-seed --seed",
            field="seed",
        ),
        OptionRow("mcp_only", "", "Only the arms with tools.", bool, spelling="--mcp-only -M"),
        OptionRow(
            "baseline_only", "", "Only the arm without tools.", bool, spelling="--baseline-only -B"
        ),
        OptionRow(
            "run.eval_batch_size",
            "C",
            "Questions at once.",
            int,
            spelling="--max-concurrent",
            field="eval_batch_size",
        ),
        OptionRow(
            "run.output",
            FILE,
            "Write the results in mcpbr's form as well.",
            spelling="--output -o",
        ),
        OptionRow("verbose", "", "A line for each question.", bool, spelling="--verbose -v"),
        # names of verifiers' vf-eval
        OptionRow("env_args", MAPPING, "Its settings.", spelling="--env-args -a"),
        OptionRow("vf-eval.model", "NAME", "The model.", spelling="--model -m", field="model"),
        OptionRow(
            "vf-eval.api_url",
            "URL",
            "Its endpoint.",
            spelling="--api-base-url -b",
            field="api_url",
        ),
        OptionRow(
            "key_var",
            "NAME",
            "Environment variable that holds the key; OPENAI_API_KEY by default.",
            spelling="--api-key-var -k",
        ),
        OptionRow(
            "examples",
            "N",
            "Examples of each subset, -1 for all; 5 by default, or as many as max_episodes says.",
            int,
            spelling="--num-examples -n",
        ),
        OptionRow(
            "rollouts",
            "R",
            "Rollouts each.",
            int,
            3,
            spelling="--rollouts-per-example -r",
            field="repeats",
        ),
        OptionRow(
            "concurrency",
            "C",
            "Requests at once.",
            int,
            spelling="--max-concurrent -c",
            field="eval_batch_size",
        ),
        OptionRow(
            "temperature",
            "T",
            "Sampling temperature; the protocol's own by default.",
            float,
            spelling="--temperature -T",
            field="generation_config.temperature",
        ),
        OptionRow(
            "max_tokens",
            "N",
            "Longest reply.",
            int,
            spelling="--max-tokens -t",
            field="generation_config.max_tokens",
        ),
        OptionRow(
            "vf-eval.seed",
            "S",
            "Seed of the order of options and of all random draws.",
            int,
            field="seed",
        ),
    ),
    JUDGE: (
        OptionRow(
            "judge.judge",
            MAPPING,
            "Settings of the judge, laid over the run's own; the flags below go first.",
            field="judge",
        ),
        OptionRow("judge.model", "NAME", "The judge.", spelling="--model -m", field="judge.model"),
        OptionRow(
            "judge.api_url",
            "URL",
            "Its endpoint; the candidate's by default.",
            field="judge.api_url",
        ),
        OptionRow(
            "judge.api_key_var", "NAME", "Variable that holds its key.", field="judge.api_key_var"
        ),
        OptionRow(
            "judge.strategy",
            "",
            "Ask about what no rule decides or the rule missed, about all, or never.",
            ("rule", "llm", "llm_recall"),
            field="judge.strategy",
        ),
        OptionRow(
            "judge.repeats",
            "K",
            "Verdicts on each answer; most decide.",
            int,
            field="judge.repeats",
        ),
        OptionRow(
            "judge.second", "NAME", "Another judge, to measure agreement.", field="judge.second"
        ),
        OptionRow(
            "judge.labelled",
            FILE,
            "JSON Lines of graded answers that measure the judge.",
            field="judge.labelled",
        ),
    ),
    OUTPUT: (
        OptionRow(
            "output",
            FILE,
            "Where to write; report.html in the run's folder by default.",
            spelling="--output -o",
        ),
        OptionRow(
            "compare.output",
            FILE,
            "Also write the comparison as one HTML page, with replies side by side.",
            spelling="--output -o",
        ),
        OptionRow(
            "plot.output",
            FILE,
            "Where to write: a name that ends in .svg, .png or .pdf.",
            default="figure.svg",
            spelling="--output -o",
        ),
        OptionRow(
            "kind",
            "",
            "Subsets with intervals, paired differences, accuracy against difficulty, what replies "
            "took or what became of them.",
            ("forest", "difference", "curve", "latency", "tokens", "outcomes"),
            "forest",
        ),
        OptionRow(
            "export.output", FILE, "Where to write; stdout by default.", spelling="--output -o"
        ),
        OptionRow(
            "init config.output",
            FILE,
            "Where to write.",
            default="keju.yaml",
            spelling="--output -o",
        ),
        OptionRow(
            "init arms.output",
            FILE,
            "Where to write; the server is written next to it.",
            default="arms.yaml",
            spelling="--output -o",
        ),
        OptionRow(
            "folder", "DIR", "Where to write; a folder called NAME by default.", spelling="--dir"
        ),
        OptionRow(
            "prompts.folder",
            "DIR",
            "Folder to write to.",
            default="prompts",
            spelling="--output -o",
        ),
        OptionRow(
            "merge.merged_run",
            "RUN",
            "The new run: its folder, or its id below --work-dir.",
            spelling="--output -o",
        ),
        OptionRow(
            "fresh.folder", "DIR", "Folder to write to.", default="fresh", spelling="--output -o"
        ),
        OptionRow(
            "other_runs",
            "RUN",
            "Another run, log or file of predictions to look at too.",
            list,
            spelling="--beside",
        ),
        _setting(
            "language",
            "",
            "Language of the terminal and of pages; by default KEJU_LANGUAGE, then the locale.",
            ("en", "zh"),
        ),
        OptionRow("import.run_id", "ID", "Name of the new run."),
        OptionRow(
            "form",
            "FORMAT",
            "One of csv, jsonl, parquet, markdown, latex, hub-yaml, wandb, mlflow, submission, "
            "EXAM-csv. By default that of -o's suffix, else csv. "
            "Markdown, latex, hub-yaml: the results; wandb, mlflow: the same for a tracker, in the "
            "folder -o. "
            "Submission: the JSON that the exam's own site takes; EXAM-csv: the exam's own files "
            "with a column of predictions, in the folder -o, for exams that have such files.",
            spelling="--format",
        ),
        OptionRow(
            "full_text",
            "",
            "Also the texts of questions and replies, which are left out by default.",
            bool,
        ),
        OptionRow(
            "fill", "LETTER", "Submission: the letter for questions without a readable answer."
        ),
        OptionRow("partial", "", "Submission: also where questions were not asked.", bool),
        OptionRow(
            "show_all",
            "",
            "A line for every figure, also of single subsets.",
            bool,
            spelling="--all",
        ),
        OptionRow(
            "save",
            "",
            "Print the mean reward. The run is saved in any case.",
            bool,
            spelling="--save-results -s",
        ),
        OptionRow("once", "", "Show the current state and exit.", bool),
        OptionRow("no_report", "", "Write no report.html.", bool),
        OptionRow("quiet", "", "Show no progress.", bool, spelling="--quiet -q"),
        OptionRow("as_json", "", "Print one JSON document on stdout.", bool, spelling="--json"),
    ),
}

OPTIONS = {row.name: row._replace(panel=panel) for panel, rows in _PANELS.items() for row in rows}
