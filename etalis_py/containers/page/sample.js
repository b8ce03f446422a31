// The first screen of a server that holds nothing yet, and the sample that it offers: a made-up stream with a query on it.
import { $, ask, created, tell } from "./basics.js";
import { createStream } from "./streams.js";

const QUERY = `# A door opens, and within four minutes its room is warmer than 8 degrees.
SELECT ?room ?celsius
WHERE {
  { EVENT { ?room :door "open" } SEQ EVENT { ?room :celsius ?celsius } } WITHIN 4 min
  FILTER (?celsius > 8)
}
`;
const PERIOD = 40;
// Readings of each room, one for each period; a letter before one: the door opens (o) or closes (c) shortly before.
const ROOMS = {
  dairy: "4 4 5 o5 6 c6 5 4 4 4 5 4 4 4 4",
  fish: "2 3 2 2 o3 6 9 10 c7 5 3 2 2 3 2",
  fruit: "7 7 7 8 7 7 7 7 o7 8 9 c8 7 7 7",
};

// The sample as CSV, the last row of it now.
function sampleTable(now) {
  const rows = [];
  for (const [i, [room, text]] of Object.entries(ROOMS).entries()) {
    const readings = text.split(" ");
    for (const [j, reading] of readings.entries()) {
      const at = now - (readings.length - 1 - j) * PERIOD - 10 * i;
      const door = { o: "open", c: "closed" }[reading[0]];
      if (door) rows.push({ room, at: at - 5, door });
      rows.push({ room, at, celsius: door ? reading.slice(1) : reading });
    }
  }
  rows.sort((a, b) => a.at - b.at);
  return ["at,room,celsius,door", ...rows.map(({ at, room, celsius = "", door = "" }) => [at, room, celsius, door].join())].join("\n");
}

// Show the first screen at the root of a server that has neither programs nor graphs.
export function showWelcome(status, path) {
  $("welcome").hidden = path !== "/" || status.programs.length > 0 || status.containers.some((c) => c.members);
}

// ``show`` goes to a stream.
export function prepareSample(show) {
  $("sample").addEventListener("click", () => tell("sample-said", async () => {
    $("sample").disabled = true;
    try {
      const path = await createStream("/", "sample", "Doors and temperatures of three cold rooms");
      const rows = sampleTable(Math.floor(Date.now() / 1000));
      await ask(`${path}?time=at&subject=room`, { method: "POST", headers: { "Content-Type": "text/csv" }, body: rows });
      const headers = { "Content-Type": "application/sparql-query", Slug: "warm-after-door" };
      const program = created(await ask(`${path}?from=oldest`, { method: "POST", headers, body: QUERY }));
      await show(path, `#${encodeURIComponent(program)}`);
    } finally {
      $("sample").disabled = false;
    }
  }));
}
