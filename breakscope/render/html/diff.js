// On paper nothing can be opened, so what is folded is opened there, and only there.
"use strict";
(() => {
let opened = [];
function open() {
  if (opened.length) return;
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const row of opened) row.open = true;
}
function close() {
  for (const row of opened) row.open = false;
  opened = [];
}
addEventListener("beforeprint", open);
addEventListener("afterprint", close);
matchMedia("print").addEventListener("change", (event) => (event.matches ? open() : close()));
})();
