"""`try_within_limit`: starts a backend in a child process first where the address space is limited.

With ``ulimit -v`` XLA's libraries end the process (SIGSEGV, SIGABRT for std::bad_alloc) where they
start threads or compile, instead of an error: at 0.6 to 1.6 GB with jaxlib 0.10 and xla-cpu-pjrt.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from plugrt.base import files
from plugrt.capi.loading.elf import needed_by
from plugrt.capi.probing.trial_computation import try_client
from plugrt.errors import (
    HARDWARE_ABSENT,
    PluginBroken,
    PlugrtError,
    Unimplemented,
    describe,
)
from plugrt.interface import OptionValue
from plugrt.plugins import vendors
from plugrt.plugins.library import ALONE, LibraryPlugin
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record, Source
from plugrt.plugins.starting import probe_cache
from plugrt.plugins.starting.loading import import_value
from plugrt.processes.address_space import address_size
from plugrt.processes.child_main import UNTIL
from plugrt.processes.run_in_child import run_in_child
from plugrt.settings.declarations import Config

_STEP = 1 << 26
"""Bytes; a child's room is a multiple of it, so that the cached result serves again."""
_IMPORT_SECONDS = 60.0
_CURE = (
    "raise the limit (ulimit -v unlimited), or limit the memory that is used instead, with a "
    "cgroup (systemd-run -p MemoryMax=…)"
)


# Workaround for xla-address-space
def try_within_limit(
    plugin: Plugin, row: Record, options: Mapping[str, OptionValue], config: Config, limit: int
) -> None:
    """Raises `PluginBroken` if a child with the same free address space ends unexpectedly.

    ``limit`` is this process's, in bytes. The child starts the backend and runs a small program. A
    larger program may need more, and still end the process. Tries nothing if this process is such a
    child, and for plugins that a child cannot find.
    """
    library, can_find = "", row.source is Source.ENTRY_POINT
    if isinstance(plugin, LibraryPlugin):
        library = plugin.library()
        can_find = bool(library)
    if not can_find or UNTIL in os.environ or not config.probe_libraries:
        return
    room = ((limit - address_size()) // _STEP - 1) * _STEP  # threads and allocators vary
    names = (*plugin.aliases, plugin.platform, row.name)
    tried = vendors.trial_options(names, needed_by(library) if library else (), options)
    request = {
        "name": row.name, "library": library, "value": row.value, "options": tried, "room": room,
        "modules": [name for name in sys.modules if name.startswith("plugrt.")], "path": sys.path,
    }  # fmt: skip
    version = files.identify(library) if os.sep in library else row.version
    facts = [*(request[key] for key in ("name", "library", "value", "options", "room")), version]
    if probe_cache.passed(facts):
        return
    outcome = run_in_child(
        "plugrt.plugins.starting.limit_trial:examine", request,
        _IMPORT_SECONDS + config.probe_seconds, env=ALONE,
    )  # fmt: skip
    said = {name: value for line in outcome.lines for name, value in line.items()}
    if outcome.how == "lost" or said.get("is_absent"):
        return
    if outcome.succeeded and "raised" not in said:
        probe_cache.record(facts, True)
        return
    why = f"it raised {said['raised']}" if "raised" in said else f"it {outcome.ending}"
    if "raised" not in said and (last := outcome.last_output()):
        why += f"; its last output: {last}"
    row.cure = _CURE
    raise PluginBroken(
        f"{row}: the address space of this process is limited to {limit / 1e9:.2f} GB "
        f"(RLIMIT_AS, ulimit -v). A child process with what is left, {room / 1e9:.2f} GB, "
        f"which started the backend and ran a small program, failed: {why}. To use it, "
        f"{_CURE}"
    )


def examine(request: dict[str, Any], say: Any) -> None:
    """Starts a backend and runs a program, with ``room`` bytes beside the program's modules."""
    import resource

    sys.path[:] = request["path"]
    for name in request["modules"]:
        importlib.import_module(name)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = address_size() + request["room"]
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        if request["library"]:
            plugin: object = LibraryPlugin(request["name"], request["library"])
        else:
            plugin = import_value(
                Record(request["name"], Source.ENTRY_POINT, value=request["value"])
            )
        if isinstance(plugin, Plugin):
            try_client(plugin.create_client(request["options"]), lambda stage: None)
    except Unimplemented:
        pass  # the trial uses this function; the program may not
    except (MemoryError, ImportError, PlugrtError) as error:
        say(raised=describe(error), is_absent=isinstance(error, HARDWARE_ABSENT))
