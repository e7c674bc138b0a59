"""The hooks of plugrt, which a plugin package may implement besides offering a `Plugin`.

Decorate the implementations with ``plugrt.plugins.hookimpl``, in a module or an object that an
entry point names: of the group ``plugrt.plugins`` for the first two, for the others of the group
that `plugrt.plugins.discovery.installed_plugins.HOOK_GROUPS` has for the hook. Hooks serve
registration and life cycle; no call of a computation passes through one. An implementation may omit
arguments that it does not need. The object may state the ``interface_version`` that it is written
for, as a `Plugin` does. An implementation that fails is named in a warning, and skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pluggy

from plugrt.interface import Client, Handler, OptionValue, Program
from plugrt.plugins.plugin import LoweringRule, Plugin

if TYPE_CHECKING:
    import click

PROJECT = "plugrt"
ProgramRewriter = Callable[[Program, Client], "Program | str | bytes | None"]
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def plugrt_offer_plugins() -> Sequence[Plugin]:
    """Return the plugins that this package offers.

    Called when an entry point is loaded, which is when its name is requested or a backend is chosen
    automatically; the plugin with that name is used. Each plugin needs an entry point of its name
    (several may name one object), as users must be able to name it before any code of the package
    runs. It must be quick and open no library.
    """


@hookspec
def plugrt_client_created(name: str, client: Client) -> None:
    """Called after the plugin ``name`` has created ``client``.

    It is called once for each client, under the lock that guards initialisation: do not call for
    devices here, and do not block.
    """


@hookspec
def plugrt_program_rewriters() -> Sequence[ProgramRewriter]:
    """Return functions that see each program before it is compiled.

    Each is called with the `Program` and the `Client`, and returns None or what replaces the
    program: a `Program` with the same parameters and results, or StableHLO as text or bytes.
    Called once, before the first compilation. An error of a rewriter fails the compilation.
    """


@hookspec
def plugrt_lowerings(platform: str) -> Mapping[str, LoweringRule]:
    """Return functions that replace operations on a platform, by the operations' names.

    The platform is the name of the entry point: a plugin's name, or one that clients report. An
    operation's name is StableHLO's or CHLO's (``stablehlo.cosine``), or a composite's. Each
    function is called like a traced function, with a `plugrt.plugins.LoweringContext` and the
    operands, and returns the results, or None to keep the operation. Called once, before the first
    program is lowered for the platform. An error of a function fails the compilation.
    """


@hookspec
def plugrt_linear_algebra(
    client: Client,
) -> tuple[Mapping[str, LoweringRule], Mapping[str, Handler]] | None:
    """Return linear algebra for a client whose plugin has none, or None.

    It is a pair: lowerings of plugrt's own operations by name, see `Plugin.lowerings`, and
    handlers of custom calls by target, which the client gets when a program calls them. Called
    once for each client, before the first program with linear algebra.
    """


@hookspec
def plugrt_cluster_environments() -> Sequence[object]:
    """Return ways to find the other processes of a run, for `plugrt.distributed.initialize`.

    Each is a `plugrt.distributed.ClusterEnvironment`. Called once, by an ``initialize`` with
    missing arguments; plugrt's own environments are asked first. The names can be given as
    ``cluster_detection_method``.
    """


@hookspec
def plugrt_coordination() -> object:
    """Return the service through which the processes of a run find each other.

    It is a `plugrt.plugins.coordination.Coordination`; the first one that is offered is used.
    Called by ``plugrt.distributed.initialize``.
    """


@hookspec
def plugrt_start_isolated(name: str, options: Mapping[str, OptionValue], seconds: float) -> Client:
    """Start a plugin's backend in a child process, which ends with this one; return its client.

    Called for a plugin that PLUGRT_ISOLATE names, with its name, its create options and
    PLUGRT_ISOLATE_SECONDS. Where the process crashes, or does not answer in that time, calls of
    the client raise `Unavailable` with the last lines of the process's standard error, and
    ``close()`` works. Raise what starting the plugin raises.
    """


@hookspec
def plugrt_doctor_facts() -> Mapping[str, str | int | float | bool]:
    """Return facts about this machine that help to explain what works, by name.

    Called once by ``plugrt doctor``, in a child process which ends after a few seconds: the version
    of a driver, what occupies a device, a setting of the system. It may open libraries.
    """


@hookspec
def plugrt_conformance_checks() -> Sequence[object]:
    """Return checks that ``plugrt conform`` runs beside its own.

    Each is a `plugrt_sdk.conformance.Chapter`, whose ids begin with the name of the entry point.
    Called once in each process of a run.
    """


@hookspec
def plugrt_add_commands(cli: click.Group) -> None:
    """Add commands to the ``plugrt`` command line, ``cli``.

    Called for a command that is not built in, and for ``plugrt --help``.
    """
