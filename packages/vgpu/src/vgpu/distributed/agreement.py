"""Whether the ranks of a group call the same collective: where they do not, NCCL hangs or adds up garbage.

Real GPUs give no error for most of this, so what raises here is marked as simulated only. Two ranks on one GPU are
refused by NCCL itself, in the words used here (init.cc of NCCL): those of the NCCL that a torch of this version brings.
The ranks tell each other over gloo, before each collective, what they are about to do.
"""

from __future__ import annotations

import os
import socket
import zlib
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from vgpu.base import program
from vgpu.distributed import groups
from vgpu.machine import devices

_DTYPES = tuple(sorted({v for v in vars(torch).values() if isinstance(v, torch.dtype)}, key=str))
_HEAD = 5  # what stands before the counts
_LONGEST = 240  # bytes of a name and of the line that called; what is longer is cut
# NCCL 2.30 has new words for two ranks on one GPU, and a variable that allows it; torch 2.13 brings 2.29.7, 2.14 2.30.7
_MAY_SHARE = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 14)


class Call(NamedTuple):
    """What one rank is about to do."""

    name: str
    dtype: torch.dtype | None  # None where it sends nothing
    reduction: int  # -1 where it has none, or nobody can know
    root: int  # -1 where it has none
    ordinal: int
    gives: list[int]  # elements, to each rank
    takes: list[int]  # from each rank


def check(found: groups.Route, call: Call) -> None:
    """Return where all ranks of the group do the same.

    Raises:
        DistBackendError: if two ranks use one GPU.
        RuntimeError: if the ranks differ in what they call, in dtype, reduction, root or number of elements, or if some
            rank has changed its device and others have not.
    """
    told = _exchange(found, call)
    gpus = tuple(row[_HEAD - 1] for row in told)
    sharing = _MAY_SHARE and os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE", "0") != "0"
    for rank, gpu in enumerate(gpus):
        if gpu in gpus[:rank] and not sharing:
            raise _duplicate(gpus.index(gpu), rank, gpu)
    _check_communicators(found, gpus)
    size = found.size
    for rank, row in enumerate(told):
        same = row[: _HEAD - 1] == told[0][: _HEAD - 1]
        given = all(row[_HEAD + k] == told[k][_HEAD + size + rank] for k in range(size))
        if not (same and given):
            raise _differ(told, *_exchange_words(found, call.name))


def check_message(found: groups.Route, name: str, one: torch.Tensor, other: int) -> None:
    """Return where a `send` and its `recv` are alike, or the other rank has not come yet: then that one compares.

    Raises:
        RuntimeError: if the two differ in dtype or number of elements. Gloo would end the process of the receiver.
    """
    way = (found.rank, other) if name == "send" else (other, found.rank)
    found.messages[way] += 1
    key = "vgpu/message/{}/{}/{}".format(*way, found.messages[way])
    what = f"{str(one.dtype).removeprefix('torch.')}, {one.numel()} elements"
    mine = f"rank {found.rank}: {name} of {what}{program.here()}"
    try:
        theirs = found.store.compare_set(key, "", f"{what}\0{mine}").decode()
    except (AttributeError, RuntimeError):  # the group has no store, or the rank that kept it has left
        return
    kind, _, theirs = theirs.partition("\0")
    if theirs != mine:
        found.store.delete_key(key)
    if kind != what:
        raise _simulated("a rank sends what the other does not expect", sorted((theirs, mine)))


def _exchange(found: groups.Route, call: Call) -> list[list[int]]:
    number = zlib.crc32(call.name.encode())
    dtype = -1 if call.dtype is None else _DTYPES.index(call.dtype)
    return _gathered(found, [number, dtype, call.reduction, call.root, _gpu(call.ordinal), *call.gives, *call.takes])


def _exchange_words(found: groups.Route, name: str) -> tuple[list[str], list[str]]:
    """The names behind the numbers, and the line of the program that called, of each rank.

    All ranks have seen that they differ, so all of them ask, and only then.
    """
    mine = f"{name}\0{program.here()}".encode()[:_LONGEST].ljust(_LONGEST, b"\0")
    told = [bytes(row).decode(errors="ignore").split("\0") for row in _gathered(found, [*mine])]
    return [words[0] for words in told], [words[1] for words in told]


def _gathered(found: groups.Route, mine: list[int]) -> list[list[int]]:
    told = torch.empty(found.size * len(mine), dtype=torch.int64)
    found.backend._allgather_base(told, told.new_tensor(mine)).wait()  # a test may mock torch.tensor
    return told.view(found.size, -1).tolist()


def _gpu(ordinal: int) -> int:
    """A number for the GPU itself. A node of torchrun counts as a machine of its own, as does a host of NCCL_HOSTID."""
    host = os.environ.get("NCCL_HOSTID") or socket.gethostname()
    machine = zlib.crc32(f"{host}/{os.environ.get('GROUP_RANK', 0)}".encode())
    return machine << 20 | (devices.physical(ordinal) + 1) << 12


def _duplicate(first: int, second: int, gpu: int) -> Exception:
    place = "/pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93"
    version = f", NCCL version {'.'.join(map(str, torch.cuda.nccl.version()))}"
    words = f"Duplicate GPU detected : rank {second} and rank {first} both on CUDA device {gpu & 0xFFFFF:x}"
    if _MAY_SHARE:
        place, version = "ncclCommInitRankConfig", ""
        words = (
            "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this "
            "configuration."
        )
    return dist.DistBackendError(
        f"NCCL error in: {place}, invalid usage (run with NCCL_DEBUG=WARN for details){version}\n"
        f"ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n{words}"
    )


def _check_communicators(found: groups.Route, gpus: tuple[int, ...]) -> None:
    """NCCL has one communicator for each device of a rank; all ranks must come to the same one."""
    if gpus in found.communicators:
        return
    known = [any(gpus[rank] == before[rank] for before in found.communicators) for rank in range(found.size)]
    if any(known):
        moved = [rank for rank, old in enumerate(known) if not old]
        raise RuntimeError(
            f"simulated only: rank {', '.join(map(str, moved))} communicates on a device that it has not used in this "
            f"group before, and the others on theirs. On GPUs NCCL would hang. Does every rank call "
            "torch.cuda.set_device before its first collective?"
        )
    found.communicators.append(gpus)


def _differ(told: list[list[int]], names: list[str], lines: list[str]) -> RuntimeError:
    ranks = [f"rank {k}: {_described(names[k], row, len(told))}{lines[k]}" for k, row in enumerate(told)]
    return _simulated("the ranks of this group do not call the same collective", ranks)


def _simulated(fault: str, ranks: list[str]) -> RuntimeError:
    what = f"simulated only: {fault}. On GPUs NCCL would hang or give wrong numbers."
    return RuntimeError("\n".join([what, *ranks]))


def _described(name: str, row: list[int], size: int) -> str:
    dtype, reduction, root = row[1 : _HEAD - 1]
    gives, takes = row[_HEAD : _HEAD + size], row[_HEAD + size :]
    told = [name.strip("_")]
    if dtype >= 0:
        counts = f"{gives[0]} elements" if len({*gives, *takes}) == 1 else f"gives {gives} and takes {takes} elements"
        told = [f"{told[0]} of {str(_DTYPES[dtype]).removeprefix('torch.')}", counts]
    if reduction >= 0:
        told.append(f"reduction {_reduction(reduction)}")
    if root >= 0:
        told.append(f"root {root}")
    return ", ".join(told)


def _reduction(number: int) -> Any:
    kinds: Any = dist.ReduceOp.RedOpType
    return next((name for name, kind in kinds.__members__.items() if int(kind) == number), number)
