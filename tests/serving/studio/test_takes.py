"""What the microphone has recorded: on the disk at once, offered again, kept or discarded."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import soundfile

from myxtts import atomic
from myxtts.serving.studio import takes as takes_module
from myxtts.serving.studio.places import Places
from myxtts.serving.studio.receiving import Receiver
from myxtts.serving.studio.takes import Takes
from myxtts.workflows import review
from myxtts.workflows.transcribe import METADATA, read_texts
from tests.helpers.browser import Browser
from tests.helpers.long_recording import make_recording
from tests.helpers.speech_server import running
from tests.helpers.studio_client import StudioClient

# Whether a reload would lose nothing.
SAFE = "window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
SECONDS = 60


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "studio"


@pytest.fixture
def server(folder):
    with running(folder / "clones", studio=folder) as server:
        client = StudioClient(server.url)
        client.ok(client.post("corpora", title="Ada", language="en"))
        yield server


@pytest.fixture
def client(server):
    return StudioClient(server.url)


@pytest.fixture
def sound(tmp_path):
    return make_recording(tmp_path / "read.wav", sentences=1).read_bytes()


def takes(client, corpus="ada"):
    query = f"?corpus={corpus}" if corpus else ""
    return client.ok(client.get(f"takes{query}"))["takes"]


def test_a_take_waits_and_becomes_a_clip_with_its_text(client, folder, sound):
    made = client.ok(client.put("takes", sound, corpus="ada", text="Read aloud."))
    assert [one["text"] for one in takes(client)] == ["Read aloud."]
    assert takes(client, corpus=None) == []
    heard = client.get(f"takes/{made['id']}/audio")
    assert heard.headers["content-type"] == "audio/flac" and heard.content[:4] == b"fLaC"
    assert client.ok(client.get("corpora/ada"))["clips"] == 0
    clip = client.ok(client.post(f"takes/{made['id']}/keep", corpus="ada", text="Read | aloud."))
    corpus = folder / "corpora" / "ada"
    assert read_texts(corpus / METADATA) == {clip["id"]: "Read aloud."}
    kept = soundfile.info(corpus / "wavs" / f"{clip['id']}.flac")
    assert kept.duration == pytest.approx(made["seconds"]) == pytest.approx(3.0)
    assert list((folder / "takes").iterdir()) == []
    # Another tab still shows it.
    again = client.post(f"takes/{made['id']}/keep", corpus="ada", text="Read aloud.")
    assert again.status_code == client.delete(f"takes/{made['id']}").status_code == 404


def test_a_take_is_discarded_and_those_of_a_corpus_with_it(client, folder, sound):
    ids = [client.ok(client.put("takes", sound, corpus="ada", text=one))["id"] for one in "abc"]
    client.ok(client.put("takes", sound, text=""))
    client.ok(client.delete(f"takes/{ids[1]}"))
    assert [one["text"] for one in takes(client)] == ["a", "c"]
    client.ok(client.delete("corpora/ada"))
    (left,) = (folder / "takes").iterdir()
    assert [one["id"] for one in takes(client, corpus=None)] == [left.name]


def test_takes_are_few_and_small(client, folder, sound, monkeypatch):
    monkeypatch.setattr(takes_module, "MOST", 2)
    for text in "ab":
        client.ok(client.put("takes", sound, corpus="ada", text=text))
    assert client.put("takes", sound, corpus="ada", text="c").status_code == 409
    client.ok(client.put("takes", sound, text=""))  # these are counted by themselves
    monkeypatch.setattr(takes_module, "MOST_BYTES", 1 << 16)
    answer = client.put("takes", sound, text="")
    assert answer.status_code == 413 and "record less" in answer.json()["error"]["message"]
    assert client.put("takes", b"no sound", text="").status_code == 400
    assert client.put("takes", sound, corpus="..", text="").status_code == 404
    assert len(list((folder / "takes").iterdir())) == 3


def test_old_takes_damaged_ones_and_drafts_are_cleaned_up(client, folder, sound):
    for text in ("old", "lost", "torn", "kept"):
        client.ok(client.put("takes", sound, corpus="ada", text=text))
    for path in (folder / "takes").glob("*/studio.json"):
        card = json.loads(path.read_text())
        card |= {"old": {"created": time.time() - 31 * 86400}, "lost": {"corpus": "gone"}}.get(
            card["text"], {}
        )
        path.write_text("{" if card["text"] == "torn" else json.dumps(card))
    (folder / "takes" / ".0123456789abcdef.upload").touch()
    found = Takes(Places(folder), Receiver()).of("ada")
    assert [one["text"] for one in found] == ["kept"]
    assert [one.name for one in (folder / "takes").iterdir()] == [found[0]["id"]]


@pytest.mark.parametrize(
    "place, broken", [(atomic, "publish"), (review, "write"), (review, "set_text")]
)
def test_a_full_disk_leaves_the_take(client, folder, sound, monkeypatch, place, broken):
    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    made = client.ok(client.put("takes", sound, corpus="ada", text="Read aloud."))
    with monkeypatch.context() as patched:
        patched.setattr(place, broken, fails)
        answer = client.post(f"takes/{made['id']}/keep", corpus="ada", text="Read aloud.")
    assert answer.status_code == 400 and "No space left" in answer.json()["error"]["message"]
    corpus = folder / "corpora" / "ada"
    assert list((corpus / "wavs").iterdir()) == [] and not review.read_edits(corpus)
    assert [one["id"] for one in takes(client)] == [made["id"]]
    client.ok(client.post(f"takes/{made['id']}/keep", corpus="ada", text="Read aloud."))
    table = client.ok(client.get("corpora/ada/clips"))
    assert [one["text"] for one in table["clips"]] == ["Read aloud."] and takes(client) == []


def test_two_tabs_keep_a_take_once(client, sound):
    made = client.ok(client.put("takes", sound, corpus="ada", text="Once."))
    place = f"takes/{made['id']}/keep"
    with ThreadPoolExecutor(8) as tabs:
        answers = list(tabs.map(lambda _: client.post(place, corpus="ada", text="Once."), range(8)))
    assert sorted(one.status_code for one in answers) == [200, *[404] * 7]
    assert client.ok(client.get("corpora/ada"))["clips"] == 1


@pytest.fixture(scope="module")
def browser():
    with Browser(*MICROPHONE) as browser:
        yield browser


def wait_for(tab, condition):
    end = time.monotonic() + SECONDS
    while not tab.evaluate(condition):
        assert time.monotonic() < end, (condition, tab.problems)
        time.sleep(0.05)


def seen(text):
    return (
        "[...document.querySelectorAll('main button')].find(one => one.getClientRects().length &&"
        f" one.textContent === {json.dumps(text)})"
    )


def press(tab, text):
    wait_for(tab, f"!!{seen(text)} && !{seen(text)}.disabled")
    tab.evaluate(f"{seen(text)}.click()")


def record(tab):
    press(tab, "● Record")
    wait_for(tab, f"!!{seen('■ Stop recording')}")
    time.sleep(1)
    press(tab, "■ Stop recording")
    wait_for(tab, f"!!document.querySelector('audio[src]') && {SAFE}")


def wait_until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_reload_loses_no_recording_of_a_sentence(browser, server, client, folder):
    tab = browser.open(f"{server.url}/studio#/recordings/ada")
    wait_for(tab, "!!document.querySelector('.prompt')?.textContent")
    press(tab, "Next")
    sentence = tab.evaluate("document.querySelector('.prompt').textContent")
    record(tab)
    wait_until(lambda: len(takes(client)) == 1)
    tab.load("Page.reload")
    wait_for(tab, "!!document.querySelector('audio[src]')")
    assert tab.evaluate("document.querySelector('.prompt').textContent") == sentence
    record(tab)  # in its place
    wait_until(lambda: len(takes(client)) == 1)
    press(tab, "Next")
    record(tab)
    wait_until(lambda: len(takes(client)) == 2)
    press(tab, "1 other is not kept yet")
    assert tab.evaluate("document.querySelector('.prompt').textContent") == sentence
    press(tab, "Keep it")
    wait_until(lambda: client.ok(client.get("corpora/ada"))["texts"] == 1)
    assert list(read_texts(folder / "corpora" / "ada" / METADATA).values()) == [sentence]
    wait_for(tab, f"document.querySelector('.prompt').textContent !== {json.dumps(sentence)}")
    tab.load("Page.reload")
    press(tab, "Discard it")
    press(tab, "Really?")
    wait_until(lambda: takes(client) == [])
    wait_for(tab, f"!{seen('Keep it')} && !!{seen('● Record')}")
    assert tab.problems == []
    tab.close()


def test_a_reload_loses_no_recording_of_a_voice_to_clone(browser, server, client):
    tab = browser.open(f"{server.url}/studio#/speak")
    record(tab)
    wait_until(lambda: len(takes(client, corpus=None)) == 1)
    tab.load("Page.reload")
    wait_for(tab, "!!document.querySelector('audio[src]')")
    tab.evaluate(
        """(() => { const [name, consent] = document.querySelectorAll(
          "section form input:not([type=file]), section form textarea");
          name.value = "Ada"; consent.value = "I, Ada, agree that my voice is cloned here.";
          })()"""
    )
    wait_for(tab, "document.querySelector('section form select').options.length > 0")
    press(tab, "Clone")
    wait_until(lambda: takes(client, corpus=None) == [])
    assert [one["name"] for one in client.ok(client.get("voices"))["voices"]][-1] == "Ada"
    assert tab.problems == []
    tab.close()


def test_the_page_asks_before_a_reload_would_lose_a_recording(browser, server, folder):
    tab = browser.open(f"{server.url}/studio#/recordings/ada")
    asks = f"!{SAFE}"
    assert tab.evaluate(asks) is False
    tab.evaluate(
        "XMLHttpRequest.prototype.send = function () { setTimeout(() => this.onerror()); }"
    )
    press(tab, "● Record")
    wait_for(tab, f"!!{seen('■ Stop recording')}")
    assert tab.evaluate(asks) is True  # it records
    time.sleep(1)
    press(tab, "■ Stop recording")
    wait_for(tab, "document.body.innerText.includes('not on the server yet')")
    assert tab.evaluate(asks) is True  # it is in the page alone
    press(tab, "Discard it")
    press(tab, "Really?")
    wait_for(tab, SAFE)
    tab.close()
