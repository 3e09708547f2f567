// The editor of the scenario: YAML with completion, descriptions, and errors at their lines.

import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { yaml } from "@codemirror/lang-yaml";
import { history, invertedEffects, isolateHistory, undo } from "@codemirror/commands";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import {
  Annotation, EditorState, type Extension, RangeSetBuilder, StateEffect, StateField, Transaction,
  type TransactionSpec,
} from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, hoverTooltip, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import type { Finding, Problem } from "./model.ts";
import type { SchemaOfScenarios } from "./schema.ts";
import type { Change } from "./values.ts";

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--spec)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--value)" },
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket], color: "var(--dim)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--ink)", backgroundColor: "var(--card)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-line": { paddingLeft: "calc(6px + var(--indent, 0ch))", textIndent: "calc(-1 * var(--indent, 0ch))" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--dim)", borderColor: "var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--active)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--selection)" },
  ".cm-selectionMatch": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)" },
  ".cm-tooltip, .cm-panels": {
    backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--selection)", color: "var(--ink)",
  },
  ".cm-completionDetail": { color: "var(--dim)" },
  ".cm-completionInfo": { padding: "6px 9px", maxWidth: "340px" },
  ".cm-button, .cm-textfield": {
    backgroundImage: "none", backgroundColor: "var(--bg)", color: "var(--ink)", borderColor: "var(--line)",
  },
});

/** The widest indentation of the rest of a line that is wrapped, in characters. */
const WIDEST_INDENT = 16;

/** The rest of a line that is wrapped begins further right than the line itself. */
const wrappedIndent = ViewPlugin.fromClass(class {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = indentsOf(view);
  }

  update({ docChanged, viewportChanged, view }: ViewUpdate): void {
    if (docChanged || viewportChanged) this.decorations = indentsOf(view);
  }
}, { decorations: (it) => it.decorations });

function indentsOf({ state, visibleRanges }: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  let next = 0;
  for (const { from, to } of visibleRanges) {
    // A line with a folded part is in two ranges.
    for (next = Math.max(from, next); next <= to;) {
      const line = state.doc.lineAt(next);
      const start = /^\s*(- )?/.exec(line.text)?.[0].length ?? 0;
      const style = `--indent: ${Math.min(start + 2, WIDEST_INDENT)}ch`;
      builder.add(line.from, line.from, Decoration.line({ attributes: { style } }));
      next = line.to + 1;
    }
  }
  return builder.finish();
}

/** The words of the editor for screen readers. */
const label = EditorView.contentAttributes.of({ "aria-label": "Scenario, in YAML" });

/** Where a scenario is, and the files that it refers to. */
export interface Place {
  path: string;
  files: Record<string, string>;
}

const moves = StateEffect.define<Place>();

const placeField = StateField.define<Place>({
  create: () => ({ path: "", files: {} }),
  update: (place, { effects }) => effects.findLast((effect) => effect.is(moves))?.value as Place | undefined ?? place,
});

/** Undo and redo also restore the place. */
const placeInHistory = invertedEffects.of(({ effects, startState }) =>
  effects.some((effect) => effect.is(moves)) ? [moves.of(startState.field(placeField))] : []);

/** A change is a part of a stroke: a drawn load, or a value that is dragged or typed. */
const partOfStroke = Annotation.define<true>();

/** The changes of a stroke are one step of undo, wherever they are. */
const strokesInHistory = history({
  joinToEvent: (transaction, isAdjacent) => isAdjacent || transaction.annotation(partOfStroke) === true,
});

export interface EditorEvents {
  /** The text was changed: by a stroke, or by something else. */
  changed(isStroke: boolean): void;
  /** Undo or redo restored another scenario. */
  moved(): void;
}

export class Editor {
  private readonly view: EditorView;
  private readonly extensions: Extension;
  /** When the stroke began, and whether it has changed something yet. */
  private stroke: { since: number; isInHistory: boolean } | undefined;

  constructor(parent: Element, private readonly schema: SchemaOfScenarios, events: EditorEvents) {
    const changes = EditorView.updateListener.of((update) => {
      const isHistory = update.transactions.some((it) => it.isUserEvent("undo") || it.isUserEvent("redo"));
      const isMoved = update.startState.field(placeField) !== update.state.field(placeField);
      if (isHistory && isMoved) events.moved();
      if (!update.docChanged) return;
      const isStroke = update.transactions.some((it) => it.annotation(partOfStroke));
      if (!isStroke) this.stroke = undefined;
      events.changed(isStroke);
    });
    this.extensions = [
      basicSetup,
      EditorView.lineWrapping,
      wrappedIndent,
      strokesInHistory,
      yaml(),
      syntaxHighlighting(colors),
      theme,
      label,
      lintGutter(),
      autocompletion({ override: [(context) => this.complete(context)] }),
      hoverTooltip((view, position) => this.description(view, position)),
      placeField,
      placeInHistory,
      changes,
    ];
    this.view = new EditorView({ parent, state: EditorState.create({ extensions: this.extensions }) });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  get place(): Place {
    return this.view.state.field(placeField);
  }

  /** Shows the first scenario: nothing can be undone. */
  begin(text: string, place: Place): void {
    const extensions = [this.extensions, placeField.init(() => place)];
    this.view.setState(EditorState.create({ doc: text, extensions }));
  }

  /** Shows another scenario, as one step of undo. */
  open(text: string, place: Place): void {
    this.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: text },
      effects: moves.of(place),
      selection: { anchor: 0 },
      scrollIntoView: true,
    });
  }

  /** Changes the text, and perhaps the place, as one step of undo. */
  apply(change: Change, place?: Place): void {
    this.dispatch({ changes: change, userEvent: "input.form", ...(place ? { effects: moves.of(place) } : {}) });
  }

  private dispatch(changes: TransactionSpec): void {
    this.view.dispatch({ ...changes, annotations: isolateHistory.of("full") });
  }

  /** Changes the text as a part of a stroke, which is one step of undo, however long it takes. */
  draw(change: Change): void {
    if (change.from === change.to && change.insert === "") return;
    this.stroke ??= { since: Date.now(), isInHistory: false };
    const { since, isInHistory } = this.stroke;
    this.stroke.isInHistory = true;
    this.view.dispatch({
      changes: change,
      // The history only joins changes of about the same time, of no other kind.
      annotations: [
        partOfStroke.of(true),
        Transaction.time.of(since),
        ...(isInHistory ? [] : [isolateHistory.of("before")]),
      ],
    });
  }

  /** Ends a stroke. If it has changed nothing in the end, it is no step of undo. */
  endStroke(isSame: boolean): void {
    const { stroke } = this;
    this.stroke = undefined;
    if (!stroke) return;
    if (isSame) undo(this.view);
    else this.view.dispatch({ annotations: isolateHistory.of("full") });
  }

  focus(): void {
    this.view.focus();
  }

  /** Moves the cursor to a line and column, both from 1. */
  go(line: number, column: number): void {
    const anchor = this.position(line, column);
    this.view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.view.focus();
  }

  /** Marks the problems and findings of the scenario itself. */
  mark(problems: (Problem | Finding)[]): void {
    const { doc } = this.view.state;
    const own = problems.filter((problem) => !problem.file && problem.line > 0);
    const diagnostics = own.map((problem): Diagnostic => {
      const from = this.position(problem.line, problem.column);
      const word = /^[\w/.%-]+/.exec(doc.sliceString(from, doc.lineAt(from).to))?.[0] ?? "";
      const to = Math.min(from + Math.max(word.length, 1), doc.length);
      const hint = problem.hint ? `\nHint: ${problem.hint}` : "";
      const level = "level" in problem ? problem.level : "error";
      return { from, to, severity: level === "note" ? "info" : level, message: `${problem.what}${hint}` };
    });
    diagnostics.sort((one, other) => one.from - other.from);
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /** The position of a line and a column in characters, both from 1. */
  private position(line: number, column: number): number {
    const { doc } = this.view.state;
    const { from, text } = doc.line(Math.max(1, Math.min(line, doc.lines)));
    const before = [...text].slice(0, Math.max(0, column - 1)).join("");
    return from + before.length;
  }

  private complete(context: CompletionContext): CompletionResult | null {
    const found = this.schema.complete(context.state.doc.toString(), context.pos);
    const isTyped = context.pos > (found?.from ?? context.pos);
    if (!found || found.list.length === 0 || !(isTyped || context.explicit)) return null;
    const options = found.list.map((it) => ({
      label: it.label,
      apply: it.insert,
      detail: it.detail,
      type: it.isKey ? "property" : "constant",
      ...(it.description ? { info: it.description } : {}),
    }));
    return { from: found.from, options, validFor: /^[\w/.%-]*$/ };
  }

  private description(view: EditorView, position: number): ReturnType<Parameters<typeof hoverTooltip>[0]> {
    const found = this.schema.describe(view.state.doc.toString(), position);
    if (!found) return null;
    const create = (): { dom: HTMLElement } => {
      const dom = document.createElement("div");
      dom.className = "describes";
      dom.append(Object.assign(document.createElement("b"), { textContent: found.title }));
      dom.append(Object.assign(document.createElement("p"), { textContent: found.text }));
      return { dom };
    };
    return { pos: found.from, end: found.to, above: true, create };
  }
}
