// Forms: the editor of queries, a graph, the token; and those of other modules.
import { $, ask, created, make, onSubmit } from "./basics.js";
import { completions } from "./completion.js";
import { prepareRows } from "./rows.js";
import { prepareStreams } from "./streams.js";
import { KEYWORDS } from "./words.js";

const QUERY = { "Content-Type": "application/sparql-query" };
const WORDS = new RegExp(String.raw`(#[^\n]*)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(<[^\s<>"]*>|[\w-]*:[\w-]+)|([?$]\w+)|\b(${KEYWORDS.join("|")})\b`, "gi");
const EXAMPLE = "SELECT ?room ?celsius\nWHERE {\n  EVENT { ?room :celsius ?celsius }\n  FILTER (?celsius > 8)\n}";
const KINDS = ["comment", "literal", "iri", "variable", "keyword"];
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
  const area = make("textarea", { rows: Math.min(16, Math.max(7, text.split("\n").length + 1)), spellcheck: "false", required: "", autocapitalize: "off", wrap: "off", placeholder: EXAMPLE, "aria-label": "Query", id });
  const copy = make("pre", { class: "copy", "aria-hidden": "true" });
  const chips = make("div", { class: "chips", role: "group", "aria-label": "Completions" });
  const answer = make("pre", { class: "problem check-answer", role: "status", id: id ? `${id}-said` : null });
  const paint = () => copy.replaceChildren(...highlight(area.value));
  const write = (message, good = false) => {
    answer.textContent = message;
    answer.classList.toggle("good", good);
  };
  area.value = text;
  area.addEventListener("scroll", () => { copy.scrollTop = area.scrollTop; copy.scrollLeft = area.scrollLeft; });
  const offer = () => chips.replaceChildren(...completions(area.value, area.selectionStart).map(({ label, title, ...change }) =>
    make("button", { class: "chip", type: "button", title, onclick: () => complete(change) }, label)));
  const complete = ({ from, text: completed, head }) => {
    area.setRangeText(completed, from, area.selectionStart, "end");
    area.setRangeText(head, 0, 0, "preserve");
    area.focus();
    paint();
    offer();
  };
  for (const moved of ["focus", "click", "keyup"]) area.addEventListener(moved, offer);
  area.addEventListener("input", () => { paint(); offer(); });
  const check = async () => {
    write("");
    try {
      const path = `/-/check?stream=${encodeURIComponent(stream())}`;
      const { warnings } = await (await ask(path, { method: "POST", headers: QUERY, body: area.value })).json();
      write(warnings.length ? warnings.join("\n\n") : "No errors, no warnings.", !warnings.length);
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

// -- other forms -----------------------------------------------------------------------------------------------------


// ``path``, ``order`` and ``mapped`` tell the chosen stream, the relation that gives its times, and whether it has a mapping;
// ``show`` goes to another one.
export function prepareForms({ path, order, mapped, show }) {
  const name = make("input", { id: "query-name", autocomplete: "off", placeholder: "given by the server when empty" });
  const oldest = make("input", { id: "query-oldest", type: "checkbox", checked: "" });
  $("run").append(queryEditor({
    id: "query", stream: path, action: "Run",
    more: [make("label", { for: "query-name" }, "Name"), name, make("label", { class: "check" }, oldest, " Begin with the oldest graph that is stored")],
    submit: async (text) => {
      const slug = name.value.trim() ? { Slug: encodeURIComponent(name.value.trim()) } : {};
      const program = created(await ask(`${path()}?from=${oldest.checked ? "oldest" : "now"}`, { method: "POST", headers: { ...QUERY, ...slug }, body: text }));
      return `Running as ${program}: its matches are in the view Matches`;
    },
  }));
  onSubmit("post-form", "post-said", async () =>
    `Created ${created(await ask(path(), { method: "POST", headers: { "Content-Type": "text/turtle" }, body: $("graph").value }))}`);
  prepareStreams(path, order, show);
  prepareRows(path, mapped);
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", $("token").value);
    $("access").open = false;
  });
}
