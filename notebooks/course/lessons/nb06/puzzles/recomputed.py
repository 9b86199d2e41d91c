"""`blocks` blocks are recomputed `together` at a time. A block keeps `inside` bytes; its input alone takes `entering`.
Return the most bytes of activations that are held: the inputs of all pieces, and all that the largest piece keeps.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "How many pieces are there, and how many blocks has the largest?",
    "Each piece keeps its input from forward to backward. Backward recomputes one piece at a time.",
    "`-(-blocks // together) * entering + min(blocks, together) * inside`",
)


def recomputed(blocks: int, together: int, entering: int, inside: int) -> int:
    pieces = -(-blocks // together)  # rounded up
    return pieces * entering + min(blocks, together) * inside


def cases(random: Random) -> Sequence[Case]:
    """One block at a time, all at once, and numbers that do not divide."""
    fixed = [(6, 1, 1, 9), (6, 6, 1, 9), (6, 2, 1, 9), (7, 3, 2, 10), (4, 6, 3, 20)]
    drawn = [
        (random.randint(2, 40), random.randint(1, 12), random.randint(1, 9), random.randint(10, 90)) for _ in range(20)
    ]
    return [Case(numbers) for numbers in [*fixed, *drawn]]


@wrong
def all_of_them(blocks: int, together: int, entering: int, inside: int) -> int:
    """this is what the net holds without recomputation. Only one piece at a time has its activations."""
    return blocks * inside


@wrong
def without_inputs(blocks: int, together: int, entering: int, inside: int) -> int:
    """this leaves out the inputs, from which the pieces are recomputed. They wait from forward to backward."""
    return min(blocks, together) * inside


@wrong
def an_input_a_block(blocks: int, together: int, entering: int, inside: int) -> int:
    """this keeps the input of every block. A piece of several blocks keeps the input of its first one only."""
    return blocks * entering + min(blocks, together) * inside


@wrong
def whole_pieces_only(blocks: int, together: int, entering: int, inside: int) -> int:
    """this forgets the last, shorter piece. It has an input, too."""
    return blocks // together * entering + min(blocks, together) * inside


@wrong
def pieces_of_full_size(blocks: int, together: int, entering: int, inside: int) -> int:
    """this takes a piece to be larger than the net."""
    return -(-blocks // together) * entering + together * inside
