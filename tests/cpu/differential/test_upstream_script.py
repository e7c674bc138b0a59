"""Each fault that `docs/findings/upstream.py` shows; one that is gone needs no workaround."""

from __future__ import annotations

import re
import signal
import sys

from support import children
from support.markdown import ROOT
from support.requirements import needs_jax

SEGV, ABRT = -signal.SIGSEGV, -signal.SIGABRT
FAULTS: dict[str, tuple[int | tuple[int, ...], str]] = {
    "xla_complex_exponential": (0, "(nan+nanj)"),
    "xla_complex_root": (0, "(nan+nanj)"),
    "xla_complex_power": (0, "(nan+nanj)"),
    "xla_complex_cosine": (0, "= (nan+nanj)"),
    "xla_hyperbolic_zero": (0, "(1.1752012+0j)"),
    "xla_integer_division": (0, "-1"),
    "xla_two_bit_join": (ABRT, ""),
    "xla_shape_overflow": (ABRT, ""),
    "xla_address_space": ((ABRT, SEGV, 127), ""),  # seen once each: SEGV under load, 127 in CI
    "xla_hlo_types": (SEGV, "read"),
    "xla_serialized_twice": (1, "launched: 65.0\nlaunched: JaxRuntimeError: INTERNAL"),
    "jaxlib_fewer_devices": (ABRT, ""),
    "jaxlib_replicas_and_partitions": (ABRT, ""),
    "jaxlib_deleted_argument": (SEGV, ""),
    "jaxlib_wrong_shape": (SEGV, ""),
    "jaxlib_first_part": (0, "after the second part: False; after the first part: True"),
    "jaxlib_message_of_deleted": (
        1,
        "Expected args to execute_sharded_on_local_devices to have 1 ",
    ),
    "jaxlib_donated_view": (0, "2.0 deleted: False"),
    "jaxlib_donated_twice": (SEGV, ""),
    "jaxlib_deleted_capsule": (ABRT, ""),
    "jaxlib_host_memory": (0, "kept: True; kept after collect_garbage: False"),
    "jaxlib_invalid_options": (0, "replicas: 0"),
    "jaxlib_no_device": (ABRT, ""),
    "xla_token_dimensions": (ABRT, ""),
    "jaxlib_connect_timeout": (ABRT, ""),
    "jaxlib_mpi": (1, ""),
    "jaxlib_mpi_import": (1, ""),
    "jaxlib_fork": (0, f"the child: {SEGV}"),
    "chlo_scan": (0, "the same in both directions: True\nreal_dynamic_slice: True"),
    "numpy_second_import": (1, "ImportError: cannot load module more than once per process"),
    "jaxlib_context_at_exit": (ABRT, ""),
    "mlir_second_import": (ABRT, ""),
    "optree_changed_dict": (SEGV, ""),
    "cpython_thread_start": (1, "KeyError: <Thread"),
    "cpython_event_wait": (1, "RuntimeError: release unlocked lock"),
    "xla_deep_calls": (SEGV, ""),
    "mlir_deep_text": (SEGV, ""),
    "jaxlib_heartbeat_callback": (ABRT, ""),
    "jaxlib_interrupted_compile": ((SEGV, ABRT), ""),
    "stablehlo_total_order": (0, "[nan, -inf, 1.0]"),
    "jax_complex_maximum": (0, "(1+0j) (nan+0j)"),
}


@needs_jax
def test_each_fault_is_there() -> None:
    done = children.run([sys.executable, ROOT / "docs/findings/upstream.py"], timeout=240)
    found = re.findall(r"((?:.*\n)*?)--- (\w+): (-?\d+)\n", done.stdout)
    assert [name for _, name, _ in found] == list(FAULTS), done.stdout + done.stderr
    for (output, name, status), (expected, text) in zip(found, FAULTS.values(), strict=True):
        statuses = expected if isinstance(expected, tuple) else (expected,)
        assert int(status) in statuses, f"{name}: {status} {output}"
        assert text in output, f"{name}: {output}"
