"use strict";
// Filters of the list.
const sections = [...document.querySelectorAll("details.s")];
const form = document.querySelector("form.filters");

function filter() {
  const pressed = [...form.querySelectorAll("[data-verdict]")];
  const verdicts = pressed.filter((it) => it.getAttribute("aria-pressed") === "true");
  const names = new Set(verdicts.map((it) => it.dataset.verdict));
  const text = form.elements.text.value.trim().toLowerCase();
  const area = form.elements.area.value;
  const release = form.elements.release ? form.elements.release.value : "";
  let shown = 0;
  for (const section of sections) {
    const data = section.dataset;
    const fits = names.has(data.v)
      && (area === "" || data.a === area)
      && (release === "" || data.r.split(" ").includes(release))
      && (text === "" || section.querySelector("summary").textContent.toLowerCase().includes(text));
    section.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  form.querySelector(".count").textContent =
    shown === sections.length ? "" : `${shown} of ${sections.length} shown`;
  document.querySelector(".none").hidden = shown > 0;
}

if (form) {
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.verdict) {
      const is = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!is));
      filter();
    } else {
      for (const section of sections) {
        if (!section.hidden) section.open = button.dataset.all === "open";
      }
    }
  });
}

const templates = JSON.parse(document.querySelector("script.templates").textContent);

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

function activate(figure) {
  if (figure.dataset.active) return;
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
}

function activateAll(section) {
  if (section.open) section.querySelectorAll(".fig").forEach(activate);
}

for (const section of sections) {
  activateAll(section);
  section.addEventListener("toggle", () => activateAll(section));
}

// A link to a scenario opens it.
function target() {
  const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (section instanceof HTMLDetailsElement) {
    section.hidden = false;
    section.open = true;
    section.scrollIntoView();
  }
}
window.addEventListener("hashchange", target);
target();
