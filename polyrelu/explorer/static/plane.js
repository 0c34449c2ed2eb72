// Decision regions in a plane through the origin, a point, the ball in which it is proven to hold, where it breaks.
// Without bias f(c x) = c^p f(x) for c > 0, so the sign of f depends on the angle alone: regions are sectors, exactly.

import { basis } from "explorer/recording.js";
import { dot, fresh, ink, layered } from "explorer/canvas.js";

const ANGLES = 720, STEP = (2 * Math.PI) / ANGLES;
const COS = Float64Array.from({ length: ANGLES }, (_, k) => Math.cos(STEP * k)), SIN = COS.map((_, k) => Math.sin(STEP * k));

// Sign of f at every angle, from the two products of each neuron with the plane.
function signs(recording, moment, p, product) {
  const most = Math.max(...moment.logs), value = new Float64Array(ANGLES);
  for (let j = 0; j < recording.width; j++) {
    const weight = moment.readOut[j] * Math.exp(moment.logs[j] - most);
    if (Math.abs(weight) < 1e-9) continue;
    const [a, b] = product(j);
    for (let k = 0; k < ANGLES; k++) {
      const t = a * COS[k] + b * SIN[k];
      if (t > 0) value[k] += weight * (p === 1 ? t : p === 3 ? t * t * t : t ** p);
    }
  }
  return value.map((one) => (Math.abs(one) < 1e-12 ? 0 : Math.sign(one)));
}

export class Plane {
  constructor(canvas, moved) {
    this.canvas = canvas;
    if (!moved) return;
    const go = (event) => {
      const box = canvas.getBoundingClientRect();
      moved(this.back(event.clientX - box.left, event.clientY - box.top));
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); go(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) go(event); });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step || !this.point) return;
      event.preventDefault();
      moved(this.point.map((one, k) => one + 0.03 * this.unit * step[k]));
    });
  }

  back(x, y) {
    const reach = 1.3 * this.unit;
    return [(x - this.cx) / this.scale, (this.cy - y) / this.scale].map((one) => Math.max(-reach, Math.min(reach, one)));
  }

  // The regions as `paint` draws them, kept while nothing in `key` changes; `low` is where the first axis lies.
  begin(unit, low, key, paint) {
    const { clientWidth: width, clientHeight: height } = this.canvas, scale = Math.min(width, height) / (2.25 * unit);
    Object.assign(this, { unit, scale, cx: width / 2 - 0.65 * unit * scale, cy: height / 2 - low * unit * scale });
    const at = ([a, b]) => [this.cx + a * this.scale, this.cy - b * this.scale];
    const { pen } = layered(this.canvas, [unit, ...key], (under) => { this.regions(under, at, paint()); this.cross(under, at); });
    return { pen, at };
  }

  regions(pen, at, found) {
    const far = 4 * this.unit;
    for (let k = 0; k < ANGLES; ) {
      let end = k + 1;
      while (end < ANGLES && found[end] === found[k]) end++;
      if (found[k]) {
        pen.beginPath(); pen.moveTo(...at([0, 0]));
        for (let i = k; i <= end; i += 1) {
          const angle = (2 * Math.PI * (i - 0.5)) / ANGLES;
          pen.lineTo(...at([far * Math.cos(angle), far * Math.sin(angle)]));
        }
        pen.closePath(); pen.fillStyle = found[k] > 0 ? ink.plus : ink.minus; pen.fill();
      }
      k = end;
    }
  }

  clear() { fresh(this.canvas); }

  // `here`: the reply is about this very moment; the ball of another one is dashed, and its break is not shown.
  flat(recording, moment, pair, point, label, reply, here, ball) {
    const { start } = recording, unit = Math.max(...pair.map((k) => start.lengths[k]));
    const where = basis(recording, pair), product = (j) => where(moment.cosines, j);
    const { pen, at } = this.begin(unit, -0.45, [moment.cosines, moment.logs, ...pair], () => signs(recording, moment, start.p, product));
    this.point = point;
    pen.textAlign = "left"; pen.textBaseline = "bottom";
    for (const k of pair) {
      const [x, y] = at(where(recording.gram, k).map((one) => one * start.lengths[k]));
      dot(pen, x, y, 6); pen.strokeStyle = ink.centre; pen.lineWidth = 2; pen.stroke();
      pen.fillStyle = ink.centre; pen.fillText(start.names[k], x + 8, y - 5);
    }
    if (here) this.mark(pen, at, point, label, reply, ball, reply.broken, reply.pgd?.flat);
    else this.mark(pen, at, point, label, reply, ball, null, null, [3, 4]);
  }

  toward(recording, moment, label, reply, cosines, ball) {
    const unit = Math.max(Math.hypot(...reply.toward.point), 0.3), product = (j) => [cosines[2 * j], cosines[2 * j + 1]];
    const { pen, at } = this.begin(unit, -0.3, [reply], () => signs(recording, moment, recording.start.p, product));
    this.mark(pen, at, reply.toward.point, label, reply, ball, reply.toward.broken, reply.pgd?.path);
  }

  cross(pen, at) {
    pen.beginPath();
    pen.moveTo(...at([-9, 0])); pen.lineTo(...at([9, 0])); pen.moveTo(...at([0, -9])); pen.lineTo(...at([0, 9]));
    pen.strokeStyle = ink.line; pen.lineWidth = 1; pen.stroke();
  }

  mark(pen, at, point, label, reply, ball, broken, path, dashes = []) {
    const [x, y] = at(point);
    if (ball > 0) {
      dot(pen, x, y, ball * this.scale); pen.fillStyle = ink.accent; pen.globalAlpha = dashes.length ? 0 : 0.22; pen.fill();
      pen.globalAlpha = 1; pen.strokeStyle = ink.accent; pen.lineWidth = 2;
      pen.setLineDash(dashes); pen.stroke(); pen.setLineDash([]);
    }
    if (path) {
      pen.setLineDash([4, 4]); dot(pen, x, y, reply.pgd.radius * this.scale); pen.strokeStyle = ink.average; pen.lineWidth = 1; pen.stroke();
      pen.setLineDash([]); pen.beginPath(); path.forEach((one) => pen.lineTo(...at(one)));
      pen.lineWidth = 2.5; pen.stroke();
      dot(pen, ...at(path.at(-1)), 4); pen.fillStyle = ink.average; pen.fill();
    }
    if (broken && reply.upper !== null && reply.right) {
      const [bx, by] = at(broken);
      pen.beginPath(); pen.moveTo(x, y); pen.lineTo(bx, by); pen.strokeStyle = ink.ink; pen.lineWidth = 1.5; pen.stroke();
      pen.beginPath(); pen.moveTo(bx - 5, by - 5); pen.lineTo(bx + 5, by + 5); pen.moveTo(bx - 5, by + 5); pen.lineTo(bx + 5, by - 5);
      pen.lineWidth = 2.5; pen.stroke();
    }
    dot(pen, x, y, 5); pen.fillStyle = label < 0 ? ink.negative : ink.positive; pen.fill();
    pen.strokeStyle = ink.ground; pen.lineWidth = 1.5; pen.stroke();
  }
}
