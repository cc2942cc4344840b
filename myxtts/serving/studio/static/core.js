// What all parts of the page use: words, elements, requests, and what is said to the user.
import { STRINGS } from "./strings.js";

export const $ = id => document.getElementById(id);
export const state = { language: "en", overview: null, voices: [] };
let token = document.querySelector('meta[name="studio-token"]').content;

export function t(key, values = {}, otherwise = key) {
  const text = STRINGS[state.language][key] ?? STRINGS.en[key] ?? otherwise;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

export const number = (value, digits = 0) => value == null ? "–" :
  value.toLocaleString(state.language, { maximumFractionDigits: digits, minimumFractionDigits: digits });

export const percent = (share, digits = 1) => share == null ? "–" :
  share.toLocaleString(state.language, { style: "percent", maximumFractionDigits: digits, minimumFractionDigits: digits });

// What a language is called in that of the page.
export function languageName(code) {
  const known = state.overview?.languages.find(one => one.code === code)?.name ?? code;
  try { return new Intl.DisplayNames([state.language], { type: "language", fallback: "none" }).of(code) ?? known; }
  catch { return known; }
}

export function duration(seconds) {
  if (seconds == null) return "–";
  const s = Math.round(seconds), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  if (h) return t("hoursMinutes", { h: number(h), m: number(m) });
  if (m) return t("minutesSeconds", { m: number(m), s: number(s % 60) });
  return t("seconds", { s: number(seconds, seconds < 10 ? 1 : 0) });
}

// An element: properties, attributes with a dash or that are no properties, listeners as onclick.
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value == null) continue;
    if (name.startsWith("on") || (name in made && name !== "list")) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter(one => one != null));
  return made;
}

let counter = 0;
export function field(label, control, extra) {
  control.id ||= "f" + ++counter;
  return el("div", {}, el("label", { htmlFor: control.id }, label, extra ? " " : null, extra), control);
}

export function select(options, value, onchange) {
  const made = el("select", { onchange }, options.map(([key, text]) => new Option(text, key)));
  if (value != null && options.some(([key]) => key === value)) made.value = value;
  return made;
}

// A file to choose: the browser's own control speaks the browser's language, and is cut off.
export function filePicker(label, given) {
  const input = el("input", { type: "file", className: "hidden", ...given }), name = el("span", { className: "muted", dir: "auto" });
  const show = () => { name.textContent = input.files[0]?.name ?? t("noFile"); };
  input.addEventListener("change", show);
  input.clear = () => { input.value = ""; show(); };
  show();
  return [input, el("div", { className: "picker" }, el("div", { className: "what" }, label), input,
    el("label", { htmlFor: input.id, className: "button plain" }, t("chooseFile")), " ", name)];
}

// What is written in a form stays over a reload, until it is sent. Files do not: browsers forbid it.
export function remember(form, key) {
  const fields = [...form.querySelectorAll("input:not([type=file]), textarea")];
  const place = "studio.form." + key, kept = JSON.parse(sessionStorage.getItem(place) ?? "[]");
  fields.forEach((one, i) => { if (kept[i] != null) one[one.type === "checkbox" ? "checked" : "value"] = kept[i]; });
  form.addEventListener("input", () => sessionStorage.setItem(place,
    JSON.stringify(fields.map(one => one.type === "checkbox" ? one.checked : one.value))));
  return () => sessionStorage.removeItem(place);
}

export function setOptions(control, options) {
  const before = control.value;
  const same = control.options.length === options.length &&
    options.every(([key, text], i) => control.options[i].value === key && control.options[i].text === text);
  if (same) return;
  control.replaceChildren(...options.map(([key, text]) => new Option(text, key)));
  if (options.some(([key]) => key === before)) control.value = before;
}

export function say(text) { $("status").textContent = text; $("status").className = ""; }

// A line for what is wrong, or was done, beside what caused it.
export function note() {
  const line = el("p", { className: "note", role: "status", "aria-live": "polite", dir: "auto" });
  line.set = (text, kind = "") => { line.textContent = text; line.className = "note " + kind; };
  return line;
}

// A button that does something once at a time, and says beside it what went wrong.
export function action(text, done, line, kind = "") {
  const button = el("button", { type: "button", className: kind }, text);
  button.onclick = () => attempt(button, line, done);
  return button;
}

export async function attempt(button, line, done) {
  if (button.disabled) return;
  button.disabled = true;
  if (line) line.set("");
  try { await done(); } catch (error) {
    if (line) line.set(error.message, "error"); else say(error.message);
  } finally { button.disabled = false; }
}

function headers(own = {}) {
  const key = sessionStorage.getItem("studio.key");
  return { ...own, "X-Studio-Token": token, ...(key ? { Authorization: "Bearer " + key } : {}) };
}

async function failure(answer) {
  try { return (await answer.json()).error.message; } catch { return t("answered", { status: answer.status }); }
}

function askForKey() {
  $("keyed").hidden = false;
  $("key").focus();
  throw new Error(t("keyNeeded"));
}

// The server has a new token after each start: the page reads it anew, and asks once more.
async function refreshToken() {
  const page = await (await fetch("/studio", { cache: "no-store" })).text();
  const found = new DOMParser().parseFromString(page, "text/html").querySelector('meta[name="studio-token"]');
  const changed = found && found.content !== token;
  if (found) token = found.content;
  return changed;
}

export async function ask(path, options = {}) {
  const send = () => fetch(path, { cache: "no-store", ...options, headers: headers(options.headers) });
  let answer;
  try { answer = await send(); } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(t("unreachable"));
  }
  if (answer.status === 403 && options.method && await refreshToken()) answer = await send();
  if (answer.status === 401) askForKey();
  if (!answer.ok) throw new Error(await failure(answer));
  return answer;
}

const api = path => "/studio/api/" + path;
export const get = async path => (await ask(api(path))).json();
export const remove = async path => (await ask(api(path), { method: "DELETE" })).json();
// What is sent with `keepalive`, and is small, arrives though the page is being left.
export const post = async (path, body, keepalive = false) => (await ask(api(path), {
  method: "POST", keepalive, body: body === undefined ? undefined : JSON.stringify(body),
  headers: body === undefined ? {} : { "Content-Type": "application/json" },
})).json();
export const blob = async path => (await ask(path.startsWith("/") ? path : api(path))).blob();
export const put = async (path, body) => (await ask(api(path), { method: "PUT", body })).json();

// An upload that tells how far it is, which fetch cannot.
export async function upload(path, body, onprogress) {
  const send = () => sendOnce(path, body, onprogress);
  let answer;
  // A refusal may arrive as a broken connection, while the rest is still being sent.
  try { answer = await send(); } catch (error) {
    if (!await refreshToken().catch(() => false)) throw error;
    answer = await send();
  }
  if (answer.status === 403 && await refreshToken()) answer = await send();
  if (answer.status === 401) askForKey();
  if (answer.status === 200) return JSON.parse(answer.responseText);
  let said = t("answered", { status: answer.status });
  try { said = JSON.parse(answer.responseText).error.message; } catch { /* it is no answer of the API */ }
  throw new Error(said);
}

function sendOnce(path, body, onprogress) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("PUT", api(path));
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = event => onprogress(event.loaded / Math.max(1, event.total));
    request.onerror = () => failed(new Error(t("unreachable")));
    request.onload = () => done(request);
    request.send(body);
  });
}

export function download(content, name) {
  const url = URL.createObjectURL(content), link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// Asks again and again while a view is shown; another view ends it.
let life = 0;
const leaving = [];
// What ends with the view that is shown now: sounds, and the microphone.
export const onLeave = end => { leaving.push(end); };
export const newLife = () => { for (const end of leaving.splice(0)) end(); return ++life; };
export function poll(seconds, look) {
  const own = life;
  const step = async () => {
    if (own !== life) return;
    if (!document.hidden) {
      try { await look(); if (own === life && $("status").className === "error") say(""); } catch (error) {
        if (own === life) { $("status").textContent = error.message; $("status").className = "error"; }
      }
    }
    if (own === life) setTimeout(step, 1000 * seconds);
  };
  return step();
}

export const go = (...parts) => { location.hash = "#/" + parts.map(encodeURIComponent).join("/"); };
export const link = (text, ...parts) =>
  el("a", { href: "#/" + parts.map(encodeURIComponent).join("/"), dir: "auto" }, text);

export function tag(job) {
  const made = el("span", { className: "tag" });
  made.set = job => {
    made.hidden = !job;
    if (job) { made.textContent = t("job_" + job.state); made.className = "tag " + job.state; }
  };
  made.set(job);
  return made;
}

// A job beside what it works on: its state, the last line it said, its log, and stopping it, unless
// that stands elsewhere on the page.
export function jobPanel(onend, isControlled = false) {
  const line = note(), state_ = tag(null), what = el("strong"), last = el("span", { className: "muted", dir: "auto" });
  const bar = el("progress", { "aria-label": t("working") }), log = el("pre", { tabIndex: 0 });
  let job = null, before = null;
  const stop = action(t("stop"), () => post(`jobs/${job.id}/stop`), line, "danger small");
  const panel = el("div", { className: "job", hidden: true, role: "group", "aria-label": t("job") },
    el("div", { className: "between" }, el("span", {}, what, " ", state_), stop), bar,
    el("div", {}, last), el("details", {}, el("summary", {}, t("log")), log), line);
  panel.set = (now, text = "") => {
    job = now;
    panel.hidden = !now;
    if (!now) return;
    const running = now.state === "running", ended = before === "running" && !running;
    what.textContent = t("kind_" + now.kind);
    state_.set(now);
    bar.hidden = stop.hidden = isControlled || !running;
    const lines = text.trim().split("\n").filter(one => one && !/^(\$ |[IW]0000 |WARNING: All log messages|warning: flag --model-size)/.test(one));
    last.textContent = now.state === "finished" ? "" : lines.at(-1)?.slice(0, 300) ?? "";
    last.className = now.state === "failed" ? "error" : "muted";
    if (log.textContent !== text) log.textContent = text;
    before = now.state;
    if (ended) { say(t("jobEnded", { what: t("kind_" + now.kind), state: t("job_" + now.state) })); onend?.(now); }
  };
  return panel;
}

// A confirmation without a dialog: the button asks before it acts. `about` says what it is for,
// where its text does not.
export function confirmed(text, done, line, kind = "danger small", about = null) {
  const button = el("button", { type: "button", className: kind, "aria-label": about }, text);
  let sure = false;
  const show = (words, name) => {
    button.textContent = words;
    if (about) button.setAttribute("aria-label", name);
  };
  button.onclick = () => {
    if (sure) return attempt(button, line, done);
    sure = true;
    show(t("sure"), `${about} ${t("sure")}`);
    setTimeout(() => { sure = false; show(text, about); }, 4000);
  };
  return button;
}

const SVG = "http://www.w3.org/2000/svg";
function svg(tag, given, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  if (text != null) made.textContent = text;
  return made;
}

// Curves of [step, value] by name.
export function chart(title, series) {
  const width = 460, height = 200, left = 46, right = 8, top = 8, bottom = 22;
  const points = Object.values(series).flat().filter(one => Number.isFinite(one[1]));
  if (points.length < 2) return el("p", { className: "muted" }, t("noCurve"));
  const xs = points.map(one => one[0]), ys = points.map(one => one[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const x = v => left + (width - left - right) * (v - x0) / (x1 - x0 || 1);
  const y = v => top + (height - top - bottom) * (y1 - v) / (y1 - y0 || 1);
  const made = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img" });
  made.append(svg("title", {}, title));
  made.append(svg("path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` }));
  const places = y1 - y0 > 20 ? 0 : y1 - y0 > 1 ? 1 : 3;
  made.append(svg("text", { x: 2, y: top + 9 }, number(y1, places)), svg("text", { x: 2, y: height - bottom }, number(y0, places)));
  made.append(svg("text", { x: left, y: height - 5 }, number(x0)));
  made.append(svg("text", { x: width - right, y: height - 5, "text-anchor": "end" }, number(x1)));
  const names = Object.keys(series);
  names.forEach((name, i) => {
    const d = series[name].filter(one => Number.isFinite(one[1])).map(([a, b], k) => `${k ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`);
    made.append(svg("path", { class: `curve c${i % 4}`, d: d.join("") }));
  });
  return el("div", {}, made, el("div", { className: "legend", dir: "ltr" },
    names.map((name, i) => el("span", { className: "l" + i % 4 }, name))));
}
