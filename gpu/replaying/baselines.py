"""What a lossy rule is to be held against: lossless verification of the target that it is matched to.

Of a rule with an allowed set that is the truncated target p_A, which `measure` adds. Of every other lossy rule it is
the rule's own output law: a verifier that samples exactly that law from the same draft accepts sum min(q, out), and no
verifier of that law accepts more.
"""

from fly_theory.arrays import Array, array_namespace
from fly_theory.claims import Lossless
from fly_theory.rules.accept_set import AllowedSetRule
from gpu.replaying.measures import BASELINE, Judged, efficiency

__all__ = ["own_law"]


def own_law(judged: Judged) -> dict[str, Array]:
    """Acceptance and accepted length of sampling the rule's own output law exactly (names prefixed `baseline_`)."""
    if isinstance(judged.rule, AllowedSetRule) or any(isinstance(claim, Lossless) for claim in judged.rule.claims):
        return {}
    covered = array_namespace(judged.q).minimum(judged.q, judged.out)
    values = efficiency(covered, judged.q, judged.tokens)
    return {f"{BASELINE}{name}": value for name, value in values.items()}
