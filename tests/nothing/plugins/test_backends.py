"""`plugrt.plugins.selection.backends`: initialised once, for all threads, with the same error."""

from __future__ import annotations

import functools
import itertools
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import plugrt
from plugrt import monitoring
from plugrt.errors import (
    ConfigError,
    Internal,
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    RegistrationError,
    UnknownPlatform,
)
from plugrt.interface import Client
from plugrt.plugins import Availability, Backends, Record, hookimpl
from support.distributions import PLUGIN, install_plugin
from support.fake_client import FakeClient, FakePlugin
from support.native_core import python_calls
from support.registries import record, registry

ABSENT = Availability.no("no such device on the bus", "plug one in")


def row_of(made: Backends, name: str) -> Record:
    (row,) = [row for row in made.table.rows if row.name == name]
    return row


def raises_twice(call: Callable[[], Any], cls: type[Exception]) -> str:
    """Asserts that the call fails with one message, two times, and returns it."""
    messages = []
    for _ in range(2):
        with pytest.raises(cls) as error:
            call()
        assert type(error.value) is cls
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    return messages[0]


def test_only_what_is_named_is_started_the_first_is_the_default() -> None:
    a, b, c = FakePlugin("a"), FakePlugin("b", count=2), FakePlugin("c", priority=900)
    made = registry(a, b, c, JAX_PLATFORMS=" b , a ")
    assert list(plugrt.backends(made)) == ["b", "a"]
    assert plugrt.default_backend(made) == "b"
    assert [d.platform for d in plugrt.devices(of=made)] == ["b", "b"]
    assert c.clients == []
    assert row_of(made, "c").state == "not selected"


def test_a_later_name_that_is_unknown_fails_each_time_and_starts_nothing() -> None:
    """JAX 0.10: the first call raises, the second succeeds with the backends that had started."""
    a = FakePlugin("a")
    made = registry(a, JAX_PLATFORMS="a,nosuch")
    message = raises_twice(lambda: plugrt.devices(of=made), UnknownPlatform)
    assert "JAX_PLATFORMS=a,nosuch requests 'nosuch'" in message
    assert a.clients == []


def test_a_later_name_that_cannot_start_fails_each_time_and_closes_the_first() -> None:
    a, b = FakePlugin("a"), FakePlugin("b", error=RuntimeError("broken pipe"))
    made = registry(a, b, JAX_PLATFORMS="a,b")
    message = raises_twice(lambda: plugrt.get_backend("a", made), PluginBroken)
    for fact in ("JAX_PLATFORMS=a,b", "'b'", "RuntimeError: broken pipe", "take 'b' out"):
        assert fact in message
    assert [client.closed for client in a.clients] == [1]
    assert len(b.options) == 1, "a failed start is not tried again by itself"


def test_absent_hardware_that_is_asked_for_fails_with_reason_and_cure() -> None:
    """JAX 0.10 raises an AssertionError without a message for `cuda` alone.

    Differs from JAX: `JAX_PLATFORMS=cuda,cpu` without a GPU | goes on with cpu; `gpu,cpu` raises |
    both raise `PluginUnavailable`, with the cure.
    """
    made = registry(FakePlugin("a", available=ABSENT), FakePlugin("cpu"), JAX_PLATFORMS="a,cpu")
    message = raises_twice(lambda: plugrt.devices(of=made), PluginUnavailable)
    assert "no such device on the bus" in message
    assert "plug one in" in message


def test_an_alias_starts_the_first_that_works() -> None:
    rocm, cuda = FakePlugin("rocm"), FakePlugin("cuda", available=ABSENT)
    made = registry(rocm, cuda, JAX_PLATFORMS="gpu")
    assert plugrt.default_backend(made) == "rocm"
    assert plugrt.get_backend("gpu", made) is rocm.clients[0]


def test_an_alias_none_of_which_works_says_why_of_each() -> None:
    made = registry(FakePlugin("rocm", error=ValueError("v")), FakePlugin("cuda", available=ABSENT),
                    JAX_PLATFORMS="gpu")  # fmt: skip
    message = raises_twice(lambda: plugrt.devices(of=made), PluginUnavailable)
    assert "no such device" in message
    assert "ValueError: v" in message


def test_platforms_that_jax_platforms_omits_are_refused() -> None:
    made = registry(FakePlugin("a"), FakePlugin("cpu"), JAX_PLATFORMS="a")
    message = raises_twice(lambda: plugrt.get_backend("cpu", made), UnknownPlatform)
    assert "JAX_PLATFORMS=a leaves 'cpu' out" in message
    assert "set JAX_PLATFORMS=a,cpu" in message
    assert "did you mean 'cpu'" in raises_twice(
        lambda: plugrt.get_backend("cpuu", made), UnknownPlatform
    )
    assert list(plugrt.backends(made)) == ["a"]


def test_jax_platform_name_is_a_default_that_excludes_nothing() -> None:
    made = registry(FakePlugin("a"), FakePlugin("b", priority=9000), JAX_PLATFORM_NAME="a")
    assert plugrt.default_backend(made) == "a"
    assert plugrt.get_backend("b", made).platform == "b"


def test_a_client_that_reports_another_platform_can_be_asked_for_by_it() -> None:
    plugin = FakePlugin("mine")
    plugin.create_client = lambda *_: FakeClient("cpu")  # type: ignore[method-assign]
    made = registry(plugin, JAX_PLATFORMS="mine")
    assert plugrt.get_backend("cpu", made) is plugrt.get_backend("mine", made)
    assert plugrt.default_backend(made) == "cpu"


def test_the_highest_priority_wins_and_cpu_is_there_too_started_late() -> None:
    cpu, cuda = FakePlugin("cpu", priority=0), FakePlugin("cuda", priority=500)
    made = registry(cpu, cuda)
    found = plugrt.backends(made)
    assert list(found) == ["cuda", "cpu"]
    assert cpu.clients == []
    assert found["cpu"] is cpu.clients[0]
    assert plugrt.get_backend("cpu", made) is cpu.clients[0]
    assert plugrt.get_backend(None, made) is cuda.clients[0]
    with pytest.raises(KeyError):
        found["nosuch"]


@pytest.mark.parametrize("names", list(itertools.permutations("zmab", 3)))
def test_the_first_of_equal_priorities_is_chosen(
    names: tuple[str, ...], site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of registration, or of the variable; earlier, alphabetical order decided.

    Same as JAX: of libraries in PJRT_NAMES_AND_LIBRARY_PATHS the first one is the default.
    """
    made = registry()
    for name in names:
        made.register(FakePlugin(name))
    assert plugrt.default_backend(made) == names[0]
    monkeypatch.setattr(
        "plugrt.plugins.library.LibraryPlugin.create_client",
        lambda plugin, *_: FakePlugin(plugin.name).create_client({}),
    )
    (library := site / "l.so").touch()
    install_plugin(site, "aaa")
    stated = {"PJRT_NAMES_AND_LIBRARY_PATHS": ",".join(f"{name}:{library}" for name in names),
              "PLUGRT_PROBE_LIBRARIES": "0"}  # fmt: skip
    made = registry(path=site, **stated)
    assert plugrt.default_backend(made) == names[0]
    assert [row.name for row in made.table.rows] == [*names, "aaa"]


def test_absent_hardware_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    absent = FakePlugin("cuda", priority=500, available=ABSENT)
    made = registry(absent, FakePlugin("cpu", priority=100))
    assert plugrt.default_backend(made) == "cpu"
    assert caplog.messages == []
    row = row_of(made, "cuda")
    assert (row.state, row.cure) == ("unavailable", "plug one in")
    assert "no such device" in row.reason
    assert absent.options == []
    message = raises_twice(lambda: plugrt.get_backend("cuda", made), PluginUnavailable)
    assert "no such device" in message


def test_a_broken_plugin_is_one_warning_line_and_the_next_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = registry(FakePlugin("cpu", priority=100))
    made.register(FakePlugin("bad", priority=900, error=Internal("boom\nin two lines")))
    with caplog.at_level(logging.WARNING, "plugrt"):
        assert plugrt.default_backend(made) == "cpu"
        assert plugrt.default_backend(made) == "cpu"
    (message,) = caplog.messages
    assert "\n" not in message
    for fact in ("'bad'", "test_backends.py", "INTERNAL: boom", "PLUGRT_PLUGINS_BLOCK=bad"):
        assert fact in message


def test_strict_makes_a_broken_plugin_fail() -> None:
    broken = FakePlugin("bad", priority=900, error=ValueError("v"))
    made = registry(broken, FakePlugin("cpu", priority=0), PLUGRT_STRICT_PLUGINS="1")
    assert "ValueError: v" in raises_twice(lambda: plugrt.devices(of=made), PluginBroken)


def test_nothing_that_works_lists_each_with_its_reason() -> None:
    made = registry(FakePlugin("a", available=ABSENT), FakePlugin("b", error=ValueError("v")))
    message = raises_twice(lambda: plugrt.devices(of=made), PluginUnavailable)
    for fact in ("'a'", "no such device", "'b'", "ValueError: v", 'pip install "plugrt[cpu]"'):
        assert fact in message


def test_a_platform_asked_for_by_name_needs_no_default() -> None:
    mine, other = FakePlugin("mychip", priority=-5), FakePlugin("b", priority=-1)
    made = registry(mine, other, FakePlugin("cuda", available=ABSENT))
    assert [d.client for d in plugrt.devices("mychip", made)] == mine.clients
    assert plugrt.get_backend("mychip", made) is mine.clients[0]
    assert (len(mine.clients), other.clients, made.started_names) == (1, [], ("mychip",))
    with pytest.raises(RegistrationError, match=r"is too late.*\(mychip\)"):
        made.register(FakePlugin("late"))
    with pytest.raises(RuntimeError, match="mychip started"):
        made.config.update("num_cpu_devices", 3)
    message = raises_twice(lambda: plugrt.devices(of=made), PluginUnavailable)
    for fact in ("'mychip'", "its priority (-1) is negative: it is used only if requested; JAX_P"):
        assert fact in message
    plugrt.clear_backends(made)
    made.register(FakePlugin("cpu", priority=0))
    assert plugrt.default_backend(made) == "cpu"
    assert plugrt.get_backend("mychip", made) is mine.clients[1]


@pytest.mark.parametrize("strict", ["0", "1"])
def test_the_name_of_one_that_works_beside_those_that_do_not(strict: str) -> None:
    broken, mine = FakePlugin("bad", error=ValueError("v")), FakePlugin("mychip", priority=-5)
    made = registry(broken, mine, PLUGRT_STRICT_PLUGINS=strict)
    if strict == "1":
        raises_twice(lambda: plugrt.devices("mychip", made), PluginBroken)
    else:
        assert plugrt.devices("mychip", made)
        assert "ValueError: v" in raises_twice(lambda: plugrt.devices("bad", made), PluginBroken)
        message = raises_twice(lambda: plugrt.devices("mychap", made), UnknownPlatform)
        assert "did you mean 'mychip'?" in message
    strictly = registry(FakePlugin("mychip", priority=-5), PLUGRT_STRICT_PLUGINS="1")
    assert plugrt.devices("mychip", strictly)


def test_platforms_in_jax_platforms_must_work() -> None:
    made = registry(FakePlugin("mychip", priority=-5), JAX_PLATFORMS="nosuch")
    raises_twice(lambda: plugrt.devices("mychip", made), UnknownPlatform)


@pytest.mark.parametrize("default", ["nosuch", "bad", "other"])
@pytest.mark.parametrize("platforms", ["", "mychip", "mychip,second"])
@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_default_that_is_not_there_fails_calls_without_a_name_alone(
    default: str, platforms: str, strict: str
) -> None:
    """Earlier, calls with a name failed, too.

    Same as JAX: where JAX_PLATFORM_NAME names none that is there, calls with a name work.
    """
    mine = FakePlugin("mychip", priority=-5)
    bad = FakePlugin("bad", error=PluginUnavailable("gone"))
    plugins = (mine, bad, FakePlugin("second"), FakePlugin("other"))
    environ = {"JAX_PLATFORMS": platforms, "PLUGRT_STRICT_PLUGINS": strict}
    made = registry(*plugins, JAX_PLATFORM_NAME=default, **environ)
    if default == "other" and not platforms:
        assert plugrt.default_backend(made) == "other"
        return
    cls = PluginUnavailable if default == "bad" and not platforms else UnknownPlatform
    for _ in range(2):
        message = raises_twice(lambda: plugrt.devices(of=made), cls)
        assert f"JAX_PLATFORM_NAME={default}" in message
        assert plugrt.devices("mychip", made) == mine.clients[0].devices()
    assert len(mine.clients) == 1
    assert not mine.clients[0].closed
    with pytest.raises(RuntimeError, match="started"):
        made.config.update("num_cpu_devices", 3)
    if platforms:
        message = raises_twice(lambda: plugrt.devices("other", made), UnknownPlatform)
        assert f"JAX_PLATFORMS={platforms} leaves 'other' out" in message


def test_nothing_installed_says_what_to_install() -> None:
    message = raises_twice(lambda: plugrt.devices(of=registry()), UnknownPlatform)
    assert message == 'no plugin is installed; pip install "plugrt[cpu]"'


def test_a_malformed_variable_fails_where_it_may_matter_and_warns_where_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    variable = {"PJRT_NAMES_AND_LIBRARY_PATHS": "nonsense"}
    made = registry(FakePlugin("a"), **variable)
    assert "item 1, 'nonsense'" in raises_twice(lambda: plugrt.devices(of=made), ConfigError)
    made = registry(FakePlugin("a"), JAX_PLATFORMS="a", **variable)
    assert plugrt.default_backend(made) == "a"
    assert len(caplog.messages) == 1
    assert "item 1, 'nonsense'" in caplog.messages[0]


def test_an_unknown_name_shows_the_item_that_may_have_meant_it() -> None:
    made = registry(FakePlugin("a"), JAX_PLATFORMS="mine", PJRT_NAMES_AND_LIBRARY_PATHS="mine")
    message = raises_twice(lambda: plugrt.devices(of=made), UnknownPlatform)
    assert "requests 'mine'" in message
    assert "item 1, 'mine', is not of the form name:path" in message


def test_a_missing_library_costs_nothing_where_it_is_not_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """JAX 0.10: a bad path aborts everything, even with JAX_PLATFORMS=cpu."""
    variable = {"PJRT_NAMES_AND_LIBRARY_PATHS": "mine:/no/such.so"}
    made = registry(FakePlugin("cpu", priority=1), JAX_PLATFORMS="cpu", **variable)
    assert plugrt.default_backend(made) == "cpu"
    assert caplog.messages == []
    made = registry(FakePlugin("cpu", priority=1), **variable)
    assert plugrt.default_backend(made) == "cpu"
    assert "/no/such.so" in caplog.messages[0]


def test_two_threads_get_the_same_client() -> None:
    class Slow(FakePlugin):
        def create_client(self, options: Any, distributed: Any = None) -> Client:
            time.sleep(0.05)
            return super().create_client(options, distributed)

    plugin, found = Slow("slow"), []
    made = registry(plugin)
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        found.append(plugrt.get_backend(None, made))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plugin.clients) == 1
    assert found == [plugin.clients[0]] * 4


@pytest.mark.parametrize(
    ("error", "cls", "fact"),
    [
        (SystemExit(2), PluginBroken, "sys.exit(2)"),
        (PluginIncompatible("needs 0.90"), PluginIncompatible, "needs 0.90"),
        (PluginUnavailable("in use"), PluginUnavailable, "in use"),
        (AssertionError(), PluginBroken, "AssertionError"),
        (Internal("x"), PluginBroken, "INTERNAL: x"),
    ],
)
def test_errors_of_a_plugins_start_are_named(
    error: BaseException, cls: type[PluginError], fact: str
) -> None:
    made = registry(FakePlugin("a", error=error), JAX_PLATFORMS="a")
    assert fact in raises_twice(lambda: plugrt.devices(of=made), cls)


def test_ctrl_c_while_starting_leaves_a_usable_registry() -> None:
    plugin = FakePlugin("a", error=KeyboardInterrupt())
    made = registry(plugin)
    with pytest.raises(KeyboardInterrupt):
        plugrt.devices(of=made)
    plugin.error = None
    assert plugrt.default_backend(made) == "a"


class Timeout(Exception):
    """Raised by a program after its time limit."""


class Deadline:
    """A signal handler that is an object, and not a function."""

    def __call__(self, *_: object) -> NoReturn:
        raise Timeout

    def end(self, status: int, *_: object) -> NoReturn:
        sys.exit(status)


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("handler", "error"),
    [
        (lambda *_: sys.exit(5), SystemExit),
        (Deadline(), Timeout),
        (functools.partial(Deadline().end, 5), SystemExit),
    ],
)
def test_exceptions_of_signal_handlers_pass_through_a_start(
    handler: Any, error: type[BaseException]
) -> None:
    class Slow(FakePlugin):
        def create_client(self, options: Any, distributed: Any = None) -> Client:
            signal.raise_signal(signal.SIGUSR1)
            return super().create_client(options, distributed)

    made = registry(Slow("a"))
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(error):
            plugrt.devices(of=made)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        assert plugrt.default_backend(made) == "a"
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_start_that_returns_no_client_or_no_devices() -> None:
    plugin = FakePlugin("a")
    plugin.create_client = lambda *_: None  # type: ignore[method-assign,assignment,return-value]
    made = registry(plugin, JAX_PLATFORMS="a")
    assert "NoneType" in raises_twice(lambda: plugrt.devices(of=made), PluginBroken)
    empty = FakePlugin("b", count=0)
    made = registry(empty, JAX_PLATFORMS="b")
    assert "no devices" in raises_twice(lambda: plugrt.devices(of=made), PluginBroken)
    assert empty.clients[0].closed == 1


def test_a_plugin_that_asks_for_devices_while_starting_is_told() -> None:
    class Recursive(FakePlugin):
        def create_client(self, options: Any, distributed: Any = None) -> Client:
            plugrt.devices(of=made)
            return super().create_client(options, distributed)

    made = registry(Recursive("r"), JAX_PLATFORMS="r")
    message = raises_twice(lambda: plugrt.devices(of=made), PluginBroken)
    assert message.count("requests devices while it is imported or started") == 1


def test_a_plugin_that_asks_for_devices_when_it_is_imported_is_told(tmp_path: Path) -> None:
    asks = "import plugrt, asked_of\nplugrt.devices(of=asked_of)\n"
    install_plugin(tmp_path, "asking", asks + PLUGIN.format(name="asking", priority=9))
    calls: list[Callable[[Backends], Any]] = [
        lambda of: plugrt.devices(of=of),
        lambda of: of.topology("asking", "2", {}),
    ]
    for call in calls:
        for environ in ({"JAX_PLATFORMS": "asking"}, {"PLUGRT_STRICT_PLUGINS": "1"}):
            made = registry(path=tmp_path, **environ)
            made.register(FakePlugin("good", priority=1))
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(sys.modules, "asked_of", made)
                patch.syspath_prepend(str(tmp_path))
                message = raises_twice(lambda call=call, made=made: call(made), PluginBroken)
            assert message.count("requests devices while it is imported or started") == 1
            assert "'asking' (asking-dist 1.0)" in message


def test_a_registered_plugin_with_a_wrong_hook_is_no_row() -> None:
    class Wrong(FakePlugin):
        @hookimpl
        def plugrt_client_made(self) -> None: ...

    made = registry()
    for _ in range(2):
        with pytest.raises(PluginBroken, match="plugrt_client_made"):
            made.register(Wrong("wrong"))
        assert made.table.rows == []


def test_a_slow_start_warns_and_says_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    class Slow(FakePlugin):
        waits_for = "did you start the program on all hosts?"

        def create_client(self, options: Any, distributed: Any = None) -> Client:
            until = time.monotonic() + 60
            while not caplog.messages and time.monotonic() < until:
                time.sleep(0.01)
            return super().create_client(options, distributed)

    made = registry(Slow("slow"), PLUGRT_INIT_WARN_SECONDS="0.05")
    plugrt.devices(of=made)
    (message,) = caplog.messages
    for fact in ("starting 'slow'", "0.05 s", "create_client", "on all hosts?"):
        assert fact in message


def test_an_experimental_plugin_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    made = registry(FakePlugin("x", experimental=True))
    plugrt.devices(of=made)
    plugrt.clear_backends(made)
    plugrt.devices(of=made)
    (message,) = caplog.messages
    assert "experimental" in message
    assert "'x'" in message


def test_client_options_come_from_the_plugin_and_the_registrys_settings() -> None:
    class Options(FakePlugin):
        def client_options(self, config: Any) -> dict[str, Any]:
            return {"count": config.num_cpu_devices or 0}

    plugin = Options("o")
    plugrt.devices(of=registry(plugin, JAX_NUM_CPU_DEVICES="3"))
    assert plugin.options == [{"count": 3}]


def test_starting_is_monitored() -> None:
    heard: list[object] = []

    def listener(event: str, seconds: float, /, **kwargs: str | int) -> None:
        heard.append((event, kwargs))

    monitoring.register_event_duration_secs_listener(listener)
    try:
        plugrt.devices(of=registry(FakePlugin("a")))
    finally:
        monitoring.unregister_event_duration_listener(listener)
    assert heard == [(monitoring.CLIENT_CREATED, {"platform": "a"})]


def test_devices_and_counts() -> None:
    class Many(FakePlugin):
        def create_client(self, options: Any, distributed: Any = None) -> Client:
            return FakeClient("many", 4, processes=2)

    made = registry(Many("many"))
    assert [d.id for d in plugrt.devices("many", made)] == [0, 1, 2, 3]
    assert [d.id for d in plugrt.local_devices(of=made)] == [0, 2]
    assert [d.id for d in plugrt.local_devices(1, of=made)] == [1, 3]
    assert (plugrt.device_count(of=made), plugrt.local_device_count(of=made)) == (4, 2)
    assert (plugrt.process_index(of=made), plugrt.process_count(of=made)) == (0, 2)
    client = plugrt.get_backend("many", made)
    assert plugrt.get_backend(client, made) is client


def test_clear_backends_closes_clients_and_starts_anew() -> None:
    plugin = FakePlugin("a")
    made = registry(plugin)
    first = plugrt.get_backend(None, made)
    plugrt.clear_backends(made)
    plugrt.clear_backends(made)
    assert plugin.clients[0].closed == 1
    assert plugrt.get_backend(None, made) is not first
    assert len(plugin.clients) == 2


def test_clear_backends_forgets_failures_and_reads_the_settings_anew() -> None:
    plugin = FakePlugin("a", error=RuntimeError("once"))
    made = registry(plugin, FakePlugin("b"), JAX_PLATFORMS="a")
    raises_twice(lambda: plugrt.devices(of=made), PluginBroken)
    plugin.error = None
    plugrt.clear_backends(made)
    assert plugrt.default_backend(made) == "a"
    plugrt.clear_backends(made)
    made.config.update("platforms", "b")
    assert plugrt.default_backend(made) == "b"


def test_clear_backends_closes_all_although_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(FakeClient):
        def close(self) -> None:
            raise RuntimeError("stuck")

    bad, good = FakePlugin("bad"), FakePlugin("good")
    bad.create_client = lambda *_: Stubborn("bad")  # type: ignore[method-assign]
    made = registry(bad, good, JAX_PLATFORMS="bad,good")
    plugrt.devices(of=made)
    plugrt.clear_backends(made)
    assert good.clients[0].closed == 1
    assert "stuck" in caplog.text


def warnings_of_fork(name: str) -> list[str]:
    """Forks and returns the warnings for this backend; other tests' backends may warn, too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return [str(w.message) for w in caught if name in str(w.message)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_warns_once_while_backends_live() -> None:
    made = registry(FakePlugin("forking"))
    assert warnings_of_fork("forking") == []
    plugrt.devices(of=made)
    (message,) = warnings_of_fork("forking")
    for fact in ("os.fork()", "started forking", "spawn"):
        assert fact in message
    assert warnings_of_fork("forking") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_does_not_warn_after_clear_backends() -> None:
    made = registry(FakePlugin("cleared"))
    plugrt.devices(of=made)
    plugrt.clear_backends(made)
    assert warnings_of_fork("cleared") == []


class Many(FakePlugin):
    def create_client(self, options: Any, distributed: Any = None) -> Client:
        return FakeClient("many", 4, processes=2)


@pytest.mark.parametrize("index", [2, 7, -1, 2**70])
def test_a_process_that_there_is_not(index: int) -> None:
    """JAX: ``ValueError: Unknown process_index 7``; earlier, these returned an empty list."""
    with pytest.raises(ValueError, match=f"Unknown process_index {index}; .* 0 to 1"):
        plugrt.local_devices(index, of=registry(Many("many")))


@pytest.mark.parametrize("index", ["cpu", 1.0, True, [0]])
def test_wrong_process_indices_are_refused(index: Any) -> None:
    with pytest.raises(TypeError, match=r"process_index is .*backend="):
        plugrt.local_devices(index, of=registry(Many("many")))


def test_host_id_is_the_old_name() -> None:
    with pytest.warns(UserWarning, match="host_id .* process_index"):
        found = plugrt.local_devices(host_id=1, of=registry(Many("many")))
    assert [d.id for d in found] == [1, 3]


@pytest.mark.parametrize("wrong", [3, 1.5, ["a"], ("a",), {}, object(), b"a"])
def test_a_backend_is_asked_for_by_name_or_client(wrong: Any) -> None:
    for call in (plugrt.get_backend, plugrt.devices, plugrt.device_count):
        with pytest.raises(TypeError, match="requested by name, or by a client"):
            call(wrong, of=registry(FakePlugin("a")))


def test_a_device_is_no_backend_but_has_one() -> None:
    made = registry(FakePlugin("a"))
    (device,) = plugrt.devices(of=made)
    with pytest.raises(TypeError, match=r"device\.client"):
        plugrt.get_backend(device, made)  # type: ignore[arg-type]
    assert plugrt.get_backend(device.client, made) is plugrt.get_backend("a", made)


def test_no_name_at_all_is_the_default() -> None:
    made = registry(FakePlugin("a"))
    assert plugrt.get_backend("", made) is plugrt.get_backend(None, made)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"JAX_PLATFORM_NAME": "B"}, ["b", "cpu"]),
        ({"JAX_PLATFORMS": "a,b", "JAX_PLATFORM_NAME": "B"}, ["b", "a"]),
        ({"JAX_PLATFORMS": "a,b", "JAX_PLATFORM_NAME": "a"}, ["a", "b"]),
        ({"JAX_PLATFORMS": "a,cuda", "JAX_PLATFORM_NAME": "gpu"}, ["cuda", "a"]),
    ],
)
def test_jax_platform_name_says_which_is_the_default(
    environ: dict[str, str], expected: list[str]
) -> None:
    """JAX converts the name to lower case and looks for it in JAX_PLATFORMS."""
    made = registry(*map(FakePlugin, ("a", "b", "cuda", "cpu")), **environ)
    assert list(plugrt.backends(made)) == expected
    assert plugrt.default_backend(made) == expected[0]


def test_a_default_that_jax_platforms_leaves_out() -> None:
    a, b = FakePlugin("a"), FakePlugin("b")
    made = registry(a, b, JAX_PLATFORMS="a", JAX_PLATFORM_NAME="b")
    message = raises_twice(lambda: plugrt.devices(of=made), UnknownPlatform)
    assert "JAX_PLATFORM_NAME=b requests a default that JAX_PLATFORMS=a leaves out" in message
    assert a.clients == []


def test_a_name_in_other_letters_gets_a_suggestion() -> None:
    made = registry(FakePlugin("FOO"), JAX_PLATFORMS="foo")
    assert "did you mean 'FOO'?" in raises_twice(lambda: plugrt.devices(of=made), UnknownPlatform)


def test_a_setting_that_was_read_at_the_start_cannot_change_until_the_end() -> None:
    """JAX: a RuntimeError for jax_num_cpu_devices; earlier, the change was ignored here."""
    made = registry(FakePlugin("a"), JAX_NUM_CPU_DEVICES="2")
    made.config.update("num_cpu_devices", 3)
    plugrt.devices(of=made)
    made.config.update("num_cpu_devices", 3)
    made.config.update("debug_nans", True)
    for change in (
        lambda: made.config.update("jax_num_cpu_devices", 8),
        lambda: made.config.update("platforms", "b"),
        lambda: made.config.override(num_cpu_devices=8).__enter__(),
    ):
        with pytest.raises(RuntimeError, match=r"a started.*clear_backends") as error:
            change()
        assert isinstance(error.value, ConfigError)
    assert made.config.num_cpu_devices == 3
    plugrt.clear_backends(made)
    made.config.update("num_cpu_devices", 8)
    assert made.config.num_cpu_devices == 8


def test_clear_backends_has_the_environment_read_anew() -> None:
    environ = {"JAX_PLATFORMS": "a", "JAX_NUM_CPU_DEVICES": "3"}
    made = Backends(type(plugrt.config)(environ), path=[])
    for name in "ab":
        made.register(FakePlugin(name))
    assert plugrt.default_backend(made) == "a"
    assert made.config.num_cpu_devices == 3
    environ.update(JAX_PLATFORMS="b", JAX_NUM_CPU_DEVICES="4")
    assert made.config.num_cpu_devices == 3
    plugrt.clear_backends(made)
    assert plugrt.default_backend(made) == "b"
    assert made.config.num_cpu_devices == 4


def test_a_cure_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for folder in ("one", "two"):
        install_plugin(tmp_path, "x", distribution=folder)
    made = registry(path=tmp_path)
    made.register(FakePlugin("cpu", priority=0))
    assert plugrt.default_backend(made) == "cpu"
    (message,) = caplog.messages
    assert message.count("choose with JAX_PLATFORMS=x@one") == 1


def test_a_name_belongs_to_the_chosen_distribution() -> None:
    one, two = (record("x", "plugrt.plugins", d, "1", f"{d}_module:plugin") for d in "pq")
    for names, expected in (("x@q", ["x"]), ("x@p,x@q", ["x@p", "x@q"])):
        made = registry(JAX_PLATFORMS=names)
        assert made.table.rows == []
        for row in (one, two):
            row.reset()
            row.client, row.plugin = None, FakePlugin("x")
            made.table.add(row)
        found = plugrt.backends(made)
        assert list(found) == expected
        assert len({id(client) for client in found.values()}) == len(expected)
        assert [plugrt.get_backend(name, made) for name in expected] == list(found.values())


def test_a_known_name_is_looked_up_in_a_dictionary() -> None:
    """Earlier, each call searched all rows for the name: 1 to 6 µs; JAX needs 0.04."""
    made = registry(FakePlugin("a", aliases=("other",)), FakePlugin("b", priority=1))
    names = (None, "", "a", "b", "other")
    with python_calls() as seen:
        for _ in range(2):  # starting a backend clears the dictionary: names may have new meanings
            found = [plugrt.get_backend(name, made) for name in names]
    assert "find" in seen
    with python_calls() as seen:
        assert [plugrt.get_backend(name, made) for name in names] == found
    assert "find" not in seen, "the table was asked again"
    plugrt.clear_backends(made)
    anew = [plugrt.get_backend(name, made) for name in names]
    assert not {id(client) for client in anew} & {id(client) for client in found}


def test_a_backend_that_starts_slowly_keeps_nobody_from_the_others() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(FakePlugin):
        def create_client(self, options: Any, distributed: Any = None) -> Client:
            begun.set()
            assert go_on.wait(60)
            return super().create_client(options, distributed)

    made = registry(FakePlugin("a"), Slow("slow", priority=1))
    first = plugrt.get_backend("a", made)
    found: list[Client] = []
    thread = threading.Thread(target=lambda: found.append(plugrt.get_backend("slow", made)))
    thread.start()
    try:
        assert begun.wait(60)
        asked = threading.Thread(target=lambda: found.append(plugrt.get_backend("a", made)))
        asked.start()
        asked.join(30)
        assert found == [first], "it waited for the other"
        assert plugrt.get_backend(None, made) is first
        assert list(made.table.rows)
    finally:
        go_on.set()
        thread.join(60)
    assert [client.platform for client in found] == ["a", "slow"]
