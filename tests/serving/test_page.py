"""The page of the server, in a browser: it lists the voices, speaks, and asks nobody else."""

import pytest

from tests.helpers.browser import Browser
from tests.helpers.speech_server import running

DONE = """new Promise(done => { const look = () => {
  const said = document.getElementById("message").textContent;
  if (said && !said.startsWith("Speaking")) done(said); else setTimeout(look, 20); }; look(); })"""
VOICES = "[...document.getElementById('voice').options].map(one => one.value)"
LOADED = """new Promise(done => { const look = () =>
  document.getElementById("voice").options.length ? done(0) : setTimeout(look, 20); look(); })"""

PLAYED = """new Promise(done => { const player = document.getElementById("player");
  const look = () =>
    player.duration > 0 ? done(player.duration) : setTimeout(look, 20); look(); })"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.mark.parametrize("width, dark", [(1280, False), (360, True)])
def test_a_text_is_spoken_and_its_words_are_shown(browser, server, width, dark):
    tab = browser.open(f"{server.url}/", width=width, dark=dark)
    tab.evaluate(LOADED)
    assert tab.evaluate(VOICES)[:2] == ["lj", "lj/anna"]
    tab.click("#speak")
    assert tab.evaluate(DONE).startswith("Done")
    said = tab.evaluate("document.getElementById('said').textContent.trim()")
    assert said == "Hello. This is a voice of MyXTTS."
    assert tab.evaluate(PLAYED) > 1.0
    assert tab.evaluate("document.getElementById('save').href").startswith("blob:")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.problems == []
    assert all(url.startswith((server.url, "blob:", "data:")) for url in tab.requests)
    tab.close()


def test_the_page_is_in_persian_too_and_greets_in_the_language_of_the_voice(browser, server):
    first = browser.open(f"{server.url}/")
    first.evaluate("localStorage.setItem('myxtts.language', 'fa')")
    first.close()
    tab = browser.open(f"{server.url}/", width=360)
    try:
        tab.evaluate(LOADED)
        assert tab.evaluate("document.documentElement.dir") == "rtl"
        assert tab.evaluate("document.getElementById('text').value").startswith("Hello")
        language = "document.getElementById('language')"
        tab.evaluate(f"{language}.value = 'fa'; {language}.dispatchEvent(new Event('change'))")
        assert tab.evaluate("document.getElementById('text').value").startswith("سلام")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        nameless = "[...document.querySelectorAll('[data-text]')].filter(one => !one.textContent)"
        assert tab.evaluate(f"{nameless}.length") == 0 and tab.problems == []
    finally:
        tab.evaluate("localStorage.clear()")
        tab.close()


def test_what_is_wrong_is_said_on_the_page(browser, server):
    tab = browser.open(f"{server.url}/")
    tab.evaluate(LOADED)
    tab.evaluate("document.getElementById('text').value = '...'")
    tab.click("#speak")
    assert tab.evaluate(DONE)
    assert tab.evaluate("document.getElementById('message').className") == "error"
    tab.close()


def test_every_control_has_a_name(browser, server):
    tab = browser.open(f"{server.url}/")
    nameless = """[...document.querySelectorAll("input, select, textarea, button, audio")].filter(
      one => !one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map(one => one.id)"""
    assert tab.evaluate(nameless) == []
    tab.close()


def test_a_key_is_asked_for_where_one_is_needed(browser, tmp_path):
    with running(tmp_path, api_key="a secret key") as server:
        tab = browser.open(f"{server.url}/")
        assert "API key" in tab.evaluate(DONE)
        assert tab.evaluate("document.getElementById('keyed').hidden") is False
        tab.evaluate(
            "(() => { const key = document.getElementById('key'); key.value = 'a secret key';"
            "key.dispatchEvent(new Event('change')); })()"
        )
        tab.evaluate(LOADED)
        tab.click("#speak")
        assert tab.evaluate(DONE).startswith("Done")
        tab.close()


def test_the_description_of_the_api_needs_nobody_else(browser, server):
    tab = browser.open(f"{server.url}/docs", width=360)
    shown = """new Promise(done => { const look = () => { const found =
      [...document.querySelectorAll("summary")].map(one => one.textContent);
      found.length ? done(found) : setTimeout(look, 20); }; look(); })"""
    assert "POST/v1/audio/speech" in tab.evaluate(shown)
    assert tab.problems == []
    assert all(url.startswith((server.url, "data:")) for url in tab.requests)
    tab.close()
