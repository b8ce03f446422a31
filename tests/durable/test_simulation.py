"""Runs in a world where everything fails, by seed: the output is that of an uninterrupted run, or it is refused.

``python -m tests.durable.test_simulation BEGIN END`` tries other seeds.
"""

from __future__ import annotations

import sys

import pytest

from tests.durable.world import Story, net

SEEDS, AT_A_TIME = 200, 20


def judged(seed: int) -> Story:
    story = Story(seed)
    told = story.told()
    if story.refused:
        assert story.world.lies, f"seed {seed}: refused on an honest disk: {story.refused}"
        return story
    plain = story.plain()
    once = story.kind != "at once"
    assert net(told, once=once) == net(plain), f"seed {seed}, {story.kind}, {story.world.losses} losses of power"
    if not story.revise:
        assert list(net(told, once=once)) == list(net(plain)), f"seed {seed}: another order"
    return story


@pytest.mark.parametrize("begin", range(0, SEEDS, AT_A_TIME))
def test_the_output_is_that_of_a_run_without_interruption(begin: int) -> None:
    stories = [judged(seed) for seed in range(begin, begin + AT_A_TIME)]
    assert sum(story.world.losses for story in stories) > AT_A_TIME


if __name__ == "__main__":
    lost = refused = 0
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        told = judged(number)
        lost, refused = lost + told.world.losses, refused + bool(told.refused)
    print(f"{lost:,} losses of power, {refused:,} runs refused to go on")
