"""Indices of a run's processes, which the coordinator assigns before jaxlib connects."""

from __future__ import annotations

import contextlib
import errno
import json
import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from plugrt.errors import DistributedError
from plugrt.plugins.coordination import Membership
from plugrt_cpu.distributed.claim_messages import About, Hello, write
from plugrt_cpu.distributed.claiming import _ask, claim, find_holder
from plugrt_cpu.distributed.claims import Claims

SERVICE = 4321


@contextlib.contextmanager
def coordinator(*, listener: socket.socket | None = None, **options: Any) -> Iterator[str]:
    """Serves claims of two processes; returns the address."""
    with listener or socket.create_server(("127.0.0.1", 0)) as listening:
        claims = Claims(listening, 2, SERVICE, **options)
        threading.Thread(target=claims.serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def address() -> Iterator[str]:
    with coordinator() as found:
        yield found


def member(
    address: str, index: int, count: int = 2, secret: str | None = None, name: str = ""
) -> Membership:
    return Membership(
        address, index, count, 30, 10, 10, name=name or f"program {index}", secret=secret
    )


def call(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def is_closed(connection: socket.socket) -> bool:
    """Waits for the coordinator; returns whether it closes the connection without an answer."""
    with contextlib.suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


def test_each_index_has_one_process(address: str) -> None:
    first, service = claim(member(address, 0))
    assert service == f"127.0.0.1:{SERVICE}"
    with first, pytest.raises(DistributedError, match="process_id=0 is in use: program 0 has it"):
        claim(member(address, 0))


def test_an_index_is_free_again_when_its_process_ends_before_all_have_come(address: str) -> None:
    first, _ = claim(member(address, 0))
    first.close()
    again = until_granted(member(address, 0))
    second, _ = claim(member(address, 1))
    again.close()
    with second, pytest.raises(DistributedError, match="process_id=0 is in use"):
        claim(member(address, 0))


def until_granted(membership: Membership) -> socket.socket:
    """Claims again until the coordinator notices the end of the previous connection."""
    while True:
        with contextlib.suppress(DistributedError):
            return claim(membership)[0]


def test_another_number_of_processes_is_refused(address: str) -> None:
    with pytest.raises(
        DistributedError, match=r"process 2 has num_processes=3, .* coordinator has 2: all"
    ):
        claim(member(address, 2, 3))


# The collector may run while a deeply nested line is parsed: pytest's hook lacks frames then.
@pytest.mark.usefixtures("unraisable")
def test_unknown_clients_do_not_end_the_coordinator(address: str) -> None:
    hello = write(Hello("x"))
    for said in (
        b"", b"GET / HTTP/1.1\r\n\r\n", b"[1]\n", b"x" * 10_000, b"{}\n", b"[" * 4000 + b"\n",
        b'{"nonce": 1}\n', hello + hello, hello + b'{"about": 1e400, "proof": ""}\n',
        b'{"index": 2, "count": 2, "name": "", "proof": ""}\n',
    ):  # fmt: skip
        with call(address) as stranger:
            stranger.sendall(said)
    for question in (
        b'{"index": 1e400, "count": 2, "name": "", "proof": ""}', b'{"index": 2, "count": 2, '
        b'"name": "", "proof": ""}', b'{"about": -1, "proof": ""}', b'{"about": 0, "proof": 7}',
        b'{"about": 0, "proof": "\\ud800"}',
        b'{"index": 1, "count": 2, "name": "\\udfff", "proof": ""}',
    ):  # fmt: skip
        with call(address) as stranger:
            stranger.sendall(hello)
            assert b"challenge" in stranger.recv(4096)
            stranger.sendall(question + b"\n")
            assert b"fault" in stranger.recv(4096)
    first, _ = claim(member(address, 0))
    first.close()


_FIELDS: dict[str, list[Any]] = {
    "nonce": ["x", ""], "index": [0, 1, 2], "count": [2, 3], "name": ["x"], "about": [0, 1],
    "proof": ["", "00"], "other": [1],
}  # fmt: skip
_VALUES: list[Any] = [
    None, True, -1, 2**31, 10**400, 1.5, float("nan"), float("inf"), "", "\ud800", "\udc80x",
    "\x00", "\u202e", "9" * 3000, [], [[]], {}, {"\udfff": 1},
]  # fmt: skip


def make_line(rng: random.Random) -> bytes:
    """Returns a line with some fields of messages, with valid or invalid values."""
    names = rng.choice(
        [["nonce"], ["about", "proof"], ["index", "count", "name", "proof"], [*_FIELDS]]
    )
    found: dict[str, Any] = {}
    for name in rng.sample(names, rng.randint(max(1, len(names) - 1), len(names))):
        found[name] = rng.choice(_FIELDS[name] if rng.random() < 0.6 else _VALUES)
    said: Any = found if rng.random() < 0.9 else [found]
    line = json.dumps(said, ensure_ascii=rng.random() < 0.7).encode("utf-8", "surrogatepass")
    return line if rng.random() < 0.9 else line[: rng.randrange(len(line))]


@pytest.mark.parametrize("secret", [None, "a long secret"])
def test_the_coordinator_survives_random_lines_of_unknown_clients(secret: str | None) -> None:
    rng = random.Random(20261129)
    hello = write(Hello("x"))
    with coordinator(secret=secret) as address:
        for _ in range(400):
            with call(address) as stranger, contextlib.suppress(ConnectionError):
                if rng.random() < 0.8:
                    stranger.sendall(hello)
                    stranger.recv(4096)
                stranger.sendall(make_line(rng) + b"\n")
                stranger.recv(4096)
        until_granted(member(address, 1, secret=secret)).close()


@pytest.mark.parametrize(
    "answer", [b'{"challenge": "\\ud800", "proof": ""}', b'{"proof": "\\ud800"}']
)
def test_a_coordinator_whose_text_cannot_be_encoded_is_named(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer + b"\n")

        server = threading.Thread(target=serve)
        server.start()
        with pytest.raises(DistributedError, match="not a coordinator"):
            claim(member(address, 0, secret="s"))
        server.join()


def test_a_program_whose_name_is_no_text_gets_an_index(address: str) -> None:
    with claim(member(address, 0, name="caf\udce9.py"))[0]:
        assert find_holder(member(address, 0)) == "caf?.py"


def test_silent_connections_are_dropped_and_members_kept() -> None:
    with coordinator(patience=0.3) as address, claim(member(address, 0))[0] as first:
        with call(address) as silent, call(address) as slow:
            slow.sendall(b'{"non')
            assert is_closed(silent)
            assert is_closed(slow)
        first.sendall(b"\n")
        assert first.recv(10) == b"\n"


def test_idle_connections_do_not_keep_a_process_out() -> None:
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(coordinator(patience=600))
        idle = [stack.enter_context(call(address)) for _ in range(200)]
        first, _ = claim(member(address, 0))
        stack.enter_context(first)
        assert is_closed(idle[0])  # the oldest one


class FullListener(socket.socket):
    """Fails to accept connections, for lack of files, until there is room."""

    room = threading.Event()
    calls = 0

    def accept(self) -> Any:
        self.calls += 1
        if not self.room.is_set():
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_the_coordinator_pauses_where_it_can_open_no_more_files() -> None:
    listener = FullListener()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with coordinator(listener=listener) as address:
        threading.Timer(1.0, listener.room.set).start()
        claim(member(address, 0))[0].close()
    assert listener.calls < 50, "it asked again and again without a pause"


@pytest.mark.parametrize(
    ("ours", "theirs", "says"),
    [
        ("a", "b", "has another secret"),
        (None, "b", "has a secret, and this process was given none"),
        ("a", None, "has no secret, and this process was given one"),
    ],
)
def test_both_must_know_the_secret(ours: str | None, theirs: str | None, says: str) -> None:
    with coordinator(secret=theirs) as address:
        with pytest.raises(DistributedError, match=says):
            claim(member(address, 0, secret=ours))
        assert find_holder(member(address, 0, secret=ours)) is None
        with claim(member(address, 0, secret=theirs))[0]:
            assert find_holder(member(address, 0, secret=theirs)) == "program 0"


def test_the_secret_is_not_sent_and_what_was_sent_counts_once() -> None:
    heard: list[bytes] = []

    class Listening(socket.socket):
        def sendall(self, data: Any, *_: Any) -> None:
            heard.append(bytes(data))
            super().sendall(data)

    with coordinator(secret="a long secret") as address:
        host, port = address.split(":")
        with Listening() as connection:
            connection.connect((host, int(port)))
            _ask(connection, member(address, 0, secret="a long secret"), About(0))
        assert len(heard) == 2
        assert not any(b"a long secret" in said for said in heard)
        with call(address) as again:
            for said in heard:
                again.sendall(said)
                answer = again.recv(4096)
        assert b"its secret is another one" in answer


def test_a_name_controls_no_terminal(address: str) -> None:
    with claim(member(address, 0, name="x\x1b]0;owned\x07"))[0]:
        with pytest.raises(DistributedError, match="is in use") as caught:
            claim(member(address, 0))
        assert "\x1b" not in str(caught.value)
        assert r"x\x1b]0;owned\x07 has it" in str(caught.value)
        assert "\x1b" not in str(find_holder(member(address, 0)))


def test_a_name_is_cut_to_what_a_message_holds(address: str) -> None:
    for index, letter in enumerate("x\N{GRINNING FACE}"):
        with claim(member(address, index, name=2000 * letter))[0]:
            assert find_holder(member(address, index)) == 300 * letter


def test_a_server_that_is_no_coordinator_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(
            DistributedError, match=f"{address} is not a coordinator .*HTTP/1.1 400"
        ):
            claim(member(address, 0))
        thread.join()
