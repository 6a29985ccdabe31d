// Before the first paint, so that the page does not flash in the other theme.
"use strict";
const THEME_KEY = "breakscope-theme";
try {
  const stored = localStorage.getItem(THEME_KEY);
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
} catch {
  // Storage is refused to some local files: the system's theme stands.
}
