// What changed lately, what waits for a decision, who the being is, and how much there is.

import { get, tool } from "../api.js";
import { h, link, replace, stored } from "../dom.js";
import { ago, auditLine, empty, may, number, section, state } from "../parts.js";

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
  const counts = start.counts;
  const waiting = pending.pending.length + (pending.waiting ?? 0);
  replace(main,
    h("h1", {}, "The memory of ", h("bdi", {}, state.about.being)),
    h("dl", { class: "counts" },
      [["memories", counts.memories], ["active", counts.active], ["dying", counts.dying], ["dead", counts.dead],
        ["superseded", counts.superseded], ["pinned", counts.pinned]]
        .map(([name, count]) => h("div", {}, h("dt", {}, name), h("dd", {}, number(count))))),
    h("div", { class: "columns" },
      h("div", {},
        section("Lately", start.changes.length
          ? h("ul", { class: "log" }, start.changes.slice(0, 20).map(auditLine))
          : empty("Nothing is stored yet. Connect an agent, or store something: madeleine ingest FILE."))),
      h("div", {},
        section("Waiting for a decision", waiting
          ? [h("p", {}, h("strong", {}, number(waiting)), waiting === 1 ? " decision is open." : " decisions are open."),
            h("p", {}, link("Decide", "patrols", { class: "button primary" }))]
          : empty("Nothing waits."),
        start.last_patrol ? h("p", { class: "faint" }, "Last patrol ", ago(start.last_patrol.started), ".") : null),
        section("Who it is", profile.entries?.length
          ? h("dl", { class: "profile" }, profile.entries.slice(0, 30).map((entry) => h("div", {},
            h("dt", {}, stored(entry.name), " ", h("span", { class: "faint" }, entry.kind.replaceAll("_", " "))),
            stored(entry.text, "dd"))))
          : empty("The profile is empty.")),
        start.think.length ? section("For the next session", h("ul", {}, start.think.map((point) => stored(point, "li")))) : null,
        section("Topics", start.clusters.filter((cluster) => !cluster.is_root).length
          ? h("ul", { class: "topics" }, start.clusters.filter((cluster) => !cluster.is_root).slice(0, 24).map((cluster) => h("li", {},
            link([stored(cluster.name), h("span", { class: "amount" }, number(cluster.active + cluster.dying))], `search?cluster=${cluster.id}`))))
          : empty("A patrol groups memories by topic.")))));
}
