// Who and what memories name: an entity in the middle, its neighbours around it, its relations and its timeline.

import { tool } from "../api.js";
import { h, link, replace, stored, svg } from "../dom.js";
import { badge, empty, memoryCard, plural, section, state } from "../parts.js";

export const past = "Of an entity what was true then, by all that is known today. The list of those named most is today's.";

const SHOWN = 12;
const [WIDTH, HEIGHT] = [640, 420];
const MAX_LABEL_SIGNS = 22;

const hashOf = (name) => `graph/${encodeURIComponent(name)}`;
const entityLink = (name) => link(stored(name), hashOf(name));

export async function show(main, { argument }) {
  return argument ? showEntity(main, argument) : showAll(main);
}

function asking(name) {
  const field = h("input", { type: "search", value: name, "aria-label": "Entity", autocomplete: "off" });
  return h("form", { role: "search", class: "actions", on: { submit: (event) => {
    event.preventDefault();
    if (field.value.trim()) location.hash = `#/${hashOf(field.value.trim())}`;
  } } }, field, h("button", {}, "Show"));
}

async function showAll(main) {
  const { entities } = await tool("related", { limit: 50 });
  replace(main, h("h1", {}, "Graph"), asking(""),
    entities.length ? section("Named most", entityList(entities)) : empty("No memory names anything yet."));
  return {};
}

const entityList = (entities) => h("ul", { class: "legend" }, entities.map((one) =>
  h("li", {}, entityLink(one.name), " ", h("span", { class: "faint" }, `${one.kind}, ${one.memories}`))));

async function showEntity(main, name) {
  const found = await tool("related", { entity: name, hops: 2, limit: SHOWN, as_of: state.asOf });
  if (!found.entity) {
    replace(main, h("h1", {}, "Graph"), asking(name), empty(found.notice),
      found.entities.length ? section("Of a similar name", entityList(found.entities)) : null);
    return {};
  }
  const { entity, relations = [], neighbours = [], timeline = [], entities = [] } = found;
  replace(main, h("h1", {}, "Graph: ", stored(entity.name)), asking(entity.name),
    h("p", { class: "faint" }, `${entity.kind}, in ${plural(entity.memories, "memory", "memories")}${state.asOf ? `, as of ${state.asOf}` : ""}`),
    found.notice ? h("p", { class: "notice" }, found.notice) : null,
    neighbours.length ? drawing(entity, neighbours) : null,
    relations.length ? section("Relations", h("ul", { class: "log" }, relations.map(relationLine))) : null,
    neighbours.length ? section("Named together with", h("ul", { class: "log" }, neighbours.map(neighbourLine))) : null,
    section("Timeline", timeline.length ? h("div", { class: "cards" }, timeline.map((memory) => memoryCard(memory, untilLine(memory)))) : empty("No memory of that time names it.")),
    entities.length ? section("Of a similar name", entityList(entities)) : null);
  return {};
}

const untilLine = (memory) => (memory.until ? h("p", { class: "faint" }, `true until ${memory.until}`) : null);

function relationLine(one) {
  return h("li", {}, entityLink(one.subject), " ", stored(one.relation), " ", entityLink(one.object), " ",
    h("span", { class: "faint" }, [one.since && `since ${one.since}`, one.until && `until ${one.until}`].filter(Boolean).join(", "), " "),
    link(one.memory, `memory/${one.memory}`), one.stated ? [" ", badge("stated")] : null);
}

function neighbourLine(one) {
  return h("li", {}, entityLink(one.name), " ", badge(one.kind), one.via ? [" ", h("span", { class: "faint" }, "through "), stored(one.via)] : null,
    " ", one.memories.map((id) => [link(id, `memory/${id}`), " "]));
}

/** The entity in the middle; on the inner ring what it is named with, on the outer one what these are named with. */
function drawing(entity, neighbours) {
  const near = neighbours.filter((one) => !one.via), far = neighbours.filter((one) => one.via);
  const centre = { name: entity.name, x: WIDTH / 2, y: HEIGHT / 2 };
  const inner = ring(near, 0.55, 0), outer = ring(far, 0.95, Math.PI / SHOWN);
  const places = new Map(inner.map((place) => [place.name, place]));
  const lines = [...inner.map((place) => [centre, place]), ...outer.map((place) => [places.get(place.via) ?? centre, place])];
  const said = `${entity.name} is named with ${near.map((one) => one.name).join(", ")}. The lists below have the same.`;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "entity-graph", role: "img", "aria-label": said },
    lines.map(([from, to]) => svg("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y, class: "ring" })),
    [...inner, ...outer].map((place) => node(place, place.via ? "fill-9" : "fill-0", place.via ? 4 : 6)), node(centre, "fill-1", 9));
}

function ring(entities, radius, turn) {
  return entities.map((one, place) => {
    const angle = turn + (2 * Math.PI * place) / entities.length;
    return { ...one, x: WIDTH / 2 + Math.cos(angle) * radius * (WIDTH / 2 - 60), y: HEIGHT / 2 + Math.sin(angle) * radius * (HEIGHT / 2 - 16) };
  });
}

function node({ name, x, y }, fill, r) {
  const label = name.length > MAX_LABEL_SIGNS ? `${name.slice(0, MAX_LABEL_SIGNS)}…` : name;
  return svg("g", {}, svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r, class: fill }, svg("title", {}, name)),
    svg("text", { x: x.toFixed(1), y: (y - r - 4).toFixed(1), "text-anchor": "middle" }, label));
}
