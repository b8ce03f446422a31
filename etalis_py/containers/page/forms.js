// Forms: the editor of queries, a new stream, a graph, a table through a mapping, the token.
import { $, ask, make, readable } from "./basics.js";

const QUERY = { "Content-Type": "application/sparql-query" };
const WORDS = /(#[^\n]*)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(<[^\s<>"]*>|\b[\w-]*:[\w-]+)|([?$]\w+)|\b(SELECT|CONSTRUCT|ASK|WHERE|FILTER|BIND|AS|PREFIX|BASE|SEQ|NOT|NEXT|REPEAT|WITHIN|EQUALS|OPTIONAL|OPTIONALSEQ|EQUALSOPTIONAL|UNION|MINUS|EXISTS|GROUP|BY|HAVING|ORDER|LIMIT|DISTINCT|FROM|STREAM|WINDOW|ON|REGISTER|OVER|DURING|MEETS|OVERLAPS|STARTS|FINISHES|PAR|TO|OR|MORE|LONGEST|USING|POLICY|RANGE|SLIDE|STEP|COUNT|AVG|SUM|MIN|MAX|PREVIOUS|FIRST|LAST)\b/gi;
const KINDS = ["comment", "literal", "iri", "variable", "keyword"];
const seen = new Map();

// Predicates of the graphs that are shown, for completion.
export function noteTriples(lines) {
  for (const line of lines) {
    const predicate = line.split(" ", 2)[1];
    if (predicate?.startsWith("<")) seen.set(predicate, (seen.get(predicate) ?? 0) + 1);
  }
}

// -- the editor ------------------------------------------------------------------------------------------------------

function highlight(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(WORDS)) {
    parts.push(text.slice(from, match.index), make("span", { class: KINDS[match.slice(1).findIndex((group) => group !== undefined)] }, match[0]));
    from = match.index + match[0].length;
  }
  parts.push(`${text.slice(from)}\n`);
  return parts;
}

// A text area over a coloured copy of its text; below it what the compiler says, in the same font, so that its caret fits.
export function queryEditor({ text = "", id, stream, action, hint, more = [], submit }) {
  const area = make("textarea", { rows: Math.min(16, Math.max(7, text.split("\n").length + 1)), spellcheck: "false", required: "", autocapitalize: "off", wrap: "off", "aria-label": "Query", id });
  const copy = make("pre", { class: "copy", "aria-hidden": "true" });
  const chips = make("div", { class: "chips" });
  const answer = make("pre", { class: "problem check-answer", role: "status", id: id ? `${id}-said` : null });
  const paint = () => copy.replaceChildren(...highlight(area.value));
  const write = (message, good = false) => {
    answer.textContent = message;
    answer.classList.toggle("good", good);
  };
  area.value = text;
  area.addEventListener("scroll", () => { copy.scrollTop = area.scrollTop; copy.scrollLeft = area.scrollLeft; });
  const offer = () => chips.replaceChildren(...[...seen].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([predicate]) =>
      make("button", { class: "chip", type: "button", title: predicate, onclick: () => insert(area, spelled(predicate, area.value), paint) }, readable(predicate))));
  area.addEventListener("focus", offer);
  area.addEventListener("input", () => { paint(); offer(); });
  const check = async () => {
    write("");
    try {
      const path = `/-/check?stream=${encodeURIComponent(stream())}`;
      const { warnings } = await (await ask(path, { method: "POST", headers: QUERY, body: area.value })).json();
      write(warnings.length ? warnings.join("\n\n") : "No fault and no doubt.", !warnings.length);
    } catch (error) {
      write(error.message);
    }
  };
  const form = make("form", { id: id ? `${id}-form` : null },
    make("div", { class: "editor" }, copy, area), chips, ...more,
    make("div", { class: "buttons" }, make("button", { type: "submit" }, action), make("button", { class: "plain", type: "button", onclick: check }, "Check")),
    hint ? make("p", { class: "hint" }, hint) : null, answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    write("");
    try {
      write(await submit(area.value), true);
    } catch (error) {
      write(error.message);
    }
  });
  paint();
  return form;
}

// A predicate as the query's own prefixes spell it.
function spelled(predicate, text) {
  const iri = predicate.slice(1, -1);
  for (const [, prefix, start] of text.matchAll(/PREFIX\s+([\w-]*:)\s*<([^>]*)>/gi)) {
    if (iri.startsWith(start) && /^[\w-]+$/.test(iri.slice(start.length))) return prefix + iri.slice(start.length);
  }
  return predicate;
}

function insert(area, text, done) {
  area.setRangeText(` ${text} `, area.selectionStart, area.selectionEnd, "end");
  area.focus();
  done();
}

// -- other forms -----------------------------------------------------------------------------------------------------

function onSubmit(form, out, action) {
  $(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    const place = $(out);
    const write = (message, good) => { place.textContent = message; place.classList.toggle("good", good); };
    write("", false);
    try {
      write(await action(write), true);
    } catch (error) {
      write(error.message, false);
    }
  });
}

const created = (response) => new URL(response.headers.get("Location")).pathname;

// ``path`` and ``order`` tell the chosen stream and the relation that gives its times.
export function prepareForms(path, order) {
  const name = make("input", { id: "query-name", autocomplete: "off", placeholder: "given by the server when empty" });
  const oldest = make("input", { id: "query-oldest", type: "checkbox", checked: "" });
  $("run").append(queryEditor({
    id: "query", stream: path, action: "Run",
    more: [make("label", { for: "query-name" }, "Name"), name, make("label", { class: "check" }, oldest, " Begin with the oldest graph that is stored")],
    submit: async (text) => {
      const slug = name.value.trim() ? { Slug: encodeURIComponent(name.value.trim()) } : {};
      return `Running as ${created(await ask(`${path()}?from=${oldest.checked ? "oldest" : "now"}`, { method: "POST", headers: { ...QUERY, ...slug }, body: text }))}`;
    },
  }));
  onSubmit("post-form", "post-said", async () =>
    `Created ${created(await ask(path(), { method: "POST", headers: { "Content-Type": "text/turtle" }, body: $("graph").value }))}`);
  onSubmit("stream-form", "stream-said", async () => {
    const { value } = $("stream-window");
    const window = value ? `; ldpsc:window <#window> . <#window> ldp:hasMemberRelation ldp:member ; ldp:membershipResource <#window> ;
      ldpsc:contentTimestampRelation prov:generatedAtTime ; ldpsc:logical ${JSON.stringify(value)}^^<http://www.w3.org/2001/XMLSchema#duration>` : "";
    const body = `@prefix ldp: <http://www.w3.org/ns/ldp#> . @prefix ldpsc: <https://solid.ti.rw.fau.de/public/ns/stream-containers#> . @prefix prov: <http://www.w3.org/ns/prov#> .
      <> a ldpsc:StreamContainer ; <http://purl.org/dc/terms/title> ${JSON.stringify($("stream-title").value || $("stream-name").value)} ${window} .`;
    return `Created ${created(await ask(path(), { method: "POST", headers: { "Content-Type": "text/turtle", Slug: encodeURIComponent($("stream-name").value) }, body }))}`;
  });
  prepareTable(path, order);
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", $("token").value);
    $("access").open = false;
  });
}

// -- a table through a mapping ---------------------------------------------------------------------------------------

// Rows of CSV (with a header), of a JSON array, or of JSON lines; values keep their JSON type.
export function tableRows(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) return JSON.parse(trimmed);
  if (trimmed.startsWith("{")) return trimmed.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  const [heads, ...lines] = csv(trimmed);
  return lines.map((line) => Object.fromEntries(heads.map((name, i) => [name.trim(), line[i] ?? ""])));
}

function csv(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1).push(quoted !== undefined ? quoted.replaceAll('""', '"') : plain);
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows;
}

const NUMBER = /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/;

function literal(value) {
  if (typeof value === "number" || typeof value === "boolean" || (typeof value === "string" && NUMBER.test(value))) return String(value);
  return JSON.stringify(String(value)).replace(/\\u(?![0-9a-f]{4})/g, "\\\\u");
}

// The graph of a row: each column a predicate of the subject; the time column is the time of the graph.
export function rowGraph(row, { subject, time, base, order }) {
  const name = (text) => `<${base}${encodeURIComponent(text)}>`;
  const about = subject ? name(row[subject]) : "<#row>";
  const pairs = Object.entries(row).filter(([column, value]) => column !== subject && column !== time && value !== "" && value !== null)
    .map(([column, value]) => `${name(column)} ${literal(value)}`);
  const stamp = time ? `<> <${order}> "${instant(row[time])}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n` : "";
  return `${stamp}${about} ${pairs.join(" ;\n  ")} .`;
}

function instant(value) {
  const date = NUMBER.test(value) ? new Date(Number(value) * 1000) : new Date(/[zZ]|[+-]\d\d:?\d\d$/.test(value) ? value : `${value}Z`);
  if (Number.isNaN(date.getTime())) throw new Error(`"${value}" is no time; choose another column, or none for the time of arrival`);
  return date.toISOString();
}

function prepareTable(path, order) {
  const options = () => ({ subject: $("table-subject").value, time: $("table-time").value, base: $("table-base").value, order: order() });
  const preview = (rows) => { $("table-preview").textContent = rows.length ? rowGraph(rows[0], options()) : ""; };
  const look = (choose) => {
    const place = $("table-said");
    place.textContent = "";
    try {
      const rows = tableRows($("table").value);
      if (choose) {
        const names = Object.keys(rows[0] ?? {});
        for (const [id, none, guess] of [["table-subject", "a new one for each row", /^(id|name|symbol|sensor|device|user)$/i], ["table-time", "the time of arrival", /^(time|date|timestamp|ts|at)$/i]]) {
          $(id).replaceChildren(make("option", { value: "" }, none), ...names.map((name) => make("option", {}, name)));
          $(id).value = names.find((name) => guess.test(name)) ?? "";
        }
      }
      preview(rows);
    } catch (error) {
      $("table-preview").textContent = "";
      if ($("table").value.trim()) place.textContent = error.message;
    }
  };
  $("table").addEventListener("input", () => look(true));
  for (const id of ["table-subject", "table-time", "table-base"]) $(id).addEventListener("input", () => look(false));
  $("table-file").addEventListener("change", async () => {
    $("table").value = await $("table-file").files[0].text();
    look(true);
  });
  onSubmit("table-form", "table-said", async (write) => {
    const rows = tableRows($("table").value);
    for (const [i, row] of rows.entries()) {
      await ask(path(), { method: "POST", headers: { "Content-Type": "text/turtle" }, body: rowGraph(row, options()) });
      if (i % 20 === 19) write(`Posted ${i + 1} of ${rows.length} …`, true);
    }
    return `Posted ${rows.length} rows`;
  });
}
