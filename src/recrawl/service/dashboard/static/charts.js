// Small line charts in SVG: axes, several series, a crosshair. Draws what it is given and fetches nothing.
"use strict";
const Charts = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const LEFT = 46, RIGHT = 8, TOP = 8, BOTTOM = 22;

  function put(parent, name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e9) return +(value / 1e9).toPrecision(3) + "G";
    if (size >= 1e6) return +(value / 1e6).toPrecision(3) + "M";
    if (size >= 1e4) return +(value / 1e3).toPrecision(3) + "k";
    if (size && size < 1e-4) return value.toExponential(1);
    return String(+value.toPrecision(3));
  }
  function duration(seconds) {
    let value = seconds;
    for (const [size, unit] of [[60, "s"], [60, "min"], [24, "h"], [365.25, "d"], [Infinity, "y"]]) {
      if (value < size) return +value.toPrecision(value >= 10 ? 3 : 2) + " " + unit;
      value /= size;
    }
    return "";
  }
  const shown = { percent: v => (100 * v).toFixed(1) + " %", number: short, duration };

  function ticks(low, high, unit) {
    if (unit === "duration") return durationTicks(low, high);
    const raw = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= raw);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9) * step; at <= high * (1 + 1e-9) + 1e-12; at += step) found.push(at);
    return found;
  }
  function durationTicks(low, high) {
    const raw = (high - low) / 4 || 1;
    const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];
    const step = steps.find(each => each >= raw) || Math.ceil(raw / 2592000) * 2592000;
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return found;
  }
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  function timeTicks(low, high, most) {
    const step = STEPS.find(each => (high - low) / each <= most) || 604800;
    const zone = new Date(low * 1000).getTimezoneOffset() * 60;
    const found = [];
    for (let at = Math.ceil((low - zone) / step) * step + zone; at <= high; at += step) found.push(at);
    return found.map(at => [at, clock(at, step)]);
  }
  function clock(at, step) {
    const date = new Date(at * 1000), two = value => String(value).padStart(2, "0");
    if (step >= 86400) return date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
    const minutes = two(date.getHours()) + ":" + two(date.getMinutes());
    return step >= 60 ? minutes : minutes + ":" + two(date.getSeconds());
  }

  // A path through the points that are known; gaps stay gaps.
  function paths(xs, ys, x, y, floor) {
    let line = "", area = "", run = [];
    const end = () => {
      if (!run.length) return;
      const joined = run.map(([a, b]) => a.toFixed(1) + " " + b.toFixed(1)).join("L");
      line += "M" + joined + (run.length === 1 ? "h0.1" : "");
      area += "M" + run[0][0].toFixed(1) + " " + floor + "L" + joined + "L" + run.at(-1)[0].toFixed(1) + " " + floor + "Z";
      run = [];
    };
    xs.forEach((at, i) => { if (ys[i] === null || ys[i] === undefined) end(); else run.push([x(at), y(ys[i])]); });
    end();
    return [line, area];
  }

  function range(series, zero, unit) {
    const known = series.flat().filter(value => value !== null && value !== undefined);
    if (!known.length) return null;
    let low = Math.min(...known), high = Math.max(...known);
    if (unit === "percent" && !zero) {
      const room = Math.max((high - low) * 0.15, 0.005);
      return [Math.max(low - room, 0), Math.min(high + room, 1)];
    }
    low = Math.min(low, 0);
    return [low, high > low ? high * 1.06 : low + 1];
  }

  function frame(svg, width, height, yRange, y, unit, xTicks, x) {
    const axis = put(svg, "g", { class: "axis" });
    for (const at of ticks(yRange[0], yRange[1], unit)) {
      put(axis, "line", { x1: LEFT, x2: width - RIGHT, y1: Math.round(y(at)), y2: Math.round(y(at)) });
      const label = unit === "percent" ? +(100 * at).toFixed(2) + " %" : shown[unit](at);
      put(axis, "text", { x: LEFT - 7, y: y(at) + 4, "text-anchor": "end" }, label);
    }
    for (const [at, label] of xTicks) {
      const place = x(at), anchor = place < LEFT + 20 ? "start" : place > width - 28 ? "end" : "middle";
      put(axis, "text", { x: place, y: height - 5, "text-anchor": anchor }, label);
    }
  }

  // figure: where; xs: times; series: arrays of numbers or null; options: names, unit, zero.
  function lines(figure, xs, series, { names, unit, zero }) {
    const svg = fresh(figure);
    const { width, height } = size(svg);
    const yRange = range(series, zero, unit);
    caption(figure, names, series, unit);
    if (!yRange || xs.length < 2) {
      put(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle", class: "empty" }, "Being measured…");
      return;
    }
    const [first, last] = [xs[0], xs.at(-1)];
    const x = at => LEFT + (width - LEFT - RIGHT) * (at - first) / (last - first || 1);
    const y = at => TOP + (height - TOP - BOTTOM) * (1 - (at - yRange[0]) / (yRange[1] - yRange[0]));
    frame(svg, width, height, yRange, y, unit, timeTicks(first, last, Math.max(width / 95, 2)), x);
    series.forEach((ys, i) => {
      const group = put(svg, "g", { class: "s" + i });
      const [line, area] = paths(xs, ys, x, y, height - BOTTOM);
      put(group, "path", { class: "area", d: area });
      put(group, "path", { class: "line", d: line });
    });
    crosshair(figure, svg, xs, series, x, y, { names, unit, height });
    const latest = series.map((ys, i) => names[i] + " " + (ys.at(-1) == null ? "unknown" : shown[unit](ys.at(-1)))).join(", ");
    svg.setAttribute("aria-label", figure.dataset.title + ": " + latest);
  }

  function fresh(figure) {
    figure.querySelector("svg")?.remove();
    const svg = put(figure, "svg", { role: "img" });
    if (!figure.dataset.title) figure.dataset.title = figure.querySelector("figcaption")?.textContent.trim() || "Chart";
    return svg;
  }
  function size(svg) {
    const box = svg.getBoundingClientRect(), width = Math.max(box.width, 120), height = Math.max(box.height, 80);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    return { width, height };
  }
  function caption(figure, names, series, unit) {
    const text = figure.querySelector("figcaption");
    if (!text) return;
    text.replaceChildren(figure.dataset.title, ...names.map((name, i) => {
      const key = document.createElement("span"), value = series[i].findLast(each => each != null);
      key.className = "key s" + i;
      key.textContent = name + (value == null ? "" : " " + shown[unit](value));
      return key;
    }));
  }

  function crosshair(figure, svg, xs, series, x, y, { names, unit, height }) {
    const cross = put(svg, "g", { visibility: "hidden" });
    const line = put(cross, "line", { class: "cross", y1: TOP, y2: height - BOTTOM });
    const dots = series.map((_, i) => put(put(cross, "g", { class: "s" + i }), "circle", { class: "dot", r: 4 }));
    let tip = figure.querySelector(".tip");
    if (!tip) { tip = document.createElement("div"); tip.className = "tip"; tip.hidden = true; figure.append(tip); }
    const hide = () => { cross.setAttribute("visibility", "hidden"); tip.hidden = true; };
    hide();
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), at = event.clientX - box.left;
      let near = 0;
      xs.forEach((time, i) => { if (Math.abs(x(time) - at) < Math.abs(x(xs[near]) - at)) near = i; });
      cross.setAttribute("visibility", "visible");
      line.setAttribute("x1", x(xs[near])); line.setAttribute("x2", x(xs[near]));
      const rows = [new Date(xs[near] * 1000).toLocaleString()];
      series.forEach((ys, i) => {
        const value = ys[near], known = value !== null && value !== undefined;
        dots[i].setAttribute("visibility", known ? "inherit" : "hidden");
        if (known) {
          dots[i].setAttribute("cx", x(xs[near])); dots[i].setAttribute("cy", y(value));
          rows.push(names[i] + " " + shown[unit](value));
        }
      });
      tip.replaceChildren(...rows.map((text, i) => Object.assign(document.createElement(i ? "div" : "b"), { textContent: text })));
      tip.hidden = false;
      const left = x(xs[near]) + svg.offsetLeft;
      tip.style.left = Math.min(left + 12, figure.clientWidth - tip.offsetWidth - 6) + "px";
      if (left + 12 + tip.offsetWidth > figure.clientWidth) tip.style.left = left - tip.offsetWidth - 12 + "px";
    });
  }

  function spark(svg, ys) {
    svg.replaceChildren();
    const known = ys.filter(value => value !== null);
    if (known.length < 2) return;
    const low = Math.min(...known), high = Math.max(...known), flat = high - low < 1e-12 + 1e-6 * Math.abs(high);
    svg.setAttribute("viewBox", "0 0 100 26");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const at = ys.map((_, i) => i);
    const [line, area] = paths(at, ys, i => 100 * i / (ys.length - 1), v => flat ? 14 : 4 + 19 * (1 - (v - low) / (high - low)), 26);
    put(svg, "path", { class: "fill", d: area });
    put(svg, "path", { d: line });
  }

  // The budget–freshness curve over the logarithm of the budget, with what is and what was chosen.
  function curve(figure, points, now, chosen) {
    const svg = fresh(figure);
    const { width, height } = size(svg);
    const logs = points.map(each => Math.log(each.budget));
    const yRange = range([points.map(each => each.freshness)], false, "percent");
    const x = at => LEFT + (width - LEFT - RIGHT) * (at - logs[0]) / (logs.at(-1) - logs[0]);
    const y = at => TOP + (height - TOP - BOTTOM) * (1 - (at - yRange[0]) / (yRange[1] - yRange[0]));
    const marks = width < 420 ? [0.125, 1, 8] : [0.125, 0.25, 0.5, 1, 2, 4, 8];
    const xTicks = marks.map(times => [Math.log(now.budget * times), rate(now.budget * times)]);
    frame(svg, width, height, yRange, y, "percent", xTicks, x);
    const group = put(svg, "g", { class: "s0" });
    const [line, area] = paths(logs, points.map(each => each.freshness), x, y, height - BOTTOM);
    put(group, "path", { class: "area", d: area });
    put(group, "path", { class: "line", d: line });
    put(svg, "line", { class: "mark-now", x1: x(Math.log(now.budget)), x2: x(Math.log(now.budget)), y1: TOP, y2: height - BOTTOM });
    put(group, "circle", { class: "dot", r: 5, cx: x(Math.log(now.budget)), cy: y(now.freshness) });
    put(put(svg, "g", { class: "s1" }), "circle", { class: "dot", r: 6, cx: x(Math.log(chosen.budget)), cy: y(chosen.freshness) });
    svg.setAttribute("aria-label", "Freshness by budget");
  }
  function rate(perDay) {
    if (perDay >= 86400) return short(perDay / 86400) + "/s";
    if (perDay >= 1440) return short(perDay / 1440) + "/min";
    return perDay >= 24 ? short(perDay / 24) + "/h" : short(perDay) + "/day";
  }
  return { lines, spark, curve, rate, short, duration };
})();
