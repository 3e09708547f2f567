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

// Makes the charts of a timeline select ticks. Each selection is an event `tick` of the figure with
// the index of the tick. Returns the number of ticks and the function that selects one.
function activate(figure, templates) {
  if (figure.dataset.active) return undefined;
  figure.dataset.active = "yes";
  const charts = figure.querySelector(".charts");
  const panel = figure.querySelector(".panel");
  const data = JSON.parse(figure.querySelector("script.ticks").textContent);
  const ticks = data.k;
  const text = (index) => {
    const [template, ...numbers] = data.s[index].split(" ");
    return templates[template].replace(/¤/g, (place) => numbers.shift() ?? place);
  };
  let selected = -1;

  function show(index) {
    index = Math.max(0, Math.min(ticks.length - 1, index));
    if (index === selected) return;
    selected = index;
    const [place, number, at, replicas, kind, why, steps, writes] = ticks[index];
    charts.querySelector(".cur").style.setProperty("--p", place / 100);
    charts.classList.add("on");
    charts.setAttribute("aria-valuenow", String(index));
    charts.setAttribute("aria-valuetext",
      `tick ${number}, t=${at}, replicas ${replicas}: ${text(why)}`);
    panel.replaceChildren();
    const head = element(panel, "div", "", "head");
    const before = element(head, "button", "‹");
    before.setAttribute("aria-label", "previous tick");
    before.disabled = index === 0;
    before.addEventListener("click", () => { show(index - 1); panel.querySelector("button").focus(); });
    const after = element(head, "button", "›");
    after.setAttribute("aria-label", "next tick");
    after.disabled = index === ticks.length - 1;
    after.addEventListener("click", () => { show(index + 1); panel.querySelectorAll("button")[1].focus(); });
    element(head, "b", `tick ${number}`);
    element(head, "b", `t=${at}`);
    if (replicas) element(head, "b", replicas.includes(" ") ? `replicas ${replicas}` : `${replicas} replicas`);
    if (kind === "d") element(head, "span", "diverges", "badge diverges");
    if (kind === "p") element(head, "span", "after the divergence: not compared", "hint");
    if (text(why)) element(panel, "p", text(why));
    list(panel, "ol", steps.map(text));
    list(panel, "ul", writes.map(text));
    if (data.more) {
      element(panel, "p", `${data.more} ticks in which nothing changes are left out here.`, "hint");
    }
    figure.dispatchEvent(new CustomEvent("tick", { detail: index }));
  }

  function nearest(event) {
    const box = charts.querySelector(".time").getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * 100;
    let best = 0;
    ticks.forEach((tick, index) => {
      if (Math.abs(tick[0] - place) <= Math.abs(ticks[best][0] - place)) best = index;
    });
    return best;
  }

  charts.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") show(nearest(event));
  });
  charts.addEventListener("click", (event) => show(nearest(event)));
  charts.addEventListener("keydown", (event) => {
    const page = Math.max(2, Math.round(ticks.length / 10));
    const moves = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: page, PageDown: -page,
      Home: -ticks.length, End: ticks.length,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(selected + moves[event.key]);
  });
  charts.setAttribute("aria-valuemin", "0");
  charts.setAttribute("aria-valuemax", String(ticks.length - 1));
  const first = (kind) => ticks.findIndex((tick) => tick[4] === kind);
  show(Math.max(0, first("d") === -1 ? first("r") : first("d")));
  return { count: ticks.length, show, selected: () => selected };
}
