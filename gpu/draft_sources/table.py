"""A comparison of draft sources for the terminal."""

from rich.table import Table
from rich.text import Text

from fly_theory.cli.output import table
from gpu.draft_sources.comparison import Comparison, SourceResult
from gpu.replaying.wording import counted, half_width, number

__all__ = ["summary"]

_HEADINGS = (
    "tokens\nper call",
    "\n±",
    "\naccepted",
    "with a\ndraft",
    "drafted\nper call",
    "drafter\ncalls",
    "\nspeed-up",
)


def summary(comparison: Comparison) -> list[str | Table]:
    """What was compared, a row a source, and the notes."""
    head = (
        f"{counted(comparison.tokens, 'token')} that the target wrote after {counted(comparison.prompts, 'prompt')}; "
        f"a drafter call costs {comparison.draft_cost:.3g} target steps\n"
    )
    rows = [[Text(source.name, style="bold"), *_cells(source)] for source in comparison.sources]
    notes = [f"• {note}" for note in comparison.notes]
    notes += [f"• {source.name}: {note}." for source in comparison.sources for note in source.notes]
    return [head, table(["\nsource", *_HEADINGS], rows, numeric=_HEADINGS), "\n" + "\n".join(notes)]


def _cells(source: SourceResult) -> list[str]:
    model = source.modelled_drafter_calls
    return [
        number(source.tokens_per_call, digits=2),
        half_width(source.tokens_per_call, digits=2),
        number(source.accepted_per_call, digits=2),
        f"{source.drafting:.0%}",
        f"{source.drafted_per_call:.1f}",
        (f"{source.drafter_calls:.1f}" if source.drafter_calls else "–") + (f" (model {model:.1f})" if model else ""),
        f"{source.speedup:.2f}",
    ]
