// What changed lately, what waits for a decision, who the being is, and how much there is.

import { get, tool } from "../api.js";
import { h, link, replace, stored } from "../dom.js";
import { ago, asOfMoment, auditLine, empty, may, number, plural, section, state } from "../parts.js";

export const past = "Counts and topics are of what was true then, by all that is known today, topics under today's names; what happened, as it had been recorded. How faded memories were, open decisions and points for the next session are not kept.";

export async function show(main) {
  await draw(main);
  return { live: () => draw(main) };
}

async function draw(main) {
  const [start, profile, pending] = await Promise.all([
    get("start"),
    tool("profile", {}).catch(() => ({ entries: [], notes: [] })),
    may("maintain") ? tool("run_patrol", { decisions: [] }).catch(() => ({ pending: [] })) : { pending: [] },
  ]);
  const counts = start.counts, all = profile.entries ?? [], asOf = asOfMoment();
  const entries = all.filter((entry) => asOf === null || Date.parse(entry.updated) <= asOf);
  const waiting = pending.pending.length + (pending.waiting ?? 0);
  replace(main,
    h("h1", {}, "The memory of ", h("bdi", {}, state.about.being)),
    h("dl", { class: "counts" },
      (state.asOf
        ? [["true then", counts.true], ["stored by then", counts.stored], ["no longer true then", counts.superseded], ["came later", counts.later]]
        : [["memories", counts.memories], ["active", counts.active], ["dying", counts.dying], ["dead", counts.dead],
          ["superseded", counts.superseded], ["pinned", counts.pinned]])
        .map(([name, count]) => h("div", {}, h("dt", {}, name), h("dd", {}, number(count))))),
    h("div", { class: "columns" },
      h("div", {},
        section("Lately", start.changes.length
          ? h("ul", { class: "log" }, start.changes.slice(0, 20).map(auditLine))
          : empty(state.asOf ? "Nothing was stored by then." : "Nothing is stored yet. Connect an agent, or store something: madeleine ingest FILE."))),
      h("div", {},
        state.asOf ? lastPatrol(start) : section("Waiting for a decision", waiting
          ? [h("p", {}, h("strong", {}, number(waiting)), waiting === 1 ? " decision is open." : " decisions are open."),
            h("p", {}, link("Decide", "patrols", { class: "button primary" }))]
          : empty("Nothing waits."),
        lastPatrol(start)),
        section("Who it is", entries.length
          ? h("dl", { class: "profile" }, entries.slice(0, 30).map((entry) => h("div", {},
            h("dt", {}, stored(entry.name), " ", h("span", { class: "faint" }, entry.kind.replaceAll("_", " "))),
            stored(entry.text, "dd"))))
          : empty(all.length ? "Nothing of the profile stands unchanged since then." : "The profile is empty."),
        all.length > entries.length ? h("p", { class: "faint" }, `${plural(all.length - entries.length, "entry was", "entries were")} written or changed later; what stood there before is not kept.`) : null),
        start.think.length ? section("For the next session", h("ul", {}, start.think.map((point) => stored(point, "li")))) : null,
        section("Topics", start.clusters.filter((cluster) => !cluster.is_root).length
          ? h("ul", { class: "topics" }, start.clusters.filter((cluster) => !cluster.is_root).slice(0, 24).map((cluster) => h("li", {},
            link([stored(cluster.name), h("span", { class: "amount" }, number(cluster.count))], `search?cluster=${cluster.id}`))))
          : empty("A patrol groups memories by topic.")))));
}

const lastPatrol = (start) => (start.last_patrol ? h("p", { class: "faint" }, "Last patrol ", ago(start.last_patrol.started), ".") : null);
