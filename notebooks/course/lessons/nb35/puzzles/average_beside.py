"""`weight` takes one step for each gradient, and `average` follows it on the stream `side`. Both tensors are changed in
place, nothing is returned, and the host does not wait. Put in the waits that are missing, so that each stream reads
what it is meant to read, and the caller may use both tensors on its own stream.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nb35.cases import Averaged

hints = (
    "Two streams touch `weight`: one writes it, the other reads it. What does the reader have to wait for, and what "
    "does the writer have to wait for in the next turn?",
    "The side stream waits before it reads the weight, so the first wait is `side.wait_stream(main)`, with "
    "`main = torch.cuda.current_stream()`. The next step writes what the side stream may still read.",
    "Before `weight -= ...` and after the loop: `main.wait_stream(side)`.",
)


def cases(random: Random) -> Sequence[Case]:
    def numbers() -> list[float]:
        return [float(random.randint(-9, 9)) for _ in range(3)]

    return [Averaged((numbers(), [numbers() for _ in range(steps)])) for steps in (1, 2, 3)]


def average_beside(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    main = torch.cuda.current_stream()
    for gradient in gradients:
        main.wait_stream(side)  # the average may still read the weight
        weight -= 0.1 * gradient
        side.wait_stream(main)
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)
    main.wait_stream(side)  # whoever called this reads the average


@wrong
def nothing_waits(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives in which no stream waits. Its numbers are right on a laptop, and on a GPU as often
    as the side stream happens to be slow enough and not too slow.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)


@wrong
def the_reader_alone_waits(
    weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream
) -> None:
    """this is what a function gives in which the side stream waits for the weight and nobody waits for the side stream.
    The next step may change a weight that the average still reads, and the caller may read an average that is not done.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)


@wrong
def the_wrong_direction(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives in which the default stream waits for the side stream, and not the other way round.
    `a.wait_stream(b)` holds back `a`, which is the one in front of the dot.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)
    torch.cuda.current_stream().wait_stream(side)


@wrong
def for_itself(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives whose side stream does not wait for the weight. Inside of
    `with torch.cuda.stream(side)` the current stream is `side`, so `side.wait_stream(torch.cuda.current_stream())` lets
    it wait for itself there. Ask for the current stream before the `with`.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.current_stream())
            average.lerp_(weight, 0.5)
        torch.cuda.current_stream().wait_stream(side)


@wrong
def not_after_the_loop(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives whose streams wait in every turn and not at the end: the caller may read an average
    that lacks the last step.
    """
    main = torch.cuda.current_stream()
    for gradient in gradients:
        main.wait_stream(side)
        weight -= 0.1 * gradient
        side.wait_stream(main)
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)


@wrong
def at_the_end_alone(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives whose side stream waits in every turn, and whose default stream waits after the
    loop only. Before that, the next step may change a weight that the average still reads.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)
    torch.cuda.current_stream().wait_stream(side)


@wrong
def the_host_waits(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives in which the *host* waits. There is no race, and the host launches nothing
    meanwhile, so the GPU runs out of work. `wait_stream` lets one stream wait for the other, and the host goes on.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)
        side.synchronize()


@wrong
def one_stream(weight: Tensor, gradients: Sequence[Tensor], average: Tensor, side: torch.cuda.Stream) -> None:
    """this is what a function gives that does everything on one stream. That is right, often the better choice, and not
    the exercise: the average has to run on `side`.
    """
    for gradient in gradients:
        weight -= 0.1 * gradient
        average.lerp_(weight, 0.5)
