// What all beings of the store share: policies, decisions, procedures, conventions, knowledge; by whom, and with their history.

import { tool } from "../api.js";
import { ask, button, field, h, link, message, replace, replaceView, stored } from "../dom.js";
import { badge, dayOf, empty, may, number, plural, section, state } from "../parts.js";

export const past = "What was shared and true then, by all that is known today.";

const KINDS = {
  policy: ["Policies", "Core rules, in every prompt of every agent."],
  decision: ["Decisions", "What was decided, with the reasons."],
  procedure: ["Procedures", "How something is done."],
  convention: ["Conventions", "What everybody keeps to."],
  knowledge: ["Knowledge", "What an agent has found out and shares."],
};

export async function show(main, { argument }) {
  const draw = argument ? () => showFact(main, argument) : () => showAll(main);
  await draw();
  return { live: (event) => { if (event.type === "shared" && !document.querySelector("dialog")) draw().catch((error) => message(error.message, "error")); } };
}

async function showAll(main) {
  const { memories } = await tool("search_shared", { scope: "shared", limit: 50, as_of: state.asOf, token_budget: 100000 });
  const kinds = state.asOf ? [] : state.about.shares;
  const groups = Object.keys(KINDS).map((kind) => [kind, memories.filter((fact) => fact.kind === kind)]).filter(([, facts]) => facts.length);
  replace(main, h("h1", {}, "Shared facts"),
    h("p", {}, "What all agents of this store know, each under the name of whoever shared it. Nothing is shared by itself."),
    kinds.length ? h("div", { class: "actions" }, button("Share something", () => share(main, kinds), { class: "primary" })) : state.asOf ? null : h("p", { class: "faint" }, "You may only read it."),
    groups.length ? groups.map(([kind, facts]) => section(`${KINDS[kind][0]} (${number(facts.length)})`, h("p", { class: "faint" }, KINDS[kind][1]), h("div", { class: "cards" }, facts.map((fact) => card(fact)))))
      : section("Nothing is shared", empty(state.asOf ? "Nothing was shared and true then." : "Agents share with the tool share, people here or with madeleine org share.")));
}

const truthOf = (fact) => (["superseded", "retracted"].includes(fact.status) ? fact.status : "current");

function card(fact, ...more) {
  return h("article", { class: "card memory" },
    h("h3", {}, link(stored(fact.text), `shared/${fact.id}`)),
    h("p", { class: "meta" }, h("span", { class: "id" }, fact.id), h("span", {}, "by ", stored(fact.author ?? "nobody"), fact.author_role ? ` (${fact.author_role.replace("_", " ")})` : ""),
      fact.since && h("span", {}, `since ${fact.since}`), (fact.themes ?? []).map((theme) => stored(theme, "span", { class: "theme" }))),
    fact.before && h("p", { class: "before" }, "Before: ", stored(fact.before)), more);
}

/** A fact with all its versions and their authors. */
async function showFact(main, id) {
  let versions;
  try { ({ memories: versions } = await tool("search_shared", { id })); } catch (error) {
    replace(main, h("h1", {}, "There is no such fact"), h("p", {}, error.message), h("p", {}, link("To the shared facts", "shared")));
    return;
  }
  const fact = versions.find((version) => version.id === id) ?? versions.at(-1);
  const isTrue = truthOf(fact) === "current";
  const again = () => showFact(main, id);
  const kinds = state.asOf ? [] : state.about.shares;
  const isWriter = kinds.includes(fact.kind);
  replace(main, h("h1", { class: "memory-text" }, stored(fact.text)),
    h("p", { class: "meta" }, h("span", { class: "id" }, fact.id), badge(fact.kind), badge(truthOf(fact), isTrue ? "good" : "faint"), h("span", {}, "shared by ", stored(fact.author ?? "nobody"), fact.author_role ? ` (${fact.author_role.replace("_", " ")})` : "")),
    isWriter ? h("div", { class: "actions", role: "group", "aria-label": "Change this fact" },
      isTrue && button("Something else is true now", () => supersede(main, fact)),
      isTrue && button("Retract", () => retract(fact, again)),
      (!isTrue || versions.length > 1) && button("Take that back", () => change({ id: fact.id, undo: true }, "The last change of what is true is taken back.", again)),
      may("erase") && button("Erase …", () => erase(fact, main), { class: "danger" })) : state.asOf ? null : h("p", { class: "faint" }, `A ${fact.kind} is changed by others.`),
    section(`Versions (${number(versions.length)})`, h("ol", { class: "versions" }, versions.map((version) => h("li", { class: truthOf(version), "aria-current": version.id === fact.id },
      version.id === fact.id ? stored(version.text) : link(stored(version.text), `shared/${version.id}`),
      h("span", { class: "faint" }, [truthOf(version), version.valid_from && `since ${dayOf(version.valid_from)}`, version.valid_until && `until ${dayOf(version.valid_until)}`].filter(Boolean).join(" · "), " · by ", stored(version.author ?? "nobody")),
      version.retraction_reason && h("span", {}, "Retracted: ", stored(version.retraction_reason)))))),
    h("p", {}, link("To the shared facts", "shared")));
}

async function change(values, done, again) {
  try { await tool("retract", values); message(done); await again(); } catch (error) { message(error.message, "error"); }
}

const choices = (name, kind = "primary") => [{ label: "Cancel", value: "" }, { label: name, value: "save", class: kind }];

export async function share(main, kinds) {
  const text = h("textarea", { required: true, dir: "auto" });
  const kind = h("select", {}, kinds.map((name) => h("option", { value: name, selected: name === "knowledge" }, name)));
  if (await ask("Share with all agents", [field("What all should know", text, "In sentences that make sense alone."), field("Kind", kind)], choices("Share")) !== "save") return;
  try {
    const done = await tool("share", { text: text.value.trim(), kind: kind.value });
    message(done.notice ?? `Shared as ${done.id}.`);
    await showAll(main);
  } catch (error) { message(error.message, "error"); }
}

async function supersede(main, fact) {
  const text = h("textarea", { value: fact.text, required: true, dir: "auto" });
  const when = h("input", { type: "date", required: true, value: new Date().toISOString().slice(0, 10) });
  if (await ask("Something else is true now", [field("What is true instead", text, "This stays, as what was true before."), field("Since", when)], choices("Save")) !== "save") return;
  try {
    const done = await tool("share", { text: text.value.trim(), kind: fact.kind, when: when.value, supersedes: fact.id });
    message("The new version comes first from now on.");
    location.hash = `#/shared/${done.id}`;
  } catch (error) { message(error.message, "error"); }
}

async function retract(fact, again) {
  const reason = h("textarea", { required: true, dir: "auto", maxlength: 400 });
  if (await ask("Retract this for all", field("Why it was never true, or must not be shared", reason, "Nobody finds it any more. It can be taken back."), choices("Retract")) !== "save") return;
  await change({ id: fact.id, reason: reason.value.trim() }, "Retracted.", again);
}

async function erase(fact, main) {
  const body = [h("p", {}, "This cannot be undone. Erased for good, from every answer and from the bytes on disk:"), h("ul", {}, stored(fact.text, "li"))];
  if (await ask("Erase this for all?", body, [{ label: "Keep it", value: "" }, { label: "Erase for good", value: "erase", class: "danger" }]) !== "erase") return;
  try {
    const done = await tool("retract", { id: fact.id, erase: true });
    const left = await tool("search_shared", { id: fact.id }).then(() => `${fact.id} is still there.`, () => `Looked for again: there is no ${fact.id} any more.`);
    replaceView(main, h("h1", {}, "Erased"), section("Proof", h("ul", {}, h("li", {}, `Erased: ${done.id}.`), h("li", {}, left)),
      done.copies?.length ? [h("p", {}, `${plural(done.copies.length, "copy that was made before may still hold it", "copies that were made before may still hold it")}; only you can delete them:`), h("ul", {}, done.copies.map((copy) => stored(typeof copy === "string" ? copy : copy.path ?? JSON.stringify(copy), "li")))] : null),
    h("p", {}, link("To the shared facts", "shared")));
  } catch (error) { message(error.message, "error"); }
}
