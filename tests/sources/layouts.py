"""The layouts of Keju's own exams, by name."""

from __future__ import annotations

from keju.benchmarks import registry
from keju.sources.folder import Layout

LAYOUTS: dict[str, Layout] = {
    name: layout for name in registry.BUILT_IN if (layout := registry.get(name).layout) is not None
}
BBH_SUBSETS = LAYOUTS["bbh"].tables
CEVAL_SUBJECTS = tuple(
    table.removeprefix("dev/") for table in LAYOUTS["ceval"].tables if table.startswith("dev/")
)
