// What is being seen, in plain words: which theorem it shows, and which measured claims.

const AVERAGES = {
  title: "The neurons learned class averages",
  text: [
    "Every neuron that counts turned to the average of its class (◆), where no single sub-class lies. The classifier is right on clean points, but one small push against all sub-classes at once breaks it at about 1/√K.",
    "Min & Vidal 2024, Theorem 1(a) and Conjecture 1 for p = 1: more hidden sub-classes, less robust.",
  ],
  claims: ["B4", "B6", "A3", "A4"],
};
const CENTRES = {
  title: "The neurons learned the sub-class centres",
  text: [
    "The same neurons, from the same start, went each to one sub-class centre (○). The ball in which the decision holds grew to nearly √2/2, the best that any classifier can do, whatever the number of sub-classes.",
    "Min & Vidal 2024, Theorem 1(b); Min & Vidal 2025, Theorem 1: gradient flow with p > 2 gets there from small weights.",
  ],
  claims: ["B5", "B18", "A5", "A7"],
};
const MIXTURE = {
  title: "Neither averages nor centres",
  text: [
    "Some neurons point at single centres, some between several. p = 2 is the threshold: below it averages win, above it centres do.",
    "At a centre F^(p) breaks at min over m of 1/√(1 + m^(2/p−1)): √2/2 from p = 2 on.",
  ],
  claims: ["A6", "B18"],
};
const ALONE = {
  title: "One sub-class in each class",
  text: ["Its centre is the average of its class: there is nothing to choose, and 1/√K = √2/2 for K = 2. Add sub-classes to see the difference."],
  claims: ["A4", "A6"],
};
const UNFINISHED = {
  title: "Training did not get to the end",
  text: ["The flow stopped before the loss was small: too few neurons for the sub-classes, none that some of them activate, or noise that cannot be separated. What is shown is the last state."],
  claims: ["B23"],
};
const LARGE = {
  title: "A large start: the neurons hardly turn",
  text: [
    "With large initial weights the loss falls before the directions change: the net fits the data with the random directions it was born with, and stays fragile although p = 3.",
    "The theorems need small weights. Drag the initial scale down to see the two phases appear.",
  ],
  claims: ["B11", "B13"],
};
const FOOLED = {
  title: "Why PGD is fooled",
  text: [
    "Orange is the way of projected gradient descent that starts at the point itself, as in the published curves: relu(z)^p with p > 2 is flat near zero, so from there no slope leads to the other class. It only shortens the point and stops inside its allowed ball (dashed) without success.",
    "The black line is the true nearest break: much closer, at about √2/2, and proven to be the nearest up to the bracket. A curve drawn by that attack stays at 100 % where the truth is 0 %.",
  ],
  claims: ["A10", "B7", "I5"],
};
const FINE = {
  title: "Fine labels: told the sub-classes, a ReLU net learns them",
  text: [
    "Here the net is trained to name the sub-class, with p = 1. Every neuron learns one centre. Asked for the class (the outputs of its sub-classes added up) it holds farther than the net trained on class labels, though not to √2/2.",
    "Li et al. 2025, Theorem 4.7 and Fig. 2b.",
  ],
  claims: ["C2", "C5", "I16"],
};
const DIGITS = {
  title: "A head on digits: even or odd",
  text: [
    "600 small images of digits, labelled only even (+) or odd (−); the sub-classes are the ten digits, which the net is never told. Their means are not orthogonal, so the two ends are less far apart than in theory. Drag p and see the radius grow.",
    "Distances are in pixels of brightness 0 to 1; the theorems' marks do not apply.",
  ],
  claims: ["D5", "D10", "C10"],
};
const OWN = {
  title: "Your own run",
  text: [
    "The timeline is the one that was recorded. A folder keeps the directions of the neurons at the end only, so sphere, matrix and planes show the final net at every time. Move any slider to train here instead.",
  ],
  claims: ["B4", "B5"],
};

function chosen(recording, preset) {
  const { setting, own } = recording.start, verdict = recording.end?.verdict ?? "";
  if (own) return OWN;
  if (setting.data === "digits") return DIGITS;
  if (setting.labels === "fine") return FINE;
  if (preset?.pgd) return FOOLED;
  if (setting.log10_scale > -1.5 && !recording.end?.aligned) return LARGE;
  if (verdict.startsWith("undefined")) return ALONE;
  if (recording.end && recording.end.status !== "LOSS") return UNFINISHED;
  if (verdict === "class averages") return AVERAGES;
  if (verdict === "single centres") return CENTRES;
  return recording.end ? MIXTURE : null;
}

export function write(box, recording, preset, linked) {
  const found = chosen(recording, preset);
  if (!found) return;
  const paragraphs = found.text.map((text) => Object.assign(document.createElement("p"), { textContent: text }));
  const claims = document.createElement("p");
  claims.className = "quiet";
  claims.append("Measured claims: ");
  for (const id of found.claims) {
    const link = document.createElement(linked ? "a" : "span");
    if (linked) Object.assign(link, { href: `/claim/${id}`, target: "_blank", rel: "noopener" });
    link.textContent = id;
    claims.append(link, " ");
  }
  const title = Object.assign(document.createElement("h2"), { textContent: found.title });
  box.replaceChildren(title, ...paragraphs, claims);
  if (recording.start.command) {
    const command = document.createElement("p");
    command.className = "quiet";
    command.append("Same numbers: ", Object.assign(document.createElement("code"), { textContent: recording.start.command }));
    box.append(command);
  }
}
