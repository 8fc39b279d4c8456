// The labelling page. What comes next is loaded already, so a key shows it at once; the answer travels meanwhile.

import { call, el, page, Refused } from "./api.js";
import { Outbox } from "./outbox.js";
import { Panel } from "./panel.js";
import { Picker } from "./picker.js";
import { closer, prepare } from "./show.js";
import { Zoom } from "./zoom.js";

const FEW = 3; // loaded ahead to begin with: the fewer, the more each choice knows of the answers before it
const MOST = 12;
const POLL = 400; // milliseconds between two looks while the next round is prepared
const REST = 5000; // and when there is nothing: someone may leave, or pictures may be added

const at = (id) => document.getElementById(id);
const mat = at("mat");
const says = (error) => error instanceof Refused ? error.message[0].toUpperCase() + error.message.slice(1) : "The server can't be reached";
// What I said: where several are asked, that is my vote, whatever label counts.
const mine = (item) => item.by === page.name ? item.label : (item.votes.find((vote) => vote.by === page.name) ?? item).label;
const announce = (text) => { at("announce").textContent = text; };

class Labelling {
  constructor() {
    this.queue = []; // loaded, not shown yet
    this.past = []; // answered, oldest first; each {item, label}
    this.back = 0; // how many steps back we are
    this.live = null; // the example to answer next
    this.ahead = FEW;
    this.panel = new Panel();
    this.zoom = new Zoom(mat, (scale) => { if (scale > 1) closer(this.zoom.target, this.shown?.id); });
    this.outbox = new Outbox(`tailor:${page.project}:${page.name}:`, () => this.drawOutbox());
    this.offer(page.classes);
    for (const [id, act] of Object.entries(this.actions())) at(id)?.addEventListener("click", act);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  // The classes to choose from. They can change while the page is open.
  offer(classes) {
    if (this.picker && classes.join("\n") === this.picker.classes.join("\n")) return;
    const label = this.picker ? [...this.picker.chosen].filter((name) => classes.includes(name)) : [];
    this.picker = new Picker(at("picker"), classes, {
      multi: page.multi, labelId: "question", picked: (answer) => this.answer(answer),
    });
    this.picker.reset(label);
  }

  actions() {
    return {
      back: () => this.goBack(),
      skip: () => this.skip(),
      none: () => this.none(),
      save: () => this.picker.confirm(),
      closer: () => this.zoom.by(this.zoom.scale > 1 ? 0 : 2.5),
    };
  }

  async begin() {
    this.drawOutbox();
    this.outbox.pump();
    try {
      const { items } = await call("/api/history?n=20");
      this.past = items.reverse().map((item) => ({ item, label: mine(item) }));
    } catch { /* nothing to go back to */ }
    await this.fill();
  }

  // ---------------------------------------------------------------- what comes next

  async fill() {
    if (this.filling) this.again = true; // something was answered meanwhile: look once more after this
    if (this.filling || this.queue.length >= this.ahead) return;
    this.filling = true;
    this.again = false;
    clearTimeout(this.timer);
    const began = performance.now();
    try {
      const handed = await call(`/api/next?n=${Math.min(50, this.ahead + 1 + this.outbox.size)}`);
      this.state = handed;
      this.offer(handed.classes);
      for (const item of handed.items) if (this.isNew(item.id, began)) this.queue.push({ ...item, node: prepare(item) });
      if (!this.live) {
        this.advance();
        if (!this.back) this.draw();
      }
      if (handed.state === "stopped") this.soon(REST);
      else if (handed.state === "preparing" || !this.live) this.soon(POLL);
    } catch (error) {
      if (!this.shown) this.drawMessage("Nothing new can be shown", `${says(error)}. Trying again …`);
      this.soon(Math.max(2000, error.wait ?? 0));
    } finally {
      this.filling = false;
    }
    if (this.again) this.fill();
  }

  soon(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fill(), milliseconds);
  }

  // The server may have written its list before it heard of the last answers.
  isNew(id, began) {
    const known = this.live?.id === id || this.queue.some((item) => item.id === id);
    return !known && !this.outbox.answered(id, began);
  }

  advance() {
    if (!this.queue.length && this.live) this.ahead = Math.min(MOST, this.ahead + 2); // ran dry: load more from now on
    this.live = this.queue.shift() ?? null;
  }

  // ---------------------------------------------------------------- showing

  get shown() { return this.back ? this.past[this.past.length - this.back].item : this.live; }

  draw() {
    if (this.back) this.show(this.shown, this.past[this.past.length - this.back].label);
    else if (this.live) this.show(this.live, null);
    else this.drawWaiting(this.state ?? { state: "preparing" });
  }

  show(item, label) {
    const node = item.node ?? prepare(item);
    item.node = undefined;
    mat.replaceChildren(node);
    mat.removeAttribute("aria-busy");
    document.body.classList.remove("done");
    this.zoom.reset(node instanceof HTMLImageElement ? node : null);
    this.picker.reset(label ?? []);
    at("name").textContent = item.id;
    document.body.classList.toggle("revisiting", this.back > 0);
    at("question").textContent = this.back ? this.pastQuestion(label) : page.question;
    at("skip-word").textContent = this.back ? "Keep it" : "Skip";
    at("back").disabled = this.back >= this.past.length;
    this.picker.focus();
    this.panel.why(item.id);
  }

  pastQuestion(label) {
    if (label === null) return "You skipped this one";
    return label.length ? `You said: ${label.join(", ")}` : "You said: none of these";
  }

  drawWaiting({ state, reason }) {
    if (state === "stopped") {
      const text = reason ? `${reason[0].toUpperCase()}${reason.slice(1)}.` : "Nothing is left to label.";
      const next = el("div", { class: "next" },
        el("a", { href: "/review", class: "button" }, "Look through the labels"), el("a", { href: "/export", class: "button" }, "Export them"));
      this.drawMessage("That's it", text, next, true);
    } else {
      this.drawMessage("Choosing the next ones", "The model learns from your answers. This takes a moment.", el("span", { class: "spinner" }));
    }
  }

  drawMessage(title, text, more = "", done = false) {
    if (mat.querySelector(".message p")?.textContent === text) return; // it says so already
    mat.replaceChildren(el("div", { class: "message" }, el("h2", {}, title), el("p", {}, text), more));
    mat.setAttribute("aria-busy", "true");
    this.zoom.reset();
    at("name").textContent = "";
    at("question").textContent = page.question;
    document.body.classList.toggle("done", done);
    this.panel.nothing();
    at("back").disabled = !this.past.length;
    this.picker.reset();
    announce(`${title}. ${text}`);
  }

  drawOutbox() {
    const { size, trouble, refused, kept, signedOut } = this.outbox;
    const box = at("outbox");
    const words = [];
    if (trouble && size) words.push(`${size} ${size === 1 ? "answer is" : "answers are"} not saved yet: ${trouble}. ${signedOut ? "Sign in again; nothing is lost." : `${size === 1 ? "It is" : "They are"} kept here and sent again …`}`);
    if (!kept && size) words.push("This browser stores nothing: keep the page open until all is saved.");
    for (const { id, why } of refused) words.push(`The answer to ${id} was not taken: ${why}.`);
    box.hidden = !words.length;
    const text = words.join(" ");
    if (at("outbox-text").textContent !== text) at("outbox-text").textContent = text;
    at("outbox-close").hidden = !refused.length;
    at("sign-in").hidden = !signedOut;
    at("saved").dataset.state = size ? (trouble ? "stuck" : "sending") : "saved";
    at("saved").textContent = size ? (trouble ? `${size} not saved` : "Saving …") : "All saved";
    document.documentElement.dataset.acknowledged = this.outbox.acknowledged;
    if (this.outbox.latest) this.panel.soon();
  }

  // ---------------------------------------------------------------- answering

  answer(label) {
    const item = this.shown;
    if (!item) return;
    this.outbox.put(item.id, label);
    announce(label === null ? "Skipped" : label.length ? label.join(", ") : "None of these");
    if (this.back) {
      this.past[this.past.length - this.back].label = label;
      this.forward();
      return;
    }
    this.past.push({ item, label });
    if (this.past.length > 200) this.past.shift();
    this.advance();
    this.draw();
    this.fill();
  }

  goBack() {
    if (this.back >= this.past.length) return;
    this.back += 1;
    this.draw();
  }

  forward() {
    this.back -= 1;
    this.draw();
  }

  skip() {
    if (this.back) this.forward();
    else this.answer(null);
  }

  // With one class each there is nothing to say but that it can't be said.
  none() { this.answer(page.multi ? [] : null); }

  key(event) {
    const on = event.target;
    if (at("help").open || on.closest?.("input:not(.search), select, textarea")) return;
    if ((event.key === "Enter" || event.key === " ") && on.closest?.("button, a, summary") && !on.closest("#picker")) return;
    if (event.repeat && event.key !== "ArrowDown" && event.key !== "ArrowUp" && event.key !== "Backspace") return;
    const typing = this.picker.typing;
    const acts = {
      ArrowLeft: () => this.goBack(), Backspace: () => this.goBack(), ArrowRight: () => this.skip(),
      "+": () => this.zoom.by(1.6), "=": () => this.zoom.by(1.6), "-": () => this.zoom.by(0.625),
      "?": () => at("help").showModal(),
    };
    if (!this.picker.digitsAreText || !this.picker.many) acts[0] = () => this.none();
    if (!typing && acts[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      acts[event.key]();
      event.preventDefault();
    } else if (this.picker.key(event)) {
      event.preventDefault();
    }
  }
}

const labelling = new Labelling();
at("outbox-close").addEventListener("click", () => { labelling.outbox.refused = []; labelling.drawOutbox(); });
at("help-open").addEventListener("click", () => at("help").showModal());
labelling.begin();
