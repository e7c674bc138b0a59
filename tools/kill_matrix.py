"""Runs the checks of its group on each mutant of the conformance kit, in separate processes.

Prints a line for each mutant and writes build/kill-matrix.json and build/kill-matrix.md; exits with
1 if a mutant survives its own check. WORDS on the command line select mutants whose names contain
them. FULL=1 runs all checks on each mutant (hours) instead of its group's. RECORD=FILE: only
mutants that no run in that file had; the figures of this run are added to it.

The mutants are also exported as PJRT libraries, and tested by the same checks and by
``pypjrt.conform`` if it is installed (`mutation.peer_kit`). Defects that only one of the two finds
through the C API are counted.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from mutation.forks import Ended, run_forks  # noqa: E402
from mutation.peer_kit import PeerKit, export, why_no_peer  # noqa: E402

import plugrt.programs.loading  # noqa: E402, F401  # before the forks, each of which needs it
from mutants import mutants  # noqa: E402
from mutants.host import NoLibrary  # noqa: E402
from mutants.killers import AT, KILLERS  # noqa: E402
from mutants.liars import CAUGHT_BY as LIES  # noqa: E402
from mutants.tables import SICK, TableFaults  # noqa: E402
from plugrt.plugins.library import LibraryPlugin  # noqa: E402
from plugrt.plugins.plugin import Plugin  # noqa: E402
from plugrt_sdk.conformance import registry  # noqa: E402
from plugrt_sdk.conformance.check import Check, Level, Needs  # noqa: E402
from plugrt_sdk.conformance.judge import judge  # noqa: E402
from plugrt_sdk.conformance.mutants.faults import Faults  # noqa: E402
from plugrt_sdk.conformance.reference import Reference  # noqa: E402
from plugrt_sdk.conformance.runner import Runner  # noqa: E402
from plugrt_sdk.conformance.subject import PluginSubject  # noqa: E402
from plugrt_sdk.conformance.target import Target  # noqa: E402
from plugrt_sdk.conformance.verdict import Result  # noqa: E402
from plugrt_sdk.conformance.worker import IMPORT, START  # noqa: E402
from support.sick_functions import CAUGHT_BY, SickFunctions  # noqa: E402

SECONDS = 20.0
FULL = os.environ.get("FULL") == "1"
FORK_SECONDS = 3600.0 if FULL else 120.0
RECORD = Path(os.environ["RECORD"]) if os.environ.get("RECORD") else None
MUTANT = "mutants:mutant"
BEFORE = "buffers.put_get.scalar"
IN_C = {f"c.{name}": check for name, check in CAUGHT_BY.items()}
"""Libraries in C, for crashes and hangs that Python cannot cause, to their own checks."""


@dataclass
class Row:
    """The results of one mutant. ``through_c`` and ``peer`` are None if it has no C form."""

    mutant: str
    check: str
    verdict: str = ""
    got: str = ""
    checks: int = 0
    others: Mapping[str, str] = field(default_factory=dict)
    """The other checks of the group that it fails, with their verdicts."""
    through_c: bool | None = None
    """Whether its group finds the defect in the exported library."""
    peer: Sequence[str] | None = None
    """The checks of the peer that fail on the mutant and pass on a sound backend."""

    @property
    def killed(self) -> bool:
        """Whether its own check found it."""
        return self.verdict in ("FAIL", "CRASH", "TIMEOUT")

    def take(self, results: Mapping[str, Result]) -> None:
        """Stores the results of the group."""
        own = results.get(self.check)
        self.verdict, self.got = (str(own.verdict), own.got) if own else ("NOT-RUN", "")
        self.checks = len(results)
        self.others = {
            key: str(result.verdict)
            for key, result in results.items()
            if result.verdict.is_bad and key != self.check
        }


class Recorded(Reference):
    """The reference interpreter with a cache of its answers."""

    def __init__(self, known: Mapping[bytes, Any]) -> None:
        super().__init__()
        self.known = dict(known)

    def evaluate(self, text: str, arguments: Sequence[Any]) -> Any:
        """Returns the result of `Reference.evaluate`, which needs a tenth of a second."""
        key = pickle.dumps((text, list(arguments)))
        if key not in self.known:
            self.known[key] = super().evaluate(text, arguments)
        return self.known[key]


REFERENCE = Recorded({})


def record_answers(checks: Sequence[Check]) -> None:
    """Fills the cache of `REFERENCE` by running these checks on a sound backend."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers"
        for _, ended in run_forks(partial(_record, checks), [path], FORK_SECONDS):
            if ended.how == "returned":
                REFERENCE.known = pickle.loads(path.read_bytes())  # written by this tool's fork


def _record(checks: Sequence[Check], path: Path) -> None:
    subject = PluginSubject(Target("object", "sound"), load=lambda: sound(2))
    subject.reference = REFERENCE
    for check in checks:
        judge(check, subject)
    path.write_bytes(pickle.dumps(REFERENCE.known))


def main() -> int:
    """Runs the mutants, two at a time, and returns the exit code."""
    words = sys.argv[1:]
    rows = {name: Row(name, own_check(name)) for name in (*mutants(), *IN_C)}
    rows = {name: row for name, row in rows.items() if all(word in name for word in words)}
    if not rows:
        print(f"no mutant has {' and '.join(words)} in its name", file=sys.stderr)
        return 2
    runs = json.loads(RECORD.read_text()) if RECORD else []
    for known in {name for run in runs for name in run["mutants"]}:
        rows.pop(known, None)
    if not rows:
        print(f"all of these mutants were in a run that {RECORD} has")
        return 0
    began = datetime.now(UTC)
    in_c = {name: rows.pop(name) for name in IN_C if name in rows}
    asked = {check.id: check for row in rows.values() for check in group(row.check)}
    record_answers([c for c in asked.values() if c.level is Level.COMPUTES])
    why = why_no_peer()
    for row in itertools.chain(run_kit(rows), run_in_c(in_c, with_peer=not why)):
        others = f"; also {', '.join(row.others)}" if row.others else ""
        print(
            f"{'killed' if row.killed else 'ALIVE '} {row.mutant}: {row.verdict}{others}",
            flush=True,
        )
    run_through_c(rows)
    if not why:
        run_peer(rows)
    rows |= in_c
    write(rows, why)
    if RECORD:
        minutes = round((datetime.now(UTC) - began).total_seconds() / 60)
        run = {"day": f"{began:%Y-%m-%d}", "minutes": minutes, **counts(list(rows.values()), why)}
        RECORD.write_text(json.dumps([*runs, {**run, "mutants": list(rows)}], indent=1) + "\n")
    return 0 if all(row.killed for row in rows.values()) else 1


_ENDS = {"_at_import": IMPORT, "_at_start": START}


def own_check(name: str) -> str:
    """Returns the check that a mutant was made for."""
    if name in SICK:
        return "abi.slots"
    if name in IN_C:
        return IN_C[name]
    if name in LIES:
        return LIES[name]
    if name not in KILLERS:
        return name
    return next((own for end, own in _ENDS.items() if name.endswith(end)), AT)


def group(own: str) -> Sequence[Check]:
    """Returns the checks of a check's group: its chapter; of operations the same operation."""
    if FULL:
        return list(registry.checks().values())
    prefix = own.rpartition(".")[0] if own.startswith("operations.") else own.partition(".")[0]
    return [check for check in registry.checks().values() if check.id.startswith(f"{prefix}.")]


def ends_its_process(row: Row) -> bool:
    """Whether only the kit's runner can judge a mutant, which ends its process."""
    alone = registry.find(row.check).needs is Needs.PROCESS
    return (
        alone
        or row.mutant in KILLERS
        or isinstance(mutants()[row.mutant], NoLibrary)
        or row.check == START
    )


def sound(devices: int = 1) -> Plugin:
    """Returns the backend that the mutants change, without a defect."""
    return Faults(devices=devices).plugin_of()


def run_kit(rows: Mapping[str, Row]) -> Iterator[Row]:
    """Yields the rows with the verdicts of the group's checks on each mutant.

    Most run in forks of this process. The kit's runner, which starts new processes, repeats a
    mutant that ends or hangs its fork.
    """
    sick = [row for row in rows.values() if ends_its_process(row)]
    well = [row for row in rows.values() if row not in sick]
    for row, ended in run_forks(judge_group, well, FORK_SECONDS):
        if ended.how != "returned":
            sick.append(row)
            continue
        row.take({key: Result.from_dict(found) for key, found in ended.value.items()})
        yield row
    with ThreadPoolExecutor(2) as pool:  # no forks from here on
        yield from pool.map(run_alone, sick)


def judge_group(row: Row) -> dict[str, Any]:
    """Returns the results of the group's checks that need no process of their own."""
    plugin = mutants()[row.mutant].plugin_of
    return judge_all(PluginSubject(Target("object", row.mutant), load=plugin), row)


def judge_all(subject: PluginSubject, row: Row) -> dict[str, Any]:
    """Returns the result of each check; its own check is first."""
    subject.reference = REFERENCE
    checks = sorted(group(row.check), key=lambda check: check.id != row.check)
    return {
        check.id: judge(check, subject).as_dict()
        for check in checks
        if check.needs is not Needs.PROCESS
    }


def run_alone(row: Row) -> Row:
    """Returns the row of a mutant from the report of the kit's runner."""
    target = Target("object", MUTANT, argument=row.mutant)
    row.take(Runner(target, group(row.check), SECONDS).run())
    return row


def run_in_c(rows: Mapping[str, Row], *, with_peer: bool) -> Iterator[Row]:
    """Yields the rows of libraries in C, with the runner's verdicts on their own checks.

    The library passes the checks directly before and after it.
    """
    if not rows or shutil.which("cc") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        made = SickFunctions(Path(folder))
        for row in rows.values():
            library = made.library(*row.mutant.removeprefix("c.").split("-"))
            names = dict.fromkeys((BEFORE, row.check, AT))
            target = Target("library", str(library))
            row.take(Runner(target, [registry.find(name) for name in names], SECONDS).run())
            row.through_c = row.killed
            if with_peer:
                peer = PeerKit(Path(folder))
                [(_, ended)] = run_forks(peer.failures_of, [library], SECONDS)
                row.peer = sorted(ended.value) if ended.how == "returned" else [f"({ended.how})"]
            yield row


def exportable(row: Row) -> bool:
    """Whether a mutant can be a PJRT library: not if the defect is in the plugin object."""
    found = mutants()[row.mutant]
    return isinstance(found, TableFaults) or (
        isinstance(found, Faults) and not found.plugin and not row.check.startswith("host.")
    )


def run_through_c(rows: Mapping[str, Row]) -> None:
    """Records which mutants their group finds in the exported library."""
    tried = [row for row in rows.values() if exportable(row)]
    kinds = {usual_kind(row): row for row in tried}
    usual = {}
    for row, ended in run_forks(judge_usual, kinds.values(), FORK_SECONDS):
        usual[usual_kind(row)] = set(ended.value)
    for row, ended in forks_of(judge_exported, tried):
        failed = ended.how != "returned" or set(ended.value) - usual[usual_kind(row)]
        row.through_c = bool(failed)


def usual_kind(row: Row) -> tuple[str, int]:
    """Returns the key of a mutant's sound backend: the mutant's first check, and its devices."""
    found = mutants()[row.mutant]
    return group(row.check)[0].id, found.devices if isinstance(found, Faults) else 1


def judge_usual(row: Row) -> list[str]:
    """Returns the checks of a mutant's group that fail on a sound backend as a library."""
    return fails_exported(sound(usual_kind(row)[1]), row)


def judge_exported(row: Row) -> list[str]:
    """Returns the checks of its group that fail on an exported mutant."""
    return fails_exported(mutants()[row.mutant].plugin_of(), row)


def fails_exported(plugin: Plugin, row: Row) -> list[str]:
    """Returns the checks of a group that fail on a plugin as a library."""
    library = LibraryPlugin("mutant", c_api=export(plugin))
    found = judge_all(PluginSubject(Target("object", "exported"), load=lambda: library), row)
    return [key for key, result in found.items() if Result.from_dict(result).verdict.is_bad]


def run_peer(rows: Mapping[str, Row]) -> None:
    """Records which checks of the peer fail for each mutant."""
    with tempfile.TemporaryDirectory() as folder:
        peer = PeerKit(Path(folder))
        tried = [row for row in rows.values() if exportable(row)]
        [(_, usual)] = run_forks(partial(peer_failures, peer), [None], FORK_SECONDS)
        for row, ended in forks_of(partial(peer_failures, peer), tried):
            # If its process ends there is no report, but the user notices that.
            told = ended.how == "returned"
            row.peer = sorted(set(ended.value) - set(usual.value)) if told else [f"({ended.how})"]


def peer_failures(peer: PeerKit, row: Row | None) -> list[str]:
    """Returns the checks of the peer that fail on a mutant, or on a sound backend for None."""
    return sorted(peer.failures(mutants()[row.mutant].plugin_of() if row else sound()))


def forks_of(function: Callable[[Row], Any], rows: Sequence[Row]) -> Iterator[tuple[Row, Ended]]:
    """Yields rows with the results of a function in a fork. Known hangs have a shorter limit."""
    killers = [row for row in rows if row.mutant in KILLERS]
    yield from run_forks(function, [row for row in rows if row not in killers], FORK_SECONDS)
    yield from run_forks(function, killers, SECONDS)


def write(rows: Mapping[str, Row], why_no_peer: str) -> None:
    """Writes the matrix as JSON and as Markdown, and prints the figures."""
    folder = Path("build")
    folder.mkdir(exist_ok=True)
    found = [{**asdict(row), "killed": row.killed} for row in rows.values()]
    (folder / "kill-matrix.json").write_text(json.dumps(found, indent=2) + "\n")
    lines = list(markdown(list(rows.values()), why_no_peer))
    (folder / "kill-matrix.md").write_text("\n".join(lines) + "\n")
    print("\n".join(figures(list(rows.values()), why_no_peer)))
    print(f"the matrix: {folder / 'kill-matrix.md'}, {folder / 'kill-matrix.json'}")


def counts(rows: Sequence[Row], why_no_peer: str) -> dict[str, int | None]:
    """Returns the numbers of mutants: killed, killed by their own check alone, found through C."""
    seen = [row for row in rows if row.through_c is not None]
    return {
        "count": len(rows),
        "killed": sum(row.killed for row in rows),
        "alone": sum(row.killed and not row.others for row in rows),
        "libraries": len(seen),
        "noticed": sum(bool(row.through_c) for row in seen),
        "peer": None if why_no_peer else sum(bool(row.peer) for row in seen),
        "peer_ended": None
        if why_no_peer
        else sum("".join(row.peer or ()).startswith("(") for row in seen),
    }


def figures(rows: Sequence[Row], why_no_peer: str) -> Iterator[str]:
    """Yields a summary of the matrix in a few lines."""
    n = counts(rows, why_no_peer)
    yield f"{n['killed']} of {n['count']} mutants are killed by their own check"
    yield f"{n['alone']} of these by that alone of its group"
    yield f"{n['libraries']} of them can be PJRT libraries. Of those, through the C API,"
    yield f"  the kit notices {n['noticed']}"
    said = f"notices {n['peer']} ({n['peer_ended']} by its own crash or hang)"
    yield f"  pypjrt.conform {f'was not tried: {why_no_peer}' if why_no_peer else said}"


def markdown(rows: Sequence[Row], why_no_peer: str) -> Iterator[str]:
    """Yields the lines of the matrix in Markdown."""
    yield "# Kill matrix"
    yield ""
    yield from figures(rows, why_no_peer)
    yield ""
    yield "| Mutant | Its check says | Others of the group | Through C | pypjrt.conform |"
    yield "| :-- | :-- | :-- | :-- | :-- |"
    for row in rows:
        through = {None: "", True: "noticed", False: "not noticed"}[row.through_c]
        peer = ", ".join(row.peer) or "not noticed" if row.peer is not None else ""
        others = ", ".join(row.others)
        yield f"| `{row.mutant}` | {row.verdict} | {others} | {through} | {peer} |"


if __name__ == "__main__":
    sys.exit(main())
