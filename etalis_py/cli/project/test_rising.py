"""Tests of the query: run them with pytest."""

from pathlib import Path

from etalis_py import Event, compile, event, read_stream
from etalis_py.testing import EOF, assert_matches, play

HERE = Path(__file__).parent
RISING = compile(HERE / "rising.rq")


def tick(company: str, price: int, volume: int, time: int) -> Event:
    return event(f"{company} :price {price} ; :volume {volume}", time)


def test_a_rise_within_ten_seconds_matches() -> None:
    played = play(RISING, [tick(":acme", 10, 100, 1), tick(":acme", 12, 150, 3), EOF])
    assert_matches(played, [{"company": ":acme", "low": 10, "high": 12, "start": 1, "end": 3}])


def test_a_rise_that_takes_longer_does_not() -> None:
    played = play(RISING, [tick(":acme", 10, 100, 1), tick(":acme", 12, 150, 12), EOF])
    assert_matches(played, [])


def test_fewer_shares_do_not_match() -> None:
    played = play(RISING, [tick(":acme", 10, 100, 1), tick(":acme", 12, 90, 3), EOF])
    assert_matches(played, [])


def test_companies_are_not_mixed_up() -> None:
    played = play(RISING, [tick(":acme", 10, 100, 1), tick(":bolt", 12, 150, 3), EOF])
    assert_matches(played, [])


def test_the_file_has_one_rise() -> None:
    ticks = read_stream(HERE / "ticks.csv", mapping=HERE / "mapping.toml")
    assert_matches(play(RISING, [*ticks, EOF]), [{"company": ":acme", "start": 1, "end": 3}])
