// Changes of parts of a scenario that leave the rest of its text as it is.

import { Document, isMap, isScalar, isSeq, type Node, parseDocument, type YAMLMap } from "yaml";
import type { Kind } from "./model.ts";
import type { Path } from "./schema.ts";
import { CantChange, type Change, columnOf, nodeAt, rangeOf, read, setValue, valueAt } from "./values.ts";

function parsed(text: string): Document {
  read(text);
  return parseDocument(text);
}

/** The node of a signal, and its path. */
function signalAt(document: Document, path: Path): { node: Node; path: Path } {
  // A single series without labels is shown as a value.
  const places = path.at(-1) === "value" ? [path, [...path.slice(0, -1), "series", 0, "value"]] : [path];
  for (const place of places) {
    const node = nodeAt(document, place);
    if (node) return { node, path: place };
  }
  throw new CantChange("The load is written in a form that can't be changed here.");
}

/** The signal under noise; undefined if a node has no noise. */
function underNoise(node: Node): Node | undefined {
  if (!isMap(node) || !node.has("noise")) return undefined;
  return (node as YAMLMap<unknown, Node>).get("of", true) ?? undefined;
}

/** Puts a signal in flow style, such as `{steps: […]}`, in the place of another, whose noise remains. */
export function replaceSignal(text: string, path: Path, signal: string): Change {
  const { node } = signalAt(read(text), path);
  const { from, to } = rangeOf(text, underNoise(node) ?? node);
  const line = text.slice(text.lastIndexOf("\n", from - 1) + 1);
  const indent = " ".repeat((/^[\s-]*/.exec(line)?.[0].length ?? 0) + 4);
  return { from, to, insert: signal.replaceAll("\n", `\n${indent}`) };
}

/** What the page shows of a signal. */
export interface Described {
  /** The noise in percent; empty without noise. */
  noise: string;
  /** The formula of which the points are samples; empty if they are not. */
  formula: string;
  /** The range in the text. */
  from: number;
  to: number;
}

/** The mark of a formula, in a comment of the points. */
const FORMULA = "# f(t) = ";

/** Points with the formula that they are samples of, in flow style. */
export function withFormula(points: string, formula: string): string {
  return points.replace(/\[\s*/, () => `[  ${FORMULA}${formula}\n`);
}

export function describeSignal(text: string, path: Path): Described {
  const document = read(text);
  const { node, path: place } = signalAt(document, path);
  const range = rangeOf(text, node);
  const comment = text.slice(range.from, range.to).split("\n").find((line) => line.includes(FORMULA)) ?? "";
  const formula = comment === "" ? "" : comment.slice(comment.indexOf(FORMULA) + FORMULA.length).trim();
  const noise = isMap(node) ? valueAt(document, [...place, "noise"])?.replace(/\s*%$/, "") : undefined;
  return { noise: noise ?? "", formula, ...range };
}

/** Sets the noise of a signal in percent, or removes it if it is empty. */
export function setNoise(text: string, path: Path, percent: string): Change {
  const document = read(text);
  const { node, path: place } = signalAt(document, path);
  const inner = underNoise(node);
  const { from, to } = rangeOf(text, node);
  if (inner && percent !== "") return setValue(text, [...place, "noise"], `${percent}%`);
  const column = columnOf(text, from);
  if (inner) {
    const { from: start, to: end } = rangeOf(text, inner);
    return { from, to, insert: isBlock(inner) ? moved(text, inner, column) : text.slice(start, end) };
  }
  if (percent === "") return { from, to: from, insert: "" };
  if (isBlock(node)) {
    const indent = " ".repeat(column);
    const body = moved(text, node, column + 2);
    return { from, to, insert: `noise: ${percent}%\n${indent}of:\n${indent}  ${body}` };
  }
  return { from, to, insert: `{noise: ${percent}%, of: ${text.slice(from, to)}}` };
}

/** The value in a new document, so that it can be written by itself. */
function written(value: unknown): string {
  const document = new Document();
  document.contents = document.createNode(value) as never;
  return document.toString({ lineWidth: 0 }).trimEnd();
}

/** Sets or removes (with `undefined`) `spec.behavior` of the HPA. */
export function replaceBehavior(text: string, behavior: object | undefined): Change {
  return replaceInSpec(text, undefined, { behavior });
}

/** Sets or removes (with `undefined`) fields of the spec of the HPA with a name, or of the first one. */
export function replaceInSpec(text: string, hpa: string | undefined, fields: Record<string, unknown>): Change {
  const document = parsed(text);
  const several: unknown = document.get("hpas");
  const isNamed = (node: unknown): boolean => isMap(node) && node.getIn(["metadata", "name"]) === hpa;
  const index = isSeq(several) && hpa !== undefined ? several.items.findIndex(isNamed) : 0;
  const path = isSeq(several) ? ["hpas", index] : ["hpa"];
  const spec = nodeAt(document, [...path, "spec"]);
  if (!isMap(spec)) {
    throw new CantChange("The text contains no spec of the HPA, so the settings can't be changed here.");
  }
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) spec.delete(name);
    else spec.set(name, document.createNode(value));
  }
  const { from, to } = rangeOf(text, spec);
  if (spec.flow) {
    // Written by itself, a map in flow style stays on one line.
    return { from, to, insert: written(spec) };
  }
  const indent = " ".repeat(columnOf(text, from));
  return { from, to, insert: written(spec).replaceAll("\n", `\n${indent}`).replace(/[ ]+$/gm, "") };
}

/** The text of a node, without its indentation. */
function asWritten(text: string, node: Node): string {
  return moved(text, node, 0);
}

/** The text of a node, with its lines moved as if it began at a column. */
function moved(text: string, node: Node, column: number): string {
  const { from, to } = rangeOf(text, node);
  const indent = new RegExp(`\\n {0,${columnOf(text, from)}}(?!\\n)`, "g");
  return text.slice(from, to).replace(indent, `\n${" ".repeat(column)}`);
}

/** Returns true for a map in block style. */
function isBlock(node: Node): boolean {
  return isMap(node) && node.flow !== true;
}

/** The kinds of the autoscalers of a scenario: an HPA, a VPA, or both. */
export function kindsOf(text: string): Kind[] {
  const hasVpa = /^["']?(vpas?|script)["']?\s*:/m.test(text);
  const hasHpa = /^["']?hpas?["']?\s*:/m.test(text);
  if (!hasVpa) return ["hpa"];
  return hasHpa ? ["hpa", "vpa"] : ["vpa"];
}

/** The names of kinds, for people: `HPA and VPA`. */
export function namesOf(kinds: Kind[]): string {
  return kinds.map((kind) => kind.toUpperCase()).join(" and ");
}

/** The manifests of the HPAs and VPAs, as for `kubectl apply`. */
export function manifests(text: string, read: (name: string) => string | undefined): string {
  const document = parsed(text);
  const nodes = kindsOf(text).flatMap((kind) => {
    const several = nodeAt(document, [`${kind}s`]);
    const nodes = isSeq(several) ? several.items : [nodeAt(document, [kind])];
    return nodes.map((node) => ({ kind, node }));
  });
  const texts = nodes.map(({ kind, node }) => {
    if (!isMap(node)) throw new CantChange(`The scenario contains no ${kind.toUpperCase()}.`);
    const file: unknown = node.get("file");
    if (typeof file !== "string") return `${asWritten(text, node)}\n`;
    const found = read(file);
    if (found === undefined) throw new CantChange(`The file ${file} is not in the playground.`);
    return found.endsWith("\n") ? found : `${found}\n`;
  });
  return texts.join("---\n");
}

/** The name of the first autoscaler, for names of files. */
export function nameOf(text: string): string {
  const document = parseDocument(text);
  const places = ["hpa", "vpa"].flatMap((kind) => [[kind], [`${kind}s`, 0]]);
  for (const place of places) {
    const node: unknown = document.getIn([...place, "metadata", "name"], true);
    const name = isScalar(node) ? node.value : undefined;
    if (typeof name === "string" && /^[\w.-]+$/.test(name)) return name;
  }
  return "scenario";
}

/** The smallest change that makes one text from another, so that the cursor keeps its place. */
export function difference(before: string, after: string): Change {
  let start = 0;
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
