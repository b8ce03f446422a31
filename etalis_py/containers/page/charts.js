// Pictures: rates over time, matches on a timeline, rules as a graph.
import { clock, make, svg } from "./basics.js";

// A line for the counts of the last two minutes; the newest are at the right.
export function sparkline(counts, label, width = 90, height = 22) {
  const picture = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, preserveAspectRatio: "none", role: "img", "aria-label": label });
  drawLine(picture, counts, width, height);
  return picture;
}

export function drawLine(picture, counts, width, height) {
  const most = Math.max(1, ...counts);
  const step = width / Math.max(1, counts.length - 1);
  const d = counts.map((count, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${(height - 2 - (height - 4) * count / most).toFixed(1)}`).join("");
  picture.replaceChildren(svg("path", { d: `${d}L${width} ${height}L0 ${height}Z`, class: "area" }), svg("path", { d, class: "line" }));
}

// -- the timeline ----------------------------------------------------------------------------------------------------

const ROWS = 12;
const LANES = 3;
const LANE = 13;

// The variable whose values part the matches best into a few rows.
export function rowVariable(matches) {
  const names = new Map();
  for (const m of matches) {
    for (const [name, value] of Object.entries(m.match.bindings ?? {})) {
      if (!names.has(name)) names.set(name, new Map());
      const key = value?.value ?? String(value);
      names.get(name).set(key, (names.get(name).get(key) ?? 0) + 1);
    }
  }
  const fit = [...names].filter(([, values]) => values.size > 1 && values.size <= ROWS && values.size < matches.length);
  return fit.length ? fit.sort((a, b) => a[1].size - b[1].size)[0][0] : null;
}

// One bar for each match from its start to its end, in the row of its value; ``span``: the part of time that is shown.
export function drawTimeline({ matches, width, span, variable, label, describe, open }) {
  const of = (m) => (variable ? label(m.match.bindings?.[variable]) : "");
  const rows = [...new Set(matches.map(of))].sort().map((name) => ({ name, lanes: [] }));
  const left = variable ? Math.min(150, 24 + 7 * Math.max(...rows.map((r) => Math.min(18, r.name.length)))) : 8;
  const [low, high] = span;
  const scale = (time) => left + (time - low) / (high - low || 1) * (width - left - 16);
  const bars = [];
  for (const m of matches) {
    const from = Date.parse(m.from), to = Date.parse(m.to);
    if (to < low || from > high) continue;
    const x = Math.max(left, scale(from)), right = Math.min(width - 8, scale(to));
    bars.push({ m, x, width: Math.max(6, right - x), row: rows.find((r) => r.name === of(m)) });
  }
  bars.sort((a, b) => a.x - b.x);
  for (const bar of bars) {
    const { lanes } = bar.row;
    let lane = lanes.findIndex((end) => end + 2 <= bar.x);
    if (lane < 0) lane = lanes.length < LANES ? lanes.length : lanes.indexOf(Math.min(...lanes));
    lanes[lane] = Math.max(lanes[lane] ?? 0, bar.x + bar.width);
    bar.lane = lane;
  }
  let height = 4;
  for (const row of rows) {
    row.y = height;
    height += Math.max(1, row.lanes.length) * LANE + 7;
  }
  const picture = svg("svg", { width, height: height + 22, viewBox: `0 0 ${width} ${height + 22}`, role: "group", "aria-label": `Timeline of ${bars.length} matches` });
  for (const row of rows) {
    picture.append(svg("line", { x1: left, x2: width - 8, y1: row.y - 3, y2: row.y - 3, class: "axis" }));
    if (variable) picture.append(text(row.name.length > 18 ? `${row.name.slice(0, 17)}…` : row.name, { x: 4, y: row.y + 11, class: "row-name" }, row.name));
  }
  picture.append(svg("line", { x1: left, x2: width - 8, y1: height, y2: height, class: "axis" }));
  const narrow = width < 480;
  const shown = (time) => (narrow ? clock(new Date(time).toISOString()).slice(11) : clock(new Date(time).toISOString()));
  picture.append(text(shown(low), { x: left, y: height + 16, class: "axis-text" }));
  picture.append(text(shown(high), { x: width - 8, y: height + 16, class: "axis-text", "text-anchor": "end" }));
  for (const bar of bars) {
    const title = `${describe(bar.m)}, ${clock(bar.m.from)} to ${clock(bar.m.to)}`;
    const group = svg("g", { class: "match", tabindex: "0", role: "button", "aria-label": `Why ${title}` },
      Object.assign(svg("title"), { textContent: title }),
      svg("rect", { x: bar.x, y: bar.row.y + bar.lane * LANE, width: bar.width, height: LANE - 3, rx: 2 }));
    group.addEventListener("click", () => open(bar.m));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(bar.m);
    });
    picture.append(group);
  }
  return picture;
}

function text(content, attributes, title) {
  const element = svg("text", attributes);
  element.textContent = content;
  if (title && title !== content) element.append(Object.assign(svg("title"), { textContent: title }));
  return element;
}

// -- rules -----------------------------------------------------------------------------------------------------------

// Rules as a graph: leaves at the left, what uses them to their right, by the longest way from a leaf.
export function drawRules(rules) {
  const nodes = new Map((rules.nodes ?? []).map((n) => [n.id, { ...n, rank: 0, lines: wrap(n.label ?? n.id, 27) }]));
  const edges = (rules.edges ?? []).filter((e) => nodes.has(e.from) && nodes.has(e.to));
  if (!nodes.size) return make("p", { class: "hint" }, "The program shows no rules.");
  for (let pass = 0; pass < nodes.size; pass++) {
    for (const e of edges) {
      const rank = nodes.get(e.from).rank + 1;
      if (e.from !== e.to && rank < nodes.size && nodes.get(e.to).rank < rank) nodes.get(e.to).rank = rank;
    }
  }
  const width = 196, gap = 40, tops = new Map();
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

