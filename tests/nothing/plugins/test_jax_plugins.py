"""Plugins made for JAX, by initialize() with a recorder, or by the library among the files.

Same as JAX: which plugins made for JAX are found, and how they register.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from plugrt.errors import (
    DuplicatePlugin,
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    Unimplemented,
    UnknownPlatform,
)
from plugrt.plugins import Backends, LibraryPlugin, expand_platform_alias, known_platforms
from plugrt.plugins.starting import jax_plugins
from plugrt.plugins.starting.loading import load, load_for_names
from support.distributions import install, install_plugin
from support.registries import record, registry, settings

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")


HERE = {"PLUGRT_PROBE_LIBRARIES": "0"}
"""Code runs in this process only; `test_jax_trial` has the trials."""


def made_for_jax(site: Path, name: str, source: str, group: str = "jax_plugins") -> Backends:
    """Installs a plugin made for JAX in a top-level module of its own."""
    module = f"made_{name}"
    install(site, f"{name}-pjrt", {group: {name: module}}, {module: source})
    return registry(path=site, **HERE)


REGISTERS = """
    import jax._src.xla_bridge as xb

    def initialize():
        xb.register_plugin("chip", priority=512, library_path="/x/chip.so", options={"a": 1})
"""


@needs_jax
def test_initialize_runs_with_the_recorder_and_jax_learns_nothing(site: Path) -> None:
    bridge = importlib.import_module("jax._src.xla_bridge")
    real = bridge.register_plugin
    made = made_for_jax(site, "xla_chip12", REGISTERS)
    (record,) = made.table.rows
    plugin = load(record, made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert (plugin.name, plugin.library(), plugin.priority) == ("xla_chip12", "/x/chip.so", 512)
    assert plugin.client_options(settings()) == {"a": 1}
    assert (record.library, record.platform) == ("/x/chip.so", "chip")
    assert bridge.register_plugin is real
    assert "chip" not in bridge._backend_factories


@needs_jax
def test_the_name_that_it_registers_becomes_an_alias(site: Path) -> None:
    made = made_for_jax(site, "odd", REGISTERS)
    load(made.table.rows[0], made.table)
    assert made.table.aliases["chip"] == ("odd",)


@needs_jax
def test_options_that_are_a_function_are_called_late(site: Path) -> None:
    source = REGISTERS.replace('{"a": 1}', 'lambda: {"late": True}')
    made = made_for_jax(site, "lazy", source)
    plugin = load(made.table.rows[0], made.table)
    assert plugin.client_options(settings()) == {"late": True}


@needs_jax
def test_a_fault_after_registering_does_not_cost_the_plugin(site: Path) -> None:
    made = made_for_jax(site, "late", REGISTERS + "        raise RuntimeError('no profiler')\n")
    assert load(made.table.rows[0], made.table).name == "late"


@needs_jax
@pytest.mark.parametrize(
    ("body", "cls", "fact"),
    [
        ("raise RuntimeError('cuDNN 9.10')", PluginBroken, "cuDNN 9.10"),
        ("raise SystemExit(1)", PluginBroken, "sys.exit(1)"),
        ("return None", PluginUnavailable, "registered no backend"),
        (
            "xb.register_plugin('chip', library_path='/l.so', factory=print)",
            PluginIncompatible,
            "with a factory, which makes a client of jax's own, so that only jax can use it; "
            "PJRT_NAMES_AND_LIBRARY_PATHS=chip:/l.so",
        ),
        ("xb.register_plugin('chip', c_api=xb, factory=print)", PluginIncompatible, "only jax"),
        ("xb.register_backend_factory('chip', print)", PluginIncompatible, "only jax"),
        ("xb.register_plugin('chip')", PluginIncompatible, "neither library_path nor c_api"),
        (
            "xb.register_plugin('chip', library_path='/l.so', c_api=xb)",
            PluginIncompatible,
            "both library_path and c_api",
        ),
        (
            "xb.register_plugin('chip', library_path='/l.so', colour=1)",
            PluginIncompatible,
            "with colour, which plugrt does not know",
        ),
    ],
)
def test_initialize_that_does_not_register(
    site: Path, body: str, cls: type[PluginError], fact: str
) -> None:
    bridge = importlib.import_module("jax._src.xla_bridge")
    real = bridge.register_plugin
    source = f"import jax._src.xla_bridge as xb\ndef initialize():\n    {body}\n"
    made = made_for_jax(site, "chip", source)
    with pytest.raises(PluginError) as error:
        load(made.table.rows[0], made.table)
    assert type(error.value) is cls
    assert fact in str(error.value)
    assert "chip-pjrt 1.0" in str(error.value)
    assert bridge.register_plugin is real
    assert "chip" not in bridge._backend_factories


TWO = """
    from jax._src.xla_bridge import register_plugin, register_backend_factory

    def initialize():
        register_plugin("second", 450, "/x/two.so")
        register_backend_factory("third", print)
        register_plugin("CHIP", 512, "/x/chip.so")
"""


@needs_jax
def test_each_registration_has_a_row(site: Path) -> None:
    made = made_for_jax(site, "chip", TWO.replace("CHIP", "chip"))
    (chip,) = made.table.rows
    assert load(chip, made.table).priority == 512
    rows = {row.name: row for row in made.table.rows}
    assert list(rows) == ["chip", "second", "third"]
    assert {row.who for row in rows.values()} == {"chip-pjrt 1.0"}
    assert rows["second"].library == "/x/two.so"
    assert rows["third"].state == "incompatible"
    assert "only jax can use it" in rows["third"].reason
    with pytest.raises(PluginIncompatible, match="only jax"):
        load(rows["third"], made.table)
    made.clear()
    assert [row.name for row in made.table.rows] == ["chip", "second", "third"]
    load_for_names(made.table)
    assert [row.name for row in made.table.rows] == ["chip", "second", "third"]


@needs_jax
@pytest.mark.parametrize("name", ["CHIP", "chip", "chip_plugin", "second"])
def test_names_that_only_its_code_tells_are_found(site: Path, name: str) -> None:
    """Case matters, as for JAX: the entry point is named chip, the code registers CHIP."""
    install(site, "chip-pjrt", {"jax_plugins": {"chip_plugin": "made_chip"}}, {"made_chip": TWO})
    made = registry(path=site, **HERE, JAX_PLATFORMS=name)
    with pytest.raises(PluginBroken, match=r"the library /x/\w+.so does not exist"):
        made.get()
    with pytest.raises(UnknownPlatform, match=r"installed: .*chip"):
        registry(path=site, **HERE, JAX_PLATFORMS="Chip").get()


@needs_jax
@pytest.mark.parametrize(
    ("body", "cls", "fact"),
    [
        ("register_plugin('METAL')", PluginIncompatible, "neither library_path nor c_api"),
        (
            "raise RuntimeError('jaxlib 0.4 is needed')",
            UnknownPlatform,
            "'metal' (metal-pjrt 1.0) may register that name, but failed: importing it failed: "
            "RuntimeError: jaxlib 0.4 is needed",
        ),
    ],
)
def test_requests_for_a_plugin_state_why_it_is_missing(
    site: Path, body: str, cls: type[PluginError], fact: str
) -> None:
    source = f"""
        from jax._src.xla_bridge import register_plugin
        def initialize():
            {body}
    """
    install(site, "metal-pjrt", {"jax_plugins": {"metal_plugin": "made_metal"}},
            {"made_metal": source})  # fmt: skip
    made = registry(path=site, **HERE, JAX_PLATFORMS="METAL")
    with pytest.raises(PluginError) as error:
        made.get()
    assert type(error.value) is cls
    assert fact in str(error.value)


@needs_jax
def test_make_topology_costs_topologies_only(site: Path) -> None:
    source = REGISTERS.replace("priority=512", "make_topology=print")
    made = made_for_jax(site, "chip", source)
    plugin = load(made.table.rows[0], made.table)
    assert plugin.client_options(settings()) == {"a": 1}
    with pytest.raises(Unimplemented, match=r"'chip' registers make_topology=.*only jax"):
        plugin.create_topology("x", {})


@needs_jax
def test_a_module_without_initialize(site: Path) -> None:
    made = made_for_jax(site, "chip", "x = 1")
    with pytest.raises(PluginBroken, match=r"no initialize\(\)"):
        load(made.table.rows[0], made.table)


@needs_jax
def test_a_table_in_a_capsule(site: Path) -> None:
    made = made_for_jax(site, "chip", REGISTERS.replace('library_path="/x/chip.so"', "c_api=xb"))
    plugin = load(made.table.rows[0], made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert plugin.probe().available


@pytest.fixture
def without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)


def libraries(site: Path, distribution: str, files: dict[str, bytes]) -> None:
    info = next(site.glob(f"{distribution.replace('-', '_')}-*.dist-info"))
    for name, content in files.items():
        file = site / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))


PJRT, OTHER = b"\x7fELF..GetPjrtApi..", b"\x7fELF..PyInit_x.."


@pytest.mark.usefixtures("without_jax")
@pytest.mark.parametrize("group", ["jax_plugins", "xla_plugins"])
@pytest.mark.parametrize(
    "files",
    [
        {"m/one.so": b"anything"},
        {"m/a.so": OTHER, "m/pjrt.so": PJRT, "m/empty.so": b"", "m/readme.txt": PJRT},
    ],
)
def test_the_library_is_found_without_jax(site: Path, group: str, files: dict[str, bytes]) -> None:
    made = made_for_jax(site, "chip", "raise RuntimeError('must not run')", group)
    libraries(site, "chip-pjrt", files)
    (record,) = made.table.rows
    plugin = load(record, made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert Path(plugin.library()).name in ("one.so", "pjrt.so")
    assert record.library == plugin.library()


@pytest.mark.usefixtures("without_jax")
@pytest.mark.parametrize(
    ("files", "fact"),
    [
        ({}, "no file that exports GetPjrtApi"),
        ({"m/a.so": OTHER, "m/b.so": OTHER}, "no file that exports GetPjrtApi (of 2"),
        ({"m/a.so": PJRT, "m/b.so": PJRT}, "several libraries"),
    ],
)
def test_no_one_library(site: Path, files: dict[str, bytes], fact: str) -> None:
    made = made_for_jax(site, "chip", "x = 1")
    libraries(site, "chip-pjrt", files)
    with pytest.raises(PluginIncompatible) as error:
        load(made.table.rows[0], made.table)
    assert fact in str(error.value)
    assert "PJRT_NAMES_AND_LIBRARY_PATHS=chip:" in str(error.value)


@pytest.mark.usefixtures("without_jax")
def test_a_namespace_module_without_a_distribution(site: Path) -> None:
    folder = site / "jax_plugins" / "bare"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('must not run')")
    (folder / "lib.so").write_bytes(PJRT)
    made = registry(path=site, **HERE)
    plugin = load(made.table.rows[0], made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert plugin.library() == str(folder / "lib.so")


@needs_jax
@pytest.mark.parametrize(
    ("source", "note"),
    [
        ("def initialize(): raise ValueError('No AMD GPUs were found')", "No AMD GPUs were found"),
        ("def initialize(): assert False", "AssertionError"),
        ("def initialize(): raise SystemExit(3)", "SystemExit: 3"),
        ("def initialize(): xla.options(1)", "NameError"),
        ("def initialize(): pass", "registered no backend"),
        ("import not_installed_here", "not_installed_here"),
        ("x = 1", "no initialize()"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_packages_files_decide_if_its_code_registers_nothing(
    site: Path, source: str, note: str
) -> None:
    """As without jax. Earlier, with jax, the row was broken and the files were not searched."""
    made = made_for_jax(site, "chip", source)
    libraries(site, "chip-pjrt", {"m/one.so": PJRT})
    (row,) = made.table.rows
    plugin = load(row, made.table)
    assert isinstance(plugin, LibraryPlugin)
    assert (plugin.name, plugin.library()) == ("chip", str(site / "m/one.so"))
    assert note in row.reason, "it is kept"
    with pytest.raises(PluginBroken, match=r"one\.so") as error:
        made.get("chip")
    assert note in str(error.value)
    assert row.reason.count(note) == 1
    made.clear()
    with pytest.raises(PluginBroken):
        made.get("chip")


REGISTERED = [  # (the module's text, the name that is read from it)
    ('xb.register_plugin("tt", priority=500)', "tt"),
    ("register_plugin('METAL')", "METAL"),
    ("xb.register_plugin(plugin_name='sycl', priority=1)", "sycl"),
    ("bridge.register_backend_factory('fact', print)", "fact"),
    ("xb.register_plugin(NAME)", "constant"),
    ("xb.register_plugin(ANNOTATED)", "annotated"),
    ("xb.register_plugin('a'); xb.register_plugin('a', 3)", "a"),
    ("xb.register_plugin('a'); xb.register_plugin('b')", ""),
    ("xb.register_plugin('a'); xb.register_plugin(NAME.lower())", ""),
    ("xb.register_plugin(f'{NAME}')", ""),
    ("xb.register_plugin(UNKNOWN)", ""),
    ("xb.register_plugin(*NAME)", ""),
    ("xb.register_plugin()", ""),
    ("other('a')", ""),
]


@pytest.mark.usefixtures("without_jax")
@pytest.mark.parametrize(("code", "name"), REGISTERED)
@pytest.mark.parametrize("form", ["module", "package", "namespace"])
def test_the_name_that_it_registers_is_read_without_running_it(
    site: Path, code: str, name: str, form: str
) -> None:
    """Earlier, `tt`, `sycl` and `METAL` were no names without jax."""
    source = f"""
NAME, OTHER = "constant", 3
NAME = "constant"
ANNOTATED: str = "annotated"
raise RuntimeError("must not run")
def initialize():
    {code}
"""
    if form == "namespace":
        (folder := site / "jax_plugins" / "odd").mkdir(parents=True)
        (folder / "__init__.py").write_text(source)
        (folder / "lib.so").write_bytes(PJRT)
    else:
        module = {"module": "made_odd", "package": "made_odd.inner.__init__"}[form]
        value = module.removesuffix(".__init__")
        install(site, "odd-pjrt", {"jax_plugins": {"odd": value}}, {module: source})
        if form == "package":
            (site / "made_odd" / "__init__.py").write_text("raise RuntimeError('must not run')")
        libraries(site, "odd-pjrt", {"m/one.so": PJRT})
    made = registry(path=site, **HERE)
    (row,) = made.table.rows
    known = known_platforms(made)
    assert (name in known) == bool(name)
    assert {"odd", "constant", "a", "b"} & known == {"odd", name} & {"odd", "constant", "a", "b"}
    assert expand_platform_alias(name or "odd", made) == ["odd"]
    assert made.table.find(name or "odd", "the test") == [row]
    load(row, made.table)
    assert row.platform == (name or "odd")


@needs_jax
@pytest.mark.parametrize("with_jax", [True, False])
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("entries", [("one", "two"), ("chip", "two"), ("two", "chip")])
def test_two_packages_that_register_one_name_are_rivals(
    site: Path, with_jax: bool, loaded: bool, entries: tuple[str, str],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """Earlier, the first was chosen silently, unless the entry points had one name, too."""
    if not with_jax:
        request.getfixturevalue("without_jax")
    for entry in entries:
        made = made_for_jax(site, entry, REGISTERS)
        libraries(site, f"{entry}-pjrt", {f"{entry}/one.so": PJRT})
    if loaded:
        load_for_names(made.table)
    with pytest.raises(DuplicatePlugin) as error:
        made.get("chip")
    for fact in ("'chip' is provided by", "one-pjrt" if "one" in entries else "chip-pjrt",
                 "two-pjrt 1.0", "JAX_PLATFORMS=chip@"):  # fmt: skip
        assert fact in str(error.value)
    rows = {row.name: row for row in made.table.rows}
    assert made.table.find("chip@two-pjrt", "the test") == [rows["two"]]
    assert made.table.find("two", "the test") == [rows["two"]]
    blocked = registry(path=site, **HERE, PLUGRT_PLUGINS_BLOCK="two-pjrt")
    assert [row.name for row in blocked.table.find("chip", "the test")] == [
        entries[entries[0] == "two"]
    ]
    ours = install_plugin(site, "chip", distribution="ours")
    with_ours = registry(path=site, **HERE)
    assert [row.who for row in with_ours.table.find("chip", "the test")] == ["ours 1.0"], ours


def test_the_group_for_xla_is_never_initialized(site: Path) -> None:
    row = record("x", "xla_plugins", value="not_there", location=str(site))
    with pytest.raises(PluginIncompatible):
        jax_plugins.collect_registrations(row)
