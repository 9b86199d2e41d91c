"""`reports` has (rank, exit code, last line of its log, with gloo or NCCL) for each rank of a failed run.
Return the one rank that failed by itself; the others lost a peer, waited for one in vain, or were ended by torchrun.
"""

import re
from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Do not look for the culprit. Strike out the ranks that only followed; one remains.",
    "Three kinds follow: ended by torchrun (-15), left by a peer (in the words of gloo, of NCCL or of the "
    "store), tired of waiting for one ('operation timeout', 'waiting for clients').",
    "`code not in (0, -15) and not re.search(words, line)`, with `words = 'by peer|by remote peer|RemoteError|"
    "Failed to recv|operation timeout|waiting for clients'`",
)


Report = tuple[int, int, str]  # rank, exit code, last line
FOLLOWERS = (
    (1, "RuntimeError: Connection closed by peer [10.0.0.2]:38032"),
    (1, "RuntimeError: Read error [10.0.0.2]:25266: Connection reset by peer"),
    (-15, "step 3"),
    (-6, "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)"),
    (1, "socketProgress: Connection closed by remote peer 10.0.0.2<41234>"),
    (1, "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."),
    (1, "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"),
    (1, "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined."),
)
CAUSES = (
    (-9, "step 3"),
    (-11, "step 3"),
    (1, "FloatingPointError: the loss is nan"),
    (1, "torch.OutOfMemoryError: CUDA out of memory."),
    (3, "no such file: train.json"),
    (1, "RuntimeError: CUDA error: device-side assert triggered"),
    (
        -6,
        "Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
    ),
    (1, "ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out."),
)


def first_to_fail(reports: Sequence[Report]) -> int:
    lost_a_peer = "by peer|by remote peer|RemoteError|Failed to recv|operation timeout|waiting for clients"
    for rank, code, line in reports:
        if code not in (0, -15) and not re.search(lost_a_peer, line):
            return rank
    raise ValueError("every rank only followed")


def cases(random: Random) -> Sequence[Case]:
    """Every cause and every follower at some place; ranks are in no order, as logs are collected."""

    def run(cause: tuple[int, str], place: int, followers: Sequence[tuple[int, str]]) -> Case:
        ends = [*followers[:place], cause, *followers[place:]]
        ranks = random.sample(range(len(ends)), len(ends))
        return Case(([(rank, code, line) for rank, (code, line) in zip(ranks, ends, strict=True)],))

    closed, _, ended, timed_out, *_ = FOLLOWERS
    cases = [
        run(CAUSES[0], 1, [closed, closed]),
        run(CAUSES[2], 1, [ended]),
        run(CAUSES[1], 2, [closed, ended, timed_out]),
        run(CAUSES[4], 3, [timed_out, closed, closed]),
    ]
    for k in range(24):
        followers = [FOLLOWERS[k % len(FOLLOWERS)], *random.choices(FOLLOWERS, k=random.randint(0, 5))]
        cases.append(run(CAUSES[k // 3], random.randint(0, len(followers)), followers))
    return cases


@wrong
def the_first_in_the_list(reports: Sequence[Report]) -> int:
    """this is the first report of the list, or the last: the log that one happens to read first.

    Source: pytorch/pytorch issue 113546, 2023, asks for a report that names the rank which crashed
    """
    return reports[0][0]


@also(the_first_in_the_list)
def _(reports):
    return reports[-1][0]


@also(the_first_in_the_list)
def _(reports):
    return min(reports)[0]


@wrong
def the_one_with_a_traceback(reports: Sequence[Report]) -> int:
    """this is a rank that raised. A rank that was killed cannot raise, and those it leaves behind do.

    Source: torch-spyre/torch-spyre pull request 3835, 2026: the log that was kept was not the one of the cause
    """
    return next((rank for rank, code, _ in reports if code == 1), reports[0][0])


@wrong
def any_signal(reports: Sequence[Report]) -> int:
    """this is a rank that a signal ended. torchrun ends the healthy ones with SIGTERM, and NCCL's watchdog ends those
    that waited with SIGABRT.

    Source: huggingface/accelerate pull request 4139, 2026
    """
    return next((rank for rank, code, _ in reports if code < 0), reports[0][0])


@also(any_signal)
def lowest_code(reports: Sequence[Report]) -> int:
    return min(reports, key=lambda report: report[1])[0]


@wrong
def the_words_of_gloo(reports: Sequence[Report]) -> int:
    """this is what a function gives that knows a lost peer by `by peer` and a rank that waited by the word time-out.
    NCCL and the store have other words for a lost peer, and a server that is not a rank at all can time out as well.
    """
    # Every line that has the word time-out is struck out, and of lost connections those that gloo reports.
    struck = ("by peer", "timeout", "timed out")
    return next(rank for rank, code, line in reports if code != -15 and not any(w in line.lower() for w in struck))


@wrong
def all_but_SIGTERM(reports: Sequence[Report]) -> int:
    """this is the first rank that torchrun has not ended. On the other machines ranks end by themselves, because they
    have lost a peer or waited for one: read their last lines.
    """
    return next(rank for rank, code, _ in reports if code not in (0, -15))


@wrong
def closed_by_peer_alone(reports: Sequence[Report]) -> int:
    """this is what a function gives that knows a rank which followed by one or two phrases. A lost peer has several:
    those of gloo, of NCCL and of the store; and a rank that waited in vain says so in words of its own.
    """
    return next(rank for rank, code, line in reports if code != -15 and "closed by peer" not in line)


@also(closed_by_peer_alone)
def _(reports):
    return next(rank for rank, code, line in reports if code != -15 and "by peer" not in line)


@also(closed_by_peer_alone)
def _(reports):
    words = ("by peer", "by remote peer", "ncclRemoteError", "operation timeout")
    return next(rank for rank, code, line in reports if code != -15 and not any(w in line for w in words))


@wrong
def every_SIGABRT(reports: Sequence[Report]) -> int:
    """this is what a function gives that strikes out each -6. The watchdog ends a rank that waited in vain, and it also
    ends one whose own GPU has failed: read what follows the word watchdog.

    Source: vllm-project/vllm issue 17098, 2025
    """
    # Every SIGABRT is struck out.
    return next(rank for rank, code, line in reports if code not in (-6, -15) and "by peer" not in line)


@wrong
def the_odd_one_out(reports: Sequence[Report]) -> int:
    """this is the report whose line no other rank has. A rank that followed can be the only one of its kind."""
    lines = [line for _, _, line in reports]
    return min(reports, key=lambda report: lines.count(report[2]))[0]
