// Completion and descriptions from the JSON Schema of scenarios.

import { type Document, isMap, isPair, isScalar, isSeq, parseDocument, visit } from "yaml";

/** The parts of JSON Schema that the schema of scenarios uses. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  title?: string;
  description?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  examples?: unknown[];
  pattern?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  if?: Schema;
  then?: Schema;
  else?: Schema;
}

export type Path = (string | number)[];

export interface Completion {
  label: string;
  /** The text to insert. */
  insert: string;
  detail: string;
  description: string;
  isKey: boolean;
}

export interface Completions {
  /** The start of the word that is completed. */
  from: number;
  list: Completion[];
}

export interface Description {
  from: number;
  to: number;
  title: string;
  text: string;
}

/** A word that no scenario contains. */
const MARK = "lockstepcursorplaceholder";

export class SchemaOfScenarios {
  constructor(private readonly root: Schema) {}

  /** The completions at a position of a text. */
  complete(text: string, position: number): Completions | undefined {
    const place = placeOf(text, position);
    if (!place) return undefined;
    const schemas = this.at(place.path, place.document);
    const list = place.isKey ? keys(this, schemas, place.siblings) : values(this, schemas);
    return { from: place.from, list };
  }

  /** The description of the field at a position. */
  describe(text: string, position: number): Description | undefined {
    const document = parseDocument(text, { strict: false });
    let found: Description | undefined;
    visit(document, {
      Pair: (_, pair, ancestors) => {
        if (!isScalar(pair.key) || !pair.key.range) return;
        const [from, to] = pair.key.range;
        if (position < from || position > to) return;
        const path = [...pathOf([...ancestors, pair])];
        const schemas = this.at(path, document);
        const description = this.description(schemas);
        if (description) found = { from, to, title: title(path, this, schemas), text: description };
      },
    });
    return found;
  }

  /** The schemas of a place: one for each alternative that fits the document. */
  private at(path: Path, document: Document): Schema[] {
    let schemas = this.fitting([this.root], [], document);
    path.forEach((step, index) => {
      const below = schemas.flatMap((schema) => this.child(schema, step));
      schemas = this.fitting(below, path.slice(0, index + 1), document);
    });
    return schemas;
  }

  /** The alternatives that fit the document; all of them if none fits, which is a mistake. */
  private fitting(schemas: Schema[], path: Path, document: Document): Schema[] {
    const found = schemas.flatMap((schema) => this.alternatives(schema, path, document));
    return found.length > 0 ? found : schemas.flatMap((schema) => this.alternatives(schema));
  }

  private child(schema: Schema, step: string | number): Schema[] {
    if (typeof step === "number") return schema.items ? [schema.items] : [];
    const property = schema.properties?.[step];
    if (property) return [property];
    return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
  }

  /** A schema without references, and its alternatives. Descriptions of the outer schema win. */
  alternatives(schema: Schema, path: Path = [], document?: Document): Schema[] {
    const found: Schema[] = [];
    const { $ref, anyOf, oneOf, ...own } = this.narrowed(schema, path, document);
    const outer = own.description ? { description: own.description } : {};
    const isOwn = own.type || own.properties || own.const !== undefined || own.enum || own.items;
    if (isOwn && fits(own, path, document)) found.push(own);
    const target = $ref?.startsWith("#/$defs/") ? this.root.$defs?.[$ref.slice(8)] : undefined;
    const others = [...(target ? [target] : []), ...(anyOf ?? []), ...(oneOf ?? [])];
    for (const other of others) {
      // An alternative such as {"required": [...]} only restricts the schema around it.
      if (Object.keys(other).every((key) => key === "required")) continue;
      const described = other.const === undefined ? { ...other, ...outer } : other;
      found.push(...this.alternatives(described, path, document));
    }
    return found;
  }

  /** A schema without the fields that its condition forbids. */
  private narrowed(schema: Schema, path: Path, document?: Document): Schema {
    const { if: condition, then, else: otherwise, ...own } = schema;
    const chosen = holds(condition, path, document) ? then : otherwise;
    if (!chosen) return own;
    if (!own.properties) return { ...this.narrowed(chosen, path, document), ...own };
    const properties = { ...own.properties };
    for (let branch: Schema | undefined = chosen; branch; ) {
      for (const [name, field] of Object.entries(branch.properties ?? {})) {
        if ((field as unknown) === false) delete properties[name];
      }
      branch = holds(branch.if, path, document) ? branch.then : branch.else;
    }
    return { ...own, properties };
  }

  private description(schemas: Schema[]): string {
    return schemas.find((schema) => schema.description)?.description?.replaceAll("\n", " ") ?? "";
  }

  describeAll(schema: Schema): string {
    return this.description([schema, ...this.alternatives(schema)]);
  }
}

/** Returns true if the document has the fields that a condition requires. */
function holds(condition: Schema | undefined, path: Path, document?: Document): boolean {
  if (!condition) return false;
  const { required, anyOf } = condition;
  const isHere = required?.every((name) => document?.hasIn([...path, name])) ?? true;
  return isHere && (anyOf?.some((it) => holds(it, path, document)) ?? true);
}

/** Returns false if a constant of the schema, such as `apiVersion`, differs in the document. */
function fits(schema: Schema, path: Path, document?: Document): boolean {
  if (!document) return true;
  return Object.entries(schema.properties ?? {}).every(([name, property]) => {
    const value: unknown = document.getIn([...path, name]);
    const isKnown = typeof value === "string" && value !== MARK;
    if (!isKnown) return true;
    if (property.const !== undefined) return property.const === value;
    return name !== "apiVersion" || !property.enum || property.enum.includes(value);
  });
}

function typeOf(schemas: Schema[]): string {
  const types = schemas.flatMap((schema) => schema.title ?? schema.type ?? []);
  const names = types.filter((name) => name !== "null").map((name) => {
    if (name === "object") return "map";
    return name === "array" ? "list" : name;
  });
  return [...new Set(names)].join(" or ");
}

function title(path: Path, schema: SchemaOfScenarios, schemas: Schema[]): string {
  const type = typeOf(schemas.flatMap((it) => schema.alternatives(it)));
  return type ? `${String(path.at(-1))}: ${type}` : String(path.at(-1));
}

function keys(schema: SchemaOfScenarios, schemas: Schema[], siblings: Set<string>): Completion[] {
  const found = new Map<string, Completion>();
  for (const [name, property] of schemas.flatMap((it) => Object.entries(it.properties ?? {}))) {
    if (siblings.has(name) || found.has(name)) continue;
    const isRequired = schemas.some((it) => it.required?.includes(name));
    const type = typeOf(schema.alternatives(property));
    found.set(name, {
      label: name,
      insert: `${name}: `,
      detail: isRequired ? `${type}, required` : type,
      description: schema.describeAll(property),
      isKey: true,
    });
  }
  return [...found.values()];
}

function values(schema: SchemaOfScenarios, schemas: Schema[]): Completion[] {
  const found = new Map<string, Completion>();
  const add = (value: unknown, detail: string, description: string): void => {
    if (value === null || typeof value === "object") return;
    const label = String(value);
    if (found.has(label)) return;
    // A number or a boolean in quotes is a text.
    const isPlain = typeof value !== "string" || !/^([0-9.]+|true|false|True|False|null)$/.test(label);
    const insert = isPlain ? label : JSON.stringify(label);
    found.set(label, { label, insert, detail, description, isKey: false });
  };
  for (const it of schemas) {
    const description = schema.describeAll(it);
    if (it.const !== undefined) add(it.const, "", description);
    for (const value of it.enum ?? []) add(value, "", description);
    if (it.type === "boolean") [true, false].forEach((value) => add(value, "", description));
    for (const value of it.examples ?? []) add(value, "example", description);
  }
  return [...found.values()];
}

interface Place {
  document: Document;
  path: Path;
  /** The keys of the map that the cursor is in. */
  siblings: Set<string>;
  isKey: boolean;
  from: number;
}

/** The place of a position in the tree of the document. The word there is replaced by a mark. */
function placeOf(text: string, position: number): Place | undefined {
  const word = /[\w/.%>=<-]*$/.exec(text.slice(0, position))?.[0] ?? "";
  const from = position - word.replace(/^-+(?= |$)/, "").length;
  const rest = /^[\w/.%-]*/.exec(text.slice(position))?.[0] ?? "";
  const before = text.slice(text.lastIndexOf("\n", from - 1) + 1, from);
  const isKey = /^\s*(- +)*$/.test(before) || /[{,]\s*$/.test(before);
  const isValue = /:\s+$/.test(before) || /[[]\s*$/.test(before) || /^\s*(- +)+$/.test(before);
  const after = text.slice(position + rest.length);
  if (/^\s*#/.test(before) || (isKey && /^\s*:/.test(after) && rest !== "")) return undefined;
  for (const asKey of [true, false].filter((key) => (key ? isKey : isValue))) {
    const mark = asKey ? `${MARK}: ` : MARK;
    const colon = asKey ? after.replace(/^ *:/, "") : after;
    const document = parseDocument(text.slice(0, from) + mark + colon, { strict: false });
    const place = findMark(document, asKey);
    if (place) return { document, isKey: asKey, from, ...place };
  }
  return undefined;
}

function findMark(
  document: Document,
  asKey: boolean,
): { path: Path; siblings: Set<string> } | undefined {
  let found: { path: Path; siblings: Set<string> } | undefined;
  visit(document, {
    Scalar: (key, scalar, ancestors) => {
      if (scalar.value !== MARK || (key === "key") !== asKey) return;
      const path = pathOf(ancestors);
      const map = ancestors.findLast((node) => isMap(node));
      const names = isMap(map) ? map.items.map((pair) => String(isScalar(pair.key) ? pair.key.value : "")) : [];
      const step = typeof key === "number" ? [key] : [];
      found = { path: asKey ? path.slice(0, -1) : [...path, ...step], siblings: new Set(names) };
    },
  });
  return found;
}

/** The path of the last of some nodes, each of which contains the next. */
function pathOf(ancestors: readonly unknown[]): Path {
  const path: Path = [];
  ancestors.forEach((node, index) => {
    const next = ancestors[index + 1];
    if (isPair(node) && isScalar(node.key)) path.push(String(node.key.value));
    else if (isSeq(node) && next !== undefined) path.push(node.items.indexOf(next as never));
  });
  return path;
}
