"""Authentication by TLS, the functions that programs may call, and the limits of a session."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme

from plugrt.errors import ConfigError, PermissionDenied, PlugrtError, ResourceExhausted, Unavailable
from plugrt.interface import CompileOptions, Program
from plugrt.programs.parsing import parse_program
from plugrt.stablehlo.modules import bytecode
from plugrt_numpy import plugin
from plugrt_remote.client import RemoteClient
from plugrt_remote.serving.backend import Policy
from plugrt_remote.serving.server import Server
from support.device_server import serving

TOKEN = "a long enough token"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    found = {name: str(folder / name) for name in ("ca", "other", "certificate", "key", "token")}
    authority = trustme.CA()
    authority.cert_pem.write_to_path(found["ca"])
    trustme.CA().cert_pem.write_to_path(found["other"])
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(found["certificate"])
    issued.private_key_pem.write_to_path(found["key"])
    for name, content in {
        "token": TOKEN,
        "wrong": TOKEN[::-1],
        "open": TOKEN,
        "short": "x",
    }.items():
        found[name] = str(folder / name)
        Path(found[name]).write_text(content + "\n")
        Path(found[name]).chmod(0o644 if name == "open" else 0o600)
    return found


@pytest.fixture(scope="module")
def address(files: dict[str, str]) -> Iterator[str]:
    client, policy = plugin.create_client({"num_devices": 1}), Policy(TOKEN.encode())
    with serving(client, Path(), policy, files["certificate"], files["key"]) as found:
        yield found


@pytest.fixture
def trusted(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("PLUGRT_REMOTE_CA", files["ca"])
    monkeypatch.setenv("PLUGRT_REMOTE_TOKEN_FILE", files["token"])
    return monkeypatch


def test_arrays_go_over_tls(address: str, trusted: pytest.MonkeyPatch) -> None:
    client = RemoteClient(address)
    for count in (3, 1 << 21):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(client.buffer_from_host(x, client.devices()[0]).to_host(), x)
    assert client.stats()["segments"] == 0
    _, secured = client.connection._link.relay
    assert secured.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert secured.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
    client.close()


@pytest.mark.parametrize(
    ("variable", "file", "error", "words"),
    [
        ("PLUGRT_REMOTE_CA", "other", PermissionDenied, "not signed by PLUGRT_REMOTE_CA"),
        ("PLUGRT_REMOTE_CA", "", ConfigError, "PLUGRT_REMOTE_CA is not set"),
        ("PLUGRT_REMOTE_CA", "token", ConfigError, "authority"),
        ("PLUGRT_REMOTE_TOKEN_FILE", "wrong", PermissionDenied, "token is not the server's"),
        ("PLUGRT_REMOTE_TOKEN_FILE", "open", ConfigError, "others can read"),
        ("PLUGRT_REMOTE_TOKEN_FILE", "short", ConfigError, "openssl rand"),
        ("PLUGRT_REMOTE_TOKEN_FILE", "", ConfigError, "TOKEN_FILE is not set"),
    ],
)
def test_without_the_authority_or_the_token_nobody_connects(
    address: str, files: dict[str, str], trusted: pytest.MonkeyPatch,
    variable: str, file: str, error: type[PlugrtError], words: str,
) -> None:  # fmt: skip
    trusted.setenv(variable, files[file] if file else "")
    with pytest.raises(error, match=words):
        RemoteClient(address)


def test_other_connections_are_closed_and_the_server_goes_on(
    address: str, trusted: pytest.MonkeyPatch
) -> None:
    _, _, port = address.rpartition(":")
    with socket.create_connection(("127.0.0.1", int(port))) as sock, suppress(ConnectionError):
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while sock.recv(1 << 10):
            pass
    RemoteClient(address).close()
    with pytest.raises(Unavailable, match="no device server answers"):
        RemoteClient(address.replace(f":{port}", ":1"))


def test_dependent_launches_over_a_slow_network_wait_for_one_round_trip(
    address: str, trusted: pytest.MonkeyPatch
) -> None:
    round_trip = 0.4
    with slow_network(address, round_trip / 2) as slow, closing(RemoteClient(slow)) as client:
        device = client.devices()[0]
        add = b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
            %y = stablehlo.add %x, %x : tensor<4xf32> return %y : tensor<4xf32> }"""
        begin = time.monotonic()
        program = client.compile(Program(add), CompileOptions())
        x: Any = client.buffer_from_host(np.zeros(4, np.float32), device)
        [[x]] = program.execute([(x,)])
        x.to_host()
        assert time.monotonic() - begin < 4 * round_trip, "the first call: at most 3, and compiling"
        begin = time.monotonic()
        for _ in range(900):
            [[x]] = program.execute([(x,)])
        launched = time.monotonic() - begin
        x.to_host()
        assert launched < round_trip
        assert time.monotonic() - begin < 3 * round_trip


@contextmanager
def slow_network(address: str, seconds: float) -> Iterator[str]:
    """Relays one connection to a server, each way so many seconds later; yields the address."""

    def relay(source: socket.socket, target: socket.socket) -> None:
        due: deque[tuple[float, bytes]] = deque()
        source.settimeout(0.005)
        while not due or due[-1][1]:
            with suppress(TimeoutError):
                due.append((time.monotonic() + seconds, source.recv(1 << 16)))
            while due and due[0][1] and due[0][0] <= time.monotonic():
                target.sendall(due.popleft()[1])
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(3) as pool:
        listener.settimeout(30)

        def accept() -> None:
            with listener.accept()[0] as client, connected(address) as server:
                wait([pool.submit(relay, client, server), pool.submit(relay, server, client)])

        accepting = pool.submit(accept)
        yield f"tls://127.0.0.1:{listener.getsockname()[1]}"
        accepting.result()


@pytest.mark.parametrize("sent", [b"", b"\x00" * 7, None], ids=["silent", "partial", "clients"])
def test_a_hundred_idle_connections_do_not_delay_a_client(
    address: str, trusted: pytest.MonkeyPatch, tmp_path: Path, sent: bytes | None
) -> None:
    with ExitStack() as stack:
        local = stack.enter_context(serving(plugin.create_client({"num_devices": 1}), tmp_path))
        for _ in range(100):
            for server in (address, local):
                if sent is None:
                    stack.enter_context(closing(RemoteClient(server)))
                else:
                    stack.enter_context(connected(server)).sendall(sent)
        for server in (address, local):
            begin = time.monotonic()
            client = stack.enter_context(closing(RemoteClient(server)))
            x = client.buffer_from_host(np.arange(3.0), client.devices()[0])
            np.testing.assert_array_equal(x.to_host(), np.arange(3.0))
            assert time.monotonic() - begin < 5  # a connection without a first message has 10 s


def connected(address: str) -> socket.socket:
    """Opens a socket to the server at an address, and sends nothing."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address.removeprefix("unix:"))
        return sock
    host, _, port = address.partition("://")[2].rpartition(":")
    return socket.create_connection((host, int(port)))


def test_a_network_is_served_with_tls_and_a_token_alone(files: dict[str, str]) -> None:
    client = plugin.create_client({"num_devices": 1})
    for policy, given in (
        (None, (files["certificate"], files["key"])),
        (Policy(TOKEN.encode()), ()),
        (Policy(TOKEN.encode()), (files["ca"], files["key"])),
    ):
        with pytest.raises(ConfigError, match="certificate"):
            Server(client, policy).bind("tls://127.0.0.1:0", *given)
    with pytest.raises(ConfigError, match="without TLS are not offered"):
        Server(client).bind("tcp://127.0.0.1:0")


CALLS = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.CALL"(%x) {call_target_name = "TARGET"} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


def test_programs_call_functions_of_the_list_alone(tmp_path: Path) -> None:
    client = plugin.create_client({"num_devices": 1})
    with serving(client, tmp_path, Policy(custom_calls=("mine",))) as address:
        remote = RemoteClient(address)
        formats = remote.capabilities.program_formats
        for call in ("custom_call", r"custom\5Fcall"):
            text = CALLS.replace("CALL", call).encode()
            module, *_ = parse_program(Program(text.replace(b"TARGET", b"xla_python_callback")))
            codes = [text.replace(b"TARGET", b"xla_python_callback"), bytecode(module)]
            for code in codes:
                with pytest.raises(PermissionDenied, match="allow-custom-call xla_python_callback"):
                    remote.compile(Program(code), CompileOptions())
            for target in (b"Sharding", b"mine"):
                try:
                    remote.compile(Program(text.replace(b"TARGET", target)), CompileOptions())
                except PermissionDenied:
                    raise
                except PlugrtError:
                    assert target == b"mine"  # the backend has no such function
        if "hlo" in formats:
            instruction = b"\xe2\x01\x06system"  # field 28, custom_call_target
            computation = b"\x12" + bytes([len(instruction)]) + instruction
            module = b"\x1a" + bytes([len(computation)]) + computation
            with pytest.raises(PermissionDenied, match="'system'"):
                remote.compile(Program(module, "hlo"), CompileOptions())
        with pytest.raises(PermissionDenied, match="cannot read"):
            remote.compile(Program(b"custom_call"), CompileOptions())
        remote.close()


def test_a_session_has_so_many_bytes_and_no_more(tmp_path: Path) -> None:
    client = plugin.create_client({"num_devices": 1})
    with serving(client, tmp_path, Policy(session_bytes=5000)) as address:
        remote, other = RemoteClient(address), RemoteClient(address)
        [device] = remote.devices()
        x, y = (remote.buffer_from_host(np.ones(500, np.float32), device) for _ in range(2))
        same = b"func.func @main(%x: TYPE) -> TYPE {\n  return %x : TYPE\n}"
        same = same.replace(b"TYPE", b"tensor<500xf32>")
        program = remote.compile(Program(same), CompileOptions())
        for fail in (lambda: program.execute([(x,)])[0][0], lambda: x.copy_to_device(device)):
            with pytest.raises(ResourceExhausted, match="limit of 5000"):
                fail().to_host()
        other.buffer_from_host(np.ones(1000, np.float32), other.devices()[0]).to_host()
        del y
        [[z]] = program.execute([(x,)])
        assert z.to_host()[0] == 1
        remote.close()
        other.close()
