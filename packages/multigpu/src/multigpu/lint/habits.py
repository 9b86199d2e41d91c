"""How people name things: the spelling of a name decides if the code does not show what the name holds."""

import re

NOT_A_MODULE = (
    r"Dataset|Sampler|Loader|Transform|Trainer|Solver|Runner|Learner|Engine|Agent|Config|TestCase|Exception|Error"
)
DATA_CLASS = r"Dataset|Sampler|Loader|Transform|Fetcher"
# Files and folders whose code belongs on the CPU.
CPU_PLACES = {
    *("data", "dataset", "datasets", "dataloader", "dataloaders", "transforms", "augmentations"),
    *("viz", "vis", "visualization", "plotting", "figures"),
}
DRIVER_CLASS = r"Trainer|Solver|Runner|Learner|Engine|Agent|Test"
DATA_FUNCTION = (
    r"collate|transform|augment|(^|_)(load|read|parse|preprocess|prefetch|preload)|__getitem__|loader|dataset|convert"
    r"|state_dict|checkpoint|^_?(draw|plot|show|visuali[sz]e|render)(_|$)|(get|next|make)_batch"
)
DRIVER_FUNCTION = (
    r"^(main|worker|demo|run|fit|setup|cli|profile|bench)"
    r"|(^|_)(train|test|eval|evaluate|valid|validate|inference|infer|benchmark|sample_images|epoch|launch)(_|$|\d)"
    r"|(build|make|create|get|load|init|prepare)_(\w+_)?(model|net|network|optimizer)$"
)
STEP_METHOD = (
    r"^(forward|__call__|((get|build|compute|calc|calculate)_)?loss(es)?|init_?(hidden|state)"
    r"|(training|validation|test|predict)_step)$"
)
MODEL = (
    r"model|net($|[A-Z_\d])|network|backbone|encoder|decoder|criterion|generator|discriminator|classifier|detector"
    r"|module|^(loss_fn|G|D)$"
)
TENSOR = (
    r"^(x|y|preds?|predictions?|logits|probs?|scores?|labels?|targets?|(\w+_)?boxes|rois|masks?|features?|feats?"
    r"|images?|inputs?|outputs?|embeddings?|proposals|deltas|hidden|quer(y|ies)|keys|values|weights?|loss(es)?)$"
)
NUMBER = (
    r"^(mode|name|key|epoch|step|idx|i|j|k|n|h|w|height|width|stride|size|shape|train|training|verbose|levels?|cfg\w*"
    r"|config|options|temperature|momentum|eps|alpha|gamma|beta|stage|phase|(\w+_)?group|pi|inf|nan|\w*metas?|\w*_info"
    r"|(is|use|return|num|n|get_size|has)_\w+"
    r"|\w+_(size|shape|sizes|shapes|factor|name|mode|idx|id|key|rate|scale|stride|threshold|thresh))$"
)
COUNTING_FUNCTION = r"shape_as_tensor|^_?(num|n|is|has|len|count)_|(size|shape|shapes|sizes|stride|strides)$"
MOVING_FUNCTION = r"^_?(to|move_to|send_to|put_on|place_on|copy_to)_?(device|cuda|gpu)$"
ARRAY_TO_TENSOR = (
    r"(np|numpy|array|ndarray)_?(to|2)_?(var|tensor|torch|cuda)|^(from_numpy|to_tensor|to_variable|totensor)$"
)
EVALUATING_FUNCTION = (
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|test|infer|inference|predict|metrics?|accuracy|generate"
    r"|sample|demo|visuali[sz]e|plot|export|draw|show|save|display|render|report|summary|dump|debug|log|precision"
    r"|recall|score)(_|$|\d)"
)
# Of a file that torch.load reads.
NOT_WEIGHTS = (
    r"(^|[^a-z])(data|dataset|vocab\w*|features?|cache|corpus|tokens|split|indices|annotations?|stats|log|misc"
    r"|scheduler\w*)([^a-z]|$)"
)
SELDOM = r"%|log|print|verbose|debug|every|interval|last|plot|report|patience"


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern is found in a name, whatever the case."""
    return re.search(pattern, name, re.IGNORECASE) is not None
