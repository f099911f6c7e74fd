// Keeps what is marked data-live as it is on the server: told by events where there are any, asked
// every half minute elsewhere. Everything is on the page without it.
"use strict";
// What only a script can do: copy buttons, this server's own URL, the key for the search.
// A page that came without TLS has no clipboard, but may copy what is selected.
const copy = async (node) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(node.textContent);
  getSelection().selectAllChildren(node);
  if (!document.execCommand("copy")) throw new Error("copying failed");
};
// Favourites stay in this browser: the server never learns of them.
const KEY = "huai " + new URL(document.querySelector(".brand").getAttribute("href"), location.href).pathname;
const favourites = () => { try { return JSON.parse(localStorage.getItem(KEY)) ?? []; } catch { return []; } };
const star = (name) => {
  const button = document.createElement("button"), list = document.getElementById("favourites");
  button.className = "star";
  button.textContent = "★";
  button.title = `${list.dataset.title} ${name}`;
  button.setAttribute("aria-label", button.title);
  button.setAttribute("aria-pressed", favourites().includes(name));
  button.onclick = () => {
    const names = favourites(), place = button.closest("table") ? "table" : "#favourites";
    localStorage.setItem(KEY, JSON.stringify(names.includes(name) ? names.filter((each) => each !== name) : [...names, name].sort()));
    addStars(document);
    showFavourites();
    document.querySelector(`${place} [title="${CSS.escape(button.title)}"]`)?.focus();
  };
  return button;
};
const modulesOf = (page) => [...page.querySelectorAll("table.modules tbody th a")];
const addStars = (page) => {
  for (const link of modulesOf(page)) {
    link.parentElement.querySelector(".star")?.remove();
    link.after(star(link.textContent));
  }
};
const showFavourites = () => {
  const list = document.getElementById("favourites");
  if (!list) return;
  const rows = new Map(modulesOf(document).map((link) => [link.textContent, link]));
  list.hidden = !favourites().length;
  list.replaceChildren(...favourites().map((name) => {
    const item = document.createElement("span"), row = rows.get(name), link = row?.cloneNode(true) ?? document.createElement("a");
    if (!row) { link.href = list.dataset.place + encodeURIComponent(name); link.textContent = name; }
    item.append(star(name), link, " ", row?.closest("tr").querySelector(".state")?.cloneNode(true) ?? "");
    return item;
  }));
};
const improve = (page) => {
  addStars(page);
  const base = new URL(document.querySelector(".brand").getAttribute("href"), location.href);
  for (const each of page.querySelectorAll("[data-base]")) each.textContent = base.origin + base.pathname.replace(/\/$/, "");
  for (const button of page.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.onclick = async () => {
      await copy(button.previousElementSibling);
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1500);
    };
  }
};
improve(document);
showFavourites();
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.querySelector("input[type=search]");
  if (field) { event.preventDefault(); field.focus(); field.select(); }
});

(() => {
  const POLL = 30000, PAUSE = 1000;
  const state = document.getElementById("live");
  let etag = null, events = null, busy = false, again = false;

  const tell = (key) => { if (state.dataset.now !== key) { state.dataset.now = key; state.textContent = state.dataset[key]; } };

  // What grows old without a change of its own is no news.
  const parts = (block) => [...block.querySelectorAll("tr, p, dl > div")];
  const content = (part) => part.innerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1");

  const take = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    improve(page);
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = page.getElementById(old.id);
      if (!now || now.innerHTML === old.innerHTML) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const fresh = document.adoptNode(now);
      old.replaceWith(fresh);
      const known = new Set(parts(old).map(content));
      for (const part of parts(fresh)) part.classList.toggle("fresh", !known.has(content(part)));
      showFavourites();
      if (focus) [...fresh.querySelectorAll("a")].find((link) => link.getAttribute("href") === focus)?.focus();
    }
  };

  const look = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: etag ? { "If-None-Match": etag } : {}, cache: "no-store" });
      if (answer.ok) { etag = answer.headers.get("ETag"); take(await answer.text()); }
      tell(answer.ok || answer.status === 304 ? "fresh" : "lost");
    } catch { tell("lost"); }
    busy = false;
    if (again) { again = false; setTimeout(look, PAUSE); }
  };

  const poll = () => { if (!document.hidden) look(); };

  // Whoever does not answer at all is asked again; no such address means that there are no events.
  const listen = () => {
    if (!window.EventSource) return;
    events = new EventSource(state.dataset.events);
    events.onopen = look;
    events.onmessage = look;
    for (const kind of ["commit", "modules"]) events.addEventListener(kind, look);
    events.onerror = () => { if (events.readyState === EventSource.CLOSED) events = null; look(); };
  };

  if (!document.querySelector("[data-live]")) return;
  tell("fresh");
  listen();
  const timer = setInterval(poll, POLL);
  document.addEventListener("visibilitychange", poll);
  window.addEventListener("online", poll);
  window.addEventListener("pagehide", () => { events?.close(); clearInterval(timer); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
})();
