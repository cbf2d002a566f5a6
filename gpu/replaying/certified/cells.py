"""What is known of rows: some tokens one by one, the others by their mass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.packing import packed

__all__ = ["ROUNDING", "Cells"]

# By which share of the sum of the magnitudes a sum of floats is moved outwards, and by how much a row may miss one.
ROUNDING = 2.0**-35

_NARROW = 1e-6


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows (R) of a target p and a draft q, each of total mass 1: heads seen one by one, and unseen tokens.

    The first columns of heads, `known` of them, are tokens of which both p and q are known, in order of token id. A
    token of which only one is known has `pieces` columns: the segments one of which it lies in.

    Attributes
    ----------
    vocabulary
        V, the number of tokens.
    head_p, head_q
        (R, H) p and q at the columns of heads, along the segment where they are not known.
    unseen
        (R, 1) how many tokens are not heads.
    cap_p, cap_q
        (R, 1) upper bounds of p and of q at any unseen token.
    nodes
        (R, G + 1) or (1, G + 1) rising directions q/(p+q), from the least an unseen token can have to the greatest;
        the sectors are what lies between two.
    drafted
        (R,) column of the draft token, one of the known ones.
    summed
        (R, G) p and q of the unseen tokens in each sector, where they were summed, as of whole rows; else all that is
        known is what the heads leave of one.
    entropy_p
        (R, 1) the entropy of p in nats, where it was summed.
    spare
        Whether columns after the heads of a row, the last one of them, hold no token; p and q are 0 there.
    places
        (R,) by which numbers errors name the rows; None: by their place.
    """

    vocabulary: int
    head_p: Lines
    head_q: Lines
    unseen: Tensor
    cap_p: Tensor
    cap_q: Tensor
    nodes: Tensor
    drafted: Tensor
    known: int
    pieces: int = 1
    summed: tuple[Tensor, Tensor] | None = None
    entropy_p: Tensor | None = None
    spare: bool = False
    places: Tensor | None = None

    @property
    def rows(self) -> int:
        """R."""
        return self.drafted.shape[0]

    @cached_property
    def tail_p(self) -> Lines:
        """p in each sector, for a token with p + q = 1."""
        return Lines.exact(1 - self.nodes[:, :-1], 1 - self.nodes[:, 1:])

    @cached_property
    def tail_q(self) -> Lines:
        """q in each sector, for a token with p + q = 1."""
        return Lines.exact(self.nodes[:, :-1], self.nodes[:, 1:])

    @cached_property
    def weight_cap(self) -> Tensor:
        """(R, G) upper bound of p + q at an unseen token of each sector; 0 where no token is unseen."""
        by_p, by_q = self.cap_p / (1 - self.nodes[:, 1:]), self.cap_q / self.nodes[:, :-1]
        # A direction without p (or q) is not bounded by what p (or q) can be: 0/0 counts as infinite.
        cap = torch.minimum(by_p.nan_to_num(torch.inf, posinf=torch.inf), by_q.nan_to_num(torch.inf, posinf=torch.inf))
        return cap.masked_fill(~self.populated, 0)

    @cached_property
    def populated(self) -> Tensor:
        """(R, G) where an unseen token may have weight."""
        if self.summed is None:
            return (~self.empty).expand(-1, self.nodes.shape[-1] - 1)
        return self.summed[0] + self.summed[1] > 0

    @cached_property
    def all_seen(self) -> bool:
        """Whether both p and q are known at every head."""
        return self.known == self.head_p.low_left.shape[-1]

    def per_head(self, x: Tensor, over: Callable[..., Tensor]) -> Tensor:
        """Columns (R, H) brought together to one a head: over the segments that a token may lie in by `over`."""
        if self.all_seen:
            return x
        return torch.cat(
            [x[:, : self.known], over(x[:, self.known :].unflatten(-1, (-1, self.pieces)), dim=-1)], dim=-1
        )

    def per_column(self, x: Tensor) -> Tensor:
        """One value a head, given to each of its columns."""
        if self.all_seen:
            return x
        return torch.cat([x[:, : self.known], x[:, self.known :].repeat_interleave(self.pieces, dim=-1)], dim=-1)

    @cached_property
    def blurred_p(self) -> Lines:
        """p at the heads where p or q is unknown, 0 at the others."""
        return self.head_p.rising(self._blurred)

    @cached_property
    def blurred_q(self) -> Lines:
        """q at the heads where p or q is unknown, 0 at the others."""
        return self.head_q.rising(self._blurred)

    @cached_property
    def rest_p(self) -> Tensor:
        """(R, 1) the p of everything but the heads where both p and q are known."""
        return self._rest(self.head_p)

    @cached_property
    def rest_q(self) -> Tensor:
        """(R, 1) the q of everything but the heads where both p and q are known."""
        return self._rest(self.head_q)

    def _rest(self, head: Lines) -> Tensor:
        return (1 - head.low_left[:, : self.known].sum(-1, keepdim=True)).clamp(min=0)

    def _blurred(self, end: Tensor) -> Tensor:
        end = end.clone()
        end[:, : self.known] = 0
        return end

    @cached_property
    def mass_p(self) -> tuple[Tensor, Tensor]:
        """(R, 1) bounds of the p of all unseen tokens."""
        return self._unseen_mass(0, self.head_p, self.cap_p)

    @cached_property
    def mass_q(self) -> tuple[Tensor, Tensor]:
        """(R, 1) bounds of the q of all unseen tokens."""
        return self._unseen_mass(1, self.head_q, self.cap_q)

    @cached_property
    def at_nodes(self) -> tuple[Tensor, Tensor]:
        """(R, G) each: the weight p + q of each sector as weights at its left and its right node, where it was summed.

        A line takes the same sum on the tokens of a sector as on these two.
        """
        assert self.summed is not None
        (p, q), left, right = self.summed, self.nodes[:, :-1], self.nodes[:, 1:]
        width = torch.where(self.narrow, 1, right - left)
        at_left = torch.where(self.narrow, p + q, (p * right - q * (1 - right)) / width).clamp(min=0)
        at_right = torch.where(self.narrow, 0, (q * (1 - left) - p * left) / width).clamp(min=0)
        return at_left, at_right

    @cached_property
    def weights(self) -> Tensor:
        """(4, R, G) `at_nodes` for the four ends of lines, of the upper one nowhere 0 in a wide populated sector.

        What is 0 there may have been lost to rounding, and the upper line may be unbounded at that end.
        """
        least = torch.finfo(self.nodes.dtype).smallest_normal
        floor = torch.where(self.populated & ~self.narrow, least, torch.zeros_like(self.at_nodes[0]))
        return torch.stack([*self.at_nodes, *(torch.maximum(weight, floor) for weight in self.at_nodes)])

    @cached_property
    def any_narrow(self) -> bool:
        """Whether a sector with tokens is narrow."""
        return bool((self.narrow & self.populated).any())

    @cached_property
    def narrow(self) -> Tensor:
        """(R, G) sectors in which it is rounding how the weight is spread over both nodes."""
        return self.nodes[:, 1:] - self.nodes[:, :-1] < _NARROW

    def at(self, columns: Tensor) -> "Cells":
        """The same rows with some of the heads, all of them known; the others are left to the caller."""
        p, q = self.head_p.at(columns), self.head_q.at(columns)
        return replace(self, head_p=p, head_q=q, known=columns.shape[-1], spare=False)

    @classmethod
    def joined(cls, parts: Sequence["Cells"]) -> "Cells":
        """Several parts of rows, of which all heads are known and a tail is summed, in order."""
        head_p, head_q = (Lines.joined([getattr(part, name) for part in parts]) for name in ("head_p", "head_q"))
        places = None if parts[0].places is None else torch.cat([part.places for part in parts])
        known = head_p.low_left.shape[-1]
        summed, numbers = cls.beside_heads(parts)
        return replace(parts[0], head_p=head_p, head_q=head_q, known=known, summed=summed, places=places, **numbers)

    @staticmethod
    def beside_heads(parts: Sequence["Cells"]) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        """Of several parts of rows, of which a tail is summed, in order: `summed`, and what else is known but heads."""
        names = ("unseen", "cap_p", "cap_q", "nodes", "drafted", "entropy_p")
        summed = tuple(torch.cat(of_parts) for of_parts in zip(*(part.summed for part in parts), strict=True))
        return summed, {name: torch.cat([getattr(part, name) for part in parts]) for name in names}

    @cached_property
    def empty(self) -> Tensor:
        """(R, 1) rows whose unseen tokens have no mass at all, if there are any."""
        return (self.mass_p[1] <= 0) & (self.mass_q[1] <= 0)

    @cached_property
    def directions(self) -> tuple[Tensor, ...]:
        """(R, 1) each: directions that the unseen mass as a whole may have, cut to the nodes."""
        middle = tuple(sum(mass) / 2 for mass in (self.mass_p, self.mass_q))
        masses = (
            [middle] if self.all_seen else [(self.mass_p[1], self.mass_q[0]), middle, (self.mass_p[0], self.mass_q[1])]
        )
        least, most = self.nodes[:, :1], self.nodes[:, -1:]
        return tuple((q / (p + q)).nan_to_num(0.5).clamp(least, most) for p, q in masses)

    def _unseen_mass(self, model: int, head: Lines, cap: Tensor) -> tuple[Tensor, Tensor]:
        if self.summed is not None:
            mass = self.summed[model].sum(-1, keepdim=True)
            return mass, mass
        low, high = (
            1 - self.per_head(end, over).sum(-1, keepdim=True)
            for end, over in ((head.high, torch.amax), (head.low, torch.amin))
        )
        high = torch.minimum((high + ROUNDING).clamp(min=0), self.unseen * cap)
        return torch.minimum((low - ROUNDING).clamp(min=0), high), high

    # -- what all rules ask of the heads of whole rows -----------------------------------------------------------------

    @cached_property
    def held(self) -> Tensor:
        """(R, H) columns that hold a token, where some are spare."""
        columns = torch.arange(self.known, device=self.unseen.device)
        return columns < self.vocabulary - self.unseen

    @cached_property
    def inverse_p(self) -> Tensor:
        """(R, H) 1/p, and 1 over the smallest normal number where p is less."""
        p = self.head_p.low_left
        return 1 / p.clamp(min=torch.finfo(p.dtype).smallest_normal)

    @cached_property
    def subnormal(self) -> Tensor:
        """(R, 1) rows in which some p is not zero and less than the smallest normal number."""
        p = self.head_p.low_left
        return ((p < torch.finfo(p.dtype).smallest_normal) & self.with_p).any(-1, keepdim=True)

    @cached_property
    def with_p(self) -> Tensor:
        """(R, H) where p is not 0."""
        return self.head_p.low_left > 0

    @cached_property
    def without_p(self) -> Tensor:
        """(R, N) the columns of tokens whose p is 0, filled up with the last one."""
        return packed(self.held & ~self.with_p, fill=self.known - 1)

    @cached_property
    def modes(self) -> Tensor:
        """(R, N) the columns of the greatest p, filled up with the last one."""
        return packed(self.head_p.low_left == self.peak, fill=self.known - 1)

    @cached_property
    def peak(self) -> Tensor:
        """(R, 1) the greatest p."""
        return self.head_p.low_left.amax(-1, keepdim=True)

    @cached_property
    def seen_p(self) -> Tensor:
        """(R, 1) the p of all heads."""
        return self.head_p.low_left.sum(-1, keepdim=True)

    @cached_property
    def draft_gain(self) -> Tensor:
        """(R, 1) the sum of (q - p)+ over all heads."""
        return (self.head_q.low_left - self.head_p.low_left).clamp_(min=0).sum(-1, keepdim=True)

    @cached_property
    def draft_loss(self) -> Tensor:
        """(R, 1) the sum of (p - q)+ over all heads."""
        return (self.head_p.low_left - self.head_q.low_left).clamp_(min=0).sum(-1, keepdim=True)
