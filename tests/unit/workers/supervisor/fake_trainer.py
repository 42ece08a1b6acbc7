"""A trainer that does not learn: it appends points, and follows orders or misbehaves.

`PALESTRA_TEST_TRAINER` selects its behaviour. A real supervisor starts it.
"""

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

from palestra.contract.names import new_id
from palestra.contract.states import Cause, Outcome, SnapshotReason
from palestra.contract.telemetry import Points, SnapshotFile, SnapshotWritten
from palestra.contract.work_order import AttemptReport, Failure, WorkOrder
from palestra.telemetry.spool import SpoolWriter
from workers.ipc.attempt_directory import CONTROL_FD_VARIABLE, AttemptDirectory, write_atomically

match os.environ.get("PALESTRA_TEST_TRAINER"):
    case "missing_library":
        import a_library_that_is_not_installed  # noqa: F401
    case "broken_library":
        ctypes.string_at(0)

SLEEPER = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
ENDS = {
    "pause": (Outcome.PAUSED, Cause.USER),
    "cancel": (Outcome.CANCELLED, Cause.USER),
    "drain": (Outcome.DRAINED, Cause.DRAIN),
}


class Trainer:
    def __init__(self, directory: AttemptDirectory, steps: int) -> None:
        self.directory = directory
        self.order = WorkOrder.model_validate_json(directory.work_order.read_bytes())
        self.run = self.order.runs[0].run_id
        self.spool = SpoolWriter(directory.spool)
        self.control = int(os.environ[CONTROL_FD_VARIABLE])
        self.steps = steps
        self.step = 0

    def train(self, *, deaf: bool = False, compiles: bool = False) -> None:
        if compiles:
            self.compile()
        while self.step < self.steps:
            self.advance()
            word = self.wait_for_order(0.01)
            if word and not deaf:
                self.end(*ENDS[word])
                return
        self.end(Outcome.SUCCEEDED, Cause.BUDGET)

    def compile(self) -> None:
        """States what a trainer states, until the file `next` is there for each step."""
        for counters in ({}, {"update": 0, "compile": "compiled", "compiling": True}):
            if counters:
                write_atomically(self.directory.progress, json.dumps(counters).encode())
            while not (next_ := self.directory.root / "next").exists():
                self.wait_for_order(0.01)
            next_.unlink()
        final = {"update": 1, "compile": "compiled", "compiling": False}
        write_atomically(self.directory.progress, json.dumps(final).encode())
        while not (self.directory.root / "next").exists():
            self.wait_for_order(0.01)

    def advance(self) -> None:
        self.step += 1
        place = {
            "env_step": (self.step,),
            "update": (self.step,),
            "episode": (0,),
            "wall": (time.time(),),
        }
        self.spool.append(
            [Points(run=self.run, series="loss/td", value=(1.0 / self.step,), **place)]
        )
        write_atomically(
            self.directory.progress,
            json.dumps({"env_step": self.step, "update": self.step, "episode": 0}).encode(),
        )
        if self.step % 20 == 0:
            sys.stdout.write(f"step {self.step}\n")
        if self.step % 50 == 0:
            self.write_video()
            self.save(SnapshotReason.PERIODIC)

    def wait_for_order(self, seconds: float) -> str:
        if not select.select([self.control], [], [], seconds)[0]:
            return ""
        heard = os.read(self.control, 100).decode()
        if not heard:
            os._exit(1)
        return heard.splitlines()[-1]

    def save(self, reason: SnapshotReason) -> None:
        snapshot_id = new_id("snp")
        content = f"weights at {self.step}".encode() * 1000
        path = self.directory.snapshots / snapshot_id / "weights.bin"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        file = SnapshotFile(
            name="weights.bin", size=len(content), sha256=hashlib.sha256(content).hexdigest()
        )
        place = {"env_step": self.step, "update": self.step, "episode": 0, "wall": time.time()}
        record = SnapshotWritten(
            run=self.run,
            snapshot_id=snapshot_id,
            reason=reason,
            format_version=1,
            resume_exact=True,
            files=(file,),
            **place,
        )
        self.spool.append([record])

    def write_video(self) -> None:
        folder = self.directory.videos / self.run
        folder.mkdir(exist_ok=True)
        (folder / ".half.mp4.tmp").write_text("half a video")
        for ending in (".jpg", ".mp4"):
            write_atomically(
                folder / f"{self.step:012d}-episode-0{ending}", f"{ending} at {self.step}".encode()
            )

    def end(self, outcome: Outcome, cause: Cause) -> None:
        self.save(SnapshotReason.FINISH if outcome is Outcome.SUCCEEDED else SnapshotReason.STOP)
        export = self.directory.exports / self.run / "weights.safetensors"
        export.parent.mkdir(parents=True)
        export.write_bytes(b"exported")
        report = AttemptReport(outcome=outcome, cause=cause, env_step=self.step, update=self.step)
        write_atomically(self.directory.report, report.model_dump_json().encode())

    def fail(self) -> None:
        """Reports an exception with its traceback, as the real trainer does."""
        try:
            float("a robot")
        except ValueError as error:
            trace = "".join(traceback.format_exception(error))
            failure = Failure(
                message=f"ValueError: {error}", exception="ValueError", traceback=trace
            )
        place = {"env_step": self.step, "update": self.step}
        report = AttemptReport(
            outcome=Outcome.FAILED, cause=Cause.USER_EXCEPTION, failure=failure, **place
        )
        write_atomically(self.directory.report, report.model_dump_json().encode())


def hang() -> None:
    while True:
        signal.pause()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--attempt-dir", type=Path)
    directory = AttemptDirectory(parser.parse_args().attempt_dir)
    mode, _, argument = os.environ.get("PALESTRA_TEST_TRAINER", "train").partition(":")
    trainer = Trainer(
        directory, int(argument or 10**9) if mode in {"train", "deaf", "compile"} else 10**9
    )
    (directory.root / "environ.json").write_text(json.dumps(dict(os.environ)))
    (directory.root / "inputs.json").write_text(
        json.dumps(
            {
                str(p.relative_to(directory.inputs)): p.read_text()
                for p in directory.inputs.rglob("*")
                if p.is_file()
            }
        )
    )
    sys.stdout.write("hello from the trainer\n")
    match mode:
        case "train" | "compile":
            trainer.train(compiles=mode == "compile")
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            trainer.train(deaf=True)
        case "children":
            for fresh_session in (False, True):
                subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=fresh_session)
            double = (
                "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
                f"{SLEEPER!r}], start_new_session=True, close_fds=False)"
            )
            subprocess.run([sys.executable, "-c", double], check=True, close_fds=False)
            trainer.train()
        case "exit":
            sys.stderr.write("about to leave\n")
            os._exit(int(argument))
        case "raise":
            for _ in range(3):
                trainer.advance()
            trainer.fail()
        case "segfault":
            ctypes.string_at(0)
        case "hang":
            trainer.advance()
            hang()
        case "memory":
            hoard = bytearray(300 * 1024 * 1024)
            hoard[::4096] = b"x" * len(hoard[::4096])
            trainer.train()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
