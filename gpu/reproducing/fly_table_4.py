"""FLy, Table 4 on a real trace: window, threshold and draft length, under the paper's gate and the released one."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from fly_theory import published, renewal
from fly_theory.blocks import Block
from fly_theory.entropies import normalised_entropy, top_k_entropy
from fly_theory.figures import ONE_COLUMN, SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.registry import block_rule
from fly_theory.reproduce.item import Compared, Finding, Item
from gpu.reproducing.real_traces import block_of, greedy_trace, read_off

if TYPE_CHECKING:
    from gpu.trace import Trace

__all__ = ["ITEM", "SETTINGS", "Gates", "Setting", "spec", "tokens_a_round"]

GATES = {"paper": "gate of the paper", "released": "gate of the released code"}
_THETA, _WINDOW, _DRAFT_LENGTH = 0.3, 6, 15
_AXES = {"W": "window $W$", "theta": "threshold $\\theta$", "K": "draft length $K$"}


@dataclass(frozen=True)
class Setting:
    """A row of Table 4: which hyperparameter it varies, and all three."""

    varied: str
    theta: float = _THETA
    window: int = _WINDOW
    draft_length: int = _DRAFT_LENGTH

    @property
    def value(self) -> float:
        """The value of the hyperparameter that is varied."""
        return {"W": self.window, "theta": self.theta, "K": self.draft_length}[self.varied]


SETTINGS = (
    *(Setting("W", window=window) for window in (0, 4, 6, 8)),
    *(Setting("theta", theta=theta) for theta in (0, 0.3, 0.6, 1)),
    *(Setting("K", draft_length=length) for length in (10, 15, 20, 25)),
)


def spec(setting: Setting, gate: str) -> str:
    """The rule of a setting; without a window, every mismatch whose gate is open is kept."""
    if gate == "paper":
        return f"fly:theta={setting.theta:g},window={setting.window}"
    if setting.window == 0:
        return f"fly-released:theta={setting.theta:g},window={_WINDOW},no_window=true"
    return f"fly-released:theta={setting.theta:g},window={setting.window}"


def tokens_a_round(block: Block, rule: str) -> int:
    """Tokens of a round: the drafts that are kept and the correction or bonus token."""
    return 1 + int(block_rule(rule).trace(block).kept.sum())


@dataclass(frozen=True)
class Gates:
    """What both gates read at the mismatches of a trace, and the share of drafts that match."""

    match: float
    normalised: np.ndarray
    top3: np.ndarray

    @property
    def opened(self) -> dict[str, float]:
        """Share of mismatches at which each gate is open at theta = 0.3."""
        return {"paper": float((self.normalised >= _THETA).mean()), "released": float((self.top3 >= _THETA).mean())}


def find() -> Finding:
    """Decide every block of a greedy trace at the settings of Table 4, under both gates."""
    return read_off(greedy_trace, decided)


def decided(trace: "Trace") -> Finding:
    """Tokens a round at every setting beside Table 4, and what the gates read."""
    lengths, gates = _measured(block_of(captured) for captured in trace)
    tau = {(row["hyperparameter"], row["value"]): row["tau"] for row in published.table("fly_table4_ablation")}
    fitted = renewal.fit(renewal.fly_table4())
    values = [
        Compared("probability that a draft matches; published: fitted to Table 4", fitted.match, gates.match),
        *(
            Compared(f"{GATES[gate]} open at a mismatch; published: fitted to Table 4", fitted.gate, opened)
            for gate, opened in gates.opened.items()
        ),
    ]
    for setting in SETTINGS:
        for gate in GATES:
            where = f"{setting.varied} = {setting.value:g}, {GATES[gate]}"
            ours = lengths[setting, gate]
            values.append(Compared(f"{where}: tokens a round", tau[setting.varied, setting.value], ours))
            values.append(Compared(f"{where}: the renewal model", None, _modelled(setting, gate, gates)))
    base, shut = Setting("W"), Setting("theta", theta=1)
    strict, paper, released = lengths[shut, "paper"], lengths[base, "paper"], lengths[base, "released"]
    why = (
        f"{len(trace)} greedy blocks of K = {trace.draft_length}, cut to K, from SmolLM2-135M-Instruct and the same "
        "model less one layer, of eight such drafts the closest to it: drafts match at "
        f"{gates.match:.0%} of positions against the {fitted.match:.0%} fitted to the published "
        "lengths, so directions compare and sizes do not. Directions are as published everywhere: "
        "tokens a round never rise with W or theta and never fall with K, which holds block by block. At theta = 0.3 "
        f"and W = 6, strict verification makes {strict:.2f} tokens a round, the paper's gate {paper:.2f} and the "
        f"released one {released:.2f}. At mismatches the paper's gate is open in {gates.opened['paper']:.0%}, the "
        f"released one in {gates.opened['released']:.0%}; the published gains ask for {fitted.gate:.0%}: they are "
        "those of the released gate. The renewal model with this trace's own match and gate probabilities is beside "
        "each length; it takes matches as independent, and real mismatches come in clusters."
    )
    figures = {"trends": _trends(lengths, tau), "gates": _drawn_gates(gates)}
    return Finding("explained", why, values, figures)


def _measured(blocks: Iterable[Block]) -> tuple[Mapping[tuple[Setting, str], float], Gates]:
    lengths: dict[tuple[Setting, str], list[int]] = defaultdict(list)
    matches, normalised, top3 = [], [], []
    for block in blocks:
        known: dict[tuple[str, int], int] = {}
        for setting in SETTINGS:
            length = min(setting.draft_length, block.draft_length)
            cut = Block(block.target[: length + 1], block.draft[:length], block.tokens[:length])
            for gate in GATES:
                rule = spec(setting, gate)
                if (rule, length) not in known:
                    known[rule, length] = tokens_a_round(cut, rule)
                lengths[setting, gate].append(known[rule, length])
        match = block.judging.argmax(axis=-1) == block.tokens
        matches.append(match)
        normalised.append(normalised_entropy(block.judging[~match]))
        top3.append(top_k_entropy(block.judging[~match], 3))
    gates = Gates(float(np.concatenate(matches).mean()), np.concatenate(normalised), np.concatenate(top3))
    return {key: float(np.mean(rounds)) for key, rounds in lengths.items()}, gates


def _modelled(setting: Setting, gate: str, gates: Gates) -> float:
    opened = 1.0 if setting.theta == 0 else float((_statistic(gates, gate) >= setting.theta).mean())
    following = setting.window - 1 if gate == "released" and setting.window else None
    return float(
        renewal.expected_tokens(gates.match, opened, setting.window, setting.draft_length, following=following)
    )


def _statistic(gates: Gates, gate: str) -> np.ndarray:
    return gates.normalised if gate == "paper" else gates.top3


def _trends(lengths: Mapping[tuple[Setting, str], float], tau: Mapping[tuple[str, float], float]) -> Figure:
    def panel(of: Callable[[Setting], float], varied: str) -> tuple[Sequence[float], Sequence[float]]:
        chosen = [setting for setting in SETTINGS if setting.varied == varied]
        return [setting.value for setting in chosen], [of(setting) for setting in chosen]

    with style():
        figure = new_figure(TWO_COLUMNS, 3.4)
        rows = figure.subplots(2, len(_AXES), sharex="col", sharey="row")
        for (varied, label), above, below in zip(_AXES.items(), *rows, strict=True):
            above.plot(*panel(lambda s: tau[s.varied, s.value], varied), "o-", color="black", label="published")
            for gate, colour, marker in (("paper", SERIES[0], "s-"), ("released", SERIES[1], "D-")):
                series = panel(lambda s, gate=gate: lengths[s, gate], varied)
                below.plot(*series, marker, color=colour, label=GATES[gate])
            below.set_xlabel(label)
            below.set_xticks(panel(lambda s: s.value, varied)[0])
        rows[0][0].set_ylabel("8B drafts for 70B")
        rows[1][0].set_ylabel("our small pair")
        rows[0][0].legend()
        rows[1][0].legend()
        figure.supylabel("tokens a round", fontsize=8)
    return figure


def _drawn_gates(gates: Gates) -> Figure:
    with style():
        figure = new_figure(ONE_COLUMN, 1.9)
        axes = figure.subplots(1, 2, sharey=True)
        panels = (
            ("paper", "entropy of $p$ over $\\log V$", 1.0, SERIES[0]),
            ("released", "entropy of the top 3, nats", float(np.log(3)), SERIES[1]),
        )
        for ax, (gate, label, largest, colour) in zip(axes, panels, strict=True):
            ax.hist(_statistic(gates, gate), bins=20, range=(0, largest), color=colour, alpha=0.8)
            ax.axvline(_THETA, color="black", linewidth=0.9, linestyle="--")
            ax.set_title(f"open at {gates.opened[gate]:.0%}", loc="right")
            ax.set(xlabel=label, xlim=(0, largest), xticks=(0, 0.5, 1))
        axes[0].set_ylabel("mismatches")
    return figure


ITEM = Item("fly-table-4", "Window, threshold and draft length on real text", "FLy, Table 4 on a real trace", find)
