"""The runs beside `make test`: ``.venv/bin/nox -l`` lists them, `.ci/run` uses the first of them.

    .venv/bin/nox -s NAME -- ARGUMENT ...

A session runs in ``.venv``, which `make` keeps in step with the lock file: nox makes no environment
of its own. The arguments are the script's, or pytest's: the files of a part. WORKERS in the
environment is the number of pytest's processes.
"""

import os

import nox

PYTHON = ".venv/bin/python"
SEEDS = (1, 2, 3)
PARALLEL = ("-m", "pytest", "-n", os.environ.get("WORKERS", "auto"), "-q")
ONE_PROCESS = ("-m", "pytest", "-q", "--timeout=0")
LIFETIMES = (
    "tests/pjrt/capi/test_use_at_exit.py",
    "tests/pjrt/capi/test_cycles.py",
    "tests/pjrt/capi/test_lifetimes.py",
    "tests/pjrt/capi/test_broken_libraries.py",
    "tests/unit/capi/library/test_struct_sizes.py",
    "tests/pjrt/capi/test_stubbed_libraries.py",
    "tests/pjrt/execution/test_nested_callbacks.py",
    "tests/cpu/client/test_use_after_fork.py",
    "tests/cpu/client/test_process.py",
    "tests/cpu/client/test_address_space.py",
    "tests/cpu/client/test_cycles.py",
    "tests/cpu/client/test_interrupts.py",
    "tests/unit/cpu_plugin/test_interrupts.py",
    "tests/cpu/client/test_interrupted_calls.py",
    "tests/cpu/plugins/test_interrupted_imports.py",
    "tests/cpu/remote/test_isolation.py",
    "tests/nothing/cli/test_doctor.py",
    "tests/nothing/cli/test_doctor_trial.py",
    "tests/nothing/cli/test_sick_libraries.py",
)
WITH_CALLS = (
    "tests/cpu/client/test_interrupted_calls.py",
    "tests/cpu/transforms/test_jit_calls.py",
    "tests/cpu/transforms/test_jit_donation.py",
    "tests/cpu/transforms/test_warm_calls.py",
    "tests/cpu/transforms/test_weak_types.py",
    "tests/cpu/execution/test_transfer.py",
    "tests/contract/test_kit.py",
    "tests/unit/capi/library/test_buffer.py",
    "tests/pjrt/execution/test_lasting_calls.py",
    "tests/unit/transforms/test_read_once.py",
)
CORE_EQUALITY = "tests/pjrt/execution/test_core_equality.py"
LASTING_CALLS = "tests/pjrt/execution/test_lasting_calls.py"
MEASURED = (
    *("dispatch", "startup", "callbacks", "transfer", "pmap", "tracing", "cores", "devices"),
    *("library", "jaxlib_floor"),
)

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"
nox.options.sessions = []  # without a name nox runs nothing


def run(session: nox.Session, *command: str, **environment: str) -> None:
    """Runs Python with a command and the session's arguments, in the locked environment."""
    session.run("make", "--silent", ".venv/.synced")
    session.run(PYTHON, *command, *session.posargs, env=environment)


def run_apart(session: nox.Session, name: str, *arguments: str, **environment: str) -> None:
    """Runs the tests with the mark ``runs_apart(name)``, which `make test` skips."""
    environment["PLUGRT_TEST_TARGET"] = name
    run(session, *PARALLEL, "-m", "apart", *arguments, **environment)


@nox.session
def xla_cpu(session: nox.Session) -> None:
    """One case of each test of tests/cpu on a real PJRT library, and docs/behaviour.md (1 min)."""
    tests = ("tests/pjrt/test_suite_on_xla_cpu.py", "tests/pjrt/test_behaviour.py")
    run_apart(session, "xla_cpu", *tests)


@nox.session
def sdk(session: nox.Session) -> None:
    """Exported backends under JAX, the NumPy backend beside XLA, the kit's own tests (1 min)."""
    run_apart(session, "sdk", "tests/nothing/sdk", "tests/unit/sdk", "tests/cpu/sdk")


@nox.session
def slow(session: nox.Session) -> None:
    """The slowest tests of each folder, which `make test` leaves out (3 min)."""
    run_apart(session, "slow", "tests")


@nox.session
def contract(session: nox.Session) -> None:
    """All chapters of the conformance kit on cpu, numpy, xla_cpu, exported ones (3 min)."""
    run(session, *PARALLEL, "tests/contract", PLUGRT_TEST_EFFORT="2")


@nox.session
def python_calls(session: nox.Session) -> None:
    """A sample of the suite with calls in Python; random calls beside the core's (1 min)."""
    run(session, *PARALLEL, *WITH_CALLS, PLUGRT_CORE="python")
    run_apart(session, "python_calls", CORE_EQUALITY)


@nox.session
def as_jax(session: nox.Session) -> None:
    """Sweeps beside JAX: numbers, weak types, plugins made for JAX; a benchmark (1 min)."""
    tests = (
        "tests/cpu/array_api/test_numbers_match_jax.py",
        "tests/cpu/tracing/test_weak_types_as_jax.py",
        "tests/cpu/differential/test_calls_as_jax.py",
        "tests/pjrt/plugins/test_beside_jax.py",
        "tests/pjrt/test_benchmark.py",
    )
    run_apart(session, "as_jax", *tests)


@nox.session
def processes(session: nox.Session) -> None:
    """Programs of two and four processes on the loopback interface (1 min)."""
    run_apart(session, "processes", "tests/cpu/distributed")


@nox.session
def lifetimes(session: nox.Session) -> None:
    """Handles, cycles, forks, exits and interrupts, in children (1 min)."""
    run_apart(session, "lifetimes", *LIFETIMES)


@nox.session
def interrupts(session: nox.Session) -> None:
    """Interrupts at each place of calls and at each module of first imports (3 h)."""
    test = "tests/cpu/client/test_interrupted_calls.py"
    run_apart(session, "lifetimes", "--timeout=0", test, PLUGRT_TEST_EFFORT="60")


@nox.session
def vendors(session: nox.Session) -> None:
    """Tests against vendors' libraries: downloads libtpu, CUDA and CPU wheels (730 MB)."""
    run(session, "tools/test_vendors.py")


@nox.session
def types(session: nox.Session) -> None:
    """Runs mypy over all; mypy and pyright over calls of the public API (1 min)."""
    session.run("make", "--silent", ".venv/.synced")
    session.run(PYTHON, "-m", "mypy")
    run_apart(session, "types", "tests/nothing/typing")


@nox.session
def site(session: nox.Session) -> None:
    """The documentation's site, in build/site; the snippets of README and docs (30 s)."""
    session.run("make", "--silent", ".venv/.synced")
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    session.run(PYTHON, "-m", "mkdocs", "build", "--strict", "--quiet", env=quiet)
    run_apart(session, "site", "tests/cpu/docs/test_snippets.py")


@nox.session
def packages(session: nox.Session) -> None:
    """Wheels, the tutorial, what `plugrt new` writes: built, installed and run (2 min)."""
    tests = ("tests/cpu/packaging", "tests/pjrt/test_without_jaxlib.py")
    run_apart(session, "packages", "--dist", "loadfile", *tests)


@nox.session
def costs(session: nox.Session) -> None:
    """Measures the suite: tests/support/slow_tests.txt, what `make test` leaves out (10 min)."""
    run(session, *PARALLEL, "-p", "support.costs", PYTHONPATH="tests")


@nox.session
def long(session: nox.Session) -> None:
    """The sessions xla_cpu, sdk and packages with every case and the whole kit (30 min)."""
    session.env["PLUGRT_TEST_EFFORT"] = "2"
    for part in (xla_cpu, sdk, packages):
        part(session)


@nox.session
def more(session: nox.Session) -> None:
    """The suite with five times as many random cases and as long races (30 min)."""
    run(session, *PARALLEL, "--timeout=0", PLUGRT_TEST_EFFORT="5")


@nox.session
def optimised(session: nox.Session) -> None:
    """The suite on programs that XLA optimises, as users' are (twice the time)."""
    run(session, *PARALLEL, XLA_FLAGS="")


@nox.session
def random_order(session: nox.Session) -> None:
    """The suite in one process, in the random orders of three seeds (hours)."""
    for seed in SEEDS:
        run(session, "-m", "pytest", "-q", f"--randomly-seed={seed}", "tests")


@nox.session
def core(session: nox.Session) -> None:
    """The suite and lifetimes with calls in Python; calls beside the core's; a million calls."""
    run(session, *PARALLEL, PLUGRT_CORE="python")
    run_apart(session, "lifetimes", *LIFETIMES, PLUGRT_CORE="python")
    five_times = {"PLUGRT_TEST_TARGET": "python_calls", "PLUGRT_TEST_EFFORT": "5"}
    run(session, *ONE_PROCESS, CORE_EQUALITY, **five_times)
    for calls, effort in (("c", "5000"), ("python", "500")):
        run(session, *ONE_PROCESS, LASTING_CALLS, PLUGRT_CORE=calls, PLUGRT_TEST_EFFORT=effort)


@nox.session
def core_sanitized(session: nox.Session) -> None:
    """Tests on extensions in C built for GCC's sanitizers; runtime, sdk, or suite: all (1 h)."""
    run(session, "tools/test_core_sanitized.py")


@nox.session
def threads(session: nox.Session) -> None:
    """Eight threads for a minute, on the backend of JAX_PLATFORMS."""
    test = "tests/cpu/execution/test_threads.py"
    run(session, *ONE_PROCESS, "-s", "-p", "no:randomly", test, PLUGRT_TEST_EFFORT="60")


@nox.session
def sdk_long(session: nox.Session) -> None:
    """The tests of exports with more rounds, exits and seconds (12 min)."""
    tests = (
        "tests/unit/sdk/export/test_export_stress.py",
        "tests/nothing/sdk/test_export_under_jax.py",
        "tests/nothing/sdk/conformance/test_through_the_c_api.py",
        "tests/cpu/sdk/test_export.py",
    )
    run(session, *ONE_PROCESS, *tests, PLUGRT_TEST_TARGET="sdk", PLUGRT_TEST_EFFORT="10")


@nox.session
def clusters(session: nox.Session) -> None:
    """Several processes on a local Ray cluster and under mpirun, installed for it (1 min)."""
    run(session, "tools/test_clusters.py")


@nox.session
def pythons(session: nox.Session) -> None:
    """The core of one set of wheels on each Python from 3.11 on that is here (minutes)."""
    run(session, "tools/test_pythons.py")


@nox.session
def jaxlib(session: nox.Session) -> None:
    """The suite on each jaxlib minor from 0.9 on."""
    run(session, "tools/test_jaxlib.py")


@nox.session
def jax_versions(session: nox.Session) -> None:
    """Exported plugins under the stock JAX of the oldest supported jaxlib, 0.9 (2 min)."""
    tests = ("--", "-k", "under_jax")
    run(session, "tools/test_jaxlib.py", "0.9", *tests, PLUGRT_TEST_TARGET="sdk")


@nox.session
def old_jax(session: nox.Session) -> None:
    """pmap within other functions beside JAX 0.4.20, in an environment of its own (1 min)."""
    run(session, "tools/test_old_jax.py")


@nox.session
def jax(session: nox.Session) -> None:
    """JAX's own tests on exported NumPy; -- --in-place: on plugrt; JAX_SOURCE: a copy (1 h)."""
    run(session, "tools/test_jax.py")


@nox.session
def array_api(session: nox.Session) -> None:
    """The array API standard's own tests on cpu and numpy; ARRAY_API_TESTS names a checkout."""
    run(session, "tools/test_array_api.py")


@nox.session
def ecosystem(session: nox.Session) -> None:
    """einops, xarray, Keras and others, installed apart, with arrays: docs/ecosystem.md (2 min)."""
    run(session, "tools/ecosystem.py")


@nox.session
def wheels(session: nox.Session) -> None:
    """The wheels of docs/data/wheels.toml, each in its own environment (2 GB, 4 to 30 minutes)."""
    test = "tests/vendors/test_wheels.py"
    run(session, *ONE_PROCESS, "-p", "no:randomly", test, PLUGRT_TEST_TARGET="wheels")


@nox.session
def conformance(session: nox.Session) -> None:
    """Every plugin of ours, or those named, through the kit: CONFORMANCE.md anew (4 min)."""
    run(session, "-m", "tools.conform", "--pages")


@nox.session
def kill_matrix(session: nox.Session) -> None:
    """Each mutant of the kit, or those with a word, against its group's checks; RECORD (1 h)."""
    run(session, "tools/kill_matrix.py")


@nox.session
def remote_long(session: nox.Session) -> None:
    """Device servers: 500 kills, 1,000,000 messages, 10 minutes of sharing (30 min)."""
    run(session, "-m", "support.remote_long", PYTHONPATH="tests")


@nox.session
def kit_strength(session: nox.Session) -> None:
    """The kit on 60 libraries with a defect by seed: --set N [--quick-only] (90 min)."""
    run(session, "-m", "tools.kit_strength")


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
    run(
        *(session, *ONE_PROCESS, "tests/cpu/programs/test_changed_headers.py"),
        PLUGRT_TEST_EFFORT="34",
    )


@nox.session
def stubbed(session: nox.Session) -> None:
    """Two libraries without each function, or strict about sizes; JAX beside (15 minutes)."""
    test = "tests/pjrt/capi/test_stubbed_libraries.py"
    options = ("-s", "-p", "no:randomly", "-k", "of_the_library or newer or jax_does")
    run(session, *ONE_PROCESS, *options, test, PLUGRT_TEST_TARGET="stubbed")


@nox.session
def plot(session: nox.Session) -> None:
    """Measures again, and makes the plot and the page of it anew (9 min, a quiet machine)."""
    run(session, "benchmarks/run_all.py", "--json", "build/benchmarks", *MEASURED)
    session.run(PYTHON, "docs/generate/benchmarks.py", "build/benchmarks")


@nox.session
def version(session: nox.Session) -> None:
    """Writes the version (of pyproject.toml, or -- 0.2.0) wherever it is stated."""
    run(session, "tools/version.py")
    index = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_FIND_LINKS")
    session.run(".venv/bin/uv", "lock", "--quiet", env=dict.fromkeys(index))
    session.run("make", "--silent", ".venv/.synced")
