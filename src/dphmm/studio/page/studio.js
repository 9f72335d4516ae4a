"use strict";
// The page shows what the server computed and sends what is chosen: paths, sentences and numbers are ready.
const of = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let shown = null, progress = null, chosen = null, draws = 0, waiting = null, sent = null, busy = false, checking = false, polling = 0, drag = null;

const SLIDERS = [
  ["covers", "Places that must look alike, up to", "grid", "100m 150m 200m 250m 300m 400m 500m 680m 800m 1km 1200m 1500m 2km 3km 4km 5km 7500m 10km"],
  ["cell", "Size of a cell", "grid", "50m 100m 150m 200m 250m 300m 340m 400m 500m 680m 800m 1km 1500m 2km 3km 5km 10km"],
  ["budget", "Budget of a person for each block of time", "", "0.5 1 2 3 4 6 8 10 12 16 20 24 36 48"],
  ["max_speed", "Fastest anybody moves (a guess: decides errors, never the promise)", "grid", "3km/h 6km/h 10km/h 15km/h 20km/h 30km/h 40km/h 60km/h 90km/h 130km/h"],
];
const TEXTS = [
  ["step", "A time step: one answer each at most (10min); of labels empty where every row is a step"],
  ["per", "The budget is of each block: 1d, 12h, 7d, or a number of steps"],
  ["steps", "Or of a whole sequence of so many steps"],
  ["zone", "Whose clock days go by: +01:00, Europe/Berlin"],
  ["hours", "Ask only in these hours: 7-21"],
  ["epsilon", "Epsilon of each answer: the best of a few where empty"],
];
const CHECKS = [
  ["rows", "rows", (v) => v.toLocaleString("en")], ["people", "people", (v) => v.toLocaleString("en")],
  ["most_rows", "rows of a person, at most", (v) => v.toLocaleString("en")], ["in_states", "rows on the map or in states", (v) => `${v} %`],
  ["swapped", "with latitude and longitude swapped", (v) => `${v} %`], ["kilometres_away", "their middle is off the map by", (v) => `${v.toLocaleString("en")} km`],
  ["steps_with_rows", "asked steps that have rows", (v, all) => `${v} of ${all.steps}`], ["unanswered", "people without an answer", (v) => String(v)],
  ["too_fast", "moves that are too fast", (v) => `${v} %`], ["same_moment", "rows beside another of their step", (v) => v.toLocaleString("en")],
  ["without_place", "rows without a place", (v) => v.toLocaleString("en")],
];

function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

function drawn(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function say(text, good = false) {
  of("notice").hidden = !text;
  of("notice").classList.toggle("good", good);
  of("notice").textContent = text;
}

async function ask(path, body) {
  const request = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, request);
  } catch {
    say("The studio has ended: type its command again, and open the new address.");
    throw new Error("ended");
  }
  const told = await response.json();
  if (response.ok) return told;
  // A state that was asked about before a change is asked about again after it.
  if (response.status === 409 && path === "state") throw new Error(told.error);
  if (response.status === 409) await load();
  say(told.error);
  throw new Error(told.error);
}

// -- the setting: the last change is sent when the one before has been answered ---------------------------------------

// The draft with every change so far, also those that are under way.
function latest() { return waiting ?? sent ?? shown.draft; }

function change(members) {
  waiting = { ...latest(), ...members };
  if (!busy) send();
}

async function send() {
  busy = true;
  while (waiting !== null) {
    sent = waiting;
    waiting = null;
    try {
      show(await ask("setting", { version: shown.version, draft: sent }));
    } catch { fill(); }
  }
  sent = null;
  busy = false;
}

async function load() { show(await (await fetch("setting")).json()); }

async function post(path, members = {}) {
  const answer = await ask(path, { version: shown.version, ...members });
  say("");
  return answer;
}

function show(answer) {
  const same = shown !== null && shown.draft.kind === answer.draft.kind && String(shown.draft.box) === String(answer.draft.box) && shown.draft.cell === answer.draft.cell;
  shown = answer;
  if (!same) chosen = null;
  progress = null;
  of("checked").replaceChildren();
  of("asked").hidden = true;
  say(shown.problem);
  fill();
  map([]);
  if (shown.map && shown.map.columns && chosen === null) chosen = Math.floor(shown.map.rows / 2) * shown.map.columns + Math.floor(shown.map.columns / 2);
  if (shown.labels.length && (chosen === null || chosen >= shown.labels.length)) chosen = 0;
  budget();
  // A change that waits leads on from here: what is asked of this version would be refused.
  if (waiting === null) look();
  poll();
}

// -- fields -------------------------------------------------------------------------------------------------------------

function set(id, value) { if (document.activeElement !== of(id) || !of(id).dataset.typed) of(id).value = value; }

function fill() {
  const draft = shown.draft, grid = draft.kind === "grid";
  of("start").hidden = !!shown.table;
  of("whose").textContent = `${shown.table ? `${shown.table} · ` : ""}on this computer only (127.0.0.1)`;
  for (const radio of document.getElementsByName("kind")) radio.checked = radio.value === draft.kind;
  for (const id of ["on-map", "areas-part"]) of(id).hidden = !grid;
  for (const id of ["on-list", "pairs-part"]) of(id).hidden = grid;
  set("box", draft.box ? draft.box.join(", ") : "");
  set("labels", draft.labels.join("\n"));
  of("every").checked = draft.pairs === null;
  for (const id of ["pairs", "pairs-label"]) of(id).hidden = draft.pairs === null;
  set("pairs", (draft.pairs ?? []).map((pair) => pair.join(", ")).join("\n"));
  for (const [name, , kind, values] of SLIDERS) {
    of(`slide-${name}`).hidden = kind !== "" && !grid;
    set(name, draft[name]);
    const size = (text) => parseFloat(text) * (/k/.test(text) ? 1000 : 1), steps = values.split(" ");
    of(`range-${name}`).value = Math.max(0, steps.filter((one) => size(one) <= size(draft[name])).length - 1);
    of(`range-${name}`).setAttribute("aria-valuetext", draft[name]);
  }
  for (const [name] of TEXTS) set(name, draft[name]);
  of("areas").replaceChildren(...draft.areas.map((area) => make("li", {}, area.name,
    make("button", { type: "button", "aria-label": `Remove ${area.name}`, onclick: () => change({ areas: latest().areas.filter((other) => other.name !== area.name) }) }, "Remove"))));
  data(draft.data);
  of("lines").textContent = shown.lines.slice(1).join("; ");
  of("lines").classList.toggle("warns", shown.lines.some((line) => line.includes("none that looks like")));
  of("text").textContent = shown.text;
  of("command").textContent = `dphmm run ${shown.name}`;
  of("downloads").replaceChildren(...[shown.name, ...shown.files].flatMap((name) => [
    make("a", { href: `saved/${encodeURIComponent(name)}?version=${shown.version}`, download: name }, name), " "]));
  of("check").disabled = !shown.has_table;
  of("ask").disabled = !shown.has_table;
}

function data(members) {
  const open = Object.entries(members).filter(([name, value]) => typeof value === "string" && name !== "file" && name !== "kind");
  of("data-part").hidden = !open.length;
  if (of("data").dataset.names === open.map(([name]) => name).join()) return;
  of("data").dataset.names = open.map(([name]) => name).join();
  of("data").replaceChildren(...open.flatMap(([name, value]) => [
    make("label", { for: `data-${name}` }, name + (value === "COLUMN" || value === "NAME" ? ": still open" : "")),
    make("input", { id: `data-${name}`, value, autocomplete: "off", onchange: (event) => change({ data: { ...latest().data, [name]: event.target.value } }) })]));
}

function fields() {
  of("sliders").append(...SLIDERS.map(([name, words, , values]) => {
    const steps = values.split(" ");
    const range = make("input", { id: `range-${name}`, type: "range", min: 0, max: steps.length - 1, step: 1, "aria-label": words });
    range.addEventListener("input", () => {
      of(name).value = steps[range.value];
      range.setAttribute("aria-valuetext", steps[range.value]);
      change({ [name]: steps[range.value] });
    });
    const exact = make("input", { id: name, autocomplete: "off", maxlength: 60, onchange: (event) => {
      const text = event.target.value.trim();
      if (text) change({ [name]: text });
      else { event.target.value = latest()[name]; say(`${words}: it cannot be empty; it stays ${latest()[name]}.`); }
    } });
    return make("div", { id: `slide-${name}`, class: "slide" }, make("div", { class: "head" }, make("label", { for: name }, words), exact), range);
  }));
  of("texts").append(...TEXTS.flatMap(([name, words]) => [make("label", { for: name }, words),
    make("input", { id: name, autocomplete: "off", maxlength: 60, onchange: (event) => change(name === "steps" && event.target.value.trim() ? { steps: event.target.value.trim(), per: "" } : { [name]: event.target.value.trim() }) })]));
  for (const field of document.querySelectorAll("input, textarea")) {
    field.addEventListener("input", () => { field.dataset.typed = "yes"; });
    field.addEventListener("change", () => { delete field.dataset.typed; });
  }
}

function degrees(text, then) {
  const sides = text.split(/[\s,]+/).filter(Boolean).map(Number);
  if (sides.length === 4 && sides.every(Number.isFinite)) then(sides);
  else say("Four numbers are needed: west, south, east, north in degrees.");
}

// -- the map ------------------------------------------------------------------------------------------------------------

function map(layers) {
  const m = shown.map;
  if (!m) return;
  of("map").setAttribute("viewBox", `0 0 ${m.width} ${m.height}`);
  const below = m.layers.filter((layer) => layer.style !== "area"), above = m.layers.filter((layer) => layer.style === "area");
  const path = (layer) => drawn("path", { class: layer.style, d: layer.path });
  of("map").replaceChildren(...[...below, ...layers.slice(0, 3), ...above, ...layers.slice(3)].map(path),
    ...m.names.map((name) => drawn("text", { x: name.x + 4, y: name.y }, name.text)),
    ...m.areas.map((name) => drawn("text", { x: name.x, y: name.y - 4, class: "area-name" }, `${name.text}: all alike`)));
}

function at(event) {
  const box = of("map").getBoundingClientRect();
  return [(event.clientX - box.left) / box.width * shown.map.width, (event.clientY - box.top) / box.height * shown.map.height];
}

function placed([x, y]) {
  const [west, south, east, north] = shown.map.frame, m = shown.map;
  return [west + x / m.width * (east - west), north - y / m.height * (north - south)];
}

function boxed(a, b) {
  const [one, other] = [placed(a), placed(b)], round = (value) => Number(value.toFixed(5));
  return [Math.min(one[0], other[0]), Math.min(one[1], other[1]), Math.max(one[0], other[0]), Math.max(one[1], other[1])].map(round);
}

function cell([x, y]) {
  const m = shown.map, column = Math.floor((x - m.x) / m.side), row = Math.floor((m.y - y) / m.side);
  return m.columns && column >= 0 && row >= 0 && column < m.columns && row < m.rows ? row * m.columns + column : null;
}

function mode() { return [...document.getElementsByName("mode")].find((one) => one.checked).value; }

function pointers() {
  const svg = of("map");
  svg.addEventListener("pointerdown", (event) => {
    if (!shown.map) return;
    svg.setPointerCapture(event.pointerId);
    drag = { from: at(event), box: drawn("rect", { class: "drag", width: 0, height: 0 }) };
    if (mode() !== "look") svg.append(drag.box);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const to = at(event);
    for (const [name, value] of Object.entries({ x: Math.min(to[0], drag.from[0]), y: Math.min(to[1], drag.from[1]), width: Math.abs(to[0] - drag.from[0]), height: Math.abs(to[1] - drag.from[1]) })) drag.box.setAttribute(name, value);
  });
  svg.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const from = drag.from, to = at(event), far = Math.hypot(to[0] - from[0], to[1] - from[1]) > 6;
    drag.box.remove();
    drag = null;
    if (mode() === "box" && far) change({ box: boxed(from, to) });
    else if (mode() === "area" && far) area(boxed(from, to));
    else if (cell(to) !== null) { chosen = cell(to); look(); }
  });
  svg.addEventListener("keydown", (event) => {
    const m = shown.map, moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!m || !m.columns) return;
    if (event.key === "Enter" || event.key === " ") { draws += 1; event.preventDefault(); look(); }
    if (!(event.key in moves)) return;
    event.preventDefault();
    const column = Math.min(m.columns - 1, Math.max(0, chosen % m.columns + moves[event.key][0]));
    chosen = Math.min(m.rows - 1, Math.max(0, Math.floor(chosen / m.columns) + moves[event.key][1])) * m.columns + column;
    look();
  });
}

function area(box) {
  const name = of("area-name").value.trim() || "area", areas = latest().areas;
  let own = name;
  for (let at = 2; areas.some((one) => one.name === own); at += 1) own = `${name} ${at}`;
  change({ areas: [...areas, { name: own, box }] });
  of("area-name").value = "";
}

async function look() {
  of("again").hidden = chosen === null || shown.problem !== "";
  of("looked").replaceChildren();
  if (chosen === null || shown.problem || (shown.map ? !shown.map.columns : !shown.labels.length)) return;
  const wanted = chosen, version = shown.version;
  let state;
  // No post: it would clear a message about a field that was just typed.
  try { state = await ask("state", { version, number: wanted, draw: draws }); } catch { return; }
  if (wanted !== chosen || version !== shown.version) return;
  of("looked").replaceChildren(...state.lines.map((line) => make("p", {}, line)), ...state.shares.map(share));
  if (shown.map) {
    map(state.layers);
    const m = shown.map, x = m.x + (wanted % m.columns) * m.side, y = m.y - Math.floor(wanted / m.columns) * m.side, inside = m.side / 4;
    of("area-box").value = boxed([x + inside, y - inside], [x + m.side - inside, y - m.side + inside]).join(", ");
  }
  of("chips").replaceChildren(...shown.labels.map((name, number) => make("li", {}, make("button", { type: "button", "aria-pressed": String(number === chosen), onclick: () => { chosen = number; look(); } }, name))));
}

function share(one) {
  const bar = drawn("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" });
  bar.append(drawn("rect", { class: "bar-all", width: 100, height: 12 }), drawn("rect", { class: "bar-part", width: 100 * one.share, height: 12 }));
  return make("div", { class: "share" }, make("span", { class: one.alike ? "alike" : "" }, one.name), bar, make("span", {}, `${Math.round(100 * one.share)} %`));
}

// -- what budgets buy, and a release that runs ---------------------------------------------------------------------------

async function poll() {
  const turn = ++polling;
  while (turn === polling) {
    let now;
    try { now = await ask("progress"); } catch { return; }
    if (turn !== polling) return;
    // A change of this page may have another version already: its own answer shows it.
    if (busy) {
      await new Promise((done) => setTimeout(done, 300));
      continue;
    }
    if (now.version !== shown.version) {
      say("Another page has changed the setting: this one shows it now.");
      return load();
    }
    const before = progress;
    progress = now;
    if (!before || JSON.stringify(before.budget) !== JSON.stringify(now.budget)) { budget(); if (before && answers(before) !== answers(now)) look(); }
    state(now, before);
    if (now.state !== "preview" && now.state !== "final" && now.state !== "running" && now.version === shown.version) {
      await new Promise((done) => setTimeout(done, 2500));
    } else await new Promise((done) => setTimeout(done, 300));
  }
}

function answers(now) { return now.budget && now.budget.worth.rows.find((row) => row.own)?.answers; }

function state(now, before) {
  const budget = now.budget, found = budget ? `${budget.worth.rows.length} of ${budget.total} budgets` : "no figures so far";
  const words = {
    open: shown.problem || now.problem || `Still open: ${shown.missing}.`,
    preview: `A preview of 10 invented people is being computed: ${found}. Nobody's rows are looked at.`,
    final: "These are of few invented people; the final figures are being computed.",
  };
  of("now").textContent = words[now.state] ?? (budget ? `Final figures: of ${budget.people} invented people who move as the model says.` : "");
  // A message about a field that was just typed stays until the next change.
  if (now.problem && (of("notice").hidden || of("notice").classList.contains("good"))) say(now.problem);
  const running = now.state === "running";
  for (const field of document.querySelectorAll("main input, main textarea, #demo, #area-add, #save")) field.disabled = running;
  const settled = now.state === "planned" || now.state === "released" || now.state === "failed";
  of("check").disabled = running || checking || !shown.has_table;
  of("ask").disabled = running || checking || !shown.has_table || !settled;
  of("waits").textContent = running ? "" : !shown.has_table ? "There is no table here: dphmm studio people.csv begins with one." : settled ? "" : "It waits for the final figures.";
  const run = now.run;
  of("stages").replaceChildren(...(run ? run.all : []).map((name) => {
    const begun = run.stages.includes(name), last = begun && run.stages.at(-1) === name && !run.ended;
    const done = begun && !last, skipped = run.ended && run.released && !begun;
    return make("li", { class: last ? "runs" : done || skipped ? "" : "waits" }, `${name}: ${last ? "running" : done ? "done" : skipped ? "as it was" : "waits"}`);
  }));
  const done = run && run.ended && run.released ? ["Released. ", make("a", { href: "#report-part" }, "The report is below."), ` ${run.line}`] : [run && run.ended ? run.line : running ? "The release runs. Ctrl-C in the terminal interrupts it; it goes on where it stopped." : ""];
  of("ended").replaceChildren(...done);
  of("ended").className = run && run.ended && !run.released ? "warns" : "";
  if (run && run.released && !(before && before.run && before.run.ended) && now.state === "released") {
    // What is spent from now on is another question.
    if (before) of("checked").replaceChildren();
    report();
  }
}

function report() {
  of("no-report").hidden = true;
  of("report").replaceChildren(make("iframe", { title: "Report of the release", src: `report?${Date.now()}`, sandbox: "allow-scripts allow-downloads" }));
}

function budget() {
  const found = progress && progress.budget;
  for (const id of ["ladder", "verdict", "doubt", "pictures"]) if (!found) of(id).replaceChildren();
  if (!found) return;
  const heads = [`budget ${found.of}`, "answers", shown.draft.kind === "labels" ? "a reader errs" : "a reader is off by", ...found.worth.stays.map((time) => `${found.who}, ${time}`)], alone = found.worth.without;
  const row = (one) => make("tr", { class: one.own ? "own" : "" },
    make("th", { scope: "row", colspan: one === alone ? 2 : 1 }, one === alone ? one.answers : one.own ? one.total : make("button", { type: "button", "aria-label": `Take a budget of ${one.total}`, onclick: () => change({ budget: one.total }) }, one.total)),
    ...[...(one === alone ? [] : [one.answers]), one.error, ...one.stays].map((text) => make("td", {}, text)));
  const against = (one) => one.against.length ? [make("tr", { class: "against" }, make("td", { colspan: heads.length }, `${one.total} is not advised: ${one.against.join("; ")}`))] : [];
  of("ladder").replaceChildren(make("table", { class: shown.draft.kind }, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...found.worth.rows.flatMap((one) => [row(one), ...against(one)]), row(alone))));
  of("verdict").replaceChildren(...found.verdict.map((one) => make("p", { class: one.warns ? "warns" : "" }, one.text)));
  of("doubt").replaceChildren(...[...found.doubt, ...found.notes].map((line) => make("li", { class: line.includes("no useful limit") ? "warns" : "" }, line)));
  of("pictures").replaceChildren(...Object.entries(found.pictures).map(([heading, svg]) =>
    make("figure", {}, make("img", { alt: heading, src: `data:image/svg+xml,${encodeURIComponent(svg)}` }))));
}

async function check() {
  of("checked").replaceChildren(make("div", {}, make("dt", {}, "The plan is made again, then the table is looked at: it takes as long as the final figures.")));
  let found;
  checking = of("check").disabled = of("ask").disabled = true;
  try { found = await post("check"); } catch { of("checked").replaceChildren(); return; } finally { checking = false; if (progress) state(progress, progress); }
  const line = (name, text, warns) => make("div", {}, make("dt", {}, name), make("dd", { class: warns ? "warns" : "" }, text));
  const lines = CHECKS.filter(([name]) => found.figures[name] !== null && !(found.figures[name] === 0 && !["rows", "people", "in_states"].includes(name)))
    .map(([name, words, text]) => line(words, text(found.figures[name], found.figures), (name === "in_states" && found.figures[name] < 5) || name === "swapped"));
  if (found.rejected) lines.push(line("rows set aside", found.rejected.toLocaleString("en")));
  if (found.doubtful) lines.push(line("is this column the person?", "check how the table is read", true));
  if (found.budget.known !== undefined) lines.push(line("of them in the ledger", String(found.budget.known)));
  if (found.budget.left !== undefined) lines.push(line("left to whoever has least, afterwards", `${found.budget.left_after} of ${found.budget.of}`));
  lines.push(found.stops ? line("a release would stop", `dphmm check --setup ${shown.name} says why`, true) : line("a release", "would begin"));
  of("checked").replaceChildren(...lines);
  return found;
}

async function question() {
  if (!of("checked").children.length && !(await check())) return;
  let told;
  try { told = await post("ask"); } catch { return; }
  of("spends").textContent = told.sentence;
  of("agree").dataset.word = told.word;
  of("asked").hidden = false;
  of("agree").focus();
}

async function begin() {
  of("asked").hidden = true;
  try { progress = await post("release", { word: of("agree").dataset.word }); } catch { return; }
  state(progress, null);
  poll();
}

fields();
pointers();
for (const radio of document.getElementsByName("kind")) radio.addEventListener("change", () => change(radio.value === "labels" ? { kind: "labels" } : { kind: "grid", step: shown.draft.step || "10min" }));
of("box").addEventListener("change", (event) => degrees(event.target.value, (box) => change({ box })));
of("labels").addEventListener("change", (event) => change({ labels: [...new Set(event.target.value.split("\n").map((name) => name.trim()).filter(Boolean))] }));
of("every").addEventListener("change", (event) => change({ pairs: event.target.checked ? null : [] }));
of("pairs").addEventListener("change", (event) => {
  const pairs = event.target.value.split("\n").filter((line) => line.trim()).map((line) => line.split(",").map((name) => name.trim()));
  const wrong = pairs.find((pair) => pair.length !== 2);
  if (wrong) say(`"${wrong.join(", ")}" is no pair: two labels with a comma between them, as home, work.`);
  else change({ pairs });
});
of("area-add").addEventListener("click", () => degrees(of("area-box").value, area));
of("again").addEventListener("click", () => { draws += 1; look(); });
of("demo").addEventListener("click", async () => { try { show(await post("demo")); of("guide").hidden = false; of("map").focus(); } catch { return; } });
of("save").addEventListener("click", async () => { try { say(`Saved: ${(await post("save")).join(", ")}`, true); } catch { return; } });
of("open").addEventListener("change", async (event) => { try { show(await post("file", { text: await event.target.files[0].text() })); } catch { return; } });
of("check").addEventListener("click", check);
of("ask").addEventListener("click", question);
of("not-now").addEventListener("click", () => { of("asked").hidden = true; of("ask").focus(); });
of("agree").addEventListener("click", begin);
load();
