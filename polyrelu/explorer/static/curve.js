// Share of fresh points that hold at a radius: proven from below, not broken from above, and what theory says.

import { ink, layered, marks } from "explorer/canvas.js";

const LEFT = 40, RIGHT = 12, TOP = 22, BOTTOM = 30;

export class Curve {
  constructor(canvas) { this.canvas = canvas; }

  draw(recording) {
    layered(this.canvas, [recording, recording.robust], (pen, width, height) => this.paint(pen, width, height, recording));
  }

  paint(pen, width, height, { robust, start }) {
    const theory = start.theory, radii = [...(robust?.lower ?? []), ...(robust?.upper ?? [])].filter((one) => one !== null);
    const most = Math.max(0.9, ...radii.map((one) => one * 1.08));
    const X = (r) => LEFT + (r / most) * (width - LEFT - RIGHT), Y = (a) => TOP + (1 - a) * (height - TOP - BOTTOM);
    pen.strokeStyle = ink.line; pen.lineWidth = 1; pen.strokeRect(LEFT, TOP, width - LEFT - RIGHT, height - TOP - BOTTOM);
    pen.fillStyle = ink.quiet; pen.textBaseline = "middle"; pen.textAlign = "right";
    for (const share of [0, 0.5, 1]) pen.fillText(`${100 * share} %`, LEFT - 4, Y(share));
    pen.textAlign = "center"; pen.textBaseline = "top";
    const step = most > 4 ? 1 : most > 1.6 ? 0.5 : 0.2;
    for (let r = 0; r <= most; r += step) pen.fillText(r.toFixed(1), X(r), height - BOTTOM + 4);
    pen.fillText("radius (l2)", (LEFT + width) / 2, height - 13);
    for (const [name, label] of marks(theory)) {
      pen.beginPath(); pen.moveTo(X(theory[name]), TOP); pen.lineTo(X(theory[name]), height - BOTTOM);
      pen.setLineDash([5, 4]); pen.strokeStyle = ink[name]; pen.lineWidth = 1.5; pen.stroke(); pen.setLineDash([]);
      pen.fillStyle = ink[name]; pen.textBaseline = "bottom"; pen.fillText(label, X(theory[name]), TOP - 3);
    }
    if (!robust) return;
    const path = (sorted) => {
      const held = (i) => 1 - i / robust.points, ends = [[X(0), Y(1)]];
      sorted.forEach((r, i) => { if (r !== null) ends.push([X(r), Y(held(i))], [X(r), Y(held(i + 1))]); });
      if (sorted.at(-1) === null) ends.push([X(most), ends.at(-1)[1]]);
      return ends;
    };
    const [proven, attacked] = [path(robust.lower), path(robust.upper)];
    pen.beginPath(); [...proven, ...attacked.reverse()].forEach((place) => pen.lineTo(...place));
    pen.fillStyle = ink.accent; pen.globalAlpha = 0.25; pen.fill(); pen.globalAlpha = 1;
    for (const [line, colour] of [[attacked, ink.ink], [proven, ink.accent]]) {
      pen.beginPath(); line.forEach((place) => pen.lineTo(...place)); pen.strokeStyle = colour; pen.lineWidth = 2; pen.stroke();
    }
  }
}
