// Small helpers for elements.

/** The element with an id, which the page has. */
export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
}

type Child = Node | string;

export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function button(text: string, action: () => void, className = ""): HTMLButtonElement {
  const made = make("button", { type: "button", className }, text);
  made.addEventListener("click", action);
  return made;
}

export function option(value: string, text = value): HTMLOptionElement {
  return make("option", { value }, text);
}

/** Offers a text as a file. */
export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
