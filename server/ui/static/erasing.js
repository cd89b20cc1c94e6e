// Forgetting of one memory or of several: what will be erased, the question, the proof.

import { tool } from "./api.js";
import { ask, h, link, message, replaceView, stored } from "./dom.js";
import { number, plural, section } from "./parts.js";

const AT_ONCE = 50;
const NAMED = 12;

/** Ask, erase, and show in `main` that they are gone. `memories`: [{ id, text }]; `also`: what goes with them, and what does not. */
export async function forget(memories, also, main) {
  const named = memories.slice(0, NAMED);
  const body = [
    h("p", {}, "This cannot be undone. Erased for good, from every answer and from the bytes on disk:"),
    h("ul", {}, named.map((memory) => h("li", {}, stored(memory.text))), memories.length > named.length && h("li", {}, `and ${number(memories.length - named.length)} more`)),
    also,
    h("p", { class: "faint" }, "To correct an error, or where something else is true now, there are other ways."),
  ];
  const title = memories.length === 1 ? "Forget this memory?" : `Forget ${number(memories.length)} memories?`;
  if (await ask(title, body, [{ label: memories.length === 1 ? "Keep it" : "Keep them", value: "" }, { label: "Erase for good", value: "erase", class: "danger" }]) !== "erase") return false;
  try { showProof(main, await erase(memories.map((memory) => memory.id))); } catch (error) { message(error.message, "error"); return false; }
  return true;
}

/** What the tool answered, added up, and which of them a look finds still there. */
async function erase(ids) {
  const all = { erased: [], messages: 0, diary_entries: 0, copies: [], current_again: [], related: [], still: [], notice: "" };
  for (let begin = 0; begin < ids.length; begin += AT_ONCE) {
    const some = ids.slice(begin, begin + AT_ONCE);
    const done = await tool("forget", { ids: some, wait: true });
    const look = await tool("recall_memory", { ids: some });
    for (const name of ["erased", "copies", "current_again", "related"]) all[name].push(...(done[name] ?? []));
    for (const name of ["messages", "diary_entries"]) all[name] += done[name] ?? 0;
    all.still.push(...look.memories.map((memory) => memory.id));
    all.notice = done.notice ?? all.notice;
  }
  const gone = new Set(all.erased);
  all.related = [...new Set(all.related)].filter((id) => !gone.has(id));
  all.copies = [...new Set(all.copies.map((copy) => (typeof copy === "string" ? copy : copy.path ?? JSON.stringify(copy))))];
  return all;
}

function showProof(main, done) {
  const with_ = [done.messages && plural(done.messages, "message", "messages"), done.diary_entries && plural(done.diary_entries, "diary entry", "diary entries")].filter(Boolean).join(" and ");
  const what = done.erased.length > NAMED ? plural(done.erased.length, "memory", "memories") : done.erased.join(", ") || "nothing";
  const looked = done.still.length ? `${done.still.join(", ")}: still there.`
    : done.erased.length === 1 ? `Looked for again: there is no ${done.erased[0]} any more.` : "Looked for again: there is none of them any more.";
  replaceView(main, h("h1", {}, "Forgotten"),
    section("Proof", h("ul", {},
      h("li", {}, `Erased: ${what}${with_ ? `, with ${with_}` : ""}.`), h("li", {}, looked),
      h("li", {}, done.notice || "The remaining bytes on disk are overwritten.")),
    done.copies.length ? [h("p", {}, "Copies that were made before, and may still hold it; only you can delete them:"), h("ul", {}, done.copies.map((copy) => stored(copy, "li")))] : null,
    done.current_again.length ? [h("p", {}, "True again, since what superseded it is gone:"), h("ul", {}, done.current_again.map((other) => h("li", {}, link(stored(other.text), `memory/${other.id}`))))] : null,
    done.related.length ? [h("p", {}, "Linked memories, which stay and may say the same:"), h("ul", {}, done.related.map((other) => h("li", {}, link(other, `memory/${other}`))))] : null),
    h("p", {}, link("To the start", "start")));
}
