"""`CompileDefaults`: compiler options that make a library compute what StableHLO specifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from plugrt.errors import InvalidArgument

if TYPE_CHECKING:
    from plugrt.interface import CompileOptions

_T = TypeVar("_T")

_OPTIONS: Mapping[str, Mapping[str, bool]] = {
    # Workaround for xla-22950: with the default max(1, nan) is 1, but max(nan, 1) is nan.
    "cpu": {"xla_cpu_enable_fast_min_max": False},
}
"""Compiler options by platform name that JAX sets, and that libraries do not set by default."""


class CompileDefaults:
    """The default options of one client, without those that its library rejects.

    The caller's options take precedence. Encoded options are passed unchanged.
    """

    def __init__(self, platform: str) -> None:
        self._options = dict(_OPTIONS.get(platform, {}))

    def compile(self, options: CompileOptions, compile_with: Callable[[CompileOptions], _T]) -> _T:
        """Returns ``compile_with(options)``, with these defaults added."""
        added = {k: v for k, v in self._options.items() if k not in options.env_overrides}
        if options.encoded is not None or not added:
            return compile_with(options)
        from dataclasses import replace  # not needed by every start

        try:
            return compile_with(replace(options, env_overrides={**added, **options.env_overrides}))
        except InvalidArgument as error:
            unknown = [name for name in added if name in str(error)]
            if not unknown:
                raise
        for name in unknown:
            self._options.pop(name, None)
        return self.compile(options, compile_with)
