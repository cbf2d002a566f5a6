"""How a replay on draft trees is introduced, on the terminal and in the report alike."""

from gpu.replaying.on_trees.result import TreeReplay
from gpu.replaying.wording import conditions

__all__ = ["setting"]

_DRAWN = {
    "deterministic": "the draft's most probable",
    "with-replacement": "drawn with replacement",
    "without-replacement": "drawn without replacement",
}


def setting(replay: TreeReplay) -> str:
    """One line: what was replayed, and at which law."""
    trace = replay.trace
    return (
        f"{len(trace)} trees of {trace.nodes} draft tokens, up to {trace.draft_length} deep, siblings "
        f"{_DRAWN[trace.drawing]}, {conditions(trace, replay.settings, replay.prompts)}"
    )
