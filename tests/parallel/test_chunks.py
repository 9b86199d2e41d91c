import pytest
import torch
from torch import Tensor, nn

from frcnn_lite.parallel.chunks import chunk_sizes, rows_lost, share


@pytest.fixture
def vgpu():
    return pytest.importorskip("vgpu", reason="it needs vgpu, which gives a machine several GPUs")


@pytest.mark.parametrize("devices", range(1, 9))
def test_chunk_sizes_are_those_of_torch(devices: int) -> None:
    for rows in range(34):
        assert chunk_sizes(rows, devices) == [len(chunk) for chunk in torch.zeros(rows, 2).chunk(devices)]


def test_there_can_be_fewer_chunks_than_devices() -> None:
    assert chunk_sizes(9, 4) == [3, 3, 3]


class Pair(nn.Module):
    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        return x1, x2


@pytest.mark.parametrize("devices", [2, 3, 4, 8])
def test_rows_lost_is_what_data_parallel_loses(vgpu, devices: int) -> None:
    with vgpu.virtual_gpus(devices):
        parallel = nn.DataParallel(Pair(), device_ids=list(range(devices)))
        for first, second in [(10, 1), (10, 3), (10, 10), (9, 5), (3, 10), (1, 8)]:
            returned, _ = parallel(torch.zeros(first, 2).cuda(), torch.zeros(second, 2).cuda())
            assert first - len(returned) == rows_lost([first, second], devices)


class Shifted(nn.Module):
    """x, moved by y and by a shared `bias` where there is one."""

    def forward(self, x: Tensor, y: Tensor, bias: Tensor | None = None) -> Tensor:
        return x + y if bias is None else x + y + bias


@pytest.mark.parametrize("devices", [2, 3, 4, 8])
def test_what_a_keyword_does_to_rows_is_what_rows_lost_says(vgpu, devices: int) -> None:
    x, one = torch.zeros(10, 1), torch.ones(1, 1)
    with vgpu.virtual_gpus(devices):
        pair, shifted = (nn.DataParallel(net, list(range(devices))) for net in (Pair(), Shifted()))
        assert 10 - len(pair(x1=x, x2=one)[0]) == rows_lost([10, 1], devices)
        with pytest.raises(AssertionError, match="not equal to the number of kwargs"):
            pair(x, x2=one)
        first = chunk_sizes(10, devices)[0]
        assert shifted(x, x, bias=one).flatten().tolist() == [1.0] * first + [0.0] * (10 - first)
    said = " ".join((rows_lost.__doc__ or "").split())
    assert "all given by name" in said and "missing, silently, on the later devices" in said


class Flagged(nn.Module):
    def forward(self, x: Tensor, training: bool = False) -> Tensor:
        return x


def test_a_flag_fails_only_as_a_keyword_beside_a_positional_tensor(vgpu) -> None:
    x = torch.zeros(9, 1)
    with vgpu.virtual_gpus(4):
        parallel = nn.DataParallel(Flagged(), [0, 1, 2, 3])
        assert len(parallel(x, True)) == len(parallel(x=x, training=True)) == 9
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            parallel(x, training=True)
        assert len(parallel(x[:8], training=True)) == 8


def test_rows_lost_by_hand() -> None:
    assert rows_lost([10, 1], 2) == 5
    assert rows_lost([10, 1], 4) == 7
    assert rows_lost([10, 3], 4) == 1
    assert rows_lost([10], 4) == 0


@pytest.mark.parametrize("devices", [2, 8])
def test_a_shared_row_reaches_every_replica(vgpu, devices: int) -> None:
    x1, x2 = torch.arange(20.0).view(10, 2), torch.tensor([[7.0, 8.0, 9.0]])
    with vgpu.virtual_gpus(devices):
        parallel = nn.DataParallel(Pair(), device_ids=list(range(devices)))
        y1, y2 = parallel(x1.cuda(), share(x2, like=x1).cuda())
        assert torch.equal(y1.cpu(), x1) and torch.equal(y2.cpu(), x2.repeat(10, 1))


def test_share_takes_no_memory() -> None:
    shared = share(torch.ones(1, 100), like=torch.zeros(50, 2))
    assert shared.shape == (50, 100) and shared.untyped_storage().nbytes() == 400


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`gpus` at least 1, got 3 and 0"):
        chunk_sizes(3, 0)
    with pytest.raises(ValueError, match="got none"):
        rows_lost([], 2)
    with pytest.raises(ValueError, match=r"one row to share, shape \(1, ...\), got \(2, 3\)"):
        share(torch.zeros(2, 3), like=torch.zeros(10, 1))
    with pytest.raises(ValueError, match="0-d"):
        share(torch.zeros(1, 3), like=torch.tensor(1.0))
