"""Token-level verification rules, one file a rule or a tight family of variants."""

from fly_theory.rules.base import Rule, Verdict

__all__ = ["Rule", "Verdict"]
