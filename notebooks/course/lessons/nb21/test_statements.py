"""Numbers and statements in the prose of notebook 21 that no output shows, computed and run again."""

import re

from told import output, prose

from course.kit.learn.by_key import find_question


def test_says_by_which_number_which_repair_is_worth_more():
    """The cells assert the bounds when they run; here their outcome stands beside the words."""
    table = re.findall(r"(\w[\w ]+?) +AP (\d\.\d\d) +AP50 (\d\.\d\d)", output("21", "worth = {"))
    worth = {name: (float(ap), float(ap50)) for name, ap, ap50 in table}
    as_it_is, names, half, exact = (
        worth[name] for name in ("as it is", "right names", "boxes half way", "exact boxes")
    )
    assert half[0] - as_it_is[0] > 5 * (names[0] - as_it_is[0]) > 0
    assert names[1] > as_it_is[1] == half[1] == exact[1]
    text = prose("21")
    assert f"bring most of what is left to gain, {as_it_is[1]:.2f} to {names[1]:.2f}" in text
    assert f"Right names bring {as_it_is[0]:.2f} to {names[0]:.2f}, and exact boxes {exact[0]:.2f}." in text
    assert f"move half of the way bring {half[0]:.2f}" in text


def test_asks_about_the_lists_that_it_prints():
    question = find_question("21.floor")
    counts = re.findall(r"(\d+) boxes, +(\d+) of them wrong", output("21", "def surest"))
    (boxes, wrong), (sure, sure_wrong) = counts
    assert f"by all {int(boxes):,} boxes, {wrong} of them wrong" in question.text
    assert f"by the {sure} with a score of 0.5 or more, {sure_wrong} of them wrong" in question.text
