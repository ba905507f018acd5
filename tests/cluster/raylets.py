"""Several nodes of Ray on this machine: ``python raylets.py NODES`` until its stdin ends.

It prints one JSON line with the address, and one for each word on its stdin: ``add`` adds a node,
``jobs`` prints what the cluster knows of its drivers. Dead processes are reaped at once: a node
whose process is a zombie would count as alive.
"""

import json
import os
import select
import sys
import time
from typing import Any

FAST = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}


def main(count: int) -> None:
    import ray
    from ray.cluster_utils import Cluster

    def say(document: object) -> None:
        os.write(out, json.dumps(document).encode() + b"\n")

    out = os.dup(1)  # Ray prints to stdout
    os.dup2(2, 1)
    common: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
    head = {"num_cpus": 0, "_system_config": FAST, **common}
    common |= {"num_cpus": 1, "resources": {"place": 1}}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(**common) for _ in range(count)]
    cluster.wait_for_nodes()

    def pids(kind: str, node: Any) -> Any:
        return node.all_processes[kind][0].process.pid

    def state() -> dict[str, object]:
        return {
            "address": cluster.address,
            "raylets": [pids("raylet", node) for node in nodes],
            "head": pids("raylet", cluster.head_node),
            "gcs": pids("gcs_server", cluster.head_node),
        }

    say(state())
    while True:
        ready, _, _ = select.select([0], [], [], 0.1)
        for node in (*nodes, cluster.head_node):
            for infos in node.all_processes.values():
                for info in infos:
                    info.process.poll()
        if not ready:
            continue
        word = sys.stdin.readline().strip()
        if not word:
            break
        if word == "add":
            nodes.append(cluster.add_node(**common))
            say(state())
        elif word == "jobs":
            ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
            say(str(ray._private.state.jobs()))
            ray.shutdown()
    cluster.shutdown()
    time.sleep(0.1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
