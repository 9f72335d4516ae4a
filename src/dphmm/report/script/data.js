/* The page's data, taken apart: src/dphmm/report/dataset.py and encoding.py put it together. */
const data = JSON.parse(document.getElementById("release-data").textContent);
const space = data.space, dimension = space.pitch.length;

function unrun(pairs) {
  const values = [];
  for (const [value, count] of pairs) for (let i = 0; i < count; i++) values.push(value);
  return values;
}

function ungap(coded) {
  const values = [coded.first];
  for (const gap of unrun(coded.gaps)) values.push(values[values.length - 1] + gap);
  return values;
}

function unmask(text) {
  const mask = new Uint8Array(space.states);
  let at = 0, inside = 0;
  for (const run of text ? text.split(" ") : []) {
    const length = parseInt(run, 36);
    if (inside) mask.fill(1, at, at + length);
    at += length;
    inside = 1 - inside;
  }
  return mask;
}

/* Of things that many steps share, the last few are kept as they were taken apart. */
function kept(make, most = 64) {
  const found = new Map();
  return (key) => {
    if (!found.has(key)) {
      if (found.size >= most) found.delete(found.keys().next().value);
      found.set(key, make(key));
    }
    return found.get(key);
  };
}

const maskOf = kept((number) => unmask(data.timeline.sets[number]));
const bodiesOf = kept((number) => unrun(data.timeline.bodies[number]));

function planOf(number) {
  const [hash, support, set, hulls, body, joins, degrees, exposed, mechanism, constant] = data.timeline.plans[number];
  return { number, hash, support, set, hulls, body, joins, degrees, exposed, mechanism, constant };
}

const subjects = data.subjects.map((coded) => ({
  name: coded.name,
  step: ungap(coded.step),
  t: coded.t && ungap(coded.t),
  z: coded.z, estimate: coded.estimate, smoothed: coded.smoothed, truth: coded.truth,
  state: unrun(coded.state), called: unrun(coded.called), truly: coded.truly && unrun(coded.truly),
  epsilon: unrun(coded.epsilon), cost: unrun(coded.cost),
  plan: coded.plan && unrun(coded.plan),
  off: coded.off, outside: coded.outside && unrun(coded.outside),
}));

/* The answer of a row in lattice steps, or null. */
function answerAt(subject, kind, row) {
  const axes = subject[kind];
  if (!axes || axes[0][row] === null) return null;
  const parts = kind === "z" ? 1 : space.parts;
  return axes.map((axis) => axis[row] / parts);
}

/* The corners of every state's cell in metres from its answer, where cells are polygons. */
const corners = space.shapes && unrun(space.shapes.of).map((number) => {
  const ring = space.shapes.rings[number], points = [];
  for (let i = 0; i < ring.length; i += 2) points.push([ring[i] * space.shapes.unit, ring[i + 1] * space.shapes.unit]);
  return points;
});

const latticeOf = (state) => space.lattice.map((axis) => axis[state]);
/* Where a state is answered from: its partner's place, if it is merged into one. */
const answers = space.answers || space.lattice;
const answerOf = (state) => answers.map((axis) => axis[state]);
const nameOf = (state) => (space.names ? space.names[state] : `x${space.lattice[0][state]}y${space.lattice[1][state]}`);
const inUnits = (steps) => steps.map((value, j) => space.origin[j] + space.pitch[j] * value);

/* Whether a difference of lattice points lies in a hull: integers, as the plan decides it. */
function within(hull, difference) {
  const dot = (row) => row.reduce((sum, value, j) => sum + value * difference[j], 0);
  return hull.e.every((row) => dot(row) === 0) && hull.a.every((row, i) => Math.abs(dot(row)) <= hull.b[i]);
}

/* For every state the planned state nearest to it, ties to the lowest number: the state it is answered as. */
const surrogatesOf = kept((set) => {
  const mask = maskOf(set), planned = [];
  mask.forEach((inside, state) => { if (inside) planned.push(state); });
  const found = new Int32Array(space.states);
  for (let state = 0; state < space.states; state++) {
    let best = state, least = mask[state] ? 0 : Infinity;
    if (least) {
      for (const other of planned) {
        let apart = 0;
        for (let j = 0; j < dimension; j++) {
          const steps = (answers[j][other] - answers[j][state]) * space.weights[j];
          apart += steps * steps;
        }
        if (apart < least) [best, least] = [other, apart];
      }
    }
    found[state] = best;
  }
  return found;
});

const policy = (() => {
  const coded = data.policy;
  if (!coded) return null;
  if (coded.labels) {
    const labels = unrun(coded.labels), members = new Map();
    labels.forEach((label, state) => {
      if (!members.has(label)) members.set(label, []);
      members.get(label).push(state);
    });
    return { around: (state) => members.get(labels[state]) };
  }
  const lists = Array.from({ length: space.states }, () => []);
  unrun(coded.edges.rows).forEach((pattern, state) => {
    for (const gap of coded.edges.patterns[pattern]) {
      lists[state].push(state + gap);
      lists[state + gap].push(state);
    }
  });
  return { around: (state) => lists[state] };
})();

/* Whom a planned state shares an edge with under a plan: states outside the plan stand for their surrogates. */
function neighboursOf(plan, state) {
  const found = new Set();
  if (policy) {
    const support = maskOf(plan.support), contracted = plan.support !== plan.set;
    const stands = surrogatesOf(plan.set), represented = [state];
    if (contracted) {
      for (let other = 0; other < space.states; other++) {
        if (support[other] && other !== state && stands[other] === state) represented.push(other);
      }
    }
    for (const one of represented) for (const other of policy.around(one)) if (support[other]) found.add(stands[other]);
  }
  found.delete(state);
  const joined = new Set();
  for (const [a, b] of plan.joins) {
    if (a === state && !found.has(b)) joined.add(b);
    if (b === state && !found.has(a)) joined.add(a);
  }
  return { edges: [...found], joined: [...joined] };
}

/* Who hides a state: what the map shows around it. Possible states count, those too that are answered as another. */
function hiding(plan, state) {
  const planned = maskOf(plan.set), possible = maskOf(plan.support), bodies = bodiesOf(plan.body);
  const stands = surrogatesOf(plan.set), own = answerOf(state), inside = new Uint8Array(space.states), among = [];
  const hull = data.timeline.hulls[plan.hulls[bodies[state]]];
  for (let other = 0; other < space.states; other++) {
    if (!planned[other] || bodies[other] !== bodies[state]) continue;
    inside[other] = within(hull, answerOf(other).map((value, j) => value - own[j])) ? 1 : 0;
  }
  for (let other = 0; other < space.states; other++) if (possible[other] && inside[stands[other]]) among.push(other);
  return { hull, among, ...neighboursOf(plan, state) };
}
