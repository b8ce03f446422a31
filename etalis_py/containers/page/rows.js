// Rows of CSV or JSON: which columns have their time and their subject, the graph of the first one, and posting them all.
import { $, ask, counted, make, onSubmit } from "./basics.js";

const CSV = "text/csv", JSON_TYPE = "application/json", LINES = "application/x-ndjson";
const TOGETHER = 500;
const GUESSES = { "table-subject": /^(id|name|symbol|sensor|device|user|card|room|company)$/i, "table-time": /^(time|date|timestamp|ts|at)$/i };
const NONE = { "table-subject": [["", "as guessed"], ["_:row", "a new one for each row"]], "table-time": [["", "as guessed, or the time of arrival"]] };

// The media type of a text, its header if it has one, and its records as they are written.
function recordsOf(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) return { type: JSON_TYPE, header: "", records: [trimmed] };
  if (trimmed.startsWith("{")) {
    const lines = trimmed.split("\n").filter((line) => line.trim());
    return lines.every(isJson) ? { type: LINES, header: "", records: lines } : { type: JSON_TYPE, header: "", records: [trimmed] };
  }
  const [header, ...records] = csvRecords(trimmed);
  return { type: CSV, header: `${header}\n`, records };
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// The lines of CSV, where one that ends inside of quotes goes on with the next.
function csvRecords(text) {
  const records = [];
  let open = false;
  for (const line of text.split(/\r?\n/)) {
    if (open) records[records.length - 1] += `\n${line}`;
    else records.push(line);
    if ((line.split('"').length - 1) % 2) open = !open;
  }
  return records.filter((line) => line.trim());
}

function columnsOf({ type, header, records }) {
  if (type === CSV) return header.trim().split(/[,;\t|]/).map((name) => name.trim().replace(/^"|"$/g, ""));
  const [first] = [JSON.parse(records[0])].flat();
  return Object.keys(first ?? {});
}

// ``path``: the chosen container; ``mapped`` tells whether it has a mapping, which then says all about the columns.
export function prepareRows(path, mapped) {
  const chosen = () => {
    if (mapped()) return {};
    const time = $("table-time").value, subject = $("table-subject").value || (time ? "" : "_:row");
    return Object.fromEntries(Object.entries({ time, subject }).filter(([, value]) => value));
  };
  const post = (address, body, type, more = {}) =>
    ask(`${address}?${new URLSearchParams({ ...more, ...chosen() })}`, { method: "POST", headers: { "Content-Type": type }, body });
  let asked = 0;
  const preview = async (choose) => {
    const turn = ++asked;
    $("table-said").textContent = $("table-preview").textContent = "";
    if (!$("table").value.trim()) return;
    try {
      const rows = recordsOf($("table").value);
      if (choose) offer(columnsOf(rows));
      const answer = await post("/-/rows", rows.header + rows.records.slice(0, 20).join("\n"), rows.type, { stream: path() });
      const text = (await answer.text()).replace(/^@(base|prefix) .*\n/gm, "");
      if (turn === asked) $("table-preview").textContent = text;
    } catch (error) {
      if (turn === asked) $("table-said").textContent = error.message;
    }
  };
  $("table").addEventListener("input", () => preview(true));
  for (const id of Object.keys(NONE)) $(id).addEventListener("input", () => preview(false));
  $("table-file").addEventListener("change", async () => {
    $("table").value = await $("table-file").files[0].text();
    preview(true);
  });
  onSubmit("table-form", "table-said", async (write) => {
    const { type, header, records } = recordsOf($("table").value);
    let posted = 0;
    const warnings = new Set();
    for (let at = 0; at < records.length; at += TOGETHER) {
      const answer = await post(path(), header + records.slice(at, at + TOGETHER).join("\n"), type);
      const { graphs, warnings: told = [] } = await answer.json();
      posted += graphs;
      told.forEach((text) => warnings.add(text));
      write(`Posted ${counted(posted, "row")} …`, true);
    }
    return [`Posted ${counted(posted, "row")}`, ...warnings].join("\n");
  });
}

// The columns to choose from; names that say what they are, are chosen.
function offer(names) {
  for (const [id, none] of Object.entries(NONE)) {
    $(id).replaceChildren(...none.map(([value, text]) => make("option", { value }, text)), ...names.map((name) => make("option", { value: name }, name)));
    $(id).value = names.find((name) => GUESSES[id].test(name)) ?? "";
  }
}
