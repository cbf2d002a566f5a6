"""The part of a manifest that is known before the first block, and the names of files in a trace folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import torch

from fly_theory.errors import InvalidInput, TraceError
from gpu.digest import sha256_of_bytes
from gpu.settings import Dtype

SCHEMA = "fly-theory-trace/1"
TREE_SCHEMA = "fly-theory-tree-trace/1"
TOP_K_SCHEMA = "fly-theory-top-k-trace/1"
SCHEMAS = (SCHEMA, TREE_SCHEMA, TOP_K_SCHEMA)
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
SHARDS = "shards"
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in get_args(Dtype)}


@dataclass(frozen=True)
class TraceHeader:
    """What a trace holds, before any block of it.

    Attributes
    ----------
    draft_length
        K, the number of draft tokens in a block.
    target_vocabulary, draft_vocabulary
        Widths of the logits of the target p and of the draft q.
    dtype
        What the logits are stored in: float16, bfloat16 or float32.
    blocks_per_shard
        How many blocks share a file.
    tokenizer
        The content of tokenizer.json, or None.
    source
        Where the logits come from: a JSON object.
    """

    draft_length: int
    target_vocabulary: int
    draft_vocabulary: int
    dtype: str
    blocks_per_shard: int
    tokenizer: bytes | None
    source: Mapping[str, Any]

    _dtypes: ClassVar[Mapping[str, torch.dtype]] = DTYPES

    def __post_init__(self) -> None:
        for name in ("draft_length", "target_vocabulary", "draft_vocabulary", "blocks_per_shard"):
            self._require_positive(name)
        if self.dtype not in self._dtypes:
            msg = f"dtype={self.dtype!r}; allowed are {', '.join(self._dtypes)}"
            raise InvalidInput(msg)

    def _require_positive(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or value < 1:
            msg = f"{name}={value!r}; expected an integer of at least 1"
            raise InvalidInput(msg)

    def as_json(self) -> dict[str, Any]:
        """The header as the beginning of a manifest, in plain JSON types."""
        tokenizer = self.tokenizer and {"file": TOKENIZER, "sha256": sha256_of_bytes(self.tokenizer)}
        header = {
            "schema": SCHEMA,
            "draft_length": self.draft_length,
            "dtype": self.dtype,
            "vocabulary": {
                "target": self.target_vocabulary,
                "draft": self.draft_vocabulary,
                "missing_logits": "-inf",
            },
            "blocks_per_shard": self.blocks_per_shard,
            "tokenizer": tokenizer,
            "source": self.source,
        }
        return json.loads(json.dumps(header))


def shard_file(number: int) -> str:
    """Name of a shard, relative to the trace folder."""
    return f"{SHARDS}/shard-{number:05d}.safetensors"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check manifest.json of a trace folder, finished or not.

    Raises
    ------
    TraceError
        No manifest, one that is not JSON, or one of another schema.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except OSError as error:
        msg = f"{folder} is no trace: {path} cannot be read ({error.strerror})"
        raise TraceError(msg) from error
    except ValueError as error:
        msg = f"{path} is not JSON: {error}"
        raise TraceError(msg) from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema not in SCHEMAS:
        msg = f"{path} has the schema {schema!r}; this version reads {', '.join(map(repr, SCHEMAS))}"
        raise TraceError(msg)
    missing = [
        key
        for key in ("draft_length", "dtype", "vocabulary", "blocks_per_shard", "tokenizer", "source", "shards")
        if key not in manifest
    ]
    if missing:
        msg = f"{path} lacks {missing[0]!r}"
        raise TraceError(msg)
    return manifest
