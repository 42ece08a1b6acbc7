"""Video files are read back as they were written."""

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from workers.recording.video_file import Frame, write_video


def yield_moving_square(count: int, height: int = 64, width: int = 96) -> Iterator[Frame]:
    for number in range(count):
        frame = np.full((height, width, 3), 230, np.uint8)
        frame[20:40, 2 * number : 2 * number + 20] = (200, 40, 20)
        yield frame


def test_a_video_holds_every_frame_at_its_place(tmp_path: Path) -> None:
    files = write_video(tmp_path / "episode.mp4", yield_moving_square(30), 30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["episode.jpg", "episode.mp4"]
    with av.open(str(files.video)) as container:
        stream = container.streams.video[0]
        read = [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(stream)]
        assert (
            stream.codec_context.name,
            stream.codec_context.pix_fmt,
            float(stream.average_rate or 0),
        ) == ("h264", "yuv420p", 30.0)
    assert files.frames == len(read) == 30
    for wanted, got in zip(yield_moving_square(30), read, strict=True):
        assert np.abs(got - wanted).mean() < 6


def test_the_index_lies_at_the_front(tmp_path: Path) -> None:
    content = write_video(tmp_path / "episode.mp4", yield_moving_square(5), 30).video.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")


def test_the_poster_is_the_first_frame(tmp_path: Path) -> None:
    files = write_video(tmp_path / "episode.mp4", yield_moving_square(3), 30)
    with av.open(str(files.poster)) as container:
        picture = next(container.decode(video=0)).to_ndarray(format="rgb24").astype(int)
    assert np.abs(picture - next(yield_moving_square(1))).mean() < 6


def test_odd_sizes_are_cropped_and_a_fractional_rate_is_kept(tmp_path: Path) -> None:
    files = write_video(tmp_path / "episode.mp4", yield_moving_square(3, 65, 97), 12.5)
    with av.open(str(files.video)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, float(stream.average_rate or 0)) == (96, 64, 12.5)


@pytest.mark.parametrize(
    ("frames", "fps", "said"),
    [
        ([], 30, "at least one frame"),
        ([np.zeros((8, 8, 3), np.uint8)], 0, "more than 0"),
        ([np.zeros((8, 8, 3), np.float32)], 30, "frame 0 is float32"),
        ([np.zeros((8, 8, 3), np.uint8), np.zeros((8, 10, 3), np.uint8)], 30, "frame 1"),
    ],
)
def test_invalid_frames_are_refused_and_leave_no_file(
    tmp_path: Path, frames: list[Frame], fps: float, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        write_video(tmp_path / "episode.mp4", frames, fps)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_video_leaves_the_older_one(tmp_path: Path) -> None:
    older = write_video(tmp_path / "episode.mp4", yield_moving_square(3), 30).video.read_bytes()

    def yield_and_raise() -> Iterator[Frame]:
        yield from yield_moving_square(2)
        raise RuntimeError("the simulator died")

    with pytest.raises(RuntimeError, match="died"):
        write_video(tmp_path / "episode.mp4", yield_and_raise(), 30)
    assert (tmp_path / "episode.mp4").read_bytes() == older
