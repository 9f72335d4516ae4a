/* Lines over the steps of a subject, with a cursor at the step that is shown. */
const RIGHT = 12, TOP = 10, BOTTOM = 26;

function ticks(low, high, most) {
  const span = high > low ? high - low : 1, power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((m) => m * power).find((size) => span / size <= most);
  const found = [];
  for (let value = Math.floor(low / step) * step; value < high + step * 0.999; value += step) found.push(+value.toPrecision(12));
  return found;
}

/* lines: [{style, values}], band: {low, high} or nothing; values are null where nothing is known. */
function chart(element, subject, { lines, band, label }) {
  const width = Math.max(element.clientWidth, 200), height = 170, n = subject.step.length;
  const left = 46, xs = subject.step;
  const all = [...lines.flatMap((line) => line.values), ...(band ? band.high : [])].filter((v) => v !== null);
  let high = 0;
  for (const value of all) high = Math.max(high, value);
  const levels = ticks(0, high || 1, 4), most = levels[levels.length - 1];
  const x = (row) => left + ((xs[row] - xs[0]) / Math.max(1, xs[n - 1] - xs[0])) * (width - left - RIGHT);
  const y = (value) => height - BOTTOM - (value / most) * (height - TOP - BOTTOM);
  element.replaceChildren();
  element.setAttribute("viewBox", `0 0 ${width} ${height}`);
  element.setAttribute("height", height);
  for (const level of levels) {
    draw(element, "path", { class: "grid", d: `M${left} ${y(level).toFixed(1)}H${width - RIGHT}` });
    draw(element, "text", { class: "label end", x: left - 6, y: y(level) + 4 }, level.toLocaleString("en"));
  }
  const across = ticks(xs[0], xs[n - 1], Math.max(3, Math.floor(width / 90))).filter((t) => t >= xs[0] && t <= xs[n - 1]);
  for (const t of across) {
    const at = left + ((t - xs[0]) / Math.max(1, xs[n - 1] - xs[0])) * (width - left - RIGHT);
    draw(element, "text", { class: "label middle", x: at, y: height - 8 }, t.toLocaleString("en"));
  }
  const path = (values) => {
    let d = "", pen = "M";
    values.forEach((value, row) => {
      if (value === null) pen = "M";
      else [d, pen] = [`${d}${pen}${x(row).toFixed(1)} ${y(value).toFixed(1)}`, "L"];
    });
    return d;
  };
  /* A value between gaps, or the only one, is a point. */
  const points = (values) => values.map((value, row) => {
    const alone = value !== null && (values[row - 1] ?? null) === null && (values[row + 1] ?? null) === null;
    return alone ? `M${x(row).toFixed(1)} ${y(value).toFixed(1)}h0` : "";
  }).join("");
  if (band) {
    const back = band.low.map((value, row) => `L${x(row).toFixed(1)} ${y(value).toFixed(1)}`).reverse().join("");
    draw(element, "path", { class: "band", d: `${path(band.high)}${back}Z` });
  }
  for (const { style, values } of lines) {
    draw(element, "path", { class: `${style} line`, d: path(values) });
    if (points(values)) draw(element, "path", { class: `${style} line point`, d: points(values) });
  }
  const cursor = draw(element, "path", { class: "cursor", d: "" });
  element.setAttribute("aria-label", label);
  element.onclick = (event) => {
    const wanted = xs[0] + ((event.offsetX - left) / (width - left - RIGHT)) * (xs[n - 1] - xs[0]);
    let best = 0;
    xs.forEach((step, row) => { if (Math.abs(step - wanted) < Math.abs(xs[best] - wanted)) best = row; });
    explorer.go(best);
  };
  return (row) => cursor.setAttribute("d", `M${x(row).toFixed(1)} ${TOP - 6}V${height - BOTTOM}`);
}
