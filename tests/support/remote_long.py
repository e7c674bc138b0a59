"""Long runs of device servers: ``nox -s remote_long [-- kills|frames|sharing --count N]``."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time

from support.remote_frames import send_frames
from support.remote_kills import kill_clients, kill_servers
from support.remote_sharing import share

RUNS = {
    "kills": (500, (kill_servers, kill_clients)),
    "frames": (1_000_000, (send_frames,)),
}
"""Each with its count, and functions that return a `Held` of the first and of the last."""


def main() -> None:
    """Does one of the runs, or all, and prints counts and times; exits with 1 for a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", choices=[*RUNS, "sharing"])
    parser.add_argument("--count", type=int, help="kills of each, messages, or seconds")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failed = False
    for name, (usual, functions) in RUNS.items():
        count = given.count or usual
        for function in functions if given.run in (None, name) else ():
            faulthandler.dump_traceback_later(60 + 4 * count, exit=True)
            begin = time.monotonic()
            first, last = function(count, given.seed)
            took = time.monotonic() - begin
            print(f"{function.__name__}: {count} in {took:.1f} s; (descriptors, segments) after "
                  f"the first {first}, after the last {last}", flush=True)  # fmt: skip
            failed = failed or first != last
    if given.run in (None, "sharing"):
        failed = not share(given.count or 600) or failed
    sys.exit(failed)


if __name__ == "__main__":
    main()
