// Choosing classes: a button and a key each while they are few, a search box when they are many.

import { element } from "./api.js";

export const KEYS = [..."123456789abcdefghijklmnopqrstuvwxyz"];
const MOST_SHOWN = 8; // matches in the list

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// How well a name fits what was typed: smaller is better, null is not at all.
export function rank(name, typed) {
  const text = plain(name);
  if (text === typed) return 0;
  if (text.startsWith(typed)) return 1;
  if (text.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(typed))) return 2;
  if (text.includes(typed)) return 3;
  let matched = 0; // letters of what was typed, in their order
  for (const letter of text) if (letter === typed[matched]) matched += 1;
  return matched === typed.length ? 4 : null;
}

export function matches(classes, typed) {
  const wanted = plain(typed.trim());
  const ranked = [];
  for (const name of classes) {
    const fit = rank(name, wanted);
    if (fit !== null) ranked.push([fit, name.length, name]);
  }
  ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : 1));
  return ranked.map(([, , name]) => name);
}

export class Picker {
  // picked(classes): the answer. refused(): something was chosen while locked. root: an empty element. multi: any
  // number, confirmed by Enter.
  constructor(root, classes, { multi, picked, labelId, refused = () => {} }) {
    Object.assign(this, { root, classes, multi, picked, refused });
    this.chosen = new Set();
    this.recent = [];
    this.many = classes.length > KEYS.length;
    this.digitsAreText = classes.some((name) => /^\d/.test(name));
    this.root.replaceChildren();
    if (this.many) this.buildSearch(labelId);
    else this.buildButtons(labelId);
  }

  // ---------------------------------------------------------------- few classes

  buildButtons(labelId) {
    this.buttons = new Map();
    const group = element("div", { class: "choices", role: "group", "aria-labelledby": labelId });
    this.classes.forEach((name, index) => {
      const button = element(
        "button", { type: "button", class: "choice", "aria-keyshortcuts": KEYS[index], "aria-pressed": this.multi && "false" },
        element("kbd", { "aria-hidden": "true" }, KEYS[index]), element("span", { dir: "auto" }, name),
      );
      button.addEventListener("click", () => this.take(name));
      this.buttons.set(name, button);
      group.append(button);
    });
    this.root.append(group);
  }

  // ---------------------------------------------------------------- many classes

  buildSearch(labelId) {
    const listId = `${labelId}-list`;
    this.tags = element("div", { class: "tags", "aria-label": "Chosen classes", role: "group" });
    this.input = element("input", {
      type: "text", role: "combobox", class: "search", placeholder: `Type a few letters of one of ${this.classes.length} classes`,
      "aria-labelledby": labelId, "aria-controls": listId, "aria-expanded": "false", "aria-autocomplete": "list",
      autocomplete: "off", autocapitalize: "off", spellcheck: "false", dir: "auto",
    });
    this.list = element("ul", { id: listId, role: "listbox", class: "matches", "aria-labelledby": labelId });
    this.root.append(this.tags, this.input, this.list);
    this.input.addEventListener("input", () => this.search());
    this.list.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.take(this.shownMatches[Number(option.dataset.index)]);
    });
    this.search();
  }

  search() {
    const typed = this.input.value;
    this.shownMatches = (typed.trim() ? matches(this.classes, typed) : this.recent).slice(0, MOST_SHOWN);
    this.active = typed.trim() && this.shownMatches.length ? 0 : -1;
    this.drawList();
  }

  drawList() {
    const typed = this.input.value.trim();
    const options = this.shownMatches.map((name, index) => {
      const key = !typed && !this.digitsAreText ? element("kbd", { "aria-hidden": "true" }, String(index + 1)) : "";
      const id = `${this.list.id}-${index}`;
      return element("li", { role: "option", id, "data-index": index, "aria-selected": String(index === this.active) }, key, element("bdi", {}, name));
    });
    if (typed && !options.length) options.push(element("li", { class: "none" }, "No class fits"));
    if (!typed && options.length) options.unshift(element("li", { class: "none", role: "presentation" }, "Used last"));
    this.list.replaceChildren(...options);
    this.input.setAttribute("aria-expanded", String(this.shownMatches.length > 0));
    if (this.active >= 0) this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  // ---------------------------------------------------------------- both

  reset(label = []) {
    this.chosen = new Set(label);
    if (this.input) {
      this.input.value = "";
      this.search();
    }
    this.mark();
  }

  focus() { this.input?.focus(); }

  // Locked, no class can be taken: there is nothing to see yet.
  lock(locked) {
    this.locked = locked;
    for (const button of this.buttons?.values() ?? []) button.setAttribute("aria-disabled", String(locked));
  }

  get typing() { return Boolean(this.input && document.activeElement === this.input && this.input.value); }

  take(name) {
    if (name === undefined) return;
    if (this.locked) {
      this.refused();
      return;
    }
    this.recent = [name, ...this.recent.filter((other) => other !== name)].slice(0, MOST_SHOWN);
    if (!this.multi) {
      this.picked([name]);
      return;
    }
    if (!this.chosen.delete(name)) this.chosen.add(name);
    if (this.input) {
      this.input.value = "";
      this.search();
    }
    this.mark();
  }

  confirm() {
    if (this.locked) this.refused();
    else if (this.multi) this.picked(this.classes.filter((name) => this.chosen.has(name)));
  }

  mark() {
    if (this.buttons) {
      for (const [name, button] of this.buttons) {
        if (this.multi) button.setAttribute("aria-pressed", String(this.chosen.has(name)));
        else button.classList.toggle("was", this.chosen.has(name));
      }
      return;
    }
    this.tags.replaceChildren(...[...this.chosen].map((name) => {
      if (!this.multi) return element("span", { class: "tag", dir: "auto" }, name);
      const tag = element("button", { type: "button", class: "tag", "aria-label": `Remove ${name}` }, element("bdi", {}, name));
      tag.addEventListener("click", () => { this.take(name); this.focus(); });
      return tag;
    }));
  }

  // A key that belongs to choosing; true where it was used.
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return false;
    if (event.key === "Enter" && event.target instanceof HTMLButtonElement && !this.multi) return false;
    if (this.many) return this.searchKey(event);
    if (event.key === "Enter" && this.multi) return this.confirm(), true;
    const index = KEYS.indexOf(event.key.toLowerCase());
    if (index < 0 || index >= this.classes.length) return false;
    this.take(this.classes[index]);
    return true;
  }

  searchKey(event) {
    const empty = !this.input.value;
    const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (steps && this.shownMatches.length) {
      const size = this.shownMatches.length;
      this.active = this.active < 0 && steps < 0 ? size - 1 : (this.active + steps + size) % size;
      this.drawList();
      return true;
    }
    if (event.key === "Enter") {
      if (this.active >= 0) this.take(this.shownMatches[this.active]);
      else if (empty) this.confirm();
      return true;
    }
    if (event.key === "Escape") {
      this.input.value = "";
      this.search();
      return true;
    }
    if (empty && !this.digitsAreText && /^[1-9]$/.test(event.key)) {
      this.take(this.shownMatches[Number(event.key) - 1]);
      return true;
    }
    if (event.key.length === 1 && event.key !== " " && document.activeElement !== this.input) {
      this.focus(); // the letter then lands in the box
    }
    return false;
  }
}
