"""Proofs as files: an SMT-LIB2 text for each obligation, which any solver can check, and a write-up to read.

FOLDER/NAME/proof.md      the statement, and each step with its formula
FOLDER/NAME/001.smt2 ...  the obligations, in order; each must be unsatisfiable
"""

import inspect
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from fly_theory.files import json_text, write_text
from proofs.printing import Printer
from proofs.prover import Proof
from proofs.steps import Part, Step

__all__ = ["markdown", "write"]

_ROLES = {"hypothesis": "Suppose", "lemma": "Lemma", "sum": "Lemma, summed", "goal": "**Claim**", "cases": "All cases"}


def write(proof: Proof, folder: Path) -> Path:
    """Write the certificate of one proof into its own folder under `folder`, and return that."""
    here = folder / proof.name
    here.mkdir(parents=True, exist_ok=True)
    for old in here.glob("*.smt2"):
        old.unlink()
    for i, obligation in enumerate(proof.certificate.obligations, start=1):
        write_text(here / f"{i:03}.smt2", obligation.smt2())
    write_text(here / "proof.md", markdown(proof))
    write_text(here / "proof.json", json_text(proof.as_json()))
    return here


def markdown(proof: Proof) -> str:
    """The write-up of a proof, in Markdown with LaTeX formulas."""
    theorem = proof.theorem
    lines = [f"# {proof.name}", "", f"{_sentence(theorem.statement)}", "", f"$${theorem.latex}$$", ""]
    lines += [f"Outcome: **{proof.outcome}** ({proof.method}), {len(proof.certificate.obligations)} obligations.", ""]
    if proof.missing:
        lines += [f"Missing: {proof.missing}.", ""]
    if proof.witness:
        lines += [f"Counterexample: {proof.witness}.", ""]
    if theorem.chapter:
        lines += [inspect.cleandoc(theorem.chapter), ""]
    if theorem.explanation:
        lines += [theorem.explanation, ""]
    for part, steps in groupby(proof.certificate.steps, key=lambda step: step.part):
        lines += [*_written(part, list(steps)), ""]
    return "\n".join(lines)


def _written(part: Part, steps: list[Step]) -> Iterator[str]:
    if part.title:
        yield f"## {part.title}\n"
    for i, (name, term) in enumerate(reversed(part.names)):
        smaller = part.names[len(part.names) - i :]
        yield f"$$\\mathrm{{{name.replace('_', ' ')}}} = {Printer(part.world, smaller).latex(term)}$$\n"
    printer = Printer(part.world, part.names)
    for i, step in enumerate(steps, start=1):
        yield f"{i}. {_ROLES[step.role]}: {step.text}{_files(step)}."
        if step.at_each_token is not None:
            yield f"   At each token $${printer.latex(step.at_each_token)}$$ hence"
        if not isinstance(step.says, int):
            yield f"   $${printer.latex(step.says)}$$"
    yield from _symbols(part, printer)


def _files(step: Step) -> str:
    if isinstance(step.says, int):
        return f" ({step.says} cases)"
    return f" ({', '.join(f'`{i:03}.smt2`' for i in step.obligations)})" if step.obligations else ""


def _symbols(part: Part, printer: Printer) -> Iterator[str]:
    """What the defined symbols of the obligations stand for."""
    if part.world.definitions:
        yield "\n| symbol | stands for |\n| --- | --- |"
    for name, definition in part.world.definitions.items():
        places = ", ".join(str(place).replace("?", "t") for place in definition.places)
        yield f"| `{name}{f'[{places}]' if places else ''}` | ${printer.meaning(definition)}$ |"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
