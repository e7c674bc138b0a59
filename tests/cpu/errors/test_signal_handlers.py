"""An exception of a signal handler arrives unchanged, also of a class that plugrt translates."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import PlugrtError
from plugrt_cpu import adapter

HOST = np.ones(3, np.float32)
KINDS = (RuntimeError, TypeError, ValueError, KeyError, MemoryError, AttributeError, Exception)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def late(request: pytest.FixtureRequest) -> Iterator[type[Exception]]:
    """Installs a signal handler that raises; returns the class of its exception."""
    cls: type[Exception] = type("Late", (request.param,), {})

    def handle(*_: object) -> None:
        raise cls("too late")

    before = signal.signal(signal.SIGUSR1, handle)
    yield cls
    signal.signal(signal.SIGUSR1, before)


def raise_signal(*_: object, **__: object) -> Any:
    """Replaces a function of jaxlib, and sends the signal."""
    signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "output_memory_kinds",
            lambda: plugrt.jit(lambda x: x * np.random.default_rng().random())(HOST),
        ),
        ("put", lambda: plugrt.device_put(np.ones(300, np.int8))),
    ],
)
def test_it_is_not_translated(
    late: type[Exception], name: str, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library is not jaxlib")
    monkeypatch.setattr(adapter, name, raise_signal)
    with pytest.raises(late, match="too late") as caught:
        call()
    assert type(caught.value) is late
    assert caught.value.__cause__ is None


def test_one_that_was_handled_before_is_not_raised_again(late: type[Exception]) -> None:
    x = plugrt.device_put(HOST)
    try:
        plugrt.jit(lambda v: [v, raise_signal()])(x)
    except late:
        with pytest.raises(PlugrtError):
            plugrt.device_put(object())
        with pytest.raises(PlugrtError):
            plugrt.jit(lambda v: v.reshape("text"))(x)
        with pytest.raises(PlugrtError):
            x.reshape("text")
    else:
        pytest.fail("no exception of the handler")
