"""Paddle's weights for a PyTorch model: other names, BatchNorm's buffers, and Linear the other way round.

What differs (PaddlePaddle documentation 3.3, `nn.BatchNorm2D`, `nn.Linear`, `nn.PReLU`):

    BatchNorm   running_mean, running_var are `_mean`, `_variance`; there is no num_batches_tracked
    Linear      the weight is (in, out), PyTorch's is (out, in)
    PReLU       the weight is `_weight`

Conv, with or without bias, transposed Conv, Embedding, GroupNorm and LayerNorm are alike. BatchNorm's momentum is not
in the file and means the opposite: Paddle's 0.9 is PyTorch's 0.1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
ALIKE = (*CONVOLUTIONS, nn.Embedding, nn.GroupNorm, nn.LayerNorm)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
BATCH_NORM = {"weight": "weight", "bias": "bias", "running_mean": "_mean", "running_var": "_variance"}
COUNTER = "num_batches_tracked"  # of use with momentum=None only; stays what the model has

Rules = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Slot:
    """One tensor of the PyTorch model and where Paddle keeps it. transposed: Linear's weight."""

    name: str
    paddle: str
    shape: tuple[int, ...]
    transposed: bool

    @property
    def file_shape(self) -> tuple[int, ...]:
        """The shape Paddle stores."""
        return self.shape[::-1] if self.transposed else self.shape


@dataclass(frozen=True)
class PaddleReport:
    """What became of every name. matched: PyTorch's name to Paddle's; reshaped: PyTorch's name to both shapes.

    missing: wanted by the model, as Paddle would call it; mismatched: Paddle's name to both shapes as Paddle stores
    them; skipped: left out because `skip` said so; unused: left over, and nobody said why.
    """

    matched: dict[str, str]
    reshaped: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    missing: tuple[str, ...]
    mismatched: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    skipped: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the model has all it needs, and the file holds nothing unexplained."""
        return not (self.missing or self.mismatched or self.unused)

    def __str__(self) -> str:
        lines = [f"matched: {len(self.matched)} tensors"]
        lines += [f"reshaped: {name}, {a} transposed to {b}" for name, (a, b) in self.reshaped.items()]
        lines += [f"mismatched: {name}, {a} in the file, {b} wanted" for name, (a, b) in self.mismatched.items()]
        for title in ("missing", "skipped", "unused"):
            names = getattr(self, title)
            lines += [f"{title}: {', '.join(names)}"] if names else []
        return "\n".join(lines)


class PaddleError(ValueError):
    """The file does not fit the model; nothing was loaded. `report` says why."""

    def __init__(self, report: PaddleReport) -> None:
        super().__init__(f"nothing was loaded, because not everything fits.\n{report}")
        self.report = report


def slots(model: nn.Module, rename: Rules = ()) -> list[Slot]:
    """Every tensor `model` expects from Paddle, in the order its modules were defined.

    rename: (pattern, replacement) pairs for `re.sub`, applied in turn to PyTorch's name of a *module*: Paddle's name.
    Raises ValueError for a kind of layer whose counterpart is not known here.
    """
    found = []
    for name, module in model.named_modules():
        own = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
        if not own:
            continue
        there = name
        for pattern, replacement in rename:
            there = re.sub(pattern, replacement, there)
        for key, tensor in own.items():
            if isinstance(module, NORMS) and key == COUNTER:
                continue
            before, beyond = (f"{part}." if part else "" for part in (name, there))
            is_linear = isinstance(module, nn.Linear) and key == "weight"
            found.append(Slot(before + key, beyond + _paddle_key(name, module, key), tuple(tensor.shape), is_linear))
    return found


def convert(
    model: nn.Module, arrays: Mapping[str, Tensor], *, rename: Rules = (), skip: Sequence[str] = (), order: bool = False
) -> tuple[dict[str, Tensor], PaddleReport]:
    """Paddle's tensors under PyTorch's names, and what became of each; changes neither.

    arrays: of `read_weights("....pdparams")`; skip: patterns (`re.search`) of names to leave out; order: go by position
    instead of by name, for files whose names say nothing (`conv2d_0.w_0`). Positions are checked by shape alone, so two
    neighbours of one shape may change places unnoticed: compare outputs.
    """
    skipped = tuple(name for name in arrays if any(re.search(pattern, name) for pattern in skip))
    rest = {name: tensor for name, tensor in arrays.items() if name not in skipped}
    wanted = slots(model, rename)
    sources = list(rest) if order else [slot.paddle for slot in wanted]
    state, matched, mismatched = {}, {}, {}
    for slot, source in zip(wanted, sources, strict=False):
        if source not in rest:
            continue
        shape = tuple(rest[source].shape)
        if shape == slot.file_shape:
            state[slot.name] = rest[source].T if slot.transposed else rest[source]
            matched[slot.name] = source
        else:
            mismatched[source] = (shape, slot.file_shape)
    used = {*matched.values(), *mismatched}
    missing = wanted[len(sources) :] if order else [slot for slot in wanted if slot.paddle not in rest]
    reshaped = {slot.name: (slot.file_shape, slot.shape) for slot in wanted if slot.transposed and slot.name in matched}
    unused = tuple(name for name in rest if name not in used)
    return state, PaddleReport(matched, reshaped, tuple(s.paddle for s in missing), mismatched, skipped, unused)


def load_paddle_into(
    model: nn.Module, arrays: Mapping[str, Tensor], *, rename: Rules = (), skip: Sequence[str] = (), order: bool = False
) -> PaddleReport:
    """`convert`, then copy into `model` when everything fits. Raises PaddleError, the model as it was, when not."""
    state, report = convert(model, arrays, rename=rename, skip=skip, order=order)
    if not report.is_complete:
        raise PaddleError(report)
    own = model.state_dict()
    model.load_state_dict({**state, **{name: own[name] for name in own if name.endswith(COUNTER)}})
    return report


def _paddle_key(name: str, module: nn.Module, key: str) -> str:
    if isinstance(module, NORMS):
        return BATCH_NORM[key]
    if isinstance(module, nn.PReLU):
        return "_weight"
    if isinstance(module, (*ALIKE, nn.Linear)):
        return key
    raise ValueError(f"{name or 'the model'} is a {type(module).__name__}: what Paddle calls its {key!r} is not known")
