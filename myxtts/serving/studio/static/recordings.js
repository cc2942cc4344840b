// From recordings to a corpus.
import { action, attempt, confirmed, duration, el, field, get, go, jobPanel, languageName, link, note, number, percent, poll, post, remember, remove, say, select, setOptions, state, t, tag, upload } from "./core.js";
import { playButton, recordControls } from "./audio.js";
import { takeStore } from "./takes.js";

const languageOptions = () => state.overview.languages.map(one => [one.code, languageName(one.code)]);
const PER_PAGE = 50;
const clipCount = n => t(n === 1 ? "oneClip" : "clips", { n: number(n) });
const contents = one => clipCount(one.clips) + t("comma") + t(one.texts === 1 ? "oneText" : "texts", { n: number(one.texts) });

export function listCorpora(main) {
  const line = note(), list = el("ul", { className: "plain" });
  const title = el("input", { required: true, maxLength: 60, dir: "auto" });
  const language = select(languageOptions(), state.language);
  const make = el("button", { type: "submit" }, t("newCorpus"));
  const form = el("form", { className: "card" }, el("h3", {}, t("newCorpus")),
    el("div", { className: "fields" }, field(t("name"), title), field(t("spokenLanguage"), language)),
    el("div", { className: "buttons" }, make), line);
  const forget = remember(form, "corpus");
  form.onsubmit = event => {
    event.preventDefault();
    attempt(make, line, async () => {
      const made = await post("corpora", { title: title.value, language: language.value });
      forget();
      go("recordings", made.id);
    });
  };
  const demoLine = note();
  const demo = el("div", { className: "buttons", hidden: true },
    action(t("makeDemo"), () => post("demo"), demoLine, "plain"), el("span", { className: "muted" }, t("demoAbout")));
  main.append(el("h2", {}, t("recordings")), el("p", {}, t("recordingsAbout")),
    el("div", { className: "grid" }, el("section", { className: "card" }, el("h3", {}, t("corpora")), list, demo, demoLine), form));
  poll(2, async () => {
    const { corpora } = await get("corpora");
    demo.hidden = corpora.some(one => one.id === "demo");
    list.replaceChildren(...corpora.map(one => el("li", { className: "between" }, link(one.title, "recordings", one.id),
      el("span", { className: "muted" }, contents(one)), one.job ? tag(one.job) : null)));
    if (!corpora.length) list.replaceChildren(el("li", { className: "muted" }, t("noCorpora")));
  });
}

export function showCorpus(main, name) {
  const heading = el("h2", { dir: "auto" }), facts = el("p", { className: "muted" });
  const clips = clipTable(name);
  const job = jobPanel(() => clips.refresh());
  const tapes = el("ul", { className: "plain" }), tapeLine = note();
  const slice = action(t("cut"), () => post(`corpora/${name}/slice`), tapeLine);
  const transcribe = action(t("transcribe"), () => post(`corpora/${name}/transcribe`), tapeLine, "plain");
  const typed = el("p", { className: "muted", hidden: true }, t("typeTexts"));
  const deleteLine = note();
  main.append(el("p", {}, link(t("back"), "recordings")), heading, facts,
    el("div", { className: "grid" },
      el("section", { className: "card" }, el("h3", {}, t("addRecordings")), dropZone(name), tapes,
        el("div", { className: "buttons" }, slice, transcribe), typed, tapeLine, job),
      readingPanel(name, () => clips.refresh())),
    clips.section,
    el("div", { className: "buttons" }, el("a", { className: "button", href: `#/training?corpus=${encodeURIComponent(name)}` }, t("trainOnIt")),
      confirmed(t("deleteCorpus"), async () => { await remove(`corpora/${name}`); go("recordings"); }, deleteLine), deleteLine));
  poll(1.5, async () => {
    const now = await get(`corpora/${name}`);
    heading.textContent = now.title;
    const language = state.overview.languages.find(one => one.code === now.language);
    facts.textContent = [languageName(now.language), contents(now)].join(" · ");
    const running = now.job?.state === "running";
    slice.hidden = !now.recordings.length;
    slice.disabled = transcribe.disabled = running;
    transcribe.hidden = now.texts >= now.clips || !language?.can_transcribe;
    typed.hidden = now.texts >= now.clips || language?.can_transcribe;
    const key = JSON.stringify(now.recordings);
    if (tapes.dataset.key !== key) {
      tapes.dataset.key = key;
      tapes.replaceChildren(...now.recordings.map(one => el("li", { className: "between" }, el("span", { dir: "auto" }, one.name),
        el("span", { className: "muted" }, duration(one.seconds) + " · " + (one.clips == null ? t("notCut") : clipCount(one.clips)) +
          Object.entries(one.dropped).map(([reason, n]) => ` · ${number(n)} × ${reasonText(reason)}`).join("")),
        confirmed("✕", () => remove(`corpora/${name}/recordings/${encodeURIComponent(one.name)}`), tapeLine, "plain small", `${t("delete")}: ${one.name}`))));
    }
    job.set(now.job, now.log);
    clips.changed(`${now.clips}/${now.texts}`);
  });
}

// A reason as the commands name it, with a detail behind it or not, in the language of the page.
function reasonText(said) {
  const [reason, ...detail] = said.split(": ");
  return [t("reason_" + reason.replaceAll(" ", "_"), {}, reason), ...detail].join(": ");
}

function dropZone(name) {
  const input = el("input", { type: "file", multiple: true, accept: "audio/*,.wav,.flac,.mp3,.ogg,.opus,.aiff", className: "hidden", id: "files" });
  const list = el("ul", { className: "plain", "aria-live": "polite" });
  const zone = el("div", { className: "drop", id: "drop" }, el("p", {}, t("dropHere")), el("label", { htmlFor: "files" }, t("chooseFiles")), input,
    el("p", { className: "muted" }, t("formats")));
  const send = async file => {
    const bar = el("progress", { max: 1, value: 0, "aria-label": file.name }), said = el("span", { className: "muted", dir: "auto" });
    const row = el("li", {}, el("span", { dir: "auto" }, file.name), " ", bar, said);
    list.append(row);
    try {
      await upload(`corpora/${name}/recordings?filename=${encodeURIComponent(file.name)}`, file,
        share => { bar.value = share; if (share === 1) { bar.removeAttribute("value"); said.textContent = t("decoding"); } });
      row.remove();
      say(t("added", { name: file.name }));
    } catch (error) { bar.remove(); said.textContent = error.message; said.className = "error"; }
  };
  const sendAll = async files => { for (const file of files) await send(file); };
  input.onchange = () => { sendAll([...input.files]); input.value = ""; };
  zone.ondragover = event => { event.preventDefault(); zone.classList.add("over"); };
  zone.ondragleave = () => zone.classList.remove("over");
  zone.ondrop = event => { event.preventDefault(); zone.classList.remove("over"); sendAll([...event.dataTransfer.files]); };
  return el("div", {}, zone, list);
}

function readingPanel(name, added) {
  const line = note(), prompt = el("p", { className: "prompt", dir: "auto" }), place = el("span", { className: "muted" });
  const own = el("textarea", { dir: "auto", hidden: true, "aria-label": t("ownSentence") });
  const keep = el("button", { type: "button" }, t("keepTake")), again = el("span", { className: "muted" }, t("orAgain"));
  const listen = el("audio", { controls: true, "aria-label": t("take") });
  const others = el("button", { type: "button", className: "plain small" });
  const corpus = decodeURIComponent(name), store = takeStore(corpus, line);
  let prompts = [], at = 0, takes = [], heard = null;
  // The latest of this sentence; where there are no sentences to read, the latest.
  const current = () => takes.findLast(one => !prompts.length || one.text === prompts[at]);
  const discard = confirmed(t("discardTake"), async () => { const take = current(); takes = takes.filter(one => one !== take); show(); await store.drop(take); }, line, "plain small");
  const show = () => {
    const take = current(), rest = takes.length - (take ? 1 : 0);
    prompt.textContent = prompts[at] ?? "";
    own.hidden = prompts.length > 0;
    place.textContent = prompts.length ? t("promptPlace", { at: number(at + 1), of: number(prompts.length) }) : "";
    keep.hidden = again.hidden = listen.hidden = discard.hidden = !take;
    others.hidden = !rest;
    others.textContent = t(rest === 1 ? "otherTake" : "otherTakes", { n: number(rest) });
    if (take !== heard) play(heard = take);
  };
  const play = async take => {
    if (listen.src) URL.revokeObjectURL(listen.src);
    listen.removeAttribute("src");
    if (!take) return;
    try {
      const sound = await store.sound(take);
      if (take === heard) listen.src = URL.createObjectURL(sound);
    } catch (error) { line.set(error.message, "error"); }
  };
  // What other tabs have kept is gone; what is not stored yet stays.
  const reload = async () => {
    const stored = await store.list(), known = new Map(takes.map(one => [one.id, one]));
    takes = [...stored.map(one => known.get(one.id) ?? one), ...takes.filter(one => !one.id)];
    if (prompts.length) prompts.push(...new Set(takes.map(one => one.text).filter(one => !prompts.includes(one))));
  };
  const [record, level] = recordControls(line, async sound => {
    const before = current(), take = { text: prompts[at] ?? own.value, sound };
    takes = [...takes.filter(one => one !== before), take];
    show();
    keep.focus();
    await store.keepSafe(take);
    if (before && take.id) store.drop(before).catch(() => {});
  });
  keep.onclick = () => attempt(keep, line, async () => {
    const take = current(), text = prompts[at] ?? own.value;
    try {
      await store.store(take);
      await post(`takes/${take.id}/keep`, { corpus, text });
    } catch (error) {
      await reload().then(show, () => {});
      throw error;
    }
    takes = takes.filter(one => one !== take);
    say(t("kept"));
    own.value = "";
    sessionStorage.removeItem("studio.own." + name);
    move(1);
    added();
    record.focus();
  });
  own.oninput = () => sessionStorage.setItem("studio.own." + name, own.value);
  const turn = to => { at = Math.max(0, Math.min(prompts.length - 1, to)); sessionStorage.setItem("studio.prompt." + name, at); show(); };
  const move = by => turn(at + by);
  others.onclick = () => turn(prompts.indexOf(takes.find(one => one !== current()).text));
  const button = (text, by) => el("button", { type: "button", className: "plain small", onclick: () => move(by) }, text);
  get(`corpora/${name}`).then(async facts => {
    prompts = (await get(`prompts?language=${encodeURIComponent(facts.language)}`)).prompts;
    await reload();
    own.value = sessionStorage.getItem("studio.own." + name) ?? takes.at(-1)?.text ?? "";
    const last = sessionStorage.getItem("studio.prompt." + name);
    turn(last == null && takes.length ? prompts.indexOf(takes.at(-1).text) : +last || 0);
  }).catch(error => line.set(error.message, "error"));
  show();
  return el("section", { className: "card" }, el("h3", {}, t("readAloud")), el("p", { className: "muted" }, t("readAbout")), prompt, own,
    el("div", { className: "buttons" }, record, keep, again, discard), level, listen,
    el("div", { className: "buttons" }, button(t("previous"), -1), place, button(t("next"), 1), others), line);
}

function clipTable(name) {
  const line = note(), body = el("tbody"), counts = {}, dropped = el("p", { className: "muted" });
  const rows = new Map();
  let view = "all", start = 0, seen = null, total = 0;
  const filter = select([], view, () => { view = filter.value; start = 0; turn(); });
  const undo = action(t("undo"), async () => {
    const { id } = await post(`corpora/${name}/undo`);
    say(id ? t("undone", { id }) : t("nothingToUndo"));
    await refresh();
  }, line, "plain");
  const pager = el("span", { className: "muted" });
  const move = by => { start = Math.max(0, Math.min(start + by * PER_PAGE, Math.floor(Math.max(0, total - 1) / PER_PAGE) * PER_PAGE)); turn(); };
  const back = el("button", { type: "button", className: "plain small", onclick: () => move(-1) }, t("previous"));
  const next = el("button", { type: "button", className: "plain small", onclick: () => move(1) }, t("next"));
  const heads = ["play", "text", "length", "remarks", ""].map(one => el("th", { scope: "col", className: one === "length" ? "number" : "" }, one ? t("column_" + one) : el("span", { className: "hidden" }, t("column_act"))));
  const section = el("section", { className: "card", hidden: true }, el("h3", {}, t("clipsTitle")),
    el("div", { className: "fields" }, field(t("show"), filter), el("div", {}, undo)), dropped, line,
    el("table", { className: "stack" }, el("caption", { className: "hidden" }, t("clipsTitle")), el("thead", {}, el("tr", {}, heads)), body),
    el("div", { className: "buttons" }, back, pager, next));
  const row = one => {
    const said = note();
    const text = el("textarea", { value: one.text, rows: 1, dir: "auto", "aria-label": t("textOf", { id: one.id }), disabled: one.excluded });
    let saved = one.text, sent = null, sending = null;
    const send = async value => {
      said.set("");
      try {
        await post(`corpora/${name}/clips/${one.id}`, { text: value }, true);
        saved = value;
        said.set(t("saved"), "good");
      } catch (error) { said.set(error.message, "error"); }
      sent = null;
    };
    text.onchange = text.onblur = () => {
      if (text.value === saved || text.value === sent) return;
      sending = send(sent = text.value);
    };
    text.onkeydown = event => { if (event.key === "Enter") { event.preventDefault(); text.blur(); const rows = [...body.querySelectorAll("textarea")]; rows[rows.indexOf(text) + 1]?.focus(); } };
    const out = action(one.excluded ? t("include") : t("exclude"), async () => {
      await sending;
      await post(`corpora/${name}/clips/${one.id}`, { excluded: !one.excluded });
      rows.delete(one.id);
      await refresh();
    }, said, "plain small");
    out.setAttribute("aria-label", `${out.textContent}: ${one.id}`);
    const remark = [one.confidence == null ? "" : t("confidence", { share: percent(one.confidence, 0) }), one.excluded ? t("excluded") : "", one.suspicious ? reasonText(one.suspicious) : "", one.dropped ? t("wouldDrop", { reason: reasonText(one.dropped) }) : ""].filter(Boolean).join(" · ");
    const made = el("tr", {}, el("td", {}, playButton(`corpora/${name}/clips/${one.id}/audio`, t("playClip", { id: one.id }), said)),
      el("td", { className: "wide" }, text, said), el("td", { className: "number" }, duration(one.seconds)),
      el("td", { className: one.dropped ? "error" : "muted", dir: "auto" }, remark), el("td", {}, out));
    const isTyped = () => text === document.activeElement || text.value !== saved;
    const take = now => { if (text.value === saved && text.value !== now.text) text.value = saved = now.text; };
    rows.set(one.id, { made, isTyped, take });
    return made;
  };
  // Rows that somebody types in, or whose text is not saved yet, stay as and where they are.
  const draw = clips => {
    const kept = new Map([...rows].filter(([, one]) => one.isTyped()));
    const old = new Set([...kept.values()].map(one => one.made));
    for (const one of [...body.children]) if (!old.has(one)) one.remove();
    rows.clear();
    for (const [id, one] of kept) rows.set(id, one);
    clips.forEach((one, i) => {
      kept.get(one.id)?.take(one);
      const wanted = kept.get(one.id)?.made ?? row(one);
      if (body.children[i] !== wanted) body.insertBefore(wanted, body.children[i] ?? null);
    });
  };
  const turn = () => { rows.clear(); return refresh(); };
  async function refresh() {
    try {
      const found = await get(`corpora/${name}/clips?view=${view}&start=${start}&count=${PER_PAGE}`);
      Object.assign(counts, found.counts);
      total = counts[view];
      section.hidden = !counts.all;
      setOptions(filter, Object.entries(counts).map(([key, n]) => [key, `${t("view_" + key)} (${number(n)})`]));
      filter.value = view;
      const reasons = Object.entries(found.dropped);
      dropped.textContent = found.problem ?? (reasons.length ? t("wouldBeDropped", { what: reasons.map(([reason, n]) => `${number(n)} × ${reasonText(reason)}`).join(t("comma")) }) : "");
      dropped.className = found.problem ? "error" : "muted";
      undo.disabled = !found.edits;
      draw(found.clips);
      pager.textContent = t("ofClips", { from: number(total ? start + 1 : 0), to: number(start + found.clips.length), of: number(total) });
      back.hidden = next.hidden = total <= PER_PAGE;
    } catch (error) { line.set(error.message, "error"); }
  }
  const changed = key => {
    if (key === seen) return;
    seen = key;
    refresh();
  };
  return { section, refresh, changed };
}
