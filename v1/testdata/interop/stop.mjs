// Loaded before everything else (node --import): stops this process between two of
// its system calls. The functions that change a directory or a file, or sync one, are
// counted from the moment a plan is armed; at the one that the plan means, before it is
// performed, the process kills itself, or lets its test do something and say go.
import fs from "node:fs";

const promises = fs.promises;
const plan = { how: "", at: 0, seen: 0, matched: 0, trace: [] };
const pattern = (text) => (text === undefined ? undefined : new RegExp(text));
const paths = new WeakMap(); // of file handles
const raw = { openSync: fs.openSync, writeSync: fs.writeSync, readSync: fs.readSync };

const base = (p) => (typeof p === "string" ? p.slice(p.lastIndexOf("/") + 1) : p?.fd !== undefined ? base(paths.get(p)) : "");

// how: "kill", "pause", or "" to count only.
// at: the number of an operation, from 1; or match: a pattern of its description, and nth
// of those that match (0: each).
export function arm(next) {
  Object.assign(plan, { how: "", at: 0, match: undefined, nth: 1 }, next, { seen: 0, matched: 0, trace: [] });
  plan.match = pattern(plan.match);
}

export const seen = () => ({ operations: plan.seen, trace: plan.trace });

function die() {
  process.kill(process.pid, "SIGKILL");
  for (;;);
}

// pause tells the test on descriptor 4 and waits for a byte on descriptor 3.
export function pause(what) {
  raw.writeSync(4, JSON.stringify(what) + "\n");
  raw.readSync(3, Buffer.alloc(1));
}

function meant(what) {
  if (plan.match === undefined) return plan.seen === plan.at;
  return plan.match.test(what) && (++plan.matched === plan.nth || plan.nth === 0);
}

// step stands before every counted operation.
function step(name, names) {
  const what = [name, ...names.map(base)].join(" ");
  plan.seen++;
  plan.trace.push(what);
  if (plan.how === "" || !meant(what)) return;
  if (plan.how === "pause") return pause(what);
  die();
}

function creates(flags) {
  if (typeof flags === "string") return /[wax]/.test(flags);
  return typeof flags === "number" && (flags & (fs.constants.O_CREAT | fs.constants.O_TRUNC)) !== 0;
}

for (const name of ["mkdir", "rmdir", "rename", "link", "unlink", "rm", "writeFile", "symlink", "truncate", "copyFile"]) {
  for (const [on, key] of [[promises, name], [fs, name + "Sync"]]) {
    const original = on[key];
    on[key] = function (...args) {
      if (name === "writeFile") {
        step(name, [args[0]]);
      } else if (name !== "mkdir" || !args[1]?.recursive || !fs.existsSync(args[0])) {
        step(name, args.filter((a) => typeof a === "string"));
      }
      return original.apply(this, args);
    };
  }
}

for (const [on, key] of [[promises, "open"], [fs, "openSync"]]) {
  const original = on[key];
  on[key] = function (file, flags, ...more) {
    if (creates(flags)) step("create", [file]);
    const opened = original.call(this, file, flags, ...more);
    if (key === "openSync") return opened;
    return opened.then((handle) => (paths.set(handle, file), handle));
  };
}

for (const name of ["fsyncSync", "fdatasyncSync", "writeSync", "ftruncateSync"]) {
  const original = fs[name];
  fs[name] = function (fd, ...args) {
    if (fd > 2) step(name, []);
    return original.call(this, fd, ...args);
  };
}

const probe = await promises.open("/dev/null", "r");
const FileHandle = Object.getPrototypeOf(probe);
await probe.close();
for (const name of ["sync", "datasync", "write", "writev", "writeFile", "truncate"]) {
  const original = FileHandle[name];
  FileHandle[name] = function (...args) {
    step(name, [paths.get(this) ?? ""]);
    return original.apply(this, args);
  };
}

// The clock by which the package takes the age of a lock is ahead by wall ms, and the one
// by which it loses its patience runs rate times as fast.
let wall = 0;
let rate = 1;
const dateNow = Date.now;
const performanceNow = performance.now.bind(performance);
Date.now = () => dateNow() + wall;
performance.now = () => performanceNow() * rate;
export function shift(clock) {
  wall = clock.wall ?? 0;
  rate = clock.rate ?? 1;
}
