"""PJRT libraries in two processes: key-value callbacks and node ids, used and ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpu.distributed import shared_numpy
from support.apart import runs_apart
from support.behaviour import behaviour
from support.processes import all_results, of_cpu_processes, run_together
from support.xla_cpu import needs_library

pytestmark = [runs_apart("processes"), of_cpu_processes]


@behaviour(
    114,
    "a PJRT library is given key-value callbacks, `node_id` and `num_nodes`: the devices of a "
    "backend in Python, exported as one, belong to both processes, and compute together",
)
def test_an_exported_backend_finds_the_other_process(tmp_path: Path) -> None:
    found = all_results(run_together(shared_numpy.compute, 2, tmp_path, JAX_PLATFORMS="shared"))
    for me, one in enumerate(found):
        kinds = ["NumPy of process 0", "NumPy of process 1"]
        assert one["devices"] == [[i, i // 2, kinds[i // 2]] for i in range(4)]
        assert one["local"] == [2 * me, 2 * me + 1]
        assert one["indices"] == [me, 2]
        assert one["node"] == {"node_id": me, "num_nodes": 2}
        # The connection got the backend's calls of the callbacks, and no others.
        assert one["started"] == [{"put": 1, "get": 2, "try_get": 1}] * 2
        assert one["total"] == [1 + 4 + 121 + 144] * 2
        assert one["sums"] == [[0 + 5 + 1 + 6]] * 2
        assert one["index"] == [[2 * me], [2 * me + 1]]
        assert one["alone"] == [1, 2]
        backend, connection = one["ended"]
        assert backend == connection
        # Each launch over both processes puts this process's part, and reads both parts.
        assert backend == {"put": 1 + 3, "get": 2 + 2 * 3, "try_get": 1}


@behaviour(
    114,
    "a library that gets several processes as an option and reports one, as XLA's for the cpu "
    "does, or "
    "that says that it is made for one, is refused",
    jax="each process computes by itself",
)
@needs_library
@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("alone", "is one of 2 processes, and the exported plugin is made for one: its factory"),
        ("xla_cpu", "reports itself as process 0 of 1, where plugrt.distributed.initialize made"),
    ],
)
def test_libraries_that_heed_none_of_it_are_refused(
    tmp_path: Path, library: str, words: str
) -> None:
    ended = run_together(shared_numpy.start_unaware, 2, tmp_path, JAX_PLATFORMS=library)
    for one in all_results(ended):
        assert one["asked"] == {}
        assert one["told"].startswith("PluginBroken: ")
        assert words in one["told"]
