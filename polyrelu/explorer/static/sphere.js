// Neurons on the sphere: w_j/|w_j| in the span of three centres; a neuron off that span lies inside.

import { basis } from "explorer/recording.js";
import { diamond, dot, ink, layered, side, triangle } from "explorer/canvas.js";

export class Sphere {
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed, yaw: 1.05, pitch: 0.5 });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.from = [event.clientX, event.clientY];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.from) return;
      this.turn((this.from[0] - event.clientX) / 120, (event.clientY - this.from[1]) / 120);
      this.from = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { this.from = null; });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (step) { event.preventDefault(); this.turn(...step); }
    });
  }

  turn(yaw, pitch) {
    this.yaw += yaw;
    this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + pitch));
    this.changed();
  }

  eye() {
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    return ([a, b, c = 0]) => [-sy * a + cy * b, -sp * cy * a - sp * sy * b + cp * c, cp * cy * a + cp * sy * b + sp * c];
  }

  draw(recording, moment, axes, upTo) {
    const { clientWidth: width, clientHeight: height } = this.canvas, last = Math.min(Math.ceil(upTo), recording.last);
    const R = Math.max(1, Math.min(width, height) / 2 - 26), look = this.eye(), where = basis(recording, axes);
    const place = (v) => { const [a, b, depth] = look(v); return [width / 2 + R * a, height / 2 - R * b, depth]; };
    const { pen } = layered(this.canvas, [recording, last, this.yaw, this.pitch, ...axes], (under) => {
      this.globe(under, place, R, width, height);
      this.trails(under, recording, place, where, last);
      this.data(under, recording, place, where);
    });
    this.neurons(pen, recording, moment, place, where);
    this.marks(pen, recording, place, where);
  }

  globe(pen, place, R, width, height) {
    const shade = pen.createRadialGradient(width / 2 - R / 3, height / 2 - R / 3, R / 8, width / 2, height / 2, R);
    shade.addColorStop(0, ink.ground); shade.addColorStop(1, ink.panel);
    dot(pen, width / 2, height / 2, R); pen.fillStyle = shade; pen.fill();
    pen.strokeStyle = ink.line; pen.lineWidth = 1; pen.stroke();
    for (let axis = 0; axis < 3; axis++) for (const front of [false, true]) {
      pen.beginPath();
      let drawing = false;
      for (let k = 0; k <= 72; k++) {
        const v = [0, 0, 0];
        v[(axis + 1) % 3] = Math.cos(k * Math.PI / 36); v[(axis + 2) % 3] = Math.sin(k * Math.PI / 36);
        const [x, y, depth] = place(v);
        if ((depth >= 0) === front) { drawing ? pen.lineTo(x, y) : pen.moveTo(x, y); drawing = true; } else drawing = false;
      }
      pen.globalAlpha = front ? 1 : 0.35; pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  data(pen, recording, place, where) {
    recording.start.labels.forEach((label, i) => {
      const [x, y, depth] = place(where(recording.points, i));
      pen.globalAlpha = depth < 0 ? 0.12 : 0.3; pen.fillStyle = side(label);
      dot(pen, x, y, 1.3); pen.fill();
    });
    pen.globalAlpha = 1;
  }

  trails(pen, recording, place, where, last) {
    if (last < 1 || recording.frames[0].cosines === recording.frames[last].cosines || recording.width > 300) return;
    const stride = Math.max(1, Math.floor(last / 40));
    for (const sign of [1, -1]) {
      pen.beginPath();
      for (let j = 0; j < recording.width; j++) {
        if (Math.sign(recording.frames[last].readOut[j]) !== sign) continue;
        for (let i = 0; i <= last; i += stride) {
          const [x, y] = place(where(recording.frames[i].cosines, j));
          i === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y);
        }
      }
      pen.strokeStyle = side(sign); pen.globalAlpha = 0.16; pen.lineWidth = 1; pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  neurons(pen, recording, moment, place, where) {
    const { most, span } = recording.range, found = [];
    for (let j = 0; j < recording.width; j++)
      found.push([...place(where(moment.cosines, j)), Math.max(0, Math.min(1, 1 + (moment.logs[j] - most) / span)), moment.readOut[j]]);
    found.sort((a, b) => a[2] - b[2]);
    for (const [x, y, depth, size, sign] of found) {
      pen.globalAlpha = (0.35 + 0.6 * size) * (depth < -0.05 ? 0.45 : 1);
      (sign < 0 ? triangle : dot)(pen, x, y, 1.8 + 5.2 * size ** 1.5);
      pen.fillStyle = side(sign); pen.fill();
      pen.strokeStyle = ink.ground; pen.lineWidth = 0.7; pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  marks(pen, recording, place, where) {
    const { names, sides } = recording.start;
    pen.textAlign = "center"; pen.textBaseline = "middle";
    const mark = (column, shape, colour, name, radius) => {
      const v = where(recording.gram, column), far = Math.hypot(...v);
      if (far < 0.25) return;
      const [x, y, depth] = place(v), [ox, oy] = place([0, 0, 0]), off = Math.hypot(x - ox, y - oy);
      const [lx, ly] = off > 40 ? [x + (24 * (x - ox)) / off, y + (20 * (y - oy)) / off] : [x, y - 20];
      pen.globalAlpha = depth < -0.05 ? 0.5 : 1;
      shape(pen, x, y, radius); pen.strokeStyle = colour; pen.lineWidth = 2.2; pen.stroke();
      pen.lineWidth = 3; pen.strokeStyle = ink.panel; pen.strokeText(name, lx, ly);
      pen.fillStyle = colour; pen.fillText(name, lx, ly);
    };
    const many = (sign) => sides.filter((one) => Math.sign(one) === sign).length > 1; // else its centre is its average
    names.forEach((name, k) => mark(k, dot, ink.centre, name, 9));
    if (many(1)) mark(recording.axes, diamond, ink.average, "ø+", 11);
    if (many(-1)) mark(recording.axes + 1, diamond, ink.average, "ø−", 11);
    pen.globalAlpha = 1;
  }
}
