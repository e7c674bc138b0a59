"""Longer runs, which are not part of `make test`: ``.venv/bin/nox -l`` lists them.

    .venv/bin/nox -s NAME -- ARGUMENT ...

A session runs in ``.venv``, which `make` keeps in step with the lock file: nox makes no environment
of its own. The arguments are the script's.
"""

import nox

PYTHON = ".venv/bin/python"
SEEDS = (1, 2, 3)

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"
nox.options.sessions = []  # without a name nox runs nothing


def run(session: nox.Session, *command: str, **environment: str) -> None:
    """Runs Python with a command and the session's arguments, in the locked environment."""
    session.run("make", "--silent", ".venv/.synced")
    session.run(PYTHON, *command, *session.posargs, env=environment)


@nox.session
def array_api(session: nox.Session) -> None:
    """The array API standard's own tests on cpu and numpy; ARRAY_API_TESTS names a checkout."""
    run(session, "tools/test_array_api.py")


@nox.session
def jax(session: nox.Session) -> None:
    """JAX's own tests on the exported NumPy backend, beside JAX's CPU (an hour)."""
    run(session, "tools/test_jax.py")


@nox.session
def random_order(session: nox.Session) -> None:
    """The suite in one process, in the random orders of three seeds (hours)."""
    for seed in SEEDS:
        run(session, "-m", "pytest", "-q", f"--randomly-seed={seed}", "tests")


@nox.session
def mutants(session: nox.Session) -> None:
    """Random mutants of the product, against the tests that cover them (hours; continues)."""
    run(session, "tools/mutants.py")


@nox.session
def differential(session: nox.Session) -> None:
    """Thousands of random calls beside JAX; --cases N --seed N."""
    run(session, "-m", "support.differential", PYTHONPATH="tests")


@nox.session
def narrow_types(session: nox.Session) -> None:
    """Each operation on types of 2 and 4 bits: cpu docs/data/narrow_types/VERSION.json."""
    run(session, "tools/narrow_types.py")


@nox.session
def saved_files(session: nox.Session) -> None:
    """Saved programs with 10,000 changed headers: a result, or DataLoss."""
    test = "tests/cpu/programs/test_changed_headers.py"
    run(session, "-m", "pytest", "-q", "--timeout=0", test, PLUGRT_TEST_EFFORT="34")


@nox.session
def stubbed(session: nox.Session) -> None:
    """Two libraries without each of their functions in turn, or strict about sizes (10 minutes)."""
    test = "tests/pjrt/capi/test_stubbed_libraries.py"
    options = ("-q", "-s", "--timeout=0", "-p", "no:randomly", "-k", "of_the_library or newer")
    run(session, "-m", "pytest", *options, test, PLUGRT_TEST_TARGET="stubbed")


@nox.session
def wheels(session: nox.Session) -> None:
    """The wheels of docs/data/wheels.toml, each in its own environment (2 GB, 4 to 30 minutes)."""
    test = "tests/vendors/test_wheels.py"
    options = ("-q", "--timeout=0", "-p", "no:randomly")
    run(session, "-m", "pytest", *options, test, PLUGRT_TEST_TARGET="wheels")
