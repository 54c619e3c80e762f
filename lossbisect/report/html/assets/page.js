/* The page's own script: draws its charts with uPlot and copies it as Markdown. It reads nothing but the page. */
"use strict";
(() => {
  let data = JSON.parse(document.getElementById("data").textContent);
  const DENSE = 200, MAIN = 300, RELATIVE = 210, SMALL = 116, GUTTER = 64;
  const DASHES = [[], [], [8, 4], [3, 3], [10, 3, 3, 3], [14, 3], [6, 2]];
  let all = [];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const line = (number) => css(`--line-${number ? ((number - 1) % 6) + 1 : 0}`);
  const el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  };
  /* The noise floor is a line given by its corners. */
  const at = (corners, x) => {
    if (!corners.length) return 0;
    let i = 0;
    while (i < corners.length - 1 && corners[i + 1][0] < x) i++;
    const [x0, y0] = corners[i], [x1, y1] = corners[Math.min(i + 1, corners.length - 1)];
    return x <= x0 || x1 === x0 ? y0 : x >= x1 ? y1 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
  };
  const largest = (corners) => corners.reduce((most, [, y]) => Math.max(most, y), 0);

  /* Numbers as people read them; a value keeps every digit that it has. */
  const exact = (value) => (value === null || value === undefined ? "none" : String(value));
  const power = (value) => {
    if (value === 0) return "0";
    const exponent = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
    const digits = [...String(exponent)].map((d) => (d === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[d])).join("");
    return `${value < 0 ? "\u2212" : ""}10${digits}`;
  };
  const signed = (value) => (value === null ? "" : value === 0 ? "0" : (value > 0 ? "+" : "\u2212") + Math.abs(value).toExponential(2));

  /* (candidate - baseline) / |baseline|, as lossbisect.compare.stats defines it. */
  const relative = (baseline, candidate) => baseline.map((b, i) => {
    const c = candidate[i];
    if (b === null || c === null) return null;
    return b === c ? 0 : (c - b) / (b === 0 ? Math.abs(c) : Math.abs(b));
  });

  /* Running median over the values that are there; null until half a window is filled. */
  const span = (rows) => 2 * Math.floor(Math.min(501, Math.max(51, rows / 100)) / 2) + 1;
  const medians = (values) => {
    const width = span(values.length), half = width >> 1, sorted = [], out = new Array(values.length).fill(null);
    const place = (value) => {
      let low = 0, high = sorted.length;
      while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] < value) low = middle + 1; else high = middle; }
      return low;
    };
    for (let i = 0; i < values.length + half; i++) {
      if (i < values.length && values[i] !== null) sorted.splice(place(values[i]), 0, values[i]);
      const gone = i - width;
      if (gone >= 0 && values[gone] !== null) sorted.splice(place(values[gone]), 1);
      const centre = i - half;
      if (centre >= 0 && sorted.length > half && values[centre] !== null) out[centre] = sorted[sorted.length >> 1];
    }
    return out;
  };

  const prepared = (panel, first) => {
    if (panel.relative) return panel;
    panel.x ??= first.x;
    panel.relative = panel.values.slice(1).map((values) => relative(panel.values[0], values));
    panel.medians = panel.x.length >= DENSE ? panel.relative.map(medians) : [];
    return panel;
  };

  /* ---- drawing ---- */
  const axis = (more) => ({
    stroke: () => css("--quiet"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--rule"), width: 1, size: 4 },
    font: "12px system-ui, sans-serif", ...more,
  });
  const xAxis = (more) => axis({ size: 26, gap: 3, space: 55, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6], values: (u, splits) => splits.map((v) => String(v)), ...more });

  /* The noise floor, drawn under everything else. */
  const drawNoise = (u, panel) => {
    const { ctx, bbox } = u, { min, max } = u.scales.x;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    for (const [floor, alpha] of [[panel.real, 0.18], [panel.noise, 0.36]]) {
      if (!largest(floor)) continue;
      ctx.fillStyle = `rgb(${css("--noise")} / ${alpha})`;
      ctx.beginPath();
      const places = Array.from({ length: 201 }, (_, i) => min + ((max - min) * i) / 200);
      for (const x of places) ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(at(floor, x), "y", true));
      for (const x of places.reverse()) ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(-at(floor, x), "y", true));
      ctx.fill();
    }
    ctx.restore();
  };

  /* First divergent iterations as dashed lines, and crosses where a side has no finite value. */
  const drawMarks = (u, panel, has) => {
    const { ctx, bbox } = u, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    ctx.lineWidth = 1.3 * ratio;
    ctx.setLineDash([5 * ratio, 4 * ratio]);
    has.onsets.forEach((onset, number) => {
      if (onset === null) return;
      const left = u.valToPos(onset, "x", true);
      ctx.strokeStyle = has.onsets.length === 1 ? css("--bad") : line(number + 1);
      ctx.beginPath(); ctx.moveTo(left, bbox.top); ctx.lineTo(left, bbox.top + bbox.height); ctx.stroke();
    });
    ctx.setLineDash([]);
    ctx.lineWidth = 1.8 * ratio;
    if (panel) panel.gone.forEach((places, number) => {
      ctx.strokeStyle = line(number);
      const size = 4 * ratio, y = bbox.top + bbox.height - (8 + 9 * number) * ratio;
      let before = -Infinity;
      for (const place of places) {
        const x = u.valToPos(place, "x", true);
        if (x - before < size) continue;
        before = x;
        ctx.beginPath(); ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size); ctx.moveTo(x - size, y + size); ctx.lineTo(x + size, y - size); ctx.stroke();
      }
    });
    ctx.restore();
  };

  const paddedX = (u, min, max) => (min === max ? [min - 1, max + 1] : [min, max]);
  const series = (names, start, look) => names.map((name, i) => ({
    label: name, line: i + start, stroke: () => line(i + start), width: i + start === 0 ? 3 : 1.6, dash: DASHES[(i + start) % 7], spanGaps: false, ...look(i),
  }));
  const points = (panel) => ({ show: panel.x.length <= 60 ? true : undefined, size: 5, fill: (u, i) => line(number(u, i)), dash: [] });
  const number = (u, i) => u.series[i].line;

  class Group {
    constructor(root, data, index) {
      this.data = data; this.index = index; this.root = root; this.current = 0; this.log = false; this.smalls = [];
      this.cursor = null; this.window = null;
      root.append(this.metrics(), this.tools());
      this.curves = this.plot("curves");
      this.relative = data.names.length > 1 ? this.plot("relative difference") : null; /* one run alone has none */
      this.plots = [this.curves, ...(this.relative ? [this.relative] : [])];
      this.values = el("div", { class: "values scroll" });
      root.append(this.values, el("p", { class: "hint" }, "Drag over a chart to zoom, double-click for the whole run. In a chart: \u2190 \u2192 move along, + and \u2212 zoom, 0 shows all."));
      if (data.panels.length > 1) root.append(this.witnesses());
      this.show(0);
      new ResizeObserver(() => this.resize()).observe(root);
      all.push(this);
    }
    get panel() { return this.data.panels[this.current]; }

    metrics() {
      const box = el("fieldset", { class: "metrics" }, el("legend", {}, "Metric"));
      this.data.panels.forEach((panel, number) => {
        const input = el("input", { type: "radio", name: `metric-${this.index}`, value: number, checked: number === 0, onchange: () => this.show(number) });
        const mark = panel.is_different ? el("span", { class: "differs", title: "differs" }, "\u2260") : "";
        box.append(el("label", {}, input, panel.metric, mark));
      });
      if (this.data.panels.length < 2) box.hidden = true;
      this.radios = box;
      return box;
    }
    tools() {
      const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
      this.logButton = el("button", { type: "button", "aria-pressed": "false", onclick: () => { this.log = !this.log; this.logButton.setAttribute("aria-pressed", this.log); this.show(this.current); } }, "Log scale");
      const box = el("div", { class: "tools", role: "group", "aria-label": "Zoom" },
        button("+", "Zoom in", () => this.zoom(0.5)), button("\u2212", "Zoom out", () => this.zoom(2)),
        button("\u25c2", "Earlier", () => this.pan(-0.5)), button("\u25b8", "Later", () => this.pan(0.5)),
        button("Whole run", "Whole run", () => this.setWindow(null)));
      if (this.onset() !== null) box.append(button("First divergence", "Zoom to the first divergence", () => this.toOnset()));
      box.append(this.logButton);
      return box;
    }
    onset() {
      const onsets = this.data.panels[0].onsets.filter((onset) => onset !== null);
      return onsets.length ? Math.min(...onsets) : null;
    }
    plot(name) {
      const title = el("h3"), frame = el("div", { class: "frame", tabindex: "0", role: "img", "data-plot": name, onkeydown: (event) => this.key(event) });
      const box = el("div", { class: "plot" }, title, frame);
      this.root.append(box);
      return { box, title, frame, chart: null };
    }
    witnesses() {
      const box = el("div", { class: "witnesses" });
      const seen = new IntersectionObserver((entries) => entries.forEach((entry) => { if (entry.isIntersecting) { seen.unobserve(entry.target); this.drawSmall(entry.target); } }), { rootMargin: "200px" });
      this.data.panels.forEach((panel, number) => {
        const switcher = el("button", { type: "button", "aria-label": `Show ${panel.metric} above`, onclick: () => { this.choose(number); this.root.scrollIntoView(); } }, "show above");
        const small = el("div", { class: "small", "data-panel": number }, el("h3", {}, panel.label, switcher), el("div", { class: "frame" }));
        box.append(small);
        seen.observe(small);
      });
      this.smallBox = box;
      return box;
    }
    drawSmall(box) {
      if (box.dataset.drawn) return;
      box.dataset.drawn = "yes";
      const panel = this.data.panels[box.dataset.panel], frame = box.lastChild;
      panel.x ??= this.data.panels[0].x;
      const chart = new uPlot({
        width: frame.clientWidth, height: SMALL, legend: { show: false }, cursor: { show: false }, padding: [6, 8, 0, 0],
        scales: { x: { time: false, range: paddedX } },
        series: [{}, ...series(this.data.names, 0, (i) => ({ width: i ? 1.2 : 2.4, points: { show: false } }))],
        axes: [xAxis({ space: 70 }), axis({ size: GUTTER, space: 34 })],
        hooks: { draw: [(u) => drawMarks(u, panel, this.data.panels[0])] },
      }, [panel.x, ...panel.values], frame);
      this.smalls.push({ chart, frame });
    }

    choose(number) {
      const input = this.radios.querySelectorAll("input")[number];
      input.checked = true;
      this.show(number);
      input.focus({ preventScroll: true });
    }
    show(number) {
      const began = performance.now();
      this.current = number;
      const panel = prepared(this.panel, this.data.panels[0]);
      for (const each of this.plots) each.chart?.destroy();
      const positive = panel.values.every((values) => values.every((v) => v === null || v > 0));
      this.logButton.disabled = !positive;
      this.curves.chart = this.drawCurves(panel, this.log && positive);
      if (this.relative) this.relative.chart = this.drawRelative(panel);
      this.titles(panel);
      if (this.window) this.setWindow(this.window);
      this.fill(this.cursor ?? this.start(panel));
      this.root.dataset.metric = panel.metric;
      this.root.dataset.drawnMs = String(Math.round(performance.now() - began));
    }
    start(panel) {
      const onset = this.onset();
      return onset === null ? panel.x.length - 1 : Math.max(0, panel.x.indexOf(onset));
    }
    common() {
      return {
        width: Math.max(200, this.root.clientWidth), legend: { show: false }, padding: [8, 24, 0, 0],
        cursor: { sync: { key: `group-${this.index}`, setSeries: false, scales: ["x", null] }, drag: { x: true, y: false, setScale: false }, points: { size: 8 } },
      };
    }
    hooks(more) {
      return {
        setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined && u.cursor.left >= 0) this.fill(u.cursor.idx); }],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const low = u.posToVal(u.select.left, "x"), high = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          this.setWindow([low, high]);
        }],
        ready: [(u) => u.over.addEventListener("dblclick", () => this.setWindow(null))],
        ...more,
      };
    }
    drawCurves(panel, isLog) {
      return new uPlot({
        ...this.common(), height: MAIN,
        scales: { x: { time: false, range: paddedX }, y: isLog ? { distr: 3 } : {} },
        series: [{}, ...series(this.data.names, 0, (i) => ({ points: points(panel), alpha: i ? 1 : 0.75 }))],
        axes: [xAxis(), axis({ size: GUTTER })],
        hooks: this.hooks({ draw: [(u) => drawMarks(u, panel, this.data.panels[0])] }),
      }, [panel.x, ...panel.values], this.curves.frame);
    }
    drawRelative(panel) {
      const names = this.data.names.slice(1);
      let peak = 0;
      for (const values of panel.relative) for (const v of values) if (v !== null && Math.abs(v) > peak) peak = Math.abs(v);
      const threshold = panel.noise[0]?.[1] || Math.max(peak / 100, 1e-7);
      const isDense = panel.medians.length > 0;
      const lines = series(names, 1, () => ({ scale: "y", width: isDense ? 0.7 : 1.6, alpha: isDense ? 0.4 : 1, points: points(panel) }));
      const middles = panel.medians.length ? series(names, 1, () => ({ scale: "y", width: 2.2, points: { show: false } })) : [];
      return new uPlot({
        ...this.common(), height: RELATIVE,
        scales: {
          x: { time: false, range: paddedX },
          y: { distr: 4, asinh: threshold, range: (u, low, high) => { const edge = 1.7 * Math.max(Math.abs(low ?? 0), Math.abs(high ?? 0), at(panel.real, u.scales.x.max ?? 0), threshold); return [-edge, edge]; } },
        },
        series: [{}, ...lines, ...middles],
        axes: [xAxis(), axis({ size: GUTTER, scale: "y", splits: (u) => ticks(threshold, u.scales.y.max), values: (u, splits) => splits.map(power), filter: (u, splits) => splits })],
        hooks: this.hooks({ drawClear: [(u) => drawNoise(u, panel)], draw: [(u) => drawMarks(u, null, this.data.panels[0])] }),
      }, [panel.x, ...panel.relative, ...panel.medians], this.relative.frame);
    }
    titles(panel) {
      const onset = this.onset(), gaps = panel.gone.some((places) => places.length);
      const says = [onset === null ? "" : `first divergence at ${panel.on} ${onset}`, gaps ? "\u00d7 no finite value" : ""].filter(Boolean).join(" \u00b7 ");
      this.curves.title.replaceChildren(panel.label, el("span", { class: "onset" }, says));
      const legend = el("span");
      if (largest(panel.noise)) legend.append(el("span", { class: "item" }, el("i", { class: "swatch band" }), `noise: ${panel.source}`));
      if (largest(panel.real) > largest(panel.noise)) legend.append(el("span", { class: "item" }, el("i", { class: "swatch band wide" }), "undecided"));
      if (panel.medians.length) legend.append(el("span", { class: "item" }, `thick: median of ${span(panel.x.length)} rows`));
      this.relative?.title.replaceChildren("relative difference from the baseline", legend);
      this.curves.frame.setAttribute("aria-label", `${panel.metric} of ${this.data.names.join(", ")}. ${says}`);
      this.relative?.frame.setAttribute("aria-label", `Relative difference of ${panel.metric} from the baseline`);
    }
    fill(index) {
      const panel = this.panel;
      index = Math.max(0, Math.min(panel.x.length - 1, index));
      this.cursor = index;
      if (this.filling) return;
      this.filling = true;
      requestAnimationFrame(() => { this.filling = false; this.table(this.panel, Math.min(this.cursor, this.panel.x.length - 1)); });
    }
    table(panel, index) {
      const rows = this.data.names.map((name, number) => {
        const value = panel.values[number][index];
        const difference = number === 0 ? "" : signed(panel.relative[number - 1][index] ?? null);
        return el("tr", {}, el("td", {}, el("i", { class: `swatch s${number ? ((number - 1) % 6) + 1 : 0}` }), name),
          el("td", { class: "number" }, exact(value)), this.relative ? el("td", { class: "number" }, difference) : "");
      });
      this.values.replaceChildren(el("table", {}, el("caption", {}, `At ${panel.on} ${panel.x[index]}`),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "run"), el("th", { scope: "col", class: "number" }, panel.label), this.relative ? el("th", { scope: "col", class: "number" }, "relative difference") : "")),
        el("tbody", {}, ...rows)));
    }

    /* ---- zoom ---- */
    range() { const x = this.panel.x; return [x[0], x[x.length - 1]]; }
    setWindow(window) {
      const [first, last] = this.range();
      if (window) {
        const width = Math.max(Math.min(window[1] - window[0], last - first), Math.min(2, last - first));
        const low = Math.max(first, Math.min(window[0], last - width));
        window = width >= last - first ? null : [low, low + width];
      }
      this.window = window;
      const [min, max] = window ?? [first, last];
      for (const { chart } of this.plots) chart.setScale("x", { min, max });
      this.root.dataset.window = window ? `${min} ${max}` : "";
    }
    zoom(factor) {
      const [low, high] = this.window ?? this.range(), x = this.panel.x[this.cursor];
      const centre = x >= low && x <= high ? x : (low + high) / 2, half = ((high - low) * factor) / 2;
      this.setWindow([centre - half, centre + half]);
    }
    pan(share) {
      const [low, high] = this.window ?? this.range(), by = (high - low) * share;
      if (this.window) this.setWindow([low + by, high + by]);
    }
    toOnset() {
      const onset = this.onset(), [first, last] = this.range(), half = Math.max(10, (last - first) / 40);
      this.setWindow([onset - half, onset + half]);
      this.fill(Math.max(0, this.panel.x.indexOf(onset)));
    }
    key(event) {
      const acts = {
        ArrowLeft: () => this.move(-1), ArrowRight: () => this.move(1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
        "-": () => this.zoom(2), 0: () => this.setWindow(null), Escape: () => this.setWindow(null),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[event.key]();
    }
    move(by) {
      const index = Math.max(0, Math.min(this.panel.x.length - 1, this.cursor + by)), x = this.panel.x[index];
      if (this.window && (x < this.window[0] || x > this.window[1])) {
        const width = this.window[1] - this.window[0];
        this.setWindow(by > 0 ? [x - width * 0.1, x + width * 0.9] : [x - width * 0.9, x + width * 0.1]);
      }
      this.curves.chart.setCursor({ left: this.curves.chart.valToPos(x, "x"), top: 10 });
      this.fill(index);
    }

    resize(width = this.root.clientWidth) {
      if (width === this.width || width < 50) return;
      this.width = width;
      this.curves.chart.setSize({ width, height: MAIN });
      this.relative?.chart.setSize({ width, height: RELATIVE });
      for (const { chart, frame } of this.smalls) chart.setSize({ width: Math.max(120, frame.clientWidth), height: SMALL });
    }
    redraw() { for (const { chart } of [...this.plots, ...this.smalls]) chart.redraw(false, true); }
  }

  /* Zero and powers of ten beyond the linear part, on both sides, four a side at most. */
  const ticks = (threshold, edge) => {
    const low = Math.ceil(Math.log10(threshold) - 1e-9), high = Math.floor(Math.log10(edge) + 1e-9), sizes = [];
    const hop = Math.max(1, Math.ceil((high - low + 1) / 4));
    for (let exponent = low; exponent <= high; exponent += hop) sizes.push(10 ** exponent);
    return [...sizes.map((size) => -size).reverse(), 0, ...sizes];
  };

  /* Draws what stands in a part of the page; a site's page draws a part anew when its data has changed. */
  let groups = 0;
  const draw = (part, newest) => {
    data = newest;
    all = all.filter((group) => group.root.isConnected);
    part.querySelectorAll(".charts").forEach((root) => new Group(root, data.charts[root.dataset.chart], groups++));
    part.querySelectorAll(".trend").forEach((root) => all.push(new Trend(root, data.charts[root.dataset.chart], { css, el, axis, exact })));
  };
  draw(document, data);
  globalThis.lossbisectDraw = draw;
  const redraw = () => all.forEach((group) => group.redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  /* The style sheet for paper holds only after this event, so curves are told of it by an attribute. */
  addEventListener("beforeprint", () => { document.documentElement.dataset.paper = "yes"; all.forEach((group) => { group.smallBox?.querySelectorAll(".small").forEach((box) => group.drawSmall(box)); group.resize(680); group.redraw(); }); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.paper; all.forEach((group) => { group.resize(); group.redraw(); }); });

  /* ---- copy ---- */
  const said = document.getElementById("copied");
  document.getElementById("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(data.markdown);
    } catch {
      const area = el("textarea", { "aria-hidden": "true" });
      area.value = data.markdown;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    said.textContent = "Copied.";
    setTimeout(() => { said.textContent = ""; }, 3000);
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
