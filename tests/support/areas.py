"""The tests of `tests/cpu` that run again on other backends: areas, with exceptions."""

from __future__ import annotations

FEWEST = {
    "array_api": (235, 1300),
    "execution": (217, 167),
    "lax": (180, 350),
    "programs": (10, 25),
    "random": (15, 50),
    "tracing": (10, 25),
    "transforms": (366, 246),
}
"""For each area the smallest number of passed tests, of a sample and of all."""
OF_NO_BACKEND = (
    "array_api/test_dtypes_match_jax.py",
    "array_api/test_missing_names.py",
    "array_api/test_numbers_match_jax.py",
    "array_api/test_numpy_functions.py",
    "execution/test_dead_code.py",  # tests a program's arguments
    "transforms/test_jit_arguments.py",
    "transforms/test_weak_types.py",
    "tracing/test_weak_types_as_jax.py",
    # Callbacks run on the library's few threads and can hang there; test_behaviour has those that
    # do not wait for other work.
    "execution/test_effects.py",
    "transforms/test_callbacks.py",
    "transforms/test_warm_calls.py",  # counts the Python calls of a launch on the cpu plugin
)
"""Tests of dtypes, refusals and numbers that do not depend on the backend.

They test the program, which is the same for each backend; other tests check that a backend accepts
every dtype, runs the program and returns its results.
"""


def runs_in_an_area(file: str) -> bool:
    """Whether a file, such as ``tests/cpu/lax/test_loops.py``, is one of these."""
    tests, cpu, *inner = file.split("/")
    return (
        (tests, cpu) == ("tests", "cpu")
        and inner[0] in FEWEST
        and "/".join(inner) not in OF_NO_BACKEND
    )
