// What several views show: a memory as a card, dates, states, why it came.

import { h, link, stored } from "./dom.js";

export const state = { about: null, asOf: "", outlines: null };

/** Whether who looks may do this, now. The past is only looked at. */
export const may = (right) => !state.asOf && state.about.rights.includes(right);

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const STEPS = [["year", 31536e3], ["month", 2592e3], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

export const dayOf = (at) => (at ? day.format(new Date(at)) : "");
export const momentOf = (at) => (at ? moment.format(new Date(at)) : "");
export const number = (value) => new Intl.NumberFormat().format(value);
export const share = (value) => Math.round(value * 100) / 100;

export function ago(at) {
  const seconds = (new Date(at) - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return h("time", { datetime: at, title: momentOf(at) }, relative.format(Math.round(seconds / size), unit));
}

export const badge = (text, kind = "") => h("span", { class: `badge ${kind}` }, text);

export function meter(value, label) {
  return h("span", { class: "meter", role: "img", "aria-label": `${label}: ${share(value)}`, title: `${label}: ${share(value)}` },
    h("span", { style: { "inline-size": `${Math.max(0, Math.min(1, value)) * 100}%` } }));
}

/** Why a hit came: the parts of its score as [name, 0 to 1], the greatest first; the score alone where none are told. */
export function whyParts(hit, best) {
  if (hit.why) return Object.entries(hit.why).sort(([, one], [, other]) => other - one);
  return typeof hit.score === "number" ? [["score", best ? hit.score / best : hit.score]] : [];
}

export function why(hit, rank, best) {
  const parts = whyParts(hit, best);
  if (!parts.length) return null;
  return h("ul", { class: "why", "aria-label": "Why it came" },
    h("li", { class: "rank" }, `#${rank}`),
    parts.map(([name, value]) => h("li", {}, h("span", {}, name.replaceAll("_", " ")), meter(value, name),
      h("span", { class: "amount" }, typeof hit.score === "number" && name === "score" ? hit.score.toFixed(2) : share(value)))));
}

export function badges(memory) {
  const marks = [];
  if (memory.pinned) marks.push(badge("pinned", "good"));
  const status = memory.truth && memory.truth !== "current" ? memory.truth : memory.status;
  if (status && status !== "active") marks.push(badge(status, status === "dying" ? "warn" : "faint"));
  if (memory.category) marks.push(badge(memory.category));
  return marks;
}

/** A memory as answers show it. */
export function memoryCard(memory, ...more) {
  return h("article", { class: "card memory" },
    h("h3", {}, link(stored(memory.text), `memory/${memory.id}`)),
    h("p", { class: "meta" }, h("span", { class: "id" }, memory.id), memory.when && h("span", {}, memory.when), badges(memory),
      (memory.themes ?? []).map((theme) => stored(theme, "span", { class: "theme" }))),
    memory.feeling && stored(memory.feeling, "p", { class: "feeling" }),
    memory.before && h("p", { class: "before" }, "Before: ", stored(memory.before)),
    more);
}

export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

/** The end of the date that is looked at, as the tools take it; null for now. */
export const asOfMoment = () => (state.asOf ? Date.parse(`${state.asOf}T23:59:59.999Z`) : null);

export const empty = (text) => h("p", { class: "empty" }, text);

export function section(title, ...content) {
  const id = `section-${title.toLowerCase().replaceAll(/\W+/g, "-")}`;
  return h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), content);
}

const DONE = {
  store: "stored", reinforce: "told again", update: "corrected", forget: "erased", observe: "heard", note: "noted",
  patrol: "patrolled", profile: "changed the profile", supersede: "superseded", retract: "retracted", restore: "restored",
  import: "imported", export: "exported", backup: "backed up", recall: "recalled",
};

/** An entry of the audit: what was done, by whom, when, and to which memories. */
export function auditLine(entry) {
  const others = entry.count - (entry.memories?.length ?? 0);
  return h("li", {},
    h("div", {}, h("span", { class: "event" }, DONE[entry.event] ?? entry.event), " ",
      h("span", { class: "faint" }, ago(entry.at), entry.client ? [" · ", stored(entry.client)] : "", entry.tool && entry.tool !== entry.event ? ` · ${entry.tool}` : "")),
    (entry.memories ?? []).map((memory) => h("div", { class: "line" }, link(stored(memory.text), `memory/${memory.id}`))),
    others > 0 && entry.memories?.length ? h("div", { class: "faint" }, `and ${number(others)} more`) : null);
}
