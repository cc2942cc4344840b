// Speak, clone and export.
import { action, ask, attempt, blob, confirmed, download, el, field, filePicker, get, languageName, note, number, onLeave, poll, post, remember, remove, say, select, setOptions, state, t, tag } from "./core.js";
import { recordControls, wavOf } from "./audio.js";
import { voiceOptions } from "./compare.js";
import { takeStore } from "./takes.js";

const RATE = 24000;
const GREETINGS = { en: "Hello. This is a voice of MyXTTS.", fa: "سلام. این یک صدای ساخته‌شده است." };

export function showSpeak(main, _, query) {
  const line = note(), said = el("p", { className: "said", dir: "auto", "aria-label": t("whatIsSaid"), tabIndex: 0 });
  const text = el("textarea", { id: "text", dir: "auto", value: sessionStorage.getItem("studio.text") ?? "", oninput: () => sessionStorage.setItem("studio.text", text.value) });
  const voice = select([], null, () => choose()), language = select([], null, () => greet());
  const rateText = el("output", {}), rate = el("input", { type: "range", min: 0.5, max: 2, step: 0.05, value: 1, oninput: () => { rateText.textContent = number(+rate.value, 2); } });
  rate.oninput();
  const seed = el("input", { type: "number", min: 0, max: 2147483647, value: 0 });
  const styles = el("div", { className: "fields" }), useStyle = el("input", { type: "checkbox", onchange: () => { styles.hidden = !useStyle.checked; } });
  const styling = el("details", { hidden: true }, el("summary", {}, t("style")), el("label", { className: "tick note" }, useStyle, t("ownStyle")), styles);
  const speak = el("button", { type: "submit" }, t("speak")), stop = el("button", { type: "button", className: "plain", disabled: true }, t("stop"));
  const files = el("div", { className: "buttons", hidden: true });
  const form = el("form", { className: "card" }, field(t("text"), text),
    el("div", { className: "fields note" }, field(t("voice"), voice), field(t("language"), language), field(t("rate"), rate, rateText), field(t("seed"), seed)), styling,
    el("div", { className: "buttons" }, speak, stop), line, said, files);
  let current = null, wanted = query.get("voice"), greeting = "";
  // In the language that is to be spoken, until somebody writes another text.
  const greet = () => { if (text.value === greeting) text.value = greeting = GREETINGS[language.value] ?? GREETINGS.en; };

  const chosen = () => state.voices.find(one => one.id === voice.value);
  function choose() {
    const one = chosen();
    if (!one) return;
    setOptions(language, one.languages.map(code => [code, languageName(code)]));
    greet();
    styling.hidden = !one.style_tokens;
    if (styles.children.length !== one.style_tokens) {
      styles.replaceChildren(...Array.from({ length: one.style_tokens }, (_, i) =>
        field(t("styleToken", { n: number(i + 1) }), el("input", { type: "range", min: -1, max: 1, step: 0.05, value: 0 }))));
    }
    styles.hidden = !useStyle.checked;
  }
  const body = extra => JSON.stringify({ model: "tts-1", input: text.value, voice: voice.value, speed: +rate.value, seed: +seed.value || 0,
    language: language.value || undefined, style: useStyle.checked && chosen()?.style_tokens ? [...styles.querySelectorAll("input")].map(one => +one.value) : undefined, ...extra });
  const send = (content, signal) => ask("/v1/audio/speech", { method: "POST", body: content, signal, headers: { "Content-Type": "application/json" } });

  async function run() {
    halt();
    const own = current = { context: new AudioContext({ sampleRate: RATE }), control: new AbortController(), parts: [], words: [], spans: [], asked: body() };
    let at = 0, begin = 0;
    said.replaceChildren();
    files.hidden = true;
    stop.disabled = false;
    line.set(t("speaking"));
    const answer = await send(body({ response_format: "pcm", stream_format: "sse", timestamps: true }), own.control.signal);
    for await (const event of events(answer)) {
      if (event.type === "error") throw new Error(event.error.message);
      for (const word of event.words ?? []) {
        own.words.push(word);
        own.spans.push(el("span", {}, word.word));
        said.append(own.spans.at(-1), " ");
      }
      if (!event.audio) continue;
      const { bytes, samples } = decoded(event.audio);
      if (!samples.length) continue;
      own.parts.push(bytes);
      const buffer = own.context.createBuffer(1, samples.length, RATE), source = own.context.createBufferSource();
      buffer.copyToChannel(samples, 0);
      source.buffer = buffer;
      source.connect(own.context.destination);
      if (!at) { at = begin = own.context.currentTime + 0.05; own.begin = begin; follow(own); }
      at = Math.max(at, own.context.currentTime);
      source.start(at);
      at += buffer.duration;
    }
    line.set(t("spoken", { seconds: number(at - begin, 1) }), "good");
    offer(own);
    setTimeout(() => { if (current === own) halt(); }, 1000 * Math.max(0, at - own.context.currentTime) + 300);
  }
  function follow(own) {
    if (current !== own) return;
    const now = own.context.currentTime - own.begin;
    own.words.forEach((word, i) => {
      const is = word.start_time <= now && now < word.end_time;
      if (is !== (own.spans[i].tagName === "MARK")) {
        const next = el(is ? "mark" : "span", {}, word.word);
        own.spans[i].replaceWith(next);
        own.spans[i] = next;
      }
    });
    requestAnimationFrame(() => follow(own));
  }
  function halt() {
    if (current) { current.control.abort(); current.context.close(); current = null; }
    stop.disabled = true;
    for (const mark of said.querySelectorAll("mark")) mark.replaceWith(el("span", {}, mark.textContent));
  }
  function offer(own) {
    files.hidden = false;
    files.replaceChildren(el("span", { className: "muted" }, t("download")),
      action("WAV", async () => download(wavOf(own.parts, RATE), "speech.wav"), line, "plain small"),
      action("MP3", async () => download(await (await send(JSON.stringify({ ...JSON.parse(own.asked), response_format: "mp3" }))).blob(), "speech.mp3"), line, "plain small"),
      action("SRT", async () => download(new Blob([subtitles(own.words)], { type: "text/plain" }), "speech.srt"), line, "plain small"));
  }
  form.onsubmit = event => {
    event.preventDefault();
    attempt(speak, line, () => run().catch(error => { halt(); if (error.name === "AbortError") line.set(t("stopped")); else throw error; }));
  };
  stop.onclick = halt;
  onLeave(halt);
  main.append(el("h2", {}, t("speak")), el("div", { className: "grid" }, form, clonePanel()));
  poll(4, async () => {
    state.voices = (await get("voices")).voices;
    setOptions(voice, voiceOptions());
    if (wanted && state.voices.some(one => one.id === wanted)) voice.value = wanted;
    wanted = null;
    choose();
  });
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) yield JSON.parse(part.slice("data: ".length));
  }
}

function decoded(base64) {
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer), samples = new Float32Array(bytes.length >> 1);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(2 * i, true) / 32768;
  return { bytes, samples };
}

// Cues of at most two lines, which end with a sentence or a pause.
function subtitles(words) {
  const clock = seconds => {
    const ms = Math.round(1000 * seconds), two = n => String(n).padStart(2, "0");
    return `${two(Math.floor(ms / 3600000))}:${two(Math.floor(ms / 60000) % 60)}:${two(Math.floor(ms / 1000) % 60)},${String(ms % 1000).padStart(3, "0")}`;
  };
  const cues = [];
  for (const word of words) {
    const last = cues.at(-1);
    const fits = last && (last.text + word.word).length < 84 && word.start_time - last.end < 0.7 && !/[.!?؟…。]$/u.test(last.text);
    if (fits) { last.text += " " + word.word; last.end = word.end_time; }
    else cues.push({ text: word.word, start: word.start_time, end: word.end_time });
  }
  return cues.map((one, i) => `${i + 1}\n${clock(one.start)} --> ${clock(one.end)}\n${one.text}\n`).join("\n");
}

function clonePanel() {
  const line = note(), list = el("ul", { className: "plain" }), listLine = note();
  const name = el("input", { required: true, maxLength: 64, dir: "auto" });
  const consent = el("textarea", { required: true, dir: "auto", placeholder: t("consentExample") });
  const [file, picker] = filePicker(t("reference"), { accept: "audio/*,.wav,.flac,.mp3,.ogg", id: "reference" });
  const voice = select([], null), listen = el("audio", { controls: true, hidden: true, "aria-label": t("take") });
  const store = takeStore(null, line);
  let take = null, recorded = null;
  const discard = confirmed(t("discardTake"), async () => { const old = recorded; forgetTake(); await store.drop(old); }, line, "plain small");
  const offer = (one, sound) => {
    recorded = one;
    take = sound;
    if (listen.src) URL.revokeObjectURL(listen.src);
    listen.src = URL.createObjectURL(sound);
    listen.hidden = discard.hidden = false;
    file.clear();
  };
  const forgetTake = () => { recorded = null; take = file.files[0] ?? null; listen.hidden = discard.hidden = true; };
  discard.hidden = true;
  const [record, level] = recordControls(line, async sound => {
    const before = recorded;
    offer({ text: "", sound }, sound);
    const own = recorded;
    await store.keepSafe(own);
    if (before && own.id) store.drop(before).catch(() => {});
  });
  file.onchange = () => {
    const chosen = file.files[0];
    take = chosen ?? recorded?.sound ?? null;
    listen.hidden = discard.hidden = !!chosen || !recorded;
  };
  store.list().then(async found => {
    const last = found.at(-1), sound = last && await store.sound(last);
    if (last && !take) offer(last, sound);
  }).catch(error => line.set(error.message, "error"));
  const make = el("button", { type: "submit" }, t("cloneIt"));
  const form = el("form", {}, el("div", { className: "fields" }, field(t("name"), name), field(t("voiceToClone"), voice)),
    el("div", { className: "buttons" }, picker, record), level, listen, discard, el("p", { className: "muted" }, t("referenceAbout")),
    field(t("consent"), consent), el("div", { className: "buttons" }, make), line);
  const forget = remember(form, "clone");
  form.onsubmit = event => {
    event.preventDefault();
    attempt(make, line, async () => {
      if (!take) throw new Error(t("noTake"));
      const body = new FormData();
      body.set("name", name.value);
      body.set("consent", consent.value);
      body.set("voice", voice.value);
      body.set("audio_sample", take, "reference.wav");
      const clone = await (await ask("/v1/voices", { method: "POST", body })).json();
      line.set(t("cloned", { name: clone.name }), "good");
      name.value = consent.value = "";
      file.clear();
      const old = recorded;
      forgetTake();
      forget();
      if (old) await store.drop(old);
      await refresh();
    });
  };
  async function refresh() {
    state.voices = (await get("voices")).voices;
    setOptions(voice, [...new Set(state.voices.map(one => one.voice))].map(one => [one, one]));
    list.replaceChildren(...state.voices.filter(one => one.is_clone).map(one => el("li", { className: "between" }, el("span", { dir: "auto" }, one.name),
      confirmed(t("delete"), async () => { await ask(`/v1/voices/${one.id}`, { method: "DELETE" }); await refresh(); }, listLine))));
  }
  refresh().catch(error => line.set(error.message, "error"));
  return el("section", { className: "card" }, el("h3", {}, t("clone")), el("p", { className: "muted" }, t("cloneAbout")), form, list, listLine);
}

export function showExport(main, _, query) {
  const line = note(), list = el("ul", { className: "plain" }), listLine = note();
  const voice = select([], null), target = select(state.overview.targets.map(one => [one, t("target_" + one)]), "piper");
  const weights = select(state.overview.weights.map(one => [one, one]), "float32");
  const begin = el("button", { type: "submit" }, t("exportIt"));
  const form = el("form", { className: "card" }, el("h3", {}, t("newExport")), el("div", { className: "fields" }, field(t("voice"), voice), field(t("target"), target), field(t("weights"), weights)),
    el("div", { className: "buttons" }, begin), line);
  form.onsubmit = event => {
    event.preventDefault();
    attempt(begin, line, async () => { await post("exports", { voice: voice.value, target: target.value, weights: weights.value }); say(t("exportBegun")); });
  };
  main.append(el("h2", {}, t("export")), el("p", {}, t("exportAbout")), el("div", { className: "grid" }, el("section", { className: "card" }, el("h3", {}, t("exports")), list, listLine), form));
  let wanted = query.get("voice"), drawn = "";
  poll(2, async () => {
    const [{ exports }, { voices }] = await Promise.all([get("exports"), get("voices")]);
    setOptions(voice, [...new Set(voices.map(one => one.voice))].map(one => [one, one]));
    if (wanted && voices.some(one => one.voice === wanted)) voice.value = wanted;
    wanted = null;
    const key = JSON.stringify(exports);
    if (key === drawn) return;
    drawn = key;
    list.replaceChildren(...exports.map(one => el("li", {}, el("div", { className: "between" }, el("span", { dir: "ltr" }, `${one.voice} → ${one.target} (${one.weights})`), one.job ? tag(one.job) : null,
      one.job?.state === "finished" ? action(t("downloadZip"), async () => download(await blob(`exports/${one.id}/archive`), `${one.id}.zip`), listLine, "plain small") : null,
      one.job?.state === "running" ? action(t("stop"), () => post(`jobs/${one.job.id}/stop`), listLine, "danger small") : confirmed(t("delete"), () => remove(`exports/${one.id}`), listLine)),
      one.job?.state === "failed" ? el("p", { className: "error note", dir: "auto" }, one.log.trim().split("\n").at(-1)) : null)));
    if (!exports.length) list.replaceChildren(el("li", { className: "muted" }, t("noExports")));
  });
}
