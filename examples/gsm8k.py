"""GSM8K (Cobbe et al. 2021): word problems of grade school, read in two ways."""

from keju import Benchmark, HubRepo, Layout, Protocol, Question, Wording, by_name, pattern_reader


def same_number(value, sample):
    return float(value.replace(",", "")) == float(sample.target.replace(",", ""))


def problems(setup, table):
    for row in setup.folder.rows(table):
        steps, _, answer = row["answer"].partition("\n#### ")
        yield Question(row["question"], answer, explanation=steps)


GSM8K = Benchmark(
    name="gsm8k",
    title="GSM8K",
    about="word problems of grade school",
    layout=Layout(("test", "train"), hubs={"huggingface": HubRepo("openai/gsm8k", "main")}),
    questions=lambda setup: problems(setup, "test"),
    examples=lambda setup: problems(setup, "train"),
    readers=by_name(
        pattern_reader("strict", r"#### *(-?\d[\d,]*)", match=same_number),
        pattern_reader("flexible", r"-?\d[\d,]*(?:\.\d+)?", match=same_number),
    ),
    protocols=by_name(
        Protocol(
            name="cot",
            version="1",
            about="8-shot, the steps and then #### NUMBER",
            reader="strict",
            shots=8,
            stop=("Question:",),
            wording=Wording(
                question="Question: {question}\nAnswer:",
                shot="Question: {question}\nAnswer: {explanation}\n#### {answer}",
            ),
        )
    ),
)
