"""How a request becomes a reply. A solver (`keju.engine.solver.Solver`) sends requests to a
channel.

The base class of all solvers sends one request. The solver of `loop` lets the model act with the
tools of a `toolbox`.
"""
