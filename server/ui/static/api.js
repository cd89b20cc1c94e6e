// The page's data, and the tools by which it changes something.

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

export async function get(path, parameters = {}, signal) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null));
  return answer(await fetch(`api/${path}${query.size ? `?${query}` : ""}`, { signal, credentials: "same-origin" }));
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
