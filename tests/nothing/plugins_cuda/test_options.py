"""Create options from settings, and names and descriptions of GPUs to compile for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plugrt.errors import ConfigError, InvalidArgument
from plugrt_cuda import create_options, gpu_targets, topologies
from plugrt_cuda.plugin import CudaPlugin
from support.registries import settings

DEFAULTS = {
    "platform_name": "cuda", "allocator": "default", "abort_collectives_on_failure": False,
    "use_tfrt_gpu_client": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {}),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, {"allocator": "platform"}),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {"preallocate": False}),
        ({"XLA_CLIENT_MEM_FRACTION": "0.5"}, {"memory_fraction": 0.5}),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".25"}, {"memory_fraction": 0.25}),
        ({"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "3"}, {"collective_memory_size": 3 << 20}),
        ({"XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE": "1"},
         {"abort_collectives_on_failure": True}),
        ({"XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "1"}, {"use_tfrt_gpu_client": True}),
        ({"JAX_CUDA_VISIBLE_DEVICES": "0,2"}, {"visible_devices": [0, 2]}),
        ({"JAX_MOCK_GPU_TOPOLOGY": "2x3x4"},
         {"enable_mock_nccl": True, "num_nodes": 6, "mock_gpu_topology": "2x3x4"}),
        ({"JAX_MOCK_GPU_TOPOLOGY": "2 x 1 x 4"},
         {"enable_mock_nccl": True, "num_nodes": 2, "mock_gpu_topology": "2 x 1 x 4"}),
        ({"JAX_MOCK_NUM_GPU_PROCESSES": "2"}, {"enable_mock_nccl": True, "num_nodes": 2}),
        ({"JAX_PJRT_CLIENT_CREATE_OPTIONS": "allocator:vmm;more:1"},
         {"allocator": "vmm", "more": 1}),
    ],
)  # fmt: skip
def test_settings_become_options(environ: dict[str, str], expected: dict[str, Any]) -> None:
    found = CudaPlugin().client_options(settings(**environ))
    assert found == {**DEFAULTS, **expected}
    for name, value in found.items():
        assert type(value) is create_options.OPTION_TYPES.get(name, type(value))


@pytest.mark.parametrize("shape", ["4", "2x2", "0x1x1", "axbxc", "1x1x1x1", "9999999999x1x1"])
def test_a_mock_topology_has_three_numbers(shape: str) -> None:
    with pytest.raises(ConfigError, match="slices x hosts"):
        create_options.from_config(settings(JAX_MOCK_GPU_TOPOLOGY=shape))


def test_an_option_of_a_wrong_type_never_reaches_the_library() -> None:
    with pytest.raises(InvalidArgument, match="memory_fraction"):
        CudaPlugin().create_client({"memory_fraction": "half"})


@pytest.mark.parametrize(
    ("name", "gpu", "shape"),
    [("h100", "h100", "1x1x1"), ("H100:8", "h100", "1x1x8"), ("b200:1x2x4", "b200", "1x2x4")],
)
def test_names(name: str, gpu: str, shape: str) -> None:
    options = topologies.library_options(name, {})
    assert options == {"target_config": gpu_targets.TARGETS[gpu].text(), "topology": shape}


def test_options_win_over_the_name() -> None:
    assert topologies.library_options("h100:8", {"topology": "2x1x4"})["topology"] == "2x1x4"
    assert topologies.library_options("h100", {"topology": 4})["topology"] == "1x1x4"
    mine = gpu_targets.TARGETS["a100"].text().replace("108", "54")
    assert topologies.library_options("", {"target_config": mine})["target_config"] == mine


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("", {}, "known GPUs: t4, a100"),
        ("h101", {}, "did you mean 'h100'"),
        ("h100:2x2", {}, "names no GPU topology"),
        ("h100:0", {}, "is not partitions x hosts x devices"),
        ("h100", {"topology": "wide"}, "is not partitions x hosts x devices"),
        ("", {"target_config": "gpu_device_info { core_count: 1 }"}, "lacks threads_per_block"),
        ("", {"target_config": 3}, "is a text"),
    ],
)
def test_wrong_topologies_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        topologies.library_options(name, options)


@pytest.mark.parametrize("gpu", gpu_targets.TARGETS)
def test_descriptions_have_all_that_the_compiler_divides_by(gpu: str) -> None:
    text = gpu_targets.TARGETS[gpu].text()
    for field in topologies.NEEDED:
        assert re.search(rf"^  {field}: [1-9][\d.]*$", text, re.M), field
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("gpu", "capability", "cores"),
    [("a100", "major: 8 minor: 0", 108), ("h100", "major: 9 minor: 0", 132),
     ("b200", "major: 10 minor: 0", 148)],
)  # fmt: skip
def test_the_gpus_that_were_promised(gpu: str, capability: str, cores: int) -> None:
    text = gpu_targets.TARGETS[gpu].text()
    assert capability in text
    assert f"core_count: {cores}\n" in text
