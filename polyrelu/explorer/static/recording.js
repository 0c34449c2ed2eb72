// A flow as it was received: what stays, its frames, how it ended; and any moment between two frames.

function floats(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

export class Recording {
  constructor() {
    this.messages = [];
    this.frames = [];
    this.start = this.end = this.robust = null;
    this.done = false;
  }

  add(message) {
    if (message.kind === "robust") this.messages = this.messages.filter((one) => one.kind !== "robust");
    this.messages.push(message);
    if (message.kind === "start") this.begin(message);
    else if (message.kind === "frame") this.frame(message);
    else if (message.kind === "end") this.end = { ...message, aligned: this.place(message.aligned), fallen: this.place(message.fallen) };
    else if (message.kind === "robust") this.robust = message;
    else if (message.kind === "done") this.done = true;
  }

  begin(message) {
    this.start = message;
    this.width = message.width;
    this.axes = message.axes;
    this.columns = message.axes + 2;
    this.centres = message.sides.length;
    this.gram = floats(message.gram);
    this.points = floats(message.points);
    this.final = message.final ? floats(message.final) : null; // of a run whose last net alone is known
  }

  frame(message) {
    const before = this.frames.at(-1);
    const one = {
      clock: message.clock, logTime: message.log_time, logLoss: message.log_loss, accuracy: message.accuracy,
      cosines: message.cosines ? floats(message.cosines) : before.cosines,
      logs: floats(message.log_contribution),
      readOut: message.read_out ? floats(message.read_out) : before.readOut,
      order: {}, // neurons by cosine, sorted once
    };
    one.centre = message.cos_centre ? floats(message.cos_centre) : this.largest(one.cosines, 0, this.centres);
    one.average = message.cos_average ? floats(message.cos_average) : this.largest(one.cosines, this.axes, this.columns);
    this.frames.push(one);
  }

  largest(cosines, first, last) {
    const found = new Float32Array(this.width).fill(-1);
    for (let j = 0; j < this.width; j++)
      for (let k = first; k < last; k++) found[j] = Math.max(found[j], cosines[j * this.columns + k]);
    return found;
  }

  // A time of the solver's clock in (fractional) frames.
  place(clock) {
    if (clock === null) return null;
    const after = this.frames.findIndex((frame) => frame.clock >= clock);
    if (after <= 0) return after === 0 ? 0 : this.last;
    const [a, b] = [this.frames[after - 1].clock, this.frames[after].clock];
    return after - 1 + (clock - a) / (b - a);
  }

  get last() { return Math.max(0, this.frames.length - 1); }

  // The moment x, a number of frames and a part of one.
  at(x) {
    const i = Math.min(Math.floor(x), this.last), share = Math.min(x, this.last) - i;
    const a = this.frames[i], b = this.frames[Math.min(i + 1, this.last)];
    if (share === 0 || a === b) return this.final ? { ...a, logs: this.final } : a;
    const mix = (u, v) => (u === v ? u : u.map((one, k) => one + share * (v[k] - one)));
    const line = (u, v) => (u === null ? v : u + share * (v - u));
    return {
      logTime: line(a.logTime, b.logTime), logLoss: line(a.logLoss, b.logLoss), accuracy: line(a.accuracy, b.accuracy),
      cosines: mix(a.cosines, b.cosines), logs: this.final ?? mix(a.logs, b.logs), readOut: mix(a.readOut, b.readOut),
    };
  }

  // What follows from all frames so far, computed once for each number of them.
  once(name, make) {
    const kept = (this.kept ??= {});
    if (kept[name]?.frames !== this.frames.length) kept[name] = { frames: this.frames.length, value: make() };
    return kept[name].value;
  }

  // log |v||w| of the largest neuron at the end, and of a usual one at the beginning: the range of sizes.
  get range() {
    return this.once("range", () => {
      const most = Math.max(...this.frames.at(-1).logs);
      const least = [...this.frames[0].logs].sort((a, b) => a - b)[this.width >> 1];
      return { most, span: Math.max(4, most - least) };
    });
  }

  // Weighted medians over neurons, frame by frame; each counts as its contribution at the end.
  medians(kind) { return this.once(kind, () => this.middle(kind)); }

  middle(kind) {
    const last = this.final ?? this.frames.at(-1).logs, most = Math.max(...last);
    const weight = last.map((log) => Math.exp(log - most)), total = weight.reduce((sum, one) => sum + one, 0);
    return this.frames.map((frame) => {
      const order = (frame.order[kind] ??= [...frame[kind].keys()].sort((a, b) => frame[kind][a] - frame[kind][b]));
      let below = 0;
      for (const j of order) if ((below += weight[j]) >= total / 2) return frame[kind][j];
      return frame[kind][order.at(-1)];
    });
  }
}

// Coordinates in the span of some columns, from the cosines to them: c = L⁻¹ cos with gram = L Lᵀ.
export function basis(recording, chosen) {
  const n = recording.columns, size = chosen.length, L = chosen.map(() => new Float64Array(size));
  for (let i = 0; i < size; i++) for (let j = 0; j <= i; j++) {
    let sum = recording.gram[chosen[i] * n + chosen[j]];
    for (let k = 0; k < j; k++) sum -= L[i][k] * L[j][k];
    L[i][j] = i === j ? Math.sqrt(Math.max(sum, 1e-9)) : sum / L[j][j];
  }
  return (cosines, row) => {
    const out = new Array(size);
    for (let i = 0; i < size; i++) {
      let sum = cosines[row * n + chosen[i]];
      for (let k = 0; k < i; k++) sum -= L[i][k] * out[k];
      out[i] = sum / L[i][i];
    }
    return out;
  };
}
