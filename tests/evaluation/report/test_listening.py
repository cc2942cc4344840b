"""The page of a listening test, in a browser: heard, answered, tallied and saved."""

import base64
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from myxtts.evaluation.listening import ListeningTest, make_trials
from myxtts.evaluation.listening_tally import mean_rating, preference, read_sheet, tally
from myxtts.evaluation.report.listening import write_listening_page
from tests.helpers.browser import Browser, Tab

RATE = 8000
WAVE = np.sin(np.arange(RATE // 4) / 9).astype(np.float32) / 9
TEXTS = ["One </script><b>two</b>.", "سلام دنیا", "Three.", "Four.", "Five.", "Six."]
OUTSIDE = """
[...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length).filter((e) => {
  const r = e.getBoundingClientRect(), out = e.closest("section")?.getBoundingClientRect();
  return r.right > (out ? out.right : innerWidth) + 0.5 || r.left < -0.5;
}).map((e) => e.outerHTML.slice(0, 80))
"""


def make_test(count: int = 4, systems=("secret-one", "secret-دو"), seed: int = 0) -> ListeningTest:
    sentences = [(f"id-{n}", TEXTS[n]) for n in range(count)]
    clips = [[WAVE * (1 + system + n) for n in range(count)] for system in range(len(systems))]
    return ListeningTest(tuple(systems), make_trials(sentences, clips, seed), RATE, seed)


@pytest.fixture
def page(tmp_path) -> Path:
    path = tmp_path / "page" / "listening.html"
    write_listening_page(path, make_test())
    return path


@pytest.fixture
def browser():
    with Browser() as browser:
        yield browser


def wait_for(tab: Tab, condition: str) -> None:
    deadline = time.monotonic() + 20
    while not tab.evaluate(condition):
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)


def listen(tab: Tab, trial: int, clips: int = 2) -> None:
    """Play every clip of the trial that is shown, by keys."""
    for side in range(clips):
        tab.press(str(side + 1))
        wait_for(tab, f"state.trials[{trial}].plays[{side}] > 0")
        tab.settle()


def text_of(tab: Tab, selector: str) -> str:
    return tab.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def open_page(browser: Browser, page: Path, width: int = 1200, dark: bool = False) -> Tab:
    tab = browser.open(page, width, dark)
    wait_for(tab, "state !== null")
    tab.settle()
    return tab


def reopen(browser: Browser, tab: Tab, page: Path) -> Tab:
    """Close the tab and open another one, whose localStorage is empty, as happens in Chromium."""
    tab.evaluate("keeping")
    tab.evaluate("localStorage.clear()")
    tab.close()
    return open_page(browser, page)


def saved(browser: Browser, tab: Tab, folder: Path) -> Path:
    """What the button saves, as a real download."""
    folder.mkdir()
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.click("#save")
    deadline = time.monotonic() + 20
    while not (folder / "listening.json").exists():
        assert time.monotonic() < deadline, list(folder.iterdir())
        time.sleep(0.02)
    return folder / "listening.json"


# The file, without a browser.


def test_a_seed_decides_every_byte_of_the_page(tmp_path):
    names = [tmp_path / name for name in ("a.html", "b.html", "c.html")]
    ids = [
        write_listening_page(path, make_test(seed=seed))
        for path, seed in zip(names, (0, 0, 1), strict=True)
    ]
    assert names[0].read_bytes() == names[1].read_bytes() != names[2].read_bytes()
    assert ids[0] == ids[1] != ids[2] and len(ids[0]) == 12
    assert len(list(tmp_path.iterdir())) == 3  # and no drafts


def test_the_source_names_no_system_and_asks_for_nothing(page):
    text = page.read_text(encoding="utf-8")
    for hidden in ("secret", "id-0", "دو"):
        assert hidden not in text.replace("سلام دنیا", "")
    assert "http:" not in text and "https:" not in text and "src=" not in text
    assert text.count("data:audio/wav;base64,") == 8 and text.count("<script") == 2
    assert "<b>two" not in text
    key = json.loads(base64.b64decode(re.search(r'"key":"([^"]*)"', text)[1]))
    assert key["systems"] == ["secret-one", "secret-دو"]
    assert sorted(trial["sides"][0] for trial in key["trials"]) == [0, 0, 1, 1]


# In a browser.


def test_a_listener_compares_two_systems(browser, page, tmp_path):
    tab = open_page(browser, page)
    sides = [trial.sides for trial in make_test().trials]
    assert text_of(tab, "#progress") == "1 of 4" and tab.evaluate("byId('text').dir") == "auto"
    # Nothing can be said of what has not been heard.
    tab.press("a")
    assert (
        text_of(tab, "#progress") == "1 of 4" and text_of(tab, "#hint") == "Listen to both first."
    )
    assert tab.evaluate("document.querySelector('[data-choice]').disabled")

    tab.click(".play:nth-child(1)")
    wait_for(tab, "state.trials[0].plays[0] > 0")
    tab.click(".play:nth-child(2)")
    wait_for(tab, "state.trials[0].plays[1] > 0")
    tab.click("[data-choice='0']")
    listen(tab, 1)
    tab.press("ArrowRight")
    listen(tab, 2)
    tab.press("=")
    assert text_of(tab, "#progress") == "4 of 4"

    tab = reopen(browser, tab, page)
    assert text_of(tab, "#progress") == "4 of 4"
    tab.press("Backspace")
    assert tab.evaluate("document.querySelector('[data-choice=\"-1\"]').ariaPressed") == "true"
    tab.click("#next")
    listen(tab, 3)
    tab.press("b")
    assert text_of(tab, "#progress") == "4 of 4 answered" and "secret" not in text_of(tab, "body")
    tab.click("#reveal")

    chosen = [sides[0][0], sides[1][1], None, sides[3][1]]
    counts = [chosen.count(0), chosen.count(1)]
    expected = preference(*counts)
    table = text_of(tab, "#tally").replace("\u00a0", " ")
    for name, count in zip(("secret-one", "secret-دو"), counts, strict=True):
        assert re.search(rf"{name}\t{count}\t{100 * count / 3:.1f} %", table)
    assert re.search(r"no preference\t1\b", table)
    assert f"[{100 * expected.share.low:.1f}, {100 * expected.share.high:.1f}]" in table
    assert f"p = {expected.p:.3f}" in text_of(tab, "#notes")

    path = saved(browser, tab, tmp_path / "saved")
    record = json.loads(path.read_text(encoding="utf-8"))
    names = ("secret-one", "secret-دو")
    assert [one["preferred"] for one in record["answers"]] == [
        None if side is None else names[side] for side in chosen
    ]
    assert [one["sides"] for one in record["answers"]] == [[names[s] for s in row] for row in sides]
    assert [one["sentence"] for one in record["answers"]] == [
        trial.sentence for trial in make_test().trials
    ]
    assert record["seed"] == 0 and re.fullmatch("[0-9a-f]{12}", record["page"])
    assert all(
        one["seconds"] >= 0 and one["at"] and min(one["plays"]) >= 1 for one in record["answers"]
    )
    rows, _ = tally([read_sheet(path)])
    assert rows[1][1:4] == (str(counts[0]), str(counts[1]), "1")

    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    tab = reopen(browser, tab, page)  # what was revealed stays revealed
    assert not tab.evaluate("byId('result').hidden")
    before = record["listener"]
    tab.click("#restart")
    assert text_of(tab, "#restart") == "Forget these answers?"
    tab.click("#restart")
    assert text_of(tab, "#progress") == "1 of 4" and tab.evaluate("state.listener") != before
    assert tab.problems == []


def test_of_two_copies_of_the_answers_the_later_one_counts(browser, page):
    tab = open_page(browser, page)
    listen(tab, 0)
    tab.press("=")
    tab.evaluate("keeping")
    older = "JSON.stringify({...state, revision: 0, trials: emptyState().trials})"
    answered = "loadState().then((found) => found.trials.filter(isAnswered).length)"
    tab.evaluate(f"localStorage.setItem(storageKey, {older})")
    assert tab.evaluate(answered) == 1
    tab.evaluate("localStorage.setItem(storageKey, JSON.stringify(state))")
    tab.evaluate(f"keepInDatabase({older})")
    assert tab.evaluate(answered) == 1
    tab.evaluate("localStorage.setItem(storageKey, '{')")
    assert tab.evaluate(answered) == 0


def test_a_listener_rates_three_systems(browser, tmp_path):
    page = tmp_path / "rating.html"
    test = make_test(3, ("x", "y", "hidden reference"))
    write_listening_page(page, test)
    tab = open_page(browser, page)
    ratings = {"x": [], "y": [], "hidden reference": []}
    for number, trial in enumerate(test.trials):
        assert tab.evaluate("byId('next').disabled")
        for place, system in enumerate(trial.sides):
            tab.press(str(place + 1))  # which also chooses the slider
            wait_for(tab, f"document.activeElement === document.querySelectorAll('input')[{place}]")
            value = 10 * (number + 1) + 20 * system
            tab.evaluate(f"document.activeElement.value = {value - 1}")
            tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", code="ArrowRight")
            tab.call("Input.dispatchKeyEvent", type="keyUp", key="ArrowRight", code="ArrowRight")
            tab.evaluate("document.activeElement.dispatchEvent(new Event('input'))")
            ratings[test.systems[system]].append(
                tab.evaluate(f"state.trials[{number}].ratings[{place}]")
            )
        if number == 1:
            tab = reopen(browser, tab, page)
            assert tab.evaluate("state.trials[1].ratings.includes(null)") is False
        tab.click("#next")
    tab.click("#reveal")
    table = text_of(tab, "#tally").replace("\u00a0", " ")
    for name, values in ratings.items():
        assert len(values) == 3
        found = mean_rating(values)
        assert f"{name}\t{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]" in table
    sheet = read_sheet(saved(browser, tab, tmp_path / "saved"))
    assert [one["y"] for one in sheet.answers] == ratings["y"]
    assert tab.problems == []


def test_the_page_computes_the_same_statistics(browser, page):
    tab = open_page(browser, page)
    pairs = [(a, n - a) for n in (0, 1, 2, 5, 9, 20, 67, 400) for a in {0, 1, n // 3, n // 2, n}]
    pairs = [(a, b) for a, b in pairs if b >= 0]
    found = tab.evaluate(
        f"{json.dumps(pairs)}.map(([a, b]) => [signTest(a, b), ...shareInterval(a, a + b)])"
    )
    for (first, second), values in zip(pairs, found, strict=True):
        expected = preference(first, second)
        bounds = (expected.p, expected.share.low, expected.share.high)
        assert values == pytest.approx(bounds, rel=1e-9, abs=1e-12), (first, second)
    ratings = [12, 100, 55, 0, 71]
    expected = mean_rating(ratings)
    found = tab.evaluate(f"meanInterval({ratings}, 2.7764451051977987)")  # t of 4 degrees
    assert found == pytest.approx([expected.low, expected.value, expected.high], rel=1e-12)


@pytest.mark.parametrize("width, dark", [(320, False), (375, True), (1200, True)])
@pytest.mark.parametrize("systems", [2, 4])
def test_the_page_fits_any_window(browser, tmp_path, width, dark, systems):
    page = tmp_path / "page.html"
    names = tuple(f"a-rather-long-name-of-a-system-{n}" for n in range(systems))
    write_listening_page(page, make_test(2, names))
    tab = open_page(browser, page, width, dark)
    assert tab.evaluate(OUTSIDE) == []
    for trial in range(2):
        listen(tab, trial, systems)
        if systems > 2:
            sliders = "document.querySelectorAll('input')"
            tab.evaluate(f"{sliders}.forEach((e) => e.dispatchEvent(new Event('input')))")
            tab.click("#next")
        else:
            tab.press("=")
    assert tab.evaluate(OUTSIDE) == []
    tab.click("#reveal")
    assert tab.evaluate(OUTSIDE) == [] and tab.problems == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
