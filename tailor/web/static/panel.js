// The numbers beside the picture. The server draws them; here they are fetched and put in place.

import { call, element } from "./api.js";

const REFRESH_EVERY = 5000; // milliseconds
const REFRESH_SOON = 800; // after an answer

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
    setTimeout(() => { this.waiting = false; this.refresh(); }, REFRESH_SOON);
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
    this.timer = setTimeout(() => this.refresh(), REFRESH_EVERY);
  }

  draw(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    for (const card of fresh.querySelectorAll("[data-card]")) {
      const current = this.box.querySelector(`[data-card="${card.dataset.card}"]`);
      if (!current || current.innerHTML === card.innerHTML) continue;
      for (const open of current.querySelectorAll("details[open]")) {
        card.querySelector(`details[data-name="${open.dataset.name}"]`)?.setAttribute("open", "");
      }
      current.hidden = card.hidden;
      current.replaceChildren(...card.childNodes);
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
    this.reason.replaceChildren(element("p", { class: "soft" }, "…"));
    document.getElementById("guess").hidden = true;
  }

  async explain(id) {
    try {
      const why = await call(`/api/why?id=${encodeURIComponent(id)}`);
      if (this.about === id) this.drawWhy(why);
    } catch { /* it can be labelled without */ }
  }

  drawWhy(why) {
    this.reason.replaceChildren(...why.sentences.map((text) => element("p", { dir: "auto" }, text)));
    const guesses = Object.entries(why.predicted);
    const guess = document.getElementById("guess");
    guess.hidden = !guesses.length;
    document.getElementById("guesses").replaceChildren(
      ...guesses.map(([name, share]) => element("li", {}, element("span", { dir: "auto" }, name), element("span", {}, `${Math.round(share * 100)}%`))),
    );
  }
}
