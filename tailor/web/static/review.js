// Correcting in place, on the review and the team page.

import { call, element, page, pictureOf } from "./api.js";
import { Picker } from "./picker.js";

const byId = (id) => document.getElementById(id);
const dialog = byId("correct");
let opener = null;
let saving = false;

const labelText = (label) => label.join(", ") || "none of these";

const picker = new Picker(byId("correct-picker"), page.classes, { multi: page.multi, labelId: "correct-title", picked: save });

function open(button) {
  opener = button;
  const tile = button.closest(".tile");
  byId("correct-name").textContent = button.dataset.id;
  byId("correct-problem").textContent = "";
  const image = tile.querySelector("img");
  const copy = image ? element("img", { src: pictureOf(button.dataset.id, 1600), alt: image.alt }) : tile.querySelector(".snippet").cloneNode(true);
  byId("correct-shown").replaceChildren(copy);
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
  byId("correct-problem").textContent = "";
  try {
    await call(settling ? "/api/settle" : "/api/answer", { id, label });
  } catch (error) {
    if (!dialog.open) open(button);
    byId("correct-problem").textContent = `${id} was not saved: ${error.message}.`;
    return;
  } finally {
    saving = false;
  }
  button.dataset.label = JSON.stringify(label);
  button.querySelector(".now").textContent = labelText(label);
  button.closest(".tile").classList.add("corrected");
  byId("announce").textContent = `${id} is now ${labelText(label)}`;
  if (opener === button) dialog.close();
}

for (const button of document.querySelectorAll("button.correct")) button.addEventListener("click", () => open(button));
byId("correct-cancel").addEventListener("click", () => dialog.close());
byId("correct-none")?.addEventListener("click", () => save([]));
byId("correct-save")?.addEventListener("click", () => picker.confirm());
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
