"""Host memory stays valid if a library gives no event, or a wrong one, for the end of its use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi import create_client, load_library
from plugrt.errors import InvalidReply, PjrtError
from plugrt.interface import Client, HostBufferSemantics
from plugrt.lifetime.forks import keep_forever
from support.broken_library import REFUSE, SILENT, ZERO, BrokenLibrary, Case, Control, misbehaviours
from support.broken_steps import transferred
from support.clib import needs_cc
from support.watched_calls import at_calls
from support.xla_cpu import library_path, needs_library

pytestmark = [needs_cc, needs_library]

HOST = np.arange(6, dtype=np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    real = library_path()
    assert real is not None
    return BrokenLibrary(tmp_path_factory.mktemp("lent"), real).path


@pytest.fixture
def client(library: Path) -> Iterator[Client]:
    load_library(library)
    made = create_client(library, {"cpu_device_count": 1}, name="lent")
    yield made
    made.close()


@pytest.fixture
def kept() -> Iterator[list[Any]]:
    """Lists the objects that `keep_forever` keeps."""
    found: list[Any] = []
    with at_calls([keep_forever], lambda inputs, _: found.append(inputs["kept"])):
        yield found


def case_of(function: str, mode: int, field: str = "") -> Case:
    (found,) = [
        case
        for case in misbehaviours()
        if (case.function, case.mode, case.field_name) == (function, mode, field)
    ]
    return found


def transfer(client: Client) -> Callable[[], Any]:
    return partial(transferred, client.buffer_from_host(HOST, client.devices()[0]))


def copy_raw(client: Client) -> Callable[[], Any]:
    buffer = client.buffer_from_host(HOST, client.devices()[0])
    return lambda: buffer.copy_raw_to_host(0, HOST.nbytes)


def put(client: Client) -> Callable[[], Any]:
    semantics = HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES
    return lambda: client.buffer_from_host(HOST, client.devices()[0], None, semantics)


@pytest.mark.parametrize(
    ("use", "function", "field"),
    [
        (transfer, "Buffer_ToHostBuffer", "event"),
        (copy_raw, "Buffer_CopyRawToHost", "event"),
        (put, "Client_BufferFromHostBuffer", "done_with_host_buffer"),
    ],
)
def test_memory_without_an_event_is_kept(
    client: Client, library: Path, kept: list[Any],
    use: Callable[[Client], Callable[[], Any]], function: str, field: str,
) -> None:  # fmt: skip
    call, control = use(client), Control(library)
    control.misbehave(case_of(function, ZERO, field))
    try:
        with pytest.raises(InvalidReply, match=function):
            call()
    finally:
        control.behave()
    assert len(kept) == 1


@pytest.mark.parametrize("use", [transfer, copy_raw])
@pytest.mark.parametrize("mode", [SILENT, REFUSE])
def test_memory_is_kept_where_waiting_ended_before_the_event(
    client: Client, library: Path, kept: list[Any], monkeypatch: pytest.MonkeyPatch,
    use: Callable[..., Callable[[], Any]], mode: int,
) -> None:  # fmt: skip
    call, control = use(client), Control(library)
    monkeypatch.setattr(type(client.handle()), "is_event_ready", lambda *_: False)
    monkeypatch.setattr(type(client.handle()), "has_ended", lambda *_: False)
    control.misbehave(case_of("Event_Await", mode), 1)  # after the wait for the buffer
    try:
        with pytest.raises(PjrtError, match=r"broken on purpose|was not ready"):
            call()
    finally:
        control.behave()
    assert len(kept) == 1


@pytest.mark.parametrize("use", [transfer, copy_raw])
def test_memory_of_a_transfer_that_ended_is_not_kept(
    client: Client, kept: list[Any], use: Callable[[Client], Callable[[], Any]]
) -> None:
    found = use(client)()
    assert np.array_equal(np.frombuffer(found, np.float32), HOST)
    assert kept == []
