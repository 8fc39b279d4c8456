// Light, dark, or as the system has it. Loaded before the page is drawn, so that it never flashes.
(() => {
  const key = "tailor-theme";
  const root = document.documentElement;
  const read = () => {
    try { return localStorage.getItem(key) || "auto"; } catch { return "auto"; }
  };
  const apply = (theme) => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  apply(read());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const names = { auto: "as the system", light: "light", dark: "dark" };
    const say = (theme) => {
      const text = `Colours: ${names[theme]}`;
      button.setAttribute("aria-label", `${text}. Change`);
      button.title = text;
    };
    say(read());
    button.addEventListener("click", () => {
      const order = ["auto", "light", "dark"];
      const next = order[(order.indexOf(read()) + 1) % order.length];
      try { localStorage.setItem(key, next); } catch { /* this page only */ }
      apply(next);
      say(next);
    });
  });
})();
