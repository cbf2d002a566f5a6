"""Draft sources: hand-worked cases of every convention, naive oracles beside them, and what a comparison adds up to."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from typer.testing import CliRunner

import gpu
from fly_theory import cost
from fly_theory.errors import InvalidInput, ParameterError, TraceError, UnknownName
from gpu import TraceBlock, write_trace
from gpu.draft_sources.base import DraftSource, accepted_tokens
from gpu.draft_sources.comparison import RECORDED, TWO_LEVELS
from gpu.draft_sources.datastore import Datastore, suffix_array
from gpu.draft_sources.multi_level import DrafterCalls, drafter_calls, fitted
from gpu.draft_sources.prompt_lookup import FlyLookup, OriginalLookup, PromptLookup, TransformersLookup
from gpu.draft_sources.rest import Rest
from gpu.draft_sources.texts import Text, read_texts
from gpu.draft_sources.token_recycling import TREE, TokenRecycling
from gpu.draft_sources.walking import Call, walk
from gpu.sources_cli import sources
from tests.gpu import tiny_models

Likeliest = dict[int, tuple[int, ...]]

tokens = st.integers(0, 2)
contexts = st.lists(tokens, min_size=1, max_size=24)
sizes = st.integers(1, 5)


def array(*ids: int) -> np.ndarray:
    return np.array(ids, dtype=np.int64)


def text(
    ids: Sequence[int], start: int, *, prompt: int = 0, likeliest: dict[int, tuple[int, ...]] | None = None
) -> Text:
    return Text(prompt, str(prompt), array(*ids), start, likeliest or {})


# -- prompt lookup -----------------------------------------------------------------------------------------------------


def lookup_by_hand(
    context: list[int], longest: int, length: int, qualifies: Callable[[int, int, int], bool]
) -> list[int] | None:
    """The first copy whose beginning, after an occurrence of the last n tokens, qualifies."""
    for n in range(longest, 0, -1):
        if n > len(context):
            continue
        for begin in range(n, len(context) + 1):
            if context[begin - n : begin] == context[len(context) - n :] and qualifies(begin, n, len(context)):
                return context[begin : begin + length]
    return None


@given(contexts, sizes, sizes)
def test_the_original_convention_asks_for_a_whole_copy_that_is_not_the_suffix(
    context: list[int], longest: int, length: int
) -> None:
    expected = lookup_by_hand(
        context, longest, length, lambda begin, n, size: begin + length <= size and begin < size - n
    )
    found = OriginalLookup(longest=longest, length=length).draft(array(*context))
    assert found == ([] if expected is None else [tuple(expected)])


@given(contexts, sizes, sizes)
def test_the_convention_of_fly_leaves_the_last_ngram_out(context: list[int], longest: int, length: int) -> None:
    expected = lookup_by_hand(context, longest, length, lambda begin, n, size: begin <= size - n)
    found = FlyLookup(longest=longest, length=length).draft(array(*context))
    assert found == ([] if expected is None else [tuple(expected)])


@given(contexts, sizes, sizes, st.sets(tokens, max_size=1))
def test_the_convention_of_transformers_is_its_own(
    context: list[int], longest: int, length: int, stop: set[int]
) -> None:
    theirs = PromptLookupCandidateGenerator(
        eos_token_id=torch.tensor(sorted(stop)) if stop else None,
        num_output_tokens=length,
        max_matching_ngram_size=longest,
        max_length=1000,
    )
    candidates, _ = theirs.get_candidates(torch.tensor([context]))
    copy = tuple(candidates[0, len(context) :].tolist())
    found = TransformersLookup(longest=longest, length=length, stop=frozenset(stop)).draft(array(*context))
    assert found == ([copy] if copy else [])


@pytest.mark.parametrize(
    ("context", "original", "transformers", "fly"),
    [
        # (5, 7) occurs at 0; two tokens follow it before the text's last n-gram.
        ([5, 7, 1, 2, 5, 7], (1, 2), (1, 2, 5), (1, 2, 5)),
        # The pair (4, 4) occurs before, but shares a token with the last pair: only transformers takes that; the copy
        # after it has one token, too few for the original. Both others come to the single token 4.
        ([9, 4, 4, 4], (4, 4), (4,), (4, 4)),
        # A copy may take in the last n-gram, and the original wants all of its two tokens.
        ([1, 8, 1], (8, 1), (8, 1), (8, 1)),
        ([8, 1, 1], None, (1,), (1,)),
        # Nothing occurs twice.
        ([1, 2, 3], None, None, None),
    ],
)
def test_hand_worked_lookups(
    context: list[int], original: tuple[int, ...] | None, transformers: tuple[int, ...] | None, fly: Any
) -> None:
    for lookup, expected in (
        (OriginalLookup(longest=2, length=2), original),
        (TransformersLookup(longest=2, length=3), transformers),
        (FlyLookup(longest=2, length=3), fly),
    ):
        assert lookup.draft(array(*context)) == ([] if expected is None else [expected]), lookup


def test_a_copy_of_transformers_ends_before_a_stop_token_and_may_be_empty() -> None:
    context = array(6, 1, 0, 2, 6)
    assert TransformersLookup(stop=frozenset({0})).draft(context) == [(1,)]
    assert TransformersLookup(stop=frozenset({1})).draft(context) == []
    assert FlyLookup().draft(context) == [(1, 0, 2, 6)]


@pytest.mark.parametrize(
    ("lookup", "longest", "length"), [(OriginalLookup, 3, 10), (TransformersLookup, 2, 10), (FlyLookup, 4, 6)]
)
def test_released_settings(lookup: type[PromptLookup], longest: int, length: int) -> None:
    assert (lookup().longest, lookup().length) == (longest, length)
    with pytest.raises(InvalidInput, match="length=0"):
        lookup(length=0)


# -- the datastore and REST --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=40))
def test_a_suffix_array_is_the_sorted_suffixes(ids: list[int]) -> None:
    assert suffix_array(np.array(ids)).tolist() == sorted(range(len(ids)), key=lambda i: ids[i:])


def continuations_by_hand(documents: list[list[int]], query: list[int], length: int) -> list[tuple[int, ...]]:
    found = []
    for document in documents:
        for begin in range(len(document) - len(query) + 1):
            if document[begin : begin + len(query)] == query:
                found.append(tuple(document[begin + len(query) : begin + len(query) + length]))
    return [after for after in found if after]


documents = st.lists(st.lists(tokens, min_size=1, max_size=12), min_size=1, max_size=4)


@given(documents, st.lists(tokens, min_size=1, max_size=4), sizes)
def test_the_datastore_finds_everything_that_followed(store: list[list[int]], query: list[int], length: int) -> None:
    found = Datastore(store).continuations(query, length=length, limit=5000)
    assert Counter(found) == Counter(continuations_by_hand(store, query, length))


def test_the_datastore_looks_at_the_first_hits_in_order() -> None:
    store = Datastore([[1, 3, 1, 2, 1], [1, 4]])
    assert store.continuations([1], length=1, limit=5000) == [(2,), (3,), (4,)]
    # The occurrence at the end of a document comes first and has no continuation.
    assert store.continuations([1], length=1, limit=2) == [(2,)]
    with pytest.raises(InvalidInput, match="holds no token"):
        Datastore([[]])


@given(documents, st.lists(tokens, min_size=1, max_size=20))
def test_rest_drafts_the_commonest_beginnings_of_the_longest_hit(store: list[list[int]], context: list[int]) -> None:
    found: list[tuple[int, ...]] = []
    for span in range(16, 1, -1):
        if span <= len(context) and not found:
            found = continuations_by_hand(store, context[-span:], 10)
    counts = Counter(after[:n] for after in found for n in range(1, len(after) + 1))
    drafted = Rest(lambda prompt: Datastore(store)).draft(array(*context), 0)
    assert len(drafted) == min(64, len(counts)) == len(set(drafted))
    assert sorted((counts[node] for node in drafted), reverse=True) == sorted(counts.values(), reverse=True)[:64]
    # A tree: every node's parent is there.
    assert all(len(node) == 1 or node[:-1] in drafted for node in drafted)


def test_rest_keeps_64_nodes() -> None:
    store = Datastore([[7, 7, first, second] for first in range(10, 60) for second in (1, 2)] + [[7, 7, 11, 1]])
    drafted = Rest(lambda prompt: store).draft(array(3, 7, 7), 0)
    # (11,) was seen three times; 49 single tokens and (11, 1) twice; of the pairs seen once there is room for 13.
    assert drafted[0] == (11,)
    assert [len(node) for node in drafted[1:50]] == [1] * 49
    assert drafted[50] == (11, 1)
    seen_once = sorted((first, second) for first in range(10, 60) for second in (1, 2) if (first, second) != (11, 1))
    assert drafted[51:] == seen_once[:13]


def test_no_text_finds_itself() -> None:
    texts = [text([1, 2, 3, 4, 5], 1, prompt=0), text([1, 2, 9], 1, prompt=1), text([8, 8, 8], 1, prompt=2)]
    rest = Rest.leaving_one_out(texts)
    assert rest.draft(array(1, 2), 0) == [(9,)]
    assert rest.draft(array(1, 2), 1) == [(3,), (3, 4), (3, 4, 5)]
    assert rest.draft(array(1, 2, 3), 0) == []
    assert rest.draft(array(8, 8), 2) == []


# -- TokenRecycling ----------------------------------------------------------------------------------------------------


def test_the_tree_is_the_released_one() -> None:
    assert len(TREE) == len(set(TREE)) == 80
    assert [sum(len(path) == depth for path in TREE) for depth in range(1, 8)] == [8, 21, 25, 15, 8, 3, 0]
    assert all(path[:-1] in TREE[:number] or len(path) == 1 for number, path in enumerate(TREE))


def test_token_recycling_by_hand() -> None:
    ranks = {1: (2, 3, 4, 5, 6, 7, 8, 9), 2: (5, 1, 0, 0, 0, 0, 0, 0)}
    source = TokenRecycling()
    assert set(source.draft(array(4, 1), 0)) == {(0,) * depth for depth in range(1, 7)}
    source.learn(text([1, 2, 9], 1, likeliest={1: ranks[1], 2: ranks[2], 3: (9,) * 8}), 1, 3)
    paths = dict(zip(TREE, source.draft(array(4, 1), 0), strict=True))
    assert [paths[(rank,)] for rank in range(8)] == [(token,) for token in ranks[1]]
    assert paths[(0, 0)] == (2, 5)
    assert paths[(0, 1, 0)] == (2, 1, 2)
    assert paths[(1, 0)] == (3, 0)
    # The last token written is the target's own; it has not been fed yet.
    assert {path[:1] for path in source.draft(array(9), 0)} == {(0,)}


def test_token_recycling_keeps_what_was_most_probable_last_and_skips_what_is_not_known() -> None:
    source = TokenRecycling()
    source.learn(text([1, 2, 1, 3], 1, likeliest={1: (2,) * 8, 3: (3, 4)}), 1, 4)
    assert source.draft(array(1), 0)[:3] == [(3,), (4,), (0,)]
    assert source.draft(array(2), 0)[0] == (0,)


# -- a source at work --------------------------------------------------------------------------------------------------


class Knowing(DraftSource):
    """Drafts the right continuation, as far as it is asked to, and a wrong one beside it."""

    name = "knowing"

    def __init__(self, ids: list[int], length: int) -> None:
        self._ids, self._length, self.learnt = ids, length, list[int]()

    def draft(self, context: np.ndarray, prompt: int) -> list[tuple[int, ...]]:
        ahead = self._ids[len(context) : len(context) + self._length]
        return [(99,), tuple(ahead)] if ahead else []

    def learn(self, of: Text, begin: int, end: int) -> None:
        self.learnt += of.tokens[begin:end].tolist()


@given(st.lists(tokens, min_size=2, max_size=30), st.integers(0, 6))
def test_a_walk_writes_the_text(ids: list[int], length: int) -> None:
    source = Knowing(ids, length)
    calls = walk(source, text(ids, 1))
    assert sum(call.written for call in calls) == len(ids) - 1
    assert len(calls) == math.ceil((len(ids) - 1) / (length + 1))
    assert source.learnt == ids[1:]
    assert all(call.written in (call.accepted, call.accepted + 1) for call in calls)


def test_a_walk_by_hand() -> None:
    """FLy's lookup on 1 2 3 | 1 2 3 1 2 3."""
    calls = walk(FlyLookup(), text([1, 2, 3, 1, 2, 3, 1, 2, 3], 3))
    # Nothing to copy; after 1 the copy 2 3 1, all of it right, and 2 from the target; after 3 1 2 the copy 3 1 2, of
    # which the text has one token left.
    assert calls == [Call(0, 0, 1), Call(3, 3, 4), Call(3, 1, 1)]


def test_the_calls_are_those_of_the_engine_of_transformers(tmp_path: Path) -> None:
    tokenizer = tiny_models.train_tokenizer()
    model = AutoModelForCausalLM.from_pretrained(tiny_models.save_llama(tmp_path, tokenizer, vocabulary=296))
    with torch.no_grad():
        # Nearly blind to what came before the last token, so that it repeats itself.
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight *= 0.02
            layer.mlp.down_proj.weight *= 0.02
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    model.register_forward_hook(count)
    saved = 0
    for prompt in tiny_models.TEXT:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        calls = 0
        settings = {"max_new_tokens": 60, "do_sample": False, "pad_token_id": 0}
        written = model.generate(ids, prompt_lookup_num_tokens=10, **settings)[0]
        ours = walk(TransformersLookup(stop=frozenset({0})), text(written.tolist(), ids.shape[1]))
        assert len(ours) == calls
        assert torch.equal(written, model.generate(ids, **settings)[0])
        saved += len(written) - ids.shape[1] - len(ours)
    assert saved > 20


def test_accepted_is_the_best_branch() -> None:
    assert accepted_tokens([(1, 2, 9), (1, 2, 3), (4,)], [1, 2, 3, 4]) == 3
    assert accepted_tokens([(1, 2, 3)], [1]) == 1
    assert accepted_tokens([], [1]) == 0


# -- two levels --------------------------------------------------------------------------------------------------------


def test_drafter_calls_by_hand() -> None:
    context = array(1, 2, 3, 4, 9)
    # 1 by itself; then (2, 3, 4, 9, 1) is copied, of which 2 and 3 are kept, and 7 is the drafter's own; then nothing
    # occurs before, so 8 takes a call.
    found = drafter_calls(FlyLookup(), context, array(1, 2, 3, 7, 8))
    assert found == DrafterCalls(calls=3, copies=1, kept=2, refused=1)


@pytest.mark.parametrize("length", [1, 6])
def test_copies_that_are_always_right_take_as_few_calls_as_the_cost_model_says(length: int) -> None:
    period = array(*range(10)).repeat(1)
    context, draft = np.concatenate([period, period]), np.concatenate([period, period])[:15]
    found = drafter_calls(FlyLookup(length=length), context, draft)
    model = fitted([found], length)
    assert model == cost.Lookup(acceptance=1.0, length=length, hit=1.0)
    assert found.calls == model.calls(15) == math.ceil(15 / (length + 1))


def test_a_drafter_that_finds_nothing_takes_a_call_a_token() -> None:
    found = drafter_calls(FlyLookup(), array(1), array(2, 3, 4))
    assert found == DrafterCalls(3, 0, 0, 0)
    assert fitted([found], 6).calls(3) == 3


# -- a trace -----------------------------------------------------------------------------------------------------------

K, V = 3, 12
TEXTS = [[1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 5], [6, 7, 8, 2, 3, 4, 9, 9, 9], [10, 1, 10, 1, 10, 1, 10]]
STARTS = [4, 3, 3]


def blocks(*, every: int = 2) -> list[TraceBlock]:
    """Greedy blocks along the texts. The target's argmax continues the text; the draft errs at its second token."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for prompt, (ids, start) in enumerate(zip(TEXTS, STARTS, strict=True)):
        for position in range(0, len(ids) - start + 1, every):
            begin = start + position
            right = [*ids, *[0] * (K + 1)][begin : begin + K + 1]
            drafted = [right[0], 11, right[2]]
            target, draft = torch.randn(K + 1, V, generator=generator), torch.randn(K, V, generator=generator)
            for row in range(K + 1):
                target[row, right[row]] += 20
            for row in range(K):
                draft[row, drafted[row]] += 20
            made.append(
                TraceBlock(target, draft, torch.tensor(drafted), torch.tensor(ids[:begin]), prompt, position=position)
            )
    return made


def write(folder: Path, made: list[TraceBlock], **options: Any) -> Path:
    source = {"settings": {"temperature": 0.0, "context_temperature": 0.0}, "stop_ids": [0]}
    return write_trace(folder, made, source=source, blocks_per_shard=3, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("sources") / "trace", blocks())


def test_texts_are_the_longest_contexts(folder: Path) -> None:
    texts, recorded = read_texts(gpu.open_trace(folder))
    made = blocks()
    longest = [max((b.context.tolist() for b in made if b.prompt == prompt), key=len) for prompt in range(3)]
    assert [found.tokens.tolist() for found in texts] == longest
    assert [found.start for found in texts] == STARTS
    assert [draft.accepted for draft in recorded] == [1.0] * len(made)
    # Rows 0 and 1 of a block follow the text; then the draft has left it.
    for found in texts:
        known = {}
        for block in made:
            begin = len(block.context)
            if block.prompt == found.prompt:
                for row in range(2 if begin < len(found.tokens) else 1):
                    known[begin + row] = tuple(np.argsort(-block.target_logits[row].numpy())[:8].tolist())
        assert found.likeliest == known


def test_a_comparison_adds_up(folder: Path) -> None:
    found = gpu.compare_sources(folder, draft_cost=0.25)
    texts, recorded = read_texts(gpu.open_trace(folder))
    stop = frozenset({0})
    walked: list[DraftSource] = [
        OriginalLookup(),
        TransformersLookup(stop=stop),
        FlyLookup(),
        Rest.leaving_one_out(texts),
        TokenRecycling(),
    ]
    assert [source.name for source in found.sources] == [RECORDED, TWO_LEVELS, *(source.name for source in walked)]
    for source in walked:
        calls = [call for each in texts for call in walk(source, each)]
        result = found[source.name]
        assert result.calls == len(calls)
        assert result.tokens_per_call.mean == pytest.approx(found.tokens / len(calls), rel=1e-12)
        assert result.accepted_per_call.mean == pytest.approx(sum(c.accepted for c in calls) / len(calls), rel=1e-12)
        assert result.drafted_per_call == pytest.approx(sum(c.drafted for c in calls) / len(calls), rel=1e-12)
        assert result.drafting == sum(c.drafted > 0 for c in calls) / len(calls)
        assert result.speedup == pytest.approx(result.tokens_per_call.mean, rel=1e-12)
        assert result.tokens_per_call.low <= result.tokens_per_call.mean <= result.tokens_per_call.high
    # The draft model: one of three accepted everywhere, at three calls of a quarter step and one verification.
    assert found[RECORDED].tokens_per_call.mean == 2
    assert found[RECORDED].speedup == pytest.approx(2 / 1.75)
    written = [drafter_calls(FlyLookup(), draft.context, draft.tokens).calls for draft in recorded]
    assert found[TWO_LEVELS].drafter_calls == pytest.approx(sum(written) / len(written))
    assert found[TWO_LEVELS].speedup == pytest.approx(2 / (1 + 0.25 * sum(written) / len(written)), rel=1e-6)
    with pytest.raises(UnknownName, match="draft source"):
        found["lookup"]


def test_the_recorded_draft_is_what_replay_finds_of_the_lossless_rule(folder: Path) -> None:
    replayed = gpu.replay(folder, ["lossless"])["lossless"]["tokens_per_call"]
    found = gpu.compare_sources(folder)[RECORDED].tokens_per_call
    assert (found.mean, found.low, found.high) == (replayed.mean, replayed.low, replayed.high)


def test_the_cost_of_a_drafter_call_is_that_of_the_fly_paper_by_default(folder: Path) -> None:
    table = cost.fly_table1("L3-70B", accelerated=False)
    assert gpu.compare_sources(folder).draft_cost == pytest.approx(float(Fraction(table.draft) / Fraction(table.step)))


def test_one_prompt_has_no_interval_and_no_datastore(tmp_path: Path) -> None:
    folder = write(tmp_path / "trace", [block for block in blocks() if block.prompt == 0])
    found = gpu.compare_sources(folder)
    assert "REST" not in [source.name for source in found.sources]
    assert found[RECORDED].tokens_per_call.low is None
    assert any("no interval is available" in note for note in found.notes)


def test_a_datastore_is_read_from_a_file(tmp_path: Path) -> None:
    tokenizer = tiny_models.train_tokenizer()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    ids = tokenizer("the fox and the hare ran over the hill")["input_ids"]
    drafted = torch.tensor(ids[-1:])
    logits = torch.zeros(2, 290).index_fill(1, drafted, 20.0)
    made = [
        TraceBlock(logits, logits[:1], drafted, torch.tensor(ids[:length]), position=length - 4)
        for length in range(4, len(ids) + 1)
    ]
    folder = write(tmp_path / "trace", made, tokenizer=tmp_path / "tokenizer" / "tokenizer.json")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a fox\n\nthe fox and the hare ran over the hill\n\n")
    found = gpu.compare_sources(folder, datastore=corpus)["REST"]
    assert found.tokens_per_call.mean == (len(ids) - 4) / found.calls > 3
    assert any("is a file" in note for note in found.notes)


def test_what_cannot_be_compared_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        gpu.compare_sources(folder, datastore=tmp_path / "nowhere.txt")
    (tmp_path / "corpus.txt").write_text("text")
    with pytest.raises(TraceError, match="holds no tokenizer"):
        gpu.compare_sources(folder, datastore=tmp_path / "corpus.txt")
    with pytest.raises(InvalidInput, match="a trace of the largest logits only"):
        gpu.compare_sources(gpu.truncate_trace(folder, tmp_path / "top-k", k=4))
    with pytest.raises(ParameterError, match="draft"):
        gpu.compare_sources(folder, draft_cost=-1)
    strange = blocks()
    strange[1] = TraceBlock(
        strange[1].target_logits, strange[1].draft_logits, strange[1].tokens, strange[1].context + 1, position=2
    )
    with pytest.raises(InvalidInput, match=r"contexts of prompt 0 in .* do not continue each other"):
        gpu.compare_sources(write(tmp_path / "strange", strange))
    with pytest.raises(InvalidInput, match="no continuation of any prompt"):
        gpu.compare_sources(write(tmp_path / "short", blocks()[:1]))


# -- the verb ----------------------------------------------------------------------------------------------------------


def run(*arguments: object) -> str:
    application = typer.Typer()
    application.command()(sources)
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_json_is_one_document_that_equals_the_library(folder: Path) -> None:
    document = json.loads(run(folder, "--draft-cost", 0.1, "--json"))
    expected = gpu.compare_sources(folder, draft_cost=0.1).to_json()
    assert document["schema"] == "fly-theory-sources/1"
    assert document["sources"] == json.loads(json.dumps(expected["sources"]))
    assert document["trace"] == expected["trace"]


def test_the_table_has_a_line_a_source(folder: Path) -> None:
    out = run(folder)
    found = gpu.compare_sources(folder)
    for source in found.sources:
        line = next(line for line in out.splitlines() if line.startswith(f"{source.name}  "))
        assert f"{source.tokens_per_call.mean:.2f}" in line
        assert line.endswith(f"{source.speedup:.2f}")
    assert "approximate" in out
