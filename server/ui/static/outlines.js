// All memories as columns, once for the views that draw them, and how they look as points.

import { get } from "./api.js";
import { asOfMoment, state } from "./parts.js";

export async function outlines() {
  state.outlines ??= get("memories", { as_of: "" }).catch((error) => { state.outlines = null; throw error; });
  return state.outlines;
}

/** Whether a memory was true on the date that is looked at, by all that is known today; always if none is. */
export function isShown(all, index, asOf) {
  if (asOf === null) return true;
  return (all.from[index] ?? -Infinity) <= asOf && (all.until[index] ?? Infinity) > asOf && all.truth[index] !== "retracted";
}

/** A memory as a card shows it. How faded it was on a date of the past is not kept. */
export function cardOf(all, index) {
  const now = state.asOf === "";
  return { id: all.id[index], text: all.text[index], truth: now ? all.truth[index] : "current", status: now ? all.status[index] : "active", pinned: now && all.pinned[index] };
}

export function palette() {
  const style = getComputedStyle(document.documentElement);
  return Array.from({ length: 10 }, (_, place) => rgb(style.getPropertyValue(`--c${place}`).trim()));
}

function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Clusters by their number of memories, with the place of each in the palette: the last colour is for all others. */
export function clusterColours(all) {
  const counts = new Map();
  for (const id of all.cluster) counts.set(id, (counts.get(id) ?? 0) + 1);
  const ranked = [...counts].filter(([id]) => id).sort((a, b) => b[1] - a[1]);
  return new Map(ranked.map(([id, count], place) => [id, { place: Math.min(place, 9), count }]));
}

/** Colour by cluster, size by importance, faded by decay; hidden where it is not shown, pale beside what is `selected`.
 * In the past nothing is faded: how much it was then is not kept. */
export function looks(all, indices, { total = indices.length, selected = null } = {}) {
  const colours = palette(), clusters = clusterColours(all), asOf = asOfMoment(), decay = state.about.decay_cycles;
  const color = new Uint8Array(indices.length * 4), size = new Float32Array(indices.length);
  const grow = total < 2000 ? 1.8 : total < 10000 ? 1.2 : total < 25000 ? 0.8 : 0.55;
  indices.forEach((index, place) => {
    const importance = all.importance[index];
    const strength = all.pinned[index] || asOf !== null ? 1 : Math.exp(-all.cycles[index] / decay);
    let alive = asOf !== null ? 0.9 : all.status[index] === "dead" ? 0.18 : all.truth[index] === "current" ? 0.35 + 0.65 * strength : 0.2;
    if (selected && !selected.has(index)) alive *= 0.25;
    color.set(colours[clusters.get(all.cluster[index])?.place ?? 9], place * 4);
    color[place * 4 + 3] = isShown(all, index, asOf) ? Math.round(255 * alive) : 0;
    size[place] = grow * (3 + 6 * importance);
  });
  return { color, size };
}
