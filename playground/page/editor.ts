// The editor of the scenario: YAML with completion, descriptions, and errors at their lines.

import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { yaml } from "@codemirror/lang-yaml";
import { isolateHistory } from "@codemirror/commands";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState, Transaction } from "@codemirror/state";
import { EditorView, hoverTooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import type { Problem } from "./model.ts";
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

/** The words of the editor for screen readers. */
const label = EditorView.contentAttributes.of({ "aria-label": "Scenario, in YAML" });

export interface EditorEvents {
  changed(text: string): void;
}

export class Editor {
  private readonly view: EditorView;

  constructor(parent: Element, private readonly schema: SchemaOfScenarios, events: EditorEvents) {
    const changes = EditorView.updateListener.of((update) => {
      if (update.docChanged) events.changed(update.state.doc.toString());
    });
    const describe = hoverTooltip((view, position) => this.description(view, position));
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          basicSetup,
          yaml(),
          syntaxHighlighting(colors),
          theme,
          label,
          lintGutter(),
          autocompletion({ override: [(context) => this.complete(context)] }),
          describe,
          changes,
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: text },
      selection: { anchor: 0 },
      scrollIntoView: true,
    });
  }

  /** Changes the text: as one step of undo, or as a part of a change that has no step of its own. */
  apply(change: Change, canUndo = true): void {
    const annotations = canUndo ? isolateHistory.of("full") : Transaction.addToHistory.of(false);
    this.view.dispatch({ changes: change, userEvent: "input.form", annotations });
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

  /** Marks the problems of the scenario itself. */
  mark(problems: Problem[]): void {
    const { doc } = this.view.state;
    const own = problems.filter((problem) => !problem.file && problem.line > 0);
    const diagnostics = own.map((problem): Diagnostic => {
      const from = this.position(problem.line, problem.column);
      const word = /^[\w/.%-]+/.exec(doc.sliceString(from, doc.lineAt(from).to))?.[0] ?? "";
      const to = Math.min(from + Math.max(word.length, 1), doc.length);
      const hint = problem.hint ? `\nHint: ${problem.hint}` : "";
      return { from, to, severity: "error", message: `${problem.what}${hint}` };
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
