"""Real model pairs: capture their logits into a trace, replay verification rules on it, decode with them live (torch).

The names below are imported on first use, so that `import gpu` needs neither torch nor transformers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fly_theory.errors import MissingExtra

if TYPE_CHECKING:
    from gpu.capturing import capture as capture
    from gpu.decoding.generating import speculative_generate as speculative_generate
    from gpu.decoding.result import Decoding as Decoding
    from gpu.decoding.run import decode as decode
    from gpu.draft_sources import compare_sources as compare_sources
    from gpu.importing import import_logprobs as import_logprobs
    from gpu.replaying import Replay as Replay
    from gpu.replaying import TreeReplay as TreeReplay
    from gpu.replaying import replay as replay
    from gpu.trace import TopKBlock as TopKBlock
    from gpu.trace import TopKTrace as TopKTrace
    from gpu.trace import Trace as Trace
    from gpu.trace import TraceBlock as TraceBlock
    from gpu.trace import TraceTree as TraceTree
    from gpu.trace import TreeTrace as TreeTrace
    from gpu.trace import open_trace as open_trace
    from gpu.trace import reshard as reshard
    from gpu.trace import truncate_trace as truncate_trace
    from gpu.trace import write_trace as write_trace
    from gpu.trace import write_trees as write_trees

# Public name -> the module that holds it. A module may not carry the name of something exported here: importing it
# would replace the function by the module.
_EXPORTS = {
    "capture": "gpu.capturing",
    "compare_sources": "gpu.draft_sources",
    "decode": "gpu.decoding.run",
    "import_logprobs": "gpu.importing",
    "Decoding": "gpu.decoding.result",
    "speculative_generate": "gpu.decoding.generating",
    "Replay": "gpu.replaying",
    "TreeReplay": "gpu.replaying",
    "replay": "gpu.replaying",
    "TopKBlock": "gpu.trace",
    "TopKTrace": "gpu.trace",
    "Trace": "gpu.trace",
    "TraceBlock": "gpu.trace",
    "TraceTree": "gpu.trace",
    "TreeTrace": "gpu.trace",
    "open_trace": "gpu.trace",
    "reshard": "gpu.trace",
    "truncate_trace": "gpu.trace",
    "write_trace": "gpu.trace",
    "write_trees": "gpu.trace",
}

# Those that run models.
_NEED_MODELS = ("capture", "decode", "speculative_generate")

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        msg = f"module 'gpu' has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        value = getattr(import_module(_EXPORTS[name]), name)
    except ModuleNotFoundError as error:
        extra = "capture" if name in _NEED_MODELS else "replay"
        msg = f"gpu.{name} needs the package {error.name!r}; install it with: pip install 'fly-theory[{extra}]'"
        raise MissingExtra(msg) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
