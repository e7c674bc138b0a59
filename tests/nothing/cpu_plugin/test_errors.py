"""jaxlib's exceptions are converted to plugrt's."""

from __future__ import annotations

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


def test_ours_pass() -> None:
    error = InvalidArgument("x")
    assert translate(error) is error
