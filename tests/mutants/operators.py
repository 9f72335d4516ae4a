"""Small changes that a slip of the hand could make, found in a source by its syntax tree.

Each change is a replacement of one expression or statement, in place, so that lines keep their numbers.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Change:
    """Bytes ``start`` to ``end`` of a source become ``text``; ``what`` and ``line`` are for the reader."""

    start: int
    end: int
    text: str
    what: str
    line: int

    def applied(self, source: str) -> str:
        """The source after the change."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def changes(source: str) -> list[Change]:
    """Every change that the operators know, in order of place."""
    tree = ast.parse(source)
    begins = [0]
    for line in source.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    found = []
    for node in _reached(tree):
        for what, changed in _of_node(node):
            start = begins[node.lineno - 1] + node.col_offset
            end = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            text = changed if isinstance(changed, str) else f"({ast.unparse(changed)})"
            found.append(Change(start, end, text, what, node.lineno))
    return sorted(found, key=lambda change: (change.start, change.end, change.text))


def _reached(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Nodes whose change can have an effect: no annotations, no texts, nothing of exceptions' messages."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                if isinstance(child, (ast.expr, ast.stmt)):
                    yield child
                if not isinstance(child, ast.Raise):
                    yield from _reached(child)


def _of_node(node: ast.expr | ast.stmt) -> Iterator[tuple[str, ast.expr | str]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            yield "comparison", _with(node, lambda new: setattr(new, "ops", [_COMPARISONS[type(op)]()]))
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_text(node):
            yield "arithmetic", _with(node, lambda new: setattr(new, "op", _ARITHMETIC[type(op)]()))
        case ast.BoolOp(op=op):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", _with(node, lambda new: setattr(new, "op", other))
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield "sign or negation removed", node.operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
            yield "constant", ast.Constant(value - 1)
        case ast.IfExp():
            yield "condition", _with(node, lambda new: setattr(new, "test", ast.UnaryOp(ast.Not(), node.test)))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "result", "return None"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield "statement removed", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement removed", "pass"


def _with(node: ast.expr, change: Callable[[ast.expr], None]) -> ast.expr:
    new = copy.deepcopy(node)
    change(new)
    return new


def _is_text(node: ast.BinOp) -> bool:
    """Joining texts, not adding numbers."""
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )
