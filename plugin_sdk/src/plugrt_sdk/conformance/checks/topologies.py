"""Level 3: compilation for described devices, which need not exist."""

from __future__ import annotations

from plugrt.errors import NotFound, PjrtError, describe
from plugrt.interface import CompileOptions, DeviceDescription, Executable, Program, Topology
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_mistake, expect_refusal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs

CHAPTER = Chapter(
    "topologies", Level.BEHAVES, "plugrt.interface.Topology; PJRT_TopologyDescription_*"
)


@CHAPTER.check(
    "devices", refusable=True, why="programs are compiled for devices of another kind",
    covers=(
        "Client.topology", "Topology.platform", "Topology.platform_version", "Topology.devices",
        "Topology.attributes", "Topology.stablehlo_current_version",
    ),
)  # fmt: skip
def devices(subject: PluginSubject) -> None:
    """A client's topology has its platform, and describes devices with unique ids."""
    found: Topology = subject.client.topology()
    expect_equal(found.platform, subject.client.platform, "the platform")
    expect(isinstance(found.platform_version, str), "a version's text", found.platform_version)
    listed = list(found.devices)
    described = all(isinstance(device, DeviceDescription) for device in listed)
    expect(listed and described, "DeviceDescriptions", listed)
    expect_equal(len({device.id for device in listed}), len(listed), "different ids:")
    expect(all(isinstance(name, str) for name in found.attributes), "names", found.attributes)
    newest = found.stablehlo_current_version
    expect(newest is None or len(newest) == 3, "a StableHLO version, or None", newest)


def _compile_for(subject: PluginSubject, topology: Topology, text: str) -> Executable:
    """Compiles a program; XLA answers NOT_FOUND if it has no compiler for the platform."""
    subject.note_program(text)
    try:
        return topology.compile(Program(text.encode()), CompileOptions())
    except NotFound as error:
        subject.refuse(describe(error))


@CHAPTER.check(
    "compile", capability="topology", why="programs compiled ahead of time cannot be placed",
    covers=("Topology.compile",), rests_on="PJRT_Compile",
)  # fmt: skip
def compile(subject: PluginSubject) -> None:
    """A program is compiled for a topology, and states its counts and the types of its results."""
    found = _compile_for(subject, subject.client.topology(), programs.SEVERAL_RESULTS)
    expect_equal((found.num_replicas, found.num_partitions), (1, 1), "replicas and partitions")
    types = ["float32[]", "int32[2]", "int32[2]", "float32[0,4]"]
    expect_equal([str(kind) for kind in found.output_types], types, "the results' types")


@CHAPTER.check(
    "compile.refused", capability="topology", rests_on="plugrt.interface.Topology.compile",
    demand=Demand.PLUGRT,
    why="a program for more devices than there are is compiled, and can be loaded nowhere",
)  # fmt: skip
def compile_refused(subject: PluginSubject) -> None:
    """Text that is not a program, and a program for too many devices, are refused."""
    topology = subject.client.topology()
    _compile_for(subject, topology, programs.ADD)
    count = len(topology.devices) + 1
    expect_mistake(
        lambda: topology.compile(Program(b"this is no program"), CompileOptions()),
        "compile(a program that is none)",
    )
    expect_refusal(
        lambda: topology.compile(
            Program(programs.ADD.encode()), CompileOptions(num_replicas=count)
        ),
        PjrtError, what=f"compile() for {count} replicas",
    )  # fmt: skip


@CHAPTER.check(
    "identity", refusable=True, why="caches take another topology's programs for its own",
    covers=("Topology.serialize", "Topology.fingerprint"),
    rests_on="PJRT_TopologyDescription_Serialize, _Fingerprint",
)  # fmt: skip
def identity(subject: PluginSubject) -> None:
    """Equal topologies have equal fingerprints and equal serialised forms."""
    first, second = subject.client.topology(), subject.client.topology()
    expect_equal(second.fingerprint(), first.fingerprint(), "the fingerprint")
    expect(first.serialize(), "a serialised form", first.serialize())
    expect_equal(second.serialize(), first.serialize(), "the serialised form")
