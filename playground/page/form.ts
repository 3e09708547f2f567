// The form of the settings of an HPA. It shows the values of the text, and changes them there.

import { byId, make, option } from "./dom.ts";
import { type Entry, type Field, fieldsOf, type FieldsOfHpa, messagesOf, setField } from "./fields.ts";
import type { Problem, Settings } from "./model.ts";
import { type Change, Malformed } from "./values.ts";

export interface FormEvents {
  /** The value of a field changes. While it is typed or dragged, others follow. */
  changed(field: string, change: (text: string) => Change, isOpen: boolean): void;
  /** A value is complete. */
  ended(): void;
}

/** The elements of a field. */
interface Shown {
  field: Field;
  box: HTMLElement;
  input: HTMLInputElement;
  slider: HTMLInputElement;
  message: HTMLElement;
  /** The value that was written last, with which the input agrees although it can look different. */
  written: string | undefined;
}

export class Form {
  private shown: Shown[] = [];
  private text = "";
  private settings: Settings | undefined;
  private problems: Problem[] = [];
  private readonly card = byId("settings-card");
  private readonly list = byId("fields");
  private readonly note = byId("fields-note");
  private readonly hpa = byId<HTMLSelectElement>("settings-hpa");

  constructor(private readonly events: FormEvents) {
    this.hpa.addEventListener("change", () => this.show(this.text));
    // A value that is left is complete, even if it is the one from before.
    this.list.addEventListener("focusout", () => {
      this.events.ended();
      // The input shows the value of the text again, for example after a text that is not a number.
      for (const shown of this.shown) this.update(shown, shown.field);
    });
  }

  /** Shows the values of a text, if it has an HPA. */
  show(text: string, hasHpa = true): void {
    this.card.hidden = !hasHpa;
    if (!hasHpa) return;
    this.text = text;
    try {
      const { names, fields, note } = this.fieldsOf(text);
      this.showNames(names);
      this.showFields(fields);
      this.showNote(note);
      this.showMessages();
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      // The error is below the editor. The values are those of the last valid text.
      this.list.inert = true;
    }
  }

  /** Another scenario is opened: its first HPA is selected. */
  reset(): void {
    this.hpa.selectedIndex = 0;
  }

  private fieldsOf(text: string): FieldsOfHpa {
    return fieldsOf(text, Math.max(0, this.hpa.selectedIndex), this.settings);
  }

  /** The settings of the release that was predicted last. */
  offer(settings: Settings | undefined): void {
    if (!settings || JSON.stringify(settings) === JSON.stringify(this.settings)) return;
    this.settings = settings;
    this.show(this.text);
  }

  /** Shows the problems of the text at their fields. */
  mark(problems: Problem[]): void {
    this.problems = problems;
    this.showMessages();
  }

  private showNote(note = ""): void {
    this.note.textContent = note;
    this.note.hidden = note === "";
    this.list.inert = note !== "";
  }

  private showNames(names: string[]): void {
    const chosen = Math.max(0, this.hpa.selectedIndex);
    const known = [...this.hpa.options].map((it) => it.text);
    if (names.join("\n") !== known.join("\n")) {
      this.hpa.replaceChildren(...names.map((name, index) => option(String(index), name)));
      this.hpa.selectedIndex = Math.min(chosen, names.length - 1);
    }
    byId("settings-hpa-label").hidden = names.length < 2;
  }

  private showFields(fields: Field[]): void {
    const like = ({ label, entry, unit }: Field): string => [label, entry, unit].join("|");
    const isSame = fields.map(like).join("\n") === this.shown.map(({ field }) => like(field)).join("\n");
    if (!isSame) {
      this.shown = fields.map((field, index) => this.make(field, index));
      this.list.replaceChildren(...this.shown.map(({ box }) => box));
    }
    fields.forEach((field, index) => {
      const shown = this.shown[index];
      if (!shown) return;
      const isChanged = shown.field.value !== field.value || shown.field.byDefault !== field.byDefault;
      if (isChanged || !isSame) this.update(shown, field);
      shown.field = field;
    });
  }

  private make(field: Field, index: number): Shown {
    const id = `field-${index}`;
    const title = make("label", { htmlFor: id }, field.label);
    const input = make("input", { id, autocomplete: "off" });
    const slider = make("input", { type: "range" });
    slider.setAttribute("aria-label", field.label);
    const message = make("p", { className: "bad-text", id: `${id}-message`, hidden: true });
    const unit = field.unit === "" ? [] : [make("span", { className: "unit", id: `${id}-unit` }, field.unit)];
    input.setAttribute("aria-describedby", [...unit, message].map((it) => it.id).join(" "));
    const box = make("div", { className: "field" }, title, make("div", { className: "entry" }, input, ...unit, slider), message);
    const shown: Shown = { field, box, input, slider, message, written: undefined };
    const enter = (isOpen: boolean): void => {
      // The browser has no value for a text that is not a number.
      if (!input.validity.badInput) this.write(shown, input.value.trim(), isOpen);
    };
    input.addEventListener("input", () => enter(true));
    input.addEventListener("change", () => enter(false));
    input.addEventListener("keydown", (event) => {
      const isStep = event.key === "ArrowUp" || event.key === "ArrowDown";
      // The first step begins at the default.
      if (isStep && input.type === "number" && input.value === "") input.value = shown.field.byDefault ?? "";
    });
    slider.addEventListener("input", () => this.slide(shown, true));
    slider.addEventListener("change", () => this.slide(shown, false));
    return shown;
  }

  private update(shown: Shown, field: Field): void {
    const { box, input, slider, written } = shown;
    shown.field = field;
    const value = field.value ?? "";
    box.title = `spec.${field.id}`;
    input.placeholder = field.byDefault ?? "";
    box.classList.toggle("unset", value === "");
    if (written === undefined || written !== value || document.activeElement !== input) {
      shown.written = undefined;
      const type = typeOf(field.entry, value);
      if (input.type !== type) input.type = type;
      input.inputMode = field.entry === "whole" ? "numeric" : field.entry === "fraction" ? "decimal" : "text";
      if (type === "number") input.step = String(field.entry === "whole" ? 1 : field.slider.step);
      if (input.value !== value) input.value = value;
    }
    const number = splitOf(value === "" ? field.byDefault ?? "" : value);
    // A scale that changes while the thumb is dragged would run away from it.
    if (document.activeElement !== slider) scale(slider, field, number.value);
    slider.disabled = Number.isNaN(number.value);
    if (!slider.disabled && Number(slider.value) !== number.value) slider.value = String(number.value);
    slider.setAttribute("aria-valuetext", value === "" ? `default, ${field.byDefault ?? "none"}` : `${value} ${field.unit}`.trim());
  }

  private write(shown: Shown, value: string, isOpen: boolean): void {
    const { field } = shown;
    if (value === (field.value ?? "")) {
      if (!isOpen) this.events.ended();
      return;
    }
    shown.written = value;
    const change = (text: string): Change => {
      // The text from before the first change can have the value in another place.
      const { fields } = this.fieldsOf(text);
      const own = fields.find(({ id }) => id === field.id) ?? fields.find(({ label }) => label === field.label);
      return setField(text, own ?? field, value);
    };
    this.events.changed(field.label, change, isOpen);
  }

  private slide(shown: Shown, isOpen: boolean): void {
    const { field, input, slider } = shown;
    const { suffix } = splitOf(field.value ?? "");
    const value = `${Number(Number(slider.value).toPrecision(4))}${suffix}`;
    if (isOpen) input.value = value;
    this.write(shown, value, isOpen);
  }

  private showMessages(): void {
    const fields = this.shown.map(({ field }) => field);
    let messages = new Map<string, string[]>();
    try {
      messages = messagesOf(this.text, fields, this.problems);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
    }
    for (const { field, input, message } of this.shown) {
      const text = (messages.get(field.id) ?? []).join("\n");
      if (message.textContent === text) continue;
      message.textContent = text;
      message.hidden = text === "";
      input.setAttribute("aria-invalid", String(text !== ""));
    }
  }
}

/** A field for numbers, unless the text has something else. */
function typeOf(entry: Entry, value: string): "number" | "text" {
  return entry !== "quantity" && /^(-?\d+(\.\d+)?)?$/.test(value) ? "number" : "text";
}

/** `500m` is 500 and `m`. */
function splitOf(value: string): { value: number; suffix: string } {
  const [, digits, suffix = ""] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(value) ?? [];
  return { value: digits === undefined ? NaN : Number(digits), suffix };
}

/** Sets the limits of a slider so that a value has room in both directions. */
function scale(slider: HTMLInputElement, { slider: { min, max, step } }: Field, value: number): void {
  const largest = value > max ? roundUp(value * 2) : max > 0 ? max : 1;
  slider.min = String(min);
  slider.max = String(largest);
  slider.step = String(step > 0 ? step : roundUp(largest) / 200);
}

/** A number with one digit that is not smaller. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return Math.ceil(value / power - 1e-9) * power;
}
