// The load of a scenario as a curve, which can be drawn with the mouse or the keyboard.

import { byId, make, option } from "./dom.ts";
import { type Described, describeSignal, replaceSignal, setNoise, withFormula } from "./edit.ts";
import { FormulaError, sample } from "./formula.ts";
import type { Curve, Problem } from "./model.ts";
import type { Path } from "./schema.ts";
import { CantChange, type Change, positionOf } from "./values.ts";

const WIDTH = 1000;
const HEIGHT = 180;
/** The number of steps of a drawn load. */
const COLUMNS = 60;
/** The number of moves with an arrow key from the bottom to the top. */
const LEVELS = 40;

export interface LoadEvents {
  /** The load is changed in one of the ways of `by`. While it is drawn or typed, others follow. */
  changed(by: "drawing" | "shape" | "formula" | "noise", change: (text: string) => Change, isOpen: boolean): void;
  /** A field was left. */
  ended(): void;
  pasteCsv(path: Path): void;
}

/** A shape of a load, between 0 and 1 of the height of the chart. */
interface Shape {
  title: string;
  signal(top: number, seconds: number): string;
}

const SHAPES: Shape[] = [
  { title: "Constant", signal: (top) => quantity(top / 2) },
  {
    title: "A short burst",
    signal: (top, end) => steps([[0, top * 0.2], [end * 0.25, top * 0.9], [end * 0.35, top * 0.2]]),
  },
  {
    title: "A long burst",
    signal: (top, end) => steps([[0, top * 0.2], [end * 0.2, top * 0.8], [end * 0.6, top * 0.2]]),
  },
  {
    title: "Up and down in straight lines",
    signal: (top, end) => points([[0, top * 0.1], [end * 0.5, top * 0.9], [end, top * 0.1]]),
  },
  {
    title: "A staircase",
    signal: (top, end) => steps([0, 1, 2, 3, 4].map((index) => [end * index / 5, top * (index + 1) / 6])),
  },
  {
    title: "A wave",
    signal: (top, end) =>
      `{sine: {mean: ${quantity(top / 2)}, amplitude: ${quantity(top * 0.4)}, period: ${time(end / 2)}}}`,
  },
];

/** A quantity in YAML: `3`, `1500m`, `512Mi`. */
export function quantity(value: number): string {
  const mebi = value / 2 ** 20;
  if (mebi >= 16) return `${Math.round(mebi)}Mi`;
  const rounded = Number(value.toPrecision(3));
  return Number.isInteger(rounded) ? String(rounded) : `${Math.round(rounded * 1000)}m`;
}

/** A duration as Kubernetes prints it: `6m15s`, `2h`. */
export function time(seconds: number): string {
  const rounded = Math.round(seconds);
  const parts: [number, string][] = [
    [Math.floor(rounded / 3600), "h"], [Math.floor(rounded / 60) % 60, "m"], [rounded % 60, "s"],
  ];
  return parts.filter(([count]) => count > 0).map(([count, unit]) => `${count}${unit}`).join("") || "0s";
}

/** The distances of labels of time in seconds, as in the timelines (crates/report/src/scale.rs). */
const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800,
];
/** The maximum number of labels of time. */
const TIME_LABELS = 8;
const DAY = 86_400;

/** The labels of an axis of time, at the same times as those of the timelines. */
export function timeLabels(seconds: number): { at: number; text: string }[] {
  const end = Math.max(1, Math.floor(seconds));
  const step = TIME_STEPS.find((it) => Math.floor(end / it) <= TIME_LABELS)
    ?? (Math.floor(end / TIME_LABELS / DAY) + 1) * DAY;
  const textOf = (at: number): string => {
    const [days, hours] = [Math.floor(at / DAY), Math.floor(at / 3600) % 24];
    if (end < 2 * DAY || days === 0) return time(at);
    return hours === 0 ? `${days}d` : `${days}d${hours}h`;
  };
  const times = Array.from({ length: Math.floor(end / step) + 1 }, (_, index) => index * step);
  return times.map((at) => ({ at, text: textOf(at) }));
}

/** The unit of the values of a curve; empty if the metric has one of its own. */
export function unitOf({ path, title }: Curve): string {
  if (path[1] !== "resource") return "";
  return { cpu: "cores", memory: "bytes" }[/^[\w-]*/.exec(title)?.[0] ?? ""] ?? "";
}

/** A value for people: `2.5`, `512Mi`. */
function shown(value: number): string {
  return value >= 16 * 2 ** 20 ? quantity(value) : String(Number(value.toPrecision(3)));
}

function list(name: "steps" | "points", values: [number, number][]): string {
  const lines: string[] = [];
  values.forEach(([at, value], index) => {
    const item = `{at: ${time(at)}, value: ${quantity(value)}}`;
    if (index % 3 === 0) lines.push(item);
    else lines[lines.length - 1] += `, ${item}`;
  });
  return lines.length === 1 ? `{${name}: [${lines[0]}]}` : `{${name}: [\n${lines.join(",\n")}]}`;
}

export function steps(values: [number, number][]): string {
  const distinct = values.filter(([, value], index) => {
    const before = values[index - 1];
    return !before || quantity(before[1]) !== quantity(value);
  });
  return list("steps", distinct);
}

function points(values: [number, number][]): string {
  return list("points", values);
}

/** A round number that is not smaller. */
function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((it) => it >= value * 0.999) ?? value;
}

function svg(name: string, attributes: Record<string, string>): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export class Load {
  private curves: Curve[] = [];
  private seconds = 60;
  private top = 1;
  private isOwnTop = false;
  /** The drawn values, one for each column, while the load is drawn. */
  private drawn: number[] | undefined;
  private column = 0;
  private text = "";
  /** What the fields have written last, with which they agree although they can look different. */
  private written: { formula?: string; noise?: string } = {};
  private readonly formula = byId<HTMLInputElement>("load-formula");
  private readonly noise = byId<HTMLInputElement>("load-noise");
  private readonly problem = byId("load-problem");
  /** Why the typed formula can't be used; it is not in the text. */
  private formulaProblem = "";
  /** The problems of the text that are in the load. */
  private textProblem = "";
  private readonly select = byId<HTMLSelectElement>("load-metric");
  private readonly scale = byId<HTMLInputElement>("load-top");
  private readonly shapes = byId<HTMLSelectElement>("load-shape");
  private readonly area = byId("load-area");
  private readonly none = byId("load-none");
  private readonly labels = byId("load-labels");
  private readonly unit = byId("load-unit");
  private readonly line = svg("path", { class: "l value" });
  private readonly plain = svg("path", { class: "l plain" });
  private readonly fill = svg("path", { class: "load-fill" });
  private readonly grid = svg("path", { class: "g" });
  private readonly caret = svg("path", { class: "load-caret" });

  constructor(private readonly events: LoadEvents) {
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
    chart.append(this.grid, this.fill, this.line, this.plain, this.caret);
    this.area.prepend(chart);
    this.shapes.append(option("", "Choose…"), ...SHAPES.map((it, index) => option(String(index), it.title)));
    this.select.addEventListener("change", () => this.choose());
    this.scale.addEventListener("change", () => {
      const value = Number(this.scale.value);
      if (value > 0) [this.top, this.isOwnTop] = [value, true];
      this.draw();
    });
    this.shapes.addEventListener("change", () => {
      const shape = SHAPES[Number(this.shapes.value)];
      const { curve } = this;
      if (shape && curve) this.put("shape", curve, shape.signal(this.top, this.seconds), false);
      this.shapes.value = "";
    });
    this.listenToFields();
    byId("load-csv").addEventListener("click", () => {
      if (this.curve) this.events.pasteCsv(this.curve.path);
    });
    this.listen();
  }

  /** Shows the loads of a scenario, whose text they are in. */
  show(curves: Curve[], seconds: number, text: string): void {
    const chosen = this.curve?.path.join("/");
    this.curves = curves;
    this.text = text;
    this.seconds = Math.max(1, seconds);
    this.select.replaceChildren(...curves.map((curve) => option(curve.path.join("/"), curve.title)));
    if (curves.some((curve) => curve.path.join("/") === chosen)) this.select.value = chosen ?? "";
    byId("load").classList.toggle("without", curves.length === 0);
    this.none.hidden = curves.length > 0;
    if (this.drawn) this.draw();
    else this.choose(false);
  }

  private get curve(): Curve | undefined {
    return this.curves.find((curve) => curve.path.join("/") === this.select.value);
  }

  /** The formula and the noise of the shown load, as the text has them. */
  private described(): Described | undefined {
    if (!this.curve) return undefined;
    try {
      return describeSignal(this.text, this.curve.path);
    } catch (error) {
      if (error instanceof CantChange) return undefined;
      throw error;
    }
  }

  private showFields(): void {
    const { formula = "", noise = "" } = this.described() ?? {};
    if (document.activeElement !== this.formula || this.written.formula !== formula) {
      this.formula.value = formula;
      this.written.formula = formula;
      this.refuse("");
    }
    if (document.activeElement !== this.noise || this.written.noise !== noise) this.noise.value = noise;
  }

  /** Shows the problems of the text that are in the shown load. */
  mark(problems: Problem[], text: string): void {
    this.text = text;
    const range = this.described();
    const own = problems.filter(({ file, line, column }) => {
      if (file || line < 1 || !range) return false;
      const position = positionOf(text, line, column);
      return range.from <= position && position <= range.to;
    });
    this.textProblem = own.map(({ what, hint }) => (hint ? `${what} (hint: ${hint})` : what)).join("\n");
    this.showProblem();
  }

  /** Puts a signal in flow style in the place of that of a curve. */
  private put(by: "drawing" | "shape" | "formula", { path }: Curve, signal: string, isOpen: boolean): void {
    this.events.changed(by, (text) => replaceSignal(text, path, signal), isOpen);
  }

  /** Shows why a formula can't be used; an empty text if it can. */
  private refuse(problem: string): void {
    this.formulaProblem = problem;
    this.formula.setAttribute("aria-invalid", String(problem !== ""));
    this.showProblem();
  }

  private showProblem(): void {
    const problem = this.formulaProblem || this.textProblem;
    if (this.problem.textContent !== problem) this.problem.textContent = problem;
    this.problem.hidden = problem === "";
  }

  private listenToFields(): void {
    const enter = (isOpen: boolean): void => {
      const formula = this.formula.value.trim();
      const { curve } = this;
      if (!curve || formula === "") return this.refuse("");
      if (formula === this.written.formula) {
        this.refuse("");
        return isOpen ? undefined : this.events.ended();
      }
      try {
        const signal = list("points", sample(formula, this.seconds));
        this.written.formula = formula;
        this.refuse("");
        this.put("formula", curve, withFormula(signal, formula), isOpen);
      } catch (error) {
        if (!(error instanceof FormulaError)) throw error;
        this.refuse(error.message);
      }
    };
    this.formula.addEventListener("input", () => enter(true));
    this.formula.addEventListener("change", () => enter(false));
    const set = (isOpen: boolean): void => {
      const { curve } = this;
      if (!curve || this.noise.validity.badInput) return;
      const percent = Number(this.noise.value) === 0 ? "" : this.noise.value;
      this.written.noise = percent;
      this.events.changed("noise", (text) => setNoise(text, curve.path, percent), isOpen);
    };
    this.noise.addEventListener("input", () => set(true));
    this.noise.addEventListener("change", () => set(false));
    for (const field of [this.formula, this.noise]) field.addEventListener("blur", () => this.events.ended());
  }

  private choose(isNew = true): void {
    this.showFields();
    if (isNew) this.isOwnTop = false;
    const most = Math.max(0, ...(this.curve?.points ?? []).map(([, value]) => value ?? 0));
    if (!this.isOwnTop || most > this.top) {
      // A scale that changes with each stroke would be hard to draw on.
      const fits = most <= this.top && most > this.top / 4 && !isNew;
      if (!fits) this.top = roundUp(most * 1.3);
    }
    this.scale.value = String(this.top);
    this.unit.textContent = this.curve ? unitOf(this.curve) : "";
    this.draw();
  }

  private draw(): void {
    const y = (value: number): string =>
      (HEIGHT - 1 - Math.min(1, Math.max(0, value / this.top)) * (HEIGHT - 2)).toFixed(1);
    const x = (seconds: number): string => (seconds / this.seconds * WIDTH).toFixed(1);
    const curve = this.drawn
      ? this.drawn.flatMap((value, index): [number, number][] =>
        [[this.start(index), value], [this.start(index + 1), value]])
      : this.curve?.points ?? [];
    const pathOf = (curve: Curve["points"]): string => {
      let path = "";
      let isDown = false;
      for (const [at, value] of curve) {
        if (value !== null) path += `${isDown ? "L" : "M"}${x(at)} ${y(value)}`;
        isDown = value !== null;
      }
      return path;
    };
    const path = pathOf(curve);
    this.line.setAttribute("d", path);
    this.plain.setAttribute("d", this.drawn ? "" : pathOf(this.curve?.withoutNoise ?? []));
    const isWhole = curve.every(([, value]) => value !== null) && path !== "";
    this.fill.setAttribute("d", isWhole ? `M0 ${HEIGHT}${path.replace("M", "L")}L${WIDTH} ${HEIGHT}Z` : "");
    this.drawAxes();
    const at = (this.column + 0.5) / COLUMNS * WIDTH;
    this.caret.setAttribute("d", `M${at} 0V${HEIGHT}`);
    this.describe();
  }

  private drawAxes(): void {
    const rows = [0.25, 0.5, 0.75].map((part) => `M0 ${HEIGHT * part}H${WIDTH}`);
    this.grid.setAttribute("d", rows.join(""));
    const values = [1, 0.5, 0].map((part) => {
      const label = make("span", { className: "y" }, shown(this.top * part));
      label.style.top = `${(1 - part) * 100}%`;
      return label;
    });
    const labels = timeLabels(this.seconds);
    const times = labels.map(({ at, text }, index) => {
      const percent = at / this.seconds * 100;
      const edge = percent > 96 ? " r" : "";
      const label = make("span", { className: `x ${index % 2 === 1 ? "odd" : "even"}${edge}` }, text);
      label.style.left = `${percent}%`;
      return label;
    });
    // Many or long labels need more room.
    const characters = labels.reduce((sum, { text }) => sum + text.length, 0);
    this.labels.classList.toggle("many", characters > 24);
    const unit = this.unit.textContent ?? "";
    const head = unit === "" ? [] : [make("span", { className: "y axis-unit" }, unit)];
    this.labels.replaceChildren(...head, ...values, ...times);
  }

  private describe(): void {
    const value = this.values()[this.column] ?? 0;
    const name = this.curve?.title ?? "no metric";
    this.area.setAttribute("aria-valuenow", String(this.column));
    const amount = `${shown(value)} ${this.unit.textContent ?? ""}`.trim();
    this.area.setAttribute("aria-valuetext", `${name}: ${amount} at ${time(this.start(this.column))}`);
  }

  /** The start of a column, in seconds. */
  private start(column: number): number {
    return Math.round(column / COLUMNS * this.seconds);
  }

  /** The value of each column of the present curve, without its noise. */
  private values(): number[] {
    if (this.drawn) return this.drawn;
    const found = this.curve?.withoutNoise ?? this.curve?.points ?? [];
    return Array.from({ length: COLUMNS }, (_, column) => {
      const at = this.start(column);
      return found.findLast(([seconds]) => seconds <= at)?.[1] ?? 0;
    });
  }

  /** Writes the drawn values to the scenario. */
  private write(isDrawing: boolean): void {
    const { curve, drawn } = this;
    if (!curve || !drawn) return;
    const values = drawn.map((value, column): [number, number] => [this.start(column), value]);
    // Short scenarios have fewer seconds than columns.
    const distinct = values.filter(([at], index) => index === 0 || at !== values[index - 1]?.[0]);
    this.put("drawing", curve, steps(distinct), isDrawing);
  }

  private listen(): void {
    let last: { column: number; value: number } | undefined;
    let isWaiting = false;
    const place = (event: PointerEvent): { column: number; value: number } => {
      const box = this.area.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left) / box.width * COLUMNS);
      const part = 1 - (event.clientY - box.top) / box.height;
      const value = Math.round(Math.min(1, Math.max(0, part)) * 100) / 100 * this.top;
      return { column: Math.min(COLUMNS - 1, Math.max(0, column)), value };
    };
    const draw = (event: PointerEvent): void => {
      const to = place(event);
      const from = last ?? to;
      this.drawn ??= this.values();
      const count = Math.abs(to.column - from.column);
      for (let index = 0; index <= count; index += 1) {
        const part = count === 0 ? 1 : index / count;
        const column = from.column + Math.sign(to.column - from.column) * index;
        this.drawn[column] = from.value + (to.value - from.value) * part;
      }
      last = to;
      this.column = to.column;
      this.draw();
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(() => {
        isWaiting = false;
        // The stroke can have ended before the frame.
        if (this.drawn) this.write(true);
      });
    };
    this.area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.curve) return;
      this.area.setPointerCapture(event.pointerId);
      last = undefined;
      draw(event);
    });
    this.area.addEventListener("pointermove", (event) => {
      if (this.area.hasPointerCapture(event.pointerId)) draw(event);
    });
    const end = (): void => {
      if (!this.drawn) return;
      this.write(false);
      this.drawn = undefined;
      last = undefined;
    };
    this.area.addEventListener("pointerup", end);
    this.area.addEventListener("pointercancel", end);
    this.area.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = {
      ArrowLeft: -1, ArrowRight: 1, Home: -COLUMNS, End: COLUMNS, PageUp: -10, PageDown: 10,
    };
    const move = moves[event.key];
    const change = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if ((move === undefined && change === undefined) || !this.curve) return;
    event.preventDefault();
    const before = this.column;
    this.column = Math.min(COLUMNS - 1, Math.max(0, before + (move ?? 0)));
    // With Shift, the value at the caret is carried along.
    if (change === undefined && !event.shiftKey) return this.draw();
    const values = [...this.values()];
    const value = (values[before] ?? 0) + (change ?? 0) * this.top / LEVELS;
    const [low, high] = [Math.min(before, this.column), Math.max(before, this.column)];
    for (let column = low; column <= high; column += 1) {
      values[column] = Math.min(this.top, Math.max(0, value));
    }
    this.drawn = values;
    this.write(false);
    this.draw();
    this.drawn = undefined;
  }
}
