"""What several exercises of this lesson try answers on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, distributed
from torch.utils._python_dispatch import TorchDispatchMode

from course.kit.learn.exercise import TODO
from course.kit.rank_case import RankCase
from course.kit.rank_threads import call_on_ranks, is_apart
from course.kit.ranks import RanksFailed

CALLED = "reduce_scatter, which is not allowed"
LIMIT = 3.0  # seconds after which ranks that wait for each other end an answer


@dataclass(frozen=True)
class Failed:
    """How a call on ranks failed. `words` are not compared: which rank fails first is a matter of chance."""

    how: str
    words: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"an error ({self.words})"


class Called(TorchDispatchMode):
    """Notes whether reduce_scatter is called, by any of its names."""

    reduce_scatter = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.reduce_scatter |= "reduce_scatter" in str(func)
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class RanksCase(RankCase):
    """A call on two ranks: the result is what each of them returned."""

    def on_rank(self, function: Callable[..., Any]) -> Any:
        """What a rank does, and its result as numbers or words."""
        own = torch.tensor(self.args[0][distributed.get_rank()]).cuda()  # noqa: FL001 the rank's own
        with Called() as called:
            returned = function(own)
        if called.reduce_scatter:
            return CALLED
        if isinstance(returned, Tensor) and returned.device != own.device:
            return f"a tensor on {returned.device}, and not on {own.device}"
        return returned.tolist() if isinstance(returned, Tensor) else returned

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        results = call_on_ranks(2, self.on_rank, function, limit=LIMIT)
        return TODO if TODO in results else self.judged(results)

    def failed(self, failed: RanksFailed) -> Any:
        words = str(failed).splitlines()[0]
        return Failed("ranks apart" if is_apart(failed) else words.split("raised ")[-1].split(":")[0], words)

    def judged(self, results: list[Any]) -> Any:
        """The result of the call, from those of the ranks."""
        return results

    def show(self, name: str) -> str:
        return f"{name} of {' on rank 0 and of '.join(map(str, map(list, self.args[0])))} on rank 1"
