// Time until the log of run 500 is open, and times of 40 frames of scrolling, ascending, ms.
async () => { const next = () => new Promise(requestAnimationFrame), details = document.querySelector("#run-500 details");
  const began = performance.now(); details.open = true; details.getBoundingClientRect(); await next();
  const opened = performance.now() - began, times = [];
  document.documentElement.style.scrollBehavior = "auto";
  for (let i = 0; i < 40; i++) { const at = performance.now(); scrollTo(0, i * 400); await next(); times.push(performance.now() - at); }
  return [opened, times.sort((a, b) => a - b)]; }
