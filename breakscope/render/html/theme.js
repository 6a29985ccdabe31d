// The theme: chosen before the first paint, so that the page does not flash in the other one, and switched by its button.
"use strict";
(() => {
const KEY = "breakscope-theme";
const root = document.documentElement;
try {
  const stored = localStorage.getItem(KEY);
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
} catch {
  // Storage is refused to some local files: the system's theme stands.
}

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const label = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    root.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Not remembered, but switched.
    }
    label();
  });
  system.addEventListener("change", label);
  label();
  button.hidden = false;
});
})();
