"""Calls of Python handlers by copies, with call frames and a stream that the tests make."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions import ffi_frames
from plugrt.capi.extensions.ffi import EXECUTE, address_of, make_c_handler
from plugrt.capi.extensions.ffi_frames import FRAME_VERSION, call_stage, make_api
from plugrt.capi.extensions.ffi_functions import _function
from plugrt.capi.extensions.ffi_staging import call_with_copies
from plugrt.capi.extensions.ffi_states import Context, States
from plugrt.errors import DataLoss, Internal, NotFound, ResourceExhausted
from support.made_up_copies import MadeUpCopies

STREAM = 0x7654_3210_0000
F4 = np.dtype(np.float32)


def _set_stream(args: Any) -> None:
    assert args.ctx != ffi.NULL
    args.stream = ffi.cast("void*", STREAM)


_stream_get = _function("XLA_FFI_Stream_Get_Args", _set_stream)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames whose calls have a stream."""
    table = make_api(FRAME_VERSION, stream_get=_stream_get)
    monkeypatch.setattr(ffi_frames, "_table_of", lambda version: table)


def call(
    handler: Any, copies: MadeUpCopies, arguments: list[Any], results: list[Any], **named: Any
) -> None:
    made = make_c_handler("staged", handler, call_with_copies(copies))
    context = Context("staged", EXECUTE, States(), States())
    call_stage(address_of(made), context, arguments, results, named)


@pytest.mark.usefixtures("streams")
class TestCalls:
    """Handlers get copies, and their results are copied back."""

    @pytest.mark.parametrize(
        "dtype",
        [
            np.float32, np.float64, np.complex64, np.int8, np.uint64, np.bool_, ml_dtypes.bfloat16,
            ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2,
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 7), (0,), (2, 0, 3)])
    def test_elements_go_there_and_back(self, dtype: Any, shape: tuple[int, ...]) -> None:
        count = int(np.prod(shape))
        given = (np.arange(count) % 2).astype(dtype).reshape(shape)
        other, result = np.zeros((2,), F4), np.ones(shape, dtype)
        copies = MadeUpCopies()

        def put(arguments: Any, results: Any, attributes: Any) -> None:
            assert [x.shape for x in arguments] == [shape, (2,)]
            assert [x.dtype for x in arguments] == [np.dtype(dtype), F4]
            assert not any(x.flags.writeable for x in arguments)
            assert not np.shares_memory(arguments[1], other)
            assert attributes == {"factor": 3}
            results[0][...] = arguments[0]
            results[1][...] = attributes["factor"]

        scalar = np.zeros((), F4)
        call(put, copies, [given, other], [result, scalar], factor=np.int64(3))
        np.testing.assert_array_equal(result.astype(np.complex64), given.astype(np.complex64))
        assert scalar == 3
        there, back = (2, 2) if count else (1, 1)
        expected = ["copy_to_host"] * there + ["wait"] + ["copy_to_device"] * back + ["wait"]
        assert copies.names == expected  # one wait for all arguments, one for all results
        assert {stream for _, _, stream in copies.calls} == {STREAM}

    def test_packed_elements_are_copied_packed(self) -> None:
        copies, result = MadeUpCopies(), np.zeros(5, ml_dtypes.int4)
        call(
            lambda x, y, _: y[0].__setitem__(..., -x[0]),
            copies,
            [np.arange(5).astype(result.dtype)],
            [result],
        )
        assert result.tolist() == [0, -1, -2, -3, -4]
        assert [size for _, size, _ in copies.calls] == [3, 0, 3, 0]

    def test_a_call_without_arrays_waits_for_the_program(self) -> None:
        copies, seen = MadeUpCopies(), []
        call(lambda *given: seen.append(given), copies, [], [])
        assert seen == [([], [], {})]
        assert copies.names == ["wait"]

    def test_results_that_a_handler_does_not_write_are_zero(self) -> None:
        result = np.full(4, 7, F4)
        call(lambda *_: None, MadeUpCopies(), [], [result])
        assert result.tolist() == [0, 0, 0, 0]

    def test_a_result_in_the_memory_of_an_argument_has_its_elements(self) -> None:
        shared = np.float32([1, 2, 3])

        def add(arguments: Any, results: Any, attributes: Any) -> None:
            results[0] += 10
            assert arguments[0].tolist() == [1, 2, 3]

        call(add, MadeUpCopies(), [shared], [shared])
        assert shared.tolist() == [11, 12, 13]

    def test_another_array_in_the_list_is_no_result(self) -> None:
        result = np.ones(2, F4)

        def replace(arguments: Any, results: Any, attributes: Any) -> None:
            results[0] = np.full(2, 9, F4)

        call(replace, MadeUpCopies(), [], [result])
        assert result.tolist() == [0, 0]


@pytest.mark.usefixtures("streams")
class TestFailures:
    """The first failure is the launch's error, and no copy remains in flight."""

    def test_an_exception_leaves_the_results_alone(self) -> None:
        copies, result = MadeUpCopies(), np.ones(2, F4)

        def fail(arguments: Any, results: Any, attributes: Any) -> None:
            results[0][...] = 5
            raise NotFound("no such table")

        with pytest.raises(NotFound, match="no such table"):
            call(fail, copies, [np.ones(2, F4)], [result])
        assert result.tolist() == [1, 1]
        assert copies.names == ["copy_to_host", "wait"]

    @pytest.mark.parametrize("method", ["copy_to_host", "copy_to_device", "wait"])
    def test_a_copy_that_fails(self, method: str) -> None:
        copies = MadeUpCopies(**{method: ResourceExhausted(f"{method} failed here")})
        called: list[None] = []
        with pytest.raises(ResourceExhausted, match=f"{method} failed here"):
            call(lambda *_: called.append(None), copies, [np.ones(2, F4)], [np.ones(2, F4)])
        assert copies.names[-1] == "wait"  # also after a failed copy
        assert len(called) == (method == "copy_to_device")

    def test_the_first_error_is_told(self) -> None:
        copies = MadeUpCopies(copy_to_host=DataLoss("first"), wait=DataLoss("second"))
        with pytest.raises(DataLoss, match="first"):
            call(lambda *_: None, copies, [np.ones(2, F4)], [])


def test_a_library_without_a_stream_is_named() -> None:
    copies = MadeUpCopies()
    with pytest.raises(Internal, match=r"no stream .*XLA_FFI_Stream_Get is not implemented"):
        call(lambda *_: None, copies, [np.ones(2, F4)], [])
    assert not copies.calls
