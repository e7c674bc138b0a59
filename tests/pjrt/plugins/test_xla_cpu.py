"""A real PJRT library from each source: its own group, the environment, a plugin made for JAX."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.distributions import install, run_cli, run_warm
from support.requirements import needs_jax
from support.xla_cpu import library_path, needs_library

pytestmark = needs_library
LIBRARY = str(library_path())


def test_by_path() -> None:
    variable = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"mine:{LIBRARY}"}
    done = run_cli("devices", "--json", JAX_PLATFORMS="mine", **variable)
    assert done.returncode == 0, done.stderr
    assert {row["backend"] for row in json.loads(done.stdout)} == {"mine"}


def test_by_a_capsule_of_either_maker() -> None:
    """Capsules of one library's table, made by jaxlib and by plugrt, both work."""
    done = run_warm(
        f"""
        import plugrt
        from jaxlib import xla_client
        from plugrt import capi
        from plugrt.plugins import LibraryPlugin, register

        theirs = xla_client.load_pjrt_plugin_dynamically("mine", {LIBRARY!r})
        ours = capi.capsule_of(capi.load_library({LIBRARY!r}))
        xla_client.load_pjrt_plugin_with_c_api("other", ours)
        register(LibraryPlugin("one", None, {{"cpu_device_count": 2}}, c_api=theirs, priority=900))
        register(LibraryPlugin("two", c_api=ours))
        print(len(plugrt.devices()), len(plugrt.devices("two")), plugrt.devices()[0].client)
        """,
        PLUGRT_CLIENT_CREATE_OPTIONS="two:cpu_device_count:5",
    )
    assert done.stdout.startswith("2 5 <one"), done.stderr


@needs_jax
@pytest.mark.parametrize("name", ["made", "xla_made"])
def test_by_a_plugin_made_for_jax(tmp_path: Path, name: str) -> None:
    source = f"""
        import jax._src.xla_bridge as xb
        def initialize():
            xb.register_plugin("made", priority=1, library_path={LIBRARY!r},
                               options=lambda: {{"cpu_device_count": 3}})
    """
    install(tmp_path, "made-pjrt", {"jax_plugins": {"xla_made": "made_for_jax"}},
            {"made_for_jax": source})  # fmt: skip
    done = run_cli("devices", "--json", folders=(tmp_path,), JAX_PLATFORMS=name)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in json.loads(done.stdout)] == [0, 1, 2]


@needs_jax
def test_by_a_table_in_a_capsule(tmp_path: Path) -> None:
    source = f"""
        import ctypes
        import jax._src.xla_bridge as xb
        def initialize():
            entry = ctypes.CDLL({LIBRARY!r}).GetPjrtApi
            entry.restype = ctypes.c_void_p
            new = ctypes.pythonapi.PyCapsule_New
            new.restype = ctypes.py_object
            new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
            xb.register_plugin("made", c_api=new(entry(), b"pjrt_c_api", None))
    """
    install(tmp_path, "made-pjrt", {"jax_plugins": {"made": "made_table"}}, {"made_table": source})
    code = "import plugrt, os; print(plugrt.default_backend(), flush=True); os._exit(0)"
    # _exit: the CDLL above lacks RTLD_NODELETE, without which the library crashes at exit.
    done = run_warm(code, tmp_path, JAX_PLATFORMS="made")
    assert done.stdout == "cpu\n", done.stderr


def test_used_by_itself_where_no_other_plugin_is(tmp_path: Path) -> None:
    code = "import plugrt; print(list(plugrt.backends()))"
    done = run_warm(code, PLUGRT_PLUGINS_ALLOW="xla_cpu")
    assert done.stdout == "['xla_cpu']\n", done.stderr


def test_a_library_that_calls_itself_cpu_is_not_the_cpu_plugin() -> None:
    """Earlier, both names gave the client of foo. JAX: 4 devices of foo, 1 of cpu."""
    code = """
        import plugrt
        found = plugrt.backends()
        foo, cpu = found["foo"], found["cpu"]
        print(list(found), len(foo.devices()), len(cpu.devices()), foo.platform, cpu.platform)
        for name, client in found.items():
            assert plugrt.get_backend(name) is client
            assert plugrt.devices(name)[0].client is client
            assert plugrt.jit(lambda x: x + 1, backend=name)(1.0).device.client is client
    """
    done = run_warm(
        code, JAX_PLATFORMS="foo,cpu", PJRT_NAMES_AND_LIBRARY_PATHS=f"foo:{LIBRARY}",
        JAX_NUM_CPU_DEVICES="3",
    )  # fmt: skip
    assert done.stdout == "['foo', 'cpu'] 4 3 cpu cpu\n", done.stderr


@pytest.mark.parametrize("options", [{"cpu_device_count": "3"}, {"cpu_device_count": 0}])
def test_a_library_with_an_option_that_it_refuses(tmp_path: Path, options: dict[str, int]) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"library_path": LIBRARY, "create_options": options}))
    code = "import plugrt; print(plugrt.backends())"
    names = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"mine:{file}"}
    done = run_warm(code, **names)
    assert done.stdout == "<backends cpu>\n"
    assert "left out: 'mine' (PJRT_NAMES_AND_LIBRARY_PATHS)" in done.stderr
    done = run_warm(code, PLUGRT_STRICT_PLUGINS="1", **names)
    assert done.returncode == 1
    assert "PluginBroken: 'mine'" in done.stderr
