"""Runs the examples of several processes on a local Ray cluster and under Open MPI's mpirun.

usage: nox -s clusters

Ray, Open MPI, mpi4py and kubernetes-validate are installed with plugrt into build/clusters, an
environment of its own. Nothing leaves this machine, and Ray sends no statistics. The manifest for
Kubernetes is checked too. The exit code is 0 if all checks pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / "build/clusters"
BIN = HOME / "bin"
PACKAGES = ("ray", "openmpi", "mpi4py", "kubernetes-validate")
SECONDS = 300
QUIET = {
    "JAX_PLATFORMS": "cpu",
    "JAX_NUM_CPU_DEVICES": "2",
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
MPIRUN = (
    BIN / "mpirun",
    "-n",
    "2",
    "--oversubscribe",
    "--host",
    "localhost:2",
    "--bind-to",
    "none",
)
BY_MPI4PY = (
    "import plugrt; plugrt.distributed.initialize(cluster_detection_method='mpi4py', "
    "initialization_timeout=60); print(plugrt.process_index(), 'of', plugrt.device_count())"
)


def install() -> None:
    """Makes the environment, with the working tree's plugrt."""
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "venv", "--quiet", "--allow-existing", HOME], check=True)
    ours = [f"{ROOT / 'runtime'}[trace]", str(ROOT / "plugins/cpu"), str(ROOT / "plugins/remote")]
    names = ("plugrt", "plugrt-cpu", "plugrt-remote")
    again = [word for name in names for word in ("--reinstall-package", name)]
    command: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", BIN / "python"]
    subprocess.run([*command, *again, *PACKAGES, *ours], check=True)


def run(title: str, command: tuple[object, ...], expected: tuple[str, ...]) -> bool:
    """Runs a command and prints its output; returns whether the output is as expected."""
    print(f"== {title}: {' '.join(Path(str(part)).name for part in command[:2])}", flush=True)
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **QUIET, "PATH": path},
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr, sep="", flush=True)
    fits = done.returncode == 0 and all(line in done.stdout + done.stderr for line in expected)
    print(f"{title}: {'as expected' if fits else f'NOT as expected (exit {done.returncode})'}")
    return fits


def main() -> int:
    """Returns 0 if all runs are as expected."""
    install()
    python, examples = BIN / "python", ROOT / "examples"
    results = [
        run(
            "Ray",
            (python, examples / "ray_cluster.py"),
            ("devices: [(0, 2, 4), (1, 2, 4)]", "in each: [6.0, 6.0]"),
        ),
        run(
            "device servers on Ray",
            (python, examples / "servers_on_ray.py"),
            ("killed:", "[0. 2. 4. 6.] on the server that Ray has started again"),
        ),
        run(
            "mpirun",
            (*MPIRUN, python, examples / "multiprocess.py"),
            ("process 0 of 2: 2 of 4 devices", "process 1 of 2: 2 of 4 devices"),
        ),
        run("mpi4py", (*MPIRUN, python, "-c", BY_MPI4PY), ("0 of 4", "1 of 4")),
        run(
            "Kubernetes",
            (BIN / "kubernetes-validate", "--strict", examples / "clusters/kubernetes.yaml"),
            ("service/plugrt", "job/train"),
        ),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
