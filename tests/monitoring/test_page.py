import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.monitoring import page
from myxtts.monitoring.page import PageFacts, ShapeUse, Table, run_length, thinned, write_page
from tests.helpers.browser import Browser

BARE = PageFacts("A run", "Not input-bound.", True)
VOID = {"meta", "br", "link", "img", "input", "hr"}
# Everything drawn or written that is outside the window, but for what scrolls in a box of its own.
STICKING_OUT = """
[...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".scroll table") && e.getClientRects().length)
  .filter((e) => { const r = e.getBoundingClientRect();
                   return r.left < -0.5 || r.right > document.documentElement.clientWidth + 0.5; })
  .map((e) => e.outerHTML.slice(0, 80))
"""


def make_facts(num_steps: int = 3000) -> PageFacts:
    """A run whose data stall in the middle and whose first and tenth steps compile."""
    steps = np.arange(1, num_steps + 1)
    stalls = (steps > num_steps // 2) & (steps <= num_steps * 5 // 8)
    waiting = np.where(stalls, 150.0, 2.0)
    compiling = np.where((steps == 1) | (steps == 10), 6000.0, 0.0)
    device = np.full(num_steps, 60.0)
    seconds = range(60)
    return PageFacts(
        title="Run <demo> & \"co\" </script><script>alert('x')</script>",
        verdict="Moderately input-bound.\nدیسک کند است: --memory-cache",
        is_healthy=False,
        steps=steps.tolist(),
        phases={"device": device, "waiting for data": waiting, "compiling": compiling},
        utilisation=device / (device + waiting + compiling),
        losses={
            "loss": [(int(n), 4.0 / n) for n in steps[9::10]],
            "mel_loss": [(int(n), math.nan if n == 50 else 2.0 / n) for n in steps[9::10]],
            "val/mel_loss": [(2, 0.5), (9, math.inf), (num_steps // 4, 0.2), (num_steps, 0.1)],
        },
        shapes=[ShapeUse("[32, 256]", 2000, 0.05, 5940.0), ShapeUse("[32, 512]", 1000, 0.11, 0.0)],
        padding_waste=0.07,
        system={
            "CPU %": [(s, 50.0 + s % 7) for s in seconds],
            "GPU 0 %": [(s, 90.0) for s in seconds],
            "disk read MB/s": [(s, float(s)) for s in seconds],
            "temperature °C": [],
        },
        tables=[
            Table(
                "Operations",
                ("name", "ms", "where </td>"),
                [("a_rather_long_name_of_an_operation/" * 4, "1,234.5 ms", '"here" & <there>')],
            )
        ],
        notes=["این یک یادداشت است.", "<b>not bold</b>"],
    )


class Elements(HTMLParser):
    """Reads a page strictly: its tags in order, its texts by tag, and whether all are closed."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], {}
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def written(tmp_path: Path, facts: PageFacts) -> str:
    return write_page(tmp_path / "page.html", facts).read_text(encoding="utf-8")


def charts_in(text: str) -> dict:
    return json.loads(re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)[1])


# Thinning.


def test_thinning_takes_means_of_neighbours():
    assert thinned([1.0, 3.0, 5.0, 9.0, 4.0], most=3).tolist() == [2.0, 7.0, 4.0]
    assert thinned([1.0, 3.0], most=2).tolist() == [1.0, 3.0]
    assert thinned([]).tolist() == []


def test_thinning_keeps_the_sum_of_a_million_values():
    values = np.random.default_rng(0).gamma(2.0, 30.0, 1_000_003)
    few, run = thinned(values), run_length(len(values))
    lengths = np.full(len(few), run)
    lengths[-1] = len(values) - run * (len(few) - 1)
    assert run == 667 and len(few) == 1500 and lengths[-1] == 170
    assert np.sum(few * lengths) == pytest.approx(values.sum(), rel=1e-12)


def test_thinning_averages_both_columns_of_pairs():
    pairs = [(1, 4.0), (2, 6.0), (3, math.inf), (4, -math.inf)]
    few = thinned(pairs, most=2)
    assert few[0].tolist() == [1.5, 5.0] and few[1, 0] == 3.5 and math.isnan(few[1, 1])


# The file, without a browser.


def test_a_page_is_well_formed_and_asks_for_nothing(tmp_path):
    text = written(tmp_path, make_facts())
    elements = Elements(text)
    assert {"title", "section", "figure", "table", "svg"} - set(elements.tags) == {"svg"}
    assert not {name for name, _ in elements.attributes} & {"src", "href", "srcset", "onclick"}
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text and "url(" not in text and "{{" not in text


def test_texts_are_escaped(tmp_path):
    facts = make_facts()
    text = written(tmp_path, facts)
    elements = Elements(text)
    assert elements.tags.count("script") == 2 and "b" not in elements.tags
    assert elements.texts["h1"] == [facts.title] and elements.texts["title"] == [facts.title]
    assert elements.texts["p"][0] == facts.verdict
    assert elements.texts["li"] == list(facts.notes)
    assert "where </td>" in elements.texts["th"] and '"here" & <there>' in elements.texts["bdi"]


def test_names_in_the_charts_cannot_end_the_script(tmp_path):
    name = "</script><!--<script>\"'\\ {{title}}"
    text = written(tmp_path, PageFacts("A", "B", True, losses={name: [(1, 2.0)]}))
    assert Elements(text).tags.count("script") == 2
    assert charts_in(text)["losses"]["series"][0]["name"] == name


def test_placeholders_in_texts_stay_as_they_are(tmp_path):
    assert Elements(written(tmp_path, PageFacts("{{charts}}", "{{x}}", True))).texts["h1"] == [
        "{{charts}}"
    ]


def test_what_is_empty_has_no_section(tmp_path):
    text = written(tmp_path, BARE)
    assert not {"section", "figure", "table", "dl"} & set(Elements(text).tags)
    assert charts_in(text) == {} and "Not input-bound." in text and ">Healthy<" in text
    assert not {"section", "figure"} & set(
        Elements(written(tmp_path, PageFacts("A", "B", True, losses={"loss": []}))).tags
    )


def test_values_that_are_not_finite_are_gaps_with_a_note(tmp_path):
    text = written(tmp_path, make_facts())
    losses = charts_in(text)["losses"]
    assert losses["series"][2]["y"] == [0.5, None, 0.2, 0.1]
    assert losses["notes"] == [
        "Not finite (×): 1 of 300 values of mel_loss.",
        "Not finite (×): 1 of 4 values of val/mel_loss.",
    ]
    assert "NaN" not in text.partition('id="charts">')[2].partition("</script>")[0]


def test_figures_are_those_of_all_steps(tmp_path):
    # Each step: 60 ms, 2 or (375 of 3,000) 150 ms of waiting, and twice 6,000 ms of compiling.
    text = written(tmp_path, make_facts())
    values = Elements(text).texts["dd"]
    assert values[:2] == ["3,000", "1 to 3,000"]
    assert values[2:5] == ["84.5 ms", "median 62, p99 210 ms", "4 min 14 s"]
    assert "7.0 %" in values and "1 compiled in 5.94 s" in values


def test_bars_of_a_long_run_keep_means_and_the_slowest_step(tmp_path):
    chart = charts_in(written(tmp_path, make_facts()))["time"]
    assert len(chart["firsts"]) == 1500 and chart["firsts"][:2] == [1, 3]
    assert chart["lasts"][-1] == 3000 and set(chart["counts"]) == {2}
    by_name = {one["name"]: one for one in chart["series"]}
    assert by_name["compiling"]["y"][:5] == [3000.0, 0.0, 0.0, 0.0, 3000.0]
    assert by_name["waiting for data"]["label"] == "20.5 ms, 24.3 %"
    assert chart["slowest"][:2] == [6062.0, 62.0]
    assert chart["notes"] == [
        "Each bar is the mean of 2 steps.",
        "The slowest, step 1, took 6,062 ms.",
    ]


def test_series_of_one_unit_share_a_chart(tmp_path):
    charts = charts_in(written(tmp_path, make_facts()))
    assert [one["name"] for one in charts["system0"]["series"]] == ["CPU %", "GPU 0 %"]
    assert charts["system1"]["unit"] == "MB/s" and "system2" not in charts


def test_points_that_are_means_have_a_note(tmp_path):
    long, short = [(n, 1.0) for n in range(3000)], [(1, 1.0)]
    charts = {
        names: charts_in(written(tmp_path, PageFacts("A", "B", True, losses=losses)))
        for names, losses in (("one", {"a": long}), ("two", {"a": long, "b": short}))
    }
    assert charts["one"]["losses"]["notes"] == ["Each point is the mean of 2 values."]
    assert charts["two"]["losses"]["notes"] == ["Each point of a is the mean of 2 values."]


@pytest.mark.slow
def test_a_million_steps_make_a_small_page(tmp_path):
    path = write_page(tmp_path / "page.html", make_facts(1_000_000))
    assert path.stat().st_size < 500_000


def test_facts_that_contradict_each_other_are_rejectd():
    with pytest.raises(ValueError, match="'device' has 1 values for 2 steps"):
        PageFacts("A", "B", True, steps=[1, 2], phases={"device": [1.0]})
    with pytest.raises(ValueError, match="must ascend"):
        PageFacts("A", "B", True, steps=[2, 2])
    with pytest.raises(ValueError, match="'T' has 2 columns, a row 1"):
        Table("T", ("a", "b"), [("x",)])


def test_a_page_replaces_the_old_one_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "page.html"
    write_page(path, BARE)
    write_page(path, PageFacts("Another", "B", True))
    assert "Another" in path.read_text(encoding="utf-8")
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write .*file/page.html"):
        write_page(tmp_path / "file" / "page.html", BARE)


def test_colours_stand_out_from_the_card_and_from_their_neighbours():
    template = Path(page.__file__).with_name("page.html").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", template, re.DOTALL)
    for theme in (light, dark):
        values = dict(re.findall(r"--([\w-]+): (#\w{6})", theme))
        card = _luminance(values["card"])
        colours = [_luminance(values[f"c{n}"]) for n in range(8)]
        assert all(_contrast(colour, card) >= 3 for colour in colours)
        assert all(_contrast(a, b) >= 1.25 for a, b in zip(colours, colours[1:], strict=False))
        assert _contrast(_luminance(values["soft"]), card) >= 4.5


def _luminance(colour: str) -> float:
    parts = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _contrast(a: float, b: float) -> float:
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


# The page in a browser.


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    """Open the page of some facts; at the end it must have logged and requested nothing."""
    tabs = []

    def show(facts: PageFacts, **how):
        path = write_page(tmp_path / "page.html", facts)
        tab = browser.open(path, **how)
        tabs.append((tab, path))
        return tab

    yield show
    for tab, path in tabs:
        assert tab.problems == [] and tab.requests == [path.resolve().as_uri()]
        tab.close()


def test_the_driver_sees_what_a_bad_page_does(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<script>console.warn('warned'); fetch('other.json'); nothing()</script>")
    tab = browser.open(path)
    problems = " ".join(tab.problems)
    assert "warned" in problems and "nothing is not defined" in problems
    assert [Path(url).name for url in tab.requests] == ["bad.html", "other.json"]
    tab.close()


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_is_drawn(show, dark):
    tab = show(make_facts(), dark=dark)
    drawn = tab.evaluate("""
        [...document.querySelectorAll("figure")].map((figure) => [figure.dataset.chart,
          [...figure.querySelectorAll("path.area, path.curve:not(.gap)")].map((path) =>
            [path.getAttribute("d"), path.getBBox().width, path.getBBox().height])])
    """)
    names = ["time", "utilisation", "losses", "system0", "system1"]
    assert [name for name, _ in drawn] == names
    assert [len(paths) for _, paths in drawn] == [3, 1, 3, 2, 1]
    for _, paths in drawn:
        for line, width, height in paths:
            assert re.fullmatch(r"[MLHVZ\d.,-]+", line), line[:200]
            assert 600 < width < 1200 and height < 260
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(15, 18, 22)" if dark else "rgb(244, 245, 247)")


@pytest.mark.parametrize("facts", [make_facts(), BARE], ids=["full", "bare"])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_scrolls_sideways_on_a_phone(show, facts, dark):
    tab = show(facts, width=360, dark=dark)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.evaluate(STICKING_OUT) == []


def test_a_chart_follows_the_width_of_the_window(show):
    tab = show(make_facts())
    width = "document.querySelector('path.area').getBBox().width"
    wide = tab.evaluate(width)
    tab.resize(360)
    assert wide > 1000 and 200 < tab.evaluate(width) < 330
    assert tab.evaluate(STICKING_OUT) == []


@pytest.mark.parametrize("width", [1200, 360])
def test_pointing_at_a_bar_shows_its_numbers(show, width):
    tab = show(make_facts(100), width=width)
    tab.move_mouse(*place_of(tab, "time", 55, 100))
    shown = readout(tab, "time")
    assert shown.splitlines()[0] == "Step 55"
    assert (
        shown.split()
        == "Step 55 device 60 ms waiting for data 150 ms compiling 0 ms all phases 210 ms".split()
    )
    assert tab.evaluate(STICKING_OUT) == []
    others = tab.evaluate("""
        ["utilisation", "losses", "system0"].map((name) =>
          document.querySelector(`[data-chart=${name}] .cursor`).getAttribute("visibility"))
    """)
    assert others == ["visible", "visible", "hidden"]
    tab.move_mouse(1, 1)
    assert readout(tab, "time") is None


def test_a_tap_shows_the_numbers_and_they_stay(show):
    tab = show(make_facts(100), width=360)
    tab.tap(*place_of(tab, "time", 20, 100))
    assert readout(tab, "time").startswith("Step 20\n")
    tab.tap(*place_of(tab, "utilisation", 60, 100))
    assert readout(tab, "time") is None
    assert readout(tab, "utilisation").split() == "Step 60 utilisation 28.57 %".split()


def test_a_thinned_bar_shows_its_steps_and_the_slowest(show):
    tab = show(make_facts())
    tab.move_mouse(*place_of(tab, "time", 1, 3000))
    shown = readout(tab, "time")
    assert shown.startswith("Steps 1 to 2, mean") and "slowest step\n6,062 ms" in shown


def test_arrow_keys_walk_along_a_line(show):
    tab = show(make_facts(100))
    tab.evaluate("document.querySelector('[data-chart=losses] svg').focus()")
    tab.press("End")
    assert (
        readout(tab, "losses").split()
        == "Step 100 loss 0.04 mel_loss 0.02 val/mel_loss 0.1".split()
    )
    for _ in range(5):
        tab.press("ArrowLeft")
    assert "mel_loss\n–" in readout(tab, "losses")
    assert "val/mel_loss\n0.2 at step 25" in readout(tab, "losses")
    tab.press("Escape")
    assert readout(tab, "losses") is None


def test_bars_that_are_far_higher_than_the_rest_are_cut_with_a_note(show):
    tab = show(make_facts(100))
    caption = "document.querySelector('[data-chart=time] figcaption').textContent"
    choice = "document.querySelector('[data-chart=time] .choice')"
    assert tab.evaluate(caption) == "2 bars (▲) are cut at the top: the highest reaches 6,062 ms."
    assert top_tick(tab, "time") == "200"
    tab.evaluate(f"{choice}.click()")
    assert tab.evaluate(caption) == "" and top_tick(tab, "time") == "6,000"
    assert tab.evaluate(f"{choice}.textContent") == "Cut the highest"


def test_losses_change_their_scale(show):
    tab = show(make_facts(100))
    unit = "document.querySelector('[data-chart=losses] text.unit').textContent"
    gaps = "document.querySelectorAll('[data-chart=losses] path.gap').length"
    assert tab.evaluate(unit) == "value" and tab.evaluate(gaps) == 2
    tab.evaluate("document.querySelector('[data-chart=losses] .choice').click()")
    assert tab.evaluate(unit) == "value, log scale" and tab.evaluate(gaps) == 2


def test_the_legend_hides_a_series(show):
    tab = show(make_facts(100))
    tab.evaluate("document.querySelector('[data-chart=time] .choice').click()")
    assert top_tick(tab, "time") == "6,000"
    tab.evaluate("document.querySelectorAll('[data-chart=time] .legend button')[2].click()")
    assert tab.evaluate("document.querySelectorAll('[data-chart=time] path.area').length") == 2
    assert top_tick(tab, "time") == "200"


@pytest.mark.parametrize(
    "facts",
    [
        PageFacts("A", "B", True, steps=[7], phases={"device": [3.0]}, utilisation=[0.5]),
        PageFacts("A", "B", True, steps=[1, 2], phases={"device": [0.0, math.nan]}),
        PageFacts("A", "B", True, losses={"loss": [(5, 1.0)], "other": [(5, math.nan)]}),
        PageFacts("A", "B", True, losses={"loss": [(1, 0.0), (2, -1.0), (3, math.nan), (9, 2e-9)]}),
        PageFacts("A", "B", True, system={"load": [(0.0, 0.0)], "GPU 0 W": [(0.0, math.nan)]}),
    ],
)
def test_hardly_any_values_draw_without_trouble(show, facts):
    tab = show(facts, width=360)
    for choice in range(tab.evaluate("document.querySelectorAll('button').length")):
        tab.evaluate(f"document.querySelectorAll('button')[{choice}].click()")
    attributes = tab.evaluate(
        "[...document.querySelectorAll('svg, svg *')].flatMap((e) => [...e.attributes])"
        ".map((a) => a.value).join(' ')"
    )
    assert not re.search("NaN|Infinity|undefined|null", attributes)
    assert tab.evaluate(STICKING_OUT) == []


def test_a_screenshot_is_a_picture_of_the_window(show, tmp_path):
    tab = show(BARE, width=360)
    header = tab.screenshot(tmp_path / "page.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(header[16:20]) == 360 and int.from_bytes(header[20:24]) == 800


def place_of(tab, chart: str, step: int, num_steps: int) -> tuple[float, float]:
    """The middle of a step's bar in the viewport, once the chart was scrolled to."""
    left, right, y = tab.evaluate(f"""(() => {{
        const svg = document.querySelector("[data-chart={chart}] svg");
        svg.scrollIntoView({{block: "center"}});
        const box = svg.querySelector("path.area").getBoundingClientRect();
        return [box.left, box.right, (box.top + box.bottom) / 2];
    }})()""")
    return left + (right - left) * (step - 0.5) / num_steps, y


def readout(tab, chart: str) -> str | None:
    """What a chart shows at the place that is pointed at, if anything."""
    return tab.evaluate(f"""(() => {{
        const box = document.querySelector("[data-chart={chart}] .readout");
        return box.hidden ? null : box.innerText;
    }})()""")


def top_tick(tab, chart: str) -> str:
    """The highest number at the y axis."""
    return tab.evaluate(
        f"""[...document.querySelectorAll("[data-chart={chart}] text[text-anchor=end]:not(.unit)")]
            .at(-1).textContent"""
    )
