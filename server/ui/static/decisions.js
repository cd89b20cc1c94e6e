// The decisions of a patrol as forms: what an agent would answer, by hand.

import { field, h, stored } from "./dom.js";
import { link } from "./dom.js";

const TITLES = {
  consolidate: "Which of these belong together, which may go?", split: "Is this topic two?", supersede: "Does the second replace the first?",
  repair: "A note that could not be read", diary: "The diary of a day", compress: "Sum up a session",
};

const SHOWN_ABOVE = "(above)";

/** `all`: the other requests, which show the texts of memories that this one only names. */
export function decisionForm(request, all, decide) {
  const texts = new Map(all.flatMap(memoriesOf).filter((memory) => memory.text).map((memory) => [memory.id, memory]));
  const memories = memoriesOf(request).map((memory) => ({ ...(texts.get(memory.id) ?? {}), status: request.status, ...memory }));
  const { body, answer, submit = "Decide", other } = (FORMS[request.kind] ?? FORMS.unknown)(request, memories);
  const send = (event, decision) => { event.preventDefault(); if (decision) decide({ offer: request.offer, ...decision }); };
  return h("form", { class: "decision card", data: { kind: request.kind }, on: { submit: (event) => send(event, answer()) } },
    h("h3", {}, TITLES[request.kind] ?? request.kind, request.cluster || request.when ? [" ", stored(request.cluster || request.when, "span", { class: "theme" })] : null),
    body,
    h("div", { class: "choices" }, other && h("button", { type: "button", on: { click: (event) => send(event, other.answer()) } }, other.label), h("button", { class: "primary" }, submit)));
}

/** A request has its memories by id: as text alone, as an object, or as a note that another request shows the text. */
function memoriesOf(request) {
  const told = (value) => (typeof value !== "string" ? value : value === SHOWN_ABOVE ? {} : { text: value });
  return Object.entries(request.memories ?? {}).map(([id, value]) => ({ id, ...told(value) }));
}

const line = (memory) => [link(stored(memory.text ?? memory.id), `memory/${memory.id}`), h("span", { class: "faint" }, ` ${memory.when ?? ""} ${memory.status === "dying" ? "· dying" : ""}`)];
const listOf = (memories) => h("ul", { class: "log" }, memories.map((memory) => h("li", {}, line(memory))));
const options = (choices) => choices.map(([value, label]) => h("option", { value }, label));

function choose(memories, choices) {
  const rows = memories.map((memory) => {
    const select = h("select", { "aria-label": `For ${memory.id}` }, options(choices));
    return { memory, select, row: h("li", { class: "choice" }, h("span", {}, line(memory)), select) };
  });
  const chosen = (value) => rows.filter(({ select }) => select.value === value).map(({ memory }) => memory.id);
  return { list: h("ul", { class: "log" }, rows.map(({ row }) => row)), chosen };
}

const FORMS = {
  supersede: (request, memories) => ({
    body: listOf(memories), submit: "Yes, it replaces it", answer: () => ({ superseded: true }),
    other: { label: "No, both hold", answer: () => ({ superseded: false }) },
  }),
  consolidate: (request, memories) => {
    const groups = ["A", "B", "C", "D"].map((name) => [name, `merge ${name}`]);
    const { list, chosen } = choose(memories, [["keep", "keep"], ...groups, ["dead", "let it go"]]);
    return {
      body: [h("p", { class: "faint" }, "Of those that are merged the first survives and takes over what the others say."), list],
      answer: () => ({ merges: groups.map(([name]) => chosen(name)).filter((group) => group.length > 1), make_dead: chosen("dead"), keep: chosen("keep") }),
    };
  },
  split: (request, memories) => {
    const names = [1, 2].map((part) => h("input", { "aria-label": `Name of part ${part}`, placeholder: `Name of part ${part}`, dir: "auto" }));
    const { list, chosen } = choose(memories, [["1", "part 1"], ["2", "part 2"]]);
    return {
      body: [h("p", { class: "choice" }, names), list], submit: "Split",
      answer: () => ({ parts: ["1", "2"].map((part, place) => [names[place].value.trim(), ...chosen(part)]).filter((part) => part.length > 1) }),
      other: { label: "Keep it whole", answer: () => ({ parts: [] }) },
    };
  },
  repair: (request) => {
    const text = h("textarea", { value: request.note ?? "", dir: "auto", required: true });
    return { body: [h("p", { class: "error" }, request.reason), field("What it should say", text)], answer: () => ({ text: text.value.trim() }) };
  },
  diary: (request, memories) => {
    const diary = h("textarea", { dir: "auto", required: true, maxlength: 2000 });
    const points = h("textarea", { dir: "auto", required: true });
    return {
      body: [request.earlier && h("blockquote", {}, stored(request.earlier)), listOf(memories), field("Entry", diary, "3 to 5 lines in the first person"), field("For the next session", points, "3 to 7 points, one a line")],
      answer: () => ({ diary: diary.value.trim(), think_md: points.value.split("\n").map((point) => point.trim()).filter(Boolean) }),
    };
  },
  compress: (request, memories) => {
    const summary = h("textarea", { dir: "auto", required: true, maxlength: 2000 });
    return { body: [listOf(memories), field("Summary", summary, "It is recalled in place of these memories, which stay.")], answer: () => ({ summary: summary.value.trim() }) };
  },
  unknown: (request, memories) => ({ body: [listOf(memories), h("p", { class: "faint" }, "This kind is for an agent to decide.")], answer: () => null }),
};
