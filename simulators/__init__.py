"""Monte-Carlo simulation (jax) of verification rules on toy pairs, and of the processes that model FLy.

float64 is enabled inside the simulations alone; importing this package changes no configuration.
"""

from simulators.estimates import Estimate
from simulators.processes import simulate_mismatches, simulate_process
from simulators.rules import simulate
from simulators.simulation import Settings, Simulation

__all__ = ["Estimate", "Settings", "Simulation", "simulate", "simulate_mismatches", "simulate_process"]
