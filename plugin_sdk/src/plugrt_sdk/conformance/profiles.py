"""`PROFILES`: for each host, the checks that a plugin must pass for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.verdict import Result, Verdict

_MINIMAL = (
    "host.*", "client.*", "devices.ids", "devices.same_objects", "devices.kind", "devices.memories",
    "buffers.type", "buffers.place", "buffers.delete*", "buffers.ready*",
    "buffers.put_get.dtypes.float32", "buffers.put_get.dtypes.int32",
    "buffers.put_get.scalar", "buffers.put_get.empty", "buffers.put_get.large",
    "buffers.put_get.transposed", "buffers.put_get.strided", "buffers.put_get.negative_strides",
    "buffers.put_get.semantics.*", "programs.add", "programs.argument_order",
    "programs.executable", "programs.result_type", "programs.refused.*",
)  # fmt: skip

PROFILES: Mapping[str, Sequence[str]] = {
    "minimal": _MINIMAL,
    "jax": (
        *_MINIMAL, "buffers.*", "programs.*", "ownership.*", "behaviour.*",
        "buffers.put_get.dtypes.bool", "operations.*.float32", "operations.*.int32", "forms.*",
        "composites.*", "random.rng_bit_generator.*", "executables.launcher", "recovery.put",
        "recovery.launch", "endurance.cycles", "endurance.threads.*", "endurance.callback.*",
        "endurance.fork", "endurance.exit.*",
    ),
    "torch_xla": (
        *_MINIMAL, "programs.*", "ownership.*", "buffers.put_get.dtypes.bfloat16",
        "buffers.put_get.dtypes.int64", "operations.*.float32", "operations.*.bfloat16",
    ),
    "aot": ("programs.*", "declared.serialization*", "declared.fingerprint"),
    "multi-device": (
        "scales.*", "buffers.copy.*", "devices.*", "collectives.*.float32",
        "collectives.collective_permute.*", "collectives.replica_id", "collectives.sharding.*",
    ),
}  # fmt: skip
"""Name of a profile to patterns of ids. A profile needs what its host cannot do without."""

_NOT_NEEDED: Mapping[str, Sequence[str]] = {
    "jax": ("buffers.copy.devices", "buffers.put_get.dtypes.*", "buffers.size"),
    "multi-device": ("devices.memories.put", "collectives.collective_broadcast.*"),
}
"""What the patterns of a profile name too much."""


def checks_of(profile: str) -> Sequence[Check]:
    """Returns the checks of a profile, in the kit's order."""
    wanted, exempt = PROFILES[profile], _NOT_NEEDED.get(profile, ())
    exact = {pattern for pattern in wanted if "*" not in pattern}
    return [
        check
        for name, check in registry.checks().items()
        if name in exact or (_any(name, wanted) and not _any(name, exempt))
    ]


def _any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def missing(profile: str, results: Mapping[str, Result]) -> list[str]:
    """Returns the ids that a profile needs and that did not pass; REFUSED is not enough."""
    return [
        check.id
        for check in checks_of(profile)
        if check.id not in results or results[check.id].verdict is not Verdict.PASS
    ]
