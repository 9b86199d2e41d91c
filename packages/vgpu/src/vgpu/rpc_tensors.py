"""How tensors on virtual GPUs travel in RPC: as tensors of the CPU, with their devices behind the pickled bytes.

Autograd goes along: a tensor is sent and arrives by two functions that have a backward, so that distributed autograd,
which puts its own functions between the two, brings gradients back to the device from which each tensor came.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import torch

from vgpu import devices, rpc_devices, tensor
from vgpu.tensor import is_virtual

_MARK = b"virtual GPUs"
_SIZE = 8  # bytes that say how long the list of devices is


class Answer(NamedTuple):
    """The devices of an answer where it comes from, and the maps by which they become devices of the caller."""

    found: list[torch.device]
    maps: dict[str, rpc_devices.Map]


class Request(NamedTuple):
    """The devices on which the callee is to get the tensors of a request."""

    wanted: list[torch.device]


class _Sent(torch.autograd.Function):
    """A tensor on a virtual GPU as one on the CPU, over the same memory: TensorPipe does not copy before it sends."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.device = given.device
        return given._host.detach()  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return gradient.to(ctx.device)


class _Arrived(torch.autograd.Function):
    """A tensor that has arrived on a virtual GPU: its gradient goes to the tensor of the CPU that carried it."""

    @staticmethod
    def forward(ctx: Any, arrived: torch.Tensor, carrier: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.mark_dirty(arrived)
        return arrived

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        return None, gradient.cpu()


def carrier(given: torch.Tensor) -> torch.Tensor:
    """What C++ gets in the place of a tensor: itself, or a tensor of the CPU over the same memory."""
    if not is_virtual(given):
        return given
    # Whether a tensor needs a gradient is sent along, and distributed autograd does not ask for the mode, either.
    with torch.enable_grad():
        return _Sent.apply(given)


class Arrival(NamedTuple):
    """A tensor on a virtual GPU, and the tensor of the CPU that carried it."""

    tensor: torch.Tensor
    carrier: torch.Tensor

    def connect(self) -> None:
        """Let the gradient flow on to where distributed autograd has connected the carrier, if it has."""
        if self.carrier.grad_fn is not None:
            self.tensor.requires_grad_(False)
            with torch.enable_grad():
                _Arrived.apply(self.tensor, self.carrier)


def place(carried: list[torch.Tensor], where: list[torch.device]) -> tuple[list[torch.Tensor], list[Arrival]]:
    """Put tensors that C++ has received on their devices.

    Returns:
        the tensors, and those of them that are on virtual GPUs with what carried them, to be connected.
    """
    placed, arrivals = [], []
    for one, device in zip(carried, where, strict=True):
        ordinal = devices.ordinal_of(device)
        if ordinal is None:
            placed.append(one)
            continue
        made = tensor.wrap(one.detach(), ordinal).requires_grad_(one.requires_grad)
        placed.append(made)
        arrivals.append(Arrival(made, one))
    return placed, arrivals


def with_devices(pickled: bytes, where: Answer | Request) -> bytes:
    """Pickled bytes with the devices of their tensors behind them, where no unpickler looks."""
    text = pickle.dumps(where)
    return pickled + text + len(text).to_bytes(_SIZE, "big") + _MARK


def split(data: bytes) -> tuple[bytes, Answer | Request | None]:
    """The pickled bytes, and the devices behind them if there are any."""
    if not data.endswith(_MARK):
        return data, None
    end = len(data) - len(_MARK) - _SIZE
    start = end - int.from_bytes(data[end : end + _SIZE], "big")
    return data[:start], pickle.load(io.BytesIO(data[start:end]))


def answered(tensors: list[torch.Tensor]) -> Answer:
    """The devices of the tensors of an answer of this worker."""
    return Answer([one.device for one in tensors], rpc_devices.inverses())


def requested(tensors: list[torch.Tensor], to: str) -> Request:
    """The devices on which a callee is to get the tensors of a request; RuntimeError where its map has none."""
    return Request([rpc_devices.at_callee(to, one.device) for one in tensors])


def destinations(where: Answer | Request) -> list[torch.device]:
    """The devices of this worker on which tensors are to be put that have arrived."""
    if isinstance(where, Request):
        return where.wanted
    return [rpc_devices.at_caller(where.maps, device) for device in where.found]
