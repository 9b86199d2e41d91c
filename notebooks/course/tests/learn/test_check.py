"""What a reader sees of answers that no list foresaw."""

import operator
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import vgpu
from course.kit import learn
from course.kit.learn.by_key import find_exercise
from course.kit.learn.check import MOVED, judge
from course.kit.learn.exercise import Case, Exercise, Mistake, Trial

DOUBLE = Exercise(
    key="99.double",
    task="Twice x.",
    reference=lambda x: 2 * x,
    cases=lambda random: [Case((1,)), Case((2,)), Case((random.randint(3, 9),))],
    hints=("Add.",),
    mistakes=(Mistake("square", "you squared.", "issue 1, 2020", answers=(lambda x: x * x,)),),
)


def test_solved():
    verdict = judge(DOUBLE, lambda x: x + x)
    assert verdict.solved
    assert verdict.words == "solved. 3 calls agree with the reference."


def test_solved_begins_with_a_sign_and_not_yet_does_not(capsys):
    exercise = find_exercise("01.rows_lost")
    learn.check(exercise.key, exercise.reference)
    learn.check(exercise.key, lambda sizes: -1)
    solved, missed, *_ = capsys.readouterr().out.splitlines()
    assert solved.startswith("✔ 01.rows_lost: solved.") and missed.startswith("01.rows_lost: not yet.")


def test_named_mistake_comes_with_a_counter_example():
    verdict = judge(DOUBLE, lambda x: x**2)
    assert verdict.words == "not yet: you squared. (issue 1, 2020)\n  double(1) gave 1; right is 2."


def test_unnamed_mistake_comes_with_a_counter_example_alone():
    verdict = judge(DOUBLE, lambda x: x + 1)
    assert verdict.mistake is None
    assert verdict.words == "not yet.\n  double(2) gave 3; right is 4."


def test_an_exception_is_reported_not_raised():
    verdict = judge(DOUBLE, lambda x: operator.truediv(x, 0))
    assert verdict.words == "not yet. double(1) raises ZeroDivisionError: division by zero"


def test_an_exception_that_a_mistake_is_known_for_is_named():
    """Only where the named answer raises the same error, in the same words, on the same case."""
    named = replace(DOUBLE, mistakes=(Mistake("item", "you indexed.", "issue 2, 2021", answers=(lambda x: x[0],)),))
    verdict = judge(named, lambda x: 2 * x[0])
    assert verdict.mistake is named.mistakes[0]
    assert verdict.words == (
        "not yet: you indexed. (issue 2, 2021)\n  double(1) raises TypeError: 'int' object is not subscriptable"
    )
    assert judge(named, lambda x: operator.truediv(x, 0)).mistake is None
    assert judge(named, lambda x: len(x)).mistake is None  # a TypeError, too, in other words


def test_a_readers_test_is_tried_on_right_and_wrong_programs():
    """Passing where it should fail, and failing where it should pass, are both wrong; what it raised is shown."""

    def is_double(program):
        assert program(3) == 6, "not twice"

    programs = {"twice": lambda x: 2 * x, "square": lambda x: x * x, "as it was": lambda x: x}
    exercise = Exercise("99.test", "", is_double, lambda random: [Trial((p,)) for p in programs.values()], ("Run.",))

    def calls_it_only(program):
        program(3)

    def wants_seven(program):
        assert program(3) == 7, "not seven"

    assert judge(exercise, is_double).solved
    assert "gave a test that passes; right is a test that fails" in judge(exercise, calls_it_only).words
    words = judge(exercise, wants_seven).words
    assert "gave a test that fails: AssertionError: not seven; right is a test that passes." in words
    assert "not solved yet" in judge(exercise, lambda program: learn.TODO).words


def test_forgotten_return_is_a_wrong_answer():
    assert "double(1) gave None" in judge(DOUBLE, lambda x: None).words


def test_what_cannot_be_compared_is_a_wrong_answer():
    """A tensor of several values has no truth value."""
    verdict = judge(find_exercise("01.rows_lost"), lambda sizes, gpus: torch.ones(gpus))
    assert "rows_lost([10, 1], 2) gave <tensor (2,)>; right is 5." in verdict.words


def test_large_tensors_that_look_alike_are_told_apart_in_a_line():
    """By their memory, by the first number that differs, or by their graph."""
    exercise = find_exercise("01.share")
    with vgpu.virtual_gpus(2):
        words_of_copies = judge(exercise, lambda x2, like: x2.repeat(len(like), *[1] * (x2.dim() - 1))).words
    assert "gave <tensor (10, 100, 200) in 800,000 bytes of memory>" in words_of_copies
    assert "right is <tensor (10, 100, 200) in 80,000 bytes of memory>." in words_of_copies
    assert len(words_of_copies) < 600
    same = replace(DOUBLE, reference=lambda x: x * torch.ones(9, 9), agree=lambda a, b: bool((a == b).all()))
    verdict = judge(same, lambda x: x * torch.ones(9, 9).index_fill(0, torch.tensor([4]), 3))
    assert "gave <tensor (9, 9)> with " in verdict.words and verdict.words.count("at [4, 0]") == 2
    assert len(verdict.words) < 600
    with vgpu.virtual_gpus(2):
        detached = judge(find_exercise("02.gather"), _joined_without_a_graph).words
    assert "that has no grad_fn>; right is <tensor" in detached
    assert "that has a grad_fn>." in detached


def _joined_without_a_graph(outputs, device):
    with torch.no_grad():
        return find_exercise("02.gather").reference(outputs, device)


def test_long_lines_are_wrapped(capsys):
    learn.check("01.rows_lost", lambda sizes, gpus: sizes[0] // 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("01.rows_lost: not yet: this is always half of the batch")
    assert max(map(len, lines)) <= 100


def test_partly_solved_starter_is_not_solved_yet():
    assert judge(DOUBLE, lambda x: 2 if x == 1 else learn.TODO).words.startswith("not solved yet")


@pytest.mark.parametrize("key", ["98.nothing", "01.nothing", "no key", ""])
def test_unknown_exercise(key):
    with pytest.raises(KeyError, match="exercise"):
        find_exercise(key)


def test_check_wants_the_function_not_its_result():
    with pytest.raises(TypeError, match="wants the function itself, got \\[5, 5\\]"):
        learn.check("01.rows_lost", [5, 5])


def set_device_and_go(x, k):
    torch.cuda.set_device(k)
    return x.cuda()


@pytest.mark.parametrize(
    "answer",
    [
        set_device_and_go,
        lambda x, k: (torch.cuda.set_device(k), x.to(f"cuda:{k}"))[1],
        lambda x, k: (torch.cuda.set_device(1 - k), x.cuda(k))[1],
        lambda x, k: (torch.accelerator.set_device_index(k), x.cuda())[1],
        lambda x, k: (torch.cuda.device(k).__enter__(), x.cuda())[1],
    ],
)
def test_an_answer_that_leaves_another_gpu_current_is_refused(answer):
    with vgpu.virtual_gpus(2):
        verdict = judge(find_exercise("00.on_gpu"), answer)
        assert torch.cuda.current_device() == 0
    assert not verdict.solved and verdict.mistake is MOVED
    assert verdict.words.startswith("not yet: you moved everybody: ")
    assert "After on_gpu(<tensor" in verdict.words and "the current GPU was 1, before it 0." in verdict.words


def test_a_gpu_entered_for_a_few_lines_is_right():
    def answer(x, k):
        with torch.cuda.device(k):
            return x.cuda()

    with vgpu.virtual_gpus(2):
        torch.cuda.set_device(1)
        assert judge(find_exercise("00.on_gpu"), answer).solved
        assert torch.cuda.current_device() == 1


def test_an_answer_that_moves_and_raises_leaves_nothing_behind():
    def answer(x, k):
        torch.cuda.set_device(1)
        raise ValueError("here")

    with vgpu.virtual_gpus(2):
        assert "raises ValueError: here" in judge(find_exercise("00.on_gpu"), answer).words
        assert torch.cuda.current_device() == 0


def bits(value):
    """Something to compare a state by; NumPy's is a tuple with an array in it."""
    return [part.tolist() if hasattr(part, "tolist") else part for part in value] if isinstance(value, tuple) else value


CHANGES = {
    "grad mode": (torch.is_grad_enabled, lambda: torch.set_grad_enabled(False)),
    "default dtype": (torch.get_default_dtype, lambda: torch.set_default_dtype(torch.float64)),
    "default device": (torch.get_default_device, lambda: torch.set_default_device("cuda:1")),
    "anomaly mode": (torch.is_anomaly_enabled, lambda: torch.autograd.set_detect_anomaly(True)),
    "determinism": (
        torch.are_deterministic_algorithms_enabled,
        lambda: torch.use_deterministic_algorithms(True),
    ),
    "threads": (torch.get_num_threads, lambda: torch.set_num_threads(torch.get_num_threads() + 1)),
    "autocast": (lambda: torch.is_autocast_enabled("cpu"), lambda: torch.set_autocast_enabled("cpu", True)),
    "cudnn": (
        lambda: torch.backends.cudnn.deterministic,
        lambda: setattr(torch.backends.cudnn, "deterministic", True),
    ),
    "seed of Python": (random.getstate, lambda: random.seed(3)),
    "seed of NumPy": (lambda: bits(np.random.get_state()), lambda: np.random.seed(3)),
    "seed of torch": (lambda: torch.get_rng_state().tolist(), lambda: torch.manual_seed(3)),
    "seed of a GPU": (lambda: torch.cuda.get_rng_state(1).tolist(), lambda: torch.cuda.manual_seed_all(3)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_an_answer_changes_is_put_back(what):
    get, change = CHANGES[what]
    with vgpu.virtual_gpus(2):
        torch.zeros(1).cuda()
        before = get()
        verdict = judge(DOUBLE, lambda x: (change(), 2 * x)[1])
        after = get()
        change()
        assert get() != before, "the change is one"
        try:
            assert verdict.solved and after == before
        finally:
            put_back(what, before)


def put_back(what, before):
    """What this file itself changed above, so that no other test sees it."""
    undo = {
        "grad mode": torch.set_grad_enabled,
        "default dtype": torch.set_default_dtype,
        "default device": lambda _: torch.set_default_device(None),
        "anomaly mode": torch.autograd.set_detect_anomaly,
        "determinism": torch.use_deterministic_algorithms,
        "threads": torch.set_num_threads,
        "autocast": lambda on: torch.set_autocast_enabled("cpu", on),
        "cudnn": lambda on: setattr(torch.backends.cudnn, "deterministic", on),
    }
    if what in undo:
        undo[what](before)


def test_a_module_given_to_an_answer_keeps_its_mode():
    nets = [torch.nn.Sequential(torch.nn.Dropout()), torch.nn.Dropout().eval()]
    same_modes = Exercise(
        key="99.modes",
        task="Are all in training mode?",
        reference=lambda given: [net.training for net in given["nets"]],
        cases=lambda random: [Case(({"nets": nets},))] * 3,
        hints=("Ask them.",),
    )
    verdict = judge(same_modes, lambda given: [given["nets"][0].eval(), given["nets"][1].train()] and [True, False])
    assert verdict.solved
    assert [net.training for net in nets] == [nets[0][0].training, False] == [True, False]


def test_checking_draws_no_random_number_of_the_reader():
    """The cases of 02.bytes_held are modules, whose weights are drawn."""
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    judge(find_exercise("02.bytes_held"), lambda module, gpus: learn.TODO)
    assert torch.rand(3).equal(wanted)


def test_a_verdict_does_not_depend_on_what_was_drawn_before():
    """The case, the reference, the answer and the named mistake draw from the generators that everybody shares."""

    def add(x, noise=0.0):
        return x + torch.rand(3) + np.random.rand() + random.random() + noise

    drawn = replace(
        DOUBLE,
        reference=add,
        cases=lambda seeded: [Case((torch.rand(3),))],
        agree=torch.equal,
        mistakes=(Mistake("noise", "you added noise.", "", answers=(lambda x: add(x, torch.rand(3)),)),),
    )
    told = set()
    for seed in range(3):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        told |= {(judge(drawn, add).words, judge(drawn, lambda x: add(x, torch.rand(3))).words)}
    assert len(told) == 1
    right, noisy = told.pop()
    assert right.startswith("solved") and noisy.startswith("not yet: you added noise.")


def test_an_answer_that_empties_its_argument_is_not_right():
    """The reference sees the argument first."""
    verdict = judge(find_exercise("02.strip_module"), lambda state: state.clear() or {})
    assert not verdict.solved and "gave {}; right is {'hidden.weight'" in verdict.words


def test_numbers_are_shown_to_four_digits_unless_that_hides_the_difference():
    exercise = Exercise(
        "00.thirds",
        "",
        lambda n: {"parts": [1 / n] * n, "pair": (1 / n, n)},
        lambda random: [Case((3,))],
        (),
        agree=lambda given, expected: given == expected,
    )
    verdict = judge(exercise, lambda n: {"parts": [0.25], "pair": (1 / n,)})
    assert "gave {'parts': [0.25], 'pair': (0.3333,)}" in verdict.words
    assert "right is {'parts': [0.3333, 0.3333, 0.3333], 'pair': (0.3333, 3)}." in verdict.words
    close = Exercise("00.third", "", lambda n: 1 / n, lambda random: [Case((3,))], ())
    assert "gave 0.333333; right is 0.3333333333333333." in judge(close, lambda n: 0.333333).words


def test_idle_gpus_is_counted_by_the_rule_of_scatter():
    exercise = find_exercise("00.idle_gpus")
    for rows in range(1, 65):
        for gpus in range(1, 9):
            assert exercise.reference(rows, gpus) == gpus - len(torch.zeros(rows).chunk(gpus))


def test_layers_of_04_3_are_everywhere_whatever_is_current():
    with vgpu.virtual_gpus(2):
        exercise = find_exercise("04.bring_to")
        cases = exercise.cases(random.Random(0))
        places = {(str(case.call(exercise.reference).device), case.current) for case in cases}
        listed = [len(list(case.args[0].parameters())) for case in cases]
    assert places == {(place, current) for place in ("cpu", "cuda:0", "cuda:1") for current in (0, 1)}
    assert {0, 1, 2} == set(listed)  # of a replica, of a layer without a bias, of any other


def test_an_answer_of_04_3_that_asks_parameters_is_named_and_says_that_it_met_a_replica():
    with vgpu.virtual_gpus(2):
        words = judge(
            find_exercise("04.bring_to"),
            lambda layer, array: torch.from_numpy(array).to(next(layer.parameters()).device),
        ).words
    assert "a replica lists no parameters" in words
    assert "<an nn.Linear of a replica, on cuda:0>" in words


def test_a_mistake_that_raises_does_not_stop_the_search_for_the_one_that_was_made():
    named = [
        Mistake("item", "", "", answers=(lambda x: x[0],)),
        Mistake("square", "you squared.", "", (lambda x: x * x,)),
    ]
    assert judge(replace(DOUBLE, mistakes=tuple(named)), lambda x: x**2).mistake is named[1]


def test_a_number_of_numpy_is_shown_as_a_number():
    assert "gave 2" in judge(replace(DOUBLE, mistakes=()), lambda x: np.float64(2.5)).words
