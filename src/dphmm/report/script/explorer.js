/* The controls: which subject, which step, which layers, around which state. */
const by = (id) => document.getElementById(id);
const round = (value, digits = 3) => Number(value.toPrecision(digits)).toLocaleString("en");
const length = (value) => (space.metres ? `${Math.round(value).toLocaleString("en")}\u00a0m` : round(value));
const counted = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

function clock(subject, row) {
  const moment = subject.t && new Date(subject.t[row] * 1000);
  if (!moment || Number.isNaN(moment.getTime())) return "";
  return moment.toISOString().replace("T", " ").replace(/:[^:]*$/, " UTC");
}

/* Sums so far, null from where they have no bound or are beyond all numbers. */
function sums(values) {
  let total = 0;
  return values.map((value) => {
    total = value === null || total === null || !Number.isFinite(total + value) ? null : total + value;
    return total;
  });
}

/* A running mean, where so many steps would be a smear. */
const reach = (n) => Math.floor(n / 144);

function smooth(values) {
  const w = reach(values.length);
  return values.map((_, row) => {
    const near = values.slice(Math.max(0, row - w), row + w + 1).filter((value) => value !== null);
    return near.length ? near.reduce((sum, value) => sum + value, 0) / near.length : null;
  });
}

const explorer = {
  subject: subjects[0], row: 0, around: "estimate", picked: 0, timer: null, cursors: [],
  layers: { truth: true, released: true, estimate: true, smoothed: true, hull: true, edges: space.states <= 60 },

  start() {
    for (const [at, subject] of subjects.entries()) by("subject").append(new Option(subject.name, at));
    by("subject").onchange = () => this.choose(subjects[by("subject").value]);
    by("step").oninput = () => this.go(Number(by("step").value));
    by("back").onclick = () => this.go(this.row - 1);
    by("forward").onclick = () => this.go(this.row + 1);
    by("play").onclick = () => this.play(this.timer === null);
    by("step").onkeydown = (event) => {
      if (event.key !== " ") return;
      event.preventDefault();
      this.play(this.timer === null);
    };
    for (const box of document.querySelectorAll("[data-layer]")) {
      box.checked = this.layers[box.dataset.layer];
      box.onchange = () => { this.layers[box.dataset.layer] = box.checked; this.show(); };
    }
    if (by("around")) by("around").onchange = () => { this.around = by("around").value; this.show(); };
    for (const axis of ["across", "up"]) {
      const choice = by(axis);
      if (choice) choice.onchange = () => { map[axis] = Number(choice.value); this.show(); };
    }
    if (data.timeline && space.drawn) this.pickable();
    let waiting = null;
    window.onresize = () => { clearTimeout(waiting); waiting = setTimeout(() => this.choose(this.subject, this.row), 100); };
    by("explorer").hidden = false;
    document.documentElement.classList.add("interactive");
    this.choose(subjects[0]);
  },

  /* A state of one's own: by a click, or with the arrow keys while the map has the focus. */
  pickable() {
    const pick = (state) => {
      [this.picked, this.around] = [state, "picked"];
      by("around").value = "picked";
      this.show();
    };
    map.element.onclick = (event) => pick(map.nearest(event.offsetX, event.offsetY));
    map.element.onkeydown = (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way) return;
      event.preventDefault();
      pick(map.beside(this.state(), ...way));
    };
  },

  choose(subject, row = 0) {
    this.subject = subject;
    by("step").max = subject.step.length - 1;
    this.charts();
    this.go(row);
  },

  go(row) {
    this.row = Math.min(Math.max(row, 0), this.subject.step.length - 1);
    by("step").value = this.row;
    this.show();
  },

  play(on) {
    clearInterval(this.timer);
    this.timer = null;
    if (on) {
      if (this.row >= this.subject.step.length - 1) this.row = -1;
      this.timer = setInterval(() => {
        if (this.row >= this.subject.step.length - 1) this.play(false);
        else this.go(this.row + 1);
      }, 250);
    }
    by("play").textContent = on ? "Pause" : "Play";
    if (!on) this.say();
  },

  plan() {
    return this.subject.plan && planOf(this.subject.plan[this.row]);
  },

  /* The state that the hull is drawn around: for a place, the one nearest to it. */
  state() {
    if (this.around === "picked") return this.picked;
    const kind = this.around === "released" ? "z" : this.around;
    if (kind === "estimate" && this.subject.state[this.row] >= 0) return this.subject.state[this.row];
    const steps = answerAt(this.subject, kind, this.row);
    return steps ? map.nearest(...map.at(steps)) : this.subject.state[this.row];
  },

  show() {
    const { subject, row, layers } = this, plan = this.plan();
    const view = { subject, row, layers, plan };
    if (plan && space.drawn) {
      map.layout();
      view.state = surrogatesOf(plan.set)[Math.max(0, this.state())];
      view.hidden = hiding(plan, view.state);
      [view.hull, view.centre] = [view.hidden.hull, answerOf(view.state)];
    } else if (plan) {
      [view.hull, view.centre] = [data.timeline.hulls[plan.hulls[0]], answerAt(subject, "estimate", row).map(Math.round)];
    }
    map.show(view);
    for (const cursor of this.cursors) cursor(row);
    const clockwise = clock(subject, row);
    by("when").textContent = `Step ${subject.step[row]} (${row + 1} of ${subject.step.length})${clockwise && `, ${clockwise}`}`;
    by("step").setAttribute("aria-valuetext", by("when").textContent);
    this.facts(view);
    if (this.timer === null) this.say();
  },

  facts({ subject, row, plan, state, hidden, crowded }) {
    const labels = space.kind === "labels" && space.drawn;
    const place = (steps) => {
      const values = inUnits(steps);
      if (labels) return nameOf(Math.round(values[0]));
      const way = (metres, ahead, back) => `${length(Math.abs(metres))} ${metres < 0 ? back : ahead}`;
      if (space.metres) return `${way(values[0], "east", "west")}, ${way(values[1], "north", "south")}`;
      return values.map((v) => round(v, 4)).join(", ");
    };
    const error = (kind) => {
      const off = subject.off && subject.off[kind][row];
      if (typeof off !== "number") return "";
      return labels ? `: ${off ? "wrong" : "right"}` : `: ${length(off)} off`;
    };
    const rows = [["released", `${place(answerAt(subject, "z", row))}${error("z")}`]];
    rows.push(["likeliest state", data.names[subject.called[row]]]);
    rows.push(["Bayes estimate", `${place(answerAt(subject, "estimate", row))}${error("estimate")}`]);
    const later = answerAt(subject, "smoothed", row);
    if (later) rows.push(["with later answers", `${place(later)}${error("smoothed")}`]);
    if (subject.truth) rows.push(["truth", this.truly(subject, row, place)]);
    if (plan) rows.push(...this.hidingFacts(plan, state, hidden));
    if (crowded) rows.push(["policy edges", "too many to draw: those of this state are shown"]);
    const upTo = (values) => sums(values.slice(0, row + 1)).pop();
    const spent = upTo(subject.cost);
    rows.push(["epsilon", `${round(subject.epsilon[row], 6)}; sum so far ${round(upTo(subject.epsilon), 6)}`]);
    rows.push(["cost", subject.cost[row] === null ? "unbounded" : `${round(subject.cost[row], 4)}; sum so far ${spent === null ? "unbounded" : round(spent, 6)}`]);
    if (plan) rows.push(["plan", `${plan.hash}, ${plan.mechanism}`]);
    const list = by("facts");
    list.replaceChildren();
    for (const [name, value] of rows) {
      const [term, told] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, told.textContent] = [name, value];
      list.append(term, told);
    }
  },

  /* The name of the true state, where states are not places. */
  truly(subject, row, place) {
    const steps = answerAt(subject, "truth", row);
    if (!steps) return "a state that the model does not have";
    const outside = subject.outside[row] ? ", in no state of the model" : "";
    if (subject.truly && space.kind === "labels") return data.names[subject.truly[row]];
    return subject.truly && !space.metres ? `${data.names[subject.truly[row]]}, at ${place(steps)}` : place(steps) + outside;
  },

  hidingFacts(plan, state, hidden) {
    const [least, mean, most] = plan.degrees;
    const rows = [["degree of protection", least === most ? `${least}` : `${least} to ${most}, ${mean} on average`]];
    if (plan.exposed) rows.push(["exposed", counted(plan.exposed, "state")]);
    if (!hidden) return rows;
    const sizes = [plan.support, plan.set].map((number) => maskOf(number).reduce((sum, one) => sum + one, 0));
    rows.unshift(["possible states", sizes[0] === sizes[1] ? `${sizes[0]}` : `${sizes[0]}, planned on ${sizes[1]}`]);
    const joined = hidden.joined.length ? ` and ${hidden.joined.length} by protection` : "";
    const edges = policy ? `${counted(hidden.edges.length, "policy neighbour")}${joined}` : "too many policy edges for a page";
    rows.push([`around ${nameOf(state)}`, `${edges}; hidden among ${counted(hidden.among.length, "state")}`]);
    return rows;
  },

  /* One sentence for those who do not see the map. */
  say() {
    const told = `${by("when").textContent}: likeliest state ${data.names[this.subject.called[this.row]]}.`;
    if (by("said").textContent !== told) by("said").textContent = told;
  },

  charts() {
    const { subject } = this, rows = [...subject.step.keys()];
    this.cursors = [];
    if (subject.plan) {
      const degrees = subject.plan.map((number) => data.timeline.plans[number][6]);
      const [low, mean, high] = [0, 1, 2].map((j) => degrees.map((degree) => degree[j]));
      const lines = [{ style: "degree", values: mean }];
      this.cursors.push(chart(by("degrees"), subject, { lines, band: { low, high }, label: by("degrees-words").textContent }));
    }
    if (subject.truth) {
      const over = 2 * reach(rows.length) + 1, words = by("errors-words");
      words.textContent = `${words.dataset.words}${over > 1 ? ` Running means over ${over} steps.` : ""}`;
      const errors = (kind) => rows.map((row) => (subject.outside[row] ? null : subject.off[kind][row]));
      const kinds = KINDS.filter((kind) => kind !== "truth" && subject[kind]);
      const lines = kinds.map((kind) => ({ style: STYLE[kind], values: smooth(errors(kind)) }));
      this.cursors.push(chart(by("errors"), subject, { lines, label: by("errors-words").textContent }));
    }
    const lines = [{ style: "epsilon", values: sums(subject.epsilon) }, { style: "cost", values: sums(subject.cost) }];
    this.cursors.push(chart(by("spending"), subject, { lines, label: by("spending-words").textContent }));
  },
};

explorer.start();
