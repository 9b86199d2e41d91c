"""What the linter believes of DataParallel and DDP, asked of torch itself, on virtual GPUs."""

import inspect
import re
import warnings

import pytest

from multigpu.lint.wrappers import ATTRIBUTES, OF_DISTRIBUTED

torch = pytest.importorskip("torch", reason="torch is not installed")
vgpu = pytest.importorskip("vgpu", reason="vgpu is not installed")
nn = torch.nn


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_attributes_of_the_wrappers():
    """Whatever a wrapper has by itself must be known, or asking for it would be called a fault."""
    assert public({*dir(nn.DataParallel(nn.Linear(1, 1))), "output_device", "dim"}) <= ATTRIBUTES
    ddp = nn.parallel.DistributedDataParallel
    made = set(re.findall(r"self\.(\w+)(?::[^=\n]+)? = ", inspect.getsource(ddp.__init__)))
    used = {"process_group", "find_unused_parameters", "static_graph", "require_backward_grad_sync", "device"}
    assert used <= made & OF_DISTRIBUTED
    assert {"no_sync", "join", "register_comm_hook"} <= set(dir(ddp)) & OF_DISTRIBUTED


class Writer(nn.Module):
    """Its forward writes on self in every way that the page of the linter lists."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        for name in ("added", "increased", "indexed", "made_anew"):
            self.register_buffer(name, torch.zeros(1))
        self.count, self.sizes, self.seen = 0, [], {}

    def forward(self, x):
        self.count += 1
        self.sizes.append(x.shape[0])
        self.seen[x.device.index] = x.shape[0]
        self.added.add_(1 + x.device.index)
        self.increased += 1 + x.device.index
        self.indexed[0] += 1 + x.device.index
        self.made_anew = self.made_anew + 1
        return x * self.weight


def test_which_writes_of_forward_last():
    with vgpu.virtual_gpus(2):
        model = Writer().cuda()
        wrapped = nn.DataParallel(model)
        for _ in range(3):
            wrapped(torch.ones(5, 1).cuda())
        assert model.count == 0
        assert sorted(model.sizes) == [2, 2, 2, 3, 3, 3] and model.seen == {0: 3, 1: 2}
        # GPU 1 would have added 2 in every call.
        assert [model.added.item(), model.increased.item(), model.indexed.item()] == [3, 3, 3]
        assert model.made_anew.item() == 0

        nn.DataParallel(model, device_ids=[0])(torch.ones(5, 1).cuda())
        assert model.count == 1 and model.made_anew.item() == 1, "one GPU needs no copies"


def test_what_a_wrapper_refuses():
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(2, 1)

        def forward(self, x):
            return self.net(x).mean()

        def decode(self):
            return 1

    with vgpu.virtual_gpus(2), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that scalars are gathered into a vector is what this is about
        wrapped = nn.DataParallel(Loss().cuda())
        loss = wrapped(torch.ones(4, 2).cuda())
        assert loss.shape == (2,)
        for use, message in ((loss.backward, "scalar outputs"), (loss.item, "cannot be converted to Scalar")):
            with pytest.raises(RuntimeError, match=message):
                use()
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            float(loss)
        with pytest.raises(AttributeError, match="has no attribute 'decode'"):
            wrapped.decode()
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "net\.weight"'):
            Loss().load_state_dict(wrapped.state_dict())
