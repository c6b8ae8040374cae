"""Files that tests read, and the command line that answers are compared with."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ORDERS = """\
city,status,price,qty,t
Bern,paid,1.50,2,2026-11-25T08:00:00Z
Oslo,open,20,1,2026-11-25T09:30:00Z
Bern,paid,2.25,4,2026-11-26T10:00:00Z
Oslo,paid,,3,2026-11-26T11:00:00Z
"Rio, RJ",open,0.10,1,2026-11-26T12:00:00Z
"""

LOG = """\
203.0.113.9 - - [25/Nov/2026:13:45:10 +0000] "GET / HTTP/1.1" 200 512
203.0.113.7 - - [25/Nov/2026:13:46:10 +0000] "GET /a HTTP/1.1" 404 12
203.0.113.9 - - [25/Nov/2026:14:01:10 +0000] "GET / HTTP/1.1" 200 -
"""

EVENTS = """\
{"user": {"country": "CH"}, "ms": 1.5}
{"user": {"country": "NO"}, "ms": 20}
{"user": {"country": "CH"}, "ms": 2}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory, the current one, with small files."""
    monkeypatch.chdir(tmp_path)
    Path("orders.csv").write_text(ORDERS)
    Path("access.log").write_text(LOG)
    Path("events.jsonl").write_text(EVENTS)
    Path("bad.csv").write_text("city,price\nBern,1\nOslo,many\nBern,2\n")
    return tmp_path


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30,000 records with nulls, quotes and bytes that aren't UTF-8."""
    path = tmp_path_factory.mktemp("large") / "large.csv"
    draw = random.Random(7)
    with path.open("wb") as file:
        file.write(b"key,kind,price,qty\n")
        for _ in range(30_000):
            key = draw.randrange(3_000)
            kind = draw.choice([b"a", b"b", b'"c, ""d"""', b"\xff\xfe", b""])
            price = draw.choice([b"", b"%d.%02d" % (draw.randrange(-99, 999), draw.randrange(100))])
            file.write(b"k%d,%s,%s,%d\n" % (key, kind, price, draw.randrange(9)))
    return path


@pytest.fixture
def program() -> Callable[..., bytes]:
    """What the command line prints."""

    def run(*words: str | Path) -> bytes:
        command = [sys.executable, "-m", "ringfold", *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    return run
