// An example on the screen: a picture, a text, or the values of an embedding.

import { element, pictureOf } from "./api.js";

const PAGE_SIDE = 1600; // pixels of a picture's longer side
const ZOOM_SIDE = 4096; // once someone zooms in
const RETRY_PAUSE = 2000; // milliseconds before a picture that did not come is asked for again
const TRIES = 3; // for one that comes and can't be drawn; and before one that does not come may be skipped unseen
const TINY = 160; // pixels below which a picture is shown with hard edges

// What stands for an item: {node, ready, readable, awaited, skippable, dropped}. A picture begins to load at once.
//   ready     settled once the node can be drawn
//   readable  whether there is anything to label; known once it is ready
//   awaited   what it is waiting for, in words; changed(view) is called when these change
//   skippable whether it may be skipped before it is ready: it alone does not come, time and again
//   dropped   to be set once nobody looks at it any more: no more tries
export function prepare(item, changed = () => {}) {
  if (item.shown.kind === "image") return picture(item, changed);
  const draw = { text, vector: values }[item.shown.kind];
  const node = draw ? draw(item) : unreadable(item.shown.reason);
  return { node, ready: Promise.resolve(), readable: Boolean(draw), awaited: "" };
}

function picture(item, changed) {
  // sync: the frame that shows the node shows the picture
  const image = element("img", { alt: `Picture ${item.id}`, draggable: "false", class: "picture", decoding: "sync" });
  image.addEventListener("load", () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) < TINY));
  const view = { node: image, readable: true, awaited: "Loading the picture" };
  view.ready = load(image, pictureOf(item.id, PAGE_SIDE), view, changed).then((reason) => {
    if (!reason) return;
    view.node = unreadable(reason);
    view.readable = false;
    image.replaceWith(view.node);
  });
  return view;
}

// Why the picture can't be shown, or null once it is there. Whatever is not the picture's own fault is tried again.
async function load(image, url, view, changed) {
  let failures = 0;
  for (let tries = 1; !view.dropped; tries += 1) {
    image.src = url;
    try {
      await image.decode();
      return null;
    } catch { /* see why */ }
    const { reason, alone } = await inquire(url);
    if (reason) return reason;
    if (reason === "" && tries >= TRIES) return "this browser can't draw it";
    if (alone) failures += 1;
    view.skippable = failures >= TRIES;
    view.awaited = `The picture can't be fetched. Trying again …${view.skippable ? " You can skip it." : ""}`;
    changed(view);
    await new Promise((resolve) => { setTimeout(resolve, RETRY_PAUSE); });
  }
  return null;
}

// What the server says of a picture: {reason, alone}.
//   reason  why it can't be read, "" where it can, null where nothing is known
//   alone   whether the server can be reached, and yet the picture does not come: a fault there, or something blocks it
async function inquire(url) {
  try {
    const response = await fetch(url, { credentials: "same-origin" });
    if (response.status === 404) return { reason: (await response.json()).error };
    return { reason: response.ok ? "" : null, alone: response.status >= 500 };
  } catch {
    return { reason: null, alone: await canReachServer() };
  }
}

async function canReachServer() {
  try {
    return (await fetch("/static/icon.svg", { method: "HEAD", cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

// The finer version, once someone zooms in.
export function closer(image, id) {
  if (!(image instanceof HTMLImageElement) || image.dataset.close || Math.max(image.naturalWidth, image.naturalHeight) < PAGE_SIDE) return;
  image.dataset.close = "1";
  const fine = new Image();
  fine.src = pictureOf(id, ZOOM_SIDE);
  fine.decode().then(() => { image.src = fine.src; }).catch(() => {});
}

function text(item) {
  const { text: content, length } = item.shown;
  const note = length > content.length ? [element("p", { class: "note" }, `The first ${content.length} of ${length} characters`)] : [];
  return element("article", { class: "words", tabindex: "0", "aria-label": `Text ${item.id}` }, element("p", { dir: "auto" }, content), ...note);
}

function values(item) {
  const { values: shown, length } = item.shown;
  const more = length > shown.length ? ` … (${length} values)` : "";
  return element("article", { class: "numbers", tabindex: "0", "aria-label": `Embedding ${item.id}` }, element("h2", { dir: "auto" }, item.id), element("p", {}, shown.join("  ") + more));
}

function unreadable(reason) {
  return element("p", { class: "unreadable", role: "note" }, `This one can't be shown: ${reason}. Skip it.`);
}
