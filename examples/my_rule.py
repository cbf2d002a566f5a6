"""A rule with a slip: after a rejection it redraws from the target, not from what the draft has left of it."""

from dataclasses import dataclass

from fly_theory.arrays import array_namespace
from fly_theory.claims import Lossless
from fly_theory.rules import Rule, Verdict


@dataclass(frozen=True)
class MyRule(Rule):
    def verdict(self, p, q):
        return Verdict(accepted=array_namespace(p, q).minimum(p, q), residual=p)

    @property
    def claims(self):
        return (Lossless(),)


@dataclass(frozen=True)
class Corrected(MyRule):
    def verdict(self, p, q):
        accepted = array_namespace(p, q).minimum(p, q)
        return Verdict(accepted, residual=p - accepted)
