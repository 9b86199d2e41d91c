"""Numbers and statements in the prose of notebook 00 that no output shows, computed and run again."""

import pytest
import torch
from told import says
from torch import nn
from torch.nn import parallel as torch_parallel

import vgpu
from frcnn_lite import parallel


def test_a_view_costs_no_memory_before_it_is_sent():
    query = torch.ones(1, 16)
    shared = parallel.share(query, like=torch.zeros(10, 1))
    with vgpu.virtual_gpus(2):
        sent = [chunk.untyped_storage().nbytes() for chunk in torch_parallel.scatter(shared, [0, 1])]
    assert (query.untyped_storage().nbytes(), shared.untyped_storage().nbytes(), sent) == (64, 64, [320, 320])
    assert says("00", "gives `query` its rows as a *view*, a tensor that uses the memory of another one.")


def test_virtual_gpus_run_out_of_memory():
    with vgpu.virtual_gpus(1):
        total = torch.cuda.mem_get_info(0)[1]
        with pytest.raises(torch.OutOfMemoryError, match=f"total capacity of {total / 2**30:.2f} GiB"):
            torch.empty(total + 1, dtype=torch.uint8, device="cuda")
    assert says("00", "| memory: how many bytes each device holds, the most it has held, and the error")
    assert says("00", "how much there is: a share of your machine's, or what you choose")


def test_what_is_said_of_dataparallel_and_ddp():
    assert (
        "It is recommended to use" in nn.DataParallel.__doc__ and "DistributedDataParallel" in nn.DataParallel.__doc__
    )
    assert says("00", "PyTorch recommends `DistributedDataParallel` (*DDP*) instead")
    with vgpu.virtual_gpus(2):
        net = nn.Linear(3, 1).cuda()
        kept = nn.DataParallel(net, [0, 1]).state_dict()
        with pytest.raises(RuntimeError, match=r"module\.weight"):
            net.load_state_dict(kept)
    assert says(
        "00",
        "in the checkpoint begins with `module.`, which is why such a file does not load into the bare model",
    )
