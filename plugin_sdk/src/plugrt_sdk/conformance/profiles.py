"""`PROFILES`: the checks that a plugin must pass for a host; and a quick sample."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.verdict import Result, Verdict

_MINIMAL = (
    "host.*", "abi.*", "arguments.*", "client.*", "devices.ids", "devices.same_objects",
    "devices.kind", "devices.memories", "buffers.type", "buffers.place", "buffers.delete*",
    "buffers.ready*", "buffers.put_get.dtypes.float32", "buffers.put_get.dtypes.int32",
    "buffers.put_get.scalar", "buffers.put_get.empty", "buffers.put_get.large",
    "buffers.put_get.transposed", "buffers.put_get.strided", "buffers.put_get.negative_strides",
    "buffers.put_get.semantics.*", "programs.add", "programs.argument_order",
    "programs.executable", "programs.result_type", "programs.refused.*",
)  # fmt: skip

PROFILES: Mapping[str, Sequence[str]] = {
    "minimal": _MINIMAL,
    "jax": (
        *_MINIMAL, "buffers.*", "programs.*", "forms.*", "ownership.*", "behaviour.*", "devices.*",
        "buffers.put_get.dtypes.bool", "buffers.views.float32", "buffers.views.int32",
        "buffers.views.bool", "operations.*.float32", "operations.*.int32",
        "composites.*", "random.rng_bit_generator.*", "recovery.put", "recovery.launch",
        "failures.others", "failures.threads", "failures.donation.*",
        "endurance.cycles", "endurance.arrays", "endurance.results", "endurance.threads.*",
        "endurance.callback.*", "endurance.fork", "endurance.exit.*", "handles.buffers.references",
        "handles.devices.strings", "table_places.*",
    ),
    "torch_xla": (
        *_MINIMAL, "devices.attributes", "devices.memories.devices", "devices.addressable",
        "handles.buffers.unpadded", "handles.buffers.dynamic", "table_places.topology.*",
        "buffers.read_twice", "buffers.independent", "programs.*", "ownership.*",
        "behaviour.events", "declared.optimized_program", "accepts.program_formats",
        "buffers.put_get.dtypes.bfloat16", "buffers.put_get.dtypes.int64", "operations.*.float32",
        "operations.*.bfloat16",
    ),
    "aot": ("ahead_of_time.*", "declared.serialization*", "declared.fingerprint"),
    "multi-device": (
        "scales.*", "buffers.copy.*", "devices.*", "collectives.*.float32",
        "collectives.collective_permute.*", "collectives.replica_id", "collectives.sharding.*",
    ),
}  # fmt: skip
"""The name of a profile, to patterns of ids.

A profile contains what its host needs. ``jax`` needs the functions without which stock JAX fails
(``docs/data/jax_needs.json``, made by ``tools/host_needs.py``). ``torch_xla`` needs the functions
that PyTorch/XLA 2.9.0 called in a trace (``docs/data/hosts.json``), except optional ones, according
to its source, ``pjrt_computation_client.cpp`` at commit 00692cee: it puts tensors as "immutable
until the transfer completes" into the default memory, passes HLO (StableHLO with
XLA_STABLEHLO_COMPILE=1), and fails without the optimised program; it works without copies between
devices, serialised topologies and memory analysis.
"""

_NOT_NEEDED: Mapping[str, Sequence[str]] = {
    "jax": (
        "buffers.copy.devices", "buffers.put_get.dtypes.*", "buffers.put_get.lengths.*",
        "buffers.put_get.byte_order",
        "buffers.views.*", "buffers.size", "devices.memories.put", "programs.input_types",
        "table_places.topology.serialized",
    ),
    "torch_xla": ("programs.input_types",),
    "multi-device": ("devices.memories.put", "collectives.collective_broadcast.*"),
    "aot": ("ahead_of_time.serialize", "ahead_of_time.fingerprint"),
}  # fmt: skip
"""The checks that a profile omits although its patterns match them."""


def checks_of(profile: str) -> Sequence[Check]:
    """Returns the checks of a profile, in the kit's order.

    Checks of two devices are only in ``multi-device``, which hosts of one device do not need.
    """
    wanted, exempt = PROFILES[profile], (*_NOT_NEEDED.get(profile, ()), *_uncommon())
    exact = {pattern for pattern in wanted if "*" not in pattern}
    return [
        check
        for name, check in registry.checks().items()
        if name in exact
        or (_any(name, wanted) and not _any(name, exempt) and _fits(check, profile))
    ]


def _fits(check: Check, profile: str) -> bool:
    return check.needs is not Needs.TWO_DEVICES or profile == "multi-device"


def _uncommon() -> Sequence[str]:
    """Returns patterns of the operations that no host needs: deprecated or rare ones."""
    from plugrt_sdk.conformance.operations import SAMPLES

    named = [f"operations.{sample.id}.*" for sample in SAMPLES if sample.uncommon]
    return (*named, "operations.uniform_quantize.*")


def _any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def missing(profile: str, results: Mapping[str, Result]) -> list[str]:
    """Returns the ids that a profile needs and that did not pass; REFUSED does not count.

    Checks of PJRT libraries do not apply to other plugins.
    """
    return [
        check.id
        for check in checks_of(profile)
        if (found := results.get(check.id)) is None
        or (found.applies and found.verdict is not Verdict.PASS)
    ]


def sample(checks: Sequence[Check]) -> Sequence[Check]:
    """Returns the checks without slow ones, and one of those that differ only in the dtype.

    That is float32's, if it exists. Four in ten of the kit's checks remain. They miss faults of
    single dtypes.
    """
    families: dict[str, list[Check]] = {}
    for check in checks:
        if check.slow:
            continue
        stem, _, last = check.id.rpartition(".")
        families.setdefault(stem + "." if _DTYPE.fullmatch(last) else check.id, []).append(check)
    return [min(family, key=_rank) for family in families.values()]


_DTYPE = re.compile(r"bool|(u?int|b?float|complex)\d\w*")
_COMMON = ("float32", "int32")


def _rank(check: Check) -> int:
    dtype = check.id.rpartition(".")[2]
    return _COMMON.index(dtype) if dtype in _COMMON else len(_COMMON)
