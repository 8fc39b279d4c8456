// Answers on their way. Each is in localStorage from the moment it is given until the server has acknowledged it,
// so that neither a lost connection, nor a reload, nor a crash on either side loses one.

import { call, Refused } from "./api.js";

const SENT = "sent"; // in place of an answer: another window has seen to it
const REMEMBERED = 1000; // ids that were answered lately: more than any list holds
const PAUSES = [300, 700, 1500, 3000, 5000]; // milliseconds before the next try

export class Outbox {
  // changed(outbox) is called whenever something is put in, sent, or stuck; elsewhere(entry) when another window has
  // put something in
  constructor(prefix, { changed, elsewhere }) {
    this.prefix = prefix;
    this.changed = changed;
    this.elsewhere = elsewhere;
    this.entries = new Map(); // key -> {id, label, ticket, shown}, in the order in which they were given
    this.others = new Map(); // the same, of other windows, which send them
    this.inherited = new Set(); // keys of answers that were given in another window, or before a reload
    this.refused = []; // {id, label, why}: the server will not take these
    this.acknowledged = 0;
    this.doneAt = new Map(); // id -> when the server had taken it
    this.trouble = null; // why the last try failed
    this.kept = true; // whether localStorage takes them
    this.sending = false;
    this.tries = 0;
    this.count = 0;
    for (const key of this.storedKeys()) {
      try {
        this.entries.set(key, JSON.parse(localStorage.getItem(key)));
        this.inherited.add(key);
      } catch { localStorage.removeItem(key); }
    }
    window.addEventListener("online", () => this.pump());
    window.addEventListener("storage", (event) => this.onStorage(event)); // of what other windows store
    window.addEventListener("beforeunload", (event) => {
      if (!this.kept && this.entries.size) event.preventDefault();
    });
  }

  storedKeys() {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(this.prefix)).sort();
    } catch {
      this.kept = false;
      return [];
    }
  }

  get size() { return this.entries.size; }

  // Whether an answer is on its way, or was until after `since`: a list asked for then may not know of it yet.
  answered(id, since) {
    for (const entry of [...this.entries.values(), ...this.others.values()]) if (entry.id === id) return true;
    return this.doneAt.get(id) > since;
  }

  // What the server has not acknowledged yet, oldest first.
  get unsaved() { return [...this.entries.values()]; }

  onStorage({ key, newValue }) {
    if (!key?.startsWith(this.prefix) || this.entries.has(key)) return;
    const entry = this.others.get(key);
    if (newValue === null || newValue === SENT) {
      this.others.delete(key);
      if (entry) this.markDone(entry.id);
      return;
    }
    try { this.others.set(key, JSON.parse(newValue)); } catch { return; }
    this.elsewhere(this.others.get(key));
  }

  markDone(id) {
    this.doneAt.set(id, performance.now());
    if (this.doneAt.size > REMEMBERED) this.doneAt.delete(this.doneAt.keys().next().value);
  }

  // entry: {id, label, ticket, shown}. What was shown is kept for going back to it after a reload; the server gets the rest.
  put(entry) {
    const stamp = String(Date.now()).padStart(15, "0") + String(this.count++).padStart(6, "0");
    const key = this.prefix + stamp + Math.random().toString(36).slice(2, 8);
    this.entries.set(key, entry);
    this.store(key, entry);
    this.changed(this);
    this.pump();
  }

  store(key, { id, label, ticket, shown }) {
    for (const entry of [{ id, label, ticket, shown }, { id, label, ticket }]) { // a long text may be what does not fit
      try {
        localStorage.setItem(key, JSON.stringify(entry));
        return;
      } catch { /* smaller, or not at all */ }
    }
    this.kept = false;
  }

  // One at a time and in order: a correction never overtakes what it corrects. With several tabs, one tab at a time.
  async pump() {
    if (this.sending || !this.entries.size) return;
    this.sending = true;
    clearTimeout(this.timer);
    try {
      if (navigator.locks) await navigator.locks.request(this.prefix, () => this.sendAll());
      else await this.sendAll();
      this.trouble = null;
      this.tries = 0;
    } catch (error) {
      this.trouble = error instanceof Refused ? error.message : "the server can't be reached";
      this.signedOut = error instanceof Refused && (error.status === 401 || error.status === 403);
      const pause = PAUSES[Math.min(this.tries++, PAUSES.length - 1)];
      this.timer = setTimeout(() => this.pump(), Math.max(pause, error.wait ?? 0));
    } finally {
      this.sending = false;
      this.changed(this);
    }
    if (this.entries.size && !this.trouble) this.pump();
  }

  async sendAll() {
    for (const [key, entry] of this.entries) {
      if (this.sentElsewhere(key)) {
        this.forget(key);
        continue;
      }
      try {
        const receipt = await call("/api/answer", { id: entry.id, label: entry.label, ticket: entry.ticket ?? null });
        this.acknowledged += 1;
        this.latest = receipt;
      } catch (error) {
        const final = error instanceof Refused && [400, 409, 413, 422].includes(error.status);
        if (!final) throw error;
        this.refused.push({ ...entry, why: error.message });
      }
      this.markDone(entry.id);
      this.forget(key, this.inherited.has(key));
      this.trouble = null;
      this.signedOut = false;
      this.changed(this);
    }
  }

  // Sent again it would undo a correction that came after it.
  sentElsewhere(key) {
    try {
      const stored = localStorage.getItem(key);
      return stored === SENT || (stored === null && this.inherited.has(key));
    } catch {
      return false;
    }
  }

  // tell: another window may hold it too.
  forget(key, tell = false) {
    this.entries.delete(key);
    try {
      if (tell) localStorage.setItem(key, SENT);
      else localStorage.removeItem(key);
    } catch { /* it was never there */ }
  }
}
