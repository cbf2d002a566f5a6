"""How the numbers of a replay are written for a reader, on the terminal and in the report alike."""

import math

from gpu.replaying.estimates import Estimate
from gpu.replaying.modes import Consistency
from gpu.replaying.result import Replay
from gpu.replaying.settings import ReplaySettings
from gpu.trace import Trace

__all__ = [
    "certified",
    "conditions",
    "consistency",
    "counted",
    "elsewhere",
    "half_width",
    "interval",
    "is_suspicious",
    "largest",
    "models",
    "number",
    "percent",
    "percent_interval",
    "ratio",
    "setting",
]

# What float32 cannot tell from zero.
_ROUNDING = 1e-6

# Drafts less plausible than this under q are said not to come from it.
_SUSPICIOUS = 1e-4


def number(estimate: Estimate | None, *, digits: int = 4) -> str:
    """The mean; what is rounding reads 0, and what is not identified a dash."""
    return "–" if estimate is None else _decimal(estimate.mean, digits)


def interval(estimate: Estimate | None, *, digits: int = 4) -> str:
    """The interval of the mean, or nothing where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{_decimal(estimate.low, digits)}, {_decimal(estimate.high, digits)}]"


def certified(estimate: Estimate | None, *, digits: int = 4, percent: bool = False) -> str:
    """What the mean surely lies between, or nothing where every token was evaluated."""
    if estimate is None or estimate.certified is None:
        return ""
    ends = (f"{100 * end:.2f}" if percent else _decimal(end, digits) for end in estimate.certified)
    return f"{' … '.join(ends)}{' %' if percent else ''}"


def half_width(estimate: Estimate | None, *, digits: int = 4) -> str:
    """How far the interval of the mean reaches, at its farther end, or nothing where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return _decimal(max(estimate.high - estimate.mean, estimate.mean - estimate.low), digits)


def percent(estimate: Estimate | None) -> str:
    """The mean of a share, in per cent."""
    if estimate is None:
        return "–"
    if abs(estimate.mean) < _ROUNDING:
        return "0 %"
    return f"{100 * estimate.mean:.1f} %" if estimate.mean >= 0.0005 else "<0.1 %"


def percent_interval(estimate: Estimate | None) -> str:
    """The interval of a share, in per cent, or nothing where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def ratio(estimate: Estimate | None) -> str:
    """The mean of a ratio, to three digits."""
    return "–" if estimate is None else _three_digits(estimate.mean)


def largest(estimate: Estimate) -> str:
    """The largest ratio met."""
    return f"up to {_three_digits(estimate.largest)}"


def elsewhere(estimate: Estimate) -> str:
    """What an infinite mean comes from: at how many positions it is infinite, and the mean over the others."""
    if not estimate.infinite_share:
        return ""
    if estimate.finite_mean is None:
        return "everywhere"
    return f"at {estimate.infinite_share:.1%}; else {_decimal(estimate.finite_mean, 4)}"


def is_suspicious(found: Consistency) -> bool:
    """Whether drafts from q would hardly ever look like these."""
    return found.p_value < _SUSPICIOUS


def consistency(found: Consistency) -> str:
    """Whether the draft tokens look drawn from q."""
    looks = "do not look" if is_suspicious(found) else "look"
    return f"the draft tokens {looks} drawn from the q of this replay (z = {found.z:.2f}, p = {found.p_value:.2g})"


def setting(replay: Replay) -> str:
    """One line: what was replayed, and at which law."""
    return (
        f"{counted(replay.positions, 'position')} in {counted(len(replay.trace), 'block')} of "
        f"{counted(replay.trace.draft_length, 'draft token')}, "
        f"{conditions(replay.trace, replay.settings, replay.prompts)}"
    )


def conditions(trace: Trace, settings: ReplaySettings, prompts: int) -> str:
    """Prompts, vocabulary, temperature and warpers."""
    warpers = "".join(f", {name.replace('_', '-')} {value:g}" for name, value in settings.warpers.items())
    return f"{counted(prompts, 'prompt')}, V = {trace.vocabulary}, temperature {settings.temperature:g}{warpers}"


def counted(number: int, what: str) -> str:
    """So many of something, in the plural unless it is one."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def models(trace: Trace) -> str:
    """Which pair a trace is of."""
    identity = trace.manifest["source"].get("models")
    return f"target {identity['target']['name']}, draft {identity['draft']['name']}" if identity else "an unnamed pair"


def _decimal(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞"
    if abs(value) < _ROUNDING:
        return "0"
    return f"{value:.{digits}f}" if abs(value) >= 10**-digits else f"{value:.1e}"


def _three_digits(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.3g}" if value < 1000 else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
