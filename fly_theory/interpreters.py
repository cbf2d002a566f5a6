"""The five readers of a rule. A rule declares those that cannot read it, with the reason, in `Rule.unreadable_by`."""

from enum import Enum


class Interpreter(Enum):
    """Who reads a rule, named after the arrays it uses."""

    NUMPY = "numpy"
    TORCH = "torch"
    JAX = "jax"
    EXACT = "exact"
    SYMBOLIC = "symbolic"
