"""`ReplicatedProgram`: one compiled program on several devices, from and to sharded arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.execution import tree
from plugrt.execution.array import Array, new_array
from plugrt.execution.compile import compile_program
from plugrt.execution.program import LoadedProgram, Plan, check_floats
from plugrt.execution.sharding import PmapSharding
from plugrt.execution.signature import Signature, signature_of
from plugrt.execution.spread import put_sharded, reshard
from plugrt.interface import CompileOptions, Device, DeviceAssignment, LoadedExecutable, TensorType
from plugrt.tracing.dispatch import Runner, finisher
from plugrt.tracing.staging import Parameter, Staged
from plugrt.transforms.pmap_axes import Axis, AxisPrefix, within, without


@dataclass(frozen=True, slots=True)
class Mapping:
    """How a call divides among devices: the mapped axis of each flat argument, and a device for
    each replica."""

    axes: tuple[Axis, ...]
    devices: tuple[Device, ...]

    @property
    def size(self) -> int:
        """The number of replicas."""
        return len(self.devices)

    @property
    def targets(self) -> list[PmapSharding]:
        """Where the program takes each flat argument."""
        made = {axis: PmapSharding(self.devices, axis) for axis in set(self.axes)}
        return [made[axis] for axis in self.axes]

    def parameters(
        self, signatures: Sequence[Signature], names: Sequence[str], donated: frozenset[int]
    ) -> list[Parameter]:
        """Returns the parameters of one replica for arguments with these signatures."""
        return [
            Parameter(TensorType(without(axis, s.shape), s.dtype), s.weak, name, i in donated)
            for i, (axis, s, name) in enumerate(zip(self.axes, signatures, names, strict=True))
        ]

    def outputs(self, staged: Staged, out_axes: AxisPrefix) -> list[Signature]:
        """Returns the signature of each flat output. Raises as `AxisPrefix.spread` and `within`."""
        count, title = len(staged.output_types), staged.plan.name
        full = tree.unflatten(staged.out_tree, range(count))
        axes = out_axes.spread(full, lambda: f"the results of {title!r}, {staged.out_tree}")
        result = []
        for i, (axis, kind) in enumerate(zip(axes, staged.output_types, strict=True)):
            where = f"result {i} of {title!r}" if count > 1 else f"the result of {title!r}"
            at, shape = within(axis, kind, self.size, where)
            result.append(signature_of(shape, kind.dtype, PmapSharding(self.devices, at), True))
        return result


class ReplicatedProgram(LoadedProgram):
    """Runs an executable on one shard of each argument a device.

    An output that is an argument or a constant is the same shards, seen as the output's sharding
    says: nothing is copied where, say, a broadcast argument is returned along a mapped axis.
    """

    __slots__ = ("_outputs",)

    def __init__(
        self,
        plan: Plan,
        executable: LoadedExecutable | None,
        outputs: Sequence[Signature],
        prepare: Callable[[Sequence[Array]], Sequence[Array]] | None = None,
    ) -> None:
        """``outputs`` are the signatures of the flat outputs, not only of the executable's."""
        results = [
            s for s, (kind, _) in zip(outputs, plan.sources, strict=True) if kind == "result"
        ]
        super().__init__(plan, executable, results, prepare)
        self._outputs = tuple(outputs)

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        return [
            array if array._signature is signature else new_array(array._live(), signature)
            for array, signature in zip(super().run(arguments), self._outputs, strict=True)
        ]

    @property
    def needed(self) -> frozenset[int]:
        """The numbers of the arguments that have to be on the devices."""
        return frozenset(self.plan.kept) | self._forwarded

    @property
    def _forwarded(self) -> frozenset[int]:
        return frozenset(i for kind, i in self.plan.sources if kind == "argument")

    def taking(self, signatures: Sequence[Signature], mapping: Mapping) -> ReplicatedProgram:
        """Returns the program for arguments with these signatures: those elsewhere are moved."""
        targets = mapping.targets
        away = [i for i in sorted(self.needed) if signatures[i].sharding != targets[i]]
        if not away:
            return self
        # A buffer that an output would have in common with the argument is copied: deleting
        # or donating the argument must not take a part of the output.
        moves = [(i, targets[i], i not in self._forwarded) for i in away]

        def prepare(arguments: Sequence[Array]) -> list[Array]:
            placed = list(arguments)
            for i, target, share in moves:
                placed[i] = reshard(placed[i], target, share=share)
            return placed

        return ReplicatedProgram(self.plan, self.executable, self._outputs, prepare)


def load_replicated(staged: Staged, mapping: Mapping, out_axes: AxisPrefix) -> ReplicatedProgram:
    """Compiles a staged replica for the devices of ``mapping`` and loads it.

    Arrays that the function closed over are put on every device, once.
    """
    outputs = mapping.outputs(staged, out_axes)
    plan, devices = staged.plan, mapping.devices
    if plan.constants:
        everywhere = PmapSharding(devices, None)
        constants = tuple(reshard(c, everywhere, share=False) for c in plan.constants)
        plan = replace(plan, constants=constants)
    executable = None
    if not plan.is_trivial:
        client = devices[0].client
        if len(devices) > 1 and not client.capabilities.multiple_devices:
            raise Unimplemented(
                f"pmap over {len(devices)} devices: {client.backend_name} does not declare that "
                "one launch can run on several devices (capability multiple_devices)"
            )
        options = CompileOptions(
            num_replicas=len(devices),
            device_assignment=DeviceAssignment(tuple((d.id,) for d in devices)),
        )
        inputs = [staged.parameters[i].type for i in plan.kept]
        executable = compile_program(client, staged.program(client), options, inputs)
    return ReplicatedProgram(plan, executable, outputs)


def finishing(staged: Staged, nans: bool, infs: bool) -> Callable[[Runner], Runner]:
    """Returns what makes a runner give the output pytree, checked for NaNs or infinities."""
    out_tree, what = staged.out_tree, f"the output of pmapped {staged.plan.name!r}"

    def finish(run: Runner) -> Runner:
        if not (nans or infs):
            return finisher(out_tree, run)

        def checked(arguments: Sequence[Array]) -> Any:
            outputs = run(arguments)
            check_floats(outputs, what, nans=nans, infs=infs)
            return outputs

        return finisher(out_tree, checked)

    return finish


def putting(hosts: Sequence[tuple[int, PmapSharding]], run: Runner) -> Runner:
    """Returns a runner that first puts the host arrays among its arguments, by number."""

    def put_and_run(leaves: Sequence[Any]) -> Any:
        placed = list(leaves)
        for i, target in hosts:
            placed[i] = put_sharded(placed[i], target)
        return run(placed)

    return put_and_run
