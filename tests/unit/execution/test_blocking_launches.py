"""The number of launches on several devices in flight, and the waits between them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from plugrt.callbacks import host_callbacks
from plugrt.errors import FailedPrecondition, InvalidArgument, Unimplemented
from plugrt.execution.executables.blocking_launches import BlockingLaunches
from plugrt.execution.executables.bounded_executable import BoundedExecutable, bound_launches
from plugrt.execution.executables.calling_launch import CallingLaunch
from plugrt.interface import Capabilities, LoadedExecutable, Program
from plugrt.lifetime.thread_work import ThreadWork
from plugrt.lifetime.waiter import ended


class Recorded(LoadedExecutable):
    """An executable that counts its client's launches in flight."""

    def __init__(
        self, client: Any, replicas: int = 2, partitions: int = 1, optimised: bytes | None = None
    ) -> None:
        def optimized_program() -> Program:
            if optimised is None:
                raise Unimplemented("optimized_program")
            return Program(optimised, "hlo")

        self._client = client
        self._executable = SimpleNamespace(
            num_replicas=replicas, num_partitions=partitions, optimized_program=optimized_program
        )

    client = property(lambda self: self._client)
    executable = property(lambda self: self._executable)
    addressable_devices = property(lambda self: [])

    def execute(self, arguments: Any, options: Any = None) -> Sequence[Any]:
        self.client.plain += 1
        return arguments

    def execute_with_wait(
        self, arguments: Any, options: Any = None
    ) -> tuple[Sequence[Any], Callable[[], None]]:
        if arguments == "wrong":
            raise InvalidArgument("wrong")
        client = self.client
        with client.lock:
            client.launched += 1
            number = client.launched
            client.running.add(number)
            client.most = max(client.most, len(client.running))

        def wait() -> None:
            if client.interrupts:
                client.interrupts -= 1
                raise KeyboardInterrupt
            with client.lock:
                # Devices run launches in order: when one has ended, all before it have.
                client.running -= {n for n in client.running if n <= number}

        return arguments, wait

    def delete(self) -> None: ...

    def is_deleted(self) -> bool:
        return False


class FakeClient:
    def __init__(self, bound: int | None = 3) -> None:
        self.capabilities = Capabilities(max_blocking_launches=bound)
        self.lock = threading.Lock()
        self.launched = self.most = self.plain = self.interrupts = 0
        self.running: set[int] = set()


EXCHANGES = Program(b'"stablehlo.all_reduce"(%x)')
ALONE = Program(b"stablehlo.add %x, %y")


@pytest.mark.parametrize("name", [
    "stablehlo.all_reduce", "all_gather_v2", "all_to_all", "reduce_scatter_v1",
    "collective_permute", "collective_broadcast", "all-reduce", "collective-permute-start",
])  # fmt: skip
def test_programs_that_exchange_data_are_held_to_the_bound(name: str) -> None:
    client = FakeClient()
    loaded = bound_launches(Recorded(client), Program(f"xx{name}xx".encode()))
    for _ in range(20):
        loaded.execute([])
    assert (client.launched, client.most, client.plain) == (20, 3, 0)


@pytest.mark.parametrize("replicas", [1, 4])
def test_launches_without_a_bound_are_not_wrapped(replicas: int) -> None:
    loaded = Recorded(FakeClient(None), replicas)
    assert bound_launches(loaded, EXCHANGES) is loaded


def test_on_one_device_nothing_exchanges_data() -> None:
    client = FakeClient()
    loaded = bound_launches(Recorded(client, 1), EXCHANGES)
    for _ in range(5):
        loaded.execute([])
    assert (client.plain, client.launched) == (5, 0)


@pytest.mark.parametrize(
    ("optimised", "waits"), [(None, True), (b"..all-reduce-start..", True), (b"..add..", False)]
)
def test_partitions_exchange_data_where_their_compiled_program_says_so(
    optimised: bytes | None, waits: bool
) -> None:
    client = FakeClient()
    loaded = bound_launches(Recorded(client, 1, 2, optimised), ALONE)
    for _ in range(9):
        loaded.execute([])
    assert (client.launched, client.plain) == ((9, 0) if waits else (0, 9))
    assert client.most <= 3


def test_launches_that_exchange_nothing_count_only_behind_one_that_does() -> None:
    client = FakeClient()
    exchange, alone = (bound_launches(Recorded(client), p) for p in (EXCHANGES, ALONE))
    for _ in range(5):
        alone.execute([])
    assert (client.plain, client.launched) == (5, 0)
    exchange.execute([])
    for _ in range(10):
        alone.execute([])
    # The exchange has ended with the wait for it, and no launch is counted any more.
    assert (client.plain, client.launched, client.most) == (5 + 7, 4, 3)


def test_all_programs_of_a_client_share_its_bound_and_clients_do_not() -> None:
    one, other = FakeClient(), FakeClient()
    programs = [bound_launches(Recorded(one), EXCHANGES) for _ in range(7)]
    for _ in range(3):
        for program in programs:
            program.execute([])
        bound_launches(Recorded(other), EXCHANGES).execute([])
    assert (one.most, other.most, other.launched) == (3, 3, 3)


def test_threads_share_it_too() -> None:
    client = FakeClient()
    program = bound_launches(Recorded(client), EXCHANGES)
    threads = [
        threading.Thread(target=lambda: [program.execute([]) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (client.launched, client.most) == (800, 3)


def test_a_launch_that_is_refused_takes_no_place() -> None:
    client = FakeClient()
    program = bound_launches(Recorded(client), EXCHANGES)
    chance = random.Random(0)
    for _ in range(100):
        if chance.random() < 0.5:
            with pytest.raises(InvalidArgument):
                program.execute("wrong")  # type: ignore[arg-type]
        else:
            program.execute([])
    assert client.most == 3


def test_an_interrupted_wait_is_waited_again() -> None:
    client = FakeClient()
    program = bound_launches(Recorded(client), EXCHANGES)
    for _ in range(3):
        program.execute([])
    client.interrupts = 2
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            program.execute([])
    program.execute([])
    assert (client.launched, client.most) == (4, 3)


def test_the_bound_passes_on_the_executables_attributes() -> None:
    client = FakeClient()
    loaded = Recorded(client)
    program = BoundedExecutable(loaded, BlockingLaunches(1), True)
    assert program.client is client
    assert program.executable is loaded.executable
    assert program.addressable_devices == []
    assert not program.is_deleted()
    assert program.execute_with_wait([1])[0] == [1]


class TakesHosts(Recorded):
    def host_launcher(self, parts: Any) -> Any:
        return lambda arguments: self.execute_with_wait([*arguments, parts])


def test_launches_of_host_arrays_are_bounded_like_others() -> None:
    client = FakeClient(2)
    loaded = TakesHosts(client)
    bounded = BoundedExecutable(loaded, BlockingLaunches(2), collective=True)
    launch = bounded.host_launcher({0: []})
    assert launch is not None
    for _ in range(5):
        assert launch([1])[0] == [1, {0: []}]
    assert (client.launched, client.most) == (5, 2)
    assert (
        BoundedExecutable(Recorded(client), BlockingLaunches(2), collective=True).host_launcher(
            {0: []}
        )
        is None
    )


def test_launches_of_host_arrays_count_while_a_collective_precedes_them() -> None:
    client, launches = FakeClient(2), BlockingLaunches(2)
    launch = BoundedExecutable(TakesHosts(client), launches, collective=False).host_launcher(
        {0: []}
    )
    assert launch is not None
    launch([1])
    assert not launches
    BoundedExecutable(Recorded(client), launches, collective=True).execute([1])
    launch([1])
    assert 2 in client.running
    launch([1])  # the third since the collective, which must end first
    assert 2 not in client.running
    assert (client.launched, bool(launches)) == (4, False)


HERE: Any = ["a"]


class Calling:
    """A program's Python function, and launches that may call it."""

    title = "'f' of pure_callback"

    def launch(self, launches: BlockingLaunches, *devices: Any) -> CallingLaunch:
        launch = CallingLaunch(launches, [self], devices)
        launch.making.acquire()
        return launch


@contextmanager
def entering(function: Calling) -> Iterator[None]:
    """Records that a program is calling a function, like `call_noted` during the call."""
    thread, before = threading.get_ident(), host_callbacks.calls_under_way()
    host_callbacks._calls[thread] = (*before, function)
    yield
    host_callbacks._calls[thread] = before


def state_made(launch: CallingLaunch, wait: Callable[[], object]) -> None:
    launch.wait = wait
    launch.is_remembered = True
    launch.making.release()


def test_launches_within_a_callback_are_not_counted() -> None:
    launches, function = BlockingLaunches(1), Calling()
    outer, inner = function.launch(launches, "a"), Calling().launch(launches, "a")
    launches.begin(outer)
    state_made(outer, lambda: pytest.fail("the launch that waits for the function is awaited"))
    with entering(function):
        launches.begin(inner)
        state_made(inner, lambda: None)
        assert launches.launch_on_one(lambda x: x, 3, HERE) == 3
    launches.end(inner)
    launches.end(outer)
    assert not launches


class Awaited:
    """An argument, and a device with its client."""

    def __init__(self) -> None:
        self.client, self.waits = self, 0

    def block_until_ready(self) -> None:
        self.waits += 1


def test_a_launch_on_one_device_counts_behind_one_that_calls_python() -> None:
    launches, x = BlockingLaunches(3), Awaited()
    outer = Calling().launch(launches, x)
    launches.begin(outer)
    for _ in range(2):
        launches.launch_on_one(len, [x], [x])  # type: ignore[list-item]
    assert x.waits == 0
    for waits in (1, 2):  # no slot is free, and the argument may be a result of these launches
        launches.launch_on_one(len, [x], [x])  # type: ignore[list-item]
        assert x.waits == waits
    launches.end(outer)
    assert not launches


def test_no_thread_waits_for_ever_for_a_launch_that_calls_python() -> None:
    """Its function may be waiting for a launch of that thread."""
    launches = BlockingLaunches(1, patience=0.05)
    launches.begin(Calling().launch(launches, "a"))  # this launch never ends
    other = Calling().launch(launches, "a")
    launches.begin(other)
    assert launches.launch(lambda: ([3], ended), True, devices=["a", "b"])[0] == [3]  # type: ignore[list-item]
    assert launches.calling[1] is other
    launches.begin(Calling().launch(launches, "a"))
    with pytest.raises(FailedPrecondition, match=r"'f' of pure_callback .* 3 launches wait"):
        launches.begin(Calling().launch(launches, "a"))


def _on_another_thread(work: Callable[[], object]) -> None:
    thread = ThreadWork(work)
    assert thread.start()
    assert thread.wait(60)
    thread.result()


def test_a_slot_is_taken_as_soon_as_it_is_free() -> None:
    """The function of the oldest launch may be waiting for the launch that needs it."""
    launches = BlockingLaunches(2, patience=1000)
    oldest, other, third = (Calling().launch(launches, "a") for _ in range(3))
    launches.begin(oldest)
    launches.begin(other)
    threading.Timer(0.1, lambda: launches.end(other)).start()
    _on_another_thread(lambda: launches.begin(third))
    assert launches.calling == [oldest, third]
    assert [*launches._launches] == [oldest.entry, third.entry]


@pytest.mark.parametrize(("queues", "devices"), [(False, "ab"), (True, "a")])
def test_launches_of_other_threads_wait_or_are_refused(queues: bool, devices: Any) -> None:
    launches, function = BlockingLaunches(8, queues_nested=queues), Calling()
    outer = function.launch(launches, *devices)
    launches.begin(outer)
    state_made(outer, lambda: None)
    assert not launches.check_nested(devices)  # as the thread of the launch before
    threading.Timer(0.1, lambda: launches.end(outer)).start()
    _on_another_thread(lambda: launches.check_nested(devices))
    assert not launches
    launches = BlockingLaunches(8, queues_nested=queues, patience=0.05)
    launches.begin(function.launch(launches, *devices))
    with pytest.raises(FailedPrecondition, match=r"'f' of pure_callback.* Fix: "):
        _on_another_thread(lambda: launches.check_nested(devices))


def test_another_thread_may_launch_for_a_function_within_the_call_that_launches() -> None:
    launches, function = BlockingLaunches(8, queues_nested=True), Calling()
    launches.begin(function.launch(launches, "a"))
    with entering(function):
        _on_another_thread(lambda: launches.check_nested("a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("queues", "outer", "inner", "refused"),
    [
        (False, "a", "a", False),
        (False, "ab", "a", False),
        (False, "a", "ab", False),
        (False, "ab", "ab", True),
        (False, "ab", "cd", True),
        (True, "a", "a", True),
        (True, "a", "b", False),
        (True, "ab", "a", False),
    ],
)
def test_a_launch_that_would_wait_for_itself_is_refused(
    queues: bool, outer: str, inner: Any, refused: bool
) -> None:
    launches, function, between = BlockingLaunches(8, queues_nested=queues), Calling(), Calling()
    made = function.launch(launches, *outer)
    launches.begin(made)
    with entering(function):  # within the call that launches
        expected = pytest.raises(FailedPrecondition, match=r"'f' of pure_callback.* Fix: ")
        with expected if refused and not queues else nullcontext():
            launches.check_nested(inner)
    state_made(made, lambda: None)
    with entering(function):
        nested = between.launch(launches, "z")
        launches.begin(nested)
        with expected if refused else nullcontext():
            launches.check_nested(inner)
    state_made(nested, lambda: None)
    with entering(between), expected if refused else nullcontext():  # on another thread
        launches.check_nested(inner)


def test_too_many_nested_launches_are_refused() -> None:
    launches = BlockingLaunches(2, patience=0.05)
    with ExitStack() as stack:
        for _ in range(6):
            function = Calling()
            launches.begin(function.launch(launches, "a"))
            stack.enter_context(entering(function))
        with pytest.raises(FailedPrecondition, match=r"6 launches wait .* Fix: nest fewer"):
            launches.begin(Calling().launch(launches, "a"))
