// All memories on a plane: near each other where they mean much the same.

import { get, tool } from "../api.js";
import { button, h, link, replace, stored } from "../dom.js";
import { empty, memoryCard, number, state } from "../parts.js";
import { clusterColours, looks, outlines } from "../outlines.js";
import { Plot } from "../plot.js";

export async function show(main) {
  const [all, plane, { clusters }] = await Promise.all([outlines(), get("map"), tool("recall_memory", {})]);
  if (!plane.seq.length) {
    replace(main, h("h1", {}, "Map"), empty("There is nothing to draw yet."));
    return {};
  }
  const places = new Map(all.seq.map((seq, index) => [seq, index]));
  const kept = plane.seq.map((seq, place) => [places.get(seq), place]).filter(([index]) => index !== undefined);
  const indices = kept.map(([index]) => index);
  const points = {
    x: Float32Array.from(kept, ([, place]) => plane.x[place]), y: Float32Array.from(kept, ([, place]) => plane.y[place]), ...looks(all, indices),
  };
  const names = new Map(clusters.map((cluster) => [cluster.id, cluster.name]));
  const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": `${number(indices.length)} memories by meaning. Arrow keys move, plus and minus zoom; the list below names what is in the middle.` });
  const tip = h("div", { class: "tip", hidden: true });
  const middle = h("div", { class: "cards" });
  let listing = 0;
  const plot = new Plot(canvas, points, {
    onHover: (place, event) => {
      tip.hidden = place < 0;
      canvas.style.cursor = place < 0 ? "grab" : "pointer";
      if (place < 0) return;
      const index = indices[place];
      replace(tip, stored(all.text[index]), h("small", {}, all.id[index], names.get(all.cluster[index]) ? [" · ", stored(names.get(all.cluster[index]))] : ""));
      tip.style.setProperty("left", `${Math.min(event.offsetX + 14, canvas.clientWidth - 240)}px`);
      tip.style.setProperty("top", `${event.offsetY + 14}px`);
    },
    onPick: (place) => { location.hash = `#/memory/${all.id[indices[place]]}`; },
    onView: () => { clearTimeout(listing); listing = setTimeout(() => list(plot, points, indices, all, middle), 250); },
  });
  state.plot = plot; // a benchmark in the browser measures it
  const repaint = () => { Object.assign(points, looks(all, indices)); plot.upload(); };
  addEventListener("themechange", repaint);
  const legend = [...clusterColours(all)].slice(0, 9);
  replace(main, h("h1", {}, "Map"),
    h("div", { class: "plot" }, canvas, tip, h("div", { class: "tools" }, button("+", () => plot.zoomBy(1.6), { "aria-label": "Zoom in" }), button("−", () => plot.zoomBy(1 / 1.6), { "aria-label": "Zoom out" }), button("All", () => plot.reset()))),
    h("ul", { class: "legend" }, legend.map(([id, { place, count }]) => h("li", {}, h("span", { class: "dot", style: { background: `var(--c${place})` } }), link(stored(names.get(id) ?? id), `search?cluster=${id}`), " ", h("span", { class: "amount" }, number(count)))),
      h("li", {}, h("span", { class: "dot", style: { background: "var(--c9)" } }), "others")),
    h("p", { class: "faint" }, "Larger: more important. Paler: faded, dead or no longer true."),
    h("h2", {}, "In the middle"), middle);
  return { leave: () => { clearTimeout(listing); removeEventListener("themechange", repaint); plot.close(); state.plot = null; } };
}

/** The nearest to the middle as text: for the keyboard, and for who does not see the canvas. */
function list(plot, points, indices, all, middle) {
  const { x, y } = plot.view;
  const nearest = [];
  for (let place = 0; place < indices.length; place++) {
    if (!points.color[4 * place + 3]) continue;
    const apart = (points.x[place] - x) ** 2 + (points.y[place] - y) ** 2;
    if (nearest.length < 8 || apart < nearest.at(-1)[0]) {
      nearest.push([apart, indices[place]]);
      nearest.sort((a, b) => a[0] - b[0]);
      nearest.length = Math.min(nearest.length, 8);
    }
  }
  replace(middle, nearest.map(([, index]) => memoryCard({ id: all.id[index], text: all.text[index], truth: all.truth[index], status: all.status[index] })));
}
