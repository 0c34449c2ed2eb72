// Questions to the server: a flow line by line, a point, a whole page.

export class Refused extends Error {}
export class Lost extends Error {}

async function post(path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
    });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Lost();
  }
  if (answer.status === 422) throw new Refused((await answer.json()).error);
  if (!answer.ok) throw new Refused(`The server answered ${answer.status}.`);
  return answer;
}

async function next(reader) {
  try { return await reader.read(); } catch (error) { throw error.name === "AbortError" ? error : new Lost(); }
}

// Every message of a flow goes to `take`; ends when the flow does, throws Lost if it is cut off before.
export async function flow(tab, setting, take, signal) {
  const answer = await post("/flow", { tab, setting }, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", done = false;
  for (let part = await next(reader); !part.done; part = await next(reader)) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.kind === "failed") throw new Refused(message.error);
      done ||= message.kind === "done";
      take(message);
    }
  }
  if (!done && !signal.aborted) throw new Lost();
}

export const point = async (question) => read(await post("/point", question), "json");
export const whole = async (recorded) => read(await post("/export", { recorded }), "text");

async function read(answer, kind) {
  try { return await answer[kind](); } catch { throw new Lost(); }
}

export async function alive() {
  try { return (await fetch("/static/style.css", { cache: "no-store" })).ok; } catch { return false; }
}
