"""Fresh random examples, for as long as one likes; a counter-example is written down as a test file.

    python -m tests.fresh --seconds 600
    python -m tests.fresh --seconds 600 tests/engine/test_oracle.py

The suite itself draws from a fixed seed.  Here each round has a seed of its own, which is printed; it runs the drawn
tests of one file, the next round those of the next.  The file that is written runs the test that failed, on the example
on which it failed.  Give it a name that says what holds, and keep it.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from itertools import cycle
from pathlib import Path
from random import randrange

ROOT = Path(__file__).parents[1]
_TEST = re.compile(r"^_{3,} (\w+)(?:\[.*\])? _{3,}$", re.MULTILINE)
_EXAMPLE = re.compile(r"(?:Falsifying example|Failing test case): \w+\((.*?)\n\)$", re.MULTILINE | re.DOTALL)
_BLOB = re.compile(r"@reproduce_failure\((.*?)\) as a decorator")
_ROOMS = ("tests.", "etalis_py", "etalis_rules", "etalis_compiler")


def drawn_files(paths: Sequence[str]) -> list[Path]:
    """The files with drawn tests among these files and folders; those of Spark's session take too long here."""
    found: list[Path] = []
    for path in map(Path, paths):
        files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        texts = [file.read_text(encoding="utf-8") for file in files]
        found += [
            file for file, text in zip(files, texts, strict=True) if "@given" in text and "SparkSession" not in text
        ]
    return found


def imports(example: str, module: str) -> list[str]:
    """The lines that import the names of an example, from where its test would find them."""
    names = {node.id for node in ast.walk(ast.parse(f"example({example})")) if isinstance(node, ast.Name)}
    test = import_module(module)
    rooms = [test, *(room for name, room in sorted(sys.modules.items()) if name.startswith(_ROOMS))]
    lines = ["from hypothesis import Phase, example, settings"]
    for name in sorted(names - {"example", *dir(builtins)}):
        home = next((room for room in rooms if hasattr(room, name)), None)
        if home is None:
            raise NameError(f"nothing is called {name}")
        lines.append(f"from {getattr(getattr(home, name), '__module__', home.__name__)} import {name}")
    return lines


def in_python(test: str, module: str, report: str) -> tuple[list[str], str] | None:
    """The imports and the expression of a test of one counter-example: spelled out, else as Hypothesis encodes it."""
    plain = re.sub(r"^E {1,7}", "", report, flags=re.MULTILINE)
    if shown := _EXAMPLE.search(plain):
        example = re.sub(r"  # or any other .*", "", shown[1])
        try:
            return imports(example, module), f"settings(phases=[Phase.explicit])(example({example})({test}))"
        except (SyntaxError, NameError):  # some value is not printed as it is written
            pass
    if blob := _BLOB.search(plain):
        return ["from hypothesis import reproduce_failure"], f"reproduce_failure({blob[1]})({test})"
    return None


def written_down(file: Path, seed: int, report: str) -> Path | None:
    """Write the first counter-example of a report as a test file beside the file of its test."""
    failed = _TEST.search(report)
    module = ".".join(file.with_suffix("").parts)
    found = failed and in_python(failed[1], module, report[failed.end() :])
    if not failed or not found:
        return None
    (lines, expression), test = found, failed[1]
    text = f"""\
\"\"\"A counter-example to ``{test}`` of {file.name}, drawn with the seed {seed}.\"\"\"

from __future__ import annotations

{chr(10).join(lines)}
from {module} import {test}

test_counter_example = {expression}
del {test}
"""
    path = file.with_name(f"test_drawn_{seed}.py")
    path.write_text(text, encoding="utf-8")
    for arguments in (["check", "--fix", "--exit-zero"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *arguments, "--quiet", str(path)], cwd=ROOT, capture_output=True)
    return path


def pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def round_of(file: Path) -> bool:
    """Run the drawn tests of a file with a fresh seed; says whether they hold."""
    seed = randrange(2**32)
    print(f"{file} --hypothesis-seed={seed}", flush=True)
    done = pytest("-x", "-m", "hypothesis", f"--hypothesis-seed={seed}", str(file))
    if done.returncode in (0, 5):  # 5: none of its tests is drawn
        return True
    print(done.stdout + done.stderr)
    path = written_down(file, seed, done.stdout)
    if path is None:
        print(f"no example could be written down: run pytest {file} --hypothesis-seed={seed}")
    elif pytest(str(path)).returncode == 1:
        print(f"the counter-example is written down in {path}: it fails there, too")
    else:
        print(f"{path} does not fail by itself: run pytest {file} --hypothesis-seed={seed}")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fresh", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long (default 600); a round is finished")
    parser.add_argument("paths", nargs="*", default=["tests"], help="files or folders of tests (default: all)")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    files = drawn_files(options.paths)
    if not files:
        parser.error(f"no drawn tests in {', '.join(options.paths)}")
    for file in cycle(files):
        if time.monotonic() >= end:
            break
        if not round_of(file):
            return 1
    print("no counter-example")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
