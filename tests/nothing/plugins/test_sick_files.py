"""An object of another kind in place of a file that others can write gives a row or one warning.

All runs in a child with a time limit and a bound on its memory, one for each kind: a FIFO makes a
careless read wait for ever, and /dev/zero makes it read until the machine has no memory left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.distributions import install_plugin, run_warm
from support.native_core import unsanitized

pytestmark = unsanitized("it bounds a process's addresses, of which they reserve terabytes")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def endless(path: Path) -> None:
    path.write_text("[")
    os.truncate(path, 2**40)


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def folder(path: Path) -> None:
    path.mkdir()


PROGRAM = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
root, json_file, library = sys.argv[1:]

import plugrt
from plugrt.capi import load_library
from plugrt.errors import PluginBroken
from plugrt.plugins import vendors
from plugrt.plugins.starting import probe_cache
from plugrt_cuda.hardware import driver_branch
from plugrt_tpu import hardware

sys.path.append(root + "/entry")
found = {"rows": {r.name: [r.state, r.reason] for r in plugrt.plugins.table()}}
try:
    load_library(library)
except PluginBroken as error:
    found["library"] = str(error)
found["known"] = [probe_cache.is_known_good("/bin/sh", {}) for _ in range(3)]
probe_cache.record_good("/bin/sh", {})
found["known later"] = probe_cache.is_known_good("/bin/sh", {})
found["hardware"] = [vendors.hardware_seen(root), driver_branch(root),
                     hardware.detect(root).is_tpu_machine]
print(json.dumps(found))
"""

Found = tuple[Callable[[Path], None], dict[str, Any], str, Path]


@pytest.fixture(
    scope="module", params=[fifo, zero, endless, deep, folder], ids=lambda f: f.__name__
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The kind of object, a process's findings with it in place of files, stderr, the folder."""
    put, root = request.param, tmp_path_factory.mktemp("sick")
    install_plugin(root, "good")
    file = install_plugin(root, "sick") / "entry_points.txt"
    file.unlink()
    put(file)
    install_plugin(root, "egg").rename(root / "egg_dist.egg-info")
    device = root / "sys/bus/pci/devices/0000:00:04.0"
    places = ("egg_dist.egg-info/PKG-INFO", "entry", "x.json", "lib.so",
              "cache/trials.json", *(f"{device}/{x}" for x in ("vendor", "class")),
              "sys/class/dmi/id/product_name", "proc/driver/nvidia/version")  # fmt: skip
    for place in places:
        (root / place).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        put(root / place)
    done = run_warm(
        PROGRAM, root, arguments=(str(root), str(root / "x.json"), str(root / "lib.so")),
        timeout=30, PLUGRT_CACHE_DIR=str(root / "cache"),
        PJRT_NAMES_AND_LIBRARY_PATHS=f"x:{root}/x.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return put, json.loads(done.stdout), done.stderr, root


def test_the_plugins_beside_it_are_found(found: Found) -> None:
    _, said, _, _ = found
    assert said["rows"]["good"][0] == "found"
    assert said["rows"]["egg"][0] == "found"


def test_an_entry_points_file_is_a_broken_row(found: Found) -> None:
    put, said, _, _ = found
    if put is deep:  # text without an entry point group of plugrt's is valid
        assert "sick-dist" not in said["rows"]
        return
    state, reason = said["rows"]["sick-dist"]
    assert state == "broken"
    assert "its entry_points.txt cannot be read: it " in reason


def test_a_json_file_of_the_variable_is_a_broken_row(found: Found) -> None:
    put, said, _, root = found
    state, reason = said["rows"]["x"]
    assert state == "broken"
    assert f"{root}/x.json" in reason
    assert ("is not JSON" if put is deep else "cannot be read: it ") in reason


def test_a_library_is_refused(found: Found) -> None:
    put, said, _, root = found
    assert os.path.realpath(root / "lib.so") in said["library"]
    assert ("not a regular file" in said["library"]) is (put in (fifo, zero, folder))


def test_damaged_records_of_libraries_are_written_anew(found: Found) -> None:
    put, said, noise, root = found
    assert said["known"] == [False] * 3
    assert said["known later"] is (put is not folder)
    assert noise.count("are not used") == (0 if put is deep else 1)
    assert os.listdir(root / "cache") == ["trials.json"]


def test_unusual_files_are_not_taken_for_hardware(found: Found) -> None:
    _, said, _, _ = found
    assert said["hardware"] == [[], None, False]
