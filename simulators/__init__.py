"""Monte-Carlo simulation (jax) of verification rules on toy pairs, and of the processes that model FLy.

Names resolve on first use, so importing the package does not import jax. float64 is enabled inside the simulations
alone: they change no configuration.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fly_theory.errors import MissingExtra

if TYPE_CHECKING:
    from simulators.amplification import amplification_figure as amplification_figure
    from simulators.estimates import Estimate as Estimate
    from simulators.processes import simulate_mismatches as simulate_mismatches
    from simulators.processes import simulate_process as simulate_process
    from simulators.rules import simulate as simulate
    from simulators.simulation import Settings as Settings
    from simulators.simulation import Simulation as Simulation

_EXPORTS = {
    "Estimate": "simulators.estimates",
    "Settings": "simulators.simulation",
    "Simulation": "simulators.simulation",
    "amplification_figure": "simulators.amplification",
    "simulate": "simulators.rules",
    "simulate_mismatches": "simulators.processes",
    "simulate_process": "simulators.processes",
}

__all__ = [*_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        msg = f"module 'simulators' has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    except ModuleNotFoundError as error:
        msg = f"simulators.{name} needs the package {error.name!r}; install it with: pip install 'fly-theory[simulate]'"
        raise MissingExtra(msg) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
