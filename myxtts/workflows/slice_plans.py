"""Where recordings were cut: `slices/NAME.json` for each of them, and a table of all parts."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from myxtts.atomic import explained, write
from myxtts.audio.encode import FORMATS
from myxtts.audio.slice_options import CLIP_FORMATS, SliceOptions
from myxtts.audio.slicing import Slice
from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, parse_json, read_document
from myxtts.data.corpus.metadata_files import SLICES_FILE
from myxtts.errors import UserError

PLANS, WAVS = "slices", "wavs"
COLUMNS = ("clip", "source", "start", "end", "seconds", "level", "clipped", "dropped")


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a recording is cut, and all that this depends on."""

    name: str
    source: str
    sha256: str
    sample_rate: int
    frames: int
    format: str
    options: SliceOptions
    slices: tuple[Slice, ...]

    def clips(self) -> dict[str, Slice]:
        """The slices that become clips, by their ids."""
        kept = [one for one in self.slices if not one.dropped]
        return {f"{self.name}-{number:04d}": one for number, one in enumerate(kept, 1)}

    def clip_path(self, clip: str, corpus: Path) -> Path:
        return corpus / WAVS / f"{clip}{FORMATS[self.format].ending}"

    def seconds(self, found: Iterable[Slice]) -> float:
        return sum(one.end - one.start for one in found) / self.sample_rate


def read_plans(corpus: Path) -> dict[str, Plan]:
    """The plans of earlier calls by name; an error where the folder holds something else."""
    if corpus.exists() and not corpus.is_dir():
        raise UserError(f"{corpus} is a file: name a folder with -o")
    if not (corpus / PLANS).is_dir():
        if corpus.is_dir() and any(corpus.iterdir()):
            raise UserError(
                f"{corpus} holds something else than clips of recordings: name a new folder, or "
                "one that `myxtts data slice` has made, with -o"
            )
        return {}
    plans = {}
    for path in sorted((corpus / PLANS).glob("*.json")):
        try:
            plan = _parse_plan(parse_json(read_document(path, MOST_JSON_BYTES)))
        except (OSError, DocumentError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}, which says where a recording was cut, cannot be read ({error}): restore "
                "it, or name another folder with -o"
            ) from error
        if plan.name != path.stem or plan.format not in CLIP_FORMATS:
            raise UserError(f"{path} is not the work of `myxtts data slice`: name another folder")
        plans[plan.name] = plan
    return plans


def write_plan(plan: Plan, corpus: Path) -> None:
    """Write where a recording is cut."""
    content = json.dumps(asdict(plan), ensure_ascii=False) + "\n"
    write_part(corpus / PLANS / f"{plan.name}.json", content.encode())


def write_table(plans: dict[str, Plan], corpus: Path) -> None:
    """Write the table of all parts of all recordings, dropped ones too."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    for _, plan in sorted(plans.items()):
        ids = {one: clip for clip, one in plan.clips().items()}
        for one in plan.slices:
            start, end = one.start / plan.sample_rate, one.end / plan.sample_rate
            times = (f"{start:.3f}", f"{end:.3f}", f"{end - start:.3f}")
            level = f"{one.level:.1f}"
            rows.writerow((ids.get(one, ""), plan.source, *times, level, one.clipped, one.dropped))
    write_part(corpus / SLICES_FILE, table.getvalue().encode())


def write_part(path: Path, content: bytes) -> None:
    """Write under a name that the next run overwrites, if this one is killed meanwhile."""
    with explained(path, kept="clips that are finished are kept"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content, alone=True)


def _parse_plan(document: dict[str, Any]) -> Plan:
    values = dict(document)
    values["options"] = SliceOptions(**values["options"])
    values["slices"] = tuple(Slice(**one) for one in values["slices"])
    return Plan(**values)
