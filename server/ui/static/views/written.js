// Diary, points for the next session, open notes, lessons.

import { get, tool } from "../api.js";
import { button, h, link, message, replace, stored } from "../dom.js";
import { empty, may, section } from "../parts.js";

export async function show(main) {
  const [written, recent] = await Promise.all([get("written"), tool("search_memory", { sources: ["memories"], limit: 100, include_dead: false }).catch(() => ({ hits: [] }))]);
  const lessons = recent.hits.filter((hit) => hit.lesson);
  const close = async (note) => {
    try { await tool("profile", { action: "done", kind: "notes", name: note.id }); message("Closed."); await show(main); }
    catch (error) { message(error.message, "error"); }
  };
  replace(main, h("h1", {}, "Diary and notes"), h("div", { class: "columns" },
    h("div", {}, section("Diary", written.diary.length ? written.diary.map((entry) => h("article", { class: "diary" }, h("h3", {}, h("time", { datetime: entry.date }, entry.date)), stored(entry.text, "div"))) : empty("Nothing is written yet."))),
    h("div", {},
      section("For the next session", written.think.length ? h("ul", {}, written.think.map((point) => stored(point, "li"))) : empty("No points.")),
      section("Open notes", written.notes.length ? h("ul", { class: "log" }, written.notes.map((note) => h("li", { class: "choice" }, h("span", {}, stored(note.text), " ", h("span", { class: "faint" }, note.type)), may("write") && button("Done", () => close(note))))) : empty("No open notes.")),
      section("Lessons", lessons.length ? h("ul", { class: "log" }, lessons.map((hit) => h("li", {}, stored(hit.lesson), " ", h("span", { class: "faint" }, "from ", link(stored(hit.text), `memory/${hit.id}`))))) : empty("None in the latest memories.")))));
  return {};
}
