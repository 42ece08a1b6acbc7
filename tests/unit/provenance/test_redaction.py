"""Text that redaction must not change; `test_secret_classes.py` tests what it replaces."""

import pytest

from palestra.redaction import REDACTED, redact, redact_arguments


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
        "password = os.environ['DB']",
        "secret = load_secret(name)",
        'password: "${DB_PASSWORD}"',
        "api_key = None",
        "a basic understanding of reinforcement-learning",
        "index 616f8d9..42e7680 100644",
        "commit 0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_code_is_not_changed(text: str) -> None:
    assert redact(text) == (text, 0)


def test_ordinary_arguments_are_not_changed() -> None:
    clean, count = redact_arguments(
        [
            "x",
            "--token",
            "a",
            "--password=b",
            "--token-file",
            "c",
            "--keys",
            "--lr",
            "1",
            "https://u:p@h/",
        ]
    )
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
