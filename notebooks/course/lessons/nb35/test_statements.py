"""Statements in the prose of notebook 35 that no output shows, run again."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from told import says

import vgpu

pytestmark = pytest.mark.virtual_gpus(1)


def test_early_errors_are_those_of_the_cpu_at_their_line():
    program = (
        "import torch, vgpu; vgpu.enable(1, errors='early'); "
        "torch.nn.functional.cross_entropy(torch.zeros(2, 3).cuda(), torch.tensor([0, 3]).cuda())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1 and "IndexError: Target 3 is out of bounds" in run.stderr
    assert says("35", 'gets the error of the CPU, "Target 3 is out of bounds", at the line that made the call')


def test_the_debug_mode_does_not_report_synchronize():
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda.synchronize()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert says("35", "The debug mode does not report `synchronize`.")


def test_a_reference_that_is_kept_until_the_streams_have_met_is_as_good_as_record_stream():
    def add_up(keep):
        side, main, kept = torch.cuda.Stream(), torch.cuda.current_stream(), []
        total = torch.zeros((), device="cuda")
        for batch_on_host in [torch.ones(4).pin_memory() for _ in range(4)]:
            with torch.cuda.stream(side):
                batch = batch_on_host.to("cuda", non_blocking=True)
            main.wait_stream(side)
            total += batch.sum()
            kept += [batch] if keep else []
        side.wait_stream(main)
        return total.item()

    with vgpu.races(error=False) as dropped:
        assert add_up(keep=False) == 16
    with vgpu.races(error=False) as held:
        assert add_up(keep=True) == 16
    assert dropped and not held
    assert says("35", "It is as good to keep a reference to the batch until `side` has waited for `main`.")


def test_an_event_that_is_recorded_after_the_work_is_a_wait():
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    with vgpu.races():
        with torch.cuda.stream(side):
            batch = torch.ones(4).pin_memory().to("cuda", non_blocking=True)
        event = side.record_event()
        main.wait_event(event)
        assert batch.sum().item() == 4
    assert says("35", "`event = side.record_event()` after the work, then `main.wait_event(event)`")


def test_a_copy_to_the_host_that_does_not_block_has_to_be_waited_for():
    on_host, x = torch.zeros(3, pin_memory=True), torch.ones(3, device="cuda")
    with vgpu.races(error=False) as found:
        on_host.copy_(x, non_blocking=True)
        on_host.tolist()
    assert len(found) == 1
    with vgpu.races():
        on_host.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        on_host.tolist()
    assert says("35", "so the host may read the result before it has arrived")


def test_labels_can_be_looked_at_on_the_cpu():
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3]))
    assert says("35", "or on the CPU, where the error comes at its line in plain words")
