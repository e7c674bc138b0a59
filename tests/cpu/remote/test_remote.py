"""The plugin ``remote`` with a server of cpu devices: same results, and errors in time."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
import trustme

import plugrt
from plugrt.errors import (
    AlreadyExists,
    ArgumentTypeError,
    ConfigError,
    DeletedBuffer,
    InvalidArgument,
    PjrtError,
    Unavailable,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, ExecuteOptions, Program
from plugrt_cpu.create_client import start
from plugrt_numpy import plugin as numpy_backend
from plugrt_remote import wire
from plugrt_remote.addresses import parse
from plugrt_remote.client import RemoteClient
from plugrt_remote.ray import ServingActor
from plugrt_remote.serving.server import Server
from support.device_server import becomes_true, serving
from support.distributions import run_cli, run_warm
from support.requirements import needs_jax

ADD = """func.func @main(%x: tensor<4xf32>{donated}, %y: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""
X = np.float32([1, 2, 3, 4])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(start({"num_devices": 4}), Path(folder)) as found,
    ):
        yield found


def add(client: Client, donated: str = "") -> plugrt.interface.LoadedExecutable:
    text = ADD.format(donated=f" {{{donated}}}" if donated else "")
    return client.compile(Program(text.encode()), CompileOptions())


def test_arrays_of_each_size_survive_a_round_trip(client: RemoteClient) -> None:
    for dtype, count in (("bool", 0), ("bfloat16", 3), ("int8", 70_000), ("float32", 1 << 20)):
        x = (np.arange(count) % 2).astype(wire.DTYPES[1] if dtype == "bool" else dtype)
        for layout in (x, x[::-1], x.reshape(-1, 1).T):
            buffer = client.buffer_from_host(layout, client.devices()[1])
            found = buffer.to_host()
            np.testing.assert_array_equal(found, layout)
            assert (found.dtype, found.flags.writeable) == (layout.dtype, False)
            copied = buffer.copy_to_device(client.devices()[2])
            assert copied.device is client.devices()[2]
            np.testing.assert_array_equal(copied.to_host(), layout)


def test_large_arrays_are_read_by_several_threads_at_once(client: RemoteClient) -> None:
    x = np.arange((1 << 20) + 3, dtype=np.float32)
    buffer = client.buffer_from_host(x, client.devices()[0])
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: buffer.to_host(), range(16))]
    assert all(np.array_equal(each, x) for each in found)


def test_a_put_copies_the_present_contents(client: RemoteClient) -> None:
    for count in (4, 1 << 20):
        x = np.ones(count, np.float32)
        buffers = []
        for value in range(4):
            x[:] = value
            buffers.append(client.buffer_from_host(x, client.devices()[0]))
        assert [buffer.to_host()[-1] for buffer in buffers] == [0, 1, 2, 3]


def test_arrays_use_the_socket_if_no_segment_is_free(
    client: RemoteClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_SEGMENTS", 1)
    buffer = client.buffer_from_host(np.arange(1 << 20, dtype=np.float32), client.devices()[0])
    found = [buffer.to_host() for _ in range(3)]
    assert [array[-1] for array in found] == [(1 << 20) - 1] * 3
    assert client.stats()["segments"] == 1


def test_arguments_are_checked_before_the_launch(client: RemoteClient) -> None:
    program, [one, two, *_] = add(client), client.devices()
    x, far = client.buffer_from_host(X, one), client.buffer_from_host(X, two)
    narrow = client.buffer_from_host(X[:2], one)
    for wrong in ([(x,)], [(x,), (far,)], [(x,), (narrow,)], [(x,), (x, x)]):
        with pytest.raises(InvalidArgument):
            program.execute(wrong)
    x.delete()
    with pytest.raises(DeletedBuffer):
        program.execute([(x,), (x,)])


def test_each_client_states_what_launches_take(client: RemoteClient) -> None:
    for each in (client, start({"num_devices": 1}), numpy_backend.create_client({})):
        for donated, expected in (("", []), ("tf.aliasing_output = 0 : i32", [0])):
            executable = add(each, donated).executable
            assert [*executable.donated_parameters] == expected
            assert [(t.shape, t.dtype) for t in executable.input_types] == [((4,), X.dtype)] * 2


def test_donation_deletes_at_once_and_frees_there(client: RemoteClient) -> None:
    program = add(client, "tf.aliasing_output = 0 : i32")
    x, y = (client.buffer_from_host(X, client.devices()[0]) for _ in range(2))
    with pytest.raises(InvalidArgument):
        program.execute([(x,), (x,)])
    [[kept]] = program.execute([(x,), (y,)], ExecuteOptions(0, (0,)))
    assert (x.is_deleted(), kept.to_host().tolist()) == (False, [2, 4, 6, 8])
    [[result]] = program.execute([(x,), (y,)])
    assert (x.is_deleted(), y.is_deleted()) == (True, False)
    assert result.to_host().tolist() == [2, 4, 6, 8]
    del x, y, kept, result
    gc.collect()
    assert client.stats()["arrays"] == 0


def test_an_error_of_the_server_is_in_all_that_is_computed_from_it(client: RemoteClient) -> None:
    assert client.capabilities.late_errors
    program, device = add(client), client.devices()[0]
    x = client.buffer_from_host(X, device)
    gone = wire.DELETE.pack(-1) + wire.NUMBER.pack(x.shards.number)
    client.connection.post(wire.frame(wire.Op.DELETE, gone))
    [failed] = program.execute([(x,), (x,)])
    [[later]] = program.execute([failed, failed])
    called: list[PjrtError | None] = []
    later.ready_event().on_ready(called.append)
    assert becomes_true(lambda: bool(called))
    assert isinstance(called[0], InvalidArgument)
    assert "argument was deleted" in called[0].message
    for use in (later.to_host, later.block_until_ready, later.ready_event().wait):
        with pytest.raises(DeletedBuffer):
            use()
    [[later]] = program.execute([failed, failed])  # now the client asks about each launch
    with pytest.raises(DeletedBuffer):
        later.to_host()


def test_a_second_client_compiles_nothing(client: RemoteClient, address: str) -> None:
    add(client)
    before = client.stats()["compilations"]
    other = RemoteClient(address)
    x = other.buffer_from_host(X, other.devices()[0])
    [[result]] = add(other).execute([(x,), (x,)])
    assert result.to_host().tolist() == [2, 4, 6, 8]
    assert (other.stats()["compilations"], other.stats()["sessions"]) == (before, 2)
    other.close()
    assert becomes_true(lambda: client.stats()["sessions"] == 1)
    with pytest.raises(Unavailable, match="closed"):
        result.to_host()
    with pytest.raises(InvalidArgument, match="another client"):
        client.shards((result,))


def test_a_client_says_that_it_is_lost_and_a_server_of_it_ends(
    address: str, tmp_path: Path
) -> None:
    told: SimpleQueue[PjrtError] = SimpleQueue()
    served, closed, here = RemoteClient(address), RemoteClient(address), start({"num_devices": 1})
    for each in (served, closed, here):
        each.on_lost(told.put)
        assert not each.is_lost
    closed.close()
    with serving(served, tmp_path) as outer:
        lone = RemoteClient(outer)
        served.connection.sock.shutdown(socket.SHUT_RDWR)
        assert isinstance(told.get(timeout=30), Unavailable)
        assert becomes_true(lambda: not (tmp_path / "s").exists())
        assert not lone.is_lost
        lone.connection.sock.shutdown(socket.SHUT_RDWR)
        assert becomes_true(lambda: lone.is_lost)
    served.on_lost(told.put)
    assert isinstance(told.get(timeout=30), Unavailable)
    assert (served.is_lost, closed.is_lost, told.empty()) == (True, False, True)
    for each in (served, here):
        with pytest.raises(ArgumentTypeError, match="on_lost takes a function"):
            each.on_lost(None)  # type: ignore[arg-type]


ON_RAY = """
import sys, types
import numpy as np
from plugrt.errors import ConfigError
from plugrt_remote.client import RemoteClient
from plugrt_remote.ray import DeviceServers

class Method:
    def __init__(self, method): self.method = method
    def remote(self, *given): return self.method(*given)

class Actor:
    def __init__(self, made): self.made = made
    def __getattr__(self, name): return Method(getattr(self.made, name))

class Made:
    def __init__(self, cls): self.cls = cls
    def options(self, **given):
        print(sorted(given.items()))
        return self
    def remote(self, *given): return Actor(self.cls(*given))

sys.modules["ray"] = None
try:
    DeviceServers()
except ConfigError as error:
    print(error)
sys.modules["ray"] = types.SimpleNamespace(remote=Made, get=list, kill=lambda actor: print("ended"))
with DeviceServers("cpu", 2, resources={"GPU": 0.5, "slots": 1}) as servers:
    found = servers.addresses()
    for address in found:
        client = RemoteClient(address)
        print(client.buffer_from_host(np.ones(2), client.devices()[0]).to_host())
    import os
    print(servers.processes() == [os.getpid()] * 2, len({*found}))
print(any(os.path.exists(address[5:]) for address in found))
"""
OF_RAY = """\
DeviceServers needs Ray: pip install ray
[('max_restarts', -1), ('max_task_retries', -1), ('num_gpus', 0.5), ('resources', {'slots': 1})]
[1. 1.]
[1. 1.]
True 2
ended
ended
False
"""


def test_an_actor_of_ray_states_the_port_that_it_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, (chain, key, ca, token) = trustme.CA(), (tmp_path / name for name in "abcd")
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(chain))
    issued.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(ca))
    token.touch(0o600)
    token.write_text("a long enough token\n")
    monkeypatch.setenv("PLUGRT_REMOTE_CA", str(ca))
    monkeypatch.setenv("PLUGRT_REMOTE_TOKEN_FILE", str(token))
    actor = ServingActor(None, "tls://127.0.0.1:0", str(chain), str(key), str(token))
    client = RemoteClient(actor.address())
    assert client.stats()["segments"] == 0
    client.close()
    actor.stop()


def test_actors_of_ray_serve_until_they_are_stopped() -> None:
    """The child has a stand-in for Ray; ``nox -s clusters`` runs an example with Ray."""
    shown = run_warm(ON_RAY, JAX_PLATFORMS="cpu")
    assert (shown.stdout, shown.stderr) == (OF_RAY, "")


def test_dlpack_and_pointers_are_refused_by_name(client: RemoteClient) -> None:
    x = client.buffer_from_host(X, client.devices()[0])
    for name, call in {"to_dlpack": x.to_dlpack, "unsafe_pointer": x.unsafe_pointer}.items():
        with pytest.raises(Unimplemented, match=name):
            call()
    assert not {"dlpack", "unsafe_pointer"} & {
        name for name, (declared, _) in client.capabilities.sentences().items() if declared
    }


def test_types_of_handlers_states_are_registered_in_the_client(client: RemoteClient) -> None:
    places = [ctypes.c_int64(0) for _ in range(2)]
    for place in places:  # under one name, so that both get one id
        client.register_handler_type("a_type_of_this_test", ctypes.addressof(place))
    assert places[0].value == places[1].value != 0


def test_the_socket_is_for_one_user_and_one_server(address: str) -> None:
    assert stat.S_IMODE(os.stat(parse(address).path).st_mode) == 0o600
    with pytest.raises(AlreadyExists):
        Server(plugrt.get_backend()).bind(address)
    for wrong in ("", "tcp:localhost:1", "unix:"):
        with pytest.raises(ConfigError, match=r"unix:PATH.*or tls:"):
            RemoteClient(wrong)


def test_the_option_platform_wins_over_jax_platforms(address: str) -> None:
    words = ("serve", "--platform", "numpy", "--bind", address)
    shown = run_cli(*words, JAX_PLATFORMS="remote", PLUGRT_REMOTE=address)
    assert "another server listens" in shown.stderr, shown.stderr  # after numpy has started


def test_the_status_has_each_other_session(client: RemoteClient, address: str) -> None:
    program, x = add(client), client.buffer_from_host(X, client.devices()[0])
    [[result]] = program.execute([(x,), (x,)])
    result.block_until_ready()
    for words in (("--json",), ()):
        shown = run_cli("serve", "--status", "--bind", address, *words)
        found = json.loads(shown.stdout) if words else shown.stdout.split()[-7:]
        if words:
            assert (found["platform"], found["devices"]) == ("cpu", 4)
            [session] = found["sessions"]
            found = [*session.values()]
        process, _, *counts = map(int, found)
        assert (process, counts) == (os.getpid(), [2, 32, 0, 1, 1]), shown.stdout
    assert "no device server answers" in run_cli("serve", "--status", "--bind", "unix:/none").stderr


USES = """
import numpy as np
import plugrt
f = plugrt.jit(lambda x, y: x @ y)
x = plugrt.device_put(np.eye(3, dtype=np.float32))
print(plugrt.devices(), float((f(x, x) + 1).sum()))
print(plugrt.pmap(lambda x: plugrt.lax.psum(x, "i"), "i")(np.arange(4.0)))
"""


def test_the_plugin_is_the_default_where_the_variable_is_set(address: str) -> None:
    shown = run_warm(USES, PLUGRT_REMOTE=address, JAX_PLATFORMS="")
    assert shown.stdout.splitlines() == ["[cpu:0, cpu:1, cpu:2, cpu:3] 12.0", "[6. 6. 6. 6.]"]


FORKS = """
import os, signal
import numpy as np
import plugrt
x = plugrt.device_put(np.ones(3, np.float32))
f = plugrt.jit(lambda v: v + 1)
late = f(x)
uses = {
    "call": lambda: f(x),
    "put": lambda: plugrt.device_put(np.ones(1 << 20, np.float32)),
    "read": lambda: np.asarray(late),
    "wait": lambda: late.block_until_ready(),
    "compile": lambda: plugrt.jit(lambda v: v * 3)(x),
}
wrong = []
for name, use in uses.items():
    if not (child := os.fork()):
        signal.alarm(60)
        try:
            use()
        except plugrt.errors.FailedPrecondition as error:
            said = str(error)
            os._exit(0 if "device server at unix:" in said and "os.fork()" in said else 2)
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        wrong.append((name, status))
print(wrong, float(f(late).sum()))
"""


def test_each_use_in_a_forked_child_is_refused(address: str) -> None:
    shown = run_warm(FORKS, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote", PYTHONWARNINGS="ignore")
    assert (shown.stdout, shown.stderr) == ("[] 9.0\n", "")


def test_a_server_that_does_not_answer_is_one_warning_or_the_error(tmp_path: Path) -> None:
    code = "import plugrt\nprint(plugrt.devices())"
    address = f"unix:{tmp_path}/none"
    shown = run_warm(code, PLUGRT_REMOTE=address, JAX_PLATFORMS="")
    assert "[cpu:0]" in shown.stdout
    assert shown.stderr.count(f"plugrt serve --bind {address}") == 1
    shown = run_warm(code, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote")
    assert "PluginUnavailable" in shown.stderr
    assert "UNAVAILABLE: no device server answers" in shown.stderr
    shown = run_warm(code, PLUGRT_REMOTE="", JAX_PLATFORMS="")
    assert ("[cpu:0]" in shown.stdout, shown.stderr) == (True, "")


@needs_jax
def test_stock_jax_uses_another_device_if_no_server_answers(tmp_path: Path) -> None:
    code = "import jax\nprint(jax.devices()[0].platform)"
    address = f"unix:{tmp_path}/none"
    shown = run_warm(code, PLUGRT_REMOTE=address, JAX_PLATFORMS="")
    assert shown.stdout == "cpu\n", shown.stderr
    assert shown.stderr.count(f"no device server answers at {address}") == 1
    assert "Traceback" not in shown.stderr
    shown = run_warm(code, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote,cpu")
    assert "UNAVAILABLE: no device server answers" in shown.stderr


@needs_jax
def test_stock_jax_decomposes_matrices_on_a_server(address: str) -> None:
    code = """
import jax, jax.numpy as jnp, numpy as np
q, r = jnp.linalg.qr(jnp.asarray(np.float32([[1, 2], [3, 4], [5, 6]])))
print(q.devices().pop().platform, np.round(np.asarray(q @ r)).tolist())
"""
    shown = run_warm(code, PLUGRT_REMOTE=address, JAX_PLATFORMS="remote")
    assert shown.stdout == "remote [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]\n", shown.stderr
