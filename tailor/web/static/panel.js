// The numbers beside the picture. The server draws them; here they are fetched and put in place.

import { call, el } from "./api.js";

const EVERY = 5000; // milliseconds
const SOON = 800;

export class Panel {
  constructor() {
    this.box = document.getElementById("panel");
    this.reason = document.getElementById("why");
    this.refresh();
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.refresh(); });
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(() => { this.waiting = false; this.refresh(); }, SOON);
  }

  async refresh() {
    clearTimeout(this.timer);
    try {
      if (!document.hidden) {
        const response = await fetch("/panel", { credentials: "same-origin" });
        if (response.ok && !response.redirected) this.draw(await response.text());
      }
    } catch { /* the outbox says what is wrong */ }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), EVERY);
  }

  draw(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    for (const card of fresh.querySelectorAll("[data-card]")) {
      const mine = this.box.querySelector(`[data-card="${card.dataset.card}"]`);
      if (!mine || mine.innerHTML === card.innerHTML) continue;
      for (const open of mine.querySelectorAll("details[open]")) {
        card.querySelector(`details[data-name="${open.dataset.name}"]`)?.setAttribute("open", "");
      }
      mine.hidden = card.hidden;
      mine.replaceChildren(...card.childNodes);
    }
  }

  async why(id) {
    this.about = id;
    clearTimeout(this.whyTimer);
    this.whyTimer = setTimeout(() => this.explain(id), 120); // not for those that are only passed by
  }

  nothing() {
    this.about = null;
    clearTimeout(this.whyTimer);
    this.reason.replaceChildren(el("p", { class: "soft" }, "…"));
    document.getElementById("guess").hidden = true;
  }

  async explain(id) {
    try {
      const why = await call(`/api/why?id=${encodeURIComponent(id)}`);
      if (this.about === id) this.drawWhy(why);
    } catch { /* it can be labelled without */ }
  }

  drawWhy(why) {
    this.reason.replaceChildren(...why.sentences.map((text) => el("p", { dir: "auto" }, text)));
    const guesses = Object.entries(why.predicted);
    const box = document.getElementById("guess");
    box.hidden = !guesses.length;
    document.getElementById("guesses").replaceChildren(
      ...guesses.map(([name, share]) => el("li", {}, el("span", { dir: "auto" }, name), el("span", {}, `${Math.round(share * 100)}%`))),
    );
  }
}
