// Talking to the server: JSON in and out, the session's token with every change.

export const page = JSON.parse(document.getElementById("data").textContent);

export class Refused extends Error {
  // wait: milliseconds before which there is no use in trying again
  constructor(status, message, wait = 0) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

async function send(path, body) {
  const options = { headers: { Accept: "application/json" }, credentials: "same-origin" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.headers["X-CSRF-Token"] = page.csrf;
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  if (response.ok) return response.json();
  const wait = 1000 * (Number(response.headers.get("Retry-After")) || 0);
  let message;
  try { message = (await response.json()).error; } catch { /* no JSON */ }
  if (!message) throw new Error(`the server said ${response.status}`); // not this server: a proxy before it, say
  throw new Refused(response.status, message, wait);
}

// The session may be another one by now, or over; where no sign-in is needed a new one is free.
async function renewSession() {
  let session;
  try {
    session = await send("/api/session");
  } catch {
    await fetch("/login", { credentials: "same-origin" });
    session = await send("/api/session");
  }
  if (session.name !== page.name) throw new Refused(401, `you are now signed in as ${session.name}: reload the page`);
  page.csrf = session.csrf;
}

export async function call(path, body) {
  try {
    return await send(path, body);
  } catch (error) {
    if (!(error instanceof Refused) || (error.status !== 401 && error.status !== 403)) throw error;
    try { await renewSession(); } catch { throw error; }
    return send(path, body);
  }
}

export const pictureOf = (id, side) => `/picture?id=${encodeURIComponent(id)}&side=${side}`;

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children); // strings become text, never markup
  return node;
}
