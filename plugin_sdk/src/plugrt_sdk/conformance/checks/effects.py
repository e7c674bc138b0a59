"""Level 3: the state of the process that a plugin must not change."""

from __future__ import annotations

from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing.programs import ADD
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "effects",
    Level.BEHAVES,
    "docs/plugins.md: what belongs to the program",
    demand=Demand.REFERENCE,
)


def _use(subject: PluginSubject) -> None:
    """Starts the client, runs a program, deletes an array, and starts and closes another client."""
    [found] = subject.run(ADD, ONE, ONE)
    expect_equal(found.tolist(), (ONE + ONE).tolist(), "the sum:")
    subject.put(ONE).delete()
    subject.make_client().close()


def _expect_none(changes: list[str], expected: str) -> None:
    expect(not changes, expected, "; ".join(changes))


@CHAPTER.check("signals", why="Ctrl-C does nothing, or a program ends at a closed pipe")
def signals(subject: PluginSubject) -> None:
    """The plugin does not change signal handlers, blocked signals or the timer."""
    _use(subject)
    _expect_none(subject.process.signals(), "signals as they were")


@CHAPTER.check("files", why="a program's relative paths lead elsewhere, or others read its files")
def files(subject: PluginSubject) -> None:
    """The plugin does not change the working folder or the umask."""
    _use(subject)
    _expect_none(subject.process.files(), "the working folder and the umask as they were")


@CHAPTER.check("limits", why="a program cannot open files, or ends in the middle of its work")
def limits(subject: PluginSubject) -> None:
    """The plugin lowers no limit of the process."""
    _use(subject)
    _expect_none(subject.process.limits(), "limits no lower than they were")


@CHAPTER.check("descriptors", why="a program's files and connections end, or become others")
def descriptors(subject: PluginSubject) -> None:
    """The plugin closes no file that the program has opened."""
    _use(subject)
    _expect_none(subject.process.descriptors(), "the program's descriptors open")


@CHAPTER.check("environment", why="other plugins and child processes meet settings nobody made")
def environment(subject: PluginSubject) -> None:
    """The plugin does not change environment variables, neither in Python nor in C."""
    _use(subject)
    _expect_none(subject.process.environ(), "no changed variables")


@CHAPTER.check("arithmetic", why="sums that NumPy makes in the program change")
def arithmetic(subject: PluginSubject) -> None:
    """The plugin leaves the thread's rounding to nearest, and its subnormal numbers."""
    _use(subject)
    _expect_none(subject.process.arithmetic(), "the thread's arithmetic as it was")


@CHAPTER.check("path", why="a program's own modules are hidden by the plugin's")
def path(subject: PluginSubject) -> None:
    """The import and use of the plugin do not change sys.path."""
    _use(subject)
    _expect_none(subject.process.path(), "sys.path as it was")
