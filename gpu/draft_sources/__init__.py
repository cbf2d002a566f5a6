"""Sources of drafts, with and without a draft model, compared on the texts that the target wrote in a trace."""

from gpu.draft_sources.comparison import Comparison, SourceResult, compare_sources

__all__ = ["Comparison", "SourceResult", "compare_sources"]
