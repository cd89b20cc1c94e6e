// Diary, points for the next session, open notes, lessons.

import { get, tool } from "../api.js";
import { button, h, link, message, replace, stored } from "../dom.js";
import { badge, empty, may, number, section, state } from "../parts.js";

export const past = "Diary and lessons up to then, with what is known of lessons today; of notes those that are still open. Points for the next session are not kept.";

export async function show(main) {
  const written = await get("written");
  const close = async (note) => {
    try { await tool("profile", { action: "done", kind: "notes", name: note.id }); message("Closed."); await show(main); }
    catch (error) { message(error.message, "error"); }
  };
  replace(main, h("h1", {}, "Diary and notes"), h("div", { class: "columns" },
    h("div", {}, section("Diary", written.diary.length ? written.diary.map((entry) => h("article", { class: "diary" }, h("h3", {}, h("time", { datetime: entry.date }, entry.date)), stored(entry.text, "div"))) : empty("Nothing is written yet. A patrol writes it, with a language model or an agent's help."))),
    h("div", {},
      state.asOf ? null : section("For the next session", written.think.length ? h("ul", {}, written.think.map((point) => stored(point, "li"))) : empty("No points.")),
      section("Open notes", written.notes.length ? h("ul", { class: "log" }, written.notes.map((note) => h("li", { class: "choice" }, h("span", {}, stored(note.text), " ", h("span", { class: "faint" }, note.type)), may("write") && button("Done", () => close(note))))) : empty("No open notes.")),
      section("Lessons", written.lessons.length ? written.lessons.map(lesson) : empty("None was learnt yet. Agents report what failed.")))));
  return {};
}

function lesson(learnt) {
  const rows = [["when", learnt.condition], ["do", learnt.action], ["why", learnt.rationale], ["steps", learnt.steps]].filter(([, value]) => value?.length);
  return h("article", { class: "lesson" },
    h("h3", {}, link(stored(learnt.text), `memory/${learnt.id}`)),
    h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name),
      h("dd", {}, Array.isArray(value) ? h("ol", {}, value.map((step) => stored(step, "li"))) : stored(value))))),
    h("p", { class: "meta" }, learnt.status !== "active" && badge(learnt.status, "faint"), learnt.helped && badge(`helped ${number(learnt.helped)} times`, "good"), learnt.failed && badge(`failed ${number(learnt.failed)} times`, "warn"),
      typeof learnt.confidence === "number" && h("span", {}, `confidence ${learnt.confidence}`)));
}
