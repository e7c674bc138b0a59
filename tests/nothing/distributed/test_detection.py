"""Detection of a run's processes: launchers' variables, as in JAX, and hooks of packages."""

from __future__ import annotations

import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrt.distributed import kubernetes, ray
from plugrt.distributed.initialize_arguments import (
    OWN,
    Parameters,
    find_environment,
    find_parameters,
    find_secret,
    host_and_port,
)
from plugrt.errors import ArgumentError, DistributedError, PlugrtError, WrongType
from support.behaviour import behaviour
from support.distributions import install
from support.registries import registry
from support.watched_calls import at_calls

SLURM = {
    "SLURM_JOB_ID": "5004",
    "SLURM_STEP_NODELIST": "node[004-0015,20],host2",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}
OPEN_MPI_4 = {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", **OPEN_MPI}
TPU = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "h0, h1,h2"}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID", "TPU_PROCESS_ADDRESSES"):
        monkeypatch.delenv(name, raising=False)


def found(
    monkeypatch: pytest.MonkeyPatch, site: Path, variables: dict[str, str],
    method: str | None = None, stated: Parameters | None = None, **environ: str,
) -> tuple[Any, ...]:  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    table = registry(path=site, **environ).table
    given = stated or Parameters(None, None, None, None)
    p = find_parameters(given, method, 1, table)
    local = p.local_device_ids
    return (
        p.coordinator_address,
        p.num_processes,
        p.process_id,
        None if local is None else list(local),
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (SLURM, ("node004:62348", 8, 5, [1])),
        ({**SLURM, "SLURM_STEP_NODELIST": "a1,b[2-3]"}, ("a1:62348", 8, 5, [1])),
        ({**SLURM, "SLURM_STEP_NODELIST": "rack[7,9]-x,b"}, ("rack7-x:62348", 8, 5, [1])),
        (OPEN_MPI_4, ("10.96.0.1:62624", 4, 3, [1])),
        (
            {**OPEN_MPI_4, "OMPI_MCA_orte_hnp_uri": "4096.0;tcp6://[fe80::b9b,2620::2]:43370"},
            ("[fe80::b9b]:61441", 4, 3, [1]),
        ),
        (
            {**OPEN_MPI, "PMIX_SERVER_URI41": "prterun-x.0;tcp4://10.1.0.7:4242"},
            ("10.1.0.7:", 4, 3, [1]),
        ),
        (TPU, ("h0:8482", 3, 1, None)),
        (
            {**TPU, "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1",
             "MEGASCALE_COORDINATOR_ADDRESS": "first:9"},
            ("first:8482", 6, 4, None),
        ),
        ({**TPU, "TPU_PROCESS_ADDRESSES": "p0:8476,p1:8476"}, ("p0:8482", 2, 1, None)),
    ],
)  # fmt: skip
@behaviour(114, "Slurm, Open MPI 4 and 5 and Cloud TPU are found by the variables that they set")
def test_launchers_variables(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    expected: tuple[Any, ...],
) -> None:
    address, *others = found(monkeypatch, tmp_path, variables)
    assert address.startswith(expected[0])
    host_and_port(address, "address")
    assert tuple(others) == expected[1:]


@pytest.mark.parametrize("variables", [TPU, SLURM, OPEN_MPI_4, {}])
def test_launchers_are_found_without_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str]
) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise AssertionError("the network was asked")

    asks = (socket.create_connection, socket.getaddrinfo, socket.socket.__init__)
    says = pytest.raises(ArgumentError, match="none of ompi, slurm, tpu")
    with nullcontext() if variables else says, at_calls(asks, refuse):
        found(monkeypatch, tmp_path, variables)


@pytest.mark.parametrize("variables", [SLURM, OPEN_MPI_4], ids=["slurm", "ompi"])
def test_launchers_variables_are_read_as_jax_reads_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str]
) -> None:
    cluster = pytest.importorskip("jax._src.clusters.cluster").ClusterEnv
    ours = found(monkeypatch, tmp_path, variables)
    jaxs = cluster.auto_detect_unset_distributed_params(None, None, None, None, None, 1)
    assert ours == (jaxs[0], jaxs[1], jaxs[2], list(jaxs[3]))


@behaviour(114, "what is stated comes before settings, and these before what launchers say")
def test_arguments_precede_settings_and_settings_launchers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stated = Parameters(None, 16, None, None)
    settings = {"JAX_PROCESS_ID": "9", "JAX_COORDINATOR_PORT": "77", "JAX_NUM_PROCESSES": "10"}
    assert found(monkeypatch, tmp_path, SLURM, None, stated, **settings) == (
        "node004:77", 16, 9, [1],
    )  # fmt: skip
    whole = {**settings, "JAX_COORDINATOR_ADDRESS": "[::1]:8", "JAX_LOCAL_DEVICE_IDS": "2,3"}
    assert found(monkeypatch, tmp_path, SLURM, "deactivate", **whole) == ("[::1]:8", 10, 9, [2, 3])


@pytest.mark.parametrize(
    ("stated", "method", "error", "words"),
    [
        ((None, None, None), None, ArgumentError,
         "coordinator_address and num_processes and process_id, which are not given.*"
         "JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID.*none of ompi, slurm, tpu"),
        (("h:1", 2, None), "deactivate", ArgumentError, "needs process_id, which is not.*none was"),
        (("h:1", 2, None), "slrum", ArgumentError, "'slrum' is not known; there are ompi, slurm"),
        (("h:1", 2, None), "slurm", DistributedError, "was not started by that"),
        (("h:1", 2, 2), None, ArgumentError, "process_id=2 of num_processes=2: .* from 0"),
        (("h:1", 0, 0), None, ArgumentError, "process_id=0 of num_processes=0"),
        (("h:1", 2, "1"), None, WrongType, "process_id must be a whole number; got '1', a str"),
        (("h:1", 2.0, 1), None, WrongType, "num_processes must be a whole number; got 2.0"),
        (("h", 2, 1), None, ArgumentError, "'h' is not of the form host:port"),
        (("h:99999", 2, 1), None, ArgumentError, "'h:99999' is not of the form"),
        (("::1:80", 2, 1), None, ArgumentError, "IPv6 address in brackets"),
    ],
)  # fmt: skip
@behaviour(114, "contradictions and missing settings are refused by name, before anything else")
def test_impossible_parameters_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stated: Any, method: str | None,
    error: type[PlugrtError], words: str,
) -> None:  # fmt: skip
    with pytest.raises(error, match=words):
        found(monkeypatch, tmp_path, {}, method, Parameters(*stated, None))


def test_a_package_adds_its_own_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = """
        from plugrt.distributed import ClusterEnvironment
        from plugrt.plugins import hookimpl

        class Grid(ClusterEnvironment):
            name = "grid"
            def is_env_present(self): return True
            def get_coordinator_address(self, timeout_secs, override_coordinator_port):
                return f"grid0:{override_coordinator_port or 5}"
            def get_process_count(self): return 3
            def get_process_id(self): return 2

        @hookimpl
        def plugrt_cluster_environments():
            return [Grid()]
    """
    install(tmp_path, "grid-dist", {"plugrt.clusters": {"grid": "grid_module"}},
            {"grid_module": source})  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    assert found(monkeypatch, tmp_path, {}) == ("grid0:5", 3, 2, None)
    assert found(monkeypatch, tmp_path, {}, "grid", JAX_COORDINATOR_PORT="8")[0] == "grid0:8"
    table = registry(path=tmp_path).table
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert find_environment(table, None).name == "grid"  # type: ignore[union-attr]


def kubernetes_module(pod: Any, job: Any, refuse: int = 0) -> dict[str, ModuleType]:
    """Returns a replacement of the package ``kubernetes``."""

    class ApiException(Exception):
        status, reason = refuse, "Forbidden"

    def answer(value: Any) -> Any:
        def read(name: str, namespace: str) -> Any:
            assert namespace == "space"
            if refuse:
                raise ApiException
            return value

        return read

    config, client = ModuleType("kubernetes.config"), ModuleType("kubernetes.client")
    config.load_incluster_config = lambda: None  # type: ignore[attr-defined]
    client.exceptions = SimpleNamespace(ApiException=ApiException)  # type: ignore[attr-defined]
    client.CoreV1Api = lambda: SimpleNamespace(read_namespaced_pod=answer(pod))  # type: ignore[attr-defined]
    client.BatchV1Api = lambda: SimpleNamespace(read_namespaced_job=answer(job))  # type: ignore[attr-defined]
    whole = ModuleType("kubernetes")
    whole.__spec__ = SimpleNamespace(name="kubernetes")  # type: ignore[assignment]
    return {"kubernetes": whole, "kubernetes.config": config, "kubernetes.client": client}


@pytest.mark.parametrize(
    ("labels", "subdomain", "refuse", "expected"),
    [
        ({"job-name": "job"}, "pods", 0, "job-0.pods:55527"),
        ({"job-name": "job"}, None, 0, "headless service"),
        ({"job-name": "job", "set": "trial"}, None, 0, "job-0.trial:55527"),
        ({}, "pods", 0, "belongs to no Job"),
        ({"job-name": "job"}, "pods", 403, "403 Forbidden; its service account must be allowed"),
    ],
)
@behaviour(114, "Kubernetes is asked for the Job or JobSet of the pod; what it refuses is named")
def test_kubernetes_is_asked_for_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, labels: dict[str, str], subdomain: str | None,
    refuse: int, expected: str,
) -> None:  # fmt: skip
    environment = next(one for one in OWN if one.name == "k8s")
    assert isinstance(environment, kubernetes.Kubernetes)
    environment.__dict__.clear()
    in_set = {kubernetes.JOB_SET: labels["set"]} if "set" in labels else {}
    pod = SimpleNamespace(metadata=SimpleNamespace(name="pod", labels=labels),
                          spec=SimpleNamespace(subdomain=subdomain))  # fmt: skip
    job = SimpleNamespace(metadata=SimpleNamespace(name="job", labels=in_set),
                          spec=SimpleNamespace(parallelism=4))  # fmt: skip
    for name, module in kubernetes_module(pod, job, refuse).items():
        monkeypatch.setitem(sys.modules, name, module)
    (tmp_path / "namespace").write_text("space\n")
    environment.namespace_file = str(tmp_path / "namespace")
    vars(environment)["await_name"] = lambda host, seconds: None
    pod_variables = {"KUBERNETES_SERVICE_HOST": "k", "JOB_COMPLETION_INDEX": "2"}
    try:
        if ":" in expected:
            assert found(monkeypatch, tmp_path, pod_variables) == (expected, 4, 2, None)
        else:
            with pytest.raises(DistributedError, match=expected):
                found(monkeypatch, tmp_path, pod_variables)
    finally:
        environment.__dict__.clear()


def test_kubernetes_without_its_package_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    pod = {"KUBERNETES_SERVICE_HOST": "k", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "job-2"}
    with pytest.raises(DistributedError, match=r"pip install kubernetes.*JAX_COORDINATOR_ADDRESS"):
        found(monkeypatch, tmp_path, pod)
    settings = {"JAX_COORDINATOR_ADDRESS": "job-0.pods:1", "JAX_NUM_PROCESSES": "4"}
    assert found(monkeypatch, tmp_path, pod, **settings) == ("job-0.pods:1", 4, 2, None)


def test_rays_processes_are_counted_as_they_come() -> None:
    point = ray.MeetingPoint()
    assert [point.join(), point.join(), point.address()] == [0, 1, None]
    point.announce("10.0.0.1:5")
    assert point.address() == "10.0.0.1:5"


@pytest.mark.parametrize("ids", ["a", 1.5, [0, "1"], [True], [-1], [1, 1]])
def test_indices_of_devices_are_read_before_anything_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ids: Any
) -> None:
    stated = Parameters("127.0.0.1:1", 2, 0, ids)
    with pytest.raises(ArgumentError, match=r"local_device_ids .* got "):
        found(monkeypatch, tmp_path, {}, stated=stated)
    stated = Parameters("127.0.0.1:1", 2, 0, np.int64(3))  # type: ignore[arg-type]
    assert found(monkeypatch, tmp_path, {}, stated=stated)[3] == [3]


@pytest.mark.parametrize(
    ("given", "variable", "says"),
    [("", None, "it has none"), ("\ud800", None, "not of UTF-8"), (None, "\udcff", "not of UTF-8")],
)
def test_a_secret_that_is_none_or_no_text_is_refused(
    given: str | None, variable: str | None, says: str
) -> None:
    with pytest.raises(ArgumentError, match=f"secret must have at least one character.*{says}"):
        find_secret(given, variable)
    with pytest.raises(WrongType, match="secret must be a text; got a bytes"):
        find_secret(b"secret", variable)
