"""The parts of the public schema of Every Eval Ever 0.3 that Keju's files must keep, in our words.

The full schema is in the public repository of that project. These are its required keys, closed
lists of words and types, as far as Keju writes them.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
TEXTS: Schema = {"type": "array", "items": TEXT}
DETAILS: Schema = {"type": "object", "additionalProperties": TEXT}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def table(required: str, optional: dict[str, Schema] | None = None, **known: Schema) -> Schema:
    """An object with `required` keys, of which `known` and `optional` have these forms."""
    return {
        "type": "object",
        "required": required.split(),
        "properties": known | (optional or {}),
    }


def closed(schema: Schema) -> Schema:
    return schema | {"additionalProperties": False}


def maybe(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


def words(text: str) -> Schema:
    return {"enum": text.split()}


MODEL = table(
    "name id additional_details",
    name=TEXT,
    id=TEXT,
    inference_engine=table("", name=TEXT, version=TEXT),
    additional_details=DETAILS
    | table(
        "deployment_type model_availability",
        deployment_type=words("self_deployed externally_managed unknown"),
        model_availability=words("open_weights closed_weights unknown"),
    ),
)
DATA: Schema = {
    "oneOf": [
        table(
            "dataset_name source_type",
            source_type={"const": "hf_dataset"},
            hf_repo=TEXT,
            samples_number=WHOLE,
            additional_details=DETAILS,
        ),
        table("dataset_name source_type", source_type={"const": "other"}),
    ]
}
METRIC = table(
    "lower_is_better score_type min_score max_score",
    lower_is_better={"type": "boolean"},
    score_type={"const": "continuous"},
    min_score=NUMBER,
    max_score=NUMBER,
    llm_scoring=table(
        "judges input_prompt",
        judges={"type": "array", "minItems": 1, "items": table("model_info", model_info=MODEL)},
        input_prompt=TEXT,
    ),
    additional_details=DETAILS,
)
SCORE = table(
    "score",
    score=NUMBER,
    details=DETAILS,
    uncertainty=table(
        "",
        standard_error=table("value", value=NUMBER, method=TEXT),
        confidence_interval=table(
            "lower upper", lower=NUMBER, upper=NUMBER, confidence_level=NUMBER, method=TEXT
        ),
        num_samples=WHOLE,
    ),
)
GENERATION = table(
    "",
    generation_args=table(
        "",
        temperature=maybe(NUMBER),
        top_p=maybe(NUMBER),
        max_tokens=WHOLE | {"minimum": 1},
        prompt_template=TEXT,
        agentic_eval_config=closed(
            table("", available_tools={"type": "array", "items": table("", name=TEXT)})
        ),
    ),
    additional_details=DETAILS,
)
RESULT = table(
    "evaluation_name source_data metric_config score_details",
    evaluation_result_id=TEXT,
    evaluation_name=TEXT,
    source_data=DATA,
    metric_config=METRIC,
    score_details=SCORE,
    generation_config=GENERATION,
)
AGGREGATE = closed(
    table(
        "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library"
        " evaluation_results",
        schema_version={"const": "0.3.0"},
        evaluation_id=TEXT,
        evaluation_timestamp=TEXT,
        retrieved_timestamp={"type": "string", "pattern": r"^\d+$"},
        source_metadata=table(
            "source_type source_organization_name evaluator_relationship",
            source_type=words("documentation evaluation_run"),
            evaluator_relationship=words("first_party third_party collaborative other"),
        ),
        model_info=MODEL,
        eval_library=table("name version", name=TEXT, version=TEXT, additional_details=DETAILS),
        evaluation_results={"type": "array", "items": RESULT},
        detailed_evaluation_results=table(
            "format file_path",
            format={"const": "jsonl"},
            file_path={
                "type": "string",
                "pattern": rf"^data/[^/]+/[^/]+/[^/]+/{UUID}_samples\.jsonl$",
            },
            hash_algorithm=words("sha256 md5"),
            checksum=TEXT,
            total_rows=WHOLE,
        ),
    )
)
MESSAGE = table(
    "turn_idx role",
    turn_idx=WHOLE,
    role=TEXT,
    content=maybe(TEXT),
    reasoning_trace=maybe(TEXT),
    tool_calls={
        "type": "array",
        "items": table("id name", id=TEXT, name=TEXT, arguments=DETAILS),
    },
    tool_call_id=TEXTS,
)
SAMPLE = closed(
    table(
        "schema_version evaluation_id model_id evaluation_name sample_id interaction_type input"
        " output messages answer_attribution evaluation",
        schema_version={"const": "0.3.0"},
        evaluation_id=TEXT,
        model_id=TEXT,
        evaluation_name=TEXT,
        evaluation_result_id=TEXT,
        sample_id=TEXT,
        sample_hash=TEXT,
        interaction_type=words("single_turn multi_turn agentic"),
        input=table(
            "raw reference",
            raw=TEXT,
            formatted=maybe(TEXT),
            reference=TEXTS,
            choices=maybe(TEXTS),
        ),
        output=maybe(table("raw", raw=TEXTS, reasoning_trace=maybe(TEXTS))),
        messages=maybe({"type": "array", "items": MESSAGE}),
        answer_attribution={
            "type": "array",
            "items": table(
                "turn_idx source extracted_value extraction_method is_terminal",
                turn_idx=WHOLE,
                source=TEXT,
                extracted_value=TEXT,
                extraction_method=TEXT,
                is_terminal={"type": "boolean"},
            ),
        },
        evaluation=table(
            "score is_correct",
            score=NUMBER,
            is_correct={"type": "boolean"},
            num_turns=maybe(WHOLE),
            tool_calls_count=maybe(WHOLE),
        ),
        token_usage=table(
            "input_tokens output_tokens total_tokens",
            input_tokens=WHOLE,
            output_tokens=WHOLE,
            total_tokens=WHOLE,
        ),
        performance=table("", latency_ms=NUMBER),
        error=maybe(TEXT),
        metadata=DETAILS,
    )
) | {
    "if": {"properties": {"interaction_type": {"const": "single_turn"}}},
    "then": {"properties": {"output": {"type": "object"}, "messages": {"type": "null"}}},
    "else": {"properties": {"output": {"type": "null"}, "messages": {"type": "array"}}},
}
