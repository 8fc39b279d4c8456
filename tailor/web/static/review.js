// Correcting in place, on the review and the team page.

import { call, el, page, pictureOf } from "./api.js";
import { Picker } from "./picker.js";

const at = (id) => document.getElementById(id);
const dialog = at("correct");
let opener = null;
let saving = false;

const words = (label) => label.join(", ") || "none of these";

const picker = new Picker(at("correct-picker"), page.classes, { multi: page.multi, labelId: "correct-title", picked: save });

function open(button) {
  opener = button;
  const tile = button.closest(".tile");
  at("correct-name").textContent = button.dataset.id;
  at("correct-problem").textContent = "";
  const image = tile.querySelector("img");
  const copy = image ? el("img", { src: pictureOf(button.dataset.id, 1600), alt: image.alt }) : tile.querySelector(".snippet").cloneNode(true);
  at("correct-shown").replaceChildren(copy);
  picker.reset(JSON.parse(button.dataset.label) ?? []);
  dialog.showModal();
  picker.focus();
}

// One at a time: a second key must neither overtake the first nor land on what is opened next.
async function save(label) {
  if (saving) return;
  saving = true;
  const button = opener;
  const { id } = button.dataset;
  const settling = "settle" in button.dataset;
  at("correct-problem").textContent = "";
  try {
    await call(settling ? "/api/settle" : "/api/answer", { id, label });
  } catch (error) {
    if (!dialog.open) open(button);
    at("correct-problem").textContent = `${id} was not saved: ${error.message}.`;
    return;
  } finally {
    saving = false;
  }
  button.dataset.label = JSON.stringify(label);
  button.querySelector(".now").textContent = words(label);
  button.closest(".tile").classList.add("corrected");
  at("announce").textContent = `${id} is now ${words(label)}`;
  if (opener === button) dialog.close();
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
