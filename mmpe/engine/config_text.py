"""Configs as data: read from text without running it, and compared."""
import ast
from typing import Any, Dict, Iterator, Mapping, Tuple


def read_config_text(text: str) -> Dict[str, Any]:
    """The settings of a config that MMEngine wrote out.

    Args:
        text (str): Assignments of literals and of calls of ``dict``. What is
            neither stands as its source text: nothing is run.

    Returns:
        dict[str, Any]: Empty if ``text`` is no Python.
    """
    try:
        tree = ast.parse(text)
        return {
            node.targets[0].id: _literal(node.value)
            for node in tree.body if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _literal(node: ast.AST) -> Any:
    if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'dict':
        return {k.arg: _literal(k.value) for k in node.keywords if k.arg}
    if isinstance(node, ast.Dict):
        return {
            k.value if isinstance(k, ast.Constant) else ast.unparse(k):
            _literal(v)
            for k, v in zip(node.keys, node.values) if k is not None
        }
    if isinstance(node, ast.List):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_literal(item) for item in node.elts)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return ast.unparse(node)


def differences(a: Any, b: Any,
                at: str = '') -> Iterator[Tuple[str, Any, Any]]:
    """Where two configs differ.

    Args:
        a (Any): A config or a part of one.
        b (Any): The other. Tuples equal lists, as MMEngine has them.
        at (str): What keys begin with. Defaults to nothing.

    Yields:
        tuple[str, Any, Any]: The key, with dots, and both values;
        ``Ellipsis`` where one hasn't got it.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}, key=str):
            yield from differences(
                a.get(key, ...), b.get(key, ...), f'{at}.{key}'.strip('.'))
    elif isinstance(a, (list, tuple)) and isinstance(
            b, (list, tuple)) and len(a) == len(b):
        for i, pair in enumerate(zip(a, b)):
            yield from differences(*pair, f'{at}.{i}')
    elif a != b:
        yield at, a, b
