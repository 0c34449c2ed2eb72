// What is being seen, in plain words: which theorem it shows, and which measured claims. Every sentence is chosen by
// what was set and found, so that it is true of what is shown.

const QUIET = 0.2; // noise up to which radii of the theorems are nearly met

const training = () => ({
  title: "Training",
  text: ["Every mark on the sphere is the direction of a neuron, the larger the more it counts. ○ are sub-class centres, ◆ the averages of the two classes."],
  claims: ["B13"],
});

const averages = ({ p, alpha, accuracy }) => ({
  title: "The neurons learned class averages",
  text: [
    "The neurons that count turned to the average of their class (◆), where no single sub-class lies.",
    accuracy === 1 && "The classifier is right on every training point.",
    p === 1 && alpha <= QUIET && "But one small push against all sub-classes at once breaks it at about 1/√K.",
    p === 1 && "Min & Vidal 2024, Theorem 1(a) and Conjecture 1 for p = 1: more hidden sub-classes, less robust.",
  ],
  claims: ["B4", "B6", "A3", "A4"],
});

const centres = ({ p, alpha, radius }) => ({
  title: "The neurons learned the sub-class centres",
  text: [
    "The neurons that count went each to one sub-class centre (○).",
    alpha <= QUIET && radius > 0.63 && "The ball in which the decision holds reaches nearly √2/2, the best radius for orthonormal centres, whatever the number of sub-classes.",
    alpha > QUIET && "With so much noise points lie far from their centres, and the radii of the theorems are only a rough guide.",
    p < 2 && "Below p = 2 a perturbation can still combine several opposite centres: the more there are, the smaller the radius.",
    p > 2 && "Min & Vidal 2024, Theorem 1(b); Min & Vidal 2025, Theorem 1: gradient flow with p > 2 gets there from small weights.",
  ],
  claims: ["B5", "B18", "A5", "A7"],
});

const mixture = () => ({
  title: "Between averages and centres",
  text: [
    "The neurons that count point at neither one centre nor the average of all, but between several, or some at one and some at the other.",
    "p = 2 is the threshold of the theory: the classifier with one neuron for each centre breaks, at a centre, at min over m of 1/√(1 + m^(2/p−1)), which is √2/2 from p = 2 on.",
  ],
  claims: ["A6", "B18"],
});

const neither = () => ({
  title: "Neither averages nor centres",
  text: ["The neurons that count lie largely outside the span of the centres: they fit the noise of single points, or stayed near their initial directions."],
  claims: ["B11", "B13"],
});

const nothing = () => ({
  title: "No comparison is possible",
  text: ["What the neurons learned cannot be compared with centres and averages here: no neuron that counts has a positive part on centres of its own class."],
  claims: ["B23"],
});

const alone = () => ({
  title: "One sub-class in each class",
  text: ["Its centre is the average of its class: there is nothing to choose, and 1/√K = √2/2 for K = 2. Add sub-classes to see the difference."],
  claims: ["A4", "A6"],
});

const unfinished = ({ status, message, passes }) => ({
  title: "Training did not get to the end",
  text: [
    status === "BUDGET" ? `The flow was ended after ${passes} passes over the data, as many as this page spends, before the loss was small.` : message,
    "That happens with too few neurons for the sub-classes, none that some of them activate, or noise that cannot be separated. What is shown is the last state.",
  ],
  claims: ["B23"],
});

const large = ({ p }) => ({
  title: "A large start: the neurons hardly turn",
  text: [
    "With large initial weights the loss is small before the directions have settled at centres or averages: the net fits the data with directions close to the initial ones.",
    p > 2 && `So p = ${p} does not make it find the centres.`,
    "The theorems need small weights. Drag the initial scale down to see the two phases appear.",
  ],
  claims: ["B11", "B13"],
});

const fooled = () => ({
  title: "Why PGD is fooled",
  text: [
    "At the end of training, from the centre: orange is the path of projected gradient descent that starts at the point itself, as in the published curves. relu(z)^p with p > 2 is flat near zero, so from there no slope leads to the other class. It only shortens the point and stops inside its allowed ball (dashed) without success.",
    "The thin line with a cross leads to the nearest break that was found: much closer, at about √2/2, and proven to be the nearest up to the bracket. A curve drawn by that attack stays at 100 % where the truth is 0 %.",
  ],
  claims: ["A10", "B7", "I5"],
});

const fine = ({ p, alpha, verdict, several }) => ({
  title: "Fine labels: trained on the sub-classes",
  text: [
    `Here the net is trained to name the sub-class, with p = ${p}; asked for the class, the outputs of its sub-classes are added up.`,
    verdict === "single centres" && "The neurons that count learned one centre each.",
    verdict === "single centres" && p === 1 && alpha <= QUIET && several && "At a centre it breaks at about 1/√(1 + m), with m sub-classes in the other class: farther than class averages do (1/√K), though not at √2/2.",
    "Li et al. 2025, Theorem 4.7 and Fig. 2b.",
  ],
  claims: ["C2", "C5", "I16"],
});

const digits = ({ labels }) => ({
  title: "A head on digits: even or odd",
  text: [
    labels === "fine" ? "600 small images of digits. The net is trained to name the digit; asked for even (+) or odd (−), the outputs of the digits are added up."
      : "600 small images of digits, labelled only even (+) or odd (−); the sub-classes are the ten digits, which the net does not know.",
    "Their means are not orthogonal, so averages and centres are less far apart than in theory. Drag p to compare.",
    "Distances are l2, in pixels of brightness 0 to 1; the theorems' marks do not apply.",
  ],
  claims: ["D5", "D10", "C10"],
});

const savedRun = ({ samples, drawn }) => ({
  title: "Your own run",
  text: [
    "The timeline is the one that was recorded. A folder keeps the directions of the neurons at the end only, so sphere, matrix and planes show the final net at every time. Move any slider to train here instead.",
    samples > drawn && `It was trained on ${samples} points; the averages (◆) and dots shown are of ${drawn} points of the same mixture.`,
  ],
  claims: ["B4", "B5"],
});

function chosen(recording) {
  const { end, start, preset } = recording, { setting } = start, verdict = end?.verdict ?? "";
  if (start.saved_run) return savedRun;
  if (!end) return training;
  if (end.status !== "LOSS") return unfinished;
  if (setting.data === "digits") return digits;
  if (setting.labels === "fine") return fine;
  if (preset?.pgd) return fooled;
  if (setting.log10_scale > -1.5 && end.aligned === null) return large;
  if (setting.positive === 1 && setting.negative === 1) return alone;
  return { "class averages": averages, "single centres": centres, "a mixture of both": mixture }[verdict] ?? (verdict.startsWith("neither") ? neither : nothing);
}

// What sentences depend on.
function facts({ end, robust, start }) {
  const { p, alpha, labels, positive, negative } = start.setting;
  return {
    p, alpha, labels, several: positive > 1 && negative > 1, radius: robust?.median[0] ?? 0, samples: start.samples, drawn: start.drawn,
    verdict: end?.verdict, status: end?.status, message: end?.message, accuracy: end?.accuracy, passes: Math.round(end?.evaluations ?? 0),
  };
}

export function write(box, recording, linked) {
  const found = chosen(recording)(facts(recording));
  const paragraphs = found.text.filter(Boolean).map((text) => Object.assign(document.createElement("p"), { textContent: text }));
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
