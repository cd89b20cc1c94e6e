// The page's data, and the tools by which it changes something.

import { state } from "./parts.js";

export class Refused extends Error {
  constructor(message, status, login) { super(message); this.status = status; this.login = login; }
}

async function answer(response) {
  let content = {};
  try { content = await response.json(); } catch { /* an error without a body */ }
  if (!response.ok) {
    const text = typeof content.error === "string" ? content.error : content.error?.message;
    throw new Refused(text ?? `The server answered with ${response.status}.`, response.status, content.login);
  }
  return content;
}

/** Data of a view, as of the date that is looked at. */
export async function get(path, parameters = {}, signal) {
  return answer(await ask(path, parameters, signal));
}

function ask(path, parameters, signal) {
  const values = Object.entries({ as_of: state.asOf, ...parameters }).filter(([, value]) => value !== "" && value !== null);
  const query = new URLSearchParams(values).toString();
  return fetch(`api/${path}${query ? `?${query}` : ""}`, { signal, credentials: "same-origin" });
}

/** Data that come in parts: `receive` is called with each as it arrives. */
export async function getParts(path, receive, signal) {
  const response = await ask(path, {}, signal);
  if (!response.ok) return answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines) receive(JSON.parse(line));
  }
}

async function post(path, content, headers = {}, signal) {
  return answer(await fetch(`api/${path}`, {
    method: "POST", credentials: "same-origin", signal,
    headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(content),
  }));
}

/** Call a tool as an agent does. Arguments that are empty are left out. */
export function tool(name, values, signal) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return post(`tools/${name}`, Object.fromEntries(given), {}, signal);
}

export const loginByLink = (token) => post("login", { token });
export const loginByToken = (token) => post("login", {}, { Authorization: `Bearer ${token}` });
export const logout = () => post("logout", {});

/** Live events until `close` is called; the browser connects again by itself. */
export function listen(receive, changed) {
  const source = new EventSource("api/events");
  source.onmessage = (event) => receive(JSON.parse(event.data));
  source.onopen = () => changed(true);
  source.onerror = () => changed(false);
  return source;
}
