// Changes of single values of a scenario: comments, the order of the fields and the layout remain.

import { type Document, isMap, isNode, isPair, isScalar, isSeq, type Node, type Pair, parseDocument, type Scalar, type YAMLMap } from "yaml";
import type { Path } from "./schema.ts";

/** A text in place of a part of another. */
export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** The part can't be changed; the message tells the user why. */
export class CantChange extends Error {}

/** The text is not valid YAML. */
export class Malformed extends CantChange {}

let last: { text: string; document: Document } | undefined;

/** The document of a text, to read from. It must not be changed: the last one is kept. */
export function read(text: string): Document {
  if (last?.text !== text) last = { text, document: parseDocument(text) };
  if (last.document.errors.length > 0) throw new Malformed("Correct the errors in the scenario first.");
  return last.document;
}

export function nodeAt(document: Document, path: Path): Node | undefined {
  const node: unknown = document.getIn(path, true);
  return isNode(node) ? node : undefined;
}

/** The range of a node, without the space after it. */
export function rangeOf(text: string, node: Node): { from: number; to: number } {
  const [from = 0, to = 0] = node.range ?? [];
  return { from, to: from + text.slice(from, to).trimEnd().length };
}

export function columnOf(text: string, position: number): number {
  return position - startOfLine(text, position);
}

function startOfLine(text: string, position: number): number {
  return position === 0 ? 0 : text.lastIndexOf("\n", position - 1) + 1;
}

function endOfLine(text: string, position: number): number {
  const end = text.indexOf("\n", position);
  return end < 0 ? text.length : end;
}

/** The scalar at a path as it is written, without quotes; undefined if it is absent or not a scalar. */
export function valueAt(document: Document, path: Path): string | undefined {
  const node = nodeAt(document, path);
  if (!isScalar(node) || isEmpty(node)) return undefined;
  return node.source ?? String(node.value);
}

/** Returns true for a field without a value: `behavior:` or `behavior: null`. */
function isEmpty(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

/** The range of a field with its value; undefined if it is absent. */
export function rangeOfField(text: string, document: Document, path: Path): { from: number; to: number } | undefined {
  const pair = pairOf(nodeAt(document, path.slice(0, -1)), path.at(-1));
  if (!pair) return undefined;
  const { from } = rangeOf(text, pair.key);
  return { from, to: endOf(text, pair) };
}

type Field = Pair<Scalar, Node | null>;

function fieldsOf(map: YAMLMap): Field[] {
  return map.items.filter((item): item is Field => isPair(item) && isScalar(item.key));
}

function pairOf(map: unknown, key: string | number | undefined): Field | undefined {
  return isMap(map) ? fieldsOf(map).find((field) => field.key.value === key) : undefined;
}

/** The end of a field, without the space and the comment after it. */
function endOf(text: string, { key, value }: Field): number {
  const end = value === null ? 0 : rangeOf(text, value).to;
  return Math.max(end, rangeOf(text, key).to);
}

/** A scalar in YAML: in quotes unless it is a name, a number or a quantity. */
export function scalar(value: string): string {
  const isPlain = /^[A-Za-z0-9.+-][\w.+%-]*$/.test(value) && !/^(null|true|false|yes|no|on|off|[.+-]+)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}

/** A value in place of another, in the same quotes. */
function inPlaceOf(node: Node, value: string): string {
  if (!isScalar(node)) return value;
  if (node.type === "QUOTE_DOUBLE") return JSON.stringify(value);
  if (node.type === "QUOTE_SINGLE") return `'${value.replaceAll("'", "''")}'`;
  return scalar(value);
}

export interface Insertion {
  /** A new field is written before the field with this name, otherwise as the last one. */
  before?: string;
  /** The value in YAML, in flow style, if it is not a scalar. */
  written?: string;
}

/** Sets the value at a path. Maps that do not exist yet are added. */
export function setValue(text: string, path: Path, value: string, { before, written }: Insertion = {}): Change {
  const document = read(text);
  const node = nodeAt(document, path);
  if (node && !isEmpty(node)) {
    if (!isScalar(node) && written === undefined) throw new CantChange(`${String(path.at(-1))} is not written as a single value, so it can't be changed here.`);
    return { ...rangeOf(text, node), insert: written ?? inPlaceOf(node, value) };
  }
  const known = path.findLastIndex((_, index) => isMap(nodeAt(document, path.slice(0, index))));
  const map = nodeAt(document, path.slice(0, known));
  const [key, ...inner] = path.slice(known);
  const existing = pairOf(map, key);
  if (!isMap(map) || typeof key !== "string" || (existing && !isEmpty(existing.value))) {
    throw new CantChange("This value is written in a form that can't be changed here.");
  }
  const own = new Insert(text, map, inner.map(String), written ?? scalar(value));
  return existing ? own.into(existing) : own.asField(key, before);
}

/** Writes a value, and the maps around it, into a map. */
class Insert {
  private readonly isFlow: boolean;

  constructor(
    private readonly text: string,
    private readonly map: YAMLMap,
    /** The names below the new field. */
    private readonly names: string[],
    private readonly value: string,
  ) {
    this.isFlow = map.flow === true;
  }

  /** The column of the fields of this map. */
  private column(): number {
    return columnOf(this.text, rangeOf(this.text, fieldsOf(this.map)[0]?.key ?? this.map).from);
  }

  /** What follows the colon of a field in this map. */
  private body(): string {
    if (this.isFlow) {
      return ` ${this.names.reduceRight((inner, name) => `{${name}: ${inner}}`, this.value)}`;
    }
    const indent = this.column();
    const lines = this.names.map((name, index) => `\n${" ".repeat(indent + 2 * (index + 1))}${name}:`);
    return `${lines.join("")} ${this.value}`;
  }

  /** Gives a value to a field that has none. */
  into(field: Field): Change {
    const colon = this.text.indexOf(":", rangeOf(this.text, field.key).to) + 1;
    const isWritten = this.text.slice(colon, endOf(this.text, field)).trim() !== "";
    const to = isWritten ? endOf(this.text, field) : colon;
    if (this.isFlow || this.names.length === 0) return { from: colon, to, insert: this.body() };
    // The comment stays on the line of the field.
    const end = endOfLine(this.text, to);
    return { from: colon, to: end, insert: this.text.slice(to, end).trimEnd() + this.body() };
  }

  asField(key: string, before: string | undefined): Change {
    const { text, map } = this;
    const field = `${key}:${this.body()}`;
    const next = before === undefined ? undefined : pairOf(map, before);
    const { from } = rangeOf(text, map);
    if (next) {
      const start = rangeOf(text, next.key).from;
      const separator = this.isFlow ? ", " : `\n${" ".repeat(columnOf(text, start))}`;
      return { from: start, to: start, insert: field + separator };
    }
    const final = fieldsOf(map).at(-1);
    if (this.isFlow) {
      const at = final ? endOf(text, final) : from + 1;
      return { from: at, to: at, insert: final ? `, ${field}` : field };
    }
    const at = endOfLine(text, final ? endOf(text, final) : from);
    return { from: at, to: at, insert: `\n${" ".repeat(this.column())}${field}` };
  }
}

/** Removes a field. Maps that would be empty without it are also removed, down to a length of the path. */
export function removeValue(text: string, path: Path, shortest: number): Change {
  const document = read(text);
  let end = path.length;
  const isLast = (map: unknown): boolean => isMap(map) && map.items.length === 1;
  while (end > shortest && isLast(nodeAt(document, path.slice(0, end - 1)))) end -= 1;
  const map = nodeAt(document, path.slice(0, end - 1));
  const field = pairOf(map, path[end - 1]);
  // Nothing to remove.
  if (!isMap(map) || !field) return { from: 0, to: 0, insert: "" };
  const { from } = rangeOf(text, field.key);
  const to = endOf(text, field);
  const fields = fieldsOf(map);
  const index = fields.indexOf(field);
  const [previous, next] = [fields[index - 1], fields[index + 1]];
  const nextStart = next ? rangeOf(text, next.key).from : to;
  if (map.flow) {
    if (next) return { from, to: nextStart, insert: "" };
    return { from: previous ? endOf(text, previous) : from, to, insert: "" };
  }
  const start = startOfLine(text, from);
  // The field that follows the dash of a list.
  if (text.slice(start, from).trim() !== "") return { from, to: nextStart, insert: next ? "" : "{}" };
  const lineEnd = endOfLine(text, to);
  if (lineEnd < text.length) return { from: start, to: lineEnd + 1, insert: "" };
  return { from: Math.max(0, start - 1), to: lineEnd, insert: "" };
}

/** The position of a line and a column in characters, both from 1. */
export function positionOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let number = 1; number < line; number += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  const before = [...text.slice(start, endOfLine(text, start))].slice(0, Math.max(0, column - 1)).join("");
  return start + before.length;
}

/** The elements of a list; the map itself if it stands for a list of one. */
export function elements(document: Document, list: Path, single: Path): Path[] {
  const several = nodeAt(document, list);
  if (isSeq(several)) return several.items.map((_, index) => [...list, index]);
  return isMap(nodeAt(document, single)) ? [single] : [];
}
