"use strict";
// The page of a live desktop: shows its frames, and sends what the user does. crates/desktop/src/live/message.rs describes the
// messages, crates/desktop/kernel/src/event.rs the events.

const MOVE = 48, PRESS = 49, RELEASE = 50, WHEEL = 51, KEY = 52, TYPE = 53, TOUCH = 54;
const SHIFT = 1, CONTROL = 2, ALT = 4;
const ENTER = 2, BACKSPACE = 11, DELETE = 12, SELECT_ALL = 13, COPY = 15, CUT = 16, APPS = 19, TAB = 1;
const KEYS = {
  Tab: TAB, Enter: ENTER, " ": 3, Escape: 4, ArrowLeft: 5, ArrowRight: 6, ArrowUp: 7, ArrowDown: 8, Home: 9, End: 10,
  Backspace: BACKSPACE, Delete: DELETE, F4: 14, PageUp: 17, PageDown: 18, ContextMenu: APPS,
};
const MAX_WIDTH = 3840, MAX_HEIGHT = 2160, MAX_PASTE = 40000;

const desk = document.getElementById("desk");
const canvas = document.getElementById("canvas");
const context = canvas.getContext("2d", { alpha: false });
const text = document.getElementById("text");
const banner = document.getElementById("banner");

// --- The connection --------------------------------------------------------------------------------------------------------

let socket = null;
let pause = 250;

function connect() {
  const token = new URLSearchParams(location.search).get("token");
  const own = new WebSocket(`ws://${location.host}/socket${token === null ? "" : `?token=${encodeURIComponent(token)}`}`);
  own.binaryType = "arraybuffer";
  own.onopen = () => {
    socket = own;
    pause = 250;
    banner.hidden = true;
    stamps.clear();
    sent = "";
    sendSize();
  };
  own.onmessage = ({ data }) => {
    const view = new DataView(data);
    if (view.getUint8(0) === 1) show(own, view);
    else if (view.getUint8(0) === 2) copied(new TextDecoder().decode(new Uint8Array(data, 1)));
  };
  own.onclose = ({ code, reason }) => {
    socket = null;
    banner.textContent = reason && code !== 1001 ? `Reconnecting… (${reason})` : "Reconnecting…";
    banner.hidden = false;
    setTimeout(connect, pause);
    pause = Math.min(pause * 2, 4000);
  };
}

function send(bytes) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(bytes);
}

// --- Frames ----------------------------------------------------------------------------------------------------------------

// Frames are unpacked side by side, and drawn one after the other.
let drawing = Promise.resolve();

function show(from, view) {
  const count = view.getUint16(16, true);
  const packed = new Uint8Array(view.buffer, 20 + count * 8);
  const unpacked = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
  drawing = drawing.then(async () => draw(from, view, count, await unpacked)).catch((error) => {
    console.error(error);
    from.close();
  });
}

function draw(from, view, count, pixels) {
  if (from !== socket) return;
  const half = (at) => view.getUint16(at, true);
  const [width, height] = [half(12), half(14)];
  if (canvas.width !== width || canvas.height !== height) {
    [canvas.width, canvas.height] = [width, height];
    fit();
  }
  for (let i = 0, at = 0; i < count; i++) {
    const place = 20 + i * 8;
    const [w, h] = [half(place + 4), half(place + 6)];
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels, at, w * h * 4), w, h), half(place), half(place + 2));
    at += w * h * 4;
  }
  const number = view.getUint32(4, true), shows = view.getUint32(8, true);
  const drawn = new DataView(new ArrayBuffer(5));
  drawn.setUint8(0, 1);
  drawn.setUint32(1, number, true);
  send(drawn.buffer);
  countFrame(view.byteLength, shows);
}

// --- Size ------------------------------------------------------------------------------------------------------------------

// The page's size in the screen's own pixels, as the browser rounds them.
let exact = null;
let sent = "";
let resizing = 0;

function size() {
  const ratio = devicePixelRatio;
  const [width, height] = exact ?? [Math.round(innerWidth * ratio), Math.round(innerHeight * ratio)];
  const less = Math.min(1, MAX_WIDTH / width, MAX_HEIGHT / height);
  const scale = Math.round(Math.min(Math.max(ratio * less, 0.25), 4) * 256);
  return [Math.max(Math.floor(width * less), 1), Math.max(Math.floor(height * less), 1), scale];
}

function sendSize() {
  const now = size();
  if (!socket || String(now) === sent) return;
  sent = String(now);
  const message = new DataView(new ArrayBuffer(7));
  message.setUint8(0, 4);
  now.forEach((number, i) => message.setUint16(1 + i * 2, number, true));
  send(message.buffer);
}

// Shows the desktop pixel by pixel if it has the page's size, and otherwise as large as it fits.
function fit() {
  const [width, height] = size();
  const isExact = canvas.width === width && canvas.height === height;
  const scale = Math.min(desk.clientWidth / canvas.width, desk.clientHeight / canvas.height);
  const [w, h] = isExact ? [desk.clientWidth, desk.clientHeight] : [canvas.width * scale, canvas.height * scale];
  canvas.classList.toggle("exact", isExact);
  // The element may be a fraction of a pixel larger than the screen's pixels in it.
  const ratio = exact ? [desk.clientWidth / exact[0], desk.clientHeight / exact[1]] : null;
  canvas.style.width = `${isExact && ratio ? canvas.width * ratio[0] : w}px`;
  canvas.style.height = `${isExact && ratio ? canvas.height * ratio[1] : h}px`;
  canvas.style.left = `${isExact ? 0 : (desk.clientWidth - w) / 2}px`;
  canvas.style.top = `${isExact ? 0 : (desk.clientHeight - h) / 2}px`;
}

function resized(entries) {
  const box = entries?.[0]?.devicePixelContentBoxSize?.[0];
  // A browser that only plays another pixel ratio says its real pixels here.
  const isNear = (pixels, length) => Math.abs(pixels - length * devicePixelRatio) < 1;
  const isTrue = box && isNear(box.inlineSize, desk.clientWidth) && isNear(box.blockSize, desk.clientHeight);
  exact = isTrue ? [box.inlineSize, box.blockSize] : null;
  fit();
  clearTimeout(resizing);
  resizing = setTimeout(sendSize, 60);
}

const observer = new ResizeObserver(resized);
try {
  observer.observe(desk, { box: "device-pixel-content-box" });
} catch {
  observer.observe(desk);
  addEventListener("resize", () => resized(null));
}

// --- Input -----------------------------------------------------------------------------------------------------------------

let number = 0;
const stamps = new Map();

// Sends events: [kind, flags, key, a, b] each.
function input(events) {
  if (!socket || events.length === 0) return;
  const message = new DataView(new ArrayBuffer(5 + events.length * 16));
  number += 1;
  message.setUint8(0, 2);
  message.setUint32(1, number, true);
  events.forEach(([kind, flags, key, a, b], i) => {
    message.setUint16(5 + i * 16, kind, true);
    message.setUint16(7 + i * 16, flags, true);
    [key, a, b].forEach((word, j) => message.setUint32(9 + i * 16 + j * 4, word, true));
  });
  if (stamps.size > 1000) stamps.clear();
  stamps.set(number, performance.now());
  send(message.buffer);
}

// Where an event is, in 256ths of a pixel of the desktop.
function place(event) {
  const box = canvas.getBoundingClientRect();
  const at = (client, from, length, pixels) => Math.round((client - from) / length * pixels * 256);
  return [at(event.clientX, box.left, box.width, canvas.width), at(event.clientY, box.top, box.height, canvas.height)];
}

// Of moves and turns of the wheel, one message per animation frame is enough; the first goes at once.
let moves = new Map();
let wheel = [0, 0];
let waits = false;

function flush() {
  const events = [...moves.values()];
  if (wheel[0] !== 0 || wheel[1] !== 0) events.push([WHEEL, 0, 0, Math.round(wheel[0]), Math.round(wheel[1])]);
  moves = new Map();
  wheel = [0, 0];
  input(events);
  return events.length > 0;
}

function soon() {
  if (waits) return;
  waits = flush();
  if (waits) requestAnimationFrame(() => { waits = false; soon(); });
}

// The buttons that are down, as PointerEvent.buttons has them: left, right, middle.
let buttons = 0;
const BUTTONS = [[1, 0], [4, 1], [2, 2]];

function pointer(event) {
  if (event.pointerType === "touch") return touch(event);
  const at = place(event);
  moves.set("pointer", [MOVE, 0, 0, ...at]);
  const now = event.type === "pointercancel" ? 0 : event.buttons;
  const changed = BUTTONS.filter(([bit]) => (now ^ buttons) & bit);
  buttons = now;
  if (changed.length === 0) return soon();
  event.preventDefault();
  flush();
  input(changed.map(([bit, button]) => [now & bit ? PRESS : RELEASE, 0, button, ...at]));
  if (event.type === "pointerdown") {
    canvas.setPointerCapture(event.pointerId);
    focusText(event);
  }
}

function touch(event) {
  const what = { pointerdown: 0, pointermove: 1, pointerup: 2, pointercancel: 3 }[event.type];
  const finger = [TOUCH, what, event.pointerId >>> 0, ...place(event)];
  event.preventDefault();
  if (what === 1) {
    moves.set(event.pointerId, finger);
    return soon();
  }
  if (what === 0) canvas.setPointerCapture(event.pointerId);
  flush();
  input([finger]);
}

["pointerdown", "pointermove", "pointerup", "pointercancel"].forEach((type) => canvas.addEventListener(type, pointer));
// Nothing is under a pointer that has left.
canvas.addEventListener("pointerleave", (event) => {
  if (event.pointerType === "touch" || buttons !== 0) return;
  moves.set("pointer", [MOVE, 0, 0, -256, -256]);
  soon();
});
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
// Otherwise the middle button begins to scroll, and the press takes the focus from the text.
canvas.addEventListener("mousedown", (event) => event.preventDefault());
canvas.addEventListener("wheel", (event) => {
  if (event.ctrlKey) return; // The browser's zoom.
  event.preventDefault();
  const step = [1, 40, 800][event.deltaMode] * canvas.width / canvas.getBoundingClientRect().width * 256;
  moves.set("pointer", [MOVE, 0, 0, ...place(event)]);
  wheel = [wheel[0] + event.deltaX * step, wheel[1] + event.deltaY * step];
  soon();
}, { passive: false });

// --- Keyboard --------------------------------------------------------------------------------------------------------------

// What is typed goes to a hidden text, so that input methods, dead keys and the keyboards of phones work. It always has a
// character that a phone's keyboard can delete.
const FILLER = "\u200b";

function clearText() {
  text.value = FILLER;
  text.setSelectionRange(1, 1);
}

function focusText(event) {
  if (event) {
    text.style.left = `${event.clientX}px`;
    text.style.top = `${event.clientY}px`;
  }
  text.focus({ preventScroll: true });
}

function key(code, modifiers) {
  flush();
  input([[KEY, 0, code, modifiers, 0]]);
}

function type(characters) {
  flush();
  // A long text is more than a message holds.
  const events = [...characters].map((c) => (c === "\n" ? [KEY, 0, ENTER, 0, 0] : [TYPE, 0, c.codePointAt(0), 0, 0]));
  for (let i = 0; i < events.length; i += 500) input(events.slice(i, i + 500));
}

// The desktop's key for a pressed key; undefined: it is the browser's, or a character.
function meaning(event) {
  const command = event.ctrlKey || event.metaKey;
  if (event.getModifierState("AltGraph")) return undefined;
  if (command && !event.shiftKey && !event.altKey) {
    const letter = { a: SELECT_ALL, c: COPY, x: CUT }[event.key.toLowerCase()];
    if (letter) return [letter, 0];
    if (event.code === "Backquote") return [TAB, CONTROL];
    if (event.ctrlKey && event.code === "Space") return [APPS, 0];
  }
  // On a Mac, these are the browser's.
  if (event.metaKey || (event.key === "F4" && !event.altKey)) return undefined;
  const code = KEYS[event.key];
  return code && [code, (event.shiftKey ? SHIFT : 0) | (event.ctrlKey ? CONTROL : 0) | (event.altKey ? ALT : 0)];
}

addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey && event.shiftKey && event.code === "KeyF") {
    event.preventDefault();
    stats.hidden = !stats.hidden;
    return;
  }
  const said = meaning(event);
  if (said) {
    event.preventDefault();
    key(...said);
  }
});

text.addEventListener("beforeinput", (event) => {
  const what = event.inputType;
  // What an input method composes is sent when it is complete.
  if (what === "insertCompositionText" || what === "deleteCompositionText" || what === "insertFromComposition") return;
  event.preventDefault();
  if (what === "insertText" || what === "insertReplacementText") type(event.data ?? event.dataTransfer?.getData("text/plain") ?? "");
  else if (what === "insertLineBreak" || what === "insertParagraph") key(ENTER, 0);
  else if (what.startsWith("delete")) key(what.endsWith("Forward") ? DELETE : BACKSPACE, 0);
});
text.addEventListener("compositionstart", () => {
  text.value = "";
  text.classList.add("composing");
});
text.addEventListener("compositionend", (event) => {
  text.classList.remove("composing");
  type(event.data);
  // The browser changes the text after this event.
  setTimeout(clearText);
});
addEventListener("focus", () => focusText());
document.getElementById("keyboard").addEventListener("click", () => focusText());

// --- Clipboard -------------------------------------------------------------------------------------------------------------

let clipboard = null;

addEventListener("paste", (event) => {
  event.preventDefault();
  const pasted = event.clipboardData?.getData("text/plain").slice(0, MAX_PASTE) ?? "";
  if (pasted === "") return;
  flush();
  const bytes = new TextEncoder().encode(pasted);
  const message = new Uint8Array(1 + bytes.length);
  message[0] = 3;
  message.set(bytes, 1);
  send(message.buffer);
});

async function copied(copy) {
  clipboard = copy;
  try {
    await navigator.clipboard.writeText(copy);
  } catch {
    // Not allowed, or not over an encrypted connection: then as if the user had copied.
    document.execCommand("copy");
  }
}

addEventListener("copy", (event) => {
  if (clipboard === null) return;
  event.clipboardData.setData("text/plain", clipboard);
  event.preventDefault();
});

// --- Figures ---------------------------------------------------------------------------------------------------------------

const stats = document.getElementById("stats");
stats.hidden = !new URLSearchParams(location.search).has("stats");
const MAX_LATENCIES = 500;
const latencies = [];
let frames = 0, bytes = 0, since = performance.now();

function countFrame(length, shows) {
  frames += 1;
  bytes += length;
  const stamp = stamps.get(shows);
  if (stamp === undefined) return;
  latencies.push(performance.now() - stamp);
  if (latencies.length > MAX_LATENCIES) latencies.shift();
  for (const number of stamps.keys()) if (number <= shows) stamps.delete(number);
}

function figures() {
  const sorted = [...latencies].sort((a, b) => a - b);
  const share = (part) => sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? NaN;
  return { frames, bytes, inputs: sorted.length, p50: share(0.5), p99: share(0.99) };
}

setInterval(() => {
  const seconds = (performance.now() - since) / 1000, { p50, p99 } = figures();
  if (!stats.hidden) {
    const shown = (milliseconds) => (Number.isNaN(milliseconds) ? "–" : `${milliseconds.toFixed(1)} ms`);
    stats.textContent = `${canvas.width} × ${canvas.height}\n${(frames / seconds).toFixed(0)} frames/s\n`
      + `input to display: p50 ${shown(p50)}, p99 ${shown(p99)}\n${(bytes / seconds / 1024).toFixed(1)} KiB/s`;
  }
  frames = bytes = 0;
  since = performance.now();
}, 1000);

// For tests.
globalThis.gpuRunDesktop = { figures, forget: () => { latencies.length = 0; } };

clearText();
focusText();
connect();
