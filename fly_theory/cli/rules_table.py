"""The table of rules and the interpreters that can read them, for the terminal and for the README.

`python -m fly_theory.cli.rules_table README.md` rewrites the part of the README between the two markers.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from fly_theory.cli.catalogue import Entry, entries
from fly_theory.errors import InvalidInput
from fly_theory.files import write_text
from fly_theory.interpreters import Interpreter

__all__ = ["HEADINGS", "markdown", "reasons", "row", "with_table"]

BEGIN, END = "<!-- rules:begin -->", "<!-- rules:end -->"

HEADINGS = ("rule", "level", *(interpreter.value for interpreter in Interpreter))


def row(entry: Entry) -> tuple[str, ...]:
    """The cells of a rule: for each interpreter yes, no, or some (not at every typical setting)."""
    unreadable = entry.unreadable()
    cells = ("yes" if i not in unreadable else "no" if unreadable[i][1] else "some" for i in Interpreter)
    return (entry.name, entry.level, *cells)


def reasons(shown: Iterable[Entry]) -> list[str]:
    """One line for every reason why interpreters cannot read a rule, with the rules it holds for."""
    rules: dict[tuple[str, str], list[str]] = {}
    for entry in shown:
        by_reason: dict[str, list[str]] = {}
        for interpreter, (reason, _) in entry.unreadable().items():
            by_reason.setdefault(reason, []).append(interpreter.value)
        for reason, readers in by_reason.items():
            rules.setdefault((" and ".join(readers), reason), []).append(entry.name)
    return [f"{', '.join(names)}, {readers}: {reason}" for (readers, reason), names in rules.items()]


def markdown() -> str:
    """The whole table, with the reasons below it, in Markdown."""
    shown = entries()
    rows = [HEADINGS, ("---",) * len(HEADINGS), *([f"`{e.name}`", *row(e)[1:]] for e in shown)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    return table + "".join(f"\n{'' if number else chr(10)}- {line}" for number, line in enumerate(reasons(shown)))


def with_table(text: str) -> str:
    """The text with what is between its two markers replaced by the table.

    Raises
    ------
    InvalidInput
        When the text has not both markers, once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in after:
        msg = f"the text must have the markers {BEGIN} and {END}, once each and in this order"
        raise InvalidInput(msg)
    return f"{before}{BEGIN}\n{markdown()}\n{END}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_text(path, with_table(path.read_text(encoding="utf-8")))
