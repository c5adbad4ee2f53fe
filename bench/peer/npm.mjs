// The npm package behind lines of JSON: {"n", "op", …} is asked on the standard input,
// {"n", "result" or "error"} answered on the standard output, many at a time.
import { readdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import {
  ackJsonDurableQueueEntry as ack,
  ensureJsonDurableQueueDirs as ensure,
  loadJsonDurableQueueEntry as load,
  resolveJsonDurableQueueEntryPaths as resolve,
  writeJsonDurableQueueEntry as write,
} from "@openclaw/fs-safe/store";

let queueDir;
const calls = {
  async open({ dir }) {
    queueDir = dir;
    await ensure({ queueDir, failedDir: queueDir + "-failed" });
  },
  async enqueue({ name, entry }) {
    await write({ filePath: resolve(queueDir, name).jsonPath, entry, tempPrefix: "queue" });
  },
  async list() {
    const names = await readdir(queueDir);
    return names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
  },
  async claim({ name }) {
    return await load({ paths: resolve(queueDir, name), tempPrefix: "queue" });
  },
  async ack({ name }) {
    await ack(resolve(queueDir, name));
  },
};
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { n, op, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { n, result: (await calls[op](rest)) ?? null };
  } catch (error) {
    answer = { n, error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
process.stdout.write("ready\n");
