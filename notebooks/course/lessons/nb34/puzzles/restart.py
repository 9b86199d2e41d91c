"""A run that goes on from its file has to be, bit for bit, the run that was not stopped; and when `save` returns
on a rank, the file is complete.
"""

from course.kit.learn.puzzle import also, wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "What does a step depend on, besides the weights? And which of it is each rank's own?",
    "The optimizer's state, and the generator of each rank, from which dropout draws. Where does `load` put them back?",
    '`torch.cuda.set_rng_state(kept["draws"][distributed.get_rank()].cpu())`',
)
restart = detector.load
cases = cases_of("restart")


@wrong
@instead(
    ('    torch.cuda.set_rng_state(kept["draws"][distributed.get_rank()].cpu())\n', ""),
)
def no_random_numbers():
    """this is what a run gives that goes on with new random numbers: dropout drops other units."""


@wrong
@instead(
    ('    optimizer.load_state_dict(kept["optimizer"])\n', ""),
)
def the_optimizer_begins_anew():
    """the weights are those of the file, and the optimizer begins without its state."""


@wrong
@instead(
    ('ddp.module.load_state_dict(kept["net"])', 'ddp.load_state_dict(kept["net"], strict=False)'),
)
def no_weight_is_loaded():
    """no weight was loaded: the names of the file and of the net do not match, and `strict=False` says nothing."""


@also(no_random_numbers)
@instead(
    (
        '    torch.cuda.set_rng_state(kept["draws"][distributed.get_rank()].cpu())\n',
        '    if distributed.get_rank() == 0:\n        torch.cuda.set_rng_state(kept["draws"][0].cpu())\n',
    ),
)
def only_rank_0_draws_on():
    """this is what a run gives in which only rank 0 goes on with its random numbers."""
