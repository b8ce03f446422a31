"""Runs in a world where everything fails, by seed: the output is that of an uninterrupted run, or it is refused.

There are two cases in which nobody can notice that a disk has lost what it had confirmed: readers have seen more than
the run remembers, or nothing at all is left of its folder.  Then no match is missing, and some may be too many.

``python -m tests.durable.test_simulation BEGIN END`` tries other seeds.
"""

from __future__ import annotations

import sys

import pytest

from tests.draws import seeds
from tests.durable.world import Story, net

SEEDS, AT_A_TIME = 200, 20


def judged(seed: int) -> Story:
    story = Story(seed)
    told = story.told()
    if story.refused:
        assert story.world.lies, f"seed {seed}: refused on an honest disk: {story.refused}"
        return story
    plain = story.plain()
    assert story.world.lies or not (story.world.forgot or story.world.anew), f"seed {seed}: an honest disk forgot"
    if story.world.anew or (story.world.forgot and story.kind == "at once"):
        assert net(plain).items() <= net(told, once=False).items(), f"seed {seed}, {story.kind}: a match is missing"
        return story
    once = story.kind != "at once"
    assert net(told, once=once) == net(plain), f"seed {seed}, {story.kind}, {story.world.losses} losses of power"
    if not story.revise:
        assert list(net(told, once=once)) == list(net(plain)), f"seed {seed}: another order"
    return story


@pytest.mark.parametrize("begin", [AT_A_TIME * n for n in seeds(SEEDS // AT_A_TIME)])
def test_the_output_is_that_of_a_run_without_interruption(begin: int) -> None:
    stories = [judged(seed) for seed in range(begin, begin + AT_A_TIME)]
    assert sum(story.world.losses for story in stories) > AT_A_TIME


@pytest.mark.parametrize("seed", [4178, 6357, 6661])
def test_a_disk_that_forgets_what_it_confirmed_costs_no_match(seed: int) -> None:
    story = judged(seed)
    assert story.world.forgot
    assert not story.refused


if __name__ == "__main__":
    lost = refused = 0
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        told = judged(number)
        lost, refused = lost + told.world.losses, refused + bool(told.refused)
    print(f"{lost:,} losses of power, {refused:,} runs refused to go on")
