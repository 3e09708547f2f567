// Changes of parts of a scenario that leave the rest of its text as it is.

import { Document, isMap, isNode, isScalar, isSeq, type Node, parseDocument } from "yaml";
import type { Kind } from "./model.ts";
import type { Path } from "./schema.ts";

/** A text in place of a part of another. */
export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** The part can't be changed; the message tells the user why. */
export class CantChange extends Error {}

function parsed(text: string): Document {
  const document = parseDocument(text);
  if (document.errors.length > 0) {
    throw new CantChange("Correct the errors in the scenario first.");
  }
  return document;
}

function nodeAt(document: Document, path: Path): Node | undefined {
  const node: unknown = document.getIn(path, true);
  return isNode(node) ? node : undefined;
}

/** The range of a node, without the space after it. */
function rangeOf(text: string, node: Node): { from: number; to: number } {
  const [from = 0, to = 0] = node.range ?? [];
  return { from, to: from + text.slice(from, to).trimEnd().length };
}

function columnOf(text: string, position: number): number {
  return position - (text.lastIndexOf("\n", position - 1) + 1);
}

/** Puts a signal in flow style, such as `{steps: […]}`, in the place of another. */
export function replaceSignal(text: string, path: Path, signal: string): Change {
  const document = parsed(text);
  // A single series without labels is shown as a value.
  const places = path.at(-1) === "value" ? [path, [...path.slice(0, -1), "series", 0, "value"]] : [path];
  const node = places.map((place) => nodeAt(document, place)).find((found) => found);
  if (!node) throw new CantChange("This load is not written in the scenario in a form that can be changed here.");
  const { from, to } = rangeOf(text, node);
  const line = text.slice(text.lastIndexOf("\n", from - 1) + 1);
  const indent = " ".repeat((/^[\s-]*/.exec(line)?.[0].length ?? 0) + 4);
  return { from, to, insert: signal.replaceAll("\n", `\n${indent}`) };
}

/** The value in a new document, so that it can be written by itself. */
function written(value: unknown): string {
  const document = new Document();
  document.contents = document.createNode(value) as never;
  return document.toString({ lineWidth: 0 }).trimEnd();
}

/** Sets or removes (with `undefined`) `spec.behavior` of the HPA. */
export function replaceBehavior(text: string, behavior: object | undefined): Change {
  const document = parsed(text);
  const path = document.has("hpas") ? ["hpas", 0] : ["hpa"];
  const spec = nodeAt(document, [...path, "spec"]);
  if (!isMap(spec)) {
    throw new CantChange("The HPA is not in this text, so its settings can't be changed here.");
  }
  if (behavior === undefined) spec.delete("behavior");
  else spec.set("behavior", document.createNode(behavior));
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
  const { from, to } = rangeOf(text, node);
  const indent = new RegExp(`^ {0,${columnOf(text, from)}}`, "gm");
  return text.slice(from, to).replace(indent, "");
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
