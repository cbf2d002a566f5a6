"""The diagram of rules on one pair: what is drawn where, and that it fits."""

import re

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.text import Text

import fly_theory as ft
from fly_theory.claims import Ceiling
from fly_theory.cli.catalogue import Entry
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.example_pairs import EXAMPLE_PAIRS, example_pair
from fly_theory.figures import COLOURS, ONE_COLUMN, TWO_COLUMNS, diagram, encode, style
from fly_theory.figures.diagram import ceiling_factor
from fly_theory.registry import rule_class

SPECS = [
    "lossless",
    "lenience:l=0.5",
    "cos:w=0.5",
    "min-p:base=0.5",
    "typical:eps=0.09,delta=0.3",
    "truncated-min-p:base=0.5",
]
P, Q = example_pair("golden").arrays()
V = len(P)


def draw(specs=SPECS, p=P, q=Q, **options):
    return diagram(p, q, [ft.rule(spec) for spec in specs], **options)


def bars(ax):
    """Heights by colour."""
    return {
        container.patches[0].get_facecolor(): [patch.get_height() for patch in container.patches]
        for container in ax.containers
    }


def steps(ax):
    """The step lines of a panel by colour: (values, line style)."""
    return {
        patch.get_edgecolor(): (patch.get_data().values, patch.get_linestyle())
        for patch in ax.patches
        if type(patch).__name__ == "StepPatch"
    }


def rgba(name):
    return to_rgba(COLOURS[name])


def test_one_panel_a_rule_with_its_spec_as_title():
    figure = draw()
    assert [ax.get_title(loc="left") for ax in figure.axes] == [ft.rule(spec).spec for spec in SPECS]
    assert [ax.get_title(loc="left") for ax in draw(titles=SPECS).axes] == SPECS
    assert [ax.get_title(loc="left") for ax in draw(["lossless"], titles=[""]).axes] == [""]


@pytest.mark.parametrize("spec", SPECS)
def test_bars_and_line_are_p_q_overlap_and_out(spec):
    (ax,) = draw([spec]).axes
    heights = bars(ax)
    np.testing.assert_array_equal(heights[rgba("target")], P)
    np.testing.assert_array_equal(heights[rgba("draft")], Q)
    np.testing.assert_array_equal(heights[rgba("overlap")], np.minimum(P, Q))
    values, line = steps(ax)[rgba("output")]
    np.testing.assert_allclose(values, ft.rule(spec).induced(P, Q), rtol=0, atol=1e-15)
    assert line == "solid"


def test_overlap_is_drawn_over_p_and_q_and_the_line_over_all():
    (ax,) = draw(["lenience:l=0.5"]).axes
    order = [patch.get_facecolor() for container in ax.containers for patch in container.patches[:1]]
    assert order == [rgba("target"), rgba("draft"), rgba("overlap")]
    lines = [patch for patch in ax.patches if type(patch).__name__ == "StepPatch"]
    assert [line.get_edgecolor() for line in lines] == [rgba("output"), rgba("ceiling")]
    assert ax.patches.index(lines[0]) == 3 * V


def test_tokens_fall_in_target_probability_ties_by_id():
    p, q = [0.1, 0.3, 0.3, 0.3], [0.4, 0.1, 0.2, 0.3]
    (ax,) = draw(["lossless"], p, q).axes
    assert bars(ax)[rgba("target")] == [0.3, 0.3, 0.3, 0.1]
    assert bars(ax)[rgba("draft")] == [0.1, 0.2, 0.3, 0.4]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3", "0"]


@pytest.mark.parametrize("name", ft.rules(level="token"))
def test_dashes_exactly_where_a_ceiling_is_claimed(name):
    rule = Entry(name, "token", rule_class(name)).typical()
    claimed = any(isinstance(claim, Ceiling) for claim in rule.claims)
    (ax,) = diagram(P, Q, [rule]).axes
    dashed = {colour: line for colour, line in steps(ax).items() if line[1] != "solid"}
    assert set(dashed) == ({rgba("ceiling")} if claimed else set())
    assert ("ceiling" in ax.get_legend_handles_labels()[1]) == claimed
    if claimed:
        ceiling = dashed[rgba("ceiling")][0]
        assert (rule.induced(P, Q) <= ceiling + 1e-12).all()
        np.testing.assert_allclose(ceiling, ceiling_factor(rule, P, Q) * P, rtol=1e-12)


def test_ceiling_of_lenience_and_of_a_rule_whose_ceiling_depends_on_the_pair():
    assert ceiling_factor(ft.rule("lenience:l=0.4"), P, Q) == pytest.approx(2.5)
    assert ceiling_factor(ft.rule("gated-ceiling:base=0.2,l=0.5"), P, Q) == pytest.approx(1 / (0.2 * 0.5))
    assert ceiling_factor(ft.rule("cos:w=0.5"), P, Q) is None


def test_figures_above_the_panels_are_the_golden_ones():
    texts = [ax.texts[0].get_text() for ax in draw().axes]
    assert texts == [
        "acceptance 0.50   TV 0.000   max ratio 1.00",
        "acceptance 0.70   TV 0.200   max ratio 2.00",
        "acceptance 0.75   TV 0.250   max ratio 4.50",
        "acceptance 0.30   TV 0.060   max ratio 1.10",
        "acceptance 0.60   TV 0.210   max ratio 2.40",
        "acceptance 0.30   TV 0.200   max ratio 1.25",
    ]
    (ax,) = draw(["cos:w=0.5"], *example_pair("out-of-support").arrays()).axes
    assert ax.texts[0].get_text().endswith("max ratio ∞")


def test_panels_share_axes_and_hold_everything():
    axes = draw().axes
    for ax in axes:
        assert ax.get_xlim() == axes[0].get_xlim()
        assert ax.get_ylim() == axes[0].get_ylim()
        assert ax.get_ylim()[0] == 0
        assert ax.get_ylim()[1] > max(steps(ax)[rgba("output")][0].max(), P.max(), Q.max())


def test_one_shared_legend_in_a_fixed_order():
    (legend,) = draw().legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "target $p$",
        "draft $q$",
        "overlap",
        "output",
        "ceiling",
    ]
    (legend,) = draw(["lossless"]).legends
    assert "ceiling" not in [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize(("rules", "width"), [(1, ONE_COLUMN), (2, TWO_COLUMNS), (6, TWO_COLUMNS)])
def test_default_width(rules, width):
    assert draw(SPECS[:rules]).get_figwidth() == width
    assert draw(SPECS[:rules], width=5.0).get_figwidth() == 5.0


@pytest.mark.parametrize(("rules", "width", "columns"), [(3, None, 3), (4, None, 2), (5, None, 3), (3, ONE_COLUMN, 1)])
def test_rows_and_columns(rules, width, columns):
    figure = draw(SPECS[:rules], width=width)
    assert len(figure.axes) == rules
    assert len({round(ax.get_position().x0, 3) for ax in figure.axes}) == columns


# -- many tokens -------------------------------------------------------------------------------------------------------


def large_pair(tokens=2000):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, tokens)) * 3
    return ft.softmax(logits[0]), ft.softmax(0.7 * logits[0] + 0.3 * logits[1])


def test_top_shows_what_matters_to_either_and_the_rest_in_one_bar():
    p, q = large_pair()
    (ax,) = draw(["lenience:l=0.5"], p, q, top=10).axes
    shown = np.sort(np.argsort(-np.maximum(p, q))[:10])
    shown = shown[np.argsort(-p[shown], kind="stable")]
    others = np.setdiff1d(np.arange(len(p)), shown)
    out = ft.rule("lenience:l=0.5").induced(p, q)
    heights = bars(ax)
    np.testing.assert_allclose(heights[rgba("target")], [*p[shown], p[others].sum()], rtol=1e-12)
    np.testing.assert_allclose(heights[rgba("draft")], [*q[shown], q[others].sum()], rtol=1e-12)
    np.testing.assert_allclose(steps(ax)[rgba("output")][0], [*out[shown], out[others].sum()], rtol=1e-12)
    np.testing.assert_allclose(steps(ax)[rgba("ceiling")][0], 2 * np.array(heights[rgba("target")]), rtol=1e-12)
    assert [label.get_text() for label in ax.get_xticklabels()] == [*map(str, shown), "other"]
    assert sum(heights[rgba("target")]) == pytest.approx(1)
    assert sum(heights[rgba("overlap")]) == pytest.approx(np.minimum(p, q).sum())


@pytest.mark.parametrize("swapped", [False, True])
def test_no_bar_of_a_token_or_of_the_rest_hides_another(swapped):
    p, q = large_pair()[::-1] if swapped else large_pair()
    (ax,) = draw(["lossless"], p, q, top=10).axes
    drawn_last = sorted(ax.patches, key=lambda patch: patch.get_zorder())
    for target, draft, overlap in zip(*(container.patches for container in ax.containers), strict=True):
        lower, higher = sorted((target, draft), key=lambda patch: patch.get_height())
        assert drawn_last.index(higher) < drawn_last.index(lower) < drawn_last.index(overlap)
        assert overlap.get_height() <= lower.get_height()
    assert overlap.get_height() < 0.9 * lower.get_height()  # the rest: of both, but not of the same tokens


@pytest.mark.parametrize(("tokens", "drawn"), [(24, 24), (60, 60), (61, 31), (2000, 31)])
def test_a_large_vocabulary_is_cut_by_itself(tokens, drawn):
    (ax,) = draw(["lossless"], *large_pair(tokens)).axes
    assert len(bars(ax)[rgba("target")]) == drawn


def test_top_above_the_vocabulary_shows_every_token():
    assert encode(draw(top=100), "svg") == encode(draw(), "svg")


def test_names_that_fonts_lack_become_ids():
    (ax,) = draw(["lossless"], token_name=["the", "中文", "$x_1$", "\\n"].__getitem__).axes
    labels = ax.get_xticklabels()
    assert [label.get_text() for label in labels] == ["the", "#1", "$x_1$", "\\n"]
    assert not any(label.get_parse_math() for label in labels)
    assert {label.get_rotation() for label in labels} == {90}


# -- layout ------------------------------------------------------------------------------------------------------------


NAMES = "␣reasonably␣l{}".format
LAYOUTS = {
    "six": lambda: draw(titles=SPECS),
    "six smooth": lambda: draw(SPECS, *example_pair("smooth").arrays()),
    "five named": lambda: draw(SPECS[:5], *large_pair(), top=15, token_name=NAMES),
    "one named": lambda: draw(["gated-ceiling:base=0.5,l=0.5"], *large_pair(), top=12, token_name=NAMES),
    "long titles": lambda: draw(
        ["typical-argmax:eps=0.09,delta=0.3"] * 3,
        titles=["typical-argmax:eps=0.09,delta=0.3,keep_ties=true", "my/folder/my_$rule$.py:MyRule:strength=0.25", "x"],
    ),
    "long figures": lambda: draw(["cos:w=0.5"] * 3, [1 - 3e-9, 1e-9, 1e-9, 1e-9]),
    "one column": lambda: draw(SPECS[:3], *large_pair(), width=ONE_COLUMN),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_is_clipped_and_nothing_overlaps(layout):
    figure = LAYOUTS[layout]()
    canvas = FigureCanvasAgg(figure)
    with style():
        canvas.draw()
    renderer = canvas.get_renderer()
    frame = figure.bbox.padded(0.5)
    texts = dict.fromkeys(text for text in figure.findobj(Text) if text.get_text() and text.get_visible())
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    for text, box in boxes:
        assert frame.contains(box.x0, box.y0), text
        assert frame.contains(box.x1, box.y1), text
    for index, (text, box) in enumerate(boxes):
        for other, other_box in boxes[index + 1 :]:
            assert not box.padded(-0.5).overlaps(other_box.padded(-0.5)), (text, other)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"specs": []}, "rules is empty"),
        ({"titles": ["one"]}, "titles has 1 entries for 6 rules"),
        ({"top": 0}, "top=0 is below 1"),
        ({"width": 0.5}, "width=0.5 is outside [1, inf) inches"),
        ({"width": float("nan")}, "width=nan is outside [1, inf) inches"),
        ({"p": [0.5, 0.5]}, "different vocabularies: 2 and 4"),
        ({"p": [0.5, 0.3, 0.2, 0.1]}, "p sums to 1.1"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        draw(**options)


def test_batches_are_refused():
    with pytest.raises(ShapeError, match=r"p has shape \(1, 4\) and q \(4,\)"):
        draw(p=P[None])


# -- example pairs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", EXAMPLE_PAIRS.values(), ids=EXAMPLE_PAIRS)
def test_example_pairs_are_distributions_in_drawing_order(pair):
    assert sum(pair.p) == sum(pair.q) == 1
    assert len(pair.p) == len(pair.q)
    assert min(pair.p + pair.q) >= 0
    assert len(draw(SPECS, *pair.arrays()).axes) == len(SPECS)


def test_smooth_pair_is_the_size_of_a_figure_and_falls():
    pair = example_pair("smooth")
    assert 20 <= len(pair.p) <= 40
    assert list(pair.p) == sorted(pair.p, reverse=True)


def test_unknown_example_pair():
    with pytest.raises(InvalidInput, match=r"unknown example pair 'smoth'\. Did you mean 'smooth'"):
        example_pair("smoth")
