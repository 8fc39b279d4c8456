// Every visible text whose contrast with what is behind it is below 4.5 : 1 (3 : 1 for large text).
function poorContrast() {
  const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const style = getComputedStyle(element);
    if (!own || !element.checkVisibility() || element.closest(":disabled, .unseen, .jump, script, option")) continue;
    const paint = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(numbers(paint)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio >= (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) continue;
    poor.push(`${element.tagName} ${element.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
}

// Everything that can be used or seen and has no name that could be read out.
function nameless() {
  const kinds = "button, a[href], input:not([type=hidden]), select, summary, dialog, img, [role=img], section, aside, nav";
  const found = [...document.querySelectorAll(kinds)];
  return found
    .filter((element) => element.checkVisibility() || element.tagName === "DIALOG")
    .filter((element) => element.getAttribute("alt") !== "") // for decoration, said so
    .filter((element) => {
      const ids = (element.getAttribute("aria-labelledby") || "").split(" ");
      const labels = ids.map((id) => document.getElementById(id)?.textContent || "").join("");
      const own = ["aria-label", "alt"].map((name) => element.getAttribute(name));
      const names = [...own, labels, element.textContent, element.labels?.[0]?.textContent];
      return !names.some((name) => name && name.trim());
    })
    .map((element) => element.outerHTML.slice(0, 120));
}
