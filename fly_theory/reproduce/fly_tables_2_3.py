"""FLy, Tables 2 and 3: the means over datasets."""

from fly_theory.reproduce.item import Finding, Item
from fly_theory.reproduce.summaries import over_datasets, summary


def find() -> Finding:
    """Average speed-up and tokens a round over the datasets of each row."""
    values = [*over_datasets("fly_table2_ood"), *over_datasets("fly_table3_id")]
    return summary(values, what="the means over the datasets of their row")


ITEM = Item("fly-tables-2-3", "Mean speed-up and tokens a round", "FLy, Tables 2 and 3", find)
