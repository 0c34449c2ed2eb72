// The current view as a picture, and as one file that plays without the server.

import { ink } from "explorer/canvas.js";

function hand(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function picture(title, lines) {
  const views = document.querySelector("#views"), canvases = [...views.querySelectorAll("canvas")], box = views.getBoundingClientRect();
  const left = box.left - views.scrollLeft, top = box.top - views.scrollTop; // of what may be scrolled away
  const ratio = window.devicePixelRatio || 1, head = 34 + 18 * lines.length;
  const whole = document.createElement("canvas");
  const boxes = canvases.map((canvas) => canvas.getBoundingClientRect());
  whole.width = Math.max(box.width, views.scrollWidth) * ratio;
  whole.height = (Math.max(...boxes.map((one) => one.bottom)) - top + head + 8) * ratio;
  const pen = whole.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = ink.ground; pen.fillRect(0, 0, whole.width, whole.height);
  pen.fillStyle = ink.ink; pen.font = "600 16px system-ui, sans-serif"; pen.fillText(title, 12, 24);
  pen.font = "13px system-ui, sans-serif"; pen.fillStyle = ink.quiet;
  lines.forEach((line, k) => pen.fillText(line, 12, 44 + 18 * k));
  pen.fillStyle = ink.ink;
  for (const caption of document.querySelectorAll("#views figcaption b")) {
    const one = caption.getBoundingClientRect();
    pen.fillText(caption.textContent, one.left - left, one.top - top + head + 14);
  }
  canvases.forEach((canvas, k) => pen.drawImage(canvas, boxes[k].left - left, boxes[k].top - top + head, boxes[k].width, boxes[k].height));
  whole.toBlob((blob) => hand(blob, "polyrelu.png"));
}

export const page = (text) => hand(new Blob([text], { type: "text/html" }), "polyrelu.html");
