"""Systematic mutants of the project's own rules and samplers, each in modules of its own.

A mutant changes one place in one function: an operator, a comparison, a constant, an index, the order of two arguments,
or leaves out a clip, a normalisation or an operand. The modules that a rule is made of are then loaded afresh, one of
them from the changed source, so nothing that judges the mutant is mutated itself.
"""

import ast
import copy
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import fly_theory

BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
LOGICAL = {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITE = {
    "minimum": "maximum",
    "maximum": "minimum",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "max": "min",
}
TRANSPARENT = ("positive_part", "normalise", "flip", "cumulative_sum")
OTHER = {"p": "q", "q": "p"}

# Load order: a module comes after those that it takes names from.
LAYERS = (
    "fly_theory.arrays",
    "fly_theory.allowed_sets",
    "fly_theory.rules.base",
    "fly_theory.rules.accept_set",
    "fly_theory.rules.lenience",
    "fly_theory.rules.min_p",
)


@dataclass(frozen=True)
class Mutant:
    """A module with one change in one function, which is named by the line that it changes, as it reads now."""

    module: str
    changed: str
    source: str

    def load(self, rule_module: str) -> ModuleType:
        """The module `rule_module`, with everything below it, as this mutant makes it."""
        names = [*(name for name in LAYERS if name != rule_module), rule_module]
        before = {name: importlib.import_module(name) for name in names}
        try:
            for name in names:
                module = put(name, ModuleType(name))
                source = self.source if name == self.module else source_of(name)
                exec(compile(source, f"<mutant of {name}>", "exec"), module.__dict__)
            return sys.modules[rule_module]
        finally:
            for name, module in before.items():
                put(name, module)


def put(name: str, module: ModuleType) -> ModuleType:
    """Make `module` what every form of import finds under `name`."""
    package, _, child = name.rpartition(".")
    setattr(sys.modules[package], child, module)
    sys.modules[name] = module
    return module


def source_of(module: str) -> str:
    return (Path(fly_theory.__file__).parents[1] / f"{module.replace('.', '/')}.py").read_text()


def mutants(module: str, function: str) -> Iterator[Mutant]:
    """Every mutant of a function, given as `name` or `Class.name`."""
    tree, path = ast.parse(source_of(module)), function.split(".")
    before = ast.unparse(tree)
    sources = {}
    for number in range(len(list(changes(found(tree, path))))):
        mutated = copy.deepcopy(tree)
        place(found(mutated, path), number)
        sources[ast.unparse(mutated)] = None
    for source in sources:
        lines = zip(before.splitlines(), source.splitlines(), strict=True)
        changed = next(after.strip() for original, after in lines if original != after)
        yield Mutant(module, changed, source)


def found(tree: Any, path: list[str]) -> Any:
    for name in path:
        tree = next(node for node in tree.body if getattr(node, "name", None) == name)
    return tree


def place(function: Any, number: int) -> None:
    """Carry out the change with this number, in place."""
    node, replacement = list(changes(function))[number]
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, replacement)
                return
            if isinstance(value, list) and any(item is node for item in value):
                value[next(i for i, item in enumerate(value) if item is node)] = replacement
                return
    raise AssertionError(ast.unparse(node))


def changes(function: Any) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Every node that is changed with what it becomes, in a fixed order."""
    parameters = {argument.arg for argument in function.args.args}
    indices = {
        id(part) for node in ast.walk(function) if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)
    }
    for node in expressions(function):
        if isinstance(node, ast.Name) and not parameters >= set(OTHER):
            continue
        for replacement in replacements(node, index=id(node) in indices):
            yield node, ast.copy_location(replacement, node)


def expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that compute: no annotations, docstrings, messages, axes or namespaces."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword) and child.arg in ("axis", "keepdims", "stable", "dtype", "device"):
            continue
        if isinstance(child, ast.arguments | ast.Raise) or (
            isinstance(child, ast.Call) and name_of(child) in ("array_namespace", "scalar")
        ):
            continue
        if isinstance(child, ast.expr) and child is not getattr(node, "returns", None):
            yield child
        yield from expressions(child)


def replacements(node: ast.expr, *, index: bool) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left, operator, right):
            kind = {**BINARY, **LOGICAL}.get(type(operator))
            if kind is not None:
                yield ast.BinOp(left, kind(), right)
            yield left
            if not isinstance(operator, ast.Sub | ast.Div | ast.Pow):
                yield right
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
            yield ast.Compare(left, [COMPARISONS[type(operator)]()], [right])
        case ast.UnaryOp(ast.Invert(), operand):
            yield operand
        case ast.Constant(bool()):
            return
        case ast.Constant(int(value)):
            yield from map(ast.Constant, [1 - value] if index else [value + 1, value - 1])
        case ast.Name(name, ast.Load()) if name in OTHER:
            yield ast.Name(OTHER[name], ast.Load())
        case ast.Call(function, arguments):
            yield from calls(node, function, arguments)


def calls(node: ast.Call, function: ast.expr, arguments: list[ast.expr]) -> Iterator[ast.expr]:
    name = name_of(node)
    if name in OPPOSITE:
        renamed = copy.deepcopy(function)
        setattr(renamed, "attr" if isinstance(renamed, ast.Attribute) else "id", OPPOSITE[name])
        yield ast.Call(renamed, arguments, node.keywords)
    if name in TRANSPARENT:
        yield arguments[0]
    if name in ("minimum", "maximum"):
        yield from arguments
    if name == "where":
        condition, then, otherwise = arguments
        yield ast.Call(function, [condition, otherwise, then], node.keywords)
        yield then
        yield otherwise


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
