"""The stopwatch of the benchmarks takes every candidate every round, and short calls several times."""

from stopwatch import median_ratio, paired_times


def test_every_round_has_a_time_of_every_candidate_in_changing_order():
    calls = []
    times = paired_times({name: lambda name=name: calls.append(name) for name in "abc"}, rounds=5)
    assert [len(seconds) for seconds in times.values()] == [5, 5, 5] and all(min(each) > 0 for each in times.values())
    turns = [name for k, name in enumerate(calls) if k == 0 or calls[k - 1] != name]
    assert {*turns[3:6]} == {*"abc"} and len(calls) > 5 * len(turns)  # short calls are repeated within a turn


def test_the_ratio_compares_a_round_with_itself():
    assert median_ratio({"a": [1.0, 2.0, 9.0], "b": [2.0, 4.0, 3.0]}, "a", "b") == 0.5
