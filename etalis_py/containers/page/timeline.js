// Matches in time: a lane for each, from its start to its end, with the events that it was made from.
import { clock, make, readable, svg } from "./basics.js";

const LANE = 24;
const LANES = 60;
const COLOURS = 5;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000].map((s) => s * 1000)];

// The whole time of some matches, in milliseconds.
export function wholeSpan(matches) {
  const low = Math.min(...matches.map((m) => Date.parse(m.from))), high = Math.max(...matches.map((m) => Date.parse(m.to)));
  return high > low ? [low, high] : [low - 500, high + 500];
}

// A part of ``whole``: of ``span``, wider by ``factor`` and moved by a part of its length.  Null is all of it.
export function changedSpan(span, whole, factor, move = 0) {
  const [low, high] = span ?? whole;
  const length = (high - low) * factor;
  if (length >= whole[1] - whole[0]) return null;
  const wanted = (low + high) / 2 + move * length;
  const middle = Math.min(whole[1] - length / 2, Math.max(whole[0] + length / 2, wanted));
  return [middle - length / 2, middle + length / 2];
}

const said = (event) => event.triples.map((triple) => triple.map(readable).join(" ")).join("; ");
const kindOf = (event) => event.triples[0]?.[1] ?? "";
const lasted = ({ from, to }) => (from === to ? clock(from) : `${clock(from)} to ${clock(to)}`);

// ``name``, ``describe`` and ``open`` say what a match is, in short and in full, and explain it; ``select`` is given the part of time that was drawn over.
export function drawTimeline({ matches, width, span, name, describe, open, select }) {
  const [low, high] = span;
  const left = width < 480 ? 92 : 220, right = width - 14;
  const scale = (time) => left + (Date.parse(time) - low) / (high - low) * (right - left);
  const inside = matches.filter((m) => Date.parse(m.to) >= low && Date.parse(m.from) <= high).toReversed();
  const lanes = inside.slice(0, LANES);
  const kinds = [...new Set(lanes.flatMap((m) => (m.events ?? []).map(kindOf)))];
  const height = lanes.length * LANE + 4;
  const ticks = ticksOf(low, high, left, right);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Timeline of ${lanes.length} matches` },
    ...ticks.map(({ x }) => svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "axis" })));
  const clip = `lanes-${Math.random().toString(36).slice(2)}`;
  picture.append(svg("clipPath", { id: clip }, svg("rect", { x: left - 8, y: 0, width: right - left + 16, height })));
  const tip = make("div", { class: "tip", hidden: "" });
  lanes.forEach((m, i) => picture.append(lane(m, i * LANE + 2, { left, right, scale, kinds, clip, name, describe, open, tip })));
  zoomByDrawing(picture, { left, right, height, span, select });
  const note = inside.length > LANES ? `The newest ${LANES} of ${inside.length} matches; zoom in for others.` : "";
  return make("div", { class: "drawn" }, legend(kinds), axis(ticks, low, width, left, right),
    make("div", { class: "lanes", tabindex: "0", role: "group", "aria-label": "Matches over time" }, picture), tip, note ? make("p", { class: "hint" }, note) : null);
}

function lane(m, y, { left, right, scale, kinds, clip, name, describe, open, tip }) {
  const what = describe(m), short = name(m), events = m.events ?? [];
  const x1 = Math.max(left - 4, scale(m.from)), x2 = Math.min(right + 4, scale(m.to));
  const middle = y + LANE / 2;
  const most = Math.floor((left - 14) / 7);
  const group = svg("g", { class: "match", tabindex: "0", role: "button", "aria-label": `Why ${short}: ${what}, ${lasted(m)}, ${events.length} events` },
    svg("rect", { class: "lane", x: 0, y, width: right + 14, height: LANE, rx: 4 }),
    text(short.length > most ? `${short.slice(0, most - 1)}…` : short, { x: 6, y: middle + 4, class: "row-name" }),
    svg("rect", { class: "bar", x: x1 - 3, y: middle - 4, width: Math.max(6, x2 - x1 + 6), height: 8, rx: 4 }));
  const dots = svg("g", { "clip-path": `url(#${clip})` });
  for (const event of events) {
    const dot = svg("circle", { class: `event kind-${kinds.indexOf(kindOf(event)) % COLOURS}`, cx: scale(event.to), cy: middle, r: 5 });
    dot.addEventListener("pointerenter", (at) => hover(tip, at, [said(event), lasted(event)]));
    dots.append(dot);
  }
  group.append(dots);
  group.addEventListener("pointerenter", (at) => hover(tip, at, [what, lasted(m), ...events.map(said)]));
  dots.addEventListener("pointerleave", (at) => hover(tip, at, [what, lasted(m), ...events.map(said)]));
  group.addEventListener("pointerleave", () => { tip.hidden = true; });
  group.addEventListener("click", () => open(m));
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(m);
  });
  return group;
}

// What the pointer is on, beside it.
function hover(tip, at, lines) {
  const frame = tip.parentElement.getBoundingClientRect();
  tip.replaceChildren(...lines.map((line) => make("div", {}, line)));
  tip.hidden = false;
  tip.style.left = `${Math.max(0, Math.min(at.clientX - frame.left + 12, frame.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${at.clientY - frame.top + 16}px`;
}

const legend = (kinds) => make("ul", { class: "legend", "aria-label": "Events" }, ...kinds.map((kind, i) =>
  make("li", {}, svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, svg("circle", { class: `event kind-${i % COLOURS}`, cx: 6, cy: 6, r: 5 })), readable(kind))));

// Round times, and where they are.
function ticksOf(low, high, left, right) {
  const room = Math.max(2, Math.floor((right - left) / 110));
  const step = STEPS.find((one) => (high - low) / one <= room) ?? STEPS.at(-1);
  const ticks = [];
  for (let time = Math.ceil(low / step) * step; time <= high; time += step) ticks.push({ x: left + (time - low) / (high - low) * (right - left), said: tickText(time, step) });
  return ticks;
}

function axis(ticks, low, width, left, right) {
  return svg("svg", { width, height: 22, viewBox: `0 0 ${width} 22`, "aria-hidden": "true" },
    svg("line", { x1: left, x2: right, y1: 21, y2: 21, class: "axis" }),
    text(new Date(low).toISOString().slice(0, 10), { x: 6, y: 14, class: "axis-text" }),
    ...ticks.map(({ x, said }) => text(said, { x, y: 14, class: "axis-text", "text-anchor": x > right - 30 ? "end" : "middle" })));
}

function tickText(time, step) {
  const all = new Date(time).toISOString();
  if (step >= 86400000) return all.slice(5, 10);
  return step >= 60000 ? all.slice(11, 16) : all.slice(11, step >= 1000 ? 19 : 23);
}

// Draw over a part of time to see only that.
function zoomByDrawing(picture, { left, right, height, span: [low, high], select }) {
  let from = null, shade = null;
  const place = (event) => Math.min(right, Math.max(left, event.clientX - picture.getBoundingClientRect().left));
  const time = (x) => low + (x - left) / (right - left) * (high - low);
  picture.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || event.clientX - picture.getBoundingClientRect().left < left) return;
    from = place(event);
  });
  picture.addEventListener("pointermove", (event) => {
    if (from === null || (!shade && Math.abs(place(event) - from) < 6)) return;
    shade ??= picture.appendChild(svg("rect", { class: "shade", y: 0, height }));
    shade.setAttribute("x", Math.min(from, place(event)));
    shade.setAttribute("width", Math.abs(place(event) - from));
  });
  picture.addEventListener("pointerup", (event) => {
    if (shade) select([time(Math.min(from, place(event))), time(Math.max(from, place(event)))]);
    from = null;
  });
  picture.addEventListener("pointerleave", () => {
    shade?.remove();
    from = shade = null;
  });
  // The click that ends it asks about no match.
  picture.addEventListener("click", (event) => { if (shade) event.stopPropagation(); }, true);
}

function text(content, attributes) {
  const element = svg("text", attributes);
  element.textContent = content;
  return element;
}
