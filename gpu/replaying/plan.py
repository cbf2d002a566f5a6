"""What a replay evaluates, apart from the blocks it is evaluated on."""

from dataclasses import dataclass

from fly_theory.rules.base import Rule
from gpu.replaying.settings import ReplaySettings

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """Token-level rules, and the law that logits become: everything a worker needs besides blocks; it pickles."""

    rules: tuple[Rule, ...]
    settings: ReplaySettings
