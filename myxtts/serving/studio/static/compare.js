// Two voices on the same sentences.
import { action, attempt, confirmed, el, field, get, go, jobPanel, languageName, link, note, number, poll, post, remember, remove, select, setOptions, state, t, tag } from "./core.js";
import { playButton } from "./audio.js";

const SENTENCES = {
  en: ["The sun rises over the quiet river.", "How much does this old book cost?", "Please close the window before you leave.", "Seven children were playing in the garden."],
  fa: ["خورشید از پشت کوه بلند طلوع می‌کند.", "قیمت این کتاب قدیمی چند است؟", "لطفاً پیش از رفتن پنجره را ببندید.", "هفت کودک در باغ بازی می‌کردند."],
};
export const voiceOptions = () => state.voices.map(one => [one.id, one.name]);

export function listComparisons(main, _, query) {
  const line = note(), list = el("ul", { className: "plain" });
  const first = select([], null, () => languages()), second = select([], null, () => languages());
  const language = select([], null, () => fill()), corpus = select([], null);
  const text = el("textarea", { dir: "auto", required: true });
  const begin = el("button", { type: "submit" }, t("compareThem"));
  let own = "";
  const fill = () => { if (text.value === own) text.value = own = (SENTENCES[language.value] ?? []).join("\n"); };
  const languages = () => {
    const [a, b] = [first, second].map(one => state.voices.find(voice => voice.id === one.value)?.languages ?? []);
    setOptions(language, a.filter(one => b.includes(one)).map(one => [one, languageName(one)]));
    fill();
  };
  const form = el("form", { className: "card" }, el("h3", {}, t("newComparison")),
    el("div", { className: "fields" }, field(t("voiceA"), first), field(t("voiceB"), second), field(t("language"), language), field(t("likenessTo"), corpus)),
    field(t("sentences"), text), el("div", { className: "buttons" }, begin), line);
  const forget = remember(form, "comparison");
  form.onsubmit = event => {
    event.preventDefault();
    attempt(begin, line, async () => {
      if (!language.value) throw new Error(t("noCommonLanguage"));
      const made = await post("comparisons", { first: first.value, second: second.value, sentences: text.value.split("\n"), language: language.value, corpus: corpus.value || null });
      forget();
      go("compare", made.id);
    });
  };
  main.append(el("h2", {}, t("compare")), el("p", {}, t("compareAbout")),
    el("div", { className: "grid" }, el("section", { className: "card" }, el("h3", {}, t("comparisons")), list), form));
  let wanted = query.get("first");
  poll(3, async () => {
    const [{ comparisons }, { voices }, { corpora }] = await Promise.all([get("comparisons"), get("voices"), get("corpora")]);
    state.voices = voices;
    setOptions(first, voiceOptions());
    const fresh = !second.options.length;
    setOptions(second, voiceOptions());
    if (fresh && second.options.length > 1) second.selectedIndex = 1;
    if (wanted && voices.some(one => one.id === wanted)) { first.value = wanted; second.value = voices.find(one => one.id !== wanted)?.id; }
    wanted = null;
    setOptions(corpus, [["", t("noReference")], ...corpora.filter(one => one.texts).map(one => [one.id, one.title])]);
    languages();
    list.replaceChildren(...comparisons.map(one => el("li", { className: "between" }, link(one.title, "compare", one.id), one.job ? tag(one.job) : null)));
    if (!comparisons.length) list.replaceChildren(el("li", { className: "muted" }, t("noComparisons")));
  });
}

export function showComparison(main, name) {
  const heading = el("h2", { dir: "auto" }), line = note(), table = el("div"), absent = el("p", { className: "muted", dir: "auto" }), sides = el("div", { className: "sides" });
  const job = jobPanel(), blind = blindTest(name);
  main.append(el("p", {}, link(t("back"), "compare")), heading, el("section", { className: "card" }, job),
    el("section", { className: "card" }, el("h3", {}, t("blind")), el("p", { className: "muted" }, t("blindAbout")), blind.box),
    el("section", { className: "card" }, el("h3", {}, t("sideBySide")), sides, line),
    el("section", { className: "card" }, el("h3", {}, t("figures")), el("p", { className: "muted" }, t("figuresAbout")), table, absent),
    el("div", { className: "buttons" }, confirmed(t("deleteComparison"), async () => { await remove(`comparisons/${name}`); go("compare"); }, line)));
  let drawn = "";
  poll(2, async () => {
    const now = await get(`comparisons/${name}`);
    heading.textContent = now.title;
    job.set(now.job, now.log);
    const ready = now.ready.length === 2;
    blind.set(now, ready);
    absent.textContent = now.no_likeness ? t("noLikeness", { why: now.no_likeness }) : "";
    const key = JSON.stringify([ready, now.figures]);
    if (key === drawn) return;
    drawn = key;
    const [a, b] = now.sides.map(one => one.title);
    const heads = [a, b].map(one => one.replaceAll("_", "_\u200b"));  // where a long name may break
    const play = (side, i, who) => playButton(`comparisons/${name}/audio/${side}/${i}`, t("playBy", { text: now.sentences[i], who }), line);
    sides.replaceChildren(ready ? el("table", {}, el("thead", {}, el("tr", {}, [t("sentence"), ...heads].map(one => el("th", { scope: "col", dir: "auto" }, one)))),
      el("tbody", {}, now.sentences.map((text, i) => el("tr", {}, el("td", { dir: "auto" }, text), el("td", {}, play("a", i, a)), el("td", {}, play("b", i, b))))))
      : el("p", { className: "muted" }, t("notSpoken")));
    const interval = one => one.low == null ? null :
      el("span", { className: "interval muted" }, `[${number(one.low, 3)}, ${number(one.high, 3)}]`);
    const cell = one => el("td", { className: "number", dir: "ltr" }, one?.value == null ? "–" : [number(one.value, 3), " ", interval(one)]);
    const measure = one => el("th", { scope: "row" }, t("metric_" + one.name, {}, one.title), " ",
      el("span", { className: "muted" }, t("better_" + one.better, {}, one.better)));
    table.replaceChildren(now.figures.length ? el("table", { className: "measures" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("measure")), heads.map(one => el("th", { scope: "col", className: "number", dir: "auto" }, one)))),
      el("tbody", {}, now.figures.map(one => el("tr", {}, measure(one), cell(one.a), cell(one.b)))))
      : el("p", { className: "muted" }, t("noFigures")));
  });
}

function blindTest(name) {
  const line = note(), box = el("div");
  let shown = "", at = null;
  const draw = now => {
    if (at == null) {
      const rest = now.sentences.map((_, i) => i).filter(i => !now.answered.includes(i));
      at = rest[0] ?? null;
    }
    const again = confirmed(t("startOver"), async () => { at = null; draw(await remove(`comparisons/${name}/answers`)); }, line, "plain small");
    if (at == null) {
      box.replaceChildren(tally(now), el("div", { className: "buttons" }, again), line);
      return;
    }
    const own = at;
    const choose = (place, label) => action(label, async () => {
      const answer = await post(`comparisons/${name}/answers`, { trial: own, place });
      at = null;
      draw({ ...now, ...answer });
      box.querySelector("button")?.focus();
    }, line, place == null ? "plain" : "");
    box.replaceChildren(el("p", { className: "muted" }, t("trialPlace", { at: number(now.answered.length + 1), of: number(now.sentences.length) })),
      el("p", { className: "prompt", dir: "auto" }, now.sentences[own]),
      el("div", { className: "buttons" }, [0, 1].map(place => el("span", {}, t("clip_" + place), " ", playButton(`comparisons/${name}/trials/${own}/${place}`, t("playBlind", { which: t("clip_" + place) }), line)))),
      el("div", { className: "buttons" }, choose(0, t("prefer_0")), choose(1, t("prefer_1")), choose(null, t("noPreference"))), line);
  };
  const tally = now => {
    const [a, b] = now.sides.map(one => one.title), found = now.tally;
    if (!found) return el("p", {});
    const share = found.share ? t("share", { name: a, value: number(100 * found.share.value, 0), low: number(100 * found.share.low, 0), high: number(100 * found.share.high, 0), p: number(found.p, 3) }) : "";
    return el("div", {}, el("p", {}, t("tally", { a, b, first: number(found.first), second: number(found.second), neither: number(found.neither) })), el("p", { className: "muted" }, share));
  };
  const set = (now, ready) => {
    const key = ready + JSON.stringify(now.answered);
    if (key === shown) return;
    shown = key;
    if (!ready) { box.replaceChildren(el("p", { className: "muted" }, t("notSpoken"))); return; }
    if (at == null || now.answered.includes(at)) { at = null; draw(now); }
  };
  return { box, set };
}
