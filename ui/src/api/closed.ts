// Why a console's websocket has ended, and when to try again.

/** Close codes from here on are 4000 and an HTTP status: what the API says of a
 * console that it does not open. The reason is its message. */
const refused = 4000;
const goingAway = 1001; // RFC 6455: the machine stopped
const normal = 1000; // a shell's user has left it

export type End = { why: 'refused'; message: string } | { why: 'ended' } | { why: 'lost' } | { why: 'exited' };

export function endOf({ code, reason }: { code: number; reason: string }): End {
  if (code >= refused) return { why: 'refused', message: reason };
  if (code === normal) return { why: 'exited' };
  return { why: code === goingAway ? 'ended' : 'lost' };
}

const unavailable = refused + 503;

/** retries says whether it is tried again by itself: a shell that was left is not, and one
 * that was refused only when that passes. Consoles always are. */
export const retries = (what: 'console' | 'vnc' | 'shell', code: number): boolean =>
  what !== 'shell' || (code !== normal && (code < refused || code === unavailable));

const longest = 15_000;

/** pauseAfter failures in a row, in ms. */
export const pauseAfter = (failures: number): number => Math.min(1000 * 2 ** Math.min(failures, 10), longest);
