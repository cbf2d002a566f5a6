"""Lossy paper, Table 3: the means of Table 5 over its settings."""

from fly_theory.reproduce.item import Finding, Item
from fly_theory.reproduce.summaries import means_of_settings, summary

NAMES = {
    "EAGLE-3": "Baseline",
    "Min-p sampling": "Min-p Smpl. + SD",
    "SpecCascade": "SpecCascade",
    "η-sampling": "η Sampl. + SD",
    "Typical acceptance": "Typical Sampling",
}


def find() -> Finding:
    """Average every method of Table 5 over its settings."""
    values = list(means_of_settings("lossy_table3_eagle3_mean", "lossy_table5_eagle3", NAMES))
    return summary(values, what="the means of Table 5 over the five settings of a method")


ITEM = Item("lossy-table-3", "Means of EAGLE-3 results over settings", "lossy paper, Table 3 from Table 5", find)
