"""Replay: rules on captured rows. Rows give measures, measures tallies, tallies a result, a result a report."""

from gpu.replaying.on_trees import TreeReplay
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.run import replay

__all__ = ["Replay", "RuleResult", "TreeReplay", "replay"]
