"""BBH (BIG-Bench Hard): 27 subsets of reasoning questions, 6,511 rows."""

from keju.benchmarks.bbh.exam import BBH
from keju.benchmarks.bbh.protocols import BBHArgs

__all__ = ["BBH", "BBHArgs"]
