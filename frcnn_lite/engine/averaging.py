"""The average of the last weights, kept without waiting for the device."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Average(AveragedModel):
    """PyTorch's exponential moving average of a model's weights (B. Polyak and A. Juditsky, 1992, with forgetting).

    PyTorch sends the number of updates to the device at each of them, although this average does not need it, and a
    copy of pageable memory is waited for. The numbers are the same here, and so is the state dict.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._average = get_ema_multi_avg_fn(decay)
        super().__init__(model, multi_avg_fn=self._average)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Move the average towards the weights of `model`; the first call takes them over."""
        if self.n_averaged == 0:  # a number on the CPU
            super().update_parameters(model)
            return
        self._average(list(self.module.parameters()), list(model.parameters()), self.n_averaged)
        for mine, current in zip(self.module.buffers(), model.buffers(), strict=True):
            mine.copy_(current)
        self.n_averaged += 1
