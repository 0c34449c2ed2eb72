// The headline: what was learned and how far it holds, on a rail with the two radii of theory.

import { above, below, marks } from "explorer/canvas.js";

export function verdict(box, recording) {
  const { end, robust, start } = recording;
  const [low, high] = robust?.median ?? [null, null], theory = start.theory;
  const most = Math.max(0.9, 1.15 * (high ?? low ?? 0));
  box.classList.toggle("stale", !robust);
  if (!robust && !end && box.childElementCount) return; // until there is something new the old one stands, pale
  const part = (name, className, text = "") => Object.assign(document.createElement(name), { className, textContent: text });
  const learned = part("div", "learned", end ? `learned: ${end.verdict}` : "training …");
  const radius = part("div", "", "at the end of training half of the points hold to ");
  const number = low === null ? "…" : high !== null && high - low < 0.005 ? below(low, 2) : `${below(low, 2)} – ${high === null ? "∞" : above(high, 2)}`;
  radius.append(part("span", "radius", number));
  const meter = part("div", "meter"), bar = part("div", "bar");
  meter.append(part("div", "rail"), bar);
  bar.style.width = box.dataset.width ?? "0";
  box.dataset.width = `${(100 * (low ?? 0)) / most}%`;
  if (low === null) box.dataset.width = bar.style.width;
  requestAnimationFrame(() => { bar.style.width = box.dataset.width; });
  const named = marks(theory);
  for (const [name, label] of named) {
    const mark = part("div", "mark");
    mark.style.left = `${(100 * theory[name]) / most}%`;
    mark.append(part("span", named.length > 1 ? name : "both", `${label} = ${theory[name].toFixed(2)}`));
    meter.append(mark);
  }
  box.replaceChildren(learned, radius, meter);
  if (robust && robust.points < robust.of) box.append(part("div", "quiet", `${robust.points} of ${robust.of} fresh points so far`));
}
