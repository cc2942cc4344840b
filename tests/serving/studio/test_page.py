"""The studio's page in both of its languages: it fits, names its controls, and asks nobody else."""

import time

import pytest

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
    tab = browser.open(f"{server.url}/studio", **how)
    tab.evaluate(f"localStorage.setItem('studio.language', '{language}')")
    tab.evaluate(f"location.hash = '#/{part}'; location.reload()")
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
