"""Records which tests execute which lines of the product, and how long they run."""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from mutation.operators import Mutant
from mutation.tree import EXTENSIONS, HERE, PYTHON_SOURCES, Extension, Tree, run

TARGETS = ("", "sdk", "processes", "lifetimes", "python_calls", "as_jax")
"""The sessions of nox whose tests are recorded; the first is `make test`."""
LEFT_OUT = ("tests/gpu", "tests/vendors", "tests/cpu/packaging", "tests/frozen")
"""Folders of tests that need hardware or a network, or that install built packages."""
FILES_A_RUN = 8
FILE_SECONDS = 0.3
"""Seconds to collect the tests of a file."""
NEAREST = 12
"""The number of nearest test files to use if no test executes a line in its own process."""
RUN_SECONDS = 3600.0


def run_tests(
    tree: Tree, request: Mapping[str, Any], name: str, stalled: float, target: str = ""
) -> tuple[dict[str, Any], int | str]:
    """Runs tests in the copy; returns their outcomes, and the exit status or "timeout".

    Ends the run if the answer has not changed for ``stalled`` seconds; a busy machine only makes a
    run longer.
    """
    folder = tree.objects / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    asked, answer = folder / f"{name}.request.json", folder / f"{name}.answer.json"
    answer.unlink(missing_ok=True)
    asked.write_text(json.dumps({**request, "answer": str(answer)}), encoding="utf-8")
    environment = tree.environment | ({"PLUGRT_TEST_TARGET": target} if target else {})
    with (folder / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(
            [*apart(), tree.python, str(HERE / "run_tests.py"), str(asked)],
            cwd=tree.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ended: int | str | None = None
        moved = time.time()
        try:
            while ended is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    ended = child.wait(5)
                if answer.exists():
                    moved = max(moved, answer.stat().st_mtime)
                if ended is None and time.time() - moved > stalled:
                    ended = "timeout"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # also children that tests left behind
            child.wait()
    found = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}
    return found, ended


def apart() -> list[str]:
    """Returns the prefix of a command that runs it in a process namespace of its own.

    A mutant of code that ends processes may end any. The first process is a shell, since the first
    process of a namespace ignores signals that it sends to itself; all others end with it.
    """
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if shutil.which("unshare") and subprocess.run([*command, "true"], check=False).returncode == 0:
        return [*command, "sh", "-c", '"$@" & wait $!', "sh"]
    return []


def group_tests(tree: Tree) -> dict[str, tuple[str, list[str]]]:
    """Returns the runs of a recording by name: the target and the test files of each."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for path in sorted((tree.folder / "tests").rglob("test_*.py")):
        file = path.relative_to(tree.folder)
        if not str(file).startswith(LEFT_OUT):
            folders[file.parent].append(str(file))
    runs = {}
    for folder, files in folders.items():
        for target in TARGETS:
            chosen = [
                f for f in files if not target or f'"{target}"' in (tree.folder / f).read_text()
            ]
            for start in range(0, len(chosen), FILES_A_RUN):
                name = str(folder).replace("/", ".") + f"-{start // FILES_A_RUN}"
                part = chosen[start : start + FILES_A_RUN]
                runs[f"{name}@{target}" if target else name] = (target, part)
    return runs


def record(tree: Tree, folder: Path, jobs: int) -> None:
    """Runs each group of tests without a record in ``folder``, counting lines and blocks."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = group_tests(tree)
    missing = [name for name in runs if not (folder / f"{name}.json.z").exists()]
    if not missing:
        return
    tree.build(counted=True)

    def record_one(name: str) -> None:
        target, files = runs[name]
        data = folder / f"{name}.sqlite"
        data.unlink(missing_ok=True)
        request = {
            "tests": files,
            "coverage": str(data),
            "sources": [str(tree.folder / source) for source in PYTHON_SOURCES],
            "extensions": [one.module for one in EXTENSIONS if one.module],
            "options": ["-m", "apart"] if target else [],
        }
        found, ended = run_tests(tree, request, f"record-{name}", RUN_SECONDS, target)
        packed = zlib.compress(json.dumps({"target": target, "tests": found}).encode())
        (folder / f"{name}.json.z").write_bytes(packed)
        passed = sum(test["outcome"] == "passed" for test in found.values())
        print(f"recorded {name}: {passed} of {len(found)} tests passed ({ended})", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(record_one, missing))
    built = [one for one in EXTENSIONS if one.module and tree.sources_of(one)]
    block_lines = {one.module: lines_of_blocks(tree, one) for one in built}
    (folder / "blocks.json").write_text(json.dumps(block_lines), encoding="utf-8")
    tree.build()


def lines_of_blocks(tree: Tree, extension: Extension) -> dict[int, str]:
    """Returns the ``path:line`` of each basic block of an instrumented extension."""
    library = tree.folder / extension.built
    code = run("objdump", "-d", "--no-show-raw-insn", library)
    calls = re.findall(r"call +[0-9a-f]+ <__sanitizer_cov_trace_pc.*>\n +([0-9a-f]+):", code)
    named = subprocess.run(
        ["addr2line", "-e", str(library)],
        input="\n".join(calls),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = {}
    for offset, line in zip(calls, named, strict=True):
        path = line.split(" ")[0]
        if path.startswith(str(tree.folder)):
            found[int(offset, 16)] = os.path.relpath(path, tree.folder)
    return found


@dataclass(frozen=True)
class Test:
    """A recorded test."""

    name: str
    target: str
    seconds: float
    reached: int = 0
    """The number of product lines that it executes."""
    blocks: Mapping[str, Sequence[int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def file(self) -> str:
        """Its file."""
        return self.name.split("::")[0]

    @property
    def function(self) -> str:
        """Its name without parameters."""
        return self.name.split("[")[0]


class CoverageMap:
    """The records that `record` wrote to ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def tests(self) -> dict[str, Test]:
        """The tests by name, without skipped ones.

        Tests that failed during the recording are included: counting lines may be the reason.
        """
        found: dict[str, Test] = {}
        reached = self._count_lines()
        for path in sorted(self.folder.glob("*.json.z")):
            record = json.loads(zlib.decompress(path.read_bytes()))
            for name, test in record["tests"].items():
                if test["outcome"] != "skipped":
                    blocks = test.get("blocks", {})
                    found[name] = Test(
                        name, record["target"], test["seconds"], reached.get(name, 0), blocks
                    )
        return found

    def _count_lines(self) -> dict[str, int]:
        counts: dict[str, int] = defaultdict(int)
        for context, _, bits in self._rows("1", ()):
            counts[context] += int.from_bytes(bits, "little").bit_count()
        return counts

    def _rows(self, where: str, values: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
        query = (
            "select context.context, file.path, numbits from line_bits "
            "join context on context.id = context_id join file on file.id = file_id "
            f"where context.context != '' and {where}"
        )
        for path in sorted(self.folder.glob("*.sqlite")):
            with sqlite3.connect(path) as data:
                yield from data.execute(query, values)
            data.close()

    @cached_property
    def block_lines(self) -> dict[str, list[tuple[int, str, int]]]:
        """The line, module and offset of each basic block, by C file and in order of lines."""
        found = defaultdict(list)
        recorded = json.loads((self.folder / "blocks.json").read_text(encoding="utf-8"))
        for module, blocks in recorded.items():
            for offset, place in blocks.items():
                path, _, line = place.partition(":")
                if line.isdecimal():
                    found[path].append((int(line), module, int(offset)))
        return {path: sorted(blocks) for path, blocks in found.items()}

    def covering(self, path: str, first: int, last: int) -> list[Test]:
        """Returns the tests that execute a line of a statement; in C the block with the line.

        ``first`` and ``last`` are lines of the statement; in C, the function's line and its own.
        """
        if path.endswith(".c"):
            return self._reaching(path, first, last)
        covering = []
        for name, _, bits in self._rows("file.path like '%/' || ?", (path,)):
            number = int.from_bytes(bits, "little")
            if name in self.tests and number >> first & ((1 << (last - first + 1)) - 1):
                covering.append(self.tests[name])
        return covering

    def _reaching(self, path: str, first: int, last: int) -> list[Test]:
        """Returns the tests that reach the last block at or above a line of C."""
        blocks = [one for one in self.block_lines.get(path, ()) if first <= one[0] <= last]
        begin = blocks[-1][0] if blocks else 0
        wanted = {(module, offset) for line, module, offset in blocks if line == begin}
        covering = []
        for test in self.tests.values():
            for module, offset in wanted:
                reached = test.blocks.get(module, ())
                at = bisect.bisect_left(reached, offset)
                if at < len(reached) and reached[at] == offset:
                    covering.append(test)
                    break
        return covering

    def near(self, place: str) -> dict[str, float]:
        """Returns how similar each test file's name is to the name of a product file or function.

        Tests mirror the source tree: the score is the sum of the weights of the words that both
        names have. A word has less weight the more test files have it.
        """
        files = {test.file for test in self.tests.values()}
        words = {file: words_of(file) for file in files}
        common = Counter(word for some in words.values() for word in some)
        asked = words_of(place)
        return {file: sum(1 / common[word] for word in words[file] & asked) for file in files}

    def choose(self, mutant: Mutant, seconds: float, left_out: set[str]) -> tuple[list[Test], bool]:
        """Returns tests for a mutant, the most specific first, that need ``seconds`` in total.

        Also returns whether they execute its line; if no test does, they are from the nearest
        files. Tests of near files come first, then tests that execute few lines. One half is chosen
        with all functions in turn, since parametrised cases mostly fail together, the other half
        with all files in turn: thousands of tests execute some lines.
        """
        near = self.near(f"{mutant.path}/{mutant.function}")
        tests = self.covering(mutant.path, mutant.first, mutant.line)
        covered = bool(tests)
        if not tests:
            files = sorted(near, key=lambda file: -near[file])[:NEAREST]
            tests = [test for test in self.tests.values() if test.file in files]
        order = sorted(tests, key=lambda one: (-near[one.file], one.reached, one.seconds))
        order = [test for test in order if test.name not in left_out]
        by_function = in_turn(order, lambda test: test.function)
        by_file = in_turn(order, lambda test: test.file)
        chosen: list[Test] = []
        seen: set[str] = set()
        for test in dict.fromkeys(chain.from_iterable(zip(by_function, by_file, strict=True))):
            cost = test.seconds + FILE_SECONDS * (test.file not in seen)
            if not chosen or cost <= seconds:
                chosen.append(test)
                seen.add(test.file)
                seconds -= cost
        return chosen, covered


def in_turn(tests: Sequence[Test], group: Callable[[Test], str]) -> list[Test]:
    """Orders tests: the first of each group, then the second of each, and so on."""
    rounds: Counter[str] = Counter()
    ranked = []
    for place, test in enumerate(tests):
        ranked.append((rounds[group(test)], place))
        rounds[group(test)] += 1
    return [tests[place] for _, place in sorted(ranked)]


def words_of(path: str) -> set[str]:
    """Returns the words of a path by their first letters: "trace" and "tracing" are the same."""
    words = {word[:4] for word in re.split(r"[^a-z]+", path.lower()) if len(word) > 2}
    return words - {"src", "test", "init", "plug"}
