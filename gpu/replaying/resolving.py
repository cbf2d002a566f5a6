"""From what a user asks for to rules: SPEC strings and objects of two levels, token and block."""

from collections.abc import Iterable, Sequence
from typing import Any

from fly_theory.blocks import BlockRule
from fly_theory.errors import InvalidInput, NotReadable, unknown_name
from fly_theory.interpreters import Interpreter
from fly_theory.registry import block_rule, load, rule, rules
from fly_theory.rules.base import Rule
from gpu.replaying.on_blocks.setting import BlockSetting

__all__ = ["Asked", "from_spec", "resolve"]

Asked = Rule | BlockRule | BlockSetting | str


def resolve(asked: Sequence[Asked], *, draft_length: int) -> tuple[tuple[Rule, ...], tuple[BlockSetting, ...]]:
    """The token-level rules and the block rules among what is asked for, each in the order given.

    Raises
    ------
    InvalidInput
        Nothing, one setting twice, something that is no rule, or more drafts than the `draft_length` of the trace.
    UnknownName, ParameterError, NotReadable
        A SPEC that names no rule, a parameter outside its domain, or a rule that torch cannot read.
    """
    resolved = [_resolved(each) for each in asked]
    if not resolved:
        msg = "rules is empty; give at least one rule or SPEC"
        raise InvalidInput(msg)
    for each in resolved:
        _check(each, draft_length)
    specs = [each.spec for each in resolved]
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if twice:
        msg = f"rules contains {twice} twice; give each setting once"
        raise InvalidInput(msg)
    return tuple(_of(Rule, resolved)), tuple(_of(BlockSetting, resolved))


def from_spec(spec: str) -> Rule | BlockSetting:
    """The rule that a SPEC names; `SPEC@K` is a rule of either level on the first K drafts of each block.

    Raises
    ------
    UnknownName, ParameterError, InvalidInput
        As `fly_theory.rule` and `fly_theory.block_rule`.
    """
    head, at, length = spec.rpartition("@")
    if at and length.isdecimal():
        return BlockSetting(block_rule(head), int(length))
    name, _, rest = spec.partition(":")
    elsewhere = rest and "=" not in rest.partition(":")[0]
    if not elsewhere and name not in rules():
        raise unknown_name(name, kind="rule", known=(*rules(level="token"), *rules(level="block")))
    named = load(spec)[0] if elsewhere else None
    of_blocks = isinstance(named, BlockRule) or (isinstance(named, type) and issubclass(named, BlockRule))
    if of_blocks or name in rules(level="block"):
        return BlockSetting(block_rule(spec))
    found: Rule = rule(spec)
    return found


def _resolved(asked: Any) -> Any:
    if isinstance(asked, str):
        return from_spec(asked)
    return BlockSetting(asked) if isinstance(asked, BlockRule) else asked


def _check(asked: Any, draft_length: int) -> None:
    if not isinstance(asked, Rule | BlockSetting):
        msg = f"rules contains {asked!r}; allowed are token-level rules, block rules and their SPEC strings"
        raise InvalidInput(msg)
    unreadable = (asked.rule if isinstance(asked, BlockSetting) else asked).unreadable
    if Interpreter.TORCH in unreadable:
        msg = f"{asked.spec} cannot be replayed: {unreadable[Interpreter.TORCH]}"
        raise NotReadable(msg)
    cut = asked.draft_length if isinstance(asked, BlockSetting) else None
    if cut is not None and not 1 <= cut <= draft_length:
        msg = f"{asked.spec}: draft_length={cut}; blocks of this trace have 1..{draft_length} drafts"
        raise InvalidInput(msg)


def _of(kind: type, resolved: Iterable[Any]) -> Iterable[Any]:
    return (each for each in resolved if isinstance(each, kind))
