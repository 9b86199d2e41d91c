"""PyTorch's own tables of modules and optimizers (module_db, optim_db) on `cuda:1` beside the CPU.

python packages/vgpu/tools/module_check.py
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.utils._pytree import tree_leaves, tree_map

import vgpu

DEVICE = torch.device("cuda", 1)


def moved(value: Any) -> Any:
    return value.detach().to(DEVICE) if isinstance(value, torch.Tensor) else value


def check_module(info: Any, samples: int = 3) -> str | None:
    """Outputs and the gradients of all parameters; return what differed, or None."""
    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    for sample in inputs[:samples]:
        torch.manual_seed(0)
        host = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).eval()
        args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
        gpu = copy.deepcopy(host).to(DEVICE)
        try:
            expected = _run(host, args, kwargs)
        except Exception:
            continue  # what does not run on the CPU says nothing
        try:
            there = tree_map(moved, (args, kwargs))
            if isinstance(
                gpu, nn.modules.lazy.LazyModuleMixin
            ):  # what it draws at its first call are numbers of its own
                with torch.no_grad():
                    gpu(*there[0], **there[1])
                gpu.load_state_dict(host.state_dict())
            found = _run(gpu, *there)
        except Exception as error:
            return f"raised {type(error).__name__}: {str(error)[:160]}"
        for one, other in zip(expected, found, strict=True):
            if other.device != DEVICE:
                return f"result on {other.device}"
            if not torch.allclose(other.detach().cpu(), one.detach(), rtol=1e-4, atol=1e-5, equal_nan=True):
                return "results differ"
    return None


def _run(module: nn.Module, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    outputs = [t for t in tree_leaves(module(*args, **kwargs)) if isinstance(t, torch.Tensor)]
    differentiable = [t for t in outputs if t.requires_grad]
    if differentiable:
        sum(t.sum() for t in differentiable).backward()
    return outputs + [p.grad for p in module.parameters() if p.grad is not None]


def check_optimizer(info: Any) -> str | None:
    """Three steps with every configuration of the table; return what differed, or None."""
    for configuration in info.optim_inputs_func(device="cpu"):
        kwargs = {k: v for k, v in configuration.kwargs.items() if k not in ("foreach", "fused", "capturable")}
        torch.manual_seed(0)
        host = nn.Linear(3, 2, bias=False)  # Muon takes matrices alone
        gpu = copy.deepcopy(host).to(DEVICE)
        for module in (host, gpu):
            optimizer = info.optim_cls(module.parameters(), **kwargs)
            x = torch.linspace(-1, 1, 12).view(4, 3).to(module.weight.device)

            def closure(module=module, optimizer=optimizer, x=x) -> torch.Tensor:
                optimizer.zero_grad()
                loss = module(x).square().sum()
                loss.backward()
                return loss

            for _ in range(3):
                closure()
                optimizer.step(closure) if info.step_requires_closure else optimizer.step()
        for one, other in zip(host.parameters(), gpu.parameters(), strict=True):
            if not torch.allclose(one, other.detach().cpu(), rtol=1e-5, atol=1e-6):
                return f"differs with {kwargs}"
    return None


MODULES = {info.name: info for info in module_db if torch.float32 in info.supported_dtypes("cpu")}
OPTIMIZERS = {o.optim_cls.__name__: o for o in optim_db if not o.only_supports_sparse_grads}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with vgpu.virtual_gpus(2, force=True):
        for check, table in ((check_module, MODULES), (check_optimizer, OPTIMIZERS)):
            wrong = {name: difference for name, info in table.items() if (difference := check(info))}
            for name, difference in wrong.items():
                print(f"{name}: {difference}")
            print(f"torch {torch.__version__}, {check.__name__}: {len(table) - len(wrong)} of {len(table)} agree")


if __name__ == "__main__":
    main()
