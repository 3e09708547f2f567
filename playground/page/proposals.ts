// A line in the charts of replicas: the proposals of the metrics, before stabilization and limits.

import { make } from "./dom.ts";
import type { Proposals } from "./model.ts";

const SVG = "http://www.w3.org/2000/svg";

/** Draws the proposals of HPAs into their timelines, which are in the same order. */
export function drawProposals(timelines: Element[], proposals: Proposals[]): void {
  if (timelines.length !== proposals.length) return;
  timelines.forEach((timeline, index) => {
    const own = proposals[index];
    const lane = [...timeline.querySelectorAll(".lane")].find((it) => it.querySelector(".cap b")?.textContent === "Replicas");
    const name = timeline.querySelector(".cur")?.getAttribute("aria-label") ?? "";
    if (own && lane && name.includes(own.hpa)) draw(lane, own);
  });
}

/** The height of a value in a chart, from its labels. */
function axisOf(lane: Element): ((value: number) => number) | undefined {
  const labels = [...lane.querySelectorAll<HTMLElement>(".plot > .y")].map((label) => ({
    value: Number(label.textContent), top: parseFloat(label.style.top) / 100,
  }));
  const [first, last] = [labels[0], labels.at(-1)];
  if (!first || !last || first.value === last.value) return undefined;
  const slope = (last.top - first.top) / (last.value - first.value);
  return (value) => first.top + slope * (value - first.value);
}

function draw(lane: Element, { points, end }: Proposals): void {
  const chart = lane.querySelector("svg");
  const axis = axisOf(lane);
  if (!chart || !axis) return;
  const { width, height } = chart.viewBox.baseVal;
  const x = (seconds: number): string => (Math.min(1, seconds / end) * width).toFixed(1);
  const y = (value: number): string => (axis(value) * height).toFixed(1);
  let path = "";
  let before: number | null = null;
  points.forEach(([at, value], index) => {
    if (value !== null) {
      if (before === null) path += `M${x(at)} ${y(value)}`;
      else if (before !== value) path += `H${x(at)}V${y(value)}`;
      const next = points[index + 1];
      // A step of the same height makes the line longer.
      if (next?.[1] !== value) path += `H${x(next?.[0] ?? end)}`;
    }
    before = value;
  });
  if (path === "") return;
  // What is above the chart is cut off at its edge.
  const clip = document.createElementNS(SVG, "svg");
  for (const [name, size] of [["width", width], ["height", height]] as const) clip.setAttribute(name, String(size));
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("class", "l proposal");
  line.setAttribute("d", path);
  clip.append(line);
  chart.append(clip);
  const most = Math.max(...points.map(([, value]) => value ?? 0));
  const text = axis(most) < 0 ? `proposal of the metrics, up to ${most} (above the chart)` : "proposal of the metrics";
  lane.querySelector(".cap")?.append(make("span", { className: "k proposal" }, text));
  const about = chart.getAttribute("aria-label") ?? "";
  chart.setAttribute("aria-label", `${about} The metrics propose at most ${most}.`);
}
