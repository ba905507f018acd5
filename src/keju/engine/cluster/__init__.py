"""Ray as an executor: actors ask, the driver grades, journals and strikes off.

    engine   which questions an actor gets, and what becomes of those of an actor that is lost
    crew     the actors: how many, their start, their replacement, what they tell of themselves
    nodes    all that touches Ray: joining or starting a cluster, calls, its odd ways
    actor    what runs in a process of the cluster: a channel of its own; no word of Ray
    wire     what goes to and fro

    queue ──> block of one prefix ──> actor.ask ──> channel ──> model
                                          │
              journal <── engine <── reports: at most 16 answers or 0.2 seconds

An answer counts only if its question is open in the block that it comes with, so that none counts
twice; what is open when a block ends goes back to the front, so that none is lost. Nothing is ever
repeated by Ray itself: a generator that Ray runs again hands its items on by position, and loses
and doubles them.
"""
