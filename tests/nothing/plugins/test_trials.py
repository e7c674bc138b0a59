"""A plugin's library is tried in a child process before this one opens it, for each source."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from plugrt import capi, config
from plugrt.errors import PluginBroken, PluginError
from plugrt.plugins import Backends, LibraryPlugin, vendors
from plugrt.plugins.coordination import Membership
from plugrt.plugins.library import ALONE
from plugrt.plugins.starting.starting import start
from plugrt_cuda.plugin import CudaPlugin
from plugrt_tpu.plugin import TpuPlugin
from support.clib import linked, needs_cc, tiny_library
from support.distributions import install, run_cli
from support.registries import registry
from support.watched_calls import at_calls

pytestmark = needs_cc
CREATE = "api.Client_Create=f;"
ABORTS = """
#include <stdio.h>
#include <stdlib.h>
static PJRT_Error* f(struct PJRT_Client_Create_Args* a) {
  fputs("no chip in slot 3\\n", stderr);
  abort();
}
"""
NOTES = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static PJRT_Error* f(struct PJRT_Client_Create_Args* a) {
  const char* value = getenv(getenv("TRIAL_VARIABLE"));
  FILE* log = fopen(getenv("TRIAL_LOG"), "a");
  fprintf(log, "%d %s\\n", getpid(), value ? value : "none");
  fclose(log);
  return client_create(a);
}
"""
LOCKS = """
#include <stdlib.h>
#include <fcntl.h>
#include <sys/file.h>
static PJRT_Error* f(struct PJRT_Client_Create_Args* a) {
  if (flock(open(getenv("TRIAL_LOG"), O_RDWR | O_CREAT, 0600), LOCK_EX | LOCK_NB)) abort();
  return client_create(a);
}
"""
INITIALIZES = """
    import jax._src.xla_bridge as xb

    def initialize():
        xb.register_plugin("chip", library_path={library!r})
"""
OFFERS = """
    from plugrt.plugins import LibraryPlugin
    plugin = LibraryPlugin("chip", {library!r})
"""
TORCH = """
    class Chip:
        def library_path(self):
            return {library!r}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIAL_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("TRIAL_VARIABLE", "JAX_COORDINATOR_ADDRESS")
    return tmp_path / "log"


def by_environment(site: Path, library: Path) -> Backends:
    return registry(PJRT_NAMES_AND_LIBRARY_PATHS=f"chip:{library}")


def by_registration(site: Path, library: Path) -> Backends:
    made = registry()
    made.register(LibraryPlugin("chip", str(library)))
    return made


def by_entry_point(group: str, value: str, source: str) -> Callable[[Path, Path], Backends]:
    def make(site: Path, library: Path) -> Backends:
        text = source.format(library=str(library))
        install(site, "chip-dist", {group: {"chip": value}}, {"chip_module": text})
        return registry(path=site)

    return make


def by_namespace(group: str, source: str = "") -> Callable[[Path, Path], Backends]:
    """Installs a module of a namespace package; without source its library is found beside it."""

    def make(site: Path, library: Path) -> Backends:
        text = source.format(library=str(library))
        info = install(site, "chip-dist", {}, {f"{group}.chip.__init__": text})
        shutil.copy(library, site / group / "chip/pjrt_chip.so")
        files = (f"{group}/chip/__init__.py", f"{group}/chip/pjrt_chip.so")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        return registry(path=site)

    return make


def by_files(group: str) -> Callable[[Path, Path], Backends]:
    """Installs a package whose library is found among its files; none of its code runs."""

    def make(site: Path, library: Path) -> Backends:
        info = install(site, "chip-dist", {group: {"chip": "chip_module"}}, {"chip_module": ""})
        shutil.copy(library, site / "pjrt_chip.so")
        (info / "RECORD").write_text("chip_module.py,,\npjrt_chip.so,,\n")
        return registry(path=site)

    return make


SOURCES = {
    "environment": by_environment,
    "register": by_registration,
    "plugrt.plugins": by_entry_point("plugrt.plugins", "chip_module:plugin", OFFERS),
    "jax_plugins": by_entry_point("jax_plugins", "chip_module", INITIALIZES),
    "namespace of jax_plugins": by_namespace("jax_plugins", INITIALIZES),
    "xla_plugins": by_files("xla_plugins"),
    "namespace of xla_plugins": by_namespace("xla_plugins"),
    "torch_xla.plugins": by_entry_point("torch_xla.plugins", "chip_module:Chip", TORCH),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_library_that_aborts_is_an_error_from_every_source(source: str, site: Path) -> None:
    """Earlier, only libraries of the first source were tried; others ended the program."""
    if source.endswith("jax_plugins"):
        pytest.importorskip("jax")
    made = SOURCES[source](site, tiny_library(site, CREATE, ABORTS))
    with pytest.raises(PluginBroken, match=r"SIGABRT.*last output: no chip in slot 3"):
        made.get("chip")


ENDS_WHERE_OPENED = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void end(void) { fputs("no chip\\n", stderr); abort(); }
"""


@pytest.mark.parametrize("of_ours", [CudaPlugin, TpuPlugin])
def test_a_library_of_a_plugin_of_ours_is_tried(
    of_ours: type[CudaPlugin | TpuPlugin], site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (site / "dev").mkdir()
    (site / "dev/nvidiactl").touch()
    plugin = of_ours(site)
    library = str(tiny_library(site, "", ENDS_WHERE_OPENED))
    made = registry()
    made.register(plugin)
    named = {f"{plugin.name}_library_path": library}
    with (
        config.override(force_tpu_init=True, **named),
        pytest.raises(PluginBroken, match=r"SIGABRT.*last output: no chip"),
    ):
        made.get(plugin.name)


@pytest.mark.parametrize("because", ["jax is imported", "a coordinator", "a variable"])
def test_a_library_that_aborts_where_it_is_opened_ends_no_program(
    because: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, `initialize()` ran in the program, and its registration opened the library there."""
    pytest.importorskip("jax")
    source = INITIALIZES
    if because == "a coordinator":
        monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "localhost:1")
    if because == "a variable":
        monkeypatch.setenv("CHIP_SET", "0")
        source += "        import os; os.environ['CHIP_SET'] = '1'\n"
    library = tiny_library(site, "", ENDS_WHERE_OPENED)
    made = by_entry_point("jax_plugins", "chip_module", source)(site, library)
    with pytest.raises(PluginBroken, match="SIGABRT"):
        made.get("chip")


@pytest.mark.parametrize("source", SOURCES)
def test_the_child_has_ended_and_the_second_start_pays_nothing(
    source: str, site: Path, log: Path
) -> None:
    if source.endswith("jax_plugins"):
        pytest.importorskip("jax")
    make = SOURCES[source]
    made = make(site, tiny_library(site, CREATE, NOTES))
    for trials in (1, 0):
        made.get("chip")
        made.clear()
        child, own = [line.split()[0] for line in log.read_text().split("\n")[:-1]][-2:]
        assert int(own) == os.getpid()
        assert (int(child) != os.getpid()) == bool(trials)


def test_a_lock_that_the_child_held_is_free(site: Path, log: Path) -> None:
    made = by_registration(site, tiny_library(site, CREATE, LOCKS))
    assert made.get("chip").devices()


@pytest.mark.parametrize("variable", ALONE)
def test_the_child_has_no_coordinator(
    variable: str, site: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("TRIAL_VARIABLE", variable)
    by_registration(site, tiny_library(site, CREATE, NOTES)).get("chip")
    in_child, in_program = log.read_text().split("\n")[:-1]
    assert (in_child.split()[1], in_program.split()[1]) == ("none", "1")


class Together:
    """A connection of two processes; tests read only its numbers."""

    membership = Membership("here:1", 1, 2, 1.0, 1.0, 1.0)
    process_id, num_processes, partition_index = 1, 2, None


@pytest.mark.parametrize("why", ["several processes", "exclusive", "exclusive by name"])
def test_no_client_is_created_in_the_child(why: str, site: Path, log: Path) -> None:
    library = tiny_library(site, CREATE, NOTES)
    if why == "exclusive by name":
        library = library.rename(site / "libtpu.so")
    plugin = LibraryPlugin("chip", str(library), {"node_id": 5})
    plugin.exclusive = why == "exclusive"
    made = registry()
    made.register(plugin)
    together: Any = Together() if why == "several processes" else None
    if together:
        with pytest.raises(PluginError, match="process 0 of 1"):
            start(made.table.rows[0], made.table, together)
    else:
        start(made.table.rows[0], made.table)
    assert [int(line.split()[0]) for line in log.read_text().split("\n")[:-1]] == [os.getpid()]


@pytest.mark.parametrize(
    ("names", "needed", "options", "changed"),
    [
        (("cuda",), (), {}, True),
        (("xla_cuda12",), (), {"memory_fraction": 0.5}, True),
        (("mine", "xla_rocm_plugin.so"), (), {}, True),
        (("mine", "pjrt_c_api_gpu_plugin.so"), ("libc.so.6",), {}, True),
        (("tpu", "xla_cudagraphs"), (), {}, False),
        (("mine",), (), {"preallocate": True}, True),
        (("mine",), (), {"n": 1}, False),
        (("tpu",), (), {}, False),
        (("mine",), ("libc.so.6", "libcudart.so.12"), {}, True),
        (("mine",), ("libamdhip64.so.7",), {"n": 1}, True),
        (("mine",), ("libze_loader.so.1",), {}, True),
        (("mine",), ("libc.so.6", "libstdc++.so.6"), {}, False),
    ],
)
def test_no_memory_is_preallocated(
    names: tuple[str, ...], needed: tuple[str, ...], options: dict[str, Any], changed: bool
) -> None:
    expected = {**options, "preallocate": False} if changed else options
    assert vendors.trial_options(names, needed, options) == expected


OPTIONS = r"""
#include <stdio.h>
#include <stdlib.h>
static PJRT_Error* f(struct PJRT_Client_Create_Args* a) {
  FILE* log = fopen(getenv("TRIAL_LOG"), "a");
  int quiet = a->num_options && !strncmp(a->create_options[0].name, "preallocate", 11);
  fprintf(log, quiet ? "no memory\n" : "all memory\n");
  fclose(log);
  return quiet && REFUSES ? fail(3, "Unexpected option name: preallocate") : client_create(a);
}
"""


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("needs", ["libcudart.so.77", "libsomething.so.77"])
def test_a_library_that_needs_a_gpus_libraries_preallocates_nothing_in_the_child(
    needs: str, refuses: bool, site: Path, log: Path
) -> None:
    """If a library refuses the option, as all but XLA's own do, the child starts it without."""
    flags = (f"-DREFUSES={int(refuses)}", *linked(site, needs), "-Wl,-rpath,$ORIGIN")
    made = by_registration(site, tiny_library(site, CREATE, OPTIONS, *flags))
    assert made.get("chip").devices()
    of_gpu = ["no memory"] + ["all memory"] * refuses if "cuda" in needs else ["all memory"]
    assert log.read_text().splitlines() == [*of_gpu, "all memory"]  # the last is from the program


def test_the_child_gets_the_options_of_the_start(site: Path) -> None:
    """The plugin's options, replaced by those for all libraries, and these by the library's own."""
    asked: list[Any] = []

    def probe(inputs: Mapping[str, Any], _: object) -> None:
        asked.append(dict(inputs))
        raise PluginBroken("not now")

    settings = {"JAX_PJRT_CLIENT_CREATE_OPTIONS": "b:2", "PLUGRT_CLIENT_CREATE_OPTIONS": "cuda:c:3"}
    made = registry(**settings)
    made.register(LibraryPlugin("cuda", str(tiny_library(site)), {"a": 1, "c": 0}))
    with pytest.raises(PluginBroken, match="not now"), at_calls([capi.probe_library], probe):
        made.get("cuda")
    (found,) = asked
    assert found["start"]
    assert found["options"].items() >= {"a": 1, "b": 2, "c": 3, "preallocate": False}.items()


def test_doctor_says_that_a_capsule_is_not_tried(site: Path) -> None:
    pytest.importorskip("plugrt_sdk")
    source = """
        from plugrt.plugins import LibraryPlugin
        from plugrt_sdk.export import export_capsule
        plugin = LibraryPlugin("chip", c_api=export_capsule(lambda: None))
    """
    install(
        site,
        "chip-dist",
        {"plugrt.plugins": {"chip": "chip_module:plugin"}},
        {"chip_module": source},
    )
    done = run_cli("doctor", "--json", folders=(site,), JAX_PLATFORMS="chip")
    rows = {row["name"]: row for row in json.loads(done.stdout)["candidates"]}
    said = "a function table in this process, which cannot be tried in another"
    assert rows["chip"]["library"] == said


def test_setting_off_opens_without_a_trial(site: Path, log: Path) -> None:
    made = registry(PLUGRT_PROBE_LIBRARIES="0")
    made.register(LibraryPlugin("chip", str(tiny_library(site, CREATE, NOTES))))
    made.get("chip")
    assert len(log.read_text().split("\n")[:-1]) == 1
