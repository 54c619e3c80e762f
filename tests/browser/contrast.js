// Each visible text with its contrast against its ground (WCAG 2), the worst first.
() => {
  const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n.slice(0, 3), 1] : n; };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const ground = (node) => { for (; node; node = node.parentElement) { const c = parse(getComputedStyle(node).backgroundColor); if (c[3] === 1) return c; }
    return [255, 255, 255, 1]; };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || node.closest("script, noscript, button:disabled") || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(parse(node.closest("svg") ? style.fill : style.color)), light(ground(node))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}
