// The draggable point: asks the server how far it holds and where it breaks, one question at a time.
// An answer is about one recording, one point and one frame; it is shown for no other recording and for no other point.

import { above, below } from "explorer/canvas.js";
import { Plane } from "explorer/plane.js";
import { Lost, Refused, point as ask } from "explorer/stream.js";

const SETTLED = 250; // milliseconds of rest before a moment is looked at
const MOMENTS = 8; // of a run that are looked at when there is nothing else to do, so that the ball plays too

export class Pointed {
  // `says` has what the page is told: `changed`, `trouble` with a sentence, `gone` if the server has no such flow.
  constructor(tab, asking, reducedMotion, says) {
    Object.assign(this, { tab, asking, reducedMotion, ...says, ball: 0, goal: 0, pgd: 0, turn: 0, want: null });
    Object.assign(this, { shown: null, held: null, replies: new Map(), asked: new Set() });
    this.left = new Plane(document.querySelector("#flat"), (where) => this.move(where));
    this.right = new Plane(document.querySelector("#toward"));
    this.note = document.querySelector("#plane .note");
  }

  // A recording is shown. Centres, point and label stay if they make sense for it. Are they new?
  fit(recording) {
    const { sides, lengths } = recording.start, plus = sides.indexOf(1), minus = sides.indexOf(-1);
    const key = [sides, recording.axes, lengths.map((one) => one.toFixed(2))].join(";"), fresh = key !== this.key;
    if (fresh) {
      this.key = key;
      if (this.asking || !this.pair) Object.assign(this, { pair: [plus, minus], point: [lengths[plus], 0], label: 1 });
      this.choose(recording);
    }
    if (recording !== this.shown || fresh) { this.shown = recording; this.renew(); }
    return fresh;
  }

  choose(recording) {
    const box = document.querySelector("#pairs"), { names, sides, lengths } = recording.start;
    box.replaceChildren("plane of centres ");
    this.pair.forEach((chosen, slot) => {
      const select = document.createElement("select");
      select.setAttribute("aria-label", slot ? "second centre" : "first centre");
      names.forEach((name, k) => k === this.pair[1 - slot] || select.add(new Option(name, k, false, k === chosen)));
      select.addEventListener("change", () => {
        this.pair[slot] = Number(select.value);
        Object.assign(this, { point: [lengths[this.pair[0]], 0], label: sides[this.pair[0]] });
        this.choose(recording); this.renew();
      });
      box.append(select);
    });
    box.append(" and the origin · drag the point");
  }

  move(where) {
    if (!this.asking) return this.trouble("Moving the point needs the server: polyrelu explore");
    this.point = where;
    this.renew();
  }

  // The server holds a finished flow: it can be looked at.
  look(recording, run, pgd) {
    Object.assign(this, { held: recording, run, pgd });
    this.renew(recording.last);
  }

  // Another point, plane or flow: what was answered before is not about it.
  renew(frame = this.now ?? 0) {
    this.replies.clear(); this.asked.clear();
    Object.assign(this, { turn: this.turn + 1, want: frame, ball: 0 });
    this.changed(); this.again();
  }

  // Look at the moment that is shown once it has rested.
  settle(frame) {
    if (this.now === frame) return;
    this.now = frame;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { if (!this.asked.has(frame)) { this.want = frame; this.again(); } }, SETTLED);
  }

  async again() {
    if (!this.asking || this.busy) return;
    this.busy = true;
    try {
      while (this.want !== null && this.held && this.held === this.shown) {
        const { tab, run, pair, point, label, pgd, want, turn } = this;
        this.want = null;
        this.asked.add(want);
        const reply = await ask({ tab, run, frame: want, centres: pair, point, label, pgd });
        if (turn !== this.turn) continue;
        if (reply.kind === "nothing") return this.gone(false);
        if (reply.kind !== "point") { this.asked.delete(want); return; }
        this.give(reply);
        this.want ??= this.next();
      }
    } catch (error) {
      if (error instanceof Lost) this.gone(true);
      else if (error instanceof Refused) this.trouble(error.message);
      else throw error;
    } finally { this.busy = false; }
  }

  // The next of a few moments that nobody has asked for yet.
  next() {
    for (let k = this.shown.final ? -1 : MOMENTS; k >= 0; k--) {
      const frame = Math.round((k * this.shown.last) / MOMENTS);
      if (!this.asked.has(frame)) return frame;
    }
    return null;
  }

  give(reply) {
    const bytes = Uint8Array.from(atob(reply.toward.cosines), (letter) => letter.charCodeAt(0));
    this.replies.set(reply.frame, { ...reply, neurons: new Float32Array(bytes.buffer) });
    this.changed();
  }

  messages() { return [...this.replies.values()].map(({ neurons, ...reply }) => reply); }
  moving() { return this.goal - this.ball > 1e-4; }

  // The answer for the moment nearest to a frame.
  nearest(frame) {
    let best = null;
    for (const reply of this.replies.values()) if (!best || Math.abs(reply.frame - frame) < Math.abs(best.frame - frame)) best = reply;
    return best;
  }

  draw(recording, step) {
    const frame = recording.final ? recording.last : step, reply = this.nearest(frame), here = reply?.frame === frame;
    this.settle(frame);
    this.goal = reply?.lower ?? 0;
    document.body.dataset.ball = reply ? this.goal : "";
    // A ball grows to its size: on the way there it is smaller than what is proven, never larger.
    this.ball = this.reducedMotion || !this.moving() ? this.goal : this.ball + 0.15 * (this.goal - this.ball);
    this.left.flat(recording, recording.at(frame), this.pair, this.point, this.label, reply, here, this.ball);
    if (reply) this.right.toward(recording, recording.at(reply.frame), this.label, reply, reply.neurons, this.ball);
    else this.right.clear();
    this.say(reply ? this.sentence(reply, here) : this.asking ? "computing…" : "no radius was saved for this point");
  }

  sentence(reply, here) {
    const when = here ? "" : ` at step ${reply.frame} (dashed)`;
    if (!reply.right) return `this point is misclassified${when}: radius 0`;
    if (reply.lower === null) return `nothing breaks this point${when}`;
    const range = `${below(reply.lower, 3)} – ${reply.upper === null ? "∞" : above(reply.upper, 3)}`;
    const fooled = !reply.pgd ? "" : reply.pgd.success ? "; PGD from zero breaks it too" : `; PGD from zero, radius ${reply.pgd.radius}: no break found`;
    return `the point holds to ${range}${when}; left: plane of two centres (break ${reply.outside.toFixed(2)} outside it), right: plane through the break${fooled}`;
  }

  say(text) {
    if (this.note.textContent === text) return;
    this.note.textContent = text;
    for (const plane of [this.left, this.right]) plane.canvas.setAttribute("aria-label", `Decision: ${text}`);
  }
}
