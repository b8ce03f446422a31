// Containers and their windows: create them and delete them.
import { $, ask, counted, created, json, make, number, onSubmit, shorten, tell } from "./basics.js";

const TURTLE = { "Content-Type": "text/turtle" };
const PREFIXES = {
  ldp: "http://www.w3.org/ns/ldp#", ldpsc: "https://solid.ti.rw.fau.de/public/ns/stream-containers#",
  xsd: "http://www.w3.org/2001/XMLSchema#", dcterms: "http://purl.org/dc/terms/",
};
const PROLOGUE = Object.entries(PREFIXES).map(([name, iri]) => `PREFIX ${name}: <${iri}>\n`).join("");
export const TIME = "http://www.w3.org/ns/prov#generatedAtTime";
const UNITS = { D: "day", H: "hour", M: "minute", S: "second" };

// A duration such as PT1M30S as people say it; what has years, months or fractions stays as it is.
export function lasts(text) {
  if (!/^P(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?$/.test(text)) return text;
  return [...text.matchAll(/(\d+)([DHMS])/g)].map(([, count, unit]) => counted(Number(count), UNITS[unit])).join(" ");
}

// The triples of a window <#name>; ``size``: a duration, or a number of triples.
const windowTriples = (name, order, size) =>
  `<> ldpsc:window <#${name}> . <#${name}> ldp:hasMemberRelation ldp:member ; ldp:membershipResource <#${name}> ; ldpsc:contentTimestampRelation <${order}> ; ${size} .`;

const logical = (duration) => `ldpsc:logical "${duration}"^^xsd:duration`;

const edit = (path, update) => ask(path, { method: "PATCH", headers: { "Content-Type": "application/sparql-update", "If-Match": "*" }, body: PROLOGUE + update });

const parent = (path) => path.replace(/[^/]+\/$/, "");

// The windows of a container as a table.
export function showWindows(c) {
  const known = $("windows").tBodies[0];
  $("window-add").hidden = !c.stream;
  const focused = document.activeElement?.closest?.("#windows [data-window]")?.dataset.window;
  $("windows").hidden = !c.windows.length;
  $("windows-none").textContent = c.windows.length ? "" : c.stream ? "No windows." : "Only a stream container has windows.";
  known.replaceChildren(...c.windows.map((w) => make("tr", {},
    make("td", { "data-label": "window" }, make("a", { href: `${c.path}?window=${encodeURIComponent(w.name)}` }, w.name)),
    make("td", { "data-label": "reaches back" }, lasts(w.size)), make("td", { "data-label": "time from" }, shorten(w.relation, c.path)),
    make("td", { class: "number", "data-label": "graphs in it" }, w.members > 10000 ? "more than 10,000" : number(w.members)),
    make("td", {}, make("button", { class: "plain", type: "button", "data-window": w.name, "aria-label": `Delete the window ${w.name}`, onclick: () => removeWindow(c.path, w) }, "Delete")))));
  if (focused) known.querySelector(`[data-window="${CSS.escape(focused)}"]`)?.focus();
}

function removeWindow(path, { name, resource }) {
  if (!confirm(`Delete the window ${name}? The graphs stay.`)) return;
  tell("windows-said", async () => {
    await edit(path, `DELETE { <> ldpsc:window ?w . ?w ?p ?o } WHERE { <> ldpsc:window ?w . ?w ldp:membershipResource <${resource}> . ?w ?p ?o }`);
    return `Deleted ${name}`;
  });
}

// Create a stream in a container; its path.  ``duration``: that of its window, if it has one.
export async function createStream(path, name, title, duration) {
  const window = duration ? windowTriples("window", TIME, logical(duration)) : "";
  const body = `${PROLOGUE}<> a ldpsc:StreamContainer ; dcterms:title ${JSON.stringify(title || name)} . ${window}`;
  return created(await ask(path, { method: "POST", headers: { ...TURTLE, Slug: encodeURIComponent(name) }, body }));
}

// ``here`` and ``order`` tell the chosen container and the relation that gives its times; ``show`` goes to another one.
export function prepareStreams(here, order, show) {
  onSubmit("stream-form", "stream-said", async () => {
    const path = await createStream(here(), $("stream-name").value, $("stream-title").value, $("stream-window").value);
    $("stream-form").reset();
    await show(path);
    return `Created ${path}`;
  });
  onSubmit("window-form", "window-said", async () => {
    const name = $("window-name").value, size = $("window-size").value, unit = $("window-unit").value;
    const { containers } = await json("/-/status");
    if (containers.find((c) => c.path === here())?.windows.some((w) => w.name === name)) throw new Error(`There is a window ${name} already; choose another name`);
    await edit(here(), `INSERT DATA { ${windowTriples(name, order(), unit === "triples" ? `ldpsc:physical ${size}` : logical(`P${unit === "D" ? "" : "T"}${size}${unit}`))} }`);
    return `Added ${name}`;
  });
  $("stream-delete").addEventListener("click", () => {
    const gone = here();
    if (confirm(`Delete ${gone} with all its graphs?`)) tell("stream-delete-said", async () => {
      await ask(gone, { method: "DELETE" });
      show(parent(gone));
      return `Deleted ${gone}`;
    });
  });
}
