// One trial of the npm package: enqueue, load and ack of each message.
import {
  ackJsonDurableQueueEntry as ack,
  ensureJsonDurableQueueDirs as ensure,
  loadJsonDurableQueueEntry as load,
  resolveJsonDurableQueueEntryPaths as resolve,
  writeJsonDurableQueueEntry as write,
} from "@openclaw/fs-safe/store";

const [queueDir, messages, workers, payload] = process.argv.slice(2);
await ensure({ queueDir, failedDir: queueDir + "-failed" });
const entry = JSON.parse(payload);
let next = 0;
async function work() {
  while (next < Number(messages)) {
    const paths = resolve(queueDir, `message-${next++}`);
    await write({ filePath: paths.jsonPath, entry, tempPrefix: "queue" });
    if ((await load({ paths, tempPrefix: "queue" })) === null) throw new Error("nothing to load");
    await ack(paths);
  }
}
const began = performance.now();
await Promise.all(Array.from({ length: Number(workers) }, work));
console.log(JSON.stringify({ Milliseconds: performance.now() - began }));
