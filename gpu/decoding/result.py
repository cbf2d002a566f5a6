"""What live decoding wrote, round by round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from fly_theory.blocks import BlockRule
from gpu.decoding.rounds import Round
from gpu.prompts import Prompt
from gpu.replaying.estimates import Estimate, clustered_mean
from gpu.settings import DecodeSettings

__all__ = ["Continuation", "Decoding"]


@dataclass(frozen=True)
class Continuation:
    """What followed one prompt.

    Attributes
    ----------
    prompt, prompt_ids
        The prompt, and its token ids as the models read them.
    text, ids
        The continuation; an end-of-sequence token is the last of the ids, and not in the text.
    pieces
        What each token adds to the text.
    rounds
        Every round, in order.
    """

    prompt: Prompt
    prompt_ids: tuple[int, ...]
    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    rounds: tuple[Round, ...]

    @property
    def ending(self) -> str:
        """Why the text ends: `end of sequence`, `stop text` or `length`."""
        return str(self.rounds[-1].ending)

    @property
    def calls(self) -> int:
        """Calls of the target."""
        return sum(done.calls for done in self.rounds)

    @property
    def accepted(self) -> int:
        """How many of the tokens are drafts."""
        return sum(done.accepted for done in self.rounds)

    @property
    def tokens_per_call(self) -> float:
        """Tokens of the text over calls of the target."""
        return len(self.ids) / self.calls

    @property
    def accepted_per_call(self) -> float:
        """Draft tokens in the text over calls of the target."""
        return self.accepted / self.calls

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "prompt": asdict(self.prompt),
            "prompt_ids": self.prompt_ids,
            "text": self.text,
            "ids": self.ids,
            "ending": self.ending,
            "target_calls": self.calls,
            "rounds": [asdict(done) for done in self.rounds],
        }


@dataclass(frozen=True)
class Decoding:
    """The continuations of all prompts, and how many tokens a target call yielded.

    Figures are pooled over all rounds, with cluster-robust Student intervals over the prompts; there is none for a
    single prompt.

    Attributes
    ----------
    rule, settings
        What decided, and how.
    continuations
        One a prompt.
    provenance
        Versions, command line, device, and what identifies the models.
    """

    rule: BlockRule
    settings: DecodeSettings
    continuations: tuple[Continuation, ...]
    provenance: Mapping[str, Any]

    def __iter__(self) -> Iterator[Continuation]:
        return iter(self.continuations)

    def __len__(self) -> int:
        return len(self.continuations)

    def __getitem__(self, number: int) -> Continuation:
        return self.continuations[number]

    @property
    def tokens_per_call(self) -> Estimate:
        """Tokens of the texts over calls of the target; the last round of a text may be cut by its end."""
        return self._mean(lambda text: (len(text.ids), text.calls))

    @property
    def accepted_per_call(self) -> Estimate:
        """Draft tokens in the texts over calls of the target."""
        return self._mean(lambda text: (text.accepted, text.calls))

    @property
    def kept_per_round(self) -> Estimate:
        """Drafts that the rule keeps in a round, also those after the end of the text: what replay estimates."""
        return self._mean(lambda text: (sum(done.kept for done in text.rounds), len(text.rounds)))

    def _mean(self, count: Callable[[Continuation], tuple[int, int]]) -> Estimate:
        mean, low, high = clustered_mean([(Fraction(total), n) for total, n in map(count, self)])
        return Estimate(mean, low, high, finite_mean=mean)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        names = ("tokens_per_call", "accepted_per_call", "kept_per_round")
        figures: dict[str, Estimate] = {name: getattr(self, name) for name in names}
        return {
            "rule": self.rule.spec,
            "settings": asdict(self.settings),
            "figures": {name: {"mean": e.mean, "interval": e.to_json()["interval"]} for name, e in figures.items()},
            "continuations": [text.to_json() for text in self],
            "provenance": dict(self.provenance),
        }
