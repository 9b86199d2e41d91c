"""What the prose of notebooks 00 to 04 says and no output of theirs shows: run here, and held word for word."""

import functools
import inspect
import random
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stored import Notebook
from torch import nn
from torch.nn import parallel as torch_parallel
from torch.nn.parallel import scatter_gather
from torch.utils.data import DataLoader, TensorDataset

import vgpu
from course.kit import figures
from course.kit.learn.by_key import find_exercise
from course.lessons.nb03.puzzles.rank_loss import rank_loss
from course.lessons.nb03.puzzles.row_weights import row_weights
from frcnn_lite import parallel

NOTEBOOKS = Path(__file__).resolve().parents[3]


def notebook(number: str) -> Notebook:
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return Notebook.read(path)


def says(number: str, words: str) -> bool:
    """Whether `words` stand in the prose of a notebook, wherever its lines break."""
    prose = " ".join(text for _, text in notebook(number).prose)
    return " ".join(words.split()) in " ".join(prose.split())


def cell(number: str, words: str) -> str:
    """The one code cell of a notebook in which `words` stand."""
    (found,) = [cell.source for _, cell in notebook(number).code if words in cell.source]
    return found


def test_00_a_view_costs_no_memory_before_it_is_sent():
    query = torch.ones(1, 16)
    shared = parallel.share(query, like=torch.zeros(10, 1))
    with vgpu.virtual_gpus(2):
        sent = [chunk.untyped_storage().nbytes() for chunk in torch_parallel.scatter(shared, [0, 1])]
    assert (query.untyped_storage().nbytes(), shared.untyped_storage().nbytes(), sent) == (64, 64, [320, 320])
    assert says("00", "as a *view*, which uses the memory of that one row.")


def test_00_virtual_gpus_run_out_of_memory():
    with vgpu.virtual_gpus(1):
        total = torch.cuda.mem_get_info(0)[1]
        with pytest.raises(torch.OutOfMemoryError, match=f"total capacity of {total / 2**30:.2f} GiB"):
            torch.empty(total + 1, dtype=torch.uint8, device="cuda")
    assert says("00", "| memory: how many bytes each device holds, the most it has held, and the error")
    assert says("00", "how much there is: a share of your machine's, or what you choose")


def test_02_the_two_rules_of_a_replica():
    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.kept, self.calls = nn.Linear(3, 1), [], 0
            self.register_buffer("count", torch.zeros(2))

    with vgpu.virtual_gpus(3):
        net = Probe().cuda()
        for gpu, replica in enumerate(torch_parallel.replicate(net, [0, 1, 2])):
            assert replica.kept is net.kept and vars(replica) is not vars(net)
            assert not list(replica.parameters()) and not isinstance(replica.fc.weight, nn.Parameter)
            for mine, its in ((replica.fc.weight, net.fc.weight), (replica.count, net.count)):
                assert mine.get_device() == gpu
                assert (mine.data_ptr() == its.data_ptr()) == (gpu == 0)
    assert says(
        "02",
        "the dict in which Python keeps the attributes of an object, is a copy; the values in it are the originals",
    )
    assert says("02", "Weights and buffers are the exception, and so are the submodules that hold them.") and says(
        "02", "Only on the first GPU"
    )
    assert not says("02", "That one sentence predicts")


def test_02_gather_joins_as_torch_does():
    with vgpu.virtual_gpus(2):
        exercise = find_exercise("02.gather")
        for case in exercise.cases(random.Random(0)):
            assert exercise.agree(case.call(exercise.reference), torch_parallel.gather(*case.args))


def test_02_a_new_thread_starts_on_gpu_0_and_records_gradients():
    found = []
    with vgpu.virtual_gpus(2), torch.cuda.device(1), torch.no_grad():
        thread = threading.Thread(
            target=lambda: found.append((torch.cuda.current_device(), torch.is_grad_enabled())),
        )
        thread.start()
        thread.join()
    assert found == [(0, True)]
    assert says("02", "two things are set first: the replica's own GPU, and whether gradients are recorded")
    assert says("04", "a new thread starts with `cuda:0`")


def test_00_what_is_said_of_dataparallel_and_ddp():
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


def test_00_a_cell_that_counts_bytes_counts_the_same_twice(capsys):
    source = compile(cell("00", "bytes that b takes"), "00", "exec")
    names = {"torch": torch}
    with vgpu.virtual_gpus(2):
        for _ in range(2):
            exec(source, names)
    assert capsys.readouterr().out.count("bytes that b takes on cuda:1: 4096\n") == 2


def test_01_quotes_torchs_own_lines():
    """Line for line, but for comments and for how a long line is broken."""
    source = re.sub(r"\s+", "", re.sub(r"#.*", "", inspect.getsource(scatter_gather)))
    quoted = [
        block for _, text in notebook("01").prose for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ]
    assert len(quoted) == 2 and quoted[1].count("\n") == 4
    for line in "".join(quoted).splitlines():
        assert re.sub(r"\s+", "", line) in source, line
    assert says("01", "with `strict=True` it would raise an error")


def test_01_the_batch_size_of_a_loader_is_the_whole_batch():
    class Rows(nn.Module):
        def forward(self, x):
            return torch.full((1,), len(x), device=x.device)

    loader = DataLoader(TensorDataset(torch.zeros(13, 2)), batch_size=9)
    with vgpu.virtual_gpus(8):
        rows = [nn.DataParallel(Rows(), list(range(8)))(x).tolist() for (x,) in loader]
    assert rows == [[2, 2, 2, 2, 1], [1, 1, 1, 1]]
    assert says("01", "those of the *whole* batch, which is what `batch_size` means in your `DataLoader`")


def test_01_no_choice_of_dimension_fits_a_recurrent_layer_with_its_batch_first():
    x, state = torch.zeros(10, 6, 4), torch.zeros(2, 10, 8)
    with vgpu.virtual_gpus(2):
        shapes = [[tuple(part.shape) for part in torch_parallel.scatter((x, state), [0, 1], dim)[0]] for dim in (0, 1)]
    assert shapes == [[(5, 6, 4), (1, 10, 8)], [(10, 3, 4), (2, 5, 8)]]
    assert says("01", "With `batch_first=True` neither choice is right")


def test_01_a_state_with_its_batch_in_front_is_the_way_out():
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


def test_01_what_a_list_of_boxes_becomes():
    """The second of the three questions."""
    boxes = [torch.zeros(count, 4) for count in (4, 2, 3, 5, 2, 6, 2, 4)]
    with vgpu.virtual_gpus(2):
        images, parts = torch_parallel.scatter((torch.zeros(8, 3), boxes), [0, 1])[0]
        lonely = torch_parallel.scatter((torch.zeros(8, 3), [*boxes[1:], torch.zeros(1, 4)]), [0, 1])
    assert len(images) == 4 and [len(part) for part in parts] == [2, 1, 2, 3, 1, 3, 1, 2]
    assert len(lonely) == 1 and len(lonely[0][0]) == 4
    assert says("01", "4 images, and a list of *eight* tensors: the first half of the boxes of every image")
    assert says("01", "replica 1 is not called, and 4 of 8 images come back")


def test_02_a_flag_fails_as_a_keyword_beside_a_positional_tensor():
    """Which of the three calls fails is asserted in tests/parallel/test_chunks.py."""
    assert says("01", "two things: a *keyword* that is not a tensor, and a *positional* tensor beside it")
    assert not says("01", "as soon as one argument is no tensor")


def test_02_promises_no_scoreboard():
    assert not says("01", "scoreboard") and not says("01", "Scoreboard")


def test_03_the_heaviest_row_of_ten():
    heaviest = {gpus: max(row_weights(10, gpus)) * 10 for gpus in range(1, 9)}
    assert heaviest[4] == max(heaviest.values()) == pytest.approx(2.5)
    assert max(row_weights(10, 4)) / min(row_weights(10, 4)) == pytest.approx(3)
    assert says("03", "a row weighs 1 / (replicas that ran · rows on its GPU)")
    assert says("03", "counts three times as much as any other, and 2.5 times as much as is fair")


def test_03_what_cross_entropy_skips_and_what_reduce_loss_divides():
    scores, labels = torch.randn(10, 10), torch.arange(10)
    labels[[1, 2, 6]] = -100
    losses, counts = torch.nn.functional.cross_entropy(scores, labels, reduction="none"), (labels != -100).float()
    assert losses[[1, 2, 6]].tolist() == [0, 0, 0]
    found = parallel.reduce_loss({"class": losses, "none": losses * 0}, {"class": counts, "none": counts * 0})
    torch.testing.assert_close(found["class"], torch.nn.functional.cross_entropy(scores, labels))
    assert found["none"] == 0
    assert says("03", "`-100` is the label that PyTorch's `cross_entropy` skips by default")
    assert says("03", "the same division, for each tensor in two dicts")


def test_03_what_a_rank_calls_backward_on():
    weight, rows, counts = torch.randn(3, dtype=torch.float64, requires_grad=True), torch.randn(8, 3).double(), [1, 7]
    of_rank = [(rows[:1] @ weight).square().sum(), (rows[1:] @ weight).square().sum()]
    (one_gpu,) = torch.autograd.grad(sum(of_rank) / 8, weight, retain_graph=True)
    losses = [rank_loss(of_rank, counts, rank) for rank in range(2)]
    averaged = torch.stack([torch.autograd.grad(loss, weight)[0] for loss in losses]).mean(0)
    torch.testing.assert_close(averaged, one_gpu, rtol=1e-12, atol=0)
    assert says("03", "DDP averages them: a rank calls `backward` on number of ranks · own sum / count of all")


def test_04_two_workers_are_inside_at_once(monkeypatch):
    """The cells are run with a log that keeps the order: nobody leaves before both have done their work inside."""
    order, lock = [], threading.Lock()

    class Ordered(figures.DeviceLog):
        def note(self, name, event, home=None):
            with lock:
                order.append((name, event))
            super().note(name, event, home)

    monkeypatch.setattr(figures, "DeviceLog", Ordered)
    cells = compile(cell("04", "def work(name, device)") + "\n" + cell("04", "target=work"), "04", "exec")
    with vgpu.virtual_gpus(4):
        for _ in range(20):
            order.clear()
            names = {"figures": figures, "torch": torch, "threading": threading, "np": np}
            exec(cells, {**names, "learn": SimpleNamespace(reveal=lambda key, outcome: None)})
            workers = [event for name, event in order if name.startswith("worker")]
            assert workers[-2:] == ["after with"] * 2 and workers.count("inside with") == 2
    assert says("04", "Two workers are inside their `with` at once")


def test_04_work_on_the_cpu_leaves_the_current_device():
    with vgpu.virtual_gpus(4), torch.cuda.device(2):
        np.sort(torch.ones(3, device="cuda").cpu().numpy())
        assert torch.cuda.current_device() == 2
    assert says("04", "if `cuda:2` is current, it still is after a computation in NumPy")


def test_04_a_partial_made_in_init_keeps_the_original():
    def run_layer(layer, x):
        return layer(x)

    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 1)
            self.run = functools.partial(run_layer, self.fc)

        def forward(self, x):
            return self.run(x)

    class Handed(Kept):
        def forward(self, x):
            return run_layer(self.fc, x)

    with vgpu.virtual_gpus(2):
        with pytest.raises(RuntimeError, match="same device"):
            nn.DataParallel(Kept().cuda(), [0, 1])(torch.ones(4, 3))
        assert len(nn.DataParallel(Handed().cuda(), [0, 1])(torch.ones(4, 3))) == 4
    assert says("04", "a plain function to which `forward` hands `self.fc` *in each call*")


def test_04_the_error_shows_the_lambda_and_comes_out_of_the_layer():
    class KeepsSelf(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 1)
            self.run = lambda x: self.fc(x)

        def forward(self, x):
            return self.run(x)

    with vgpu.virtual_gpus(2), pytest.raises(RuntimeError) as caught:
        nn.DataParallel(KeepsSelf().cuda(), [0, 1])(torch.ones(4, 3))
    lines = str(caught.value).splitlines()
    kept = next(k for k, line in enumerate(lines) if "in <lambda>" in line)
    layer = next(k for k, line in enumerate(lines) if "linear.py" in line)
    assert 0 < kept < layer < len(lines)
    assert says("04", "the error comes out of the layer; the lambda is one line in the middle of a long traceback")


def test_04_an_attribute_that_forward_assigns_is_lost_and_a_dict_is_shared():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.losses, self.loss = {}, None

        def forward(self, x):
            self.losses[str(x.device)] = self.loss = x.sum()
            return x

    with vgpu.virtual_gpus(2):
        net = Both()
        nn.DataParallel(net, [0, 1])(torch.ones(4, 3))
    assert net.loss is None and sorted(net.losses) == ["cuda:0", "cuda:1"]
    assert says("04", "An attribute that `forward` *assigns*, such as `self.loss = ...`, is not shared but lost")
