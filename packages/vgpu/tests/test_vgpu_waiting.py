"""`torch.cuda.set_sync_debug_mode`: who waits for the device. The answers are those of an H200 with torch 2.11."""

import io
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import vgpu
from vgpu.base import errors

SAID = "called a synchronizing CUDA operation"
F = nn.functional
WAIT = {
    "item": lambda g: g.one.item(),
    "bool": lambda g: bool(g.one),
    "tolist": lambda g: g.three.tolist(),
    "cpu": lambda g: g.three.cpu(),
    "print": lambda g: repr(g.three),
    "from pageable memory": lambda g: g.host.cuda(),
    "from pinned memory": lambda g: g.host.pin_memory().cuda(),
    "from numbers": lambda g: torch.tensor([1.0, 2.0], device="cuda"),
    "copy_ to the host": lambda g: g.host.copy_(g.three),
    "gather to the host": lambda g: nn.parallel.comm.gather([g.three, g.three], destination="cpu"),
    "save": lambda g: torch.save(g.three, io.BytesIO()),
    "nonzero": lambda g: g.mask.nonzero(),
    "argwhere": lambda g: g.mask.argwhere(),
    "masked_select": lambda g: g.three.masked_select(g.mask),
    "index with a mask": lambda g: g.three[g.mask],
    "index with a list": lambda g: g.three[[0, 2]],
    "index with the host's": lambda g: g.three[torch.tensor([0, 2])],
    "put two under a mask": lambda g: g.three.__setitem__(g.mask, g.two),
    "unique": lambda g: g.three.unique(),
    "unique_consecutive": lambda g: g.three.unique_consecutive(),
    "bincount": lambda g: g.rows.bincount(),
    "repeat_interleave": lambda g: g.three.repeat_interleave(g.counts),
    "equal": lambda g: torch.equal(g.three, g.three + 1),
    "allclose": lambda g: torch.allclose(g.three, g.three),
    "corrcoef": lambda g: g.wide.corrcoef(),
    "histc": lambda g: g.three.histc(),
    "to_sparse": lambda g: g.three.to_sparse(),
    "normal": lambda g: torch.normal(g.three, g.three),
    "linspace": lambda g: torch.linspace(g.one, 2.0, 3, device="cuda"),
    "one_hot": lambda g: F.one_hot(g.rows),
    "unravel_index": lambda g: torch.unravel_index(g.rows, (2, 2)),
    "segment_reduce": lambda g: torch.segment_reduce(g.wide, "max", lengths=g.counts[:1] * 2),
    "gaussian_nll_loss": lambda g: F.gaussian_nll_loss(g.three, g.three, g.three),
    "ctc_loss": lambda g: F.ctc_loss(g.wide[:, None], g.counts[None, :1], g.counts[1:2], g.counts[:1]),
    "linalg.cholesky": lambda g: torch.linalg.cholesky(g.square),
    "linalg.cond": lambda g: torch.linalg.cond(g.square),
    "linalg.eig": lambda g: torch.linalg.eig(g.square),
    "linalg.eigh": lambda g: torch.linalg.eigh(g.square),
    "linalg.eigvals": lambda g: torch.linalg.eigvals(g.square),
    "linalg.eigvalsh": lambda g: torch.linalg.eigvalsh(g.square),
    "linalg.inv": lambda g: torch.linalg.inv(g.square),
    "linalg.lstsq": lambda g: torch.linalg.lstsq(g.square, g.square),
    "linalg.lu_factor": lambda g: torch.linalg.lu_factor(g.square),
    "linalg.matrix_rank": lambda g: torch.linalg.matrix_rank(g.square),
    "linalg.pinv": lambda g: torch.linalg.pinv(g.square),
    "linalg.solve": lambda g: torch.linalg.solve(g.square, g.square),
    "linalg.svdvals": lambda g: torch.linalg.svdvals(g.square),
    "stream": lambda g: torch.cuda.current_stream().synchronize(),
}
GO_ON = {
    "sum": lambda g: g.three.sum(),
    "to the device": lambda g: g.host.cuda(non_blocking=True),
    "to the host": lambda g: g.three.to("cpu", non_blocking=True),
    "between devices": lambda g: g.three.to("cuda:1"),
    "factories": lambda g: (torch.zeros(3, device="cuda"), torch.arange(3, device="cuda")),
    "tril_indices": lambda g: torch.tril_indices(3, 3, device="cuda"),
    "scatter": lambda g: nn.parallel.scatter(g.host, [0, 1]),
    "gather": lambda g: nn.parallel.gather([g.three, g.three], 1),
    "index": lambda g: g.three[g.rows],
    "put one under a mask": lambda g: g.three.__setitem__(g.mask, 0.0),
    "unique of rows": lambda g: g.wide.unique(dim=0),
    "repeat_interleave": lambda g: g.three.repeat_interleave(g.counts, output_size=6),
    "equal to itself": lambda g: torch.equal(g.three, g.three),
    "histc": lambda g: g.three.histc(3, min=0, max=3),
    "one_hot": lambda g: F.one_hot(g.rows, 3),
    "quantile": lambda g: (torch.quantile(g.three, g.half), g.three.nanquantile(0.5)),
    "multinomial": lambda g: torch.multinomial(g.three, 2),
    "linalg.cholesky_ex": lambda g: torch.linalg.cholesky_ex(g.square),
    "linalg.det": lambda g: torch.linalg.det(g.square),
    "linalg.qr": lambda g: torch.linalg.qr(g.square),
    "cross_entropy": lambda g: F.cross_entropy(g.wide, g.rows),
    "backward": lambda g: (g.wide.requires_grad_() * 2).sum().backward(),
    "torch.cuda.synchronize": lambda g: torch.cuda.synchronize(),
    "event": lambda g: torch.cuda.current_stream().record_event().synchronize(),
}


@pytest.fixture
def given():
    """Tensors to ask about."""
    three = torch.arange(1.0, 4.0, device="cuda")
    counts = torch.arange(1, 4, device="cuda")
    return SimpleNamespace(
        host=torch.ones(3),
        one=torch.ones((), device="cuda"),
        half=torch.full((1,), 0.5, device="cuda"),
        two=torch.ones(2, device="cuda"),
        three=three,
        wide=torch.stack((three, three + 1)),
        square=2 * torch.eye(3, device="cuda"),
        mask=torch.tensor([True, False, True], device="cuda"),
        rows=torch.tensor([0, 2], device="cuda"),
        counts=counts,
    )


@pytest.fixture(autouse=True)
def _quiet(gpus):
    """Each test begins and ends with the mode off, and has heard that it is a prototype."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(0)
        yield
        torch.cuda.set_sync_debug_mode(0)


@pytest.mark.parametrize("name", WAIT)
def test_who_waits_is_refused(given, name):
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match=f"^{SAID}$"):
        WAIT[name](given)


@pytest.mark.parametrize("name", GO_ON)
def test_who_does_not_wait_goes_on(given, name):
    torch.cuda.set_sync_debug_mode("error")
    GO_ON[name](given)


def test_the_mode_is_kept_and_a_wrong_one_refused():
    for mode, number in ((1, 1), ("error", 2), ("default", 0), ("warn", 1)):
        torch.cuda.set_sync_debug_mode(mode)
        assert torch.cuda.get_sync_debug_mode() == number
    with pytest.raises(RuntimeError, match="invalid value of debug_mode, expected one of 0,1,2"):
        torch.cuda.set_sync_debug_mode(3)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode, expected one of"):
        torch.cuda.set_sync_debug_mode("loud")


def test_a_warning_is_given_at_each_line_that_waits():
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        t = torch.ones(3, device="cuda")
        t.nonzero()
        t.cpu()
        bool(t.sum())
        t[t > 0]
        torch.ones(2).to("cuda")
    assert [str(one.message)[: len(SAID)] for one in heard] == [SAID] * 5
    assert {one.filename for one in heard} == {__file__}
    assert len({one.lineno for one in heard}) == 5


def test_operators_ask_nothing_while_the_mode_is_off(given):
    from vgpu.operators import dispatch

    given.three.sum()
    assert torch.ops.aten.sum.default in dispatch._plans
    torch.cuda.set_sync_debug_mode("warn")
    given.three.sum()
    assert not dispatch._plans
    torch.cuda.set_sync_debug_mode(0)
    given.three.sum()
    assert torch.ops.aten.sum.default in dispatch._plans


def test_a_new_machine_says_nothing():
    with vgpu.virtual_gpus(1):
        torch.cuda.set_sync_debug_mode("error")
    with vgpu.virtual_gpus(2):
        assert torch.cuda.get_sync_debug_mode() == 0 and torch.ones((), device="cuda").item() == 1


def test_the_mode_says_once_that_it_is_a_prototype():
    errors.note.cache_clear()
    with pytest.warns(UserWarning, match="Synchronization debug mode is a prototype feature"):
        torch.cuda.set_sync_debug_mode(1)


def test_one_hot_meets_a_class_that_is_too_large():
    """CUDA's kernel asserts it; the way that tensors of subclasses take made a row of zeros of it."""
    early = vgpu.virtual_gpus(1, errors="early")
    with early, pytest.raises(RuntimeError, match="index 5 is out of bounds"):
        F.one_hot(torch.tensor([5], device="cuda"), 3)
    with pytest.raises(RuntimeError, match="num_classes should be positive"):
        F.one_hot(torch.tensor([0], device="cuda"), 0)
    assert F.one_hot(torch.tensor([[0, 2]], device="cuda")).tolist() == [[[1, 0, 0], [0, 0, 1]]]
