"""The program that decodes one long upload into FLAC, block by block, under limits of its own."""

import sys
from pathlib import Path

from myxtts.serving.decoder import limit_process

MOST_HOURS = 12


def main(path: str, target: str, shortest: str, seconds: str, memory: str, most: str) -> int:
    """Decode a recording into a file of at most so many bytes; print its seconds."""
    limit_process(int(seconds), int(memory), int(most))
    import numpy as np
    import soundfile

    from myxtts.audio.io import SILENCE_PEAK, open_blocks
    from myxtts.errors import UserError

    frames, peak = 0, 0.0
    try:
        with open_blocks(path) as (info, blocks):
            if info.seconds > MOST_HOURS * 3600:
                raise UserError(f"it is longer than {MOST_HOURS} h: send it in parts")
            with soundfile.SoundFile(
                target, "w", info.sample_rate, 1, "PCM_16", format="FLAC"
            ) as file:
                for block in blocks:
                    mono = block.mean(axis=1) if block.ndim > 1 else block
                    peak = max(peak, float(np.abs(mono).max(initial=0.0)))
                    frames += len(mono)
                    file.write(np.clip(mono, -1.0, 1.0))
        if frames < float(shortest) * info.sample_rate:
            raise UserError(f"it is shorter than {float(shortest):g} s")
        if peak < SILENCE_PEAK:
            raise UserError("it is silent: check the microphone, or the file")
    except UserError as error:
        print(error, file=sys.stderr)
        return UserError.exit_code
    except soundfile.LibsndfileError:  # reading raises another error
        print(_why_not_written(Path(target), int(most)), file=sys.stderr)
        return UserError.exit_code
    except MemoryError:
        print("it needs too much memory: send it as WAV or FLAC", file=sys.stderr)
        return UserError.exit_code
    print(frames / info.sample_rate)
    return 0


def _why_not_written(target: Path, most: int) -> str:
    if target.exists() and target.stat().st_size >= most:
        return f"it takes more than {most / 1e9:.1f} GB: send it in parts"
    return "there is no space left to write it to: free some on the disk, and send it again"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
