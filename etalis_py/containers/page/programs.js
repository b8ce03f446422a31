// Programs: the overview of all, and for the chosen stream each with its matches, rules and text.
import { $, ask, bytes, clock, counted, download, json, lasting, make, number, rate, standIn } from "./basics.js";
import { drawRules, sparkline } from "./charts.js";
import { queryEditor } from "./forms.js";
import { asCsv, asJsonLines, brief, brieflyNamed, columns, describe, gone, linkTo } from "./matches.js";
import { changedSpan, drawTimeline, wholeSpan } from "./timeline.js";
import { explain, explainOnClick, whyNotForm } from "./why.js";

const LISTED = 20;
const TIMELINE = 200;
const cards = new Map();
let wanted = null;

// -- the overview ----------------------------------------------------------------------------------------------------

const health = (p) => (p.state === "running" && p.behind > 1000 ? "behind" : p.state);

function lag(p, containers) {
  if (p.state !== "running") return "–";
  if (!p.behind) return "up to date";
  const newest = containers.get(p.input)?.newest;
  const seconds = newest && p.newest ? (Date.parse(newest) - Date.parse(p.newest)) / 1000 : 0;
  const graphs = p.behind > 10000 ? "more than 10,000 graphs" : counted(p.behind, "graph");
  return seconds > 0 ? `${graphs}, ${lasting(seconds)}` : graphs;
}

export function showOverview(status) {
  const containers = new Map(status.containers.map((c) => [c.path, c]));
  const holder = $("overview-rows");
  const focused = document.activeElement?.dataset?.program;
  $("overview-none").hidden = status.programs.length > 0;
  $("overview-table").hidden = !status.programs.length;
  holder.replaceChildren(...status.programs.map((p) => {
    const cell = (label, attributes, ...children) => make("td", { "data-label": label, ...attributes }, ...children);
    const last = p.last?.[0];
    return make("tr", { class: p.state },
      cell("program", {}, make("a", { href: `${p.input}#${encodeURIComponent(p.program)}`, "data-path": p.input, "data-program": p.program }, p.name),
        make("div", { class: "hint" }, `reads ${p.input}`), p.error ? make("div", { class: "reason" }, p.error) : null),
      cell("state", {}, make("span", { class: `badge ${health(p)}` }, health(p))),
      cell("graphs/s in", { class: "number" }, rate(p.rateIn), sparkline(p.historyIn, `graphs read per second in the last two minutes`)),
      cell("matches/s out", { class: "number" }, rate(p.rateOut), sparkline(p.historyOut, `matches per second in the last two minutes`)),
      cell("waiting", { class: "number" }, lag(p, containers)),
      cell("goals", { class: "number" }, number(p.goals)),
      cell("memory", { class: "number" }, p.memory ? bytes(p.memory) : "–"),
      cell("matches", { class: "number" }, number(p.matches)),
      cell("last match", {}, last ? make("a", { href: linkTo(p, last.match.id), class: "last" }, brief(describe(last.match, p.query), 80)) : "none yet",
        last?.to ? make("div", { class: "hint" }, clock(last.to)) : null));
  }));
  if (focused) holder.querySelector(`a[data-program="${CSS.escape(focused)}"]`)?.focus();
}

// -- matches ---------------------------------------------------------------------------------------------------------

function drawMatches(known) {
  const { p, matches, card } = known;
  const list = card.querySelector(".matches");
  card.querySelector(".export").hidden = !matches.length;
  drawZoomed(known);
  if (!matches.length) {
    list.replaceChildren();
    return;
  }
  const { heads, row } = columns(matches, p.query);
  list.replaceChildren(make("table", { class: "cards" },
    make("thead", {}, make("tr", {}, ...[...heads, "from", "to", "explanation"].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...matches.slice(-LISTED).reverse().map((m) => make("tr", { class: m.match.retracted || gone(matches, m) ? "retracted" : "" },
      ...row(m).map((value, i) => make("td", { "data-label": heads[i] }, brief(value, 120))),
      make("td", { class: "time", "data-label": "from" }, clock(m.from)), make("td", { class: "time", "data-label": "to" }, clock(m.to)),
      make("td", {}, make("a", { href: linkTo(p, m.match.id), class: "why", "aria-label": `Why ${describe(m.match, p.query)}`, onclick: (event) => explainOnClick(event, p, m) }, "Why")))))));
}

// The matches that are on the timeline: those with a time that were not taken back.
const timed = (known) => known.matches.filter((m) => m.from && m.to && !m.match.retracted && !gone(known.matches, m));

function drawZoomed(known) {
  const timeline = known.card.querySelector(".timeline");
  const matches = timed(known);
  known.card.querySelector(".zoom").hidden = matches.length < 2;
  if (!matches.length) {
    timeline.replaceChildren(make("p", { class: "hint" }, known.matches.length ? "None of these matches has a time." : "No matches yet."));
    return;
  }
  const showSpan = (span) => { known.span = span; drawZoomed(known); };
  timeline.replaceChildren(drawTimeline({
    matches, width: timeline.clientWidth || 640, span: known.span ?? wholeSpan(matches),
    name: (m) => brieflyNamed(m.match, known.p.query), describe: (m) => describe(m.match, known.p.query),
    open: (m) => explain(known.p, m), select: showSpan,
  }));
}

function zoom(known, factor, move = 0) {
  known.span = changedSpan(known.span, wholeSpan(timed(known)), factor, move);
  drawZoomed(known);
}

// What the address asks for: a program, and one of its matches.
export function goTo(hash) {
  const [program, match] = hash.replace(/^#/, "").split("=").map(decodeURIComponent);
  wanted = program.startsWith("/") ? { program, match } : null;
  reveal();
}

function reveal() {
  const known = wanted && cards.get(wanted.program);
  if (!known?.drawn) return;
  const { match } = wanted;
  wanted = null;
  known.card.scrollIntoView({ block: "start" });
  const one = match && known.matches.find((m) => m.match.id === match);
  if (one) explain(known.p, one);
  else if (match) explain(known.p, { match: { id: match }, from: null, to: null });
}

// -- the programs of a stream ----------------------------------------------------------------------------------------

export function leave(path) {
  standIn(path);
  cards.clear();
  $("programs").replaceChildren();
  $("queries").replaceChildren();
}

export async function showPrograms(programs) {
  const holder = $("programs");
  for (const [path, known] of cards) {
    if (!programs.some((p) => p.program === path)) {
      known.card.remove();
      known.text?.remove();
      cards.delete(path);
    }
  }
  $("running").hidden = !programs.some((p) => p.queries === undefined);
  if (!programs.length) holder.replaceChildren(make("p", { class: "hint" }, "No program reads this stream. ", make("a", { href: "#query" }, "Run a query"), " on it."));
  else holder.querySelector(":scope > p.hint")?.remove();
  for (const p of programs) {
    let known = cards.get(p.program);
    if (!known) {
      known = { p, last: 0, matches: [], drawn: false, span: null };
      known.card = programCard(known);
      cards.set(p.program, known);
      holder.append(known.card);
      if (p.queries === undefined) $("queries").append(known.text = queryCard(known));
    }
    await update(p, known);
  }
  reveal();
}

function programCard(known) {
  const { p } = known;
  const title = `program-${p.name}`;
  const button = (name, action, label) => make("button", { class: "plain", type: "button", "aria-label": label ?? null, onclick: action }, name);
  return make("article", { class: "program", "aria-labelledby": title },
    make("header", {}, make("h3", { id: title }, p.name), make("span", { class: "badge" }), make("span", { class: "actions" },
      make("button", { class: "plain pause", type: "button", onclick: () => act(known, togglePause) }, "Pause"),
      button("Delete", () => act(known, remove)))),
    make("p", { class: "problem", role: "alert" }),
    make("p", { class: "hint counts" }),
    make("ul", { class: "warnings" }),
    make("div", { class: "bar" }, make("h4", {}, "Matches"), make("span", { class: "zoom", hidden: "" },
      button("+", () => zoom(known, 0.5), "Zoom in"), button("−", () => zoom(known, 2), "Zoom out"), button("‹", () => zoom(known, 1, -0.5), "Earlier"),
      button("›", () => zoom(known, 1, 0.5), "Later"), button("All", () => zoom(known, Infinity))),
      make("span", { class: "export", hidden: "" },
        button("Save as CSV", () => download(`${p.name}.csv`, "text/csv", asCsv(known.matches, known.p.query))),
        button("Save as JSON lines", () => download(`${p.name}.jsonl`, "application/x-ndjson", asJsonLines(known.matches))))),
    make("div", { class: "timeline" }),
    make("div", { class: "wide matches", tabindex: "0", role: "group", "aria-label": `Matches of ${p.name}` }),
    p.queries === undefined ? whyNotForm(known) : null);
}

// The text and the rules of a program that has a query of its own.
function queryCard(known) {
  const { p } = known;
  const title = `query-${p.name}`;
  return make("article", { class: "program-text", "aria-labelledby": title },
    make("h4", { id: title }, p.name),
    make("div", { class: "edit" }, queryEditor({
      text: p.query, stream: () => p.input, action: "Save and run", hint: "It reads what comes from now on; what it reported stays.",
      submit: async (text) => {
        await ask(p.program, { method: "PUT", headers: { "Content-Type": "application/sparql-query" }, body: text });
        Object.assign(known, { last: 0, matches: [], drawn: false });
        return "Saved and running";
      },
    })),
    make("details", {}, make("summary", {}, "Rules"), make("div", { class: "wide rules", tabindex: "0", role: "group", "aria-label": `Rules of ${p.name}` })));
}

// Draw the timelines again: the view has been shown, or its width has changed.
export function redraw() {
  for (const known of cards.values()) if (known.drawn) drawZoomed(known);
}

function counts(p) {
  const written = p.written || p.repeated
    ? `${number(p.written)} written to ${p.output}${p.repeated ? `, ${number(p.repeated)} were there already` : ""}`
    : p.matches ? "shown here only: rows of SELECT are not written, CONSTRUCT writes graphs" : "";
  const queries = p.queries === undefined ? "" : counted(p.queries, "query", "queries");
  return [queries, `${counted(p.pushed, "graph")} read`, `${counted(p.matches, "match", "matches")}`, written, p.refused ? `${number(p.refused)} refused` : ""].filter(Boolean).join(" · ");
}

async function update(p, known) {
  const { card } = known;
  known.p = p;
  const badge = card.querySelector(".badge");
  badge.textContent = health(p);
  badge.className = `badge ${health(p)}`;
  card.querySelector(".pause").textContent = p.state === "running" || p.state === "starting" ? "Pause" : "Resume";
  card.querySelector(".counts").textContent = counts(p);
  if (!known.failed) card.querySelector(".problem").textContent = p.error;
  card.querySelector(".warnings").replaceChildren(...p.warnings.map((text) => make("li", {}, make("pre", {}, text))));
  if (p.matches < known.last) Object.assign(known, { last: 0, matches: [], drawn: false });
  if (known.drawn && p.matches === known.last) return;
  const detail = await json(`${p.program}?after=${known.last}`);
  if (!known.drawn) known.text?.querySelector(".rules").replaceChildren(drawRules(detail.rules));
  if (detail.found.length || !known.drawn) {
    known.matches = known.matches.concat(detail.found).slice(-TIMELINE);
    known.last = known.matches.at(-1)?.number ?? 0;
    drawMatches(known);
  }
  known.drawn = p.state !== "starting";
}

async function act(known, action) {
  try {
    known.failed = false;
    await action(known.p);
  } catch (error) {
    known.failed = true;
    known.card.querySelector(".problem").textContent = error.message;
  }
}

async function togglePause(p) {
  const paused = p.state === "running" || p.state === "starting";
  await ask(p.program, { method: "PATCH", headers: { "Content-Type": "application/merge-patch+json" }, body: JSON.stringify({ paused }) });
}

async function remove(p) {
  if (confirm(`Delete the program ${p.name}? What it has written stays.`)) await ask(p.program, { method: "DELETE" });
}
