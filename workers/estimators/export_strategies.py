"""Export strategies, which define the files that are exported after an evaluation."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from palestra.contract.names import ExportFormat
from workers.estimators.checkpoints import latest_checkpoint
from workers.estimators.model_owner import ModelOwner

EXPORTS_KEPT: Final = 5


ExportFn = Callable[[Any, Path, Path | None, Mapping[str, Any] | None], Any]
"""A function `(model, export_path, checkpoint_path, eval_result)` that exports a model into the
directory `export_path`; `ExportStrategy.export` returns its return value.
"""


@dataclass(frozen=True, slots=True)
class ExportStrategy:
    """A named function that exports a model."""

    name: str
    """Name of the strategy, and of its directory below `export`."""
    export_fn: ExportFn

    def export(
        self,
        model: object,
        export_path: Path,
        checkpoint_path: Path | None = None,
        eval_result: Mapping[str, object] | None = None,
    ) -> object:
        """Exports a model into `export_path`, the directory of this strategy.

        Returns the value of `export_fn`.
        """
        return self.export_fn(model, export_path, checkpoint_path, eval_result)


def make_export_strategy(
    name: str = "policy",
    formats: Sequence[ExportFormat] = ("weights", "program"),
    exports_to_keep: int | None = EXPORTS_KEPT,
) -> ExportStrategy:
    """Returns a strategy that exports each checkpoint to a directory named by its global_step.

    Args:
        name: Name of the strategy.
        formats: See `workers.export.module_files.write_module`.
        exports_to_keep: Number of newest exports to keep; `None` keeps all.

    Raises:
        ValueError: If `exports_to_keep` is less than 1.
    """
    if exports_to_keep is not None and exports_to_keep < 1:
        raise ValueError(
            f"exports_to_keep must be at least 1, not {exports_to_keep}; None keeps all"
        )

    def export(
        model: ModelOwner,
        export_path: Path,
        checkpoint_path: Path | None,
        eval_result: Mapping[str, object] | None,
    ) -> Path | None:
        del eval_result
        checkpoint = checkpoint_path or latest_checkpoint(model.model_dir)
        if checkpoint is None:
            return None
        target = export_path / checkpoint.name.rpartition("-")[2]
        temporary = export_path / f"{target.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        model.export(temporary, formats, checkpoint)
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
        _keep_newest(export_path, exports_to_keep)
        return target

    return ExportStrategy(name, export)


def check_strategies(given: object) -> tuple[ExportStrategy, ...]:
    """Converts one strategy, several or `None` to a tuple.

    Raises:
        ValueError: If an object is not an `ExportStrategy`, or two strategies have the same name.
    """
    if given is None:
        return ()
    strategies = (
        (given,)
        if isinstance(given, ExportStrategy)
        else tuple(given)
        if isinstance(given, Iterable)
        else (given,)
    )
    for strategy in strategies:
        if not isinstance(strategy, ExportStrategy):
            raise ValueError(  # noqa: TRY004 - as the seed does
                "export_strategies must be ExportStrategy objects, one or several, "
                f"not {strategy!r}"
            )
    names = [strategy.name for strategy in strategies]
    if len(set(names)) < len(names):
        raise ValueError(f"export_strategies must have different names, not {', '.join(names)}")
    return strategies


def _keep_newest(directory: Path, kept: int | None) -> None:
    exports = sorted(
        (path for path in directory.iterdir() if path.name.isdecimal()),
        key=lambda path: int(path.name),
    )
    for old in exports[:-kept] if kept is not None else ():
        shutil.rmtree(old, ignore_errors=True)
