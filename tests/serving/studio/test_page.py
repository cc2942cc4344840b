"""The studio's page in both of its languages: it fits, names its controls, and asks nobody else."""

import json
import time

import numpy as np
import pytest

from myxtts.audio.io import write_wav
from myxtts.workflows import review
from myxtts.workflows.transcribe import METADATA, read_texts
from tests.helpers.browser import SECONDS, Browser
from tests.helpers.speech_server import running
from tests.helpers.studio_client import StudioClient

PARTS = ("recordings", "recordings/ada", "training", "compare", "speak", "export")
NAMELESS = """[...document.querySelectorAll("input, select, textarea, button, audio, progress")]
  .filter(one => one.getClientRects().length && !one.labels?.length && !one.ariaLabel &&
    !one.textContent.trim()).map(one => one.outerHTML)"""
SAME = """import("/studio/static/strings.js").then(({ STRINGS: { en, fa } }) => {
  const places = text => (text.match(/\\{\\w+\\}/g) ?? []).sort().join();
  return [...new Set([...Object.keys(en), ...Object.keys(fa)])].filter(
    key => !(key in en && key in fa) || places(en[key]) !== places(fa[key])); })"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    with running(folder / "clones", studio=folder) as server:
        client = StudioClient(server.url)
        client.ok(client.post("corpora", title="Ada", language="en"))
        yield server


def show(browser, server, part, language, **how):
    """Open a part of the page in a language."""
    first = browser.open(f"{server.url}/studio")
    first.evaluate(f"localStorage.setItem('studio.language', '{language}')")
    first.close()
    tab = browser.open(f"{server.url}/studio#/{part}", **how)
    end = time.monotonic() + SECONDS
    while not tab.evaluate("document.querySelector('main h2')?.textContent"):
        assert time.monotonic() < end, tab.problems
        time.sleep(0.05)
    tab.settle()
    return tab


@pytest.mark.parametrize("language, dark", [("en", False), ("fa", True)])
def test_every_part_fits_a_phone_and_names_its_controls(browser, server, language, dark):
    for part in PARTS:
        tab = show(browser, server, part, language, width=360, dark=dark)
        assert tab.evaluate("document.documentElement.dir") == ("rtl" if dark else "ltr")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360, part
        assert tab.evaluate(NAMELESS) == [], part
        assert tab.evaluate("document.querySelectorAll('nav [aria-current]').length") == 1
        assert tab.problems == [], part
        assert all(one.startswith((server.url, "blob:", "data:")) for one in tab.requests)
        tab.close()


def test_a_text_that_is_being_typed_stays_when_other_clips_change(browser, tmp_path):
    wavs = tmp_path / "corpora" / "ada" / "wavs"
    for name in "bc":
        write_wav(wavs / f"{name}.wav", np.sin(np.arange(24000) * 0.05).astype(np.float32), 24000)
    with running(tmp_path / "clones", studio=tmp_path) as server:
        tab = show(browser, server, "recordings/ada", "en")
        texts = "[...document.querySelectorAll('tbody td.wide textarea')]"
        wait_for(tab, f"{texts}.length === 2")
        tab.evaluate(f"{texts}[0].focus(); {texts}[0].value = 'Half a'")
        review.set_text(wavs.parent, "c", "Written elsewhere.")
        write_wav(wavs / "a.wav", np.sin(np.arange(24000) * 0.05).astype(np.float32), 24000)
        wait_for(tab, f"{texts}.length === 3")
        shown = f"JSON.stringify({texts}.map(one => one.value))"
        assert json.loads(tab.evaluate(shown)) == ["", "Half a", "Written elsewhere."]
        assert tab.evaluate(f"document.activeElement === {texts}[1]")
        tab.evaluate(f"{texts}[1].blur()")
        wait_for(tab, "document.body.innerText.includes('2 texts')")
        assert read_texts(wavs.parent / METADATA)["b"] == "Half a"
        assert tab.problems == []
        tab.close()


def test_what_is_typed_stays_over_a_reload(browser, tmp_path):
    wavs = tmp_path / "corpora" / "ada" / "wavs"
    write_wav(wavs / "a.wav", np.sin(np.arange(24000) * 0.05).astype(np.float32), 24000)
    with running(tmp_path / "clones", studio=tmp_path) as server:
        tab = show(browser, server, "recordings/ada", "en")
        text = "document.querySelector('tbody td.wide textarea')"
        wait_for(tab, f"!!{text}")
        tab.evaluate(f"{text}.focus(); {text}.value = 'Typed and not left.'")
        tab.load("Page.reload")
        wait_for(tab, "document.body.innerText.includes('1 text')")
        assert read_texts(wavs.parent / METADATA)["a"] == "Typed and not left."
        tab.evaluate("location.hash = '#/training'")
        title = "document.querySelector('main form input')"
        wait_for(tab, f"!!{title}")
        event = "new Event('input', { bubbles: true })"
        tab.evaluate(f"{title}.value = 'Draft'; {title}.dispatchEvent({event})")
        tab.load("Page.reload")
        wait_for(tab, f"{title}?.value === 'Draft'")
        assert tab.problems == []
        tab.close()


LEAVE = "location.hash = '#/speak'"
SWITCH = "(() => { const one = document.getElementById('interface'); one.value = 'fa'; "
SWITCH += "one.dispatchEvent(new Event('change')); })()"
BREAK = "AudioWorklet.prototype.addModule = () => Promise.reject(new Error('no module'))"


@pytest.mark.parametrize("broken, then", [(False, LEAVE), (False, SWITCH), (True, "null")])
def test_the_microphone_is_off_once_nobody_records(browser, server, broken, then):
    tab = show(browser, server, "recordings/ada", "en")
    tab.evaluate(
        "navigator.mediaDevices.getUserMedia = async () => "
        "(window.heard = new AudioContext().createMediaStreamDestination().stream)"
    )
    if broken:
        tab.evaluate(BREAK)
    tab.evaluate("document.querySelector('button.record').click()")
    if not broken:
        wait_for(tab, "document.querySelector('button.record').textContent.includes('Stop')")
        assert tab.evaluate("heard.getTracks()[0].readyState") == "live"
    tab.evaluate(then)
    wait_for(tab, "window.heard?.getTracks()[0].readyState === 'ended'")
    tab.close()


def wait_for(tab, condition):
    end = time.monotonic() + SECONDS
    while not tab.evaluate(condition):
        assert time.monotonic() < end, tab.problems
        time.sleep(0.05)


def test_both_languages_say_the_same(browser, server):
    tab = browser.open(f"{server.url}/studio")
    assert tab.evaluate(SAME) == []
    tab.close()


def test_what_is_wrong_is_said_beside_what_caused_it(browser, server):
    tab = show(browser, server, "training", "en")
    tab.evaluate(
        "(() => { document.querySelector('main select').replaceChildren(new Option('?', 'none'));"
        "document.querySelector('main form button').click(); })()"
    )
    end = time.monotonic() + SECONDS
    while not (said := tab.evaluate("document.querySelector('form .error')?.textContent")):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert said == "there is no corpus of that name"
    tab.close()
