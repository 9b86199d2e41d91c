"""What stands around operators: comm's refusals, streams, pinned memory, storages, tensors on meta, export."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.cuda import comm

import vgpu


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: comm.scatter(x, [0, 1], [1, 2, 3]), "of same length, but got len(devices) = 2 and len(chunk_sizes)"),
        (lambda x: comm.scatter(x, out=[]), "Expected at least one output tensor to scatter to"),
        (lambda x: comm.scatter(x, out=[x.cpu()]), "but output tensor at index 0 has device 'cpu'"),
        (lambda x: comm.scatter(x, out=[x.view(2, 3)]), "Output tensor at index 0 has incorrect shape: [2, 3]"),
        (lambda x: comm.scatter(x, out=[x[:4]]), "Expected 6, but got total size 4"),
        (lambda x: comm.gather([x, x], out=x), "Expected out tensor to have shape [12], but got [6]"),
        (lambda x: comm.gather([x, x.view(2, 3)]), "to have the same number of dimensions"),
        (lambda x: comm.broadcast(x, out=[x[:2]]), "but output tensor at index 0 has shape [2]"),
        (lambda x: comm.broadcast_coalesced([x], [1, 0]), "All tensors must be on devices[0]: 1"),
    ],
)
def test_comm_refuses_in_the_words_of_pytorch(gpus, call, words):
    with pytest.raises(RuntimeError) as caught:
        call(torch.arange(6.0, device="cuda:0"))
    assert words in str(caught.value)


def test_gather_keeps_the_memory_format_its_parts_share(gpus):
    last = torch.ones(2, 3, 4, 4, device="cuda:0").to(memory_format=torch.channels_last)
    assert comm.gather([last, last.cuda(1)]).is_contiguous(memory_format=torch.channels_last)
    assert comm.gather([last, last.cuda(1).contiguous()]).is_contiguous()


def test_sums_of_sparse_and_dense_tensors_keep_their_order(gpus):
    dense = torch.ones(2, device="cuda:0")
    sparse = torch.sparse_coo_tensor([[0]], [1.0], (3,), device="cuda:0")
    assert sparse.type() == "torch.cuda.sparse.FloatTensor"
    both = [[dense, sparse], [dense.cuda(1), sparse.cuda(1)]]
    total = comm.reduce_add_coalesced(both, 0)
    assert total[0].tolist() == [2, 2] and total[1].to_dense().tolist() == [2, 0, 0]


@torch.no_grad()
def test_sums_at_one_go_are_those_of_the_operators_that_a_trace_sees(gpus):
    parts = [[torch.arange(6.0, device=gpu).view(2, 3), torch.ones(2, device=gpu)] for gpu in gpus[:2]]
    found = comm.reduce_add_coalesced(parts, 0)
    with vgpu.trace() as trace:
        seen = comm.reduce_add_coalesced(parts, 0)
    assert "cat" in {event.name for event in trace.events}
    for one, other, part in zip(found, seen, parts[0], strict=True):
        assert one.equal(other) and one.equal(part * 2) and one.device == other.device == gpus[0]


def test_priorities_of_streams(gpus):
    low, high = torch.cuda.Stream.priority_range()
    assert low == 0 and high < 0 and torch.cuda.Stream(priority=high).priority == high
    with pytest.raises(RuntimeError, match="less than or equal to 0, got 1"):
        torch.cuda.Stream(priority=1)


def test_pinned_memory_is_known_by_its_storage(gpus):
    assert torch.zeros(4, pin_memory=True)[1:].is_pinned() and torch.zeros(4).pin_memory().view(2, 2).is_pinned()
    assert not torch.zeros(4).is_pinned()


def test_set_refuses_the_storage_of_another_device(gpus):
    here, there = torch.ones(2, device="cuda:0"), torch.ones(3, device="cuda:1")
    for source in (there, there.untyped_storage(), torch.ones(3)):
        with pytest.raises(RuntimeError, match="Attempted to set the storage of a tensor on device"):
            here.set_(source)
    assert here.set_(torch.zeros(3, device="cuda:0")).tolist() == [0, 0, 0]


def test_what_the_host_cannot_hold_is_the_gpus_out_of_memory(gpus):
    for call in (lambda: torch.empty(1 << 45, device="cuda:1"), lambda: torch.ones(1, device="cuda:1").repeat(1 << 45)):
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate .* GiB\. GPU 1 has"):
            call()


def test_a_tensor_on_meta_takes_the_operator_there(gpus):
    assert (torch.ones(2, 3, device="cuda:1") @ torch.ones(3, 4, device="meta")).shape == (2, 4)
    assert (torch.ones(2, 3, device="meta") @ torch.ones(3, 4, device="cuda:1")).is_meta


@pytest.mark.parametrize("dtype", [torch.uint16, torch.float8_e4m3fn, torch.complex32])
def test_files_of_younger_dtypes_come_back_to_their_gpu(gpus, dtype):
    file = io.BytesIO()
    torch.save(torch.zeros(3, dtype=dtype, device="cuda:1"), file)
    file.seek(0)
    assert torch.load(file).device == torch.device("cuda:1")


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_export_leaves_a_size_open_that_passes_through_item(gpus, device):
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x * torch.tensor(x.size(0)).item()

    sizes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    program = torch.export.export(Scaled(), (torch.ones(4, 3, device=device),), dynamic_shapes=sizes, strict=False)
    found = program.module()(torch.ones(5, 3, device=device))
    assert found.device == torch.device(device) and found.tolist() == [[5.0] * 3] * 5


EXPORT = """
import copy, io, re, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.words, self.lstm = nn.Embedding(16, 4), nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        y = self.features(x).flatten(1)[:, None] + self.words(torch.arange(3, device=x.device))
        y = self.lstm(y + torch.zeros(3, 4, device=y.device) + x.new_zeros(1) + torch.full((1,), 2.0).to(y))[0]
        with torch.no_grad():
            scale = y.std()
        y = y.masked_fill(torch.ones_like(y, dtype=torch.bool).triu(1), scale)
        return nn.functional.scaled_dot_product_attention(y, y, y).square().mean()

torch.manual_seed(0)
net, x, gpu = Net(), torch.randn(3, 1, 8, 8), torch.device("cuda", 1)
pair = []
for module, rows in ((net, x), (copy.deepcopy(net).to(gpu), x.to(gpu))):
    sizes = ({0: torch.export.Dim("rows", min=2, max=64)},)
    program = torch.export.export(module, (rows,), dynamic_shapes=sizes, strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    made = [program, program.run_decompositions(), torch.export.load(file)]
    losses = [one.module()(torch.cat([rows, rows])) for one in made]
    trained = program.module()
    trained(torch.cat([rows, rows])).backward()
    pair.append((made, losses, [p.grad for p in trained.parameters()]))
host, virtual = pair
for one in virtual[0]:
    text = str(one.graph)
    assert "cuda" in text and not re.search(r"cpu:[0-9]|type='cpu', index", text), text
for stage in (0, 2):  # decompositions choose operators by device
    ours, theirs = ([str(node.target) for node in made[stage].graph.nodes] for made in (host[0], virtual[0]))
    assert ours == theirs
for ours, theirs in zip([*host[1], *host[2]], [*virtual[1], *virtual[2]], strict=True):
    assert theirs.device == gpu
    torch.testing.assert_close(theirs.cpu(), ours)

from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    fake = nn.Linear(3, 2, device=gpu)
    fake(torch.ones(1, 3, device=gpu)).sum().backward()
    assert fake.weight.grad.device == gpu and type(fake.weight.grad).__name__ == "FakeTensor"
print("exported")
"""


@pytest.mark.exhaustive
def test_export_of_trainable_weights_is_that_of_the_cpu_on_another_device(tmp_path):
    """In a process of its own, since what is wrong here ends the interpreter."""
    (tmp_path / "export.py").write_text(EXPORT)
    command = [sys.executable, "-m", "vgpu", "--gpus", "2", "--force", str(tmp_path / "export.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout == "exported\n", done.stderr[-3000:]


TRAINING = """
import torch
import vgpu

torch.manual_seed(0)
with vgpu.virtual_gpus(2):
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        loss = model(torch.ones(5, 2)).square().mean()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.4f}", torch.cuda.memory_allocated(1) >= 0)
    with torch.no_grad():
        print(model(torch.ones(5, 2)).requires_grad, torch.is_grad_enabled())
    try:
        torch.ones(2).cuda(0) + torch.ones(2).cuda(1)
    except RuntimeError as error:
        print(error)
print(torch.cuda.is_available())
"""


def test_a_torch_without_distributed_and_threads_does_the_same():
    """As it is built for browsers; browser_torch.py imitates one."""
    printed = []
    for first in ("", "import browser_torch\n"):
        command = [sys.executable, "-W", "ignore", "-c", first + TRAINING]
        ran = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        printed.append(ran.stdout)
    assert printed[0] == printed[1] and printed[0].count("\n") == 6
