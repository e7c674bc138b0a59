"""Levels 0 and 1: an installed plugin: wheel, entry points, and hosts that select it by name."""

from __future__ import annotations

from importlib.util import find_spec

from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.installation import Installation, installation_of
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.verdict import NotTried, Verdict

CHAPTER = Chapter(
    "installed",
    Level.INSTALLS,
    "docs/plugins.md: what a plugin offers",
    Needs.DISTRIBUTION,
    Demand.PLUGRT,
)

_GROUPS = ("plugrt.plugins", "jax_plugins", "xla_plugins", "torch_xla.plugins")
_NATIVE = (".so", ".pyd", ".dylib", ".dll")
_WHEELS = "packaging.python.org: Binary distribution format"


@CHAPTER.check("entry_points", why="a host that looks for plugins stops with an ImportError")
def entry_points(subject: PluginSubject) -> None:
    """Each entry point of the plugin names a module that exists."""
    found = installation_of(subject).entry_points(*_GROUPS)
    expect(found, f"an entry point in one of {', '.join(_GROUPS)}", "none")
    for group, name, value in found:
        module = value.partition(":")[0].strip()
        expect(_exists(module), f"the module of {group}: {name} = {value}", "no such module")


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package that it should be in
        return False


@CHAPTER.check("wheel.tag", rests_on=_WHEELS, why="pip installs it where it cannot be loaded")
def wheel_tag(subject: PluginSubject) -> None:
    """A wheel with native libraries has a platform in its tag."""
    installation = installation_of(subject)
    stated = installation.distribution.read("WHEEL").decode().splitlines()
    tags = [line.partition(":")[2].strip() for line in stated if line.startswith("Tag:")]
    if not tags:
        raise NotTried(Verdict.NOT_RUN, "it was not installed from a wheel", applies=False)
    native = [path for path in installation.distribution.files() if path.suffix in _NATIVE]
    for tag in tags:
        expect_equal(len(tag.split("-")), 3, f"parts of the tag {tag}:")
        fits = not native or not tag.endswith("-any")
        expect(
            fits, f"a tag with a platform, for {', '.join(path.name for path in native[:1])}", tag
        )


@CHAPTER.check("wheel.contents", rests_on=_WHEELS, why="a file that it opens is missing")
def wheel_contents(subject: PluginSubject) -> None:
    """Each file that the distribution's RECORD lists exists."""
    listed = installation_of(subject).distribution.files()
    if not listed:
        raise NotTried(Verdict.NOT_RUN, "it has no RECORD", applies=False)
    missing = [path.name for path in listed if path.suffix != ".pyc" and not path.exists()]
    expect(not missing, "all files of RECORD", f"missing: {missing[:3]}")


@CHAPTER.check("wheel.version", rests_on=_WHEELS, why="reports cannot say what they are of")
def wheel_version(subject: PluginSubject) -> None:
    """The distribution states its name and its version."""
    found = installation_of(subject).distribution
    expect(found.name and found.version, "a name and a version", (found.name, found.version))


_ASK_UNKNOWN = """
import sys, plugrt
try:
    plugrt.devices()
except plugrt.errors.PlugrtError as error:
    print(type(error).__name__, {module!r} in sys.modules)
"""


@CHAPTER.check(
    "not_selected", rests_on="DESIGN: nothing unselected is imported; jax.config.jax_platforms",
    why="a plugin that nobody asked for slows each program down, or ends it",
)  # fmt: skip
def not_selected(subject: PluginSubject) -> None:
    """If JAX_PLATFORMS names something else, the plugin is not imported."""
    installation = installation_of(subject)
    code = _ASK_UNKNOWN.format(module=installation.module)
    said = installation.run(code, JAX_PLATFORMS="no_such_platform")
    expect_equal(said.split()[-1:], ["False"], f"{installation.module} in sys.modules:")


@CHAPTER.check(
    "selected", level=Level.BUFFERS, needs=Needs.CLIENT, rests_on="JAX_PLATFORMS",
    demand=Demand.REFERENCE,
    why="the variable that users set starts another backend, or none",
)  # fmt: skip
def selected(subject: PluginSubject) -> None:
    """JAX_PLATFORMS with the plugin's name makes it the backend of a program."""
    installation = installation_of(subject)
    code = "import plugrt; print(plugrt.devices()[0].platform)"
    found = installation.run(code, JAX_PLATFORMS=installation.name)
    expect_equal(found.splitlines()[-1:], [_platform(subject)], "the platform")


def _platform(subject: PluginSubject) -> str:
    return subject.client.platform


_UNDER_JAX = """
import jax
x = jax.numpy.arange(4.0) + 1
print(jax.devices()[0].platform, float(jax.jit(lambda v: (v * v).sum())(x)))
"""


@CHAPTER.check(
    "under_jax", level=Level.COMPUTES, needs=Needs.CLIENT, refusable=True,
    rests_on="JAX: plugin discovery through the entry points jax_plugins", demand=Demand.REFERENCE,
    why="users of JAX install it, and JAX does not find it",
)  # fmt: skip
def under_jax(subject: PluginSubject) -> None:
    """Stock JAX, where it is installed, finds the plugin by its name and computes on it."""
    installation = installation_of(subject)
    _require_jax(installation)
    found = installation.run(_UNDER_JAX, JAX_PLATFORMS=installation.name)
    expect_equal(found.splitlines()[-1:], [f"{_platform(subject)} 30.0"], "platform and sum")


def _require_jax(installation: Installation) -> None:
    if find_spec("jax") is None:
        raise NotTried(Verdict.NOT_RUN, "jax is not installed", applies=False)
    if not installation.entry_points("jax_plugins"):
        raise NotTried(Verdict.NOT_RUN, "it has no entry point jax_plugins", applies=False)
