"""Replay on draft trees: what tree rules, and token-level rules on siblings in turn, do with captured trees."""

from gpu.replaying.on_trees.files import write_result
from gpu.replaying.on_trees.result import TreeReplay, TreeRuleResult
from gpu.replaying.on_trees.run import replay_trees, tree_rules
from gpu.replaying.on_trees.table import summary

__all__ = ["TreeReplay", "TreeRuleResult", "replay_trees", "summary", "tree_rules", "write_result"]
