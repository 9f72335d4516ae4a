'use strict';
(() => {
  const at = (id) => document.getElementById(id);
  const told = JSON.parse(at('data').textContent);
  const svg = 'http://www.w3.org/2000/svg';
  const still = matchMedia('(prefers-reduced-motion: reduce)');

  // -- downloads -------------------------------------------------------------------------------------------------
  const style = document.querySelector('style').textContent;
  function save(name, url) {
    const link = document.createElement('a');
    link.download = name;
    link.href = url;
    link.click();
  }
  // What is saved from the owner's page says so in its name, wherever it ends up.
  const mark = document.body.classList.contains('owner-only') ? '.owner' : '';
  function copies() {
    const shown = [...document.querySelectorAll('svg:not(.backdrop)')].filter((one) => one.getClientRects().length);
    return shown.map((one, number) => {
      const copy = one.cloneNode(true), box = one.viewBox.baseVal, inside = document.createElementNS(svg, 'style');
      copy.setAttribute('xmlns', svg);
      for (const use of copy.querySelectorAll('use')) {
        const shapes = document.getElementById('backdrop').cloneNode(true);
        shapes.removeAttribute('id');
        shapes.setAttribute('transform', use.getAttribute('transform'));
        use.replaceWith(shapes);
      }
      copy.setAttribute('width', box.width);
      copy.setAttribute('height', box.height);
      inside.textContent = style;
      copy.prepend(inside);
      return {name: `figure-${number + 1}${mark}`, text: new XMLSerializer().serializeToString(copy), box};
    });
  }
  const dataUrl = (text) => 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  if (at('save-svg')) {
    at('save-svg').hidden = at('save-png').hidden = false;
    at('save-svg').onclick = () => copies().forEach((one) => save(one.name + '.svg', dataUrl(one.text)));
    at('save-png').onclick = () => copies().forEach((one) => {
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement('canvas');
        canvas.width = 2 * one.box.width;
        canvas.height = 2 * one.box.height;
        canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
        save(one.name + '.png', canvas.toDataURL('image/png'));
      };
      image.src = dataUrl(one.text);
    });
  }

  if (!told.cells) return;

  // -- cells -----------------------------------------------------------------------------------------------------
  const cells = told.cells, marks = '.-+=';
  function corners(cell) {
    if (cells.rings) {
      const flat = cells.rings[cell], found = [];
      for (let i = 0; i < flat.length; i += 2) found.push([flat[i], flat[i + 1]]);
      return found;
    }
    const column = cell % cells.columns, row = Math.floor(cell / cells.columns);
    const x = cells.x + column * cells.side, y = cells.y - row * cells.side, s = cells.side;
    return [[x, y], [x + s, y], [x + s, y - s], [x, y - s]];
  }
  const short = (value) => String(Math.round(value * 10) / 10);
  function shape(chosen, hair = 0.4) {
    return chosen.map((cell) => {
      const ring = corners(cell);
      const middle = [0, 1].map((axis) => ring.reduce((sum, p) => sum + p[axis], 0) / ring.length);
      const across = Math.max(...ring.map((p) => Math.max(Math.abs(p[0] - middle[0]), Math.abs(p[1] - middle[1])))) || 1;
      const shrink = Math.max(0.5, 1 - hair / across);
      return 'M' + ring.map((p) => p.map((v, axis) => short(middle[axis] + (v - middle[axis]) * shrink)).join(' ')).join('L') + 'Z';
    }).join('');
  }
  function outline(chosen) {
    const sides = new Map(), grain = (cells.side || told.side / 100) * 1e-2;
    const key = (p) => Math.round(p[0] / grain) + ',' + Math.round(p[1] / grain);
    for (const cell of chosen) {
      const ring = corners(cell);
      ring.forEach((a, i) => {
        const b = ring[(i + 1) % ring.length], name = [key(a), key(b)].sort().join(' ');
        if (sides.has(name)) sides.delete(name); else sides.set(name, [a, b]);
      });
    }
    return [...sides.values()].map((side) => 'M' + side.map((p) => p.map(short).join(' ')).join('L')).join('');
  }
  function levels(text) {
    const found = [[], [], [], []];
    let cell = 0;
    for (const [, mark, length] of text.matchAll(/([.\-+=])([0-9a-z]*)/g)) {
      const level = marks.indexOf(mark), n = length ? parseInt(length, 36) : 1;
      if (level) for (let i = 0; i < n; i++) found[level].push(cell + i);
      cell += n;
    }
    return found;
  }

  // -- the set of one place --------------------------------------------------------------------------------------
  const picture = document.querySelector('#map svg');
  function part(parent, name, style, attributes) {
    const made = document.createElementNS(svg, name);
    made.setAttribute('class', style);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  }

  // -- people, days, steps ---------------------------------------------------------------------------------------
  const people = told.people, slider = at('step');
  // One step of the slider: the least time between two rows, or one step. And where words below it stand.
  const stride = Math.min(...people.flatMap((one) => one.t.slice(1).map(([gap]) => gap)));
  const quarters = [6, 12, 18].map((hour) => 3600 * hour), apart = 0.14;
  let [person, day, step] = told.first;
  let playing = 0;
  const moments = people.map(() => null);
  function value(row) {
    if (!moments[person]) {
      const [first, ...gaps] = people[person].t, all = [first];
      for (const [gap, times] of gaps) for (let i = 0; i < times; i++) all.push(all[all.length - 1] + gap);
      moments[person] = all;
    }
    return moments[person][row];
  }
  const clock = (seconds) => Math.floor(seconds / 3600) + ':' + String(Math.floor(seconds / 60) % 60).padStart(2, '0');
  const moment = (row) => (told.timed ? clock(ofDay(row)) : 'step ' + value(row).toLocaleString('en'));
  const days = () => people[person].days;
  const row = () => days()[day][1] + step;
  // Where a row of the day stands on the slider: as many steps after the first one.
  const place = (i) => (value(days()[day][1] + i) - value(days()[day][1])) / stride;
  const nearest = (length, off) => [...Array(length).keys()].reduce((best, i) => (off(i) < off(best) ? i : best), 0);

  function cross(x, y, size) {
    const s = short(size);
    return `M${short(x - size / 2)} ${short(y - size / 2)}l${s} ${s}m0-${s}l-${s} ${s}`;
  }
  function inside(x, y) {
    const edge = (v) => Math.min(told.side - told.inside, Math.max(told.inside, v));
    return [edge(x), edge(y), edge(x) !== x || edge(y) !== y];
  }
  // A name of a place that a mark lies on is left out.
  function giveWay(marks) {
    for (const name of picture.querySelectorAll('.place')) {
      const box = name.getBBox(), on = ([x, y]) => x > box.x - 10 && x < box.x + box.width + 10 && y > box.y - 10 && y < box.y + box.height + 10;
      name.setAttribute('visibility', marks.some(on) ? 'hidden' : 'visible');
    }
  }
  function draw() {
    const one = people[person], now = row();
    picture.querySelectorAll('.b95,.b80,.b50,.outline,.cross,.cross-under,.ring,.ring-under,.estimate').forEach((old) => old.remove());
    picture.querySelectorAll('g.drawn').forEach((old) => old.remove());
    const names = picture.querySelector('.place-dot,.place'), places = [];
    const group = part(picture, 'g', 'drawn', {}), marks = part(picture, 'g', 'drawn', {});
    if (names) picture.insertBefore(group, names);
    if (one.levels) {
      const found = levels(one.levels[now]);
      [['b95', 1], ['b80', 2], ['b50', 3]].forEach(([style, level]) => part(group, 'path', style, {d: shape(found[level])}));
      part(group, 'path', 'outline', {d: outline([...found[1], ...found[2], ...found[3]])});
    }
    if (one.truth && one.truth[2 * now] !== null) {
      const [x, y, beyond] = inside(one.truth[2 * now], one.truth[2 * now + 1]);
      places.push([x, y]);
      part(marks, 'circle', 'ring-under', {cx: x, cy: y, r: 7});
      part(marks, 'circle', 'ring' + (beyond ? ' beyond' : ''), {cx: x, cy: y, r: 7});
    }
    const answer = one.asked.indexOf(now);
    if (answer >= 0) {
      const [x, y, beyond] = inside(one.z[2 * answer], one.z[2 * answer + 1]);
      places.push([x, y]);
      part(marks, 'path', 'cross-under', {d: cross(x, y, 14)});
      part(marks, 'path', 'cross' + (beyond ? ' beyond' : ''), {d: cross(x, y, 14)});
    }
    // Above the cross, which it often lies under.
    if (one.guess) {
      const [x, y] = one.guess.slice(2 * now, 2 * now + 2);
      places.push([x, y]);
      part(marks, 'circle', 'estimate', {cx: x, cy: y, r: 4});
    }
    giveWay(places);
    // No line ends between a number and its unit.
    const [off, expects] = [one.off, one.expects].map((all) => all && all[now] && all[now].replace(/ (?=k?m$)/, '\u00a0'));
    const far = off ? '; a reader is ' + off + ' off' : expects ? '; a reader expects to be ' + expects + ' off' : '';
    const words = moment(now) + (answer >= 0 ? ', answer' : ', no answer: best guess') + far;
    at('now').textContent = words;
    at('who').textContent = one.name + (told.timed ? ', ' + days()[day][0] : '');
    picture.setAttribute('aria-label', `Map: ${one.name}, ${words}`);
    if (slider) {
      at('next').setAttribute('aria-disabled', String(!one.asked.some((one) => one > now)));
      slider.max = place(days()[day][2] - 1);
      slider.value = place(step);
      slider.setAttribute('aria-valuetext', words);
    }
  }
  function drawRange() {
    const one = people[person], picture = document.querySelector('#slide svg');
    if (!picture || !one.spread) return;
    const [, first, n] = days()[day], spread = one.spread.slice(first, first + n), most = Math.max(...spread) || 1;
    const width = 500, whole = place(n - 1) || 1, x = (i) => short(place(i) / whole * width), y = (v) => short(52 - 44 * v / most);
    const line = `M0 ${y(spread[0])}` + spread.map((v, i) => `L${x(i)} ${y(v)}`).join('') + `L${width} ${y(spread[n - 1])}`;
    picture.querySelectorAll('*').forEach((old) => old.remove());
    part(picture, 'path', 'spread', {d: line + `L${width} 52L0 52Z`});
    part(picture, 'path', 'spread-line', {d: line});
    part(picture, 'path', 'axis', {d: `M0 52L${width} 52`});
    one.asked.forEach((now, answer) => {
      if (now < first || now >= first + n) return;
      const outlying = inside(one.z[2 * answer], one.z[2 * answer + 1])[2] ? ' outlying' : '';
      part(picture, 'path', 'cross thin' + outlying, {d: cross(x(now - first), 52, 8)});
    });
    at('widest').textContent = one.widest[day];
    const ticks = [[0, moment(first)]];
    for (const quarter of told.timed ? quarters : []) {
      const at = (quarter - ofDay(first)) / stride / whole;
      if (ticks.at(-1)[0] + apart <= at && at <= 1 - apart) ticks.push([at, clock(quarter)]);
    }
    if (n > 1) ticks.push([1, moment(first + n - 1)]);
    document.querySelector('.ends').replaceChildren(...ticks.map(([at, name]) => {
      const word = document.createElement('span');
      word.textContent = name;
      if (at < 1) word.style.left = 100 * at + '%';
      return word;
    }));
  }
  function fill(select, names, chosen) {
    select.replaceChildren(...names.map(([value, name]) => {
      const option = document.createElement('option');
      option.value = value;
      option.textContent = name;
      return option;
    }));
    select.value = chosen;
  }
  function keep() {
    const state = `#person=${encodeURIComponent(people[person].name)}&day=${day + 1}&step=${step + 1}`;
    history.replaceState(null, '', state);
  }
  function go(to) {
    step = Math.min(days()[day][2] - 1, Math.max(0, to));
    draw();
  }
  function ahead(time) {
    // From which time on clocks are how far ahead of UTC: they may be put forward and back.
    return told.zone.reduce((found, [from, seconds]) => (from <= time ? seconds : found), told.zone[0][1]);
  }
  const ofDay = (row) => ((value(row) + ahead(value(row))) % 86400 + 86400) % 86400;
  function goDay(to, hour = null) {
    const before = hour === null && told.timed ? ofDay(row()) : hour;
    day = Math.min(days().length - 1, Math.max(0, to));
    at('when').value = day;
    drawRange();
    // The same hour of the other day, as near as it has a row.
    const [, first, n] = days()[day];
    go(told.timed ? nearest(n, (i) => Math.abs(ofDay(first + i) - before)) : step);
  }
  function goPerson(to) {
    const hour = told.timed ? ofDay(row()) : null;
    person = to;
    at('person').value = person;
    fill(at('when'), days().map(([name], number) => [number, name]), 0);
    goDay(day, hour);
  }
  function nextAnswer(way) {
    const asked = people[person].asked, now = row();
    const sought = way > 0 ? asked.find((one) => one > now) : [...asked].reverse().find((one) => one < now);
    if (sought === undefined) return;
    const number = days().findIndex(([, first, n]) => sought >= first && sought < first + n);
    if (number !== day) goDay(number);
    go(sought - days()[number][1]);
  }
  function stop() {
    clearInterval(playing);
    playing = 0;
    at('play').textContent = 'Play';
    keep();
  }
  if (slider) {
    for (const hidden of [document.querySelector('.controls'), at('slide'), at('curve')]) hidden.hidden = false;
    fill(at('person'), people.map((one, number) => [number, one.name]), person);
    slider.oninput = () => {
      const sought = Number(slider.value), moved = sought - place(step);
      // One step of the slider, by a key or a screen reader, is a row, however far away the next one is.
      go(Math.abs(moved) === 1 ? step + moved : nearest(days()[day][2], (i) => Math.abs(place(i) - sought)));
    };
    slider.onchange = keep;
    slider.onkeydown = (event) => {
      const way = {PageDown: 1, PageUp: -1}[event.key];
      if (!way) return;
      event.preventDefault();
      nextAnswer(way);
      keep();
    };
    at('person').onchange = () => { goPerson(Number(at('person').value)); keep(); };
    at('when').onchange = () => { goDay(Number(at('when').value)); keep(); };
    at('next').onclick = () => { nextAnswer(1); keep(); };
    at('play').onclick = () => {
      if (playing) return stop();
      at('play').textContent = 'Pause';
      // At the end of the day it begins again.
      if (step >= days()[day][2] - 1) go(0);
      const each = still.matches ? () => nextAnswer(1) : () => go(step + 1);
      playing = setInterval(() => {
        if (step >= days()[day][2] - 1) return stop();
        const before = row();
        each();
        if (row() === before) stop();
      }, still.matches ? 1500 : 120);
    };
    const search = at('search');
    if (search) search.oninput = () => {
      const found = people.map((one, number) => [number, one.name]).filter(([, name]) => name.includes(search.value));
      fill(at('person'), found, person);
      if (found.length === 1) goPerson(found[0][0]);
    };
    const cited = () => {
      const wanted = new URLSearchParams(location.hash.slice(1)), named = people.findIndex((one) => one.name === wanted.get('person'));
      if (named < 0) return false;
      const number = (name) => (/^[0-9]{1,9}$/.test(wanted.get(name)) ? Number(wanted.get(name)) - 1 : 0);
      goPerson(named);
      goDay(number('day'));
      go(number('step'));
      return true;
    };
    window.onhashchange = () => { if (!cited()) keep(); };
    if (!cited()) {
      fill(at('when'), days().map(([name], number) => [number, name]), day);
      drawRange();
      draw();
    }
  }

  // -- whose set is drawn ----------------------------------------------------------------------------------------
  const set = document.querySelector('#set svg');
  if (set && told.sets) {
    let chosen = told.centre;
    const own = [set.querySelector('.joined'), set.querySelector('.chosen')];
    const [zoom, left, top] = told.zoom, around = at('set');
    const moved = (path) => path.replace(/(-?[\d.]+) (-?[\d.]+)/g, (_, x, y) => `${short(Number(x) * zoom + left)} ${short(Number(y) * zoom + top)}`);
    const pick = (cell) => {
      const near = told.sets[cell];
      if (!near) return;
      chosen = cell;
      own[0].setAttribute('d', moved(shape([...near, cell])));
      own[1].setAttribute('d', moved(shape([cell])));
      at('set-count').textContent = `${near.length + 1} of ${cells.n.toLocaleString('en')} ${told.called}`;
    };
    const where = (cell) => corners(cell).reduce((sum, p) => [sum[0] + p[0], sum[1] + p[1]], [0, 0]).map((v) => v / corners(cell).length);
    const nearestCell = (x, y) => {
      let best = chosen, least = Infinity;
      for (let cell = 0; cell < cells.n; cell++) {
        if (!told.sets[cell]) continue;
        const [cx, cy] = where(cell), apart = (cx - x) ** 2 + (cy - y) ** 2;
        if (apart < least) [best, least] = [cell, apart];
      }
      return best;
    };
    around.setAttribute('tabindex', '0');
    set.onclick = (event) => {
      const box = set.getBoundingClientRect(), view = set.viewBox.baseVal, scale = view.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale + view.x, (event.clientY - box.top) * scale + view.y];
      pick(nearestCell((x - left) / zoom, (y - top) / zoom));
    };
    around.onkeydown = (event) => {
      const way = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
      if (!way) return;
      event.preventDefault();
      const [x, y] = where(chosen), side = cells.side || Math.max(...corners(chosen).map((p) => p[0])) - Math.min(...corners(chosen).map((p) => p[0]));
      pick(nearestCell(x + way[0] * side, y + way[1] * side));
    };
  }
})();
