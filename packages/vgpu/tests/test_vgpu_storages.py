"""Storages and DLPack capsules of virtual tensors say that they are on a GPU, and stay there."""

import copy
import io
import pickle

import pytest
import torch

import vgpu

pytestmark = [
    pytest.mark.usefixtures("gpus"),
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated"),
]
ZERO, ONE = torch.device("cuda:0"), torch.device("cuda:1")


def values():
    return torch.tensor([1.0, 2.0], device=ONE)


def test_what_a_storage_says_of_itself():
    x = values()
    assert x.untyped_storage().device == x.storage().device == ONE
    assert x.untyped_storage().is_cuda and x.untyped_storage().get_device() == 1
    assert x.untyped_storage().is_shared() and not x.untyped_storage().is_pinned()
    assert x.storage().type() == "torch.cuda.FloatStorage" and x.half().storage().type() == "torch.cuda.HalfStorage"
    assert isinstance(x.storage(), torch.cuda.FloatStorage) and not isinstance(x.storage(), torch.FloatStorage)
    assert x.storage().tolist() == [1, 2] and x.storage()[1] == 2
    assert "device=cuda:1) of size 8" in repr(x.untyped_storage())
    assert x.cpu().untyped_storage().device.type == "cpu" and x.cpu().storage().type() == "torch.FloatStorage"


@pytest.mark.parametrize(
    ("move", "home"),
    [
        (lambda s: s.clone(), ONE),
        (copy.copy, ONE),
        (copy.deepcopy, ONE),
        (lambda s: s.cuda(), ZERO),
        (lambda s: s.cuda("cuda:1"), ONE),
        (lambda s: s.to(device="cuda:0"), ZERO),
        (lambda s: s.cpu(), torch.device("cpu")),
        (lambda s: s.cpu().cuda(1), ONE),
        (lambda s: s.to(device="cpu"), torch.device("cpu")),
        (lambda s: s.double(), ONE),
    ],
)
def test_a_storage_that_is_copied_or_moved(move, home):
    found = move(values().untyped_storage())
    assert found.device == home
    if found.nbytes() == 8:
        assert torch.tensor([], device=home).set_(found).tolist() == [1, 2]


def test_a_storage_where_it_should_be_is_itself():
    x = values()
    assert x.untyped_storage().cuda(1) is x.untyped_storage()
    with pytest.raises(RuntimeError, match="Invalid device, must be cuda device but got cpu"):
        x.untyped_storage().cuda("cpu")


@pytest.mark.usefixtures("vgpu_fresh_memory")
def test_new_storages_are_on_their_gpu_and_counted_there():
    kept = [
        torch.UntypedStorage(600, device="cuda:1"),
        torch.TypedStorage(3, device=1, dtype=torch.half),
    ]
    assert {s.device for s in kept} == {ONE} and kept[1].type() == "torch.cuda.HalfStorage"
    assert torch.cuda.memory_allocated(1) == 1024 + 512
    assert torch.cuda.FloatStorage([1.0, 2.0]).device == ZERO
    assert torch.UntypedStorage(4).device.type == "cpu" and torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    del kept
    assert torch.cuda.memory_allocated(1) == 0


def test_a_tensor_over_a_storage_of_another_device():
    with pytest.raises(RuntimeError, match='device "cpu" to a storage on different device "cuda:1"'):
        torch.empty(0).set_(values().untyped_storage())
    with pytest.raises(RuntimeError, match='device "cuda:0" to a storage on different device "cuda:1"'):
        torch.empty(0, device=ZERO).set_(values().untyped_storage())
    with pytest.raises(TypeError, match="only CPU memory can be pinned"):
        values().untyped_storage().pin_memory()


def test_storages_in_files():
    file = io.BytesIO()
    x = values()
    torch.save({"x": x, "part": x[1:], "storage": x.storage()}, file)
    for location, home in ((None, ONE), ("cpu", torch.device("cpu")), ("cuda:0", ZERO)):
        file.seek(0)
        found = torch.load(file, map_location=location, weights_only=False)
        assert found["x"].device == found["storage"].device == found["x"].untyped_storage().device == home
        found["x"][1] = 5
        assert found["part"].tolist() == [5] and found["storage"].tolist() == [1, 5]


def test_a_type_is_written_as_the_class_that_a_user_sees():
    x = values()
    assert repr(type(x)) == "<class 'torch.Tensor'>" and type(x).__name__ == "Tensor"
    assert pickle.loads(pickle.dumps(type(x))) is torch.Tensor


@pytest.mark.usefixtures("vgpu_fresh_memory")
def test_a_capsule_shares_the_memory_and_counts_none():
    x = values()
    before = torch.cuda.memory_allocated(1)
    torch.cuda.set_device(1)  # PyTorch exports from the current device alone
    for y in (torch.from_dlpack(x), torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)), torch.from_dlpack(x[:2])):
        assert y.device == y.untyped_storage().device == ONE and y.data_ptr() == x.data_ptr()
        y += 1
    assert x.tolist() == [4, 5] and torch.cuda.memory_allocated(1) == before
    assert x.__dlpack_device__() == (2, 1)
    del x
    assert (y * 2).tolist() == [8, 10] and copy.deepcopy(y).device == ONE


def test_a_capsule_for_another_device_is_of_a_copy():
    torch.cuda.set_device(1)
    x = values()
    assert torch.from_dlpack(x, device="cpu").device.type == "cpu"
    assert torch.from_dlpack(torch.ones(2), device="cuda:1").device == ONE
    twin = torch.from_dlpack(x, copy=True)
    twin += 1
    assert twin.device == ONE and x.tolist() == [1, 2]
    assert torch.from_dlpack(torch.ones(2)).device.type == "cpu"
    numpy = pytest.importorskip("numpy")
    assert torch.from_dlpack(numpy.ones(2)).device.type == "cpu"
    with pytest.raises((ValueError, BufferError)):
        torch.from_dlpack(x, device="cpu", copy=False)
    read = torch.utils.dlpack.to_dlpack(x)
    torch.from_dlpack(read)
    with pytest.raises(RuntimeError, match="DLTensor capsule"):
        torch.from_dlpack(read)


def test_a_capsule_of_a_gpu_is_not_for_numpy():
    numpy = pytest.importorskip("numpy")
    with pytest.raises((RuntimeError, BufferError, TypeError), match=r"device|CPU"):
        numpy.from_dlpack(torch.ones(2, device=ZERO))


def test_a_capsule_on_a_stream_of_its_own():
    x = torch.ones(2, device=ZERO)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert torch.from_dlpack(x).tolist() == [1, 1]


def test_everything_is_put_back():
    x = values()
    vgpu.disable()
    assert x.untyped_storage().device.type == "cpu" and torch.UntypedStorage(4).clone().nbytes() == 4
    assert torch.from_dlpack(torch.ones(1)).device.type == "cpu"
