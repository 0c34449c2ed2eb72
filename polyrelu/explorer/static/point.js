// The draggable point: asks the server how far it holds and where it breaks, one question at a time.

import { Plane } from "explorer/plane.js";
import { Lost, point as ask } from "explorer/stream.js";

const SETTLED = 250; // milliseconds of rest before a moment is looked at
const MOMENTS = 8; // of a run that are looked at when there is nothing else to do, so that the ball plays too

export class Pointed {
  constructor(tab, asking, changed, trouble) {
    Object.assign(this, { tab, asking, changed, trouble, ball: 0, goal: 0, pgd: 0, replies: new Map() });
    this.left = new Plane(document.querySelector("#flat"), (where) => this.move(where));
    this.right = new Plane(document.querySelector("#toward"));
    this.note = document.querySelector("#plane .note");
  }

  // Centres, point and label that make sense for a recording: what there is already, if it does. Are they new?
  fit(recording) {
    const { sides, lengths } = recording.start, plus = sides.indexOf(1), minus = sides.indexOf(-1);
    const key = [sides, lengths.map((one) => one.toFixed(2))].join(";");
    if (key === this.key) return false;
    this.key = key;
    if (this.asking) Object.assign(this, { pair: [plus, minus], point: [lengths[plus], 0], label: 1 });
    this.choose(recording);
    return true;
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
    this.changed(); this.renew();
  }

  // A finished flow can be looked at.
  look(recording, pgd) {
    Object.assign(this, { recording, pgd });
    this.renew(recording.last);
  }

  // Another point, plane or flow: what was answered before is of no use.
  renew(frame = this.now) {
    this.stale = true;
    this.want = frame;
    this.again();
  }

  // Look at the moment that is shown once it has rested.
  settle(recording, frame) {
    if (this.now === frame) return;
    this.now = frame;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      if (this.recording === recording && !this.replies.has(frame)) { this.want = frame; this.again(); }
    }, SETTLED);
  }

  async again() {
    if (!this.asking || !this.recording || this.busy) return;
    this.busy = true;
    try {
      while (this.want !== null) {
        const { tab, pair, point, label, pgd, recording, want } = this, renewed = this.stale;
        Object.assign(this, { want: null, stale: false });
        const reply = await ask({ tab, frame: want, centres: pair, point, label, pgd });
        if (this.stale || reply.kind !== "point") continue;
        if (renewed) { this.replies.clear(); this.of = recording; }
        this.give(reply, want);
        if (this.want === null) this.want = this.next(recording);
      }
    } catch (error) {
      if (!(error instanceof Lost)) throw error; // of a server that is gone its stream tells
    } finally { this.busy = false; }
  }

  // The next of a few moments that nobody has asked for yet.
  next(recording) {
    for (let k = MOMENTS; k >= 0; k--) {
      const frame = Math.round((k * recording.last) / MOMENTS);
      if (!this.replies.has(frame)) return frame;
    }
    return null;
  }

  give(reply, frame = reply.frame) {
    const bytes = Uint8Array.from(atob(reply.toward.cosines), (letter) => letter.charCodeAt(0));
    this.replies.set(frame, { ...reply, at: frame, cosines: new Float32Array(bytes.buffer) });
    if (!this.asking) Object.assign(this, { pair: reply.centres, point: reply.point, label: reply.label, pgd: reply.pgd?.radius ?? 0 });
    this.changed();
  }

  messages() { return [...this.replies.values()].map(({ at, cosines, ...reply }) => ({ ...reply, frame: at })); }
  moving() { return Math.abs(this.goal - this.ball) > 1e-4; }

  // The answer for the moment nearest to a frame.
  nearest(frame) {
    let best = null;
    for (const reply of this.replies.values()) if (!best || Math.abs(reply.at - frame) < Math.abs(best.at - frame)) best = reply;
    return best;
  }

  draw(recording, moment, frame) {
    this.settle(recording, frame);
    const reply = this.of === recording || !this.asking ? this.nearest(frame) : null;
    if (reply) document.body.dataset.ball = this.goal = reply.lower ?? 0;
    this.ball = this.moving() ? this.ball + 0.15 * (this.goal - this.ball) : this.goal;
    this.left.flat(recording, moment, this.pair, this.point, this.label, reply, this.ball);
    if (!reply) return;
    this.right.toward(recording, recording.frames[Math.min(reply.at, recording.last)], this.label, reply, reply.cosines, this.ball);
    const range = `${this.goal.toFixed(3)} – ${reply.upper === null ? "∞" : reply.upper.toFixed(3)}`;
    const when = Math.abs(reply.at - frame) > recording.last / MOMENTS ? ` (at step ${reply.at})` : "";
    const fooled = !reply.pgd ? "" : reply.pgd.success ? "; PGD from zero breaks it too" : `; PGD from zero, radius ${reply.pgd.radius}: no break found`;
    this.note.textContent = !reply.right ? `this point is misclassified${when}: radius 0`
      : `the point holds to ${range}${when}; left: plane of two centres (break ${reply.outside.toFixed(2)} outside it), right: plane through the break${fooled}`;
  }
}
