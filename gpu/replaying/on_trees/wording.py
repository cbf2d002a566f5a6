"""How a replay on draft trees is introduced, on the terminal and in the report alike."""

from gpu.replaying.on_trees.result import TreeReplay

__all__ = ["models", "setting"]

_DRAWN = {
    "deterministic": "the draft's most probable",
    "with-replacement": "drawn with replacement",
    "without-replacement": "drawn without replacement",
}


def setting(replay: TreeReplay) -> str:
    """One line: what was replayed, and at which law."""
    trace = replay.trace
    warpers = "".join(f", {name.replace('_', '-')} {value:g}" for name, value in replay.settings.warpers.items())
    return (
        f"{len(trace)} trees of {trace.nodes} draft tokens, up to {trace.draft_length} deep, siblings "
        f"{_DRAWN[trace.drawing]}, {replay.prompts} prompt{'s' if replay.prompts > 1 else ''}, V = {trace.vocabulary}, "
        f"temperature {replay.settings.temperature:g}{warpers}"
    )


def models(replay: TreeReplay) -> str:
    """Which pair was replayed."""
    identity = replay.trace.manifest["source"].get("models")
    return f"target {identity['target']['name']}, draft {identity['draft']['name']}" if identity else "an unnamed pair"
