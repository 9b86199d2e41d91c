"""The names of nn.DataParallel and DistributedDataParallel, and the attributes that they have."""

import ast

from .names import Names
from .values import words

# The attributes of a wrapper itself: all of nn.Module, and of torch's two wrappers. Those of its model need `.module`.
ATTRIBUTES = words("""
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda device_ids dim double
    dump_patches eval extra_repr float forward gather get_buffer get_extra_state get_parameter get_submodule half ipu
    load_state_dict module modules mtia named_buffers named_children named_modules named_parameters output_device
    parallel_apply parameters register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook
    register_state_dict_pre_hook replicate requires_grad_ scatter set_extra_state set_submodule share_memory
    src_device_obj state_dict to to_empty train training type xpu zero_grad
""")
OF_DISTRIBUTED = words("""
    broadcast_buffers bucket_bytes_cap device device_type find_unused_parameters gradient_as_bucket_view join
    join_device join_hook join_process_group logger mixed_precision no_sync process_group reducer register_comm_hook
    require_backward_grad_sync require_forward_param_sync static_graph
""")
RETURN_THE_MODEL = words(
    "apply bfloat16 cpu cuda double eval float half requires_grad_ share_memory to to_empty train type"
)


def is_wrapper(made: str) -> bool:
    """Whether a full name is that of one of torch's two wrappers, and not of another class of the same name.

    FullyShardedDataParallel is not one of them: it passes on the attributes of the model, and gathers no outputs.
    """
    return made.startswith("torch.") and made.endswith((".DataParallel", ".DistributedDataParallel"))


def gathers(wrapper: ast.Call, names: Names) -> bool:
    """Whether a wrapper gathers outputs from several GPUs: DataParallel does, and DDP has one GPU a process."""
    return not is_distributed(wrapper, names)


def is_distributed(wrapper: ast.Call, names: Names) -> bool:
    """Whether a wrapper is DistributedDataParallel, by whatever name it is imported."""
    return names.called(wrapper).endswith("DistributedDataParallel")
