"""Tiny model pairs, and a guard that no test of this folder reaches for the network."""

import functools
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*address: Any, **_: Any) -> None:
        msg = f"a test tried to connect to {address}"
        raise AssertionError(msg)

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """A second thread gains nothing on tiny models, and costs a hundredfold on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Folders of tiny models over one tokenizer of 290 tokens: a Llama padded to 296 rows, two Qwen2 to 304 and 292."""
    from tests.gpu import tiny_models

    root: Path = tmp_path_factory.mktemp("models")
    tokenizer = tiny_models.train_tokenizer()
    return SimpleNamespace(
        llama=tiny_models.save_llama(root / "llama", tokenizer, vocabulary=296),
        wide_qwen=tiny_models.save_qwen2(root / "wide-qwen", tokenizer, vocabulary=304),
        narrow_qwen=tiny_models.save_qwen2(root / "narrow-qwen", tokenizer, vocabulary=292),
    )


@pytest.fixture(scope="session")
def _loaded_once() -> Any:
    from gpu.models import load_pair

    return functools.cache(load_pair)


@pytest.fixture
def bundled_pair(monkeypatch: pytest.MonkeyPatch, _loaded_once: Any) -> Any:
    """The bundled pair in float32, which takes long to load: once in a test run, by capture and decode as well."""
    import torch

    for module in ("gpu.capturing", "gpu.decoding.run"):
        monkeypatch.setattr(f"{module}.load_pair", _loaded_once)
    return _loaded_once("smollm2-135m", "layerskip:10,20", dtype=torch.float32, device=torch.device("cpu"))


@pytest.fixture(autouse=True)
def _load_the_bundled_pair_once(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("bundled"):
        request.getfixturevalue("bundled_pair")
