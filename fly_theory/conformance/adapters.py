"""Verifiers made from other people's functions: tensors in and out, batched or not, with torch's own randomness.

Every adapter seeds torch from the `rng` it is given, so answers repeat, and leaves torch's global generator as it was.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from fly_theory.blocks import Block
from fly_theory.conformance.scripted import Scripted
from fly_theory.errors import InvalidInput, MissingExtra
from fly_theory.exact import exact

__all__ = ["TensorVerifier", "block_rule_verifier", "transformers_speculative_sampling"]

Scale = Literal["probabilities", "log-probabilities"]


class TensorVerifier:
    """A verifier from a function of torch tensors, `function(draft_ids, draft_probs, target_probs)`.

    Parameters
    ----------
    function : callable
        Of draft_ids (K,) int64, draft_probs (K, V) and target_probs (K+1, V), each with a leading axis B if `batched`.
        It returns the emitted ids (up to K+1,), or (B, up to K+1), with negative ids where there is no token; or a
        tuple whose first entry is that.
    batched : bool
        Whether there is a batch axis. Then `batch` holds several requests, and they are checked together.
    scale : "probabilities" or "log-probabilities"
        What the rows hold; log-probabilities serve as logits too.
    dtype : str
        Of the rows, a floating dtype of torch.
    generator : bool
        Whether the function takes `generator=`, a torch.Generator, instead of drawing from torch's global one.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        batched: bool = True,
        scale: Scale = "probabilities",
        dtype: str = "float32",
        generator: bool = False,
    ) -> None:
        if scale not in ("probabilities", "log-probabilities"):
            msg = f"scale={scale!r}; allowed are 'probabilities' and 'log-probabilities'"
            raise InvalidInput(msg)
        self._function, self.batch_axis, self._scale, self._dtype = function, batched, scale, dtype
        self._generator = generator
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
        if batched:
            self.batch = self._batch

    def __call__(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[int]:
        """Emitted ids of one request: target p (K+1, V), draft q^ (K, V), drafted ids (K,)."""
        if self.batch_axis:
            return self._batch(target_probs[None], draft_probs[None], draft_tokens[None], rng)[0]
        return _ids(self._run(target_probs, draft_probs, draft_tokens, rng))

    def _batch(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[list[int]]:
        return [_ids(row) for row in self._run(target_probs, draft_probs, draft_tokens, rng)]

    def _run(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> Any:
        torch = _torch()
        ids = torch.as_tensor(draft_tokens, dtype=torch.int64)
        rows = [self._rows(draft_probs), self._rows(target_probs)]
        with _seeded(rng) as seed:
            options = {"generator": torch.Generator().manual_seed(seed)} if self._generator else {}
            returned = self._function(ids, *rows, **options)
        return returned[0] if isinstance(returned, tuple) else returned

    def _rows(self, probs: Any) -> Any:
        torch = _torch()
        rows = torch.as_tensor(probs.astype(float)).to(getattr(torch, self._dtype))
        return rows.log() if self._scale == "log-probabilities" else rows


def transformers_speculative_sampling(*, eos: int | None = None) -> TensorVerifier:
    """`_speculative_sampling` of the installed transformers, by which `generate(assistant_model=...)` verifies.

    With `eos`, tokens after it are cut off as `generate` does after the call.

    Raises
    ------
    MissingExtra
        When transformers is not installed.
    """
    torch = _torch()
    try:
        from transformers.generation.utils import _speculative_sampling
    except ImportError as error:
        msg = "transformers is not installed; it comes with `pip install 'fly-theory[capture]'`"
        raise MissingExtra(msg) from error

    def speculative_sampling(draft_ids: Any, draft_logits: Any, target_logits: Any) -> Any:
        emitted, _ = _speculative_sampling(draft_ids, draft_logits, draft_ids.shape[1], target_logits)
        if eos is not None:
            ends = torch.nonzero(emitted[0] == eos)
            emitted = emitted[:, : int(ends[0]) + 1] if len(ends) else emitted
        return emitted

    adapter = TensorVerifier(speculative_sampling, scale="log-probabilities")
    # It is written for a single request.
    del adapter.batch
    adapter.__qualname__ = "transformers _speculative_sampling"
    return adapter


def block_rule_verifier(rule: Any) -> Callable[[Any, Any, Any, Any], list[int]]:
    """A block-level rule of this project as a verifier: n from its length law, then the token after n kept drafts.

    Raises
    ------
    InvalidInput
        For a rule that goes on until K tokens are out, which needs calls of both models in between.
    """
    if rule.completes_block:
        msg = f"{rule.spec} emits K tokens whatever it keeps, for which it calls both models again; it is no verifier"
        raise InvalidInput(msg)

    def verifier(target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[int]:
        if not len(draft_tokens):
            return [rng.choice(target_probs[0])]
        target, draft = (exact(rows.tolist()) if rows.dtype == object else rows for rows in (target_probs, draft_probs))
        block = Block(target, draft, draft_tokens)
        kept = rng.choice(rule.length_law(block))
        return [*draft_tokens[:kept], rng.choice(rule.next_token(block)[kept])]

    verifier.__qualname__ = rule.spec
    return verifier


def _ids(row: Any) -> list[int]:
    values: Sequence[int] = row.tolist() if hasattr(row, "tolist") else list(row)
    return [token for token in values if token >= 0]


@contextlib.contextmanager
def _seeded(rng: Any) -> Iterator[int]:
    """Seed torch from `rng` for one call on one thread; uniforms are fixed where `rng` fixes them."""
    torch = _torch()
    seed, threads = int(rng.random() * 2**63), torch.get_num_threads()
    cuda = torch.cuda.is_available()
    # torch.manual_seed seeds all devices, which is slow.
    set_seed = torch.manual_seed if cuda else torch.default_generator.manual_seed
    with torch.random.fork_rng([torch.cuda.current_device()] if cuda else []), contextlib.ExitStack() as undo:
        set_seed(seed)
        torch.set_num_threads(1)
        undo.callback(torch.set_num_threads, threads)
        if isinstance(rng, Scripted):
            undo.enter_context(_fixed_uniforms(rng.coins))
        yield seed


def _fixed_uniforms(coins: Sequence[float]) -> Any:
    """Make torch's uniforms the given ones, in order, the last one going on."""
    torch = _torch()
    from torch.overrides import TorchFunctionMode

    uniform = {torch.rand, torch.rand_like, torch.Tensor.uniform_}

    class Fixed(TorchFunctionMode):  # type: ignore[misc]
        drawn = 0

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            drawn = function(*args, **(kwargs or {}))
            if function in uniform:
                flat = drawn.view(-1)
                for i in range(len(flat)):
                    # The largest number below one in the dtype, not one.
                    top = math.nextafter(1.0, 0.0) if drawn.dtype == torch.float64 else 1 - 2.0**-24
                    flat[i] = min(coins[min(self.drawn, len(coins) - 1)], top)
                    self.drawn += 1
            return drawn

    return Fixed()


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        msg = "torch is not installed; it comes with `pip install 'fly-theory[replay]'`"
        raise MissingExtra(msg) from error
    return torch
