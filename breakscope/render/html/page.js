// Draws the findings and the source view from the report's data. Every text is set as text, never as HTML.
"use strict";
(() => {

const data = JSON.parse(document.getElementById("report-data").textContent);
const BATCH = 50;
const KINDS = { graph_break: "graph break", recompile: "recompile", skip: "skipped frame", compile: "compile time" };
const STATES = {
  changed: "The file is not what the scan saw: this is the line that the report stored.",
  unreadable: "The file could not be read here: this is the line that the report stored.",
  left_out: "The page holds no more source: this is the line that the report stored.",
};
const byId = (id) => document.getElementById(id);

/** An element; a child that is null or empty is left out. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const link = (anchor, text, className) => el("a", { href: "#" + encodeURIComponent(anchor), class: className ?? null }, text);
// A page elsewhere, opened by a click alone: this page asks for nothing.
const leads = (address, text) => el("a", { href: address, rel: "noreferrer noopener", target: "_blank", class: "button" }, text);
const fold = (title, ...body) => el("details", { class: "more" }, el("summary", {}, title), ...body);

// ---- source lines ----

/** The text of a line in its colours, with the marked part underlined. */
function codeText(line, mark) {
  const pieces = [];
  let at = 0;
  for (const [, kind, length] of line.runs.matchAll(/([a-z.])(\d+)/g)) {
    pieces.push([at, at + Number(length), kind]);
    at += Number(length);
  }
  if (at < line.text.length) pieces.push([at, line.text.length, "."]);
  const [from, to] = mark ?? [-1, -1];
  const cuts = (start, end) => [start, from, to, end].filter((x) => x >= start && x <= end).sort((a, b) => a - b);
  const plain = [], marked = [];
  const before = [], after = [];
  for (const [start, end, kind] of pieces) {
    const edges = cuts(start, end);
    for (let i = 0; i + 1 < edges.length; i++) {
      const [a, b] = [edges[i], edges[i + 1]];
      if (a === b) continue;
      const text = line.text.slice(a, b);
      const piece = kind === "." ? text : el("span", { class: "c-" + kind }, text);
      if (!mark) plain.push(piece);
      else (b <= from ? before : a >= to ? after : marked).push(piece);
    }
  }
  return mark ? [...before, el("mark", {}, ...marked), ...after] : plain;
}

function codeRow(number, content, margin, className) {
  return el("div", { class: "row " + (className ?? "") }, margin ?? null, el("span", { class: "no" }, String(number)), el("code", {}, ...content));
}

function codeBox(label, ...rows) {
  return el("div", { class: "codebox", tabindex: "0", role: "group", "aria-label": label }, el("div", { class: "rows" }, ...rows));
}

/** Scrolls a box sideways, so that what is marked can be seen. */
function reveal(box) {
  const marked = box.querySelector("mark");
  const beyond = marked ? marked.getBoundingClientRect().right - box.getBoundingClientRect().right : 0;
  if (beyond > 0) box.scrollLeft += beyond + 16;
}

function excerptBox(finding) {
  const shown = finding.excerpt;
  const label = "Source of " + finding.place;
  if (shown.stored) {
    const row = codeRow(finding.line, codeText(shown.stored, shown.stored.mark), null, "here");
    return [codeBox(label, row), el("p", { class: "missing" }, STATES[shown.state])];
  }
  if (shown.first === null) return [el("p", { class: "missing" }, "The source of this line is not known.")];
  const chunk = data.files[finding.file].chunks.find((one) => one.first <= shown.first && shown.last < one.first + one.lines.length);
  const marks = new Map(shown.marks.map((mark) => [mark.line, [mark.start, mark.end]]));
  const rows = [];
  for (let number = shown.first; number <= shown.last; number++) {
    const here = number === finding.line || marks.has(number);
    rows.push(codeRow(number, codeText(chunk.lines[number - chunk.first], marks.get(number)), null, here ? "here" : ""));
  }
  return [codeBox(label, ...rows)];
}

// ---- a finding ----

function summaryOf(finding) {
  const fixed = finding.fix === "proved" ? el("span", { class: "chip good" }, "proved fix") : finding.fix === "unproved" ? el("span", { class: "chip" }, "unproved fix") : null;
  const closed = finding.closed ? el("span", { class: "chip" }, finding.closed) : finding.severity === "warning" ? null : el("span", { class: finding.severity === "note" ? "chip" : "chip bad" }, finding.severity);
  const fresh = finding.news === "new" ? el("span", { class: "chip new" }, "new") : null;
  return el("summary", {},
    el("span", { class: "heat heat" + finding.heat, "aria-hidden": "true" }),
    el("span", { class: "code t-" + finding.tone }, finding.code),
    el("span", { class: "what" }, el("b", {}, finding.title), closed, fresh, fixed,
      el("span", { class: "where" }, el("span", { class: "mono" }, finding.place), finding.function ? " · " + finding.function : "", finding.owner === "project" ? "" : el("span", { class: "chip" }, finding.owner))),
    el("span", { class: "amount" }, el("b", {}, finding.amount), el("small", {}, finding.rate)));
}

function table(className, head, rows, label) {
  const cells = (row) => row.map((cell, i) => el("td", { "data-label": head[i] }, cell));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    el("table", { class: className }, el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...cells(row))))));
}

const part = (title, ...body) => [el("h4", {}, title), ...body];
const pairs = (rows, className) => el("dl", { class: "facts " + (className ?? "") }, ...rows.map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value))));

function diffBox(repair) {
  const side = (half, className) => half
    ? [el("td", { class: "no " + className }, String(half.number)), el("td", { class: className }, el("code", {}, ...codeText(half.line)))]
    : [el("td", { class: "no empty" }), el("td", { class: "empty" })];
  const rows = repair.diff.rows.map((row) => {
    if (row.kind === "gap") return el("tr", { class: "gap" }, el("td", { colspan: "4" }, "⋯"));
    const changed = row.kind === "change";
    return el("tr", { class: row.kind }, ...side(row.old, changed ? "old" : ""), ...side(row.new, changed ? "new" : ""));
  });
  const head = el("thead", {}, el("tr", {}, el("th", { colspan: "2", scope: "col" }, "now"), el("th", { colspan: "2", scope: "col" }, "rewritten")));
  return el("div", { class: "codebox", tabindex: "0", role: "group", "aria-label": "Rewrite, side by side" }, el("table", { class: "diff" }, el("colgroup", {}, ...["no", "", "no", ""].map((name) => el("col", { class: name || null }))), head, el("tbody", {}, ...rows)));
}

function repairPart(finding) {
  const repair = finding.repair;
  if (!repair) return [];
  const proof = { proved: "Proved", unproved: "Not proved", refused: "No rewrite" }[repair.status];
  const parts = [el("p", {}, el("span", { class: "chip " + (repair.status === "proved" ? "good" : "") }, proof), " ", repair.summary, " ", el("small", {}, "rule " + repair.rule))];
  if (repair.why) parts.push(el("p", { class: "pre" }, repair.why));
  if (repair.diff.rows.length) parts.push(diffBox(repair));
  if (repair.diff.left_out) parts.push(el("p", { class: "missing" }, repair.diff.left_out + " more rows are in the patch."));
  if (repair.note) parts.push(el("p", { class: "missing" }, repair.note));
  if (repair.evidence.length) parts.push(el("h5", {}, "Evidence"), pairs(repair.evidence, "counters"));
  if (repair.patch !== null) parts.push(el("p", {}, copyButton("Copy the patch", () => repair.patch)));
  return part("Rewrite", ...parts);
}

function callPath(finding) {
  if (!finding.callers.length) return [];
  const rows = finding.callers.map((index) => data.frames[index]).map((one) => el("li", { class: "owner-" + one.owner },
    el("span", { class: "mono" }, one.where), " ", el("b", {}, one.function), one.owner === "project" ? "" : el("span", { class: "chip" }, one.owner),
    one.source ? el("code", {}, ...codeText(one.source)) : ""));
  return part(finding.kind === "recompile" ? "Where the value is used" : "Call path", el("ol", { class: "callers" }, ...rows));
}

/** Links to what the compiles of a finding produced; the first few say enough. */
function producedFor(finding) {
  const index = data.findings.indexOf(finding);
  const about = produced.compiles.map((one, number) => [one, number]).filter(([one]) => one.findings.includes(index));
  return about.slice(0, 4).map(([one, number]) => link("compile-" + number, "What " + one.title + " produced", "button"));
}

function bodyOf(finding) {
  const code = data.codes[finding.code];
  const said = [finding.said ? el("p", { class: "pre" }, finding.said) : null, finding.hints.length ? el("ul", { class: "notes" }, ...finding.hints.map((hint) => el("li", { class: "pre" }, hint))) : null].filter(Boolean);
  const guards = finding.guards.map((one) => [el("b", {}, one.subject), one.cause, one.expected, one.actual, one.values || "–", el("code", {}, one.expression)]);
  const skipped = finding.skipped.map(([name, ...rest]) => [el("b", {}, name), ...rest]);
  return el("div", { class: "body" },
    finding.closed ? el("p", { class: "do" }, el("b", {}, "Nothing to do: "), finding.why_closed) : null,
    finding.advice ? el("p", { class: "do" }, el("b", {}, "Do this: "), finding.advice) : null,
    ...excerptBox(finding),
    ...repairPart(finding),
    guards.length ? part("Guards", table("guards", ["about", "what differed", "compiled for", "came", "values seen", "guard"], guards, "Guards")) : null,
    skipped.length ? part("Runs eagerly", table("skipped", ["function", "how much", "place", "calls", "why"], skipped, "Skipped functions")) : null,
    el("div", { class: "columns" },
      el("div", {}, code ? part("Why", el("p", {}, code.why)) : null, finding.reason ? part("Reason that Dynamo gave", el("p", { class: "pre" }, finding.reason)) : null),
      el("div", {}, part("Counts", pairs(finding.facts)))),
    ...callPath(finding),
    said.length ? fold("All that Dynamo said", ...said) : null,
    code && code.example ? fold("Example of such a break, and of its repair", codeBox("Example", el("pre", {}, code.example))) : null,
    el("p", { class: "buttons" }, copyButton("Copy a link to this finding", () => location.href.split("#")[0] + "#" + encodeURIComponent(finding.anchor)),
      ...producedFor(finding),
      finding.torch_page ? leads(finding.torch_page, "Torch’s page about it") : null,
      code ? leads(code.page, "More about " + finding.code) : null,
      finding.excerpt.first !== null ? link(`source-${finding.file}-${finding.line}`, "Open in the source view", "button") : null));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard for this page: the old way, which needs a selection.
    const area = el("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

function copyButton(title, text) {
  const said = el("span", { role: "status", class: "said" });
  const button = el("button", { type: "button" }, title);
  button.addEventListener("click", async () => {
    const copied = await copy(text());
    button.focus();
    said.textContent = copied ? "Copied." : "The browser did not allow it.";
    setTimeout(() => { said.textContent = ""; }, 4000);
  });
  return el("span", { class: "copy" }, button, said);
}

const rowOf = new Map();
/** The row of a finding; made once, so that what is open stays open while one filters. */
function findingRow(index) {
  if (!rowOf.has(index)) {
    const finding = data.findings[index];
    const row = el("details", { class: "finding kind-" + finding.tone, id: "finding-" + index }, summaryOf(finding));
    row.fill = () => { if (row.children.length === 1) row.append(bodyOf(finding)); };
    row.addEventListener("toggle", () => {
      if (!row.open) return;
      row.fill();
      reveal(row.querySelector(".codebox") ?? row);
    });
    rowOf.set(index, row);
  }
  return rowOf.get(index);
}

// ---- the list ----

const filters = byId("filters");
let matching = data.findings.map((_, index) => index);
let drawn = 0;
const sorts = {
  worst: (a, b) => a - b,
  cost: (a, b) => (data.findings[b].cost ?? -1) - (data.findings[a].cost ?? -1) || a - b,
  crossings: (a, b) => (data.findings[b].crossings ?? -1) - (data.findings[a].crossings ?? -1) || a - b,
  occurrences: (a, b) => data.findings[b].occurrences - data.findings[a].occurrences || a - b,
  place: (a, b) => {
    const [x, y] = [data.findings[a], data.findings[b]];
    const [p, q] = [data.files[x.file].path, data.files[y.file].path];
    return (p < q ? -1 : p > q ? 1 : 0) || x.line - y.line || x.column - y.column;
  },
};

const haystacks = new Map();
function haystack(index) {
  if (!haystacks.has(index)) {
    const one = data.findings[index];
    const line = one.excerpt.stored ?? data.files[one.file].chunks.flatMap((chunk) => chunk.lines[one.line - chunk.first] ?? [])[0];
    haystacks.set(index, [one.code, one.title, one.place, one.function, one.owner, KINDS[one.kind], one.reason, one.facts.map((fact) => fact[1]).join(" "), one.guards.map((guard) => guard.subject).join(" "), line ? line.text : ""].join("\n").toLowerCase());
  }
  return haystacks.get(index);
}

function applyFilters() {
  const words = byId("f-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [kind, code, owner, file] = ["f-kind", "f-code", "f-owner", "f-file"].map((id) => byId(id).value);
  const news = byId("f-news")?.value;
  const everything = byId("f-follow").value === "all";
  matching = [];
  data.findings.forEach((one, index) => {
    if (one.follows && !everything) return;
    if (news && one.news !== news) return;
    if (kind && one.kind !== kind) return;
    if (code && one.code !== code) return;
    if (owner && one.owner !== owner) return;
    if (file && one.file !== Number(file)) return;
    if (words.length && !words.every((word) => haystack(index).includes(word))) return;
    matching.push(index);
  });
  matching.sort(sorts[byId("f-sort").value]);
  byId("list").replaceChildren();
  drawn = 0;
  drawMore();
  const all = data.findings.length;
  const shown = matching.length === all ? `${all.toLocaleString("en")} finding${all === 1 ? "" : "s"}` : `${matching.length.toLocaleString("en")} of ${all.toLocaleString("en")} findings`;
  const fresh = matching.filter((index) => data.findings[index].news === "new").length;
  byId("f-count").textContent = byId("f-news") ? `${shown}, ${fresh.toLocaleString("en")} new` : shown;
}

function drawMore(upTo) {
  const end = Math.min(matching.length, upTo ?? drawn + BATCH);
  const worst = byId("f-sort").value === "worst";
  for (const index of matching.slice(drawn, end)) {
    const below = worst && data.findings[index].closed && !byId("list").querySelector(".below");
    if (below) byId("list").append(el("p", { class: "below" }, "Nothing is to be done about these: they are expected, or meant to be so."));
    byId("list").append(findingRow(index));
  }
  drawn = Math.max(drawn, end);
  byId("more").hidden = drawn >= matching.length;
  byId("more").textContent = `Show more (${(matching.length - drawn).toLocaleString("en")} left)`;
}

function fillSelect(id, all, entries) {
  byId(id).append(el("option", { value: "" }, all), ...entries.map(([value, text]) => el("option", { value: String(value) }, text)));
}

function startList() {
  const tally = (key) => data.findings.reduce((counts, one) => counts.set(one[key], (counts.get(one[key]) ?? 0) + 1), new Map());
  const byCount = (key, text) => [...tally(key)].sort((a, b) => b[1] - a[1]).map(([value, number]) => [value, `${text(value)} (${number})`]);
  const titles = new Map(data.findings.map((one) => [one.code, data.codes[one.code]?.title ?? one.title]));
  if (byId("f-news")) fillSelect("f-news", "all", byCount("news", (news) => news));
  fillSelect("f-kind", "all", byCount("kind", (kind) => KINDS[kind]));
  fillSelect("f-code", "all", byCount("code", (code) => `${code} ${titles.get(code)}`));
  fillSelect("f-owner", "all", byCount("owner", (owner) => owner));
  fillSelect("f-file", "all", byCount("file", (file) => data.files[file].path));
  byId("f-follow").parentElement.hidden = !data.findings.some((one) => one.follows);
  filters.hidden = false;
  filters.addEventListener("input", applyFilters);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", () => setTimeout(applyFilters));
  byId("more").addEventListener("click", () => drawMore());
  applyFilters();
}

function showFinding(index) {
  if (!matching.includes(index)) {
    filters.reset();
    if (data.findings[index].follows) byId("f-follow").value = "all";
    applyFilters();
  }
  drawMore(Math.max(drawn, matching.indexOf(index) + 1));
  const row = findingRow(index);
  row.fill();
  row.open = true;
  row.scrollIntoView({ block: "start" });
  row.firstElementChild.focus({ preventScroll: true });
}

// ---- the source view ----

function sourceRows(file) {
  const marks = new Map();
  for (const index of file.findings) {
    const line = data.findings[index].line;
    marks.set(line, [...(marks.get(line) ?? []), index]);
  }
  const most = Math.min(3, Math.max(1, ...[...marks.values()].map((here) => here.length)));
  const margin = (line, covered) => {
    const here = marks.get(line) ?? [];
    if (here.length) covered.add(line);
    const heat = Math.max(0, ...here.map((index) => data.findings[index].heat));
    return el("span", { class: `margin wide${most} heat${heat}` }, ...here.slice(0, 3).map((index) => link(data.findings[index].anchor, data.findings[index].code)), here.length > 3 ? "+" + (here.length - 3) : "");
  };
  const blocks = [], covered = new Set(), at = data.files.indexOf(file);
  for (const chunk of file.chunks) {
    const rows = chunk.lines.map((line, i) => codeRow(chunk.first + i, [...codeText(line), ...madeOf(at, chunk.first + i)], margin(chunk.first + i, covered), marks.has(chunk.first + i) ? "here" : ""));
    blocks.push([chunk.first, rows]);
  }
  for (const [line, here] of marks) {
    const stored = data.findings[here[0]].excerpt.stored;
    if (!covered.has(line)) blocks.push([line, [codeRow(line, stored ? codeText(stored) : ["(source not known)"], margin(line, covered), "here")]]);
  }
  blocks.sort((a, b) => a[0] - b[0]);
  return blocks.flatMap(([, rows], i) => (i ? [el("div", { class: "row gap" }, "⋯"), ...rows] : rows));
}

const fileRows = [];
function fileRow(index) {
  if (!fileRows[index]) {
    const file = data.files[index];
    const row = el("details", { class: "file", id: "file-" + index },
      el("summary", {}, el("span", { class: "heat heat" + file.heat, "aria-hidden": "true" }), el("span", { class: "mono" }, file.path), file.owner === "project" ? "" : el("span", { class: "chip" }, file.owner), el("small", {}, file.amount)));
    row.fill = () => {
      if (row.children.length > 1) return;
      row.append(file.note ? el("p", { class: "missing" }, "Note: " + file.note + ".") : "", codeBox("Source of " + file.path, ...sourceRows(file)));
    };
    row.addEventListener("toggle", () => {
      if (!row.open) return;
      row.fill();
      if (!row.touched) scrollBox(row, row.querySelector(".row.here"));
      row.touched = true;
    });
    fileRows[index] = row;
  }
  return fileRows[index];
}

function scrollBox(row, line) {
  const box = row.querySelector(".codebox");
  if (line) box.scrollTop = line.offsetTop - box.clientHeight / 3;
}

let drawnFiles = 0;
function drawFiles(upTo) {
  const end = Math.min(data.files.length, upTo ?? drawnFiles + BATCH);
  for (; drawnFiles < end; drawnFiles++) byId("files").append(fileRow(drawnFiles));
  byId("more-files").hidden = drawnFiles >= data.files.length;
  byId("more-files").textContent = `Show more (${data.files.length - drawnFiles} left)`;
}

function showSource(index, number) {
  drawFiles(Math.max(drawnFiles, index + 1));
  const row = fileRow(index);
  row.touched = true;
  row.fill();
  row.open = true;
  const lines = [...row.querySelectorAll(".row")];
  scrollBox(row, lines.find((line) => line.querySelector(".no")?.textContent === String(number)));
  row.scrollIntoView({ block: "start" });
  row.firstElementChild.focus({ preventScroll: true });
}

// ---- what compiles produced ----

const produced = data.produced ?? { compiles: [], texts: [] };
/** The first line that was made from each source line: generated code before graphs, as the parts stand. */
const madeFrom = new Map();
produced.compiles.forEach((one, compile) => one.parts.forEach((kept, at) => {
  for (const [line, file, number] of kept.text === null ? [] : produced.texts[kept.text].places) {
    const key = file + ":" + number;
    if (!madeFrom.has(key)) madeFrom.set(key, [`compile-${compile}-${at}-${line}`, one.title]);
  }
}));

function madeOf(file, number) {
  const found = madeFrom.get(file + ":" + number);
  return found ? [link(found[0], "→ " + found[1], "made")] : [];
}

function textRows(index) {
  const { text, places } = produced.texts[index];
  const from = new Map(places.map(([line, file, number]) => [line, [file, number]]));
  return text.split("\n").map((line, i) => {
    const place = from.get(i + 1);
    return codeRow(i + 1, place ? [line, link(`source-${place[0]}-${place[1]}`, "→ source", "made")] : [line]);
  });
}

function partRow(kept, compile, at) {
  const row = el("details", { class: "more artifact", id: `compile-${compile}-${at}` }, el("summary", {}, kept.title, " ", el("small", {}, kept.size)));
  row.fill = () => {
    if (row.children.length > 1) return;
    row.append(kept.text === null ? el("p", { class: "missing" }, kept.note) : codeBox(kept.title, ...textRows(kept.text)));
  };
  row.addEventListener("toggle", () => { if (row.open) row.fill(); });
  return row;
}

function drawCompiles() {
  byId("compiles").append(...produced.compiles.map((one, index) => el("details", { class: "file artifact", id: "compile-" + index },
    el("summary", {}, el("span", { class: "mono" }, one.title), " ", one.function, el("small", {}, `${one.parts.length} kept`)),
    el("div", { class: "body" }, ...one.parts.map((kept, at) => partRow(kept, index, at))))));
}

function showProduced(compile, at, number) {
  const outer = byId("compile-" + compile);
  outer.open = true;
  const row = byId(`compile-${compile}-${at}`) ?? outer;
  row.fill?.();
  row.open = true;
  const line = number && [...row.querySelectorAll(".row")][number - 1];
  for (const old of document.querySelectorAll(".artifact .row.here")) old.classList.remove("here");
  if (line) {
    line.classList.add("here");
    scrollBox(row, line);
  }
  row.scrollIntoView({ block: "start" });
  row.firstElementChild.focus({ preventScroll: true });
}

// ---- links, printing ----

const byAnchor = new Map(data.findings.map((one, index) => [one.anchor, index]));
function follow() {
  let anchor = location.hash.slice(1);
  try {
    anchor = decodeURIComponent(anchor);
  } catch {
    // A hash that someone typed: taken as it is.
  }
  const source = /^source-(\d+)-(\d+)$/.exec(anchor);
  const made = /^compile-(\d+)(?:-(\d+)(?:-(\d+))?)?$/.exec(anchor);
  if (byAnchor.has(anchor)) showFinding(byAnchor.get(anchor));
  else if (source && data.files[Number(source[1])]) showSource(Number(source[1]), source[2]);
  else if (made && produced.compiles[Number(made[1])]) showProduced(made[1], made[2], Number(made[3]));
}

let opened = [];
/** On paper nothing can be opened, so everything is. */
function openAll() {
  if (opened.length) return;
  if (data.findings.length) drawMore(matching.length);
  drawFiles(data.files.length);
  for (const row of document.querySelectorAll("details.finding, details.file")) row.fill();
  opened = [...document.querySelectorAll("details:not([open]):not(.artifact)")];
  for (const row of opened) { row.touched = true; row.open = true; }
}
function closeAgain() {
  for (const row of opened) row.open = false;
  opened = [];
}

if (data.findings.length) {
  startList();
  const worst = data.findings.find((one) => one.anchor === byId("first-source")?.dataset.anchor);
  const first = worst?.excerpt;
  const chunk = worst && data.files[worst.file].chunks.find((one) => one.first <= first.first && first.last < one.first + one.lines.length);
  const line = worst && (first.stored ?? chunk?.lines[worst.line - chunk.first]);
  if (line) {
    const mark = first.stored ? first.stored.mark : first.marks.find((one) => one.line === worst.line);
    const indent = line.text.length - line.text.trimStart().length;
    byId("first-source").append(...codeText(line, mark && !first.stored ? [mark.start, mark.end] : mark));
    requestAnimationFrame(() => reveal(byId("first-source")));
    if (indent) byId("first-source").firstChild.textContent = byId("first-source").firstChild.textContent.slice(indent);
    byId("first-source").hidden = false;
  }
}
if (produced.compiles.length) drawCompiles();
if (data.files.length) {
  drawFiles();
  byId("more-files").addEventListener("click", () => drawFiles());
}
addEventListener("hashchange", follow);
// A second click on the same link changes no hash, and should lead there all the same.
document.addEventListener("click", (event) => {
  const target = event.target.closest?.("a[href]");
  const href = target?.getAttribute("href") ?? target?.getAttribute("xlink:href");
  if (href && href === location.hash) setTimeout(follow);
});
addEventListener("beforeprint", openAll);
addEventListener("afterprint", closeAgain);
matchMedia("print").addEventListener("change", (event) => (event.matches ? openAll() : closeAgain()));
follow();
document.documentElement.dataset.ready = "";
})();
