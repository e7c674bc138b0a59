"""``plugrt devices``."""

from __future__ import annotations

import json
from pathlib import Path

from support.distributions import install_plugin, run_cli

SOURCE = "from support.fake_client import FakePlugin\nplugin = FakePlugin({!r}, count={})"


def test_json_lists_each_device(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a", SOURCE.format("a", 4))
    done = run_cli("devices", "--json", folders=(tmp_path,), JAX_PLATFORMS="a")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["id"] for row in rows] == [0, 1, 2, 3]
    assert rows[0] == {
        "id": 0, "platform": "a", "kind": "fake", "process_index": 0, "local_hardware_id": 0,
        "addressable": True, "memories": ["device", "host"], "backend": "a", "default": True,
    }  # fmt: skip
    assert [row["default"] for row in rows] == [True, False, False, False]


def test_the_table_shows_every_started_backend(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a", SOURCE.format("a", 1))
    install_plugin(tmp_path, "b", SOURCE.format("b", 2))
    done = run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="b,a")
    lines = [line.split() for line in done.stdout.splitlines() if ":" in line]
    assert [line[:2] for line in lines] == [["b:0", "b"], ["b:1", "b"], ["a:0", "a"]]
    assert "default" in done.stdout.splitlines()[0]
    assert [line[-1] == "yes" for line in lines] == [True, False, False]


def test_platform_picks_one(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a", SOURCE.format("a", 1))
    install_plugin(tmp_path, "b", SOURCE.format("b", 2))
    options = {"folders": (tmp_path,), "JAX_PLATFORM_NAME": "a"}
    done = run_cli("devices", "--json", "--platform", "b", **options)
    assert [row["platform"] for row in json.loads(done.stdout)] == ["b", "b"]
    done = run_cli("devices", "--platform", "nosuch", **options)
    assert done.returncode == 2
    assert "--platform nosuch requests 'nosuch'" in done.stderr


def test_twice_the_same_error(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    one, two = (run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="a,nosuch") for _ in "12")
    assert one.returncode == two.returncode == 1
    assert one.stderr == two.stderr
    assert "choose among those installed" in one.stderr
