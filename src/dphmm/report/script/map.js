/* The map: states, the hull around one of them, and what was published about a subject up to a step. */
const SVG = "http://www.w3.org/2000/svg";

function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const KINDS = ["truth", "z", "estimate", "smoothed"];
const STYLE = { truth: "truth", z: "released", estimate: "estimate", smoothed: "smoothed" };
const MOST_LINES = 4000, MOST_NAMES = 40, TRAIL = 24;

const map = {
  element: document.getElementById("map"),
  across: 0,
  up: Math.min(1, dimension - 1),

  /* Where things are, in pixels: north up, one scale where the answers are of one kind. */
  layout() {
    const flat = dimension === 1, width = Math.max(this.element.clientWidth, 200);
    const axis = (j) => {
      const values = space.lattice[j];
      let low = Infinity, high = -Infinity;
      for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
      const margin = Math.max((high - low) * 0.08, 0.9, space.side === null ? 0 : (space.side / space.pitch[j]) * (corners ? 0.8 : 0.7));
      return [low - margin, high + margin];
    };
    const [left, right] = axis(this.across), [bottom, top] = flat ? [-1, 1] : axis(this.up);
    const size = (j) => (space.metres ? space.pitch[j] : 1);
    const aspect = ((top - bottom) * size(this.up)) / ((right - left) * size(this.across));
    const height = flat ? 170 : Math.round(Math.min(Math.max(width * aspect, 160), 560, width * 1.2));
    let [sx, sy] = [width / (right - left), height / (top - bottom)];
    if (!flat && space.metres) {
      const scale = Math.min(sx / size(this.across), sy / size(this.up));
      [sx, sy] = [scale * size(this.across), scale * size(this.up)];
    }
    const [mx, my] = [(left + right) / 2, (bottom + top) / 2];
    Object.assign(this, { flat, width, height, sx, sy });
    this.x = (steps) => width / 2 + (steps[this.across] - mx) * sx;
    this.y = (steps) => (flat ? height * 0.6 : height / 2 - (steps[this.up] - my) * sy);
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.setAttribute("height", height);
    const half = space.side === null ? 0.35 : (space.side / space.pitch[this.across]) * 0.5;
    this.radius = Math.max(1.2, Math.min(half * sx, half * sy) * (space.kind === "grid" ? 1 : 0.9));
    if (space.kind !== "grid" && !corners) this.radius = Math.min(this.radius, 18);
    if (flat) this.radius = Math.max(2, Math.min(9, sx * 0.35));
  },

  at(steps) {
    return [this.x(steps), this.y(steps)];
  },

  line(points) {
    return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  },

  inUnits(point) {
    return this.at(point.map((value, j) => (value - space.origin[j]) / space.pitch[j]));
  },

  /* Cells as what they are, a hair apart: squares of a grid, polygons, discs elsewhere; one path for each look. */
  cells(parent, states, style) {
    const r = this.radius, parts = [];
    for (const state of states) {
      const [x, y] = this.at(latticeOf(state));
      if (space.kind === "grid") {
        const s = (2 * r - 0.8).toFixed(1);
        parts.push(`M${(x - r + 0.4).toFixed(1)} ${(y - r + 0.4).toFixed(1)}h${s}v${s}h-${s}z`);
      } else if (corners) {
        const near = Math.max(0.5, 1 - 0.4 / r), wide = (this.sx / space.pitch[this.across]) * near;
        const high = (this.sy / space.pitch[this.up]) * near;
        parts.push(this.line(corners[state].map(([east, north]) => [x + east * wide, y - north * high])) + "z");
      } else {
        const d = (2 * r).toFixed(1), one = r.toFixed(1);
        parts.push(`M${(x - r).toFixed(1)} ${y.toFixed(1)}a${one} ${one} 0 1 0 ${d} 0a${one} ${one} 0 1 0 -${d} 0z`);
      }
    }
    if (parts.length) draw(parent, "path", { class: style, d: parts.join("") });
  },

  show(view) {
    this.layout();
    this.element.replaceChildren();
    draw(this.element, "rect", { class: "ground", width: this.width, height: this.height });
    for (const shore of data.water) {
      draw(this.element, "path", { class: "water", d: this.line(shore.map((p) => this.inUnits(p))) + "Z" });
    }
    if (space.drawn) this.states(view);
    for (const road of data.roads) {
      draw(this.element, "path", { class: "road", d: this.line(road.map((p) => this.inUnits(p))) });
    }
    if (view.hidden && view.layers.edges) this.edges(view);
    if (view.hull && view.layers.hull) this.body(view.hull, view.centre);
    this.names();
    for (const kind of KINDS) if (view.layers[STYLE[kind]]) this.trail(view, kind);
    for (const kind of KINDS) if (view.layers[STYLE[kind]]) this.mark(view, kind);
    draw(this.element, "rect", { class: "frame", width: this.width, height: this.height });
    this.scale();
  },

  states(view) {
    const groups = new Map();
    const planned = view.plan && maskOf(view.plan.set), possible = view.plan && maskOf(view.plan.support);
    for (let state = 0; state < space.states; state++) {
      let style = `cell shade${data.shades[state]}`;
      if (planned && !possible[state]) style = "cell excluded";
      else if (planned && !planned[state]) style += " unplanned";
      if (!groups.has(style)) groups.set(style, []);
      groups.get(style).push(state);
    }
    for (const [style, states] of groups) this.cells(this.element, states, style);
    if (!view.hidden || !view.layers.hull) return;
    const { among, edges, joined } = view.hidden, special = new Set([view.state, ...edges, ...joined]);
    this.cells(this.element, among.filter((state) => !special.has(state)), "cell covered");
    this.cells(this.element, edges, "cell neighbor");
    this.cells(this.element, joined, "cell joined");
    this.cells(this.element, [view.state], "cell self");
  },

  /* The edges of the policy under a plan; of too many to be told apart those of the state in the middle. */
  edges(view) {
    const { plan } = view, planned = maskOf(plan.set);
    let drawn = [];
    for (let state = 0; state < space.states && drawn.length <= MOST_LINES; state++) {
      if (!planned[state]) continue;
      for (const other of neighboursOf(plan, state).edges) if (other > state) drawn.push([state, other]);
    }
    view.crowded = drawn.length > MOST_LINES;
    if (view.crowded) drawn = view.hidden.edges.map((other) => [view.state, other]);
    const d = drawn.map(([a, b]) => this.arc(latticeOf(a), latticeOf(b)));
    if (d.length) draw(this.element, "path", { class: "edge", d: d.join("") });
    const joins = plan.joins.map(([a, b]) => this.arc(latticeOf(a), latticeOf(b)));
    if (joins.length) draw(this.element, "path", { class: "edge join", d: joins.join("") });
  },

  arc(a, b) {
    const [x, y] = this.at(a), [u, v] = this.at(b);
    if (!this.flat) return this.line([[x, y], [u, v]]);
    const high = Math.min(Math.abs(u - x) * 0.45, y - 14);
    return `M${x.toFixed(1)} ${y.toFixed(1)}Q${((x + u) / 2).toFixed(1)} ${(y - 2 * high).toFixed(1)} ${u.toFixed(1)} ${v.toFixed(1)}`;
  },

  body(hull, centre) {
    const corners = hull.v.map((corner) => this.at(corner.map((value, j) => value + centre[j])));
    if (!corners.length) return;
    if (this.flat) {
      const xs = corners.map(([x]) => x), [left, right] = [Math.min(...xs), Math.max(...xs)];
      const y = this.y(centre), h = this.radius + 7;
      draw(this.element, "path", { class: "hull", d: `M${left} ${y - h}H${right}V${y + h}H${left}Z` });
    } else draw(this.element, "path", { class: "hull", d: this.line(outline(corners)) + "Z" });
  },

  names() {
    if (!space.drawn || !space.names || space.states > MOST_NAMES || (this.flat && this.sx < 34)) return;
    for (let state = 0; state < space.states; state++) {
      const [x, y] = this.at(latticeOf(state)), name = nameOf(state);
      const short = name.length > 10 ? `${name.slice(0, 9)}…` : name;
      draw(this.element, "text", { class: "label middle", x, y: y + this.radius + (this.flat ? 22 : 14) }, short);
    }
  },

  /* The last steps as a line, and points on it. */
  trail(view, kind) {
    const points = [];
    for (let row = Math.max(0, view.row - TRAIL); row <= view.row; row++) {
      const steps = answerAt(view.subject, kind, row);
      if (steps) points.push(this.inside(this.lifted(this.at(steps), kind)));
    }
    const style = STYLE[kind];
    if (kind !== "z") draw(this.element, "path", { class: `${style} trail`, d: this.line(points) });
    for (const [x, y] of points) shape(this.element, kind, x, y, 2.2, `${style} past`);
  },

  mark(view, kind) {
    const steps = answerAt(view.subject, kind, view.row);
    if (!steps) return;
    const at = this.lifted(this.at(steps), kind), [x, y] = this.inside(at);
    const outside = x !== at[0] || y !== at[1];
    shape(this.element, kind, x, y, kind === "z" ? 8 : 10, `halo-mark halo-${STYLE[kind]}`);
    shape(this.element, kind, x, y, 7, `${STYLE[kind]} now${outside ? " outside" : ""}`);
  },

  /* On a line all marks would lie on each other. */
  lifted([x, y], kind) {
    return this.flat ? [x, y - 24 - 18 * (3 - KINDS.indexOf(kind))] : [x, y];
  },

  inside([x, y]) {
    return [Math.min(Math.max(x, 7), this.width - 7), Math.min(Math.max(y, 7), this.height - 7)];
  },

  scale() {
    if (!space.metres) return;
    const perMetre = this.sx / space.pitch[this.across], wanted = this.width / perMetre / 4;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const length = [5, 2, 1].map((m) => m * power).find((metres) => metres <= wanted);
    const y = this.height - 10;
    draw(this.element, "path", { class: "scale", d: `M10 ${y}h${(length * perMetre).toFixed(1)}` });
    const shown = length >= 1000 ? `${length / 1000}\u00a0km` : `${length}\u00a0m`;
    draw(this.element, "text", { class: "label halo", x: 16 + length * perMetre, y: y + 4 }, shown);
  },

  /* The state nearest to a place on the map. */
  nearest(px, py) {
    let best = -1, least = Infinity;
    for (let state = 0; state < space.states; state++) {
      const [x, y] = this.at(latticeOf(state)), apart = Math.hypot(x - px, this.flat ? 0 : y - py);
      if (apart < least) [best, least] = [state, apart];
    }
    return best;
  },

  /* The nearest state from another one in a direction: for arrow keys. */
  beside(from, dx, dy) {
    const [fx, fy] = this.at(latticeOf(from));
    let best = from, least = Infinity;
    for (let state = 0; state < space.states; state++) {
      const [x, y] = this.at(latticeOf(state)), ahead = (x - fx) * dx + (y - fy) * dy;
      const aside = Math.abs((x - fx) * dy) + Math.abs((y - fy) * dx);
      if (ahead > 0.5 && ahead + 3 * aside < least) [best, least] = [state, ahead + 3 * aside];
    }
    return best;
  },
};

/* Each kind of mark has a shape of its own: colour alone tells nothing. */
function shape(parent, kind, x, y, r, style) {
  const place = `M${x.toFixed(1)} ${y.toFixed(1)}`, s = r * 0.8;
  const d = {
    truth: `${place}m${-s} ${-s}h${2 * s}v${2 * s}h${-2 * s}z`,
    z: `${place}m${-s} ${-s}l${2 * s} ${2 * s}m0 ${-2 * s}l${-2 * s} ${2 * s}`,
    estimate: `${place}m${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
    smoothed: `${place}m0 ${-r}l${r} ${1.75 * r}h${-2 * r}z`,
  }[kind];
  draw(parent, "path", { class: style, d });
}

/* The convex outline of points in the plane: a hull of more dimensions seen along its other axes. */
function outline(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (list) => {
    const chain = [];
    for (const p of list) {
      while (chain.length > 1) {
        const [a, b] = chain.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
        chain.pop();
      }
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}
