"""Options that several verbs share."""

from typing import Annotated

import typer

__all__ = ["AsJson"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
