"""A pytest plugin: the fixture `verifier`, which checks a verifier and fails with a readable report.

def test_my_verifier(verifier):
    verifier(my_verifier)
    verifier(my_lenient_verifier, claims=[Ceiling(2)])
"""

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["verifier"]


@pytest.fixture
def verifier() -> Callable[..., Any]:
    """A function of the arguments of `ft.conformance` that fails the test unless every claim asked for holds."""

    def check(function: Any, drafter: Any = None, **settings: Any) -> Any:
        __tracebackhide__ = True
        from fly_theory.conformance import conformance

        report = conformance(function, drafter, **settings)
        if not report.ok:
            pytest.fail(str(report), pytrace=False)
        return report

    return check
