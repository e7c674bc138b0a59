"""Descriptions of GPUs to compile for, in the form that a PJRT library for CUDA reads.

The facts are published by NVIDIA: data sheets and white papers of each GPU, and the table of limits
per compute capability in the CUDA C++ Programming Guide. The library reads the text form of XLA's
``GpuTargetConfigProto``. If a field that the compiler divides by is missing, it ends the process,
so every field that it reads is present.
"""

from __future__ import annotations

from dataclasses import dataclass

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
GIGA = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Architecture:
    """What GPUs of one compute capability share: units of a multiprocessor (SM), and limits.

    Shared memory is in KB for an SM; a block may have 1 KB less.
    """

    major: int
    minor: int
    lanes: int
    """FP32 operations that an SM begins in a clock cycle."""
    shared_kb: int
    threads: int
    """Threads that an SM holds at a time."""


TURING = Architecture(7, 5, 64, 64, 1024)
AMPERE = Architecture(8, 0, 64, 164, 2048)
AMPERE_GRAPHICS = Architecture(8, 6, 128, 100, 1536)
ADA = Architecture(8, 9, 128, 100, 1536)
HOPPER = Architecture(9, 0, 128, 228, 2048)
BLACKWELL = Architecture(10, 0, 128, 228, 2048)


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU: ``bandwidth`` of its memory in GB/s, ``clock`` its boost clock in GHz."""

    title: str
    architecture: Architecture
    cores: int
    clock: float
    memory: int
    bandwidth: int
    l2: int

    def text(self) -> str:
        """Returns the description as the text of a ``GpuTargetConfigProto``."""
        a = self.architecture
        info = {
            "threads_per_block_limit": 1024,
            "threads_per_warp": 32,
            "shared_memory_per_block": 48 * KB,
            "shared_memory_per_block_optin": (a.shared_kb - (a.major >= 8)) * KB,
            "shared_memory_per_core": a.shared_kb * KB,
            "threads_per_core_limit": a.threads,
            "core_count": self.cores,
            "fpus_per_core": a.lanes,
            "block_dim_limit_x": 2**31 - 1,
            "block_dim_limit_y": 2**16 - 1,
            "block_dim_limit_z": 2**16 - 1,
            "registers_per_core_limit": 65536,
            "registers_per_block_limit": 65536,
            "memory_bandwidth": self.bandwidth * GIGA,
            "l2_cache_size": self.l2,
            "clock_rate_ghz": self.clock,
            "device_memory_size": self.memory,
        }
        fields = "\n".join(f"  {name}: {value}" for name, value in info.items())
        return (
            f"gpu_device_info {{\n{fields}\n"
            f"  cuda_compute_capability {{ major: {a.major} minor: {a.minor} }}\n}}\n"
            f'platform_name: "CUDA"\n'
            f"dnn_version_info {{ major: 9 minor: 8 }}\n"
            f'device_description_str: "{self.title}"\n'
        )


TARGETS = {
    "t4": Target("NVIDIA T4", TURING, 40, 1.59, 16 * GB, 320, 4 * MB),
    "a100": Target("NVIDIA A100-SXM4-80GB", AMPERE, 108, 1.41, 80 * GB, 2039, 40 * MB),
    "a100-40gb": Target("NVIDIA A100-SXM4-40GB", AMPERE, 108, 1.41, 40 * GB, 1555, 40 * MB),
    "a10": Target("NVIDIA A10", AMPERE_GRAPHICS, 72, 1.695, 24 * GB, 600, 6 * MB),
    "l4": Target("NVIDIA L4", ADA, 58, 2.04, 24 * GB, 300, 48 * MB),
    "l40s": Target("NVIDIA L40S", ADA, 142, 2.52, 48 * GB, 864, 96 * MB),
    "h100": Target("NVIDIA H100 80GB HBM3", HOPPER, 132, 1.98, 80 * GB, 3350, 50 * MB),
    "h100-pcie": Target("NVIDIA H100 PCIe", HOPPER, 114, 1.755, 80 * GB, 2000, 50 * MB),
    "h200": Target("NVIDIA H200", HOPPER, 132, 1.98, 141 * GIGA, 4800, 50 * MB),
    "b200": Target("NVIDIA B200", BLACKWELL, 148, 1.965, 180 * GIGA, 8000, 126 * MB),
}
"""Name to GPU. To add one, add a line; or pass a description as the option target_config."""
