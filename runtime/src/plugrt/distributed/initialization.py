"""`initialize`, `shutdown`: a process joins the others of its run, and leaves them."""

from __future__ import annotations

import atexit
import faulthandler
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from plugrt.distributed.initialize_arguments import (
    Parameters,
    find_coordination,
    find_parameters,
    find_secret,
    host_and_port,
)
from plugrt.distributed.watch import Watch, logger
from plugrt.errors import (
    ArgumentError,
    DeadlineExceeded,
    DistributedError,
    PjrtError,
    PlugrtError,
    describe,
)
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lifetime.thread_work import ThreadWork
from plugrt.plugins import vendors
from plugrt.plugins.coordination import (
    Connection,
    Coordination,
    Coordinator,
    Membership,
)
from plugrt.plugins.selection import backends
from plugrt.plugins.selection.clients import Backends

_RETRY_SECONDS = 0.1
_EXIT_SECONDS = 20.0
_LOOPBACK = ("localhost", "::1")


class Run:
    """The membership of this process in a run, from `initialize` to `shutdown`."""

    def __init__(
        self, connection: Connection, coordinator: Coordinator | None, backends: Backends
    ) -> None:
        self.connection, self._coordinator, self._backends = connection, coordinator, backends
        self.watch = Watch(connection)
        self.comparisons: dict[tuple[str, tuple[int, ...]], int] = {}
        """The number of comparisons so far, by series and processes."""

    def disconnect(self, failure: str = "") -> None:
        """Disconnects once all processes are ready; at once if this or another process failed."""
        connection = self.connection
        failed = bool(failure)
        if self.watch.coordinator_is_lost:
            failed = True
        elif failure:
            self.watch.tell_of_end(f"ended with {failure}")
        elif not self.watch.lost:
            seconds = connection.membership.shutdown_timeout
            try:
                connection.wait_at_barrier("plugrt/shutdown", int(seconds * 1000))
            except PjrtError as error:
                failed = True
                self.watch.tell_of_end(
                    f"left the run: it was done, and waited {seconds:g} s for the others "
                    "(shutdown_timeout_seconds)"
                )
                logger.warning(
                    "not all processes called shutdown within %g s: %s", seconds, describe(error)
                )
        self.watch.stop()
        self._backends.distributed = None
        failed = failed or bool(self.watch.lost)
        if failed:
            # Native code may never end because a lost process left work unfinished.
            faulthandler.dump_traceback_later(_EXIT_SECONDS, exit=True)
        if self.watch.coordinator_is_lost:
            return  # the coordinator is gone: there is no process to notify
        connection.close()
        self.watch.await_end()
        if self._coordinator is not None:
            self._coordinator.close()


# Process-wide: a process belongs to one run, as in JAX.
_run: Run | None = None
# Process-wide: guards `_run`.
_lock = threading.Lock()


@with_argument_errors
def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    partition_index: int | None = None,
    *,
    secret: str | None = None,
) -> None:
    """Joins this process to the others of a run; call it before any call that starts a backend.

    The arguments are ``jax.distributed.initialize``'s: process 0 starts a coordinator at
    ``coordinator_address`` (``host:port``), and all ``num_processes`` connect to it, each with a
    ``process_id`` of its own from 0. Missing arguments come from the settings
    (JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID, JAX_LOCAL_DEVICE_IDS), then from
    the launcher of the process: Open MPI, Slurm, Cloud TPU, Kubernetes, packages' own, or the
    ``cluster_detection_method`` that is named (also ``mpi4py`` and ``ray``; ``deactivate`` for
    none). ``local_device_ids`` restricts the GPUs that this process sees. Returns when all
    processes have connected.

    Deviations from JAX: the coordinator is a process of its own beside process 0, so that the
    others learn its name if that one is killed; its default address is the loopback interface if
    ``coordinator_address`` is on it. A process that ends, or sends no heartbeat for
    ``heartbeat_timeout_seconds``, is named in a `ProcessLost` that the others get, in the main
    thread. `shutdown`, also at exit, waits for all processes, ``shutdown_timeout_seconds`` at most.
    With a ``secret`` (PLUGRT_COORDINATOR_SECRET), the same in all, the coordinator gives an index
    only to processes with the same secret; SECURITY.md describes the protection.

    Raises `DistributedError` if it was called before, if a backend has started, for a
    ``process_id`` that another process has, or another ``secret``; `ArgumentError` with the names
    of missing arguments; and `DeadlineExceeded` with the address if the coordinator, or another
    process, is not there after ``initialization_timeout`` seconds.

    >>> plugrt.distributed.is_initialized()
    False
    """
    global _run
    with _lock:
        own = backends.process_backends()
        _require_fresh(own)
        for name, seconds in (
            ("initialization_timeout", initialization_timeout),
            ("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
            ("shutdown_timeout_seconds", shutdown_timeout_seconds),
        ):
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
                raise ArgumentError(f"{name} must be a number of seconds above 0; got {seconds!r}")
        ids: Any = local_device_ids  # one or several; checked with the other arguments
        given = Parameters(coordinator_address, num_processes, process_id, ids)
        found = find_parameters(given, cluster_detection_method, initialization_timeout, own.table)
        config = own.config
        if partition_index is None:
            partition_index = config.partition_index
        membership = Membership(
            str(found.coordinator_address), int(found.process_id or 0),
            int(found.num_processes or 1), initialization_timeout, heartbeat_timeout_seconds,
            shutdown_timeout_seconds, partition_index, _describe_self(),
            find_secret(secret, config.coordinator_secret),
        )  # fmt: skip
        bind = coordinator_bind_address or config.coordinator_bind_address
        run = _join(membership, bind, own)
        if found.local_device_ids:
            vendors.show_devices(config, found.local_device_ids)
        own.distributed = run.connection
        _run = run
        run.watch.start()


def _require_fresh(own: Backends) -> None:
    if _run is not None:
        me = _run.connection
        raise DistributedError(
            f"distributed.initialize was called before: this is process {me.process_id} of "
            f"{me.num_processes}; call it once, or plugrt.distributed.shutdown() in between"
        )
    if own.started_names:
        raise DistributedError(
            f"distributed.initialize is too late: {', '.join(own.started_names)} started, with "
            "the devices of this process alone. Call it before anything that requests devices: "
            "any computation, devices(), device_put"
        )


def _join(membership: Membership, bind: str | None, own: Backends) -> Run:
    """Starts the coordinator if this is process 0, connects, and registers the process's name."""
    coordination = find_coordination(own.table)
    coordinator = None
    if membership.process_id == 0:
        address = bind or _default_bind_address(membership.address)
        host_and_port(address, "coordinator_bind_address")
        logger.info("starting the coordinator at %s", address)
        coordinator = coordination.serve(address, membership)
    try:
        connection = _connect(coordination, membership)
    except BaseException:  # also for an interrupt: the service is stopped
        if coordinator is not None:
            coordinator.kill()
        raise
    connection.put(f"plugrt/process/{membership.process_id}", membership.name.encode())
    return Run(connection, coordinator, own)


def _describe_self() -> str:
    program = os.path.basename(sys.argv[0]) or "python"
    return f"{program}, process {os.getpid()} on {socket.gethostname()}"


def _default_bind_address(address: str) -> str:
    host, port = host_and_port(address, "coordinator_address")
    if host in _LOOPBACK or host.startswith("127."):
        return address
    return f"[::]:{port}" if socket.has_dualstack_ipv6() else f"0.0.0.0:{port}"


def _connect(coordination: Coordination, membership: Membership) -> Connection:
    """Returns the connection; raises `DeadlineExceeded` if it is not established in time.

    jaxlib ends the process if it cannot connect. So it is called only after a connection to the
    address has succeeded, in a thread that can be abandoned.
    """
    # Workaround for jaxlib-connect-timeout
    until = time.monotonic() + membership.initialization_timeout
    _await_listener(membership, until)
    logger.info("connecting to %s", membership.address)
    connecting: ThreadWork[Connection] = ThreadWork(lambda: coordination.connect(membership))
    if not connecting.start():
        connecting.run()
    if not connecting.wait(max(0.0, until - time.monotonic())):
        raise DeadlineExceeded(
            f"process {membership.process_id} is connected to the coordinator at "
            f"{membership.address}, but not all of the {membership.num_processes} processes are "
            f"after {membership.initialization_timeout:g} s (initialization_timeout)"
        )
    return connecting.result()


def _await_listener(membership: Membership, until: float) -> None:
    host, port = host_and_port(membership.address, "coordinator_address")
    while True:
        try:
            left = max(_RETRY_SECONDS, until - time.monotonic())
            socket.create_connection((host, port), timeout=left).close()
            return
        except OSError as error:
            if time.monotonic() + _RETRY_SECONDS >= until:
                raise DeadlineExceeded(
                    f"process {membership.process_id} finds no coordinator at "
                    f"{membership.address} after {membership.initialization_timeout:g} s "
                    f"(initialization_timeout; {describe(error)}). Process 0 starts it there: does "
                    "it run, with this coordinator_address?"
                ) from error
        time.sleep(_RETRY_SECONDS)


def is_initialized() -> bool:
    """Returns whether `initialize` has connected this process to others.

    >>> plugrt.distributed.is_initialized()
    False
    """
    return _run is not None


def current_run() -> Run | None:
    """Returns the run of this process; None in a single process."""
    return _run


def blame(error: PjrtError) -> PlugrtError:
    """Returns the `ProcessLost` that explains a failed exchange with other processes.

    Returns the error itself if no process is lost. Waits until that is known, for up to the
    heartbeat timeout. Backends call it with the errors of their collectives.
    """
    found = None if _run is None else _run.watch.explain(error)
    return error if found is None else found


@atexit.register
def _leave_at_exit() -> None:
    error = getattr(sys, "last_value", None)
    _disconnect("" if error is None else describe(error))


def shutdown() -> None:
    """Leaves the run: waits until all processes do, and disconnects. Nothing without `initialize`.

    Called when the interpreter exits; where an exception ends the program it does not wait, and the
    others receive the exception.

    >>> plugrt.distributed.shutdown()
    """
    run = _disconnect("")
    if run is not None and not backends.process_backends().started_names:
        _await_end(run.connection.membership.address)


def _disconnect(failed: str) -> Run | None:
    global _run
    with _lock:
        run, _run = _run, None
        if run is not None:
            run.disconnect(failed)
        return run


def _await_end(address: str) -> None:
    """Waits until nothing listens there: the next run must not find the old coordinator."""
    until = time.monotonic() + _EXIT_SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection(host_and_port(address, "the address"), timeout=1).close()
        except OSError:
            return
        time.sleep(_RETRY_SECONDS)
