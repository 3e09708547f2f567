// Facts of a page's layout, which hold with any fonts. Faults are stored in `seen.faults`.
const faults = new Set();
const styleOf = (it, part) => view.getComputedStyle(it, part);
const nameOf = (it) => [it.tagName.toLowerCase(), ...it.classList].join('.');
const chain = function* (it) {
  for (; it && it !== page.body; it = it.parentElement) yield it;
};
const layerOf = (it) =>
  [...chain(it)].find((each) => ['fixed', 'sticky'].includes(styleOf(each).position));
const cuts = (it) => ['hidden', 'clip'].includes(styleOf(it).overflowX);
const scrolls = (it) => ['auto', 'scroll'].includes(styleOf(it).overflowX);
// The width and height that two boxes share.
const shared = (one, other) => [
  Math.min(one.right, other.right) - Math.max(one.left, other.left),
  Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top),
];

const texts = [];
seen.texts = [];
const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const [node, parent] = [walker.currentNode, walker.currentNode.parentElement];
  const text = node.data.trim();
  if (!text || parent.closest('script, style')) continue;
  if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
  // The labels of charts depend on the space for them.
  if (!parent.closest('.charts')) seen.texts.push(text);
  const range = page.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (box.width <= 1 || box.height <= 1) continue;
    const cutters = [...chain(parent)].filter(cuts).map((it) => it.getBoundingClientRect());
    // A label without space is moved out of its segment.
    if (cutters.some((edge) => Math.min(...shared(box, edge)) <= 1)) continue;
    const isCut = cutters.some(
      (edge) => shared(box, edge)[0] < box.width - 1 || shared(box, edge)[1] < box.height * 0.8
    );
    if (isCut) faults.add(`clipped: ${nameOf(parent)} "${text}"`);
    texts.push({ box, parent, text, layer: layerOf(parent) });
  }
}

seen.labels = texts
  .filter(({ parent }) => parent.closest('.plot, .strip'))
  .map(({ box }) => [box.left, box.top, box.width, box.height]);

const width = page.documentElement.clientWidth;
if (page.documentElement.scrollWidth > width) faults.add('outside: the page scrolls sideways');
const isOutside = (box) => box.left < -1 || box.right > width + 1;
for (const { box, parent, text } of texts) {
  if (isOutside(box) && ![...chain(parent)].some(scrolls)) {
    faults.add(`outside: ${nameOf(parent)} "${text}"`);
  }
}
for (const chart of page.querySelectorAll('.plot, .strip')) {
  if (isOutside(chart.getBoundingClientRect())) faults.add(`outside: ${nameOf(chart)}`);
}

texts.forEach((one, index) => {
  for (const other of texts.slice(index + 1)) {
    if (one.parent === other.parent || one.layer !== other.layer) continue;
    const [across, down] = shared(one.box, other.box);
    if (across > 1 && down > Math.min(one.box.height, other.box.height) * 0.4) {
      faults.add(`overlap: "${one.text}" and "${other.text}"`);
    }
  }
});

// A line or an area has the color of its key in the legend.
seen.marks = 0;
for (const mark of page.querySelectorAll('.lane path.l, .lane path.a')) {
  const [isLine, kind] = [mark.classList.contains('l'), mark.classList.item(1)];
  const key = kind && mark.closest('.lane').querySelector(`.k.${CSS.escape(kind)}`);
  if (!key) continue;
  seen.marks += 1;
  const inKey = styleOf(key, '::before')[isLine ? 'borderTopColor' : 'backgroundColor'];
  const drawn = styleOf(mark)[isLine ? 'stroke' : 'fill'];
  if (inKey !== drawn) faults.add(`color: ${nameOf(mark)} is ${drawn}, its key ${inKey}`);
}
seen.faults = [...faults];
