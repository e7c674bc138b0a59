"""`plugrt.config`: reading, checking, overriding, and the token of the settings.

Same as JAX: `JAX_PLATFORMS` and the other variables of [Settings](configuration.md): names, values,
order, errors.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import ConfigError, ReadOnlySetting, UnknownSetting
from plugrt.settings.declarations import Config
from support.fake_client import FakeClient
from support.wrong_calls import WRONG

ROOT = Path(__file__).parents[2]


def test_unset_options_have_their_defaults() -> None:
    config = Config({})
    assert config.platforms is None
    assert config.enable_x64 is None
    assert config.disable_jit is False
    assert config.init_warn_seconds == 60.0
    assert config.plugins_block == ()
    assert config.pjrt_client_create_options == {}


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("JAX_PLATFORMS", "cpu,cuda", "platforms", "cpu,cuda"),
        ("JAX_ENABLE_X64", "0", "enable_x64", False),
        ("JAX_ENABLE_X64", "True", "enable_x64", True),
        ("JAX_DEBUG_NANS", "yes", "debug_nans", True),
        ("JAX_NUM_CPU_DEVICES", " 4 ", "num_cpu_devices", 4),
        ("XLA_FLAGS", "--a --xla_force_host_platform_device_count=3", "num_cpu_devices", 3),
        ("PLUGRT_PLUGINS_BLOCK", "a, b,", "plugins_block", ("a", "b")),
        ("JAX_CUDA_VISIBLE_DEVICES", "0,2", "cuda_visible_devices", (0, 2)),
        ("JAX_CUDA_VISIBLE_DEVICES", "all", "cuda_visible_devices", None),
        ("XLA_CLIENT_MEM_FRACTION", ".5", "xla_client_mem_fraction", 0.5),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", ".25", "xla_client_mem_fraction", 0.25),
        ("PLUGRT_INIT_WARN_SECONDS", "0", "init_warn_seconds", 0.0),
        ("JAX_PLATFORMS", "", "platforms", None),
    ],
)
def test_environment_is_read(variable: str, text: str, name: str, value: object) -> None:
    assert getattr(Config({variable: text}), name) == value


def test_the_newer_of_two_variables_wins() -> None:
    environ = {"XLA_CLIENT_MEM_FRACTION": "0.1", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}
    assert Config(environ).xla_client_mem_fraction == 0.1
    environ = {"JAX_NUM_CPU_DEVICES": "2", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    assert Config(environ).num_cpu_devices == 2


def test_create_options_are_typed() -> None:
    text = 'a:1;b:true;c:0.5;d:1,2;e:text:with:colons;f:"1"'
    options = Config({"JAX_PJRT_CLIENT_CREATE_OPTIONS": text}).pjrt_client_create_options
    assert options == {"a": 1, "b": True, "c": 0.5, "d": [1, 2], "e": "text:with:colons", "f": "1"}
    assert [type(v) for v in options.values()] == [int, bool, float, list, str, str]


def test_create_options_of_one_plugin_are_typed() -> None:
    text = "chip:a:1; chip : b:text:with:colons;;other.chip-2:a:true"
    assert Config({"PLUGRT_CLIENT_CREATE_OPTIONS": text}).client_create_options == {
        "chip": {"a": 1, "b": "text:with:colons"},
        "other.chip-2": {"a": True},
    }
    config = Config({})
    config.update("client_create_options", {"chip": {"n": [1, 2]}})
    assert config.client_create_options == {"chip": {"n": [1, 2]}}
    for wrong in ({"chip": 1}, {"chip": {"n": object()}}, {1: {}}):
        with pytest.raises(ConfigError, match=r"client_create_options = .*plugin:key:value"):
            config.update("client_create_options", wrong)


@pytest.mark.parametrize(
    ("variable", "text", "name", "accepted"),
    [
        ("JAX_ENABLE_X64", "maybe", "enable_x64", "1 or 0"),
        ("JAX_NUM_CPU_DEVICES", "0", "num_cpu_devices", "a whole number from 1"),
        ("JAX_NUM_CPU_DEVICES", "two", "num_cpu_devices", "a whole number from 1"),
        ("PLUGRT_INIT_WARN_SECONDS", "nan", "init_warn_seconds", "a number from 0"),
        ("JAX_CUDA_VISIBLE_DEVICES", "0,x", "cuda_visible_devices", "all, or whole numbers"),
        ("JAX_PJRT_CLIENT_CREATE_OPTIONS", "a", "pjrt_client_create_options", "key:value"),
        ("PLUGRT_CLIENT_CREATE_OPTIONS", "a:1", "client_create_options", "plugin:key:value"),
        ("PLUGRT_CLIENT_CREATE_OPTIONS", ":a:1", "client_create_options", "plugin:key:value"),
        ("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "x", "cpu_collectives_implementation", "gloo"),
    ],
)
def test_error_names_variable_value_and_what_is_accepted(
    variable: str, text: str, name: str, accepted: str
) -> None:
    config = Config({variable: text})
    for _ in range(2):  # each read raises the same error
        with pytest.raises(ConfigError) as error:
            getattr(config, name)
        assert variable in str(error.value)
        assert repr(text) in str(error.value)
        assert accepted in str(error.value)


def test_a_wrong_device_count_in_xla_flags_names_the_flag() -> None:
    config = Config({"XLA_FLAGS": "--xla_force_host_platform_device_count=-1"})
    with pytest.raises(ConfigError, match="xla_force_host_platform_device_count=-1"):
        _ = config.num_cpu_devices


def test_environment_is_read_when_first_needed_and_then_kept() -> None:
    environ: dict[str, str] = {}
    config = Config(environ)
    environ["JAX_PLATFORMS"] = "a"
    assert config.platforms == "a"
    environ["JAX_PLATFORMS"] = "b"
    assert config.platforms == "a"
    config.reset()
    assert config.platforms == "b"


def test_update_and_override() -> None:
    config = Config({"JAX_DEBUG_NANS": "1"})
    config.update("jax_debug_nans", False)
    assert config.debug_nans is False
    with config.override(debug_nans=True, platforms="x"):
        with config.override(debug_nans=False):
            assert (config.debug_nans, config.platforms) == (False, "x")
        assert config.debug_nans is True
    assert (config.debug_nans, config.platforms) == (False, None)
    config.reset()
    assert config.debug_nans is True


def test_override_ends_when_the_block_raises() -> None:
    config = Config({})
    with pytest.raises(ZeroDivisionError), config.override(disable_jit=True):
        1 / 0  # noqa: B018
    assert config.disable_jit is False


def test_override_is_of_one_thread_and_update_of_all() -> None:
    config, seen = Config({}), []
    with config.override(debug_nans=True):
        config.update("debug_infs", True)
        thread = threading.Thread(
            target=lambda: seen.append((config.debug_nans, config.debug_infs))
        )
        thread.start()
        thread.join()
    assert seen == [(False, True)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("debug_nans", 2), ("debug_nans", None), ("num_cpu_devices", True), ("num_cpu_devices", 0),
     ("platforms", 1), ("plugins_block", 7), ("default_device", 3),
     ("pjrt_client_create_options", {"a": object()})],
)  # fmt: skip
def test_update_refuses_wrong_values(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        Config({}).update(name, value)


def test_update_reads_text_as_the_environment_would() -> None:
    config = Config({})
    config.update("debug_nans", "on")
    config.update("num_cpu_devices", "2")
    assert (config.debug_nans, config.num_cpu_devices) == (True, 2)


def test_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'debug_nans'"):
        Config({}).update("jax_debug_nan", True)


def test_assignment_says_what_to_call() -> None:
    with pytest.raises(AttributeError, match=r"config\.update\('debug_nans', True\)"):
        Config({}).debug_nans = True  # type: ignore[misc]


def test_a_setting_is_neither_assigned_nor_deleted() -> None:
    config = Config({})
    # earlier, assigning by the second name made a new attribute
    for name in ("debug_nans", "jax_debug_nans"):
        with pytest.raises(ReadOnlySetting, match=r"config\.update\('debug_nans', True\)"):
            setattr(config, name, True)
        with pytest.raises(ReadOnlySetting, match=r"config\.reset\(\)"):
            delattr(config, name)
    assert config.debug_nans is False
    assert issubclass(ReadOnlySetting, ConfigError)
    assert issubclass(ReadOnlySetting, AttributeError)


def test_a_setting_can_be_read_by_jaxs_name() -> None:
    config = Config({"JAX_ENABLE_X64": "1"})
    assert config.jax_enable_x64 is True  # type: ignore[attr-defined]
    with config.override(enable_x64=False):
        assert config.jax_enable_x64 is False  # type: ignore[attr-defined]


def test_unknown_settings_are_attribute_errors() -> None:
    """As in JAX, and so that `hasattr` works."""
    config = Config({})
    assert not hasattr(config, "debug_nan")
    assert not hasattr(config, "__array__")
    for call in (
        lambda: config.debug_nan,  # type: ignore[attr-defined]
        lambda: config.update("debug_nan", True),  # type: ignore[call-overload]
        lambda: setattr(config, "debug_nan", True),
        lambda: delattr(config, "debug_nan"),
        lambda: config.override(debug_nan=True).__enter__(),  # type: ignore[call-arg]
    ):
        with pytest.raises(UnknownSetting, match="did you mean 'debug_nans'") as caught:
            call()
        assert isinstance(caught.value, ConfigError)
        assert isinstance(caught.value, AttributeError)


WRONG_VALUES = [*WRONG.values(), 10**400, "\ud800", "9" * 5000, [[1]], {"a": object()}, {1: 2}]


@pytest.mark.parametrize("name", Config.declared())
def test_no_value_of_a_setting_raises_what_is_not_plugrts(name: str) -> None:
    refused = [refusal for value in WRONG_VALUES if (refusal := refuse(name, value))]
    assert refused
    for refusal in refused:
        assert refusal.startswith(f"{name} = ")
        assert len(refusal) < 600


def refuse(name: str, value: Any) -> str | None:
    """Returns the message for a refused value."""
    config: Any = Config({})
    try:
        config.update(name, value)
    except ConfigError as error:
        return str(error)
    config.token()  # accepted values must be hashable
    return None


def test_equal_settings_give_the_same_token() -> None:
    config = Config({})
    base = config.token()
    assert config.token() is base
    with config.override(enable_x64=True):
        inner = config.token()
        assert inner is not base
        with config.override(enable_x64=None):
            assert config.token() is base
        assert config.token() is inner
    assert config.token() is base
    config.update("log_compiles", True)  # this setting affects no program
    assert config.token() is base
    assert len({base, inner}) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("enable_x64", False), ("disable_jit", True), ("debug_nans", True), ("debug_infs", True),
     ("default_device", "cpu:1"), ("default_matmul_precision", "highest")],
)  # fmt: skip
def test_every_option_that_affects_tracing_is_in_the_token(name: str, value: object) -> None:
    config = Config({})
    before = config.token()
    config.update(name, value)
    assert config.token() is not before


def test_token_of_another_thread_follows_an_update() -> None:
    config, tokens = Config({}), []
    config.token()
    ready, go = threading.Event(), threading.Event()

    def work() -> None:
        tokens.append(config.token())
        ready.set()
        go.wait(60)
        tokens.append(config.token())

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(60)
    config.update("debug_nans", True)
    go.set()
    thread.join()
    assert tokens[0] is not tokens[1]
    assert tokens[1] is config.token()


def test_a_device_can_be_the_default_device() -> None:
    config, device = Config({}), FakeClient().devices()[0]
    with config.override(default_device=device):
        assert config.default_device is device
        assert device in config.token().values[1]


def test_every_option_is_documented_and_named_after_its_variable() -> None:
    for name, option in Config.declared().items():
        stem = re.sub(r"^(JAX|PLUGRT)_", "", option.env).lower()
        assert name == stem, option.env
        assert option.doc.endswith((".", ".)")), name


def test_the_documentation_is_current() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    assert Config.table() in text, "run docs/generate/configuration.py"


def test_module_prints_the_table() -> None:
    command = [sys.executable, "-W", "error", "-m", "plugrt.settings"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == Config.table()


def test_minus_one_unsets_the_number_of_cpu_devices() -> None:
    """As in JAX, where -1 is the default; XLA_FLAGS then decide."""
    environ = {"JAX_NUM_CPU_DEVICES": "-1"}
    assert Config(environ).num_cpu_devices is None
    environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
    config = Config(environ)
    assert config.num_cpu_devices == 3
    config.update("num_cpu_devices", -1)
    assert config.num_cpu_devices is None


@pytest.mark.parametrize("name", ["init_warn_seconds", "load_warn_seconds"])
@pytest.mark.parametrize("seconds", [float("inf"), 1e12, float("nan"), -0.1])
def test_seconds_that_no_timer_can_wait_for(name: str, seconds: float) -> None:
    """Earlier, these values were accepted, and a thread ended with an OverflowError."""
    with pytest.raises(ConfigError, match=name):
        Config({}).update(name, seconds)
    variable = f"PLUGRT_{name.upper()}"
    with pytest.raises(ConfigError, match=variable):
        Config({variable: str(seconds)}).check()


@pytest.mark.parametrize(
    "environ",
    [
        {"JAX_NUM_CPU_DEVICES": str(2**64)},
        {"JAX_CUDA_VISIBLE_DEVICES": f"0,{2**64}"},
        {"JAX_PJRT_CLIENT_CREATE_OPTIONS": f"a:{2**64}"},
        {"JAX_PJRT_CLIENT_CREATE_OPTIONS": f"a:1,-{2**64}"},
        {"PLUGRT_CLIENT_CREATE_OPTIONS": f"chip:a:{2**64}"},
        {"JAX_COMPILATION_CACHE_MAX_SIZE": str(2**64)},
        {"JAX_DEFAULT_DEVICE": "cpu:x"},
        {"JAX_DEFAULT_DEVICE": ":1"},
    ],
)
def test_check_finds_what_no_library_can_take(environ: dict[str, str]) -> None:
    (variable,) = environ
    with pytest.raises(ConfigError, match=f"^{variable}="):
        Config(environ).check()
    Config({variable: ""}).check()


def test_create_options_given_in_python_fit_too() -> None:
    for wrong in ({"a": 2**64}, {"a": [1, 2**64]}, {"a": [True]}, {1: "a"}):
        with pytest.raises(ConfigError, match="pjrt_client_create_options"):
            Config({}).update("pjrt_client_create_options", wrong)


def test_a_held_setting_is_let_go_with_its_holder() -> None:
    class Holder:
        pass

    config, first, second = Config({}), Holder(), Holder()
    config.hold(first, "first started")
    config.hold(second, "second started")
    config.release(first)
    with pytest.raises(RuntimeError, match="second started"):
        config.update("num_cpu_devices", 2)
    del second
    config.update("num_cpu_devices", 2)
