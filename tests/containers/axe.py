"""axe-core: what keeps people from using a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.containers.browser import Browser

FILE = Path(__file__).parents[2] / "out/node_modules/axe-core/axe.min.js"
needs_axe = pytest.mark.skipif(
    not FILE.exists(), reason="no axe-core here; with npm: make out/node_modules/axe-core/axe.min.js"
)


def obstacles(browser: Browser) -> list[str]:
    """What is serious in what is shown."""
    browser.evaluate(f"{FILE.read_text()}; true")
    found = browser.evaluate(
        "axe.run().then(({ violations }) => violations.map(one =>"
        " `${one.impact} ${one.id}: ${one.nodes.map(node => node.target).join(', ')}`))"
    )
    return [line for line in found if re.match("serious|critical", line)]
