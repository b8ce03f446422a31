"""``--background`` with a table, its mapping, and the draft that ``etalis map --background`` prints for it."""

from __future__ import annotations

from tests.cli.conftest import Folder

LIMITS = "sku;name;limit\np1;bolt;100\np2;nut;5\n"
SOLD = "at,order,sku,amount\n1,o1,p1,90\n2,o2,p2,7\n"
NAMED = ("-s", "sold.csv", "--time", "at", "--subject", "order", "-f", "csv", "-b", "limits.csv")
QUERY = "SELECT ?o ?l { EVENT { ?o :sku ?p ; :amount ?x } ?row :sku ?p ; :limit ?l FILTER (?x > ?l) }"
RIGHT = "o,l,start,end\nhttp://example.org/o2,5,2,2\n"


def test_a_table_is_drafted_as_background_and_told(folder: Folder) -> None:
    folder.write("limits.csv", LIMITS)
    folder.write("sold.csv", SOLD)
    run = folder.etalis("run", "-q", QUERY, *NAMED)
    assert run.stdout == RIGHT
    assert "limits.csv: there is no mapping, so one is drafted: subject :{sku}" in run.stderr


def test_the_draft_of_map_is_a_mapping_of_the_background(folder: Folder) -> None:
    folder.write("limits.csv", LIMITS)
    folder.write("sold.csv", SOLD)
    folder.write("limits.toml", folder.etalis("map", "--background", "limits.csv").stdout)
    for mapping in ("limits.toml", "limits.csv=limits.toml"):
        run = folder.etalis("run", "-q", QUERY, *NAMED, "--background-mapping", mapping)
        assert (run.stdout, run.stderr) == (RIGHT, "")


def test_a_mapping_of_no_table_is_refused(folder: Folder) -> None:
    folder.write("firms.ttl", "@prefix : <http://example.org/> . :a :b :c .")
    folder.write("sold.csv", SOLD)
    for mapping, told in (("x.csv=m.toml", "there is no --background x.csv"), ("m.toml", "is for tables")):
        options = ("-b", "firms.ttl", "--background-mapping", mapping)
        assert told in folder.etalis("run", "-q", QUERY, "-s", "sold.csv", *options, code=2).stderr
