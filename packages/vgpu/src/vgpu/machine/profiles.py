"""GPUs by name: what `torch.cuda.get_device_properties` says of them, for programs that decide by it.

Compute capabilities: developer.nvidia.com/cuda-gpus. Threads, registers and shared memory of each: the table
"Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide. Names, memory, multiprocessors and
L2 cache are what NVIDIA's deviceQuery or PyTorch printed on such a machine; the source stands beside each. Clocks and
the width of the memory's bus are those of NVIDIA's data sheets. Memory differs by up to 1 % with the driver and with
error correction. None was compared with a GPU here.
"""

from __future__ import annotations

import dataclasses

KIB, MIB = 1 << 10, 1 << 20


@dataclasses.dataclass(frozen=True)
class Profile:
    """The facts of one GPU; memory in bytes."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int | None  # None: a share of the host's
    max_threads_per_multi_processor: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock: int = 0  # MHz, at most
    memory_clock: int = 0
    memory_bus_width: int = 0  # bits

    @property
    def shared_memory_per_block_optin(self) -> int:
        """Bytes that one block may ask for: all of a multiprocessor's but 1 KiB, from capability 8.0 on."""
        return self.shared_memory_per_multiprocessor - (KIB if self.major >= 8 else 0)


# The GPU of no profile: computes as an A100 by its capability, for programs that choose their kernels by it.
DEFAULT = Profile("Virtual GPU (CPU)", 8, 0, 1, None, 2048, 164 * KIB, 0)

PROFILES = {
    # deviceQuery in github.com/bottlerocket-os/bottlerocket/pull/3798
    "t4": Profile("Tesla T4", 7, 5, 40, 15655829504, 1024, 64 * KIB, 4 * MIB, 1590, 5001, 256),
    # deviceQuery in github.com/bottlerocket-os/bottlerocket/pull/3873
    "a100-40": Profile("NVIDIA A100-SXM4-40GB", 8, 0, 108, 42298834944, 2048, 164 * KIB, 40 * MIB, 1410, 1215, 5120),
    # deviceQuery of driver 12.2 as public notes keep it: 81051 MBytes (with 12.5: 81158)
    "a100-80": Profile("NVIDIA A100-SXM4-80GB", 8, 0, 108, 84987740160, 2048, 164 * KIB, 40 * MIB, 1410, 1593, 5120),
    # deviceQuery of driver 12.8, and PyTorch's properties in public lecture notes: 81090 MB
    "h100": Profile("NVIDIA H100 80GB HBM3", 9, 0, 132, 85028896768, 2048, 228 * KIB, 50 * MIB, 1980, 2619, 5120),
    # PyTorch's properties in a comment of a public script: 143156MB; the bytes below that were not printed
    "h200": Profile("NVIDIA H200", 9, 0, 132, 143156 * MIB, 2048, 228 * KIB, 60 * MIB, 1980, 3201, 6144),
    # deviceQuery of driver 12.4 as public code keeps it: 24210 MBytes
    "rtx4090": Profile("NVIDIA GeForce RTX 4090", 8, 9, 128, 25386352640, 1536, 100 * KIB, 72 * MIB, 2520, 10501, 384),
}

_chosen: list[str | None] = [None]


def check(name: str | None) -> str | None:
    """Return the name of a profile, or None for none.

    Raises:
        ValueError: if there is no such profile.
    """
    if name is not None and name not in list(PROFILES):
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {name!r}")
    return name


def configure(name: str | None) -> None:
    """Let every virtual GPU be one of these."""
    _chosen[0] = check(name)


def chosen() -> str | None:
    """The name of the profile, or None."""
    return _chosen[0]


def current() -> Profile:
    """The facts of every virtual GPU."""
    return DEFAULT if _chosen[0] is None else PROFILES[_chosen[0]]
