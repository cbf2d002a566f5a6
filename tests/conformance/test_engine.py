"""Whole engines on table models: stand-ins for language models, lossless and faulty engines, and `generate` itself."""

import functools
import time

import numpy as np
import pytest

import fly_theory as ft

torch = pytest.importorskip("torch")

TARGET = [["1/2", "1/4", "1/4"], ["1/6", "1/3", "1/2"], ["1/8", "3/8", "1/2"]]
DRAFT = [["1/4", "1/4", "1/2"], ["3/5", "1/5", "1/5"], ["1/3", "1/6", "1/2"]]


# -- the models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_table_model_gives_the_rows_of_its_table(size, depth):
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(size), (size,) * depth)
    model = ft.testing.TableModel(table, padding=2)
    ids = torch.tensor(rng.integers(0, size, (2, 5)))
    probs = model(ids).logits.softmax(-1)
    assert probs.shape == (2, 5, size + 2)
    assert model.config.vocab_size == size + 2
    for row, tokens in zip(probs.numpy(), ids.tolist(), strict=True):
        for i in range(5):
            context = [0, 0, *tokens[: i + 1]][i + 3 - depth :]
            np.testing.assert_allclose(row[i, :size], table[tuple(context)], atol=1e-6)
    assert (probs[..., size:] == 0).all()


@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_table_model_with_a_cache_goes_on_where_it_was(name):
    table = np.random.default_rng(1).dirichlet(np.ones(4), (4, 4))
    model = ft.testing.TableModel(table)
    ids = torch.tensor([[1, 2, 3, 0, 2]])
    whole = model(ids).logits
    out = model(ids[:, :3], use_cache=True)
    assert out.past_key_values is out.cache
    rest = model(ids[:, 3:], **{name: out.cache}).logits
    assert torch.equal(rest, whole[:, 3:])
    assert out.cache.get_seq_length() == 5
    out.cache.crop(-2)
    assert out.cache.get_seq_length() == 3
    assert torch.equal(model(ids[:, 3:], **{name: out.cache}).logits, rest)
    out.cache.crop(1)
    assert torch.equal(model(ids[:, 1:], **{name: out.cache}).logits, whole[:, 1:])
    assert model(ids).cache is None


def test_table_model_leaves_masked_positions_out():
    model = ft.testing.TableModel(TARGET)
    mask = torch.tensor([[0, 1]])
    assert torch.equal(
        model(torch.tensor([[2, 1]]), attention_mask=mask).logits[0, 1], model(torch.tensor([[1]])).logits[0, 0]
    )
    first = model(torch.tensor([[2]]), attention_mask=torch.tensor([[0]])).logits
    assert torch.equal(first, model(torch.tensor([[0]])).logits)


def test_table_model_is_a_module_of_one_table():
    model = ft.testing.TableModel(TARGET, eos=2)
    assert isinstance(model, torch.nn.Module)
    assert (model.device.type, model.dtype) == ("cpu", torch.float32)
    assert (model.config.eos_token_id, model.config.is_encoder_decoder) == (2, False)
    assert next(model.parameters()).shape == (3, 3)
    for settings in ({"eos": 3}, {"padding": -1}):
        with pytest.raises(ft.errors.InvalidInput, match="allowed are padding"):
            ft.testing.TableModel(TARGET, **settings)
    with pytest.raises(ft.errors.DistributionError, match=r"table sums to 0\.5"):
        ft.testing.TableModel([0.25, 0.25])


# -- an engine written for this test -----------------------------------------------------------------------------------


def engine(fault="", new_tokens=4, eos=None):
    """Speculative decoding by the book, K = 2, with a cache that is rolled back; or with a fault."""

    def row(model, ids):
        return model(ids).logits[0, -1].double().softmax(-1)

    def generate(draft, target, ids, seed):
        rng = torch.Generator().manual_seed(0 if fault == "one seed" else seed)

        def draw(weights):
            return torch.multinomial(weights, 1, generator=rng)

        end, cache = ids.shape[1] + new_tokens, target(ids[:, :-1], use_cache=True).cache
        while ids.shape[1] < end:
            drafted, told = ids, []
            for _ in range(2):
                told.append(row(draft, drafted))
                token = told[-1].argmax()[None] if fault == "argmax draft" else draw(told[-1])
                drafted = torch.cat([drafted, token[None]], dim=1)
            fresh = drafted[:, cache.get_seq_length() :]
            rows = target(fresh, cache=cache).logits[0, -3:].double().softmax(-1)
            kept = 0
            while kept < 2:
                x = drafted[0, ids.shape[1] + kept]
                if torch.rand(1, generator=rng, dtype=torch.float64) * told[kept][x] >= rows[kept][x]:
                    break
                kept += 1
            left = rows[kept] if kept == 2 or fault == "redraw" else (rows[kept] - told[kept]).clamp(min=0)
            if fault == "late":
                left = left if ids.shape[1] < end - 4 else torch.tensor([0.0, 0.0, 1.0], dtype=left.dtype)
            ids = torch.cat([drafted[:, : ids.shape[1] + kept], draw(left)[None]], dim=1)
            if fault != "cache":
                cache.crop(ids.shape[1] - 1)
            else:
                cache.crop(ids.shape[1])
            if eos is not None and eos in ids[0, 2:]:
                text = ids[0].tolist()
                stop = text.index(eos, 2) + 1
                return ids if fault == "goes on" else ids[:, :stop]
        return ids[:, :end]

    return generate


SMALL = {"pair": (TARGET, DRAFT), "resolution": 0.15}


def test_an_engine_by_the_book():
    report = ft.conformance_engine(engine(), resolution=0.2)
    assert report.verdict == "lossless"
    assert report.ok
    assert report["lossless"].cases == 3
    assert report["same seed, same text"].outcome == "held"
    assert report.settings["detectable TV"] <= 0.2


@pytest.mark.parametrize("fault", ["argmax draft", "redraw", "late", "one seed"])
def test_faulty_engines(fault):
    report = ft.conformance_engine(engine(fault, new_tokens=8 if fault == "late" else 4), length=2, **SMALL)
    assert report.verdict == "lossy"
    assert not report.ok
    if fault == "late":
        assert report["every token given those before it"].outcome == "refuted"


def test_a_cache_that_is_not_rolled_back_misleads_the_target():
    report = ft.conformance_engine(engine("cache"), length=2, **SMALL)
    assert report.verdict in ("lossy", "invalid")


def test_end_of_text():
    fine = ft.conformance_engine(engine(eos=2), eos=2, **SMALL)
    assert fine.verdict == "lossless"
    assert fine["nothing after the end of a text"].outcome == "held"
    goes_on = ft.conformance_engine(engine("goes on", eos=2), eos=2, **SMALL)
    assert goes_on.verdict == "lossy"
    assert goes_on["nothing after the end of a text"].outcome == "refuted"


def test_temperature_is_part_of_the_goal():
    def at_temperature(temperature):
        def generate(draft, target, ids, seed):
            rng = torch.Generator().manual_seed(seed)
            for _ in range(3):
                law = (target(ids).logits[0, -1] / temperature).softmax(-1)
                ids = torch.cat([ids, torch.multinomial(law, 1, generator=rng)[None]], dim=1)
            return ids[0].tolist()

        return generate

    def goal(row):
        return ft.warp(np.log(row), temperature=0.5)

    assert ft.conformance_engine(at_temperature(0.5), goal=goal, **SMALL).verdict == "lossless"
    assert ft.conformance_engine(at_temperature(1.0), goal=goal, **SMALL).verdict == "lossy"


def raises(draft, target, ids, seed):
    return 1 / 0 if seed >= 5 else engine()(draft, target, ids, seed)


@pytest.mark.parametrize(
    ("generate", "said"),
    [
        (raises, "raised ZeroDivisionError"),
        (lambda draft, target, ids, seed: time.sleep(60), "did not return within 0.3 s"),
        (lambda draft, target, ids, seed: ids, "not the prompt and at least 3 more tokens"),
        (lambda draft, target, ids, seed: [1, 1, 1, 1, 1, 1], "not the prompt and at least 3 more tokens"),
        (lambda draft, target, ids, seed: [0, 1, 3, 0, 0], "id 3 is outside the vocabulary 0..2"),
        (lambda draft, target, ids, seed: None, "no list of token ids"),
    ],
)
def test_errors_are_the_engines(generate, said):
    report = ft.conformance_engine(generate, call_seconds=0.3, **SMALL)
    assert report.verdict == "invalid"
    assert said in report["runs"].detail
    assert report["runs"].witness.inputs["seed"] == (5 if generate is raises else 0)
    assert report["runs"].witness.inputs["prompt"] == (0, 1)


def test_too_little_time_is_undecided():
    report = ft.conformance_engine(engine(), seconds=0, pair=(TARGET, DRAFT))
    assert report.verdict == "undecided"


def test_settings_that_are_not_allowed():
    with pytest.raises(ft.errors.InvalidInput, match="holds eos=1"):
        ft.conformance_engine(engine(), eos=1)
    with pytest.raises(ft.errors.InvalidInput, match="expected \\(target, draft\\)"):
        ft.conformance_engine(engine(), pair=3)


def test_a_markov_pair_is_a_pair():
    pair = ft.MarkovPair([[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0])

    def generate(draft, target, ids, seed):
        return [0, 1, 0]

    assert ft.conformance_engine(generate, pair, 1, resolution=0.3).verdict == "lossy"


# -- transformers, whole -----------------------------------------------------------------------------------------------


def transformers_engine(drafted, **options):
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()

    def generate(draft, target, ids, seed):
        torch.manual_seed(seed)
        draft.generation_config.num_assistant_tokens = 3
        drafted.append(0)
        return target.generate(
            ids, attention_mask=torch.ones_like(ids), assistant_model=draft, max_new_tokens=4, **options
        )

    return generate


@pytest.mark.parametrize(
    ("options", "goal", "settings"),
    [
        ({"do_sample": True}, None, {"padding": 2}),
        (
            {"do_sample": True, "temperature": 0.7, "top_k": 2},
            lambda row: ft.warp(np.log(row), temperature=0.7, top_k=2),
            {},
        ),
        ({"do_sample": False}, lambda row: np.eye(len(row))[row.argmax()], {}),
        ({"do_sample": True}, None, {"eos": 2}),
    ],
    ids=["temperature 1", "temperature 0.7 and top-k", "greedy", "with an end"],
)
def test_transformers_generate_with_an_assistant(options, goal, settings):
    calls = []
    make = ft.testing.pretrained_table_model

    def counting(table, **kwargs):
        model = make(table, **kwargs)
        forward = model.forward
        model.forward = functools.wraps(forward)(lambda *a, **k: (calls.append(table), forward(*a, **k))[1])
        return model

    rounds = []
    report = ft.conformance_engine(
        transformers_engine(rounds, **options), (TARGET, DRAFT), goal=goal, model=counting, resolution=0.25, **settings
    )
    assert report.verdict == "lossless"
    assert report.ok
    # The draft model really drafts, several tokens a round, and the target is called fewer times than it emits tokens.
    by_draft, by_target = (sum(table is which for table in calls) for which in (DRAFT, TARGET))
    assert by_draft > len(rounds)
    assert by_target < 4 * len(rounds)


def test_transformers_handed_raw_draft_logits(monkeypatch):
    """The fault of drafters that sample from filtered logits and hand over raw ones, put into the assistant."""
    pytest.importorskip("transformers")
    from transformers.generation.candidate_generator import AssistedCandidateGenerator

    original = AssistedCandidateGenerator._generate_candidates

    def raw(self, arguments):
        ids, logits = original(self, arguments)
        if logits is not None:
            drafted = self.assistant_model(ids).logits[:, -1 - logits.shape[1] : -1]
            logits = drafted.to(logits.dtype)
        return ids, logits

    monkeypatch.setattr(AssistedCandidateGenerator, "_generate_candidates", raw)
    report = ft.conformance_engine(
        transformers_engine([], do_sample=True, top_k=2),
        ([0.45, 0.45, 0.1], [0.5, 0.26, 0.24]),
        2,
        goal=lambda row: ft.warp(np.log(row), top_k=2),
        model=ft.testing.pretrained_table_model,
        resolution=0.1,
    )
    assert report.verdict == "lossy"


def test_pretrained_model_has_the_rows_of_its_table(tmp_path):
    pytest.importorskip("transformers")
    from fly_theory.testing.pretrained import PretrainedTableModel

    table = [["1/2", "1/2", 0], ["1/4", "1/4", "1/2"], [0, 0, 1]]
    model = ft.testing.pretrained_table_model(table, eos=2, padding=1)
    plain = ft.testing.TableModel(table, eos=2, padding=1)
    ids = torch.tensor([[0, 1, 2, 0]])
    assert torch.equal(model(ids).logits, plain(ids).logits)
    assert (model.config.vocab_size, model.generation_config.eos_token_id) == (4, 2)
    model.save_pretrained(tmp_path)
    again = PretrainedTableModel.from_pretrained(tmp_path)
    assert torch.equal(again(ids).logits, model(ids).logits)
