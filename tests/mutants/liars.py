"""Mutants that declare a missing feature, or deny a present one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.mutants.faults import Faults


def _turned(capability: str) -> Any:
    """Returns the property ``capabilities`` with one capability inverted."""

    def capabilities(self: Any) -> Any:
        declared = self._capabilities
        return replace(declared, **{capability: not getattr(declared, capability)})

    return property(capabilities)


CAUGHT_BY: Mapping[str, str] = {
    f"liar.{check.capability}": check.id
    for check in reversed(list(registry.checks().values()))
    if check.capability
}
"""Each liar, to the first check that uses the capability."""
LIARS: Mapping[str, Faults] = {
    name: Faults(
        client={"capabilities": _turned(name.removeprefix("liar."))},
        # Without this the device would refuse an undeclared feature.
        device={"memory_stats": lambda self: {"bytes_in_use": 7}},
        devices=2,
    )
    for name in CAUGHT_BY
}
