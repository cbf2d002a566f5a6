"""Many theorems at once, on several processes."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from fly_theory.registry import rule_class
from proofs.certificates import write
from proofs.finite import ask
from proofs.obligation import Answer
from proofs.prover import Proof, prove_theorem
from proofs.search import judged
from proofs.theorem import find

__all__ = ["outcomes", "reported"]

# The longest proofs, begun first.
_LONGEST = ("monotone", "normalised", "on-the-line", "hierarchical-is-block", "fly-window")


def outcomes(
    names: Sequence[str], *, jobs: int, certificates: Path | None = None, small: int = 0
) -> Iterator[dict[str, Any]]:
    """What each theorem came out as, in plain figures, as they are done; see `reported`.

    Raises
    ------
    UnknownName
        For a name that is no theorem, before anything is proved.
    """
    for name in names:
        find(name)
    ordered = sorted(names, key=lambda name: _LONGEST.index(name) if name in _LONGEST else len(_LONGEST))
    prove = partial(_proved, certificates=certificates, small=small)
    if jobs == 1 or len(names) == 1:
        yield from map(prove, ordered)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(prove, name) for name in ordered]):
            yield done.result()


def _proved(name: str, certificates: Path | None, small: int) -> dict[str, Any]:
    return reported(prove_theorem(find(name), {}), certificates, small)


def reported(proof: Proof, certificates: Path | None, small: int = 0, substitute: Any = None) -> dict[str, Any]:
    """The figures of a proof, once its certificate is written.

    With `small`, the claims that the theorem is about are asked once more, over vocabularies of 2 to `small` tokens.
    """
    if certificates is not None:
        write(proof, certificates)
    sizes = range(2, small + 1) if proof.outcome == "proved" and proof.theorem.about else ()
    spelled_out = {str(size): _over(proof, size, substitute) for size in sizes}
    return {**proof.as_json(), "small": spelled_out} if small else proof.as_json()


def _over(proof: Proof, size: int, substitute: Any) -> Answer:
    """What z3 makes of all claims together; a counterexample counts when it is one in the exact interpreter."""
    answers = []
    for subject in proof.theorem.about:
        answer, model = ask(subject, size, substitute=substitute)
        real = model is not None and judged(substitute or rule_class(subject.rule), model) is not None
        answers.append("unknown" if answer == "refuted" and not real else answer)
    return next((answer for answer in ("refuted", "unknown") if answer in answers), "proved")
