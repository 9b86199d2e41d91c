"""The detector of the guide of about 2017: its listings as parts, before the repair, repaired, and in a modern form.

The listings are `posts/000_*.py`, as their author printed them. The guide left the old lines in comments or named them,
so the text before its repair is found by replacing what the repair wrote.
"""

import linecache
import re
import runpy
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course.kit.files import POSTS
from frcnn_lite import ops  # noqa: F401 it registers the kernels

NETWORKS = ("RPN", "FasterRCNN")
Change = tuple[str, str]
Parts = dict[str, Callable[..., Any]]

# The author's comments, as in the listings, and what they say.
COMMENTS = {
    "原先未制定分配的GPU位置，统一分配在GPU 0 上面": "before, no GPU was named, and everything was allocated on GPU 0",
    "修改为寻找当前使用的GPU id": "changed: look up the id of the GPU in use",
    "分配显存": "allocate the memory",
    "获取输入变量GPU id": "get the GPU id of the input",
    "指定分配时候的GPU id": "name the GPU id to allocate on",
    "获取 GPU id": "get the GPU id",
    "指定 GPU id": "name the GPU id",
    "修改前": "before the change",
    "修改为分配到指定位置": "changed: allocate it at the named place",
    "修改为返回loss": "changed: return the loss",
    "修改": "changed",
}


def listing(name: str) -> str:
    """One of the guide's files, as printed."""
    return (POSTS / f"000_{name}.py").read_text(encoding="utf-8")


@cache
def completed() -> dict[str, Any]:
    """What the guide leaves out; nothing in it is the author's."""
    return runpy.run_path(str(POSTS / "000_completed.py"), run_name="completed")


LISTINGS, LAYERS = completed()["LISTINGS"], completed()["LAYERS"]
SLIP: Change = completed()["SLIP"]
# What the repair wrote, and what stood there before. The one slip of the guide is taken out first.
BARE = (("cuda(deviceid)", "cuda()"), ("with torch.cuda.device(deviceid):", "if True:"))


@dataclass(frozen=True)
class Place:
    """A place that makes a tensor: its name, the part of the detector, and the changes that take the repair back."""

    name: str
    part: str
    undo: tuple[Change, ...]
    slip: bool = False  # shown as printed, slip included

    def before(self) -> Callable[..., Any]:
        return parts_of(SLIP, *self.undo)[self.part]

    def repaired(self) -> Callable[..., Any]:
        return parts_of(*(() if self.slip else (SLIP,)))[self.part]


PLACES = (
    Place("np_to_variable", "np_to_variable", BARE),
    *(Place(name, name, BARE) for name in LAYERS),
    *(Place(f"{name}.build_loss", f"{name}.build_loss", BARE) for name in NETWORKS),
    Place("roi_pool: output", "roi_pool", (("output.cuda(features.get_device())", "output.cuda()"),)),
    Place("roi_pool: argmax", "roi_pool", (("argmax.cuda(features.get_device())", "argmax.cuda()"),), slip=True),
)
UNDONE = tuple(dict.fromkeys(change for place in PLACES for change in place.undo))


def parts_of(*changes: Change) -> Parts:
    """The guide's functions by name. In each pair of `changes` the second text takes the place of the first."""
    parts: Parts = completed()["parts_of"](completed()["names_of"](*changes, compiled=_compiled))
    return parts


def _compiled(text: str, file: str, mode: str) -> CodeType:
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # so a traceback shows its lines
    return compile(text, file, mode)


def before() -> Parts:
    """The detector as it was written for one GPU."""
    return parts_of(SLIP, *UNDONE)


def repaired() -> Parts:
    """The detector as the guide repaired it, its one slip put right."""
    return parts_of(SLIP)


def with_rpn_loss() -> Parts:
    """A forward that returns the losses of both networks, where the guide's returns those of the head."""
    return {"forward": parts_of(completed()["BOTH_LOSSES"])["forward"]}


def pool_kernel(features: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """What the compiled extension computes: the maxima, and their positions. Both are where the features are."""
    size = completed()["POOLED"]
    pooled, argmax = torch.ops.frcnn_lite.roi_pool(features, rois, size, size, 1 / completed()["STRIDE"])
    return pooled, argmax


def pool_backward_kernel(grad_output: Tensor, rois: Tensor, grad_input: Tensor, argmax: Tensor) -> None:
    """What the compiled extension does in backward: it fills `grad_input`."""
    images, size = rois[:, 0].long(), list(grad_input.shape)
    grad_input.copy_(torch.ops.frcnn_lite.roi_pool_backward(grad_output, argmax, images, size, False))


def numpy_parts() -> Parts:
    """The three functions behind the layers, by the names of the layers: NumPy in, a tuple of NumPy arrays out."""
    found = {name: completed()[f"{name}_py"] for name in LAYERS}
    proposals = found["proposal_layer"]
    return found | {"proposal_layer": lambda *arrays: (proposals(*arrays),)}


def where(stack: traceback.StackSummary) -> tuple[str, str]:
    """Which functions of the detector called one another in a stack, and the line of the innermost one."""
    frames = [frame for frame in stack if re.fullmatch(r".*000_\w+\.py", frame.filename)]
    names = [frame.name for frame in frames if frame.name not in ("forward", "<lambda>")]
    return " > ".join(names), (frames[-1].line or "").split("#")[0].strip()


def build(parts: Mapping[str, Callable[..., Any]]) -> nn.Module:
    """The detector made of `parts`, on cuda:0, always with the same weights."""
    torch.manual_seed(0)
    net: nn.Module = completed()["assemble"](parts).cuda()  # noqa: FL001 the first GPU, as everywhere here
    return net


def blob(i: int) -> tuple[np.ndarray, ...]:
    """The arguments of `forward` for scene i, NumPy arrays in the guide's shapes; class 0 is the background."""
    arguments: tuple[np.ndarray, ...] = completed()["blob"](i)
    return arguments


def words_for(error: Exception) -> str:
    """Two or three words for the errors that the suspects of the cold case end in, else the name of the class."""
    known = {"expected device": "gradient elsewhere", "same device": "two devices", "on one device": "two devices"}
    known |= {"does not require grad": "no gradient", "modified inplace": "changed in place"}
    return next((words for part, words in known.items() if part in str(error)), type(error).__name__)


class PerImage(nn.Module):
    """A loss for each image of an index tensor, which `nn.DataParallel` can cut, as it cannot cut lists of boxes."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, index: Tensor) -> Tensor:
        return torch.stack([self.net(*blob(int(i))) for i in index])
