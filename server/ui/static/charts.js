// Small drawings as SVG: feelings, the curve of forgetting, columns.

import { h, svg } from "./dom.js";
import { asOfMoment, dayOf, momentOf, number, share, state } from "./parts.js";

/** Of a drawing: narrower on a narrow screen, so that its words stay readable. */
const drawingWidth = () => (matchMedia("(max-width: 600px)").matches ? 360 : 640);

const AXES = ["valence", "arousal", "dominance", "safety", "novelty", "trust"];

/** Feelings as a hexagon; each axis from -1, the centre, to 1. The inner ring is 0. */
export function hexagon(vector) {
  const point = (place, radius) => {
    const angle = (Math.PI / 3) * place - Math.PI / 2;
    return [(Math.cos(angle) * radius).toFixed(1), (Math.sin(angle) * radius).toFixed(1)];
  };
  const ring = (radius) => AXES.map((_, place) => point(place, radius).join(",")).join(" ");
  const shape = AXES.map((name, place) => point(place, ((vector[name] ?? 0) + 1) * 50).join(",")).join(" ");
  const said = AXES.map((name) => `${name} ${share(vector[name] ?? 0)}`).join(", ");
  return svg("svg", { viewBox: "-170 -135 340 270", class: "hexagon", role: "img", "aria-label": `Feeling: ${said}` },
    [100, 50].map((radius) => svg("polygon", { points: ring(radius), class: radius === 50 ? "ring zero" : "ring" })),
    AXES.map((_, place) => { const [x, y] = point(place, 100); return svg("line", { x1: 0, y1: 0, x2: x, y2: y, class: "ring" }); }),
    svg("polygon", { points: shape, class: "shape" }),
    AXES.map((name, place) => {
      const [x, y] = point(place, 118);
      return svg("text", { x, y: +y + 5, "text-anchor": Math.abs(x) < 5 ? "middle" : x > 0 ? "start" : "end" }, name);
    }));
}

/** Importance over patrols: what it was, by the patrols and recalls there were, and what it will be unless it is recalled. */
export function forgettingCurve(memory, aged, recalls) {
  const { decay_cycles: decay, dying_importance: floor } = state.about;
  const marks = [...aged.map((at) => [Date.parse(at), false]), ...recalls.map((at) => [Date.parse(at), true])].sort((a, b) => a[0] - b[0]);
  let cycle = 0;
  const past = [[0, 0]];
  const used = [];
  let x = 0;
  for (const [, recalled] of marks) {
    if (recalled) { if (used.at(-1) !== x) used.push(x); cycle = 0; past.push([x, 0]); }
    else { x += 1; cycle += 1; past.push([x, cycle]); }
  }
  if (past.at(-1)[1] !== memory.session_count) past.push([x, memory.session_count]);
  const now = x;
  const ahead = Math.max(30, Math.min(120, Math.ceil(decay * Math.log(Math.max(memory.importance, floor) / floor)) - memory.session_count + 10));
  const future = Array.from({ length: ahead + 1 }, (_, step) => [now + step, memory.session_count + step]);
  const [width, height, left, bottom] = [drawingWidth(), 220, 36, 28];
  const end = now + ahead;
  const at = ([patrol, cycles]) => [
    left + ((width - left - 8) * patrol) / end,
    8 + (height - bottom - 8) * (1 - memory.importance * (memory.pinned ? 1 : Math.exp(-cycles / decay))),
  ].map((value) => value.toFixed(1)).join(",");
  const y = (value) => 8 + (height - bottom - 8) * (1 - value);
  const across = (patrol) => left + ((width - left - 8) * patrol) / end;
  const fades = future.find(([, cycles]) => memory.importance * Math.exp(-cycles / decay) <= floor);
  const said = memory.pinned ? "It is pinned and does not fade."
    : fades ? (fades[0] === now ? "It has faded." : `Unless it is recalled, it fades away in ${number(fades[0] - now)} patrols.`) : "";
  return h("figure", { class: "curve" },
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Importance by patrol. ${said}` },
      [0, 0.5, 1].map((value) => [
        svg("line", { x1: left, x2: width - 8, y1: y(value), y2: y(value), class: "ring" }),
        svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value),
      ]),
      svg("line", { x1: left, x2: width - 8, y1: y(floor), y2: y(floor), class: "floor" }),
      svg("polyline", { points: past.map(at).join(" "), class: "past" }),
      svg("polyline", { points: future.map(at).join(" "), class: "future" }),
      used.slice(-60).map((patrol) => svg("circle", { cx: across(patrol), cy: y(memory.importance), r: 4, class: "recall" })),
      svg("line", { x1: across(now), x2: across(now), y1: 8, y2: height - bottom, class: "now" }),
      svg("text", { x: across(now), y: height - 8, "text-anchor": now < end / 8 ? "start" : "middle" }, "now"),
      svg("text", { x: width - 8, y: height - 8, "text-anchor": "end" }, `in ${number(ahead)} patrols`)),
    h("figcaption", {}, said, used.length ? " Dots: when it was recalled." : ""));
}

/** A memory's life: when each version was true, and what happened, a line a kind. `versions`: { text, truth, valid_from, valid_until, isThis }; `happened`: [[name, moments]]. */
export function lifeline(versions, happened) {
  const now = asOfMoment() ?? Date.now();
  const lines = happened.map(([name, moments]) => [name, moments.map(Date.parse)]).filter(([, moments]) => moments.length);
  const times = [...versions.flatMap((version) => [version.valid_from, version.valid_until]).filter(Boolean).map(Date.parse), ...lines.flatMap(([, moments]) => moments)];
  const [first, last] = [Math.min(...times, now - 36e5), Math.max(...times, now)];
  const [width, left, row, top] = [drawingWidth(), 92, 26, 6];
  const height = top + row * (versions.length + lines.length) + 26;
  const across = (at) => left + 8 + ((width - left - 24) * (at - first)) / (last - first);
  const middle = (place) => top + row * place + row / 2;
  const label = (place, text) => svg("text", { x: left - 6, y: middle(place) + 4, "text-anchor": "end" }, text);
  const said = [...versions.map((version) => `${version.truth}${version.valid_from ? ` since ${dayOf(version.valid_from)}` : ""}${version.valid_until ? ` until ${dayOf(version.valid_until)}` : ""}`), ...lines.map(([name, moments]) => `${name}: ${number(moments.length)}`)].join("; ");
  const isShort = last - first < 3 * 864e5;
  const shown = (at) => (isShort ? momentOf(at) : dayOf(at));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "lifeline", role: "img", "aria-label": `Its life. ${said}` },
    versions.map((version, place) => {
      const from = across(version.valid_from ? Date.parse(version.valid_from) : first);
      const until = across(version.valid_until ? Date.parse(version.valid_until) : Math.max(now, first));
      return [label(place, version.isThis ? "true" : version.isLater ? "then" : "before"),
        svg("rect", { x: Math.min(from, until), y: middle(place) - 6, width: Math.max(4, until - from), height: 12, rx: 6, class: `truth ${version.truth}` }, svg("title", {}, version.text))];
    }),
    lines.map(([name, moments], place) => {
      const y = middle(versions.length + place);
      return [svg("line", { x1: left + 8, x2: width - 16, y1: y, y2: y, class: "ring" }), label(versions.length + place, name),
        moments.slice(-200).map((at) => svg("circle", { cx: across(at), cy: y, r: 4.5, class: "event-mark" }, svg("title", {}, momentOf(at))))];
    }),
    svg("line", { x1: across(now), x2: across(now), y1: top, y2: height - 22, class: "now" }),
    svg("text", { x: left + 8, y: height - 6 }, shown(first)),
    svg("text", { x: width - 8, y: height - 6, "text-anchor": "end" }, last > now ? shown(last) : state.asOf ? dayOf(now) : "now"));
}

/** Columns with a title each: [label, parts as [name, value, class]]. */
export function columns(title, bars, unit = "") {
  const [width, height, bottom] = [drawingWidth(), 180, 22];
  const most = Math.max(1e-9, ...bars.map(([, parts]) => parts.reduce((sum, [, value]) => sum + value, 0)));
  const step = width / Math.max(1, bars.length);
  const total = bars.reduce((sum, [, parts]) => sum + parts.reduce((inner, [, value]) => inner + value, 0), 0);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "columns-chart", role: "img", "aria-label": `${title}: ${number(total)} ${unit} in all` },
    bars.map(([label, parts], place) => {
      let base = height - bottom;
      const shown = parts.map(([name, value, kind]) => {
        const size = ((height - bottom - 8) * value) / most;
        base -= size;
        return svg("rect", { x: place * step + step * 0.12, y: base, width: step * 0.76, height: size, class: kind }, svg("title", {}, `${label} · ${name}: ${number(value)} ${unit}`));
      });
      const every = Math.ceil(bars.length / 10);
      return [shown, place % every === 0 && svg("text", { x: (place + 0.5) * step, y: height - 5, "text-anchor": "middle" }, label)];
    }));
}
