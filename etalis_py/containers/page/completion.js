// What the editor of queries offers: the predicates of the graphs on the page, as the query's prefixes spell them, and the
// prefixes that it does not declare yet.
import { readable } from "./basics.js";

const OFFERED = 12;
const WORD = /(?:<[^\s<>"]*|[\w-]*:?[\w-]*)$/;
const NAMES = {
  "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf", "http://www.w3.org/2000/01/rdf-schema#": "rdfs", "http://www.w3.org/2001/XMLSchema#": "xsd",
  "http://www.w3.org/2002/07/owl#": "owl", "http://www.w3.org/2003/01/geo/wgs84_pos#": "geo", "http://purl.org/dc/terms/": "dcterms",
  "http://xmlns.com/foaf/0.1/": "foaf", "http://example.org/": "",
};
const seen = new Map();

// Count the predicates of triples in N-Triples.
export function noteTriples(lines) {
  for (const line of lines) {
    const predicate = line.split(" ", 2)[1];
    if (predicate?.startsWith("<")) seen.set(predicate.slice(1, -1), (seen.get(predicate.slice(1, -1)) ?? 0) + 1);
  }
}

// For the word that ends at ``caret``, what it may become: ``text`` replaces what stands from ``from`` on, and ``head`` goes
// before the whole query.  The most frequent predicates come first.
export function completions(text, caret) {
  const word = WORD.exec(text.slice(0, caret))[0];
  const from = caret - word.length;
  const declared = prefixes(text);
  const predicates = [...seen].sort((a, b) => b[1] - a[1]).map(([iri]) => ({ iri, spelling: spelled(iri, declared) }));
  const offers = predicates.filter(({ iri, spelling }) => matches(word, iri, spelling))
    .map(({ iri, spelling }) => ({ label: readable(`<${iri}>`), title: iri, from, text: `${spelling} `, head: "" }));
  return [...declarations(word, from, text, predicates, declared), ...offers].slice(0, OFFERED);
}

// The prefixes that are not declared: at ``PREFIX`` or in an empty query the declaration, at a name such as ``ex`` also that.
function declarations(word, from, text, predicates, declared) {
  const start = word.toLowerCase();
  const declaring = word ? "prefix".startsWith(start) : !text.trim();
  const iris = new Set(predicates.map(({ iri }) => namespace(iri)).filter((iri) => iri && ![...declared.values()].includes(iri)));
  return [...iris].map((iri) => ({ iri, name: `${prefixName(iri, declared)}:` }))
    .filter(({ name }) => declaring || (word && name.startsWith(start)))
    .slice(0, OFFERED / 2)
    .map(({ iri, name }) => ({ label: `PREFIX ${name}`, title: iri, from, text: declaring ? `PREFIX ${name} <${iri}>\n` : name, head: declaring ? "" : `PREFIX ${name} <${iri}>\n` }));
}

function matches(word, iri, spelling) {
  const start = word.toLowerCase();
  return spelling.toLowerCase().startsWith(start) || `<${iri}`.toLowerCase().startsWith(start) || readable(`<${iri}>`).toLowerCase().startsWith(start);
}

function prefixes(text) {
  return new Map([...text.matchAll(/PREFIX\s+([\w-]*:)\s*<([^>]*)>/gi)].map(([, prefix, iri]) => [prefix, iri]));
}

function spelled(iri, declared) {
  for (const [prefix, start] of declared) {
    if (iri.startsWith(start) && /^[\w-]+$/.test(iri.slice(start.length))) return prefix + iri.slice(start.length);
  }
  return `<${iri}>`;
}

const namespace = (iri) => /^(.*[/#])[\w-]+$/.exec(iri)?.[1];

// A short name for a namespace: the usual one, or the last word of its path, or of its host's name.
function prefixName(iri, declared) {
  const { hostname, pathname } = URL.canParse(iri) ? new URL(iri) : { hostname: "", pathname: iri };
  const words = pathname.match(/[A-Za-z]\w*/g) ?? hostname.split(".").slice(-2, -1);
  const name = NAMES[iri] ?? words.at(-1)?.toLowerCase() ?? "ns";
  return declared.has(`${name}:`) ? `${name}${declared.size}` : name;
}
