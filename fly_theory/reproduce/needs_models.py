"""What the two papers measured with models and data that are not here."""

from fly_theory import published
from fly_theory.reproduce.item import Compared, Finding, Item

TABLES = {
    "lossy_figure1_difficulty_gap": "accuracy on GSM8K and AIME",
    "fly_table6_draft_size": "drafters of 1B, 3B and 8B",
    "fly_table7_cross_model": "drafters of other model families",
    "fly_table10_vllm_batch": "a serving engine at batch sizes 2 to 16",
}


def find() -> Finding:
    """Count what is left alone."""
    values = [Compared(f"{name}: rows, {what}", None, len(published.table(name))) for name, what in TABLES.items()]
    why = (
        "Accuracies, and speed-ups with other drafters or under load, need the models of the papers (70B to 405B), "
        "their benchmarks and their hardware. No closed form or replay on a small pair stands in for them."
    )
    return Finding("not reproducible here", why, values)


ITEM = Item("needs-models", "What needs the papers' models", "lossy paper, Figure 1; FLy, Tables 6, 7 and 10", find)
