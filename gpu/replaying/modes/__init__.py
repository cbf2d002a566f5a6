"""Failure modes: named detectors of what goes wrong, each with a rate and the share of the divergence it explains."""

from gpu.replaying.modes.consistency import Consistency
from gpu.replaying.modes.deferral import DeferralRows
from gpu.replaying.modes.detectors import MODES, Detectors, depends_on_output
from gpu.replaying.modes.found import ModeResult, commonest, mode_results
from gpu.replaying.modes.mode import Level, Mode
from gpu.replaying.modes.residuals import ZERO_RESIDUAL
from gpu.replaying.modes.rows import claimed_ceiling

__all__ = [
    "MODES",
    "ZERO_RESIDUAL",
    "Consistency",
    "DeferralRows",
    "Detectors",
    "Level",
    "Mode",
    "ModeResult",
    "claimed_ceiling",
    "commonest",
    "depends_on_output",
    "mode_results",
]
