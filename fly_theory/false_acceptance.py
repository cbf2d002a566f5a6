"""How often FLy keeps a wrong token, and how often a harmless one: what window and gate can tell apart.

A mismatch is wrong or harmless. After a wrong one the target corrects, that is mismatches, with probability
`correction` at every step; after a harmless one it never does. Independently of that, a step matches with probability
`match`. A mismatch is kept when its gate is open and the steps of the window after it all match:

    wrong     g_wrong(theta)    (match (1 - correction))^W
    harmless  g_harmless(theta)  match^W

The gate opens where its statistic, scaled to (0, 1), is at least theta. The statistic is logit-normal, centred higher
at harmless mismatches; how much higher, in standard deviations, is the gate's separation (d' in detection theory).

W counts the hits that must follow: FLy's window in the paper (arXiv 2511.22972), one less than `win_len` in its
released code. The end of a block, where nothing is forgiven, is left out: these are the odds of a mismatch at least W
before it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from fly_theory.arrays import Number
from fly_theory.errors import InvalidInput, ParameterError
from fly_theory.parameters import Interval, Parametrised, parameter

__all__ = ["Acceptance", "Mismatches", "Setting"]


class Acceptance(NamedTuple):
    """Probabilities that a wrong and a harmless mismatch are kept: one point, or arrays of them, of the ROC."""

    wrong: Any
    harmless: Any

    def wrong_share(self, prior: Number) -> Any:
        """Share of wrong ones among the mismatches that are kept, when a share `prior` of all mismatches is wrong."""
        kept_wrong = float(prior) * self.wrong
        return kept_wrong / (kept_wrong + (1 - float(prior)) * self.harmless)


class Setting(NamedTuple):
    """A threshold and a window, with the acceptance they give."""

    theta: float
    window: int
    acceptance: Acceptance


@dataclass(frozen=True, kw_only=True)
class Mismatches(Parametrised):
    """What sets wrong mismatches apart from harmless ones.

    Examples
    --------
    >>> from fly_theory.false_acceptance import Mismatches
    >>> model = Mismatches(correction=0.3, median=0.2, spread=1, separation=1)
    >>> [round(float(x), 3) for x in model.acceptance(theta=0.3, window=6)]
    [0.035, 0.678]
    """

    correction: Number = parameter(Interval(0, 1), "probability a step that the target corrects a wrong token")
    match: Number = parameter(Interval(0, 1), "probability a step that nothing else mismatches", default=1)
    median: Number = parameter(Interval(0, 1, low_open=True, high_open=True), "median statistic at wrong mismatches")
    spread: Number = parameter(Interval(0, None, low_open=True), "standard deviation of the statistic's logit")
    separation: Number = parameter(Interval(0, None), "distance of harmless from wrong mismatches, in spreads")

    def opening(self, theta: Any) -> Acceptance:
        """Probability that the gate is open at a wrong and at a harmless mismatch, for thresholds (...,) in [0, 1]."""
        theta = np.asarray(theta, dtype=np.float64)
        if not ((theta >= 0) & (theta <= 1)).all():
            msg = f"theta={theta} is outside [0, 1], the scale of the gate statistic"
            raise ParameterError(msg)
        above = (special.logit(float(self.median)) - special.logit(theta)) / float(self.spread)
        return Acceptance(special.ndtr(above), special.ndtr(above + float(self.separation)))

    def acceptance(self, theta: Any, window: Any) -> Acceptance:
        """Probability that a wrong and a harmless mismatch are kept; thresholds and windows broadcast to the ROC.

        A row of thresholds at one window is the ROC of the gate behind that window, a row of windows at one threshold
        that of the window behind that gate.
        """
        window = np.asarray(window)
        if window.dtype.kind not in "iu" or (window < 0).any():
            msg = f"window={window} is not made of integers >= 0"
            raise ParameterError(msg)
        wrong, harmless = self.opening(theta)
        match = float(self.match)
        return Acceptance(wrong * (match * (1 - float(self.correction))) ** window, harmless * match**window)

    def window_for(self, tolerance: float, theta: float) -> int:
        """The smallest window that keeps a wrong mismatch with probability at most `tolerance` behind a gate at theta.

        Raises
        ------
        InvalidInput
            When no window can: wrong tokens are never corrected, and the gate alone lets too many through.
        """
        _check_tolerance(tolerance)
        opening = float(self.opening(theta).wrong)
        followed = float(self.match) * (1 - float(self.correction))
        if opening <= tolerance:
            return 0
        if followed == 1:
            msg = f"no window reaches tolerance={tolerance}: nothing ever follows a wrong token that would give it away"
            raise InvalidInput(msg)
        if followed == 0:
            return 1
        window = max(0, int(np.log(tolerance / opening) / np.log(followed)) - 1)
        while self.acceptance(theta, window).wrong > tolerance:
            window += 1
        return window

    def theta_for(self, tolerance: float, window: int) -> float:
        """The lowest threshold that keeps a wrong mismatch with probability at most `tolerance` behind this window."""
        _check_tolerance(tolerance)
        ungated = float(self.acceptance(0.0, window).wrong)
        if ungated <= tolerance:
            return 0.0
        above = special.ndtri(tolerance / ungated)
        return float(special.expit(special.logit(float(self.median)) - float(self.spread) * above))

    def best(self, tolerance: float, *, widest: int = 64) -> Setting:
        """The threshold and window that keep most harmless mismatches and a wrong one with probability <= tolerance."""
        settings = [(self.theta_for(tolerance, w), w) for w in range(widest + 1)]
        theta, window = max(settings, key=lambda s: float(self.acceptance(*s).harmless))
        return Setting(theta, window, self.acceptance(theta, window))


def _check_tolerance(tolerance: float) -> None:
    if not Interval(0, 1, low_open=True).contains(tolerance):
        msg = f"tolerance={tolerance!r} is outside (0, 1]"
        raise InvalidInput(msg)
