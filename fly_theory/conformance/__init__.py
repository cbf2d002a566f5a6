"""Black boxes: is this verifier, or this whole engine, what it claims to be?"""

from fly_theory.conformance.blackbox import conformance
from fly_theory.conformance.engine import conformance_engine

__all__ = ["conformance", "conformance_engine"]
