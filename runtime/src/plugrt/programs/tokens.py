"""`leave_tokens_out`: a program that takes or gives tokens, launched on its arrays alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plugrt.execution.executables.wrapped_executable import WrappedExecutable
from plugrt.interface import ExecuteOptions, LoadedExecutable, Shards, TensorType


def leave_tokens_out(loaded: LoadedExecutable, inputs: Sequence[TensorType]) -> LoadedExecutable:
    """Returns an executable that takes and returns the arrays of a program, in their order.

    Each launch begins a chain of tokens, and drops those that it returns: what one launch does is
    in the program's order, and launches are in that of their calls, on one device. Itself where the
    program has no tokens. ``inputs`` are the types of its parameters.
    """
    outputs = loaded.executable.output_types
    if not any(kind.is_token for kind in (*inputs, *outputs)):
        return loaded
    return _TokenlessExecutable(loaded, inputs, outputs)


class _TokenlessExecutable(WrappedExecutable):
    """An executable of one device whose tokens are neither arguments nor results."""

    __slots__ = ("_arrays", "_tokens")

    def __init__(
        self,
        loaded: LoadedExecutable,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
    ) -> None:
        super().__init__(loaded)
        self._tokens = [i for i, kind in enumerate(inputs) if kind.is_token]
        self._arrays = [i for i, kind in enumerate(outputs) if not kind.is_token]

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        given = list(arguments)
        [device] = self.addressable_devices
        for i in self._tokens:
            [token] = self.client.shards_from_host([np.zeros(0, np.bool_)], device)
            given.insert(i, token)
        results = self._loaded.execute(given, options)
        return [results[i] for i in self._arrays]
