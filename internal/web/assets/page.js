"use strict";
// The page of "holdfast serve". All text goes into the page as text: nothing here makes
// markup of a string, and the server's policy lets no such call through.

const every = 2000; // ms between two looks
const rateOver = 30000; // ms that a rate looks back
const shown = 200; // live messages that are asked for, and failed ones

const $ = (id) => document.getElementById(id);

// el makes an element; props are set as properties, dashed ones as attributes.
function el(name, props, ...children) {
	const e = document.createElement(name);
	for (const [k, v] of Object.entries(props || {})) {
		if (k.includes("-") || k === "role" || k === "scope") e.setAttribute(k, v);
		else e[k] = v;
	}
	e.append(...children);
	return e;
}

class Refused extends Error {
	constructor(status, body) {
		super(body.error || "the server answered " + status);
		this.status = status;
		this.code = body.code;
	}
}

async function ask(path, body) {
	const how = { headers: { Authorization: "Bearer " + sessionStorage.getItem("token") }, cache: "no-store" };
	if (body) {
		how.method = "POST";
		how.headers["Content-Type"] = "application/json";
		how.body = JSON.stringify(body);
	}
	const answer = await fetch(path, how);
	const value = await answer.json().catch(() => ({})); // without a body the status says enough
	if (!answer.ok) throw new Refused(answer.status, value);
	return value;
}

const query = (path, args) => path + "?" + new URLSearchParams(Object.entries(args).filter(([, v]) => v !== ""));

// Ages and numbers.

let skew = 0; // the server's clock less ours

function span(ms) {
	const s = Math.max(0, Math.round(ms / 1000));
	if (s < 60) return s + " s";
	if (s < 3600) return Math.floor(s / 60) + " min";
	if (s < 48 * 3600) return Math.floor(s / 3600) + " h " + (Math.floor(s / 60) % 60) + " min";
	return Math.floor(s / 86400) + " days";
}

const now = () => Date.now() + skew;
const when = (t) => (t ? new Date(t).toLocaleString() : "");
const age = (t) => (t ? span(now() - Date.parse(t)) : "–");

function lease(e) {
	if (!e.deadline) return "no deadline";
	const left = Date.parse(e.deadline) - now();
	return left > 0 ? "ends in " + span(left) : "over for " + span(-left);
}

function count(n, mark) {
	const s = el("span", { textContent: n.toLocaleString("en") });
	if (!n) s.className = "zero";
	else if (mark) s.className = mark;
	return s;
}

// Rates: what the counters say now and said some time ago.

let seen = [];

function remember(st) {
	const counters = Object.create(null); // a queue may be called "constructor"
	for (const [name, q] of Object.entries(st.queues)) counters[name] = [q.counters.enqueued, q.counters.completed];
	seen.push({ at: Date.parse(st.now), counters });
	while (seen.length > 2 && seen[1].at <= seen[seen.length - 1].at - rateOver) seen.shift();
}

function rate(name, i) {
	const first = seen.find((x) => x.counters[name]);
	const last = seen[seen.length - 1];
	if (!first || last.at <= first.at) return "–";
	const perMinute = ((last.counters[name][i] - first.counters[name][i]) * 60000) / (last.at - first.at);
	return perMinute >= 10 || perMinute === 0 ? Math.round(perMinute).toLocaleString("en") : perMinute.toFixed(1);
}

// A table whose rows turn into cards on a narrow screen. The roles are said, because a
// browser forgets them when the rows are shown otherwise.

function table(label, kind, heads, rows) {
	const head = el("tr", { role: "row" });
	for (const h of heads) head.append(el("th", { role: "columnheader", scope: "col", className: [h.number && "number", h.kind].filter(Boolean).join(" "), textContent: h.name }));
	const body = el("tbody", { role: "rowgroup" });
	for (const cells of rows) {
		const row = el("tr", { role: "row" });
		cells.forEach((cell, i) => {
			const h = heads[i];
			const props = i ? { role: "cell", "data-label": h.name } : { role: "rowheader", scope: "row" };
			props.className = [h.number && "number", h.kind, cell === "–" && "blank"].filter(Boolean).join(" ");
			row.append(el(i ? "td" : "th", props, cell));
		});
		body.append(row);
	}
	return el("table", { role: "table", "aria-label": label, className: kind }, el("thead", { role: "rowgroup" }, head), body);
}

const none = (text) => el("p", { className: "none", textContent: text });

// put replaces what is in a place, and gives the focus back to the key that had it.
function put(place, ...what) {
	const had = place.contains(document.activeElement) ? document.activeElement.dataset.key : "";
	place.replaceChildren(...what);
	if (had) for (const e of place.querySelectorAll("[data-key]")) if (e.dataset.key === had) e.focus();
}

function key(text, name, act) {
	const b = el("button", { type: "button", textContent: text, "aria-label": text + " " + name, "data-key": text + " " + name });
	b.addEventListener("click", act);
	return b;
}

// title is a key that shows what it names.
function title(name, place, act) {
	const b = el("button", { type: "button", className: "name", textContent: name, "aria-label": "Show " + name, "data-key": place + " " + name });
	b.addEventListener("click", act);
	return b;
}

const keys = (...all) => el("div", { className: "keys" }, ...all);

// What is shown.

let open = ""; // the queue whose messages are shown
let status = null;

function showQueues(st) {
	const names = Object.keys(st.queues).sort();
	if (!names.length) return put($("queues"), none("No queues yet."));
	const heads = [
		{ name: "Queue" }, { name: "Ready", number: 1 }, { name: "Scheduled", number: 1 }, { name: "Blocked", number: 1 },
		{ name: "In hands", number: 1 }, { name: "Overdue", number: 1 }, { name: "Failed", number: 1 }, { name: "Oldest", number: 1 },
		{ name: "In / min", number: 1 }, { name: "Done / min", number: 1 },
	];
	put($("queues"), table("Queues", "gauges", heads, names.map((name) => {
		const q = st.queues[name];
		const head = el("div", {}, title(name, "queue", () => choose(name)));
		if (q.paused) head.append(" ", el("span", { className: "warn", textContent: "paused" }));
		if (q.importing) head.append(" ", el("span", { className: "warn", textContent: "importing" }));
		return [
			head, count(q.ready), count(q.scheduled), count(q.blocked), count(q.processing), count(q.overdue, "warn"),
			count(q.failed, "bad"), age(q.oldest), rate(name, 0), rate(name, 1),
		];
	})));
}

function showHeld(page) {
	const held = page.entries.filter((e) => e.state === "processing");
	const total = status.queues[open].processing;
	if (!held.length) return put($("held"), none(total ? "None among the first " + shown + " messages." : "Nothing is in hands."));
	const heads = [
		{ name: "Message" }, { name: "Holder" }, { name: "Attempt", number: 1 }, { name: "Lease" }, { name: "Last error", kind: "error" },
		{ name: "Keys", kind: "keys-cell" },
	];
	const more = held.length < total ? [none(held.length + " of " + total + " are shown.")] : [];
	put($("held"), table("In hands", "", heads, held.map((e) => [
		messageKey(e), e.label || "–", count(e.attempts), el("span", { className: e.overdue ? "warn" : "", textContent: lease(e) }),
		e.last_error || "–",
		keys(key("Release", e.id, () => sure("Release " + e.id + "?",
			"The claim of " + (e.label || "its holder") + " ends now, and the message can be claimed again. If its holder is still at work, the work may be done twice; its settlement is refused once the message is claimed again.",
			"Release", "/v1/reap", { receipt: e.receipt }))),
	])), ...more);
}

function showWaiting(page) {
	const waiting = page.entries.filter((e) => e.state !== "processing").slice(0, 20);
	const total = status.queues[open].pending;
	if (!waiting.length) return put($("waiting"), none(total ? "None among the first " + shown + " messages." : "Nothing is waiting."));
	const heads = [{ name: "Message" }, { name: "State" }, { name: "Key" }, { name: "Age", number: 1 }, { name: "Attempts", number: 1 }, { name: "Last error", kind: "error" }];
	const more = waiting.length < total ? [none(waiting.length + " of " + total.toLocaleString("en") + " are shown.")] : [];
	put($("waiting"), table("Waiting", "", heads, waiting.map((e) => {
		let state = e.state;
		if (e.state === "scheduled") state += ", due in " + span(Date.parse(e.not_before) - now());
		if (e.returned) state += ", " + e.returned;
		return [messageKey(e), state, e.key || "–", age(e.enqueued_at), count(e.attempts), e.last_error || "–"];
	})), ...more);
}

function showFailed(page) {
	if (!page.entries.length) return put($("failed"), none("No message has failed here."));
	const heads = [{ name: "Name" }, { name: "Attempts", number: 1 }, { name: "Failed", number: 1 }, { name: "Last error", kind: "error" }, { name: "Keys", kind: "keys-cell" }];
	const more = page.next ? [none("The first " + page.entries.length + " are shown.")] : [];
	put($("failed"), table("Failed", "", heads, page.entries.map((e) => {
		const named = { failed_name: e.failed_name, namespace: e.namespace || "" };
		return [
			messageKey(e), count(e.attempts), age(e.failed_at) + " ago", e.last_error || "–",
			keys(
				key("Reprocess", e.failed_name, () => sure("Reprocess " + e.failed_name + "?",
					"It goes back to " + e.queue + ", ahead of newer messages of its ID. Its attempts so far no longer count.", "Reprocess", "/v1/reprocess", named)),
				key("Purge", e.failed_name, () => sure("Purge " + e.failed_name + "?",
					"The message and its payload are removed for good.", "Purge", "/v1/purge", named)),
			),
		];
	})), ...more);
}

function messageKey(e) {
	return title(e.failed_name || e.id, e.state + e.generation, () => showMessage(e));
}

async function showMessage(e) {
	try {
		const path = e.failed_name
			? query("/v1/failed-message", { failed_name: e.failed_name, namespace: e.namespace || "" })
			: query("/v1/message", { queue: e.queue, id: e.id });
		const answer = await ask(path);
		const m = answer.entries ? answer.entries.find((x) => x.generation === e.generation) || answer.entries[0] : answer;
		$("message-head").textContent = e.failed_name || e.id;
		const facts = {
			Queue: m.queue, State: m.state, Key: m.key, Enqueued: when(m.enqueued_at), "Not before": when(m.not_before), Attempts: m.attempts,
			Excused: m.excused || "", Lapses: m.lapses || "", Holder: m.label, Lease: m.receipt ? lease(m) : "", Receipt: m.receipt,
			Failed: when(m.failed_at), Namespace: m.namespace, "Last error": m.last_error, Bytes: m.payload_bytes,
		};
		$("message-facts").replaceChildren(...Object.entries(facts).filter(([, v]) => v !== undefined && v !== null && v !== "")
			.flatMap(([k, v]) => [el("dt", { textContent: k }), el("dd", { textContent: v })]));
		$("message-payload").textContent = m.payload_text === undefined ? "The payload is damaged: it cannot be shown." : m.payload_text;
		$("message").showModal();
	} catch (err) {
		trouble(err);
	}
}

// sure asks before it changes something.
function sure(head, text, yes, path, body) {
	$("confirm-head").textContent = head;
	$("confirm-text").textContent = text;
	$("confirm-yes").textContent = yes;
	const dialog = $("confirm");
	dialog.returnValue = "no";
	dialog.onclose = async () => {
		if (dialog.returnValue !== "yes") return;
		try {
			await ask(path, body);
			trouble(null);
		} catch (err) {
			trouble(err);
		}
		look();
	};
	dialog.showModal();
}

function trouble(err) {
	if (err && err.status === 401) return logout("That token is not the one of this server.");
	$("trouble").hidden = !err;
	$("trouble").textContent = err ? (err.code ? err.code + ": " : "") + err.message : "";
}

function choose(name) {
	open = name;
	$("queue").hidden = true;
	look().then(() => $("queue-head").focus());
}

// Looking again and again.

let looking = null;
let timer = 0;

function look() {
	clearTimeout(timer);
	looking = (looking || Promise.resolve()).then(lookOnce).finally(() => {
		clearTimeout(timer);
		if (sessionStorage.getItem("token") && !document.hidden) timer = setTimeout(look, every);
	});
	return looking;
}

// pressed keeps what is under a finger or the mouse from being replaced before it lets go.
let pressed = false;
addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; });

async function lookOnce() {
	if (!sessionStorage.getItem("token") || pressed) return;
	try {
		const st = await ask("/v1/status?oldest=true");
		skew = Date.parse(st.now) - Date.now();
		remember(st);
		status = st;
		$("login").hidden = true;
		$("store").hidden = $("logout").hidden = false;
		showQueues(st);
		if (open && st.queues[open]) await lookAtQueue(st.queues[open]);
		else $("queue").hidden = true;
		$("state").textContent = "Revision " + st.revision.toLocaleString("en") + (st.settled ? "" : ", not settled");
		if (!st.settled) trouble(new Error("This is not settled: a process died inside a commit, or the lock is held. If it stays, the operator is wanted: holdfast recover."));
		else if ($("trouble").textContent.startsWith("This is not settled") || $("trouble").dataset.lost) trouble(null);
		delete $("trouble").dataset.lost;
	} catch (err) {
		trouble(err);
		if (err.status !== 401) {
			$("trouble").dataset.lost = "yes";
			$("state").textContent = "Not up to date";
		}
	}
}

async function lookAtQueue(q) {
	const live = await ask(query("/v1/messages", { queue: open, limit: shown }));
	const failed = await ask(query("/v1/failed", { queue: open, namespace: q.failed_namespace, limit: shown }));
	$("queue-head").textContent = open;
	$("pause").textContent = q.paused ? "Resume" : "Pause";
	$("pause").onclick = () => q.paused
		? sure("Resume " + open + "?", "Claims find its messages again.", "Resume", "/v1/resume", { queue: open })
		: sure("Pause " + open + "?", "Claims find nothing in it until it is resumed. Enqueue and settling go on.", "Pause", "/v1/pause", { queue: open });
	showHeld(live);
	showWaiting(live);
	showFailed(failed);
	$("queue").hidden = false;
}

function logout(why) {
	sessionStorage.removeItem("token");
	clearTimeout(timer);
	seen = [];
	open = "";
	for (const d of document.querySelectorAll("dialog[open]")) d.close("no");
	for (const id of ["queues", "held", "waiting", "failed"]) $(id).replaceChildren();
	$("store").hidden = $("logout").hidden = true;
	$("state").textContent = "";
	$("login").hidden = false;
	$("login-why").textContent = why || "";
	$("token").value = "";
	$("token").focus();
}

$("login-form").addEventListener("submit", (e) => {
	e.preventDefault();
	sessionStorage.setItem("token", $("token").value.trim());
	$("token").value = "";
	look();
});
$("logout").addEventListener("click", () => logout(""));
$("close").addEventListener("click", () => {
	open = "";
	$("queue").hidden = true;
	$("queues").querySelector("button")?.focus();
});
document.addEventListener("visibilitychange", () => document.hidden || look());

if (sessionStorage.getItem("token")) look();
else logout("");
