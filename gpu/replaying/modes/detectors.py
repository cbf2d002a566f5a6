"""The detectors that a replay runs, and the values they add to its tallies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from fly_theory.arrays import Array, array_namespace
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import InvalidInput, unknown_name
from gpu.replaying.measures import DISTANCES, MATCHED, Judged
from gpu.replaying.modes.classes import TokenClasses
from gpu.replaying.modes.consistency import surprise
from gpu.replaying.modes.deferral import DEFERRAL_MODES, DeferralRows
from gpu.replaying.modes.excess import EXCESS_MODES
from gpu.replaying.modes.flips import FLIP_MODES
from gpu.replaying.modes.mode import EXPLAINED, FOUND, Level, Mode
from gpu.replaying.modes.pair import PAIR_MODES
from gpu.replaying.modes.residuals import ZERO_RESIDUAL
from gpu.replaying.modes.rows import PairRows, RuleRows
from gpu.trace import Trace

__all__ = ["MODES", "Detectors", "depends_on_output", "mode_values"]

MODES = {mode.name: mode for mode in (*EXCESS_MODES, *FLIP_MODES, ZERO_RESIDUAL, *DEFERRAL_MODES, *PAIR_MODES)}


@dataclass(frozen=True)
class Detectors:
    """The modes that are looked for, and the token classes of the trace: a `Further` of a plan; it pickles.

    Attributes
    ----------
    names
        Of the modes, in the order of `MODES`.
    classes
        None where the trace holds no tokenizer: modes that need a class cannot be looked for.
    """

    names: tuple[str, ...]
    classes: TokenClasses | None

    @classmethod
    def of(cls, trace: Trace, names: Sequence[str] | None = None) -> Self:
        """Those of the given names; by default every mode that the trace allows.

        Raises
        ------
        UnknownName, InvalidInput
            A name that is no mode, or a mode that needs the trace's tokenizer where there is none.
        """
        named = trace.manifest["tokenizer"] is not None
        for name in names or ():
            if name not in MODES:
                raise unknown_name(name, kind="failure mode", known=MODES)
            if MODES[name].token_class and not named:
                msg = f"modes contains {name!r}, which needs a tokenizer, and {trace.path} holds none"
                raise InvalidInput(msg)
        wanted = [
            mode.name
            for mode in MODES.values()
            if (mode.name in names if names is not None else named or not mode.token_class)
        ]
        return cls(tuple(wanted), TokenClasses.of(trace.token_texts()) if named else None)

    @property
    def report_stuck(self) -> bool:
        """Whether a rule with nothing to redraw from is a finding, and not an error."""
        return ZERO_RESIDUAL.name in self.names

    def at(self, level: Level) -> tuple[Mode, ...]:
        """The modes of one level."""
        return tuple(MODES[name] for name in self.names if MODES[name].level is level)

    def __call__(self, judged: Judged) -> dict[str, Array]:
        """The values of a token-level rule on one block, by the names that `mode_values` gives them."""
        pair = self._pair(judged.p, judged.q, judged.tokens)
        return mode_values(self.at(Level.RULE), RuleRows.of(judged.rule, pair, judged.accepted, judged.out))

    def of_pair(self, p: Array, q: Array, tokens: Array, logits: Array) -> dict[str, Array]:
        """The values of the pair on one block: target p and draft q (K, V), rows known to be valid, draft tokens (K,),
        and the target's logits (K, V) as stored.
        """
        with trusted_inputs():
            pair = self._pair(p, q, tokens, logits)
            return mode_values(self.at(Level.PAIR), pair) | surprise(q, tokens)

    def of_deferral(self, rows: DeferralRows) -> dict[str, Array]:
        """The values of a deferring block rule on one block, beside the counts of `measure_block`."""
        return mode_values(self.at(Level.BLOCK), rows) | {"lost": rows.lost}

    def masks(self, like: Array) -> dict[str, Array]:
        """The token classes that are known, as masks (V,) of the vocabulary of `like` (..., V)."""
        return {} if self.classes is None else self.classes.masks(like)

    def _pair(self, p: Array, q: Array, tokens: Array, logits: Array | None = None) -> PairRows:
        return PairRows.of(p, q, tokens, classes=self.masks(q), logits=logits)


def depends_on_output(name: str) -> bool:
    """Whether a value of a rule's tally is defined only where its output is."""
    if name.startswith((FOUND, EXPLAINED)):
        return name not in (ZERO_RESIDUAL.found, ZERO_RESIDUAL.explained)
    return name.removeprefix(MATCHED) in DISTANCES


def mode_values(modes: Iterable[Mode], rows: object) -> dict[str, Array]:
    """`mode_NAME`, whether or how likely it is found, and `explained_NAME`, what it explains there; a pair a mode."""
    values = {}
    for mode in modes:
        finding = mode.find(rows)
        values[mode.found] = array_namespace(finding.explained).astype(finding.found, finding.explained.dtype)
        values[mode.explained] = finding.explained
    return values
