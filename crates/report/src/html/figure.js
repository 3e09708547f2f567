"use strict";
// The panel of a timeline: the derivation of the selected tick.
function element(parent, name, text, className) {
  const made = parent.appendChild(document.createElement(name));
  if (text) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function list(parent, name, texts) {
  if (texts.length === 0) return;
  const made = element(parent, name);
  for (const text of texts) element(made, "li", text);
}

// Makes charts select a place by mouse, touch and keys. `places` are in percent; `draw` shows the
// selected one. The mouse selects what it is over, until a click pins a place: then only clicks and
// keys select another one. A click on the pinned place or Esc releases it.
// The line at the selected place is the element with the focus: what is inside a slider is hidden
// from screen readers.
function selectable(charts, places, draw) {
  const cursor = charts.querySelector(".cur");
  const figure = charts.parentElement;
  let selected = -1;

  function show(index) {
    index = Math.max(0, Math.min(places.length - 1, index));
    if (index === selected) return;
    selected = index;
    cursor.style.setProperty("--p", places[index] / 100);
    charts.classList.add("on");
    cursor.setAttribute("aria-valuenow", String(index));
    draw(index);
  }

  const isPinned = () => charts.classList.contains("pinned");

  function pin(isPinned) {
    charts.classList.toggle("pinned", isPinned);
    const button = figure.querySelector(".unpin");
    if (button) button.hidden = !isPinned;
  }

  function nearest(event) {
    const box = charts.querySelector(".time").getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * 100;
    let best = 0;
    places.forEach((other, index) => {
      if (Math.abs(other - place) <= Math.abs(places[best] - place)) best = index;
    });
    return best;
  }

  charts.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" && !isPinned()) show(nearest(event));
  });
  charts.addEventListener("click", (event) => {
    const index = nearest(event);
    pin(!isPinned() || index !== selected);
    show(index);
    // The line shows the place already, so the focus needs no outline.
    cursor.classList.add("clicked");
    cursor.focus({ preventScroll: true });
  });
  cursor.addEventListener("blur", () => cursor.classList.remove("clicked"));
  cursor.addEventListener("keydown", (event) => {
    const page = Math.max(2, Math.round(places.length / 10));
    const moves = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: page, PageDown: -page,
      Home: -places.length, End: places.length,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    cursor.classList.remove("clicked");
    pin(true);
    show(selected + moves[event.key]);
  });
  figure.addEventListener("keydown", (event) => {
    if (event.key === "Escape") pin(false);
  });
  cursor.setAttribute("aria-valuemin", "0");
  cursor.setAttribute("aria-valuemax", String(places.length - 1));
  return {
    show, pin, isPinned, selected: () => selected,
    describe: (text) => cursor.setAttribute("aria-valuetext", text),
  };
}

// Clears a panel, and adds its two parts: a head with buttons that select the places before and
// after this one, and what follows it.
function panelParts(panel, index, count, what, selection) {
  panel.replaceChildren();
  const head = element(panel, "div", "", "head");
  const button = (text, name, to) => {
    const made = element(head, "button", text);
    made.setAttribute("aria-label", `${name} ${what}`);
    made.disabled = to < 0 || to >= count;
    made.addEventListener("click", () => {
      selection.pin(true);
      selection.show(to);
      panel.querySelectorAll("button")[to < index ? 0 : 1].focus();
    });
  };
  button("‹", "previous", index - 1);
  button("›", "next", index + 1);
  const unpin = element(head, "button", "Unpin", "unpin");
  unpin.hidden = !selection.isPinned();
  unpin.addEventListener("click", () => selection.pin(false));
  return [head, element(panel, "div", "", "why")];
}

// A time since the start in microseconds, as text: 1h30m, 15.1s.
function duration(micros) {
  if (micros > 0 && micros < 1e6 && micros % 1000 === 0) return `${micros / 1000}ms`;
  const [hours, minutes] = [Math.floor(micros / 3600e6), Math.floor(micros / 60e6) % 60];
  const seconds = micros % 60e6 / 1e6;
  const text = (hours ? `${hours}h` : "") + (minutes ? `${minutes}m` : "") + (seconds ? `${seconds}s` : "");
  return text || "0s";
}

// A time of two days or more in days: 7d 23h58m.
function inDays(at) {
  const hours = Number(/^\d+(?=h)/.exec(at)?.[0] ?? 0);
  return hours < 48 ? "" : at.replace(/^\d+h/, `${Math.floor(hours / 24)}d ${hours % 24}h`);
}

// The seconds of a time since the start: 1h30m15.5s.
function seconds(at) {
  const units = { h: 3600, m: 60, s: 1, ms: 0.001 };
  return [...at.matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((sum, [, count, unit]) => sum + count * units[unit], 0);
}

// A time since the start as a date in UTC. `zero` is the date of the start, if it is known.
function utc(at, zero) {
  if (zero === undefined || zero === null) return "";
  return new Date(zero + seconds(at) * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

// Adds the date of a time. Without dates, adds a long time in days.
function addDate(head, at, zero) {
  const text = utc(at, zero) || inDays(at);
  if (text) element(head, "span", text, "hint");
}

// The ticks of a figure, in order: those with derivations, and those of which it has only the
// values, which are stored in columns with differences of numbers and times.
function ticksOf(data) {
  const { v: columns } = data;
  if (!columns) return data.k;
  const diverges = data.k.find((tick) => tick[4] === "d")?.[1] ?? Infinity;
  let [number, micros] = [0, 0];
  const others = columns.n.map((step, i) => {
    number += step;
    micros += columns.t[i];
    const kind = number > diverges ? "p" : "";
    const place = micros / columns.end * 100;
    return [place, number, duration(micros), columns.r[i], kind, columns.w[i], null, [], columns.l[i]];
  });
  return [...data.k, ...others].sort((one, other) => one[1] - other[1]);
}

// Makes the charts of a timeline select ticks. `panels` is the data of a section, `data` that of the
// figure. Each selection is an event `tick` of the figure with the index of the tick. Returns the
// number of ticks and the function that selects one.
function activate(figure, panels, data) {
  if (figure.dataset.active) return undefined;
  figure.dataset.active = "yes";
  foldVisible(figure);
  const charts = figure.querySelector(".charts");
  const panel = figure.querySelector(".panel");
  const ticks = ticksOf(data);
  // A text is its index, or the index of its template and the numbers.
  const text = (line) => {
    const [template, ...numbers] = (typeof line === "number" ? data.s[line] : line).split(" ");
    return panels.t[template].replace(/¤/g, (place) => numbers.shift() ?? place);
  };

  // A button that selects the nearest tick with a derivation.
  function nearest(parent, index) {
    const has = (it) => ticks[it]?.[6];
    let distance = 1;
    while (distance < ticks.length && !has(index - distance) && !has(index + distance)) distance += 1;
    const found = has(index - distance) ? index - distance : index + distance;
    if (!has(found)) return;
    const made = element(parent, "button", `Nearest explained tick: ${ticks[found][1]}, t=${ticks[found][2]}`);
    made.addEventListener("click", () => {
      selection.pin(true);
      selection.show(found);
    });
  }

  function draw(index) {
    const [, number, at, result, kind, why, steps, writes, limit] = ticks[index];
    const replicas = steps ? result : text(result);
    selection.describe(`tick ${number}, t=${at}, ${replicas}: ${text(why)}`);
    const [head, body] = panelParts(panel, index, ticks.length, "tick", selection);
    element(head, "b", `tick ${number}`);
    element(head, "b", `t=${at}`);
    addDate(head, at, data.z);
    if (replicas) element(head, "b", replicas);
    if (limit) element(head, "span", `limited by: ${data.l[limit - 1][0]}`, `k a by ${data.l[limit - 1][1]}`);
    if (kind === "d") element(head, "span", "diverges", "badge diverges");
    if (kind === "c") element(head, "span", "first change", "badge changed");
    if (kind === "p") element(head, "span", "after the divergence: not compared", "hint");
    if (text(why)) element(body, "p", text(why));
    list(body, "ol", (steps ?? []).map(text));
    list(body, "ul", writes.map(text));
    if (!steps) {
      element(body, "p", `This page does not explain this tick; kube-lockstep explain --at ${at} does.`, "hint");
      nearest(body, index);
    }
    if (data.more) {
      element(body, "p", `${data.more.toLocaleString("en-US")} ticks ${data.note}`, "hint");
    }
    figure.dispatchEvent(new CustomEvent("tick", { detail: index }));
  }

  const selection = selectable(charts, ticks.map((tick) => tick[0]), draw);
  const first = (kind) => ticks.findIndex((tick) => tick[4] === kind);
  selection.show(Math.max(0, ["d", "c", "r"].map(first).find((index) => index >= 0) ?? 0));
  return { count: ticks.length, ...selection };
}

// Makes the chart of a comparison show the values of all settings at one time.
function activateComparison(figure, data) {
  const charts = figure.querySelector(".charts");
  const panel = figure.querySelector(".panel");

  function draw(index) {
    const [, at, values] = data.times[index];
    selection.describe(
      `t=${at}: ${data.names.map((name, i) => `${name} ${values[i]}`).join("; ")}`);
    const [head, body] = panelParts(panel, index, data.times.length, "time", selection);
    element(head, "b", `t=${at}`);
    addDate(head, at, data.zero);
    const all = element(body, "ul", "", "values");
    data.names.forEach((name, i) => {
      const item = element(all, "li");
      element(item, "span", name, `k ${data.classes[i]}`);
      element(item, "b", values[i]);
    });
  }

  const selection = selectable(charts, data.times.map((time) => time[0]), draw);
  selection.show(0);
  if (figure.matches(".many")) activateKeys(figure);
}

// Makes the keys of many lines highlight them: while the mouse is over a key, or after a click.
function activateKeys(figure) {
  const pressed = new Set();
  const strong = (index, is) => {
    for (const it of figure.querySelectorAll(`[data-i="${index}"]`)) it.classList.toggle("strong", is);
  };
  for (const key of figure.querySelectorAll(".cap .k[data-i]:not(.c0)")) {
    const index = key.dataset.i;
    const toggle = () => {
      if (!pressed.delete(index)) pressed.add(index);
      key.setAttribute("aria-pressed", String(pressed.has(index)));
      strong(index, pressed.has(index));
    };
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "false");
    key.addEventListener("mouseenter", () => strong(index, true));
    key.addEventListener("mouseleave", () => strong(index, pressed.has(index)));
    key.addEventListener("click", (event) => {
      event.stopPropagation();
      toggle();
    });
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
  }
}

// Hides the list of changes and faults as text where all texts of the chart are visible.
function foldVisible(figure) {
  const list = figure.querySelector(".all-events");
  if (!list) return;
  const check = () => {
    const texts = [...figure.querySelectorAll(".act .t")];
    list.hidden = !texts.some((it) => it.matches(".more") || it.scrollWidth > it.clientWidth + 1);
  };
  check();
  new ResizeObserver(check).observe(figure);
}
