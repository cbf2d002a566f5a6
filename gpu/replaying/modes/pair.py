"""Modes of the pair and its trace, whatever the rule."""

from fly_theory.arrays import Array, array_namespace, positive_part, take
from gpu.replaying.modes.classes import UNNAMED
from gpu.replaying.modes.mode import Finding, Level, Mode
from gpu.replaying.modes.rows import PairRows

__all__ = ["PAIR_MODES"]

_NOTABLE = 1e-4

# Under q, a draft token less likely than this to be so unlikely is implausible.
_IMPLAUSIBLE = 1e-6


def _argmax_tie(rows: PairRows) -> Finding:
    xp = array_namespace(rows.logits)
    ties = rows.logits == xp.max(rows.logits, axis=-1, keepdims=True)
    return _at(xp.sum(xp.astype(ties, xp.int32), axis=-1) > 1, rows.tv)


def _padding_mass(rows: PairRows) -> Finding:
    xp = array_namespace(rows.p)
    unnamed, zero = rows.classes[UNNAMED], xp.zeros_like(rows.p)

    def on_padding(x: Array) -> Array:
        return xp.sum(xp.where(unnamed, x, zero), axis=-1)

    found = xp.maximum(on_padding(rows.p), on_padding(rows.q)) > _NOTABLE
    return _at(found, on_padding(positive_part(rows.q - rows.p)))


def _implausible_draft(rows: PairRows) -> Finding:
    """P(q(X) <= q(x)) for X from q: the p-value of the draft token as a draw from q."""
    xp = array_namespace(rows.q)
    at_most = rows.q <= take(rows.q, rows.tokens)[..., None]
    p_value = xp.sum(xp.where(at_most, rows.q, xp.zeros_like(rows.q)), axis=-1)
    return _at(p_value < _IMPLAUSIBLE, rows.tv)


def _at(found: Array, value: Array) -> Finding:
    xp = array_namespace(value)
    return Finding(found, xp.where(found, value, xp.zeros_like(value)))


PAIR_MODES = (
    Mode(
        "argmax_tie",
        "argmax tie",
        "several tokens share the target's largest logit in the dtype it is stored in, so that greedy decoding depends "
        "on how ties are broken",
        Level.PAIR,
        _argmax_tie,
    ),
    Mode(
        "padding_mass",
        "padding mass",
        f"target or draft give more than {_NOTABLE:g} to ids without a token, the padding of the vocabulary. Explains "
        "what such ids have more under q than under p",
        Level.PAIR,
        _padding_mass,
        token_class=UNNAMED,
    ),
    Mode(
        "implausible_draft",
        "implausible draft",
        f"the draft token is impossible under the stored q, or a draw from q has probability below {_IMPLAUSIBLE:g} of "
        "being as unlikely",
        Level.PAIR,
        _implausible_draft,
    ),
)
