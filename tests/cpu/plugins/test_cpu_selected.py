"""The cpu plugin through the public API and the command line: found, chosen and started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.distributions import install_plugin, run_cli, run_warm


def test_four_devices_by_json() -> None:
    done = run_cli("devices", "--json", JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="4")
    assert done.returncode == 0, done.stderr
    assert [(row["platform"], row["id"]) for row in json.loads(done.stdout)] == [
        ("cpu", i) for i in range(4)
    ]


def test_xla_flags_set_the_number_of_devices() -> None:
    flags = "--xla_force_host_platform_device_count=3"
    done = run_cli("devices", "--json", JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    assert len(json.loads(done.stdout)) == 3, done.stderr


def test_an_unknown_second_platform_fails_twice_the_same() -> None:
    runs = [run_cli("devices", JAX_PLATFORMS="cpu,nosuch") for _ in range(2)]
    assert [run.returncode for run in runs] == [1, 1]
    assert runs[0].stderr == runs[1].stderr
    assert "cpu" in runs[0].stderr.partition("installed:")[2]


def test_a_package_that_aborts_is_harmless_and_listed(tmp_path: Path) -> None:
    install_plugin(tmp_path, "bomb", "import os; os.abort()")
    done = run_cli("devices", "--json", folders=(tmp_path,), JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr
    done = run_cli("doctor", "--json", folders=(tmp_path,), JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stdout
    rows = {row["name"]: row for row in json.loads(done.stdout)["candidates"]}
    assert rows["bomb"]["state"] == "not selected"
    assert rows["cpu"]["state"] == "initialised"
    assert rows["cpu"]["distribution"] == "plugrt-cpu"


def test_cpu_is_listed_once_and_chosen_where_nothing_else_works() -> None:
    code = """
        import plugrt
        print(plugrt.default_backend(), list(plugrt.backends()))
        print([r.name for r in plugrt.plugins.table()].count("cpu"))
    """
    done = run_warm(code, PLUGRT_PLUGINS_ALLOW="cpu")
    assert done.stdout.splitlines() == ["cpu ['cpu']", "1"], done.stderr


def test_clear_backends_frees_and_reads_the_settings_anew() -> None:
    code = """
        import plugrt
        from plugrt import config
        first = plugrt.get_backend()
        plugrt.clear_backends()
        config.update("num_cpu_devices", 2)
        print(plugrt.device_count(), plugrt.get_backend() is first)
    """
    done = run_warm(code, JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="5")
    assert done.stdout == "2 False\n", done.stderr


def test_fork_after_start_warns() -> None:
    code = """
        import os, plugrt
        plugrt.devices()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    """
    done = run_warm(code, JAX_PLATFORMS="cpu")
    assert done.returncode == 0
    assert done.stderr.count("RuntimeWarning: os.fork() was called after plugrt started cpu") == 1


@pytest.mark.parametrize("variable", ["TPU_LIBRARY_PATH", "PLUGRT_CUDA_LIBRARY_PATH"])
def test_a_missing_library_that_a_variable_names_is_reported(variable: str) -> None:
    named = {variable: "/nowhere.so"}
    done = run_cli("devices", **named)
    assert done.returncode == 0
    assert "cpu:0" in done.stdout
    assert f"{variable} names /nowhere.so, which does not exist" in done.stderr
    strict = run_cli("devices", **named, PLUGRT_STRICT_PLUGINS="1")
    assert strict.returncode == 1
    assert variable in strict.stderr
