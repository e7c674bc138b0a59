"""The stages before compilation, `Traced` and `Lowered`, of `jit` and `pmap`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from plugrt.errors import ArgumentError, ArgumentTypeError, DeviceMismatch, FailedPrecondition
from plugrt.execution.arrays.aval import Aval, intern_aval, intern_host_aval
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.launches.programs import compile_options, load, resolve_launch
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.launch_shardings import place_on
from plugrt.execution.placement.placement import CompilerOptions, Launch, read_compiler_options
from plugrt.execution.placement.result_avals import result_avals
from plugrt.execution.shardings.named_sharding import is_abstract
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import (
    Client,
    CompileOptions,
    Device,
    OptionValue,
    Topology,
)
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.selection.platform_names import expand_platform_alias
from plugrt.settings.declarations import config
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.entry_attributes import EntryAttributes
from plugrt.stablehlo.passes import with_named_meshes
from plugrt.stablehlo.xla_computation import XlaComputation
from plugrt.tracing.launch_attributes import entry_attributes, memory_attributes
from plugrt.tracing.staged import Staged
from plugrt.transforms.aot import AheadOfTime, compile_ahead
from plugrt.transforms.compiled_function import Compiled, estimate_costs
from plugrt.transforms.shape_dtype_struct import struct_of
from plugrt.transforms.stage_info import StageInfo
from plugrt.transforms.topology import resolve_topology

OptionsByName = Mapping[str, str | bool | int | float]
"""Options of a compiler; the compiler refuses those that it does not know."""


@with_checked_methods
@dataclass(frozen=True, repr=False, eq=False)
class Traced(StageInfo):
    """A function traced for one combination of argument types."""

    staged: Staged
    _in_tree: pytrees.PyTreeSpec
    avals: tuple[Aval, ...]
    device: Device | None
    compiler_options: CompilerOptions = field(default=(), kw_only=True)
    """The function's own compiler options."""
    _rerun: Rerun | None = field(default=None, kw_only=True, compare=False)
    """A function that repeats a call operation by operation, for the debug checks."""
    _placed: Launch | None = field(default=None, kw_only=True, compare=False)
    """Its devices, shardings and layouts, if they are known before the call."""

    @property
    def _stage(self) -> Traced:
        return self

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.staged.plan.name

    def _out_info(self, launch: Launch | None = None) -> Any:
        """Returns the results, of all replicas together, as a pytree of `ShapeDtypeStruct`.

        They have the shardings that a launch states, or that are known before compilation.
        """
        staged, placed = self.staged, launch or self._placed
        results: Sequence[Aval]
        if placed is None:
            types = zip(staged.output_types, staged.weak_outputs, strict=True)
            results = [intern_host_aval(t.shape, t.dtype, weak) for t, weak in types]
        else:
            results = result_avals(staged, placed)
        if launch is None and staged.out_shardings:  # as in JAX, types name no devices
            typed = zip(results, staged.out_shardings, strict=True)
            results = [
                intern_aval(k.shape, k.dtype, one, True, k.weak, k.layout)
                if one is not None and one.mesh.explicit_axes
                else k
                for k, one in typed
            ]
        return pytrees.unflatten(staged.out_tree, [*map(struct_of, results)])

    def lower(self, *, lowering_platforms: Iterable[str] | None = None) -> Lowered:
        """Returns the next stage: the StableHLO module.

        With ``lowering_platforms``, such as ``("tpu",)``, the module is for these platforms, whose
        devices need not be present: here it can be compiled for a topology of such a platform.
        Raises `DeviceMismatch` if arguments and operations have different devices.
        """
        if not self.staged.pmaps and (
            self.staged.claims or any(aval.committed for aval in self.avals)
        ):
            self._launch()  # raises if devices contradict
        return Lowered(self, _read_platforms(lowering_platforms), config.default_device)

    def __repr__(self) -> str:
        types = ", ".join(str(p.type) for p in self.staged.parameters)
        return f"<traced {self.staged.plan.name!r} of ({types})>"

    @overload
    def compile(
        self,
        compiler_options: OptionsByName | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> Compiled: ...
    @overload
    def compile(
        self, compiler_options: OptionsByName | None = None, *, topology: Topology | str
    ) -> AheadOfTime: ...
    def compile(
        self,
        compiler_options: OptionsByName | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
        topology: Topology | str | None = None,
    ) -> Compiled | AheadOfTime:
        """Compiles and loads the program on the device that the arguments imply.

        ``compiler_options`` are options of the backend's compiler, by name, in addition to the
        function's own; it refuses unknown ones. Structs over an `AbstractMesh` have no devices:
        pass as many as the mesh has in ``device_assignment``. With ``topology`` (or its name, such
        as ``"tpu:v5e:2x2"``) it is compiled for those devices, which need not be here, and not
        loaded. Raises `FailedPrecondition` if the devices are not determined, and `DeviceMismatch`
        if ``device_assignment`` has other devices than the arguments, or another number.
        """
        _require_one(device_assignment, topology)
        added = read_compiler_options("compile", compiler_options)
        options = tuple(sorted({**dict(self.compiler_options), **dict(added)}.items()))
        if topology is None:
            launch = replace(self._launch_on(device_assignment), compiler_options=options)
            return Compiled(self, load(self.staged, launch))
        asked = replace(self._options(), env_overrides=dict(options))
        return compile_ahead(self, topology, asked, self._known, self._attributes)

    def _launch(self) -> Launch:
        """Returns the launch; it has no devices if only an `AbstractMesh` states their number."""
        return self._placed or resolve_launch(self.staged, self.avals, self.device)

    def _launch_on(self, assigned: Sequence[Device] | None) -> Launch:
        """Returns the launch on its devices, or on the ``assigned`` ones."""
        launch, name = self._launch(), self.staged.plan.name
        if assigned is None:
            if not launch.devices and any(is_abstract(aval.sharding) for aval in self.avals):
                raise FailedPrecondition(
                    f"the arguments of {name!r} are over an AbstractMesh, which has no devices: "
                    "name them, compile(device_assignment=devices), or a topology"
                )
            return launch
        devices = tuple(assigned)
        if not all(isinstance(device, Device) for device in devices):
            raise ArgumentTypeError(
                f"device_assignment is a sequence of plugrt.devices(); got {assigned!r:.80}"
            )
        if launch.devices and devices != launch.devices:
            raise DeviceMismatch(
                f"{name!r} is compiled for {list(launch.devices)}, where its arguments are; "
                f"device_assignment has {list(devices)}"
            )
        if len(devices) != len(launch.devices or range(launch.partitions)):
            raise DeviceMismatch(
                f"{name!r} is over a mesh of {launch.partitions} devices; device_assignment has "
                f"{len(devices)}"
            )
        return launch if launch.devices else place_on(launch, devices)

    @property
    def _client(self) -> Client:
        launch = self._launch()
        return launch.client if launch.devices else default_device().client

    @property
    def _attributes(self) -> EntryAttributes | None:
        """The shardings, layouts and memories from `jit`'s options or from the arguments."""
        staged, known = self.staged, self._known
        if known is None:
            fed = len(staged.plan.kept) + staged.plan.fed
            return memory_attributes(staged.plan, staged.out_memory_kinds, fed)
        return entry_attributes(staged.plan, staged.types, staged.output_types, known)

    @property
    def _known(self) -> Launch | None:
        """The launch, if options or a mesh of arguments or operations determine it; or None."""
        if self._placed is None and self._has_mesh():
            return self._launch()
        return self._placed

    def _has_mesh(self) -> bool:
        return any(isinstance(aval.sharding, TiledSharding) for aval in self.avals) or any(
            claim.is_over_mesh for claim in self.staged.claims
        )

    def _options(self) -> CompileOptions:
        """Returns the compile options for devices that are not known yet."""
        known = self._known
        if known is None:
            return CompileOptions(num_replicas=self.staged.replicas)
        return replace(compile_options(known, self.staged.plan), device_assignment=None)


def _read_platforms(platforms: Iterable[str] | None) -> tuple[str, ...] | None:
    if platforms is None:
        return None
    named = () if isinstance(platforms, str) else tuple(platforms)
    if not named or not all(isinstance(name, str) for name in named):
        raise ArgumentTypeError(
            "lowering_platforms takes several names of platforms, such as ('tpu',); got "
            f"{platforms!r:.80}"
        )
    return named


@with_checked_methods
@dataclass(frozen=True, repr=False, eq=False)
class Lowered(StageInfo):
    """A StableHLO module, ready to be compiled."""

    traced: Traced
    platforms: tuple[str, ...] | None = None
    """The platforms for which it was lowered; None for any."""
    _default_device: Device | str | None = field(default=None, compare=False)
    """The setting of that name when it was lowered; `compile` uses it, as in JAX."""

    @property
    def _stage(self) -> Traced:
        return self.traced

    @property
    def _staged(self) -> Staged:
        """The trace lowered for its platform; unchanged if it is for several."""
        staged = self.traced.staged
        if not staged.depends_on_platform:
            return staged
        if self.platforms is None:
            with config.override(default_device=self._default_device):
                client = self.traced._client
            return staged.lowered_for(process_backends().platforms_of(client))
        named = [
            name for alias in self.platforms for name in (alias, *expand_platform_alias(alias))
        ]
        return staged.lowered_for(named) if len(self.platforms) == 1 else staged

    @property
    def _module(self) -> ir.Module:
        """The module, with the layouts and memories from `jit`'s options."""
        return self._staged.module_with(self.traced._attributes)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Returns the module as text: of StableHLO, or with ``dialect="hlo"`` as HLO.

        With ``debug_info`` it has names and source lines. Raises `ArgumentError` for another
        dialect.
        """
        staged = self._staged
        module = staged.module_with(self.traced._attributes)
        if _read_dialect(dialect) == "hlo":
            computation = XlaComputation(module, debug_info=debug_info)
            return computation.text_with_lines() if debug_info else computation.as_hlo_text()
        module = _name_meshes(module)
        if not debug_info:
            return staged.text if module is staged.module else str(module)
        return str(module.operation.get_asm(enable_debug_info=True))

    def as_dot(self) -> str:
        """Returns the module as Graphviz text: ``dot -Tsvg`` makes a picture of it.

        A node is an operation with its result types and source line, a frame a function or a
        region; a dashed edge leads from the result of one to the operation that uses it. Constants
        of more than 8 elements are summarised. JAX has no such method.
        """
        from plugrt.stablehlo.module_graph import module_graph

        return module_graph(self._staged.module, self.traced.fun_name)

    @overload
    def compiler_ir(self, dialect: None = None) -> ir.Module: ...
    @overload
    def compiler_ir(self, dialect: str) -> ir.Module | XlaComputation: ...
    def compiler_ir(self, dialect: str | None = None) -> ir.Module | XlaComputation:
        """Returns the module as an object of jaxlib's MLIR bindings; for ``"hlo"``, as HLO.

        Raises `ArgumentError` for another dialect.
        """
        if _read_dialect(dialect) == "hlo":
            return XlaComputation(self._module)
        return _name_meshes(self._module)

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and so on of the module, before it is optimised.

        XLA counts them, whatever the backend; custom calls count as 0.
        """
        return estimate_costs(self._staged)

    @overload
    def compile(
        self,
        compiler_options: OptionsByName | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> Compiled: ...
    @overload
    def compile(
        self, compiler_options: OptionsByName | None = None, *, topology: Topology | str
    ) -> AheadOfTime: ...
    def compile(
        self,
        compiler_options: OptionsByName | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
        topology: Topology | str | None = None,
    ) -> Compiled | AheadOfTime:
        """Compiles and loads the program, or compiles it for a topology: `Traced.compile`.

        Raises `ArgumentError` if it was lowered for other platforms, unless ``device_assignment``
        gives the devices and the module is the same for their platform.
        """
        _require_one(device_assignment, topology)
        if topology is None:
            with config.override(default_device=self._default_device):
                if self.platforms is not None and (
                    device_assignment is None or self.traced.staged.depends_on_platform
                ):
                    self._check_platform(self.traced._client)
                return self.traced.compile(compiler_options, device_assignment=device_assignment)
        target = resolve_topology(topology)
        self._check_platform(target)
        return self.traced.compile(compiler_options, topology=target)

    def _check_platform(self, target: Client | Topology) -> None:
        asked = self.platforms
        if asked is None:
            return
        meant = {name for alias in asked for name in (alias, *expand_platform_alias(alias))}
        if meant.isdisjoint(process_backends().platforms_of(target)):
            raise ArgumentError(
                f"{self.traced.fun_name!r} was lowered for {', '.join(asked)}; it cannot be "
                f"compiled for {target.platform}. Name a topology of such a platform "
                f'(compile(topology="{asked[0]}:NAME")), or lower it without lowering_platforms'
            )

    def __repr__(self) -> str:
        return repr(self.traced).replace("<traced", "<lowered", 1)


def _require_one(devices: object, topology: object) -> None:
    if devices is not None and topology is not None:
        raise ArgumentError("compile takes device_assignment or topology, not both")


def _name_meshes(module: ir.Module) -> ir.Module:
    return with_named_meshes(module) if "<mesh<" in str(module) else module


def _read_dialect(dialect: str | None) -> str:
    if dialect not in (None, "stablehlo", "hlo"):
        raise ArgumentError(f"unknown dialect: {dialect!r:.60}; there are 'stablehlo' and 'hlo'")
    return dialect or "stablehlo"
