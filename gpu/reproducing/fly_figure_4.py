"""FLy, Figure 4: a text written under FLy, with every mismatch, and whether it was kept."""

from typing import TYPE_CHECKING

from fly_theory.registry import block_rule
from fly_theory.reproduce.item import Compared, Finding, Item
from gpu.reproducing.marked_text import Mark, as_figure, as_html, marks
from gpu.reproducing.real_traces import read_off, text_trace

if TYPE_CHECKING:
    from gpu.trace import Trace

__all__ = ["ITEM"]

RULE = "fly-released:theta=0.3,window=6"


def find() -> Finding:
    """Let the small pair answer a question under FLy, and mark its text."""
    return read_off(lambda: text_trace(block_rule(RULE)), told)


def told(trace: "Trace") -> Finding:
    """The mismatches of the rounds of a text, kept and rejected."""
    marked = list(marks(trace, block_rule(RULE)))
    missed = [mark for mark in marked if not mark.match]
    kept = [mark for mark in missed if mark.kept]
    causes = [mark.reason.partition(":")[0] for mark in missed if not mark.kept]
    # A rejected mismatch is a token too: the target's.
    values = [
        Compared("tokens written", None, len(marked)),
        Compared("tokens a round", None, len(marked) / len(trace)),
        Compared("mismatches met", None, len(missed)),
        Compared("of them kept; standard verification keeps none", 0, len(kept)),
        *(Compared(f"of them rejected, {cause}", None, causes.count(cause)) for cause in sorted(set(causes))),
        *(Compared(_named(mark), None, mark.probability) for mark in kept),
    ]
    why = (
        "The published text is by 405B and 8B models that are not here; ours is by SmolLM2-135M-Instruct with the same "
        f"model less one layer as draft, under {RULE}, K = {trace.draft_length}, greedy. As there, standard "
        f"verification would stop at each of the {len(missed)} mismatches and FLy keeps some, here {len(kept)}. What "
        "is kept is whatever the draft goes on from without another mismatch: the rule looks neither at the token's "
        "probability, given below, nor at its meaning, and the text shows what that does with a weak pair."
    )
    return Finding("explained", why, values, {"text": as_figure(marked)}, {"text": as_html(marked)})


def _named(mark: Mark) -> str:
    return f"round {mark.round + 1}: {mark.draft!r} kept for {mark.target!r}; the target gives it"


ITEM = Item("fly-figure-4", "A text written under FLy", "FLy, Figure 4", find)
