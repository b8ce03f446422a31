// The questions why and why not: the dialog that explains a match, and the form that asks for a missing one.
import { $, clock, json, make, term } from "./basics.js";
import { describe, linkTo } from "./matches.js";

// Follow the link of a match within the page.
export function explainOnClick(event, p, m) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  explain(p, m);
}

const isTriple = (value) => Array.isArray(value) && value.length === 3 && value.every((one) => typeof one === "string" && /^[<_"]/.test(one));

// An explanation: each rule with what it was applied to, down to the events.
function steps(node) {
  const times = node.start === undefined ? "" : node.start === node.end ? clock(node.start) : `${clock(node.start)} to ${clock(node.end)}`;
  return make("div", { class: "step" },
    make("span", { class: node.triple ? "kind" : "rule" }, node.rule), " ", node.triple ? tree(node.triple) : "",
    times ? make("span", { class: "hint" }, ` ${times}`) : "",
    node.because?.length ? make("ul", {}, ...node.because.map((one) => make("li", {}, steps(one)))) : null);
}

const isStep = (value) => typeof value?.rule === "string" && Object.keys(value).every((key) => ["rule", "triple", "start", "end", "stream", "because"].includes(key));

function tree(value) {
  if (isStep(value)) return steps(value);
  if (isTriple(value)) return make("span", {}, ...value.flatMap((one) => [term(one), " "]));
  if (Array.isArray(value)) return make("ol", {}, ...value.map((one) => make("li", {}, tree(one))));
  if (value !== null && typeof value === "object") return make("dl", {}, ...Object.entries(value).flatMap(([name, one]) => [make("dt", {}, name), make("dd", {}, tree(one))]));
  if (typeof value === "string" && value.includes("\n")) return make("pre", {}, value);
  return String(value);
}

export async function explain(p, { match, from, to }) {
  const body = $("why-body");
  $("why-title").textContent = `Why ${describe(match, p.query)}`;
  history.replaceState(null, "", linkTo(p, match.id));
  body.replaceChildren("…");
  $("why").showModal();
  try {
    const answer = await json(`${p.program}?match=${encodeURIComponent(match.id)}`);
    const link = location.href;
    body.replaceChildren(
      make("p", { class: "hint" }, from ? `${clock(from)} to ${clock(to)}` : "outside of time"), tree(answer.why),
      make("p", {}, make("a", { href: link }, "Link to this match")));
  } catch (error) {
    body.replaceChildren(make("p", { class: "problem" }, error.message));
  }
}

// Why a match did not come: a condition on the variables of the query, and when it should have ended.
async function whyNot(event, p) {
  event.preventDefault();
  const form = event.target, answer = form.querySelector(".why-not-answer");
  const asked = new URLSearchParams({ where: form.elements.where.value, at: form.elements.at.value });
  answer.replaceChildren("…");
  try {
    const { whyNot: { text } } = await json(`${p.program}?${asked}`);
    answer.replaceChildren(make("pre", { tabindex: "0" }, text));
  } catch (error) {
    answer.replaceChildren(make("p", { class: "problem", role: "alert" }, error.message));
  }
}

export function whyNotForm(known) {
  const name = known.p.name;
  return make("details", { class: "why-not" }, make("summary", {}, "Why not?"),
    make("form", { onsubmit: (event) => whyNot(event, known.p) },
      make("div", { class: "fields" },
        make("div", {}, make("label", { for: `where-${name}` }, "The match that was expected, as ?c = :acme"), make("input", { id: `where-${name}`, name: "where", autocomplete: "off" })),
        make("div", {}, make("label", { for: `at-${name}` }, "Its end, or two times as T1/T2"), make("input", { id: `at-${name}`, name: "at", autocomplete: "off" }))),
      make("div", { class: "buttons" }, make("button", { type: "submit" }, "Why not?")),
      make("div", { class: "why-not-answer", "aria-live": "polite" })));
}

$("why").addEventListener("close", () => history.replaceState(null, "", `${location.pathname}#matches`));
