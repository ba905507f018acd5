"""Ray as an executor: actors ask the model, the driver grades and journals.

    engine   which questions an actor gets, and how the questions of a lost actor are asked again
    crew     the actors: their number, their start, their replacement, their reports
    nodes    all calls of Ray: joining or starting a cluster, calls, workarounds
    actor    the code in a process of the cluster: a channel, without any call of Ray
    wire     the messages between them

    queue ──> block of one prefix ──> actor.ask ──> channel ──> model
                                          │
              journal <── engine <── reports: at most 16 answers or 0.2 seconds

An answer counts only if its question is open in the block that it comes with, so that none counts
twice. Questions that are open when a block ends go back to the front, so that none is lost. Ray
itself never repeats a call: a generator that Ray runs again numbers its items by position, and
loses and doubles them.
"""
