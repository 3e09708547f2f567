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
// selected one. The line at the selected place is the element with the focus: what is inside a slider
// is hidden from screen readers. Returns the function that selects a place, the one that returns the
// selected one, and the one that describes it.
function selectable(charts, places, draw) {
  const cursor = charts.querySelector(".cur");
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
    if (event.pointerType === "mouse") show(nearest(event));
  });
  charts.addEventListener("click", (event) => {
    show(nearest(event));
    cursor.focus({ preventScroll: true });
  });
  cursor.addEventListener("keydown", (event) => {
    const page = Math.max(2, Math.round(places.length / 10));
    const moves = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: page, PageDown: -page,
      Home: -places.length, End: places.length,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(selected + moves[event.key]);
  });
  cursor.setAttribute("aria-valuemin", "0");
  cursor.setAttribute("aria-valuemax", String(places.length - 1));
  return { show, selected: () => selected, describe: (text) => cursor.setAttribute("aria-valuetext", text) };
}

// Clears a panel, and adds a head with the buttons for the places before and after this one.
function panelHead(panel, index, count, what, show) {
  panel.replaceChildren();
  const head = element(panel, "div", "", "head");
  const button = (text, name, to) => {
    const made = element(head, "button", text);
    made.setAttribute("aria-label", `${name} ${what}`);
    made.disabled = to < 0 || to >= count;
    made.addEventListener("click", () => {
      show(to);
      panel.querySelectorAll("button")[to < index ? 0 : 1].focus();
    });
  };
  button("‹", "previous", index - 1);
  button("›", "next", index + 1);
  return head;
}

// Makes the charts of a timeline select ticks. `panels` is the data of a section, `data` that of the
// figure. Each selection is an event `tick` of the figure with the index of the tick. Returns the
// number of ticks and the function that selects one.
function activate(figure, panels, data) {
  if (figure.dataset.active) return undefined;
  figure.dataset.active = "yes";
  const charts = figure.querySelector(".charts");
  const panel = figure.querySelector(".panel");
  const ticks = data.k;
  const text = (index) => {
    const [template, ...numbers] = data.s[index].split(" ");
    return panels.t[template].replace(/¤/g, (place) => numbers.shift() ?? place);
  };

  function draw(index) {
    const [, number, at, result, kind, why, steps, writes] = ticks[index];
    selection.describe(`tick ${number}, t=${at}, ${result}: ${text(why)}`);
    const head = panelHead(panel, index, ticks.length, "tick", selection.show);
    element(head, "b", `tick ${number}`);
    element(head, "b", `t=${at}`);
    if (result) element(head, "b", result);
    if (kind === "d") element(head, "span", "diverges", "badge diverges");
    if (kind === "c") element(head, "span", "first change", "badge changed");
    if (kind === "p") element(head, "span", "after the divergence: not compared", "hint");
    if (text(why)) element(panel, "p", text(why));
    list(panel, "ol", steps.map(text));
    list(panel, "ul", writes.map(text));
    if (data.more) {
      element(panel, "p", `${data.more} ticks ${data.note}`, "hint");
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
    element(panelHead(panel, index, data.times.length, "time", selection.show), "b", `t=${at}`);
    const all = element(panel, "ul", "", "values");
    data.names.forEach((name, i) => {
      const item = element(all, "li");
      element(item, "span", name, `k ${data.classes[i]}`);
      element(item, "b", values[i]);
    });
  }

  const selection = selectable(charts, data.times.map((time) => time[0]), draw);
  selection.show(0);
}
