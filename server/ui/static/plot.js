// Many points on a canvas, to zoom and pan: by WebGL, or in two dimensions where there is none.

const VERTEX = `attribute vec2 place; attribute vec4 color; attribute float size; uniform vec2 scale, shift; uniform float zoom;
varying vec4 shade; void main() { gl_Position = vec4(place * scale + shift, 0.0, 1.0); gl_PointSize = size * zoom; shade = color; }`;
const FRAGMENT = `precision mediump float; varying vec4 shade; void main() { float r = length(gl_PointCoord - 0.5);
if (r > 0.5) discard; float a = shade.a * smoothstep(0.5, 0.42, r); gl_FragColor = vec4(shade.rgb * a, a); }`;

export class Plot {
  /** `points`: { x, y } as Float32Array in [-1, 1], { color: Uint8Array of rgba, size: Float32Array in pixels }. */
  constructor(canvas, points, { onHover, onPick, onView, zoomY = true, margin = 0.06 } = {}) {
    Object.assign(this, { canvas, points, onHover, onPick, onView, zoomY, margin });
    this.view = { x: 0, y: 0, zoom: 1 };
    this.gl = canvas.getContext("webgl", { antialias: false, premultipliedAlpha: true });
    if (this.gl) this.#prepare(); else this.flat = canvas.getContext("2d");
    this.pointers = new Map();
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(canvas);
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY * 0.0016)); }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { if (this.drawer?.begins(event)) return; canvas.setPointerCapture(event.pointerId); this.pointers.set(event.pointerId, event); this.moved = 0; });
    canvas.addEventListener("pointermove", (event) => { if (!this.drawer?.moves(event)) this.#move(event); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => {
      if (this.drawer?.ends(event)) return;
      if (end === "pointerup" && this.pointers.size === 1 && this.moved < 4) { const index = this.nearest(event.offsetX, event.offsetY); if (index >= 0) this.onPick?.(index); }
      this.pointers.delete(event.pointerId);
    });
    canvas.addEventListener("pointerleave", () => this.onHover?.(-1));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #prepare() {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.uniforms = Object.fromEntries(["scale", "shift", "zoom"].map((name) => [name, gl.getUniformLocation(program, name)]));
    this.program = program;
    this.buffers = {};
    this.upload();
  }

  /** After the points have changed. */
  upload() {
    const { gl, points } = this;
    if (gl) {
      const place = new Float32Array(points.x.length * 2);
      for (let index = 0; index < points.x.length; index++) { place[2 * index] = points.x[index]; place[2 * index + 1] = points.y[index]; }
      for (const [name, data, length, type, unit] of [["place", place, 2, gl.FLOAT, false], ["color", points.color, 4, gl.UNSIGNED_BYTE, true], ["size", points.size, 1, gl.FLOAT, false]]) {
        this.buffers[name] ??= gl.createBuffer();
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
        const attribute = gl.getAttribLocation(this.program, name);
        gl.enableVertexAttribArray(attribute);
        gl.vertexAttribPointer(attribute, length, type, unit, 0, 0);
      }
    }
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.#paint(); });
  }

  #scales() {
    const inner = 1 - this.margin;
    return [this.view.zoom * inner, (this.zoomY ? this.view.zoom : 1) * inner];
  }

  #paint() {
    const { canvas, gl, points, view } = this;
    const density = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * density), Math.round(canvas.clientHeight * density)];
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const [sx, sy] = this.#scales();
    const grow = density * Math.min(3, view.zoom ** 0.4);
    if (gl) {
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(this.uniforms.scale, sx, sy);
      gl.uniform2f(this.uniforms.shift, -view.x * sx, -view.y * sy);
      gl.uniform1f(this.uniforms.zoom, grow);
      gl.drawArrays(gl.POINTS, 0, points.x.length);
    } else {
      const flat = this.flat;
      flat.clearRect(0, 0, width, height);
      for (let index = 0; index < points.x.length; index++) {
        const x = (((points.x[index] - view.x) * sx + 1) / 2) * width, y = ((1 - (points.y[index] - view.y) * sy) / 2) * height;
        if (x < 0 || y < 0 || x > width || y > height || !points.color[4 * index + 3]) continue;
        const size = points.size[index] * grow;
        flat.fillStyle = `rgb(${points.color[4 * index]} ${points.color[4 * index + 1]} ${points.color[4 * index + 2]} / ${points.color[4 * index + 3] / 255})`;
        flat.fillRect(x - size / 2, y - size / 2, size, size);
      }
    }
    if (!this.painted) { this.painted = true; performance.mark("plot painted"); }
    this.onView?.(this.range());
  }

  /** What is in view, in the points' own measure. */
  range() {
    const [sx, sy] = this.#scales();
    return { left: this.view.x - 1 / sx, right: this.view.x + 1 / sx, bottom: this.view.y - 1 / sy, top: this.view.y + 1 / sy };
  }

  toData(offsetX, offsetY) {
    const [sx, sy] = this.#scales();
    return [((offsetX / this.canvas.clientWidth) * 2 - 1) / sx + this.view.x, (1 - (offsetY / this.canvas.clientHeight) * 2) / sy + this.view.y];
  }

  zoomAt(offsetX, offsetY, factor) {
    const before = this.toData(offsetX, offsetY);
    this.view.zoom = Math.max(1, Math.min(400, this.view.zoom * factor));
    const after = this.toData(offsetX, offsetY);
    this.pan(before[0] - after[0], this.zoomY ? before[1] - after[1] : 0);
  }

  zoomBy(factor) { this.zoomAt(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, factor); }

  pan(dx, dy) {
    const limit = (value) => Math.max(-1, Math.min(1, value));
    this.view.x = this.view.zoom === 1 ? 0 : limit(this.view.x + dx);
    if (this.zoomY) this.view.y = this.view.zoom === 1 ? 0 : limit(this.view.y + dy);
    this.draw();
  }

  reset() { this.view = { x: 0, y: 0, zoom: 1 }; this.draw(); }

  #move(event) {
    if (!this.pointers.has(event.pointerId)) { this.onHover?.(this.nearest(event.offsetX, event.offsetY), event); return; }
    const last = this.pointers.get(event.pointerId);
    const [sx, sy] = this.#scales();
    const across = [event.offsetX - last.offsetX, event.offsetY - last.offsetY];
    this.moved += Math.abs(across[0]) + Math.abs(across[1]);
    if (this.pointers.size === 1) this.pan((-2 * across[0]) / this.canvas.clientWidth / sx, (2 * across[1]) / this.canvas.clientHeight / sy);
    else {
      const other = [...this.pointers.entries()].find(([id]) => id !== event.pointerId)[1];
      const apart = (one) => Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY) || 1;
      this.zoomAt((event.offsetX + other.offsetX) / 2, (event.offsetY + other.offsetY) / 2, apart(event) / apart(last));
    }
    this.pointers.set(event.pointerId, event);
  }

  #key(event) {
    const step = 0.25 / this.view.zoom;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
    else if (event.key === "-") this.zoomBy(1 / 1.5);
    else if (event.key === "0" || event.key === "Home") this.reset();
    else if (moves[event.key]) this.pan(...moves[event.key]);
    else return;
    event.preventDefault();
  }

  /** The point nearest to a place, within 14 pixels; -1 if there is none. */
  nearest(offsetX, offsetY) {
    const { points, canvas } = this;
    const [x, y] = this.toData(offsetX, offsetY);
    const [sx, sy] = this.#scales();
    const [wide, high] = [(sx * canvas.clientWidth) / 2, (sy * canvas.clientHeight) / 2];
    let best = -1, least = 14 ** 2;
    for (let index = 0; index < points.x.length; index++) {
      const dx = (points.x[index] - x) * wide, dy = (points.y[index] - y) * high, apart = dx * dx + dy * dy;
      if (apart < least && points.color[4 * index + 3]) { least = apart; best = index; }
    }
    return best;
  }

  close() { this.sizes.disconnect(); this.gl?.getExtension("WEBGL_lose_context")?.loseContext(); }
}
