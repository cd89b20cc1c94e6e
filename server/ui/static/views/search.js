// Search as one types, through the real pipeline: by meaning with why each came, and by words.

import { tool } from "../api.js";
import { h, link, replace, stored } from "../dom.js";
import { badge, empty, memoryCard, section, state, why } from "../parts.js";

export const past = "What was true then, by all that is known today; diary, conversations and notes by their dates.";

const WAIT = 160;
let asking = null;
let timer = 0;

export async function show(main, { query }) {
  if (query.has("cluster")) return showCluster(main, query.get("cluster"));
  const words = query.get("q") ?? "";
  const field = document.getElementById("search-words");
  if (field && field.value !== words && document.activeElement !== field) field.value = words;
  let results = main.querySelector("#search");
  if (!results) {
    results = h("div", { id: "search", "aria-busy": "false" });
    replace(main, h("h1", {}, "Search"), results);
  }
  clearTimeout(timer);
  asking?.abort();
  if (!words.trim()) {
    replace(results, empty("Type in the field above: a question, a name, a date. Press / to get there from anywhere."));
    field?.focus();
    return {};
  }
  timer = setTimeout(() => search(results, words), results.dataset.words === undefined ? 0 : WAIT);
  return { leave: () => { clearTimeout(timer); asking?.abort(); } };
}

async function search(results, words) {
  asking = new AbortController();
  const { signal } = asking;
  results.setAttribute("aria-busy", "true");
  results.dataset.words = words;
  const began = performance.now();
  try {
    const byWords = tool("search_memory", { query: words, limit: 20, as_of: state.asOf, include_compressed: true }, signal)
      .catch((error) => ({ hits: [], notice: error.name === "AbortError" ? "" : error.message }));
    const meaning = await tool("recall", { query: words, format: "memories", limit: 20, as_of: state.asOf, details: true, explain: true, token_budget: 20000 }, signal);
    if (signal.aborted) return;
    const said = h("p", { class: "faint", role: "status" });
    const took = Math.round(performance.now() - began);
    drawMeaning(results, said, meaning);
    const texts = await byWords;
    if (signal.aborted) return;
    const known = new Set(meaning.memories.map((memory) => memory.id));
    const others = texts.hits.filter((hit) => !known.has(hit.id));
    said.textContent = `${meaning.memories.length} by meaning, ${others.length} more by words, in ${took} ms${state.asOf ? `, as of ${state.asOf}` : ""}`;
    if (others.length || texts.notice) results.append(section("By words", texts.notice ? h("p", { class: "notice" }, texts.notice) : null, h("div", { class: "cards" }, others.map(hitCard))));
  } catch (error) {
    if (error.name === "AbortError") return;
    replace(results, h("p", { class: "error", role: "alert" }, error.message));
  } finally {
    if (!signal.aborted) results.setAttribute("aria-busy", "false");
  }
}

function drawMeaning(results, said, meaning) {
  const best = Math.max(0.0001, ...meaning.memories.map((memory) => memory.score ?? 0));
  const parts = new Map((meaning.explain?.memories ?? []).map((explained) => [explained.id, explained.parts]));
  for (const memory of meaning.memories) memory.why = parts.get(memory.id);
  replace(results, said,
    meaning.notice ? h("p", { class: "notice" }, meaning.notice) : null,
    meaning.preferences?.length ? section("How to behave", h("ul", {}, meaning.preferences.map((memory) => h("li", {}, link(stored(memory.text), `memory/${memory.id}`))))) : null,
    section("By meaning", meaning.memories.length
      ? h("div", { class: "cards" }, meaning.memories.map((memory, place) => memoryCard(memory, why(memory, place + 1, best))))
      : empty("Nothing matches well enough. Empty does not mean unknown: try other words.")),
    meaning.near?.length ? section("Near, may answer or not", h("div", { class: "cards" }, meaning.near.map((memory) => (memory.id?.startsWith("m") ? memoryCard(memory) : hitCard(memory))))) : null);
}

function hitCard(hit) {
  if (hit.source === "memories" || /^m\d+$/.test(hit.id ?? "")) return memoryCard(hit);
  return h("article", { class: "card" }, h("p", {}, stored(hit.text ?? hit.name ?? "")),
    h("p", { class: "meta" }, badge(hit.source ?? ""), hit.when && h("span", {}, hit.when.replace("T", " ")), (hit.actors ?? []).map((actor) => stored(actor))));
}

async function showCluster(main, id) {
  const [{ clusters }, page] = await Promise.all([tool("recall_memory", {}), tool("recall_memory", { cluster_id: id, limit: 100, details: true })]);
  const cluster = clusters.find((one) => one.id === id);
  replace(main, h("h1", {}, "Topic: ", stored(cluster?.name ?? id)),
    cluster ? h("p", { class: "faint" }, `${cluster.active} active, ${cluster.dying} dying, ${cluster.dead} dead, below ${cluster.parent}`) : null,
    h("div", { class: "cards" }, page.memories.map((memory) => memoryCard(memory))),
    page.next_cursor ? h("p", { class: "faint" }, "The newest 100 are shown.") : null);
  return {};
}
