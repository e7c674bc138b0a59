"""The tree of exceptions: every PJRT code has its class, and messages name the code.

Differs from JAX: errors of a backend | one class, `XlaRuntimeError` | a class for each PJRT code,
under `plugrt.errors.PjrtError`.

Differs from JAX: exceptions for wrong calls | `TypeError`, `ValueError` | classes of
`plugrt.errors` that are also `TypeError` or `ValueError`.
"""

from __future__ import annotations

import inspect

import pytest

from plugrt import errors
from plugrt.cli import html
from plugrt.cli.output import print_line, print_table
from plugrt.errors import read_message

# absl's canonical status codes, which PJRT_Error_Code repeats.
CODES = {
    1: "CANCELLED", 2: "UNKNOWN", 3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED", 5: "NOT_FOUND",
    6: "ALREADY_EXISTS", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION", 10: "ABORTED", 11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED",
    13: "INTERNAL", 14: "UNAVAILABLE", 15: "DATA_LOSS", 16: "UNAUTHENTICATED",
}  # fmt: skip


@pytest.mark.parametrize(("code", "name"), CODES.items())
def test_each_code_has_a_class_of_its_own(code: int, name: str) -> None:
    error = errors.error_from_code(code, "what happened")
    assert type(error) is errors.PJRT_ERRORS[code]
    assert (error.code, error.code_name) == (code, name)
    assert str(error) == f"{name}: what happened"
    assert isinstance(error, errors.PjrtError)
    assert isinstance(error, RuntimeError)


def test_the_sixteen_classes_differ() -> None:
    assert len(set(errors.PJRT_ERRORS.values())) == len(CODES) == 16


def test_an_undefined_code_is_unknown_and_says_so() -> None:
    error = errors.error_from_code(99, "odd")
    assert type(error) is errors.Unknown
    assert "99" in str(error)
    assert "odd" in str(error)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.InvalidArgument, ValueError),
        (errors.ResourceExhausted, MemoryError),
        (errors.Unimplemented, NotImplementedError),
        (errors.DeadlineExceeded, TimeoutError),
        (errors.NotAnArray, TypeError),
        (errors.ShapeError, ValueError),
        (errors.DtypeError, TypeError),
        (errors.ConcretizationError, TypeError),
        (errors.DeletedBuffer, RuntimeError),
        (errors.ProgramError, ValueError),
    ],
)
def test_classes_are_what_python_users_catch(cls: type, builtin: type) -> None:
    assert issubclass(cls, builtin)


def test_everything_hangs_on_one_root_and_says_what_it_means() -> None:
    classes = [
        c
        for _, c in inspect.getmembers(errors, inspect.isclass)
        if issubclass(c, Exception) and c.__module__ == "plugrt.errors"
    ]
    assert len(classes) > 30
    for cls in classes:
        assert issubclass(cls, errors.PlugrtError), cls
        assert cls.__doc__, f"{cls.__name__} has no docstring"


def test_a_program_error_has_a_place() -> None:
    error = errors.ProgramError("bad", 3, 7)
    assert (error.line, error.column) == (3, 7)
    assert errors.ProgramError("bad").line is None


@pytest.mark.parametrize("character", [*"\u061c\u200e\u200f\u202a\u202e\u2066\u2069\x1b\x9b\x7f\r"])
def test_unprintable_characters_are_escaped_everywhere(
    character: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages, terminal and pages use one rule: such characters can reverse the shown text."""
    monkeypatch.setenv("COLUMNS", "200")
    strange, shown = f"a{character}b\t", f"a{character!a}b".replace("'", "")
    print_line(strange)
    print_line(strange, err=True)
    print_table(("name",), [[strange]])
    said = capsys.readouterr()
    texts = [said.out, said.err, html.text(strange), read_message(ValueError(strange))]
    assert [shown in text for text in texts] == [True] * 4
    assert not any(character in text for text in texts)


FRAMES = "".join(
    f"\n --- /lib/libchip.so({n}+0x3d6dc0a) [0x7f6e7756dc0a]" for n in ("", "_ZN4mainEv")
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"no chips\nbacktrace:{FRAMES}", "no chips"),
        (f"no chips{FRAMES}\nlast words", "no chips\nlast words"),
        (f"no chips\nBacktrace:{FRAMES}\n --- libc.so.6(main+0x8", "no chips"),
        ("at f(x+0x10) in kernel.cc", "at f(x+0x10) in kernel.cc"),  # one line is the message
        ("no backtrace:\nsee the log", "no backtrace:\nsee the log"),
    ],
)
def test_a_native_stack_trace_is_left_out(text: str, left: str) -> None:
    """Earlier, the row of jax-tt-plugin had forty lines of addresses as its reason."""
    assert read_message(ValueError(text)) == left
