"""`Kubernetes`: the pods of an indexed Job, or of a JobSet."""

from __future__ import annotations

import os
import socket
import time
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from plugrt.distributed.cluster import ClusterEnvironment, read_number
from plugrt.errors import DistributedError, describe

_PORT = "55527"
JOB_SET = "jobset.sigs.k8s.io/jobset-name"


class Kubernetes(ClusterEnvironment):
    """Reads the pod's index from JOB_COMPLETION_INDEX, and the rest from the cluster's API.

    The API needs the package ``kubernetes`` and a service account that may read pods and jobs. A
    manifest that sets JAX_COORDINATOR_ADDRESS and JAX_NUM_PROCESSES needs neither.
    """

    name = "k8s"
    namespace_file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

    def is_env_present(self) -> bool:
        return "KUBERNETES_SERVICE_HOST" in os.environ and "JOB_COMPLETION_INDEX" in os.environ

    def get_coordinator_address(
        self, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        job = self._job
        subdomain = (job.metadata.labels or {}).get(JOB_SET) or self._pod.spec.subdomain
        if not subdomain:
            raise DistributedError(
                f"the pods of the job {job.metadata.name} cannot reach each other by name: that "
                "takes a headless service, named as `subdomain` in the template of the job's pods "
                "(examples/clusters/kubernetes.yaml has both)"
            )
        host = f"{job.metadata.name}-0.{subdomain}"
        self.await_name(host, timeout_secs or 0)
        return f"{host}:{override_coordinator_port or _PORT}"

    def get_process_count(self) -> int:
        return int(self._job.spec.parallelism)

    def get_process_id(self) -> int:
        return read_number("JOB_COMPLETION_INDEX", "Kubernetes")

    @cached_property
    def _api(self) -> Any:
        if find_spec("kubernetes") is None:
            raise DistributedError(
                "to ask Kubernetes for this job takes the package kubernetes (pip install "
                "kubernetes); or set JAX_COORDINATOR_ADDRESS and JAX_NUM_PROCESSES in the manifest"
            )
        import_module("kubernetes.config").load_incluster_config()
        return import_module("kubernetes.client")

    @cached_property
    def _namespace(self) -> str:
        with open(self.namespace_file, encoding="utf-8") as file:
            return file.read().strip()

    @cached_property
    def _pod(self) -> Any:
        return self._ask("CoreV1Api", "read_namespaced_pod", os.environ.get("HOSTNAME", ""))

    @cached_property
    def _job(self) -> Any:
        labels = self._pod.metadata.labels or {}
        name = labels.get("batch.kubernetes.io/job-name") or labels.get("job-name")
        if not name:
            raise DistributedError(
                f"the pod {self._pod.metadata.name} belongs to no Job: processes are found in "
                "Jobs with completionMode Indexed, and in JobSets"
            )
        return self._ask("BatchV1Api", "read_namespaced_job", name)

    def _ask(self, api: str, question: str, name: str) -> object:
        client = self._api
        try:
            return getattr(getattr(client, api)(), question)(name=name, namespace=self._namespace)
        except client.exceptions.ApiException as error:
            cure = "; its service account must be allowed to `get` pods and jobs"
            raise DistributedError(
                f"Kubernetes refused {question} of {name!r}: {error.status} {error.reason}"
                f"{cure if error.status == 403 else ''}"
            ) from error

    @staticmethod
    def await_name(host: str, seconds: float) -> None:
        """Waits until the first pod's name can be resolved, once the pod has started."""
        until = time.monotonic() + seconds
        while True:
            try:
                socket.getaddrinfo(host, None)
                return
            except socket.gaierror as error:
                if time.monotonic() >= until:
                    raise DistributedError(
                        f"the name {host} of the first pod is not known after {seconds} s: "
                        f"{describe(error)}"
                    ) from error
            time.sleep(min(1.0, max(0.0, until - time.monotonic())))
