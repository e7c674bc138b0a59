"""Vendor data: aliases, shared libraries and their sources, and detection of hardware.

No other file of the runtime contains vendors' names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from plugrt.base import files
from plugrt.interface import OptionValue
from plugrt.plugins.packages import distributions
from plugrt.settings.declarations import Config

ALIASES: Mapping[str, tuple[str, ...]] = {"gpu": ("cuda", "rocm", "oneapi")}
"""Aliases of several plugins, in order of preference. JAX has the same."""

VISIBLE_DEVICES: Mapping[str, str] = {
    "cuda": "cuda_visible_devices",
    "rocm": "rocm_visible_devices",
    "oneapi": "oneapi_visible_devices",
}
"""Name of a GPU library to the setting of the devices it uses. JAX has the same."""


def show_devices(config: Config, indices: Sequence[int]) -> None:
    """Makes the GPU libraries that start later use the devices of these indices alone."""
    config.update("cuda_visible_devices", tuple(indices))
    config.update("rocm_visible_devices", tuple(indices))
    config.update("oneapi_visible_devices", tuple(indices))


def gpu_options(name: str, config: Config) -> dict[str, OptionValue]:
    """Returns the create options that JAX derives from its settings for GPU libraries.

    Empty for any other name. JAX also passes ``enable_mock_nccl`` if it is False, the default,
    which jax-cuda11-pjrt 0.4.25 refuses as unknown.
    """
    if name not in VISIBLE_DEVICES:
        return {}
    options: dict[str, OptionValue] = {}
    visible: tuple[int, ...] | None = getattr(config, VISIBLE_DEVICES[name])
    if visible is not None:
        options["visible_devices"] = list(visible)
    shape, nodes = config.mock_gpu_topology, config.mock_num_gpu_processes
    if shape:
        slices, hosts, _ = map(int, shape.split("x"))  # JAX's help has spaces around it
        nodes = slices * hosts
        options["mock_gpu_topology"] = shape
    # Workaround for cuda-mock-nccl
    return {**options, **({"enable_mock_nccl": True, "num_nodes": nodes} if nodes > 0 else {})}


_GPU = rf"(?i)(?<![a-z])({'|'.join([*ALIASES, *VISIBLE_DEVICES])})(?![a-z])"


def trial_options(
    names: Collection[str], needed: Collection[str], options: Mapping[str, OptionValue]
) -> Mapping[str, OptionValue]:
    """Returns create options for a client in a child process, which leaves a GPU's memory free.

    XLA's GPU clients allocate most of the memory when they start, which another program may hold.
    A library is a GPU's by the ``names`` of its plugin and file, or by the libraries ``needed``.
    """
    plugins = {plugin for hardware in find_hardware((), needed) for plugin in hardware.plugins}
    if "preallocate" in options or any(re.search(_GPU, x) for x in (*names, *plugins)):
        return {**options, "preallocate": False}
    return options


_NVIDIA = {
    "libcudart.so.12": "nvidia-cuda-runtime-cu12",
    "libcublas.so.12": "nvidia-cublas-cu12",
    "libcublasLt.so.12": "nvidia-cublas-cu12",
    "libcudnn.so.9": "nvidia-cudnn-cu12 (or -cu13)",
    "libcufft.so.11": "nvidia-cufft-cu12",
    "libcusolver.so.11": "nvidia-cusolver-cu12",
    "libcusparse.so.12": "nvidia-cusparse-cu12 (or nvidia-cusparse)",
    "libcupti.so.12": "nvidia-cuda-cupti-cu12",
    "libnccl.so.2": "nvidia-nccl-cu12 (or -cu13)",
    "libnvshmem_host.so.3": "nvidia-nvshmem-cu12 (or -cu13)",
    "libnvJitLink.so.12": "nvidia-nvjitlink-cu12",
    "libcudart.so.13": "nvidia-cuda-runtime",
    "libcublas.so.13": "nvidia-cublas",
    "libcublasLt.so.13": "nvidia-cublas",
    "libcufft.so.12": "nvidia-cufft",
    "libcusolver.so.12": "nvidia-cusolver",
    "libcupti.so.13": "nvidia-cuda-cupti",
}
"""Maps libraries of NVIDIA's GPUs to their sources, the drivers and toolkits below.

These are facts about the hardware and not about a plugin: no file on the machine names the package
of a missing library.
"""
_ROCM = ("libamd*", "libhip*", "libhsa-*", "libMIOpen*", "librccl*", "libroc*")
_ONEAPI = (
    "libccl*", "libimf*", "libintlc*", "libirc*", "libirng*", "libmkl_*", "libmpi.so.12",
    "libsvml*", "libsycl*", "libumf*", "libur_*",
)  # fmt: skip
SHARED_LIBRARIES: Mapping[str, str] = {
    "libcuda.so.1": "the NVIDIA driver",
    **{library: f"the package {package}" for library, package in _NVIDIA.items()},
    **dict.fromkeys(_ROCM, "AMD's ROCm"),
    **dict.fromkeys(_ONEAPI, "Intel's oneAPI"),
    "libze_*": "Intel's Level Zero loader",
    "libOpenCL.so*": "an OpenCL loader, such as ocl-icd",
    "libhwloc.so*": "hwloc",
    # https://github.com/apache/tvm-ffi; the wheel has tvm_ffi/lib/libtvm_ffi.so.
    "libtvm_ffi.so": "the package apache-tvm-ffi",
}
"""Patterns of shared libraries that PJRT libraries need, to their sources."""


class StartVariables(NamedTuple):
    """Variables that a library needs on machines without the device of this label."""

    device: str
    variables: Mapping[str, str]


_TPU = "a Google TPU"
START_VARIABLES: Mapping[str, StartVariables] = {
    # It queries the metadata server of Google's cloud, which blocks for minutes on other machines
    # (https://github.com/jax-ml/jax/pull/29069), and writes log files to the temporary folder. A
    # lock restricts it to one process of the machine, for chips that do not exist there.
    "libtpu.so": StartVariables(_TPU, {
        "GRPC_VERBOSITY": "ERROR",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_LOG_DIR": "disabled",
        "TPU_MIN_LOG_LEVEL": "3",
        "TPU_STDERR_LOG_LEVEL": "3",
    }),
}  # fmt: skip
"""Maps a library's file name to the variables with which it starts quickly and without output."""


def is_exclusive(library: str) -> bool:
    """Whether one process at a time can use the devices of a library, by its file's name."""
    return "libtpu.so" in files.names_of(library)


class Hardware(NamedTuple):
    """A device type: how to detect it, and the plugins for it.

    A plugin is for it if one of ``plugins`` is among its names, or if its library needs one that
    matches one of ``libraries``, the device vendor's own. ``files`` are device files
    made by its driver. ``vendor`` is the PCI vendor id; a device of that vendor counts if its class
    code begins with one of ``classes`` or its device id is one of ``devices``.
    """

    label: str
    plugins: tuple[str, ...]
    files: tuple[str, ...] = ()
    vendor: str = ""
    classes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    usual: bool = False

    def is_seen(self, root: str | os.PathLike[str], pci: Collection[tuple[str, str, str]]) -> bool:
        """Whether one of these is among the files under ``root`` or the PCI devices."""
        return any(os.path.exists(os.path.join(root, file)) for file in self.files) or any(
            vendor == self.vendor and (code.startswith(self.classes) or device in self.devices)
            for vendor, device, code in pci
        )


_GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
"""PCI class codes: VGA, 3D and other display controllers, processing accelerators."""

NVIDIA_FILES = ("dev/nvidia0", "dev/nvidiactl", "dev/dxg")
"""A GPU, the driver's control device, and a GPU in WSL2: the files JAX checks."""

GOOGLE = "0x1ae0"
TPU_CHIPS: Mapping[str, str] = {
    "0x0027": "v2 or v3",
    "0x0056": "an unnamed generation",
    "0x005e": "v4",
    "0x0062": "v5p",
    "0x0063": "v5e",
    "0x006f": "v6e",
    "0x0076": "7x",
    "0x007c": "8t",
    "0x0083": "8i",
}
"""PCI device id of Google's to the generation; the vendor's network cards and disks, which are in
every such machine, have other ids. JAX has the same."""

_LEVEL_ZERO = ("libze_loader.so*", "libsycl.so*")
HARDWARE = (
    Hardware("an NVIDIA GPU", ("cuda",), NVIDIA_FILES, "0x10de", _GPU_CLASSES,
             libraries=("libcuda.so*", "libcuda-*", "libcudart.so*", "libcublas.so*")),
    Hardware("an AMD GPU", ("rocm",), ("dev/kfd",), "0x1002", ("0x1200",),
             libraries=("libamdhip64.so*", "libhsa-runtime64.so*")),
    Hardware(_TPU, ("tpu",), (), GOOGLE, (), tuple(TPU_CHIPS)),
    Hardware("an Intel data-centre GPU", ("oneapi",), (), "0x8086", ("0x0380",),
             libraries=_LEVEL_ZERO),
    # Graphics cards and integrated graphics have the same class.
    Hardware("an Intel graphics card", ("oneapi",), (), "0x8086", ("0x0300",),
             libraries=_LEVEL_ZERO, usual=True),
    Hardware("an AWS Neuron device", ("neuron",), ("dev/neuron0",)),
    Hardware("a Tenstorrent device", ("tt",), ("dev/tenstorrent",), "0x1e52", ("0x1200",)),
)  # fmt: skip


def hardware_seen(root: files.AnyPath = "/") -> list[Hardware]:
    """Returns the accelerators of this machine; reads /dev and /sys, opens no device."""
    pci = pci_devices(root)
    return [hardware for hardware in HARDWARE if hardware.is_seen(root, pci)]


def pci_devices(root: files.AnyPath = "/") -> list[tuple[str, str, str]]:
    """Returns (vendor id, device id, class code) of each PCI device; empty without a /sys."""
    folder = os.path.join(root, "sys/bus/pci/devices")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    places = [os.path.join(folder, name) for name in names]
    return [
        (read_word(f"{place}/vendor"), read_word(f"{place}/device"), read_word(f"{place}/class"))
        for place in places
    ]


def libraries_of(names: Collection[str]) -> list[str]:
    """Returns the file names of the libraries that plugins of these names use."""
    devices = {hardware.label for hardware in HARDWARE if set(hardware.plugins) & set(names)}
    return [file for file, needs in START_VARIABLES.items() if needs.device in devices]


def read_word(file: files.AnyPath) -> str:
    """Returns a small system file's text without the line end; empty if unreadable."""
    try:
        return files.read_text(file, errors="replace").strip()
    except OSError:
        return ""  # it does not exist, is not readable, or the device was removed


def find_hardware(names: Collection[str], libraries: Collection[str]) -> list[Hardware]:
    """Returns the device types of a plugin of these names, or that needs these libraries."""
    from fnmatch import fnmatchcase  # not needed by every start

    return [
        hardware for hardware in HARDWARE
        if set(names) & set(hardware.plugins)
        or any(fnmatchcase(name, known) for name in libraries for known in hardware.libraries)
    ]  # fmt: skip


def explain_missing(hardware: Hardware, on_request: Sequence[str]) -> str:
    """Returns the sentence for an accelerator here that no automatic choice uses.

    ``on_request`` are installed plugins for it that must be named.
    """
    has = f"this machine has {hardware.label}, but no plugin for it is"
    if not on_request:
        return f"{has} installed; {install(hardware.plugins[0])}"
    command = find_extra(hardware.plugins[0])
    own = f", or: {command}" if command else ""
    return (
        f"{has} one of plugrt's own; {', '.join(on_request)}, made for another program, is used "
        f"when it is requested (JAX_PLATFORMS={on_request[0]}){own}"
    )


def install(name: str) -> str:
    """Returns how to install a plugin of that name."""
    return find_extra(name) or f"install a plugin that provides {name!r}"


def find_extra(name: str, of: str = "plugrt") -> str:
    """Returns how to install a plugin by an extra of a distribution; empty without one.

    The extra has the plugin's name, with the version of the vendor's software after it.
    """
    names = "|".join(map(re.escape, ALIASES.get(name, (name,))))
    found = [e for e in distributions.extras(of) if re.fullmatch(rf"({names})\d*", e)]
    first, *others = [f'"{of}[{extra}]"' for extra in found] or [""]
    more = f" (or {' or '.join(others)})" if others else ""
    return f"pip install {first}{more}" if first else ""
