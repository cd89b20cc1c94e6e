// The frame of the page: session, navigation, the date that everything is shown as of, live events.

import { get, listen, loginByLink, loginByToken, logout, Refused } from "./api.js";
import { button, h, link, message, replace, showTitle } from "./dom.js";
import { dayOf, state } from "./parts.js";

const VIEWS = [
  ["start", "Start"], ["search", "Search"], ["time", "Time"], ["map", "Map"], ["graph", "Graph"], ["forgetting", "Forgetting"],
  ["patrols", "Patrols"], ["conversations", "Conversations"], ["written", "Diary and notes"], ["shared", "Shared facts"],
  ["costs", "Costs"], ["audit", "Audit"],
];
const MODULES = { memory: "memory", patrol: "patrols", conversation: "conversations" };
const main = document.getElementById("main");
let shown = null;
let pass = 0;
let stage = null;

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name = "start", ...rest] = path.split("/");
  return { name: name || "start", argument: decodeURIComponent(rest.join("/")), query: new URLSearchParams(query) };
}

async function show({ keepFocus = false, sameStage = false } = {}) {
  const at = route();
  const turn = ++pass;
  for (const anchor of document.querySelectorAll("#nav a")) {
    const active = anchor.hash === `#/${at.name}` || (MODULES[at.name] && anchor.hash === `#/${MODULES[at.name]}`);
    if (active) {
      anchor.setAttribute("aria-current", "page");
      const bar = document.getElementById("nav"); // on a phone it is wider than the screen
      bar.scrollLeft = anchor.offsetLeft - (bar.clientWidth - anchor.offsetWidth) / 2;
    } else anchor.removeAttribute("aria-current");
  }
  shown?.leave?.();
  shown = null;
  const known = VIEWS.some(([name]) => name === at.name) || at.name in MODULES;
  try {
    const view = await import(`./views/${known ? (MODULES[at.name] ?? at.name) : "start"}.js`);
    if (turn !== pass) return;
    // Each view has an element of its own: what one draws that was left meanwhile is seen by nobody.
    if (!(sameStage && stage?.isConnected)) {
      stage = h("div", {}, h("p", { class: "loading" }, "Loading …"));
      replace(main, stage);
    }
    tellPast(view);
    const next = await view.show(stage, at);
    if (turn !== pass) { next?.leave?.(); return; }
    shown = next ?? {};
    showTitle(main);
    if (!keepFocus && document.activeElement?.id !== "search-words") { main.focus({ preventScroll: true }); scrollTo(0, 0); }
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return askForLogin(error);
    replace(main, h("h1", {}, "This could not be shown"), h("p", { class: "error" }, error.message),
      button("Try again", () => show()));
  }
}

/** Of a past date: what this view shows of it. A view that tells nothing shows today. */
function tellPast(view) {
  const banner = document.getElementById("past");
  banner.hidden = state.asOf === "";
  if (banner.hidden) return;
  const date = h("strong", {}, `${view.past ? "As of" : "Today, not"} ${dayOf(`${state.asOf}T12:00`)}.`);
  replace(banner, h("span", {}, date, " ", view.past ?? "Of the past nothing is kept for this view: it shows today."), button("Back to today", () => lookAt("")));
}

/** Show everything as of a date; "" for now. */
function lookAt(date) {
  state.asOf = date;
  document.getElementById("as-of").value = date;
  document.body.classList.toggle("past", date !== "");
  show({ keepFocus: true });
}

function askForLogin(error) {
  document.body.classList.add("closed");
  // A token that is not valid any more is refused before the page is asked.
  if (error.login === "token" || (error.status === 401 && !error.login)) {
    const token = h("input", { type: "password", autocomplete: "off", required: true, id: "token" });
    replace(main, h("h1", {}, "Open the memory"),
      h("form", { class: "login", on: { submit: async (event) => {
        event.preventDefault();
        try { await loginByToken(token.value.trim()); token.value = ""; await open(); }
        catch (refusal) { message(refusal.status === 401 ? "This token is not valid." : refusal.message, "error"); }
      } } }, h("label", { for: "token" }, "A token, as ", h("code", {}, "madeleine token create"), " prints it"), token,
      h("button", { class: "primary" }, "Open")));
  } else {
    replace(main, h("h1", {}, "This page is closed"), h("p", {}, error.message),
      h("p", {}, "Run ", h("code", {}, "madeleine ui"), " in a terminal: it prints a link that opens the page once."));
  }
}

function frame() {
  document.body.classList.remove("closed");
  const words = h("input", { type: "search", id: "search-words", placeholder: "Search the memory", "aria-label": "Search the memory",
    autocomplete: "off", spellcheck: "false", on: {
      input: () => { location.hash = `#/search?q=${encodeURIComponent(words.value)}`; },
      keydown: (event) => { if (event.key === "Enter") event.preventDefault(); },
    } });
  const asOf = h("input", { type: "date", id: "as-of", value: state.asOf, on: { change: () => lookAt(asOf.value) } });
  const theme = button("◐", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", dark ? "light" : "dark"); } catch { /* no storage: until the page is left */ }
    dispatchEvent(new Event("themechange"));
  }, { class: "plain", "aria-label": "Light or dark", title: "Light or dark" });
  const leave = button("Close", async () => { await logout(); location.reload(); }, { class: "plain", title: "End this session" });
  replace(document.getElementById("top"),
    h("a", { class: "brand", href: "#/start" }, h("img", { src: "icon.svg", alt: "", width: 26, height: 26 }), "Madeleine"),
    h("form", { role: "search", on: { submit: (event) => event.preventDefault() } }, words),
    h("label", { class: "as-of", for: "as-of" }, "As of", asOf),
    h("span", { class: "being", title: `The memory of ${state.about.being}, seen as ${state.about.role}` }, h("bdi", {}, state.about.being)),
    h("span", { id: "live", class: "live", role: "img", "aria-label": "not connected" }), theme, leave);
  replace(document.getElementById("nav"), h("ul", {}, VIEWS.map(([name, title]) => h("li", {}, link(title, name)))));
}

function connect() {
  const live = document.getElementById("live");
  const source = listen((event) => {
    state.outlines = null;
    shown?.live?.(event);
    dispatchEvent(new CustomEvent("memory", { detail: event }));
  }, (connected) => {
    live.classList.toggle("on", connected);
    live.setAttribute("aria-label", connected ? "live" : "not connected");
    live.title = connected ? "Live: what happens to the memory appears here" : "Not connected";
  });
  addEventListener("pagehide", () => source.close());
}

async function open() {
  state.about = await get("about");
  frame();
  connect();
  await show();
}

document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => {
  const typing = route().name === "search" && main.querySelector("#search") !== null;
  if (state.about) show({ keepFocus: typing, sameStage: typing });
});
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select, [contenteditable]")) {
    event.preventDefault();
    document.getElementById("search-words")?.focus();
  }
});
try { document.documentElement.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* the system's */ }
if (!document.documentElement.dataset.theme) delete document.documentElement.dataset.theme;
try {
  const token = location.hash.match(/^#([\w-]{20,})$/)?.[1];
  if (token) {
    history.replaceState(null, "", `${location.pathname}#/start`);
    await loginByLink(token);
  }
  await open();
} catch (error) {
  askForLogin(error);
}
