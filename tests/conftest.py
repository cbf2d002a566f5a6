"""Shared configuration: reproducible property tests, float64 in jax, one thread a worker, no network."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# `ci` repeats the same examples every run; `hunt` draws new and more ones: HYPOTHESIS_PROFILE=hunt make test.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("hunt", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# Begun first: each of their tests is long, and the last of them must not be waited for alone.
_FIRST = ("test_readme.py", "test_docs.py", "test_ten_minutes.py")


@pytest.fixture(scope="session")
def shared_commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what commands printed and wrote, the same in all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-commands"
    folder.mkdir(exist_ok=True)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests; skip, with the reason, what this machine cannot run."""
    items.sort(key=lambda item: _FIRST.index(item.path.name) if item.path.name in _FIRST else len(_FIRST))
    wanted = [item for item in items if item.get_closest_marker("cuda")]
    if wanted:
        import torch

        if not torch.cuda.is_available():
            for item in wanted:
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))
