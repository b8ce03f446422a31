// Matches as a person reads them: in a line, in the columns of a table, as a file.
import { readable, terms } from "./basics.js";

export const linkTo = (p, id) => `${p.input}#${encodeURIComponent(p.program)}=${encodeURIComponent(id)}`;

export const brief = (text, most = 60) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// The names of variables in the order in which a query has them.
function inOrder(names, query = "") {
  const place = (name) => { const at = query.search(new RegExp(`[?$]${name}\\b`)); return at < 0 ? Infinity : at; };
  return [...names].sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}

// A match in a line; of long ones the beginning.
export const describe = (match, query) => brief(inFull(match, query), 200);

function inFull(match, query) {
  if (typeof match.boolean === "boolean") return match.boolean ? "yes" : "no";
  if (match.triples) return match.triples.map((line) => readableTriple(line).join(" ")).join("; ");
  const bound = match.bindings ?? {};
  return inOrder(Object.keys(bound), query).map((name) => `?${name} = ${brief(readable(bound[name]))}`).join(", ") || "(no bindings)";
}

// Its values alone, where space is short.
export function brieflyNamed(match, query) {
  const names = inOrder(Object.keys(match.bindings ?? {}), query);
  return names.map((name) => readable(match.bindings[name])).join(", ") || describe(match, query);
}

const readableTriple = (line) => terms(line).map((one) => brief(readable(one)));

// The columns of the matches: the query, where there are several, and what it found.
export function columns(matches, query) {
  const found = columnsOfQuery(matches, query);
  if (new Set(matches.map((m) => m.match.query)).size < 2) return found;
  return { heads: ["query", ...found.heads], row: (m) => [m.match.query, ...found.row(m)] };
}

// A variable each, or subject, predicate and object for a single triple.
function columnsOfQuery(matches, query) {
  const names = inOrder(new Set(matches.flatMap((m) => Object.keys(m.match.bindings ?? {}))), query);
  if (names.length) return { heads: names.map((name) => `?${name}`), row: (m) => names.map((name) => readable(m.match.bindings?.[name])) };
  if (matches.every((m) => m.match.triples?.length === 1)) return { heads: ["subject", "predicate", "object"], row: (m) => readableTriple(m.match.triples[0]) };
  return { heads: ["match"], row: (m) => [describe(m.match)] };
}

export function asCsv(matches, query) {
  const { heads, row } = columns(matches, query);
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const lines = matches.map((m) => [...row(m), m.from ?? "", m.to ?? "", m.match.id]);
  return [[...heads, "from", "to", "id"], ...lines].map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

export const asJsonLines = (matches) => matches.map(({ match, from, to }) => `${JSON.stringify({ ...match, from, to })}\n`).join("");

// Whether a later line takes a match back.
export const gone = (matches, m) => matches.findLast((other) => other.match.id === m.match.id).match.retracted === true;
