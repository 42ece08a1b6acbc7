"""A secret of every class, generated at run time.

The repository contains none, so that scanners of repositories report nothing.
"""

import base64
import json
import random
import string

_WORD = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"


def draw(alphabet: str, size: int, seed: int = 1) -> str:
    """Returns `size` random characters of an alphabet, the same for the same seed."""
    chosen = random.Random(f"{alphabet}{size}{seed}")
    return "".join(chosen.choice(alphabet) for _ in range(size))


def _encode_part(document: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


def _make_pem(kind: str) -> tuple[str, str]:
    body = draw(_WORD + "+/", 64)
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----", body


def make_private_keys() -> dict[str, tuple[str, str]]:
    """Returns multi-line texts with a private key, and the part of each that must be redacted."""
    kinds = ("RSA", "EC", "DSA", "OPENSSH", "ENCRYPTED")
    keys = {f"private key: {kind}": _make_pem(f"{kind} PRIVATE KEY") for kind in kinds}
    body = draw(_WORD, 64)
    return {
        **keys,
        "private key: PKCS#8": _make_pem("PRIVATE " + "KEY"),
        "private key: PGP": _make_pem("PGP PRIVATE KEY BLOCK"),
        "private key: cut off": (
            _make_pem("RSA PRIVATE KEY")[0].rpartition("\n")[0],
            draw(_WORD + "+/", 64),
        ),
        "private key: PuTTY": (
            f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{body}\nPrivate-MAC: {body[:20]}",
            body,
        ),
    }


def make_tokens() -> dict[str, str]:
    """Returns a secret of each class that is recognised by its format."""
    github = {
        f"GitHub {kind}": f"{kind}_{draw(_WORD, 36)}"
        for kind in ("ghp", "gho", "ghu", "ghs", "ghr")
    }
    gitlab = {
        f"GitLab {kind}": f"{kind}-{draw(_WORD, 20)}"
        for kind in ("glpat", "gldt", "glrt", "glsoat")
    }
    slack = {
        f"Slack {kind}": f"{kind}-{draw(string.digits, 12)}-{draw(_WORD, 24)}"
        for kind in ("xoxb", "xoxp", "xapp")
    }
    stripe = {
        f"Stripe {kind}": f"{kind}_{draw(_WORD, 24)}"
        for kind in ("sk_live", "rk_live", "sk_test", "whsec")
    }
    return {
        **github,
        **gitlab,
        **slack,
        **stripe,
        "AWS access key": "AKIA" + draw(string.ascii_uppercase + string.digits, 16),
        "AWS temporary key": "ASIA" + draw(string.ascii_uppercase + string.digits, 16),
        "GitHub fine-grained": f"github_pat_{draw(_WORD, 22)}_{draw(_WORD, 59)}",
        "Slack webhook": (
            f"https://hooks.slack.com/services/T{draw(_WORD, 8)}/B{draw(_WORD, 8)}"
            f"/{draw(_WORD, 24)}"
        ),
        "JSON web token": (
            f"{_encode_part({'alg': 'HS256'})}.{_encode_part({'sub': '1234567890'})}"
            f".{draw(_WORD, 43)}"
        ),
        "OpenAI": f"sk-proj-{draw(_WORD, 40)}",
        "Hugging Face": f"hf_{draw(_WORD, 34)}",
        "Google API": f"AIza{draw(_WORD, 35)}",
        "npm": f"npm_{draw(_WORD, 36)}",
        "PyPI": f"pypi-AgEIcHlwaS5vcmc{draw(_WORD, 80)}",
        "SendGrid": f"SG.{draw(_WORD, 22)}.{draw(_WORD, 43)}",
        "Mailchimp": f"{draw(_HEX, 32)}-us12",
        "Twilio": f"SK{draw(_HEX, 32)}",
        "Telegram": f"{draw(string.digits[1:], 9)}:{draw(_WORD, 35)}",
        "Discord": f"M{draw(_WORD, 23)}.{draw(_WORD, 6)}.{draw(_WORD, 27)}",
        "Square": f"sq0csp-{draw(_WORD, 43)}",
        "Azure storage": f"AccountKey={draw(_WORD, 86)}==",
        "Databricks": f"dapi{draw(_HEX, 32)}",
        "age": f"AGE-SECRET-KEY-1{draw(string.ascii_uppercase + string.digits, 58)}",
        "Palestra": f"plr_{draw(_WORD, 40)}",
    }


def make_assignments() -> dict[str, tuple[str, str]]:
    """Returns lines with a secret that is recognised by its variable name or position.

    Each line is returned with its secret.
    """
    word, long, hexadecimal = "hunter" + "2", draw(_WORD, 40), draw(_HEX, 40)
    letters = "correct" + "horse" + "battery"
    return {
        "password in quotes": (f'password = "{word}"', word),
        "password of letters": (f"db_password = '{letters}'", letters),
        "password in JSON": (f'{{"user": "me", "password": "{word}"}}', word),
        "password of a shell": (f"export DB_PASSWORD={word}", word),
        "line of a .env": (f"SMTP_PASSWORD={letters}", letters),
        "api_key in quotes": (f"api_key='{hexadecimal}'", hexadecimal),
        "api key of a keyword argument": (f'client(api_key="{long}")', long),
        "AWS secret key": (
            f"aws_secret_access_key = {draw(_WORD + '+/', 40)}",
            draw(_WORD + "+/", 40),
        ),
        "token of W&B": (f"WANDB_API_KEY={hexadecimal}", hexadecimal),
        "client secret": (f"client_secret: {long}", long),
        "bearer": (f"Authorization: Bearer {long}", long),
        "basic authorization": (f"Authorization: Basic {long}", long),
        "URL with a password": (f"postgresql://me:{word}@db.example.org/x", word),
        "URL with a password of odd characters": (f"https://me:{word}@x:y@example.org/", word),
        "URL with a token": (f"https://{long}@git.example.org/x.git", long),
        "URL with a query": (f"https://example.org/?api_key={long}", long),
        "netrc": (f"machine example.org login me password {word}", word),
    }
