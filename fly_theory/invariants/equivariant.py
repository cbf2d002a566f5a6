"""Token ids carry no meaning."""

from dataclasses import dataclass

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["Equivariant"]


@dataclass(frozen=True)
class Equivariant(Invariant):
    """Renumbering the tokens of p and q renumbers out in the same way, and leaves the acceptance as it is.

    Rules may break ties by token id (argmax does), so only pairs without ties, in p and in q, are judged.
    """

    @property
    def name(self) -> str:
        return "equivariant under permutations"

    def applies(self, case: Case) -> bool:
        size = case.p.shape[-1]
        return size > 1 and all(len(set(values(x))) == size for x in (case.p, case.q))

    def judge(self, case: Case) -> Violation | None:
        xp = case.xp
        for renumbering in ("reversed", "rotated"):
            p, q, out = (
                xp.flip(x, axis=-1) if renumbering == "reversed" else xp.roll(x, 1, axis=-1)
                for x in (case.p, case.q, case.out)
            )
            renumbered = case.at(p, q)
            inputs = {"token ids": renumbering}
            if case.differ(renumbered.out, out):
                return Violation("out", values(renumbered.out), values(out), inputs=inputs)
            if case.differ(renumbered.acceptance, case.acceptance):
                return Violation("acceptance", values(renumbered.acceptance), values(case.acceptance), inputs=inputs)
        return None
