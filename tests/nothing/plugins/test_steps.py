"""Each step is logged by ``plugrt.plugins``, and printed to stderr if a setting requests it."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import plugrt
from plugrt.plugins import Availability, Backends, Record
from support.distributions import install_plugin, run_warm
from support.fake_client import FakePlugin
from support.registries import registry


def made(site: Path) -> Backends:
    install_plugin(site, "broken", "1 / 0", priority=700)
    found = registry(path=site)
    found.register(FakePlugin("absent", priority=900, available=Availability.no("no chip")))
    found.register(FakePlugin("chip", priority=500))
    return found


def test_at_debug_each_step_is_told_in_order_with_its_row_and_the_state_that_it_led_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of = made(tmp_path)
    with caplog.at_level(logging.DEBUG, "plugrt.plugins"):
        plugrt.devices(of=of)
    steps = [r for r in caplog.records if r.levelno == logging.DEBUG]
    expected = [
        ("choosing: JAX_PLATFORMS unset", None),
        (r"found 3 candidates in [\d.]+ ms", None),
        ("found 'absent' .* in registered: found", "absent"),
        ("found 'chip' .* in registered: found", "chip"),
        ("found 'broken' .* in plugrt.plugins: found", "broken"),
        ("loading 'broken' .*: broken_module:plugin", "broken"),
        (r"loading 'broken' .* took [\d.]+ ms: broken", "broken"),
        ("ranked absent 900, chip 500", None),
        ("probing 'absent'", "absent"),
        (r"starting 'absent' .* took [\d.]+ ms: unavailable", "absent"),
        ("probing 'chip'", "chip"),
        ("starting 'chip' .* with {}", "chip"),
        (r"starting 'chip' .* took [\d.]+ ms: initialised", "chip"),
        ("chose chip: chip has the highest priority", None),
    ]
    assert len(steps) == len(expected), [step.getMessage() for step in steps]
    for step, (pattern, name) in zip(steps, expected, strict=True):
        assert re.match(pattern, step.getMessage()), step.getMessage()
        row = step.__dict__["row"]
        assert (row.name if isinstance(row, Record) else row) == name


def test_above_debug_nothing_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of = made(tmp_path)
    with caplog.at_level(logging.INFO, "plugrt.plugins"):
        plugrt.devices(of=of)
    assert [r.levelname for r in caplog.records] == ["WARNING"]


def test_a_program_that_logs_everything_sees_the_steps(tmp_path: Path) -> None:
    """Earlier, ``logging.basicConfig(DEBUG)`` and ``devices()`` printed nothing; JAX logs them."""
    install_plugin(tmp_path, "chip")
    code = """
        import logging, plugrt
        logging.basicConfig(level=logging.DEBUG)
        plugrt.devices()
    """
    done = run_warm(code, tmp_path, PLUGRT_PLUGINS_ALLOW="chip")
    for fact in ("found 'chip'", "loading 'chip'", "probing 'chip'", "ms: initialised", "chose"):
        assert any(
            line.startswith("DEBUG:plugrt.plugins:") and fact in line
            for line in done.stderr.splitlines()
        ), done.stderr
    code = "import plugrt; plugrt.devices()"
    done = run_warm(code, tmp_path, PLUGRT_PLUGINS_ALLOW="chip", PLUGRT_TRACE_PLUGINS="1")
    lines = done.stderr.splitlines()
    assert all(line.startswith("plugrt: ") for line in lines)
    (loaded,) = [line for line in lines if re.search("loading 'chip' .* took", line)]
    assert loaded.endswith("ms: loaded"), "it said the state of before"
    (started,) = [line for line in lines if re.search("starting 'chip' .* took", line)]
    assert started.endswith("ms: initialised")


@pytest.mark.parametrize("asked", [False, True])
def test_distributed_debug_logs_each_start(caplog: pytest.LogCaptureFixture, asked: bool) -> None:
    of = registry(JAX_DISTRIBUTED_DEBUG=str(int(asked)))
    of.register(FakePlugin("chip"))
    with caplog.at_level(logging.WARNING, "plugrt.distributed_debug"):
        count = len(plugrt.devices(of=of))
    logged = [r.getMessage() for r in caplog.records if r.name == "plugrt.distributed_debug"]
    ids = [*range(count)]
    assert (
        logged
        == [
            "started the backend 'chip' (support)\n  platform: chip\n  process: 0 of 1\n"
            f"  devices: {count}; of this process {count}: {ids}"
        ]
        * asked
    )
