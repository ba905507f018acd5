"""Two models, one exam, from Python: evaluate, look at failures, compare, decide.

python examples/first.py                                   # two stand-ins, no network
python examples/first.py MODEL http://localhost:8000/v1    # a model behind an endpoint
"""

import sys

from keju import TaskConfig, compare, gate, plot, run_task


def evaluate(model, **settings):
    return run_task(TaskConfig(model=model, datasets=["demo"], limit=5, **settings))


base = evaluate("scripted")
if len(sys.argv) > 2:
    new = evaluate(sys.argv[1], api_url=sys.argv[2])
else:
    new = evaluate("scripted", generation_config={"temperature": 1.0})

for row in new.samples().failures:
    print(row.id, "gold", row.target, "read", row.answer)

pair = compare(base, new).comparisons[0]
print(pair.difference, pair.ci95, pair.p, pair.conclusion.text())
print("may take its place:", gate(new, baseline=base, margin=0.1).verdict)
plot(base, new, kind="difference", path="difference.svg")
