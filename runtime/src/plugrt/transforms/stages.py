"""The stages of ahead-of-time compilation: `Traced`, `Lowered`, `Compiled`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from plugrt.errors import ArgumentMismatch
from plugrt.execution import tree
from plugrt.execution.array import Array
from plugrt.execution.program import LoadedProgram
from plugrt.execution.sharding import SingleDeviceSharding
from plugrt.execution.signature import Signature
from plugrt.execution.transfer import move
from plugrt.interface import (
    CompileOptions,
    Device,
    LoadedExecutable,
    MemoryAnalysis,
    OptionValue,
    TensorType,
    Topology,
)
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.hlo import optimized_text
from plugrt.tracing.dispatch import as_array, load
from plugrt.tracing.staging import Staged
from plugrt.transforms.ahead import AheadOfTime, compile_ahead
from plugrt.transforms.described import ShapeDtypeStruct


@dataclass(frozen=True, repr=False)
class Traced:
    """A function traced for one kind of arguments."""

    staged: Staged
    in_tree: tree.PyTreeSpec
    signatures: tuple[Signature, ...]
    device: Device | None

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
        return Compiled(self, load(self.staged, self.signatures, self.device))

    def _options(self) -> CompileOptions:
        """Returns how it is compiled for devices that are not known yet."""
        return CompileOptions()


@dataclass(frozen=True, repr=False)
class Lowered:
    """A StableHLO module, ready to be compiled."""

    traced: Traced

    def as_text(self, *, debug_info: bool = False) -> str:
        """Returns the module as StableHLO text; with ``debug_info`` also names and source lines."""
        module = self.traced.staged.module
        if not debug_info:
            return self.traced.staged.text
        return str(module.operation.get_asm(enable_debug_info=True))

    def compiler_ir(self, dialect: str = "stablehlo") -> ir.Module:
        """Returns the module as an object of jaxlib's MLIR bindings."""
        if dialect != "stablehlo":
            raise ValueError(f"compiler_ir gives the dialect 'stablehlo'; asked for {dialect!r}")
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


class Compiled:
    """A compiled program that takes arguments of exactly the kind it was compiled for."""

    def __init__(self, traced: Traced, program: LoadedProgram) -> None:
        self._traced = traced
        self._program = program
        self._types = [p.type for p in traced.staged.parameters]
        self._names = [p.name for p in traced.staged.parameters]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launches it. Raises `ArgumentMismatch` saying which argument differs and how."""
        leaves, spec = tree.flatten((args, kwargs))
        if spec != self._traced.in_tree:
            raise ArgumentMismatch(
                f"{self._title} was compiled for arguments of the structure "
                f"{self._traced.in_tree}; called with {spec} (static arguments are left out of "
                "the call)"
            )
        arrays = [
            as_array(leaf, f"argument {name} of {self._title}", t.dtype.char in "dD")
            for leaf, name, t in zip(leaves, self._names, self._types, strict=True)
        ]
        self._check(arrays)
        return tree.unflatten(self._traced.staged.out_tree, self._program.run(self._place(arrays)))

    @property
    def _title(self) -> str:
        return f"compiled {self._program.plan.name!r}"

    def _check(self, arrays: Sequence[Array]) -> None:
        wrong = [
            f"  {name}: compiled for {expected}, called with {found}"
            for name, expected, found in zip(
                self._names,
                self._types,
                [TensorType(a.shape, a.dtype) for a in arrays],
                strict=True,
            )
            if expected != found
        ]
        if wrong:
            raise ArgumentMismatch(
                f"{self._title} was called with arguments of other types:\n" + "\n".join(wrong)
            )

    def _place(self, arrays: Sequence[Array]) -> list[Array]:
        loaded = self._program.executable
        if loaded is None:
            return list(arrays)
        device = loaded.addressable_devices[0]
        here = SingleDeviceSharding(device)
        strange = [
            f"  {name}: on {a.sharding!r}"
            for name, a in zip(self._names, arrays, strict=True)
            if a.committed and a.sharding is not here
        ]
        if strange:
            raise ArgumentMismatch(
                f"{self._title} runs on {device!r}; these arguments are committed elsewhere:\n"
                + "\n".join(strange)
            )
        return [a if a.sharding is here else move(a, device, a.committed) for a in arrays]

    @property
    def _loaded(self) -> LoadedExecutable:
        loaded = self._program.executable
        if loaded is None:
            raise ValueError(
                f"{self._title} only passes arguments through: nothing was compiled for it"
            )
        return loaded

    def runtime_executable(self) -> LoadedExecutable:
        """Returns the backend's executable."""
        return self._loaded

    def as_text(self) -> str:
        """Returns the backend's optimised program as text."""
        return optimized_text(self._loaded.executable)

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and what else the backend states."""
        return self._loaded.executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Returns the memory that a launch needs, in bytes."""
        return self._loaded.executable.memory_analysis()

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
