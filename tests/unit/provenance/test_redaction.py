"""What counts as a secret and what is left as it is."""

import pytest

from palestra.redaction import REDACTED, redact, redact_arguments


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("key AKIAABCDEFGHIJKLMNOP here", "AKIAABCDEFGHIJKLMNOP"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("origin https://me:s3cret-w0rd@example.org/x.git", "s3cret-w0rd"),
        ("redis://:s3cret-w0rd@127.0.0.1:6379/0", "s3cret-w0rd"),
        ('"api_key": "9f8a7b6c5d4e"', "9f8a7b6c5d4e"),
        ("PASSWORD=Tr0ub4dor&3xyz", "Tr0ub4dor&3xyz"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n", "b3Bl"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "dozjgNryP4J3jVmNHl0w5N"),
    ],
)
def test_secrets_go(text: str, secret: str) -> None:
    clean, count = redact(text)
    assert secret not in clean
    assert REDACTED in clean
    assert count == 1


@pytest.mark.parametrize(
    "text",
    [
        "for key in sorted(values): print(key)",
        "key = lambda item: item.lower()",
        "token = request.headers.get(name)",
        "monkey: bananas",
        "https://example.org/path?x=1",
        "sha = 0123456789abcdef0123456789abcdef01234567",
        "key=aaaaaaaaaaaa1",
    ],
)
def test_code_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_arguments() -> None:
    clean, count = redact_arguments(["x", "--token", "a", "--password=b", "--token-file", "c", "--keys", "--lr", "1", "https://u:p@h/"])
    assert clean == [
        "x",
        "--token",
        REDACTED,
        f"--password={REDACTED}",
        "--token-file",
        "c",
        "--keys",
        "--lr",
        "1",
        f"https://{REDACTED}@h/",
    ]
    assert count == 3
