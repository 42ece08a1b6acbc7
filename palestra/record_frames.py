"""Reads exported records into data frames of pandas or polars, which are loaded when asked for."""

import importlib.util
import io
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast

from palestra.contract.record_exports import RecordFormat
from palestra.errors import LibraryMissingError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Library = Literal["pandas", "polars"]

_FLOATS: Final = (
    *("wall", "relative", "value", "episode_return", "mean", "median", "stdev", "min", "max"),
    *("length_mean", "length_median", "length_stdev", "length_min", "length_max", "success_rate"),
)
_CATEGORIES: Final = {"run_id": "category", "series": "category"}


def choose_library(wanted: Library | None) -> Library:
    """Returns the library of a frame: the wanted one, else pandas, else polars.

    Raises:
        LibraryMissingError: If it is not installed.
    """
    choices: tuple[Library, ...] = ("pandas", "polars") if wanted is None else (wanted,)
    for library in choices:
        if _is_installed(library):
            return library
    raise LibraryMissingError(
        f"{' and '.join(choices)} {'is' if wanted else 'are'} not installed: run `pip install "
        f"{choices[0]}`, or use Client.points, which needs no library"
    )


def choose_format(library: Library) -> RecordFormat:
    """Returns the form in which a library reads records: pandas needs pyarrow for Arrow."""
    return "arrow" if library == "polars" or _is_installed("pyarrow") else "csv"


def read_frame(
    library: Library, form: RecordFormat, pieces: Iterable[bytes]
) -> "pd.DataFrame | pl.DataFrame":
    """Returns the frame of an exported file.

    Args:
        library: The library.
        form: Form of the file: `arrow`, or `csv` for pandas.
        pieces: The file. An Arrow stream is read piece by piece.
    """
    file: BinaryIO = cast("BinaryIO", io.BufferedReader(_Pieces(pieces)))
    if library == "pandas":
        return _read_pandas(form, file)
    import polars as pl  # noqa: PLC0415

    if not _is_installed("pyarrow"):
        return pl.read_ipc_stream(io.BytesIO(file.read()))
    frame = pl.from_arrow(_read_table(file))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _read_pandas(form: RecordFormat, file: BinaryIO) -> "pd.DataFrame":
    if form == "arrow":
        # Each column of the table is freed once it is converted.
        return cast(
            "pd.DataFrame", _read_table(file).to_pandas(split_blocks=True, self_destruct=True)
        )
    import pandas  # noqa: PLC0415, ICN001 - the short name is that of the type

    # Parsers of pandas may differ in the last bit.
    read = pandas.read_csv(file, converters=dict.fromkeys(_FLOATS, _read_float))
    kept = {name: kind for name, kind in _CATEGORIES.items() if name in read.columns}
    return cast("pd.DataFrame", read.astype(kept))


def _read_float(cell: str) -> float:
    return float(cell) if cell else math.nan


def _read_table(file: BinaryIO) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    with pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


class _Pieces(io.RawIOBase):
    """A file whose content arrives piece by piece."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces: Iterator[bytes] = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken
