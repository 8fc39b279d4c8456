"""What is read off whole curves, against slow numbers from the definitions."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean, median

import numpy as np
import pytest
from made_up import rows_of_curves
from scipy.stats import ttest_rel

from tailor.errors import InputError
from tailor_experiments.comparison.gather import group
from tailor_experiments.comparison.label_efficiency import efficiency, ranks_by_area
from tailor_experiments.comparison.report import short

CONTENDERS = ("TAILOR", "random", "badge alone", "galaxy alone")
ROUNDS = 9


def made_up_curves(seed, trials=5):
    """Rising curves with noise; scores of one decimal, so that areas tie."""
    rng = np.random.default_rng(seed)
    curves = {}
    for contender in CONTENDERS:
        curves[contender] = {}
        for trial in range(trials):
            scores = np.linspace(0.2, 0.6, ROUNDS) + rng.normal(0, 0.1, ROUNDS)
            curves[contender][trial] = scores.round(1).tolist()
    return curves


def table_of(curves, **options):
    """contender -> heading -> cell; a heading that comes again has its place behind it."""
    (results,) = group(rows_of_curves(curves))
    table = efficiency(results, **options)
    found = {}
    for row in table.rows:
        cells = {}
        for place, (heading, cell) in enumerate(zip(table.columns, row, strict=True)):
            cells[heading if heading not in cells else f"{heading} {place}"] = cell
        found[row[0]] = cells
    return table, found


def area(curve):
    return sum(curve) / len(curve)


def first_quarter(curve):
    return area(curve[: max(1, int(len(curve) / 4))])


def last(curve):
    return curve[-1]


def labels_until(curve, target, batch=10):
    """Along the curve in steps of a thousandth of a batch."""
    for step in range((len(curve) - 1) * 1000 + 1):
        before = min(step // 1000, len(curve) - 2)
        share = step / 1000 - before
        if curve[before] * (1 - share) + curve[before + 1] * share >= target - 1e-9:
            return batch * (1 + step / 1000)
    return float("inf")


def mean_rank(curves, contender, seeds):
    ranks = []
    for seed in seeds:
        ours = area(curves[contender][seed])
        others = [area(trials[seed]) for other, trials in curves.items() if other != contender]
        ahead = sum(other > ours + 1e-9 for other in others)
        equal = sum(abs(other - ours) <= 1e-9 for other in others)
        ranks.append(1 + ahead + equal / 2)
    return mean(ranks)


def difference_text(ours, others):
    found = ttest_rel(ours, others).confidence_interval(0.95)
    star = " *" if found.low > 0 or found.high < 0 else ""
    mean_difference = mean(a - b for a, b in zip(ours, others, strict=True))
    return f"{mean_difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]{star}"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_column_against_its_definition(seed):
    curves = made_up_curves(seed)
    _, found = table_of(curves)
    readings = {"area": area, "first quarter": first_quarter, "last": last}
    headings = ("minus TAILOR", "minus TAILOR 4", "minus TAILOR 6")
    for contender, trials in curves.items():
        cells = found[contender]
        for (column, read), heading in zip(readings.items(), headings, strict=True):
            own = [read(curve) for curve in trials.values()]
            tailors = [read(curve) for curve in curves["TAILOR"].values()]
            assert float(cells[column]) == pytest.approx(mean(own), abs=6e-5)
            if contender == "TAILOR":
                assert (cells[heading], cells["pairs"]) == ("", "")
            else:
                assert cells[heading] == difference_text(own, tailors)
                assert cells["pairs"] == "5"
        needed = [labels_until(trials[at], curves["random"][at][-1]) for at in trials]
        never = needed.count(float("inf"))
        assert cells["never"] == f"{never} of 5"
        if never > 2:
            assert cells["labels to reach random"] == "> 90"
        else:
            labels = float(cells["labels to reach random"])
            assert labels == pytest.approx(median(needed), abs=0.52)  # shown without decimals
        rank = mean_rank(curves, contender, range(5))
        assert float(cells["mean rank"]) == pytest.approx(rank, abs=0.006)
    areas = [float(cells["area"]) for cells in found.values()]
    assert areas == sorted(areas, reverse=True)


def test_equal_areas_share_their_ranks():
    """Added up in another order the scores differ in the last bit."""
    curves = {
        "TAILOR": {0: [0.1, 0.2, 0.3]},
        "random": {0: [0.3, 0.2, 0.1]},
        "badge alone": {0: [0.1, 0.1, 0.1]},
    }
    _, found = table_of(curves)
    ranks = {contender: cells["mean rank"] for contender, cells in found.items()}
    assert ranks == {"TAILOR": "1.50", "random": "1.50", "badge alone": "3.00"}


def test_labels_to_reach_are_paired_and_between_rounds():
    """With seed 0 random ends at .4, half way between the rounds; seed 1 is never reached; random
    itself was there before its end.
    """
    curves = {
        "TAILOR": {0: [0.2, 0.6, 0.6], 1: [0.2, 0.6, 0.6], 2: [0.9, 0.1, 0.1]},
        "random": {0: [0.1, 0.2, 0.4], 1: [0.1, 0.7, 0.7], 2: [0.1, 0.2, 0.3]},
    }
    table, found = table_of(curves)
    assert found["TAILOR"]["labels to reach random"] == "15"
    assert found["TAILOR"]["never"] == "1 of 3"
    assert found["random"]["labels to reach random"] == "30"
    assert found["random"]["never"] == "0 of 3"
    for column in ("Area", "First quarter", "Last", "Minus TAILOR", "Pairs", "Never", "Mean rank"):
        assert f"{column}: " in table.note
    assert "drawn straight from round to round" in table.note
    _, found = table_of(curves, reach="TAILOR", focus="random")
    # Never, 10 + 10 * 0.5 / 0.6 and 10.
    assert found["random"]["labels to reach TAILOR"] == "18"
    assert found["random"]["never"] == "1 of 3"
    assert found["TAILOR"]["minus random"].startswith("+")


def test_without_a_contender_to_reach_its_columns_are_left_out():
    curves = {"TAILOR": {0: [0.2, 0.6]}, "badge alone": {0: [0.1, 0.2]}}
    table, _ = table_of(curves)
    assert not [column for column in table.columns if "reach" in column or column == "never"]
    assert "left out, since none is labelled 'random' here" in table.note
    table, _ = table_of(curves, reach="badge alone")
    assert "labels to reach badge alone" in table.columns


def test_missing_trials():
    """Pairs are of the seeds that two have, ranks of those that all have."""
    curves = made_up_curves(7)
    del curves["badge alone"][0]
    del curves["random"][4]
    curves["galaxy alone"] = {9: [0.5] * ROUNDS}
    table, found = table_of(curves)
    assert [found[one]["pairs"] for one in CONTENDERS] == ["", "4", "4", ""]
    assert found["badge alone"]["never"].endswith("of 3")
    assert found["galaxy alone"]["labels to reach random"] == "–"
    assert {cells["mean rank"] for cells in found.values()} == {"–"}
    assert "(0 here)" in table.note
    del curves["galaxy alone"]
    table, found = table_of(curves)
    for contender in curves:
        rank = mean_rank(curves, contender, (1, 2, 3))
        assert float(found[contender]["mean rank"]) == pytest.approx(rank, abs=0.006)
    assert "(3 here)" in table.note


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_trial_without_a_score_in_some_round_is_left_out_and_counted(nothing):
    curves = made_up_curves(3)
    curves["badge alone"][2][4] = nothing
    table, found = table_of(curves)
    assert found["badge alone"]["pairs"] == "4"
    whole = [area(curve) for seed, curve in curves["badge alone"].items() if seed != 2]
    assert float(found["badge alone"]["area"]) == pytest.approx(mean(whole), abs=6e-5)
    assert table.note.endswith("Trials left out, since a round of theirs has no score: 1.")
    (nobody,) = group(rows_of_curves({"TAILOR": {0: [0.5, nothing]}}))
    assert efficiency(nobody) is None


def test_different_numbers_of_rounds_are_refused():
    (results,) = group(rows_of_curves(made_up_curves(0)))
    trials = dict(results.rows["random"])
    trials[3] = trials[3][:-2]
    cut = replace(results, rows=results.rows | {"random": trials})
    with pytest.raises(InputError, match=r"'random' with seed 3 has 7 scores .* has 9"):
        efficiency(cut)


def test_ranks_over_settings():
    """Every setting counts the same, however many trials it has."""
    settings = {"one": made_up_curves(0, 2), "two": made_up_curves(1, 6)}
    settings["three"] = made_up_curves(2, 3)
    del settings["two"]["galaxy alone"]
    experiments = []
    for name, curves in settings.items():
        experiments += group(rows_of_curves(curves, experiment=name))
    table = ranks_by_area(experiments)
    assert table.columns == ("", "rank", "one", "two", "three")
    assert table.note.endswith("not all experiments have them: galaxy alone.")
    assert {row[0] for row in table.rows} == set(CONTENDERS) - {"galaxy alone"}
    for contender, *cells in table.rows:
        ranks = []
        for curves in settings.values():
            common = {one: curves[one] for one in curves if one != "galaxy alone"}
            ranks.append(mean_rank(common, contender, range(len(curves[contender]))))
        assert [float(cell) for cell in cells] == pytest.approx([mean(ranks), *ranks], abs=0.006)
    assert [row[1] for row in table.rows] == sorted(row[1] for row in table.rows)
    assert ranks_by_area(experiments[:1]) is None


def test_settings_that_cannot_be_ranked_are_counted():
    apart = {"TAILOR": {0: [0.1, 0.2]}, "random": {1: [0.1, 0.2]}}
    experiments = group(rows_of_curves(apart, experiment="apart"))
    assert ranks_by_area(experiments * 2) is None
    experiments += group(rows_of_curves(made_up_curves(0)))
    table = ranks_by_area(experiments)
    assert table.columns == ("", "rank", "made up")
    assert "no seed has a whole curve of each contender: 1." in table.note


def test_the_short_page_has_it():
    page = short(group(rows_of_curves(made_up_curves(0))), reach="badge alone")
    assert "### made up: label efficiency, balanced accuracy (test)" in page
    assert "| labels to reach badge alone | never | mean rank |" in page
