"""Traces, annotations, live arrays, and profiles of devices' memory."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, get_backend, jit, profiler
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    FailedPrecondition,
    FileRefused,
    PluginError,
    Unimplemented,
)
from plugrt.profiler.trace_files import PLANE, HostEvent, encode_xspace, has_unix_times
from plugrt.wire.protobuf import integers, messages
from support.behaviour import behaviour
from support.fake_client import FakeClient, FakePlugin
from support.registries import as_own, registry
from support.requirements import needs_jax

X = np.arange(3, dtype=np.float32)
Events = dict[str, list[tuple[str, str, float, dict[str, Any]]]]


@pytest.fixture(autouse=True)
def no_trace_is_left() -> Iterator[None]:
    yield
    with pytest.raises(FailedPrecondition):
        profiler.stop_trace()


def read_trace(folder: Path) -> Events:
    """Returns (line, name, nanoseconds, details) of the events of each plane, as JAX reads them."""
    from jax.profiler import ProfileData

    [path] = folder.glob("plugins/profile/*/*.xplane.pb")
    data = ProfileData.from_file(str(path))
    return {
        plane.name: [
            (line.name, event.name, event.duration_ns, dict(event.stats))
            for line in plane.lines for event in line.events
        ]
        for plane in data.planes
    }  # fmt: skip


def begins_of(folder: Path) -> dict[str, list[float]]:
    """Returns when the events of each plane began, in nanoseconds."""
    from jax.profiler import ProfileData

    [path] = folder.glob("plugins/profile/*/*.xplane.pb")
    planes = {
        plane.name: [event.start_ns for line in plane.lines for event in line.events]
        for plane in ProfileData.from_file(str(path)).planes
    }
    return {name: begins for name, begins in planes.items() if begins}


def has_profiler() -> bool:
    try:
        get_backend().begin_profile({})()  # type: ignore[attr-defined]
    except (AttributeError, Unimplemented):
        return False
    return True


def test_times_since_1970_are_known() -> None:
    event, now = HostEvent("x", 1, 0.0, 1.0), time.time()
    absolute, relative = (encode_xspace([event], {1: "main"}, epoch) for epoch in (now, 0.0))
    assert has_unix_times(absolute)
    assert has_unix_times(relative + absolute)
    assert not has_unix_times(relative)
    assert not has_unix_times(b"")
    assert not has_unix_times(b"\x0a\x7f no space")


@needs_jax
@behaviour(16, "a trace has plugrt's stages, launches and annotations, a line for each thread")
def test_the_steps_of_this_process(tmp_path: Path) -> None:
    def traced(x: Any) -> Any:
        return xp.sin(x) + 61

    with profiler.trace(tmp_path), profiler.annotate("my step", number=7):
        np.asarray(jit(traced)(plugrt.device_put(X)))
    assert PLANE.startswith("/device:")  # otherwise xprof omits it
    ours = read_trace(tmp_path)[PLANE]
    names = [name for _, name, _, _ in ours]
    for name in ("trace traced", "lower traced", "compile traced", "launch traced", "device_put"):
        assert names.count(name) == 1, names
    assert len({line for line, *_ in ours}) == 1
    [(_, _, nanoseconds, details)] = [e for e in ours if e[1] == "my step"]
    assert details["number"] == "7"
    assert nanoseconds >= sum(e[2] for e in ours if e[1] in ("trace traced", "compile traced"))


@needs_jax
@behaviour(16, "it has the events of the backend, where that has a profiler")
def test_the_events_of_the_backend(tmp_path: Path) -> None:
    if not has_profiler():
        pytest.skip("no profiler here")
    f = jit(lambda x: xp.sin(x) + 62)
    f(X)
    with profiler.trace(tmp_path):
        plugrt.block_until_ready(f(X))
    begins = begins_of(tmp_path)
    assert len(begins) > 1
    latest, first = max(map(max, begins.values())), min(map(min, begins.values()))
    assert latest - first < 600 * 10**9  # on one clock, as xprof needs
    found = read_trace(tmp_path)
    names = [name for plane, events in found.items() if "plugrt" not in plane
             for _, name, *_ in events]  # fmt: skip
    assert any("Execute" in name for name in names), sorted({*names})[:50]


@behaviour(16, "one trace at a time; a stop without a start is an error, as is a second start")
def test_wrong_order_of_traces(tmp_path: Path) -> None:
    with pytest.raises(FailedPrecondition, match="no trace is recorded"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(FailedPrecondition, match=f"recorded already, into {tmp_path}"):
            profiler.start_trace(tmp_path / "other")
    finally:
        path = profiler.stop_trace()
    assert path.is_file()
    with pytest.raises(FileRefused, match=r"profile.*no trace can be written there"):
        profiler.start_trace(path)  # a file, not a folder
    with pytest.raises(ArgumentTypeError):
        profiler.start_trace(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="annotate takes a name; got 3"):
        profiler.annotate(3)  # type: ignore[arg-type]


@needs_jax
@behaviour(
    16,
    "while a library records another trace none begins, and none is lost",
    jax="JAX's second trace is lost in `stop_trace`",
)
def test_a_trace_beside_one_of_jax_is_refused_before_it_begins(tmp_path: Path) -> None:
    import jax.profiler

    if not get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library is not jaxlib")
    jax.profiler.start_trace(tmp_path / "theirs")
    try:
        with pytest.raises(FailedPrecondition, match=r"no trace of .* can begin: .*another trace"):
            profiler.start_trace(tmp_path)
    finally:
        jax.profiler.stop_trace()
    with profiler.trace(tmp_path):
        pass
    for folder in (tmp_path, tmp_path / "theirs"):
        assert "/host:CPU" in read_trace(folder)


def test_while_one_thread_writes_a_trace_another_begins_none(tmp_path: Path) -> None:
    refused: list[str] = []

    def write(*_: Any) -> bytes:  # `stop_trace` calls it
        for call in (lambda: profiler.start_trace(tmp_path), profiler.stop_trace):
            with pytest.raises(FailedPrecondition) as caught:
                call()
            refused.append(str(caught.value))
        return b""

    class Profiled(FakeClient):
        def begin_profile(self, options: object) -> Callable[[], bytes]:
            return write

    with as_own(registry(FakePlugin(create_client=lambda *_: Profiled()))):
        plugrt.devices()
        profiler.start_trace(tmp_path)
        profiler.stop_trace()
    assert "writes the one that it has ended" in refused[0]
    assert "no trace is recorded" in refused[1]


def test_a_trace_that_cannot_be_written_is_kept_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    profiler.start_trace(folder)
    shutil.rmtree(folder)
    folder.write_text("a file now")
    with pytest.raises(FileRefused, match=r"cannot be written there") as caught:
        profiler.stop_trace()
    assert caught.value.filename == str(folder)
    [kept] = re.findall(r"it is in (\S+)", str(caught.value))
    assert PLANE.encode() in Path(kept).read_bytes()
    shutil.rmtree(Path(kept).parents[3])


@needs_jax
@behaviour(16, "`create_perfetto_trace` writes a file for Perfetto; `profiler_options` are heeded")
def test_the_other_arguments_of_jax(tmp_path: Path) -> None:
    import jax.profiler

    def traced(x: Any) -> Any:
        return xp.sin(x) + 63

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.session_id = 0, "mine"
    taken = profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=options)
    with taken, profiler.annotate("my step", number=7):
        np.asarray(jit(traced)(X))
    [path] = tmp_path.glob("plugins/profile/mine/perfetto_trace.json.gz")
    content = json.loads(gzip.decompress(path.read_bytes()))
    events = {e["name"]: e for e in content["traceEvents"] if e["ph"] == "X"}
    step, launch = events["my step"], events["launch traced"]
    assert step["args"]["number"] == "7"
    assert step["ts"] <= launch["ts"] <= launch["ts"] + launch["dur"] <= step["ts"] + step["dur"]
    found = read_trace(tmp_path)
    assert {name for events in found.values() for _, name, *_ in events} == events.keys()
    [nanoseconds] = [ns for _, name, ns, _ in found[PLANE] if name == "my step"]
    assert nanoseconds == pytest.approx(step["dur"] * 1000)

    few = profiler.ProfileOptions(host_tracer_level=1, python_tracer_level=0)
    with profiler.trace(tmp_path / "few", profiler_options=few), profiler.annotate("my step"):
        np.asarray(jit(traced)(X))
    assert [name for _, name, _, _ in read_trace(tmp_path / "few")[PLANE]] == ["my step"]


@needs_jax
def test_wrong_arguments_of_a_trace(tmp_path: Path) -> None:
    import jax.profiler

    late = jax.profiler.ProfileOptions()
    late.duration_ms = 5
    wrong: dict[str, tuple[Any, str]] = {
        "create_perfetto_link": (True, "Take create_perfetto_trace=True"),
        "create_perfetto_trace": ("yes", "takes True or False"),
        "profiler_options": ({"host_tracer_level": 1}, "takes a plugrt.profiler.ProfileOptions"),
    }
    for name, (value, text) in wrong.items():
        with pytest.raises(ArgumentError, match=text):
            profiler.start_trace(tmp_path, **{name: value})
    options: Any = profiler.ProfileOptions
    for given, text in (
        (late, "duration_ms is 5"),
        (options(host_tracer_level=4), "host_tracer_level is 4; it takes 0, 1, 2, 3"),
        (options(session_id="a/b"), "session_id is 'a/b'"),
        (options(advanced_configuration={"a": 1.5}), "advanced_configuration"),
    ):
        with pytest.raises(ArgumentError, match=f"profiler_options.{text}"):
            profiler.start_trace(tmp_path, profiler_options=given)
    with pytest.raises(ArgumentError, match=r"'gs://bucket/log'; .* folders of this machine only"):
        profiler.start_trace("gs://bucket/log")


@needs_jax
def test_annotations_nest_decorate_and_survive_exceptions(tmp_path: Path) -> None:
    @profiler.annotate("decorated")
    def fact(n: int) -> int:
        return 1 if n == 0 else n * fact(n - 1)

    with profiler.trace(tmp_path):
        assert fact(3) == 6
        with pytest.raises(KeyError), profiler.annotate("outer"), profiler.annotate("inner"):
            raise KeyError
    names = [name for _, name, _, _ in read_trace(tmp_path)[PLANE]]
    assert names == ["decorated"] * 4 + ["inner", "outer"]


@needs_jax
@behaviour(16, "`TraceAnnotation`, `StepTraceAnnotation` and `annotate_function` are as JAX's")
def test_annotations_under_the_names_of_jax(tmp_path: Path) -> None:
    @profiler.annotate_function
    def plain() -> int:
        return 1

    def other() -> int:
        return 2

    with profiler.trace(tmp_path):
        for step in range(2):
            with profiler.StepTraceAnnotation(name="train", step_num=step):
                with profiler.TraceAnnotation("block", kind="a") as block:
                    assert plain() == 1
                    assert profiler.TraceAnnotation.is_enabled()
                    block.set_metadata(found=step)
                assert profiler.annotate_function(other, "renamed", kind="b")() == 2
    events = [(name, details) for _, name, _, details in read_trace(tmp_path)[PLANE]]
    assert [name.rpartition(".")[2] for name, _ in events] == ["plain", "block", "renamed",
                                                               "train"] * 2  # fmt: skip
    assert [d["found"] for name, d in events if name == "block"] == ["0", "1"]
    steps = [details for name, details in events if name == "train"]
    assert [(details["step_num"], details["_r"]) for details in steps] == [("0", "1"), ("1", "1")]
    with pytest.raises(ArgumentTypeError, match="annotate_function takes a function; got 3"):
        profiler.annotate_function(3)  # type: ignore[type-var]
    with pytest.raises(ArgumentError, match="named duration"):
        block.set_metadata(duration=3)


@needs_jax
def test_each_name_of_jax_is_there_or_says_what_to_take() -> None:
    import jax.profiler

    for name in dir(jax.profiler):
        if not name.startswith("_") and not hasattr(profiler, name):
            with pytest.raises(AttributeError, match=f"'{name}': "):
                getattr(profiler, name)
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        profiler.nothing  # noqa: B018


@needs_jax
def test_details_of_any_name_but_those_that_listeners_get(tmp_path: Path) -> None:
    with profiler.trace(tmp_path), profiler.annotate("mine", name="a", self="b", plugin=3):
        pass
    [(_, name, _, details)] = read_trace(tmp_path)[PLANE]
    assert name == "mine"
    assert details.items() >= {"name": "a", "self": "b", "plugin": "3"}.items()
    for taken in ("event", "duration", "fun_name"):
        with pytest.raises(ArgumentError, match=f"'mine'.*named {taken}, .*call them otherwise"):
            profiler.annotate("mine", **{taken: 1})


def test_each_trace_has_a_file_of_its_own(tmp_path: Path) -> None:
    paths = []
    for _ in range(9):
        profiler.start_trace(tmp_path)
        paths.append(profiler.stop_trace())
    assert len({*paths}) == 9
    assert all(path.is_file() for path in paths)


@behaviour(
    16,
    "`live_arrays` has the arrays that are alive, of a platform or of all, and not deleted ones",
    jax="without a name JAX uses the default backend",
)
def test_live_arrays() -> None:
    x, y, gone = (plugrt.device_put(X + i) for i in range(3))
    gone.delete()
    name = next(iter(plugrt.backends()))
    for live in (plugrt.live_arrays(), plugrt.live_arrays(name)):
        ids = {id(array) for array in live}
        assert {id(x), id(y)} <= ids
        assert id(gone) not in ids
    shape = (13, 17)  # no other test uses it
    held = [plugrt.device_put(np.ones(shape)) for _ in range(3)]
    assert sum(array.shape == shape for array in plugrt.live_arrays()) == 3
    held.pop()
    assert sum(array.shape == shape for array in plugrt.live_arrays()) == 2
    with pytest.raises(PluginError, match="nope"):
        plugrt.live_arrays("nope")


@behaviour(
    16,
    "a memory profile is pprof's: for each device and type of array their number and bytes",
    jax="JAX's samples have the stacks of Python that made an array",
)
def test_the_memory_profile(tmp_path: Path) -> None:
    shape = (7, 11)  # no other test uses it
    held = [plugrt.device_put(np.ones(shape, np.float32), devices()[i % 2]) for i in range(5)]
    (silent,) = FakeClient().devices()  # its buffers do not report their size on the device
    held.append(plugrt.device_put(np.ones(shape, np.float32), silent))
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    with pytest.raises(FileRefused, match="no profile can be written there: No such file"):
        profiler.save_device_memory_profile(tmp_path / "none" / "memory.prof")
    content = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    texts = [bytes(text).decode() for text in messages(content, 6)]
    types = [[texts[n] for n in (*integers(t, 1), *integers(t, 2))] for t in messages(content, 1)]
    assert types == [["allocations", "count"], ["space", "bytes"]]
    names = {
        integers(function, 1)[0]: texts[integers(function, 2)[0]]
        for function in messages(content, 5)
    }
    found = {
        texts[integers(messages(sample, 3)[0], 2)[0]]: integers(sample, 2)
        for sample in messages(content, 2)
        if names[integers(sample, 1)[0]] == "float32[7, 11]"
    }
    counts = zip([*devices()[:2], silent], [3, 2, 1], strict=True)
    assert found == {repr(device): [count, count * 308] for device, count in counts}
    assert len(held) == 6
