"""Lossy paper, Table 2: the means of Table 4 over its settings."""

from fly_theory.reproduce.item import Finding, Item
from fly_theory.reproduce.summaries import means_of_settings, summary

NAMES = {
    "Standard SD": "SD Baseline",
    "Min-p sampling": "Min-p Smpl. + tokenwise SpD",
    "SpecCascade": "Cascade",
    "η-sampling": "η Smpl. + tokenwise SpD",
    "Typical acceptance": "Medusa",
}


def find() -> Finding:
    """Average every method of Table 4 over its settings."""
    values = list(means_of_settings("lossy_table2_single_draft_mean", "lossy_table4_single_draft", NAMES))
    return summary(values, what="the means of Table 4 over the five settings of a method")


ITEM = Item("lossy-table-2", "Means of single-draft results over settings", "lossy paper, Table 2 from Table 4", find)
