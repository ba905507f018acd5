"""Summaries, graded by a function that gives several numbers; the first is the score."""

from keju import Benchmark, Protocol, Question, Wording, by_name, grader

WORDS = 25
REPORTS = {
    "harbour": (
        "The harbour of Vell was closed on Monday after a storm tore two cranes from the quay. "
        "Nobody was hurt. The port authority expects to open it again on Thursday.",
        ["Vell", "Monday", "storm", "Thursday"],
    ),
    "library": (
        "The town library of Orsk lends out musical instruments from May on. The first forty were "
        "given by a school that closed. A loan lasts six weeks and costs nothing.",
        ["Orsk", "instruments", "May", "six weeks"],
    ),
}


def questions(setup):
    for name, (text, facts) in REPORTS.items():
        yield Question(text, ", ".join(facts), id=name, metadata={"facts": facts})


@grader
def kept(text, sample):
    facts = sample.metadata["facts"]
    share = sum(fact.casefold() in text.casefold() for fact in facts) / len(facts)
    brevity = min(1, WORDS / len(text.split()))
    return {"score": share * brevity, "facts": share, "brevity": brevity}


SUMMARIES = Benchmark(
    name="summaries",
    title="Summaries",
    about="short summaries of short reports",
    questions=questions,
    readers=by_name(kept),
    protocols=by_name(
        Protocol(
            name="plain",
            version="1",
            about="one message",
            reader="kept",
            wording=Wording(question=f"Say in at most {WORDS} words:\n\n{{question}}"),
        )
    ),
)
