"""Texts that only name a topic, such as "FSDP": they ask for all entries of some chapters."""

from multigpu.failures import Failure, catalogue

_NAMES = {
    ("ddp", "distributed"): "ddp distributeddataparallel",
    ("scatter", "replicas", "gather"): "dp dataparallel",
    ("nccl",): "nccl",
    ("launching", "distributed"): "torchrun",
    ("launching",): "slurm elastic rendezvous",
    ("sharding",): "fsdp fsdp1 fsdp2 fully_shard fullyshardeddataparallel dtensor devicemesh sharding",
    ("checkpoints", "resuming"): "checkpoint checkpoints",
    ("resuming",): "resume",
    ("precision",): "amp autocast gradscaler fp16 bf16",
    ("loading",): "dataloader",
    ("driver", "devices"): "cuda",
}
# The names of topics in lower case, and the chapters that each stands for.
TOPICS = {name: chapters for chapters, names in _NAMES.items() for name in names.split()}


def topic(text: str) -> list[Failure]:
    """The entries of a topic if the text is only its name; else none."""
    chapters = TOPICS.get(text.strip().lower(), ())
    return [entry for chapter in chapters for entry in catalogue() if entry.chapter == chapter]
