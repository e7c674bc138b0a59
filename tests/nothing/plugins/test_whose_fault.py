"""The owner of a fault decides its severity: absent hardware, named libraries, settings.

Differs from JAX: a plugin that fails | a warning or a traceback, per plugin | a row with reason and
cure; a warning; an error where asked by name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import plugrt
from plugrt.errors import (
    ConfigError,
    Internal,
    PluginBroken,
    PluginError,
    PluginUnavailable,
    Unimplemented,
)
from support.clib import needs_cc, tiny_library
from support.distributions import install_plugin, run_cli, run_warm
from support.fake_client import FakePlugin
from support.registries import record, registry

DEVICES = "import plugrt; print([str(d.platform) for d in plugrt.devices()])"
ONLY = {"PLUGRT_PLUGINS_ALLOW": "good,foo,nolib"}


def last(text: str) -> str:
    return text.strip().splitlines()[-1]


FAILS = """
static PJRT_Error* refuse(struct PJRT_Client_Create_Args* a) {
  return fail(CODE, "frobnitz: firmware crashed");
}
"""
START_FAULTS = {
    "says that a thing was not found": ("api.Client_Create = refuse;", FAILS, "-DCODE=5"),
    "has a fault of its own": ("api.Client_Create = refuse;", FAILS, "-DCODE=13"),
    "is away": ("api.Client_Create = refuse;", FAILS, "-DCODE=14"),
    "cannot do it": ("api.Client_Create = refuse;", FAILS, "-DCODE=12"),
    "lacks the function": ("api.Client_Create = 0;", ""),
    "lacks the list of devices": ("api.Client_Devices = 0;", ""),
    "has no devices": ("", "", "-DDEVICES=0"),
}


@needs_cc
@pytest.mark.parametrize("fault", START_FAULTS)
def test_a_library_of_the_environment_that_cannot_start(tmp_path: Path, fault: str) -> None:
    """Earlier, all of these were omitted silently. JAX: Unable to initialize backend 'foo'."""
    library = tiny_library(tmp_path, *START_FAULTS[fault])
    install_plugin(tmp_path, "good", priority=1)
    names = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"foo:{library}", **ONLY}
    done = run_warm(DEVICES, tmp_path, **names)
    assert (done.returncode, done.stdout) == (0, "['good']\n"), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "left out" in line]
    assert "'foo' (PJRT_NAMES_AND_LIBRARY_PATHS)" in line


@needs_cc
@pytest.mark.parametrize("fault", ["has a fault of its own", "has no devices"])
@pytest.mark.parametrize("how", [{"PLUGRT_STRICT_PLUGINS": "1"}, {"JAX_PLATFORMS": "foo"}])
def test_it_is_an_error_if_it_is_asked_for_and_in_strict_mode(
    tmp_path: Path, fault: str, how: dict[str, str]
) -> None:
    library = tiny_library(tmp_path, *START_FAULTS[fault])
    install_plugin(tmp_path, "good", priority=1)
    names = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"foo:{library}", **ONLY, **how}
    done = run_warm(DEVICES, tmp_path, **names)
    assert done.returncode == 1
    assert "'foo' (PJRT_NAMES_AND_LIBRARY_PATHS)" in last(done.stderr)
    words = "frobnitz: firmware crashed" if "fault" in fault else "no devices"
    assert words in last(done.stderr)


NONSENSE = ("x", "?", "nonsense", "cpu:x", "inf", "-7")


def malformed() -> list[tuple[str, str]]:
    """Returns each variable with a restricted value, and a value that it refuses."""
    found = []
    for option in type(plugrt.config).declared().values():
        for text in NONSENSE:
            try:
                option.read({option.env: text})
            except ConfigError:
                found.append((option.env, text))
                break
    return found


@pytest.mark.parametrize(("variable", "text"), malformed())
def test_a_malformed_setting_raises_whatever_is_chosen(variable: str, text: str) -> None:
    """Earlier, some changed the backend instead: the plugin that read them was omitted."""
    for platforms in ({}, {"JAX_PLATFORMS": "b"}, {"JAX_PLATFORM_NAME": "b"}):
        made = registry(**{variable: text, **platforms})
        made.register(FakePlugin("a", priority=9))
        made.register(FakePlugin("b", priority=1))
        calls: list[Any] = [
            lambda made=made: plugrt.devices(of=made),
            lambda made=made: plugrt.get_backend("a", made),
            lambda made=made: made.topology("b", "2", {}),
        ]
        for call in [*calls, *calls]:
            with pytest.raises(ConfigError, match=f"^{variable}="):
                call()


def test_a_setting_that_a_plugin_refuses_is_the_users() -> None:
    class Picky(FakePlugin):
        def client_options(self, config: Any) -> dict[str, Any]:
            raise ConfigError("CHIP_MODE='seven' cannot be understood")

    made = registry()
    made.register(Picky("picky", priority=9))
    made.register(FakePlugin("good", priority=1))
    for _ in range(2):
        with pytest.raises(ConfigError, match="CHIP_MODE"):
            plugrt.devices(of=made)


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("devices", "lambda self: [1, 2]", "one of whose devices is 1, not a plugrt.interface"),
        ("devices", "lambda self: None", "that has no devices"),
        ("platform", "None", "whose platform is None, not a text"),
        ("platform", "7", "whose platform is 7, not a text"),
    ],
)
def test_a_client_that_cannot_be_used(
    tmp_path: Path, attribute: str, value: str, words: str
) -> None:
    source = f"""
        from support.fake_client import FakeClient, FakePlugin

        class Bad(FakeClient):
            def __setattr__(self, name, value):
                if name != "platform":
                    super().__setattr__(name, value)

            {attribute} = {value}

        class P(FakePlugin):
            def create_client(self, options, distributed=None):
                return Bad("bad")

        plugin = P("bad", priority=900)
    """
    install_plugin(tmp_path, "bad", source)
    done = run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="bad")
    assert done.returncode == 1
    assert f"'bad' (bad-dist 1.0): it started a backend {words}" in done.stderr


ODD = {
    "raises": "def __str__(self): raise ValueError('no words')",
    "exits": "def __str__(self): raise SystemExit(3)",
    "gives no text": "def __str__(self): return 7",
    "recurses": "def __str__(self): return str(self)",
    "gives what cannot be printed": "def __str__(self): return 'half \\ud800 pair'",
    "controls the terminal": "def __str__(self): return 'red \\x1b[31m bell \\x07'",
    "fills the screen": "def __str__(self): return 'long ' * 2_000_000",
}
PLACES = {
    "at its import": "{odd}\nraise Odd()",
    "in probe": "{odd}\nclass P(FakePlugin):\n    def probe(self): raise Odd()\nplugin = P('bad')",
    "in create_client": "{odd}\nplugin = FakePlugin('bad', error=Odd())",
    "in client_options": (
        "{odd}\nclass P(FakePlugin):\n    def client_options(self, c): raise Odd()\n"
        "plugin = P('bad')"
    ),
    "in its aliases": (
        "{odd}\nclass P(FakePlugin):\n    aliases = property(lambda self: (_ for _ in ()).throw("
        "Odd()))\nplugin = P('bad')"
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_exception_without_words_is_a_row_and_no_traceback(tmp_path: Path, place: str) -> None:
    for i, (odd, method) in enumerate(ODD.items()):
        source = "from support.fake_client import FakePlugin\n" + PLACES[place].format(
            odd=f"class Odd(Exception):\n    {method}\n"
        )
        name = f"bad{i}"
        install_plugin(tmp_path, name, source.replace("'bad'", f"'{name}'"), priority=900)
        del odd
    install_plugin(tmp_path, "good", priority=1)
    allow = ",".join(["good", *(f"bad{i}" for i in range(len(ODD)))])
    done = run_cli("devices", "--json", folders=(tmp_path,), PLUGRT_PLUGINS_ALLOW=allow)
    assert done.returncode == 0, done.stderr
    assert {row["backend"] for row in json.loads(done.stdout)} == {"good"}
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if "left out: 'bad" in line]) == len(ODD)
    assert done.stderr.replace("\n", "").isprintable()
    assert len(done.stderr) < 100_000
    asked = {"PLUGRT_PLUGINS_ALLOW": allow, "JAX_PLATFORMS": "bad0"}
    done = run_cli("devices", folders=(tmp_path,), **asked)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "'bad0' (bad0-dist 1.0)" in line
    assert "Odd" in line


class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class WordlessBroken(PluginBroken):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(Wordless()),
        ModuleNotFoundError("m", name=3),
        Unimplemented(Wordless()),  # type: ignore[arg-type]
        Internal(Wordless()),  # type: ignore[arg-type]
        PluginUnavailable(Wordless()),
        ExceptionGroup("g", [Wordless()]),
        BaseExceptionGroup("g", [SystemExit(1)]),
    ],
)
def test_a_plugin_that_raises_is_skipped_for_the_next(error: Any) -> None:
    class AtImport(FakePlugin):
        @property
        def aliases(self) -> Any:  # type: ignore[override]
            raise error

    for bad in (FakePlugin("bad", priority=99, error=error), AtImport("bad", priority=99)):
        made = registry()
        row = record("bad", "plugrt.plugins", "bad-dist", "1", "made_bad:bad")
        assert made.table.rows == []
        made.table.add(row)
        made.register(FakePlugin("good", priority=1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "made_bad", SimpleNamespace(bad=bad))
            assert plugrt.default_backend(made) == "good"
            with pytest.raises(PluginError, match=r"'bad' \(bad-dist 1\)"):
                plugrt.get_backend("bad", made)
        assert row.failure is not None
        assert row.reason


class Stubborn(FakePlugin):
    """A plugin whose clients fail to close."""

    def __init__(self, name: str, fault: Exception, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self._fault = fault

    def create_client(self, options: Any, distributed: Any = None) -> Any:
        client = super().create_client(options, distributed)
        client.close = self._close  # type: ignore[method-assign]
        return client

    def _close(self) -> None:
        raise self._fault


@pytest.mark.parametrize("error", [Wordless(), WordlessBroken()])
def test_a_failing_close_or_an_error_of_ours_without_words(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    made = registry()
    made.register(Stubborn("stubborn", error, priority=9))
    made.register(FakePlugin("bad", priority=99, error=error))
    assert plugrt.default_backend(made) == "stubborn"
    plugrt.clear_backends(made)
    assert "closing the backend of 'stubborn'" in caplog.text
    assert "cannot be read" in caplog.text
