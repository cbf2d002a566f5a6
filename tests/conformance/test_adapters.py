"""Verifiers made from functions of tensors, and `_speculative_sampling` of the installed transformers."""

import math

import pytest

import fly_theory as ft
from fly_theory.conformance.adapters import TensorVerifier, block_rule_verifier, transformers_speculative_sampling
from tests.quality.verifiers import fractions

torch = pytest.importorskip("torch")

SMALL = {"drafter": fractions("3/4 1/4"), "target": fractions("1/4 3/4"), "length": 2, "resolution": 0.15}


def batched(draft_ids, draft_probs, target_probs, generator=None, share_noise=False):
    """Ratio test and residual for a batch; ids padded with -1."""
    size, count = draft_ids.shape
    if count:
        p = target_probs[:, :-1].gather(-1, draft_ids[..., None])[..., 0]
        q = draft_probs.gather(-1, draft_ids[..., None])[..., 0]
        coins = torch.rand(p.shape, generator=generator, dtype=p.dtype)
        if share_noise:
            coins = coins[:1].expand(size, -1)
        kept = ((coins * q < p).long().cumprod(-1)).sum(-1)
    else:
        kept = torch.zeros(size, dtype=torch.long)
    rows = torch.cat([(target_probs[:, :-1] - draft_probs).clamp(min=0), target_probs[:, -1:]], dim=1)
    drawn = torch.multinomial(rows[torch.arange(size), kept], 1, generator=generator)
    emitted = torch.cat([draft_ids, torch.full((size, 1), -1)], dim=1)
    emitted[torch.arange(count + 1) > kept[:, None]] = -1
    emitted.scatter_(1, kept[:, None], drawn)
    return emitted


def single_in_logs(draft_ids, draft_logits, target_logits):
    return batched(draft_ids[None], draft_logits.softmax(-1)[None], target_logits.softmax(-1)[None])[0], None


@pytest.mark.parametrize(
    "verifier",
    [
        TensorVerifier(batched),
        TensorVerifier(batched, dtype="float64", generator=True),
        TensorVerifier(single_in_logs, batched=False, scale="log-probabilities"),
    ],
)
def test_right_functions_of_tensors(verifier):
    report = ft.conformance(verifier, **SMALL)
    assert report.verdict == "lossless"
    assert report.settings["method"] == "samples"
    assert report["same seed, same answer"].outcome == "held"
    assert report["K = 0 agrees with K > 0"].outcome == "held"
    if verifier.batch_axis:
        assert report["requests in a batch"].outcome == "held"


def test_a_batch_that_shares_its_coins():
    def shared(*arguments):
        return batched(*arguments, share_noise=True)

    report = ft.conformance(TensorVerifier(shared), **{**SMALL, "length": 1, "resolution": 0.1})
    assert report["requests in a batch"].outcome == "refuted"
    assert report.verdict == "lossy"


def test_a_wrong_function_of_tensors():
    def inflated(draft_ids, draft_probs, target_probs):
        return batched(draft_ids, draft_probs * 0.75, target_probs)

    report = ft.conformance(TensorVerifier(inflated), **{**SMALL, "resolution": 0.06, "length": 1})
    assert report.verdict == "lossy"
    assert report.tv.low > 0


def test_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    ft.conformance(TensorVerifier(batched), **SMALL)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_uniforms_of_torch_are_held_at_their_edges():
    def inclusive(draft_ids, draft_probs, target_probs):
        x = draft_ids[0]
        if torch.rand_like(target_probs[0])[0] <= target_probs[0, x] / draft_probs[0, x]:
            return [int(x), int(torch.multinomial(target_probs[1], 1))]
        return [int(torch.multinomial((target_probs[0] - draft_probs[0]).clamp(min=0), 1))]

    report = ft.conformance(TensorVerifier(inclusive, batched=False), length=1, resolution=0.2)
    assert report["coin edges"].detail == "with uniforms 0: emits token 0, which the target gives no mass"
    assert report["zero residual"].detail.startswith("raised RuntimeError")


def test_scales_are_checked():
    with pytest.raises(ft.errors.InvalidInput, match="scale='logits'"):
        TensorVerifier(batched, scale="logits")


# -- transformers ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transformers_report():
    pytest.importorskip("transformers")
    return ft.conformance(transformers_speculative_sampling(), length=2, resolution=0.1)


def test_transformers_speculative_sampling_is_lossless(transformers_report):
    assert transformers_report.verdict == "lossless"
    assert transformers_report.ok
    for name in ("K = 0 agrees with K > 0", "padded vocabulary", "renamed ids", "same seed, same answer"):
        assert transformers_report[name].outcome in ("held", "not applicable")


def test_transformers_edges_are_what_they_are(transformers_report):
    """Inclusive at u = 0, so a token without mass is accepted; 0/0 without a residual, which multinomial refuses."""
    edges, residual = transformers_report["coin edges"], transformers_report["zero residual"]
    assert (edges.outcome, edges.asked) == ("refuted", False)
    assert edges.detail == "with uniforms 0: emits token 0, which the target gives no mass"
    assert residual.outcome == "held"
    assert "probability tensor contains either `inf`, `nan`" in residual.detail
    assert transformers_report["NaN in, error out"].outcome == "held"


def test_transformers_stops_at_the_end_of_a_text():
    pytest.importorskip("transformers")
    draft, target = [[0, "1/2", "1/2"]] * 3, [["1/4", "1/2", "1/4"], [0, 0, 1], ["1/2", 0, "1/2"]]
    settings = {"target": target, "eos": 1, "length": 2, "resolution": 0.1}
    cut = ft.conformance(transformers_speculative_sampling(eos=1), draft, **settings)
    assert cut.verdict == "lossless"
    uncut = ft.conformance(transformers_speculative_sampling(), draft, **settings)
    assert uncut.verdict == "lossy"
    assert uncut["support within the target"].outcome == "refuted"


def test_transformers_told_the_wrong_law():
    pytest.importorskip("transformers")
    report = ft.conformance(
        transformers_speculative_sampling(),
        fractions("2/3 1/3 0"),
        told=fractions("1/2 1/4 1/4"),
        target=fractions("1/2 1/2 0"),
        length=1,
        resolution=0.1,
    )
    assert report.verdict == "lossy"
    assert report.tv.low <= 1 / 6 <= report.tv.high


# -- our own block rules -----------------------------------------------------------------------------------------------


def test_block_rules_that_go_on_are_no_verifiers():
    rule = ft.block_rule("block")
    assert block_rule_verifier(rule).__qualname__ == "block"

    class GoesOn:
        spec, completes_block = "goes-on", True

    with pytest.raises(ft.errors.InvalidInput, match="goes-on emits K tokens"):
        block_rule_verifier(GoesOn())


def test_float_rows_of_a_block_rule_agree_with_exact_ones():
    verifier = block_rule_verifier(ft.block_rule("lenience:l=0.5"))

    def on_floats(target_probs, draft_probs, draft_tokens, rng):
        return verifier(target_probs.astype(float), draft_probs.astype(float), draft_tokens, rng)

    laws = fractions("1/5 1/10 3/10 2/5"), fractions("1/2 3/10 3/20 1/20")
    exact, floats = (ft.conformance(each, laws[0], target=laws[1], length=2) for each in (verifier, on_floats))
    assert math.isclose(exact.tv, floats.tv.value, abs_tol=1e-9)
    assert math.isclose(exact.max_ratio, floats.max_ratio, rel_tol=1e-6)
