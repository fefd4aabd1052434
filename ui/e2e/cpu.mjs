// What a story costs: on a machine with other work its time says little.
import { readdirSync, readFileSync } from 'node:fs';

const ticks = 100; // a second: USER_HZ of every Linux

/** spent is the processor time of this process and all it has started, in ms, as /proc/PID/stat has it (proc(5)). */
export function spent() {
  const children = new Map();
  const used = new Map();
  for (const pid of readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)) {
    let stat;
    try {
      stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch {
      continue; // it has ended
    }
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number); // from its state on
    children.set(fields[1], [...(children.get(fields[1]) ?? []), pid]);
    used.set(
      pid,
      fields.slice(11, 15).reduce((a, b) => a + b),
    ); // its own, and those of children that it has waited for
  }
  const sum = (pid) => (children.get(pid) ?? []).reduce((total, child) => total + sum(child), used.get(pid) ?? 0);
  return (sum(process.pid) * 1000) / ticks;
}
