"""Properties of rules, one a file: each judges one rule at one pair, alone (`examine`) or inside `fly_theory.check`.

>>> import fly_theory as ft
>>> from fly_theory.invariants import Lossless
>>> Lossless().examine(ft.rule("lenience:l=1/2"), ["1/2", "1/2"], [1, 0])
Violation(quantity='out', got=(Fraction(1, 1), Fraction(0, 1)), expected=(Fraction(1, 2), Fraction(1, 2)), ...)
"""

from fly_theory import claims
from fly_theory.invariants.accepts_most import AcceptsMost
from fly_theory.invariants.answers import Answers
from fly_theory.invariants.base import FLOAT_TOLERANCE, Case, Invariant, RuleFailure, Violation
from fly_theory.invariants.ceiling import Ceiling
from fly_theory.invariants.coin_edges import CoinEdges
from fly_theory.invariants.divergence_bound import DivergenceBound
from fly_theory.invariants.equivariant import Equivariant
from fly_theory.invariants.errors_out import ErrorsOut
from fly_theory.invariants.fixed_point import FixedPoint
from fly_theory.invariants.independent_rows import IndependentRows
from fly_theory.invariants.independent_uniforms import IndependentUniforms
from fly_theory.invariants.induces import Induces
from fly_theory.invariants.look_up import look_up
from fly_theory.invariants.lossless import Lossless
from fly_theory.invariants.mass_valid import MassValid
from fly_theory.invariants.monotone import MonotoneIn
from fly_theory.invariants.normalised import Normalised
from fly_theory.invariants.pure import Pure
from fly_theory.invariants.reduces_to import ReducesTo
from fly_theory.invariants.sampler_agrees import SamplerAgrees
from fly_theory.invariants.support import SupportWithin
from fly_theory.invariants.tv_line import OnTheLine

__all__ = [
    "FLOAT_TOLERANCE",
    "STRUCTURAL",
    "AcceptsMost",
    "Answers",
    "Case",
    "Ceiling",
    "CoinEdges",
    "DivergenceBound",
    "Equivariant",
    "ErrorsOut",
    "FixedPoint",
    "IndependentRows",
    "IndependentUniforms",
    "Induces",
    "Invariant",
    "Lossless",
    "MassValid",
    "MonotoneIn",
    "Normalised",
    "OnTheLine",
    "Pure",
    "ReducesTo",
    "RuleFailure",
    "SamplerAgrees",
    "SupportWithin",
    "Violation",
    "of_claim",
]

STRUCTURAL: tuple[Invariant, ...] = (
    Answers(),
    MassValid(),
    Normalised(),
    SamplerAgrees(),
    IndependentUniforms(),
    CoinEdges(),
    Equivariant(),
    IndependentRows(),
    Pure(),
    ErrorsOut(),
)
"""What every token-level rule owes, whatever it claims."""

_OF_CLAIM: dict[type[claims.Claim], type[Invariant]] = {
    claims.Lossless: Lossless,
    claims.Induces: Induces,
    claims.Ceiling: Ceiling,
    claims.AcceptsMost: AcceptsMost,
    claims.OnTheLine: OnTheLine,
    claims.SupportWithin: SupportWithin,
    claims.DivergenceBound: DivergenceBound,
    claims.ReducesTo: ReducesTo,
    claims.MonotoneIn: MonotoneIn,
    claims.FixedPoint: FixedPoint,
}


def of_claim(claim: claims.Claim) -> Invariant:
    """The invariant that refutes a claim.

    Raises
    ------
    InvalidInput
        For a claim that no invariant judges.
    """
    return look_up(claim, _OF_CLAIM, level="token-level")
