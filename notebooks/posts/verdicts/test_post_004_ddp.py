"""Verdicts on post 004, "Pytorch 相关问题及学习": its lines on starting DistributedDataParallel."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from verdict import verdict

import vgpu
from course.kit.ranks import ranks
from frcnn_lite.parallel import process_group

NOTEBOOK = "07_ddp_by_hand"
PROGRAM = Path(__file__).resolve().parents[1] / "004_ddp.py"


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """What the notes' program says under the launcher of its day and under today's, rank by rank."""
    said = {}
    for launcher in ("launch", "run"):
        command = ["vgpu", "--gpus", "2", "-m", f"torch.distributed.{launcher}"]
        logs = tmp_path_factory.mktemp(launcher)  # in one pipe the words of two ranks may mix
        command += ["--standalone", "--nproc-per-node=2", "--redirects=3", f"--log-dir={logs}", str(PROGRAM)]
        ended = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=300)
        ranks = [log.read_text() for log in sorted(logs.rglob("std*.log"))]
        said[launcher] = "\n".join([ended.stdout, ended.stderr, *ranks])
    return said


@pytest.fixture
def group_of_one():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@verdict(
    "004",
    "several GPUs, DDP, the command",
    claim="Start with `python -m torch.distributed.launch --nproc_per_node=2 train.py`.",
    ruling="right then",
    because="It still starts two ranks and warns: use torchrun, which passes no argument and sets the environment.",
    notebook=NOTEBOOK,
    words="torch.distributed.launch",
)
def test_the_old_launcher_is_deprecated(launched):
    assert "torch.distributed.launch is deprecated" in launched["launch"]
    assert "torch.distributed.launch is deprecated" not in launched["run"]


@verdict(
    "004",
    "several GPUs, DDP, tip 2",
    claim="With argparse `--local_rank` must be added, or the run ends in an error.",
    ruling="right then",
    because="Since torch 2.0 the launcher writes `--local-rank`, and this parser is what ends in an error; torchrun "
    "passes neither, the default stays, and both ranks take cuda:0, which NCCL refuses.",
    notebook=NOTEBOOK,
    words="--local-rank=0",
)
def test_local_rank_is_no_argument_today(launched):
    assert "error: unrecognized arguments: --local-rank=" in launched["launch"]
    assert "unrecognized arguments" not in launched["run"]
    assert "ncclInvalidUsage" in launched["run"]
    assert re.search("Duplicate GPU detected|Multiple Ranks are using the same GPU", launched["run"])


@verdict(
    "004",
    "several GPUs, DDP, tip 1",
    claim="`os.environ['CUDA_VISIBLE_DEVICES'] = '0,1,2,3'` chooses the GPUs.",
    ruling="incomplete",
    because="Only before the first use of a GPU in the process; after it the line does nothing, and says nothing. In "
    "the environment of the command it cannot come too late.",
)
def test_visible_devices_count_until_the_first_use(monkeypatch):
    with vgpu.virtual_gpus(4, force=True):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        assert torch.cuda.device_count() == 1
    with vgpu.virtual_gpus(4, force=True):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
        torch.ones(1, device="cuda")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        assert torch.cuda.device_count() == 4


@verdict(
    "004",
    "several GPUs, DDP, set-up",
    claim='`init_process_group(backend="nccl", init_method="env://")`.',
    ruling="right",
    because="Rank, world size and meeting point come from the environment, as both launchers set it; it is the "
    "default. Without a launcher the error names the first variable that is missing.",
)
def test_the_environment_says_where_to_meet(launched, monkeypatch):
    assert "[rank0]: " in launched["run"] and "[rank1]: " in launched["run"]  # they met, and NCCL refused
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        distributed.init_process_group("gloo", init_method="env://")


@verdict(
    "004",
    "several GPUs, DDP, set-up",
    claim="`find_unused_parameters=True` belongs to the set-up.",
    ruling="incomplete",
    because="Only for a model of which parts take no part in some step, where DDP refuses otherwise. For any other "
    "the gradients are the same, and the graph is searched in every step for nothing.",
)
def test_searching_for_unused_parameters(group_of_one):
    def train(steps, find_unused_parameters):
        torch.manual_seed(0)
        net = nn.ModuleDict({"score": nn.Linear(3, 2), "box": nn.Linear(3, 4)})
        net.forward = lambda parts: sum(net[part](torch.ones(1, 3)).sum() for part in parts)
        ddp = DistributedDataParallel(net, find_unused_parameters=find_unused_parameters)
        for parts in steps:
            ddp(parts).backward()
        return [parameter.grad for parameter in net.parameters()]

    all_parts = [("score", "box")] * 2
    for with_search, without in zip(train(all_parts, True), train(all_parts, False), strict=True):
        assert torch.equal(with_search, without)
    some_parts = [("score",), ("score", "box")]
    assert train(some_parts, True)
    with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior iteration"):
        train(some_parts, False)


@verdict(
    "004",
    "several GPUs, DDP, set-up",
    claim="`device_ids` and `output_device` name the GPU that a rank works on.",
    ruling="incomplete",
    because="They move inputs. The model, tensors that name no GPU and checkpoints go to cuda:0 until "
    "`torch.cuda.set_device`.",
)
def test_without_set_device_all_is_on_the_first_gpu():
    def introduce():
        before = torch.ones(3, device="cuda").device  # noqa: FL001 to see
        with process_group() as device:
            return str(before), str(device), str(torch.ones(3, device="cuda").device)  # noqa: FL001 to see

    with vgpu.virtual_gpus(2, force=True):
        _, told = ranks(2, joined=False)(introduce)()
    assert told == ("cuda:0", "cuda:1", "cuda:1")


@verdict(
    "004",
    "several GPUs, DDP, set-up",
    claim="The set-up is a process group and the wrapper; a sampler is not mentioned.",
    ruling="incomplete",
    because="DDP splits no batch. With equal loaders both ranks compute the same, and the average of two "
    "equal gradients is the gradient of one.",
    notebook=NOTEBOOK,
    words="DDP splits no batch",
)
def test_ddp_splits_nothing(group_of_one):
    seen = []
    net = nn.Linear(3, 2)
    net.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    DistributedDataParallel(net)(torch.ones(10, 3))
    assert seen == [10]
