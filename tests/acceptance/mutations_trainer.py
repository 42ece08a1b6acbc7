"""Mutations of the garage-style trainer: rows G1 to G49."""

from typing import Final

_CONFIG: Final = "workers/snapshot/config.py"
_EPOCHS: Final = "workers/entrypoints/trainer_parts/epoch_snapshots.py"
_SESSION: Final = "workers/entrypoints/trainer_parts/trainer_session.py"
_TRAINER: Final = "workers/entrypoints/trainer_parts/base_trainer.py"
_RECORDS: Final = "workers/entrypoints/trainer_parts/epoch_records.py"
_TABLE: Final = "workers/entrypoints/trainer_parts/progress_csv.py"
_SAMPLERS: Final = "workers/entrypoints/trainer_parts/samplers.py"
_WRITING: Final = "workers/snapshot/snapshot_directory.py"

TRAINER: Final = (
    (
        "G1",
        "the last episode is forgotten",
        _RECORDS,
        'self.last_episode = unpack(state["last_episode"])',
        "self.last_episode = None",
    ),
    (
        "G2",
        "a restored training begins anew",
        _SESSION,
        '**saved, "start_epoch": self.clock.epochs',
        '**saved, "start_epoch": 0',
    ),
    (
        "G3",
        "any mode will do",
        _CONFIG,
        "        if self.snapshot_mode not in MODES:",
        "        if False:",
    ),
    (
        "G5",
        "a batch may be short",
        _SAMPLERS,
        "while missing > 0:",
        "while missing > 0 and not episodes:",
    ),
    (
        "G7",
        "no batch size is guessed",
        _TRAINER,
        '            raise ValueError("no batch_size: give it here, or to train")',
        "            size = 1",
    ),
    (
        "G10",
        "a missing sampler is found late",
        _TRAINER,
        "or collector.sampler is None:",
        "and False:",
    ),
    (
        "G12",
        "saving needs no set-up",
        _SESSION,
        (
            '            raise NotSetupError(f"call setup(algo, env) or restore(from_dir) before '
            '{caller}")'
        ),
        "            return None",
    ),
    (
        "G13",
        "the mode last numbers its snapshots",
        _CONFIG,
        '            "last": (PARAMS,),',
        '            "last": numbered,',
    ),
    (
        "G15",
        "the gap is counted from 1",
        _CONFIG,
        "ignores_gap or epoch % self.snapshot_gap == 0",
        "ignores_gap or (epoch + 1) % self.snapshot_gap == 0",
    ),
    (
        "G17",
        "the mode gap_and_last forgets the last",
        _CONFIG,
        "if on_gap else (PARAMS,),",
        "if on_gap else (),",
    ),
    (
        "G18",
        "the mode none keeps something",
        _CONFIG,
        '            "none": (),',
        '            "none": (PARAMS,),',
    ),
    (
        "G19",
        "an old snapshot goes before the new one is there",
        _WRITING,
        "    target.rename(old)\n    temporary.rename(target)",
        "    shutil.rmtree(target)\n    temporary.rename(target)",
    ),
    ("G21", "the first is the last", _EPOCHS, '"first": min(found)}', '"first": max(found)}'),
    (
        "G26",
        "no epoch makes one",
        _TRAINER,
        "        if session.clock.epochs < args.n_epochs:",
        "        if session.clock.epochs <= args.n_epochs:",
    ),
    (
        "G29",
        "episodes are always stored",
        _SESSION,
        "if args.store_episodes else None",
        "if True else None",
    ),
    (
        "G33",
        "leaving the loop loses the epoch",
        _SESSION,
        '            self.engine("train").leave_epochs()',
        "            pass",
    ),
    (
        "G37",
        "False does not override True",
        _RECORDS,
        "for name, value in changes.items() if value is not None",
        "for name, value in changes.items() if value",
    ),
    (
        "G41",
        "env_steps are not set",
        _TRAINER,
        "        clock.count(value - clock.env_steps, 0)",
        "        clock.count(0, 0)",
    ),
    (
        "G48",
        "new keys shift the columns",
        _TABLE,
        "            self._columns += new\n",
        "            self._columns = [*new, *self._columns]\n",
    ),
    (
        "G49",
        "samplers stay open after an error",
        _SESSION,
        "        finally:\n            self._close()\n        return self.average_return",
        "        else:\n            self._close()\n        return self.average_return",
    ),
)
