"""From what a rule claims to what would refute it."""

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

from fly_theory.claims import Claim
from fly_theory.errors import InvalidInput

__all__ = ["look_up"]

_Invariant = TypeVar("_Invariant")


def look_up(claim: Claim, judges: Mapping[type[Claim], type[_Invariant]], *, level: str) -> _Invariant:
    """The invariant of this level's `judges` that refutes a claim; its fields are those of the claim.

    Raises
    ------
    InvalidInput
        For a claim that no invariant of this level judges.
    """
    if type(claim) not in judges:
        known = ", ".join(kind.__name__ for kind in judges)
        msg = f"{claim!r} is not a claim of a {level} rule that can be judged; these can: {known}"
        raise InvalidInput(msg)
    fields = {field.name: getattr(claim, field.name) for field in dataclasses.fields(claim)}
    return judges[type(claim)](**fields)
