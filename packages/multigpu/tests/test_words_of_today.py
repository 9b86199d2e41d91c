"""The catalogue tells what today's libraries print, and names commands that they have."""

import mmap
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from multigpu.failures import Failure, catalogue
from multigpu.failures.match import answer

IDS = {entry.id: entry for entry in catalogue()}
SINCE = (2, 15)  # torch whose words these are

RDMA = """
node1:3142:3391 [4] p2p.cc:514 NCCL WARN NET/IB: Got completion from peer 10.0.3.7<41822> with \
status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129 (Send) hca mlx5_0
node1:3142:3391 [4] NCCL INFO transport/net.cc:1302 -> 6
[rank4]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or there \
was a network error, NCCL version 2.30.7
"""
SCATTER = """
Traceback (most recent call last):
  File "models/py_utils/data_parallel.py", line 77, in scatter
    return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim, chunk_sizes=self.chunk_sizes)
  File "torch/nn/parallel/_functions.py", line 106, in forward
    outputs = comm.scatter(input, target_gpus, chunk_sizes, ctx.dim, streams)
  File "torch/nn/parallel/comm.py", line 209, in scatter
    return tuple(torch._C._scatter(tensor, devices, chunk_sizes, dim, streams))
"""
SPLIT = "RuntimeError: split_with_sizes expects split_sizes to sum exactly to 12 (input tensor's size at dimension 0), "
FLASH = "ImportError: FlashAttention{0} has been toggled on, but it cannot be used due to the following error: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RDMA, "rdma-no-answer"),
        ("NCCL WARN NET/IB/GIN: Got completion from peer 10.0.0.2<40000> with status=12 opcode=0 len=0 vendor err 129",
         "rdma-no-answer"),
        (SCATTER + SPLIT + "but got split_sizes=[4, 6]", "chunk-sizes"),
        ("[rank0]: AssertionError: First bucket should be smaller/equal to other buckets to get comms warmed up ASAP",
         "compiled-ddp"),
        (FLASH.format(2) + "FlashAttention2 requires at least version `2.3.3`.", "flash-attention-missing"),
        (FLASH.format(3) + "FlashAttention3 requires compute capability >= 9, but found (8, 0) with compute capability "
         "8.x", "flash-attention-missing"),
        ("RuntimeError: The weights trying to be saved contained shared tensors [{'a', 'b'}] which are not properly "
         "defined. We found all the potential target tied weights keys to be: {}.", "tensors-share-memory"),
        ("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", "broken-hardware"),
    ],
)  # fmt: skip
def test_what_libraries_print_today_is_answered_surely(text: str, expected: str) -> None:
    said = answer(text)
    assert said.sure and said.entries[0].id == expected, [entry.id for entry in said.entries]


def test_a_split_of_the_programs_own_is_not_taken_for_that_of_a_batch() -> None:
    own = f'[rank2]:   File "trainer.py", line 935, in loss\n[rank2]:     torch.split(x, sizes)\n[rank2]: {SPLIT}'
    assert not answer(own + "but got split_sizes=[2049]").sure


def package(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def torch_release() -> tuple[int, ...]:
    torch = package("torch")
    version = re.search(r"__version__ = '(\d+)\.(\d+)", (torch / "version.py").read_text()) if torch else None
    return tuple(map(int, version.groups())) if version else (0,)


# Names that stand alone in the library; tests/test_printed.py looks up whole texts.
NAMES = [("rdma-no-answer", "IBV_WC_RETRY_EXC_ERR"), ("rdma-no-answer", " vendor_err=")]


@pytest.mark.skipif(torch_release() < SINCE, reason="the NCCL of an older torch prints other words")
@pytest.mark.parametrize(("entry", "part"), NAMES)
def test_names_in_a_message_are_those_of_the_installed_nccl(entry: str, part: str) -> None:
    assert part in IDS[entry].message
    found = list(folder.glob("lib/libnccl.so*")) if (folder := package("nvidia.nccl")) else []
    if not found:
        pytest.skip("NCCL is not installed here")
    with found[0].open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        assert library.find(part.encode()) >= 0


def advice(entry: Failure) -> str:
    return f"{entry.cause} {entry.check} {entry.fix}"


def test_torchrun_has_the_options_that_the_catalogue_gives_it() -> None:
    parser = pytest.importorskip("torch.distributed.run").get_args_parser()
    commands = [found for entry in IDS.values() for found in re.findall(r"torchrun((?: --[^,;.)]*)+)", advice(entry))]
    options = {option for command in commands for option in re.findall(r"(?<!\S)--[a-z_-]+", command)}
    assert len(options) > 8
    assert sorted(options - parser._option_string_actions.keys()) == []


def test_torch_is_not_installed_anew_from_an_index_that_has_a_different_build() -> None:
    """PyPI's torch is the CPU's on Windows, and elsewhere of a CUDA that an older driver refuses."""
    anew = re.compile(r"--force-reinstall(?:[^.;]|\.(?! ))*")
    commands = [(name, command) for name, entry in IDS.items() for command in anew.findall(advice(entry))]
    of_torch = [(name, command) for name, command in commands if re.search(r"\btorch\b(?!-)", command)]
    assert of_torch and [named for named in of_torch if "--index-url" not in named[1]] == []


def test_a_repair_is_a_release_and_not_a_pull_request() -> None:
    """A reader cannot tell whether a pull request is merged, and in which version."""
    assert [name for name, entry in IDS.items() if re.search(r"pull request \d+", advice(entry))] == []
