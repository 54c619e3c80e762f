/* One number a record over the records: the last loss over commits, with what was said of each. */
"use strict";
class Trend {
  /* data: label, y, rows (texts a record), head (what they are), kinds (tone a record), marks ([place, tone, text]), band. */
  constructor(root, data, kit) {
    Object.assign(this, { root, data, kit, cursor: data.y.length - 1, window: null });
    const { el } = kit, button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.frame = el("div", { class: "frame", tabindex: "0", role: "img", "aria-label": `${data.label}, ${data.y.length} records`, onkeydown: (event) => this.key(event) });
    this.values = el("div", { class: "values scroll" });
    root.append(
      el("div", { class: "tools", role: "group", "aria-label": "Zoom" }, button("+", "Zoom in", () => this.zoom(0.5)), button("\u2212", "Zoom out", () => this.zoom(2)),
        button("\u25c2", "Earlier", () => this.pan(-0.5)), button("\u25b8", "Later", () => this.pan(0.5)), button("All", "All records", () => this.show(null))),
      el("div", { class: "plot" }, el("h3", {}, data.label, this.legend()), this.frame), this.values,
      el("p", { class: "hint" }, "Drag over the chart to zoom, double-click for all. In the chart: \u2190 \u2192 move along, + and \u2212 zoom, 0 shows all."));
    this.chart = this.made();
    this.fill(this.cursor);
    new ResizeObserver(() => this.resize()).observe(root);
  }
  colour(tone) { return this.kit.css(tone === "line" ? "--grid" : `--${tone}`); }
  legend() {
    const { el } = this.kit, box = el("span"), names = new Map(this.data.marks.map(([, tone, , name]) => [name, tone]));
    for (const [name, tone] of names) box.append(el("span", { class: "item" }, el("i", { class: `swatch rule ${tone}` }), name));
    if (this.data.band) box.append(el("span", { class: "item" }, el("i", { class: "swatch band" }), this.data.band.text));
    return box;
  }
  made() {
    const { css, axis } = this.kit, { y, ticks } = this.data, x = y.map((_, at) => at);
    const names = (u, splits) => splits.map((at) => (Number.isInteger(at) ? ticks[at] ?? "" : ""));
    return new uPlot({
      width: Math.max(200, this.root.clientWidth), height: 260, legend: { show: false }, padding: [8, 24, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 9 } },
      scales: { x: { time: false, range: (u, low, high) => [low - 0.5, high + 0.5] }, y: { range: (u, low, high) => this.height(low, high) } },
      series: [{}, { stroke: () => css("--bar"), width: 1.4, points: { show: false }, spanGaps: true }],
      axes: [axis({ size: 28, gap: 4, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3], values: names }), axis({ size: 84, values: (u, splits) => splits.map((v) => String(Number(v.toPrecision(7)))) })],
      hooks: {
        drawClear: [(u) => this.ground(u)], draw: [(u) => this.points(u)],
        setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined && u.cursor.left >= 0) this.fill(u.cursor.idx); }],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const low = u.posToVal(u.select.left, "x"), high = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          this.show([low, high]);
        }],
        ready: [(u) => u.over.addEventListener("dblclick", () => this.show(null))],
      },
    }, [x, y], this.frame);
  }
  height(low, high) {
    if (low === null || high === null) return [0, 1];
    const { band } = this.data;
    if (band) [low, high] = [Math.min(low, band.low), Math.max(high, band.high)];
    const edge = high - low || Math.abs(high) * 1e-3 || 1;
    return [low - edge * 0.12, high + edge * 0.12];
  }
  clipped(u, act) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    act(ctx, bbox, devicePixelRatio || 1);
    ctx.restore();
  }
  /* What scatter alone explains, under everything else. */
  ground(u) {
    const { band } = this.data;
    if (band) this.clipped(u, (ctx, bbox) => {
      const top = u.valToPos(band.high, "y", true), foot = u.valToPos(band.low, "y", true);
      ctx.fillStyle = `rgb(${this.kit.css("--noise")} / 0.25)`;
      ctx.fillRect(bbox.left, top, bbox.width, Math.max(1, foot - top));
    });
  }
  points(u) {
    const { y, kinds, marks } = this.data, { min, max } = u.scales.x;
    this.clipped(u, (ctx, bbox, ratio) => {
      ctx.lineWidth = 1.4 * ratio;
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      for (const [at, tone] of marks) {
        const left = u.valToPos(at - 0.5, "x", true);
        ctx.strokeStyle = this.colour(tone);
        ctx.beginPath(); ctx.moveTo(left, bbox.top); ctx.lineTo(left, bbox.top + bbox.height); ctx.stroke();
      }
      ctx.setLineDash([]);
      const size = (max - min > 400 ? 2 : 4.5) * ratio;
      for (let at = Math.max(0, Math.floor(min)); at <= Math.min(y.length - 1, Math.ceil(max)); at++) {
        if (y[at] === null) continue;
        const left = u.valToPos(at, "x", true), top = u.valToPos(y[at], "y", true);
        ctx.fillStyle = ctx.strokeStyle = this.colour(kinds[at]);
        ctx.beginPath();
        if (kinds[at] === "bad") { ctx.lineWidth = 2.2 * ratio; ctx.moveTo(left - size, top - size); ctx.lineTo(left + size, top + size); ctx.moveTo(left - size, top + size); ctx.lineTo(left + size, top - size); ctx.stroke(); }
        else if (kinds[at] === "good") { ctx.arc(left, top, size, 0, 7); ctx.fill(); }
        else { ctx.lineWidth = 1.8 * ratio; ctx.arc(left, top, size, 0, 7); ctx.fillStyle = this.kit.css("--ground"); ctx.fill(); ctx.stroke(); }
      }
    });
  }
  fill(index) {
    this.cursor = Math.max(0, Math.min(this.data.y.length - 1, index));
    if (this.filling) return;
    this.filling = true;
    requestAnimationFrame(() => {
      this.filling = false;
      const { el, exact } = this.kit, { head, rows, label, y, marks } = this.data, at = this.cursor;
      const told = marks.filter(([place]) => place === at).map(([, , text]) => text).join(" \u00b7 ");
      const facts = [...head.map((name, column) => [name, rows[at][column]]), [label, exact(y[at])], ...(told ? [["here", told]] : [])];
      this.values.replaceChildren(el("dl", { class: "at" }, ...facts.filter(([, text]) => text).map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text)))));
    });
  }
  show(window) {
    const last = this.data.y.length - 1;
    if (window && window[1] - window[0] >= last) window = null;
    if (window) {
      const width = Math.max(window[1] - window[0], 2), low = Math.max(0, Math.min(window[0], last - width));
      window = [low, low + width];
    }
    this.window = window;
    this.root.dataset.window = window ? window.join(" ") : "";
    const [min, max] = window ?? [0, last];
    this.chart.setScale("x", { min, max });
  }
  zoom(factor) {
    const [low, high] = this.window ?? [0, this.data.y.length - 1], half = ((high - low) * factor) / 2;
    const centre = this.cursor >= low && this.cursor <= high ? this.cursor : (low + high) / 2;
    this.show([centre - half, centre + half]);
  }
  pan(share) {
    if (!this.window) return;
    const by = (this.window[1] - this.window[0]) * share;
    this.show([this.window[0] + by, this.window[1] + by]);
  }
  key(event) {
    const acts = { ArrowLeft: () => this.move(-1), ArrowRight: () => this.move(1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.show(null), Escape: () => this.show(null) };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }
  move(by) {
    this.fill(this.cursor + by);
    if (this.window && (this.cursor < this.window[0] || this.cursor > this.window[1])) this.pan(by > 0 ? 0.5 : -0.5);
    this.chart.setCursor({ left: this.chart.valToPos(this.cursor, "x"), top: 10 }, false);
  }
  resize(width = this.root.clientWidth) {
    if (width === this.width || width < 50) return;
    this.width = width;
    this.chart.setSize({ width, height: 260 });
  }
  redraw() { this.chart.redraw(false, true); }
}
