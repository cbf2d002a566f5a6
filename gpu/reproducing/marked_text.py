"""Text that FLy wrote, token by token: what the draft said, what the target said instead, what was kept and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fly_theory.blocks import Block
from fly_theory.blocks.fly import Cause, DeferredWindow
from fly_theory.entropies import normalised_entropy, top_k_entropy
from fly_theory.figures import COLOURS, TWO_COLUMNS, new_figure, style
from fly_theory.figures.style import drawable
from gpu.reproducing.real_traces import block_of

if TYPE_CHECKING:
    from gpu.trace import Trace

__all__ = ["Mark", "as_figure", "as_html", "marks"]

_CAUSES = {Cause.KEPT: "kept", Cause.GATE: "gate shut", Cause.BOUNDARY: "too late", Cause.WINDOW: "window not clear"}
_FONT = ["DejaVu Sans Mono", "monospace"]
_COLUMNS = 112
_LINE = 1.7
_STYLE = f"""
.marked {{ font: 14px/2 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; max-width: 60rem; }}
.marked .draft {{ background: {COLOURS["draft"]}66; border-radius: 3px; }}
.marked .target {{ color: #2f6092; font-weight: 600; }}
.marked s {{ text-decoration-thickness: 1.5px; }}
.marked [title] {{ cursor: help; }} .marked i {{ color: #9aa1ae; font-style: normal; }}
"""


@dataclass(frozen=True)
class Mark:
    """One drafted token that was judged, or the bonus token of a round.

    round : number of the round, from 0.
    draft : what the draft said; None for the bonus token.
    target : what the target says there.
    kept, match : whether the draft's token stays, and whether it is the target's.
    reason : one sentence on why.
    probability : what the target gives the draft's token; of the bonus token, what it gives its own.
    """

    round: int
    draft: str | None
    target: str
    kept: bool
    match: bool
    reason: str
    probability: float


def marks(trace: "Trace", rule: DeferredWindow) -> Iterator[Mark]:
    """The tokens of consecutive rounds up to the first rejected one of each, it included."""
    for number, captured in enumerate(trace):
        block = block_of(captured)
        decided, best = rule.trace(block), block.target.argmax(axis=-1)
        says = [trace.decode([int(token)]) for token in best]
        drafted = [trace.decode([int(token)]) for token in block.tokens]
        last = int(decided.kept.sum())
        for j in range(min(last + 1, block.draft_length)):
            cause, match = Cause(int(decided.cause[j])), bool(decided.match[j])
            probability = float(block.target[j, block.tokens[j]])
            why = "both say so" if match else _reason(rule, block, j, cause, says[j])
            yield Mark(number, drafted[j], says[j], cause == Cause.KEPT, match, why, probability)
        if last == block.draft_length:
            yield Mark(number, None, says[-1], True, True, "bonus token", float(block.target[-1].max()))


def _reason(rule: DeferredWindow, block: Block, j: int, cause: Cause, instead: str) -> str:
    row = block.target[j]
    return (
        f"{_CAUSES[cause]}: the target gives this token {row[block.tokens[j]]:.3f} and {instead!r} {row.max():.3f}; "
        f"entropy of the three largest {top_k_entropy(row, 3):.2f} nats, of all {normalised_entropy(row):.2f} of "
        f"log V; {rule.window_length} drafts after it have to match"
    )


def as_html(marked: Sequence[Mark]) -> str:
    """The text as a piece of HTML that refers to nothing outside; hold the pointer over a token for the reason."""
    pieces = []
    for mark, begins in _with_beginnings(marked):
        if begins:
            pieces.append(f'<i title="round {mark.round + 1}">|</i>')
        reason = escape(f"round {mark.round + 1}, {mark.reason}", quote=True)
        if mark.match:
            pieces.append(f'<span title="{reason}">{escape(mark.target)}</span>')
            continue
        space, draft, target = _apart(mark)
        tag = "span" if mark.kept else "s"
        pieces.append(f'{space}<{tag} class="draft" title="{reason}">{escape(draft)}</{tag}>')
        pieces.append(f'<span class="target" title="{reason}">({escape(target)})</span>')
        if "\n" in (mark.draft if mark.kept else mark.target):
            pieces.append("\n")
    key = (
        '<p class="soft">Plain: both agree. <span class="marked"><span class="draft">Shaded</span></span>: the '
        'draft\'s token, kept although the target has another, <span class="marked"><span class="target">(this one)'
        '</span></span>; <span class="marked"><s class="draft">struck through</s></span> where it is rejected and the '
        "target's is written. A bar begins a round. Hold the pointer over a token for the reason.</p>"
    )
    return f'<style>{_STYLE}</style>{key}<div class="marked">{"".join(pieces)}</div>'


def _with_beginnings(marked: Sequence[Mark]) -> Iterator[tuple[Mark, bool]]:
    """Every mark, and whether it is the first of a round after the first."""
    number = 0
    for mark in marked:
        yield mark, mark.round != number
        number = mark.round


def _apart(mark: Mark) -> tuple[str, str, str]:
    """The space before a mismatch, and both tokens without it, with line ends visible."""
    draft, target = (token.replace("\n", "↵") for token in (mark.draft or "", mark.target))
    space = " " if draft.startswith(" ") or target.startswith(" ") else ""
    return space, draft.lstrip(" ") or "␣", target.lstrip(" ") or "␣"


@dataclass(frozen=True)
class _Run:
    text: str
    role: str
    ends_line: bool = False


_KEY = (
    _Run("draft", "kept"),
    _Run("(target)", "target"),
    _Run(": the draft's token is kept    ", "plain"),
    _Run("draft", "struck"),
    _Run("(target)", "target"),
    _Run(": the target's is written    ", "plain"),
    _Run("|", "bar"),
    _Run(" a round begins", "plain"),
)


def as_figure(marked: Sequence[Mark]) -> Figure:
    """The same text drawn: a column a character, wrapped, in a monospaced face."""
    runs = [*_runs(marked), _Run("", "plain", ends_line=True), _Run("", "plain", ends_line=True), *_KEY]
    places, lines = _places(runs)
    with style():
        height = lines * _LINE + 0.8
        unit = TWO_COLUMNS / _COLUMNS
        figure = new_figure(TWO_COLUMNS, height * unit * 1.25)
        figure.set_layout_engine("none")
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, _COLUMNS), ylim=(height, 0))
        ax.axis("off")
        for run, (column, line) in zip(runs, places, strict=True):
            _write(ax, run, column, (line + 0.85) * _LINE, size=0.94 * 72 * unit / 0.602)
    return figure


def _runs(marked: Sequence[Mark]) -> Iterator[_Run]:
    for mark, begins in _with_beginnings(marked):
        if begins:
            yield _Run("|", "bar")
        if mark.match:
            yield _Run(_drawn(mark.target), "plain", ends_line="\n" in mark.target)
            continue
        space, draft, target = _apart(mark)
        written = (mark.draft or "") if mark.kept else mark.target
        yield _Run(space, "plain")
        yield _Run(_drawn(draft), "kept" if mark.kept else "struck")
        yield _Run(f"({_drawn(target)})", "target", ends_line="\n" in written)


def _drawn(token: str) -> str:
    shown = token.replace("\n", "↵")
    return shown if drawable(shown) else "?"


def _places(runs: Sequence[_Run]) -> tuple[list[tuple[int, int]], int]:
    """Column and line of every run, and how many lines there are."""
    places, column, line = [], 0, 0
    for run in runs:
        if column + len(run.text) > _COLUMNS:
            column, line = -(len(run.text) - len(run.text.lstrip(" "))), line + 1
        places.append((column, line))
        column += len(run.text)
        if run.ends_line:
            column, line = 0, line + 1
    return places, line + (column > 0)


def _write(ax: Axes, run: _Run, column: int, y: float, *, size: float) -> None:
    colour = {"bar": "0.6", "target": COLOURS["target"]}.get(run.role, "black")
    width = len(run.text)
    if run.role in ("kept", "struck"):
        ax.add_patch(Rectangle((column, y - 1.1), width, 1.45, color=COLOURS["draft"], alpha=0.45, linewidth=0))
    if run.role == "struck":
        ax.plot([column, column + width], [y - 0.35] * 2, color="black", linewidth=0.7)
    # Character by character, so that every face keeps to its columns.
    for offset, character in enumerate(run.text):
        if character != " ":
            ax.text(
                column + offset + 0.5,
                y,
                character,
                ha="center",
                va="baseline",
                family=_FONT,
                fontsize=size,
                color=colour,
                parse_math=False,
            )
