"""Where `check` asks whether a claim is proved: functions of the entry-point group `fly_theory.provers`.

A prover is called with a rule, of the token or the block level, and a claim, and returns the name of the theorem that
covers the claim, or None. It comes from another package; one whose dependencies are not installed is passed over.
"""

from importlib.metadata import entry_points

from fly_theory.claims import Claim
from fly_theory.parameters import Parametrised

__all__ = ["GROUP", "theorem"]

GROUP = "fly_theory.provers"


def theorem(rule: Parametrised, claim: Claim) -> str | None:
    """The name of a theorem that proves the claim for every vocabulary, if an installed prover knows one."""
    for entry in entry_points(group=GROUP):
        try:
            prover = entry.load()
        except ImportError:
            continue
        name: str | None = prover(rule, claim)
        if name is not None:
            return name
    return None
