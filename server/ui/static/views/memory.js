// One memory: what it says, how it felt, since when it is true, what it hangs together with, who wrote and recalled it.

import { get, tool } from "../api.js";
import { ask, button, field, h, link, message, replace, stored } from "../dom.js";
import { asOfMoment, auditLine, badges, dayOf, empty, may, meter, momentOf, plural, section, share, state } from "../parts.js";
import { forgettingCurve, hexagon, lifeline } from "../charts.js";
import { forget } from "../erasing.js";

export const past = "Its words of that day, whether it was true then, by all that is known today, and what had been recorded. How faded it was, its topic and its links are those of today.";

export async function show(main, { argument: id }) {
  await draw(main, id);
  return {
    live: (event) => {
      const concerns = event.type === "changes" && event.changes.some((entry) => entry.memories?.some((memory) => memory.id === id));
      if (concerns && !document.querySelector("dialog")) draw(main, id).catch(() => gone(main, id));
    },
  };
}

async function draw(main, id) {
  const found = await tool("recall_memory", { ids: [id], details: true });
  const memory = asItWas(found.memories[0]);
  if (!memory) return gone(main, id, Object.keys(found.archived ?? {})[0]);
  const named = Object.keys(LINKS).map((name) => memory[name]).filter(Boolean);
  const [extras, linked] = await Promise.all([get(`memory/${encodeURIComponent(id)}`), named.length ? tool("recall_memory", { ids: [...new Set(named)] }) : { memories: [] }]);
  extras.linked = new Map(linked.memories.map((other) => [other.id, other.text]));
  const again = () => draw(main, id);
  const recalls = extras.audit.filter((entry) => entry.event === "recall" && entry.client !== "madeleine ui");
  replace(main,
    h("h1", { class: "memory-text" }, stored(memory.text)),
    h("p", { class: "meta" }, h("span", { class: "id" }, memory.id), h("span", {}, memory.when), badges(memory), (memory.themes ?? []).map((theme) => stored(theme, "span", { class: "theme" })),
      h("span", {}, "importance ", meter(memory.importance, "importance"), " ", share(memory.importance))),
    asOfMoment() !== null && Date.parse(memory.provenance.stored_at) > asOfMoment() && h("p", { class: "notice" }, `It was stored later, on ${dayOf(memory.provenance.stored_at)}.`),
    actions(memory, extras, again, main),
    h("div", { class: "columns" },
      h("div", {}, scene(memory), life(memory, extras, recalls), history(memory),
        state.asOf ? null : section("Forgetting", forgettingCurve(memory, extras.aged.filter((at) => Date.parse(at) > Date.parse(memory.provenance.stored_at)), recalls.map((entry) => entry.at)))),
      h("div", {}, feeling(memory), links(memory, extras), origin(memory, extras),
        section("Who recalled it", recalls.length ? h("ul", { class: "log" }, recalls.slice(0, 30).map(auditLine)) : empty("Nobody yet.")))));
}

/** With the words, themes and importance that it had on the date that is looked at, and the state of its truth then. */
function asItWas(memory) {
  const asOf = asOfMoment();
  if (!memory || asOf === null) return memory;
  const then = { ...memory, pinned: false, status: "active" };
  const later = (memory.history ?? []).filter((revision) => Date.parse(revision.until) > asOf).sort((one, other) => Date.parse(one.until) - Date.parse(other.until));
  for (const name of ["text", "themes", "importance"]) then[name] = later.find((revision) => revision[name] !== undefined)?.[name] ?? memory[name];
  then.history = (memory.history ?? []).filter((revision) => Date.parse(revision.until) <= asOf);
  then.versions = memory.versions?.map((version) => ({ ...version, truth: truthThen(version, asOf) }));
  then.truth = then.versions?.find((version) => version.id === memory.id)?.truth ?? truthThen(memory, asOf);
  return then;
}

function truthThen({ truth, valid_from: from, valid_until: until }, asOf) {
  if (truth === "retracted") return truth;
  return until && Date.parse(until) <= asOf ? "superseded" : from && Date.parse(from) > asOf ? "to come" : "current";
}

function gone(main, id, archived = "") {
  const [heading, reason] = archived
    ? ["This memory is in the archive", `Its time was over. "madeleine archive restore ${archived}" brings it back.`]
    : ["There is no such memory", `${id} was erased, or never was.`];
  replace(main, h("h1", {}, heading), h("p", {}, reason), h("p", {}, link("To the start", "start")));
}

function scene(memory) {
  const rows = [["who", memory.actors], ["where", memory.setting], ["said", memory.dialogue], ["sensed", memory.sensory], ["lesson", memory.lesson],
    ["told again", (memory.told_again ?? []).map(entry)], ["timeline", (memory.timeline ?? []).map(entry)]]
    .filter(([, value]) => value && value.length);
  if (!rows.length) return null;
  return section("Scene", h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name),
    h("dd", {}, Array.isArray(value) ? h("ul", {}, value.map((line) => stored(line, "li"))) : stored(value))))));
}

const entry = (item) => (typeof item === "string" ? item : `${item.date}: ${item.action}`);

function feeling(memory) {
  if (!memory.emotion_vector && !memory.feeling && !memory.emotions) return null;
  return section("Feeling", memory.feeling && stored(memory.feeling, "p", { class: "feeling" }),
    memory.emotions && h("p", { class: "meta" }, memory.emotions.map((label) => h("span", { class: "theme" }, label))),
    memory.emotion_vector && hexagon(memory.emotion_vector));
}

/** Its life along time: when it was true, when it was stored, corrected, told again and recalled; and its versions in words. */
function life(memory, extras, recalls) {
  // One that is no version of anything is true since it was told, or since what it tells of happened.
  const stored_at = memory.provenance.stored_at;
  const begin = Date.parse(memory.when) < Date.parse(stored_at) - 864e5 ? memory.when : stored_at;
  const versions = (memory.versions ?? [{ ...memory, valid_from: memory.valid_from ?? begin }]).map((version) => ({ ...version, isThis: version.id === memory.id }));
  const here = versions.findIndex((version) => version.isThis);
  versions.forEach((version, place) => { version.isLater = place > here; });
  const begun = versions.filter((version) => version.isThis || asOfMoment() === null || !version.valid_from || Date.parse(version.valid_from) <= asOfMoment());
  const at = (...events) => extras.audit.filter((line) => events.includes(line.event)).map((line) => line.at);
  const happened = [
    ["stored", [memory.provenance.stored_at].filter((moment) => asOfMoment() === null || Date.parse(moment) <= asOfMoment())],
    ["changed", at("update", "supersede", "retract", "restore")], ["told again", at("reinforce")],
    ["recalled", recalls.map((line) => line.at)],
  ];
  return section("Its life", lifeline(begun, happened),
    begun.length > 1 ? h("ol", { class: "versions" }, begun.map((version) => h("li", { class: version.truth, "aria-current": version.isThis },
      version.isThis ? stored(version.text) : link(stored(version.text), `memory/${version.id}`),
      h("span", { class: "faint" }, version.truth, version.valid_from ? ` · since ${dayOf(version.valid_from)}` : "", version.valid_until ? ` · until ${dayOf(version.valid_until)}` : "")))) : null,
    memory.retraction_reason && h("p", {}, "Retracted: ", stored(memory.retraction_reason)));
}

function history(memory) {
  if (!memory.history?.length) return null;
  return section("History", h("ol", { class: "log" }, memory.history.map((revision) => {
    const { until, changed_by: by, ...before } = revision;
    return h("li", {}, Object.entries(before).map(([name, value]) => h("div", {}, h("span", { class: "event" }, name), " ", h("del", {}, stored(Array.isArray(value) ? value.join(", ") : String(value))))),
      h("span", { class: "faint" }, `until ${momentOf(until)}`, by ? ` · changed by ${by}` : ""));
  })));
}

const LINKS = { absorbed_into: "was merged into", compressed_into: "is summarised by", resembles: "resembles", superseded_by: "was superseded by", may_supersede: "may supersede" };

function links(memory, extras) {
  const named = Object.entries(LINKS).filter(([name]) => memory[name]);
  if (!named.length && !extras.absorbed.length && !memory.cluster_id) return null;
  return section("Hangs together with", h("ul", { class: "log" },
    memory.cluster_id && h("li", {}, "topic ", link(stored(extras.cluster || memory.cluster_id), `search?cluster=${memory.cluster_id}`)),
    named.map(([name, words]) => h("li", {}, words, " ", link(stored(extras.linked.get(memory[name]) ?? memory[name]), `memory/${memory[name]}`))),
    extras.absorbed.map((other) => h("li", {}, "took in ", link(stored(other.text), `memory/${other.id}`)))));
}

function origin(memory, extras) {
  const made = memory.provenance;
  return section("Where it comes from",
    h("p", {}, "Stored ", momentOf(made.stored_at), made.client ? [" by ", stored(made.client)] : "", " with ", h("code", {}, made.tool)),
    made.session_id && h("p", {}, "Session ", link(stored(made.session_id), `conversation/${encodeURIComponent(made.session_id)}`)),
    extras.messages.map((heard) => h("blockquote", {}, stored(heard.text), h("footer", { class: "faint" }, heard.speaker || heard.role, " · ", momentOf(heard.when)))),
    h("ul", { class: "log" }, extras.audit.filter((line) => line.event !== "recall").slice(0, 20).map(auditLine)));
}

// --- changes

function actions(memory, extras, again, main) {
  if (state.asOf) return null;
  if (!may("write")) return h("p", { class: "faint" }, "You may only read.");
  const change = async (values, done) => {
    try { await tool("update_memory", { id: memory.id, ...values }); message(done); await again(); }
    catch (error) { message(error.message, "error"); }
  };
  const isTrue = memory.truth === "current";
  return h("div", { class: "actions", role: "group", "aria-label": "Change this memory" },
    button("Correct", () => correct(memory, change)),
    isTrue && button("Something else is true now", () => supersede(memory, change)),
    isTrue && button("It was never true", () => retract(memory, change)),
    (!isTrue || memory.versions) && button("Take that back", () => change({ undo: true }, "The last change of what is true is taken back.")),
    button(memory.pinned ? "Unpin" : "Pin", () => change({ pinned: !memory.pinned }, memory.pinned ? "It fades again." : "It never fades.")),
    isTrue && state.about.shares.length > 0 && button("Share", () => shareThis(memory)),
    may("erase") && button("Forget …", () => forgetThis(memory, extras, main), { class: "danger" }));
}

async function correct(memory, change) {
  const text = h("textarea", { value: memory.text, dir: "auto", required: true });
  const themes = h("input", { value: (memory.themes ?? []).join(", "), dir: "auto" });
  const importance = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: memory.importance });
  const body = [field("What it says", text, "For an error. What it said stays in its history."), field("Themes, with commas between", themes), field("Importance", importance)];
  if (await ask("Correct this memory", body, [{ label: "Cancel", value: "" }, { label: "Save", value: "save", class: "primary" }]) !== "save") return;
  const values = {};
  if (text.value.trim() !== memory.text) values.text = text.value.trim();
  const listed = themes.value.split(",").map((theme) => theme.trim()).filter(Boolean);
  if (listed.join() !== (memory.themes ?? []).join()) values.themes = listed;
  if (Math.abs(importance.value - memory.importance) > 0.01) values.importance = Number(importance.value);
  if (Object.keys(values).length) await change(values, "Corrected.");
}

async function supersede(memory, change) {
  const text = h("textarea", { value: memory.text, dir: "auto", required: true });
  const when = h("input", { type: "date", required: true, value: new Date().toISOString().slice(0, 10) });
  const body = [field("What is true instead", text, "This memory stays, as what was true before."), field("Since", when)];
  if (await ask("Something else is true now", body, [{ label: "Cancel", value: "" }, { label: "Save", value: "save", class: "primary" }]) !== "save") return;
  await change({ text: text.value.trim(), when: when.value }, "The new version comes first from now on.");
}

async function retract(memory, change) {
  const reason = h("textarea", { required: true, dir: "auto", maxlength: 400 });
  if (await ask("It was never true", field("Why", reason, "It is not recalled any more. It can be taken back."), [{ label: "Cancel", value: "" }, { label: "Retract", value: "save", class: "primary" }]) !== "save") return;
  await change({ retracted: reason.value.trim() }, "Retracted.");
}

async function forgetThis(memory, extras, main) {
  const count = (size, one, many) => (size ? h("li", {}, plural(size, one, many)) : null);
  await forget([memory], [
    h("ul", {}, count(memory.history?.length ?? 0, "earlier wording", "earlier wordings"), count(extras.messages.length, "message it was drawn from", "messages it was drawn from")),
    (memory.versions?.length ?? 0) > 1 ? h("p", {}, "Other versions of this fact stay.") : null,
  ], main);
}

async function shareThis(memory) {
  const kind = h("select", {}, state.about.shares.map((name) => h("option", { value: name, selected: name === "knowledge" }, name)));
  const body = [h("p", {}, stored(memory.text)), field("Kind", kind, "All agents of this store can read it then, under your name: its text, date and lesson, not what was felt or said.")];
  if (await ask("Share this with all agents", body, [{ label: "Cancel", value: "" }, { label: "Share", value: "save", class: "primary" }]) !== "save") return;
  try {
    const done = await tool("share", { memory: memory.id, kind: kind.value });
    message(done.notice ?? `Shared as ${done.id}.`);
  } catch (error) { message(error.message, "error"); }
}
