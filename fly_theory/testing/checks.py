"""One-line checks for the tests of an engine."""

from typing import Any

from fly_theory.conformance import conformance
from fly_theory.conformance.guard import Verifier
from fly_theory.report import Report

__all__ = ["conforms"]


def conforms(verifier: Verifier, drafter: Any = None, **settings: Any) -> Report:
    """Assert that every claim holds that `ft.conformance(verifier, drafter, **settings)` was asked for.

    Raises
    ------
    AssertionError
        With the report, if a claim is refuted or undecided.

    Examples
    --------
    >>> from fly_theory.testing import conforms
    >>> def sample_the_target(target_probs, draft_probs, draft_tokens, rng):
    ...     return [rng.choice(target_probs[0])]
    >>> conforms(sample_the_target).verdict
    'lossless but slower'
    """
    __tracebackhide__ = True
    report = conformance(verifier, drafter, **settings)
    if not report.ok:
        raise AssertionError(f"\n{report}")  # noqa: EM102
    return report
