// The server makes all markup; this keeps it up to date, adds the keyboard, and
// holds the proof that forms need.

const $ = (sel, el = document) => el.querySelector(sel);
const $$ = (sel, el = document) => [...el.querySelectorAll(sel)];
const PROOF = "gatehouse.proof";
const body = document.body;
const reload = () => location.reload();

// Only pages of this origin, port included, can read what is kept here; a
// cookie goes to every port of the host.
const proof = $("meta[name=gatehouse-proof]");
if (proof) {
  localStorage.setItem(PROOF, proof.content);
  location.replace("/");
}

document.addEventListener("submit", (e) => {
  const form = e.target;
  const ask = e.submitter?.dataset.confirm;
  if (ask && !confirm(ask)) return e.preventDefault();
  if (form.elements.proof) form.elements.proof.value = localStorage.getItem(PROOF) ?? "";
  if ("inline" in form.dataset) {
    e.preventDefault();
    answer(form);
  }
});

// answer sends a form of the inbox and marks its card, so that nothing on the
// page moves.
async function answer(form) {
  const card = form.closest(".card") ?? $("#req-" + CSS.escape(form.dataset.id));
  form.closest("dialog")?.close();
  card.focus({ preventScroll: true });
  try {
    const res = await fetch(form.action, {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams(new FormData(form)),
    });
    const out = await res.json();
    note(card, out.text, out.tone, res.ok);
  } catch {
    note(card, "The gate could not be reached.", "deny", false);
  }
}

function note(card, text, tone, done) {
  const p = $("[data-note]", card);
  p.textContent = text;
  p.className = "note " + (tone ?? "");
  if (!done) return;
  card.dataset.done = "";
  $("fieldset", card).disabled = true;
}

// A call that is on screen for under a second cannot be approved, and one in a
// tab that nobody looks at is not on screen. The server checks the first.
function arm(root) {
  for (const b of $$("button[data-arm]", root)) {
    const later = () => setTimeout(() => (document.hidden ? wait() : (b.disabled = false)), 1000);
    const wait = () => document.addEventListener("visibilitychange", later, { once: true });
    document.hidden ? wait() : later();
  }
}

// Countdowns start from what the server said was left: clocks may disagree.
function countDown(root) {
  for (const t of $$("time[data-left]", root)) t.end ??= performance.now() + t.dataset.left * 1000;
}
setInterval(() => {
  for (const t of $$("time[data-left]")) {
    const s = Math.max(0, Math.round((t.end - performance.now()) / 1000));
    t.textContent = `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
    t.classList.toggle("soon", s < 60);
  }
}, 1000);

function adopt(html) {
  const t = document.createElement("template");
  t.innerHTML = html;
  arm(t.content);
  countDown(t.content);
  return t.content.firstElementChild;
}

// The pill floats above the page, so that news moves nothing.
const pill = $("#pill");
function say(text, onclick) {
  pill.textContent = text;
  pill.onclick = onclick;
  pill.hidden = !text;
}

const title = document.title.replace(/^\(\d+\) /, "");
function status(s) {
  for (const el of $$("[data-count]")) el.textContent = s.pending || "";
  document.title = (s.pending ? `(${s.pending}) ` : "") + title;
  const words = { kill: "kill switch", broken: "state of the policy", staged: "staged policy", codes: "codes" };
  const news = Object.keys(words).find((key) => String(s[key]) !== body.dataset[key]);
  if (news) say(`The ${words[news]} changed. Reload`, reload);
}

function inbox({ ids, cards }) {
  const list = $("#inbox");
  const fresh = cards.filter(({ id }) => !document.getElementById("req-" + id)).map(({ html }) => adopt(html));
  list.append(...fresh);
  if (list.children.length) $("#empty").hidden = true;
  const below = fresh.filter((el) => el.getBoundingClientRect().top > innerHeight);
  if (below.length) {
    say(`${below.length} new below`, () => {
      below[0].focus();
      say("");
    });
  }
  for (const card of $$(".card:not([data-done])", list)) {
    if (!ids.includes(card.dataset.id)) gone(card);
  }
}

// gone marks a card that was answered elsewhere; it stays where it is.
async function gone(card) {
  $("fieldset", card).disabled = true;
  const res = await fetch(`/requests/${encodeURIComponent(card.dataset.id)}/card`);
  const text = res.ok ? $("[data-note]", adopt(await res.text())).textContent : "No longer waits.";
  if (!("done" in card.dataset)) note(card, text, "", true);
}

function request({ state, text }) {
  if (state === "pending" || !$("[data-answer]")) return;
  $("[data-answer]").disabled = true;
  $("[data-status]").textContent = text;
  for (const b of $$("#edit button")) b.disabled = true;
}

// The feed keeps still while it is paused, read or pointed at; the pill counts.
const feed = $("#live");
const held = [];
let paused = false;
const still = () => paused || scrollY > 40 || feed.contains(document.activeElement) || (matchMedia("(hover:hover)").matches && feed.matches(":hover"));
function live(rows) {
  for (const { id, html } of rows) {
    const old = $(`[data-id="${CSS.escape(id)}"]`, feed);
    if (old) $("[data-state]", old).replaceWith($("[data-state]", adopt(html)));
    else {
      const i = held.findIndex((r) => r.id === id);
      i < 0 ? held.push({ id, html }) : (held[i].html = html);
    }
  }
  flow();
}
function flow(force) {
  if (force || !still()) {
    feed.prepend(...held.splice(0).reverse().map((r) => adopt(r.html)));
    while (feed.children.length > 300) feed.lastElementChild.remove();
    if (feed.children.length) $("#empty").hidden = true;
  }
  say(held.length ? `${held.length} new` : "", () => {
    scrollTo(0, 0);
    flow(true);
  });
}
if (feed) {
  feed.addEventListener("mouseleave", () => flow());
  feed.addEventListener("focusout", () => setTimeout(flow));
  addEventListener("scroll", () => held.length && flow(), { passive: true });
  $("#pause").addEventListener("click", (e) => {
    paused = !paused;
    e.target.setAttribute("aria-pressed", paused);
    e.target.textContent = paused ? "Go on" : "Pause";
    flow();
  });
}

// One stream per visible tab and one for all hidden ones: browsers allow only
// six connections to a host, and each stream holds one.
const handlers = { status, inbox, request, live };
let source, release;
function connect() {
  if (source) return;
  source = new EventSource("/events?" + new URLSearchParams({ view: body.dataset.view, id: body.dataset.viewId }));
  for (const [name, fn] of Object.entries(handlers)) source.addEventListener(name, (e) => fn(JSON.parse(e.data)));
  source.addEventListener("signedout", () => {
    source.close();
    say("You are signed out. Reload", reload);
  });
}
function watch() {
  if (!document.hidden) {
    release?.();
    return connect();
  }
  if (!navigator.locks) return;
  source?.close();
  source = null;
  navigator.locks.request("gatehouse.hidden", () => document.hidden && new Promise((done) => {
    release = done;
    connect();
  }));
}
if ("view" in body.dataset) {
  watch();
  document.addEventListener("visibilitychange", watch);
  addEventListener("pagehide", () => source?.close());
}

function denyDialog(card) {
  const dialog = $("#deny-dialog"), form = $("form", dialog);
  form.dataset.id = card.dataset.id;
  form.action = `/requests/${encodeURIComponent(card.dataset.id)}/deny`;
  form.elements.digest.value = $("[data-deny]", card).dataset.digest;
  form.elements.text.value = "";
  $("[data-what]", dialog).textContent = $("[data-open]", card).textContent;
  dialog.showModal();
}

document.addEventListener("click", (e) => {
  const hit = (sel) => e.target.closest(sel);
  if (hit("[data-deny]")) denyDialog(hit(".card"));
  else if (hit("[data-close]")) hit("dialog").close();
  else if (hit("[data-help]")) $("#help").showModal();
  else if (hit("[data-theme-toggle]")) toggleTheme();
});

// The choice is a cookie, so that the server sends the page in its colours.
function toggleTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const next = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  if (next === system) delete root.dataset.theme;
  else root.dataset.theme = next;
  document.cookie = `gatehouse-theme=${next}; path=/; samesite=strict; max-age=${next === system ? 0 : 31536000}`;
}

function move(step) {
  const items = $$("[data-item]");
  const at = items.indexOf(document.activeElement.closest("[data-item]"));
  const to = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  "?": () => $("#help")?.showModal(),
  i: () => location.assign("/"),
  Enter(item) {
    if (item && item === document.activeElement) $("[data-open]", item)?.click();
  },
  a(item) {
    if (!item) return ($("input[name=code]") ?? $("main button[data-approve]"))?.focus();
    const b = $("button[data-approve]", item);
    if (b) b.click();
    else if ($("fieldset:enabled", item)) $("[data-open]", item).click();
  },
  d(item) {
    if (!item) return $(".answer input[name=text]")?.focus();
    if ($("fieldset:enabled [data-deny]", item)) denyDialog(item);
  },
  e() {
    const fold = $("#edit");
    if (!fold) return;
    fold.open = true;
    $("textarea", fold).focus();
  },
};
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || !("view" in body.dataset)) return;
  if (e.target.closest("input, textarea, select, dialog")) return;
  if (!Object.hasOwn(keys, e.key) || (e.repeat && !"jk".includes(e.key))) return;
  if (e.key !== "Enter") e.preventDefault();
  keys[e.key](document.activeElement.closest("[data-item]"));
});

for (const area of $$("textarea[data-json]")) {
  area.addEventListener("input", () => {
    area.setCustomValidity("");
    try {
      JSON.parse(area.value);
    } catch (err) {
      area.setCustomValidity(err.message);
    }
  });
}

arm(document);
countDown(document);
body.dataset.ready = "";
