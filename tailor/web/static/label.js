// The labelling page. What comes next is loaded already, so a key shows it at once; the answer travels meanwhile.

import { call, element, page, Refused } from "./api.js";
import { Outbox } from "./outbox.js";
import { Panel } from "./panel.js";
import { Picker } from "./picker.js";
import { closer, prepare } from "./show.js";
import { Zoom } from "./zoom.js";

const FEWEST_AHEAD = 3; // loaded ahead to begin with: the fewer, the more each choice knows of the answers before it
const MOST_AHEAD = 12;
const REMEMBERED = 200; // answers to go back to
const POLL = 400; // milliseconds between two looks while the next round is prepared
const SLOW = 1000; // milliseconds after which whoever listens is told what is awaited
const LINE = 64; // pixels that an arrow key scrolls
const REST = 5000; // and when there is nothing: someone may leave, or pictures may be added

const HELD = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", " ", "Backspace"]; // keys that may be held down

const byId = (id) => document.getElementById(id);
const mat = byId("mat");
const reasonOf = (error) => error instanceof Refused ? error.message[0].toUpperCase() + error.message.slice(1) : "The server can't be reached";
// What I said: where several are asked, that is my vote, whatever label counts.
const myLabel = (item) => item.by === page.name ? item.label : (item.votes.find((vote) => vote.by === page.name) ?? item).label;
const announce = (text) => { byId("announce").textContent = text; };
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const spinner = () => element("span", { class: "spinner" });
const drawn = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

// What an answer in the outbox was given to. A long text may not be kept with it.
function itemOf({ id, shown }) {
  const missing = page.kind === "image" ? { kind: "image" } : { kind: "unreadable", reason: "it is not kept here, reload the page" };
  return { id, shown: shown ?? missing };
}

// Which of those that count as skipped were said to be none of the classes. Remembered for this tab.
const setAside = {
  key: `tailor-none:${page.project}:${page.name}`,
  read() {
    try { return JSON.parse(sessionStorage.getItem(this.key)) ?? []; } catch { return []; }
  },
  has(id) { return this.read().includes(id); },
  remember(id, isNone) {
    const others = this.read().filter((other) => other !== id).slice(-REMEMBERED);
    try { sessionStorage.setItem(this.key, JSON.stringify(isNone ? [...others, id] : others)); } catch { /* no matter */ }
  },
};

class Labelling {
  constructor() {
    this.queue = []; // loaded, not shown yet
    this.past = []; // answered, oldest first; each {item, label}
    this.back = 0; // how many steps back we are
    this.live = null; // the example to answer next
    this.view = null; // what is on the screen, or about to be
    this.seen = false; // whether it has been drawn: nothing can be answered before
    this.ahead = FEWEST_AHEAD;
    this.panel = new Panel();
    this.zoom = new Zoom(mat, (scale) => { if (scale > 1) closer(this.zoom.target, this.shown?.id); });
    this.outbox = new Outbox(`tailor:${page.project}:${page.name}:`, {
      changed: () => this.drawOutbox(), elsewhere: (answer) => this.answeredElsewhere(answer),
    });
    this.offer(page.classes);
    for (const [id, act] of Object.entries(this.actions())) byId(id)?.addEventListener("click", act);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  // The classes to choose from. They can change while the page is open.
  offer(classes) {
    if (this.picker && classes.join("\n") === this.picker.classes.join("\n")) return;
    const label = this.picker ? [...this.picker.chosen].filter((name) => classes.includes(name)) : [];
    this.picker = new Picker(byId("picker"), classes, {
      multi: page.multi, labelId: "question", picked: (answer) => this.answer(answer), refused: () => this.mayAnswer([]),
    });
    this.picker.reset(label);
    this.lock(!this.seen);
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
    const unsaved = this.outbox.unsaved; // the server may not know of these when it tells what was answered
    this.outbox.pump();
    try {
      const { items } = await call("/api/history?n=20");
      for (const item of items.reverse()) this.remember(item, myLabel(item));
    } catch { /* nothing to go back to but what is kept here */ }
    for (const answer of unsaved) this.remember(itemOf(answer), answer.label);
    await this.fill();
  }

  // An answer, the latest one: Back goes to it first.
  remember(item, label) {
    const before = this.past.findIndex((answer) => answer.item.id === item.id);
    const complete = before >= 0 ? this.past.splice(before, 1)[0].item : item; // with its text, which an answer may lack
    this.past.push({ item: complete, label });
    if (this.past.length > REMEMBERED) this.past.shift();
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
      const next = await call(`/api/next?n=${Math.min(50, this.ahead + 1 + this.outbox.size + this.outbox.others.size)}`);
      this.state = next;
      this.offer(next.classes);
      for (const item of next.items) if (this.isNew(item.id, began)) this.queue.push({ ...item, view: this.prepare(item) });
      if (!this.live) {
        this.advance();
        if (!this.back) this.draw();
      }
      if (next.state === "stopped") this.soon(REST);
      else if (next.state === "preparing" || !this.live) this.soon(POLL);
    } catch (error) {
      if (!this.shown) this.drawMessage("Nothing new can be shown", `${reasonOf(error)}. Trying again …`);
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
    const isLoaded = this.live?.id === id || this.queue.some((item) => item.id === id);
    return !isLoaded && !this.outbox.answered(id, began);
  }

  advance() {
    if (!this.queue.length && this.live) this.ahead = Math.min(MOST_AHEAD, this.ahead + 2); // ran dry: load more from now on
    this.live = this.queue.shift() ?? null;
  }

  // ---------------------------------------------------------------- showing

  get shown() { return this.back ? this.past[this.past.length - this.back].item : this.live; }

  draw() {
    if (this.back) this.show(this.shown, this.past[this.past.length - this.back].label);
    else if (this.live) this.show(this.live, null);
    else this.drawWaiting(this.state ?? {});
  }

  prepare(item) {
    return prepare(item, (view) => { if (view === this.view) this.drawAwaited(); });
  }

  show(item, label) {
    const view = item.view ?? this.prepare(item);
    item.view = undefined;
    document.body.classList.remove("done");
    this.picker.reset(label ?? []);
    this.lookAt(view);
    byId("name").textContent = item.id;
    document.body.classList.toggle("revisiting", this.back > 0);
    byId("question").textContent = this.back ? this.pastQuestion(item.id, label) : page.question;
    byId("none").classList.toggle("was", this.back > 0 && this.saidNone(item.id, label));
    byId("skip").classList.toggle("was", this.back > 0 && label === null && !this.saidNone(item.id, label));
    byId("skip-word").textContent = this.back ? "Keep it" : "Skip";
    byId("back").disabled = this.back >= this.past.length;
    this.picker.focus();
    this.panel.why(item.id);
  }

  // Nothing can be answered before it has been on the screen: until then a spinner says what is awaited.
  async lookAt(view) {
    this.look(view);
    this.seen = false;
    this.lock(true);
    this.awaited = element("div", { class: "awaited" }, spinner(), element("p", {}, view.awaited));
    mat.replaceChildren(view.node, this.awaited);
    mat.setAttribute("aria-busy", "true");
    this.zoom.reset();
    clearTimeout(this.slow);
    this.slow = setTimeout(() => announce(view.awaited), SLOW);
    await view.ready;
    await drawn();
    if (view !== this.view) return; // another one is looked at by now
    clearTimeout(this.slow);
    this.awaited.remove();
    mat.removeAttribute("aria-busy");
    this.zoom.reset(view.node instanceof HTMLImageElement ? view.node : null);
    this.seen = true;
    this.lock(false);
  }

  // The one before is loaded no more: whoever comes back to it has it prepared anew.
  look(view) {
    if (this.view) this.view.dropped = true;
    this.view = view;
  }

  drawAwaited() {
    this.lock(!this.seen);
    this.awaited.lastChild.textContent = this.view.awaited;
    announce(this.view.awaited);
  }

  lock(locked) {
    this.picker.lock(locked);
    document.body.classList.toggle("awaiting", locked);
    for (const id of ["none", "save"]) byId(id)?.setAttribute("aria-disabled", String(locked));
    const unskippable = locked && !this.back && !this.view?.skippable; // after going back it keeps the answer
    byId("skip").setAttribute("aria-disabled", String(unskippable));
  }

  saidNone(id, label) { return page.multi ? label?.length === 0 : label === null && setAside.has(id); }

  pastQuestion(id, label) {
    if (this.saidNone(id, label)) return "You said: none of these";
    return label === null ? "You skipped this one" : `You said: ${label.join(", ")}`;
  }

  drawWaiting({ state, reason }) {
    if (state === "stopped") {
      const text = reason ? sentence(reason) : "Nothing is left to label.";
      const links = element("div", { class: "next" },
        element("a", { href: "/review", class: "button" }, "Look through the labels"));
      if (page.mayExport) links.append(element("a", { href: "/export", class: "button" }, "Export them"));
      this.drawMessage("That's it", text, links, true);
    } else if (state === "preparing") {
      const [ordinal, text] = this.past.length ? ["next", "The model learns from your answers. This takes a moment."] : ["first", "This takes a moment."];
      this.drawMessage(`Choosing the ${ordinal} ones`, reason ? `${sentence(reason)} Trying again …` : text, spinner());
    } else {
      this.drawMessage("Fetching the next ones", "Waiting for the server.", spinner());
    }
  }

  drawMessage(title, text, more = "", done = false) {
    if (mat.querySelector(".message p")?.textContent === text) return; // it says so already
    mat.replaceChildren(element("div", { class: "message" }, element("h2", {}, title), element("p", {}, text), more));
    mat.setAttribute("aria-busy", "true");
    this.look(null);
    this.seen = false;
    this.lock(true);
    clearTimeout(this.slow);
    this.zoom.reset();
    byId("name").textContent = "";
    byId("question").textContent = page.question;
    document.body.classList.toggle("done", done);
    this.panel.nothing();
    byId("back").disabled = !this.past.length;
    this.picker.reset();
    announce(`${title}. ${text}`);
  }

  drawOutbox() {
    const { size, trouble, refused, kept, signedOut } = this.outbox;
    const box = byId("outbox");
    const sentences = [];
    if (trouble && size) sentences.push(`${size} ${size === 1 ? "answer is" : "answers are"} not saved yet: ${trouble}. ${signedOut ? "Sign in again; nothing is lost." : `${size === 1 ? "It is" : "They are"} kept here and sent again …`}`);
    if (!kept && size) sentences.push("This browser stores nothing: keep the page open until all is saved.");
    for (const { id, why } of refused) sentences.push(`The answer to ${id} was not taken: ${why}.`);
    box.hidden = !sentences.length;
    const text = sentences.join(" ");
    if (byId("outbox-text").textContent !== text) byId("outbox-text").textContent = text;
    byId("outbox-close").hidden = !refused.length;
    byId("sign-in").hidden = !signedOut;
    byId("saved").dataset.state = size ? (trouble ? "stuck" : "sending") : "saved";
    byId("saved").textContent = size ? (trouble ? `${size} not saved` : "Saving …") : "All saved";
    document.documentElement.dataset.acknowledged = this.outbox.acknowledged;
    if (this.outbox.latest) this.panel.soon();
  }

  // ---------------------------------------------------------------- answering

  // none: said to be none of the classes, which with one class each is kept like a skip
  answer(label, none = false) {
    const item = this.shown;
    if (!item || !this.mayAnswer(label, none)) return;
    setAside.remember(item.id, none && !page.multi);
    this.outbox.put({ id: item.id, label, ticket: item.ticket, shown: item.shown });
    announce(label === null && !none ? "Skipped" : label?.length ? label.join(", ") : "None of these");
    if (this.back) {
      this.past[this.past.length - this.back].label = label;
      this.forward();
      return;
    }
    this.remember(item, label);
    this.advance();
    this.draw();
    this.fill();
  }

  // A skip says nothing of what is in it: it is the way past a picture that never comes.
  mayAnswer(label, none = false) {
    if (!this.seen && this.view?.skippable && label === null && !none) return true;
    if (!this.seen) announce(`Not yet. ${this.view?.awaited ?? ""}`);
    else if (!this.view.readable && label !== null) announce("This one can't be shown: it can only be skipped");
    else return true;
    return false;
  }

  // Another window of mine has answered it: it is done here too. Something else on the screen stays as it is.
  answeredElsewhere(answer) {
    const revisited = this.back ? this.past[this.past.length - this.back].item : null;
    const onScreen = (revisited ?? this.live)?.id === answer.id;
    const loaded = [this.live, ...this.queue].find((item) => item?.id === answer.id);
    this.queue = this.queue.filter((item) => item.id !== answer.id);
    if (loaded && loaded === this.live) this.advance();
    if (loaded?.view) loaded.view.dropped = true;
    if (loaded) loaded.view = undefined;
    this.remember(loaded ?? itemOf(answer), answer.label);
    if (revisited) this.back = Math.min(this.past.length, this.past.length - this.past.findIndex((past) => past.item === revisited));
    if (onScreen) {
      announce(`${answer.id} was answered in another window`);
      this.draw();
    }
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
  none() { this.answer(page.multi ? [] : null, true); }

  // A long text scrolls wherever the focus is; the arrows do so unless they choose among matches.
  scrolling({ key, target, ctrlKey, metaKey, altKey, shiftKey }) {
    const text = mat.querySelector(".words, .numbers");
    if (!text || text.scrollHeight <= text.clientHeight || ctrlKey || metaKey || altKey) return null;
    if (target.closest?.("#panel") || (key === " " && target.closest?.("button, a, input, summary"))) return null;
    const screenful = 0.9 * text.clientHeight;
    const steps = { PageDown: screenful, PageUp: -screenful, " ": shiftKey ? -screenful : screenful, Home: -text.scrollHeight, End: text.scrollHeight };
    if (!this.picker.many) Object.assign(steps, { ArrowDown: LINE, ArrowUp: -LINE });
    return key in steps ? () => text.scrollBy({ top: steps[key] }) : null;
  }

  key(event) {
    const { target } = event;
    if (byId("help").open || target.closest?.("input:not(.search), select, textarea")) return;
    if ((event.key === "Enter" || event.key === " ") && target.closest?.("button, a, summary") && !target.closest("#picker")) return;
    if (event.repeat && !HELD.includes(event.key)) return;
    const typing = this.picker.typing;
    const keyActions = {
      ArrowLeft: () => this.goBack(), Backspace: () => this.goBack(), ArrowRight: () => this.skip(),
      "+": () => this.zoom.by(1.6), "=": () => this.zoom.by(1.6), "-": () => this.zoom.by(0.625),
      "?": () => byId("help").showModal(),
    };
    if (!this.picker.digitsAreText || !this.picker.many) keyActions[0] = () => this.none();
    const scroll = typing ? null : this.scrolling(event);
    if (scroll) {
      scroll();
      event.preventDefault();
    } else if (!typing && keyActions[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      keyActions[event.key]();
      event.preventDefault();
    } else if (this.picker.key(event)) {
      event.preventDefault();
    }
  }
}

const labelling = new Labelling();
byId("outbox-close").addEventListener("click", () => { labelling.outbox.refused = []; labelling.drawOutbox(); });
byId("help-open").addEventListener("click", () => byId("help").showModal());
labelling.begin();
