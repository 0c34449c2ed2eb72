// The draggable point: asks the server how far it holds and where it breaks, one question at a time.

import { Plane } from "explorer/plane.js";
import { Lost, point as ask } from "explorer/stream.js";

const SETTLED = 250; // milliseconds of rest before a moment is looked at

export class Pointed {
  constructor(tab, asking, changed, trouble) {
    Object.assign(this, { tab, asking, changed, trouble, ball: 0, goal: 0, reply: null, pair: null, pgd: 0 });
    this.left = new Plane(document.querySelector("#flat"), (where) => this.move(where));
    this.right = new Plane(document.querySelector("#toward"));
    this.note = document.querySelector("#plane .note");
  }

  // Centres, point and label that make sense for a recording: what there is already, if it does.
  fit(recording) {
    const { sides, lengths } = recording.start, plus = sides.indexOf(1), minus = sides.indexOf(-1);
    const key = [sides, lengths.map((one) => one.toFixed(2))].join(";");
    if (key === this.key) return false;
    this.key = key;
    if (this.asking) Object.assign(this, { pair: [plus, minus], point: [lengths[plus], 0], label: 1, reply: null });
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
        this.choose(recording); this.again();
      });
      box.append(select);
    });
    box.append(" and the origin · drag the point");
  }

  move(where) {
    if (!this.asking) return this.trouble("Moving the point needs the server: polyrelu explore");
    this.point = where;
    this.changed(); this.again();
  }

  look(recording, frame, pgd) {
    Object.assign(this, { recording, frame, pgd });
    this.again();
  }

  // Look at the moment that is shown, once it has rested.
  settle(recording, frame) {
    if (this.now === frame) return;
    this.now = frame;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { if (this.recording === recording && this.frame !== frame) this.look(recording, frame, this.pgd); }, SETTLED);
  }

  async again() {
    if (!this.asking || !this.recording) return;
    if (this.busy) { this.more = true; return; }
    this.busy = true;
    try {
      const { tab, frame, pair, point, label, pgd, recording } = this;
      this.give(await ask({ tab, frame, centres: pair, point, label, pgd }), recording);
    } catch (error) {
      if (!(error instanceof Lost)) throw error; // of a server that is gone its stream tells
    }
    this.busy = false;
    if (this.more) { this.more = false; this.again(); }
  }

  give(reply, of) {
    if (reply.kind !== "point") return;
    const bytes = Uint8Array.from(atob(reply.toward.cosines), (letter) => letter.charCodeAt(0));
    Object.assign(this, { reply, cosines: new Float32Array(bytes.buffer), goal: reply.lower ?? 0, of });
    if (!this.asking) Object.assign(this, { pair: reply.centres, point: reply.point, label: reply.label });
    document.body.dataset.ball = this.goal;
    this.changed();
  }

  messages() { return this.reply ? [this.reply] : []; }
  moving() { return Math.abs(this.goal - this.ball) > 1e-4; }

  draw(recording, moment, frame) {
    this.settle(recording, frame);
    this.ball = this.moving() ? this.ball + 0.15 * (this.goal - this.ball) : this.goal;
    const reply = this.reply, fits = reply && (this.of === recording || !this.asking);
    this.left.flat(recording, moment, this.pair, this.point, this.label, fits ? reply : null, this.ball);
    if (fits) this.right.toward(recording, recording.frames[Math.min(reply.frame, recording.last)], this.label, reply, this.cosines, this.ball);
    if (!fits) return;
    const range = reply.upper === null ? `${this.goal.toFixed(3)} – ∞` : `${this.goal.toFixed(3)} – ${reply.upper.toFixed(3)}`;
    this.note.textContent = !reply.right ? "this point is misclassified: radius 0"
      : `the point holds to ${range}; left: plane of two centres (break ${reply.outside.toFixed(2)} outside it), right: plane through the break`
        + (reply.pgd ? (reply.pgd.success ? "; PGD from zero breaks it too" : `; PGD from zero, radius ${reply.pgd.radius}: no break found`) : "");
  }
}
