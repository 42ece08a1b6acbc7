"""Writes the frames of an episode as a video for browsers, and its poster image.

Owns the codec and its settings: H.264 in MP4, yuv420p, index at the front so that playing begins
before all is loaded. Independent of the source of the frames.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

import av
import numpy as np
import numpy.typing as npt

Frame = npt.NDArray[np.uint8]
"""uint8 [height, width, 3], red, green, blue."""

_QUALITY: Final = {"crf": "26", "preset": "veryfast"}
POSTER_SUFFIX: Final = ".jpg"


class VideoFiles(NamedTuple):
    """The files of one video, and its number of frames."""

    video: Path
    poster: Path
    """The first frame as JPEG."""
    frames: int


def write_video(path: Path, frames: Iterable[Frame], fps: float) -> VideoFiles:
    """Encodes frames one at a time, so that a long episode is not held in memory.

    An existing file is replaced after all frames are written.

    Args:
        path: Ends in `.mp4`.
        frames: At least one, all of one size; sides of an odd length lose their last line.
        fps: Frames per second, more than 0.

    Raises:
        ValueError: If there is no frame, `fps` is not positive, or a frame is not an image of the
            first frame's size.
    """
    if not fps > 0:
        raise ValueError(f"fps must be more than 0, not {fps}: take env.metadata['render_fps']")
    pictures = _crop_frames(frames)
    first = next(pictures, None)
    if first is None:
        raise ValueError(
            "a video needs at least one frame: make the environment with render_mode='rgb_array'?"
        )
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        count = _encode(temporary, first, pictures, fps)
        poster = _write_poster(path.with_suffix(POSTER_SUFFIX), first)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return VideoFiles(path, poster, count)


def _crop_frames(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Yields frames cropped to even sides, as the colour format needs them."""
    shape: tuple[int, ...] | None = None
    for number, frame in enumerate(frames):
        picture = np.asarray(frame)
        if (
            picture.dtype != np.uint8
            or picture.ndim != 3
            or picture.shape[2] != 3
            or (shape and picture.shape != shape)
        ):
            wanted = (
                "uint8 [height, width, 3]"
                if shape is None
                else f"uint8 {list(shape)} like the first"
            )
            raise ValueError(
                f"frame {number} is {picture.dtype} {list(picture.shape)}, not {wanted}"
            )
        shape = picture.shape
        height, width = (max(2, side - side % 2) for side in picture.shape[:2])
        yield np.ascontiguousarray(picture[:height, :width])


def _encode(path: Path, first: Frame, others: Iterator[Frame], fps: float) -> int:
    count = 0
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream(
            "libx264", rate=Fraction(fps).limit_denominator(1_000), options=_QUALITY
        )
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = "yuv420p"
        picture: Frame | None = first
        while picture is not None:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            count += 1
            picture = next(others, None)
        container.mux(stream.encode())
    return count


def _write_poster(path: Path, frame: Frame) -> Path:
    codec = av.CodecContext.create("mjpeg", "w")
    codec.height, codec.width = frame.shape[:2]
    codec.pix_fmt = "yuvj420p"
    codec.time_base = Fraction(1, 25)
    picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuvj420p")
    packets = [*codec.encode(picture), *codec.encode(None)]
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(b"".join(bytes(packet) for packet in packets))
    return temporary.replace(path)
