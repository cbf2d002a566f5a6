"""Tensors here are tiny; more than one thread only slows them down."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    torch = getattr(request.module, "torch", None)
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
