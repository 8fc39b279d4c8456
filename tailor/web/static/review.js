// Correcting in place, on the review and the team page.

import { call, el, page, pictureOf } from "./api.js";
import { Picker } from "./picker.js";

const at = (id) => document.getElementById(id);
const dialog = at("correct");
let tile = null;
let opener = null;

const words = (label) => label.join(", ") || "none of these";

const picker = new Picker(at("correct-picker"), page.classes, { multi: page.multi, labelId: "correct-title", picked: save });

function open(button) {
  opener = button;
  tile = button.closest(".tile");
  at("correct-name").textContent = button.dataset.id;
  at("correct-problem").textContent = "";
  const image = tile.querySelector("img");
  const copy = image ? el("img", { src: pictureOf(button.dataset.id, 1600), alt: image.alt }) : tile.querySelector(".snippet").cloneNode(true);
  at("correct-shown").replaceChildren(copy);
  picker.reset(JSON.parse(button.dataset.label) ?? []);
  dialog.showModal();
  picker.focus();
}

async function save(label) {
  const settling = "settle" in opener.dataset;
  try {
    await call(settling ? "/api/settle" : "/api/answer", { id: opener.dataset.id, label });
  } catch (error) {
    at("correct-problem").textContent = `Not saved: ${error.message}.`;
    return;
  }
  opener.dataset.label = JSON.stringify(label);
  opener.querySelector(".now").textContent = words(label);
  if (!settling) opener.setAttribute("aria-label", `${opener.dataset.id}: ${words(label)}. Correct`);
  tile.classList.add("corrected");
  at("announce").textContent = `${opener.dataset.id} is now ${words(label)}`;
  dialog.close();
}

for (const button of document.querySelectorAll("button.correct")) button.addEventListener("click", () => open(button));
at("correct-cancel").addEventListener("click", () => dialog.close());
at("correct-none")?.addEventListener("click", () => save([]));
at("correct-save")?.addEventListener("click", () => picker.confirm());
dialog.addEventListener("close", () => opener?.focus());
dialog.addEventListener("keydown", (event) => {
  const outside = event.target.closest("button") && !event.target.closest("#correct-picker");
  if (outside && (event.key === "Enter" || event.key === " ")) return;
  if (event.key === "Escape" && !picker.typing) return;
  if (picker.key(event)) event.preventDefault();
});
for (const select of document.querySelectorAll(".filters select, .filters input")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
