// Who did what to which memories, and when.

import { get } from "../api.js";
import { button, h, link, replace, stored } from "../dom.js";
import { momentOf, state } from "../parts.js";

export const past = "What had been recorded by then.";

const EVENTS = ["store", "reinforce", "update", "forget", "observe", "note", "patrol", "recall", "profile", "supersede", "retract", "restore", "import", "export", "backup"];

export async function show(main) {
  const rows = h("tbody", {});
  const event = h("select", { id: "audit-event", on: { change: () => { replace(rows); before = 0; load(); } } }, h("option", { value: "" }, "everything"), EVENTS.map((name) => h("option", { value: name }, name)));
  const more = button("Earlier", () => load());
  let before = 0;
  async function load() {
    const { entries } = await get("audit", { before: before || "", event: event.value, limit: 100 });
    for (const entry of entries) rows.append(row(entry));
    before = entries.at(-1)?.seq ?? before;
    more.hidden = entries.length < 100;
  }
  replace(main, h("h1", {}, "Audit"), h("p", {}, h("label", { for: "audit-event" }, "Show "), event),
    h("div", { class: "scroll panel", tabindex: 0, role: "region", "aria-label": "The audit" }, h("table", {}, h("thead", {}, h("tr", {}, ["when", "what", "by", "with", "memories"].map((name) => h("th", { scope: "col" }, name)))), rows)), more);
  await load();
  return { live: (happened) => { if (happened.type === "changes" && !state.asOf) for (const entry of happened.changes) if (!event.value || event.value === entry.event) rows.prepend(row(entry)); } };
}

function row(entry) {
  return h("tr", {}, h("td", {}, momentOf(entry.at)), h("td", {}, entry.event), h("td", {}, stored([entry.client, entry.role].filter(Boolean).join(" / "))), h("td", {}, entry.tool ?? ""),
    h("td", {}, (entry.memories ?? []).map((memory) => [link(memory.id, `memory/${memory.id}`, { title: memory.text }), " "]), entry.count > (entry.memories?.length ?? 0) ? `${entry.count} in all` : ""));
}
