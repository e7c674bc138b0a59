"""Plants random mutants in the product, and records which of them the tests do not find.

``python tools/mutants.py``: plants the mutants without an outcome in ``--data``
(docs/data/mutants.json); if that file does not exist, draws it by ``--seed`` at ``--revision``. It
saves after each mutant: stop it, and start it again with the same arguments to continue. ``python
tools/mutants.py --from docs/data/mutants.json --data NEW``: plants the mutants of an earlier run in
the code of another revision, each found by its function and its text.

It works in a clone in the temporary folder (--jobs: several). The first run at a revision records
which tests execute which line, in build/mutants: half an hour on two cores, and some hours for 300
mutants. The tests of a mutant are those that execute its line, the most specific first, for 60
seconds in total. If none does, they are tests of the files with the most similar names. A test that
also fails without the mutant does not count.

Outcomes: "killed", "timeout" and "crashed" (the tests found it), "survived", and "no test".
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from mutation.coverage_map import CoverageMap, Test, record, run_tests  # noqa: E402
from mutation.operators import Mutant, mutants_of  # noqa: E402
from mutation.tree import EXTENSIONS, PYTHON_SOURCES, Tree, run  # noqa: E402

DATA = ROOT / "docs/data/mutants.json"
SHARE_OF_C = 0.2
SECONDS = 60.0
STALLED = 400.0
"""Seconds without progress after which a run counts as hanging; the suite allows a test 300.
"""
NOT_PRODUCT = re.compile(
    r"/templates/|conformance/mutants/|_abi\.py|_handles\.py|_grown\.py|sources\.py|generate\.py"
)
NOTICED = ("killed", "timeout", "crashed")
Record = dict[str, Any]


def read_mutants(root: Path) -> list[Mutant]:
    """Returns every mutant of the product in a tree, file by file."""
    paths = [path for folder in PYTHON_SOURCES for path in sorted((root / folder).rglob("*.py"))]
    folders = {extension.sources: extension for extension in EXTENSIONS}
    paths += [path for folder in folders for path in sorted((root / folder).rglob("*.c"))]
    found = []
    for path in dict.fromkeys(paths):
        text = path.read_text(encoding="utf-8")
        if not NOT_PRODUCT.search(str(path.relative_to(root))) and "do not edit" not in text[:300]:
            found += mutants_of(str(path.relative_to(root)), text)
    return found


def draw(
    found: Sequence[Mutant],
    chance: random.Random,
    taken: set[Any],
    accept: Callable[[Mutant], bool],
) -> Mutant | None:
    """Draws an operator and a mutant of it that is not in ``taken`` and that ``accept`` allows.

    Returns None if there is none.
    """
    left = [mutant for mutant in found if mutant.key not in taken]
    while left:
        operator = chance.choice(sorted({mutant.operator for mutant in left}))
        mutant = chance.choice([one for one in left if one.operator == operator])
        if accept(mutant):
            taken.add(mutant.key)
            return mutant
        left.remove(mutant)
    return None


def name_of(mutant: Mutant) -> Record:
    """Returns the record of a mutant: its key and its current position."""
    function, operator, before, after, nth = mutant.key
    return {
        "function": function, "operator": operator, "before": before, "after": after, "nth": nth,
        "path": mutant.path, "line": mutant.line,
    }  # fmt: skip


def key_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the key of the mutant of a record."""
    return tuple(record[name] for name in ("function", "operator", "before", "after", "nth"))


def find_again(
    records: Sequence[Record],
    found: Sequence[Mutant],
    moved: Mapping[str, str],
    seed: int,
    accept: Callable[[Mutant], bool],
) -> list[Record]:
    """Returns records of an earlier run's mutants in this code, or of their replacements.

    ``moved`` has the new paths of renamed files. A removed mutant is replaced by one of the
    function with the same name, else of its file, else of any file; the record then has
    ``replaces``. Others have ``reference``, the earlier outcome.
    """
    by_key: dict[Any, list[Mutant]] = defaultdict(list)
    for mutant in found:
        by_key[mutant.key].append(mutant)
    taken = {key_of(record) for record in records}
    again = []
    for old in records:
        path = moved.get(old["path"], old["path"])
        same = by_key[key_of(old)]
        same.sort(key=lambda one: (one.path != path, Path(one.path).name != Path(path).name))
        if same:
            again.append({**name_of(same[0]), "reference": old.get("outcome")})
            continue
        alike = [one for one in found if one.is_c == old["path"].endswith(".c")]
        of_function = [one for one in alike if one.function == old["function"]]
        of_file = [one for one in alike if one.path == path]
        chance = random.Random(f"{seed} {key_of(old)}")
        for some in (of_function, of_file, alike):
            new = draw(some, chance, taken, accept)
            if new:
                replaces = f"{old['function']}: {old['before']}"
                again.append({**name_of(new), "replaces": replaces})
                break
    return again


def renamed_files(before: str, after: str, root: Path) -> dict[str, str]:
    """Returns the new paths of the files that git detects as renamed between two revisions."""
    listed = run(
        "git", "diff", "-M30%", "--name-status", "--diff-filter=R", before, after, cwd=root
    )
    return {old: new for _, old, new in (line.split("\t") for line in listed.splitlines())}


def rates(records: Sequence[Record]) -> dict[str, Any]:
    """Returns survival rates: of all mutants, by language, and of mutants of an earlier run."""

    def rate(some: Iterable[Record], key: str = "outcome") -> dict[str, Any]:
        counts = Counter(one[key] for one in some if one.get("outcome") and one.get(key))
        lived = counts.total() - sum(counts[noticed] for noticed in NOTICED)
        return {**counts, "of": counts.total(), "lived": round(lived / max(counts.total(), 1), 4)}

    found = {
        "all": rate(records),
        "Python": rate(one for one in records if not one["path"].endswith(".c")),
        "C": rate(one for one in records if one["path"].endswith(".c")),
    }
    common = [one for one in records if one.get("reference")]
    if common:
        found |= {"common": rate(common), "common at the reference": rate(common, "reference")}
    return found


class Planting:
    """Runs tests on mutants in one copy of the tree."""

    def __init__(self, tree: Tree, coverage: CoverageMap, unsound: set[str]) -> None:
        self.tree = tree
        self.coverage = coverage
        self.unsound = unsound
        self.sound: set[str] = set()

    def accept(self, mutant: Mutant) -> bool:
        """Whether a mutant compiles to code that differs from the original's."""
        text = (self.tree.folder / mutant.path).read_text(encoding="utf-8")
        if mutant.is_c:
            return self._compile(mutant, text) is not None
        try:
            new = compile(mutant.apply(text), mutant.path, "exec")
        except SyntaxError:
            return False
        return all_code(new) != all_code(compile(text, mutant.path, "exec"))

    def _compile(self, mutant: Mutant, text: str) -> Path | None:
        """Compiles a C file with a mutant; returns the object, None if it equals the original's."""
        source = self.tree.folder / mutant.path
        changed = self.tree.objects / "mutant" / source.name
        changed.parent.mkdir(exist_ok=True)
        objects = [changed.with_suffix(kind) for kind in (".first.o", ".second.o")]
        for made, content in zip(objects, (text, mutant.apply(text)), strict=True):
            changed.write_text(content, encoding="utf-8")
            if not self.tree.compile(changed, made, place=source):
                return None
        same = objects[0].read_bytes() == objects[1].read_bytes()
        return None if same else objects[1]

    def plant(self, mutant: Mutant) -> None:
        """Puts a mutant into the copy."""
        source = self.tree.folder / mutant.path
        text = source.read_text(encoding="utf-8")
        if not mutant.is_c:
            self.tree.write(mutant.path, mutant.apply(text))
            return
        made = self._compile(mutant, text)
        for extension in EXTENSIONS:
            sources = self.tree.sources_of(extension)
            if source in sources and made:
                objects = [self.tree.object_of(one) for one in sources if one != source]
                self.tree.link(extension, [*objects, made])

    def remove(self, mutant: Mutant) -> None:
        """Restores the original."""
        if mutant.is_c:
            self.tree.build()
        else:
            self.tree.restore()

    def judge(self, mutant: Mutant) -> Record:
        """Returns the outcome of a mutant, the test that found it, and the number of tests."""
        begun = time.monotonic()
        while True:
            chosen, covered = self.coverage.choose(mutant, SECONDS, self.unsound)
            self.plant(mutant)
            try:
                outcome, by, ran = self._run(chosen)
            finally:
                self.remove(mutant)
            if by is None or self._is_sound(by):
                break
        if outcome == "survived" and not (covered and ran):
            outcome = "no test"
        found: Record = {"outcome": outcome, "by": by.name} if by else {"outcome": outcome}
        return {**found, "ran": ran, "seconds": round(time.monotonic() - begun, 1)}

    def _run(self, chosen: Sequence[Test]) -> tuple[str, Test | None, int]:
        """Runs tests by target; returns the outcome, the failing test, and the number of tests."""
        ran = 0
        for target in sorted({test.target for test in chosen}):
            part = [test for test in chosen if test.target == target]
            outcomes, ended = self._run_part(part, target)
            by_name = {test.name: test for test in part}
            ran += sum(one["outcome"] not in ("skipped", "crashed") for one in outcomes.values())
            for name, one in outcomes.items():
                if one["outcome"] == "failed":
                    hung = "Timeout (>" in one.get("error", "")
                    return "timeout" if hung else "killed", by_name.get(name, part[0]), ran
            if ended not in (0, 5):
                begun = [by_name[name] for name in outcomes if name in by_name]
                kind = "timeout" if ended == "timeout" else "crashed"
                return kind, begun[-1] if begun else part[0], ran
        return "survived", None, ran

    def _run_part(self, part: Sequence[Test], target: str) -> tuple[dict[str, Any], int | str]:
        request = {"tests": [test.name for test in part]}
        return run_tests(self.tree, request, "mutant", STALLED, target)

    def _is_sound(self, test: Test) -> bool:
        """Whether a test passes without a mutant; the result is cached."""
        if test.name not in self.sound:
            outcomes, ended = self._run_part([test], test.target)
            if ended == 0 and outcomes.get(test.name, {}).get("outcome") in ("passed", "xfailed"):
                self.sound.add(test.name)
            else:
                self.unsound.add(test.name)
                print(f"fails without a mutant: {test.name}", flush=True)
        return test.name in self.sound


def all_code(code: Any) -> list[Any]:
    """Returns the instructions and constants of a code object and of those nested in it."""
    inner = [one for one in code.co_consts if hasattr(one, "co_code")]
    rest = [(type(one), one) for one in code.co_consts if not hasattr(one, "co_code")]
    return [code.co_code, code.co_names, code.co_varnames, rest, *map(all_code, inner)]


def save(path: Path, data: Mapping[str, Any]) -> None:
    """Saves the list with its outcomes atomically."""
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def make_list(
    arguments: argparse.Namespace, revision: str, accept: Callable[[Mutant], bool], root: Path
) -> dict[str, Any]:
    """Draws the mutants of a run, or finds those of an earlier run."""
    found = [one for one in read_mutants(root) if fits(one.path, arguments.files)]
    if arguments.earlier:
        old = json.loads(arguments.earlier.read_text(encoding="utf-8"))
        moved = renamed_files(old["revision"], revision, arguments.root)
        records = find_again(old["mutants"], found, moved, old["seed"], accept)
        return {"revision": revision, "seed": old["seed"], "mutants": records}
    chance, taken = random.Random(arguments.seed), set[Any]()
    in_c = [one for one in found if one.is_c]
    python = [one for one in found if not one.is_c]
    of_c = round(arguments.count * SHARE_OF_C) if in_c and python else arguments.count * bool(in_c)
    some = [in_c] * of_c + [python] * (arguments.count - of_c)
    drawn = [one for part in some if (one := draw(part, chance, taken, accept))]
    chance.shuffle(drawn)
    return {"revision": revision, "seed": arguments.seed, "mutants": list(map(name_of, drawn))}


def fits(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path matches one of the given globs, folders or files."""
    return not patterns or any(fnmatch(path, one) or path.startswith(one) for one in patterns)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the list with its outcomes")
    parser.add_argument("--from", dest="earlier", type=Path, help="an earlier list to find again")
    parser.add_argument("--revision", default="HEAD", help="the commit whose product is tried")
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--files", nargs="*", default=[], help="only mutants of these files")
    parser.add_argument("--again", action="store_true", help="try again those that lived")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree at work")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument(
        "--copies", type=Path, default=Path(tempfile.gettempdir()), help="where the copies are made"
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Draws or finds the mutants, plants those without an outcome, and prints the rates."""
    arguments = parse(words)
    data = json.loads(arguments.data.read_text("utf-8")) if arguments.data.exists() else None
    asked = data["revision"] if data else arguments.revision
    root: Path = arguments.root
    revision = run("git", "rev-parse", f"{asked}^{{commit}}", cwd=root).strip()
    folder = arguments.copies / "plugrt-mutants" / revision[:12]
    folder.mkdir(parents=True, exist_ok=True)
    trees = [Tree(root, revision, folder / f"tree-{job}") for job in range(arguments.jobs)]
    recorded = root / "build/mutants" / revision[:12]
    unsound: set[str] = set(data.get("unsound", ())) if data else set()
    plantings = [Planting(tree, CoverageMap(recorded), unsound) for tree in trees]
    if data is None:
        data = make_list(arguments, revision, plantings[0].accept, trees[0].folder)
        save(arguments.data, data)
    record(trees[0], recorded, arguments.jobs)
    by_key = {(one.path, one.key): one for one in read_mutants(trees[0].folder)}
    free: SimpleQueue[Planting] = SimpleQueue()
    for planting in plantings:
        free.put(planting)
    lock = threading.Lock()

    def try_one(entry: Record) -> None:
        planting = free.get()
        try:
            entry.pop("by", None)
            entry |= planting.judge(by_key[entry["path"], key_of(entry)])
        finally:
            free.put(planting)
        with lock:
            data.update(unsound=sorted(unsound), rates=rates(data["mutants"]))
            save(arguments.data, data)
            number = data["rates"]["all"]["of"]
            print(f"{number}: {entry['outcome']} {entry['path']} {entry['after']}", flush=True)

    done = NOTICED if arguments.again else (*NOTICED, "survived", "no test")
    left = [
        one
        for one in data["mutants"]
        if one.get("outcome") not in done and fits(one["path"], arguments.files)
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(try_one, left))
    print(json.dumps(rates(data["mutants"]), indent=1))


if __name__ == "__main__":
    main()
