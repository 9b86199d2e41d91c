"""Which device a piece of code asks for: "cuda" (the current one), "cuda:1", or "" if it is not a fixed GPU."""

import ast
import re

from .names import Names, keyword, last_name, method_of, own_nodes

TAKE_A_DEVICE = {"torch.device", "torch.cuda.device", "torch.cuda.set_device", "torch.set_default_device"}


def device_asked_for(call: ast.Call, names: Names, constants: dict[str, str]) -> str:
    """The GPU that a call sends something to, makes something on, or enters."""
    if names.called(call) in TAKE_A_DEVICE:
        return _entered(call, constants)
    asked = device_argument(call)
    is_move = method_of(call) == "cuda" and not names.called(call).startswith("torch.")
    if is_move and (asked is None or (isinstance(asked, ast.Constant) and asked.value is None)):
        return "" if last_name(call.func.value) == "super" else "cuda"  # type: ignore[attr-defined]
    return device_text(asked, constants) if asked is not None else ""


def device_argument(call: ast.Call) -> ast.expr | None:
    """The argument of a call that names a device."""
    named = keyword(call, "device") or keyword(call, "map_location")
    if named is None and method_of(call) in ("to", "to_empty", "cuda", "device") and call.args:
        return call.args[0]
    return named


def _entered(call: ast.Call, constants: dict[str, str]) -> str:
    asked = call.args[0] if call.args else keyword(call, "device") or keyword(call, "type")
    device = device_text(asked, constants) if asked is not None else ""
    index = call.args[1] if len(call.args) > 1 else keyword(call, "index")
    if index is None:
        return device
    return f"{device}:{ast.unparse(index)}" if device and isinstance(index, ast.Constant) else ""


def device_text(node: ast.AST, constants: dict[str, str]) -> str:
    """The GPU that an expression is, whatever happens at run time; `constants` are names that hold one."""
    match node:
        case ast.Name():
            return constants.get(node.id, "")
        case ast.Attribute():
            return constants.get(ast.unparse(node), "")
        case ast.Constant(value=bool()):
            return ""
        case ast.Constant(value=int()):
            return f"cuda:{node.value!r}"
        case ast.IfExp():
            return device_text(node.body, constants) or device_text(node.orelse, constants)
        case _:
            text = _folded(node)
            return text if re.fullmatch(r"cuda(:\d+)?", text) else ""


def _folded(node: ast.AST) -> str:
    """A string that is put together of constants alone, else ""."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr():
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
            return "".join(_written(part) for part in parts)
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=ast.Constant() as number):
            return re.sub(r"%[ds]", _written(number), text)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format"), args=[ast.Constant() as number]
        ):
            return re.sub(r"\{0?\}", _written(number), text)
    return ""


def _written(node: ast.AST) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "?"  # type: ignore[str-bytes-safe]


def named_devices(scope: ast.AST) -> dict[str, str]:
    """Names that hold a GPU: `device = torch.device("cuda:0")`, even if a CPU may take its place."""
    found: dict[str, str] = {}
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and last_name(value) == "device" and value.args:
                value = value.args[0]
            if not (isinstance(value, ast.Constant) and isinstance(value.value, int)):  # a number may be anything
                found[node.targets[0].id] = device_text(value, {})
    return found


def of_settings(tree: ast.AST) -> dict[str, str]:
    """The GPUs that settings name: `args.device` by its default, `Config.device`, and names that are made of them."""
    defaults = _of_command_line(tree)
    found = {
        f"{cls.name}.{last_name(node.targets[0])}": device_text(node.value, {})
        for cls in ast.walk(tree)
        if isinstance(cls, ast.ClassDef)
        for node in cls.body
        if isinstance(node, ast.Assign) and "device" in last_name(node.targets[0])
    }
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)] if defaults or found else []
    for node in assigned:
        target = ast.unparse(node.targets[0])
        if last_name(node.value) in ("parse_args", "parse_known_args"):
            found |= {f"{target.strip('()').split(',')[0]}.{name}": device for name, device in defaults.items()}
    for node in assigned:
        value = node.value
        if isinstance(value, ast.Call) and last_name(value) == "device" and value.args:
            value = value.args[0]
        target, source = ast.unparse(node.targets[0]), ast.unparse(value)
        if device := device_text(value, found):
            found[target] = device
        kept = {name.removeprefix(source): device for name, device in found.items() if name.startswith(f"{source}.")}
        found |= {target + rest: device for rest, device in kept.items()}  # `self.args = args`
    return found


def _of_command_line(tree: ast.AST) -> dict[str, str]:
    """The GPUs that arguments of a command line are by default, by the arguments' names."""
    defaults = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node) == "add_argument" and node.args:
            default = keyword(node, "default")
            named = _folded(node.args[-1]).lstrip("-").replace("-", "_")
            if default is not None and "device" in named and (device := device_text(default, {})):
                defaults[named] = device
    return defaults


def has_choice(node: ast.AST) -> bool:
    """Whether an expression decides between two things: `"cuda" if torch.cuda.is_available() else "cpu"`."""
    return any(isinstance(part, ast.IfExp) for part in ast.walk(node))
