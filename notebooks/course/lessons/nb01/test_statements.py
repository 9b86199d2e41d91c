"""Numbers and statements in the prose of notebook 01 that no output shows, computed and run again."""

import inspect
import re

import torch
from told import notebook, says
from torch import nn
from torch.nn import parallel as torch_parallel
from torch.nn.parallel import scatter_gather
from torch.utils.data import DataLoader, TensorDataset

import vgpu


def test_quotes_torchs_own_lines():
    """Line for line, but for comments and for how a long line is broken."""
    source = re.sub(r"\s+", "", re.sub(r"#.*", "", inspect.getsource(scatter_gather)))
    quoted = [
        block for _, text in notebook("01").prose for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ]
    assert len(quoted) == 2 and quoted[1].count("\n") == 4
    for line in "".join(quoted).splitlines():
        assert re.sub(r"\s+", "", line) in source, line
    assert says("01", "with `strict=True` it would raise an error")


def test_the_batch_size_of_a_loader_is_the_whole_batch():
    class Rows(nn.Module):
        def forward(self, x):
            return torch.full((1,), len(x), device=x.device)

    loader = DataLoader(TensorDataset(torch.zeros(13, 2)), batch_size=9)
    with vgpu.virtual_gpus(8):
        rows = [nn.DataParallel(Rows(), list(range(8)))(x).tolist() for (x,) in loader]
    assert rows == [[2, 2, 2, 2, 1], [1, 1, 1, 1]]
    assert says("01", "those of the *whole* batch, which is what `batch_size` means in your `DataLoader`")


def test_no_choice_of_dimension_fits_a_recurrent_layer_with_its_batch_first():
    x, state = torch.zeros(10, 6, 4), torch.zeros(2, 10, 8)
    with vgpu.virtual_gpus(2):
        shapes = [[tuple(part.shape) for part in torch_parallel.scatter((x, state), [0, 1], dim)[0]] for dim in (0, 1)]
    assert shapes == [[(5, 6, 4), (1, 10, 8)], [(10, 3, 4), (2, 5, 8)]]
    assert says("01", "With `batch_first=True` neither choice is right")


def test_a_state_with_its_batch_in_front_is_the_way_out():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(4, 8, num_layers=2, batch_first=True)

        def forward(self, x, state):
            out, last = self.layer(x, state.transpose(0, 1).contiguous())
            return out, last.transpose(0, 1)

    torch.manual_seed(0)
    x, state = torch.randn(10, 6, 4), torch.randn(2, 10, 8)
    with vgpu.virtual_gpus(2):
        net = Recurrent().cuda()
        out, last = nn.DataParallel(net, [0, 1])(x, state.transpose(0, 1))
        right, right_last = net.layer(x.cuda(), state.cuda())
        torch.testing.assert_close(out, right)
        torch.testing.assert_close(last.transpose(0, 1), right_last)
    assert says("01", "turn it back inside `forward`, `state.transpose(0, 1).contiguous()`")
    assert says("01", "A state that `forward` returns needs its batch in front as well")


def test_what_a_list_of_boxes_becomes():
    """The second of the three questions."""
    boxes = [torch.zeros(count, 4) for count in (4, 2, 3, 5, 2, 6, 2, 4)]
    with vgpu.virtual_gpus(2):
        images, parts = torch_parallel.scatter((torch.zeros(8, 3), boxes), [0, 1])[0]
        lonely = torch_parallel.scatter((torch.zeros(8, 3), [*boxes[1:], torch.zeros(1, 4)]), [0, 1])
    assert len(images) == 4 and [len(part) for part in parts] == [2, 1, 2, 3, 1, 3, 1, 2]
    assert len(lonely) == 1 and len(lonely[0][0]) == 4
    assert says("01", "4 images, and a list of *eight* tensors: the first half of the boxes of every image")
    assert says("01", "replica 1 is not called, and 4 of 8 images come back")


def test_every_replica_gets_all_the_names():
    names = [f"{k}.png" for k in range(10)]
    with vgpu.virtual_gpus(2):
        parts = torch_parallel.scatter((torch.zeros(10, 3), names), [0, 1])
    assert [(len(rows), given) for rows, given in parts] == [(5, names)] * 2
    assert says("01", "every replica gets all ten names beside its five digits")


def test_promises_no_scoreboard():
    assert not says("01", "scoreboard") and not says("01", "Scoreboard")
