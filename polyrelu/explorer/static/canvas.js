// A canvas that is as sharp as the screen, and the colours of the page for drawing.

export const ink = {};

const NAMES = ["ground", "panel", "ink", "quiet", "line", "accent", "positive", "negative", "average", "centre", "plus", "minus"];

export function readColours() {
  const probe = document.body.appendChild(document.createElement("i"));
  for (const name of NAMES) {
    probe.style.color = `var(--${name})`;
    ink[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}

// The drawing context, cleared, with one unit = one CSS pixel.
export function fresh(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  return { pen: ready(canvas, ratio), width, height, ratio };
}

function ready(canvas, ratio) {
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.font = "12px system-ui, sans-serif";
  pen.lineJoin = "round";
  return pen;
}

// The same, on top of what `paint` draws; that is drawn anew only when something in `key` changed.
export function layered(canvas, key, paint) {
  const { pen, width, height, ratio } = fresh(canvas), whole = [...key, width, height, ratio, ink.ground];
  if (!canvas.kept || canvas.kept.key.some((one, k) => one !== whole[k])) {
    const image = canvas.kept?.image ?? document.createElement("canvas");
    Object.assign(image, { width: canvas.width, height: canvas.height });
    paint(ready(image, ratio), width, height);
    canvas.kept = { key: whole, image };
  }
  pen.drawImage(canvas.kept.image, 0, 0, width, height);
  return { pen, width, height };
}

export const side = (sign) => (sign < 0 ? ink.negative : ink.positive);

export function dot(pen, x, y, r) { pen.beginPath(); pen.arc(x, y, r, 0, 2 * Math.PI); }

export function triangle(pen, x, y, r) {
  pen.beginPath();
  for (let k = 0; k < 3; k++) pen.lineTo(x + 1.25 * r * Math.sin(k * 2.0944), y + 1.25 * r * Math.cos(k * 2.0944));
  pen.closePath();
}

export function diamond(pen, x, y, r) {
  pen.beginPath();
  pen.moveTo(x, y - r); pen.lineTo(x + r, y); pen.lineTo(x, y + r); pen.lineTo(x - r, y); pen.closePath();
}

export const power = (exponent) => String(exponent).replace("-", "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);

// 1234 -> 1.2e3 as a person reads it, from its natural log.
export function fromLog(log) {
  if (log === null || log === -Infinity) return "0";
  const ten = log / Math.LN10;
  if (ten > -3 && ten < 5) return String(Number(Math.exp(log).toPrecision(3)));
  const whole = Math.floor(ten);
  return `${(10 ** (ten - whole)).toFixed(1)}·10${power(whole)}`;
}

// A proven radius is never rounded up, a found one never down.
export const below = (value, digits) => (Math.floor(value * 10 ** digits + 1e-9) / 10 ** digits).toFixed(digits);
export const above = (value, digits) => (Math.ceil(value * 10 ** digits - 1e-9) / 10 ** digits).toFixed(digits);

// The radii of theory and their names; for K = 2 they are one.
export function marks(theory) {
  if (theory.average === undefined) return [];
  const one = Math.abs(theory.average - theory.centre) < 1e-9;
  return one ? [["centre", "1/√K = √2/2"]] : [["average", "1/√K"], ["centre", "√2/2"]];
}
