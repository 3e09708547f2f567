// Filters of the list.
const sections = [...document.querySelectorAll("details.s")];
const form = document.querySelector("form.filters");

function filter() {
  const pressed = [...form.querySelectorAll("[data-verdict]")];
  const verdicts = pressed.filter((it) => it.getAttribute("aria-pressed") === "true");
  const names = new Set(verdicts.map((it) => it.dataset.verdict));
  const text = form.elements.text.value.trim().toLowerCase();
  const area = form.elements.area ? form.elements.area.value : "";
  const release = form.elements.release ? form.elements.release.value : "";
  let shown = 0;
  for (const section of sections) {
    const data = section.dataset;
    const fits = (pressed.length === 0 || names.has(data.v))
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

// The derivations of all ticks, once they are decompressed.
let data;

async function decompressed() {
  const packed = atob(document.querySelector("script.data").textContent);
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

function activateAll(section) {
  if (!data || !section.open) return;
  const panels = data.sections[sections.indexOf(section)];
  const figures = [...section.querySelectorAll(".fig")].flatMap((figure, i) => {
    const ticks = activate(figure, panels, panels.f[i]);
    return ticks ? [{ figure, ticks, places: ticksOf(panels.f[i]).map((tick) => tick[0]) }] : [];
  });
  link(figures);
}

// Makes the figures of a section select the same time.
function link(figures) {
  let isFollowing = false;
  function follow(source, index) {
    if (isFollowing) return;
    isFollowing = true;
    const top = source.figure.getBoundingClientRect().top;
    for (const other of figures) {
      if (other === source) continue;
      const nearest = other.places.findLastIndex((place) => place <= source.places[index] + 0.01);
      other.ticks.show(Math.max(0, nearest));
    }
    // The panel of a figure above this one may have another height now.
    const moved = source.figure.getBoundingClientRect().top - top;
    if (moved !== 0) window.scrollBy({ top: moved, behavior: "instant" });
    isFollowing = false;
  }
  for (const one of figures) {
    one.figure.addEventListener("tick", (event) => follow(one, event.detail));
  }
  if (figures.length > 1) {
    const [first] = figures;
    follow(first, first.ticks.selected());
  }
}

for (const section of sections) section.addEventListener("toggle", () => activateAll(section));

decompressed().then((all) => {
  data = all;
  sections.forEach(activateAll);
  document.querySelectorAll(".compared").forEach((figure, i) => activateComparison(figure, data.values[i]));
}, () => {
  for (const panel of document.querySelectorAll(".panel")) {
    element(panel, "p", "The reasons can't be shown: this browser can't decompress them.", "hint");
  }
});

// On paper, the scenarios that match the filters are open.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")].filter((it) => !it.hidden);
  for (const details of opened) {
    details.open = true;
    if (details.matches(".s")) activateAll(details);
  }
});
window.addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
  opened = [];
});

// A link to a scenario opens it.
function target() {
  let id = location.hash.slice(1);
  try {
    id = decodeURIComponent(id);
  } catch {
    // A percent sign that is not part of an encoded character stands for itself.
  }
  const section = document.getElementById(id);
  if (section instanceof HTMLDetailsElement) {
    section.hidden = false;
    section.open = true;
    section.scrollIntoView();
  }
}
window.addEventListener("hashchange", target);
target();
