"""The English catalogue."""

from __future__ import annotations

TEXTS: dict[str, str] = {
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
    "damaged_lines": "{lines} journal lines were unreadable and are asked again",
    "stopping": "stopping: {requests} requests in flight will finish and be saved; press Ctrl-C "
    "again to stop at once",
}
