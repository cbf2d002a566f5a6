"""What rules of every level have in common: name, parameters, claims, and the interpreters that cannot read them."""

from collections.abc import Mapping
from typing import ClassVar

from fly_theory.claims import Claim
from fly_theory.errors import InvalidInput
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Parametrised


class AnyRule(Parametrised):
    """Base of token-level, block-level and tree-level rules."""

    name: ClassVar[str]
    unreadable_by: ClassVar[Mapping[Interpreter, str]] = {}

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the rule promises, as objects of `fly_theory.claims`."""
        return ()

    @property
    def unreadable(self) -> Mapping[Interpreter, str]:
        """The interpreters that cannot read this rule at its present parameters, each with the reason."""
        return self.unreadable_by


def claims_of(rule: AnyRule) -> list[Claim]:
    """What a rule promises.

    Raises
    ------
    InvalidInput
        When its `claims` are no sequence, or raise.
    """
    try:
        return list(rule.claims)
    except Exception as error:
        msg = (
            f"the claims of {rule.spec} cannot be read ({type(error).__name__}: {error}); `claims` is a property that "
            "returns a tuple of objects of ft.claims"
        )
        raise InvalidInput(msg) from error
