"""On, off, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import warnings

import pytest
import torch

import vgpu
from vgpu import switch
from vgpu.base.errors import Notice
from vgpu.base.patches import Patches

OWNERS = (
    torch,
    torch._C,
    torch._C._nn,
    torch.cuda,
    torch.cuda.memory,
    torch.cuda.nccl,
    torch.cuda.streams,
    torch.accelerator,
    torch.autograd,
    torch.Tensor,
    torch.UntypedStorage,
    torch.nn.parallel.comm,
    torch.serialization,
    torch._utils,
    torch.backends.cudnn,
    torch.autocast,
)


def snapshot() -> dict:
    return {(owner.__name__, name): value for owner in OWNERS for name, value in vars(owner).items()}


def kernels() -> dict[str, str]:
    """What stands in the dispatcher for some of the operators that virtual GPUs give a kernel of their own."""
    names = ("empty.memory_format", "arange.start_step", "normal_", "batch_norm_stats", "mm")
    return {name: torch._C._dispatch_dump(f"aten::{name}") for name in names}


def changed(before: dict, after: dict) -> list:
    return [key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)]


def test_disable_puts_every_attribute_back():
    vgpu.enable(2, force=True)  # PyTorch imports some of its own modules late; let it do so before the snapshot
    torch.optim.SGD([torch.ones(1, device="cuda", requires_grad=True)], lr=0.1).step()
    vgpu.disable()
    before = snapshot()
    for gpus in (1, 3, 2):
        vgpu.enable(gpus, force=True)
        assert torch.cuda.device_count() == gpus
        assert changed(before, snapshot())
        torch.ones(2).cuda().sum().item()
        vgpu.disable()
    assert changed(before, snapshot()) == []
    assert not vgpu.is_enabled()


def test_a_ctrl_c_in_the_midst_of_it_counts_when_everything_is_back():
    patches, owner = Patches(), type("Owner", (), {"first": 1, "second": 2})
    patches.set(owner, "first", "replaced")
    patches.on_restore(lambda: os.kill(os.getpid(), signal.SIGINT))
    patches.set(owner, "second", "replaced")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            patches.restore()
    finally:
        signal.signal(signal.SIGINT, before)
    assert (owner.first, owner.second) == (1, 2)


class TestNamesThatDoNotExist:
    """A name that PyTorch has renamed is noticed, for nobody would call what stands under the old one."""

    def test_are_refused_with_module_name_and_version(self):
        patches = Patches()
        for owner, described in ((torch.cuda, "torch.cuda"), (torch.nn.Module, "torch.nn.modules.module.Module")):
            words = re.escape(f"torch {torch.__version__} has no {described}.no_such_name")
            with pytest.raises(AttributeError, match=words):
                patches.set(owner, "no_such_name", 1)
            assert not hasattr(owner, "no_such_name")
        patches.restore()

    def test_are_set_where_they_may_be_missing_and_are_taken_away_again(self):
        patches = Patches()
        patches.set(torch.cuda, "no_such_name", 1, may_be_missing=True)
        assert torch.cuda.no_such_name == 1
        patches.restore()
        assert not hasattr(torch.cuda, "no_such_name")

    def test_are_found_where_they_are_inherited(self):
        patches = Patches()
        patches.set(torch.Tensor, "tolist", 1)  # of C++, one class further up
        patches.restore()
        assert "tolist" not in vars(torch.Tensor) and torch.ones(1).tolist() == [1.0]

    @pytest.mark.parametrize(
        ("owner", "name"), [(torch._C, "_accelerator_getDeviceIndex"), (torch.cuda.nccl, "is_available")]
    )
    def test_make_enable_fail_and_leave_nothing_replaced(self, monkeypatch, owner, name):
        vgpu.enable(2, force=True)  # PyTorch imports some of its own modules late; let it do so before the snapshot
        vgpu.disable()
        monkeypatch.delattr(owner, name)
        before, own_kernels = snapshot(), kernels()
        with pytest.raises(AttributeError, match=re.escape(f"has no {owner.__name__}.{name}")):
            vgpu.enable(2, force=True)
        assert not vgpu.is_enabled()
        assert changed(before, snapshot()) == []
        assert kernels() == own_kernels


def test_disable_takes_every_kernel_away():
    before = kernels()
    vgpu.enable(2, force=True)
    assert kernels() != before
    vgpu.disable()
    assert kernels() == before


def test_importing_the_package_replaces_nothing():
    program = """
import torch, multiprocessing.spawn
owners = (torch, torch._C, torch.cuda, torch.accelerator, torch.Tensor, torch.autograd, torch.serialization,
          multiprocessing.spawn)
before = [dict(vars(o)) for o in owners]
import vgpu
for owner, attributes in zip(owners, before):
    for name, value in attributes.items():
        assert vars(owner)[name] is value, (owner, name)
assert not vgpu.is_enabled()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


@pytest.mark.parametrize("gpus", [0, -1, 65, 99])
def test_impossible_numbers_are_named(gpus: int):
    with pytest.raises(ValueError, match=f"gpus must be from 1 to 64, got {gpus}"):
        vgpu.enable(gpus)


@pytest.mark.parametrize("gpus", ["2", True, 2.0, None])
def test_other_types_are_named(gpus: object):
    with pytest.raises(TypeError, match="gpus must be an int from 1 to 64, got"):
        vgpu.enable(gpus)  # type: ignore[arg-type]


def test_blocks_nest_and_restore_the_outer_number():
    with vgpu.virtual_gpus(2, force=True):
        with vgpu.virtual_gpus(3) as devices:
            assert [str(d) for d in devices] == ["cuda:0", "cuda:1", "cuda:2"]
            assert torch.cuda.device_count() == 3
        assert torch.cuda.device_count() == 2
    assert not vgpu.is_enabled()


def test_enabling_twice_keeps_the_current_device():
    with vgpu.virtual_gpus(2, force=True):
        torch.cuda.set_device(1)
        vgpu.enable(2)
        assert torch.cuda.current_device() == 1


def test_a_smaller_machine_names_the_gpus_whose_tensors_it_leaves():
    with vgpu.virtual_gpus(4):
        kept = torch.ones(1, device="cuda:3")
        with pytest.warns(Notice, match="of 4 GPUs 2 are left, and there are tensors on cuda:3"):
            vgpu.enable(2)
        del kept
        vgpu.enable(4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.ones(1, device="cuda:3")
            vgpu.enable(3)


def test_programs_that_it_starts_have_the_gpus_until_it_is_switched_off():
    ask = [sys.executable, "-c", "import torch; print(torch.cuda.device_count(), torch.cuda.mem_get_info()[1] >> 20)"]
    before = dict(os.environ)
    with vgpu.virtual_gpus(3, memory="64MiB"):
        assert subprocess.run(ask, capture_output=True, text=True, timeout=600).stdout == "3 64\n"
        with vgpu.virtual_gpus(2, profile="t4"):
            assert os.environ["VGPUS"] == "2" and "VGPUS_MEMORY" not in os.environ
        assert os.environ["VGPUS"] == "3" and os.environ["VGPUS_MEMORY"] == str(64 << 20)
        os.environ["VGPUS_MEMORY"] = "1GiB"  # what a program sets since then is its own
    assert os.environ.pop("VGPUS_MEMORY") == "1GiB"
    assert dict(os.environ) == before


def test_an_untested_torch_warns_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "__version__", "9.9.0")
    switch._warn_if_untested.cache_clear()
    with pytest.warns(UserWarning, match=r"tested with torch 2\.11 to 2\.15, this is 9\.9\.0"):
        vgpu.enable(2, force=True)
    vgpu.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vgpu.enable(2, force=True)
    vgpu.disable()


class TestVisibleDevices:
    def test_counts_when_set_after_import_and_before_first_use(self, gpus, monkeypatch):
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "1,2")
        assert torch.cuda.device_count() == 2
        torch.ones(1, device="cuda:1")
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "0,1,2,3")
        assert torch.cuda.device_count() == 2, "fixed by the first use"

    @pytest.mark.parametrize(
        ("value", "count"), [("0", 1), ("0,1,9,2", 2), ("1,1", 0), ("-1", 0), ("", 0), ("3,0", 2), ("x,1", 0)]
    )
    def test_is_read_as_cuda_reads_it(self, gpus, monkeypatch, value, count):
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", value)
        assert torch.cuda.device_count() == count
        assert torch.cuda.is_available() == (count > 0)

    def test_without_devices_nothing_can_be_made_there(self, gpus, monkeypatch):
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
        with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
            torch.ones(1, device="cuda")

    def test_an_empty_value_that_hid_real_gpus_is_overlooked(self, monkeypatch):
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
        with vgpu.virtual_gpus(2, force=True):
            assert torch.cuda.device_count() == 2


def test_a_hundred_times_on_and_off_leaves_the_originals():
    vgpu.enable(2, force=True)
    vgpu.disable()
    before = snapshot()
    for k in range(100):
        vgpu.enable(1 + k % 4, force=True)
        vgpu.disable()
    assert changed(before, snapshot()) == []
    assert torch.zeros(2).normal_(generator=torch.Generator().manual_seed(0)).shape == (2,)
