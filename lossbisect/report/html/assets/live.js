/* A site's page that keeps itself up to date: it asks whether it has changed, and replaces only the sections that have. */
"use strict";
(() => {
  const every = Number(document.documentElement.dataset.live);
  if (!every) return;
  const said = document.getElementById("live");
  let tag = null, failures = 0;

  const kept = (old) => {
    const active = document.activeElement;
    return {
      open: [...old.querySelectorAll("li[id] details[open]")].map((details) => details.closest("li").id),
      scrolled: [...old.querySelectorAll(".scroll, pre")].map((box) => [box.scrollLeft, box.scrollTop]),
      focus: old.contains(active) ? [...old.querySelectorAll("a, button, summary, [tabindex]")].indexOf(active) : -1,
    };
  };
  const put = (fresh, state) => {
    for (const id of state.open) { const details = fresh.querySelector(`li[id="${CSS.escape(id)}"] details`); if (details) details.open = true; }
    [...fresh.querySelectorAll(".scroll, pre")].forEach((box, at) => { if (state.scrolled[at]) [box.scrollLeft, box.scrollTop] = state.scrolled[at]; });
    if (state.focus >= 0) [...fresh.querySelectorAll("a, button, summary, [tabindex]")][state.focus]?.focus({ preventScroll: true });
  };
  const take = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html"), news = page.getElementById("main");
    if (!news) return;
    const data = JSON.parse(page.getElementById("data").textContent), main = document.getElementById("main");
    for (const part of ["h1", ".reason", "header nav"]) {
      const [old, fresh] = [document.querySelector(part), page.querySelector(part)];
      if (old.outerHTML !== fresh.outerHTML) old.replaceWith(document.importNode(fresh, true));
    }
    document.title = page.title;
    const old = [...main.children], fresh = [...news.children], changed = [];
    fresh.forEach((section, at) => {
      if (old[at] && section.dataset.digest && old[at].dataset.digest === section.dataset.digest) return;
      const made = document.importNode(section, true), state = old[at] ? kept(old[at]) : null;
      if (old[at]) old[at].replaceWith(made); else main.append(made);
      changed.push(made);
      if (state) put(made, state);
    });
    old.slice(fresh.length).forEach((section) => section.remove());
    for (const section of changed) lossbisectDraw(section, data);
    document.documentElement.dataset.live = page.documentElement.dataset.live ?? "";
    document.documentElement.dataset.updates = String(Number(document.documentElement.dataset.updates ?? 0) + 1);
  };
  const ask = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.pathname + location.search, { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
        if (answer.status === 200) { tag = answer.headers.get("ETag"); take(await answer.text()); }
        if (answer.status !== 200 && answer.status !== 304) throw new Error(String(answer.status));
        failures = 0;
        said.textContent = "";
      } catch {
        failures++;
        said.textContent = "No answer from lossbisect serve; trying again.";
      }
    }
    const wait = Number(document.documentElement.dataset.live);
    if (wait) setTimeout(ask, wait * Math.min(8, 2 ** failures));
  };
  setTimeout(ask, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) failures = 0; });
})();
