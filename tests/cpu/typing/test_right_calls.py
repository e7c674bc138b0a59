"""Values have the types that the annotations of valid calls promise."""

from __future__ import annotations

import os
from pathlib import Path

from support.distributions import run_warm

RIGHT = Path(__file__).parents[2] / "nothing/typing/right_calls.py"
PROGRAM = """
import runpy, sys, types, typing

count = 0


def check(value, wanted):
    global count
    count += 1
    if wanted is typing.Any:
        return value
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if hasattr(origin, "__value__"):  # NumPy's aliases, from Python 3.12 on
        origin = typing.get_origin(origin.__value__)
    if origin in (typing.Union, types.UnionType):
        assert isinstance(value, arguments), (value, wanted)
        return value
    assert isinstance(value, origin or wanted), (value, wanted)
    members = value.values() if origin is dict else value if origin in (list, tuple) else ()
    inner = [a for a in arguments if a is not ...][-1:]
    for member in members:
        if inner != [typing.Any]:
            assert isinstance(member, inner[0]), (value, wanted)
    return value


typing.assert_type = check
runpy.run_path(sys.argv[1], run_name="right_calls")["main"]()
print(count)
"""


def test_results_are_of_the_types_that_the_annotations_promise() -> None:
    flags = os.environ["XLA_FLAGS"]  # the suite's flags compile faster
    done = run_warm(PROGRAM, arguments=(str(RIGHT),), JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 80
