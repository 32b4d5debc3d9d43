// Keeps a page up to date, draws its charts, answers keys. Without it every page still shows what it has to show.
"use strict";
(() => {
  const find = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = selector => document.querySelector(selector);
  const state = { span: "minutes", series: null, curve: null };

  // The session has ended, as all do when the service starts again.
  const signIn = () => location.assign("/login");

  // Charts
  async function json(path) {
    const answer = await fetch(path, { headers: { accept: "application/json" } });
    if (answer.status === 401) signIn();
    if (!answer.ok) throw new Error(answer.status);
    return answer.json();
  }
  async function refreshCharts() {
    if (!one("[data-chart]")) return;
    try { state.series = await json("/series?span=" + state.span); } catch { return; }
    drawCharts();
  }
  function drawCharts() {
    if (!state.series) return;
    for (const figure of find("[data-chart]")) {
      const names = figure.dataset.names.split("|");
      const chosen = figure.dataset.chart.split(" ").map(name => state.series[name]);
      Charts.lines(figure, state.series.at, chosen, { names, unit: figure.dataset.unit, zero: figure.dataset.zero !== "no" });
    }
    drawSparks();
  }
  function drawSparks() {
    if (state.series) for (const svg of find("[data-spark]")) Charts.spark(svg, state.series[svg.dataset.spark]);
  }
  for (const button of find("[data-span]")) button.addEventListener("click", () => {
    state.span = button.dataset.span;
    for (const each of find("[data-span]")) each.setAttribute("aria-pressed", each === button);
    refreshCharts();
  });

  // What another budget would buy
  function between(points, share) {
    const place = share * (points.length - 1), low = Math.min(Math.floor(place), points.length - 2), part = place - low;
    const mix = (a, b) => a + part * (b - a), [a, b] = [points[low], points[low + 1]];
    return { budget: Math.exp(mix(Math.log(a.budget), Math.log(b.budget))), freshness: mix(a.freshness, b.freshness), price: mix(a.price, b.price) };
  }
  function drawCurve() {
    const slider = one("#budget"), points = state.curve;
    if (!points || points.length < 2) return;
    const now = between(points, 0.5), chosen = between(points, slider.value / 1000);
    Charts.curve(one("#curve"), points, now, chosen);
    const gained = 100 * (chosen.freshness - now.freshness), times = chosen.budget / now.budget;
    const strong = Object.assign(document.createElement("b"), { textContent: (100 * chosen.freshness).toFixed(1) + " % fresh" });
    const sign = gained >= 0 ? "+" : "−";
    one("#bought").replaceChildren(strong, document.createElement("br"),
      `for ${Charts.rate(chosen.budget)}, ` + (Math.abs(times - 1) < 0.01 ? "the budget of now" : `${Charts.short(times)}× the budget of now`),
      document.createElement("br"),
      Math.abs(times - 1) < 0.01 ? "in the long run" : `${sign}${Math.abs(gained).toFixed(1)} points against ${(100 * now.freshness).toFixed(1)} % in the long run`);
    slider.setAttribute("aria-valuetext", `${Charts.rate(chosen.budget)}: ${(100 * chosen.freshness).toFixed(1)} % fresh`);
  }
  async function openCurve() {
    const slider = one("#budget");
    if (!slider) return;
    try { state.curve = await json("/curve"); } catch { state.curve = []; }
    if (state.curve.length < 2) { one("#bought").textContent = "Known once there are pages and a budget."; return; }
    slider.disabled = false;
    slider.addEventListener("input", drawCurve);
    drawCurve();
  }

  // Keeping up to date: parts marked data-live are taken from the same page, asked for again.
  let asking = false;
  async function refreshParts() {
    if (asking || document.hidden || !one("[data-live]")) return;
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.redirected && new URL(answer.url).pathname === "/login") signIn();
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of find("[data-live]")) {
        const next = page.getElementById(part.id);
        if (!next || part.contains(document.activeElement) && part.matches(":focus-within")) continue;
        const known = new Set(find(".event", part).map(each => each.id));
        if (known.size) for (const each of find(".event", next)) if (!known.has(each.id)) each.classList.add("fresh");
        part.replaceWith(document.adoptNode(next));
      }
      drawSparks();
    } catch { /* the next turn tries again */ } finally { asking = false; }
  }
  function say(text, mark) {
    const live = one("#live");
    live.textContent = text;
    live.dataset.state = mark;
  }
  let turn = 0, fallback = 0, source = null;
  addEventListener("pagehide", () => source?.close());
  function tick() {
    refreshParts();
    if (turn++ % 2 === 0) refreshCharts();
  }
  function listen() {
    if (!one("[data-live]") || location.hash === "#still") { say("as loaded", "off"); return; }  // #still: for print and tests
    if (!window.EventSource) { say("every 10 s", "off"); setInterval(tick, 10000); return; }
    source = new EventSource("/live");
    let soon = 0;
    source.addEventListener("open", () => { say("live", "on"); clearInterval(fallback); fallback = 0; });
    source.addEventListener("tick", tick);
    source.addEventListener("change", () => {
      if (one("[data-live=changes]") && !soon) soon = setTimeout(() => { soon = 0; refreshParts(); }, 700);
    });
    source.addEventListener("error", () => {
      say("connecting", "off");
      if (!fallback) fallback = setInterval(tick, 10000);
      // A browser connects again by itself, unless it was refused: then a look at the page says why.
      if (source.readyState === EventSource.CLOSED) { refreshParts(); setTimeout(listen, 10000); }
    });
  }

  // Light, dark, or as the system has it
  function turnTheme() {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
    const next = order[(order.indexOf(root.dataset.theme || "") + 1) % 3];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    try { if (next) localStorage.setItem("theme", next); else localStorage.removeItem("theme"); } catch { /* not kept then */ }
    nameTheme();
  }
  function nameTheme() {
    const names = { light: "Light", dark: "Dark" };
    one("#theme").textContent = names[document.documentElement.dataset.theme] || "Auto";
  }
  one("#theme").addEventListener("click", turnTheme);
  nameTheme();

  // Keys
  const dialog = one("#keys");
  one("#keys-open").addEventListener("click", () => dialog.showModal());
  let going = 0;
  function moveRow(by) {
    const rows = find("main .rows tr, main .event").filter(row => row.querySelector("a"));
    const here = rows.findIndex(row => row.contains(document.activeElement));
    const next = rows[Math.max(0, Math.min(rows.length - 1, here < 0 ? 0 : here + by))];
    next?.querySelector("a").focus();
  }
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    const goes = going && Date.now() - going < 1200;
    going = 0;
    const place = goes && one(`nav[aria-label="Main"] a[data-key="${CSS.escape(event.key)}"]`);
    if (place) location.href = place.href;
    else if (event.key === "g") going = Date.now();
    else if (event.key === "?") dialog.showModal();
    else if (event.key === "t") turnTheme();
    else if (event.key === "j") moveRow(1);
    else if (event.key === "k") moveRow(-1);
    else if (event.key === "/") {
      const box = one("#search");
      if (box) { box.focus(); box.select(); } else location.href = "/pages#search";
      event.preventDefault();
    }
  });
  if (location.hash === "#search") one("#search")?.focus();

  // Charts are drawn for the width that they have.
  let resized = 0, width = 0;
  if (one("#main") && window.ResizeObserver) new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) < 1) return;
    width = entry.contentRect.width;
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => { drawCharts(); drawCurve(); });
  }).observe(one("#main"));
  refreshCharts();
  openCurve();
  listen();
})();
