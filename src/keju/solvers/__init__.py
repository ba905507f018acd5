"""How a request becomes a reply; a solver (`keju.engine.solver.Solver`) asks a channel.

The base of all solvers asks once. `loop` lets the model act: it calls the tools of a `toolbox`.
"""
