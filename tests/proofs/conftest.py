"""Each theorem is proved once in a test run, and looked at by several tests."""

import functools

import pytest

import proofs


@pytest.fixture(scope="session")
def proof_of():
    """The proof of a theorem by name."""
    return functools.cache(proofs.prove)
