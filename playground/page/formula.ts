// Formulas for loads: a function of the time, f(t), which is sampled into points.

/** The formula can't be used; the message tells the user why. */
export class FormulaError extends Error {}

/** The value at a number of seconds. */
type Evaluate = (seconds: number) => number;

/** A value at a time, in seconds. */
export type Point = [number, number];

const CONSTANTS: Record<string, number> = { pi: Math.PI, e: Math.E, minute: 60, hour: 3600, day: 86_400 };

/** The factors of Kubernetes' quantities: `500m`, `64Mi`. */
const SUFFIXES: Record<string, number> = {
  m: 1e-3, k: 1e3, M: 1e6, G: 1e9, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40,
};

interface Callable {
  fewest: number;
  most: number;
  call(...values: number[]): number;
}

const one = (call: (value: number) => number): Callable => ({ fewest: 1, most: 1, call });
const several = (call: (...values: number[]) => number): Callable => ({ fewest: 1, most: Infinity, call });

const FUNCTIONS: Record<string, Callable> = {
  sin: one(Math.sin),
  cos: one(Math.cos),
  tan: one(Math.tan),
  exp: one(Math.exp),
  log: one(Math.log),
  sqrt: one(Math.sqrt),
  abs: one(Math.abs),
  floor: one(Math.floor),
  ceil: one(Math.ceil),
  round: one(Math.round),
  min: several(Math.min),
  max: several(Math.max),
};

/** Operators with two operands, weakest first. Comparisons are 1 or 0. */
const LEVELS: Record<string, (left: number, right: number) => number>[] = [
  {
    "<": (left, right) => Number(left < right),
    "<=": (left, right) => Number(left <= right),
    ">": (left, right) => Number(left > right),
    ">=": (left, right) => Number(left >= right),
  },
  { "+": (left, right) => left + right, "-": (left, right) => left - right },
  {
    "*": (left, right) => left * right,
    "/": (left, right) => left / right,
    // The remainder has the sign of the divisor, so that a repeated shape also repeats before 0.
    "%": (left, right) => left - right * Math.floor(left / right),
  },
];

interface Token {
  text: string;
  /** The position, from 0. */
  at: number;
  kind: "number" | "name" | "sign" | "end";
}

function tokens(formula: string): Token[] {
  const found: Token[] = [];
  const pattern = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:[KMGT]i|[mkMG])?(?![A-Za-z]))|([A-Za-z]\w*)|(<=|>=|[-+*/%^()<>?:,]))/gy;
  while (formula.slice(pattern.lastIndex).trim() !== "") {
    const { lastIndex } = pattern;
    const match = pattern.exec(formula);
    if (!match) {
      const at = lastIndex + (/\S/.exec(formula.slice(lastIndex))?.index ?? 0);
      const word = /^[\w.]+|./.exec(formula.slice(at))?.[0] ?? "";
      const hint = /^[\d.]+[A-Za-z]/.test(word) ? ": write a product with *, for example 2*t" : "";
      throw new FormulaError(`The formula can't contain ${word} (character ${at + 1})${hint}.`);
    }
    const [whole, number, name, sign = ""] = match;
    const text = number ?? name ?? sign;
    const kind = number !== undefined ? "number" : name !== undefined ? "name" : "sign";
    found.push({ text, at: match.index + whole.length - text.length, kind });
  }
  return [...found, { text: "", at: formula.length, kind: "end" }];
}

class Parser {
  private readonly list: Token[];
  private index = 0;
  private depth = 0;

  constructor(formula: string, private readonly end: number) {
    this.list = tokens(formula);
  }

  parse(): Evaluate {
    const found = this.choice();
    if (this.token.kind !== "end") this.fail("an operator");
    return found;
  }

  private get token(): Token {
    return this.list[this.index] ?? { text: "", at: 0, kind: "end" };
  }

  private fail(expected: string): never {
    const { text, at, kind } = this.token;
    const found = kind === "end" ? "the formula ends" : `it contains ${text}`;
    throw new FormulaError(`Expected ${expected} at character ${at + 1}, where ${found}.`);
  }

  private take(...texts: string[]): string | undefined {
    const { text, kind } = this.token;
    if (kind !== "sign" || !texts.includes(text)) return undefined;
    this.index += 1;
    return text;
  }

  private expect(text: string): void {
    if (this.take(text) === undefined) this.fail(text);
  }

  /** `condition ? value : other` */
  private choice(): Evaluate {
    this.depth += 1;
    if (this.depth > 100) throw new FormulaError("The formula has too many parentheses.");
    const condition = this.binary(0);
    let found = condition;
    if (this.take("?")) {
      const then = this.choice();
      this.expect(":");
      const otherwise = this.choice();
      found = (seconds) => (condition(seconds) !== 0 ? then(seconds) : otherwise(seconds));
    }
    this.depth -= 1;
    return found;
  }

  private binary(level: number): Evaluate {
    const operators = LEVELS[level];
    if (!operators) return this.signed();
    let left = this.binary(level + 1);
    for (let text = this.take(...Object.keys(operators)); text; text = this.take(...Object.keys(operators))) {
      const operator = operators[text];
      const [before, right] = [left, this.binary(level + 1)];
      if (operator) left = (seconds) => operator(before(seconds), right(seconds));
    }
    return left;
  }

  /** Signs are weaker than powers: `-2^2` is -4. */
  private signed(): Evaluate {
    let isNegative = false;
    for (let sign = this.take("-", "+"); sign; sign = this.take("-", "+")) isNegative = isNegative !== (sign === "-");
    const value = this.power();
    return isNegative ? (seconds) => -value(seconds) : value;
  }

  private power(): Evaluate {
    const base = this.value();
    if (!this.take("^")) return base;
    this.depth += 1;
    if (this.depth > 100) throw new FormulaError("The formula has too many powers.");
    const exponent = this.signed();
    this.depth -= 1;
    return (seconds) => base(seconds) ** exponent(seconds);
  }

  private value(): Evaluate {
    if (this.take("(")) {
      const inner = this.choice();
      this.expect(")");
      return inner;
    }
    const { text, kind } = this.token;
    if (kind !== "number" && kind !== "name") this.fail("a number, a name or (");
    this.index += 1;
    if (kind === "number") return numberOf(text);
    if (text === "t") return (seconds) => seconds;
    if (text === "end") return () => this.end;
    const constant = Object.hasOwn(CONSTANTS, text) ? CONSTANTS[text] : undefined;
    if (constant !== undefined) return () => constant;
    return this.call(text);
  }

  private call(name: string): Evaluate {
    const callable = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (!callable) {
      const names = ["t", "end", ...Object.keys(CONSTANTS), ...Object.keys(FUNCTIONS)].join(", ");
      throw new FormulaError(`The formula can't contain ${name}. Names are ${names}.`);
    }
    this.expect("(");
    const values = [this.choice()];
    while (this.take(",")) values.push(this.choice());
    this.expect(")");
    const { fewest, most, call } = callable;
    if (values.length < fewest || values.length > most) throw new FormulaError(`${name} has one argument.`);
    return (seconds) => call(...values.map((value) => value(seconds)));
  }
}

function numberOf(text: string): Evaluate {
  const [, digits = "", suffix = ""] = /^(.*?)([KMGT]i|[mkMG])?$/.exec(text) ?? [];
  const value = Number(digits) * (SUFFIXES[suffix] ?? 1);
  return () => value;
}

/** Longer formulas are not read. */
const LONGEST = 500;
/** At most this many values are computed: one a second in an hour. */
const SAMPLES = 3600;
/** At most this many points are written into the scenario. */
const POINTS = 240;
/** Points that change the curve by less than this part of its height are left out. */
const FINEST = 0.002;
/** With more points than can be written, the part is increased up to this one. */
const COARSEST = 0.05;

/** The points of a formula from t=0 to the end, with straight lines between them. Values below 0 become 0. */
export function sample(formula: string, end: number): Point[] {
  if (formula.length > LONGEST) throw new FormulaError(`The formula has more than ${LONGEST} characters.`);
  const evaluate = new Parser(formula, end).parse();
  const count = Math.max(1, Math.min(SAMPLES, Math.floor(end)));
  const values = Array.from({ length: count + 1 }, (_, index): Point => {
    const seconds = Math.round(end * index / count);
    const value = evaluate(seconds);
    if (!Number.isFinite(value)) throw new FormulaError(`The formula has no value at t=${seconds}.`);
    return [seconds, Math.max(0, value)];
  });
  const height = Math.max(...values.map(([, value]) => value));
  for (let precision = FINEST; precision <= COARSEST; precision *= 1.5) {
    const found = simplified(values, height * precision);
    if (found.length <= POINTS) return found;
  }
  throw new FormulaError(`The formula changes too often: ${POINTS} points can't follow it until t=${end}.`);
}

/** The fewest points that are nowhere further than a distance from the curve (Douglas and Peucker). */
function simplified(points: Point[], distance: number): Point[] {
  const isKept = new Set([0, points.length - 1]);
  const open: [number, number][] = [[0, points.length - 1]];
  for (let part = open.pop(); part; part = open.pop()) {
    const [first, last] = part;
    const [start, end] = [points[first], points[last]];
    if (!start || !end) continue;
    let furthest = -1;
    let most = distance;
    for (let index = first + 1; index < last; index += 1) {
      const [at, value] = points[index] ?? start;
      const onLine = start[1] + (end[1] - start[1]) * (at - start[0]) / (end[0] - start[0]);
      const away = Math.abs(value - onLine);
      if (away > most) [furthest, most] = [index, away];
    }
    if (furthest < 0) continue;
    isKept.add(furthest);
    open.push([first, furthest], [furthest, last]);
  }
  return points.filter((_, index) => isKept.has(index));
}
