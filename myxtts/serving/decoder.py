"""The program that decodes one upload: a path in, float32 samples out, under limits of its own."""

import resource
import sys
from pathlib import Path


def main(path: str, rate: str, longest: str, shortest: str, seconds: str, memory: str) -> int:
    """Decode a recording to stdout; 2 is the exit code for what its sender can fix."""
    limit_process(int(seconds), int(memory))
    from myxtts.audio.io import check_audible, read_audio, read_info
    from myxtts.errors import UserError

    try:
        info = read_info(path)
        if info.frames > float(longest) * info.sample_rate:
            raise UserError(f"it is longer than {float(longest):g} s: send a part of it")
        samples = read_audio(path, int(rate))
        if len(samples) < float(shortest) * int(rate):
            raise UserError(f"it is shorter than {float(shortest):g} s: send more")
        check_audible(samples, Path(path))
    except UserError as error:
        print(error, file=sys.stderr)
        return UserError.exit_code
    except MemoryError:
        print("it needs too much memory: send it as WAV or FLAC", file=sys.stderr)
        return UserError.exit_code
    sys.stdout.buffer.write(samples.tobytes())
    return 0


def limit_process(seconds: int, memory: int, file_bytes: int = 0) -> None:
    """Limit the time, the memory and the files of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
