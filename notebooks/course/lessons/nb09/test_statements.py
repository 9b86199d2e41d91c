"""Numbers and statements in the prose of notebook 09 that no output shows, computed and run again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from told import says
from torch import distributed

NCCL = Path(torch.__file__).parents[1] / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
ASK = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).ncclGetUniqueId(ctypes.create_string_buffer(128))"


def test_master_addr_is_the_local_address_and_not_the_endpoint(tmp_path):
    assert says("09", "its address is *not* `--rdzv-endpoint`, where only the agents meet")
    (tmp_path / "rank.py").write_text("import os; print('given', os.environ['MASTER_ADDR'])")
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.2", str(tmp_path / "rank.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == "given 127.0.0.2", run.stderr


def interface(names):
    """The interface that NCCL takes, which it looks for without a GPU."""
    told = {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": names}
    run = subprocess.run(
        [sys.executable, "-c", ASK, NCCL], env=os.environ | told, capture_output=True, text=True, timeout=300
    )
    (line,) = [line for line in run.stdout.splitlines() if "Bootstrap: Using " in line]
    return line.split("Using ")[1].split(":")[0]


@pytest.mark.skipif(not NCCL.exists(), reason="this torch brings no NCCL")
def test_interface_that_nccl_takes():
    assert says("09", "`^docker` alone can choose `lo`")
    if interface("") == "lo":
        pytest.skip("this machine has no interface but lo")
    assert interface("^docker") == "lo"
    assert interface("^docker,lo") == interface("")


def test_gloo_takes_an_exact_name_only(monkeypatch):
    assert says("09", "gloo wants one exact name")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "^docker")
    store = distributed.HashStore()
    with pytest.raises(RuntimeError, match=r"Unable to find address for: \^docker"):
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
