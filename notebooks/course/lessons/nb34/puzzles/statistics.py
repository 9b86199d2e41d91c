"""Under DDP the net has to normalise by the pictures of all ranks, as one process with all of them does, forward
and backward.
"""

from course.kit.learn.puzzle import wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "Which numbers does a layer of batch normalisation need from the other ranks in a forward?",
    "PyTorch has a layer for that, `nn.SyncBatchNorm`, and a function that puts it in the place of "
    "all others. `wrap` is the place.",
    "`net = nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()` before the net goes into DDP.",
)
statistics = detector.wrap
cases = cases_of("statistics")


@wrong
@instead(
    ("nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()", "net.cuda()"),
)
def each_rank_by_its_own():
    """these are the statistics of ranks that normalise by their own pictures. Sending buffers around does not change
    what was normalised with.
    """


@wrong
@instead(
    (
        "nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()",
        "net.cuda()\n    net.body[1] = nn.SyncBatchNorm.convert_sync_batchnorm(net.body[1])",
    ),
)
def only_the_first_layer():
    """this is a net of which some layers are synchronised, and others are not."""


@wrong
@instead(
    ("    return DistributedDataParallel(net, device_ids=[torch.cuda.current_device()])\n", "    return net\n"),
)
def no_gradient_is_sent():
    """the statistics are right, and the gradients of the ranks are their own: DDP is missing."""


@wrong
@instead(
    ("nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()", "net.cuda().eval()"),
)
def running_statistics():
    """the ranks agree, because this net normalises by its running statistics, as in evaluation. They are of no use
    before it has trained, and dropout is off, too.
    """
