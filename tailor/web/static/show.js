// An example on the screen: a picture, a text, or the values of an embedding.

import { el, pictureOf } from "./api.js";

const FULL = 1600;
const CLOSE = 4096;
const TINY = 160; // pixels below which a picture is shown with hard edges

// What stands for an item; a picture begins to load at once.
export function prepare(item) {
  if (item.shown.kind === "image") return picture(item);
  if (item.shown.kind === "text") return text(item);
  if (item.shown.kind === "vector") return values(item);
  return unreadable(item.shown.reason);
}

function picture(item) {
  const image = el("img", { alt: `Picture ${item.id}`, draggable: "false", class: "picture" });
  image.addEventListener("load", () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) < TINY));
  image.addEventListener("error", () => image.replaceWith(unreadable("the picture can't be loaded")));
  image.src = pictureOf(item.id, FULL);
  image.decode().catch(() => {}); // ready to be drawn before it is needed
  return image;
}

// The finer version, once someone zooms in.
export function closer(image, id) {
  if (!(image instanceof HTMLImageElement) || image.dataset.close || Math.max(image.naturalWidth, image.naturalHeight) < FULL) return;
  image.dataset.close = "1";
  const fine = new Image();
  fine.src = pictureOf(id, CLOSE);
  fine.decode().then(() => { image.src = fine.src; }).catch(() => {});
}

function text(item) {
  const { text: content, length } = item.shown;
  const note = length > content.length ? [el("p", { class: "note" }, `The first ${content.length} of ${length} characters`)] : [];
  return el("article", { class: "words", tabindex: "0", "aria-label": `Text ${item.id}` }, el("p", {}, content), ...note);
}

function values(item) {
  const { values: shown, length } = item.shown;
  const more = length > shown.length ? ` … (${length} values)` : "";
  return el("article", { class: "numbers", tabindex: "0", "aria-label": `Embedding ${item.id}` }, el("h2", {}, item.id), el("p", {}, shown.join("  ") + more));
}

function unreadable(reason) {
  return el("p", { class: "unreadable", role: "note" }, `This one can't be shown: ${reason}. Skip it.`);
}
