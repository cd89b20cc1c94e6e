// Elements without markup: whatever a memory says becomes text, never HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Properties: `class`, `on` (events), `data`, `style` (by CSSOM), attributes; false and null are left out. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [rule, setting] of Object.entries(value)) element.style.setProperty(rule, setting);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Replace a view's element by a new one, so that an answer that the view still waits for cannot draw over it. */
export function replaceView(main, ...children) {
  const view = h("div", {}, ...children);
  main.replaceWith(view);
  showTitle(view);
}

/** The heading of what is shown becomes the title of the document. */
export function showTitle(shown) {
  document.title = `${shown.querySelector("h1")?.textContent ?? "Madeleine"} – Madeleine`;
}

/** Stored text: in the direction of its own script, without effect on what stands around it. */
export function stored(text, tag = "span", properties = {}) {
  return h(tag, { dir: "auto", ...properties, class: `stored ${properties.class ?? ""}`.trim() }, text);
}

export function button(label, action, properties = {}) {
  return h("button", { type: "button", ...properties, on: { click: action } }, label);
}

export function link(label, hash, properties = {}) {
  return h("a", { href: `#/${hash}`, ...properties }, label);
}

export function message(text, kind = "") {
  const shown = h("p", { class: `message ${kind}` }, text);
  document.getElementById("messages").append(shown);
  setTimeout(() => shown.remove(), kind === "error" ? 12000 : 5000);
}

/** A dialog that asks; `body` is a form's content. Resolves to the button's value, null if it was closed. */
export function ask(title, body, choices) {
  return new Promise((resolve) => {
    const buttons = choices.map((choice) =>
      h("button", { value: choice.value, class: choice.class ?? "", formnovalidate: choice.value === "" }, choice.label));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
      h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), body, h("div", { class: "choices" }, buttons)));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue || null); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function field(label, control, hint = "") {
  return h("label", { class: "field" }, h("span", {}, label), control, hint && h("small", {}, hint));
}
