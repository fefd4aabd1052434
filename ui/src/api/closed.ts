// Why a console's websocket has closed, and when to connect again.

/** Close codes from here on are 4000 plus an HTTP status: the API's error for a console that it does not open. The
 * reason is the error's message. */
const refused = 4000;
const goingAway = 1001; // RFC 6455: the instance stopped
const normal = 1000; // a shell's user has exited it

export type End = { why: 'refused'; message: string } | { why: 'ended' } | { why: 'lost' } | { why: 'exited' };

export function endOf({ code, reason }: { code: number; reason: string }): End {
  if (code >= refused) return { why: 'refused', message: reason };
  if (code === normal) return { why: 'exited' };
  return { why: code === goingAway ? 'ended' : 'lost' };
}

const unavailable = refused + 503;

/** retries reports whether the page connects again by itself. Shells that were exited do not, and those that were
 * refused only if the cause is temporary. Consoles always do. */
export const retries = (what: 'console' | 'vnc' | 'shell', code: number): boolean =>
  what !== 'shell' || (code !== normal && (code < refused || code === unavailable));

const longest = 15_000;

/** pauseAfter returns the pause after a number of failures in a row, in ms. */
export const pauseAfter = (failures: number): number => Math.min(1000 * 2 ** Math.min(failures, 10), longest);
