"""Replay on draft trees: against exact laws, against the replay of blocks, and what it says and refuses."""

import itertools
import json
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet
from torch.utils._python_dispatch import TorchDispatchMode
from typer.testing import CliRunner

import fly_theory as ft
import gpu
from fly_theory.cli import application
from fly_theory.errors import InvalidInput, UnknownName
from fly_theory.pairs import Pair
from fly_theory.trees import branching, chain, expand, expected_lengths, position_law
from gpu.trace import TraceTree
from tests.gpu import replay_traces as blocks

V = 6
SOURCE = {"settings": {"temperature": 1.0, "context_temperature": 1.0}}
DETERMINISTIC = (
    "lossless",
    "lenience:l=0.5",
    "min-p:base=0.3",
    "typical:eps=0.2,delta=0.6",
    "sample-match:n=1",
    "traversal",
    "greedy-path",
    "threshold-walk:single=0.6,acc=0.75",
    "typical-path:eps=0.2,delta=0.6",
    "fly-tree:theta=0.5,window=1",
)


def logits(rows: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.log(rows))


def tree_after(pair: Pair, context: int, tokens: list[int], parents: tuple[int, ...]) -> TraceTree:
    """Drafted tokens in a context of the pair, with its rows."""
    at = [context]
    for token, parent in zip(tokens, parents, strict=True):
        at.append(int(pair.successor[at[parent], token]))
    return TraceTree(
        target_logits=logits(pair.target[at]),
        draft_logits=logits(pair.draft[[at[node] for node in sorted(set(parents))]]),
        tokens=torch.tensor(tokens),
        parents=torch.tensor(parents),
        prompt=context % 3,
    )


def most_probable(pair: Pair, context: int, parents: tuple[int, ...]) -> TraceTree:
    """The tree whose siblings are the draft's most probable tokens in order."""
    at, tokens = [context], []
    for node, parent in enumerate(parents, start=1):
        rank = parents[: node - 1].count(parent)
        tokens.append(int(np.argsort(-pair.draft[at[parent]], kind="stable")[rank]))
        at.append(int(pair.successor[at[parent], tokens[-1]]))
    return tree_after(pair, context, tokens, parents)


def replay(
    folder: Path, trees: list[TraceTree], rules: tuple[str, ...], drawing: str = "deterministic"
) -> gpu.TreeReplay:
    gpu.write_trees(folder, trees, drawing=drawing, source=SOURCE)
    return gpu.replay(folder, rules, dtype="float64")


# -- against exact laws ------------------------------------------------------------------------------------------------


def test_top_k_trees_are_the_exact_law(tmp_path: Path) -> None:
    """A tree in every context of a pair: the mean over contexts, of the first token as of all that is kept.

    1e-6: the trace holds logits in float32.
    """
    target, draft = np.random.default_rng(4).dirichlet(np.full(4, 0.7), (2, 4))
    pair, parents, contexts = ft.MarkovPair(target, draft, np.eye(4)[0]), (0, 0, 1, 1, 2, 3), range(4)
    found = replay(tmp_path, [most_probable(pair, c, parents) for c in contexts], DETERMINISTIC)
    for spec in DETERMINISTIC:
        rule, kept, tv, reverse = ft.tree_rule(spec), [], [], []
        for context in contexts:
            start = ft.MarkovPair(target, draft, np.eye(4)[context])
            kept.append(float(expected_lengths(rule, start, parents, drawing="deterministic").kept))
            p, q = target[context], draft[context]
            # What is below the first position changes which of its candidates are kept by rules that look ahead.
            first = (
                position_law(rule, p, q, 2, drawing="deterministic").induced
                if isinstance(rule, ft.trees.Walk)
                else ft.trees.joint_law(rule, start, parents, 1, drawing="deterministic")
            )
            tv.append(np.abs(p - first).sum() / 2)
            reverse.append(ft.divergence.reverse_kl(p, first))
        result = found[spec]
        assert result["tokens_per_call"].mean == pytest.approx(1 + np.mean(kept), abs=1e-6)
        assert result["tv"].mean == pytest.approx(np.mean(tv), abs=1e-6)
        assert result["reverse_kl"].mean == pytest.approx(np.mean(reverse), abs=1e-5)
    assert found["lossless"]["tv"].mean < 1e-12


@pytest.mark.parametrize(
    ("drawing", "specs"),
    [
        (
            "with-replacement",
            ("lossless", "lenience:l=0.5", "min-p:base=0.3", "traversal", "k-seq", "cactus:delta=0.1"),
        ),
        ("without-replacement", ("lossless", "lenience:l=0.5", "min-p:base=0.3", "traversal")),
    ],
)
def test_drawn_trees_in_the_numbers_in_which_they_are_drawn(tmp_path: Path, drawing: str, specs: tuple) -> None:
    """Every tree as often as its probability says, in sixty-fourths: means over the trace are the exact ones."""
    quarters = np.array([[1, 3], [2, 2]]) / 4
    pair = ft.MarkovPair(np.array([[0.7, 0.3], [0.4, 0.6]]), quarters, np.array([1.0, 0.0]))
    parents = (0, 0, 1)
    trees = []
    for tokens in itertools.product(range(2), repeat=3):
        tree = tree_after(pair, 0, list(tokens), parents)
        q = [quarters[0], quarters[0] if drawing == "with-replacement" else np.eye(2)[1 - tokens[0]]]
        q.append(quarters[int(pair.successor[0, tokens[0]])])
        probability = np.prod([law[token] for law, token in zip(q, tokens, strict=True)])
        trees += [tree] * round(64 * probability)
    assert len(trees) == 64
    found = replay(tmp_path, trees, specs, drawing)
    for spec in specs:
        rule, result = ft.tree_rule(spec), found[spec]
        lengths = expected_lengths(rule, pair, parents, drawing=drawing)
        assert result["tokens_per_call"].mean == pytest.approx(1 + float(lengths.kept), abs=1e-6)
        assert result["first_kept"].mean == pytest.approx(1 - float(lengths.law[0]), abs=1e-6)
        if drawing == "with-replacement" and spec in ("lossless", "lenience:l=0.5", "min-p:base=0.3"):
            law = position_law(rule, pair.target[0], pair.draft[0], 2, drawing=drawing).induced
            assert result["tv"].mean == pytest.approx(np.abs(law - pair.target[0]).sum() / 2, abs=1e-6)
        else:
            assert result["tv"] is None
            assert "no closed form" in result.notes[0]


def test_allowed_candidates_point_masses_and_the_matched_target(tmp_path: Path) -> None:
    """Counted tree by tree: with a candidate allowed the output is a point mass, and the target's law otherwise."""
    pair = ft.ContextTreePair.random(V, 1, 9)
    trees = [most_probable(pair, c, branching([2, 2])) for c in range(pair.contexts)]
    rule = ft.rule("min-p:base=0.6")
    found, matched = replay(tmp_path, trees, ("min-p:base=0.6", "truncated-min-p:base=0.6"))
    allowed, tv, lossless = [], [], []
    for context, tree in enumerate(trees):
        p = pair.target[context]
        inside = rule.allowed_set(p)
        children = tree.tokens[:2].tolist()
        allowed.append(int(inside[children].sum()))
        truncated = np.where(inside, p, 0) / p[inside].sum()
        out = next((np.eye(V)[x] for x in children if inside[x]), p)
        tv.append(np.abs(truncated - out).sum() / 2)
        kept = 0.0
        for child, token in enumerate(children, start=1):
            row = pair.target[int(pair.successor[context, token])]
            below = rule.matched_target(row)[
                [int(x) for x, parent in zip(tree.tokens, tree.parents, strict=True) if parent == child]
            ]
            kept += truncated[token] * (1 + below.sum())
        lossless.append(1 + kept)
    assert 0 < sum(count > 0 for count in allowed) < len(allowed)
    assert found["children_allowed"].mean == pytest.approx(np.mean(allowed))
    assert found["any_allowed"].mean == found["collapsed"].mean == pytest.approx(np.mean([n > 0 for n in allowed]))
    assert found.matched["tv"].mean == pytest.approx(np.mean(tv), abs=1e-6)
    assert found.baseline["tokens_per_call"].mean == pytest.approx(np.mean(lossless), abs=1e-6)
    assert matched["tokens_per_call"].mean == pytest.approx(np.mean(lossless), abs=1e-6)
    assert matched.matched["tv"].mean < 1e-12


# -- against the replay of blocks --------------------------------------------------------------------------------------


def chains(folder: Path, k: int) -> tuple[Path, Path]:
    """One trace twice: as blocks, and as trees in which every node has one child."""
    made = list(blocks.blocks(9, k=k))
    trees = [
        TraceTree(b.target_logits, b.draft_logits, b.tokens, torch.tensor(chain(k)), b.context, b.prompt, b.position)
        for b in made
    ]
    return (
        gpu.write_trace(folder / "blocks", made, source=SOURCE),
        gpu.write_trees(folder / "trees", trees, drawing="with-replacement", source=SOURCE),
    )


def test_where_every_node_has_one_child_trees_are_blocks(tmp_path: Path) -> None:
    as_blocks, as_trees = chains(tmp_path, 4)
    expected, found = (gpu.replay(folder, blocks.SPECS, dtype="float64") for folder in (as_blocks, as_trees))
    for spec in blocks.SPECS:
        for name in ("tokens_per_call", "accepted_per_call", "gain_over_lossless"):
            ours, theirs = found[spec][name], expected[spec][name]
            for part in ("mean", "low", "high"):
                assert getattr(ours, part) == pytest.approx(getattr(theirs, part), abs=1e-12), (spec, name)
    assert found["min-p:base=0.2"].baseline["tokens_per_call"].mean == pytest.approx(
        expected["min-p:base=0.2"].baseline["tokens_per_call"].mean, abs=1e-12
    )


def test_the_law_of_one_candidate_is_that_of_a_token(tmp_path: Path) -> None:
    as_blocks, as_trees = chains(tmp_path, 1)
    expected, found = (gpu.replay(folder, blocks.SPECS, dtype="float64") for folder in (as_blocks, as_trees))
    for spec in blocks.SPECS:
        for name in ("tv", "kl", "reverse_kl", "js", "max_ratio", "argmax_flip", "outside_support"):
            assert found[spec][name].mean == pytest.approx(expected[spec][name].mean, abs=1e-12), (spec, name)
        if expected[spec].matched is not None:
            assert found[spec].matched["tv"].mean == pytest.approx(expected[spec].matched["tv"].mean, abs=1e-12)
            assert found[spec].baseline["tv"].mean == pytest.approx(expected[spec].baseline["tv"].mean, abs=1e-12)


# -- running -----------------------------------------------------------------------------------------------------------


class Rows(TorchDispatchMode):
    """The most arrays with a row for every node, of at least float32, that are alive at once."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.most, self.alive = size, 0, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for made in found if isinstance(found, tuple | list) else (found,):
            if isinstance(made, torch.Tensor) and made.numel() >= self.size and made.element_size() >= 4:
                self.alive.append(weakref.ref(made))
        arrays = [array for array in (reference() for reference in self.alive) if array is not None]
        self.alive = [reference for reference in self.alive if reference() is not None]
        self.most = max(self.most, len({array.untyped_storage().data_ptr() for array in arrays}))
        return found


@pytest.mark.parametrize("drawing", ["deterministic", "with-replacement"])
def test_rows_of_all_nodes_are_held_twice_at_most(tmp_path: Path, drawing: str) -> None:
    pair = ft.ContextTreePair.random(V, 1, 4)
    trees = [most_probable(pair, c, branching([3, 2, 2])) for c in range(3)]
    gpu.write_trees(tmp_path, trees, drawing=drawing, source=SOURCE, dtype="float16")
    with Rows(size=22 * V) as rows:
        gpu.replay(tmp_path, ("lossless", "min-p:base=0.3", "typical", "traversal"))
    assert rows.most == (1 if drawing == "deterministic" else 2)


def test_siblings_drawn_from_another_law_identify_no_tokens_per_call(tmp_path: Path) -> None:
    _, folder = chains(tmp_path, 3)
    found = gpu.replay(folder, ["lossless", "min-p:base=0.2"], temperature=0.5)
    assert found["lossless"]["tokens_per_call"] is None
    assert "this replay is at temperature 0.5" in found.notes[0]
    pair = ft.ContextTreePair.random(V, 1, 4)
    gpu.write_trees(tmp_path / "top", [most_probable(pair, 0, (0, 0))], drawing="deterministic", source=SOURCE)
    assert gpu.replay(tmp_path / "top", ["lossless"], temperature=0.5)["lossless"]["tokens_per_call"].mean > 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EAGLE-style trees, whose topologies differ."""
    pair = ft.ContextTreePair.random(V, 2, 3)
    trees = []
    for context in range(8):
        at = {(): context}

        def law(path: tuple[int, ...], at: dict = at) -> np.ndarray:
            if path:
                at[path] = int(pair.successor[at[path[:-1]], path[-1]])
            return pair.draft[at[path]]

        drafted = expand(law, top_k=3, depth=3, total=8)
        trees.append(tree_after(pair, context, drafted.tokens.tolist(), drafted.parents))
    return gpu.write_trees(tmp_path_factory.mktemp("trees") / "trace", trees, drawing="deterministic", source=SOURCE)


def test_the_files_of_a_replay(folder: Path, tmp_path: Path) -> None:
    rules = ["lossless", "min-p:base=0.3", "typical-path"]
    found = gpu.replay(folder, rules, out=tmp_path / "out")
    assert isinstance(found, gpu.TreeReplay)
    document = json.loads((tmp_path / "out/results.json").read_text())
    assert document["schema"] == "fly-theory-tree-replay/1"
    assert document["rules"][1]["figures"]["tv"]["mean"] == found["min-p:base=0.3"]["tv"].mean
    rows = parquet.read_table(tmp_path / "out/results.parquet").to_pylist()
    assert [row["rule"] for row in rows] == [result.spec for result in found]
    assert rows[1]["baseline_tokens_per_call"] == found["min-p:base=0.3"].baseline["tokens_per_call"].mean
    page = (tmp_path / "out/report.html").read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert f"{found['min-p:base=0.3']['tokens_per_call'].mean:.2f}" in page
    with pytest.raises(InvalidInput, match="is not empty"):
        gpu.replay(folder, rules, out=tmp_path / "out")


def test_the_command(folder: Path) -> None:
    result = CliRunner().invoke(application(), ["replay", str(folder), "lossless", "min-p:base=0.3", "traversal"])
    assert result.exit_code == 0, result.output
    found = gpu.replay(folder, ["lossless", "min-p:base=0.3", "traversal"])
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert f"{found['traversal']['tokens_per_call'].mean:.2f}" in lines["traversal"]
    assert "lossless for p_A" in result.stdout
    assert "8 trees of 8 draft tokens" in result.stdout


@pytest.mark.parametrize(
    ("rules", "options", "error", "message"),
    [
        ([], {}, InvalidInput, "rules is empty"),
        (["lossless", "lossless"], {}, InvalidInput, "lossless twice"),
        (["k-seq"], {}, InvalidInput, "k-seq verifies siblings drawn with-replacement; those of this trace are determ"),
        (["block"], {}, UnknownName, r"'block' is a block-level rule; use ft\.block_rule"),
        ([ft.block_rule("block")], {}, InvalidInput, "on a trace of draft trees, rules are tree rules"),
        (["lossless"], {"workers": 2, "tail": 0.01}, InvalidInput, "of which replay knows no tail and no workers"),
        (["lossless"], {"sweeps": ["lenience:l=0.2:1:0.4"]}, InvalidInput, "of which replay knows no sweeps"),
        (["lossless"], {"modes": ["argmax_flips"]}, InvalidInput, "of which replay knows no modes"),
    ],
)
def test_what_is_refused(folder: Path, rules: list, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gpu.replay(folder, rules, **options)
