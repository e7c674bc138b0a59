"""Tokens as arguments and results of programs: they order effects, and have no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import DeletedBuffer, Internal, InvalidArgument, ResourceExhausted
from plugrt.interface import TOKEN_TYPE, Client, CompileOptions, Event, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_reference.backend import Reference
from plugrt_sdk import BackendClient, PendingEvent
from plugrt_sdk.testing.programs import TOKEN

ONE = np.float32([1, 2, 3])
FIRST = np.zeros(0, np.bool_)
PARTITIONED = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%t: !stablehlo.token,
      %a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (!stablehlo.token, tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    return %t, %a : !stablehlo.token, tensor<6xf32>
  }
}"""


class Passing(Reference):
    """A backend whose programs return their arguments; ``token`` is the handle of tokens."""

    token: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Any] = []
        self.deleted: list[Any] = []

    def compile(self, program: Program, options: CompileOptions) -> Any:
        def launch(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
            self.given.append(arguments[0][0])
            return [[self.token], *map(list, arguments[1:])]

        return launch

    def delete(self, handle: Any) -> None:
        self.deleted.append(handle)


class Late(Passing):
    """A backend whose tokens the test completes; arrays are ready at once."""

    def __init__(self) -> None:
        super().__init__()
        self.token = PendingEvent()

    def event(self, handle: Any) -> Event | None:
        return handle if isinstance(handle, PendingEvent) else None


def step(client: Client, token: Any = None, **options: Any) -> tuple[Any, Any]:
    """Launches a step of a chain of tokens; the first one has no token as argument."""
    text = PARTITIONED if options.get("num_partitions") else TOKEN
    program = client.compile(Program(text.encode()), CompileOptions(**options))
    assert program.executable.output_types[0] == TOKEN_TYPE
    devices = program.addressable_devices
    token = token or [client.buffer_from_host(FIRST, device) for device in devices]
    x = [client.buffer_from_host(ONE, device) for device in devices]
    tokens, results = program.execute([token, x])
    for result in results:
        np.testing.assert_array_equal(result.to_host(), ONE)
    return tokens, results


@pytest.mark.parametrize("options", [{}, {"num_replicas": 2}, {"num_partitions": 2}])
def test_a_chain_of_tokens_on_the_numpy_backend(options: dict[str, int]) -> None:
    client = BackendClient(NumpyBackend(2, check_types=True))
    tokens, _ = step(client, **options)
    tokens, _ = step(client, tokens, **options)
    assert [str(token.type) for token in tokens] == ["token"] * len(tokens)
    for token in tokens:
        token.block_until_ready()
        assert token.on_device_size_in_bytes() == 0


def test_a_saved_program_takes_and_returns_them() -> None:
    client = BackendClient(NumpyBackend())
    program = client.compile(Program(TOKEN.encode()), CompileOptions())
    loaded = client.deserialize_executable(program.executable.serialize())
    x = client.buffer_from_host(ONE, client.devices()[0])
    first = client.buffer_from_host(FIRST, client.devices()[0])
    token, [result] = loaded.execute([[first], [x]])
    np.testing.assert_array_equal(result.to_host(), ONE)
    loaded.execute([token, [result]])


def test_a_handle_of_none_is_returned_for_them_and_given_again() -> None:
    backend = Passing()
    client = BackendClient(backend)
    tokens, _ = step(client)
    step(client, tokens)
    assert isinstance(backend.given[0], np.ndarray)
    assert backend.given[1] is None
    tokens[0].delete()
    assert not any(handle is None for handle in backend.deleted)
    with pytest.raises(DeletedBuffer):
        step(client, tokens)


def test_a_handle_of_the_authors_own_is_deleted_once() -> None:
    backend = Passing()
    backend.token = object()
    client = BackendClient(backend)
    tokens, _ = step(client)
    step(client, tokens)[0][0].delete()
    assert backend.given[1] is backend.token
    assert sum(handle is backend.token for handle in backend.deleted) == 1


def test_an_array_is_no_none() -> None:
    backend = Passing()
    client = BackendClient(backend)
    text = "func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {return %a : tensor<3xf32>}"
    program = client.compile(Program(text.encode()), CompileOptions())
    x = client.buffer_from_host(ONE, client.devices()[0])
    with pytest.raises(Internal, match="handles"):
        program.execute([[x]])


def test_tokens_are_ready_when_the_backend_says_so() -> None:
    backend = Late()
    client = BackendClient(backend)
    [token], _ = step(client)
    copy = token.copy_to_device(client.devices()[0])
    assert not token.ready_event().is_ready()
    assert not copy.ready_event().is_ready()
    backend.token.fail(ResourceExhausted("no paper in the printer"))
    for found in (token, copy):
        with pytest.raises(ResourceExhausted, match="no paper"):
            found.block_until_ready()


def test_tokens_cannot_be_read() -> None:
    [token], _ = step(BackendClient(NumpyBackend()))
    for use in (token.to_host, token.unsafe_pointer, token.to_dlpack):
        with pytest.raises(InvalidArgument, match="a token, on numpy:0, orders effects"):
            use()
    kept = token.copy_to_memory(token.memory)
    token.delete()
    with pytest.raises(DeletedBuffer):
        token.copy_to_device(token.device)
    kept.block_until_ready()


def test_arrays_are_refused_in_place_of_tokens() -> None:
    client = BackendClient(NumpyBackend())
    for wrong in (ONE, np.zeros(1, np.bool_), np.zeros(0, np.int8), np.zeros((0, 2), np.bool_)):
        with pytest.raises(InvalidArgument, match=r"argument 0 of 'main' must be token"):
            step(client, [client.buffer_from_host(wrong, client.devices()[0])])
    [token], _ = step(client)
    program = client.compile(Program(TOKEN.encode()), CompileOptions())
    with pytest.raises(InvalidArgument, match=r"argument 1 of 'main' must be float32\[3\]; token"):
        program.execute([[token], [token]])


def test_a_program_with_them_is_called_with_its_arrays() -> None:
    text = TOKEN.replace("%t: !stablehlo.token, %a: tensor<3xf32>",
                         "%a: tensor<3xf32>, %t: !stablehlo.token")  # fmt: skip
    for program in (plugrt.compile(source, backend="numpy") for source in (text, TOKEN)):
        assert "(float32[3]) -> (float32[3])" in repr(program)
        for _ in range(2):
            np.testing.assert_array_equal(program(ONE), ONE)
        with pytest.raises(plugrt.errors.ArgumentMismatch, match="takes 1 arguments"):
            program(FIRST, ONE)
