// Rows are neurons, columns centres and class averages: cos(w_j, ·), from −1 to 1; bars are contributions.

import { fresh, ink, side } from "explorer/canvas.js";

const TOP = 34, BAR = 26;
export const MOST = 120; // rows

export class Matrix {
  constructor(canvas) { this.canvas = canvas; }

  // Neurons that count most in the end, grouped by class and by the centre they are nearest to then.
  order(recording) {
    if (this.of === recording && this.frames === recording.last) return this.rows;
    const { cosines, logs, readOut } = recording.frames.at(-1), n = recording.columns;
    const nearest = (j) => {
      let best = 0;
      for (let k = 1; k < recording.centres; k++) if (cosines[j * n + k] > cosines[j * n + best]) best = k;
      return best;
    };
    const rows = [...logs.keys()].sort((a, b) => logs[b] - logs[a]).slice(0, MOST);
    const keys = new Map(rows.map((j) => [j, [readOut[j] < 0 ? 1 : 0, nearest(j)]]));
    rows.sort((a, b) => keys.get(a)[0] - keys.get(b)[0] || keys.get(a)[1] - keys.get(b)[1] || logs[b] - logs[a]);
    Object.assign(this, { of: recording, frames: recording.last, rows });
    return rows;
  }

  draw(recording, moment) {
    const { pen, width, height } = fresh(this.canvas), rows = this.order(recording), n = recording.columns;
    const columns = [...Array(recording.centres).keys(), recording.axes, recording.axes + 1];
    const w = (width - BAR - 4) / columns.length, h = (height - TOP - 4) / rows.length;
    const edge = (value) => Math.round(value);
    pen.textAlign = "center"; pen.textBaseline = "alphabetic"; pen.font = "11px system-ui, sans-serif";
    columns.forEach((column, c) => {
      const average = column >= recording.axes, sign = average ? 1 - 2 * (column - recording.axes) : recording.start.sides[column];
      pen.fillStyle = side(sign);
      pen.save();
      pen.translate((c + 0.5) * w + (w < 20 ? 4 : 0), TOP - 8);
      if (w < 20) { pen.rotate(-Math.PI / 2); pen.textAlign = "left"; }
      pen.fillText(average ? (sign > 0 ? "ø+" : "ø−") : recording.start.names[column], 0, 0);
      pen.restore();
      rows.forEach((j, r) => {
        const value = moment.cosines[j * n + column];
        pen.globalAlpha = Math.min(1, Math.abs(value));
        pen.fillStyle = value > 0 ? (average ? ink.average : ink.centre) : ink.quiet;
        const x = edge(c * w), y = edge(TOP + r * h);
        pen.fillRect(x, y, Math.max(1, edge((c + 1) * w) - x - 1), Math.max(1, edge(TOP + (r + 1) * h) - y));
      });
      pen.globalAlpha = 1;
    });
    const { most, span } = recording.range;
    rows.forEach((j, r) => {
      const size = Math.max(0, Math.min(1, 1 + (moment.logs[j] - most) / span)), y = edge(TOP + r * h);
      pen.fillStyle = side(moment.readOut[j]);
      pen.fillRect(width - BAR, y, BAR * size, Math.max(1, edge(TOP + (r + 1) * h) - y));
    });
  }
}
