"""Ten kinds in three forms: each fails its own measurement, and the right program passes all of them."""

import ast
from random import Random

import pytest

import vgpu
from course.lessons.nb34.bugs import KINDS, RIGHT
from course.lessons.nb34.cases import BY_NAME, SITUATIONS, cases_of
from course.lessons.nb34.desk import first_wrong, symptoms, train_on_one_gpu
from course.lessons.nb34.measures import MEASURES
from course.lessons.nb34.plant import chosen, definitions, edited, graft, plant, source_of

FORMS = [(kind.name, k) for kind in KINDS for k in range(3)]
CAUSES = {  # what a form truly changes beside its own measurement
    ("memory", 1): {"restart"},  # a number that is in no buffer is in no checkpoint
    ("devices", 2): {"memory", "apart", "still", "restart", "statistics"},  # nothing works on the second GPU
}


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


def test_each_kind_has_a_measurement_and_situations():
    assert list(BY_NAME) == list(MEASURES) == list(SITUATIONS) and len(BY_NAME) == 10


@pytest.mark.parametrize(("name", "k"), FORMS)
def test_a_form_changes_its_home_only_and_fails_its_own_measurement(name, k):
    kind = BY_NAME[name]
    text = edited(RIGHT, kind.forms[k].edits)
    before, after = definitions(RIGHT), definitions(text)
    assert {part for part in after if after[part] != before.get(part)} <= {*kind.homes}
    assert first_wrong(kind, text) is not None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_right_program_passes_with_other_seeds(kind):
    for one, other in zip(cases_of(kind.name)(Random(5)), cases_of(kind.name)(Random(5)), strict=True):
        assert one.measure(RIGHT).agrees(other.measure(RIGHT)) and one.measure(RIGHT).sound


@pytest.mark.long
@pytest.mark.parametrize(("name", "k"), FORMS)
def test_a_bug_alone_trips_its_own_measurement_only(name, k):
    found = symptoms(edited(RIGHT, BY_NAME[name].forms[k].edits))
    assert {*found} - CAUSES.get((name, k), set()) == {name}


def test_on_one_gpu_the_ten_bugs_of_plant_0_change_nothing():
    assert train_on_one_gpu(plant(0)) == train_on_one_gpu(RIGHT)


def test_every_seed_plants_one_of_each_kind():
    for seed in range(30):
        assert list(chosen(seed)) == list(KINDS) and plant(seed) != RIGHT
    assert plant(7) == plant(7) != plant(8)


def test_functions_are_short():
    for text in (RIGHT, *(plant(seed) for seed in range(20))):
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        bodies = [[part for part in node.body if not ast.unparse(part).startswith(("'", '"'))] for node in functions]
        assert max(body[-1].end_lineno - body[0].lineno + 1 for body in bodies) <= 12


def test_a_graft_takes_a_definition_by_its_name():
    text = graft(
        RIGHT, {"wrap": "def wrap(net):\n    return helper(net)", "helper": "def helper(net):\n    return net"}
    )
    assert definitions(text)["wrap"].endswith("helper(net)") and definitions(text)["helper"]
    assert definitions(graft(RIGHT, {})) == definitions(RIGHT)


def test_the_source_of_a_class_is_found():
    from course.lessons.nb34.detector import Anchors, wrap

    for part in (Anchors, wrap):
        assert source_of(part) == (part.__name__, definitions(RIGHT)[part.__name__])
    with pytest.raises(ValueError, match="source"):
        source_of(len)
