// The page: settings go out, a recording comes in, one time moves all views.

import { fromLog, readColours } from "explorer/canvas.js";
import { Controls, fromAddress, toAddress } from "explorer/controls.js";
import { Curve } from "explorer/curve.js";
import { MOST, Matrix } from "explorer/matrix.js";
import { Player } from "explorer/player.js";
import { Pointed } from "explorer/point.js";
import { Recording } from "explorer/recording.js";
import { page, picture } from "explorer/saving.js";
import { Show } from "explorer/show.js";
import { Sphere } from "explorer/sphere.js";
import { Lost, Refused, alive, flow, whole } from "explorer/stream.js";
import { Timeline } from "explorer/timeline.js";
import { verdict } from "explorer/verdict.js";
import { write } from "explorer/words.js";

const SHOW_AFTER = 1200, BETWEEN_FLOWS = 300; // milliseconds: when a flow that has not ended is shown as it comes; between flows
const TURNED = 8; // frames after which neurons have turned enough to be worth a look
const about = JSON.parse(document.querySelector("#about").textContent), $ = (name) => document.querySelector(name);
const tab = `tab-${[...crypto.getRandomValues(new Uint8Array(12))].map((one) => one.toString(16).padStart(2, "0")).join("")}`;
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
const state = { current: null, incoming: null, axes: [0, 1, 2], dirty: true, before: 0 };

// What a browser remembers, if it may.
function remembered(name, text) {
  try { return text === undefined ? localStorage.getItem(name) : localStorage.setItem(name, text); } catch { return null; }
}

if (remembered("theme")) document.documentElement.dataset.theme = remembered("theme");
readColours();

const redraw = () => { state.dirty = true; };
const player = new Player(redraw);
const sphere = new Sphere($("#sphere canvas"), redraw), matrix = new Matrix($("#matrix canvas")), curve = new Curve($("#curve canvas"));
const timeline = new Timeline($("#timeline canvas"), (share) => player.seek(share));
const pointed = new Pointed(tab, !about.recorded, reducedMotion, { changed: redraw, trouble, gone });
const show = new Show();
const controls = new Controls(about, slide, choose);

// A slider moves: at once, then at most every BETWEEN_FLOWS milliseconds, so that a flow gets somewhere while it is dragged.
function slide(setting) {
  state.asked = setting;
  if (state.pause) return;
  const go = () => {
    state.pause = null;
    if (!state.asked) return;
    begin(state.asked, null, false);
    state.asked = null;
    state.pause = setTimeout(go, BETWEEN_FLOWS);
  };
  go();
}

function choose(preset) {
  state.asked = null;
  if (preset) begin(preset.setting, preset, true);
  else begin("saved_run", null, true);
}

// Start a flow. `play` shows it from its first frame; otherwise the neurons go over to its end once it is there.
async function begin(setting, preset, play) {
  clearTimeout(state.wait);
  state.abort?.abort();
  const half = state.incoming;
  if (!play && half && half !== state.current && half.frames.length > TURNED) take(half, false);
  const recording = Object.assign(new Recording(), { setting, preset }), abort = new AbortController();
  Object.assign(state, { incoming: recording, abort });
  if (setting !== "saved_run") controls.show(setting, preset?.id);
  toAddress(setting, about.presets[0].setting, preset?.id);
  Object.assign(document.body.dataset, { state: "running", frames: 0, ended: false });
  trouble("");
  if (!play) state.wait = setTimeout(() => recording.frames.length && take(recording, false), SHOW_AFTER);
  try {
    await flow(tab, setting, (message) => receive(recording, message, play), abort.signal);
    document.body.dataset.state = "done";
  } catch (error) {
    if (error.name === "AbortError" || state.abort !== abort) return;
    document.body.dataset.state = "stopped";
    abort.abort();
    if (error instanceof Refused) trouble(error.message);
    else if (error instanceof Lost) wait(setting, preset, play);
    else throw error;
  }
}

function receive(recording, message, play) {
  if (state.incoming !== recording) return;
  recording.add(message);
  if (message.kind === "start" && message.saved_run) controls.show(message.setting, "saved-run");
  if (message.kind === "frame") {
    document.body.dataset.frames = recording.frames.length;
    if (state.current === recording) player.length = recording.last;
    if (play && recording.frames.length === 1) take(recording, true);
  }
  if (message.kind === "end") {
    document.body.dataset.ended = true;
    if (state.current !== recording) take(recording, false);
    else { if (reducedMotion) player.seek(1); describe(); } // without motion the end is shown as soon as it is there
  }
  if (message.kind === "ready") { trouble(""); pointed.look(recording, message.run, recording.preset?.pgd ?? 0); }
  if (message.kind === "robust") describe();
  redraw();
}

// Make a recording the one that is shown.
function take(recording, play) {
  const share = state.current ? player.share : 1, live = !play && !reducedMotion && !recording.end;
  clearTimeout(state.wait);
  if (!reducedMotion) show.leave(state.current);
  state.current = recording;
  player.length = recording.last;
  if (pointed.fit(recording)) {
    const positive = recording.start.sides.flatMap((side, k) => (side > 0 ? [k] : []));
    state.axes = (positive.length > 2 ? positive : [0, 1, 2]).slice(0, 3).filter((k) => k < recording.axes);
    chooseAxes(recording);
  }
  if (play && !reducedMotion) player.play(0);
  else if (live) player.play(1);
  else if (!player.playing) player.x = share * recording.last;
  describe();
}

function describe() {
  const recording = state.current;
  if (!recording) return;
  verdict($("#verdict"), recording);
  write($("#words"), recording, !about.recorded);
  const { start, robust } = recording, whole = recording.axes === start.dim && start.dim <= 3;
  const on = `on ${state.axes.length === 2 ? "two" : "three"} centres`;
  $("#sphere .note").textContent = whole ? `as they are, in ${start.dim} dimensions` : start.saved_run ? `at the end of the run, ${on}`
    : `directions in R^${start.dim}, projected ${on}: inside = off their span`;
  $("#timeline .note").textContent = recording.end ? recording.end.message : about.recorded ? "saved before the end" : "training …";
  $("#curve .note").textContent = robust ? `at the end of training, ${robust.points} fresh points: proven (blue) ≤ truth ≤ not broken by attack` : "";
  $("#matrix .note").textContent = recording.width > MOST ? `cosines of the ${MOST} neurons of ${recording.width} that count most` : "cosines";
  for (const figure of document.querySelectorAll("figure:not(#plane)")) for (const canvas of figure.querySelectorAll("canvas"))
    canvas.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
  document.body.dataset.verdict = recording.end?.verdict ?? "";
  document.body.dataset.radius = robust?.median[0] ?? "";
  redraw();
}

function chooseAxes(recording) {
  const box = $("#axes");
  box.replaceChildren("axes ");
  state.axes.forEach((chosen, slot) => {
    const select = document.createElement("select");
    select.setAttribute("aria-label", `axis ${slot + 1}`);
    for (let k = 0; k < recording.axes; k++) select.add(new Option(recording.start.names[k] ?? "rest", k, false, k === chosen));
    select.addEventListener("change", () => {
      const other = state.axes.indexOf(Number(select.value));
      if (other >= 0) state.axes[other] = state.axes[slot];
      state.axes[slot] = Number(select.value);
      chooseAxes(recording); redraw();
    });
    box.append(select);
  });
}

// A question found no server, or one that does not know the flow that is shown (any more): make it again.
function gone(lost) {
  if (document.body.dataset.state === "running") return; // its stream says so
  const { setting, preset } = state.current;
  if (lost) return wait(setting, preset, false);
  begin(setting, preset, false);
  trouble("The server no longer has this flow; it is being computed again.");
}

// The server is gone: say so, keep what is here, and go on when it is back.
async function wait(setting, preset, play) {
  if (state.waiting === state.abort) return;
  state.waiting = state.abort;
  document.body.dataset.state = "stopped";
  trouble("The server has stopped; what was received stays here. Start it again with: polyrelu explore (this page goes on by itself)");
  const abort = state.abort;
  while (state.abort === abort) {
    await new Promise((done) => setTimeout(done, 1500));
    if (state.abort === abort && (await alive())) return begin(setting, preset, play);
  }
}

function trouble(sentence) {
  $("#trouble").textContent = sentence;
  $("#trouble").hidden = !sentence;
}

function tick(now) {
  const recording = state.current, seconds = Math.min(0.1, (now - state.before) / 1000);
  state.before = now;
  if (recording) {
    const was = player.x, open = state.incoming === recording && !recording.end && document.body.dataset.state === "running";
    player.advance(seconds, recording.last, open);
    if (player.playing || was !== player.x || show.moving(now) || pointed.moving() || state.dirty) draw(recording, now);
  }
  requestAnimationFrame(tick);
}

function draw(recording, now) {
  state.dirty = false;
  const moment = recording.at(player.x), shown = show.at(moment, recording, now);
  sphere.draw(recording, shown, state.axes, player.x);
  matrix.draw(recording, shown);
  const coming = state.incoming !== recording && state.incoming?.frames.length ? state.incoming : recording;
  timeline.draw(coming, coming === recording ? player.x : coming.last);
  curve.draw(recording);
  pointed.draw(recording, Math.round(player.x));
  $("#clock").textContent = `t = ${fromLog(moment.logTime)}   loss ${fromLog(moment.logLoss)}   step ${Math.round(player.x)} of ${recording.last}`;
  document.body.dataset.drawn = Number(document.body.dataset.drawn ?? 0) + 1;
}

$("#theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  remembered("theme", document.documentElement.dataset.theme);
  readColours(); redraw();
});
$("#png").addEventListener("click", () => {
  const lines = [...document.querySelectorAll("#verdict .learned, #verdict .learned + div")].map((one) => one.textContent);
  picture("polyrelu explorer", [...lines, $("#clock").textContent, state.current?.start.command ?? ""]);
});
$("#html").addEventListener("click", async () => {
  const recording = state.current;
  if (!recording) return;
  try { page(await whole([...recording.messages, ...pointed.messages(), view(recording)])); } catch (error) { trouble(error.message || "The server has stopped."); }
});
if (about.recorded) $("#html").hidden = true;
new ResizeObserver(redraw).observe($("#views"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

// How the page stands, for a file that opens as it was saved.
function view(recording) {
  const { pair, point, label } = pointed, { yaw, pitch } = sphere;
  return { kind: "view", preset: recording.preset?.id ?? null, time: player.share, axes: state.axes, turned: { yaw, pitch }, at: { pair, point, label } };
}

function reopen(recorded) {
  const of = (kind) => recorded.filter((message) => message.kind === kind), [{ preset, time, axes, turned, at }] = of("view");
  const recording = new Recording();
  recorded.forEach((message) => recording.add(message));
  recording.preset = about.presets.find((one) => one.id === preset);
  Object.assign(pointed, at);
  Object.assign(sphere, turned);
  controls.show(recording.start.setting, preset);
  take(recording, false);
  of("point").forEach((reply) => pointed.give(reply));
  state.axes = axes;
  chooseAxes(recording);
  player.seek(time);
}

function first() {
  if (about.recorded) {
    reopen(about.recorded);
    for (const one of document.querySelectorAll("aside input, aside select, #presets button, #pairs select")) one.disabled = true;
    trouble("This file plays what was recorded. To change anything, run: polyrelu explore");
    document.body.dataset.state = "done";
    return;
  }
  const { setting, preset } = fromAddress(about);
  if (about.saved_run && !location.hash) choose(null);
  else begin(setting, preset, true);
}

first();
requestAnimationFrame(tick);
