"""Plugins made for JAX, used by plugrt and by the real jax in one process, in either order."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.distributions import install, run_warm
from support.effort import some_of
from support.xla_cpu import library_path

LIBRARY = library_path()
pytestmark = [
    pytest.mark.skipif(LIBRARY is None, reason="needs the wheel xla-cpu-pjrt"),
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax"),
]

ARGUMENTS = f"priority=1, library_path={str(LIBRARY)!r}, options={{'cpu_device_count': 3}}"
STYLES = {
    "attribute": f"""
        import jax._src.xla_bridge as xb
        def initialize():
            xb.register_plugin("attribute", {ARGUMENTS})
    """,
    "imported": f"""
        from jax._src.xla_bridge import register_plugin
        def initialize():
            register_plugin("imported", {ARGUMENTS})
    """,
    "renamed": f"""
        import functools
        from jax._src.xla_bridge import register_plugin as rp
        go = functools.partial(rp, "renamed", {ARGUMENTS})
        def initialize():
            go()
    """,
    "within": f"""
        def initialize():
            from jax._src import xla_bridge
            xla_bridge.register_plugin("within", {ARGUMENTS})
    """,
    "once": f"""
        from jax._src.xla_bridge import register_plugin
        done = False
        def initialize():
            global done
            if not done:
                done = True
                register_plugin("once", {ARGUMENTS})
    """,
    "at_import": f"""
        from jax._src.xla_bridge import register_plugin
        register_plugin("at_import", {ARGUMENTS})
        def initialize():
            pass
    """,
    "custom_calls": f"""
        import jax._src.xla_bridge as xb
        from jaxlib import xla_client
        def initialize():
            table = xb.register_plugin("custom_calls", {ARGUMENTS})
            assert "pjrt_c_api" in repr(table), table
    """,
}
"""The ways in which modules find jax's function; each registers its own name."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, source in STYLES.items():
        entry = {"jax_plugins": {name: f"styled_{name}"}}
        install(tmp_path, f"{name}-pjrt", entry, {f"styled_{name}": source})
    return tmp_path


PROGRAM = """
import sys
names = sys.argv[2].split(",")

def plugrt_lists():
    import plugrt
    for name in names:
        print("plugrt", name, len(plugrt.devices(name)), flush=True)

def jax_lists():
    import jax
    for name in names:
        print("jax", name, len(jax.devices(name)), flush=True)

for host in sys.argv[1].split(","):
    {"plugrt": plugrt_lists, "jax": jax_lists}[host]()
"""


@runs_apart("as_jax")
@pytest.mark.parametrize("hosts", ["plugrt,jax", "jax,plugrt,jax"])
def test_both_hosts_use_every_plugin(site: Path, hosts: str) -> None:
    names = ",".join(STYLES)
    done = run_warm(
        PROGRAM, site, arguments=(hosts, names), timeout=240, JAX_PLATFORMS=f"{names},cpu"
    )
    expected = [f"{host} {name} 3" for host, name in itertools.product(hosts.split(","), STYLES)]
    assert done.stdout.splitlines() == expected, done.stderr
    assert "Exception when calling" not in done.stderr


METAL = f"""
import jax._src.xla_bridge as xb
def initialize():
    xb.register_plugin("METAL", priority=500, library_path={str(LIBRARY)!r})
    xb.register_plugin("METAL2", library_path={str(LIBRARY)!r}, options={{"cpu_device_count": 2}})
"""


@pytest.mark.parametrize(
    ("name", "count"), some_of([("METAL", 4), ("metal", 4), ("metal_plugin", 4), ("METAL2", 2)], 2)
)
def test_every_registered_name_selects_it(tmp_path: Path, name: str, count: int) -> None:
    """4 is the library's default."""
    install(tmp_path, "jax-metal", {"jax_plugins": {"metal_plugin": "metal_made"}},
            {"metal_made": METAL})  # fmt: skip
    done = run_warm(
        f"""
        import plugrt
        client = plugrt.backends()[{name!r}]
        assert client is plugrt.get_backend({name!r}) is plugrt.get_backend()
        result = plugrt.jit(lambda x: x + 1, backend={name!r})(1.5)
        print(len(plugrt.devices()), len(plugrt.devices({name!r})), result)
        """,
        tmp_path,
        JAX_PLATFORMS=f"{name},cpu",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{count} {count} 2.5\n", done.stderr
