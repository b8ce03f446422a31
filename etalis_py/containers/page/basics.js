// What all parts of the page share: elements, numbers, terms, requests.  Everything shown is set as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const number = (value) => Number(value).toLocaleString("en");
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const clock = (text) => (text ? text.replace("T", " ").replace(/(\.\d{3})\d+/, "$1").replace(/Z$/, "") : "–");
export const rate = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));

export function bytes(value) {
  if (value < 1e6) return `${Math.round(value / 1e3)} kB`;
  return value < 1e9 ? `${Math.round(value / 1e6)} MB` : `${(value / 1e9).toFixed(1)} GB`;
}

export function lasting(seconds) {
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

// -- the server ------------------------------------------------------------------------------------------------------

function headers(more = {}) {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

export async function ask(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(options.headers) });
  if (response.ok) return response;
  let said = `${response.status} ${response.statusText}`;
  try {
    const problem = await response.json();
    said = `${problem.detail}\n${problem.hint}`;
  } catch {
    // no problem document: the status line has to do
  }
  throw new Error(said);
}

export const json = async (path, options) => (await ask(path, { ...options, headers: { Accept: "application/json", ...options?.headers } })).json();

// The members of a container after one of them, as they come, until close() is called.  An EventSource comes back by
// itself after an interruption, but cannot send a token.
export function follow(path, last, arrived) {
  if (!sessionStorage.getItem("token")) {
    const source = new EventSource(`${path}?after=${last}`);
    source.addEventListener("member", (event) => arrived(JSON.parse(event.data)));
    return source;
  }
  const stop = new AbortController();
  (async () => {
    for (let cursor = last; !stop.signal.aborted; await new Promise((wait) => setTimeout(wait, 1000))) {
      try {
        const response = await ask(`${path}?after=${cursor}`, { headers: { Accept: "text/event-stream" }, signal: stop.signal });
        for await (const { id, data } of events(response.body)) {
          cursor = id;
          arrived(JSON.parse(data));
        }
      } catch {
        // the connection ended: it is opened again after a second
      }
    }
  })();
  return { close: () => stop.abort() };
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
      if (fields.data) yield fields;
    }
  }
}

// -- terms -----------------------------------------------------------------------------------------------------------

// The path of the stream that is shown: addresses in it are written relative to it.
let here = "/";
export const standIn = (path) => { here = path; };

export function shorten(iri) {
  if (iri.startsWith(location.origin + here)) return `<${iri.slice(location.origin.length + here.length)}>`;
  const cut = Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/"), iri.lastIndexOf(":"));
  return cut >= 0 && cut < iri.length - 1 ? iri.slice(cut + 1) : iri;
}

// A term as in SPARQL's JSON results, or in N-Triples spelling, as a person reads it: 12, acme, 13:00:05.
export function readable(value) {
  if (value && typeof value === "object") {
    if (value.type === "uri") return shorten(value.value);
    return /[Tt]ime(Stamp)?$/.test(value.datatype ?? "") ? clock(value.value) : String(value.value ?? "");
  }
  const text = String(value ?? "");
  if (text.startsWith("<")) return shorten(text.slice(1, -1));
  if (text.startsWith('"')) return text.slice(1, text.lastIndexOf('"'));
  return text;
}

export function term(text) {
  if (text.startsWith("<")) return make("span", { class: "term iri", title: text.slice(1, -1) }, shorten(text.slice(1, -1)));
  if (text.startsWith('"')) {
    const lexical = text.slice(0, text.lastIndexOf('"') + 1);
    return make("span", { class: "term literal", title: text.slice(0, 2000) }, lexical.length > 300 ? `${lexical.slice(0, 300)}…` : lexical);
  }
  return make("span", { class: "term" }, text);
}

// Subject, predicate and object of a line of N-Triples.
export function terms(line) {
  const [subject, predicate] = line.split(" ", 2);
  return [subject, predicate, line.slice(subject.length + predicate.length + 2).replace(/ \.$/, "")];
}

export const linesOf = (item) => item.triples.trim().split("\n").filter(Boolean);

export function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// -- forms -----------------------------------------------------------------------------------------------------------

// What an action says, in the place with this id: its answer, or its error.
export async function tell(out, action) {
  const place = $(out);
  const write = (message, good) => { place.textContent = message; place.classList.toggle("good", good); };
  write("", false);
  try {
    write(await action(write) ?? "", true);
  } catch (error) {
    write(error.message, false);
  }
}

export function onSubmit(form, out, action) {
  $(form).addEventListener("submit", (event) => {
    event.preventDefault();
    tell(out, action);
  });
}

export const created = (response) => new URL(response.headers.get("Location")).pathname;
