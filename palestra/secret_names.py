"""The names of files that hold secrets, whose content is never recorded."""

import fnmatch
from typing import Final

_SECRET_NAMES: Final = (
    *(
        ".env",
        ".env.*",
        "*.env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".pypirc",
        ".npmrc",
        ".htpasswd",
        ".git-credentials",
    ),
    *(
        "*.pem",
        "*.key",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.keystore",
        "*.ppk",
        "*.kdbx",
        "*.gpg",
        "*.asc",
        "*.token",
        "*.tfvars",
        "*.tfstate",
    ),
    *(
        "id_rsa*",
        "id_dsa*",
        "id_ecdsa*",
        "id_ed25519*",
        "credentials*",
        "*credentials.*",
        "secrets",
        "secrets.*",
        "*.secret",
        "*.secrets",
    ),
    *(
        "client_secret*",
        "service-account*.json",
        "service_account*.json",
        "kubeconfig",
        ".dockercfg",
        ".dockerconfigjson",
        ".vault-token",
    ),
)
"""Patterns of the names of files that hold secrets, in lower case."""

_SECRET_DIRECTORIES: Final = frozenset(
    {".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud"}
)


def is_secret_name(name: str) -> bool:
    """Returns whether a file holds secrets, decided by its path in the work tree."""
    *directories, last = name.lower().split("/")
    return not _SECRET_DIRECTORIES.isdisjoint(directories) or any(
        fnmatch.fnmatchcase(last, pattern) for pattern in _SECRET_NAMES
    )
