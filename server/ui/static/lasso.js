// A selection on a plot: a loop drawn around points, or all that is in view.

import { svg } from "./dom.js";

const LEAST_PIXELS = 6;

export class Lasso {
  /** Draws on `surface`, an SVG above the canvas. `onSelect` gets the places of the points; `isOn` says whether a drag draws without a key. */
  constructor(plot, surface, onSelect) {
    Object.assign(this, { plot, surface, onSelect, isOn: false, path: null });
    this.shape = svg("polygon", {});
    surface.append(this.shape);
    plot.drawer = this;
  }

  begins(event) {
    if (!(this.isOn || event.shiftKey) || event.button !== 0) return false;
    if (this.path === null) {
      this.plot.canvas.setPointerCapture(event.pointerId);
      this.pointer = event.pointerId;
      this.path = [[event.offsetX, event.offsetY]];
    }
    return true;
  }

  moves(event) {
    if (this.path === null) return false;
    if (event.pointerId !== this.pointer) return true;
    const [x, y] = this.path.at(-1);
    if (Math.hypot(event.offsetX - x, event.offsetY - y) >= 3) this.path.push([event.offsetX, event.offsetY]);
    this.shape.setAttribute("points", this.path.map((corner) => corner.join(",")).join(" "));
    return true;
  }

  ends(event) {
    if (this.path === null) return false;
    if (event.pointerId !== this.pointer) return true;
    const corners = this.path;
    this.path = null;
    this.shape.setAttribute("points", "");
    const across = (axis) => Math.max(...corners.map((corner) => corner[axis])) - Math.min(...corners.map((corner) => corner[axis]));
    if (event.type === "pointerup" && Math.max(across(0), across(1)) >= LEAST_PIXELS) this.onSelect(this.#within(corners.map(([x, y]) => this.plot.toData(x, y))));
    return true;
  }

  /** All points in view, for the keyboard and for a finger. */
  selectView() {
    const { left, right, bottom, top } = this.plot.range();
    this.onSelect(this.#within([[left, bottom], [right, bottom], [right, top], [left, top]]));
  }

  #within(corners) {
    const { x, y, color } = this.plot.points;
    const [left, right, bottom, top] = [0, 1].flatMap((axis) => [Math.min, Math.max].map((end) => end(...corners.map((corner) => corner[axis]))));
    const places = [];
    for (let place = 0; place < x.length; place++) {
      if (x[place] < left || x[place] > right || y[place] < bottom || y[place] > top || !color[4 * place + 3]) continue;
      if (isInside(corners, x[place], y[place])) places.push(place);
    }
    return places;
  }
}

/** By the number of sides that a ray from the point crosses. */
function isInside(corners, x, y) {
  let inside = false;
  for (let here = 0, before = corners.length - 1; here < corners.length; before = here++) {
    const [ax, ay] = corners[here], [bx, by] = corners[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
