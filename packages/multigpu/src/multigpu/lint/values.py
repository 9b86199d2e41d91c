"""The value that an expression may have, as far as devices are concerned, and the names of torch that decide it."""

import ast
from collections.abc import Iterable
from typing import NamedTuple


def words(text: str) -> frozenset[str]:
    """A vocabulary, written as one text."""
    return frozenset(text.split())


FACTORIES = words("""
    arange as_tensor asarray bartlett_window blackman_window empty eye frombuffer from_numpy full hamming_window
    hann_window kaiser_window linspace logspace normal ones polar rand randint randn randperm range scalar_tensor
    sparse_coo_tensor tensor tril_indices triu_indices zeros Tensor FloatTensor DoubleTensor HalfTensor LongTensor
    IntTensor ShortTensor ByteTensor CharTensor BoolTensor
""")
FROM_ARRAY = words("from_numpy tensor as_tensor asarray Tensor FloatTensor DoubleTensor LongTensor IntTensor")
FROM_TENSOR = words(
    "tensor as_tensor asarray normal sparse_coo_tensor Tensor"
)  # follow the device of a tensor they are given
JOINING = words("cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag meshgrid")
# Attributes, methods and functions of a tensor whose values are not tensors.
PLAIN_ATTRIBUTES = words("shape dtype device ndim is_cuda is_leaf requires_grad layout names itemsize nbytes")
PLAIN_METHODS = words("""
    size dim numel nelement item tolist get_device is_contiguous element_size data_ptr stride storage_offset
    ndimension is_floating_point is_complex backward keys format join startswith endswith lower upper split
""")
PLAIN_FUNCTIONS = words("""
    len int float str bool print range isinstance hasattr repr type id abs round divmod format open super input
    callable hash issubclass
""")
FOLLOWERS = words("new new_tensor new_zeros new_ones new_full new_empty")
KEEPS_DEVICE = words("expand_as view_as reshape_as copy_ to type register_buffer")  # whatever their argument is
FILLING = words("append appendleft extend insert update setdefault add")
# Attributes and methods which show that an argument is a tensor, or that it is not.
TENSOR_ONLY = words("""
    dim view permute contiguous unsqueeze detach data device is_cuda get_device expand gather scatter scatter_ long
    float half clamp clamp_ sigmoid softmax log_softmax exp log new new_zeros new_ones new_tensor new_full
    requires_grad size cuda cpu index_select masked_fill masked_fill_ masked_select topk type_as logsumexp numel norm
    matmul mm bmm
""")
ARRAY_ONLY = words("astype resize convert tobytes tofile save")
# Methods of a gathered output that leave a vector a vector, and those that make one number of it.
ELEMENTWISE = words("abs clamp clone contiguous detach double exp float half log neg requires_grad_ sqrt values items")
REDUCING = words("mean sum max min prod norm nanmean nansum logsumexp")
DTYPES = words("float double half long int short bool dtype bfloat16 uint8 cfloat")


class Gathered(NamedTuple):
    """The output of a model in DataParallel: the call, the wrapper, and whether it may be one entry of a vector."""

    output: ast.Call
    wrapper: ast.Call
    entry: bool = False


class Value(NamedTuple):
    """A value, as far as it is known."""

    device: bool = False  # a tensor on the device of the inputs, or one that was sent to a device
    made: frozenset[ast.AST] = frozenset()  # the factory calls on the CPU whose tensors are in it
    scalar: frozenset[ast.AST] = frozenset()  # those that made a 0-d tensor, which may meet any device
    arrays: frozenset[ast.AST] = frozenset()  # the calls that made the NumPy arrays in it of tensors
    host: bool = False  # brought to the CPU on purpose, by .cpu()
    plain: bool = False  # a number, a shape, a string, None
    guessed: bool = False  # a tensor by its name alone; it may be an array as well
    wrapped: frozenset[ast.Call] = frozenset()  # a model: the calls of DataParallel or DDP that it may come from
    gathered: frozenset[Gathered] = frozenset()  # an output of DataParallel: a scalar of each GPU is a vector here
    settled: bool = False  # a model taken out of its wrapper, or an output reduced to one number

    @property
    def is_tensor(self) -> bool:
        return self.device or bool(self.made or self.scalar)

    def part(self, gathered: frozenset[Gathered] = frozenset()) -> "Value":
        """An element of it, which is not a wrapped model.

        It is the same object if nothing changes, because two operands that are one object are one tensor.

        Args:
            gathered: the outputs of DataParallel that the element may be an entry of.
        """
        unchanged = not self.wrapped and self.gathered == gathered
        return self if unchanged else self._replace(wrapped=frozenset(), gathered=gathered)


PLAIN, UNKNOWN, ON_DEVICE = Value(plain=True), Value(), Value(device=True)
GUESSED = Value(device=True, guessed=True)


def union(values: Iterable[Value]) -> Value:
    """The value of something that may be any of these values, or that contains all of them."""
    values = list(values)
    return Value(
        any(value.device for value in values),
        frozenset().union(*(value.made for value in values)),
        frozenset().union(*(value.scalar for value in values)),
        frozenset().union(*(value.arrays for value in values)),
        any(value.host for value in values),
        bool(values) and all(value.plain for value in values),
        all(value.guessed for value in values if value.device) and any(value.guessed for value in values),
        frozenset().union(*(value.wrapped for value in values)),
        frozenset().union(*(value.gathered for value in values)),
    )


def container(values: Iterable[Value]) -> Value:
    """The value of a list, or the like, of these values: neither a model itself nor an output."""
    return union(values).part()


def one_of(values: Iterable[Value]) -> Value:
    """The value after a condition, whose branches leave these values.

    If one branch takes a model out of its wrapper, or reduces a loss, the author has thought of the other case, too.
    """
    values = list(values)
    merged = union(values)
    if any(value.settled for value in values):
        return merged._replace(wrapped=frozenset(), gathered=frozenset(), settled=True)
    return merged


def made_among_others(values: list[Value]) -> frozenset[ast.AST]:
    """The tensors that were made on the CPU and meet another operand that is on the device."""
    return frozenset().union(
        *(value.made for value in values if any(other.device for other in values if other is not value))
    )


def merge_branches(before: Value | None, branches: Iterable[Value]) -> Value:
    """The value of a name after an `if`: a tensor that one branch sends to its device counts as sent."""
    branches = list(branches)
    merged = one_of(branches)
    if before is not None and any(not before.made & branch.made and branch.device for branch in branches):
        merged = merged._replace(made=merged.made - before.made)
    if before is not None and before.gathered and not all(branch.gathered for branch in branches):
        merged = merged._replace(gathered=frozenset(), settled=True)  # one branch makes something else of it
    return merged


def is_dtype(full_name: str) -> bool:
    """Whether the name of an argument of `.to()` is that of a dtype, and so of no device."""
    last = full_name.rsplit(".", 1)[-1]
    return last in DTYPES or last.rstrip("0123456789") in ("float", "int", "uint", "complex") or last.endswith("dtype")
