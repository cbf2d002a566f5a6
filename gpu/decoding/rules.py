"""The rules that can decode: token-level rules lifted by first rejection, and block rules."""

from fly_theory.blocks import BlockRule, tokenwise
from fly_theory.errors import InvalidInput, NotReadable
from fly_theory.interpreters import Interpreter
from fly_theory.registry import block_rule
from fly_theory.rules.base import Rule

__all__ = ["deciding"]


def deciding(rule: Rule | BlockRule | str) -> BlockRule:
    """The block rule that a SPEC, a token-level rule or a block rule means.

    Raises
    ------
    InvalidInput, UnknownName, ParameterError
        A rule of another level, a SPEC that names none, or a parameter outside its domain.
    NotReadable
        A rule that torch cannot read.
    """
    found = block_rule(rule) if isinstance(rule, str) else tokenwise(rule) if isinstance(rule, Rule) else rule
    if not isinstance(found, BlockRule):
        msg = f"rule={rule!r}; allowed are token-level and block rules, and their SPEC strings"
        raise InvalidInput(msg)
    if Interpreter.TORCH in found.unreadable:
        msg = f"{found.spec} cannot decode: {found.unreadable[Interpreter.TORCH]}"
        raise NotReadable(msg)
    return found
