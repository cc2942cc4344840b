// Training: start, stop, resume, and what the run's own files say.
import { action, attempt, blob, chart, confirmed, download, duration, el, field, get, go, jobPanel, languageName, link, note, number, percent, poll, post, remember, remove, say, select, setOptions, state, t, tag } from "./core.js";
import { playButton } from "./audio.js";

export function listRuns(main, _, query) {
  const line = note(), list = el("ul", { className: "plain" });
  const title = el("input", { required: true, maxLength: 60, dir: "auto", value: t("myVoice") });
  const corpus = select([], null), size = select(state.overview.sizes.map(one => [one, t("size_" + one)]), "tiny");
  const steps = el("input", { type: "number", min: 1, max: 10000000, value: 2000, required: true, inputMode: "numeric" });
  const minutes = el("input", { type: "number", min: 0.1, step: "any", placeholder: t("noLimit"), inputMode: "decimal" });
  const judged = el("input", { type: "checkbox" });
  const begin = el("button", { type: "submit" }, t("startTraining"));
  const form = el("form", { className: "card" }, el("h3", {}, t("newRun")),
    el("div", { className: "fields" }, field(t("name"), title), field(t("corpus"), corpus), field(t("size"), size), field(t("steps"), steps), field(t("atMostMinutes"), minutes)),
    el("label", { className: "tick note" }, judged, t("evaluateToo")), el("div", { className: "buttons" }, begin), line);
  const forget = remember(form, "run");
  form.onsubmit = event => {
    event.preventDefault();
    attempt(begin, line, async () => {
      if (!corpus.value) throw new Error(t("noCorpusYet"));
      const made = await post("runs", { title: title.value, corpus: corpus.value, size: size.value, steps: +steps.value,
        minutes: minutes.value ? +minutes.value : null, evaluate: judged.checked });
      forget();
      go("training", made.id);
    });
  };
  main.append(el("h2", {}, t("training")), el("p", {}, t("trainingAbout")),
    el("div", { className: "grid" }, el("section", { className: "card" }, el("h3", {}, t("runs")), list), form));
  let wanted = query.get("corpus");
  poll(2, async () => {
    const [{ runs }, { corpora }] = await Promise.all([get("runs"), get("corpora")]);
    setOptions(corpus, corpora.map(one => [one.id, `${one.title} (${number(one.texts)})`]));
    if (wanted && corpora.some(one => one.id === wanted)) corpus.value = wanted;
    wanted = null;
    list.replaceChildren(...runs.map(one => el("li", { className: "between" }, link(one.title, "training", one.id),
      el("span", { className: "muted", dir: "auto" }, one.corpus ?? ""), one.job ? tag(one.job) : null)));
    if (!runs.length) list.replaceChildren(el("li", { className: "muted" }, t("noRuns")));
  });
}

export function showRun(main, name) {
  const heading = el("h2", { dir: "auto" }), facts = el("p", { className: "muted" }), line = note();
  const bar = el("progress", { max: 1, value: 0, "aria-label": t("progress") }), sentence = el("p", { className: "sentence", "aria-live": "polite" });
  const job = jobPanel(null, true);
  const stop = action(t("stopTraining"), async () => { await post(`runs/${name}/stop`); say(t("stopping")); }, line, "danger");
  const more = el("input", { type: "number", min: 1, max: 10000000, required: true, inputMode: "numeric" });
  const resume = action(t("resume"), () => post(`runs/${name}/resume`, { steps: +more.value || null }), line);
  const resuming = el("div", { className: "buttons", hidden: true }, field(t("steps"), more), resume);
  const figures = el("div", { className: "figures" }), verdict = el("p", { className: "muted", dir: "auto" });
  const curves = el("div", { className: "grid" }), samples = el("ul", { className: "plain" }), sampleLine = note();
  const kept = el("input", { maxLength: 60, dir: "auto", "aria-label": t("name") }), keepLine = note();
  const keep = action(t("keepVoice"), async () => {
    const { voice } = await post(`runs/${name}/keep`, { title: kept.value });
    keepLine.set(t("keptVoice", { voice }), "good");
  }, keepLine, "plain");
  const vocoder = vocoderPanel(name);
  const voice = el("section", { className: "card", hidden: true }, el("h3", {}, t("itsVoice")),
    el("div", { className: "buttons" }, el("a", { className: "button", href: `#/speak?voice=${encodeURIComponent(name)}` }, t("speakWithIt")),
      el("a", { className: "button plain", href: `#/compare?first=${encodeURIComponent(name)}` }, t("compareIt")),
      el("a", { className: "button plain", href: `#/export?voice=${encodeURIComponent(name)}` }, t("exportIt"))),
    vocoder.box, el("p", { className: "muted" }, t("keepAbout")), el("div", { className: "buttons" }, kept, keep), keepLine);
  const page = action(t("whereTime"), async () => {
    download(await blob(`runs/${name}/page`), "performance.html");
  }, line, "plain");
  main.append(el("p", {}, link(t("back"), "training")), heading, facts,
    el("section", { className: "card" }, el("div", { className: "between" }, sentence, stop), bar, figures, verdict, resuming, line, job, el("div", { className: "buttons" }, page)),
    el("section", { className: "card" }, el("h3", {}, t("curves")), curves),
    el("div", { className: "grid" }, el("section", { className: "card" }, el("h3", {}, t("samples")), el("p", { className: "muted" }, t("samplesAbout")), samples, sampleLine), voice),
    el("div", { className: "buttons" }, confirmed(t("deleteRun"), async () => { await remove(`runs/${name}`); go("training"); }, line)));
  let drawn = "", heard = "";
  poll(1.5, async () => {
    const now = await get(`runs/${name}`), running = now.job?.state === "running";
    heading.textContent = now.title;
    facts.textContent = [now.corpus, now.language && languageName(now.language), now.size && t("size_" + now.size)].filter(Boolean).join(" · ");
    bar.value = now.steps ? Math.min(1, now.step / now.steps) : 0;
    if (running && !now.step) bar.removeAttribute("value");
    sentence.textContent = now.step || !running ? trendSentence(now.trend) : t("preparing");
    stop.hidden = !running;
    resuming.hidden = running || !now.is_own;
    if (!more.value) more.value = now.step >= now.steps ? 2 * now.steps : now.steps;
    resume.textContent = now.step >= now.steps ? t("trainLonger") : t("resume");
    const last = points => points?.length ? points.at(-1)[1] : null;
    figures.replaceChildren(...[
      [t("stepOf"), `${number(now.step)} / ${number(now.steps)}`],
      [t("timeLeft"), running && now.seconds_left != null ? duration(now.seconds_left) : "–"],
      [t("loss"), number(last(now.curves.loss), 3)],
      [t("validationLoss"), number(last(now.scores.loss), 3)],
      [t("utilisation"), percent(now.utilisation)],
      ...Object.keys(now.scores).filter(one => !one.endsWith("loss")).slice(0, 8).map(one =>
        [metricName(one), ["wer", "cer"].includes(one) ? percent(last(now.scores[one])) : number(last(now.scores[one]), 2)]),
    ].map(([what, value]) => el("div", {}, el("div", { className: "what" }, what), el("div", { className: "value" }, value))));
    verdict.textContent = now.verdict ?? (now.utilisation == null ? "" : t("notWaiting"));
    page.hidden = !now.has_page;
    const key = JSON.stringify([now.curves, now.scores, state.language]);
    if (key !== drawn) {
      drawn = key;
      const losses = Object.fromEntries(["loss", "mel_loss", "duration_loss", "alignment_loss"].filter(one => now.curves[one]).map(one => [t("curve_" + one), now.curves[one]]));
      const scores = Object.fromEntries(["loss", "wer", "cer"].filter(one => now.scores[one]).map(one => [one === "loss" ? t("validationLoss") : metricName(one), now.scores[one]]));
      curves.replaceChildren(chart(t("trainingLosses"), losses), chart(t("validation"), scores));
    }
    const all = JSON.stringify(now.samples);
    if (all !== heard) {
      heard = all;
      samples.replaceChildren(...now.samples.toReversed().map(one => el("li", { className: "between" },
        el("span", {}, t("afterStep", { step: number(one.step) }) + " · " + t("tag_" + one.tag)),
        playButton(`runs/${name}/sample?tag=${encodeURIComponent(one.tag)}&step=${one.step}`, t("playSample", { step: one.step }), sampleLine))));
    }
    if (!now.samples.length) samples.replaceChildren(el("li", { className: "muted" }, t("noSamples")));
    voice.hidden = !now.has_voice;
    if (!kept.value) kept.value = `${now.title} ${now.step}`.slice(0, 60);
    job.set(now.job, now.log);
    vocoder.set(now, running);
  });
}

// Its voice speaks by Griffin-Lim until it has a vocoder of its own, which exports need.
function vocoderPanel(name) {
  const line = note(), job = jobPanel(), about = el("p", { className: "muted" });
  const steps = el("input", { type: "number", min: 1, max: 10000000, value: 1000, required: true, inputMode: "numeric" });
  const begin = action(t("trainVocoder"), () => post(`runs/${name}/vocoder`, { steps: +steps.value }), line, "plain");
  const form = el("div", { className: "buttons" }, field(t("vocoderSteps"), steps), begin);
  const set = (now, isTraining) => {
    about.textContent = t(now.has_vocoder ? "hasVocoder" : "vocoderAbout");
    form.hidden = !now.is_own || isTraining || now.vocoder_job?.state === "running";
    job.set(now.vocoder_job, now.vocoder_log);
  };
  return { box: el("div", {}, about, form, line, job), set };
}

const metricName = name => t("metric_" + name, {}, name.replaceAll("_", " "));

function trendSentence(trend) {
  if (!trend) return t("notStarted");
  return t("trend_" + trend.kind.replaceAll(" ", "_"), { count: number(trend.count), percent: number(trend.percent, 1) });
}
