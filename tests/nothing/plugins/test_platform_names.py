"""`plugrt.plugins.selection.platform_names`: JAX's names and results for platforms."""

from __future__ import annotations

import inspect

import pytest

import plugrt
from plugrt import plugins
from plugrt.errors import PluginError, UnknownPlatform
from plugrt.plugins import Availability
from plugrt.plugins.selection import platform_names
from support.fake_client import FakePlugin
from support.registries import registry

ABSENT = Availability.no("no such device", "plug one in")


def test_an_alias_expands_to_names_in_order() -> None:
    of = registry(FakePlugin("chip", aliases=("accel",)), FakePlugin("chop", aliases=("accel",)))
    assert platform_names.expand_platform_alias("gpu", of) == ["cuda", "rocm", "oneapi"]
    assert platform_names.expand_platform_alias("accel", of) == ["chip", "chop"]
    assert platform_names.expand_platform_alias("chip", of) == ["chip"]
    assert platform_names.expand_platform_alias("nonsense", of) == ["nonsense"]
    assert not platform_names.backends_are_initialized(of), "it starts nothing"


def test_an_alias_is_made_canonical_by_what_works() -> None:
    of = registry(FakePlugin("cuda", available=ABSENT), FakePlugin("rocm"), FakePlugin("cpu"))
    assert platform_names.canonicalize_platform("gpu", of) == "rocm"
    for name in ("rocm", "cuda", "nonsense"):
        assert platform_names.canonicalize_platform(name, of) == name
    assert platform_names.backends_are_initialized(of)
    with pytest.raises(UnknownPlatform):
        platform_names.canonicalize_platform("gpu", registry(FakePlugin("cpu")))
    with pytest.raises(PluginError, match="no such device"):
        platform_names.canonicalize_platform("gpu", registry(FakePlugin("cuda", available=ABSENT)))


def test_known_platforms() -> None:
    of = registry(FakePlugin("chip", aliases=("accel",), available=ABSENT))
    assert platform_names.known_platforms(of) == {"chip", "accel", "gpu", "cuda", "rocm", "oneapi"}
    assert platform_names.is_known_platform("chip", of)
    assert platform_names.is_known_platform("gpu", of)
    assert not platform_names.is_known_platform("chi", of)
    assert [n for n in ("cuda", "rocm", "gpu", "chip", "cpu") if platform_names.is_gpu(n, of)] == [
        "cuda", "rocm"
    ]  # fmt: skip


def test_whether_backends_are_initialized() -> None:
    of = registry(FakePlugin("chip"))
    assert not platform_names.backends_are_initialized(of)
    plugrt.devices(of=of)
    assert platform_names.backends_are_initialized(of)
    plugrt.clear_backends(of)
    assert not platform_names.backends_are_initialized(of)


def test_the_backend_of_a_device() -> None:
    of = registry(FakePlugin("chip", priority=900), FakePlugin("chop"))
    (device, *_) = plugrt.devices("chop", of)
    assert platform_names.get_device_backend(device, of) is device.client
    assert platform_names.get_device_backend(of=of) is plugrt.get_backend("chip", of)


def test_a_backend_that_is_no_library_has_no_versions() -> None:
    of = registry(FakePlugin("chip"))
    assert not platform_names.using_pjrt_c_api("chip", of)
    assert platform_names.backend_pjrt_c_api_version("chip", of) is None
    assert platform_names.backend_xla_version("chip", of) is None
    assert platform_names.backend_stablehlo_version("chip", of) is None
    assert plugrt.process_indices("chip", of) == [0]


def test_the_functions_take_what_jax_s_take() -> None:
    bridge = pytest.importorskip("jax._src.xla_bridge")
    own = platform_names.__name__
    names = {n for n, x in vars(platform_names).items() if getattr(x, "__module__", "") == own}
    names &= {*dir(plugins)}
    assert "using_pjrt_c_api" in names
    for name in names:
        ours = list(inspect.signature(getattr(plugins, name)).parameters)
        assert ours.pop() == "of"
        if hasattr(bridge, name):  # not is_gpu, which JAX had until 2024
            assert ours == list(inspect.signature(getattr(bridge, name)).parameters), name
