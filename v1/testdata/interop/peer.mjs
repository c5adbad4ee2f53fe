// The JavaScript side of the interop tests: the npm package, driven by lines of JSON on
// stdin, one answer a line on stdout.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { arm, pause, seen, shift } from "./stop.mjs";
import { consume, finish, produce } from "./load.mjs";

const require = createRequire(path.join(process.env.HOLDFAST_FS_SAFE, "package.json"));
const store = require.resolve("@openclaw/fs-safe/store");
const q = await import(pathToFileURL(store));
const locks = await import(pathToFileURL(path.join(path.dirname(store), "sidecar-lock-reclaim.js")));

const tempPrefix = "fs-safe";
const pathsOf = ({ queue, id }) => q.resolveJsonDurableQueueEntryPaths(queue, id);

// migration makes a read callback of what a call asks for: a new payload, a pause
// while it runs, a failure, or none.
function migration({ migrate, gate, fails }) {
  if (migrate === undefined && gate === undefined && fails === undefined) return undefined;
  return async (entry) => {
    if (gate) pause("callback");
    if (fails) throw new Error(fails);
    return migrate === undefined ? { entry } : { entry: migrate, migrated: true };
  };
}

const methods = {
  arm: async (a) => arm(a),
  seen: async () => seen(),
  shift: async (a) => shift(a),
  version: async () => ({ node: process.versions.node, package: require("@openclaw/fs-safe/package.json").version }),

  ensure: async ({ queue, failed }) => q.ensureJsonDurableQueueDirs({ queueDir: queue, failedDir: failed }),
  enqueue: async (a) => q.writeJsonDurableQueueEntry({ filePath: pathsOf(a).jsonPath, entry: a.entry, tempPrefix }),
  load: async (a) => q.loadJsonDurableQueueEntry({ paths: pathsOf(a), tempPrefix, read: migration(a), maxBytes: a.maxBytes }),
  pending: async (a) =>
    q.loadPendingJsonDurableQueueEntries({ queueDir: a.queue, tempPrefix, read: migration(a), cleanupTmpMaxAgeMs: a.maxAge }),
  ack: async (a) => q.ackJsonDurableQueueEntry(pathsOf(a)),
  fail: async ({ queue, failed, id }) => q.moveJsonDurableQueueEntryToFailed({ queueDir: queue, failedDir: failed, id }),
  read: async ({ file }) => q.readJsonDurableQueueEntry(file),

  // verdicts tells which IDs the package takes.
  verdicts: async ({ ids }) =>
    ids.map((id) => {
      try {
        return q.resolveJsonDurableQueueEntryPaths("/q", id) !== undefined;
      } catch {
        return false;
      }
    }),

  // compare holds a file beside the JSON text that it was made of.
  compare: async ({ file, text }) => {
    const value = JSON.parse(text);
    const bytes = fs.readFileSync(file, "utf8");
    return {
      value: isDeepStrictEqual(JSON.parse(bytes), value) && isDeepStrictEqual(await q.readJsonDurableQueueEntry(file), value),
      bytes: bytes === JSON.stringify(value, null, 2),
      want: JSON.stringify(value, null, 2),
    };
  },

  // record tells what the package reads in the file of a lock, and writes it anew.
  record: async ({ file }) => {
    const raw = fs.readFileSync(file, "utf8");
    const payload = locks.parseSidecarLockPayload(raw);
    const token = locks.readSidecarLockOwnershipToken(raw);
    return { payload, token, again: `${JSON.stringify(payload, null, 2)}\n${token}\n` === raw };
  },

  // mark leaves a call that a trace of system calls shows.
  mark: async ({ name }) => {
    try {
      fs.accessSync("/holdfast-mark/" + name);
    } catch {
      // There is no such file.
    }
  },

  // lives takes n entries from their enqueue to their acknowledgement, and tells the
  // milliseconds that it took.
  lives: async (a) => {
    const begin = process.hrtime.bigint();
    for (let i = 0; i < a.n; i++) {
      await methods.enqueue(a);
      await methods.load(a);
      await methods.ack(a);
    }
    return Number(process.hrtime.bigint() - begin) / 1e6;
  },

  produce: async (a) => produce(q, a),
  consume: async (a) => consume(q, a),
  finish: async (a) => finish(a),
};

function say(answer) {
  process.stdout.write(JSON.stringify(answer) + "\n");
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { method, ...args } = JSON.parse(line);
  const call = methods[method](args).then(
    (value) => say({ ok: true, value: value ?? null }),
    (error) => say({ ok: false, code: String(error?.code ?? ""), message: String(error?.message ?? error) }),
  );
  if (method !== "produce" && method !== "consume") await call;
}
