// Comparison of screenshots, by the measure of suites/live/html/pictures.rs: a whole picture is compared coarsely,
// because the fonts of machines differ; each chart is compared closely, where it is. Other parts, which are
// mostly text, must have about the same amount of ink.

/** The number of fields of a whole picture, in each direction: other fonts make no difference. */
const FIELDS = 32;
/** The largest mean difference of a whole picture, from 0 to 1. */
const MOST = 0.02;
/** The size of a field of a chart, in pixels. */
const CHART_FIELD = [10, 5];
/** The largest difference of a chart, as a part of everything that is drawn in it. */
const MOST_OF_CHART = 0.25;
/** The largest difference of the amount of ink of another part. */
const MOST_OF_TEXT = 0.4;

/** The charts and the other parts of the page, by their selectors. */
const CHARTS = "#load-area, .plot, .strip";
const TEXTS = "#bar, #editor, #fields, #load .row, #figures, .player, .panel, #log";

/** The places of the elements that are completely visible: `[left, top, width, height]`, by their number. */
const visible = (page, selectors) => page.$$eval(selectors, (all) => Object.fromEntries(all.flatMap((element, index) => {
  const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
  const isInside = width > 0 && height > 0 && left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  return isInside ? [[index, [left, top, width, height].map(Math.round)]] : [];
})));

/** A picture of the page, with the places of its parts. */
export async function take(page) {
  const image = Buffer.from(await page.screenshot({ type: "webp", quality: 75 }));
  return { image, charts: await visible(page, CHARTS), texts: await visible(page, TEXTS) };
}

/**
 * The mean colors of the fields of parts of a picture, from 0 to 1, and its size. The browser reads the
 * picture. Before that, `blank` is filled with the background.
 */
function colors(page, image, parts, background, blank) {
  const address = `data:image/webp;base64,${image.toString("base64")}`;
  return page.evaluate(async (address, parts, background, blank) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    const { width, height } = image;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    context.fillStyle = `rgb(${background.join(",")})`;
    if (blank) context.fillRect(...blank);
    const found = parts.map(({ part, field }) => {
      const [left, top, wide, high] = part ?? [0, 0, width, height];
      const [stepX, stepY] = field.map((it) => Math.ceil(it));
      const { data } = context.getImageData(left, top, wide, high);
      const columns = Math.ceil(wide / stepX);
      const sums = Array.from({ length: columns * Math.ceil(high / stepY) }, () => [0, 0, 0, 0]);
      for (let y = 0; y < high; y += 1) {
        for (let x = 0; x < wide; x += 1) {
          const sum = sums[Math.floor(y / stepY) * columns + Math.floor(x / stepX)];
          for (let channel = 0; channel < 3; channel += 1) sum[channel] += data[(y * wide + x) * 4 + channel] / 255;
          sum[3] += 1;
        }
      }
      return sums.map(([red, green, blue, count]) => [red / count, green / count, blue / count]);
    });
    return { size: [width, height], found };
  }, address, parts, background, blank);
}

/** The mean distance of the channels of two colors. */
const distance = (one, other) => one.reduce((sum, it, channel) => sum + Math.abs(it - other[channel]), 0) / 3;
const sum = (values) => values.reduce((sum, it) => sum + it, 0);

/** Why a picture differs from a kept one; undefined if it looks the same. */
export async function difference(page, taken, kept, background, blank) {
  const size = (image) => colors(page, image, [], background).then((it) => it.size.join("x"));
  const [own, other] = [await size(taken.image), await size(kept.image)];
  if (own !== other) return `${own}, not ${other}`;
  const [width, height] = own.split("x").map(Number);
  const whole = { kind: "the picture", field: [width / FIELDS, height / FIELDS] };
  const parts = [[whole, whole]];
  for (const [kind, field] of [["charts", CHART_FIELD], ["texts", [1e4, 1e4]]]) {
    const numbers = Object.keys(kept[kind]);
    if (numbers.join() !== Object.keys(taken[kind]).join()) return `${kind} ${Object.keys(taken[kind])}, not ${numbers}`;
    for (const number of numbers) {
      const [one, two] = [taken, kept].map((picture) => picture[kind][number]);
      const isSame = Math.abs(one[2] - two[2]) <= 1 && Math.abs(one[3] - two[3]) <= 1;
      if (kind === "charts" && !isSame) return `chart ${number} has another size: ${one}; ${two}`;
      const common = [Math.min(one[2], two[2]), Math.min(one[3], two[3])];
      const part = (place) => ({ kind, number, field, part: [place[0], place[1], ...(kind === "charts" ? common : place.slice(2))] });
      parts.push([part(one), part(two)]);
    }
  }
  const [{ found: ones }, { found: others }] = await Promise.all([
    colors(page, taken.image, parts.map(([one]) => one), background, blank),
    colors(page, kept.image, parts.map(([, two]) => two), background),
  ]);
  const color = background.map((it) => it / 255);
  for (const [index, [{ kind, number }]] of parts.entries()) {
    const [one, two] = [ones[index], others[index]];
    const ink = (fields) => sum(fields.map((it) => distance(it, color)));
    const distances = sum(one.map((it, field) => distance(it, two[field] ?? color)));
    if (kind === "charts" && distances > ink(two) * MOST_OF_CHART) return `chart ${number} differs by ${Math.round(distances / ink(two) * 100)}%`;
    if (kind === "texts" && Math.abs(ink(one) - ink(two)) > ink(two) * MOST_OF_TEXT) return `part ${number} has ${Math.round(ink(one) / ink(two) * 100)}% of its ink`;
    if (kind === whole.kind && distances / one.length > MOST) return `${Math.round(distances / one.length * 1000) / 10}% of the picture differ`;
  }
  return undefined;
}
