"""Mutants of installations: invented distributions, each with one fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plugrt.plugins.packages.distributions import Distribution
from plugrt_sdk.conformance.installation import Installation
from plugrt_sdk.conformance.mutants.faults import Faults

_SOUND = {
    "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    "RECORD": "installed.py,,\n",
    "entry_points.txt": (
        "[plugrt.plugins]\nnumpy = plugrt_numpy:plugin\n"
        "[jax_plugins]\nnumpy = plugrt_numpy.for_jax\n"
    ),
}


class _MadeUp(Distribution):
    """A distribution in this folder, whose metadata are texts."""

    texts: Mapping[str, str]

    def read(self, file: str) -> bytes:
        return {**_SOUND, **self.texts}.get(file, "").encode()


def _installed(
    module: str = "plugrt_sdk.no_such_module", version: str = "1.0", **texts: str
) -> Faults:
    """Returns a mutant, found as ``numpy``, whose distribution has these texts."""
    files = {name.replace("__", "."): text for name, text in texts.items()}
    made = _MadeUp("mutant", version, str(Path(__file__).with_suffix(".dist-info")))
    made.texts = files
    return Faults(plugin={"installation": Installation("numpy", made, module)})


SOUND: Mapping[str, Installation] = _installed().plugin
"""Members of a plugin whose installation has no fault."""
_elsewhere = Faults(plugin=SOUND, client={"platform": property(lambda self: "mutant")})
"""A mutant whose client states another platform than its name."""
MUTANTS: Mapping[str, Faults] = {
    "installed.entry_points": _installed(
        entry_points__txt="[plugrt.plugins]\nmutant = no_such_package.module:plugin\n"
    ),
    "installed.wheel.tag": _installed(RECORD="mutant/libmutant.so,,\n"),
    "installed.wheel.contents": _installed(RECORD="mutant/__init__.py,,\n"),
    "installed.wheel.version": _installed(version=""),
    "installed.not_selected": _installed(module="plugrt"),
    "installed.selected": _elsewhere,
    "installed.under_jax": _elsewhere,
}
