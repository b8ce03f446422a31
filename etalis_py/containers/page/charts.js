// Pictures: rates over time, rules as a graph.
import { make, svg } from "./basics.js";

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

