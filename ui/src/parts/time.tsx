// A relative time, with the exact time on hover or focus: in the local time zone, and in UTC as in logs.
import { useSyncExternalStore } from 'react';
import { useText } from '../i18n';
import { formatLocal } from '../lib/format';
import { relative } from '../lib/relative';

const minute = 60_000; // ms
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for all times of a page, which ticks while at least one is shown. */
function subscribe(changed: () => void) {
  if (listeners.size === 0) {
    now = Date.now();
    timer = setInterval(() => ((now = Date.now()), listeners.forEach((f) => f())), minute);
  }
  listeners.add(changed);
  return () => {
    listeners.delete(changed);
    if (listeners.size === 0) clearInterval(timer);
  };
}

const focusable = { tabIndex: 0 };

export function Time({ at, none = '–' }: { at: string | undefined; none?: string }) {
  const { language } = useText();
  const seen = useSyncExternalStore(subscribe, () => now);
  if (!at) return <>{none}</>;
  const exact = formatLocal(at, language);
  // What happened since the last tick is not in the future.
  const from = Math.max(seen, Math.min(Date.parse(at), seen + minute));
  return (
    <time className="basalt-time" dateTime={at} {...focusable}>
      {relative(Date.parse(at), from, language)}
      <span className="basalt-exact"> {exact}</span>
    </time>
  );
}
