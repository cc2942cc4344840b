"""The whole way in a browser: recordings, a corpus, a training, a comparison, a clone, speech."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from tests.helpers.browser import Browser
from tests.helpers.long_recording import make_recording
from tests.helpers.runs import ROOT, SMALL

SECONDS = 900  # for which anything is waited for
STEPS = 30
FAKE_MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
def browser():
    with Browser(*FAKE_MICROPHONE) as browser:
        yield browser


@contextlib.contextmanager
def studio(folder):
    """`myxtts studio` as a program; yields its address."""
    words = ["studio", str(folder), "--port", "0"]
    command = [sys.executable, "-m", "myxtts.cli.main", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            yield server.stdout.readline().split("/studio")[0]
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(SECONDS)


@pytest.fixture
def folder(tmp_path):
    """A studio's folder; jobs that a failed test leaves behind are killed."""
    folder = tmp_path / "studio"
    folder.mkdir()
    yield folder
    for path in folder.glob("jobs/*/process.json"):
        if not path.with_name("result.json").exists():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(json.loads(path.read_text())["pid"], signal.SIGKILL)


def until(tab, condition):
    """Wait until an expression is true on the page; return its value."""
    end = time.monotonic() + SECONDS
    while True:
        found = tab.evaluate(condition)
        if found:
            return found
        shown = tab.evaluate("document.body.innerText")
        assert time.monotonic() < end, f"{condition}\n{shown}\n{tab.problems}"
        time.sleep(0.2)


def press(tab, text, within="main"):
    """Click on the button or the link with a text, once it can be."""
    found = f"""[...document.querySelectorAll({json.dumps(within)} + " button, " +
      {json.dumps(within)} + " a")].find(one => one.textContent.trim() === {json.dumps(text)} &&
      !one.disabled && one.getClientRects().length)"""
    # By the mouse: browsers play sound only where somebody has clicked.
    place = f"""(() => {{ const one = {found}; if (!one) return null;
      one.scrollIntoView({{ block: "center" }}); const box = one.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
    x, y = until(tab, place)
    button = {"x": x, "y": y, "button": "left", "clickCount": 1}
    for kind in ("mousePressed", "mouseReleased"):
        tab.call("Input.dispatchMouseEvent", type=kind, **button)
    tab.settle()


def fill(tab, label, value):
    """Write into the field with a label."""
    tab.evaluate(
        f"""(() => {{ const label = [...document.querySelectorAll("main label")].find(
          one => one.textContent.trim() === {json.dumps(label)});
          const field = document.getElementById(label.htmlFor);
          field.value = {json.dumps(value)};
          for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind)); }})()"""
    )


def drop(tab, paths):
    """Drop files on the page."""
    files = {path.name: base64.b64encode(path.read_bytes()).decode() for path in paths}
    tab.evaluate(
        f"""(() => {{ const dropped = new DataTransfer();
          for (const [name, content] of Object.entries({json.dumps(files)})) {{
            const bytes = Uint8Array.from(atob(content), one => one.charCodeAt(0));
            dropped.items.add(new File([bytes], name, {{ type: "audio/wav" }}));
          }}
          document.getElementById("drop").dispatchEvent(new DragEvent("drop",
            {{ dataTransfer: dropped, bubbles: true, cancelable: true }})); }})()"""
    )


def reload(tab):
    tab.load("Page.reload")
    until(tab, "document.readyState === 'complete' && !!document.querySelector('main h2')")


def has(text):
    return f"document.body.innerText.includes({json.dumps(text)})"


@pytest.mark.timeout(1800)  # about a minute and a half where nothing else runs
def test_from_recordings_to_a_voice(browser, tmp_path, folder):
    often = {"save_interval": 5, "sample_interval": 10, "validation_interval": 5}
    kept = ("ema_decay", "alignment_prior_steps", "log_interval", "adversarial_loss_weight")
    sections = {
        "data": {name: SMALL[name] for name in ("batch_size", "num_workers", "val_fraction")},
        "model": {name: value for name, value in SMALL.items() if name in MODEL},
        "training": {**{name: SMALL[name] for name in kept}, **often},
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(sections))
    with studio(folder) as url:
        tab = browser.open(f"{url}/studio", width=1280)
        make_corpus(tab, tmp_path)
        train(tab)
    with studio(folder) as url:  # another start: the run is found again
        tab.close()
        tab = browser.open(f"{url}/studio#/training/ada", width=1280)
        resume(tab)
        compare(tab)
        speak(tab, tmp_path)
        assert all(one.startswith((url, "blob:", "data:")) for one in tab.requests)
        tab.close()


MODEL = {
    *("use_gst", "token_states", "pitch_contour", "text_encoder_dim", "text_encoder_conv_layers"),
    *("text_encoder_layers", "text_encoder_heads", "decoder_dim", "decoder_layers"),
    *("audio_encoder_dim", "audio_encoder_layers", "speaker_embedding_dim"),
}


def make_corpus(tab, folder):
    """Drop three recordings, cut them, type texts, record a sentence."""
    until(tab, has("There is no corpus yet"))
    fill(tab, "Name", "Ada reads")
    press(tab, "New corpus")
    until(tab, "location.hash === '#/recordings/ada-reads'")
    until(tab, "!!document.getElementById('drop')")
    drop(tab, [make_recording(folder / f"tape {n}.wav", 4, seed=n) for n in range(3)])
    until(tab, has("tape-2"))
    press(tab, "Cut at pauses")
    until(tab, has("12 clips, 0 texts"))
    texts = "[...document.querySelectorAll('tbody td.wide textarea')]"
    until(tab, f"{texts}.length === 12")
    for number in range(12):
        tab.evaluate(
            f"(() => {{ const one = {texts}[{number}]; one.value = 'Sentence {number} is read.';"
            "one.dispatchEvent(new Event('change')); })()"
        )
    until(tab, has("12 clips, 12 texts"))
    press(tab, "● Record")
    time.sleep(1.5)
    press(tab, "■ Stop recording")
    until(tab, "!!document.querySelector('audio[src]')")
    end = time.monotonic() + SECONDS
    while not list(folder.glob("studio/takes/*/take.flac")):
        assert time.monotonic() < end
        time.sleep(0.1)
    until(tab, "window.dispatchEvent(new Event('beforeunload', { cancelable: true }))")
    reload(tab)  # it is offered again
    press(tab, "Keep it")
    until(tab, has("13 clips, 13 texts"))
    assert tab.problems == []


def train(tab):
    """Begin a training, reload in the middle, stop it."""
    tab.evaluate("location.hash = '#/training?corpus=ada-reads'")
    until(tab, has("New training"))
    until(tab, "document.querySelector('main select').value === 'ada-reads'")
    fill(tab, "Name", "Ada")
    fill(tab, "Steps", 3000)
    press(tab, "Start training")
    until(tab, "location.hash === '#/training/ada'")
    step = (
        "+document.querySelector('.figures .value').textContent.split('/')[0].replaceAll(',', '')"
    )
    until(tab, "!!document.querySelector('.figures .value')")
    until(tab, f"{step} >= 5")
    reload(tab)
    until(tab, f"!!document.querySelector('.figures .value') && {step} >= 5")
    until(
        tab, has("It still improves") + "||" + has("improves any more") + "||" + has("It becomes")
    )
    press(tab, "Stop")
    until(tab, has("stopped"))
    press(tab, "Keep a copy")
    until(tab, has("Kept as"))
    assert tab.problems == []


def resume(tab):
    """Go on for some steps, to the end."""
    until(tab, has("Keep a copy"))
    step = tab.evaluate("+document.querySelector('progress').value") * 3000
    assert step >= 5
    fill(tab, "Steps", int(step) + STEPS)
    press(tab, "Resume")
    until(
        tab,
        f"document.querySelector('.figures .value').textContent.includes('{STEPS}') ||"
        + has("finished"),
    )
    until(tab, has("finished"))
    assert tab.problems == []


def compare(tab):
    """Compare the voice with what it was, blind."""
    tab.evaluate("location.hash = '#/compare?first=ada'")
    until(tab, "document.querySelector('main select')?.value === 'ada'")
    fill(tab, "Sentences, one a line", "One is here.\nTwo is there.")
    press(tab, "Compare")
    for _ in range(2):
        press(tab, "One is better")
        time.sleep(0.5)
    until(tab, has("preferred"))
    press(tab, "Stop")
    until(tab, has("stopped") + "||" + has("finished"))
    assert tab.problems == []


def speak(tab, folder):
    """Clone the voice of a recording, speak with it, download what it says."""
    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.evaluate("location.hash = '#/speak'")
    until(tab, "!!document.getElementById('reference')")
    until(tab, "[...document.querySelectorAll('main select')].every(one => one.options.length)")
    content = base64.b64encode(make_recording(folder / "own.wav", 2).read_bytes()).decode()
    tab.evaluate(
        f"""(() => {{ const given = new DataTransfer();
          const input = document.getElementById("reference");
          const bytes = Uint8Array.from(atob("{content}"), one => one.charCodeAt(0));
          given.items.add(new File([bytes], "own.wav")); input.files = given.files;
          input.dispatchEvent(new Event("change")); }})()"""
    )
    tab.evaluate("document.querySelector('.grid > section input').value = 'Ada'")
    fill(tab, "Spoken by", "default_voice")
    fill(tab, "Consent of the speaker", "I, Ada, agree that my voice is cloned here.")
    press(tab, "Clone")
    until(tab, has("Ada can speak now"))
    until(tab, "[...document.querySelector('form select').options].some(one => one.text === 'Ada')")
    tab.evaluate(
        "(() => { const one = document.querySelector('form select'); one.value ="
        "[...one.options].find(x => x.text === 'Ada').value;"
        "one.dispatchEvent(new Event('change')); })()"
    )
    tab.evaluate(
        "const sent = []; window.sent = sent; const own = fetch;"
        "window.fetch = (...asked) => { sent.push(asked[1]?.body); return own(...asked); }"
    )
    usual = spoken_seconds(tab)
    slide(tab, "input[type=range]", 2)
    assert spoken_seconds(tab) == pytest.approx(usual / 2, rel=0.15)
    slide(tab, "input[type=range]", 1)
    tab.evaluate("document.querySelector('form details input').click()")
    slide(tab, "details input[type=range]", 0.5)
    spoken_seconds(tab)
    asked = [json.loads(one) for one in tab.evaluate("sent") if one]
    assert [one["speed"] for one in asked] == [1, 2, 1]
    assert [one.get("style", [None])[0] for one in asked] == [None, None, 0.5]
    spoken = [say(tab, {**one, "response_format": "pcm"}) for one in (asked[0], asked[2])]
    assert spoken[0] != spoken[1]
    for name in ("WAV", "MP3", "SRT"):
        press(tab, name)
        wait_for(folder / f"speech.{name.lower()}")
    assert (folder / "speech.wav").read_bytes()[:4] == b"RIFF"
    assert " --> " in (folder / "speech.srt").read_text()
    assert tab.problems == []


def spoken_seconds(tab):
    press(tab, "Speak", "form")
    until(tab, has("s of speech"))
    return float(tab.evaluate("document.querySelector('form .good').textContent").split()[0])


def slide(tab, selector, value):
    tab.evaluate(
        f"""(() => {{ const one = document.querySelector("form {selector}");
          one.value = {value}; one.dispatchEvent(new Event("input")); }})()"""
    )


def say(tab, asked):
    """What the server says to a request of the page."""
    url = tab.evaluate("location.origin") + "/v1/audio/speech"
    asked = {
        key: value for key, value in asked.items() if key not in ("stream_format", "timestamps")
    }
    return httpx.post(url, json=asked, timeout=SECONDS).content


def wait_for(path: Path):
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.1)
