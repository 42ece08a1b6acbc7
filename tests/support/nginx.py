"""A real nginx before a server, with the configuration of docs/team.md or with its defaults."""

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.documents import REPOSITORY, read_blocks
from tests.support.process_stack import is_listening
from tests.support.waiting import wait_for

HOST: Final = "127.0.0.2"
"""An address of this machine that programs do not exempt from certificates and proxies."""
_WHOLE: Final = """
daemon off;
user {user};
pid {directory}/nginx.pid;
error_log stderr;
worker_processes 1;
events {{}}
http {{
    access_log off;
    {places}
    {content}
}}
"""
_DEFAULTS: Final = """
server {
    listen 443 ssl;
    ssl_certificate /etc/ssl/certs/palestra.pem;
    ssl_certificate_key /etc/ssl/private/palestra.key;
    location / {
        proxy_pass http://127.0.0.1:8080;
    }
}
"""


@dataclass(frozen=True, slots=True)
class Nginx:
    """What each nginx of a test has in common.

    Args:
        directory: For its configuration, certificate, log and bodies.
        port: On which it listens with TLS.
        path: Below which it publishes the server, without a slash at its end.
    """

    directory: Path
    port: int
    path: str

    @property
    def url(self) -> str:
        """The address that it publishes."""
        return f"https://{HOST}:{self.port}{self.path}"

    @property
    def trust(self) -> dict[str, str]:
        """Variables by which programs trust its certificate and reach it without a proxy."""
        return {"SSL_CERT_FILE": str(self._certificate), "NO_PROXY": HOST, "no_proxy": HOST}

    @property
    def _certificate(self) -> Path:
        return self.directory / "nginx.pem"

    @property
    def _key(self) -> Path:
        return self.directory / "nginx.key"

    def make_certificate(self) -> None:
        """Makes a certificate that is its own authority."""
        subject = ["-subj", "/CN=nginx of a test", "-addext", f"subjectAltName=IP:{HOST}"]
        files = ["-keyout", str(self._key), "-out", str(self._certificate)]
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command = ["openssl", "req", "-x509", "-days", "2", *kind, *subject, *files]
        subprocess.run(command, check=True, capture_output=True)

    @contextmanager
    def run_documented(self, target: int) -> Iterator[None]:
        """Runs nginx before a port with the configuration of docs/team.md."""
        blocks = read_blocks(REPOSITORY / "docs" / "team.md")
        (configuration,) = [block.text for block in blocks if block.language == "nginx"]
        with self._run(configuration, target):
            yield

    @contextmanager
    def run_with_defaults(self, target: int) -> Iterator[None]:
        """Runs nginx before a port with no more than a certificate and the port's address."""
        with self._run(_DEFAULTS, target):
            yield

    @contextmanager
    def _run(self, configuration: str, target: int) -> Iterator[None]:
        file = self.directory / "nginx.conf"
        file.write_text(self._complete(configuration, target))
        # Debian has nginx where only the paths of root have it.
        program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        assert program is not None, "no nginx: .ci/tools/ensure-nginx.sh installs it"
        log = self.directory / "nginx.log"
        with log.open("ab") as output:
            command = [program, "-p", str(self.directory), "-c", str(file), "-e", "stderr"]
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_for(
                lambda: is_listening(self.port, HOST), lambda: f"nginx listens\n{log.read_text()}"
            )
            yield
        finally:
            process.terminate()
            process.wait()

    def _complete(self, configuration: str, target: int) -> str:
        """Returns a configuration with the addresses and files of this nginx."""
        replaced = {
            "listen 443 ssl;": f"listen {HOST}:{self.port} ssl;",
            "/etc/ssl/certs/palestra.pem": str(self._certificate),
            "/etc/ssl/private/palestra.key": str(self._key),
            "127.0.0.1:8080": f"127.0.0.1:{target}",
            "location / {": f"location {self.path}/ {{",
        }
        for documented, own in replaced.items():
            assert configuration.count(documented) == 1, documented
            configuration = configuration.replace(documented, own)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = " ".join(f"{kind}_temp_path {self.directory / kind};" for kind in kinds)
        # Otherwise nginx of root has workers that may not read the private directories of tests.
        user = getpass.getuser()
        return _WHOLE.format(
            directory=self.directory, user=user, places=places, content=configuration
        )
