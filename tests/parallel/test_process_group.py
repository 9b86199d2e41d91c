import pytest
import torch
from torch import distributed

from frcnn_lite.parallel.process_group import (
    choose_device,
    init_from_env,
    is_launched,
    is_main_rank,
    process_group,
    rank_and_size,
)


@pytest.fixture
def vgpu():
    return pytest.importorskip("vgpu", reason="it needs vgpu, which gives a machine several GPUs")


@pytest.fixture
def rank_one(monkeypatch):
    """The environment of rank 1 of 2 on this machine."""
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)


def test_a_process_that_is_alone_joins_nothing(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with process_group("cpu") as device:
        assert device == torch.device("cpu") and not distributed.is_initialized()
        assert not is_launched() and is_main_rank() and rank_and_size() == (0, 1)


def test_what_is_missing_is_named(rank_one, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK")
    with pytest.raises(RuntimeError, match=r"^LOCAL_RANK, MASTER_ADDR, MASTER_PORT not set in the environment: start"):
        init_from_env("cpu")


def test_a_rank_without_a_gpu_of_its_own_is_told_so(vgpu, rank_one):
    with (
        vgpu.virtual_gpus(1, force=True),
        pytest.raises(ValueError, match=r"local rank 1 wants cuda:1, .* sees 1 GPUs"),
    ):
        choose_device()


def test_a_launched_rank_takes_the_gpu_of_its_local_rank(vgpu, rank_one):
    with vgpu.virtual_gpus(2, force=True):
        assert [str(choose_device(d)) for d in (None, "cuda", "cuda:0", "cpu")] == ["cuda:1", "cuda:1", "cuda:0", "cpu"]


def test_one_process_under_a_launcher_is_a_group_of_one(vgpu, monkeypatch):
    environment = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with vgpu.virtual_gpus(2, force=True), process_group("cuda:1"):
        assert torch.cuda.current_device() == 1 and rank_and_size() == (0, 1) and distributed.is_initialized()
        with process_group("cuda:1"):  # a group that is there is used, and left alone
            pass
        assert distributed.is_initialized()
    assert not distributed.is_initialized()
