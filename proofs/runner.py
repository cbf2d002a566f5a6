"""Many theorems at once, on several processes."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from proofs.certificates import write
from proofs.prover import Proof, prove_theorem
from proofs.theorem import find

__all__ = ["outcomes"]

# The longest proofs, begun first.
_LONGEST = ("monotone", "normalised", "on-the-line", "hierarchical-is-block", "fly-window")


def outcomes(names: Sequence[str], *, jobs: int, certificates: Path | None = None) -> Iterator[dict[str, Any]]:
    """What each theorem came out as, in plain figures, as they are done; with a folder, their certificates are written.

    Raises
    ------
    UnknownName
        For a name that is no theorem, before anything is proved.
    """
    for name in names:
        find(name)
    ordered = sorted(names, key=lambda name: _LONGEST.index(name) if name in _LONGEST else len(_LONGEST))
    prove = partial(_proved, certificates=certificates)
    if jobs == 1 or len(names) == 1:
        yield from map(prove, ordered)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(prove, name) for name in ordered]):
            yield done.result()


def _proved(name: str, certificates: Path | None) -> dict[str, Any]:
    return reported(prove_theorem(find(name), {}), certificates)


def reported(proof: Proof, certificates: Path | None) -> dict[str, Any]:
    """The figures of a proof, once its certificate is written."""
    if certificates is not None:
        write(proof, certificates)
    return proof.as_json()
