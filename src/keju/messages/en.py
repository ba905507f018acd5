"""The English catalogue."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "damaged_lines": "{lines} lines of the journal cannot be read: they count as not asked",
    "missing_extra": "{what} needs an optional part: pip install 'keju[{extra}]'",
    # What a reader of results must know.
    "no_gold": "no gold answers: nothing is scored",
    "no_gold_submission": "no gold answers: nothing is scored; export the submission with "
    "keju export RUN --format submission",
    "nothing_graded": "nothing was graded: all {whole} replies are errors or have no grade",
    "ungraded_replies": "{part} of {whole} replies ({share:.1%}) have no grade and are left out "
    "of the scores",
    "cut_replies": "{part} of {whole} replies ({share:.1%}) were cut off before an answer: "
    "raise max_tokens",
    "unread_replies": "{part} of {whole} replies ({share:.1%}) hold no answer that the reader can "
    "find: compare readers",
    "one_cluster": "all questions share one context: no interval can be given",
    "few_clusters": "only {clusters} clusters: the interval is itself unsure",
    "repeats_at_temperature_0": "repeats at temperature 0 measure the endpoint's noise, not the "
    "model's spread",
    "missing_predictions": "{missing} of {whole} questions have no prediction",
    "data_changed": "the data has changed since the run ({file}): what no longer fits is left out",
    "imported": "imported from {origin}: the prompts are its own",
    "unmatched_rows": "{rows} rows of the log answer no question of the data",
    # Exams.
    "not_published_rows": "not the published rows, so scores are not comparable: {rows}",
    "not_published_rows_more": "not the published rows, so scores are not comparable: {rows} and "
    "{more} more",
    "repeated_orders": "{questions} questions have fewer than {rotations} options: some of their "
    "rotations repeat an order",
    "judge_of_task": "the judge of the task takes the place of {settings}",
    # Judges.
    "judge_is_candidate": "the judge is the candidate itself: its verdicts favour its answers",
    "second_judge_is_candidate": "the second judge is the candidate itself: its verdicts favour "
    "its answers",
    "judge_is_namesake": "the judge has the candidate's name at another endpoint: if it is the "
    "same model, its verdicts favour its answers",
    "second_judge_is_namesake": "the second judge has the candidate's name at another endpoint: "
    "if it is the same model, its verdicts favour its answers",
    "judge_without_key": "the judge's api_key_var names {variable}, which is not set: no key was "
    "sent",
    "judge_with_candidates_key": "the judge's api_key_var names {variable}, which is not set: the "
    "candidate's key was sent",
    "judge_without_verdict": "the judge has no verdict on {missing} of {whole} answers; 'keju "
    "judge' with this run asks again",
    "second_judge_without_verdict": "the second judge has no verdict on {missing} of {whole} "
    "answers: agreement is measured without them",
    "judge_repeats_at_temperature_0": "repeats of the judge at temperature 0 measure its "
    "endpoint's noise, not how sure the judge is",
    "judge_not_corrected": "the accuracy is not corrected for the judge's errors: {reason}",
    # What a run says while it goes on.
    "other_settings": "this run goes on with other settings ({differences})",
    "damaged_lines_asked_again": "{lines} journal lines were unreadable and are asked again",
    "stopping": "stopping: {requests} requests in flight will finish and be saved; press Ctrl-C "
    "again to stop at once",
    # config and command line
    "cli_args_not_mapping": "--dataset-args: the settings of '{name}' must be a mapping",
    "cli_args_of_other": "--dataset-args names '{name}', which is not asked for{hint}",
    "cli_bad_benchmark_name": (
        "'{name}' cannot be the name of a benchmark: small letters and digits, parts "
        "joined by - or _"
    ),
    "cli_benchmark_exists": "there is a benchmark '{name}' already: choose another name",
    "cli_benchmark_flag": "--benchmark is for protocols and readers, not for {what}",
    "cli_cannot_reach": "cannot reach {url} ({problem}): check --api-url",
    "cli_cannot_record": "cannot record the submission in {place}: {problem}",
    "cli_cannot_write": "cannot write {place}: {problem}",
    "cli_command_expected": "expected a command before '{flag}', e.g. 'keju {example} {flag}'",
    "cli_command_missing": "missing command; see 'keju {command} --help'",
    "cli_endpoint_answers": "{url} answers {status}: {problem}; check --api-url",
    "cli_examples": "-n must be at least 1, or {all} for all, not {examples}",
    "cli_file_exists": "{path} exists; choose another place with -o FILE",
    "cli_flag_twice": "{flag} is given twice but takes one value; see 'keju {command} --help'",
    "cli_folder_not_empty": "{folder} exists and is not empty; choose another with --dir",
    "cli_internal_error": "internal error: {summary}; details in {file}",
    "cli_interrupted": "interrupted",
    "cli_json_needs_file": "--json reports on a file: give one with -o FILE",
    "cli_key_refused": "{url} refuses the key ({status}): set --api-key",
    "cli_key_variable": "{problem}; -k: the variable {variable} is not set",
    "cli_modes_differ": (
        "the runs cannot be compared: {name} is {first!r} in the first and {second!r} in the second"
    ),
    "cli_modes_no_exam": "run '{run}' sat no exam that has two modes",
    "cli_modes_order": (
        "run '{run}' sat {benchmark} in mode {mode}, not {wanted}; the answer-only run "
        "comes first, then the one with a chain of thought"
    ),
    "cli_modes_other_exam": "run '{run}' did not sit {benchmark}",
    "cli_no_data": "no benchmark's data was found: keju data pull NAME, or --data-dir DIR",
    "cli_no_data_folder": "{benchmark} has no folder: its questions are {origin}",
    "cli_no_question": "'{subset}' has no question {index}: --index goes from 0 to {last}",
    "cli_no_subset": "{benchmark} has no subset '{name}'{hint}",
    "cli_not_with_run": "{flag} is for a file of predictions; a RUN brings its own",
    "cli_nothing_to_score": "give a RUN, or both --datasets NAME and --predictions FILE",
    "cli_one_or_all": "name one benchmark, or --all",
    "cli_only_submission": "{flag} is for --format submission, not for {form}",
    "cli_parquet_needs_file": "Parquet is no text: give the file to write with -o FILE",
    "cli_submission_full_text": "--full-text has no place in a submission: it holds letters only",
    "cli_unknown_benchmark": "unknown benchmark '{name}'{hint}",
    "cli_unknown_command": "unknown command '{command}'{hint}",
    "cli_unknown_option": "unknown option {option}; see 'keju {command} --help'",
    "cli_unknown_option_near": (
        "unknown option {option} (did you mean '{near}'?); see 'keju {command} --help'"
    ),
    "cli_usage": "{problem}; see 'keju {command} --help'",
    "cli_value_missing": "{flag} needs a value",
    "cli_verify_needs_data": "give the folder that holds the recorded outputs with --data-dir",
    "config_args_not_run": "dataset_args names '{name}', which is not run{hint}",
    "config_cost_without_price": "{path} needs a price: give --price, in money per million tokens",
    "config_empty": "{path}, line 1: is empty; expected a mapping such as 'model: NAME'",
    "config_field_has_setting": "cannot set '{name}': give it as generation_config.{known}",
    "config_field_of_keju": "cannot set '{name}': Keju sets it for each request",
    "config_file_not_json": "{path}, line {line}: not valid JSON: {problem}",
    "config_flag_not_json": "{flag} is not valid JSON: {problem} at character {position}",
    "config_flag_not_object": "{flag} must be a JSON object such as '{{\"key\": 1}}', not {text}",
    "config_flag_unusable": "{flag} cannot be used: {problem}",
    "config_from": "{origin}: {problem}",
    "config_invalid": "{path}: {problem}{more}",
    "config_invalid_whole": "{problem}{more}",
    "config_key_not_text": "the key {key!r} is no text: quote it",
    "config_key_twice": "the key '{key}' is given twice",
    "config_limit": "must be a whole number of at least 1, or a share between 0 and 1",
    "config_missing": "{problem}: give --{flag}, '{field}:' in a file, or {variable}",
    "config_named_twice": "named twice: {names}",
    "config_nested_repeat": (
        "a repeat inside a repeat, such as '(a+)+', can take for ever on a long reply: "
        "bound one of them, or make the inner one possessive ('(a++)+')"
    ),
    "config_no_extras": "unknown key 'extra_params.{key}' (this benchmark has none)",
    "config_not_finite": "must be a finite number",
    "config_not_json_value": "{constant} is not a JSON value",
    "config_not_mapping": (
        "{path}, line 1: holds a {kind}; expected a mapping such as 'model: NAME'"
    ),
    "config_not_number": "must be a number, not {value}",
    "config_not_pattern": "not a regular expression: {problem}",
    "config_not_utf8": "{path}, line {line}: not UTF-8 text",
    "config_not_variable": (
        "{path} is the name of an environment variable, letters, digits and underscores; "
        "the key itself belongs in that variable"
    ),
    "config_not_yaml": "{where}: not valid YAML: {problem}",
    "config_override_form": "-s {override}: expected KEY=VALUE or KEY.SUB=VALUE",
    "config_pair_form": "{flag}: expected KEY=VALUE or JSON at character {position}",
    "config_required": "'{path}' is required{more}",
    "config_sample_without_limit": (
        "sample: '{sample}' has an effect only with limit: give --limit N"
    ),
    "config_too_deep": "{path}, line 1: nested too deep",
    "config_two_spellings": "{origin}'{path}' is given twice, in two spellings",
    "config_unknown_extra": "unknown key 'extra_params.{key}'{hint}",
    "config_unknown_key": "{origin}unknown key '{path}'{hint}{more}",
    "config_unknown_variable": "unknown environment variable {variable}{hint}",
    "config_unreadable": "cannot read {path}: {problem}",
    "config_url_form": (
        "api_url must begin with http:// or https:// and name a host, e.g. http://localhost:8000/v1"
    ),
    "config_url_unreadable": "api_url is not a URL: its host or port cannot be read",
    "config_value_and_mapping": "{flag}: '{name}' is given as a value and as a mapping",
    "config_variable_mapping": (
        "{variable}: '{field}' is a mapping; give it in a file or by its flag"
    ),
    "config_yaml_at": "{where}{line}: {problem}",
    "endpoint_wants_key": "{url} wants a key ({status}): {advice}",
}
