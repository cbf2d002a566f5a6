"""How a replay on draft trees is introduced, on the terminal and in the report alike."""

from gpu.replaying.on_trees.result import TreeReplay
from gpu.replaying.wording import conditions, counted

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
        f"{counted(len(trace), 'tree')} of {counted(trace.nodes, 'draft token')}, up to {trace.draft_length} deep, "
        f"siblings {_DRAWN[trace.drawing]}, {conditions(trace, replay.settings, replay.prompts)}"
    )
