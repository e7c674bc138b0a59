"""jaxlib's exceptions are converted to plugrt's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plugrt.errors import PJRT_ERRORS, DeletedBuffer, Internal, InvalidArgument, PjrtError, Unknown
from plugrt_cpu.errors import JAXLIB_ERRORS, translate


@pytest.mark.parametrize("cls", PJRT_ERRORS.values())
@pytest.mark.parametrize("python", JAXLIB_ERRORS)
def test_every_code(cls: type[PjrtError], python: type[Exception]) -> None:
    error = translate(python(f"{cls.code_name}: no: good\nsecond line"))
    assert type(error) is cls
    assert isinstance(error, PjrtError)
    assert error.message == "no: good\nsecond line"
    assert str(error) == f"{cls.code_name}: no: good\nsecond line"


@pytest.mark.parametrize("text", ["", "no status", "NOT_A_CODE: text", "CamelCase: text"])
def test_without_a_status(text: str) -> None:
    assert type(translate(ValueError(text))) is Internal
    error = translate(ValueError(text), Unknown)
    assert type(error) is Unknown
    assert error.message == text


def test_an_error_that_is_translated_twice_keeps_its_cause() -> None:
    """Earlier, an exception of a signal handler was lost where two functions translated it."""

    def raise_translated(function: Callable[[], object]) -> None:
        try:
            function()
        except JAXLIB_ERRORS as error:
            raise translate(error) from error

    def fail() -> None:
        raise MemoryError("first")

    with pytest.raises(Internal, match="first") as caught:
        raise_translated(lambda: raise_translated(fail))
    assert type(caught.value.__cause__) is MemoryError


@pytest.mark.parametrize(
    "text",
    [
        "INVALID_ARGUMENT: BlockHostUntilReady() called on deleted or donated buffer",
        "INVALID_ARGUMENT: Array is null",
        "UNIMPLEMENTED: BufferToDLPackManagedTensor called on deleted array.",
        "INVALID_ARGUMENT: Invalid buffer passed to Execute() as argument 0 to replica 0: "
        "INVALID_ARGUMENT: Buffer has been deleted or donated.",
    ],
)
def test_use_after_delete(text: str) -> None:
    assert isinstance(translate(RuntimeError(text)), DeletedBuffer)


def test_a_program_may_speak_of_deleted_things() -> None:
    error = translate(RuntimeError("UNKNOWN: 1:2: error: 'has_deleted' is no operation"))
    assert isinstance(error, Unknown)


def test_an_error_of_plugrt_is_raised_unchanged() -> None:
    error = InvalidArgument("x")
    with pytest.raises(InvalidArgument) as caught:
        translate(error)
    assert caught.value is error
