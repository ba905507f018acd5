"""Does this installation give the numbers that are known? Recorded outputs are scored again.

A recorded set is a pair of files in ``DATA/golden/BENCHMARK``: ``NAME_predictions.jsonl`` (or
``.jsonl.gz``) with what a model said, and ``NAME_golden.json`` with the scores it must give. Sets
are found by these names, so that another model's pair is verified as soon as it lies there.
"""

from keju.results.verify.sets import Check, RecordedSet, Verified, find_sets, verify_all

__all__ = ["Check", "RecordedSet", "Verified", "find_sets", "verify_all"]
