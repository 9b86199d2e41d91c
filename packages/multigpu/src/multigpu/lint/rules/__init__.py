"""The rules, one a file: its `RULE` says what it is about, its `check` yields the places that break it."""

from collections.abc import Callable, Iterator

from ..finding import Found, Rule
from ..readings import Reading
from . import (
    accumulation_synced,
    accumulation_unscaled,
    bare_cuda,
    batch_in_replica,
    callable_keeps_self,
    collective_on_one_rank,
    constant_tensor,
    cuda_tensor_type,
    factory_without_device,
    gathered_loss,
    item_in_loop,
    literal_device,
    load_without_map_location,
    loader_without_sampler,
    matrix_optimizer_on_shards,
    missing_module,
    module_of_sharded,
    module_prefix,
    no_set_device,
    number_of_one_rank,
    numpy_round_trip,
    optimizer_before_sharding,
    reentrant_checkpoint,
    sampler_without_epoch,
    saved_by_every_rank,
    tensor_kept_on_self,
    update_in_replica,
)

NOT_PYTHON_3 = Rule(
    "FL000",
    "not-python-3",
    "searched by token instead, where a name may mean anything",
    "port it (print and except are the usual lines), and lint again",
)
CHECKS: dict[Rule, Callable[[Reading], Iterator[Found]]] = {
    module.RULE: module.check
    for module in (
        bare_cuda,
        factory_without_device,
        cuda_tensor_type,
        literal_device,
        tensor_kept_on_self,
        numpy_round_trip,
        constant_tensor,
        callable_keeps_self,
        item_in_loop,
        gathered_loss,
        update_in_replica,
        missing_module,
        module_prefix,
        load_without_map_location,
        optimizer_before_sharding,
        sampler_without_epoch,
        collective_on_one_rank,
        no_set_device,
        module_of_sharded,
        saved_by_every_rank,
        loader_without_sampler,
        accumulation_unscaled,
        accumulation_synced,
        reentrant_checkpoint,
        number_of_one_rank,
        batch_in_replica,
        matrix_optimizer_on_shards,
    )
}
RULES = {rule.code: rule for rule in (NOT_PYTHON_3, *CHECKS)}
