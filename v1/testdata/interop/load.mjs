// The parts that JavaScript plays when both sides work one directory. Each step is noted
// on stdout with the time before and after it, by the clock that all processes share.
import fs from "node:fs";
import path from "node:path";
import { shift } from "./stop.mjs";

const tempPrefix = "fs-safe";
const clock = () => Number(process.hrtime.bigint());
let finishing = false;

// finish lets the loops end after what they are at. ahead: the locks of the dead are old.
export function finish({ ahead }) {
  finishing = true;
  shift({ wall: ahead });
}

// note performs f and tells what came of it; result gives what more there is to tell.
async function note(event, f, result, wantCode) {
  const begin = clock();
  let code = "";
  let message = "";
  let value;
  try {
    value = await f();
  } catch (error) {
    code = String(error?.code || "error");
    message = String(error?.message);
  }
  const line = { ...event, ...(code === "" ? result?.(value) : undefined), begin, end: clock(), code, message };
  process.stdout.write(JSON.stringify({ event: line }) + "\n");
  if (wantCode) return code;
  return code === "" ? value : undefined;
}

// produce enqueues every entry of the list in its order, one that says so only when
// nothing is left of its ID: not claimed, not pending, and still not claimed.
export async function produce(q, { queue, entries }) {
  for (const { id, gen, alone } of entries) {
    const { jsonPath, processingPath } = q.resolveJsonDurableQueueEntryPaths(queue, id);
    while (alone && !finishing && [processingPath, jsonPath, processingPath].some((name) => fs.existsSync(name))) {
      await new Promise((go) => setTimeout(go, 2));
    }
    if (finishing) return;
    await note({ what: "enqueue", id, gen }, () => q.writeJsonDurableQueueEntry({ filePath: jsonPath, entry: { id, gen }, tempPrefix }));
  }
}

// migrate gives every fifth generation a second form, once.
async function migrate(entry) {
  if (entry.gen % 5 !== 3 || entry.form === 2) return { entry };
  return { entry: { ...entry, form: 2 }, migrated: true };
}

// consume loads whatever there is, and settles what it may: IDs that begin with one of
// its prefixes. Every tenth goes to the failed directory, as the last digit of the
// generation says, unless other evidence is there.
export async function consume(q, { queue, failed, prefixes }) {
  const settle = async ({ id, gen }) => {
    if (!prefixes.some((p) => id.startsWith(p))) return;
    if (gen % 10 === 7) {
      const code = await note({ what: "fail", id, gen }, () => q.moveJsonDurableQueueEntryToFailed({ queueDir: queue, failedDir: failed, id }), () => ({}), true);
      if (code !== "already-exists") return;
    }
    await note({ what: "ack", id, gen }, () => q.ackJsonDurableQueueEntry(q.resolveJsonDurableQueueEntryPaths(queue, id)));
  };
  for (let round = 0; !finishing; round++) {
    const entries = [];
    if (round % 8 === 0) {
      const begin = clock();
      const batch = (await note({ what: "pending" }, () => q.loadPendingJsonDurableQueueEntries({ queueDir: queue, tempPrefix }))) ?? [];
      const end = clock();
      for (const { id, gen } of batch) {
        process.stdout.write(JSON.stringify({ event: { what: "load", id, gen, begin, end, code: "", message: "" } }) + "\n");
      }
      entries.push(...batch);
    } else {
      const names = (await fs.promises.readdir(queue)).filter((n) => n.endsWith(".json") || n.endsWith(".processing"));
      const ids = [...new Set(names.map((n) => path.parse(n).name))]; // once each: what it would settle twice may be a newer one
      for (let i = 0; i < 4 && ids.length > 0; i++) {
        const [id] = ids.splice(Math.floor(Math.random() * ids.length), 1);
        const paths = q.resolveJsonDurableQueueEntryPaths(queue, id);
        const entry = await note({ what: "load", id }, () => q.loadJsonDurableQueueEntry({ paths, tempPrefix, read: migrate }), (value) => ({ gen: value?.gen ?? 0 }));
        if (entry) entries.push(entry);
      }
    }
    for (const entry of entries) await settle(entry);
    if (entries.length === 0) await new Promise((go) => setTimeout(go, 2));
  }
}
