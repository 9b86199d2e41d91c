"""Post 003, "DataParallel: the dimension of the output is different from the input" (2021), run line by line."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from verdict import verdict

import vgpu

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "notebooks" / "posts" / "003_program_1.py"
NOTEBOOK = "01_scatter_rows_that_vanished"


class Model(nn.Module):
    """The post's model: returns what it was given, so that the output shows what arrived."""

    def forward(self, x1, x2):
        return x1, x2


def run(gpus, rows1, x2):
    """Rows of both outputs of the post's wrapped model, and what each replica was given, in order of device."""
    seen = {}
    with vgpu.virtual_gpus(gpus):
        model = Model()
        model.register_forward_pre_hook(
            lambda _, args: seen.update({args[0].device.index: [tuple(a.shape) for a in args]})
        )
        y1, y2 = nn.DataParallel(model)(torch.randn(rows1, 3, 8, 8), x2)
        return len(y1), len(y2), [seen[k] for k in sorted(seen)]


@pytest.fixture(scope="module")
def printed():
    """Output of the post's first program, unchanged, on a machine with three virtual GPUs."""
    command = [sys.executable, "-m", "vgpu", "--gpus", "3", str(PROGRAM)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ).stdout


@verdict(
    "003",
    "problem",
    claim="With several inputs, one of them shared (batch 1), the output's batch differs from the input's.",
    ruling="right",
    because="10 rows in, 5 rows out on two devices, without a warning.",
    notebook=NOTEBOOK,
    words="Half of the batch is missing",
)
def test_rows_vanish_silently(recwarn):
    assert run(2, 10, torch.randn(1, 10, 20))[0] == 5
    assert not [w for w in recwarn if "torch" in str(w.filename)]


@verdict(
    "003",
    "problem",
    claim="The output becomes y in [N/2, C, H, W] on two GPUs.",
    ruling="right",
    because="Half on two devices, as stated. In general the first chunk alone comes back, ceil(N / devices) "
    "rows: 3 of 10 on four, 2 on eight.",
    notebook=NOTEBOOK,
    words="Only the *first piece* of the batch comes back",
)
def test_only_the_first_chunk_comes_back():
    assert [run(gpus, 10, torch.randn(1, 10, 20))[0] for gpus in (2, 4, 8)] == [5, 3, 2]


@verdict(
    "003",
    "program 1",
    claim="y1 [5, 3, 128, 128], y2 [1, 100, 200]; the plain model gives y3 [10, ...], y4 [1, ...].",
    ruling="right",
    because="The program, unchanged, prints the same shapes today.",
    notebook=NOTEBOOK,
    words="003_program_1.py",
)
def test_program_1_prints_the_shapes_of_the_post(printed):
    assert "y1: torch.Size([5, 3, 128, 128]), y2:torch.Size([1, 100, 200])" in printed
    assert "y3: torch.Size([10, 3, 128, 128]), y4:torch.Size([1, 100, 200])" in printed


@verdict(
    "003",
    "program 1",
    claim="CUDA_VISIBLE_DEVICES = '1,2', set after `import torch`, leaves two GPUs.",
    ruling="right",
    because="torch reads the variable when CUDA is first used, not when it is imported: of three devices two remain.",
)
def test_visible_devices_are_read_at_first_use(printed):
    source = PROGRAM.read_text(encoding="utf-8")
    assert source.index("import torch") < source.index("os.environ['CUDA_VISIBLE_DEVICES'] = '1,2'")
    assert "y1: torch.Size([5," in printed  # three devices would have given ceil(10 / 3) = 4 rows


@verdict(
    "003",
    "program 1",
    claim="`nn.DataParallel(model)` wraps the model as it is, on the CPU, and is fed CPU tensors.",
    ruling="incomplete",
    because="Only because this model has no parameters; with one parameter on the CPU the wrapper refuses.",
)
def test_a_model_with_parameters_must_be_moved_first():
    words = "module must have its parameters and buffers on device cuda:0"
    with vgpu.virtual_gpus(2), pytest.raises(RuntimeError, match=words):
        nn.DataParallel(nn.Linear(4, 4))(torch.randn(2, 4))


@verdict(
    "003",
    "program 1, output",
    claim='The first line of output reads "torch version: 1.5.0+cu101".',
    ruling="typo",
    because="The program prints the bare version; the label was added by hand.",
)
def test_program_1_prints_no_label(printed):
    assert printed.splitlines()[0].strip() == torch.__version__


@verdict(
    "003",
    "cause",
    claim="`dp(x1, x2)` calls a forward that checks where the parameters are, then scatters inputs and keyword "
    "arguments.",
    ruling="right",
    because="Today's forward holds the same steps in the same order.",
)
def test_forward_still_checks_then_scatters():
    source = inspect.getsource(nn.DataParallel.forward)
    steps = ["self.module.parameters()", "self.module.buffers()", "self.src_device_obj", "self.scatter(inputs, kwargs"]
    places = [source.index(step) for step in steps]
    assert places == sorted(places)


@verdict(
    "003",
    "cause, comment in the listing",
    claim="There are as many parts as there are cards.",
    ruling="incomplete",
    because="True of 10 rows on two cards. `chunk` rounds the part's size up: 9 rows on four devices make "
    "three parts of 3, and the fourth device gets nothing.",
    notebook=NOTEBOOK,
    words="9 rows on 4 GPUs",
)
def test_nine_rows_on_four_devices_make_three_parts():
    assert [shapes[0][0] for shapes in run(2, 10, torch.randn(10, 10, 20))[2]] == [5, 5]  # the case shown
    rows1, _, replicas = run(4, 9, torch.randn(9, 10, 20))
    assert rows1 == 9
    assert [shapes[0][0] for shapes in replicas] == [3, 3, 3]


@verdict(
    "003",
    "cause",
    claim="x2's first dimension is 1, so it cannot be split any further.",
    ruling="right",
    because="It makes one chunk, for the first device.",
    notebook=NOTEBOOK,
    words="because a single row cannot be cut",
)
def test_one_row_makes_one_chunk():
    with vgpu.virtual_gpus(2):
        chunks = nn.parallel.scatter(torch.randn(1, 10, 20), [0, 1])
        assert [(c.device.index, len(c)) for c in chunks] == [(0, 1)]


@verdict(
    "003",
    "cause",
    claim="The parts are matched as by `zip([1, 2], [1])`, which stops at the shorter list.",
    ruling="right",
    because="It is a `zip`: torch's scatter zips the chunks of all arguments, and nobody compares their number.",
    notebook=NOTEBOOK,
    words="list(zip(*map(scatter_map, obj), strict=False))",
)
def test_scatter_zips_the_chunks():
    source = inspect.getsource(nn.parallel.scatter_gather.scatter)
    assert re.search(r"zip\(\*map\(scatter_map, obj\)", source)
    assert "strict=True" not in source


@verdict(
    "003",
    "fix",
    claim="Expand the shared tensor to two rows: y1 [10, ...], y2 [2, ...].",
    ruling="right",
    because="On two devices each replica gets five rows of x1 and its own copy of x2's row.",
)
def test_expand_to_two_on_two_devices():
    assert run(2, 10, torch.randn(1, 10, 20).expand(2, -1, -1))[:2] == (10, 2)


@verdict(
    "003",
    "fix",
    claim="`expand` makes a view and saves memory where `repeat` copies.",
    ruling="right",
    because="The expanded tensor shares the storage of one row; repeat(2) holds two.",
    notebook=NOTEBOOK,
    words="`expand` makes a *view*",
)
def test_expand_shares_storage():
    x2 = torch.randn(1, 100, 200)
    row = x2.untyped_storage().nbytes()
    assert x2.expand(2, -1, -1).untyped_storage().nbytes() == row
    assert x2.repeat(2, 1, 1).untyped_storage().nbytes() == 2 * row


@verdict(
    "003",
    "fix, comment in the listing",
    claim="Expand x2 to a multiple of the number of GPUs.",
    ruling="incomplete",
    because="Right in the case shown, 10 rows on two GPUs. The number of chunks depends on the rows as well: "
    "10 rows on eight devices make five chunks, x2.expand(8) makes eight, and y2 comes back with 5 "
    "rows of 8. Expanded to the rows of x1, both make the same chunks for every number of devices.",
)
def test_expand_to_the_number_of_devices_changes_y2():
    assert run(2, 10, torch.randn(1, 10, 20).expand(2, -1, -1))[:2] == (10, 2)  # the case shown
    assert run(8, 10, torch.randn(1, 10, 20).expand(8, -1, -1))[:2] == (10, 5)
    for gpus in range(1, 9):
        assert run(gpus, 10, torch.randn(1, 10, 20).expand(10, -1, -1))[:2] == (10, 10)


@verdict(
    "003",
    "extra experiment",
    claim="With x2 of three rows on two GPUs: y1 [10, ...], y2 [3, ...].",
    ruling="incomplete",
    because="True on two devices, by luck of the chunk counts; on four, x1 makes four chunks and x2 three: 9 of 10 "
    "rows come back.",
    notebook=NOTEBOOK,
    words="with 3 rows on 2 GPUs, and then on 4",
)
def test_three_rows_of_x2():
    assert run(2, 10, torch.randn(3, 10, 20))[:2] == (10, 3)
    assert run(4, 10, torch.randn(3, 10, 20))[:2] == (9, 3)


@verdict(
    "003",
    "extra experiment, last listing",
    claim="GPU 0 gets x1 [5, ...] and x2 [2, 100, 100]; GPU 1 gets x1 [5, ...] and x2 [1, 100, 100].",
    ruling="typo",
    because="The rows are right, 2 and 1; the last dimension is 200, and the second line says x2 where it means x1.",
)
def test_split_of_three_rows_on_two_devices():
    _, _, replicas = run(2, 10, torch.randn(3, 100, 200))
    assert [shapes[1] for shapes in replicas] == [(2, 100, 200), (1, 100, 200)]
    assert [shapes[0][0] for shapes in replicas] == [5, 5]
