// What is on the screen: a moment of the recording, or, just after another flow took over, on the way to it.

const MILLISECONDS = 700;

export class Show {
  leave(recording) {
    this.from = recording ? this.last : null;
    this.shape = recording ? [recording.width, recording.columns].join() : "";
    this.began = null;
  }

  moving(now) { return Boolean(this.from) && (this.began === null || now - this.began < MILLISECONDS); }

  at(moment, recording, now) {
    if (this.from && this.shape !== [recording.width, recording.columns].join()) this.from = null;
    if (!this.from) return (this.last = moment);
    this.began ??= now;
    const t = Math.min(1, (now - this.began) / MILLISECONDS), share = t * t * (3 - 2 * t);
    if (t >= 1) { this.from = null; return (this.last = moment); }
    const mix = (a, b) => b.map((one, k) => a[k] + share * (one - a[k]));
    this.last = {
      ...moment, cosines: mix(this.from.cosines, moment.cosines), logs: mix(this.from.logs, moment.logs),
      readOut: moment.readOut,
    };
    return this.last;
  }
}
