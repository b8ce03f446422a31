// The page of a server of stream containers: it asks /-/status once a second, follows the chosen container by
// server-sent events, and asks its programs for new matches. Everything shown is set as text, never as HTML.
"use strict";

const SHOWN = 20;
const LANES = 24;
const RATE_POINTS = 120;
const $ = (id) => document.getElementById(id);
const state = { path: null, source: null, items: [], fresh: new Set(), paused: false, rates: new Map(), programs: new Map(), dirty: false };

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
const number = (value) => Number(value).toLocaleString("en");
const clock = (text) => (text ? text.replace("T", " ").replace(/(\.\d{3})\d+/, "$1") : "–");

// -- the server ------------------------------------------------------------------------------------------------------

function headers(more = {}) {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

async function ask(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(options.headers) });
  if (response.ok) return response;
  let said = `${response.status} ${response.statusText}`;
  try {
    const problem = await response.json();
    said = `${problem.detail}\n${problem.hint}`;
  } catch {
    // no problem document: the status line has to do
  }
  throw new Error(said);
}

async function refresh() {
  try {
    const status = await (await ask("/-/status")).json();
    $("state").classList.remove("bad");
    const total = status.containers.reduce((sum, c) => sum + c.rate, 0);
    $("state").textContent = `${counted(status.containers.length + status.more, "container")} · ${total.toFixed(1)} graphs/s · ` +
      `${counted(status.readers, "push reader")}${status.writable ? "" : " · writing needs a token"}`;
    showContainers(status);
    await showContainer(status);
  } catch (error) {
    $("state").classList.add("bad");
    $("state").textContent = `The server does not answer: ${error.message}`;
  }
  setTimeout(refresh, document.hidden ? 5000 : 1000);
}

// -- containers ------------------------------------------------------------------------------------------------------

function showContainers(status) {
  const list = $("containers");
  const known = new Map([...list.querySelectorAll("a")].map((a) => [a.dataset.path, a]));
  const rows = status.containers.map((c) => {
    const points = state.rates.get(c.path) ?? [];
    points.push(c.rate);
    state.rates.set(c.path, points.slice(-RATE_POINTS));
    const link = known.get(c.path) ?? make("a", { href: c.path, "data-path": c.path },
      make("span", { class: "path" }, c.path), make("small", { class: "rate" }), make("small", { class: "members" }));
    link.querySelector(".rate").textContent = c.rate ? `${c.rate.toFixed(1)}/s` : "";
    link.querySelector(".members").textContent = `${counted(c.members, "graph")}${c.windows.length ? `, ${counted(c.windows.length, "window")}` : ""}`;
    if (c.path === state.path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    return make("li", {}, link);
  });
  const focused = document.activeElement?.dataset?.path;
  list.replaceChildren(...rows);
  if (focused) list.querySelector(`a[data-path="${CSS.escape(focused)}"]`)?.focus();
  $("more").hidden = !status.more;
  $("more").textContent = `and ${number(status.more)} more, not shown`;
}

function fact(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value));
}

async function showContainer(status) {
  const c = status.containers.find((one) => one.path === state.path);
  if (!c) {
    $("title").textContent = "This container is not (or no longer) there.";
    return;
  }
  $("title").textContent = c.title || (c.stream ? "A stream container" : "A container");
  $("facts").replaceChildren(
    fact("graphs", number(c.members)), fact("triples", number(c.triples)), fact("graphs per second", c.rate.toFixed(1)),
    fact("oldest", clock(c.oldest)), fact("newest", clock(c.newest)),
    fact("kept", [c.retainFor, c.retainCount && `${number(c.retainCount)} graphs`].filter(Boolean).join(", ") || "for ever"));
  drawRate(state.rates.get(c.path) ?? []);
  $("windows").tBodies[0].replaceChildren(...(c.windows.length ? c.windows.map((w) => make("tr", {},
    make("td", {}, make("a", { href: `${c.path}?window=${encodeURIComponent(w.name)}` }, w.name)),
    make("td", {}, w.size), make("td", {}, shorten(w.relation, c.path)),
    make("td", { class: "number" }, w.members > 10000 ? "more than 10,000" : number(w.members))))
    : [make("tr", {}, make("td", { colspan: "4" }, "No windows. PUT a description with ldpsc:window to add one."))]));
  await showPrograms(status.programs.filter((p) => p.input === c.path));
  if (state.dirty) showGraphs();
}

function drawRate(points) {
  const most = Math.max(1, ...points);
  const step = 300 / (RATE_POINTS - 1);
  const first = RATE_POINTS - points.length;
  const d = points.map((p, i) => `${i ? "L" : "M"}${((first + i) * step).toFixed(1)} ${(46 - 44 * p / most).toFixed(1)}`).join("");
  $("rate").replaceChildren(svg("path", { d: d || "M0 46" }));
  $("rate-text").textContent = `graphs per second, the last two minutes; the highest is ${Math.max(0, ...points).toFixed(1)}`;
}

// -- graphs ----------------------------------------------------------------------------------------------------------

function shorten(iri, base) {
  if (iri.startsWith(location.origin + base)) return `<${iri.slice(location.origin.length + base.length)}>`;
  const cut = Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/"), iri.lastIndexOf(":"));
  return cut >= 0 && cut < iri.length - 1 ? iri.slice(cut + 1) : iri;
}

function term(text) {
  if (text.startsWith("<")) return make("span", { class: "term iri", title: text.slice(1, -1) }, shorten(text.slice(1, -1), state.path));
  if (text.startsWith('"')) {
    const lexical = text.slice(0, text.lastIndexOf('"') + 1);
    return make("span", { class: "term literal", title: text }, lexical.length > 300 ? `${lexical.slice(0, 300)}…"` : lexical);
  }
  return make("span", { class: "term" }, text);
}

function triple(line) {
  const [subject, predicate] = line.split(" ", 2);
  const object = line.slice(subject.length + predicate.length + 2).replace(/ \.$/, "");
  return make("li", {}, term(subject), " ", term(predicate), " ", term(object));
}

function showGraphs() {
  state.dirty = false;
  const rows = state.items.map((item) => {
    const lines = item.triples.trim().split("\n").filter(Boolean);
    const more = lines.length > 12 ? make("li", { class: "hint" }, `and ${lines.length - 12} more triples`) : null;
    return make("li", { class: state.fresh.has(item.id) ? "new" : null },
      make("div", { class: "top" }, make("a", { href: item.graph }, shorten(item.graph, state.path)), make("span", {}, clock(item.time))),
      make("ul", {}, ...lines.slice(0, 12).map(triple), more));
  });
  state.fresh.clear();
  $("graphs").replaceChildren(...(rows.length ? rows : [make("li", { class: "hint" }, "No graphs yet.")]));
}

function arrived(item) {
  state.items.unshift(item);
  state.items.length = Math.min(state.items.length, SHOWN);
  state.fresh.add(item.id);
  if (!state.dirty) {
    state.dirty = true;
    setTimeout(() => { if (!state.paused && state.dirty) showGraphs(); }, 200);
  }
}

async function choose(path) {
  state.source?.close();
  Object.assign(state, { path, items: [], programs: new Map() });
  state.fresh.clear();
  document.title = `${path} – stream containers`;
  $("name").textContent = path;
  $("programs").replaceChildren();
  let last = 0;
  try {
    const text = await (await ask(`${path}?newest=${SHOWN}`, { headers: { Accept: "application/x-ndjson" } })).text();
    if (state.path !== path) return;
    for (const line of text.split("\n").filter(Boolean)) {
      const item = JSON.parse(line);
      last = item.id;
      state.items.unshift(item);
    }
  } catch (error) {
    $("graphs").replaceChildren(make("li", { class: "said" }, error.message));
    return;
  }
  showGraphs();
  state.source = new EventSource(`${path}?after=${last}`);
  state.source.addEventListener("member", (event) => arrived(JSON.parse(event.data)));
}

// -- programs --------------------------------------------------------------------------------------------------------

async function showPrograms(programs) {
  const holder = $("programs");
  for (const [path, known] of state.programs) {
    if (!programs.some((p) => p.program === path)) {
      known.card.remove();
      state.programs.delete(path);
    }
  }
  if (!programs.length) holder.replaceChildren(make("p", { class: "hint" }, "No program reads this stream."));
  else holder.querySelector("p.hint:only-child")?.remove();
  for (const p of programs) {
    let known = state.programs.get(p.program);
    if (!known) {
      known = { last: 0, matches: [], card: programCard(p), drawn: false };
      state.programs.set(p.program, known);
      holder.append(known.card);
    }
    await updateProgram(p, known);
  }
}

function programCard(p) {
  const title = `program-${p.name}`;
  return make("article", { class: "program", "aria-labelledby": title },
    make("header", {}, make("h4", { id: title }, p.name), make("span", { class: "badge" }),
      make("span", { class: "hint counts" }), make("button", { class: "plain", type: "button", onclick: () => removeProgram(p) }, "Delete")),
    make("p", { class: "said" }),
    make("details", {}, make("summary", {}, "Query"), make("pre", { tabindex: "0" }, p.query)),
    make("details", { open: "" }, make("summary", {}, "Rules"), make("div", { class: "wide rules", tabindex: "0", role: "group", "aria-label": `Rules of ${p.name}` })),
    make("h4", {}, "Matches"),
    make("div", { class: "timeline" }),
    make("div", { class: "wide matches" }));
}

async function updateProgram(p, known) {
  const card = known.card;
  const badge = card.querySelector(".badge");
  badge.textContent = p.running ? "running" : "stopped";
  badge.classList.toggle("bad", !p.running);
  card.querySelector(".counts").textContent = `${counted(p.pushed, "graph")} read, ${counted(p.matches, "match", "matches")}, ${number(p.written)} written to ${p.output}` +
    (p.refused ? `, ${number(p.refused)} refused` : "");
  card.querySelector(".said").textContent = p.error;
  if (known.drawn && p.matches === known.last) return;
  const path = p.program;
  const detail = await (await ask(`${path}?after=${known.last}`, { headers: { Accept: "application/json" } })).json();
  if (!known.drawn) card.querySelector(".rules").replaceChildren(drawRules(detail.rules));
  if (detail.found.length || !known.drawn) {
    known.matches = known.matches.concat(detail.found).slice(-200);
    known.last = known.matches.at(-1)?.number ?? 0;
    drawMatches(p, known);
  }
  known.drawn = true;
}

async function removeProgram(p) {
  if (!confirm(`Delete the program ${p.name}? Its output stays.`)) return;
  try {
    await ask(p.program, { method: "DELETE" });
  } catch (error) {
    alert(error.message);
  }
}

// Rules as a graph: leaves at the left, what uses them to their right, by the longest way from a leaf.
function drawRules(rules) {
  const nodes = new Map((rules.nodes ?? []).map((n) => [n.id, { ...n, rank: 0, lines: wrap(n.label ?? n.id, 30) }]));
  const edges = (rules.edges ?? []).filter((e) => nodes.has(e.from) && nodes.has(e.to));
  if (!nodes.size) return make("p", { class: "hint" }, "The program shows no rules.");
  for (let pass = 0; pass < nodes.size; pass++) {
    for (const e of edges) {
      const rank = nodes.get(e.from).rank + 1;
      if (e.from !== e.to && rank < nodes.size && nodes.get(e.to).rank < rank) nodes.get(e.to).rank = rank;
    }
  }
  const width = 220, gap = 56, tops = new Map();
  let height = 0;
  const long = edges.some((e) => nodes.get(e.to).rank - nodes.get(e.from).rank > 1 || nodes.get(e.to).rank <= nodes.get(e.from).rank);
  for (const n of nodes.values()) {
    n.height = 16 + 15 * n.lines.length;
    n.x = n.rank * (width + gap) + 2;
    n.y = (tops.get(n.rank) ?? 2);
    tops.set(n.rank, n.y + n.height + 14);
    height = Math.max(height, n.y + n.height + 4);
  }
  if (long) height += 30;
  const total = (Math.max(...[...nodes.values()].map((n) => n.rank)) + 1) * (width + gap) - gap + 6;
  const picture = svg("svg", { width: total, height, viewBox: `0 0 ${total} ${height}`, role: "img",
    "aria-label": `Rules: ${[...nodes.values()].map((n) => n.label).join("; ")}` });
  const marker = `arrow-${Math.random().toString(36).slice(2)}`;
  picture.append(svg("defs", {}, svg("marker", { id: marker, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z", class: "arrow", fill: "currentColor" }))));
  for (const e of edges) {
    const a = nodes.get(e.from), b = nodes.get(e.to);
    const y1 = a.y + a.height / 2, y2 = b.y + b.height / 2, x1 = a.x + width, x2 = b.x;
    const d = a === b || x2 <= a.x
      ? `M${a.x + width / 2} ${a.y + a.height} C${a.x + width / 2} ${height} ${b.x + width / 2} ${height} ${b.x + width / 2} ${b.y + b.height}`
      : b.rank - a.rank > 1
        ? `M${x1} ${y1} C${x1 + gap} ${height + 14} ${x2 - gap} ${height + 14} ${x2} ${y2}`
        : `M${x1} ${y1} C${x1 + gap / 2} ${y1} ${x2 - gap / 2} ${y2} ${x2} ${y2}`;
    const path = svg("path", { d, class: "edge", "marker-end": `url(#${marker})` });
    if (e.label) path.append(Object.assign(svg("title"), { textContent: e.label }));
    picture.append(path);
  }
  for (const n of nodes.values()) {
    const group = svg("g", { class: `node ${/^[a-z]+$/.test(n.kind ?? "") ? n.kind : ""}` },
      Object.assign(svg("title"), { textContent: n.label }), svg("rect", { x: n.x, y: n.y, width, height: n.height, rx: 6 }));
    n.lines.forEach((line, i) => group.append(Object.assign(svg("text", { x: n.x + 10, y: n.y + 19 + 15 * i }), { textContent: line })));
    picture.append(group);
  }
  return picture;
}

function wrap(text, most) {
  const lines = [""];
  for (const word of String(text).split(/\s+/)) {
    const pieces = word.match(new RegExp(`.{1,${most}}`, "gu")) ?? [""];
    for (const piece of pieces) {
      const line = lines.at(-1);
      if (!line) lines[lines.length - 1] = piece;
      else if (line.length + 1 + piece.length <= most) lines[lines.length - 1] = `${line} ${piece}`;
      else lines.push(piece);
    }
  }
  return lines.length > 6 ? [...lines.slice(0, 5), "…"] : lines;
}

// -- matches ---------------------------------------------------------------------------------------------------------

function said(match) {
  if (typeof match.boolean === "boolean") return match.boolean ? "yes" : "no";
  if (match.triples) return match.triples.map((t) => t.split(" ").slice(0, 3).map((x) => (x.startsWith("<") ? shorten(x.slice(1, -1), state.path) : x)).join(" ")).join("; ");
  return Object.entries(match.bindings ?? {}).map(([name, value]) => `?${name} = ${value?.value ?? value}`).join(", ") || "(no bindings)";
}

function drawMatches(p, known) {
  const matches = known.matches.filter((m) => m.from && m.to);
  const timeline = known.card.querySelector(".timeline");
  const list = known.card.querySelector(".matches");
  if (!known.matches.length) {
    timeline.replaceChildren(make("p", { class: "hint" }, "No matches yet."));
    list.replaceChildren();
    return;
  }
  timeline.replaceChildren(matches.length ? drawTimeline(p, matches, timeline.clientWidth || 640) : make("p", { class: "hint" }, "None of these matches has a time."));
  list.replaceChildren(make("table", {},
    make("thead", {}, make("tr", {}, ...["", "match", "from", "to"].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...known.matches.slice(-SHOWN).reverse().map((m) => make("tr", {},
      make("td", {}, make("button", { class: "plain", type: "button", "aria-label": `Why ${said(m.match)}`, onclick: () => explain(p, m) }, "Why")),
      make("td", {}, said(m.match)), make("td", {}, clock(m.from)), make("td", {}, clock(m.to)))))));
}

// One bar for each match from its start to its end; bars that overlap stand in lanes below each other.
function drawTimeline(p, matches, width) {
  const starts = matches.map((m) => Date.parse(m.from)), ends = matches.map((m) => Date.parse(m.to));
  const low = Math.min(...starts), high = Math.max(...ends);
  const span = high - low || 1;
  const lanes = [];
  let covered = false;
  const bars = matches.map((m, i) => {
    const x = 8 + (starts[i] - low) / span * (width - 24), right = 8 + (ends[i] - low) / span * (width - 24);
    return { m, x, width: Math.max(8, right - x) };
  }).sort((a, b) => a.x - b.x);
  for (const bar of bars) {
    let lane = lanes.findIndex((end) => end + 3 <= bar.x);
    if (lane < 0 && lanes.length < LANES) lane = lanes.push(0) - 1;
    if (lane < 0) {
      lane = lanes.indexOf(Math.min(...lanes));
      covered = true;
    }
    lanes[lane] = bar.x + bar.width;
    bar.lane = lane;
  }
  const narrow = width < 480;
  const height = lanes.length * 18 + (narrow ? 40 : 26), foot = height - (narrow ? 34 : 20);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Timeline of ${matches.length} matches` });
  picture.append(svg("line", { x1: 8, x2: width - 8, y1: foot, y2: foot, class: "axis" }));
  picture.append(Object.assign(svg("text", { x: 8, y: foot + 15, class: "axis-text" }), { textContent: clock(new Date(low).toISOString()) }));
  picture.append(Object.assign(svg("text", { x: width - 8, y: height - 5, class: "axis-text", "text-anchor": "end" }), { textContent: clock(new Date(high).toISOString()) }));
  for (const bar of bars) {
    const text = `${said(bar.m.match)}, ${clock(bar.m.from)} to ${clock(bar.m.to)}`;
    const group = svg("g", { class: "match", tabindex: "0", role: "button", "aria-label": `Why ${text}` },
      Object.assign(svg("title"), { textContent: text }),
      svg("rect", { x: bar.x, y: 4 + bar.lane * 18, width: bar.width, height: 13, rx: 3 }));
    group.addEventListener("click", () => explain(p, bar.m));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        explain(p, bar.m);
      }
    });
    picture.append(group);
  }
  return covered ? make("div", {}, picture, make("p", { class: "hint" }, "Some bars lie upon others; the newest matches are listed below.")) : picture;
}

const isTriple = (value) => Array.isArray(value) && value.length === 3 && value.every((one) => typeof one === "string" && /^[<_"]/.test(one));

function tree(value) {
  if (isTriple(value)) return make("span", {}, ...value.flatMap((one) => [term(one), " "]));
  if (Array.isArray(value)) return make("ol", {}, ...value.map((one) => make("li", {}, tree(one))));
  if (value !== null && typeof value === "object") return make("dl", {}, ...Object.entries(value).flatMap(([name, one]) => [make("dt", {}, name), make("dd", {}, tree(one))]));
  if (typeof value === "string" && value.includes("\n")) return make("pre", {}, value);
  return String(value);
}

async function explain(p, { match, from, to }) {
  const body = $("why-body");
  $("why-title").textContent = `Why ${said(match)}`;
  body.replaceChildren("…");
  $("why").showModal();
  try {
    const answer = await (await ask(`${p.program}?match=${encodeURIComponent(match.id)}`, { headers: { Accept: "application/json" } })).json();
    body.replaceChildren(make("p", { class: "hint" }, from ? `${clock(from)} to ${clock(to)}` : "outside of time"), tree(answer.why));
  } catch (error) {
    body.replaceChildren(make("p", { class: "said" }, error.message));
  }
}

// -- forms -----------------------------------------------------------------------------------------------------------

function onSubmit(form, out, action) {
  $(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    const place = $(out);
    place.classList.remove("good");
    place.textContent = "";
    try {
      place.textContent = await action();
      place.classList.add("good");
    } catch (error) {
      place.textContent = error.message;
    }
  });
}

onSubmit("query-form", "query-said", async () => {
  const name = $("query-name").value.trim();
  const more = { "Content-Type": "application/sparql-query", ...(name ? { Slug: encodeURIComponent(name) } : {}) };
  const start = $("query-oldest").checked ? "oldest" : "now";
  const response = await ask(`${state.path}?from=${start}`, { method: "POST", headers: more, body: $("query").value });
  return `Running as ${new URL(response.headers.get("Location")).pathname}`;
});

onSubmit("post-form", "post-said", async () => {
  const response = await ask(state.path, { method: "POST", headers: { "Content-Type": "text/turtle" }, body: $("graph").value });
  return `Created ${new URL(response.headers.get("Location")).pathname}`;
});

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  $("access").open = false;
});

$("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  $("pause").setAttribute("aria-pressed", state.paused);
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  if (!state.paused) showGraphs();
});

$("containers").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.dataset.path);
  choose(link.dataset.path).then(() => $("main").focus());
});

addEventListener("popstate", () => { if (location.pathname !== state.path) choose(location.pathname); });

// A page that only waits in the browser's history keeps no place among the push readers.
addEventListener("pagehide", () => state.source?.close());
addEventListener("pageshow", (event) => { if (event.persisted) choose(location.pathname); });

choose(location.pathname).then(refresh);
