"""The net has to work on two GPUs at once, and after it was moved to a different GPU or to the CPU."""

from course.kit.learn.puzzle import also, wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "Which tensor of the net was not moved when the net was?",
    "It is in `Anchors`. What moves with a module, and is copied into each replica: attributes, parameters, buffers?",
    '`self.register_buffer("middles", middle_points(), persistent=False)` in `__init__`, and `forward` returns it.',
)
devices = detector.Anchors
cases = cases_of("devices")


@wrong
@instead(
    (
        '        self.register_buffer("middles", middle_points(), persistent=False)\n',
        "        self.middles = middle_points().cuda()\n",
    ),
)
def it_stays_on_one_gpu():
    """this is what a layer gives whose tensor stays on one GPU: a plain attribute does not move with the net, and a
    name such as `cuda:0` is the same in every replica.
    """


@also(it_stays_on_one_gpu)
@instead(
    ("        return self.middles\n", "        return self.middles.to('cuda:0')\n"),
)
def _(): ...


@wrong
@instead(
    ("        return self.middles\n", "        return self.middles.cuda()\n"),
)
def the_current_gpu():
    """this goes well in a replica, whose thread has its GPU as the current one. `.cuda()` asks the thread and not the
    features where they are.
    """
