"""`LibraryPlugin`: its properties without opening the library."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import plugrt_cuda.library
import plugrt_tpu.library
from plugrt import config
from plugrt.capi import load_library
from plugrt.errors import PluginBroken, RegistrationError
from plugrt.plugins import LibraryPlugin, Plugin
from plugrt.plugins.discovery.env_paths import VARIABLE, explain_missing, parse_libraries
from plugrt_sdk import BackendPlugin
from support.clib import needs_cc, tiny_library
from support.distributions import run_warm
from support.registries import registry, settings


def test_probe_tells_whether_the_file_is_there(tmp_path: Path) -> None:
    file = tmp_path / "lib.so"
    with pytest.raises(PluginBroken, match=re.escape(str(file))):
        LibraryPlugin("x", file).probe()
    file.touch()
    assert LibraryPlugin("x", file).probe().available
    assert LibraryPlugin("x", "libx.so").probe().available, "the loader searches for a bare name"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (Path.mkdir, "a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "a character device"),
    ],
)
def test_a_path_that_is_no_regular_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    """By every function that gets the path; none opens it, since that may wait for ever."""
    path = tmp_path / "lib.so"
    make(path)
    says = f"{re.escape(str(path))},?( which| that {VARIABLE} names for it)? is {kind}, not a reg"
    with pytest.raises(PluginBroken, match=says):
        LibraryPlugin("x", path).probe()
    with config.override(tpu_library_path=str(path), cuda_library_path=str(path)):
        for find in (plugrt_tpu.library.find_library, plugrt_cuda.library.find_library):
            with pytest.raises(PluginBroken, match=says):
                find()
    (record,) = parse_libraries(f"x:{path}", ":")
    assert re.search(says, explain_missing(record))
    with pytest.raises(PluginBroken, match=f"is {kind}, not a regular file; the path of a shared"):
        load_library(path)


@needs_cc
def test_a_bare_name_is_left_to_the_dynamic_loader(tmp_path: Path) -> None:
    """In a path of any source. Earlier, the file was looked for in the working folder only.

    Same as JAX: a library's name without a folder, which the dynamic loader searches.
    """
    folder = tmp_path / "lib"
    folder.mkdir()
    tiny_library(folder).rename(folder / "libfoo_pjrt.so")
    (tmp_path / "foo.json").write_text('{"library_path": "libfoo_pjrt.so"}')
    done = run_warm(
        f"""
        import os, plugrt
        from plugrt.capi import load_library
        from plugrt.errors import PluginError
        from plugrt.plugins import LibraryPlugin, register
        os.chdir({str(tmp_path)!r})
        open("libfoo_pjrt.so", "w").close()  # the loader does not search the working folder
        register(LibraryPlugin("registered", "libfoo_pjrt.so"))
        clients = [plugrt.get_backend(name) for name in ("foo", "json", "registered")]
        print({{client.library.path for client in clients}})
        print(len({{client.library for client in clients}}), clients[0].library is load_library(
            "lib/libfoo_pjrt.so"))
        try:
            load_library("libnowhere.so")
        except PluginError as error:
            print(error)
        """,
        LD_LIBRARY_PATH=str(folder),
        PJRT_NAMES_AND_LIBRARY_PATHS=f"foo:libfoo_pjrt.so,json:{tmp_path}/foo.json",
        JAX_PLATFORM_NAME="foo",
        PLUGRT_CACHE_DIR=str(tmp_path / "cache"),
    )
    found, one, missing = done.stdout.splitlines() or [done.stderr, "", ""]
    assert found == str({f"{folder}/libfoo_pjrt.so"}), done.stderr
    assert one == "1 True"
    assert "libnowhere.so: cannot open shared object file" in missing
    assert "LD_LIBRARY_PATH" in missing


GPU_SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"JAX_ROCM_VISIBLE_DEVICES": "0,2", "JAX_ONEAPI_VISIBLE_DEVICES": "1"},
    {"JAX_CUDA_VISIBLE_DEVICES": "3", "JAX_ROCM_VISIBLE_DEVICES": "all"},
    {"JAX_MOCK_GPU_TOPOLOGY": "2 x 1 x 4"},
    {"JAX_MOCK_NUM_GPU_PROCESSES": "3"},
)


UNSET = {
    "jax_cuda_visible_devices": "all", "jax_rocm_visible_devices": "all",
    "jax_oneapi_visible_devices": "all", "jax_mock_gpu_topology": "", "mock_num_gpu_processes": 0,
}  # fmt: skip
"""JAX's flags without any variable."""


def flags_of(environ: dict[str, str]) -> dict[str, str | int]:
    """Returns JAX's flags for these variables."""
    flags = {k.replace("JAX_MOCK_NUM", "MOCK_NUM").lower(): v for k, v in environ.items()}
    return {n: int(v) if n == "mock_num_gpu_processes" else v for n, v in flags.items()}


def test_gpu_libraries_get_the_options_that_jax_passes() -> None:
    """JAX reads the variables as flags, so a child sets them and prints JAX's options."""
    pytest.importorskip("jax")
    names = ("cuda", "rocm", "oneapi", "mychip")
    done = run_warm(
        f"""
        import json, jax
        from jax._src import xla_bridge
        found = []
        for flags in {[flags_of(environ) for environ in GPU_SETTINGS]}:
            for name, value in {{**{UNSET}, **flags}}.items():
                jax.config.update(name, value)
            found.append({{n: xla_bridge._options_from_jax_configs(n) for n in {names}}})
        print(json.dumps(found))
        """
    )
    theirs = json.loads(done.stdout or done.stderr)
    for environ, expected in zip(GPU_SETTINGS, theirs, strict=True):
        ours = {n: LibraryPlugin(n, "l.so").client_options(settings(**environ)) for n in names}
        for options in expected.values():
            if options.get("enable_mock_nccl") is False:  # omitted: old libraries refuse the option
                del options["enable_mock_nccl"]
        assert ours == expected, environ


@pytest.mark.parametrize(("path", "c_api"), [(None, None), ("", None), ("/l.so", object())])
def test_one_of_path_and_table_is_given(path: str | None, c_api: object) -> None:
    with pytest.raises(RegistrationError, match=r"LibraryPlugin\('x'\).*library_path.*c_api"):
        LibraryPlugin("x", path, c_api=c_api)


@pytest.mark.parametrize("not_a_table", [datetime.datetime_CAPI, 3, "l.so"])
def test_a_capsule_that_is_no_table_is_refused(not_a_table: object) -> None:
    plugin = LibraryPlugin("x", c_api=not_a_table)
    assert plugin.probe().available
    with pytest.raises(PluginBroken, match=r"x: c_api is .* not a capsule named pjrt_c_api"):
        plugin.open()


DECLARED = {
    "name": "declared", "options": {"a": 1},
    "priority": 900, "platform": "zz", "aliases": ("acc",), "experimental": True,
    "library_path": "/declared.so", "waits_for": "a clock", "interface_version": (0, 9),
    "topology_names": ("one",), "conformance_options": {"a": 1},
}  # fmt: skip
GIVEN: dict[str, Any] = {
    "name": "given", "options": {},
    "priority": 5, "platform": "", "aliases": (), "experimental": False,
    "library_path": "/l.so"
}  # fmt: skip


def test_attributes_of_a_subclass_count_where_no_argument_is_given() -> None:
    """Each documented attribute of both classes. Earlier, defaults of arguments replaced them."""
    documented = {name for cls in (Plugin, LibraryPlugin) for name in vars(cls)["__annotations__"]}
    assert documented == {*DECLARED, "c_api", "exclusive"}
    library = type("Declares", (LibraryPlugin,), DECLARED)()
    assert {name: getattr(library, name) for name in DECLARED} == DECLARED
    assert library.library() == "/declared.so"
    assert library.client_options(settings()) == {"a": 1}
    backend = type("Declares", (BackendPlugin,), {**DECLARED, "factory": dict})()
    assert {name: getattr(backend, name) for name in DECLARED} == DECLARED
    given = type("Declares", (LibraryPlugin,), DECLARED)(**GIVEN)
    assert {name: getattr(given, name) for name in GIVEN} == GIVEN
    assert given.client_options(settings()) == {}
    table = type("Declares", (LibraryPlugin,), DECLARED)(c_api=object())
    assert table.library_path == ""
    capsule = object()
    table = type("Declares", (LibraryPlugin,), {"name": "declared", "c_api": capsule})()
    assert (table.c_api, table.library_path) == (capsule, "")
    assert type("Declares", (LibraryPlugin,), {"c_api": capsule})("a", "/l.so").c_api is None
    backend = type("Declares", (BackendPlugin,), DECLARED)("a", dict, priority=5)
    assert (backend.name, backend.priority) == ("a", 5)


WRONG: dict[str, tuple[list[Any], str]] = {
    "name": ([3, b"chip", ["chip"]], "a text"),
    "library_path": ([5, b"/l.so", ["/l.so"]], "a path"),
    "options": ([5, "a", [("a", 1)], True], "a mapping of names to values, or a function"),
    "priority": (["high", 1.5, True], "an int"),
    "platform": ([5, b"p", ("p",)], "a text"),
    "aliases": (["gpu", b"gpu", 5, ["gpu", 5], {"gpu": 1}], "a tuple of names"),
    "experimental": (["no", 1, 0], "True or False"),
    "exclusive": (["no", 1], "True or False"),
    "interface_version": (["1.0", 1, (1,), (1, "0")], "a pair of numbers"),
    "topology_names": (["v5e", 3], "a tuple of names"),
    "conformance_options": ([5, [("a", 1)]], "a mapping of names to values"),
    "waits_for": ([5, None], "a text"),
}
"""Values that an attribute refuses, and the words of its type in the error."""
PARAMETERS = signature(LibraryPlugin).parameters


@pytest.mark.parametrize("attribute", WRONG)
def test_a_value_of_a_wrong_type_is_named_with_what_is_asked_for(attribute: str) -> None:
    """Earlier, a string for aliases became a tuple of its letters, and a string for a flag true."""
    documented = {name for cls in (Plugin, LibraryPlugin) for name in vars(cls)["__annotations__"]}
    assert documented == {*WRONG, "c_api"}
    values, expected = WRONG[attribute]
    usual = {"name": "chip", "library_path": "/l.so"}
    for value in values:
        says = f"the {attribute} of .* is {re.escape(repr(value))}, of type {type(value).__name__}"
        says += f"; it must be {expected}"
        if attribute in PARAMETERS:
            with pytest.raises(RegistrationError, match=f"LibraryPlugin.*: {says}"):
                LibraryPlugin(**usual | {attribute: value})
        for bases in ((LibraryPlugin,), (BackendPlugin,)):
            if attribute not in vars(Plugin) and bases == (BackendPlugin,):
                continue
            made = type("Declares", bases, {**usual, "factory": dict})()
            setattr(made, attribute, value)
            with pytest.raises(RegistrationError, match=f"register: {says}"):
                registry().register(made)


@pytest.mark.parametrize("returned", [5, "a", [("a", 1)]])
def test_a_function_that_returns_no_options_is_named(returned: object) -> None:
    plugin = LibraryPlugin("chip", "/l.so", lambda: returned)  # type: ignore[arg-type,return-value]
    with pytest.raises(PluginBroken, match=re.escape(f"options() returned {returned!r}, which")):
        plugin.client_options(settings())
