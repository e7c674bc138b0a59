"""Level 2: programs are compiled for devices that need not exist. Needs no client or hardware.

The topology is the one of ``--topology``, or the first of `plugrt.plugins.Plugin.topology_names`;
if there is none, the check requests the library's topology without a name.
"""

from __future__ import annotations

from plugrt.errors import InvalidArgument, PlugrtError
from plugrt.interface import CompileOptions, Executable, Program, Topology
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_refusal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing.programs import ADD

CHAPTER = Chapter(
    "ahead_of_time", Level.COMPUTES, "plugrt.interface.Topology; PJRT_TopologyDescription_*",
    needs=Needs.PLUGIN,
)  # fmt: skip

_UNKNOWN = "no such topology"


def _compile(topology: Topology, text: str = ADD, replicas: int = 1) -> Executable:
    return topology.compile(Program(text.encode()), CompileOptions(num_replicas=replicas))


@CHAPTER.check(
    "devices",
    refusable=True,
    why="programs are compiled for the wrong machine",
    covers=("Topology.devices", "Topology.platform", "Topology.platform_version"),
)
def devices(subject: PluginSubject) -> None:
    """A topology has a platform and devices with kinds and unique ids."""
    topology = subject.create_topology()
    expect(topology.platform, "a platform", topology.platform)
    expect(isinstance(topology.platform_version, str), "a version", topology.platform_version)
    found = topology.devices
    expect(found, "one device at least", found)
    ids = [device.id for device in found]
    expect_equal(ids, sorted(set(ids)), "the ids")
    nameless = [device.id for device in found if not device.kind]
    expect(not nameless, "no device without a kind", nameless)


@CHAPTER.check(
    "again",
    refusable=True,
    why="caches hand out programs of another machine, or never find any",
    covers=("Topology.devices", "Topology.attributes", "Topology.stablehlo_current_version"),
)
def again(subject: PluginSubject) -> None:
    """Two topologies of the same name have the same description."""

    def describe() -> object:
        topology = subject.create_topology()
        listed = [(d.id, d.kind, d.process_index, dict(d.attributes)) for d in topology.devices]
        return listed, dict(topology.attributes), topology.stablehlo_current_version

    expect_equal(describe(), describe(), "the second time")


@CHAPTER.check(
    "unknown", refusable=True, why="a mistyped name compiles for some machine, and nobody notices"
)
def unknown(subject: PluginSubject) -> None:
    """The name of a topology that does not exist is refused."""
    subject.create_topology()  # otherwise only topologies as such would be refused
    expect_refusal(
        lambda: subject.plugin.create_topology(_UNKNOWN, {}), PlugrtError,
        what=f"create_topology({_UNKNOWN!r})",
    )  # fmt: skip


@CHAPTER.check(
    "compile",
    refusable=True,
    why="programs cannot be compiled ahead of time",
    covers=("Topology.compile", "Executable.output_types"),
)
def compile_for_absent_devices(subject: PluginSubject) -> None:
    """A program is compiled for devices that do not exist, and states its results."""
    executable = _compile(subject.create_topology())
    [result] = executable.output_types
    expect_equal((result.dtype.name, tuple(result.shape)), ("float32", (3,)), "the result")


@CHAPTER.check(
    "compile.nonsense", refusable=True, why="a bad program ends the build",
    covers=("Topology.compile",),
)  # fmt: skip
def nonsense_is_refused(subject: PluginSubject) -> None:
    """A text that is not a program is refused, and the next program is compiled."""
    topology = subject.create_topology()
    expect_refusal(lambda: _compile(topology, "nonsense"), PlugrtError, what="compile('nonsense')")
    _compile(topology)


@CHAPTER.check(
    "compile.devices", refusable=True, why="a program is compiled that cannot run anywhere",
    covers=("Topology.compile",),
)  # fmt: skip
def too_many_replicas_are_refused(subject: PluginSubject) -> None:
    """A program for one replica more than there are devices is refused."""
    topology = subject.create_topology()
    count = len(topology.devices) + 1
    expect_refusal(
        lambda: _compile(topology, replicas=count), InvalidArgument,
        what=f"{count} replicas on {count - 1} devices",
    )  # fmt: skip


@CHAPTER.check(
    "compile.serialization",
    refusable=True,
    why="what is compiled ahead of time cannot be taken to the devices",
    covers=("Executable.serialize",),
)
def serialization(subject: PluginSubject) -> None:
    """A program compiled for absent devices can be saved."""
    saved = _compile(subject.create_topology()).serialize()
    expect(isinstance(saved, bytes) and saved, "some bytes", saved)


@CHAPTER.check(
    "fingerprint", refusable=True, why="caches hand out programs of another machine",
    covers=("Topology.fingerprint",),
)  # fmt: skip
def fingerprint(subject: PluginSubject) -> None:
    """Two topologies of the same name have the same fingerprint."""
    first, second = subject.create_topology(), subject.create_topology()
    expect_equal(second.fingerprint(), first.fingerprint(), "the fingerprint")


@CHAPTER.check(
    "serialize", refusable=True, why="a topology cannot be handed to another process",
    covers=("Topology.serialize",),
)  # fmt: skip
def serialize(subject: PluginSubject) -> None:
    """A topology can be serialised."""
    saved = subject.create_topology().serialize()
    expect(isinstance(saved, bytes) and saved, "some bytes", saved)
