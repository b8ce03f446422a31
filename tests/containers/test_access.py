"""Tokens and their rights, reading that needs one, TLS, and the audit."""

from __future__ import annotations

import json
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from etalis_py.containers import ServeError, serve
from etalis_py.containers.access import AccessError, read_tokens
from tests.containers.server import Server
from tests.containers.test_programs import HOT, JSON, QUERY, TURTLE, post, until
from tests.processes import PATIENCE

TLS = Path(__file__).parent / "tls"
CONTAINER = TURTLE | {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
TOKENS = f"""
[[token]]
name = "station-7"
secret = "seven"
write = ["/s7/"]
read = ["/all/"]

[[token]]
name = "viewer"
sha256 = "{sha256(b"look").hexdigest()}"
read = ["/all/"]
"""


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"} if secret else {}


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def server(start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory, audit: Path) -> Server:
    """A server with a token for everything, and two with rights for some of its containers."""
    file = tmp_path_factory.mktemp("tokens") / "tokens.toml"
    file.write_text(TOKENS)
    server = start(token="all", tokens=str(file), read_token="see", reading_needs_token=True, audit=str(audit))
    for path in ("s7", "s77", "all"):
        assert httpx.put(f"{server.url}{path}/", headers=CONTAINER | bearer("all")).status_code == 201
    return server


@pytest.mark.parametrize(
    ("secret", "path", "status"),
    [
        ("all", "/s7/", 201),
        ("seven", "/s7/", 201),
        ("seven", "/s77/", 403),  # another container whose name begins alike
        ("seven", "/all/", 403),
        ("seven", "/", 403),
        ("look", "/all/", 403),
        ("see", "/all/", 403),
        ("wrong", "/s7/", 401),
        ("", "/s7/", 401),
    ],
)
def test_a_token_writes_where_it_may(http: httpx.Client, secret: str, path: str, status: int) -> None:
    answer = http.post(path, content="<#a> <#b> 1 .", headers=TURTLE | bearer(secret))
    assert answer.status_code == status, answer.text
    if status == 403:
        assert f"this token may not change {path}" in answer.json()["detail"]


def test_a_program_writes_only_where_its_token_may(http: httpx.Client) -> None:
    headers = QUERY | bearer("seven")
    assert http.post("/s7/", content=HOT, params={"output": "/all/"}, headers=headers).status_code == 403
    assert http.post("/all/", content=HOT, params={"output": "/s7/"}, headers=headers).status_code == 403
    made = http.post("/s7/", content=HOT, headers=headers | {"Slug": "hot"})
    assert made.status_code == 201
    for method, body in (("PUT", HOT), ("DELETE", "")):
        assert http.request(method, "/s7/hot", content=body, headers=QUERY | bearer("look")).status_code == 403
    assert http.delete("/s7/hot", headers=bearer("seven")).status_code == 204
    assert http.post("/-/check", content=HOT, headers=headers).status_code == 403
    assert http.post("/-/check?stream=/s7/", content=HOT, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("secret", "path", "status"),
    [
        ("all", "/s77/", 200),
        ("see", "/s77/", 200),
        ("seven", "/s7/", 200),  # whoever may write may read
        ("look", "/all/", 200),
        ("look", "/s7/", 403),
        ("", "/all/", 401),
        ("", "/-/status", 401),
        ("", "/metrics", 401),
        ("look", "/metrics", 403),
        ("see", "/metrics", 200),
        ("", "/-/constraints", 200),
        ("", "/-/page.js", 200),
        ("", "/-/words.js", 200),
    ],
)
def test_reading_needs_a_token_that_may_read_there(http: httpx.Client, secret: str, path: str, status: int) -> None:
    assert http.get(path, headers=bearer(secret)).status_code == status


def test_the_page_comes_without_a_token_and_what_it_shows_does_not(http: httpx.Client) -> None:
    answer = http.get("/all/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (answer.status_code, "token-form" in answer.text) == (200, True)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for path in ("/all/?newest=5", "/all/?after=0", "/none"):
        assert http.get(path, headers={"Accept": "text/html"}).status_code == 401


def test_the_state_is_that_of_what_a_token_may_read(http: httpx.Client) -> None:
    state = http.get("/-/status", headers=bearer("seven")).json()
    assert {c["path"] for c in state["containers"]} >= {"/s7/", "/all/"}
    assert all(c["path"].startswith(("/s7/", "/all/")) for c in state["containers"])
    assert state["writable"] is True
    assert http.get("/-/status", headers=bearer("look")).json()["writable"] is False
    assert "/s77/" in {c["path"] for c in http.get("/-/status", headers=bearer("see")).json()["containers"]}


def test_a_question_and_a_socket_need_a_token_too(http: httpx.Client, server: Server) -> None:
    program = http.post("/s7/", content=HOT, headers=QUERY | bearer("seven")).headers["location"]
    assert http.get(program, params={"where": ""}, headers=JSON).status_code == 401
    assert http.get(program, params={"where": ""}, headers=JSON | bearer("look")).status_code == 403
    assert http.get(program, params={"where": ""}, headers=JSON | bearer("seven")).status_code == 200
    assert http.delete(program, headers=bearer("all")).status_code == 204
    address = server.url.replace("http", "ws", 1) + "s7/"
    with pytest.raises(InvalidStatus, match="401"):
        connect(address)
    with connect(address, additional_headers=bearer("see")):
        pass


def test_each_token_has_limits_of_its_own(start: Callable[..., Server], tmp_path: Path) -> None:
    (file := tmp_path / "tokens.toml").write_text(TOKENS)
    server = start(store=None, token="all", tokens=str(file), limits={"questions_per_minute": 1})
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        assert http.put("/s7/", headers=CONTAINER | bearer("all")).status_code == 201
        program = http.post("/s7/", content=HOT, headers=QUERY | bearer("all")).headers["location"]
        until(http, program, "state", "running")
        secrets = ("seven", "seven", "look", "all", "see")  # the last two count for the address, one together
        asked = [http.get(program, params={"where": ""}, headers=JSON | bearer(secret)) for secret in secrets]
        assert [answer.status_code for answer in asked] == [200, 429, 200, 200, 429]


def test_the_audit_has_a_line_for_each_request_that_writes(http: httpx.Client, audit: Path) -> None:
    before = len(audit.read_text().splitlines())
    http.post("/s7/", content="<#a> <#b> 1 .", headers=TURTLE | bearer("seven"))
    http.get("/s7/", headers=bearer("seven"))
    http.post("/s7/", content="<#a>", headers=TURTLE | bearer("all"))
    http.delete("/s7/", headers=bearer("look"))
    http.post("/s7/", content="", headers=TURTLE)
    lines = [json.loads(line) for line in audit.read_text().splitlines()[before:]]
    assert [(line["method"], line["path"], line["token"], line["status"]) for line in lines] == [
        ("POST", "/s7/", "station-7", 201),
        ("POST", "/s7/", "ETALIS_TOKEN", 400),
        ("DELETE", "/s7/", "viewer", 403),
        ("POST", "/s7/", None, 401),
    ]
    assert {line["client"] for line in lines} == {"127.0.0.1"}
    assert all(line["time"].endswith("Z") for line in lines)


def test_an_audit_that_was_moved_away_goes_on_in_a_new_file(http: httpx.Client, audit: Path) -> None:
    audit.rename(audit.with_suffix(".1"))
    http.post("/s7/", content="<#a> <#b> 1 .", headers=TURTLE | bearer("seven"))
    assert len(audit.read_text().splitlines()) == 1


@pytest.fixture(scope="module")
def secure(start: Callable[..., Server]) -> Iterator[httpx.Client]:
    server = start(store=None, tls_cert=str(TLS / "cert.pem"), tls_key=str(TLS / "key.pem"))
    assert server.url.startswith("https://")
    context = ssl.create_default_context(cafile=TLS / "cert.pem")
    with httpx.Client(base_url=server.url, verify=context, timeout=PATIENCE) as http:
        yield http


def test_tls(secure: httpx.Client) -> None:
    stream = secure.post("/", content="", headers=TURTLE).headers["location"]
    assert stream.startswith("https://127.0.0.1:")
    assert secure.get(stream).status_code == 200
    program = secure.post("/", content=HOT, headers=QUERY).headers["location"]
    post(secure, "/", 40)
    until(secure, program, "matches", 1)
    address = str(secure.base_url.copy_with(scheme="wss"))
    with connect(address, ssl=ssl.create_default_context(cafile=TLS / "cert.pem")) as pushed:
        post(secure, "/", 41)
        assert "41" in pushed.recv(PATIENCE)


def test_tls_takes_no_old_version_and_no_plain_request(secure: httpx.Client) -> None:
    host, port = secure.base_url.host, secure.base_url.port
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection((host, port), timeout=PATIENCE) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        old.wrap_socket(raw)
    with socket.create_connection((host, port), timeout=PATIENCE) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert not raw.recv(100).startswith(b"HTTP")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "cannot be read"),
        ("", "one table"),
        ("[[tokens]]\nname = 'a'", "one table"),
        ("[[token]]\nsecret = 's'\nwrite = ['/']", "needs a name"),
        ("[[token]]\nname = 'a'\nwrite = ['/']", "either its secret"),
        ("[[token]]\nname = 'a'\nsecret = 's'\nsha256 = 's'\nwrite = ['/']", "either its secret"),
        ("[[token]]\nname = 'a'\nsha256 = 's'\nwrite = ['/']", "64 hexadecimal digits"),
        ("[[token]]\nname = 'a'\nsecret = 's'", "no rights"),
        ("[[token]]\nname = 'a'\nsecret = 's'\nwrite = ['/a']", "paths of containers"),
        ("[[token]]\nname = 'a'\nsecret = 's'\nwrites = ['/']", "unknown key 'writes'"),
        ("[[token]]\nname = 'a'\nsecret = 's'\nread = ['/']\n" * 2, "two tokens have the same name"),
    ],
)
def test_a_file_of_tokens_that_is_wrong_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    (file := tmp_path / "tokens.toml").write_text(text)
    with pytest.raises(AccessError, match=said):
        read_tokens(file)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokens": "/nowhere.toml"}, "cannot be read"),
        ({"reading_needs_token": True}, "there is none: give a token"),
        ({"read_token": "x", "host": "0.0.0.0"}, "give a token for writing"),
        ({"tls_key": str(TLS / "key.pem")}, "give --tls-cert, too"),
        ({"tls_cert": str(TLS / "cert.pem")}, "cannot be used with its key"),
        ({"tls_cert": "/nowhere.pem"}, "cannot be used with its key"),
        ({"audit": "/nowhere/audit.log"}, "choose another file"),
    ],
)
def test_a_server_that_would_not_be_as_safe_as_asked_does_not_start(options: dict, said: str) -> None:
    with pytest.raises(ServeError, match=said):
        serve(**({"store": None, "port": 0} | options))
