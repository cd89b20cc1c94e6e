// Scenes along time, to zoom: when they happened, and how much they matter.

import { h, button, replace, stored } from "../dom.js";
import { asOfMoment, dayOf, empty, memoryCard, number } from "../parts.js";
import { cardOf, isShown, looks, outlines } from "../outlines.js";
import { Plot } from "../plot.js";

export const past = "Scenes that were true then, by all that is known today. How faded they were is not kept.";

const MONTH = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

export async function show(main) {
  const all = await outlines();
  const indices = [...all.seq.keys()];
  if (!indices.length) {
    replace(main, h("h1", {}, "Time"), empty("There is nothing to draw yet."));
    return {};
  }
  const sorted = Float64Array.from(all.happened).sort();
  // Almost all of them: a scene of a far year would leave all others on one line. It comes into view by zooming out.
  const first = sorted[Math.floor(sorted.length * 0.002)], last = Math.max(sorted[Math.floor((sorted.length - 1) * 0.998)], first + 864e5);
  const clamp = (value) => Math.max(-1, Math.min(1, value));
  const toX = (at) => clamp(((at - first) / (last - first)) * 2 - 1), toTime = (x) => first + ((x + 1) / 2) * (last - first);
  const points = {
    x: Float32Array.from(indices, (index) => toX(all.happened[index])),
    y: Float32Array.from(indices, (index) => all.importance[index] * 1.7 - 0.85 + (((all.seq[index] * 2654435761) % 1000) / 1000 - 0.5) * 0.1),
    ...looks(all, indices),
  };
  const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": `${number(indices.length)} scenes from ${dayOf(first)} to ${dayOf(last)}. Arrow keys move, plus and minus zoom; the list below has what is in view.` });
  const tip = h("div", { class: "tip", hidden: true });
  const axis = h("div", { class: "axis", "aria-hidden": "true" });
  const inView = h("div", { class: "cards" });
  const about = h("p", { class: "faint", role: "status" });
  let listing = 0;
  const plot = new Plot(canvas, points, {
    zoomY: false,
    onHover: (place, event) => {
      tip.hidden = place < 0;
      canvas.style.cursor = place < 0 ? "grab" : "pointer";
      if (place < 0) return;
      replace(tip, stored(all.text[place]), h("small", {}, dayOf(all.happened[place])));
      tip.style.setProperty("left", `${Math.min(event.offsetX + 14, canvas.clientWidth - 240)}px`);
      tip.style.setProperty("top", `${event.offsetY + 14}px`);
    },
    onPick: (place) => { location.hash = `#/memory/${all.id[place]}`; },
    onView: (range) => {
      const format = toTime(range.right) - toTime(range.left) > 200 * 864e5 ? MONTH : DAY;
      const ticks = Math.max(2, Math.floor(canvas.clientWidth / 150));
      replace(axis, Array.from({ length: ticks }, (_, tick) => h("span", {}, format.format(toTime(range.left + ((tick + 0.5) / ticks) * (range.right - range.left))))));
      clearTimeout(listing);
      listing = setTimeout(() => list(all, toTime(range.left), toTime(range.right), inView, about), 250);
    },
  });
  const repaint = () => { Object.assign(points, looks(all, indices)); plot.upload(); };
  addEventListener("themechange", repaint);
  replace(main, h("h1", {}, "Time"),
    h("div", { class: "plot flat" }, canvas, tip, h("div", { class: "tools" }, button("+", () => plot.zoomBy(1.6), { "aria-label": "Zoom in" }), button("−", () => plot.zoomBy(1 / 1.6), { "aria-label": "Zoom out" }), button("All", () => plot.reset()))), axis,
    about, inView);
  return { leave: () => { clearTimeout(listing); removeEventListener("themechange", repaint); plot.close(); } };
}

function list(all, from, until, inView, about) {
  const asOf = asOfMoment();
  const shown = [...all.seq.keys()].filter((index) => all.happened[index] >= from && all.happened[index] <= until && isShown(all, index, asOf));
  shown.sort((a, b) => all.happened[b] - all.happened[a]);
  about.textContent = `${number(shown.length)} scenes in view, the latest first. Higher: more important.`;
  replace(inView, shown.slice(0, 40).map((index) => memoryCard({ ...cardOf(all, index), when: dayOf(all.happened[index]) })));
}
