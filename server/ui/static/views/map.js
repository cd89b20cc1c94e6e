// All memories on a plane: near each other where they mean much the same.

import { getParts, tool } from "../api.js";
import { button, h, link, message, replace, stored, svg } from "../dom.js";
import { asOfMoment, badges, empty, may, memoryCard, number, plural, section, state } from "../parts.js";
import { cardOf, clusterColours, isShown, looks, outlines } from "../outlines.js";
import { forget } from "../erasing.js";
import { Lasso } from "../lasso.js";
import { Plot } from "../plot.js";

export const past = "Memories that were true then, by all that is known today. Topics are those of today; how faded a memory was is not kept.";

const MAX_LISTED = 100;
const MAX_CHANGED = 500;

export async function show(main) {
  const stream = new AbortController();
  const map = new MemoryMap(main);
  const coming = getParts("map", (block) => map.receive(block), stream.signal);
  coming.catch(() => {}); // told below
  const [all, { clusters }] = await Promise.all([outlines(), tool("recall_memory", {})]);
  map.begin(all, new Map(clusters.map((cluster) => [cluster.id, cluster.name])));
  coming.then(() => map.end(), (error) => { if (error.name !== "AbortError") message(error.message, "error"); });
  return { leave: () => { stream.abort(); map.leave(); } };
}

class MemoryMap {
  constructor(main) {
    Object.assign(this, { main, blocks: [], indices: [], x: [], y: [], total: null, selected: null, all: null, listing: 0 });
    this.repaint = () => { Object.assign(this.points, this.looks()); this.plot.upload(); };
  }

  receive(block) {
    if ("total" in block) this.total = block.total; else this.blocks.push(block);
    if (this.all) this.add();
  }

  begin(all, names) {
    Object.assign(this, { all, names, places: new Map(all.seq.map((seq, index) => [seq, index])) });
    this.add();
  }

  /** Draw what has come; the landmarks are the first. */
  add() {
    for (const block of this.blocks) block.seq.forEach((seq, place) => {
      const index = this.places.get(seq);
      if (index === undefined) return;
      this.indices.push(index);
      this.x.push(block.x[place]);
      this.y.push(block.y[place]);
    });
    const isNew = this.blocks.length > 0;
    this.blocks = [];
    if (!isNew) return;
    if (this.plot) { Object.assign(this.points, this.coordinates(), this.looks()); this.plot.upload(); } else this.draw();
    const isWhole = this.indices.length >= this.total;
    this.coming.hidden = isWhole;
    this.coming.textContent = isWhole ? "" : `${number(this.indices.length)} of ${number(this.total)} are drawn …`;
  }

  end() {
    if (!this.total) replace(this.main, h("h1", {}, "Map"), empty("There is nothing to draw yet."));
    if (this.coming) this.coming.hidden = true;
    requestAnimationFrame(() => performance.mark("map is whole"));
  }

  coordinates() { return { x: Float32Array.from(this.x), y: Float32Array.from(this.y) }; }

  looks() { return looks(this.all, this.indices, { total: this.total, selected: this.selected }); }

  draw() {
    performance.mark("map data");
    const { all, names } = this;
    const asOf = asOfMoment();
    const shown = asOf === null ? this.total : all.seq.filter((_, index) => isShown(all, index, asOf)).length;
    this.points = { ...this.coordinates(), ...this.looks() };
    this.coming = h("p", { class: "faint", role: "status" });
    this.middle = h("div", { class: "cards" });
    this.panel = h("div", { id: "selection", tabindex: -1 });
    const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": `${plural(shown, "memory", "memories")} by meaning. Arrow keys move, plus and minus zoom, Enter selects all in view, Escape ends the selection; the list below names what is in the middle.` });
    const surface = svg("svg", { class: "surface", "aria-hidden": "true" });
    const tip = h("div", { class: "tip", hidden: true });
    this.plot = new Plot(canvas, this.points, {
      onHover: (place, event) => this.hover(tip, place, event),
      onPick: (place) => { location.hash = `#/memory/${all.id[this.indices[place]]}`; },
      onView: () => { clearTimeout(this.listing); this.listing = setTimeout(() => this.list(), 250); },
    });
    state.plot = this.plot; // a benchmark in the browser measures it
    addEventListener("themechange", this.repaint);
    const legend = [...clusterColours(all)].slice(0, 9);
    this.lasso = new Lasso(this.plot, surface, (places) => this.select(places.map((place) => this.indices[place])));
    const drawing = button("Lasso", () => {
      this.lasso.isOn = !this.lasso.isOn;
      drawing.setAttribute("aria-pressed", this.lasso.isOn);
      canvas.classList.toggle("drawing", this.lasso.isOn);
    }, { "aria-pressed": "false", title: "Draw a loop around memories; Shift and a drag do the same" });
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.lasso.selectView(); if (this.selected) this.panel.focus(); }
      if (event.key === "Escape") this.select([]);
    });
    replace(this.main, h("h1", {}, "Map"),
      h("div", { class: "plot" }, canvas, surface, tip,
        h("div", { class: "tools" }, drawing, button("Select view", () => this.lasso.selectView(), { title: "Select all that is in view" }),
          button("+", () => this.plot.zoomBy(1.6), { "aria-label": "Zoom in" }), button("−", () => this.plot.zoomBy(1 / 1.6), { "aria-label": "Zoom out" }), button("All", () => this.plot.reset(), { title: "Show all" }))),
      this.coming,
      h("ul", { class: "legend" }, legend.map(([id, { place, count }]) => h("li", {}, h("span", { class: "dot", style: { background: `var(--c${place})` } }), link(stored(names.get(id) ?? id), `search?cluster=${id}`), " ", asOf === null && h("span", { class: "amount" }, number(count)))),
        h("li", {}, h("span", { class: "dot", style: { background: "var(--c9)" } }), "others")),
      h("p", { class: "faint" }, asOf === null ? "Larger: more important. Paler: faded, dead or no longer true." : `Larger: more important. ${plural(shown, "memory was", "memories were")} true then.`),
      this.panel, h("h2", {}, "In the middle"), this.middle);
  }

  hover(tip, place, event) {
    const { all, names, plot } = this;
    tip.hidden = place < 0;
    plot.canvas.style.cursor = this.lasso.isOn ? "crosshair" : place < 0 ? "grab" : "pointer";
    if (place < 0) return;
    const index = this.indices[place];
    replace(tip, stored(all.text[index]), h("small", {}, all.id[index], names.get(all.cluster[index]) ? [" · ", stored(names.get(all.cluster[index]))] : ""));
    tip.style.setProperty("left", `${Math.max(4, Math.min(event.offsetX + 14, plot.canvas.clientWidth - 250))}px`);
    tip.style.setProperty("top", `${event.offsetY > plot.canvas.clientHeight / 2 ? event.offsetY - tip.offsetHeight - 10 : event.offsetY + 14}px`);
  }

  select(indices) {
    this.selected = indices.length ? new Set(indices) : null;
    this.repaint();
    const { all, panel, main } = this;
    if (!indices.length) { replace(panel); return; }
    const chosen = indices.map((index) => ({ ...cardOf(all, index), index })).sort((one, other) => all.importance[other.index] - all.importance[one.index]);
    const pin = async (pinned) => {
      const some = chosen.filter((memory) => all.pinned[memory.index] !== pinned);
      for (const control of panel.querySelectorAll("button")) control.disabled = true;
      let done = 0;
      try {
        for (const memory of some) { await tool("update_memory", { id: memory.id, pinned }); all.pinned[memory.index] = pinned; done += 1; }
        message(pinned ? `${plural(done, "memory is", "memories are")} pinned: never faded.` : `${plural(done, "memory fades", "memories fade")} again.`);
      } catch (error) { message(`${error.message} ${number(done)} were changed.`, "error"); }
      this.select(indices);
    };
    const many = chosen.length > MAX_CHANGED;
    replace(panel, section(`Selected (${number(chosen.length)})`,
      h("div", { class: "actions", role: "group", "aria-label": "Change what is selected" },
        may("write") && !many && [chosen.some((memory) => !all.pinned[memory.index]) && button("Pin all", () => pin(true)), chosen.some((memory) => all.pinned[memory.index]) && button("Unpin all", () => pin(false))],
        may("erase") && !many && button("Forget …", () => forget(chosen, null, main), { class: "danger" }),
        button("End the selection", () => { this.select([]); this.plot.canvas.focus(); })),
      many && may("write") ? h("p", { class: "faint" }, `To change them, select at most ${number(MAX_CHANGED)}: zoom in, or draw a smaller loop.`) : null,
      h("ul", { class: "log" }, chosen.slice(0, MAX_LISTED).map((memory) => h("li", { class: "choice" },
        h("span", {}, link(stored(memory.text), `memory/${memory.id}`), " ", h("span", { class: "faint id" }, memory.id)), h("span", { class: "marks" }, badges(memory))))),
      chosen.length > MAX_LISTED ? empty(`The ${number(MAX_LISTED)} most important are listed.`) : null));
  }

  /** The nearest to the middle as text: for the keyboard, and for who does not see the canvas. */
  list() {
    const { plot, points, indices, all } = this;
    const { x, y } = plot.view;
    const nearest = [];
    for (let place = 0; place < indices.length; place++) {
      if (!points.color[4 * place + 3]) continue;
      const apart = (points.x[place] - x) ** 2 + (points.y[place] - y) ** 2;
      if (nearest.length < 8 || apart < nearest.at(-1)[0]) {
        nearest.push([apart, indices[place]]);
        nearest.sort((one, other) => one[0] - other[0]);
        nearest.length = Math.min(nearest.length, 8);
      }
    }
    replace(this.middle, nearest.map(([, index]) => memoryCard(cardOf(all, index))));
  }

  leave() {
    clearTimeout(this.listing);
    removeEventListener("themechange", this.repaint);
    this.plot?.close();
    state.plot = null;
  }
}
