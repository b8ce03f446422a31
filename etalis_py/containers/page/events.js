// The newest events of a stream as a table: a row for each thing that an event is about, a column for each property.
import { $, clock, linesOf, make, readable, shorten, terms } from "./basics.js";

const COLUMNS = 8;
const SUBJECTS = 12;

// The properties of each subject of an event; the time that orders the stream has a column of its own.
function recordsOf(item, order) {
  const records = new Map();
  for (const [subject, predicate, object] of linesOf(item).map(terms)) {
    if (subject === `<${item.graph}>` && predicate === `<${order}>`) continue;
    if (!records.has(subject)) records.set(subject, new Map());
    const values = records.get(subject);
    values.set(predicate, [...(values.get(predicate) ?? []), object]);
  }
  return [...(records.size ? records : [["", new Map()]])];
}

// What a row is about; a blank node has no name that means anything.
const about = (subject) => (subject.startsWith("<") ? readable(subject) : "");

const value = (text) => make("span", { class: text.startsWith("<") ? "iri" : "", title: text.slice(0, 2000) }, brief(readable(text)));
const brief = (text) => (text.length > 120 ? `${text.slice(0, 119)}…` : text);
const cell = (objects) => make("td", {}, ...(objects ?? []).flatMap((object, i) => [i ? ", " : "", value(object)]));

function others(values, columns) {
  const more = [...values].filter(([predicate]) => !columns.includes(predicate));
  return make("td", {}, more.map(([predicate, objects]) => `${readable(predicate)} ${objects.map((one) => brief(readable(one))).join(", ")}`).join("; "));
}

// ``items``: the newest first; ``fresh``: the ids of those that were not shown before.
export function showEvents(items, fresh, order) {
  const events = items.map((item) => ({ item, records: recordsOf(item, order) }));
  const all = [...new Set(events.toReversed().flatMap(({ records }) => records.flatMap(([, values]) => [...values.keys()])))];
  const columns = all.slice(0, COLUMNS), more = all.length > COLUMNS;
  $("events-none").hidden = items.length > 0;
  $("events").hidden = !items.length;
  $("events").tHead.rows[0].replaceChildren(...["time", "about", ...columns, ...(more ? ["others"] : [])].map((name) =>
    make("th", { scope: "col", title: name.startsWith("<") ? name.slice(1, -1) : null }, readable(name))));
  $("events").tBodies[0].replaceChildren(...events.flatMap(({ item, records }) => records.slice(0, SUBJECTS).map(([subject, values], i) =>
    make("tr", { class: fresh.has(item.id) ? "new" : null },
      make("td", { class: "time" }, i ? "" : make("a", { href: item.graph, title: shorten(item.graph) }, clock(item.time))),
      make("th", { scope: "row", title: subject }, about(subject)),
      ...columns.map((name) => cell(values.get(name))), more ? others(values, columns) : null))));
}
