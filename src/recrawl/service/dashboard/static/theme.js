// Sets the theme before anything is drawn. The rest of the toggle is in dashboard.js.
"use strict";
(() => {
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* storage may be closed */ }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
