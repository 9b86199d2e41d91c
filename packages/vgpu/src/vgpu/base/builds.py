"""What this build of PyTorch has. Asked once, because virtual GPUs change what it says of itself."""

from __future__ import annotations

import torch

WITH_CUDA = torch.backends.cuda.is_built()
