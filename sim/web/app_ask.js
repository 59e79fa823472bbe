// SPDX-License-Identifier: Apache-2.0
// Asks the server: questions, their parts, and searches as a stream of events.

const root = "/api/v1/";

function tab() {
  let id = sessionStorage.getItem("orrery-client");
  if (!id) {
    id = crypto.randomUUID();
    sessionStorage.setItem("orrery-client", id);
  }
  return id;
}

// What the server says is wrong: `error` has the members of error.schema.json.
export class Refused extends Error {
  constructor(error, status = 0) {
    super(error.found ?? error.kind);
    this.error = error;
    this.status = status;
  }
}

const silent = { kind: "machine_failed", file: null, path: null, expected: null, nearest: null,
  found: "the server does not answer; is `orrery web` still running?" };

async function sent(path, options) {
  let response;
  try {
    response = await fetch(root + path, options);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused(silent);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new Refused(body?.error ?? { ...silent, found: `status ${response.status}` }, response.status);
}

export async function get(path) {
  return (await sent(path, {})).json();
}

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// A search that was left a moment ago may still be ending on the server, which then answers 429.
async function post(path, body, signal, accept) {
  const headers = { "Content-Type": "application/json", "Orrery-Client": tab() };
  if (accept) headers.Accept = accept;
  for (let tries = 0; ; ++tries) {
    try {
      return await sent(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    } catch (problem) {
      if (problem.status !== 429 || tries === 20) throw problem;
      await wait(100);
      signal?.throwIfAborted();
    }
  }
}

const asked = (command, parts) => (parts.length ? `${command}?parts=${parts.join(",")}` : command);

// {answer, charts, report, ...} with parts; the answer alone without.
export async function ask(command, question, parts = [], signal) {
  return (await post(asked(command, parts), question, signal)).json();
}

// The bytes of the answer as `orrery ... --json` prints them.
export async function bytes(command, question) {
  return (await post(command, question)).text();
}

export function stop() {
  return post("stop", {});
}

// One block of an event stream as {event, data}.
function eventOf(block) {
  const event = { event: "message", data: "" };
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = line.match(/^(event|data): ?(.*)$/s) ?? [];
    if (field === "event") event.event = value;
    if (field === "data") event.data += (event.data ? "\n" : "") + value;
  }
  return event;
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop();
    for (const block of blocks) yield eventOf(block);
  }
}

// Searches; `onprogress({share, count})` meanwhile. Aborting the signal ends the search on the server too.
export async function search(command, question, parts, signal, onprogress) {
  const response = await post(asked(command, parts), question, signal, "text/event-stream");
  for await (const { event, data } of eventsOf(response)) {
    if (event === "progress") onprogress(JSON.parse(data));
    else if (event === "answer") return JSON.parse(data);
    else if (event === "error") throw new Refused(JSON.parse(data).error);
  }
  throw new Refused({ ...silent, found: "the search ended without an answer" });
}
