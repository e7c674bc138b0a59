"""The stages of ahead-of-time compilation: `Traced`, `Lowered`, `Compiled`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, overload

from plugrt.argument_errors import with_argument_errors, with_checked_methods
from plugrt.errors import ArgumentError
from plugrt.execution import tree
from plugrt.execution.arguments import Aval, parameter_types
from plugrt.execution.compiled import CompiledCall
from plugrt.execution.float_checks import Rerun
from plugrt.execution.loaded_program import LoadedProgram
from plugrt.execution.programs import load, resolve_launch
from plugrt.interface import CompileOptions, Device, LoadedExecutable, Topology
from plugrt.stablehlo.bindings import ir
from plugrt.tracing.trace_function import Staged
from plugrt.transforms.aot import AheadOfTime, compile_ahead
from plugrt.transforms.shape_dtype_struct import ShapeDtypeStruct


@with_checked_methods
@dataclass(frozen=True, repr=False, eq=False)
class Traced:
    """A function traced for one combination of argument types."""

    staged: Staged
    in_tree: tree.PyTreeSpec
    avals: tuple[Aval, ...]
    device: Device | None
    _rerun: Rerun | None = field(default=None, kw_only=True, compare=False)
    """Makes a call again operation by operation, for the debug checks."""

    @property
    def out_info(self) -> Any:
        """The results as a pytree of `ShapeDtypeStruct`."""
        types = self.staged.output_types
        return tree.unflatten(
            self.staged.out_tree, [ShapeDtypeStruct(t.shape, t.dtype) for t in types]
        )

    def lower(self) -> Lowered:
        """Returns the next stage: the StableHLO module."""
        return Lowered(self)

    def __repr__(self) -> str:
        types = ", ".join(str(p.type) for p in self.staged.parameters)
        return f"<traced {self.staged.plan.name!r} of ({types})>"

    @overload
    def compile(self) -> Compiled: ...
    @overload
    def compile(self, *, topology: Topology | str) -> AheadOfTime: ...
    def compile(self, *, topology: Topology | str | None = None) -> Compiled | AheadOfTime:
        """Compiles and loads the program on the device that the arguments imply.

        With ``topology`` (or its name, such as ``"tpu:v5e:2x2"``) it is compiled for those
        devices, which need not be here, and not loaded.
        """
        if topology is None:
            return self._load()
        return compile_ahead(self.staged, topology, self._options(), self.out_info)

    def _load(self) -> Compiled:
        launch = resolve_launch(self.staged, self.avals, self.device)
        return Compiled(self, load(self.staged, launch))

    def _options(self) -> CompileOptions:
        """Returns how it is compiled for devices that are not known yet."""
        return CompileOptions()


@with_checked_methods
@dataclass(frozen=True, repr=False, eq=False)
class Lowered:
    """A StableHLO module, ready to be compiled."""

    traced: Traced

    @with_argument_errors
    def as_text(self, *, debug_info: bool = False) -> str:
        """Returns the module as StableHLO text; with ``debug_info`` also names and source lines."""
        module = self.traced.staged.module
        if not debug_info:
            return self.traced.staged.text
        return str(module.operation.get_asm(enable_debug_info=True))

    def as_dot(self) -> str:
        """Returns the module as Graphviz text: ``dot -Tsvg`` makes a picture of it.

        A node is an operation with its result types and source line, a frame a function or a
        region; a dashed edge leads from what one returns to the operation that uses it. Constants
        of more than 8 elements are summarised. JAX has no such method.
        """
        from plugrt.stablehlo.module_graph import module_graph

        return module_graph(self.traced.staged.module, self.traced.staged.plan.name)

    @with_argument_errors
    def compiler_ir(self, dialect: str = "stablehlo") -> ir.Module:
        """Returns the module as an object of jaxlib's MLIR bindings."""
        if dialect != "stablehlo":
            raise ArgumentError(f"compiler_ir gives the dialect 'stablehlo'; asked for {dialect!r}")
        return self.traced.staged.module

    @property
    def in_tree(self) -> tree.PyTreeSpec:
        """The structure of ``(args, kwargs)``."""
        return self.traced.in_tree

    @property
    def out_tree(self) -> tree.PyTreeSpec:
        """The structure of the results."""
        return self.traced.staged.out_tree

    @property
    def out_info(self) -> Any:
        """The results as a pytree of `ShapeDtypeStruct`."""
        return self.traced.out_info

    @overload
    def compile(self) -> Compiled: ...
    @overload
    def compile(self, *, topology: Topology | str) -> AheadOfTime: ...
    def compile(self, *, topology: Topology | str | None = None) -> Compiled | AheadOfTime:
        """Compiles and loads the program, or compiles it for a topology: `Traced.compile`."""
        if topology is None:
            return self.traced.compile()
        return self.traced.compile(topology=topology)

    def __repr__(self) -> str:
        return repr(self.traced).replace("<traced", "<lowered", 1)


@with_checked_methods
class Compiled(CompiledCall):
    """A compiled program that takes arguments of exactly the types it was compiled for."""

    def __init__(self, traced: Traced, program: LoadedProgram) -> None:
        staged = traced.staged
        types = parameter_types(traced.avals)
        title = f"compiled {staged.plan.name!r}"
        super().__init__(program, traced.in_tree, staged.out_tree, types, title)
        self._traced = traced
        self._rerun = traced._rerun

    def runtime_executable(self) -> LoadedExecutable:
        """Returns the backend's executable."""
        self._executable  # noqa: B018  # raises where nothing was compiled
        assert self._program.executable is not None
        return self._program.executable

    @property
    def in_tree(self) -> tree.PyTreeSpec:
        """The structure of ``(args, kwargs)``."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> tree.PyTreeSpec:
        """The structure of the results."""
        return self._traced.staged.out_tree

    @property
    def out_info(self) -> Any:
        """The results as a pytree of `ShapeDtypeStruct`."""
        return self._traced.out_info

    def __repr__(self) -> str:
        return f"<{self._title}>"
