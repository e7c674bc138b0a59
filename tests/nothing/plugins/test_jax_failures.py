"""What JAX 0.10 gets wrong with plugins (measured), one test a row: plugrt does the right thing.

Each runs in a process of its own, with distributions installed as pip would leave them.

Same as JAX: `JAX_PLATFORMS` and the other variables of [Settings](configuration.md): names, values,
order, errors.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.distributions import PLUGIN, install, install_plugin, run_python, run_warm

DEVICES = "import plugrt; print([str(d.platform) for d in plugrt.devices()])"
TWICE = """
    import plugrt
    for _ in range(2):
        try:
            print(plugrt.devices())
        except Exception as error:
            print(type(error).__name__, str(error).replace(chr(10), " "))
"""
NONE_OF_OURS = {"PLUGRT_PLUGINS_BLOCK": "cpu,cuda,tpu,xla_cpu"}


def twice(*folders: Path, **environ: str) -> str:
    """Asks for devices twice in one process; asserts that both answers are the same."""
    done = run_warm(TWICE, *folders, **environ)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second
    return first


def test_a_plugin_that_aborts_at_import_is_harmless_unless_selected(tmp_path: Path) -> None:
    """jax#24901: a mismatched plugin segfaults even with JAX_PLATFORMS=cpu."""
    install_plugin(tmp_path, "bomb", "import os; os.abort()")
    for group in ("jax_plugins", "xla_plugins"):
        (tmp_path / group).mkdir()
        (tmp_path / group / "bomb2.py").write_text("import os; os.abort()")
    install_plugin(tmp_path, "good")
    done = run_warm(DEVICES, tmp_path, JAX_PLATFORMS="good")
    assert (done.returncode, done.stdout) == (0, "['good']\n"), done.stderr
    assert run_warm(DEVICES, tmp_path, JAX_PLATFORMS="bomb").returncode < 0


def test_nothing_unselected_is_imported(tmp_path: Path) -> None:
    """JAX: every installed plugin is imported and initialised; a sleep(1) in one costs 1 s."""
    for i in range(3):
        install_plugin(tmp_path, f"p{i}")
    code = DEVICES + "\nimport sys; print(sorted(m for m in sys.modules if m[2:] == '_module'))"
    done = run_warm(code, tmp_path, JAX_PLATFORMS="p1")
    assert done.stdout.splitlines() == ["['p1']", "['p1_module']"], done.stderr


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("raise ImportError('ABI 7')", "ImportError: ABI 7"),
        ("raise ValueError('seven')", "ValueError: seven"),
        ("raise SystemExit(7)", "sys.exit(7)"),
        ("import dependency_that_is_not_there", "'dependency_that_is_not_there'"),
    ],
)
def test_a_broken_plugin_is_one_line_that_names_it(tmp_path: Path, source: str, fact: str) -> None:
    """JAX: a literal %s for an ImportError; anything else ends jax.devices()."""
    install_plugin(tmp_path, "bad", source, distribution="bad-chip", version="4.5")
    install_plugin(tmp_path, "good", priority=1)
    done = run_warm(DEVICES, tmp_path, **NONE_OF_OURS)
    assert (done.returncode, done.stdout) == (0, "['good']\n"), done.stderr
    (line,) = done.stderr.splitlines()
    for part in ("'bad' (bad-chip 4.5)", fact, "PLUGRT_PLUGINS_BLOCK=bad"):
        assert part in line
    assert "%s" not in line
    message = twice(tmp_path, JAX_PLATFORMS="bad")
    assert message.startswith("PluginBroken JAX_PLATFORMS=bad asks for 'bad'")
    assert fact in message


def test_ctrl_c_in_a_plugin_is_not_swallowed(tmp_path: Path) -> None:
    """JAX: `initialize()` is guarded by a bare except."""
    install_plugin(tmp_path, "bad", "raise KeyboardInterrupt")
    done = run_warm(DEVICES, tmp_path, JAX_PLATFORMS="bad")
    assert done.returncode != 0
    assert done.stderr.strip().endswith("KeyboardInterrupt")


def test_the_order_is_the_same_in_every_run(tmp_path: Path) -> None:
    """JAX: discovery order is that of a set of strings, and differs from run to run."""
    for name in "dbeac":
        install_plugin(tmp_path, name)
    code = """
        import plugrt
        plugrt.devices()
        print([r.name for r in plugrt.plugins.table()], plugrt.default_backend())
    """
    runs = {run_warm(code, tmp_path, PYTHONHASHSEED=seed, **NONE_OF_OURS).stdout for seed in "123"}
    (output,) = runs
    assert output.endswith(" a\n")


def test_spaces_in_jax_platforms(tmp_path: Path) -> None:
    """JAX: "cpu, cpu" asks for a backend named " cpu"."""
    install_plugin(tmp_path, "a")
    install_plugin(tmp_path, "b")
    assert twice(tmp_path, JAX_PLATFORMS="b, a") == "[b:0]"


def test_a_second_name_that_fails_fails_every_time(tmp_path: Path) -> None:
    """JAX: `cpu,nosuch` raises at the first call and succeeds at the second."""
    install_plugin(tmp_path, "a")
    message = twice(tmp_path, JAX_PLATFORMS="a,aa")
    assert message.startswith("UnknownPlatform JAX_PLATFORMS=a,aa asks for 'aa'")
    assert "did you mean 'a'?" in message


def test_a_bad_library_path_is_harmless_unless_selected(tmp_path: Path) -> None:
    """JAX: it aborts everything, even with JAX_PLATFORMS=cpu, and names no variable."""
    install_plugin(tmp_path, "good")
    variable = {"PJRT_NAMES_AND_LIBRARY_PATHS": "mine:/no/such.so"}
    assert twice(tmp_path, JAX_PLATFORMS="good", **variable) == "[good:0]"
    message = twice(tmp_path, JAX_PLATFORMS="mine", **variable)
    for fact in ("'mine'", "/no/such.so", "PJRT_NAMES_AND_LIBRARY_PATHS"):
        assert fact in message


def test_a_malformed_item_is_an_error_with_item_position_and_shape(tmp_path: Path) -> None:
    """JAX: only a warning, and the plugin that was asked for is missing."""
    install_plugin(tmp_path, "good")
    message = twice(tmp_path, PJRT_NAMES_AND_LIBRARY_PATHS="mine:/x.so,oops")
    for fact in ("ConfigError", "item 2", "'oops'", "name:path"):
        assert fact in message


def test_a_sick_distribution_hides_no_other(tmp_path: Path) -> None:
    """importlib_metadata.entry_points() raises as a whole on such a folder."""
    info = install_plugin(tmp_path, "sick")
    (info / "METADATA").unlink()
    (info / "entry_points.txt").write_bytes(b"[plugrt.plugins]\nsick = \xff:y\n")
    install_plugin(tmp_path, "good")
    assert twice(tmp_path, JAX_PLATFORMS="good") == "[good:0]"
    code = "import plugrt, json; print(json.dumps([r.as_dict() for r in plugrt.plugins.table()]))"
    rows = {r["name"]: r for r in json.loads(run_warm(code, tmp_path).stdout)}
    assert rows["sick-dist"]["state"] == "broken"
    assert rows["good"]["state"] == "found"


def test_two_distributions_of_one_name(tmp_path: Path) -> None:
    """JAX: the second registration of a name fails inside C++ with ALREADY_EXISTS."""
    for folder in ("one", "two"):
        install_plugin(tmp_path, "x", PLUGIN.format(name="x", priority=4), distribution=folder)
    message = twice(tmp_path, JAX_PLATFORMS="x")
    for fact in ("DuplicatePlugin", "one 1.0", "two 1.0", "JAX_PLATFORMS=x@one"):
        assert fact in message
    assert twice(tmp_path, JAX_PLATFORMS="x@two") == "[x:0]"
    assert twice(tmp_path, JAX_PLATFORMS="x", PLUGRT_PLUGINS_BLOCK="one") == "[x:0]"


def test_the_value_of_an_entry_point_may_name_an_attribute(tmp_path: Path) -> None:
    """JAX passes the value to import_module, so that `module:attribute` cannot work."""
    install(
        tmp_path, "deep", {"plugrt.plugins": {"deep": "deep_pkg.sub:Holder.plugin"}},
        {"deep_pkg.__init__": "", "deep_pkg.sub": (
            "from support.fake_client import FakePlugin\nclass Holder:\n"
            "    plugin = FakePlugin('deep')\n")},
    )  # fmt: skip
    assert twice(tmp_path, JAX_PLATFORMS="deep") == "[deep:0]"


def test_registering_a_wrong_plugin_raises(tmp_path: Path) -> None:
    """JAX: register_plugin logs an error and returns None."""
    code = "import plugrt; plugrt.plugins.register('libchip.so')"
    done = run_warm(code, tmp_path)
    assert done.returncode == 1
    assert "RegistrationError" in done.stderr.splitlines()[-1]


def test_a_hanging_plugin_is_named(tmp_path: Path) -> None:
    source = """
import sys, time
told, write, until = [], sys.stderr.write, time.monotonic() + 60
sys.stderr.write = lambda text: told.append(text) or write(text)
def wait_for_driver():
    while not told and time.monotonic() < until:
        time.sleep(0.05)
wait_for_driver()
"""
    install_plugin(tmp_path, "slow", source + PLUGIN.format(name="slow", priority=1))
    done = run_warm(DEVICES, tmp_path, JAX_PLATFORMS="slow", PLUGRT_LOAD_WARN_SECONDS="0.1")
    (line,) = done.stderr.splitlines()
    for fact in ("importing the plugin 'slow' (slow-dist 1.0)", "0.1 s", "wait_for_driver"):
        assert fact in line


def test_asking_for_the_table_or_importing_plugrt_loads_nothing(tmp_path: Path) -> None:
    install_plugin(tmp_path, "bomb", "import os; os.abort()")
    code = """
        import plugrt, sys
        assert any(r.name == "bomb" for r in plugrt.plugins.table())
        heavy = {"jax", "jaxlib", "pluggy", "importlib_metadata", "click", "rich", "cffi", "pytest"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = run_python(code, tmp_path)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_a_hundred_plugins_cost_a_few_milliseconds(tmp_path: Path) -> None:
    """JAX imports each. Here finding them is all that is added; the rest of the start is equal."""
    for i in range(100):
        install_plugin(tmp_path, f"p{i:03}", "import os; os.abort()")
    install_plugin(tmp_path, "good")
    code = """
        import sys, time
        from plugrt.plugins.discovery.installed_plugins import discover
        from plugrt.plugins import Backends
        discover()  # the files are in the cache of the operating system
        for path in ([sys.argv[1]], [sys.argv[1] + "/none"]):
            seconds = []
            for _ in range(5):  # other processes may disturb some
                begin = time.perf_counter()
                names = {r.name for r in Backends(path=path).table.rows}
                seconds.append(time.perf_counter() - begin)
            print(len(names), min(seconds))
    """
    done = run_warm(code, tmp_path, arguments=(str(tmp_path),))
    many, none = (line.split() for line in done.stdout.splitlines())
    assert (many[0], none[0]) == ("101", "0"), done.stderr
    assert float(many[1]) < 0.25, "100 dist-info folders took 5 ms when this was written"
    done = run_warm(DEVICES, tmp_path, JAX_PLATFORMS="good")
    assert done.stdout == "['good']\n", done.stderr
