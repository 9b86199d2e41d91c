"""Check whether the GPUs of this machine reach each other: `python -m multigpu doctor --real`.

A broken path between two GPUs makes programs hang, or compute wrong numbers, whatever their code is. So each question
is asked in a child process with a time limit, and this module imports the standard library alone.

Sources: NVIDIA, NCCL user guide, Troubleshooting (ACS, GPU Direct); NVIDIA/nccl issues 257 (2019) and 2079 (2026): an
IOMMU, or PCI access control, in the way of copies from GPU to GPU.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from multigpu.doctor.finding import Finding
from multigpu.doctor.probe import Probe, probe

SECONDS = 60.0
NO_PEER = {"NCCL_P2P_DISABLE": "1"}
IOMMU, KERNEL = Path("/sys/class/iommu"), Path("/proc/cmdline")
IN_THE_WAY = (
    "take the IOMMU and PCI access control out of the way: disable VT-d (Intel) or AMD-Vi and ACS in the BIOS, or boot "
    "with iommu=pt; until then run with NCCL_P2P_DISABLE=1, which is slower"
)

START = "import json, torch\nevery = range(torch.cuda.device_count())\n"
DEVICES = START + "print(json.dumps([torch.cuda.get_device_name(k) for k in every]))"
PEERS = START + "print(json.dumps([[i == j or torch.cuda.can_device_access_peer(i, j) for j in every] for i in every]))"
# Copies are compared on the CPU: a wrong copy between GPUs raises nothing.
COPIES = f"""{START}
wrong = []
for i in every:
    for j in every:
        sent = torch.arange(1 << 20, device=f"cuda:{{i}}")
        if i != j and not torch.equal(sent.to(f"cuda:{{j}}").cpu(), torch.arange(1 << 20)):
            wrong.append([i, j])
print(json.dumps(wrong))
"""
ALL_REDUCE = f"""{START}
from torch.cuda import nccl
tensors = [torch.full((1 << 20,), float(k + 1), device=f"cuda:{{k}}") for k in every]
nccl.all_reduce(tensors)
right = all(bool((tensor == sum(every) + len(every)).all()) for tensor in tensors)
print(json.dumps([".".join(map(str, nccl.version())), right]))
"""


def ask(code: str, **environment: str) -> Probe:
    """Run the code of a question in a child process, with these variables added to its environment."""
    lines = [f"import os; os.environ.update({environment!r})", code] if environment else [code]
    return probe("-c", "\n".join(lines), seconds=SECONDS)


def examine_gpus() -> Iterator[Finding]:
    """List the GPUs, and check which of them copy directly, whether copies are right, and whether NCCL ends."""
    found = ask(DEVICES)
    if not found.ok:
        yield Finding("gpus", False, f"torch cannot be asked: {found.complaint}", "run `doctor` without --real first")
        return
    names = json.loads(found.printed)
    if len(names) < 2:
        there = "no CUDA device" if not names else f"1 CUDA device ({names[0]})"
        yield Finding("gpus", True, f"{there}: with fewer than two there is nothing to check")
        return
    yield Finding("gpus", True, f"{len(names)} CUDA devices: {', '.join(sorted(set(names)))}")
    yield check_iommu()
    yield check_peers()
    yield check_copies()
    yield check_nccl()


def check_iommu() -> Finding:
    """A hint, not a fault: many machines with an IOMMU work."""
    units = sorted(path.name for path in IOMMU.iterdir()) if IOMMU.is_dir() else []
    options = [word for word in (KERNEL.read_text().split() if KERNEL.exists() else []) if "iommu" in word]
    if not units or "iommu=pt" in options:
        return Finding("iommu", True, "off" if not units else "passes GPUs through (iommu=pt)")
    told = f"on ({len(units)} units; kernel options: {', '.join(options) or 'none'})"
    return Finding("iommu", True, f"{told}; where copies below are wrong, or NCCL hangs, it is the first suspect")


def check_peers() -> Finding:
    """Which GPUs may copy directly to which; a path through the host is slower, but not wrong."""
    found = ask(PEERS)
    if not found.ok:
        return Finding("peers", False, f"asking who reaches whom: {found.complaint}", IN_THE_WAY)
    rows = json.loads(found.printed)
    pairs = [(i, j) for i, row in enumerate(rows) for j in range(len(row)) if i != j]
    direct = sum(rows[i][j] for i, j in pairs)
    matrix = "; ".join(f"cuda:{i} {' '.join('1' if reaches else '-' for reaches in row)}" for i, row in enumerate(rows))
    return Finding("peers", True, f"{direct} of {len(pairs)} pairs copy directly ({matrix})")


def check_copies() -> Finding:
    found = ask(COPIES)
    if not found.ok:
        return Finding("copies", False, f"a copy from GPU to GPU: {found.complaint}", IN_THE_WAY)
    wrong = json.loads(found.printed)
    if not wrong:
        return Finding("copies", True, "every GPU gets from every other what was sent")
    pairs = ", ".join(f"cuda:{i} to cuda:{j}" for i, j in wrong)
    return Finding("copies", False, f"other numbers arrive than were sent, from {pairs}", IN_THE_WAY)


def check_nccl() -> Finding:
    """Run an all_reduce over all GPUs. If it fails, run it without direct copies, to see whether they are to blame."""
    found = ask(ALL_REDUCE)
    if found.ok:
        version, right = json.loads(found.printed)
        if right:
            return Finding("nccl", True, f"{version}; its sum over all GPUs is right")
    trouble = "its sum over all GPUs is wrong" if found.ok else f"all_reduce over all GPUs: {found.complaint}"
    again = ask(ALL_REDUCE, **NO_PEER)
    if again.ok and json.loads(again.printed)[1]:
        return Finding("nccl", False, f"{trouble}; with NCCL_P2P_DISABLE=1 it is right", IN_THE_WAY)
    fix = "NCCL_P2P_DISABLE=1 does not help either: run a program with NCCL_DEBUG=INFO, and read where it stops"
    return Finding("nccl", False, trouble, fix)
