"""What is wrong with the layout of a page in a browser: texts on other texts, and cut texts."""

# Boxes of visible texts that overlap by more than 2 px both ways. What is fixed, or stands over the
# page by design, is left out.
OVERLAPS = """
(() => {
  const OTHER = 'script, style, noscript, .bar, .nav, .skip, .live-region, option, pre';
  const OWN = '.reply, .console, .scroll';
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || parent.closest(OTHER)) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const words = node.data.trim().slice(0, 50);
      if (box.width > 1 && box.height > 1) boxes.push([box, words, parent.closest(OWN)]);
    }
  }
  const told = [];
  boxes.sort((one, other) => one[0].top - other[0].top);
  boxes.forEach(([one, text, own], at) => {
    for (let next = at + 1; next < boxes.length && boxes[next][0].top < one.bottom; next++) {
      const [other, words, others] = boxes[next];
      if (own || others) continue; // these scroll
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > 2 && high > 4) told.push(`${text} | ${words}`);
    }
  });
  return told;
})()
"""

# Elements whose text is wider or higher than what is shown of it. A path in the bar may be cut:
# its title has all of it.
CUTS = """
[...document.querySelectorAll('main *')].filter(one => {
  const style = getComputedStyle(one);
  if (one.closest('svg')) return false;
  if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
  const hides = style.overflowX === 'hidden' && one.scrollWidth > one.clientWidth + 1;
  const clamped = style.webkitLineClamp !== 'none' && one.scrollHeight > one.clientHeight + 2;
  return (hides || clamped) && one.textContent.trim() && !one.querySelector('.progress');
}).map(one => `${one.className}: ${one.textContent.trim().slice(0, 60)}`)
"""
