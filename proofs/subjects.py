"""Rules with symbols for parameters: what a theorem is about."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from fly_theory.errors import FlyTheoryError, NotReadable, SymbolicError
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Integers, Interval, Parameter, parameters
from proofs.steps import Unproved
from proofs.symbolic import SymbolicArray, World

Bounds = list[tuple[str, SymbolicArray]]


def with_symbols(cls: type, world: World, settings: Mapping[str, Any]) -> tuple[Any, Bounds]:
    """A rule of class `cls` at the given settings, with a symbol for every other numeric parameter, and the domains
    of those.

    A setting that is no parameter replaces a method: `allowed_set=lambda p: A` puts any set A for the rule's own.

    Raises
    ------
    NotReadable
        For a rule that declares it cannot be read by symbols, unless methods are replaced.
    """
    rule: Any = object.__new__(cls)
    bounds: Bounds = []
    for declared in parameters(cls):
        chosen: Any = settings.get(declared.name, declared.default)
        if declared.name not in settings and isinstance(declared.domain, Interval | Integers):
            name = f"{declared.name}'" if declared.name in world.families else declared.name
            chosen = SymbolicArray(world, world.family(name, (), "scalar"))
            bounds += domain(declared, chosen)
        object.__setattr__(rule, declared.name, chosen)
    replaced = {name: method for name, method in settings.items() if name not in {p.name for p in parameters(cls)}}
    for name, method in replaced.items():
        getattr(rule, name)  # a misspelt method would otherwise replace nothing
        object.__setattr__(rule, name, method)
    reason = rule.unreadable.get(Interpreter.SYMBOLIC)
    if reason and not replaced:
        msg = f"{cls.__name__} cannot be read by symbols: {reason}"
        raise NotReadable(msg)
    return rule, bounds


@contextlib.contextmanager
def read_by_symbols(name: str) -> Iterator[None]:
    """Say what to write instead when the code of a rule cannot be run over symbols.

    Raises
    ------
    SymbolicError
        In place of whatever the rule raises.
    """
    try:
        yield
    except (FlyTheoryError, Unproved):
        raise
    except Exception as error:
        msg = (
            f"{name} cannot be read by symbols ({type(error).__name__}: {error}); write it against the array API: "
            "xp = array_namespace(p, q), then xp.minimum, xp.where, xp.sum"
        )
        raise SymbolicError(msg) from error


def domain(declared: Parameter, symbol: SymbolicArray) -> Bounds:
    """The declared domain of a parameter, as hypotheses about its symbol."""
    allowed: Any = declared.domain
    text = f"{declared.name} in {allowed}"
    bounds: Bounds = []
    if allowed.low is not None:
        bounds.append((text, symbol > allowed.low if getattr(allowed, "low_open", False) else symbol >= allowed.low))
    if allowed.high is not None:
        bounds.append((text, symbol < allowed.high if getattr(allowed, "high_open", False) else symbol <= allowed.high))
    return bounds
