// All memories as columns, once for the views that draw them, and how they look as points.

import { get } from "./api.js";
import { state } from "./parts.js";

export async function outlines() {
  state.outlines ??= get("memories").catch((error) => { state.outlines = null; throw error; });
  return state.outlines;
}

/** Whether a memory was there, and true, on the date that is looked at; always if none is. */
export function isShown(all, index, asOf) {
  if (asOf === null) return true;
  return all.created[index] <= asOf && (all.from[index] ?? 0) <= asOf && (all.until[index] ?? Infinity) > asOf && all.truth[index] !== "retracted";
}

export const asOfMoment = () => (state.asOf ? Date.parse(`${state.asOf}T23:59:59`) : null);

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

/** Colour by cluster, size by importance, faded by decay; hidden where it is not shown. */
export function looks(all, indices) {
  const colours = palette(), clusters = clusterColours(all), asOf = asOfMoment(), decay = state.about.decay_cycles;
  const color = new Uint8Array(indices.length * 4), size = new Float32Array(indices.length);
  const grow = indices.length < 2000 ? 1.8 : indices.length < 10000 ? 1.2 : indices.length < 25000 ? 0.8 : 0.55;
  indices.forEach((index, place) => {
    const importance = all.importance[index];
    const strength = all.pinned[index] ? 1 : Math.exp(-all.cycles[index] / decay);
    const alive = all.status[index] === "dead" ? 0.18 : all.truth[index] === "current" || asOf !== null ? 0.35 + 0.65 * strength : 0.2;
    color.set(colours[clusters.get(all.cluster[index])?.place ?? 9], place * 4);
    color[place * 4 + 3] = isShown(all, index, asOf) ? Math.round(255 * alive) : 0;
    size[place] = grow * (3 + 6 * importance);
  });
  return { color, size };
}
