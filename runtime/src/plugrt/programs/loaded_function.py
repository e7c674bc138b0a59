"""`LoadedFunction`: a compiled function that was saved, as a callable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.errors import ArgumentMismatch
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.pytrees import PyTreeSpec
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import Device, TensorType
from plugrt.programs.saved_function import SavedFunction
from plugrt.transforms.stage_info import CompiledInfo


@with_checked_methods
class LoadedFunction(CompiledInfo):
    """A saved compiled function, for arguments of the types that it was compiled for.

    The bytes do not contain the pytrees of its arguments and results. So call it with the leaves of
    its arguments in order; it returns its result, or a tuple of its results.
    """

    def __init__(
        self,
        function: SavedFunction,
        in_tree: PyTreeSpec | None = None,
        out_tree: PyTreeSpec | None = None,
    ) -> None:
        program = function.program
        self._content = function.executable
        count = len(program.outputs)
        in_tree = in_tree or pytrees.flatten((tuple(range(len(function.types))), {}))[1]
        out_tree = out_tree or pytrees.flatten(0 if count == 1 else (0,) * count)[1]
        title = f"compiled {program.plan.name!r}"
        super().__init__(program, in_tree, out_tree, function.types, title)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it runs on."""
        return self._program.launch.devices

    @property
    def device(self) -> Device:
        """The first of `devices`."""
        return self.devices[0]

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """The types of the leaves of its arguments."""
        return tuple(TensorType(*kind[:2]) for kind in self._types or ())

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of the leaves of its results."""
        return tuple(TensorType(s.shape, s.dtype) for s in self._program.outputs)

    def call_flat(self, arrays: Sequence[object]) -> tuple[Any, ...]:
        """Calls it with the leaves of its arguments in order; returns flat results."""
        if len(arrays) != self.in_tree.num_leaves:
            takes = ", ".join(map(str, self.input_types))
            raise ArgumentMismatch(
                f"{self._title} takes {self.in_tree.num_leaves} arguments ({takes}); called with "
                f"{len(arrays)}"
            )
        args, kwargs = pytrees.unflatten(self.in_tree, arrays)
        return tuple(pytrees.leaves(self(*args, **kwargs)))

    def serialize(self) -> bytes:
        """Returns the executable as it was saved, for `plugrt.compile`."""
        if self._program.executable is None:
            return super().serialize()  # raises the error that it cannot be saved
        return self._content

    def __repr__(self) -> str:
        return f"<{self._title}, loaded on {', '.join(map(repr, self.devices))}>"
