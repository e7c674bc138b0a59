"""Tests shared by the cuda and the tpu plugin, in child processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.distributions import install_plugin, run_python
from support.programs import printed


def check_choice_without_hardware(name: str, library: str, reason: str) -> None:
    """On a machine without the hardware cpu is chosen, and the table has the reason.

    There is no message, and no file with ``library`` in its name is loaded.
    """
    done = run_python(
        f"""
        import json, plugrt
        name = plugrt.default_backend()
        row = next(r for r in plugrt.plugins.table() if r.name == {name!r})
        maps = open("/proc/self/maps").read()
        print(json.dumps([name, row.state, row.reason, {library!r} in maps]))
        """
    )
    chosen, state, found, loaded = printed(done)
    assert (chosen, state, loaded) == ("cpu", "unavailable", False)
    assert reason in found
    assert done.stderr == ""


def choose_beside_fake(
    folder: Path, name: str, machine: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Makes a child choose twice between this plugin and a fake one of a low priority.

    The plugin searches for its hardware among the files in ``machine``. The child prints its
    choices, the row's state and priority, and whether a library's package was imported.
    """
    install_plugin(folder, "fake", priority=1)
    return run_python(
        f"""
        import sys
        import plugrt_{name} as package
        package.plugin = type(package.plugin)({str(machine)!r})
        import plugrt
        print(plugrt.default_backend(), plugrt.default_backend())
        row = next(r for r in plugrt.plugins.table() if r.name == {name!r})
        print(row.state, row.priority, "libtpu" in sys.modules)
        """,
        folder,
        PLUGRT_PLUGINS_ALLOW=f"fake,{name}",
        **environ,
    )
