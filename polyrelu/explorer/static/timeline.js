// Over time, one column a step of the solver: what neurons point at, what they contribute, the loss; three phases.

import { fromLog, ink, layered, power, side } from "explorer/canvas.js";

const LEFT = 52, RIGHT = 10, TOP = 18, BOTTOM = 20, GAP = 8;

export class Timeline {
  constructor(canvas, seek) {
    this.canvas = canvas;
    const go = (event) => {
      const box = canvas.getBoundingClientRect();
      seek((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT));
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); go(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) go(event); });
  }

  draw(recording, now) {
    const last = Math.max(1, recording.last), at = (i) => LEFT + (i / last) * (this.canvas.clientWidth - LEFT - RIGHT);
    const { pen, height } = layered(this.canvas, [recording, recording.frames.length, recording.end], (under, width, height) => {
      const strip = (height - TOP - BOTTOM - 2 * GAP) / 3, tops = [0, 1, 2].map((k) => TOP + k * (strip + GAP));
      this.phases(under, recording, at, height);
      this.alignment(under, recording, at, tops[0], strip);
      this.contributions(under, recording, at, tops[1], strip);
      this.loss(under, recording, at, tops[2], strip);
      this.ticks(under, recording, at, width, height);
    });
    pen.beginPath(); pen.moveTo(at(now), TOP - 4); pen.lineTo(at(now), height - BOTTOM);
    pen.strokeStyle = ink.ink; pen.lineWidth = 1.5; pen.stroke();
  }

  phases(pen, recording, at, height) {
    const { aligned, fallen } = recording.end ?? {}, last = recording.last;
    const ends = [0, aligned ?? null, fallen ?? null, last];
    const names = ["directions turn", "norms grow", "loss falls"];
    pen.textAlign = "center"; pen.textBaseline = "top"; pen.font = "11px system-ui, sans-serif";
    for (let k = 0; k < 3; k++) {
      if (ends[k] === null || ends[k + 1] === null || ends[k + 1] <= ends[k]) continue;
      const [a, b] = [at(ends[k]), at(ends[k + 1])];
      pen.fillStyle = ink.line; pen.globalAlpha = [0.5, 0, 0.5][k]; pen.fillRect(a, TOP - 2, b - a, height - TOP - BOTTOM + 2);
      pen.globalAlpha = 1; pen.fillStyle = ink.quiet;
      if (b - a > pen.measureText(names[k]).width) pen.fillText(names[k], (a + b) / 2, 3);
    }
  }

  frame(pen, top, strip, low, high, labels) {
    pen.textAlign = "right"; pen.textBaseline = "middle"; pen.fillStyle = ink.quiet; pen.font = "11px system-ui, sans-serif";
    const y = (value) => top + strip * (1 - (value - low) / (high - low));
    for (const [value, label] of labels) pen.fillText(label, LEFT - 5, Math.max(top + 6, Math.min(top + strip - 5, y(value))));
    pen.strokeStyle = ink.line; pen.lineWidth = 1; pen.strokeRect(LEFT, top, this.canvas.clientWidth - LEFT - RIGHT, strip);
    return y;
  }

  line(pen, values, at, y, colour, thick = 1.8) {
    pen.beginPath();
    values.forEach((value, i) => pen.lineTo(at(i), y(value)));
    pen.strokeStyle = colour; pen.lineWidth = thick; pen.stroke();
  }

  alignment(pen, recording, at, top, strip) {
    const y = this.frame(pen, top, strip, 0, 1.04, [[0, "0"], [1, "cos 1"]]);
    const centre = recording.medians("centre"), average = recording.medians("average");
    this.line(pen, centre, at, y, ink.centre);
    this.line(pen, average, at, y, ink.average);
    pen.textAlign = "right"; pen.textBaseline = "bottom";
    const right = this.canvas.clientWidth - RIGHT - 4;
    const names = [[centre.at(-1), "to a centre", ink.centre], [average.at(-1), "to a class average", ink.average]];
    let above = -Infinity; // the upper name first, the other at least a line below it
    for (const [value, name, colour] of names.sort((a, b) => b[0] - a[0])) {
      above = Math.max(above + 13, y(value) + (value > 0.8 ? 17 : -3));
      pen.strokeStyle = ink.panel; pen.lineWidth = 3; pen.strokeText(name, right, above); // legible on top of lines
      pen.fillStyle = colour; pen.fillText(name, right, above);
    }
  }

  contributions(pen, recording, at, top, strip) {
    const { most, span } = recording.range, low = most - 1.25 * span, high = most + 0.05 * span;
    const ten = (log) => `10${power(Math.round(log / Math.LN10))}`;
    const y = this.frame(pen, top, strip, low, high, [[most, ten(most)], [most - span, ten(most - span)]]);
    pen.save(); pen.beginPath(); pen.rect(LEFT, top, this.canvas.clientWidth, strip); pen.clip();
    pen.globalAlpha = Math.max(0.12, Math.min(0.5, 30 / recording.width)); pen.lineWidth = 1;
    for (const sign of [1, -1]) {
      pen.beginPath(); pen.strokeStyle = side(sign);
      for (let j = 0; j < recording.width; j++) {
        if (Math.sign(recording.frames.at(-1).readOut[j]) !== sign) continue;
        recording.frames.forEach((frame, i) => { i ? pen.lineTo(at(i), y(frame.logs[j])) : pen.moveTo(at(i), y(frame.logs[j])); });
      }
      pen.stroke();
    }
    pen.restore();
    pen.textAlign = "left"; pen.textBaseline = "top"; pen.fillStyle = ink.quiet; pen.fillText("contributions |v||w|", LEFT + 5, top + 3);
  }

  loss(pen, recording, at, top, strip) {
    const values = recording.frames.map((frame) => frame.logLoss);
    const low = Math.min(...values, -4.7), high = Math.max(...values, 0) + 0.3;
    const y = this.frame(pen, top, strip, low, high, [[0, "1"], [low, fromLog(low)]]);
    this.line(pen, values, at, y, ink.ink);
    pen.textAlign = "left"; pen.textBaseline = "bottom"; pen.fillStyle = ink.quiet; pen.fillText("loss", LEFT + 5, top + strip - 3);
  }

  ticks(pen, recording, at, width, height) {
    pen.textAlign = "center"; pen.textBaseline = "bottom"; pen.fillStyle = ink.quiet; pen.font = "11px system-ui, sans-serif";
    const many = Math.max(2, Math.min(6, Math.floor(width / 110)));
    for (let k = 0; k <= many; k++) {
      const i = Math.round((k / many) * recording.last), frame = recording.frames[i];
      if (frame) pen.fillText(`${k ? "" : "t = "}${fromLog(frame.logTime)}`, Math.min(at(i), width - 18), height - 4);
    }
  }
}
