"""`CompileDefaults`: compiler options that make a library compute what StableHLO specifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions

_T = TypeVar("_T")

_OPTIONS: Mapping[str, Mapping[str, bool]] = {
    # XLA of late 2025 has it on by default: max(1, nan) is 1 then, but max(nan, 1) is nan.
    "cpu": {"xla_cpu_enable_fast_min_max": False},
}
"""By platform name: what JAX's own defaults set, and a library by itself may not."""


class CompileDefaults:
    """The options of one client. Those that its library does not know are left out from then on.

    Options that the caller names are the caller's, and so are options that came encoded.
    """

    def __init__(self, platform: str) -> None:
        self._options = dict(_OPTIONS.get(platform, {}))

    def compile(self, options: CompileOptions, compile_with: Callable[[CompileOptions], _T]) -> _T:
        """Returns what ``compile_with`` gives for the options and these ones."""
        added = {k: v for k, v in self._options.items() if k not in options.env_overrides}
        if options.encoded is not None or not added:
            return compile_with(options)
        try:
            return compile_with(replace(options, env_overrides={**added, **options.env_overrides}))
        except InvalidArgument as error:
            unknown = [name for name in added if name in str(error)]
            if not unknown:
                raise
        for name in unknown:
            self._options.pop(name, None)
        return self.compile(options, compile_with)
