// Sliders for everything a flow is made of, and the presets.

const NOT_FOR_DIGITS = ["positive", "negative", "alpha", "dim", "samples"];
const BY_RATIO = ["dim", "samples", "width"]; // sliders on which equal ways are equal factors
const CURVED = [...BY_RATIO, "log10_scale"]; // they stand at t, from 0 to 1; all others at their value

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// Value of a slider that stands at t, and back.
function value(limit, t) {
  let found = t;
  if (BY_RATIO.includes(limit.name)) found = limit.least * (limit.most / limit.least) ** t;
  if (limit.name === "log10_scale") found = limit.most + (limit.least - limit.most) * (1 - t) ** 3;
  const step = limit.step || 1e-9;
  return Number((Math.round(found / step) * step).toFixed(6));
}

function place(limit, found) {
  if (BY_RATIO.includes(limit.name)) return Math.log(found / limit.least) / Math.log(limit.most / limit.least);
  if (limit.name === "log10_scale") return 1 - Math.cbrt((found - limit.most) / (limit.least - limit.most));
  return found;
}

export class Controls {
  constructor(about, changed, chosen) {
    this.about = about;
    this.changed = changed;
    this.setting = { ...about.presets[0].setting };
    this.inputs = {};
    for (const limit of about.limits) limit.name === "p" ? this.power(limit) : this.row(limit);
    for (const [name, options] of Object.entries(about.choices)) this.choice(name, options);
    const nav = document.querySelector("#presets");
    for (const preset of about.presets) {
      const button = element("button", { type: "button", "data-preset": preset.id, "aria-pressed": "false" }, preset.name);
      button.addEventListener("click", () => chosen(preset));
      nav.append(button);
    }
    if (about.saved_run) {
      const button = element("button", { type: "button", "data-preset": "saved-run", "aria-pressed": "false" }, about.saved_run);
      button.addEventListener("click", () => chosen(null));
      nav.prepend(button);
    }
  }

  power(limit) {
    const box = document.querySelector("#power"), label = element("label", { for: "p" }, "power p of the ReLU");
    const output = element("output", { for: "p" });
    const slider = element("input", { id: "p", type: "range", min: limit.least, max: limit.most, step: limit.step });
    const ends = element("div", { class: "ends" });
    ends.append(element("span", {}, "1: ReLU"), element("span", {}, "drag me to 3"), element("span", {}, "5"));
    label.append(output);
    box.append(label, slider, ends);
    slider.addEventListener("input", () => this.set("p", Number(slider.value)));
    this.inputs.p = (found) => { slider.value = found; output.textContent = found.toFixed(2); };
  }

  row(limit) {
    const box = element("div", { class: "row" }), id = `set-${limit.name}`;
    const range = CURVED.includes(limit.name) ? { min: 0, max: 1, step: 0.005 } : { min: limit.least, max: limit.most, step: limit.step || "any" };
    const slider = element("input", { type: "range", ...range, "aria-label": limit.meaning, "data-name": limit.name });
    const number = element("input", { id, type: "number", min: limit.least, max: limit.most, step: limit.step || "any" });
    box.append(element("label", { for: id }, limit.meaning), slider, number);
    document.querySelector("#sliders").append(box);
    slider.addEventListener("input", () => this.set(limit.name, value(limit, Number(slider.value))));
    number.addEventListener("change", () => this.set(limit.name, Number(number.value)));
    this.inputs[limit.name] = (found) => {
      if (document.activeElement !== slider) slider.value = place(limit, found);
      number.value = found;
      slider.setAttribute("aria-valuetext", found);
      const idle = this.setting.data === "digits" && NOT_FOR_DIGITS.includes(limit.name);
      slider.disabled = number.disabled = idle;
    };
  }

  choice(name, options) {
    const box = element("div", { class: "row" }), id = `set-${name}`, select = element("select", { id });
    for (const option of options) select.append(element("option", { value: option }, option));
    box.append(element("label", { for: id }, { start: "shape of the start", labels: "labels", data: "data" }[name]), select);
    document.querySelector("#sliders").append(box);
    select.addEventListener("change", () => this.set(name, select.value));
    this.inputs[name] = (found) => { select.value = found; };
  }

  set(name, found) {
    if (found === this.setting[name]) return;
    this.setting = { ...this.setting, [name]: found };
    const least = this.setting.positive + this.setting.negative; // every sub-class needs a direction
    if (this.setting.dim < least && this.setting.data !== "digits") this.setting.dim = least;
    this.show(this.setting);
    this.changed(this.setting);
  }

  show(setting, preset = null) {
    this.setting = { ...setting };
    for (const [name, write] of Object.entries(this.inputs)) write(this.setting[name]);
    for (const button of document.querySelectorAll("[data-preset]"))
      button.setAttribute("aria-pressed", String(button.dataset.preset === preset));
  }
}

// The setting in the address, so that reloading the page (or sending it on) shows the same picture.
export function toAddress(setting, usual, preset) {
  if (setting === "saved_run") return history.replaceState(null, "", location.pathname);
  const words = Object.entries(setting).filter(([name, found]) => found !== usual[name]).map(([name, found]) => `${name}=${found}`);
  history.replaceState(null, "", `#${(preset ? [`preset=${preset}`] : words).join("&")}`);
}

export function fromAddress(about) {
  const words = new URLSearchParams(location.hash.slice(1)), usual = about.presets[0].setting;
  const preset = about.presets.find((one) => one.id === words.get("preset"));
  if (preset) return { setting: preset.setting, preset };
  const setting = { ...usual };
  for (const [name, text] of words)
    if (name in setting) setting[name] = typeof setting[name] === "number" ? Number(text) : text;
  return { setting, preset: null };
}
