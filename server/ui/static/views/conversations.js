// Conversations as they were observed.

import { get } from "../api.js";
import { button, h, link, replace, stored } from "../dom.js";
import { ago, empty, momentOf, number } from "../parts.js";

export const past = "Conversations that had begun by then, up to that day; without what was forgotten since.";

export async function show(main, { name, argument }) {
  if (name === "conversation") return showOne(main, argument);
  const { sessions } = await get("conversations");
  replace(main, h("h1", {}, "Conversations"), sessions.length
    ? h("ul", { class: "log panel" }, sessions.map((session) => h("li", {}, link(stored(session.title || session.session_id), `conversation/${encodeURIComponent(session.session_id)}`), " ",
      h("span", { class: "faint" }, `${number(session.messages)} messages · `, session.interface, session.project && [" · ", stored(session.project)], " · ", ago(session.last_at)))))
    : empty("None was observed yet. Hooks store them: madeleine observe."));
  return {};
}

async function showOne(main, id) {
  const log = h("ol", { class: "chat" });
  const more = button("Later messages", () => load());
  let start = 0;
  async function load() {
    const { messages, next } = await get("conversation", { session: id, start });
    for (const message of messages) {
      log.append(h("li", { class: message.role }, h("p", { class: "meta" }, stored(message.speaker || message.role), h("span", {}, momentOf(message.when))), stored(message.text, "div")));
    }
    start = next;
    more.hidden = next === null;
  }
  await load();
  replace(main, h("h1", {}, "Conversation ", stored(id)), log.children.length ? log : empty("There are no messages in it."), more);
  return {};
}
