"""A race as an error: who touched what, where, and what repairs it."""

from __future__ import annotations

import torch

from vgpu.base.program import Frames, told
from vgpu.machine.streams import Stream
from vgpu.racing.accesses import Access
from vgpu.racing.clocks import HOST, Actor


class RaceError(RuntimeError):
    """Two streams, or a stream and the host, use the same memory, and nothing orders them."""


class Group:
    """The stream of its own on which a process group runs its collectives on one device."""

    def __init__(self, name: str, ordinal: int) -> None:
        self.name, self.ordinal = name, ordinal

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self.name, self.ordinal) == (other.name, other.ordinal)

    def __hash__(self) -> int:
        return hash((self.name, self.ordinal))


def unordered(earlier: Access, later: Access) -> RaceError:
    """Two accesses of the same bytes."""
    return RaceError(
        "race: nothing orders two accesses to the same memory\n"
        f"  first  {_line(earlier)}\n{told(earlier.frames)}\n"
        f"  then   {_line(later)}\n{told(later.frames)}\n"
        f"  repair: {_repair(earlier, later)}"
    )


def changed(access: Access, frames: Frames) -> RaceError:
    """Memory of the host that was written without an operator while a stream may still use it."""
    return RaceError(
        "race: nothing orders two accesses to the same memory\n"
        f"  first  {_line(access)}\n{told(access.frames)}\n"
        f"  then   the host writes it, through an array of NumPy, before\n{told(frames)}\n"
        "  repair: let the host wait before it writes, by event.synchronize() or torch.cuda.synchronize(), or copy "
        "without non_blocking=True"
    )


def reused(pending: Access, freed: Frames, by: Actor, frames: Frames) -> RaceError:
    """Memory that the allocator may hand out again while a stream still uses it."""
    return RaceError(
        "race: memory is handed out again while a different stream may still use it\n"
        f"  used   {_line(pending)}\n{told(pending.frames)}\n"
        f"  freed\n{told(freed)}\n"
        f"  given to a new tensor of {named(by)}\n{told(frames)}\n"
        f"  repair: call tensor.record_stream(stream) for {named(pending.actor)} before the last reference to the "
        "tensor goes, or let the stream that the tensor was made on wait for it first"
    )


def named(actor: Actor) -> str:
    """An actor in words."""
    if actor == HOST:
        return "the host"
    if isinstance(actor, Group):
        return f"the stream of the process group {actor.name} on cuda:{actor.ordinal}"
    if isinstance(actor, Stream):
        which = "the default stream" if actor.stream_id == 0 else f"stream {actor.stream_id:#x}"
        return f"{which} of {actor.device}"
    return str(actor)


def shape_of(tensor: torch.Tensor, ordinal: int | None) -> str:
    """A tensor in a few words: its dtype, its shape and where it is."""
    where = "the host" if ordinal is None else f"cuda:{ordinal}"
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)} on {where}"


def _line(access: Access) -> str:
    does = "writes" if access.writes else "reads"
    return f"{access.name} {does} {access.shape}, by {named(access.actor)}"


def _repair(earlier: Access, later: Access) -> str:
    if later.actor == HOST:
        return (
            "let the host wait before this line, by event.synchronize() or torch.cuda.synchronize(), "
            "or copy without non_blocking=True"
        )
    if earlier.actor == HOST:
        return "let the host do this before the operator is given to the stream"
    if isinstance(earlier.actor, Group):
        return "call wait() of the work that the collective returned before this line"
    return (
        f"before this line let {named(later.actor)} wait for {named(earlier.actor)}: stream.wait_stream(other), or "
        "stream.wait_event(event) with an event that the other recorded after its work"
    )
