"""Whole rows of several blocks put together by how many heads they have, so that little is filled up with zeros."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from gpu.replaying.certified.cells import Cells
from gpu.replaying.certified.lines import Lines

__all__ = ["in_groups"]

# Heads of a group, rows times columns: so few that its arrays stay near the processor, so many that it takes longer to
# go over them than to ask for it.
_COLUMNS = 2**17


def in_groups(parts: Sequence[Cells]) -> Iterator[Cells]:
    """Whole rows, which come in parts, in groups, with their places among all of them."""
    rows = [(part, row) for part in parts for row in range(part.rows)]
    summed, numbers = Cells.beside_heads(parts)
    count = (parts[0].vocabulary - numbers["unseen"][:, 0]).long()
    order = count.argsort(stable=True)
    end = len(rows)
    while end:
        width = int(count[order[end - 1]]) + 1
        start = max(0, end - max(1, _COLUMNS // width))
        places = order[start:end]
        group = [rows[place] for place in places.tolist()]
        yield replace(
            parts[0],
            head_p=_heads([part.head_p.low_left[row] for part, row in group], width),
            head_q=_heads([part.head_q.low_left[row] for part, row in group], width),
            known=width,
            summed=tuple(mass[places] for mass in summed),
            places=places,
            **{name: values[places] for name, values in numbers.items()},
        )
        end = start


def _heads(rows: Sequence[Tensor], width: int) -> Lines:
    """Heads of rows as so many columns, filled up with zeros."""
    heads = rows[0].new_zeros(len(rows), width)
    for head, row in zip(heads, rows, strict=True):
        known = row[:width]
        head[: len(known)] = known
    return Lines.exact(heads)
