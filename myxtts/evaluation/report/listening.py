"""The self-contained page of a blind listening test, which hides what it plays."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from myxtts.atomic import write_output
from myxtts.evaluation.listening import RATING, ListeningTest
from myxtts.evaluation.listening_tally import FORMAT, t_quantile
from myxtts.evaluation.report.page import embedded_wav

PAGE = "listening.html"
_TEMPLATE = Path(__file__).with_name(PAGE)
_PLACEHOLDER = "{{test}}"
_ID_DIGITS = 12


def write_listening_page(path: Path, test: ListeningTest) -> str:
    """Write the page, whole or not at all; return its id."""
    facts = _facts(test)
    before, after = _TEMPLATE.read_text(encoding="utf-8").split(_PLACEHOLDER)
    write_output(path, f"{before}{_script_json(facts)}{after}".encode())
    return facts["page"]


def _facts(test: ListeningTest) -> dict[str, Any]:
    """What the page's script reads; its id is a hash of all the rest."""
    facts: dict[str, Any] = {
        "format": FORMAT,
        "design": test.design,
        "seed": test.seed,
        "key": _key(test),
        "trials": [
            {
                "text": trial.text,
                "clips": [embedded_wav(clip, test.sample_rate) for clip in trial.clips],
            }
            for trial in test.trials
        ],
    }
    if test.design == RATING and len(test.trials) > 1:
        facts["t"] = t_quantile(len(test.trials))
    digest = hashlib.sha256(_script_json(facts).encode()).hexdigest()
    return {"page": digest[:_ID_DIGITS], **facts}


def _key(test: ListeningTest) -> str:
    """Which system is behind which clip, in base64: not to be read by chance."""
    trials = [{"sentence": trial.sentence, "sides": trial.sides} for trial in test.trials]
    key = json.dumps({"systems": test.systems, "trials": trials})
    return base64.b64encode(key.encode()).decode()


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
