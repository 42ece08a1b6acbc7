"""Downloads: stored files on the user's disk.

A file is complete and verified or absent, and lies inside the target directory.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palestra import errors
from palestra.client import Client
from palestra.downloads import DownloadError, StoredFile, make_safe_name, store
from tests.support import api_samples
from tests.support.api_samples import NOW, RUN
from tests.support.fake_http_server import (
    Answer,
    FakeHttpServer,
    RecordedRequest,
    make_problem,
    run_fake_server,
)

CONTENT = bytes(range(256)) * 40
ART = api_samples.make_id("art", 1)


def make_stored_file(name: str = "weights.bin", content: bytes = CONTENT) -> StoredFile:
    return StoredFile(ART, name, len(content), hashlib.sha256(content).hexdigest())


def make_reader(content: bytes = CONTENT) -> Callable[[int], Iterator[bytes]]:
    return lambda offset: iter([content[offset:]])


def list_files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("policy.pt2", "policy.pt2"),
        ("memory/part 1.npz", "memory/part 1.npz"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a/../../b", "a/b"),
        (".bashrc", "_bashrc"),
        (".ssh/authorized_keys", "_ssh/authorized_keys"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("con.txt", "_con.txt"),
        ("C:\\x", "C_/x"),
        ("x\x00\n\x1b[31m\u202etxt.exe", "x____31m_txt.exe"),
        ("-rf", "-rf"),
        ("~root", "_root"),
        ("a" * 400, "a" * 200),
        ("é.txt", "_.txt"),
    ],
)
def test_file_names_cannot_leave_the_directory(name: str, path: str) -> None:
    """A user who uploads a file chooses its name."""
    assert make_safe_name(name) == Path(path)


def test_a_long_path_keeps_its_last_components() -> None:
    assert make_safe_name("/".join("abcdefghijkl")) == Path("e/f/g/h/i/j/k/l")


def test_content_is_downloaded_completely_and_once(tmp_path: Path) -> None:
    target = store(make_stored_file("memory/part.npz"), tmp_path / "new", make_reader())
    assert (target, target.read_bytes()) == (tmp_path / "new" / "memory" / "part.npz", CONTENT)
    assert list_files(tmp_path) == {"new/memory/part.npz"}

    def refuse_to_read(_offset: int) -> Iterator[bytes]:
        raise AssertionError("what is there already is not sent again")

    assert store(make_stored_file("memory/part.npz"), tmp_path / "new", refuse_to_read) == target


def test_an_interrupted_download_continues_at_its_offset(tmp_path: Path) -> None:
    asked: list[int] = []

    def yield_part(offset: int) -> Iterator[bytes]:
        asked.append(offset)
        yield CONTENT[offset : offset + 4_000]

    assert store(make_stored_file(), tmp_path, yield_part).read_bytes() == CONTENT
    assert asked == [0, 4_000, 8_000]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (make_reader(CONTENT[:-1] + b"x"), "SHA-256"),
        (make_reader(CONTENT + b"x"), "is larger than"),
        (lambda offset: iter([CONTENT[offset:100]]), "ended after 100 of 10240 bytes"),
    ],
)
def test_content_with_a_wrong_digest_leaves_no_file(
    tmp_path: Path, content: Callable[[int], Iterator[bytes]], words: str
) -> None:
    with pytest.raises(DownloadError, match=words):
        store(make_stored_file(), tmp_path, content)
    assert list_files(tmp_path) == set()


def test_a_file_with_other_content_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_text("mine")
    with pytest.raises(DownloadError, match="exists with another content"):
        store(make_stored_file(), tmp_path, make_reader())
    assert (tmp_path / "weights.bin").read_text() == "mine"


def test_symbolic_links_are_not_followed_out_of_the_directory(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (inside / "memory").symlink_to(outside)
    (inside / "weights.bin").symlink_to(outside / "weights.bin")
    for name, words in (
        ("memory/part.npz", "leads out of"),
        ("weights.bin", "exists with another content"),
    ):
        with pytest.raises(DownloadError, match=words):
            store(make_stored_file(name), inside, make_reader())
    assert list_files(outside) == set()


@pytest.fixture
def peer() -> Iterator[FakeHttpServer]:
    with run_fake_server() as running:
        yield running


@pytest.fixture
def client(peer: FakeHttpServer) -> Iterator[Client]:
    with Client(peer.url, "plr_test") as made:
        made._connection.sleep = lambda _seconds: None
        yield made


def make_view(**changes: object) -> dict[str, object]:
    file = make_stored_file()
    document = {
        "id": ART,
        "run_id": RUN,
        "attempt_id": api_samples.make_id("att", 1),
        "snapshot_id": None,
        "name": file.name,
    }
    return {
        **document,
        "kind": "export",
        "size": file.size,
        "sha256": file.sha256,
        "stored": True,
        "created_at": NOW,
        **changes,
    }


def answer_partially(asked: RecordedRequest) -> Answer:
    """Answers a range request, but closes the connection after 3,000 bytes."""
    first = int(asked.headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
    rest = CONTENT[first:]
    headers = {
        "Content-Length": str(len(rest)),
        "Connection": "close",
        "Content-Type": "application/octet-stream",
    }
    return Answer(206 if first else 200, raw=rest[:3_000], headers=headers)


def test_a_lost_connection_is_resumed_by_a_range_request(
    peer: FakeHttpServer, client: Client, tmp_path: Path
) -> None:
    peer.set_answers("GET", f"/artifacts/{ART}", Answer(200, make_view()))
    peer.set_answers(
        "GET",
        f"/artifacts/{ART}/content",
        Answer(503, make_problem(503, "unavailable", "Later.")),
        answer_partially,
    )
    assert client.download(ART, tmp_path).read_bytes() == CONTENT
    ranges = [asked.headers.get("range") for asked in peer.asked if asked.path.endswith("/content")]
    assert ranges == [None, None, "bytes=3000-", "bytes=6000-", "bytes=9000-"]


def test_a_server_without_range_requests_sends_the_whole_file_again(
    peer: FakeHttpServer, client: Client, tmp_path: Path
) -> None:
    peer.set_answers("GET", f"/artifacts/{ART}", Answer(200, make_view()))
    octets = {"Content-Type": "application/octet-stream"}
    peer.set_answers(
        "GET",
        f"/artifacts/{ART}/content",
        answer_partially,
        Answer(200, raw=CONTENT, headers=octets),
    )
    assert client.download(ART, tmp_path).read_bytes() == CONTENT


def test_a_refused_download_raises_the_servers_error(
    peer: FakeHttpServer, client: Client, tmp_path: Path
) -> None:
    peer.set_answers("GET", f"/artifacts/{ART}", Answer(200, make_view()))
    with pytest.raises(errors.NotFoundError):
        client.download(ART, tmp_path)
    assert list_files(tmp_path) == set()


def test_the_error_of_a_missing_export_says_how_to_make_one(
    peer: FakeHttpServer, client: Client, tmp_path: Path
) -> None:
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/artifacts",
        Answer(
            200,
            api_samples.make_page(
                make_view(name="weights.safetensors"), make_view(name="policy.onnx", stored=False)
            ),
        ),
    )
    with pytest.raises(DownloadError, match=f"palestra export {RUN} --format onnx"):
        client.download_export(RUN, tmp_path, format="onnx")
