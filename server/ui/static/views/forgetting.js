// What will fade in the next patrols unless it is recalled, and what is dying now. A click keeps it.

import { get, tool } from "../api.js";
import { button, h, link, message, replace, stored } from "../dom.js";
import { empty, may, meter, number, plural, section } from "../parts.js";
import { columns } from "../charts.js";

export async function show(main) {
  await draw(main);
  return {};
}

async function draw(main) {
  const { soon, dying, total, patrols } = await get("fading");
  const byPatrol = Array.from({ length: patrols }, (_, place) => [String(place + 1), [["fade", soon.filter((memory) => memory.left === place + 1).length, "bar-fade"]]]);
  replace(main, h("h1", {}, "Forgetting"),
    h("p", {}, `${plural(total, "memory fades", "memories fade")} in the next ${patrols} patrols, unless recalled. Nothing is erased: a dead memory that is recalled again comes back.`),
    total ? section(`By patrol`, columns("Memories that fade, by patrol from now", byPatrol, "memories")) : null,
    section("Soon", soon.length ? list(soon, main) : empty("Nothing fades soon.")),
    section("Dying now", dying.length ? list(dying, main) : empty("Nothing is dying.")));
}

function list(memories, main) {
  return h("ul", { class: "log" }, memories.slice(0, 200).map((memory) => h("li", { class: "choice" },
    h("span", {}, link(stored(memory.text), `memory/${memory.id}`), " ", h("span", { class: "faint" }, memory.left ? `in ${plural(memory.left, "patrol", "patrols")}` : "now", " · "), meter(memory.importance, "importance")),
    may("write") && button("Keep", async (event) => {
      event.target.disabled = true;
      try { await tool("update_memory", { id: memory.id, pinned: true }); message("Pinned: it never fades."); await draw(main); }
      catch (error) { event.target.disabled = false; message(error.message, "error"); }
    }, { "aria-label": `Keep ${memory.id}` }))));
}
