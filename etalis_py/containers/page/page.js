// The page of a server of stream containers: it asks /-/status once a second, follows the chosen container by
// server-sent events, and asks its programs for new matches.
import { $, ask, clock, follow, counted, linesOf, make, number, rate } from "./basics.js";
import { drawLine } from "./charts.js";
import { noteTriples } from "./completion.js";
import { showEvents } from "./events.js";
import { prepareForms } from "./forms.js";
import { goTo, leave, redraw, showOverview, showPrograms } from "./programs.js";
import { prepareSample, showWelcome } from "./sample.js";
import { lasts, showWindows, TIME } from "./streams.js";

const SHOWN = 50;
const VIEWS = ["overview", "matches", "events", "query"];
const state = { path: null, source: null, items: [], fresh: new Set(), paused: false, dirty: false, order: TIME, mapped: false };

async function refresh() {
  try {
    const status = await (await ask("/-/status")).json();
    $("state").classList.remove("bad");
    const total = status.containers.reduce((sum, c) => sum + c.rate, 0);
    const out = status.programs.reduce((sum, p) => sum + p.rateOut, 0);
    const running = status.programs.filter((p) => p.state === "running").length;
    const stopped = status.programs.filter((p) => p.state === "stopped").length;
    $("state").textContent = [
      counted(status.containers.length + status.more, "container"), `${counted(running, "program")} running`, stopped ? `${stopped} stopped` : "",
      `${rate(total)} graphs/s in`, `${rate(out)} matches/s out`, status.writable ? "" : "writing needs a token",
    ].filter(Boolean).join(" · ");
    showWelcome(status, state.path);
    showOverview(status);
    showContainers(status);
    await showContainer(status);
  } catch (error) {
    $("state").classList.add("bad");
    $("state").textContent = `The server does not answer: ${error.message}`;
  }
  setTimeout(refresh, document.hidden ? 5000 : 1000);
}

// -- containers ------------------------------------------------------------------------------------------------------

function showContainers(status) {
  const list = $("containers");
  const known = new Map([...list.querySelectorAll("a")].map((a) => [a.dataset.path, a]));
  const rows = status.containers.map((c) => {
    const link = known.get(c.path) ?? make("a", { href: c.path, "data-path": c.path },
      make("span", { class: "path" }, c.path), make("small", { class: "rate" }), make("small", { class: "members" }));
    link.querySelector(".rate").textContent = c.rate ? `${rate(c.rate)}/s` : "";
    link.querySelector(".members").textContent = `${counted(c.members, "graph")}${c.windows.length ? `, ${counted(c.windows.length, "window")}` : ""}`;
    if (c.path === state.path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    return make("li", {}, link);
  });
  const focused = document.activeElement?.closest?.("#containers a")?.dataset.path;
  list.replaceChildren(...rows);
  if (focused) list.querySelector(`a[data-path="${CSS.escape(focused)}"]`)?.focus();
  $("more").hidden = !status.more;
  $("more").textContent = `and ${number(status.more)} more, not shown`;
}

function fact(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value));
}

async function showContainer(status) {
  const c = status.containers.find((one) => one.path === state.path);
  if (!c) {
    $("title").textContent = "This container is not (or no longer) there.";
    return;
  }
  state.order = c.order;
  state.mapped = c.mapped;
  $("table-columns").hidden = c.mapped;
  $("title").textContent = c.title || (c.stream ? "A stream container" : "A container");
  $("facts").replaceChildren(
    fact("graphs", number(c.members)), fact("triples", number(c.triples)), fact("graphs per second", rate(c.rate)),
    fact("oldest", clock(c.oldest)), fact("newest", clock(c.newest)),
    fact("kept", [c.retainFor && lasts(c.retainFor), c.retainCount && `${number(c.retainCount)} graphs`].filter(Boolean).join(", ") || "for ever"));
  drawLine($("rate"), c.history, 300, 48);
  $("rate-text").textContent = `graphs per second, the last two minutes; the highest is ${Math.max(0, ...c.history)}`;
  $("stream-delete").hidden = c.path === "/";
  showWindows(c);
  const programs = status.programs.filter((p) => p.input === c.path);
  const counts = { matches: programs.reduce((sum, p) => sum + p.matches, 0), events: c.members, query: programs.length };
  for (const [view, count] of Object.entries(counts)) $(`count-${view}`).textContent = count ? number(count) : "";
  await showPrograms(programs);
  if (state.dirty) showGraphs();
}

// -- graphs ----------------------------------------------------------------------------------------------------------

function showGraphs() {
  state.dirty = false;
  showEvents(state.items, state.fresh, state.order);
  state.fresh.clear();
}

function arrived(item) {
  state.items.unshift(item);
  state.items.length = Math.min(state.items.length, SHOWN);
  state.fresh.add(item.id);
  noteTriples(linesOf(item).slice(0, 50));
  if (!state.dirty) {
    state.dirty = true;
    setTimeout(() => { if (!state.paused && state.dirty) showGraphs(); }, 200);
  }
}

async function choose(path) {
  state.source?.close();
  Object.assign(state, { path, items: [] });
  state.fresh.clear();
  leave(path);
  document.title = `${path} – streams`;
  $("name").textContent = path;
  for (const id of ["events-said", "stream-delete-said", "windows-said", "window-said", "stream-said"]) $(id).textContent = "";
  let last = 0;
  try {
    const text = await (await ask(`${path}?newest=${SHOWN}`, { headers: { Accept: "application/x-ndjson" } })).text();
    if (state.path !== path) return;
    for (const line of text.split("\n").filter(Boolean)) {
      const item = JSON.parse(line);
      last = item.id;
      state.items.unshift(item);
      noteTriples(linesOf(item).slice(0, 50));
    }
  } catch (error) {
    $("events-said").textContent = error.message;
    return;
  }
  showGraphs();
  state.source = follow(path, last, arrived);
}

// -- ways around -----------------------------------------------------------------------------------------------------

$("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  $("pause").setAttribute("aria-pressed", state.paused);
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  if (!state.paused) showGraphs();
});

// The view that the address asks for: by its name, or the matches where it names a program or a match.
function viewOf(hash) {
  const name = hash.slice(1);
  return VIEWS.includes(name) ? name : name.startsWith("%2F") ? "matches" : "overview";
}

function showView() {
  const view = viewOf(location.hash);
  for (const link of document.querySelectorAll("#views a")) {
    $(`view-${link.dataset.view}`).hidden = link.dataset.view !== view;
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  redraw();
}

// Go to a container, to a program on it (then its matches are shown), or to a view (``#events``).
function show(path, hash = "") {
  const moved = path !== state.path;
  history.pushState(null, "", path + hash);
  showView();
  goTo(location.hash);
  return moved ? choose(path) : Promise.resolve();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#containers a, #overview-table a, #views a, a[href='#query']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const { pathname, hash } = new URL(link.href);
  const fromList = link.closest("#containers");
  show(pathname, fromList && viewOf(location.hash) !== "overview" ? `#${viewOf(location.hash)}` : hash).then(() => fromList && $("main").focus());
});

// The skip link would put its target where the address names the view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});

addEventListener("popstate", () => {
  if (location.pathname !== state.path) choose(location.pathname);
  showView();
  goTo(location.hash);
});
addEventListener("resize", redraw);

// A page that only waits in the browser's history keeps no place among the push readers.
addEventListener("pagehide", () => state.source?.close());
addEventListener("pageshow", (event) => { if (event.persisted) choose(location.pathname); });

prepareForms({ path: () => state.path, order: () => state.order, mapped: () => state.mapped, show });
prepareSample(show);
$("token-form").addEventListener("submit", () => choose(location.pathname)); // it may read more than before
showView();
goTo(location.hash);
choose(location.pathname).then(refresh);
