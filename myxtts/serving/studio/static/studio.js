// The page: which part is shown follows from the address, so that a reload shows the same.
import { $, el, get, newLife, say, state, t } from "./core.js";
import { listCorpora, showCorpus } from "./recordings.js";
import { listRuns, showRun } from "./training.js";
import { listComparisons, showComparison } from "./compare.js";
import { showExport, showSpeak } from "./speak.js";

const PARTS = {
  recordings: [listCorpora, showCorpus], training: [listRuns, showRun], compare: [listComparisons, showComparison],
  speak: [showSpeak, showSpeak], export: [showExport, showExport],
};

// An address that somebody has cut off may end within a letter.
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [part, name] = path.split("/").map(decoded);
  return { part: part in PARTS ? part : "recordings", name, query: new URLSearchParams(query) };
}

function setLanguage(code) {
  state.language = code;
  localStorage.setItem("studio.language", code);
  document.documentElement.lang = code;
  document.documentElement.dir = code === "fa" ? "rtl" : "ltr";
  $("interface").value = code;
  for (const one of document.querySelectorAll("[data-text]")) one.textContent = t(one.dataset.text);
}

let life = 0;
async function show() {
  const own = life = newLife(), { part, name, query } = place(), main = $("main");
  $("nav").setAttribute("aria-label", t("parts"));
  $("nav").replaceChildren(...Object.keys(PARTS).map(one =>
    el("a", { href: "#/" + one, "aria-current": one === part ? "page" : null }, t(one))));
  document.title = `${t(part)} · MyXTTS`;
  say("");
  main.replaceChildren(el("p", { className: "muted" }, t("loading")));
  try {
    state.overview ??= await get("overview");
    if (own !== life) return;
    main.replaceChildren();
    PARTS[part][name ? 1 : 0](main, name && encodeURIComponent(name), query);
  } catch (error) {
    main.replaceChildren();
    say(error.message);
    $("status").className = "error";
  }
}

$("interface").onchange = () => { setLanguage($("interface").value); show(); };
$("keyed").onsubmit = event => {
  event.preventDefault();
  sessionStorage.setItem("studio.key", $("key").value);
  $("keyed").hidden = true;
  show();
};
document.querySelector(".skip").onclick = event => { event.preventDefault(); $("main").focus(); };

// What is being typed is saved where a field is left; a reload leaves it too.
window.addEventListener("pagehide", () => document.activeElement?.blur());
window.addEventListener("hashchange", () => { show(); $("main").focus({ preventScroll: true }); });
const known = localStorage.getItem("studio.language") ?? (navigator.language.startsWith("fa") ? "fa" : "en");
setLanguage(known);
show();
